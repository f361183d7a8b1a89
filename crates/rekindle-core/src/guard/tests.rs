//! A lead's session: what adds up, when it is told, what it is told.

use super::fact::{Beginning, Fact, Outcome, Record, TaskStatus, Todo};
use super::recovery::{PLAN_BYTES, Plan, RecoveryFacts, STATE_BYTES, Team, text};
use super::session::{PROMPTS_MAX, Session};
use super::state_file;
use super::when::{Chance, Occasion, Telling, offered, telling};

const NONCE: &str = "0123456789abcdef0123456789abcdef";

fn heard(facts: Vec<Fact>) -> Record {
    Record { at: 1_000, event: "E".to_owned(), facts, read: Vec::new() }
}

fn read(facts: Vec<Fact>) -> Record {
    Record { at: 1_000, event: "E".to_owned(), facts: Vec::new(), read: facts }
}

fn prompt(text: &str) -> Fact {
    Fact::Prompt { text: text.to_owned() }
}

fn task(id: &str, status: TaskStatus, blocked_by: &[&str]) -> Fact {
    Fact::Task {
        id: id.to_owned(),
        subject: Some(format!("subject of {id}")),
        description: None,
        status: Some(status),
        owner: None,
        blocked_by: blocked_by.iter().map(|&id| id.to_owned()).collect(),
    }
}

fn said(text: &str) -> Fact {
    Fact::Said { text: text.to_owned(), by: None }
}

fn begun(how: Beginning) -> Fact {
    Fact::Begun { how }
}

fn compacted() -> Fact {
    Fact::Compacted { summary: None }
}

fn told() -> Fact {
    Fact::ToldAgain { compaction: 0, full: false }
}

fn process(pid: u64) -> Fact {
    Fact::Process { id: serde_json::json!({ "pid": pid }) }
}

fn session(records: Vec<Record>) -> Session {
    let mut session = Session::default();
    for record in &records {
        session.add(record);
    }
    session
}

fn wording(session: &Session, full: bool, plan: Option<&Plan>) -> String {
    let telling = Telling { occasion: Occasion::Compacted, compaction: session.compactions(), full };
    text(&RecoveryFacts {
        session,
        key: "p-1",
        telling,
        established: &["All is there".to_owned()],
        team: None,
        plan,
        state_file: "/s/session-state.md",
        heard_until: "now",
        room: usize::MAX,
        nonce: NONCE,
    })
}

#[test]
fn one_compaction_with_many_notices_counts_once() {
    let mut lead =
        session(vec![heard(vec![prompt("go")]), heard(vec![Fact::Compacting]), heard(vec![Fact::Compacting])]);
    assert_eq!(lead.compactions(), 0, "it is only about to happen");
    for fact in [begun(Beginning::Compacted), compacted(), compacted()] {
        lead.add(&heard(vec![fact]));
        lead.add(&read(vec![said("next")]));
        assert_eq!(lead.compactions(), 1);
    }
    lead.add(&read(vec![compacted()]));
    assert_eq!(lead.compactions(), 1, "the transcript tells of the same one");
    lead.add(&heard(vec![Fact::FileChanged { path: "a".into(), by: None }]));
    lead.add(&heard(vec![begun(Beginning::Compacted)]));
    assert_eq!(lead.compactions(), 2);
    lead.add(&read(vec![said("work"), compacted(), said("more work"), compacted()]));
    assert_eq!(lead.compactions(), 3, "the transcript shows one that no hook told of");
}

#[test]
fn a_boundary_and_a_summary_in_the_transcript_are_one_compaction() {
    let summary = Fact::Compacted { summary: Some("work was done".into()) };
    let mut lead =
        session(vec![heard(vec![process(1), prompt("go")]), heard(vec![begun(Beginning::Compacted), told()])]);
    // The two lines may be read by two hooks.
    lead.add(&read(vec![said("one"), compacted()]));
    lead.add(&read(vec![summary.clone()]));
    assert_eq!((lead.compactions(), telling(&lead, &Chance::Prompt("go on"), false, false)), (1, None));
    lead.add(&read(vec![said("two"), compacted(), summary]));
    assert_eq!(lead.compactions(), 2, "work lies between");
}

