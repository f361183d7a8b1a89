//! What rekindle adds to an agent's requests, in bytes that the provider receives: its tools, its prompt beyond the plan's own
//! words, and a whole run without a fault beside the bare program with the same plan as its prompt. A token is counted as four
//! bytes of the request's JSON.

#![expect(clippy::print_stdout, reason = "the score is printed")]

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Answer, Asked, Script};
use serde_json::Value;

use crate::bed::{Bed, PLAN, bye, done, work};
use crate::for_each_cli;
use crate::setting;

/// Bytes of JSON that count as one token.
const TOKEN_BYTES: usize = 4;

/// Tokens of the tools in each request.
const TOOLS_MAX: usize = 700;

/// Tokens of the first prompt beyond the plan's words.
const PROMPT_MAX: usize = 450;

/// Tokens of a resumed session's prompt.
const RESUME_MAX: usize = 400;

/// Percent that a run without a fault may send beyond what the bare program sends.
const RUN_MAX_PERCENT: f64 = 8.0;

/// Requests of the run before the work is done.
const LOOKS: usize = 7;

for_each_cli!(rekindle_adds_little);

fn rekindle_adds_little(cli: Cli) {
    let bed = Bed::new(cli, script(done()));
    bed.finish(bed.rig.run());
    let with = bed.server.main();
    let prompt = prompt(&with[0], "# You are").unwrap_or_else(|| panic!("no prompt\n{}", bed.story()));
    let tools = tools(&with[0]);
    drop(bed);

    // The same check, run by the agent itself: without rekindle nobody else does.
    let bare = Bed::new(cli, script(Answer::shell("test \"$(cat made.txt)\" = yes")));
    let ended = bare.rig.launch(bare_command(&bare)).end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", bare.story());
    let without = bare.server.main();
    assert_eq!(with.len(), without.len(), "the same requests\n{}", bare.story());
    assert!(self::tools(&without[0]) == 0 && without[0].mentions(crate::bed::WORD), "{}", bare.story());

    // One program offers three tools of its own for the resources of servers as soon as there is a server, with resources or not.
    // They count: without rekindle they would not be there.
    let own = names(&with[0]).into_iter().filter(|(name, _)| !is_ours(name) && !without[0].tools.contains(name));
    let theirs = own.map(|(_, bytes)| bytes).sum::<usize>() * with.len();
    let (more, all) = (sent(&with) - sent(&without), sent(&without));
    #[expect(clippy::cast_precision_loss, reason = "a few hundred thousand bytes")]
    let percent = more as f64 * 100.0 / all as f64;
    let beyond = prompt.len() - PLAN.len();
    let line = format!(
        "{}: tools {} tokens a request, first prompt {} beyond the plan, {} requests: {} with, {} without, \
         {percent:.1} % more, {} of them for tools that the program adds for any server",
        cli.name(),
        tools / TOKEN_BYTES,
        beyond / TOKEN_BYTES,
        with.len(),
        sent(&with) / TOKEN_BYTES,
        all / TOKEN_BYTES,
        theirs / TOKEN_BYTES,
    );
    println!("{line}");
    assert!(tools > 0 && tools <= TOOLS_MAX * TOKEN_BYTES, "{line}");
    assert!(beyond <= PROMPT_MAX * TOKEN_BYTES, "{line}\n{prompt}");
    assert!(percent <= RUN_MAX_PERCENT, "{line}");
}

/// Looks at the plan again and again, does the work, proves it, ends.
fn script(proves: Answer) -> Script {
    let look =
        |script: Script, number: usize| script.then(Answer::shell(format!("wc -c plan.md && echo look {number}")));
    (0..LOOKS).fold(Script::new(), look).then(work()).then(proves).then(bye())
}

/// The program as a person runs it, without anything of rekindle's, with the plan as its prompt.
fn bare_command(bed: &Bed) -> std::process::Command {
    let model = setting::model(bed.cli).unwrap_or_default();
    let mut command = match bed.cli {
        Cli::Claude => {
            bed.bare(&["-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions", PLAN])
        }
        Cli::Codex => {
            bed.bare(&["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PLAN])
        }
        Cli::Gemini => bed.bare(&["--model", model, "--yolo", "--output-format", "stream-json", "--prompt", PLAN]),
        Cli::Opencode => bed.bare(&["run", "--auto", PLAN]),
    };
    command.envs([("GEMINI_CLI_TRUST_WORKSPACE", "true"), ("GEMINI_CLI_NO_RELAUNCH", "true")]);
    command
}

/// A resumed session is told little. What it is told of the work itself (calls, commits) is behind fences and is not counted.
pub fn assert_resume_is_short(asked: &Asked, story: impl FnOnce() -> String) {
    let prompt = prompt(asked, "# Your session continues").unwrap_or_else(|| panic!("no resume\n{}", story()));
    let own: usize = prompt.lines().filter(|line| !line.starts_with("| ")).map(|line| line.len() + 1).sum();
    let tokens = own / TOKEN_BYTES;
    println!("resume: {tokens} tokens");
    assert!(tokens <= RESUME_MAX, "{tokens} tokens\n{prompt}");
}

/// Bytes of all requests.
fn sent(asked: &[Asked]) -> usize {
    asked.iter().map(|one| one.body.to_string().len()).sum()
}

/// The text that begins with these words.
fn prompt(asked: &Asked, begins: &str) -> Option<String> {
    let texts = asked.messages.iter().rev();
    texts.filter_map(|message| message.text.find(begins).map(|at| message.text[at..].to_owned())).next()
}

/// Bytes of rekindle's tools, whatever the API calls them.
fn tools(asked: &Asked) -> usize {
    names(asked).into_iter().filter(|(name, _)| is_ours(name)).map(|(_, bytes)| bytes).sum()
}

fn is_ours(name: &str) -> bool {
    name.contains("rekindle")
}

/// Every tool that is offered, or the namespace it stands in, with its bytes.
fn names(asked: &Asked) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    gather(&asked.body["tools"], &mut found);
    found
}

fn gather(value: &Value, found: &mut Vec<(String, usize)>) {
    match (value, value["name"].as_str().or_else(|| value["function"]["name"].as_str())) {
        (_, Some(name)) => found.push((name.to_owned(), value.to_string().len())),
        (Value::Array(list), None) => list.iter().for_each(|one| gather(one, found)),
        (Value::Object(members), None) => members.values().for_each(|one| gather(one, found)),
        _ => {}
    }
}
