//! Splitting a task: its parts become tasks of their own, in order, and the whole is proven when they have ended.

use super::{About, OpenStep, Reply, attempt, operator, report};
use crate::cause::Cause;
use crate::event::{Added, PersonEvent, TaskEvent};
use crate::ids::{AttemptId, TaskId};
use crate::plan::PlanTask;
use crate::review::Stage;
use crate::state::{State, TaskState};
use crate::text;

/// Parts of one task: more are a plan, not a split.
const PARTS_MAX: usize = 20;

/// How deep parts may be split again.
const DEPTH_MAX: usize = 3;

/// Longest title of a part; its text has all the words.
const TITLE_MAX_BYTES: usize = 120;

/// Compactions or timeouts on a task after which a split is proposed.
const TOO_LARGE: u32 = 2;

/// Splits a task, for the agent that is working on it or for a person.
pub(super) fn split(step: &mut OpenStep<'_>, id: &TaskId, by: Option<AttemptId>, subtasks: Vec<String>) -> Reply {
    let Some(task) = step.state.tasks.get(id) else {
        return Reply::Refused { reason: format!("there is no task {id} in this run") };
    };
    if task.split == subtasks && !task.workflow.parts.is_empty() {
        return Reply::Already;
    }
    // A person may split a task that failed because it was too large.
    let failed = by.is_none() && task.state == TaskState::Failed;
    let parts: Vec<(TaskId, String)> = match named_parts(step, id, failed, &subtasks) {
        Ok(parts) => parts,
        Err(reason) => return Reply::Refused { reason },
    };
    if failed {
        operator::reopen_for_operator(step, id);
    }
    let Some(planned) = step.state.plan_task(id).cloned() else { return Reply::Already };
    let holder = step.state.tasks[id].holder;
    step.emit_task(id, TaskEvent::SplitProposed { subtasks });
    let epoch = by.and_then(|by| step.state.attempts.get(&by)).map(|found| found.epoch);
    let of = parts.len();
    let mut before: Option<TaskId> = None;
    for (number, (part, words)) in parts.into_iter().enumerate() {
        let blocked_by = before.map_or_else(|| planned.blocked_by.clone(), |before| vec![before]);
        let task = part_of(&planned, &part, &words, (number + 1, of), blocked_by);
        let added = Added { task, parent: Some(id.clone()), health: false, holder: by };
        step.emit(About { attempt: by, task: Some(part.clone()), epoch }, TaskEvent::TaskAdded(Box::new(added)));
        before = Some(part);
    }
    match (by, holder) {
        (Some(by), _) => report::go_on(step, by),
        // The agent that had the whole exits; the parts are handed out anew.
        (None, Some(holder)) => attempt::order_stop(step, holder, Cause::StoppedByOperator, false),
        (None, None) => {}
    }
    Reply::Accepted
}

/// The whole that a part belongs to, if it no longer waits for its parts: reopening a part would be pointless.
pub(super) fn whole_that_went_on(state: &State, id: &TaskId) -> Option<TaskId> {
    let whole = state.tasks.get(id)?.workflow.parent.clone()?;
    let task = state.tasks.get(&whole)?;
    if task.waits_for_parts() && task.workflow.parts.contains(id) {
        whole_that_went_on(state, &whole)
    } else {
        Some(whole)
    }
}

fn named_parts(
    step: &OpenStep<'_>,
    id: &TaskId,
    failed: bool,
    subtasks: &[String],
) -> Result<Vec<(TaskId, String)>, String> {
    let task = &step.state.tasks[id];
    if subtasks.is_empty() || subtasks.len() > PARTS_MAX {
        return Err(format!("a split of task {id} names one to {PARTS_MAX} parts"));
    }
    if let Some(whole) = whole_that_went_on(step.state, id) {
        return Err(format!("task {id} is a part of {whole}, which has moved on: there is nothing to split"));
    }
    let ended = task.state.is_terminal() && !failed;
    if ended || task.is_being_proven() || task.workflow.stage != Stage::Implement {
        return Err(format!("task {id} is no longer being worked on: there is nothing to split"));
    }
    if !task.workflow.parts.is_empty() {
        let parts: Vec<String> = task.workflow.parts.iter().map(ToString::to_string).collect();
        return Err(format!("task {id} was split already, into {}; split one of those", parts.join(", ")));
    }
    let mut depth = 1;
    let mut above = task.workflow.parent.as_ref();
    while let Some(parent) = above {
        depth += 1;
        above = step.state.tasks.get(parent).and_then(|task| task.workflow.parent.as_ref());
    }
    if depth > DEPTH_MAX {
        return Err(format!("task {id} is a part of a part already: finish it in one go"));
    }
    // Names of an earlier split stay with its parts.
    let names = (1_u32..).map_while(|number| TaskId::new(format!("{id}.{number}")).ok());
    let free = names.filter(|part| !step.state.tasks.contains_key(part));
    let named: Vec<_> = subtasks.iter().cloned().zip(free).map(|(words, part)| (part, words)).collect();
    if named.len() < subtasks.len() {
        return Err(format!("the parts of task {id} cannot be named {id}.1, {id}.2, …: its own name is too long"));
    }
    Ok(named)
}

fn part_of(
    whole: &PlanTask,
    id: &TaskId,
    words: &str,
    (number, of): (usize, usize),
    blocked_by: Vec<TaskId>,
) -> PlanTask {
    let body = format!(
        "Part {number} of {of} of task {}: {}\n\n{words}\n\nThe whole task, for context; do only your part of it:\n\n{}",
        whole.id, whole.title, whole.body
    );
    PlanTask {
        id: id.clone(),
        title: text::one_line(words, TITLE_MAX_BYTES).to_string(),
        body,
        blocked_by,
        // The whole is proven by its own artifacts and checks when all parts have ended.
        artifacts: Vec::new(),
        accept: Vec::new(),
        done: false,
        ..whole.clone()
    }
}

/// Suggests splitting a task that was too large again and again: once, to its next agent and to a person.
pub(super) fn suggest(step: &mut OpenStep<'_>, id: &TaskId) {
    let task = &step.state.tasks[id];
    if task.workflow.too_large != TOO_LARGE
        || !task.workflow.parts.is_empty()
        || task.workflow.stage != Stage::Implement
    {
        return;
    }
    let reason = format!("{TOO_LARGE} compactions or timeouts: it is too large for one go");
    step.emit_task(id, TaskEvent::SplitSuggested { reason: reason.clone() });
    let choices = vec![format!("rekindle task split {id} 'FIRST PART' 'SECOND PART'"), format!("rekindle why {id}")];
    step.emit_task(id, PersonEvent::PersonAlerted { text: format!("task {id} should be split: {reason}"), choices });
}
