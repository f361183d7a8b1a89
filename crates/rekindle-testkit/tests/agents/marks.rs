//! Eighteen made-up words, each put into a run by exactly one way, and a compaction whose summary says nothing: how many of them
//! stand in the next request. Then the agent is killed and its session resumed: how many stand in the first request after that.
//!
//! With `REKINDLE_AGENTS_FULL=1` also: two compactions, and a compaction after the resume.

use std::process::Command;

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Act, Answer, Asked, Purpose, Rule, Script, When};
use serde_json::json;

use crate::bed::{Bed, bye, done, waiting_tool};
use crate::compaction::{bending, forgetting};
use crate::for_each_cli;
use crate::setting::{MUCH, Setting};

/// Most tokens of the notice, a token being four bytes.
const TOKENS_MAX: usize = 2_500;

/// What each word stands for, and the word.
const MARKS: [(&str, &str); 18] = [
    ("the goal", "quokka-1101"),
    ("a dispatch rule", "numbat-1202"),
    ("the task's text", "bilby-1303"),
    ("a check", "potoroo-1404"),
    ("the result of one task", "wombat-1505"),
    ("the result of another", "dingo-1606"),
    ("a decision of the agent", "kowari-1707"),
    ("a decision of a person", "quoll-1808"),
    ("a question", "echidna-1909"),
    ("its answer", "platypus-2010"),
    ("the checkpoint", "dugong-2111"),
    ("what the checkpoint lists as done", "emu-2212"),
    ("what it lists as next", "brolga-2313"),
    ("a file that was edited", "cassowary-2414"),
    ("a failed test's output", "galah-2515"),
    ("a command since the checkpoint", "kookaburra-2616"),
    ("what a command printed", "lyrebird-2717"),
    ("a file that git shows", "magpie-2818"),
];

fn mark(about: &str) -> &'static str {
    MARKS.iter().find(|(name, _)| *name == about).map(|(_, word)| *word).expect("one of the marks")
}

fn plan() -> String {
    format!(
        "# Marks\n\nAll of it is for {}.\n\n## Dispatch rules\n\nNever touch {}.\n\n\
         ### T1: Make the file\n- agent: solo\n- accept: `true`\n\nThe first.\n\n\
         ### T2: The second\n- agent: solo\n- accept: `true`\n\nThe second.\n\n\
         ### T3: The third\n- agent: solo\n- accept: `test -e finished # {}`\n\nThe word is {}.\n",
        mark("the goal"),
        mark("a dispatch rule"),
        mark("a check"),
        mark("the task's text"),
    )
}

fn shell(command: impl Into<String>) -> Answer {
    Answer::shell(command).tokens(2_000, 20)
}

fn report(tool: &str, args: serde_json::Value) -> Answer {
    Answer::report(tool, args).tokens(2_000, 20)
}

fn task_done(task: &str, result: &str) -> Answer {
    report("task_done", json!({ "task": task, "result": result }))
}

/// Changes a file with the program's own tool for it, where there is one.
fn edit(cli: Cli) -> Answer {
    let file = format!("{}.txt", mark("a file that was edited"));
    let call =
        |tool: &str, name: &str| Act::Call { tool: tool.to_owned(), args: json!({ name: file, "content": "x\n" }) };
    let act = match cli {
        Cli::Claude => call("Write", "file_path"),
        Cli::Gemini => call("write_file", "file_path"),
        Cli::Opencode => call("write", "filePath"),
        Cli::Codex => Act::Shell(format!("printf x > {file}")),
    };
    Answer { acts: vec![act], ..Answer::default() }.tokens(2_000, 20)
}

/// Everything until the first compaction, and the request that leads to it.
fn work(cli: Cli) -> Script {
    let wait = format!("exec {} wait answered", env!("CARGO_BIN_EXE_fake-agent"));
    let checkpoint = json!({
        "task": "T3", "status": mark("the checkpoint"), "completed": [mark("what the checkpoint lists as done")],
        "remaining": [mark("what it lists as next")],
    });
    let script = forgetting()
        .then(task_done("T1", mark("the result of one task")))
        .then(task_done("T2", mark("the result of another")))
        .then(report("note", json!({ "decision": mark("a decision of the agent") })))
        .then(report("ask", json!({ "task": "T3", "question": format!("Which one, {}?", mark("a question")) })))
        .then(shell(wait))
        .then(report("checkpoint", checkpoint))
        .then(edit(cli))
        .then(shell("sh planted/fails.sh"))
        .then(shell(format!("echo {} > /dev/null", mark("a command since the checkpoint"))))
        .then(shell("cat planted/printed.txt"))
        .then(shell("sh planted/makes.sh"));
    compact(script, cli)
}

