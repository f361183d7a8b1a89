//! What is dropped of tasks that ended long ago. A run of a hundred thousand short tasks keeps of each what decisions need,
//! its state and its epoch; everything that a person may still want to read about it is in its row and in the log.
//!
//! Everything here depends on the events alone: replay drops the same.

use crate::event::{AttemptEvent, Body, Event, PersonEvent, RunEvent, TaskEvent};
use crate::ids::{AttemptId, TaskId};
use crate::state::{Attempt, AttemptPhase, State, Task};

/// Ended attempts that are kept of an open task: several times the number of counted attempts a task may have. Attempts that
/// the machine or an account ended do not count, and there may be any number of them.
const ATTEMPTS_KEPT: usize = 32;

/// Answered questions that are kept for briefs; a person answers fewer in any run that people follow.
const ANSWERS_KEPT: usize = 500;

/// Whether an event may drop something from the state: code that makes rows from the state must do so before such an event.
pub fn may_let_go(event: &Event) -> bool {
    matches!(
        event.body,
        Body::Task(TaskEvent::TaskCompleted { .. } | TaskEvent::WorkflowFailed { .. } | TaskEvent::TaskSkipped { .. })
            | Body::Run(RunEvent::CoordinatorStarted { .. })
            | Body::Attempt(AttemptEvent::AttemptEnded { .. })
            | Body::Person(PersonEvent::QuestionAnswered { .. })
    )
}

pub(super) fn after_task(state: &mut State, id: &TaskId) {
    if state.tasks.contains_key(id) {
        state.ended.push_back(id.clone());
        oldest(state);
    }
}

/// Drops the details of the oldest ended tasks beyond the number that is kept.
pub(super) fn oldest(state: &mut State) {
    while state.ended.len() > state.limits.ended_kept as usize {
        let Some(id) = state.ended.pop_front() else { return };
        let over = state.tasks.get(&id).is_some_and(|task| task.state.is_terminal());
        // A task that was reopened and has ended again comes later in the list.
        if over && !state.ended.contains(&id) {
            settle(state, &id);
        }
    }
}

fn settle(state: &mut State, id: &TaskId) {
    state.change_task(id, lighten);
    super::steering::forget(state, id);
    let before = state.questions.len();
    state.questions.retain(|_, question| question.task != *id || question.answer.is_none());
    state.past.questions += (before - state.questions.len()) as u64;
    let gone: Vec<AttemptId> =
        state.attempts.iter().filter(|(id, attempt)| is_through(state, **id, attempt)).map(|(id, _)| *id).collect();
    gone.into_iter().for_each(|attempt| forget(state, attempt));
}

fn lighten(task: &mut Task) {
    task.settled = true;
    task.last_cause = None;
    task.reason = None;
    task.result = None;
    task.checkpoint = None;
    task.evidence = None;
    task.split = Vec::new();
    task.workflow.rework = None;
    task.workflow.verdicts = Vec::new();
    task.workflow.baseline = None;
}

/// Whether no decision needs an attempt any more. A named agent whose work is reviewed continues with the session of its
/// last attempt: that one is kept, and there are as many of them as names in the plan.
fn is_through(state: &State, id: AttemptId, attempt: &Attempt) -> bool {
    let settled = |task: &TaskId| state.tasks.get(task).is_none_or(|task| task.settled);
    let goes_on = || {
        is_named(state, attempt) && !state.attempts.range(id..).skip(1).any(|(_, later)| later.agent == attempt.agent)
    };
    attempt.phase == AttemptPhase::Ended && attempt.tasks.iter().all(settled) && !goes_on()
}

fn is_named(state: &State, attempt: &Attempt) -> bool {
    let planned = attempt.tasks.first().and_then(|task| state.plan_task(task));
    planned.is_some_and(|planned| planned.agent.as_ref() == Some(&attempt.agent))
}

/// Forgets an attempt, and its agent's name if the name belongs to one task only: the task's epoch is as high.
fn forget(state: &mut State, id: AttemptId) {
    let Some(gone) = state.attempts.remove(&id) else { return };
    state.past.attempts += 1;
    state.past.compactions += gone.cli_session.compactions;
    let known = state.agents.get(&gone.agent).copied();
    let as_high = gone.tasks.iter().filter_map(|task| state.tasks.get(task)).any(|task| Some(task.epoch) >= known);
    let used = state.attempts.values().any(|other| other.agent == gone.agent);
    if as_high && !used && !is_named(state, &gone) {
        state.agents.remove(&gone.agent);
    }
}

/// Drops the oldest attempts at a task that is retried again and again at no cost.
pub(super) fn after_attempt(state: &mut State, id: AttemptId) {
    let Some(first) = state.attempts.get(&id).and_then(|attempt| attempt.tasks.first()) else { return };
    let same =
        |(_, other): &(&AttemptId, &Attempt)| other.phase == AttemptPhase::Ended && other.tasks.first() == Some(first);
    let ended: Vec<AttemptId> = state.attempts.iter().filter(same).map(|(id, _)| *id).collect();
    let excess = ended.len().saturating_sub(ATTEMPTS_KEPT);
    ended.into_iter().take(excess).for_each(|attempt| forget(state, attempt));
}

/// Drops the oldest answered questions.
pub(super) fn answers(state: &mut State) {
    let answered = state.questions.iter().filter(|(_, question)| question.answer.is_some());
    let answered: Vec<_> = answered.map(|(id, _)| *id).collect();
    let excess = answered.len().saturating_sub(ANSWERS_KEPT);
    for id in answered.into_iter().take(excess) {
        state.questions.remove(&id);
        state.past.questions += 1;
    }
}
