//! Which lines are printed about the ends of attempts, and which events they stand for.

use rekindle_core::report::{CheckResult, Evidence};
use rekindle_core::role::Role;

use super::*;
use crate::picture::sample::{START, Script};

const AGENT: &str = "dev-T1";

fn requeued(cause: Cause, not_before: Option<i64>) -> Body {
    let not_before = not_before.map(|ms| Time(START + ms));
    Body::Task(TaskEvent::TaskRequeued { cause, counted: true, not_before, reason: String::new() })
}

fn ended(attempt: u64, cause: Cause) -> Body {
    Body::Attempt(AttemptEvent::AttemptEnded { attempt: AttemptId(attempt), cause, last_words: None })
}

fn replaced() -> Body {
    Body::Attempt(AttemptEvent::Redispatched { role: Role::Developer, attempt: 2 })
}

fn failed_checks() -> Body {
    let check = CheckResult {
        command: "test -e made".into(),
        passed: false,
        code: Some(1),
        timed_out: false,
        output: String::new(),
        kept: None,
        took_ms: 1,
        environment: None,
    };
    let evidence = Evidence { checks: vec![check], ..Evidence::default() };
    Body::Task(TaskEvent::ChecksFinished { evidence, passed: false })
}

/// What is shown of a script: the verb of a line of its own, `-` for an event that is folded, or the end of an attempt.
fn shown(ends: &mut Ends, script: &Script) -> Vec<String> {
    let events = script.events.iter().enumerate();
    let shown = events.map(|(at, event)| match ends.shown(event, &script.events[at + 1..]) {
        Shown::Itself => story::tell(event).verb.to_owned(),
        Shown::Folded => "-".to_owned(),
        Shown::End(end) => {
            format!("{}: {}, next {}", end.told.verb, end.told.text, end.next.as_deref().unwrap_or("none"))
        }
    });
    shown.collect()
}

#[test]
fn a_crash_and_its_replacement_are_one_line() {
    let mut script = Script::default();
    script.crashed(1_000, AGENT, "T1", 1);
    script.events.pop();
    let crash = Cause::Crashed { code: None, signal: Some(9) };
    script.at(1_000, AGENT, "T1", &requeued(crash, Some(1_400))).at(1_500, AGENT, "T1", &replaced());
    let lines = shown(&mut Ends::default(), &script);
    assert_eq!(lines, ["-", "CRASHED: ended by signal 9, next after 400ms", "REQUEUED", "-"]);
}

#[test]
fn a_replacement_that_comes_later_than_announced_has_its_line() {
    let mut script = Script::default();
    script.crashed(1_000, AGENT, "T1", 1).at(1_001 + 5_000, AGENT, "T1", &replaced());
    assert_eq!(shown(&mut Ends::default(), &script).last().map(String::as_str), Some("REKINDLE"));
    let mut table = Ends::new(true);
    assert_eq!(shown(&mut table, &script).last().map(String::as_str), Some("-"), "the table shows it");
}

#[test]
fn a_wait_without_a_time_announces_nothing() {
    let mut script = Script::default();
    let limit = Cause::UsageLimit { resets_at: None };
    script.at(1, AGENT, "T1", &ended(1, limit.clone())).at(1, AGENT, "T1", &requeued(limit, None));
    script.at(2, AGENT, "T1", &replaced());
    assert_eq!(shown(&mut Ends::default(), &script), ["-", "REQUEUED", "REKINDLE"], "its gate has a line");
}

#[test]
fn a_hang_is_told_when_it_is_over() {
    let mut script = Script::default();
    let hung = AttemptEvent::AgentHung { attempt: AttemptId(1), quiet_ms: 60_000, evidence: "no output".into() };
    script.at(1, AGENT, "T1", &Body::Attempt(hung));
    script.at(9, AGENT, "T1", &ended(1, Cause::HungMidStream));
    script.at(9, AGENT, "T1", &requeued(Cause::HungMidStream, None));
    let lines = shown(&mut Ends::default(), &script);
    assert_eq!(lines, ["-", "HUNG: no sign of life for 1m (no output), next at once", "REQUEUED"]);
}

#[test]
fn an_end_without_proof_says_which_check_failed() {
    let (mut lie, mut silent) = (Script::default(), Script::default());
    let claim =
        |channel| Body::Task(TaskEvent::TaskClaimed { attempt: AttemptId(1), channel, result: None, verdict: None });
    for (script, channel) in [(&mut lie, Channel::Signal), (&mut silent, Channel::Unreported)] {
        script.at(1, AGENT, "T1", &claim(channel)).at(2, AGENT, "T1", &failed_checks());
        script.at(2, AGENT, "T1", &ended(1, Cause::ExitedIncomplete));
        script.at(2, AGENT, "T1", &requeued(Cause::ExitedIncomplete, None));
    }
    let lines = shown(&mut Ends::default(), &lie);
    assert_eq!(lines[1..3], ["-", "NOT PROVEN: check `test -e made` exited with 1, next at once"]);
    let lines = shown(&mut Ends::default(), &silent);
    assert_eq!(lines[..3], ["-", "-", "ENDED: no report, and check `test -e made` exited with 1, next at once"]);
}

#[test]
fn a_refused_claim_of_an_agent_that_continues_has_its_line() {
    let mut script = Script::default();
    script.at(2, AGENT, "T1", &failed_checks());
    assert_eq!(shown(&mut Ends::default(), &script), ["NOT PROVEN"]);
}

#[test]
fn the_last_end_of_a_task_that_fails_is_told_by_the_failure() {
    let mut script = Script::default();
    script.crashed(1_000, AGENT, "T1", 3);
    script.events.pop();
    let failed = TaskEvent::WorkflowFailed { reason: "crashed".into(), detail: "3 of 3 attempts used".into() };
    script.at(1_000, AGENT, "T1", &Body::Task(failed));
    let lines = shown(&mut Ends::default(), &script);
    assert_eq!(lines, ["-", "-", "FAILED: crashed: 3 of 3 attempts used, next none"]);
}
