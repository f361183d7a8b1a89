//! The life and the end of an attempt: the cause of its end, and what becomes of the work it held.

use super::{
    About, OpenStep, Reply, gate, health, hold, review, session, setup, split, steer, strategy, team, unreported,
};
use crate::cause::Cause;
use crate::event::{AttemptEvent, MachineEvent, PersonEvent, RunEvent, TaskEvent};
use crate::ids::{AttemptId, Epoch, QuestionId, TaskId};
use crate::last_words;
use crate::policy::{self, Next};
use crate::report::Exit;
use crate::state::{Attempt, AttemptPhase, State, Task, TaskState};
use crate::strategy::Strategy;
use crate::text;

/// Longest wait for a byte of the model's answer. Providers send something at least every 15 seconds while a model thinks; this is
/// six times as long.
const ANSWER_MS: u64 = 90_000;

pub(super) fn started(step: &mut OpenStep<'_>, id: AttemptId, pid: u32, shim_pid: u32, own_bytes: u64) -> Reply {
    match step.state.attempts.get(&id) {
        Some(attempt) if attempt.phase == AttemptPhase::Starting => {
            step.emit_attempt(id, AttemptEvent::AgentStarted { attempt: id, pid, shim_pid, own_bytes });
            setup::started(step, id);
            steer::prompted(step, id);
            Reply::Accepted
        }
        _ => Reply::Already,
    }
}

/// An exit record. It may come twice or late: only the first for a live attempt of that epoch counts.
pub(super) fn exited(step: &mut OpenStep<'_>, id: AttemptId, epoch: Epoch, exit: Exit) -> Reply {
    match step.state.attempts.get(&id) {
        Some(attempt) if attempt.is_live() && attempt.epoch == epoch => {}
        _ => return Reply::Already,
    }
    step.emit_attempt(id, AttemptEvent::AttemptExited { attempt: id, exit });
    end_if_settled(step, id);
    Reply::Accepted
}

/// Ends an attempt whose process is gone, once none of its claims is being proven any more.
pub(super) fn end_if_settled(step: &mut OpenStep<'_>, id: AttemptId) {
    let Some(attempt) = step.state.attempts.get(&id) else {
        return;
    };
    if attempt.phase != AttemptPhase::Exited {
        return;
    }
    let open = step.state.open_tasks(id);
    if open.iter().any(|task| step.state.tasks[task].is_being_proven()) {
        return;
    }
    let in_progress: Vec<_> =
        open.iter().filter(|task| step.state.tasks[*task].state == TaskState::InProgress).collect();
    let mut cause = cause_of_exit(attempt, !in_progress.is_empty());
    if cause == Cause::Completed && ended_by_operator(step.state, attempt) {
        cause = Cause::StoppedByOperator;
    }
    if cause == Cause::ExitedIncomplete {
        // It asked and exited, which is allowed: that is not a failure, however soon the answer came.
        let asked =
            attempt.cli_session.asked || in_progress.iter().all(|task| step.state.open_question(task).is_some());
        let found = if asked { Some(Cause::WaitingForInput) } else { unreported::cause(step, id) };
        let Some(found) = found else { return };
        cause = found;
    }
    // An end without a report is asked about once before it counts.
    let ended = &step.state.attempts[&id];
    // A session that could not be resumed does not cost an attempt either: a fresh agent follows, so this cannot go on for
    // ever.
    let in_vain = ended.cli_session.strategy == Strategy::Resume && matches!(cause, Cause::StartFailed { .. });
    let may_count = !in_vain && !strategy::lacks_report(step.state, ended, &cause);
    end(step, id, &cause, may_count);
}

/// Whether an agent was stopped because the operator ended all of its tasks: it has completed nothing.
fn ended_by_operator(state: &State, attempt: &Attempt) -> bool {
    let stopped = attempt.stop.as_ref().is_some_and(|stop| stop.cause == Cause::StoppedByOperator);
    let done = |task: &TaskId| state.tasks.get(task).is_some_and(|task| task.state == TaskState::Complete);
    stopped && !attempt.tasks.iter().any(done)
}

/// One cause from the evidence at hand: an order of ours first, then what the agent's own stream said, then what the operating
/// system says.
fn cause_of_exit(attempt: &Attempt, work_open: bool) -> Cause {
    if !work_open {
        return Cause::Completed;
    }
    if let Some(stop) = &attempt.stop {
        return stop.cause.clone();
    }
    if let Some(cause) = attempt.cli_session.failure.as_ref().and_then(crate::activity::Failure::cause) {
        return cause;
    }
    match attempt.exit.as_ref() {
        Some(Exit { refused: Some(refusal), .. }) => Cause::Machine(refusal.clone().into()),
        Some(Exit { start_error: Some(reason), .. }) => Cause::StartFailed { reason: reason.clone() },
        Some(Exit { out_of_memory: true, memory_cap, .. }) => Cause::OutOfMemory { cap: *memory_cap },
        Some(Exit { code: Some(0), .. }) => Cause::ExitedIncomplete,
        Some(Exit { code, signal, .. }) => Cause::Crashed { code: *code, signal: *signal },
        None => Cause::ShimLost,
    }
}

