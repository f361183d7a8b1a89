//! Changes of the plan by a person: a changed file, a task that is added or edited, and what follows for the existing work.

use super::{About, OpenStep, Reply, attempt, operator, reconcile, review, split};
use crate::cause::Cause;
use crate::event::{Added, Follow, PersonEvent, RunEvent, TaskEvent};
use crate::ids::{AttemptId, QuestionId, TaskId};
use crate::input::{NewTask, TaskEdit};
use crate::plan::{self, Plan, PlanTask};
use crate::reload;
use crate::state::{RunPhase, State, TaskState};

/// Why a task whose checks were changed is validated again.
const PROVEN_ANEW: &str = "its checks, or a task before it, were changed in the plan: proven again";

/// Takes over a changed plan, either completely or not at all.
pub(super) fn reload(step: &mut OpenStep<'_>, plan: &Plan) -> Reply {
    let difference = match reload::compare(step.state, plan) {
        Ok(difference) => difference,
        Err(reason) => return Reply::Refused { reason },
    };
    if difference.is_empty() && !difference.other_file {
        return Reply::Already;
    }
    step.emit_run(RunEvent::PlanReloaded(Box::new(difference.reload)));
    go_on(step);
    Reply::Accepted
}

/// Adds a task. Adding the same task again changes nothing: an order may be repeated after a lost answer.
pub(super) fn add(step: &mut OpenStep<'_>, new: NewTask) -> Reply {
    let task = match planned(step.state, new) {
        Ok(task) => task,
        Err(reason) => return Reply::Refused { reason },
    };
    let id = task.id.clone();
    if let (Some(known), Some(old)) = (step.state.tasks.get(&id), step.state.plan_task(&id)) {
        let same = known.workflow.by_hand && reload::differences(old, &task, false).is_empty();
        let taken = Reply::Refused { reason: format!("there is a task {id} already: give the new one another id") };
        return if same { Reply::Already } else { taken };
    }
    if let Err(reason) = reload::refuse_blockers(step.state, &task) {
        return Reply::Refused { reason };
    }
    let added = Added { task, parent: None, health: false, holder: None };
    step.emit(About { attempt: None, task: Some(id), epoch: None }, TaskEvent::TaskAdded(Box::new(added)));
    go_on(step);
    Reply::Accepted
}

/// A new task in the plan's form. If the plan has waves, it joins the wave of its last blocker, else the one that is
/// running.
pub(super) fn planned(state: &State, new: NewTask) -> Result<PlanTask, String> {
    let NewTask { id, title, text, after, accept, artifacts, agent, timeout_ms } = new;
    let waves = after.iter().filter_map(|id| state.plan_task(id)).map(|task| task.wave);
    let run = state.run.as_ref();
    let first = run.and_then(|run| run.plan.tasks.iter().map(|task| task.wave).min()).unwrap_or(1);
    let now = run.map_or(first, |run| run.wave.max(first));
    let task = PlanTask {
        wave: waves.max().unwrap_or(now),
        id,
        title: title.trim().to_owned(),
        body: text.trim().to_owned(),
        agent,
        role: None,
        cli: None,
        blocked_by: after,
        artifacts,
        accept,
        environments: Vec::new(),
        reading: Vec::new(),
        timeout_ms,
        attempts: None,
        priority: 0,
        done: false,
        line: 0,
    };
    speakable(task)
}

/// A task in words that a plan can contain: what would become a heading or a key of its own in a file is quoted.
fn speakable(task: PlanTask) -> Result<PlanTask, String> {
    refuse_words(&task)?;
    let body = plan::speakable(&task).ok_or("a plan cannot express this title or these values")?;
    Ok(PlanTask { body, ..task })
}

/// Refuses words that no plan could contain.
fn refuse_words(task: &PlanTask) -> Result<(), String> {
    if task.title.is_empty() || task.title.contains(['\n', '\r']) {
        return Err("a task has a title of one line".to_owned());
    }
    if task.accept.iter().any(|command| command.trim().is_empty()) {
        return Err("a check is a command, not an empty text".to_owned());
    }
    if task.timeout_ms == Some(0) {
        return Err("a timeout is longer than zero".to_owned());
    }
    Ok(())
}

pub(super) fn edit(step: &mut OpenStep<'_>, id: &TaskId, edit: TaskEdit) -> Reply {
    let (Some(known), Some(old)) = (step.state.tasks.get(id), step.state.plan_task(id)) else {
        return Reply::Refused { reason: format!("there is no task {id} in this run") };
    };
    if known.workflow.removed || known.workflow.health {
        let whose = if known.workflow.health { "rekindle's own repair" } else { "no longer in the plan" };
        return Reply::Refused { reason: format!("task {id} is {whose}: it cannot be edited") };
    }
    let TaskEdit { title, text, accept, artifacts, after, agent, timeout_ms } = edit;
    let task = PlanTask {
        title: title.map_or_else(|| old.title.clone(), |title| title.trim().to_owned()),
        body: text.map_or_else(|| old.body.clone(), |text| text.trim().to_owned()),
        accept: accept.unwrap_or_else(|| old.accept.clone()),
        artifacts: artifacts.unwrap_or_else(|| old.artifacts.clone()),
        blocked_by: after.unwrap_or_else(|| old.blocked_by.clone()),
        agent: agent.or_else(|| old.agent.clone()),
        timeout_ms: timeout_ms.or(old.timeout_ms),
        ..old.clone()
    };
    let task = match speakable(task) {
        Ok(task) => task,
        Err(reason) => return Reply::Refused { reason },
    };
    let parts = reload::differences(old, &task, true);
    if parts.is_empty() {
        return Reply::Already;
    }
    if let Err(reason) = reload::refuse_blockers(step.state, &task) {
        return Reply::Refused { reason };
    }
    let changed = reload::changed(step.state, task, parts);
    if let (Some(_), Some(whole)) = (changed.follow, split::whole_that_went_on(step.state, id)) {
        return Reply::Refused { reason: format!("task {id} is a part of {whole}, which has moved on: edit {whole}") };
    }
    step.emit_task(id, TaskEvent::TaskEdited(Box::new(changed)));
    go_on(step);
    Reply::Accepted
}

