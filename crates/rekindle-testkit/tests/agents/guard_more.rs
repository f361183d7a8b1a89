//! A person's own session of Gemini CLI and of opencode under guard: after a compaction the next request tells it what it was
//! doing, and so do later ones; after its death a new session is told the same.

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Act, Answer, Asked, Purpose, Script};
use serde_json::{Value, json};

use crate::bed::waiting_tool;
use crate::guard_adapter::{GuardedSession, SUMMARY, forgetting, told};
use crate::setting::MUCH;

/// What the person typed.
const PROMPT: &str = "Build the wombat importer. Never touch the legacy folder.";

/// What was decided, in prose.
const DECISION: &str = "We decided to use SQLite instead of Postgres because one file is enough.";

/// What must be before the model again.
const KEPT: [&str; 7] = [
    "wombat importer",
    "Never touch the legacy folder",
    "SQLite instead of Postgres because one file is enough",
    "parse the quokka file",
    "ship it to the bilbies",
    "importer.txt",
    "exit code 3",
];

/// The session's work, in each program's own tools.
fn works(cli: Cli, script: Script) -> Script {
    let tasks = [("parse the quokka file", "in_progress"), ("ship it to the bilbies", "pending")];
    let call = |tool: &str, args: Value| Act::Call { tool: tool.to_owned(), args };
    let (todos, write) = match cli {
        Cli::Gemini => (
            call(
                "write_todos",
                json!({ "todos": tasks.map(|(text, status)| json!({"description": text, "status": status})) }),
            ),
            call("write_file", json!({ "file_path": "importer.txt", "content": "hi" })),
        ),
        _ => {
            let tasks = tasks.map(|(text, status)| json!({"content": text, "status": status, "priority": "high"}));
            (
                call("todowrite", json!({ "todos": tasks })),
                call("write", json!({ "filePath": "importer.txt", "content": "hi" })),
            )
        }
    };
    script
        .then(Answer::say(DECISION).and(todos).tokens(2_000, 20))
        .then(Answer { acts: vec![write], ..Answer::default() })
        .then(Answer::shell("echo kowari; exit 3"))
}

/// One program compacts only what comes before another message of the user. It writes one itself when the model repeats itself.
fn bending(cli: Cli) -> Answer {
    match cli {
        Cli::Gemini => Answer::say("It goes round and round and never comes to an end. ".repeat(40)),
        _ => Answer::shell("echo so far").tokens(2_000, 20),
    }
}

fn is_told_after_a_compaction(cli: Cli) {
    let script = works(cli, forgetting())
        .then(bending(cli))
        .then(Answer::shell("echo so far").tokens(MUCH, 50))
        .then(Answer::shell("echo first"))
        .then(Answer::shell("echo second"))
        .then(Answer::say("That is all."));
    let lead = GuardedSession::new(cli, script);
    let ended = lead.prompt(PROMPT).end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", lead.story());
    let asked = lead.server.asked();
    let at = asked.iter().rposition(|one| one.purpose == Purpose::Compaction).expect("a summary was asked for");
    assert!(asked[..at].iter().all(|one| told(one) == 0), "nothing was forgotten before\n{}", lead.story());
    let later: Vec<&Asked> = asked[at..].iter().filter(|one| one.purpose == Purpose::Main).collect();
    assert_eq!(later.len(), 3, "{}", lead.story());
    for one in later {
        assert!(one.mentions(SUMMARY), "it has forgotten\n{}", lead.story());
        assert!(!one.mentions("kowari; exit 3\""), "its own calls are gone\n{}", lead.story());
        lead.assert_told(one, &KEPT);
    }
    // What is put into one request alone is not told twice in the next one, but may stand above what stays.
    let last = asked.iter().rfind(|one| one.purpose == Purpose::Main).expect("a last request");
    assert_eq!(told(last), 1, "{}", lead.story());
}

fn is_told_after_a_death(cli: Cli) {
    let script = works(cli, Script::new()).then(waiting_tool()).then(Answer::say("Hello again."));
    let lead = GuardedSession::new(cli, script);
    let next = lead.die_and_begin_anew(lead.prompt(PROMPT));
    assert_eq!(told(&next), 1, "{}", lead.story());
    lead.assert_told(&next, &KEPT);
    lead.assert_told(&next, &["was running, no end is known: `"]);
}

mod after_a_compaction {
    use super::*;

    #[test]
    fn gemini() {
        is_told_after_a_compaction(Cli::Gemini);
    }

    #[test]
    fn opencode() {
        is_told_after_a_compaction(Cli::Opencode);
    }
}

mod after_a_death {
    use super::*;

    #[test]
    fn gemini() {
        is_told_after_a_death(Cli::Gemini);
    }

    #[test]
    fn opencode() {
        is_told_after_a_death(Cli::Opencode);
    }
}