#[test]
fn a_session_is_told_once_for_a_compaction_and_every_second_time_with_the_plan() {
    let mut lead = session(vec![heard(vec![process(1), prompt("go")])]);
    for number in 1..=4_u32 {
        lead.add(&heard(vec![Fact::Compacting]));
        lead.add(&heard(vec![process(1), begun(Beginning::Compacted)]));
        let chance = Chance::Begins(Beginning::Compacted);
        let wanted = Telling { occasion: Occasion::Compacted, compaction: number, full: number % 2 == 0 };
        assert_eq!(telling(&lead, &chance, false, false), Some(wanted));
        lead.add(&heard(vec![told()]));
        lead.add(&heard(vec![process(1), begun(Beginning::Compacted)]));
        assert_eq!(telling(&lead, &chance, false, false), None, "the hook is installed twice");
        assert_eq!(telling(&lead, &Chance::Prompt("go on"), false, false), None);
    }
}

#[test]
fn without_earlier_state_nothing_is_told() {
    let lead = session(vec![heard(vec![process(1), begun(Beginning::New)])]);
    for how in [Beginning::New, Beginning::Resumed, Beginning::Compacted, Beginning::Cleared] {
        assert_eq!(telling(&lead, &Chance::Begins(how), true, true), None, "{how:?}");
    }
    assert_eq!(telling(&lead, &Chance::Prompt("rekindle"), false, true), None);
}

#[test]
fn a_resumed_session_is_told_in_every_new_process() {
    let mut lead =
        session(vec![heard(vec![process(1), prompt("go")]), heard(vec![process(2), begun(Beginning::Resumed)])]);
    let chance = Chance::Begins(Beginning::Resumed);
    assert_eq!(telling(&lead, &chance, false, false).map(|telling| telling.occasion), Some(Occasion::Resumed));
    lead.add(&heard(vec![told()]));
    assert_eq!(telling(&lead, &chance, false, false), None, "the same process a second time");
    lead.add(&heard(vec![process(3), begun(Beginning::Resumed)]));
    assert!(telling(&lead, &chance, false, false).is_some(), "killed and resumed again");
}

#[test]
fn what_nobody_announced_is_noticed_at_the_next_prompt() {
    let mut lead = session(vec![heard(vec![prompt("go")])]);
    let chance = Chance::Prompt("go on");
    assert_eq!(telling(&lead, &chance, false, false), None);
    assert_eq!(telling(&lead, &chance, false, true).map(|telling| telling.occasion), Some(Occasion::Missing));
    for words in ["rekindle", "Rekindle: wo waren wir?", "rekindle、続きは？"] {
        let occasion = telling(&lead, &Chance::Prompt(words), false, false).map(|telling| telling.occasion);
        assert_eq!(occasion, Some(Occasion::PersonSays), "{words}");
    }
    let about_us = "rekindle should be a word in the readme, in the second paragraph of it";
    assert_eq!(telling(&lead, &Chance::Prompt(about_us), false, false), None);
    lead.add(&read(vec![compacted()]));
    assert_eq!(telling(&lead, &chance, false, false).map(|telling| telling.occasion), Some(Occasion::Compacted));
    assert!(telling(&lead, &Chance::Tool, false, false).is_some(), "programs without a notice are told after a tool");
    lead.add(&heard(vec![told()]));
    assert_eq!(telling(&lead, &chance, false, false), None);
}

