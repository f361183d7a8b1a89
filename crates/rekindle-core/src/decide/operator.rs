//! What an operator may order, whatever agents say.

use super::{
    About, Reply, Turn, attempt, placed, reconcile, reload, review, session, split, steer, stream, unreported,
};
use crate::apply::WORDS_OF_FAILURE;
use crate::cause::Cause;
use crate::event::{PersonEvent, ReviewEvent, RunEvent, TaskEvent};
use crate::ids::{AttemptId, QuestionId, TaskId};
use crate::input::Order;
use crate::state::{RunPhase, Task, TaskState, Word};

/// The reasons of a task that an operator has stopped, and of one that it said has failed.
const STOPPED: &str = WORDS_OF_FAILURE[0];
const FAILED: &str = WORDS_OF_FAILURE[1];

pub(super) fn ordered(turn: &mut Turn<'_>, order: Order) -> Reply {
    if turn.state.run.is_none() {
        return Reply::Refused { reason: "there is no run here".to_owned() };
    }
    match order {
        Order::Pause(reason) => session::pause(turn, reason),
        Order::Recover { agent } => recover(turn, &agent),
        Order::Skip { task, reason } => skip(turn, &task, reason),
        Order::Stop { task } => stop(turn, &task),
        Order::Retry { task } => retry(turn, &task),
        Order::Complete { task, result } => complete(turn, &task, result),
        Order::Answer { id, text } => answer(turn, id, text),
        Order::Split { task, subtasks } => split::split(turn, &task, None, subtasks),
        Order::ForgetFocus => {
            turn.emit_run(ReviewEvent::FocusReset {});
            Reply::Accepted
        }
        Order::Tell { task, text, key } => steer::tell(turn, &task, &text, key),
        Order::Attach { task, by } => steer::attach(turn, &task, by),
        Order::Detach { task, by, changed } => steer::detach(turn, &task, &by, changed),
        Order::WithUndo { order } => placed::place(turn, order),
        Order::Undo { number } => placed::undo(turn, number),
        Order::ActOnDue => placed::act_on_due(turn),
        Order::Note { text } => {
            turn.emit_run(PersonEvent::NoteRecorded { text });
            Reply::Accepted
        }
        Order::Fail { task, reason } => fail(turn, &task, reason),
        Order::Reload { plan } => reload::reload(turn, &plan),
        Order::Add(new) => reload::add(turn, *new),
        Order::Edit { task, edit } => reload::edit(turn, &task, *edit),
    }
}

/// Replaces an agent: a living one is stopped and handed over, a failed task of a dead one is opened again.
fn recover(turn: &mut Turn<'_>, agent: &str) -> Reply {
    let live: Option<AttemptId> =
        turn.state.live_attempts().find(|(_, attempt)| attempt.agent.as_str() == agent).map(|(id, _)| id);
    if let Some(id) = live {
        attempt::order_stop(turn, id, Cause::StoppedByOperator, false);
        return Reply::Accepted;
    }
    let failed: Vec<TaskId> = turn
        .state
        .tasks
        .iter()
        .filter(|(id, task)| {
            task.state == TaskState::Failed
                && split::whole_that_went_on(turn.state, id).is_none()
                && turn.state.agent_for(id, crate::role::Role::Developer).is_some_and(|name| name.as_str() == agent)
        })
        .map(|(id, _)| id.clone())
        .collect();
    if failed.is_empty() {
        return Reply::Refused { reason: format!("agent {agent} neither runs nor has a failed task") };
    }
    for task in failed {
        reopen_for_operator(turn, &task);
    }
    Reply::Accepted
}

