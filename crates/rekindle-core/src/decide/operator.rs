//! What an operator may order, whatever agents say.

use super::{
    About, OpenStep, Reply, attempt, budget, phone, placed, preflight, pull_request, reconcile, reload, review,
    session, setup, split, steer, stream, unreported,
};
use crate::apply::WORDS_OF_FAILURE;
use crate::cause::Cause;
use crate::event::{Cleaned, Landed, MachineEvent, PersonEvent, ReviewEvent, RunEvent, TaskEvent};
use crate::ids::{AttemptId, QuestionId, TaskId};
use crate::input::Order;
use crate::phone::Via;
use crate::state::{RunPhase, Task, TaskState, Word};

/// The reasons of a task that an operator has stopped, and of one that the operator has declared failed.
const STOPPED: &str = WORDS_OF_FAILURE[0];
const FAILED: &str = WORDS_OF_FAILURE[1];

pub(super) fn ordered(step: &mut OpenStep<'_>, order: Order) -> Reply {
    if step.state.run.is_none() {
        return Reply::Refused { reason: "there is no run here".to_owned() };
    }
    match order {
        Order::Pause(reason) => session::pause(step, reason),
        Order::Recover { agent } => recover(step, &agent),
        Order::Skip { task, reason } => skip(step, &task, reason),
        Order::Stop { task } => stop(step, &task),
        Order::Retry { task } => retry(step, &task),
        Order::Complete { task, result } => complete(step, &task, result),
        Order::Answer { id, text } => answer(step, id, text, None),
        Order::FromPhone { from, order } => phone::ordered(step, from, order),
        Order::Split { task, subtasks } => split::split(step, &task, None, subtasks),
        Order::ForgetFocus => {
            step.emit_run(ReviewEvent::FocusReset {});
            Reply::Accepted
        }
        Order::Tell { task, text, key } => steer::tell(step, &task, &text, key),
        Order::Attach { task, by } => steer::attach(step, &task, by),
        Order::Detach { task, by, changed } => steer::detach(step, &task, &by, changed),
        Order::WithUndo { order } => placed::place(step, order),
        Order::Undo { number } => placed::undo(step, number),
        Order::ActOnDue => placed::act_on_due(step),
        Order::Landed(landed) => land(step, landed),
        Order::PullRequest(change) => pull_request::change(step, *change),
        Order::Feedback(feedback) => pull_request::feedback(step, *feedback),
        Order::Clean(cleaned) => clean(step, cleaned),
        Order::Note { text } => {
            step.emit_run(PersonEvent::NoteRecorded { text });
            Reply::Accepted
        }
        Order::Fail { task, reason } => fail(step, &task, reason),
        Order::Reload { plan } => reload::reload(step, &plan),
        Order::Add(new) => reload::add(step, *new),
        Order::Edit { task, edit } => reload::edit(step, &task, *edit),
    }
}

/// The person has taken the result: landing the same result twice counts once.
fn land(step: &mut OpenStep<'_>, landed: Landed) -> Reply {
    let known = step.state.run.as_ref().and_then(|run| run.landed.as_ref());
    if known == Some(&landed) {
        return Reply::Already;
    }
    step.emit_run(RunEvent::Landed(landed));
    Reply::Accepted
}

/// Records that something of a run is removed. The caller has checked before: this makes sure that the run has not continued
/// meanwhile.
fn clean(step: &mut OpenStep<'_>, cleaned: Cleaned) -> Reply {
    let current = step.state.run.as_ref().filter(|run| cleaned.run.as_ref() == Some(&run.id));
    if let Some(run) = current.filter(|run| !matches!(run.phase, RunPhase::Finished(_))) {
        return Reply::Refused { reason: format!("run {} is not over: nothing of it is removed", run.id) };
    }
    step.emit_run(MachineEvent::Cleaned(cleaned));
    Reply::Accepted
}

/// Replaces an agent: a living one is stopped and its work handed over, a failed task of a dead one is reopened.
fn recover(step: &mut OpenStep<'_>, agent: &str) -> Reply {
    let live: Option<AttemptId> =
        step.state.live_attempts().find(|(_, attempt)| attempt.agent.as_str() == agent).map(|(id, _)| id);
    if let Some(id) = live {
        attempt::order_stop(step, id, Cause::StoppedByOperator, false);
        return Reply::Accepted;
    }
    let failed: Vec<TaskId> = step
        .state
        .tasks
        .iter()
        .filter(|(id, task)| {
            task.state == TaskState::Failed
                && split::whole_that_went_on(step.state, id).is_none()
                && step.state.agent_for(id, crate::role::Role::Developer).is_some_and(|name| name.as_str() == agent)
        })
        .map(|(id, _)| id.clone())
        .collect();
    if failed.is_empty() {
        return Reply::Refused { reason: format!("agent {agent} neither runs nor has a failed task") };
    }
    for task in failed {
        reopen_for_operator(step, &task);
    }
    Reply::Accepted
}