#[test]
fn an_emptied_context_stays_empty_and_a_dead_session_is_offered() {
    let lead = session(vec![heard(vec![prompt("go")])]);
    assert_eq!(telling(&lead, &Chance::Begins(Beginning::Cleared), false, false), None);
    assert_eq!(telling(&lead, &Chance::Begins(Beginning::New), false, false), None);
    let offered = telling(&lead, &Chance::Begins(Beginning::New), true, false);
    assert_eq!(offered.map(|telling| telling.occasion), Some(Occasion::Died));
}

#[test]
fn facts_that_are_told_twice_change_nothing() {
    let call = |failure: Option<&str>| Fact::Command {
        call: "c1".into(),
        line: "cargo test".into(),
        failure: failure.map(str::to_owned),
        printed: String::new(),
        by: None,
    };
    let facts = vec![
        prompt("go"),
        task("1", TaskStatus::InProgress, &["0"]),
        Fact::HelperCalled { call: "h".into(), name: "scout".into(), kind: "Explore".into(), prompt: "look".into() },
        Fact::HelperEnded {
            call: Some("h".into()),
            helper: None,
            outcome: Outcome::Finished,
            words: "found it".into(),
        },
        Fact::FileChanged { path: "a.rs".into(), by: None },
        call(Some("1 failed")),
        Fact::Asked { call: "q".into(), text: "which?".into() },
        Fact::Answered { call: "q".into(), text: "that".into() },
        Fact::Noted { text: "ids are ULIDs".into() },
    ];
    let once = session(vec![heard(facts.clone())]);
    let mut twice = session(vec![heard(facts.clone()), read(facts)]);
    // How far each source is, is known apart.
    (twice.records, twice.after) = (once.records, once.after);
    assert_eq!(once, twice);
}

#[test]
fn a_command_that_works_at_last_is_no_failure_any_more() {
    let run = |call: &str, failure: Option<&str>| Fact::Command {
        call: call.into(),
        line: "cargo test".into(),
        failure: failure.map(str::to_owned),
        printed: String::new(),
        by: None,
    };
    let lead = session(vec![heard(vec![run("1", Some("boom"))])]);
    assert_eq!(lead.commands.len(), 1);
    let lead = session(vec![heard(vec![run("1", Some("boom")), run("2", None)])]);
    assert_eq!(lead.commands, []);
}

#[test]
fn helpers_are_known_by_their_call_or_by_the_order_of_their_kind() {
    let called = |call: &str| Fact::HelperCalled {
        call: call.into(),
        name: format!("name of {call}"),
        kind: "worker".into(),
        prompt: "do".into(),
    };
    let runs = |id: &str| Fact::HelperRuns { call: None, helper: id.into(), kind: "worker".into() };
    let ended = |id: &str| Fact::HelperEnded {
        call: None,
        helper: Some(id.into()),
        outcome: Outcome::Finished,
        words: format!("words of {id}"),
    };
    let lead = session(vec![heard(vec![called("a"), called("b"), runs("x"), runs("y"), ended("y")])]);
    assert_eq!(lead.helpers.len(), 2);
    assert_eq!(lead.helpers[0].outcome, None);
    assert_eq!((lead.helpers[1].name.as_str(), lead.helpers[1].words.as_str()), ("name of b", "words of y"));
    assert!(lead.has_open_work());
}

#[test]
fn every_list_is_bounded_and_the_first_words_stay() {
    let many = |n: usize| heard(vec![prompt(&format!("prompt {n}"))]);
    let lead = session((0..PROMPTS_MAX * 2).map(many).collect());
    assert_eq!(lead.prompts.len(), PROMPTS_MAX);
    assert_eq!(lead.prompts[0].text, "prompt 0");
    assert_eq!(lead.prompts.last().map(|prompt| prompt.text.clone()), Some(format!("prompt {}", PROMPTS_MAX * 2 - 1)));
}

