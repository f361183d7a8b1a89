//! How work on a task continues: its agent's own session resumed, a fresh agent with a brief, or an agent of another kind.
//!
//! One pure function over what is known about the previous attempt, and the reason in words.

use crate::activity::Transcript;
use crate::cause::Cause;
use crate::ids::{AgentName, TaskId};
use crate::review::Stage;
use crate::role::Role;
use crate::state::{Attempt, AttemptPhase, State, Task};
use crate::strategy::Strategy;

/// An attempt that ended this soon after its start, without a report, failed fast.
pub const FAST_MS: u64 = 60_000;

/// Resumes that may fail fast in a row before a fresh agent is started.
pub const FAST_RESUMES: usize = 2;

/// How often in a row a session may end because of an overloaded provider before a fresh agent is started: some failures are
/// specific to a conversation.
pub const OVERLOADED_RESUMES: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub strategy: Strategy,
    pub session: Option<String>,
    pub asks_for_report: bool,
    pub reason: String,
}

impl Choice {
    fn without_session(strategy: Strategy, reason: String) -> Self {
        Self { strategy, session: None, asks_for_report: false, reason: format!("{strategy}: {reason}") }
    }
}

/// Chooses for a task that `cli` is to continue.
pub fn choose(state: &State, id: &TaskId, agent: &AgentName, cli: &str) -> Choice {
    let Some(task) = state.tasks.get(id) else {
        return Choice::without_session(Strategy::First, "first attempt".into());
    };
    if let Some(choice) = goes_on(state, task, agent, cli) {
        return choice;
    }
    let last = task.last_attempt().and_then(|id| state.attempts.get(&id));
    if task.workflow.stage != Stage::Implement && last.is_none_or(|last| last.cause == Some(Cause::Completed)) {
        let reason = format!("proven work for its {}", state.role_of(id));
        return Choice { reason, ..Choice::without_session(Strategy::First, String::new()) };
    }
    let Some(last) = last else {
        return match &task.last_cause {
            Some(cause) => Choice::without_session(Strategy::Fresh, cause.words()),
            None if task.tries() > 0 => Choice::without_session(Strategy::Fresh, "the task was opened again".into()),
            None => {
                Choice { reason: "first attempt".into(), ..Choice::without_session(Strategy::First, String::new()) }
            }
        };
    };
    let Some(cause) = last.cause.as_ref().filter(|cause| **cause != Cause::Completed) else {
        // Its last agent ended well; the reason to repeat it was found later.
        let again = match task.workflow.stage {
            Stage::Implement => "the task was opened again",
            Stage::Review | Stage::Audit => "its work is reviewed again",
        };
        let reason = task.last_cause.as_ref().map_or_else(|| again.to_owned(), Cause::words);
        return Choice::without_session(Strategy::Fresh, reason);
    };
    let words = cause.words();
    if last.cli != cli {
        let reason = format!("{words}; `{cli}` takes over from `{}`", last.cli);
        return Choice::without_session(Strategy::Other, reason);
    }
    if !state.limits.traits_of(cli).resumes {
        return Choice::without_session(Strategy::Fresh, words);
    }
    match resumable(state, last, cause) {
        Ok((session, why)) => Choice {
            strategy: Strategy::Resume,
            session: Some(session),
            asks_for_report: lacks_report(state, last, cause),
            reason: format!("resume: {words}; {why}"),
        },
        Err(why) => Choice::without_session(Strategy::Fresh, format!("{words}; {why}")),
    }
}

/// Whether a session that ended well is resumed: for work that was sent back, or for the next task of a named agent whose
/// work is reviewed.
fn goes_on(state: &State, task: &Task, agent: &AgentName, cli: &str) -> Option<Choice> {
    let reviewed = state.reviews(Role::Critic) || state.reviews(Role::Auditor);
    let why = match (&task.workflow.rework, task.workflow.stage) {
        (Some(_), Stage::Implement) => "its work was sent back and its session knows it",
        (None, Stage::Implement) if task.last_attempt().is_none() && reviewed => {
            "its agent continues with its next task"
        }
        _ => return None,
    };
    let ended = |attempt: &&Attempt| attempt.phase == AttemptPhase::Ended && attempt.agent == *agent;
    let last = match &task.workflow.rework {
        Some(_) => task.last_attempt().and_then(|id| state.attempts.get(&id)).filter(|last| last.agent == *agent)?,
        None => state.attempts.values().rev().find(ended)?,
    };
    if last.cause != Some(Cause::Completed) || last.cli != cli || !state.limits.traits_of(cli).resumes {
        return None;
    }
    let (session, whole) = resumable(state, last, &Cause::Completed).ok()?;
    let reason = format!("resume: {why}; {whole}");
    Some(Choice { strategy: Strategy::Resume, session: Some(session), asks_for_report: false, reason })
}

