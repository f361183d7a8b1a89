//! A worktree that could not be set up: the task pays nothing, a person is asked once for all tasks that meet it, and one of
//! them retries from time to time. A set-up that works withdraws the question.

use super::{About, OpenStep, Reply, attempt, session};
use crate::cause::Cause;
use crate::event::{MachineEvent, PauseReason, PersonEvent};
use crate::ids::{AttemptId, Epoch, QuestionId, TaskId};
use crate::input::SetupSeen;
pub use crate::state::{RETRY, STOP, WITHOUT};
use crate::state::{RunPhase, State, TaskState};
use crate::time::Time;

/// Wait before rekindle's own first retry: a registry that was busy answers again in a minute.
const FIRST_MS: u64 = 60_000;

/// Longest wait between two retries: a fix that is made without an answer is noticed within this time.
const LONGEST_MS: u64 = 15 * 60_000;

/// Doublings from the first wait to the longest.
const DOUBLINGS: u32 = 4;

/// Records that a set-up started or ended.
pub(super) fn seen(step: &mut OpenStep<'_>, task: &TaskId, seen: SetupSeen) -> Reply {
    if !step.state.tasks.contains_key(task) {
        return Reply::Already;
    }
    match seen {
        SetupSeen::Started { command } => step.emit_task(task, MachineEvent::SetupStarted { command }),
        SetupSeen::Finished { took_ms } => {
            step.emit_task(task, MachineEvent::SetupFinished { took_ms });
            withdraw(step);
        }
    }
    Reply::Accepted
}

/// The worktree of an attempt could not be set up, so the attempt never started.
pub(super) fn failed(step: &mut OpenStep<'_>, id: AttemptId, task: &TaskId, reason: String) -> Reply {
    if !step.state.attempts.get(&id).is_some_and(crate::state::Attempt::is_live) {
        return Reply::Already;
    }
    put_down(step, Some(id), task, &reason);
    attempt::end_once_proven(step, id, Cause::SetupFailed { reason }, false);
    Reply::Accepted
}

/// The worktree in which a claim is to be proven could not be set up. The claim stands: it is proven once the set-up works.
pub(super) fn not_proven(step: &mut OpenStep<'_>, task: &TaskId, epoch: Epoch, reason: &str) -> Reply {
    let claim = step.state.tasks.get(task).and_then(|task| task.claim.as_ref());
    if claim.is_none_or(|claim| claim.epoch != epoch) {
        return Reply::Already;
    }
    put_down(step, None, task, reason);
    Reply::Accepted
}

/// The one question for all tasks that meet it, and when it is tried again.
fn put_down(step: &mut OpenStep<'_>, id: Option<AttemptId>, task: &TaskId, reason: &str) {
    let wait = step.state.preparing.setup.as_ref();
    let failures = wait.map_or(0, |wait| wait.failures);
    let known = wait.map(|wait| wait.asked.question);
    let retry_at = step.now.plus_ms((FIRST_MS << failures.min(DOUBLINGS)).min(LONGEST_MS));
    let question = known.unwrap_or_else(|| ask(step, id, task, reason));
    let (question, retry_at) = (Some(question), Some(retry_at));
    step.emit_task(task, MachineEvent::SetupFailed { reason: reason.to_owned(), question, retry_at });
}

/// Tasks whose claims wait for a set-up.
pub(super) fn claims(state: &State) -> Vec<TaskId> {
    let asked = state.preparing.setup.iter().flat_map(|wait| &wait.asked.tasks);
    asked.filter(|id| state.claim_waits_for_set_up(id)).cloned().collect()
}

/// What was asked is answered: the claims that waited for it are proven.
pub(super) fn prove_again(step: &mut OpenStep<'_>, claims: &[TaskId]) {
    for task in claims {
        step.emit_task(task, MachineEvent::SetupRetried { retry_at: step.now.plus_ms(LONGEST_MS) });
    }
}

/// Checks were run: the set-up that was tried again for them has worked.
pub(super) fn checked(step: &mut OpenStep<'_>, task: &TaskId) {
    let retrying = step.state.preparing.setup.as_ref().and_then(|wait| wait.retrying.as_ref());
    if retrying == Some(task) {
        withdraw(step);
    }
}

