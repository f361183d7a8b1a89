//! What a person can do from a view: the acts, the description of each before it is done, and the orders it gives. Views
//! offer and confirm acts; the consequences are decided in the core, as for the same commands.

use std::sync::atomic::{AtomicU64, Ordering};

use rekindle_core::event::PauseReason;
use rekindle_core::ids::{QuestionId, TaskId};
use rekindle_core::input::{NewTask, Order, TaskEdit};
use rekindle_core::state::State;
use rekindle_core::steering::{TELL_MAX_BYTES, UNDO_MS, Undoable};
use rekindle_core::text::counted;
use rekindle_core::view::TaskRow;
use rekindle_engine::state_dir::StateDir;
use serde::Deserialize;

use crate::client::orders::{self, Taken};
use crate::error::{CliError, Result};
use crate::picture::Picture;
use crate::pinned;
use crate::project::Project;
use crate::view::View;

/// Used in place of an order's number: the newest order that can still be undone. Orders are numbered from 1.
pub(crate) const NEWEST: u64 = 0;

/// Something that a person can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Reopen a task that has ended.
    Retry(TaskId),
    RetryFailed(Vec<TaskId>),
    Skip(TaskId),
    Split(TaskId, Vec<String>),
    /// Stop a task's agent and give the task up until it is retried.
    Stop(TaskId),
    /// Stop an agent and replace it.
    Recover(String),
    Answer(QuestionId, String),
    Pause,
    /// Continue a run that has no coordinator.
    Resume,
    /// Send a message to a task's agent.
    Tell(TaskId, String),
    /// Complete a task on the person's word.
    Done(TaskId),
    /// Undo an order that has not been acted on yet.
    Undo(u64),
    /// Add a task to the run.
    Add(Addition),
    Edit(TaskId, Box<TaskEdit>),
}

/// A task to be added, in a person's words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Addition {
    /// The run that the person saw.
    pub run: Option<String>,
    pub title: String,
    pub text: String,
    /// Tasks that must be complete before this one starts.
    pub after: Vec<TaskId>,
    pub accept: Vec<String>,
}

