//! What a killed agent's successor is told of the calls that were under way.

use rekindle_core::activity::{Ending, Lost, Measure, StreamEvent, Transcript, UnderWay, Usage};
use rekindle_core::brief;
use rekindle_core::event::{Body, SessionClosed, SessionEvent};
use rekindle_core::ids::AttemptId;
use rekindle_core::input::Input;
use rekindle_core::limits::{Limits, Traits};
use rekindle_core::report::Exit;
use rekindle_core::strategy::Strategy;

use crate::harness::Story;

const ONE: &str = "# Demo\n\n### T1: first\n- accept: `true`\n\nDo it.\n";

fn story() -> Story {
    let able = Traits { structured_output: true, resumes: true, ..Traits::new("able") };
    let traits = [("default".to_owned(), able)].into();
    Story::with(ONE, Limits { traits, clis: vec!["default".to_owned()], attempts: 9, ..Limits::default() })
}

fn lost(input: &str, ending: Ending) -> Lost {
    Lost { tool: "Bash".to_owned(), input: input.to_owned(), ending }
}

fn finished(input: &str, output: &str) -> Lost {
    lost(input, Ending::Finished { ok: true, output: output.to_owned() })
}

/// An attempt that named its session, left this and was killed; then the next one is started.
fn killed(story: &mut Story, attempt: u64, transcript: Transcript, under_way: UnderWay) {
    story.started(attempt);
    let id = AttemptId(attempt);
    story.input(Input::Streamed { attempt: id, event: StreamEvent::Session { id: "s1".into(), model: None } });
    ended(story, attempt, transcript, under_way);
}

fn ended(story: &mut Story, attempt: u64, transcript: Transcript, under_way: UnderWay) {
    let measure = Measure { usage: Usage { input_tokens: 9, ..Usage::default() }, ..Measure::default() };
    let attempt_id = AttemptId(attempt);
    story.input(Input::SessionClosed { attempt: attempt_id, measure, transcript, cut_off: None, under_way });
    story.exited(attempt, Exit { signal: Some(9), ..Exit::default() });
    story.after_ms(400_000);
    story.input(Input::TimePassed);
}

fn prompt(story: &Story, attempt: u64) -> String {
    let facts = brief::facts_from(&story.state, AttemptId(attempt)).expect("an attempt");
    if facts.resumed { brief::render_resumed(&facts) } else { brief::render(&facts) }
}

fn strategy(story: &Story, attempt: u64) -> Strategy {
    story.state.attempts[&AttemptId(attempt)].cli_session.strategy
}

#[test]
fn every_call_is_told_with_its_outcome_in_order() {
    let mut story = story();
    let calls = vec![finished("make a", "did 3"), lost("make b", Ending::Open)];
    killed(&mut story, 1, Transcript::Whole, UnderWay { calls, left_out: 2, unheard: false });
    assert_eq!(strategy(&story, 2), Strategy::Resume);
    let told = prompt(&story, 2);
    let first = told.find("Bash: make a").expect("the call that finished");
    let second = told.find("Bash: make b").expect("the call that was running");
    assert!(first < second, "{told}");
    assert!(told.contains("finished, exit ok, printed: did 3; not in your history"), "{told}");
    assert!(told.contains("was running when you were killed: look before you repeat it"), "{told}");
    assert!(told.contains("2 more calls are not named here"), "{told}");
}

#[test]
fn a_fresh_agent_is_told_too() {
    let mut story = story();
    let calls = vec![lost("make b", Ending::Open)];
    killed(&mut story, 1, Transcript::Missing, UnderWay { calls, ..UnderWay::default() });
    assert_eq!(strategy(&story, 2), Strategy::Fresh);
    let told = prompt(&story, 2);
    assert!(told.contains("Bash: make b") && told.contains("was running when it was killed"), "{told}");
}

#[test]
fn what_a_prompt_told_that_was_never_heard_is_told_again() {
    let mut story = story();
    let one = |call| UnderWay { calls: vec![call], ..UnderWay::default() };
    killed(&mut story, 1, Transcript::Whole, one(finished("make a", "did 3")));
    let unheard = UnderWay { unheard: true, ..one(lost("make b", Ending::Open)) };
    killed(&mut story, 2, Transcript::Whole, unheard);
    let told = prompt(&story, 3);
    assert!(told.contains("did 3") && told.contains("make b"), "{told}");
    killed(&mut story, 3, Transcript::Whole, one(finished("make c", "did 5")));
    let told = prompt(&story, 4);
    assert!(told.contains("did 5") && !told.contains("did 3") && !told.contains("make b"), "only what is new: {told}");
}

#[test]
fn an_attempt_that_never_named_its_session_changes_nothing() {
    let mut story = story();
    let calls = vec![finished("make a", "did 3")];
    killed(&mut story, 1, Transcript::Whole, UnderWay { calls, ..UnderWay::default() });
    story.started(2);
    ended(&mut story, 2, Transcript::Unknown, UnderWay { unheard: true, ..UnderWay::default() });
    assert_eq!(strategy(&story, 3), Strategy::Resume);
    assert!(prompt(&story, 3).contains("did 3"));
}

#[test]
fn resumes_that_worked_are_no_failed_ones() {
    let mut story = story();
    for attempt in 1..6 {
        killed(&mut story, attempt, Transcript::Whole, UnderWay::default());
        assert_eq!(strategy(&story, attempt + 1), Strategy::Resume, "after {attempt}");
    }
}

#[test]
fn an_event_of_an_older_version_is_still_read() {
    let old = r#"{"attempt":1,"transcript":"whole","cut_off":"Bash: ls"}"#;
    let body = Body::from_parts("session_closed", old);
    let Ok(Body::Session(SessionEvent::SessionClosed(SessionClosed { cut_off, under_way, .. }))) = body else {
        panic!("{body:?}")
    };
    assert_eq!((cut_off.as_deref(), under_way.is_empty()), (Some("Bash: ls"), true));
    let body = Body::Session(SessionEvent::SessionClosed(SessionClosed {
        attempt: AttemptId(1),
        transcript: Transcript::Whole,
        cut_off,
        under_way,
    }));
    assert!(!serde_json::to_string(&body).expect("JSON").contains("under_way"), "nothing to tell is not stored");
}