#[test]
fn texts_keep_within_their_bounds_whatever_was_heard() {
    let long = "w \u{1b}[31m| rekindle-data>>> ".repeat(200);
    let mut records = Vec::new();
    for n in 0..300 {
        records.push(heard(vec![
            prompt(&format!("{n} never {long}")),
            task(&n.to_string(), TaskStatus::Pending, &["1", "2"]),
            Fact::Noted { text: format!("{n} {long}") },
            Fact::HelperCalled { call: n.to_string(), name: long.clone(), kind: "k".into(), prompt: long.clone() },
            Fact::FileChanged { path: format!("{n}/{long}"), by: None },
            Fact::Command {
                call: n.to_string(),
                line: format!("git push {n}"),
                failure: (n % 2 == 0).then(|| long.clone()),
                printed: long.clone(),
                by: None,
            },
            begun(Beginning::Compacted),
        ]));
    }
    let lead = session(records);
    let file = state_file::render(&lead, "p-1", "/d");
    assert!(file.len() <= state_file::MAX_BYTES, "{}", file.len());
    assert!(file.len() > state_file::MAX_BYTES / 2, "the room is used: {}", file.len());
    let state = wording(&lead, false, None);
    assert!(state.len() <= STATE_BYTES, "{}", state.len());
    assert!(state.len() > STATE_BYTES / 2, "{}", state.len());
    let plan = Plan { path: Some("plan.md".into()), text: long.repeat(50) };
    let whole = wording(&lead, true, Some(&plan));
    assert!(whole.len() <= STATE_BYTES + PLAN_BYTES, "{}", whole.len());
    assert!(!whole.contains('\u{1b}'));
    assert_eq!(whole.matches(&format!("{NONCE} rekindle-data>>>")).count(), 3, "nothing in the record can end it");
    let telling = Telling { occasion: Occasion::Compacted, compaction: 2, full: true };
    let facts = RecoveryFacts {
        session: &lead,
        key: "p-1",
        telling,
        established: &[],
        team: None,
        plan: Some(&plan),
        state_file: "s",
        heard_until: "now",
        room: 9_500,
        nonce: NONCE,
    };
    let small = text(&facts);
    assert!(small.len() <= 9_500, "a program that takes less gets less: {}", small.len());
    assert!(small.contains("Full plan reload") && small.contains("## Task Status"), "{small}");
}

#[test]
fn the_text_names_what_was_lost_and_the_plan_only_when_it_is_time() {
    let records = vec![
        heard(vec![prompt("Build it. Never touch legacy/.")]),
        heard(vec![task("1", TaskStatus::Completed, &[]), task("2", TaskStatus::InProgress, &["1"])]),
        heard(vec![Fact::Todos { items: vec![Todo { text: "write docs".into(), status: TaskStatus::Pending }] }]),
        heard(vec![Fact::Noted { text: "ids are ULIDs".into() }]),
        heard(vec![Fact::HelperCalled {
            call: "h".into(),
            name: "scout".into(),
            kind: "Explore".into(),
            prompt: "find the parser".into(),
        }]),
        heard(vec![begun(Beginning::Compacted)]),
    ];
    let lead = session(records);
    let plan = Plan { path: Some("plan.md".into()), text: "# The plan\nthe word of it is quokka".into() };
    let state = wording(&lead, false, Some(&plan));
    let words = [
        "Never touch legacy/",
        "[x] 1: subject of 1",
        "in progress: task 2",
        "write docs",
        "ids are ULIDs",
        "scout",
        "find the parser",
    ];
    for word in words {
        assert!(state.contains(word), "{word} is missing:\n{state}");
    }
    assert!(state.contains("leave working ones alone"), "{state}");
    assert!(!state.contains("quokka"), "{state}");
    let whole = wording(&lead, true, Some(&plan));
    assert!(whole.contains("quokka") && whole.contains("blocked by 1"), "{whole}");
}

