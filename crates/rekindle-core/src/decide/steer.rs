//! A person's messages to agents, and tasks that a person holds: which agent gets a message and when, and when a task is
//! given back.

use super::{About, OpenStep, Reply, attempt, stream};
use crate::cause::Cause;
use crate::event::PersonEvent;
use crate::ids::{AttemptId, TaskId};
use crate::state::{Attempt, AttemptPhase, RunPhase, State, TaskState};
use crate::steering::{CHANGED_MAX_BYTES, How, PersonProcess, TELL_MAX_BYTES, TELLS_WAITING, TellStage};
use crate::text;

/// Takes a person's message to the agent of a task.
pub(super) fn tell(step: &mut OpenStep<'_>, id: &TaskId, words: &str, key: String) -> Reply {
    let refused = |reason: String| Reply::Refused { reason };
    let clean = text::sanitize(words);
    let clean = clean.trim();
    if clean.is_empty() {
        return refused("there is nothing to tell: the message is empty".to_owned());
    }
    if clean.len() > TELL_MAX_BYTES {
        let (has, most) = (clean.len(), TELL_MAX_BYTES);
        return refused(format!(
            "the message has {has} bytes and may have {most}: write it into a file that {id} can read, and tell its name"
        ));
    }
    let Some(task) = step.state.tasks.get(id) else { return refused(format!("there is no task {id} in this run")) };
    let over = match task.state {
        TaskState::Complete => Some("is complete"),
        TaskState::Failed => Some("has failed"),
        TaskState::Skipped => Some("is skipped"),
        TaskState::Pending | TaskState::InProgress | TaskState::Blocked => None,
    };
    if let Some(over) = over {
        return refused(format!("task {id} {over}: reopen it first (rekindle task retry {id}), then tell it"));
    }
    if !key.is_empty() && step.state.steering.tells.values().any(|tell| tell.key == key) {
        return Reply::Already;
    }
    let waiting = step.state.tells_of(id).filter(|(_, tell)| tell.stage == TellStage::Waiting).count();
    if waiting >= TELLS_WAITING {
        return refused(format!("{waiting} messages wait for {id}'s agent already: they come with its next brief"));
    }
    put_down(step, id, clean.to_owned(), key, false);
    Reply::Accepted
}

fn put_down(step: &mut OpenStep<'_>, id: &TaskId, text: String, key: String, given_back: bool) {
    let number = step.state.steering.last_tell + 1;
    step.emit_task(id, PersonEvent::Told { number, text, key, given_back });
}

/// Sends waiting messages to agents that take messages while they run: one message at a time each, so that their order is
/// kept.
pub(super) fn deliver(step: &mut OpenStep<'_>) {
    if step.state.waiting_tells().next().is_none() {
        return;
    }
    let live: Vec<AttemptId> = step.state.live_attempts().map(|(id, _)| id).collect();
    for id in live {
        if !takes(step.state, id) {
            continue;
        }
        let next = step.state.waiting_tells().find(|(_, tell)| holds(step.state, id, &tell.task));
        let Some((number, text)) = next.map(|(number, tell)| (number, words(number, &tell.task, &tell.text))) else {
            continue;
        };
        stream::carry(step, id, text, number);
    }
}

/// Whether a message may go to an attempt now: it is running, takes messages, and none is on its way to it.
fn takes(state: &State, id: AttemptId) -> bool {
    let Some(found) = state.attempts.get(&id) else { return false };
    let running = state.run.as_ref().is_some_and(|run| run.phase == RunPhase::Running);
    let listens = found.phase == AttemptPhase::Running && found.stop.is_none() && !found.cli_session.input_closed;
    let under_way = state
        .steering
        .tells
        .values()
        .any(|tell| matches!(tell.stage, TellStage::Sent { attempt, .. } if attempt == id));
    running && listens && !under_way && state.limits.traits_of(&found.cli).takes_messages
}

/// Whether an attempt has a task open that a message is about.
fn holds(state: &State, id: AttemptId, about: &TaskId) -> bool {
    state.open_tasks(id).iter().any(|task| state.concerns(about, task))
}

/// A message as its agent reads it.
fn words(number: u64, task: &TaskId, text: &str) -> String {
    format!(
        "Message {number} from the person who runs this, about task {task}. Follow it, then continue your work and report it as \
         before:\n\n{text}"
    )
}

/// A message was written to a running agent's input. Reminders from rekindle itself are acknowledged too, and change
/// nothing.
pub(super) fn message_taken(step: &mut OpenStep<'_>, id: AttemptId, number: u32) -> Reply {
    let sent = TellStage::Sent { attempt: id, number };
    let tell = step.state.steering.tells.iter().find(|(_, tell)| tell.stage == sent).map(|(number, _)| *number);
    let Some(tell) = tell else { return Reply::Already };
    delivered(step, tell, id, How::Message);
    Reply::Accepted
}