impl Act {
    /// The verb, for a menu and a key.
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Self::Retry(_) => "retry",
            Self::RetryFailed(_) => "retry failed",
            Self::Skip(_) => "skip",
            Self::Split(..) => "split",
            Self::Stop(_) => "stop",
            Self::Recover(_) => "recover",
            Self::Answer(..) => "answer",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Tell(..) => "tell",
            Self::Done(_) => "complete",
            Self::Undo(_) => "undo",
            Self::Add(_) => "add",
            Self::Edit(_, edit) if edit.accept.is_some() => "change checks",
            Self::Edit(..) => "edit",
        }
    }

    /// The prompt for the lines that the act needs first, and the minimum number of lines; `None` if it needs none.
    pub(crate) fn asks_for(&self) -> Option<(&'static str, usize)> {
        match self {
            Self::Split(..) => Some(("Its parts, one per line", 2)),
            Self::Add(_) => Some(("Its title; below it, its checks, one per line", 1)),
            Self::Edit(_, edit) if edit.accept.is_some() => Some(("All its checks, one per line", 0)),
            Self::Edit(..) => Some(("Its new text", 1)),
            Self::Retry(_)
            | Self::RetryFailed(_)
            | Self::Skip(_)
            | Self::Stop(_)
            | Self::Recover(_)
            | Self::Answer(..)
            | Self::Pause
            | Self::Resume
            | Self::Tell(..)
            | Self::Done(_)
            | Self::Undo(_) => None,
        }
    }

    /// The text that the act would replace, for a person who changes only part of it; `None` for an act that replaces
    /// nothing.
    #[must_use]
    pub(crate) fn present(&self, pinned: &State) -> Option<String> {
        let Self::Edit(id, edit) = self else { return None };
        let task = pinned.plan_task(id)?;
        Some(if edit.accept.is_some() { task.accept.join("\n") } else { task.body.clone() })
    }

    /// The same act with the lines that the person entered.
    #[must_use]
    pub(crate) fn told(self, lines: Vec<String>) -> Self {
        match self {
            Self::Split(task, _) => Self::Split(task, lines),
            Self::Add(added) => {
                let mut lines = lines.into_iter();
                Self::Add(Addition { title: lines.next().unwrap_or_default(), accept: lines.collect(), ..added })
            }
            Self::Edit(task, edit) if edit.accept.is_some() => {
                Self::Edit(task, Box::new(TaskEdit { accept: Some(lines), ..*edit }))
            }
            Self::Edit(task, edit) => Self::Edit(task, Box::new(TaskEdit { text: Some(lines.join("\n")), ..*edit })),
            other => other,
        }
    }

    /// Whether a person must confirm the act before it is done.
    pub(crate) fn asks_first(&self) -> bool {
        !matches!(self, Self::Answer(..) | Self::Tell(..) | Self::Undo(_))
    }

    /// Why the act makes no sense now; `None` when it does.
    pub(crate) fn refusal(&self, picture: &Picture) -> Option<String> {
        let ended = has_ended;
        let find = |id: &TaskId| picture.task(id.as_str());
        match self {
            Self::Retry(id) => match find(id) {
                Some(task) if !ended(task) => Some(format!("{id} has not ended: there is nothing to retry")),
                Some(_) => None,
                None => Some(format!("there is no task {id}")),
            },
            Self::RetryFailed(ids) => ids.is_empty().then(|| "no task has failed".to_owned()),
            Self::Skip(id) | Self::Split(id, _) => match find(id) {
                Some(task) if task.state == "complete" => Some(format!("{id} is complete")),
                Some(task) if task.state == "skipped" => Some(format!("{id} is already skipped")),
                Some(_) => None,
                None => Some(format!("there is no task {id}")),
            },
            Self::Stop(id) => match find(id) {
                Some(task) if ended(task) => Some(format!("{id} has already ended")),
                Some(_) => None,
                None => Some(format!("there is no task {id}")),
            },
            Self::Recover(_) | Self::Answer(..) | Self::Add(_) => None,
            Self::Tell(id, text) => match find(id) {
                Some(task) if ended(task) => Some(format!("{id} has ended: retry it, then tell its agent")),
                Some(_) if text.len() > TELL_MAX_BYTES => Some(format!("a message may have {TELL_MAX_BYTES} bytes")),
                Some(_) => None,
                None => Some(format!("there is no task {id}")),
            },
            Self::Done(id) => match find(id) {
                Some(task) if task.state == "complete" => Some(format!("{id} is complete")),
                Some(_) => None,
                None => Some(format!("there is no task {id}")),
            },
            Self::Undo(number) => {
                let gone = !picture.run.placed.iter().any(|placed| placed.number == *number);
                gone.then(|| "it is too late: the order was carried out or undone already".to_owned())
            }
            Self::Resume if picture.coordinator.is_some() => Some("the run is being coordinated already".to_owned()),
            Self::Resume => {
                let over = matches!(picture.run.state.as_str(), "complete" | "failed");
                over.then(|| "the run is finished".to_owned())
            }
            Self::Edit(id, _) => match find(id) {
                Some(task) if task.removed => Some(format!("{id} is no longer in the plan")),
                Some(_) => None,
                None => Some(format!("there is no task {id}")),
            },
            Self::Pause => picture.coordinator.is_none().then(|| "no coordinator is running".to_owned()),
        }
    }

    /// What the act will do, in a sentence or two.
    pub(crate) fn consequence(&self, picture: &Picture) -> String {
        let live = |id: &TaskId| picture.at_work(id).map(|attempt| attempt.name.to_string());
        let stopped = |id: &TaskId| live(id).map(|agent| format!(" Its agent {agent} is stopped.")).unwrap_or_default();
        let alone = if picture.coordinator.is_none() { " It starts when you type rekindle resume." } else { "" };
        match self {
            Self::Retry(id) => {
                let redo = match picture.task(id.as_str()).map(|task| task.state.as_str()) {
                    Some("complete") => " It was complete: it is done and checked again.",
                    _ => "",
                };
                format!("{id} is reopened with all its attempts.{redo}{alone}")
            }
            Self::RetryFailed(ids) if ids.is_empty() => "No task has failed.".to_owned(),
            Self::RetryFailed(ids) => {
                let names: Vec<&str> = ids.iter().map(TaskId::as_str).collect();
                format!("{} reopened with all attempts: {}.{alone}", count(ids.len()), names.join(", "))
            }
            Self::Skip(id) => {
                let waiting = waiting_for(picture, id);
                let freed =
                    if waiting.is_empty() { String::new() } else { format!(" {waiting} can start without it.") };
                format!("{id} is skipped.{}{freed} Undo: retry it.", stopped(id))
            }
            Self::Split(id, parts) => {
                // The sentence works even before the parts are known.
                let many = if parts.is_empty() { "parts".to_owned() } else { counted(parts.len(), "part", "parts") };
                let stopped = stopped(id);
                format!("{id} is split into {many}, done in order.{stopped} This cannot be undone.")
            }
            Self::Stop(id) => {
                let waiting = waiting_for(picture, id);
                let held = if waiting.is_empty() {
                    String::new()
                } else {
                    format!(" What waits for it keeps waiting: {waiting}.")
                };
                format!("{id} is given up and counts as failed.{}{held} Undo: retry it.", stopped(id))
            }
            Self::Recover(agent) => format!(
                "{agent} is stopped. A replacement continues its work, resumed or with a brief. Its failed tasks are reopened."
            ),
            Self::Answer(id, _) => {
                format!("The answer to question {id} goes to its agent in ten seconds; until then it can be undone.")
            }
            Self::Tell(id, _) => match live(id) {
                Some(agent) => {
                    format!("{agent} gets it now where its program takes messages, else with its next prompt.")
                }
                None => format!("It goes into the brief of {id}'s next agent."),
            },
            Self::Done(id) => format!("{id} is complete on your word, without checks.{}", stopped(id)),
            Self::Undo(_) => "The order is undone; nothing has happened yet.".to_owned(),
            Self::Resume => "A coordinator is started in the background; the run continues where it stood.".to_owned(),
            Self::Add(_) => format!("A task is added to the run; the plan's file is not changed.{alone}"),
            Self::Edit(id, edit) if edit.text.is_none() && edit.title.is_none() => {
                format!(
                    "{id} is changed. If it has ended, its work is proven again by the new checks, without an agent.{alone}"
                )
            }
            Self::Edit(id, _) => {
                let ended = picture.task(id.as_str()).is_some_and(has_ended);
                let what = if ended { "is reopened with" } else { "gets" };
                format!("{id} {what} its new text.{}{alone}", stopped(id))
            }
            Self::Pause => {
                let many = picture.attempts.iter().filter(|attempt| attempt.ended_at.is_none()).count();
                format!("{}; the run stays paused until you type rekindle resume.", agents(many))
            }
        }
    }

    /// Gives the orders of the act and returns their outcome as a sentence.
    pub(crate) fn perform(&self, project: &Project) -> Result<String> {
        if *self == Self::Resume {
            return resume(project);
        }
        let (orders, done) = self.orders(project)?;
        let mut taken = Taken::Already;
        for order in &orders {
            match orders::give(project, order)? {
                Taken::Now => taken = Taken::Now,
                Taken::Placed(_) => {
                    see_to_it(project);
                    return Ok(format!("{done} in {} seconds, unless you undo it", UNDO_MS / 1_000));
                }
                Taken::NobodyThere => return Ok("no coordinator is running".to_owned()),
                Taken::Already => {}
            }
        }
        Ok(if taken == Taken::Now { done } else { "already done".to_owned() })
    }

    /// The orders of the act, and the sentence for when they are accepted.
    fn orders(&self, project: &Project) -> Result<(Vec<Order>, String)> {
        let retry = |task: &TaskId| Order::Retry { task: task.clone() };
        Ok(match self.clone() {
            Self::Retry(task) => (vec![retry(&task)], format!("task {task} is reopened")),
            Self::RetryFailed(ids) => (ids.iter().map(retry).collect(), format!("{} reopened", count(ids.len()))),
            Self::Skip(task) => {
                let done = format!("task {task} is skipped");
                (vec![with_undo(Undoable::Skip { task, reason: "skipped by the operator".to_owned() })], done)
            }
            Self::Split(task, subtasks) => {
                let done = format!("task {task} is split into {}", counted(subtasks.len(), "part", "parts"));
                (vec![Order::Split { task, subtasks }], done)
            }
            Self::Stop(task) => {
                let done = format!("task {task} is given up");
                (vec![Order::Stop { task }], done)
            }
            Self::Recover(agent) => {
                let done = format!("agent {agent} is replaced");
                (vec![Order::Recover { agent }], done)
            }
            // Question 0 is about the state itself, which has no run to put anything down in.
            Self::Answer(id, text) if id.0 == 0 => {
                (vec![Order::Answer { id, text }], format!("question {id} is answered"))
            }
            Self::Answer(id, text) => {
                (vec![with_undo(Undoable::Answer { id, text })], format!("question {id} is answered"))
            }
            Self::Tell(task, text) => {
                let done = format!("message for {task}: accepted");
                (vec![Order::Tell { task, text, key: key_of_order() }], done)
            }
            Self::Done(task) => {
                let done = format!("task {task} is complete");
                (vec![with_undo(Undoable::Complete { task, result: None })], done)
            }
            Self::Undo(number) => {
                let number = if number == NEWEST { newest_placed(project)? } else { number };
                (vec![Order::Undo { number }], "undone".to_owned())
            }
            Self::Resume => (Vec::new(), String::new()),
            Self::Pause => (vec![Order::Pause(PauseReason::Operator)], "the run pauses".to_owned()),
            Self::Add(Addition { title, text, after, accept, .. }) => {
                let id = pinned::free_id(project)?;
                let done = format!("task {id} is added");
                let new =
                    NewTask { id, title, text, after, accept, artifacts: Vec::new(), agent: None, timeout_ms: None };
                (vec![Order::Add(Box::new(new))], done)
            }
            Self::Edit(task, edit) => {
                let done = format!("task {task} is changed");
                (vec![Order::Edit { task, edit }], done)
            }
        })
    }
}