fn skip(step: &mut OpenStep<'_>, id: &TaskId, reason: String) -> Reply {
    let Some(task) = step.state.tasks.get(id) else {
        return unknown(id);
    };
    match task.state {
        TaskState::Skipped => return Reply::Already,
        TaskState::Complete => {
            return Reply::Refused { reason: format!("task {id} is complete") };
        }
        TaskState::Pending | TaskState::InProgress | TaskState::Blocked | TaskState::Failed => {}
    }
    let holder = task.holder;
    skip_parts(step, id);
    step.emit_task(id, TaskEvent::TaskSkipped { reason });
    review::after_end(step, id);
    stop_if_idle(step, holder);
    go_on_after_end(step, false);
    Reply::Accepted
}

/// Gives up a task: its agent is stopped, what waits for it keeps waiting, and only a retry reopens it.
pub(super) fn stop(step: &mut OpenStep<'_>, id: &TaskId) -> Reply {
    let Some(task) = step.state.tasks.get(id) else {
        return unknown(id);
    };
    if task.state.is_terminal() {
        return Reply::Refused { reason: format!("task {id} has ended already: there is nothing to stop") };
    }
    let holder = task.holder;
    skip_parts(step, id);
    let detail = format!("the operator stopped it; open it again: rekindle task retry {id}");
    step.emit_task(id, TaskEvent::WorkflowFailed { reason: STOPPED.to_owned(), detail });
    review::after_end(step, id);
    stop_if_idle(step, holder);
    Reply::Accepted
}

/// Fails a task on the operator's word, whatever its agent or its checks say.
fn fail(step: &mut OpenStep<'_>, id: &TaskId, reason: String) -> Reply {
    let Some(task) = step.state.tasks.get(id) else {
        return unknown(id);
    };
    if task.workflow.removed {
        return Reply::Refused { reason: format!("task {id} is no longer in the plan") };
    }
    if task.workflow.word == Some(Word::Failed) {
        return Reply::Already;
    }
    let (holder, ended) = (task.holder, task.state.is_terminal());
    if let Some(whole) = split::whole_that_went_on(step.state, id).filter(|_| ended) {
        return Reply::Refused { reason: format!("task {id} is a part of {whole}, which is past it: fail {whole}") };
    }
    skip_parts(step, id);
    if step.state.tasks[id].state.is_terminal() {
        // It had ended: this is a new end, with its own epoch.
        reconcile::reopen(step, id, "given up by the operator".to_owned(), true);
    }
    step.emit_task(id, TaskEvent::WorkflowFailed { reason: FAILED.to_owned(), detail: reason });
    review::after_end(step, id);
    stop_if_idle(step, holder);
    Reply::Accepted
}

/// Skips the open parts of a whole that ends on the operator's word.
pub(super) fn skip_parts(step: &mut OpenStep<'_>, id: &TaskId) {
    for part in step.state.tasks[id].workflow.parts.clone() {
        let Some(task) = step.state.tasks.get(&part).filter(|task| !task.state.is_terminal()) else { continue };
        let holder = task.holder;
        skip_parts(step, &part);
        step.emit_task(&part, TaskEvent::TaskSkipped { reason: format!("task {id} was ended by the operator") });
        stop_if_idle(step, holder);
    }
}

fn complete(step: &mut OpenStep<'_>, id: &TaskId, result: Option<String>) -> Reply {
    let Some(task) = step.state.tasks.get(id) else {
        return unknown(id);
    };
    if task.state == TaskState::Complete {
        return Reply::Already;
    }
    if task.workflow.merging.is_some() {
        return Reply::Already;
    }
    if task.workflow.removed {
        return Reply::Refused { reason: format!("task {id} is no longer in the plan") };
    }
    complete_for_operator(step, id, result);
    go_on_after_end(step, false);
    Reply::Accepted
}

