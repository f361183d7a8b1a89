//! What a pull request means for the run: a change of it is recorded once, and comments on it become rework once, for the
//! commit that they are about and for no other.

use std::collections::BTreeMap;

use super::{About, OpenStep, Reply, operator, reconcile, reload, split};
use crate::event::{Added, ReviewEvent, RunEvent, TaskEvent};
use crate::ids::{TaskId, check_name};
use crate::input::NewTask;
use crate::pull_request::{
    FIELD_MAX_BYTES, Feedback, KnownPullRequest, POINT_MAX_BYTES, POINTS_MAX, Point, PointKind, PullRequestAction,
    PullRequestChange, PullRequestStage, TAKEN_MAX,
};
use crate::review::{Findings, Rework, ReworkSource};
use crate::state::{State, TaskState};
use crate::text;

/// Characters of a commit that a sentence shows.
const SHORT_COMMIT: usize = 12;

/// The instructions for a task that exists only for the feedback.
const TASK_TEXT: &str = "The work of this run is published as a pull request, and its reviewers or its CI ask for changes that belong to no \
    single task. What they said is quoted with this task. Make the changes, as far as they serve the plan's goal, and keep everything else \
    working.";

/// Records what became of the pull request. Recording the same twice counts once.
pub(super) fn change(step: &mut OpenStep<'_>, change: PullRequestChange) -> Reply {
    if let Err(reason) = fit(&change) {
        return Reply::Refused { reason };
    }
    let known = step.state.run.as_ref().and_then(|run| run.pull_request.clone());
    // A merged pull request stays merged: what arrives late was true before.
    let late = known.as_ref().is_some_and(|known| {
        let same = known.at.id == change.at.id;
        known.stage == PullRequestStage::Merged && same && change.action != PullRequestAction::Answered
    });
    let after = KnownPullRequest::after(known.clone(), &change);
    if late || known.as_ref() == Some(&after) {
        return Reply::Already;
    }
    step.emit_run(RunEvent::PullRequest(Box::new(change)));
    Reply::Accepted
}

/// Refuses what no forge would say.
fn fit(change: &PullRequestChange) -> Result<(), String> {
    let at = &change.at;
    let fields = [&at.forge, &at.remote, &at.id, &at.url, &at.branch, &at.base, &at.head];
    let plain = |field: &&String| field.len() <= FIELD_MAX_BYTES && text::one_line(field, FIELD_MAX_BYTES) == **field;
    if !fields.iter().all(plain) || change.points.iter().any(|id| !plain(&id)) {
        return Err("a pull request's fields are short texts of one line".to_owned());
    }
    let named = check_name(&at.id).is_ok() || (at.id.is_empty() && change.action == PullRequestAction::Opening);
    if named { Ok(()) } else { Err(format!("{:?} is not the number of a pull request", at.id)) }
}

/// Turns feedback into rework: for the task that made what it is about, or for a new one.
pub(super) fn feedback(step: &mut OpenStep<'_>, feedback: Feedback) -> Reply {
    let Some(known) = step.state.run.as_ref().and_then(|run| run.pull_request.clone()) else {
        return Reply::Refused { reason: "this run has no pull request".to_owned() };
    };
    if let Err(reason) = is_current(&known, &feedback) {
        return Reply::Refused { reason };
    }
    let Feedback { points, .. } = feedback;
    let mut seen = known.taken.clone();
    let new: Vec<Point> = points.into_iter().filter(|point| seen.insert(point.id.clone())).collect();
    if new.is_empty() {
        return Reply::Already;
    }
    if known.taken.len() + new.len() > TAKEN_MAX {
        let reason = format!("{} has more than {TAKEN_MAX} comments: no more are taken", known.name());
        return Reply::Refused { reason };
    }
    let new_task = match new.iter().any(|point| owner(step.state, point).is_none()) {
        true => match task_for_all(step.state, &known) {
            Ok(added) => Some(added),
            Err(reason) => return Reply::Refused { reason },
        },
        false => None,
    };
    let ids = new.iter().map(|point| point.id.clone()).collect();
    let change = PullRequestChange { action: PullRequestAction::Reworked, at: known.at.clone(), points: ids };
    let mut of_task: BTreeMap<TaskId, Vec<Point>> = BTreeMap::new();
    for point in new {
        let task = owner(step.state, &point).or_else(|| new_task.as_ref().map(|added| added.task.id.clone()));
        if let Some(task) = task {
            of_task.entry(task).or_default().push(point);
        }
    }
    step.emit_run(RunEvent::PullRequest(Box::new(change)));
    if let Some(added) = new_task {
        let about = About { attempt: None, task: Some(added.task.id.clone()), epoch: None };
        step.emit(about, TaskEvent::TaskAdded(Box::new(added)));
    }
    for (task, points) in of_task {
        send_back(step, &known, &task, points);
    }
    operator::go_on_after_end(step, false);
    Reply::Accepted
}

