//! Scenes that many rows begin with: plans, agents that can or cannot be told something, verdicts.

use rekindle_core::activity::{Measure, StreamEvent};
use rekindle_core::decide::Step;
use rekindle_core::event::Event;
use rekindle_core::ids::AttemptId;
use rekindle_core::input::Input;
use rekindle_core::limits::{Limits, Traits};
use rekindle_core::report::{Evidence, Report};
use rekindle_core::review::{Findings, Verdict};
use rekindle_core::role::Role;
use rekindle_core::state::{State, TaskState};
use serde_json::Value;

use crate::harness::{Story, exit_code, task};

/// Two tasks, the second behind the first.
pub const PLAIN: &str = "# Demo\n\n### T1: first\n- artifacts: a.txt\n- accept: `true`\n\nDo it.\n\n### T2: second\n- blocked by: T1\n- accept: `true`\n\nDo it too.\n";

/// One task that critic and auditor look at.
pub const REVIEWED: &str = "---\nreview: [critic, auditor]\n---\n# Demo\n\n### T1: first\n- accept: `true`\n\nDo it.\n";

/// One task that only a critic looks at.
pub const CRITICISED: &str = "---\nreview: [critic]\n---\n# Demo\n\n### T1: first\n- accept: `true`\n\nDo it.\n";

/// The kind of agent that can be resumed, compacts by itself and takes messages.
pub fn able() -> Limits {
    let traits = Traits {
        structured_output: true,
        resumes: true,
        compacts: true,
        reinjects: true,
        takes_messages: true,
        ..Traits::new("able")
    };
    let clis = vec!["default".to_owned()];
    Limits { traits: [("default".to_owned(), traits)].into(), clis, ..Limits::default() }
}

/// The newest event of a name.
pub fn last<'a>(story: &'a Story, name: &str) -> &'a Event {
    let found = story.log.iter().rev().find(|event| event.body.name() == name);
    found.unwrap_or_else(|| panic!("no {name} in {:?}", names(story)))
}

/// The details of the newest event of a name.
pub fn details(story: &Story, name: &str) -> Value {
    serde_json::from_str(&last(story, name).body.details()).expect("details are JSON")
}

/// The names of all events so far.
pub fn names(story: &Story) -> Vec<String> {
    story.log.iter().map(|event| event.body.name()).collect()
}

/// Where the newest event of a name stands in the log.
pub fn place(story: &Story, name: &str) -> usize {
    names(story).iter().rposition(|known| known == name).unwrap_or_else(|| panic!("no {name} in {:?}", names(story)))
}

/// Whether there is an event of a name.
pub fn happened(story: &Story, name: &str) -> bool {
    names(story).iter().any(|known| known == name)
}

/// The newest attempt.
pub fn newest(state: &State) -> u64 {
    state.attempts.keys().last().expect("an attempt").0
}

/// The newest attempt starts, whoever it is.
pub fn begin(story: &mut Story) -> u64 {
    let attempt = newest(&story.state);
    story.started(attempt);
    attempt
}

/// Lets every backoff pass.
pub fn later(story: &mut Story) -> Step {
    story.after_ms(400_000).input(Input::TimePassed)
}

/// The newest attempt fails: it starts, and crashes.
pub fn crash(story: &mut Story) {
    let attempt = begin(story);
    story.exited(attempt, exit_code(7));
    later(story);
}

/// The developer of a task does its work, and leaves.
pub fn develop(story: &mut Story, id: &str) {
    let attempt = begin(story);
    story.done(attempt, id);
    story.checked(id, true);
    story.exited(attempt, exit_code(0));
}

/// The reviewer that was started for a task gives its verdict and leaves; rekindle's own checks say what `evidence` says.
pub fn judge(story: &mut Story, id: &str, verdict: Verdict, issues: &[&str], evidence: Evidence) -> Step {
    let attempt = begin(story);
    let role = story.state.attempts[&AttemptId(attempt)].role;
    let given = give(story, attempt, id, role, verdict, issues);
    if story.state.tasks[&task(id)].claim.is_some() {
        let epoch = story.state.tasks[&task(id)].epoch;
        story.input(Input::ChecksFinished { task: task(id), epoch, evidence });
    }
    story.exited(attempt, exit_code(0));
    given
}

/// A verdict, by whoever.
pub fn give(story: &mut Story, attempt: u64, id: &str, role: Role, verdict: Verdict, issues: &[&str]) -> Step {
    let issues = issues.iter().map(|issue| (*issue).to_owned()).collect();
    let (required, passed) = (vec!["handle the error".to_owned()], vec!["the tests".to_owned()]);
    let task = Some(task(id));
    story.report(attempt, Report::Verdict { task, role, verdict, findings: Findings { issues, required, passed } })
}

/// The role of the newest attempt.
pub fn role(story: &Story) -> Role {
    story.state.attempts[&AttemptId(newest(&story.state))].role
}

pub fn stands(story: &Story, id: &str) -> TaskState {
    story.state.tasks[&task(id)].state
}

/// An agent says something of itself.
pub fn sign(story: &mut Story, attempt: u64, sign: StreamEvent) -> Step {
    story.input(Input::Streamed { attempt: AttemptId(attempt), event: sign })
}

/// An agent's context has so much left, in percent.
pub fn context_left(story: &mut Story, attempt: u64, percent: u64) -> Step {
    let measure = Measure { context_used: Some(100 - percent), context_window: Some(100), ..Measure::default() };
    sign(story, attempt, StreamEvent::Measured(measure))
}

/// An agent is compacted after so many answers of its model.
pub fn compact(story: &mut Story, attempt: u64, turns: u64) -> Step {
    sign(story, attempt, StreamEvent::Compacted { automatic: Some(true), turns, calls: turns })
}