/// Ends a task as complete on the operator's word.
pub(super) fn complete_for_operator(step: &mut OpenStep<'_>, id: &TaskId, result: Option<String>) {
    let holder = step.state.tasks[id].holder;
    // Work in its own worktree is merged into the run's branch on the operator's word too.
    let worked = |(part, task): (&TaskId, &Task)| !task.last_attempts.is_empty() && step.state.root_of(part) == *id;
    let worked = step.state.tasks.iter().any(worked);
    skip_parts(step, id);
    if worked && step.state.limits.worktrees && step.state.tasks[id].state.is_terminal() {
        // It had ended and is merged now: that is a new end, with its own epoch.
        reconcile::reopen(step, id, "completed by the operator".to_owned(), true);
    }
    step.emit_task(id, TaskEvent::OperatorCompleted { result: result.clone() });
    if worked {
        review::accept(step, id, result, true);
    } else {
        step.emit_task(id, TaskEvent::TaskCompleted { result, unproven: true, unreported: true });
        review::after_end(step, id);
    }
    let merging = step.state.tasks[id].workflow.merging.is_some();
    let lives = |id: &AttemptId| step.state.attempts.get(id).is_some_and(crate::state::Attempt::is_live);
    if let Some(holder) = holder.filter(|id| merging && lives(id)) {
        // No agent may keep changing what is being merged.
        attempt::order_stop(step, holder, Cause::StoppedByOperator, false);
    }
    stop_if_idle(step, holder);
}

fn stop_if_idle(step: &mut OpenStep<'_>, holder: Option<AttemptId>) {
    let Some(id) = holder else { return };
    // An agent whose process is gone waited only for the checks of what has now been decided without them.
    attempt::end_if_settled(step, id);
    let live = step.state.attempts.get(&id).is_some_and(crate::state::Attempt::is_live);
    if live && step.state.open_tasks(id).is_empty() {
        attempt::order_stop(step, id, Cause::StoppedByOperator, false);
    }
}

fn retry(step: &mut OpenStep<'_>, id: &TaskId) -> Reply {
    let Some(task) = step.state.tasks.get(id) else {
        return unknown(id);
    };
    if !task.state.is_terminal() {
        if budget::take_up(step, id) {
            return Reply::Accepted;
        }
        return Reply::Refused { reason: format!("task {id} has not ended: there is nothing to retry") };
    }
    if task.workflow.removed {
        let reason = format!("task {id} is no longer in the plan: put it back into the file and reload it");
        return Reply::Refused { reason };
    }
    if let Some(whole) = split::whole_that_went_on(step.state, id) {
        return Reply::Refused { reason: format!("task {id} is a part of {whole}, which has moved on: retry {whole}") };
    }
    reopen_for_operator(step, id);
    Reply::Accepted
}

pub(super) fn reopen_for_operator(step: &mut OpenStep<'_>, id: &TaskId) {
    reconcile::reopen(step, id, "opened again by the operator".to_owned(), true);
    go_on_after_end(step, false);
}

/// Reopens a finished run if an order gave it open work, so that it can be continued.
pub(super) fn go_on_after_end(step: &mut OpenStep<'_>, to_prove: bool) {
    let finished = step.state.run.as_ref().is_some_and(|run| matches!(run.phase, RunPhase::Finished(_)));
    if finished && (to_prove || step.state.tasks.values().any(|task| !task.state.is_terminal())) {
        step.emit_run(RunEvent::RunReopened {});
    }
}

pub(super) fn answer(step: &mut OpenStep<'_>, id: QuestionId, answer: String, via: Option<Via>) -> Reply {
    let Some(question) = step.state.questions.get(&id) else {
        return Reply::Refused { reason: format!("there is no question {id}") };
    };
    if answer.trim().is_empty() {
        return Reply::Refused { reason: format!("the answer to question {id} is empty") };
    }
    let answer = question.meant(&answer);
    if let Some(known) = &question.answer {
        if *known == answer {
            return Reply::Already;
        }
        return Reply::Refused { reason: format!("question {id} is answered already: {known}") };
    }
    if question.is_budget
        && let Some(reply) = budget::answered(step, id, &answer, via)
    {
        return reply;
    }
    let Some(question) = step.state.questions.get(&id) else { return Reply::Already };
    let about = About { attempt: Some(question.attempt), task: Some(question.task.clone()), epoch: None };
    let (attempt, text) = (question.attempt, question.text.clone());
    let of_setup = step.state.preparing.setup.as_ref().is_some_and(|wait| wait.asked.question == id);
    let of_checks = step.state.preparing.checks.as_ref().is_some_and(|asked| asked.question == id);
    let claims = setup::claims(step.state);
    step.emit(about, PersonEvent::QuestionAnswered { id, answer: answer.clone(), via });
    if of_setup {
        setup::answered(step, &answer);
        setup::prove_again(step, &claims);
    } else if of_checks {
        preflight::answered(step, &answer);
    } else if !unreported::answered(step, id, &answer) {
        stream::answered(step, attempt, &text, &answer);
    }
    Reply::Accepted
}

fn unknown(id: &TaskId) -> Reply {
    Reply::Refused { reason: format!("there is no task {id} in this run") }
}