/// Whether an attempt ended on its own without any report although its session can be asked for one: that is done once, and
/// does not count. A session that cannot be resumed is not asked, so the attempt counts: else it could end without a report
/// for ever.
pub fn lacks_report(state: &State, last: &Attempt, cause: &Cause) -> bool {
    let cli_session = &last.cli_session;
    *cause == Cause::ExitedIncomplete
        && state.limits.traits_of(&last.cli).resumes
        && !cli_session.reported
        && !cli_session.reminded
        && !cli_session.asks_for_report
        && resumable(state, last, cause).is_ok()
}

/// The session to resume and why it is worth it, or why it is not.
fn resumable(state: &State, last: &Attempt, cause: &Cause) -> Result<(String, String), String> {
    let limits = &state.limits;
    match cause {
        Cause::Compacted | Cause::CompactionLoop | Cause::ContextExhausted => {
            return Err("its session has lost its thread".to_owned());
        }
        Cause::StalledNoProgress | Cause::TimedOut => {
            return Err("a new agent starts without the old session".to_owned());
        }
        Cause::StartFailed { .. } => return Err("its session did not come back".to_owned()),
        Cause::Completed
        | Cause::ExitedIncomplete
        | Cause::Crashed { .. }
        | Cause::HungBeforeFirstEvent
        | Cause::HungMidStream
        | Cause::HungAfterResult
        | Cause::UsageLimit { .. }
        | Cause::Overloaded
        | Cause::Auth
        | Cause::WaitingForInput
        | Cause::OutOfMemory { .. }
        | Cause::SetupFailed { .. }
        | Cause::Machine(_)
        | Cause::ShimLost
        | Cause::HostLost
        | Cause::StoppedByOperator => {}
    }
    // An attempt that ended before it named its session was meant to continue this one.
    let Some(session) = last.cli_session.session.clone().or_else(|| last.cli_session.resumes.clone()) else {
        return Err("its session is not known".to_owned());
    };
    let failed = fast_resumes(state, &session);
    if failed >= FAST_RESUMES {
        return Err(format!("the last {failed} resumes of its session failed at once"));
    }
    let overloaded = overloaded_in_a_row(state, &session);
    if overloaded >= OVERLOADED_RESUMES {
        return Err(format!("its session met an overloaded provider {overloaded} times in a row, another one may not"));
    }
    if last.cli_session.transcript == Some(Transcript::Missing) {
        return Err("the transcript of its session is gone".to_owned());
    }
    if last.cli_session.compactions >= limits.compaction.hand_over_after.max(1) {
        return Err(format!("its session was compacted {} times", last.cli_session.compactions));
    }
    match last.cli_session.measure.remaining_percent() {
        Some(left) if left <= limits.compaction.threshold_percent => {
            Err(format!("only {left} % of its context is left"))
        }
        Some(left) => Ok((session, format!("its session is whole and has {left} % of its context left"))),
        None => Ok((session, "its session is whole".to_owned())),
    }
}

/// How many of the newest attempts with a session ended for an overloaded provider.
fn overloaded_in_a_row(state: &State, session: &str) -> usize {
    let of_session =
        state.attempts.values().rev().filter(|attempt| attempt.cli_session.session.as_deref() == Some(session));
    of_session.take_while(|attempt| attempt.cause == Some(Cause::Overloaded)).count()
}

/// How many of the newest attempts with a session were resumes that ended at once without saying anything.
fn fast_resumes(state: &State, session: &str) -> usize {
    let same = |id: &Option<String>| id.as_deref() == Some(session);
    let of_session = state
        .attempts
        .values()
        .rev()
        .filter(|attempt| same(&attempt.cli_session.resumes) || same(&attempt.cli_session.session));
    let fast = |attempt: &&Attempt| {
        let waits = matches!(
            attempt.cause,
            Some(
                Cause::UsageLimit { .. }
                    | Cause::Overloaded
                    | Cause::HostLost
                    | Cause::StoppedByOperator
                    | Cause::Auth
                    | Cause::SetupFailed { .. }
                    | Cause::Machine(_)
            )
        );
        let lasted = attempt.ended_at.map(|ended| ended.since_ms(attempt.dispatched_at));
        attempt.cli_session.strategy == Strategy::Resume
            && !attempt.cli_session.reported
            && attempt.cli_session.measure.usage.tokens() == 0
            && !waits
            && lasted.is_some_and(|lasted| lasted < FAST_MS)
    };
    of_session.take_while(fast).count()
}