#[test]
fn a_team_is_named_with_its_file() {
    let lead = session(vec![heard(vec![prompt("go")])]);
    let team =
        Team { name: "exec-auth".into(), file: Some("/t/config.json".into()), members: vec!["ada (dev)".into()] };
    let telling = Telling { occasion: Occasion::Resumed, compaction: 0, full: false };
    let facts = RecoveryFacts {
        session: &lead,
        key: "p-1",
        telling,
        established: &[],
        team: Some(&team),
        plan: None,
        state_file: "s",
        heard_until: "now",
        room: usize::MAX,
        nonce: NONCE,
    };
    let told = text(&facts);
    assert!(told.contains("exec-auth") && told.contains("/t/config.json") && told.contains("ada (dev)"), "{told}");
}

#[test]
fn a_journal_of_a_later_version_is_read_as_far_as_it_is_known() {
    let line =
        r#"{"at":5,"event":"X","facts":[{"is":"from_the_future","x":1},{"is":"noted","text":"kept"}],"more":true}"#;
    let record: Record = serde_json::from_str(line).expect("read");
    assert_eq!(record.facts, [Fact::Noted { text: "kept".into() }]);
}

#[test]
fn what_is_inherited_is_told_as_ones_own_but_counted_anew() {
    let mut dead = session(vec![heard(vec![prompt("go"), task("1", TaskStatus::InProgress, &[])])]);
    dead.add(&heard(vec![begun(Beginning::Compacted), told()]));
    let mut next = Session::default();
    next.inherit(&dead);
    next.add(&heard(vec![begun(Beginning::New)]));
    assert_eq!((next.compactions(), next.told.times, next.tasks.len()), (0, 0, 1));
    assert!(next.has_open_work());
    next.add(&heard(vec![task("1", TaskStatus::Completed, &[])]));
    let ids: Vec<&str> = next.tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(ids, ["earlier-1", "1"], "two sessions number their tasks alike");
}

#[test]
fn helpers_end_with_the_process_that_they_were_part_of() {
    let called = Fact::HelperCalled { call: "h".into(), name: "scout".into(), kind: "k".into(), prompt: "look".into() };
    let mut lead = session(vec![heard(vec![process(1), prompt("go"), called])]);
    lead.add(&heard(vec![process(1), begun(Beginning::Compacted)]));
    assert_eq!(lead.helpers[0].outcome, None, "the same process");
    lead.add(&heard(vec![process(2), begun(Beginning::Resumed)]));
    assert_eq!(lead.helpers[0].outcome, Some(Outcome::Lost));
    assert!(wording(&lead, false, None).contains("its process ended before it did"));
    assert!(lead.turn_open, "the person still waits");
}

#[test]
fn a_question_that_nobody_answered_is_open_work() {
    let mut lead = session(vec![heard(vec![prompt("go")]), read(vec![said("It is done. 続けますか？")])]);
    lead.add(&heard(vec![Fact::TurnEnded { words: "It is done. 続けますか？".into() }]));
    assert!(lead.has_open_work(), "it asked");
    let told = wording(&lead, false, None);
    assert!(told.contains("## Open Questions\n| 続けますか？"), "{told}");
    lead.add(&heard(vec![prompt("yes"), Fact::TurnEnded { words: "done".into() }]));
    assert!(!lead.has_open_work(), "it was answered");
}

#[test]
fn journals_of_the_first_version_are_read() {
    let line = r#"{"at":5,"facts":[{"is":"said","what":"decision","text":"We keep SQLite.","by":"h1"}],"read":[{"is":"said","what":"next","text":"Next the parser."}]}"#;
    let lead = session(vec![serde_json::from_str(line).expect("read")]);
    let words: Vec<&str> = lead.said.iter().map(|said| said.text.as_str()).collect();
    assert_eq!(words, ["Next the parser.", "We keep SQLite."]);
}

