//! Somebody leads with Claude Code or with Codex, as always: tasks, helpers, decisions, files, a command that fails. Then the
//! context is compacted to a summary that says nothing, twice, and the program is killed. Each time the next request of the model
//! holds what would be lost.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Act, Answer, Purpose, Rule, Script, When};
use serde_json::{Value, json};

use crate::bed::waiting_tool;
use crate::guard_adapter::{GuardedSession, SUMMARY, forgetting, text_of, told};
use crate::rig::{Running, program};
use crate::setting::MUCH;

const PROMPT: &str = "Build the wombat importer. Never touch the legacy folder.";

const DECISION: &str = "We decided to use SQLite instead of Postgres because one file is enough.";

/// What a helper is told to do: by this it is known which request is its own.
const SCOUT: &str = "Find the file of the parser, scout-77";

/// What must be before the model again.
const KEPT: [&str; 9] = [
    "Build the wombat importer. Never touch the legacy folder.",
    "SQLite instead of Postgres because one file is enough",
    "parse the quokka file",
    "in progress",
    "ship it to the bilbies",
    "the parser is in src/lex.rs, bilby-9",
    "importer.txt",
    "no-such-program-kowari",
    "errors are problem details, potoroo-3",
];

const PLAN: &str = "# Marsupials\n\nThe word of the plan is bandicoot-5.\n\n### T1: Parse\n\nParse the file.\n\n\
    ### T2: Ship\n- blocked by: T1\n\nShip it.\n";

fn call(tool: &str, args: Value) -> Act {
    Act::Call { tool: tool.to_owned(), args }
}

fn calls(acts: Vec<Act>) -> Answer {
    Answer { acts, ..Answer::default() }.tokens(2_000, 20)
}

/// The session's work, in each program's own tools.
fn works(cli: Cli, script: Script) -> Script {
    let found = Answer::say("I looked: the parser is in src/lex.rs, bilby-9.").tokens(900, 20);
    let script = match cli {
        Cli::Claude => {
            let task = |subject: &str| call("TaskCreate", json!({ "subject": subject, "description": "all of it" }));
            let tasks =
                vec![Act::Say(DECISION.to_owned()), task("parse the quokka file"), task("ship it to the bilbies")];
            let changes = vec![
                call("TaskUpdate", json!({ "taskId": "1", "status": "in_progress" })),
                call("TaskUpdate", json!({ "taskId": "2", "addBlockedBy": ["1"] })),
            ];
            let agent = json!({ "description": "find the parser", "prompt": SCOUT, "subagent_type": "general-purpose",
                "run_in_background": false });
            let file = json!({ "file_path": "importer.txt", "content": "hi" });
            let script = script.then(calls(tasks)).then(calls(changes)).then(calls(vec![call("Agent", agent)]));
            // The helper's own request comes next.
            script.then(found).then(calls(vec![call("Write", file)]))
        }
        _ => {
            // It works beside the lead.
            let own = vec![When::Purpose(Purpose::Main), When::Last(SCOUT.to_owned())];
            let script = script.rule(Rule { when: own, times: Some(1), answer: found });
            let tasks = json!({ "plan": [
                { "step": "parse the quokka file", "status": "in_progress" },
                { "step": "ship it to the bilbies", "status": "pending" },
            ] });
            let agent = call("multi_agent_v1.spawn_agent", json!({ "message": SCOUT }));
            let script = script.then(calls(vec![Act::Say(DECISION.to_owned()), call("update_plan", tasks)]));
            let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: importer.txt\n+hi\n*** End Patch\nEOF";
            let waits = format!("{} wait helper-ended", env!("CARGO_BIN_EXE_fake-agent"));
            let script = script.then(calls(vec![agent])).then(Answer::shell(waits).tokens(2_000, 20));
            script.then(Answer::shell(patch).tokens(2_000, 20))
        }
    };
    // By its path: a login shell may have another search path.
    let note = format!("'{}' note 'errors are problem details, potoroo-3'", program().display());
    script.then(Answer::shell("no-such-program-kowari").tokens(2_000, 20)).then(Answer::shell(note).tokens(2_000, 20))
}

/// Types the prompt; where the helper works beside the lead, the lead goes on when its end was heard.
fn begin(cli: Cli, lead: &GuardedSession) -> Running {
    let session = lead.prompt(PROMPT);
    if cli == Cli::Codex {
        lead.await_heard("helper_ended");
        lead.rig.touch("helper-ended");
    }
    session
}