pub(super) fn lost(step: &mut OpenStep<'_>, id: AttemptId, with_host: bool) -> Reply {
    if !step.state.attempts.get(&id).is_some_and(crate::state::Attempt::is_live) {
        return Reply::Already;
    }
    let found = &step.state.attempts[&id];
    let stopped = found.stop.as_ref().map(|stop| stop.cause.clone());
    // What its stream reported before its shim was lost still holds: the next agent would meet the same limit.
    let told = || found.cli_session.failure.as_ref().and_then(crate::activity::Failure::cause);
    let cause = if with_host { Cause::HostLost } else { stopped.or_else(told).unwrap_or(Cause::ShimLost) };
    end_once_proven(step, id, cause, true);
    Reply::Accepted
}

pub(super) fn not_started(step: &mut OpenStep<'_>, id: AttemptId, reason: String) -> Reply {
    if !step.state.attempts.get(&id).is_some_and(crate::state::Attempt::is_live) {
        return Reply::Already;
    }
    end_once_proven(step, id, Cause::StartFailed { reason }, true);
    Reply::Accepted
}

/// Ends an attempt whose process is gone or never existed. What it claimed, or an operator completed, is proven and merged
/// first; its end is recorded after that.
pub(super) fn end_once_proven(step: &mut OpenStep<'_>, id: AttemptId, cause: Cause, may_count: bool) {
    if step.state.open_tasks(id).iter().any(|task| step.state.tasks[task].is_being_proven()) {
        step.emit_attempt(id, AttemptEvent::StopOrdered { attempt: id, cause, at_once: true });
        step.emit_attempt(id, AttemptEvent::AttemptExited { attempt: id, exit: Exit::default() });
    } else {
        end(step, id, &cause, may_count);
    }
}

/// The output of an attempt that has ended cannot be read to its end: this is recorded before the rest of the attempt is
/// decided.
pub(super) fn output_unreadable(step: &mut OpenStep<'_>, id: AttemptId, reason: &str) -> Reply {
    if !step.state.attempts.get(&id).is_some_and(Attempt::is_live) {
        return Reply::Already;
    }
    let detail = format!("its output cannot be read to its end, so its last words may be missing: {reason}");
    session::note_found(step, id, "output_unreadable", &detail);
    Reply::Accepted
}

pub(super) fn silent(step: &mut OpenStep<'_>, id: AttemptId, quiet_ms: u64, evidence: String) -> Reply {
    let Some(attempt) = step.state.attempts.get(&id) else {
        return Reply::Already;
    };
    let waits_for_person = step.state.waits_for_person(id);
    let proving = step.state.open_tasks(id).iter().any(|task| step.state.tasks[task].is_being_proven());
    if attempt.phase != AttemptPhase::Running || attempt.stop.is_some() || waits_for_person || proving {
        return Reply::Already;
    }
    let cause = hang_cause(step.state, attempt);
    if team::asks_first(step, id) {
        return Reply::Accepted;
    }
    step.emit_attempt(id, AttemptEvent::AgentHung { attempt: id, quiet_ms, evidence });
    order_stop(step, id, cause, false);
    if step.state.attempts[&id].cli_session.status_asked.is_some() {
        let standing = team::standing(step.state);
        step.emit_run(RunEvent::TeamChecked(standing));
    }
    Reply::Accepted
}

/// What silence means, depending on the agent's stage.
fn hang_cause(state: &State, attempt: &Attempt) -> Cause {
    match stage(state, attempt) {
        SilenceStage::BeforeFirstEvent => Cause::HungBeforeFirstEvent,
        SilenceStage::AtWork => Cause::HungMidStream,
        SilenceStage::AfterResult => Cause::HungAfterResult,
    }
}

/// An agent's stage, as far as silence is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SilenceStage {
    BeforeFirstEvent,
    AtWork,
    AfterResult,
}

fn stage(state: &State, attempt: &Attempt) -> SilenceStage {
    let structured_output = state.limits.has(&attempt.cli, |traits| traits.structured_output);
    match (&attempt.cli_session.session, attempt.cli_session.turn_ended) {
        (_, Some(_)) => SilenceStage::AfterResult,
        (None, None) if structured_output => SilenceStage::BeforeFirstEvent,
        _ => SilenceStage::AtWork,
    }
}