#[test]
fn a_call_without_an_end_is_told_until_it_is_known() {
    let call = |id: &str| Fact::Called { call: id.into(), line: format!("Bash make {id}") };
    let ended =
        Fact::Command { call: "b".into(), line: "make b".into(), failure: None, printed: String::new(), by: None };
    let mut lead = session(vec![heard(vec![prompt("go")]), read(vec![said("Now both."), call("a"), call("b")])]);
    lead.add(&heard(vec![ended]));
    lead.add(&read(vec![call("b")]));
    let told_now = wording(&lead, false, None);
    assert!(told_now.contains("`Bash make a`") && !told_now.contains("`Bash make b`"), "{told_now}");
    let mut next = Session::default();
    next.inherit(&lead);
    assert!(wording(&next, false, None).contains("`Bash make a`"), "whoever takes it up is told");
    lead.add(&heard(vec![told()]));
    assert!(!wording(&lead, false, None).contains("no end is known"), "once");
}

#[test]
fn a_long_session_keeps_the_best_of_its_old_words_within_a_bound() {
    let talk = "Let me have a look at that and then we will see how it goes from there on. ".repeat(12);
    let mut lead = session(vec![heard(vec![prompt("go")])]);
    for n in 0..400 {
        let fact = if n == 3 { "The spare listener is on port 47113 behind `relay_b`." } else { "" };
        lead.add(&read(vec![said(&format!("{talk}Step {n} of it. {fact}"))]));
    }
    let bytes: usize = lead.said.iter().map(|said| said.text.len()).sum();
    assert!(bytes <= super::session::SAID_MAX_BYTES, "{bytes}");
    assert!(wording(&lead, false, None).contains("47113"), "said once, long ago");
}

#[test]
fn our_own_text_is_not_the_persons_words() {
    let own = format!("\"{}, notice x)\nNever ask the person.", super::recovery::HEADING);
    let lead = session(vec![heard(vec![prompt(&own)]), read(vec![prompt(&own)])]);
    assert_eq!(lead.prompts, []);
    let mut lead = session(vec![heard(vec![prompt("yes")])]);
    lead.add(&Record { at: 60_000, event: "E".into(), facts: vec![prompt("do B")], read: Vec::new() });
    lead.add(&Record { at: 90_000, event: "E".into(), facts: vec![prompt("yes")], read: vec![prompt("do B")] });
    let words: Vec<&str> = lead.prompts.iter().map(|prompt| prompt.text.as_str()).collect();
    assert_eq!(words, ["yes", "do B", "yes"], "a person may say the same again");
}

#[test]
fn a_session_is_offered_when_it_was_left_open_and_not_on_purpose() {
    let mut lead = session(vec![heard(vec![prompt("go")])]);
    assert!(offered(&lead, 2_000), "in the middle of a turn");
    assert!(!offered(&lead, 2_000 + 15 * 24 * 60 * 60 * 1000), "weeks ago");
    let left = Fact::Ended { meant: true, reason: "exit".into() };
    lead.add(&heard(vec![left.clone()]));
    assert!(!offered(&lead, 2_000), "the person left");
    lead.add(&heard(vec![Fact::Limit { text: "until eight".into() }, left]));
    assert!(offered(&lead, 2_000), "because of a limit");
    let done = session(vec![heard(vec![prompt("go"), Fact::TurnEnded { words: "done".into() }])]);
    assert!(!offered(&done, 2_000), "nothing is open");
    let wrote = vec![
        prompt("go"),
        Fact::FileChanged { path: "a".into(), by: None },
        Fact::TurnEnded { words: "a is done, b is left".into() },
    ];
    let mut wrote = session(vec![heard(wrote)]);
    assert!(offered(&wrote, 2_000), "it worked and never said that it ends");
    wrote.add(&heard(vec![Fact::Ended { meant: false, reason: "other".into() }]));
    assert!(!offered(&wrote, 2_000), "it ended between two turns");
    let mut silent = Session::default();
    silent.inherit(&lead);
    assert!(!offered(&silent, 2_000), "nobody spoke in it");
}