fn compact(script: Script, cli: Cli) -> Script {
    script.then(bending(cli)).then(shell("echo so far").tokens(MUCH, 50))
}

/// Enough turns that two compactions are no loop.
fn between(mut script: Script) -> Script {
    for turn in 0..6 {
        script = script.then(shell(format!("echo turn {turn}")));
    }
    script
}

fn ending(script: Script) -> Script {
    script.then(shell("touch finished")).then(task_done("T3", "all of it")).then(bye())
}

fn bed(cli: Cli, script: Script) -> Bed {
    let settings = "\n[compaction]\nhand_over_after = 9\n";
    let bed = Bed::with(cli, script, Setting { compacts: true, ..Setting::default() }, settings);
    bed.rig.write("plan.md", &plan());
    std::fs::create_dir(bed.rig.path("planted")).expect("a folder");
    bed.rig.write("planted/fails.sh", &format!("echo expected 4, got {}\nexit 3\n", mark("a failed test's output")));
    bed.rig.write("planted/printed.txt", &format!("{}\n", mark("what a command printed")));
    bed.rig.write("planted/makes.sh", &format!("touch {}\n", mark("a file that git shows")));
    // What lies in the project before is committed: git shows what the agent made.
    for arguments in [&["init", "-q"][..], &["add", "planted"], &["commit", "-q", "-m", "planted"]] {
        let mut git = Command::new("git");
        bed.rig.prepare(&mut git);
        git.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(arguments);
        assert!(git.status().expect("git").success(), "git {arguments:?}");
    }
    bed
}

/// Answers the agent's question, and notes something as a person does.
fn answer(bed: &Bed) {
    let asked = bed.rig.await_event("question_asked");
    let id = &asked["details"]["id"];
    bed.rig.ok(&["note", mark("a decision of a person")]);
    bed.rig.ok(&["answer", &id.to_string(), mark("its answer")]);
    bed.rig.touch("answered");
}

/// The marks that a request has, printed as a score; all of them have to be there.
#[expect(clippy::print_stdout, reason = "the score is printed")]
fn score(bed: &Bed, when: &str, request: &Asked) {
    let missing: Vec<&str> =
        MARKS.iter().filter(|(_, word)| !request.mentions(word)).map(|(about, _)| *about).collect();
    let found = MARKS.len() - missing.len();
    println!("marks {} {when}: {found}/{}", bed.cli.name(), MARKS.len());
    assert!(missing.is_empty(), "{when}: missing {missing:?} in\n{}\n{}", last_messages(request), bed.story());
}

/// The notice in a request; its size is told and bounded.
#[expect(clippy::print_stdout, reason = "the score is printed")]
fn notice(bed: &Bed, when: &str, request: &Asked) {
    let with = request.messages.iter().rev().find(|message| message.text.contains("# Your context was compacted"));
    let text = &with.unwrap_or_else(|| panic!("no notice {when}:\n{}", bed.story())).text;
    let notice = &text[text.rfind("# Your context was compacted").expect("found above")..];
    let end = notice.find("counts as a failed attempt.").map_or(notice.len(), |end| end + 28);
    let tokens = end.div_ceil(4);
    println!("notice {} {when}: {tokens} tokens of four bytes", bed.cli.name());
    assert!(tokens <= TOKENS_MAX, "{tokens} tokens:\n{}", &notice[..end.min(notice.len())]);
}

fn last_messages(request: &Asked) -> String {
    let last = request.messages.iter().rev().take(4).rev();
    last.map(|message| format!("[{}] {}\n", message.role, message.text)).collect()
}

/// The first request of the conversation after the nth compaction, from 1. A program may ask twice for one summary.
fn after_compaction(bed: &Bed, number: usize) -> Asked {
    let asked = bed.server.asked();
    let mut known =
        asked.iter().filter(|asked| matches!(asked.purpose, Purpose::Main | Purpose::Compaction)).peekable();
    let mut compactions = 0;
    while let Some(one) = known.next() {
        let next = known.peek().filter(|next| one.purpose == Purpose::Compaction && next.purpose == Purpose::Main);
        compactions += usize::from(next.is_some());
        if let Some(next) = next.filter(|_| compactions == number) {
            return (*next).clone();
        }
    }
    panic!("it did not go on after compaction {number}\n{}", bed.story());
}

fn full() -> bool {
    std::env::var_os("REKINDLE_AGENTS_FULL").is_some_and(|value| value == "1")
}