/// How long an agent may be silent, depending on its stage.
pub fn silence_limit_ms(state: &State, attempt: &Attempt) -> u64 {
    let limits = &state.limits;
    match stage(state, attempt) {
        SilenceStage::BeforeFirstEvent => limits.first_event_ms,
        SilenceStage::AtWork => limits.silence_ms,
        SilenceStage::AfterResult => limits.after_result_ms,
    }
}

/// How long an agent that waits for its model may go without a byte of the answer, or `hang.silence` if that is shorter.
/// `None` if it is unknown whether it waits for its model.
///
/// After an attempt that hung, the whole `hang.silence` counts: a model that thinks for minutes without a byte is slow, not
/// gone, and must not use up a task's attempts.
pub fn answer_limit_ms(state: &State, attempt: &Attempt) -> Option<u64> {
    let tells_it =
        state.limits.has(&attempt.cli, |traits| traits.shows_calls) && stage(state, attempt) == SilenceStage::AtWork;
    let hung_before = |task: &TaskId| {
        let last = state.tasks.get(task).and_then(|task| task.last_cause.as_ref());
        last.is_some_and(|cause| cause.name() == Cause::HungMidStream.name())
    };
    (tells_it && !attempt.tasks.iter().any(hung_before)).then(|| state.limits.silence_ms.min(ANSWER_MS))
}

/// Orders a stop, unless an equally urgent one was already ordered.
pub(super) fn order_stop(step: &mut OpenStep<'_>, id: AttemptId, cause: Cause, at_once: bool) {
    // An agent whose process is gone has exited on its own: an order would only hide the real cause.
    let Some(attempt) = step.state.attempts.get(&id).filter(|attempt| attempt.is_live()) else {
        return;
    };
    let cause = match &attempt.stop {
        Some(stop) if stop.at_once || !at_once => return,
        Some(stop) => stop.cause.clone(),
        None => cause,
    };
    step.emit_attempt(id, AttemptEvent::StopOrdered { attempt: id, cause, at_once });
}

/// Repeats a stop that had no effect, this time without grace.
pub(super) fn repeat_stop(step: &mut OpenStep<'_>, id: AttemptId) {
    let Some(cause) = step.state.attempts.get(&id).and_then(|found| found.stop.as_ref()).map(|stop| stop.cause.clone())
    else {
        return;
    };
    step.emit_attempt(id, AttemptEvent::StopOrdered { attempt: id, cause, at_once: true });
}

/// Ends an attempt and settles every task that it held.
pub(super) fn end(step: &mut OpenStep<'_>, id: AttemptId, cause: &Cause, may_count: bool) {
    let held: Vec<TaskId> = step
        .state
        .open_tasks(id)
        .into_iter()
        .filter(|task| step.state.tasks[task].state == TaskState::InProgress)
        .collect();
    if let (Cause::Crashed { code, signal }, false) = (cause, held.is_empty()) {
        step.emit_attempt(id, AttemptEvent::AgentCrashed { attempt: id, code: *code, signal: *signal });
    }
    let words = step.state.attempts.get(&id).filter(|_| *cause != Cause::Completed);
    let last_words = words.and_then(|found| last_words::short(&found.cli_session.last_words));
    step.emit_attempt(id, AttemptEvent::AttemptEnded { attempt: id, cause: cause.clone(), last_words });
    if let Cause::Machine(refused) = cause {
        hold::strike(step, refused.into());
    } else if matches!(cause, Cause::OutOfMemory { cap: None }) {
        hold::out_of_memory(step, id);
    } else if *cause == Cause::Completed {
        gate::widen_for(step, id);
    } else {
        gate::close_for(step, id, cause, &held);
    }
    for task in held {
        retry_or_end(step, &task, cause, may_count);
    }
    open_breaker(step, id);
}