fn ask(step: &mut OpenStep<'_>, id: Option<AttemptId>, task: &TaskId, reason: &str) -> QuestionId {
    let text = format!(
        "The set-up of the worktree of {task} failed: {reason}. Fix it ([worktree] in rekindle.toml, or what it runs), then answer \
         `{RETRY}`. It is also tried again automatically."
    );
    let context = "tasks that need the set-up wait for this; no attempt is counted".to_owned();
    let options = vec![RETRY.to_owned(), WITHOUT.to_owned(), STOP.to_owned()];
    put(step, id, task, (text, context, options))
}

/// Records a question that rekindle itself asks, with numbered options.
pub(super) fn put(
    step: &mut OpenStep<'_>,
    id: Option<AttemptId>,
    task: &TaskId,
    (text, context, options): (String, String, Vec<String>),
) -> QuestionId {
    let question = QuestionId(step.state.last_question + 1);
    let epoch = step.state.tasks.get(task).map(|task| task.epoch);
    let about = About { attempt: id, task: Some(task.clone()), epoch };
    let attempt = id.unwrap_or(AttemptId(0));
    let numbered = |(at, option): (usize, &String)| format!("rekindle answer {question} {}   ({option})", at + 1);
    let choices = options.iter().enumerate().map(numbered).collect();
    let asked =
        PersonEvent::QuestionAsked { id: question, attempt, text: text.clone(), options, context, takes_work: false };
    step.emit(about, asked);
    step.emit_task(task, PersonEvent::PersonAlerted { text, choices });
    question
}

/// What a person's answer to a question about a set-up or about checks means for the run.
pub(super) fn answered(step: &mut OpenStep<'_>, answer: &str) {
    if answer.trim().eq_ignore_ascii_case(STOP) {
        session::pause(step, PauseReason::Operator);
    }
}

/// A set-up has worked: the question about it is withdrawn, and the tasks that wait may retry.
pub(super) fn withdraw(step: &mut OpenStep<'_>) {
    let Some(id) = step.state.preparing.setup.as_ref().map(|wait| wait.asked.question) else { return };
    // A question about a task that ended long ago is no longer known; the tasks that wait for it are.
    let asked = step.state.questions.get(&id);
    let (attempt, task) = (asked.map(|question| question.attempt), asked.map(|question| question.task.clone()));
    let about = About { attempt, task, epoch: None };
    let answer = "withdrawn: the set-up works now".to_owned();
    let claims = claims(step.state);
    step.emit(about, PersonEvent::QuestionAnswered { id, answer, via: None });
    prove_again(step, &claims);
}

/// An agent is running: the set-up that it retried has worked.
pub(super) fn started(step: &mut OpenStep<'_>, id: AttemptId) {
    let retrying = step.state.preparing.setup.as_ref().and_then(|wait| wait.retrying.as_ref());
    let holds = |task: &TaskId| step.state.tasks.get(task).is_some_and(|task| task.holder == Some(id));
    if retrying.is_some_and(holds) {
        withdraw(step);
    }
}

/// When a failed set-up is retried.
pub(super) fn retry_at(state: &State) -> Option<Time> {
    let running = state.run.as_ref().is_some_and(|run| run.phase == RunPhase::Running);
    state.preparing.setup.as_ref().map(|wait| wait.retry_at).filter(|_| running)
}

fn is_open(state: &State, task: &TaskId) -> bool {
    state.tasks.get(task).is_some_and(|task| !task.state.is_terminal())
}

/// Lets one of the waiting tasks retry it.
pub(super) fn retry(step: &mut OpenStep<'_>) {
    let Some(wait) = &step.state.preparing.setup else { return };
    let waits = |id: &&TaskId| {
        let task = step.state.tasks.get(*id);
        task.is_some_and(|task| {
            let free = matches!(task.state, TaskState::Pending | TaskState::Blocked) && task.holder.is_none();
            free || task.claim.is_some()
        })
    };
    match wait.asked.tasks.iter().chain(&wait.retrying).find(waits).cloned() {
        Some(task) => {
            let again = step.now.plus_ms(LONGEST_MS);
            step.emit_task(&task, MachineEvent::SetupRetried { retry_at: again });
        }
        // A task is already retrying it.
        None if wait.retrying.as_ref().is_some_and(|task| is_open(step.state, task)) => {
            step.emit_run(MachineEvent::SetupRetried { retry_at: step.now.plus_ms(LONGEST_MS) });
        }
        // No task needs it any more.
        None => withdraw(step),
    }
}