/// Only feedback on the commit that the pull request shows now counts.
fn is_current(known: &KnownPullRequest, feedback: &Feedback) -> Result<(), String> {
    if known.stage != PullRequestStage::Open || known.at.id != feedback.id {
        return Err(format!("{} is not the open pull request of this run", feedback.id));
    }
    if known.at.head != feedback.head {
        let short = |commit: &str| text::truncate_bytes(commit, SHORT_COMMIT).to_owned();
        return Err(format!(
            "that was said about commit {}, and {} shows {} by now",
            short(&feedback.head),
            known.name(),
            short(&known.at.head)
        ));
    }
    let fits = |point: &Point| {
        let short = [&point.id, &point.by, &point.place].iter().all(|field| field.len() <= FIELD_MAX_BYTES);
        short && !point.id.is_empty() && point.text.len() <= POINT_MAX_BYTES
    };
    if feedback.points.len() > POINTS_MAX || !feedback.points.iter().all(fits) {
        return Err(format!("at most {POINTS_MAX} points of {POINT_MAX_BYTES} bytes are taken at once"));
    }
    Ok(())
}

/// The task that a point goes to: it is complete, and not by a person's word.
fn owner(state: &State, point: &Point) -> Option<TaskId> {
    let id = point.task.as_ref()?;
    let task = state.tasks.get(id)?;
    let workflow = &task.workflow;
    let open = task.state == TaskState::Complete && workflow.word.is_none() && !workflow.removed && !workflow.health;
    (open && split::whole_that_went_on(state, id).is_none()).then(|| id.clone())
}

/// A task for points that belong to no task: it is proven by every check of the completed work.
fn task_for_all(state: &State, known: &KnownPullRequest) -> Result<Added, String> {
    let id = state.free_task_id().ok_or("no number is free for another task")?;
    let mut accept: Vec<String> = Vec::new();
    let complete = state.tasks.iter().filter(|(_, task)| task.state == TaskState::Complete && !task.workflow.removed);
    for command in complete.filter_map(|(id, _)| state.plan_task(id)).flat_map(|planned| &planned.accept) {
        if !accept.contains(command) {
            accept.push(command.clone());
        }
    }
    let task = reload::planned(
        state,
        NewTask {
            id,
            title: format!("Address the feedback on {}", known.name()),
            text: TASK_TEXT.to_owned(),
            after: Vec::new(),
            accept,
            artifacts: Vec::new(),
            agent: None,
            timeout_ms: None,
        },
    )?;
    Ok(Added { task, parent: None, health: false, holder: None })
}

fn send_back(step: &mut OpenStep<'_>, known: &KnownPullRequest, id: &TaskId, points: Vec<Point>) {
    if step.state.tasks.get(id).is_some_and(|task| task.state.is_terminal()) {
        reconcile::reopen(step, id, format!("{} asks for changes", known.name()), true);
    }
    let issues = points.iter().map(issue).collect();
    let context = format!("All of it was said about commit {} of {} ({}).", known.at.head, known.name(), known.at.url);
    let findings = Findings { issues, required: Vec::new(), passed: Vec::new() };
    let rework = Rework { source: ReworkSource::PullRequest, findings, context };
    step.emit_task(id, ReviewEvent::TaskRework(rework));
}

/// A point in the form that its agent reads, behind the fence.
fn issue(point: &Point) -> String {
    let by = text::one_line(&point.by, FIELD_MAX_BYTES);
    let place = text::one_line(&point.place, FIELD_MAX_BYTES);
    let at = if place.is_empty() { String::new() } else { format!(" at {place}") };
    let words = text::sanitize(&point.text);
    let words = words.trim();
    match point.kind {
        PointKind::Ci => format!("the CI job {by} fails:\n{words}"),
        PointKind::Comment => format!("{by} wrote{at}:\n{words}"),
        PointKind::Conflict => words.to_owned(),
    }
}
