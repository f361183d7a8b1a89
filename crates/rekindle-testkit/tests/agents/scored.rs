//! A long session of Claude Code with facts planted all over it, compacted to a summary that says nothing: how many of them stand in
//! what the session is told. Nine of ten have to, in at most 2,500 tokens. What stands in the request without that text is what the
//! program keeps by itself.

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Act, Answer, Purpose, Script, When};
use serde_json::{Value, json};

use crate::guard_adapter::{GuardedSession, forgetting, text_of};
use crate::rig::program;
use crate::setting::MUCH;

/// Most tokens, a token being four bytes.
const TOKENS_MAX: usize = 2_500;

/// Of the facts so many in a hundred.
const SCORE_MIN: usize = 90;

/// One fact: what it is about, and words that have to stand on one line.
type Planted = (&'static str, &'static [&'static str]);

/// Files are not among them: the program sends the last ones again by itself.
const FACTS: &[Planted] = &[
    ("the goal", &["Move the billing service to event sourcing"]),
    ("constraint: no schema change", &["Never alter the invoices table"]),
    ("constraint: compatibility", &["The v1 API must keep working"]),
    ("constraint: in a later prompt", &["Only use crates that are already in the lock file"]),
    ("constraint: at the end of a long prompt", &["under no circumstances send real e-mails"]),
    ("the last wish", &["continue with the projector"]),
    ("task 1", &["write the event store", "completed"]),
    ("task 2", &["backfill the old invoices", "completed"]),
    ("task 3", &["write the projector", "in progress"]),
    ("task 4", &["switch the readers over", "pending"]),
    ("task 5", &["delete the old writer", "pending"]),
    ("an edge", &["switch the readers over", "blocked by 3"]),
    ("another edge", &["delete the old writer", "blocked by 4"]),
    (
        "decision in prose, with its reason",
        &["one stream per customer instead of one per invoice", "replays stay short"],
    ),
    ("decision in prose, early", &["going with JSON instead of Protobuf for events", "people read them"]),
    ("decision among many words", &["Snapshots are written every 200 events", "because loading 200 takes 3 ms"]),
    ("decision by note", &["amounts are integers in cents"]),
    ("decision by note, with a reason", &["ids are ULIDs, so that streams sort by time"]),
    ("something ruled out", &["ruled out Kafka", "one more thing to run"]),
    ("a finding", &["root cause of the double charge was the retry in charge_worker"]),
    ("helper: outcome", &["survey of readers", "seven readers, two of them raw SQL"]),
    ("helper: outcome of another", &["check the tests", "the suite has 41 tests and 3 are flaky"]),
    ("helper: what it was told", &["survey of readers", "List everything that reads the invoices table"]),
    ("helper: failed", &["measure the load", "FAILED"]),
    ("failed command", &["cargo bench --bench projector", "no bench target named"]),
    ("failed command with its reason", &["./scripts/lint.sh", "missing shellcheck"]),
    ("commit", &["commit -m 'event store'"]),
    ("commit of a later piece", &["commit -m 'backfill'"]),
    ("effect: not to be redone, by command", &["./scripts/migrate.sh staging"]),
    ("effect: not to be redone, in prose", &["backfilled 1,204,331 invoices on staging", "do not run it again"]),
    ("effect: a message was sent", &["Posted the announcement to #billing"]),
    ("current step", &["half of the projector is written"]),
    ("next step", &["Next I will handle refunds in the projector"]),
    ("open question", &["Should refunds be their own stream"]),
];

fn call(tool: &str, args: Value) -> Act {
    Act::Call { tool: tool.to_owned(), args }
}

fn acts(acts: Vec<Act>) -> Answer {
    Answer { acts, ..Answer::default() }.tokens(2_000, 20)
}

fn say(text: &str) -> Act {
    Act::Say(text.to_owned())
}

fn shell(command: &str) -> Answer {
    Answer::shell(command).tokens(2_000, 20)
}

/// Work that states nothing: reading around.
fn noise(mut script: Script, from: usize, to: usize) -> Script {
    for n in from..to {
        let words = format!("Let me look at module {n}. It has {} lines and a test.", n * 37);
        script = script.then(acts(vec![say(&words), Act::Shell(format!("echo module {n}; seq 1 {n} | tail -3"))]));
    }
    script
}

fn task(subject: &str) -> Act {
    call("TaskCreate", json!({ "subject": subject, "description": format!("{subject}, with tests") }))
}

fn update(id: &str, status: &str) -> Act {
    call("TaskUpdate", json!({ "taskId": id, "status": status }))
}

fn blocked(id: &str, by: &str) -> Act {
    call("TaskUpdate", json!({ "taskId": id, "addBlockedBy": [by] }))
}

fn helper(description: &str, prompt: &str) -> Answer {
    let kind = "general-purpose";
    let input =
        json!({ "description": description, "prompt": prompt, "subagent_type": kind, "run_in_background": false });
    acts(vec![call("Agent", input)])
}

fn first_turn(script: Script) -> Script {
    let script = script
        .then(acts(vec![
            say("I read the code. We are going with JSON instead of Protobuf for events: people read them."),
            task("write the event store"),
            task("backfill the old invoices"),
            task("write the projector"),
            task("switch the readers over"),
            task("delete the old writer"),
        ]))
        .then(acts(vec![blocked("4", "3"), blocked("5", "4"), update("1", "in_progress")]));
    let script = noise(script, 1, 8)
        .then(helper("survey of readers", "List everything that reads the invoices table, file by file."))
        .then(Answer::say("There are seven readers, two of them raw SQL.").tokens(900, 20))
        .then(acts(vec![
            say("For the store I decided on one stream per customer instead of one per invoice, because replays stay short."),
            call("Write", json!({ "file_path": "src/store.rs", "content": "// store" })),
        ]));
    noise(script, 8, 14)
        .then(shell("git add -A && git -c user.name=l -c user.email=l@x commit -m 'event store'"))
        .then(acts(vec![update("1", "completed"), update("2", "in_progress")]))
        .then(Answer::say(
            "The event store is in place. Snapshots are written every 200 events because loading 200 takes 3 ms.",
        ))
}

fn second_turn(script: Script) -> Script {
    let note = |text: &str| shell(&format!("'{}' note '{text}'", program().display()));
    let script = noise(script, 14, 20)
        .then(note("amounts are integers in cents"))
        .then(acts(vec![
            say("I also ruled out Kafka: it is one more thing to run."),
            Act::Shell(
                "cargo bench --bench projector || { echo 'error: no bench target named `projector`' >&2; exit 101; }"
                    .into(),
            ),
        ]))
        .then(helper("check the tests", "Run the suite and say what is flaky."))
        .then(Answer::say("I ran it five times: the suite has 41 tests and 3 are flaky.").tokens(900, 20))
        .then(shell(
            "mkdir -p scripts; printf 'echo migrated staging' > scripts/migrate.sh; chmod +x scripts/migrate.sh",
        ))
        .then(shell("./scripts/migrate.sh staging"))
        .then(shell("./scripts/lint.sh || { echo 'missing shellcheck' >&2; exit 2; }"));
    noise(script, 20, 26)
        .then(acts(vec![
            say("The root cause of the double charge was the retry in charge_worker."),
            call("Edit", json!({ "file_path": "src/none.rs", "old_string": "a", "new_string": "b" })),
        ]))
        .then(shell("git add -A && git -c user.name=l -c user.email=l@x commit -m 'backfill'"))
        .then(acts(vec![update("2", "completed"), update("3", "in_progress")]))
        .then(Answer::say(
            "I backfilled 1,204,331 invoices on staging, do not run it again. Posted the announcement to #billing.",
        ))
}

/// What a helper is told that fails.
const LOAD: &str = "Put load on staging and say how many events a second it takes.";

/// The third, in which the context is compacted. The helper fails however often its program tries again.
fn third_turn(script: Script) -> Script {
    let refused = Answer::fail(rekindle_testkit::model::Fail::Raw {
        status: 400,
        headers: Vec::new(),
        body: r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#.to_owned(),
    });
    // The lead knows what the person wanted, its helper does not.
    let of_helper = [
        When::Purpose(Purpose::Main),
        When::Anywhere(LOAD.to_owned()),
        When::Nowhere("Move the billing service".to_owned()),
    ];
    let script = script.whenever(of_helper, refused);
    let note = shell(&format!("'{}' note 'ids are ULIDs, so that streams sort by time'", program().display()));
    let script = noise(script, 26, 32).then(note).then(helper("measure the load", LOAD)).then(acts(vec![
        say("Currently half of the projector is written. Should refunds be their own stream?"),
        call("Write", json!({ "file_path": "src/projector.rs", "content": "// half" })),
    ]));
    noise(script, 32, 36)
        .then(acts(vec![say("Next I will handle refunds in the projector."), Act::Shell("echo on it".into())]))
        .then(Answer::shell("echo so far").tokens(MUCH, 50))
        .then(Answer::say("On it goes."))
}

#[test]
fn nine_of_ten_planted_facts_are_told_after_a_compaction() {
    let lead = GuardedSession::new(Cli::Claude, third_turn(second_turn(first_turn(forgetting()))));
    let long = "Here is how the service works today, in short. ".repeat(30);
    let prompts = [
        "Move the billing service to event sourcing. Never alter the invoices table. The v1 API must keep working."
            .to_owned(),
        format!(
            "Good. Only use crates that are already in the lock file. {long}And under no circumstances send real e-mails."
        ),
        "Fine, continue with the projector.".to_owned(),
    ];
    let session = "0f4e2c1a-5b6d-4c7e-8f90-a1b2c3d4e5f6";
    for (n, prompt) in prompts.iter().enumerate() {
        let which = if n == 0 { "--session-id" } else { "--resume" };
        let command = lead.command(&["-p", "--dangerously-skip-permissions", which, session, prompt]);
        let ended = lead.rig.launch(command).end();
        assert_eq!(ended.code, Some(0), "turn {n}: {ended:?}\n{}", lead.story());
    }
    let next = lead.after_compaction(1).swap_remove(0);
    let text = text_of(&next);
    let last = text.find("The state is in").unwrap_or_else(|| panic!("no last line: {text}\n{}", lead.story()));
    let end = text[last..].find('\n').map_or(text.len(), |length| last + length);
    let text = text[..end].to_owned();
    let tokens = text.len() / 4;
    let missed: Vec<&str> = FACTS.iter().filter(|fact| !holds(&text, fact.1)).map(|fact| fact.0).collect();
    let whole: Vec<&str> = next.messages.iter().map(|message| message.text.as_str()).collect();
    let vanilla = whole.join("\n").replace(&text, "");
    let by_itself = FACTS.iter().filter(|fact| fact.1.iter().all(|words| vanilla.contains(words))).count();
    let score = (FACTS.len() - missed.len()) * 100 / FACTS.len();
    println!(
        "score: {} of {} planted facts ({score} %) in {tokens} tokens; the program by itself holds {by_itself}; missed: {missed:?}",
        FACTS.len() - missed.len(),
        FACTS.len()
    );
    println!("{text}");
    assert!(FACTS.len() >= 30);
    assert!(score >= SCORE_MIN, "{score} %: {missed:?} are missing\n{text}\n{}", lead.story());
    assert!(tokens <= TOKENS_MAX, "{tokens} tokens");
}

/// Whether some line has all of the words: what belongs together has to stand together.
fn holds(text: &str, words: &[&str]) -> bool {
    text.lines().any(|line| words.iter().all(|word| line.contains(word)))
}
