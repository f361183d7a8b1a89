//! What was seen of an attempt up to its end: the facts that the choice after it rests on.

use rekindle_core::cause::Cause;
use rekindle_core::duration;
use rekindle_core::event::Body;
use rekindle_core::time::Time;

use crate::story::{self, session};

/// Facts of the attempt at hand, each kind once: the newest counts.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    facts: Vec<(Fact, String)>,
    cause: Option<&'static str>,
}

/// What a fact is about, in the order in which facts are told.
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
    /// Takes in what happened at a moment.
    pub fn add(&mut self, body: &Body, now: Time) {
        if let Body::AttemptEnded { cause, .. } = body {
            self.cause = Some(cause.name());
        }
        if let Body::ChecksFinished { passed: true, .. } = body {
            self.facts.retain(|(fact, _)| *fact != Fact::Check);
        }
        let Some((fact, text)) = fact(body, now) else { return };
        self.facts.retain(|(known, _)| *known != fact);
        self.facts.push((fact, text));
        self.facts.sort_by_key(|(fact, _)| *fact);
    }

    /// All of it in words.
    pub fn lines(&self) -> Vec<String> {
        self.facts.iter().map(|(_, text)| text.clone()).collect()
    }

    /// Why the attempt ended, once it has.
    pub fn cause(&self) -> Option<&'static str> {
        self.cause
    }

    /// Whether a decision rests on what was seen of the attempt.
    pub fn leads_to(body: &Body) -> bool {
        match body {
            Body::AttemptEnded { cause, .. } => *cause != Cause::Completed,
            Body::StopOrdered { .. } | Body::TaskRequeued { .. } | Body::WorkflowFailed { .. } => true,
            Body::Dispatched { resumed, .. } => *resumed,
            _ => false,
        }
    }
}

fn fact(body: &Body, now: Time) -> Option<(Fact, String)> {
    Some(match body {
        Body::AttemptExited { exit, .. } => (Fact::Exit, story::exited(exit)),
        Body::AgentHung { quiet_ms, evidence, .. } => {
            let quiet = duration::format(quiet_ms - quiet_ms % 1000);
            (Fact::Quiet, format!("quiet for {quiet} ({evidence})"))
        }
        Body::RoleTimeout { timeout_ms, .. } => {
            (Fact::Time, format!("longer than {} at the task", duration::format(*timeout_ms)))
        }
        Body::ChecksFinished { evidence, passed: false } => (Fact::Check, evidence.complaint()),
        Body::AgentFailed { failure, .. } => (Fact::Failure, session::failed(failure, now)),
        Body::AgentMeasured { measure, .. } => (Fact::Context, session::context_left(measure)?),
        Body::AgentCompacted(rekindle_core::event::AgentCompacted { compactions, .. }) => {
            (Fact::Compactions, format!("compacted {} during this task", session::times(*compactions)))
        }
        Body::AgentSession { session_id, expected, .. } => {
            let expected = expected.as_ref().map(|expected| format!(" instead of {expected}")).unwrap_or_default();
            (Fact::Session, format!("session {session_id}{expected}"))
        }
        Body::SessionClosed(rekindle_core::event::SessionClosed { transcript, cut_off, under_way, .. }) => {
            (Fact::Left, session::closed(*transcript, cut_off.as_deref(), under_way))
        }
        Body::GateClosed(closed) => (Fact::Gate, session::waiting(&session::row_of(closed), now)),
        _ => return None,
    })
}