fn is_told_after_each_compaction(cli: Cli) {
    let script = works(cli, forgetting())
        .then(Answer::shell("echo so far").tokens(MUCH, 50))
        .then(Answer::shell("echo first").tokens(2_000, 20))
        .then(Answer::shell("echo second").tokens(2_000, 20))
        .then(Answer::shell("echo third").tokens(MUCH, 50))
        .then(Answer::shell("echo fourth").tokens(2_000, 20))
        .then(Answer::say("That is all."));
    let lead = GuardedSession::new(cli, script);
    // Longer than what one program takes from a hook: it sets the rest aside where the model does not see it.
    let long = "\nParse every line of it, with all that it holds, in the order in which it stands there.\n".repeat(150);
    lead.rig.write("plan.md", &format!("{PLAN}{long}"));
    let ended = begin(cli, &lead).end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", lead.story());
    let asked = lead.server.asked();
    let at = asked.iter().position(|one| one.purpose == Purpose::Compaction).expect("a summary was asked for");
    assert!(asked[..at].iter().all(|one| told(one) == 0), "nothing was forgotten before\n{}", lead.story());

    let first = &lead.after_compaction(1)[0];
    assert!(first.mentions(SUMMARY), "it has forgotten\n{}", lead.story());
    assert_eq!(told(first), 1, "{}", lead.story());
    lead.assert_told(first, &KEPT);
    let text = text_of(first);
    assert!(!text.contains("bandicoot-5"), "the state alone: {text}");

    let second = &lead.after_compaction(2)[0];
    lead.assert_told(second, &KEPT);
    lead.assert_told(second, &["bandicoot-5", "Full plan reload"]);
    assert!(!second.mentions("Output too large"), "it does not arrive whole\n{}", lead.story());
    if cli == Cli::Claude {
        lead.assert_told(second, &["blocked by 1"]);
    }
}

fn is_told_after_a_death(cli: Cli) {
    let script = works(cli, Script::new()).then(waiting_tool()).then(Answer::say("Hello again."));
    let lead = GuardedSession::new(cli, script);
    let next = lead.die_and_begin_anew(begin(cli, &lead));
    assert_eq!(told(&next), 1, "{}", lead.story());
    lead.assert_told(&next, &KEPT);
    lead.assert_told(&next, &["ended with unfinished work", "was running, no end is known: `"]);
    let printed = lead.rig.ok(&["guard", "recover"]);
    for words in KEPT {
        assert!(printed.contains(words), "recover lacks {words:?}: {printed}");
    }
}

mod after_each_compaction {
    use super::*;

    #[test]
    fn claude() {
        is_told_after_each_compaction(Cli::Claude);
    }

    #[test]
    fn codex() {
        is_told_after_each_compaction(Cli::Codex);
    }
}

mod after_a_death {
    use super::*;

    #[test]
    fn claude() {
        is_told_after_a_death(Cli::Claude);
    }

    #[test]
    fn codex() {
        is_told_after_a_death(Cli::Codex);
    }
}

/// The person types `/compact`.
#[test]
fn claude_is_told_after_a_compaction_by_hand() {
    let script = works(Cli::Claude, forgetting()).then(Answer::say("So far."));
    let script = script.then(Answer::say("On it goes.")).then(Answer::say("And on."));
    let lead = GuardedSession::new(Cli::Claude, script);
    let arguments =
        "-p --output-format stream-json --verbose --input-format stream-json --dangerously-skip-permissions";
    let mut command = lead.command(&arguments.split(' ').collect::<Vec<_>>());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
    let mut typed = child.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    for words in [PROMPT, "/compact", "Go on.", "And on."] {
        let line = json!({ "type": "user", "message": { "role": "user", "content": words } });
        writeln!(typed, "{line}").expect("typed");
        let result = lines.by_ref().map_while(Result::ok).find(|line| line.contains("\"type\":\"result\""));
        assert!(result.is_some(), "no end of the turn\n{}", lead.story());
    }
    drop(typed);
    assert!(child.wait().expect("ended").success(), "{}", lead.story());
    let next = &lead.after_compaction(1)[0];
    assert!(next.mentions(SUMMARY) && !next.mentions("No such tool"), "{}", lead.story());
    lead.assert_told(next, &KEPT);
    for later in lead.after_compaction(1) {
        assert_eq!(told(&later), 1, "one compaction is told once\n{}", lead.story());
    }
}