/// The newest order that can still be undone.
fn newest_placed(project: &Project) -> Result<u64> {
    let view = View::open(project)?;
    let newest = view.run()?.and_then(|run| run.row.placed.last().map(|placed| placed.number));
    newest.ok_or_else(|| CliError::refused("there is nothing to undo: orders can be undone for ten seconds"))
}

/// The same order with ten seconds in which it can be undone.
pub(crate) fn with_undo(order: Undoable) -> Order {
    Order::WithUndo { order }
}

/// Acts on the order when its time for undoing is over: without a coordinator, only this view does. If the view has been
/// closed by then, the next order or the next coordinator acts on it.
fn see_to_it(project: &Project) {
    let owner = StateDir::open(&project.state_dir).and_then(|dir| dir.owner());
    if !matches!(owner, Ok(None)) {
        return;
    }
    let project = project.clone();
    let _acted_on_later = std::thread::Builder::new().name("undo".to_owned()).spawn(move || {
        crate::ui::pause(u32::try_from(UNDO_MS).unwrap_or(u32::MAX));
        let _next_one_does = orders::give(&project, &Order::ActOnDue);
    });
}

/// Starts a coordinator in the background, as `rekindle resume --detach` does.
fn resume(project: &Project) -> Result<String> {
    let fail = |error: std::io::Error| CliError::internal("the coordinator cannot be started").because(&error);
    let mut command = std::process::Command::new(std::env::current_exe().map_err(fail)?);
    command.arg("--state-dir").arg(&project.state_dir).args(["resume", "--detach"]).current_dir(&project.root);
    let output = command.stdin(std::process::Stdio::null()).output().map_err(fail)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or_default().to_owned();
    if output.status.success() {
        Ok(first)
    } else {
        Err(CliError::refused(first).hint("in a terminal: rekindle resume"))
    }
}

/// A key for an order that must take effect once although it may be sent twice: the process id, the time and a counter.
pub(crate) fn key_of_order() -> String {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let made = MADE.fetch_add(1, Ordering::Relaxed);
    format!("{}-{}-{made}", std::process::id(), rekindle_engine::clock::wall().0)
}

/// The ids of the tasks that wait for this one; empty when there are none.
fn waiting_for(picture: &Picture, id: &TaskId) -> String {
    let waiting = picture.tasks.iter().filter(|task| task.state == "blocked" && task.blocked_by.contains(id));
    waiting.map(|task| task.id.to_string()).collect::<Vec<_>>().join(", ")
}

fn has_ended(task: &TaskRow) -> bool {
    matches!(task.state.as_str(), "complete" | "failed" | "skipped")
}

fn count(many: usize) -> String {
    if many == 1 { "1 task is".to_owned() } else { format!("{many} tasks are") }
}

fn agents(many: usize) -> String {
    match many {
        0 => "No agent is running".to_owned(),
        1 => "1 agent writes a checkpoint and stops".to_owned(),
        many => format!("{many} agents write checkpoints and stop"),
    }
}
