//! What was seen of an attempt up to its end: the facts that the next decision is based on.

use rekindle_core::cause::Cause;
use rekindle_core::duration;
use rekindle_core::event::{AttemptEvent, Body, GateEvent, SessionEvent, TaskEvent};
use rekindle_core::time::Time;

use crate::story::{self, session};

/// Facts about the current attempt, one of each kind: the newest counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Trail {
    facts: Vec<(Fact, String)>,
    cause: Option<&'static str>,
}

/// What a fact is about, in the order in which facts are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    Exit,
    Quiet,
    Time,
    Check,
    Failure,
    Context,
    Compactions,
    Session,
    Left,
    Gate,
}

impl Trail {
    /// Adds what happened at `now`.
    pub(super) fn add(&mut self, body: &Body, now: Time) {
        if let Body::Attempt(AttemptEvent::AttemptEnded { cause, .. }) = body {
            self.cause = Some(cause.name());
        }
        if let Body::Task(TaskEvent::ChecksFinished { passed: true, .. }) = body {
            self.facts.retain(|(fact, _)| *fact != Fact::Check);
        }
        let Some((fact, text)) = fact(body, now) else { return };
        self.facts.retain(|(known, _)| *known != fact);
        self.facts.push((fact, text));
        self.facts.sort_by_key(|(fact, _)| *fact);
    }

    /// All facts in words.
    pub(super) fn lines(&self) -> Vec<String> {
        self.facts.iter().map(|(_, text)| text.clone()).collect()
    }

    /// Why the attempt ended, once it has.
    pub(super) fn cause(&self) -> Option<&'static str> {
        self.cause
    }

    /// Whether a decision rests on what was seen of the attempt.
    pub(super) fn leads_to(body: &Body) -> bool {
        match body {
            Body::Attempt(AttemptEvent::AttemptEnded { cause, .. }) => *cause != Cause::Completed,
            Body::Attempt(AttemptEvent::StopOrdered { .. })
            | Body::Task(TaskEvent::TaskRequeued { .. } | TaskEvent::WorkflowFailed { .. }) => true,
            Body::Attempt(AttemptEvent::Dispatched { resumed, .. }) => *resumed,
            Body::Run(_)
            | Body::Attempt(_)
            | Body::Session(_)
            | Body::Task(_)
            | Body::Review(_)
            | Body::Gate(_)
            | Body::Machine(_)
            | Body::Person(_) => false,
        }
    }
}

fn fact(body: &Body, now: Time) -> Option<(Fact, String)> {
    Some(match body {
        Body::Attempt(AttemptEvent::AttemptExited { exit, .. }) => (Fact::Exit, story::exited(exit)),
        Body::Attempt(AttemptEvent::AgentHung { quiet_ms, evidence, .. }) => {
            let quiet = duration::format(quiet_ms - quiet_ms % 1000);
            (Fact::Quiet, format!("quiet for {quiet} ({evidence})"))
        }
        Body::Attempt(AttemptEvent::RoleTimeout { timeout_ms, .. }) => {
            (Fact::Time, format!("longer than {} at the task", duration::format(*timeout_ms)))
        }
        Body::Task(TaskEvent::ChecksFinished { evidence, passed: false }) => (Fact::Check, evidence.complaint()),
        Body::Session(SessionEvent::AgentFailed { failure, .. }) => (Fact::Failure, session::failed(failure, now)),
        Body::Session(SessionEvent::AgentMeasured { measure, .. }) => (Fact::Context, session::context_left(measure)?),
        Body::Session(SessionEvent::AgentCompacted(rekindle_core::event::AgentCompacted { compactions, .. })) => {
            (Fact::Compactions, format!("compacted {} during this task", session::times(*compactions)))
        }
        Body::Session(SessionEvent::AgentSession { session_id, expected, .. }) => {
            let expected = expected.as_ref().map(|expected| format!(" instead of {expected}")).unwrap_or_default();
            (Fact::Session, format!("session {session_id}{expected}"))
        }
        Body::Session(SessionEvent::SessionClosed(rekindle_core::event::SessionClosed {
            transcript,
            cut_off,
            under_way,
            ..
        })) => (Fact::Left, session::closed(*transcript, cut_off.as_deref(), under_way)),
        Body::Gate(GateEvent::GateClosed(closed)) => (Fact::Gate, crate::waits::waiting(&session::row_of(closed), now)),
        Body::Run(_)
        | Body::Attempt(_)
        | Body::Session(_)
        | Body::Task(_)
        | Body::Review(_)
        | Body::Gate(_)
        | Body::Machine(_)
        | Body::Person(_) => return None,
    })
}