/// What becomes of a task whose attempt is over: another attempt, a wait, or its end.
pub(super) fn retry_or_end(step: &mut OpenStep<'_>, id: &TaskId, cause: &Cause, may_count: bool) {
    let task = &step.state.tasks[id];
    let row = policy::row(cause);
    let counted = row.counts && may_count && !is_first_want(task, cause);
    if let Some(question) = step.state.open_question(id) {
        step.emit_task(id, TaskEvent::TaskParked { question });
        return;
    }
    let limit = step.state.attempt_limit(id);
    let role =
        task.holder.and_then(|holder| step.state.attempts.get(&holder)).map_or_else(Default::default, |a| a.role);
    if task.crashes >= policy::QUARANTINE_CRASHES && counted {
        let detail = format!("its agent was lost in {} coordinator crashes: set aside for a person", task.crashes);
        return fail(step, id, "quarantined", detail);
    }
    if counted && !step.state.limits.recover {
        return fail(step, id, "recovery_off", format!("{}; recovery is off", cause.words()));
    }
    if counted && task.tries() >= limit {
        let limit = text::counted(limit, "attempt", "attempts");
        let told = format!("{}; {} of {limit} used", failure_words(step, id, cause), task.tries());
        let detail = unreported::detail(step, id, told);
        let reason = unreported::limit_reason(step, id, role, cause);
        return match (task.workflow.health, role.reviews()) {
            (true, _) => health::ask_person(step, id, &detail),
            (false, true) => review::reviewer_exhausted(step, id, role, &reason, detail),
            (false, false) => fail(step, id, &reason, detail),
        };
    }
    let run = step.state.run.as_ref().map(|run| run.id.to_string()).unwrap_or_default();
    let wait_ms = if row.next == Next::RetryAfterBackoff && counted {
        policy::backoff_ms(step.state.limits.backoff_ms, task.tries(), &format!("{run} {id} {}", task.tries()))
    } else {
        0
    };
    let used = if counted { task.tries() } else { task.tries().saturating_sub(1) };
    let next = policy::when_next(cause, wait_ms);
    let limit = text::counted(limit, "attempt", "attempts");
    let reason = format!("{}; {used} of {limit} used, next {next}", failure_words(step, id, cause));
    let not_before = (wait_ms > 0).then(|| step.now.plus_ms(wait_ms));
    step.emit_task(id, TaskEvent::TaskRequeued { cause: cause.clone(), counted, not_before, reason });
    split::suggest(step, id);
}

/// Whether this is the first time in a row that the machine ran out of memory while the task ran. Anything may have caused
/// that, so it costs nothing; a task whose next agent meets it again pays, so that this cannot go on for ever.
fn is_first_want(task: &Task, cause: &Cause) -> bool {
    let machine = Cause::OutOfMemory { cap: None };
    *cause == machine && task.last_cause.as_ref() != Some(&machine)
}

/// The cause in words, with what to do about it, and with what the last checks said about the claim.
fn failure_words(step: &OpenStep<'_>, id: &TaskId, cause: &Cause) -> String {
    let task = &step.state.tasks[id];
    let cli = task.last_attempt().and_then(|last| step.state.attempts.get(&last)).map(|last| last.cli.as_str());
    let remedy = cli.and_then(|cli| cause.remedy(cli)).map(|remedy| format!(": {remedy}"));
    let words = format!("{}{}", cause.words(), remedy.unwrap_or_default());
    match &task.evidence {
        Some(evidence) if !evidence.passed() => format!("{words}; {}", evidence.complaint()),
        _ => words,
    }
}

pub(super) fn fail(step: &mut OpenStep<'_>, id: &TaskId, reason: &str, detail: String) {
    let text = format!("task {id} failed: {detail}");
    step.emit_task(id, TaskEvent::WorkflowFailed { reason: reason.to_owned(), detail });
    let choices = vec![
        format!("rekindle why {id}"),
        format!("rekindle task retry {id}"),
        format!("rekindle task skip {id}"),
        format!("rekindle task split {id} 'FIRST PART' 'SECOND PART'"),
        format!("clarify it: rekindle task edit {id} --text TEXT (or --timeout, --accept)"),
    ];
    step.emit_task(id, PersonEvent::PersonAlerted { text, choices });
}

/// Records a question that rekindle itself asks, in the name of the attempt that met the problem.
pub(super) fn ask_person(
    step: &mut OpenStep<'_>,
    id: AttemptId,
    task: &TaskId,
    text: String,
    context: String,
) -> Option<QuestionId> {
    let question = QuestionId(step.state.last_question + 1);
    let options = vec!["done".to_owned()];
    let about =
        About { attempt: Some(id), task: Some(task.clone()), epoch: step.state.tasks.get(task).map(|t| t.epoch) };
    step.emit(
        about,
        PersonEvent::QuestionAsked {
            id: question,
            attempt: id,
            text: text.clone(),
            options,
            context,
            takes_work: false,
        },
    );
    step.emit_task(
        task,
        PersonEvent::PersonAlerted { text, choices: vec![format!("rekindle answer {question} done")] },
    );
    Some(question)
}

fn open_breaker(step: &mut OpenStep<'_>, id: AttemptId) {
    let cli = step.state.attempts[&id].cli.clone();
    let failed = step.state.breakers.get(&cli).map_or(0, |breaker| breaker.failed_starts);
    if failed >= policy::BREAKER_FAILED_STARTS {
        let until = step.now.plus_ms(policy::BREAKER_PAUSE_MS);
        step.emit_run(MachineEvent::BreakerOpened { cli, until });
    }
}