for_each_cli!(nothing_is_forgotten_by_a_compaction_and_a_kill);

fn nothing_is_forgotten_by_a_compaction_and_a_kill(cli: Cli) {
    let script = work(cli).then(waiting_tool());
    let script = if full() { compact(between(script), cli) } else { script };
    let bed = bed(cli, ending(script));
    let run = bed.rig.run();
    answer(&bed);
    bed.await_tool();
    bed.await_told(1, "tool-runs.new");
    let first = after_compaction(&bed, 1);
    let before = bed.server.main().len();
    bed.pin_agent(1).kill();
    bed.finish(run);
    score(&bed, "after a compaction", &first);
    notice(&bed, "after a compaction", &first);
    let resumed = &bed.server.main()[before];
    score(&bed, "after a compaction, a kill and a resume", resumed);
    if matches!(cli, Cli::Gemini | Cli::Opencode) {
        // Their notice is put into every request and is no part of the session: the prompt alone tells it now.
        let goals =
            resumed.messages.iter().map(|message| message.text.matches(mark("the goal")).count()).sum::<usize>();
        assert_eq!(goals, 1, "told once: {}", last_messages(resumed));
    }
    assert_eq!(bed.sessions().len(), 2, "{}", bed.story());
    if full() {
        let second = after_compaction(&bed, 2);
        score(&bed, "after a compaction, a kill, a resume and a compaction", &second);
        notice(&bed, "after the second compaction", &second);
        // Few scenarios run at once: the next waits for a turn of its own.
        drop(bed);
        // Gemini CLI compresses only before a message of the user, of which a process has one: its second compaction is the one above.
        if cli != Cli::Gemini {
            twice(cli);
        }
    }
}

/// Two compactions of one process: with the second the whole plan is reloaded.
fn twice(cli: Cli) {
    let bed = bed(cli, ending(compact(between(work(cli)), cli)));
    let run = bed.rig.run();
    answer(&bed);
    bed.finish(run);
    for number in [1, 2] {
        let request = after_compaction(&bed, number);
        let when = format!("after {number} of two compactions");
        score(&bed, &when, &request);
        notice(&bed, &when, &request);
    }
    assert!(after_compaction(&bed, 2).mentions("The Whole Plan (full reload)"), "{}", bed.story());
}

/// Steps with an effect that must not happen twice.
const PAYMENTS: usize = 20;

/// After so many of them the context is compacted.
const HALF: usize = 10;

const PAYMENTS_PLAN: &str = "# Payments\n\n### T1: Make all payments\n- accept: `test -e paid/20`\n\nRun `sh pay.sh N` for every N from 1 to 20, once.\n";

/// A model that goes by its context alone: it makes the first payment that it sees no receipt of. It saves no checkpoint.
fn paying(cli: Cli) -> Script {
    let main = || When::Purpose(Purpose::Main);
    let receipt = |n: usize| format!("paid invoice {n};");
    let bends = vec![main(), When::Anywhere(receipt(HALF))];
    let mut script = forgetting().rule(Rule { when: bends, times: Some(1), answer: bending(cli) });
    for n in 1..=PAYMENTS {
        let tokens = if n == HALF + 1 { MUCH } else { 2_000 };
        script =
            script.whenever([main(), When::Nowhere(receipt(n))], shell(format!("sh pay.sh {n}")).tokens(tokens, 20));
    }
    script.then(done()).then(bye())
}

#[test]
fn no_payment_is_made_twice_after_a_useless_compaction_without_a_checkpoint() {
    let all = [Cli::Claude, Cli::Codex, Cli::Gemini, Cli::Opencode];
    for cli in if full() { &all[..] } else { &all[..1] } {
        let bed = Bed::with(*cli, paying(*cli), Setting { compacts: true, ..Setting::default() }, "");
        bed.rig.write("plan.md", PAYMENTS_PLAN);
        bed.rig.write("pay.sh", "mkdir -p paid\necho $1 >> paid/all\ntouch paid/$1\necho \"paid invoice $1;\"\n");
        bed.finish(bed.rig.run());
        let mut paid = bed.rig.lines("paid/all");
        let all = paid.len();
        paid.sort();
        paid.dedup();
        println!(
            "payments {}: {} made, {} repeated, {} missing",
            cli.name(),
            all,
            all - paid.len(),
            PAYMENTS - paid.len()
        );
        assert_eq!((all, paid.len()), (PAYMENTS, PAYMENTS), "{}", bed.story());
        assert_eq!(bed.rig.task("T1")["compactions"], 1, "{}", bed.story());
    }
}