/// Carries out what follows at once, and reopens a finished run that has work again.
fn go_on(step: &mut OpenStep<'_>) {
    settle(step);
    let to_prove = step.state.follows.keys().any(|id| may_prove(step.state, id));
    operator::go_on_after_end(step, to_prove);
}

/// Carries out the consequences of changes that need nobody but rekindle. Merges that are under way finish first.
pub(super) fn settle(step: &mut OpenStep<'_>) {
    if step.state.follows.is_empty() {
        return;
    }
    let merging = |id: &TaskId| step.state.tasks.get(id).is_some_and(|task| task.workflow.merging.is_some());
    let due = step.state.follows.iter().filter(|(id, follow)| **follow != Follow::Prove && !merging(id));
    let due: Vec<(TaskId, Follow)> = due.map(|(id, follow)| (id.clone(), *follow)).collect();
    for (id, follow) in due {
        // It may have been settled together with an earlier one.
        if step.state.follows.get(&id) != Some(&follow) {
            continue;
        }
        match follow {
            Follow::Leave => leave(step, &id),
            Follow::Redo => redo(step, &id),
            Follow::Complete => operator::complete_for_operator(step, &id, None),
            Follow::Prove => {}
        }
    }
}

/// Skips a task that was removed from the plan; its work stays where it is.
fn leave(step: &mut OpenStep<'_>, id: &TaskId) {
    let holder = step.state.tasks[id].holder;
    operator::skip_parts(step, id);
    step.emit_task(id, TaskEvent::TaskSkipped { reason: "removed from the plan".to_owned() });
    review::after_end(step, id);
    dismiss(step, holder);
}

/// Starts a task from the beginning, because its text has changed.
fn redo(step: &mut OpenStep<'_>, id: &TaskId) {
    let holder = step.state.tasks[id].holder;
    operator::skip_parts(step, id);
    close_questions(step, id);
    reconcile::reopen(step, id, "its text was changed in the plan".to_owned(), true);
    dismiss(step, holder);
}

/// Stops an agent that works from an outdated text. Nothing is counted against its other tasks.
fn dismiss(step: &mut OpenStep<'_>, holder: Option<AttemptId>) {
    let Some(id) = holder else { return };
    attempt::end_if_settled(step, id);
    if step.state.attempts.get(&id).is_some_and(crate::state::Attempt::is_live) {
        attempt::order_stop(step, id, Cause::StoppedByOperator, false);
    }
}

/// Questions about the old text are answered by the new one. Those about an account are not about the task.
fn close_questions(step: &mut OpenStep<'_>, id: &TaskId) {
    let account = |question: &QuestionId| step.state.gates.values().any(|gate| gate.question == Some(*question));
    let open = step.state.questions.iter().filter(|(_, asked)| asked.task == *id && asked.answer.is_none());
    let open: Vec<(QuestionId, AttemptId)> =
        open.filter(|(question, _)| !account(question)).map(|(id, asked)| (*id, asked.attempt)).collect();
    for (question, attempt) in open {
        let answer = "the task was changed: read its new text".to_owned();
        let about = About { attempt: Some(attempt), task: Some(id.clone()), epoch: None };
        step.emit(about, PersonEvent::QuestionAnswered { id: question, answer, via: None });
    }
}

/// Whether a task's existing work can be proven again now.
fn may_prove(state: &State, id: &TaskId) -> bool {
    let Some(task) = state.tasks.get(id).filter(|_| state.follows.get(id) == Some(&Follow::Prove)) else {
        return false;
    };
    let ended = matches!(task.state, TaskState::Complete | TaskState::Failed);
    ended
        && task.workflow.word.is_none()
        && !task.workflow.removed
        && state.plan_task(id).is_some_and(|planned| reload::can_be_proven(state, planned))
        && state.unmet_blockers(id).is_empty()
}

/// Proves existing work with the new checks, without an agent: rekindle makes the claim itself, as it does for old
/// completions.
pub(super) fn prove(step: &mut OpenStep<'_>) {
    let running = step.state.run.as_ref().is_some_and(|run| run.phase == RunPhase::Running);
    if !running || step.state.follows.is_empty() {
        return;
    }
    let due: Vec<TaskId> = step.state.follows.keys().filter(|id| may_prove(step.state, id)).cloned().collect();
    for id in due {
        let complete = step.state.tasks[&id].state == TaskState::Complete;
        reconcile::reopen(step, &id, PROVEN_ANEW.to_owned(), !complete);
        if complete {
            step.emit_task(&id, TaskEvent::ValidationStarted {});
        }
        review::claim_for_itself(step, &id);
    }
}