/// An agent is running: it has received what was in its prompt.
pub(super) fn prompted(step: &mut OpenStep<'_>, id: AttemptId) {
    let in_prompt = TellStage::InPrompt { attempt: id };
    let tells = step.state.steering.tells.iter().filter(|(_, tell)| tell.stage == in_prompt);
    let tells: Vec<u64> = tells.map(|(number, _)| *number).collect();
    for number in tells {
        delivered(step, number, id, How::Prompt);
    }
}

fn delivered(step: &mut OpenStep<'_>, number: u64, attempt: AttemptId, how: How) {
    let task = step.state.steering.tells.get(&number).map(|tell| tell.task.clone());
    step.emit(About { attempt: Some(attempt), task, epoch: None }, PersonEvent::TellDelivered { number, attempt, how });
}

/// Gives a task to a person: the agent that is working on it is stopped, and no other is started.
pub(super) fn attach(step: &mut OpenStep<'_>, id: &TaskId, by: PersonProcess) -> Reply {
    if let Some(held) = step.state.steering.attached.get(id) {
        if held.by == by {
            return Reply::Already;
        }
        let reason = format!("task {id} is held already, by process {}: it is given back when that ends", held.by.pid);
        return Reply::Refused { reason };
    }
    if let Some(reason) = not_attachable(step.state, id) {
        return Reply::Refused { reason };
    }
    let Some(last) = step.state.tasks[id].last_attempt() else {
        let reason = format!(
            "no agent has worked on {id} yet, so there is no session to open: rekindle tell {id} TEXT puts your words into its brief"
        );
        return Reply::Refused { reason };
    };
    step.emit_task(id, PersonEvent::Attached { by, attempt: last });
    for attempt in in_the_way(step.state, id) {
        attempt::order_stop(step, attempt, Cause::StoppedByOperator, false);
    }
    Reply::Accepted
}

/// Why a person cannot have a task now.
fn not_attachable(state: &State, id: &TaskId) -> Option<String> {
    let Some(task) = state.tasks.get(id) else { return Some(format!("there is no task {id} in this run")) };
    if task.state.is_terminal() {
        return Some(format!("task {id} has ended: reopen it first (rekindle task retry {id})"));
    }
    if task.is_being_proven() {
        return Some(format!("the work of {id} is being checked right now: try again in a moment"));
    }
    if task.is_in_parts() {
        let parts: Vec<&str> = task.workflow.parts.iter().map(TaskId::as_str).collect();
        return Some(format!("{id} is split: attach to one of its parts ({})", parts.join(", ")));
    }
    let workspace = state.workspace_of(id);
    let neighbour =
        state.steering.attached.keys().find(|other| workspace.is_some() && state.workspace_of(other) == workspace);
    neighbour.map(|other| format!("{id} is worked on in the same workspace as {other}, which is held already"))
}

/// Living attempts on a task, or in its workspace.
fn in_the_way(state: &State, id: &TaskId) -> Vec<AttemptId> {
    let (root, workspace) = (state.root_of(id), state.workspace_of(id));
    let theirs =
        |task: &TaskId| state.root_of(task) == root || (workspace.is_some() && state.workspace_of(task) == workspace);
    let on_it = |attempt: &Attempt| attempt.tasks.iter().any(theirs);
    state.live_attempts().filter(|(_, attempt)| on_it(attempt)).map(|(id, _)| id).collect()
}

/// A person's program has ended: the task is given back, and the agent that continues it is told what changed.
pub(super) fn detach(step: &mut OpenStep<'_>, id: &TaskId, by: &PersonProcess, changed: Vec<String>) -> Reply {
    if step.state.steering.attached.get(id).is_none_or(|held| held.by != *by) {
        return Reply::Already;
    }
    let mut room = CHANGED_MAX_BYTES;
    let fits = |line: &String| {
        room = room.saturating_sub(line.len() + 1);
        room > 0
    };
    let one_line = |line: String| text::one_line(&line, CHANGED_MAX_BYTES);
    let changed: Vec<String> = changed.into_iter().map(one_line).take_while(fits).collect();
    let words = changed.join("\n");
    step.emit_task(id, PersonEvent::Detached { changed });
    if step.state.tasks.get(id).is_some_and(|task| !task.state.is_terminal()) {
        put_down(step, id, words, String::new(), true);
    }
    Reply::Accepted
}