fn skip(turn: &mut Turn<'_>, id: &TaskId, reason: String) -> Reply {
    let Some(task) = turn.state.tasks.get(id) else {
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
    skip_parts(turn, id);
    turn.emit_task(id, TaskEvent::TaskSkipped { reason });
    review::after_end(turn, id);
    stop_if_idle(turn, holder);
    go_on_after_end(turn, false);
    Reply::Accepted
}

/// Gives a task up: its agent is stopped, what waits for it goes on waiting, and only a retry opens it again.
fn stop(turn: &mut Turn<'_>, id: &TaskId) -> Reply {
    let Some(task) = turn.state.tasks.get(id) else {
        return unknown(id);
    };
    if task.state.is_terminal() {
        return Reply::Refused { reason: format!("task {id} has ended already: there is nothing to stop") };
    }
    let holder = task.holder;
    skip_parts(turn, id);
    let detail = format!("the operator stopped it; open it again: rekindle task retry {id}");
    turn.emit_task(id, TaskEvent::WorkflowFailed { reason: STOPPED.to_owned(), detail });
    review::after_end(turn, id);
    stop_if_idle(turn, holder);
    Reply::Accepted
}

/// A task has failed on the operator's word, whatever its agent or its checks say.
fn fail(turn: &mut Turn<'_>, id: &TaskId, reason: String) -> Reply {
    let Some(task) = turn.state.tasks.get(id) else {
        return unknown(id);
    };
    if task.workflow.removed {
        return Reply::Refused { reason: format!("task {id} is no longer in the plan") };
    }
    if task.workflow.word == Some(Word::Failed) {
        return Reply::Already;
    }
    let holder = task.holder;
    // A whole that is being judged or merged was judged with this part in it.
    let past = split::whole_that_went_on(turn.state, id).filter(|_| task.state.is_terminal());
    if let Some(whole) = past {
        return Reply::Refused { reason: format!("task {id} is a part of {whole}, which is past it: fail {whole}") };
    }
    skip_parts(turn, id);
    if turn.state.tasks[id].state.is_terminal() {
        // It had ended: this is another end, in an epoch of its own.
        reconcile::reopen(turn, id, "given up by the operator".to_owned(), true);
    }
    turn.emit_task(id, TaskEvent::WorkflowFailed { reason: FAILED.to_owned(), detail: reason });
    review::after_end(turn, id);
    stop_if_idle(turn, holder);
    Reply::Accepted
}

/// A whole that ends on the operator's word takes what is open of its parts with it.
pub(super) fn skip_parts(turn: &mut Turn<'_>, id: &TaskId) {
    for part in turn.state.tasks[id].workflow.parts.clone() {
        let Some(task) = turn.state.tasks.get(&part).filter(|task| !task.state.is_terminal()) else { continue };
        let holder = task.holder;
        skip_parts(turn, &part);
        turn.emit_task(&part, TaskEvent::TaskSkipped { reason: format!("task {id} was ended by the operator") });
        stop_if_idle(turn, holder);
    }
}

fn complete(turn: &mut Turn<'_>, id: &TaskId, result: Option<String>) -> Reply {
    let Some(task) = turn.state.tasks.get(id) else {
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
    complete_for_operator(turn, id, result);
    go_on_after_end(turn, false);
    Reply::Accepted
}

/// Ends a task as complete on the operator's word.
pub(super) fn complete_for_operator(turn: &mut Turn<'_>, id: &TaskId, result: Option<String>) {
    let holder = turn.state.tasks[id].holder;
    // Work that was done apart goes into the run's branch on the operator's word too.
    let worked = |(part, task): (&TaskId, &Task)| !task.last_attempts.is_empty() && turn.state.root_of(part) == *id;
    let worked = turn.state.tasks.iter().any(worked);
    skip_parts(turn, id);
    if worked && turn.state.limits.worktrees && turn.state.tasks[id].state.is_terminal() {
        // It had ended and is merged now: that is another end, in an epoch of its own.
        reconcile::reopen(turn, id, "completed by the operator".to_owned(), true);
    }
    turn.emit_task(id, TaskEvent::OperatorCompleted { result: result.clone() });
    if worked {
        review::accept(turn, id, result, true);
    } else {
        turn.emit_task(id, TaskEvent::TaskCompleted { result, unproven: true, unreported: true });
        review::after_end(turn, id);
    }
    let merging = turn.state.tasks[id].workflow.merging.is_some();
    let lives = |id: &AttemptId| turn.state.attempts.get(id).is_some_and(crate::state::Attempt::is_live);
    if let Some(holder) = holder.filter(|id| merging && lives(id)) {
        // Nobody goes on changing what is being merged.
        attempt::order_stop(turn, holder, Cause::StoppedByOperator, false);
    }
    stop_if_idle(turn, holder);
}

fn stop_if_idle(turn: &mut Turn<'_>, holder: Option<AttemptId>) {
    let Some(id) = holder else { return };
    // One whose process is gone waited only for the checks of what has just been decided without them.
    attempt::end_if_settled(turn, id);
    let live = turn.state.attempts.get(&id).is_some_and(crate::state::Attempt::is_live);
    if live && turn.state.open_tasks(id).is_empty() {
        attempt::order_stop(turn, id, Cause::StoppedByOperator, false);
    }
}

fn retry(turn: &mut Turn<'_>, id: &TaskId) -> Reply {
    let Some(task) = turn.state.tasks.get(id) else {
        return unknown(id);
    };
    if !task.state.is_terminal() {
        return Reply::Refused { reason: format!("task {id} has not ended: there is nothing to retry") };
    }
    if task.workflow.removed {
        let reason = format!("task {id} is no longer in the plan: put it back into the file and reload it");
        return Reply::Refused { reason };
    }
    if let Some(whole) = split::whole_that_went_on(turn.state, id) {
        return Reply::Refused { reason: format!("task {id} is a part of {whole}, which is past it: retry {whole}") };
    }
    reopen_for_operator(turn, id);
    Reply::Accepted
}

pub(super) fn reopen_for_operator(turn: &mut Turn<'_>, id: &TaskId) {
    reconcile::reopen(turn, id, "opened again by the operator".to_owned(), true);
    go_on_after_end(turn, false);
}

/// An order that opens work in a finished run makes the run one that can be continued.
pub(super) fn go_on_after_end(turn: &mut Turn<'_>, to_prove: bool) {
    let finished = turn.state.run.as_ref().is_some_and(|run| matches!(run.phase, RunPhase::Finished(_)));
    if finished && (to_prove || turn.state.tasks.values().any(|task| !task.state.is_terminal())) {
        turn.emit_run(RunEvent::RunReopened {});
    }
}

fn answer(turn: &mut Turn<'_>, id: QuestionId, answer: String) -> Reply {
    let Some(question) = turn.state.questions.get(&id) else {
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
    let about = About { attempt: Some(question.attempt), task: Some(question.task.clone()), epoch: None };
    let (attempt, text) = (question.attempt, question.text.clone());
    turn.emit(about, PersonEvent::QuestionAnswered { id, answer: answer.clone() });
    if !unreported::answered(turn, id, &answer) {
        stream::answered(turn, attempt, &text, &answer);
    }
    Reply::Accepted
}

fn unknown(id: &TaskId) -> Reply {
    Reply::Refused { reason: format!("there is no task {id} in this run") }
}
