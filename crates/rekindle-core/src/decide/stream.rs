//! What an agent's own stream says about it: its session, its measures, what it forgot, how its turn ended.

use std::borrow::Cow;

use super::{OpenStep, Reply, attempt, gate, team};
use crate::activity::{Failure, Measure, StreamEvent, Transcript, UnderWay};
use crate::brief::{self, reloads};
use crate::cause::Cause;
use crate::event::{AgentStalled, CompactionNear, CompactionOver, SessionClosed, SessionEvent};
use crate::ids::AttemptId;
use crate::limits::Traits;
use crate::progress::Progress;
use crate::role::Role;
use crate::state::{Attempt, AttemptPhase, CliSession, State, TaskState};
use crate::time::Time;

/// How often measures are recorded while nothing else depends on them: often enough for a gauge, rarely enough for a log.
const MEASURE_EVERY_MS: u64 = 10_000;

/// Two compactions with at most this many answers of the model between them are a loop.
const LOOP_TURNS: u64 = 4;

/// Calls within which an agent must be seen working on its task after a compaction.
const ON_TASK_CALLS: u64 = 10;

/// Time within which it must be seen working on its task.
const ON_TASK_MS: u64 = 5 * 60 * 1000;

/// Reminders to one attempt: an agent that ends its turn more often with open work is replaced.
const REMINDERS_MAX: u32 = 3;

/// How long an agent has to save a checkpoint before its work is handed over for lack of context.
pub(super) const CHECKPOINT_MS: u64 = 30_000;

/// Sessions, failures and ends of turns that one attempt may report: far more than any work takes, few enough for a log.
pub(super) const WORDS_MAX: u32 = 1_000;

pub(super) fn streamed(step: &mut OpenStep<'_>, id: AttemptId, event: StreamEvent) -> Reply {
    if !step.state.attempts.get(&id).is_some_and(Attempt::is_live) {
        return Reply::Already;
    }
    if cli_session(step.state, id).words >= WORDS_MAX {
        attempt::order_stop(step, id, Cause::StalledNoProgress, false);
        return Reply::Already;
    }
    team::answered(step, id);
    match event {
        StreamEvent::Session { id: session, model } => session_known(step, id, session, model),
        StreamEvent::Measured(measure) => measured(step, id, measure),
        StreamEvent::Compacted { automatic, turns, calls } => compacted(step, id, automatic, turns, calls),
        StreamEvent::Failed(failure) => failed(step, id, failure),
        StreamEvent::Result { ok } => turn_ended(step, id, ok),
        StreamEvent::Stalled { times, words, printed } => stalled(step, id, times, &words, &printed),
        StreamEvent::Acted => on_task(step, id),
        StreamEvent::Called { calls } => called(step, id, calls),
    }
    Reply::Accepted
}

fn cli_session(state: &State, id: AttemptId) -> &CliSession {
    &state.attempts[&id].cli_session
}

fn traits(state: &State, id: AttemptId) -> Cow<'_, Traits> {
    state.limits.traits_of(&state.attempts[&id].cli)
}

fn session_known(step: &mut OpenStep<'_>, id: AttemptId, session: String, model: Option<String>) {
    let known = cli_session(step.state, id);
    let news = known.session.as_ref() != Some(&session) || (model.is_some() && known.model != model);
    if !news {
        return;
    }
    let expected = known.resumes.clone().filter(|expected| *expected != session && known.session.is_none());
    let lost = expected.clone();
    step.emit_attempt(id, SessionEvent::AgentSession { attempt: id, session_id: session.clone(), model, expected });
    if let Some(expected) = lost {
        // It started afresh with a prompt that was meant for an agent that remembers.
        let reason = format!("session {expected} should have been resumed, but {session} was started");
        attempt::order_stop(step, id, Cause::StartFailed { reason }, true);
    }
}

fn measured(step: &mut OpenStep<'_>, id: AttemptId, measure: Measure) {
    let known = cli_session(step.state, id);
    let first = known.measured_at.is_none();
    let threshold = step.state.limits.compaction.threshold_percent;
    let low = measure.remaining_percent().is_some_and(|left| left <= threshold);
    let due = known.measured_at.is_none_or(|at| step.now.since_ms(at) >= MEASURE_EVERY_MS);
    // A budget is exact: usage that counts for it is recorded at once.
    let counts = step.state.limits.budget.counts_usage() && measure.usage != known.measure.usage;
    if due || low || counts {
        note_measure(step, id, measure);
    }
    if first {
        gate::widen_for(step, id);
    }
    if low {
        prepare_compaction(step, id, measure.remaining_percent().unwrap_or(0));
    }
}

/// Records a measure, if it is news.
pub(super) fn note_measure(step: &mut OpenStep<'_>, id: AttemptId, measure: Measure) {
    let known = step.state.attempts.get(&id).map(|found| found.cli_session.measure);
    if known.is_some_and(|known| known != measure) {
        step.emit_attempt(id, SessionEvent::AgentMeasured { attempt: id, measure });
    }
}

/// The context is nearly full. The agent gets no further task and is asked for a checkpoint if it takes messages; its
/// program then compacts on its own, or its work is handed over.
fn prepare_compaction(step: &mut OpenStep<'_>, id: AttemptId, context_remaining: u8) {
    let known = cli_session(step.state, id);
    if known.preparing.is_some() || step.state.attempts[&id].stop.is_some() {
        return;
    }
    let compaction_number = known.compactions + 1;
    step.emit_attempt(
        id,
        SessionEvent::CompactionStart(CompactionNear { attempt: id, compaction_number, context_remaining }),
    );
    if traits(step.state, id).takes_messages {
        let text = format!(
            "Only {context_remaining} % of your context is left. Before you do anything else, save a checkpoint of your task \
             with rekindle: what is done, what is left, which files. Then continue."
        );
        tell(step, id, text, false);
    } else if !traits(step.state, id).compacts {
        attempt::order_stop(step, id, Cause::ContextExhausted, false);
    }
}

/// Asks an agent to save a checkpoint because the run is being paused. Returns whether it takes messages.
pub(super) fn ask_for_checkpoint(step: &mut OpenStep<'_>, id: AttemptId) -> bool {
    if !hears(step.state, id) {
        return false;
    }
    let text = "The run is being paused. Save a checkpoint of your task with rekindle now: what is done, what is left, which \
                files. You will be stopped then, and somebody continues from it later.";
    tell(step, id, text.to_owned(), false);
    true
}

/// Whether an agent is running and takes messages meanwhile.
pub(super) fn hears(state: &State, id: AttemptId) -> bool {
    let found = &state.attempts[&id];
    let at_work = found.phase == AttemptPhase::Running && found.cli_session.turn_ended.is_none();
    let open = found.stop.is_none() && !found.cli_session.input_closed;
    at_work && open && traits(state, id).takes_messages && !state.open_tasks(id).is_empty()
}

/// When the work of an agent that cannot compact is handed over although it did not save a checkpoint.
pub(super) fn hand_over_at(state: &State, id: AttemptId) -> Option<Time> {
    let found = state.attempts.get(&id)?;
    let since = found.cli_session.preparing?;
    (!state.limits.traits_of(&found.cli).compacts).then(|| since.plus_ms(CHECKPOINT_MS))
}

fn compacted(step: &mut OpenStep<'_>, id: AttemptId, automatic: Option<bool>, turns: u64, calls: u64) {
    let before = cli_session(step.state, id).compacted_at_turn;
    let prepared = cli_session(step.state, id).preparing.is_some();
    let current = step.state.open_tasks(id).into_iter().next();
    let compactions = current.as_ref().map_or(0, |task| step.state.tasks[task].compactions) + 1;
    step.emit_attempt(
        id,
        SessionEvent::AgentCompacted(crate::event::AgentCompacted {
            attempt: id,
            compactions,
            automatic,
            turns,
            calls,
        }),
    );
    let compaction_number = cli_session(step.state, id).compactions;
    // A compaction that was not prepared for is reported only if something follows from it.
    if prepared || reloads(compaction_number) {
        compaction_over(step, id, compaction_number);
    }
    if before.is_some_and(|before| turns.saturating_sub(before) <= LOOP_TURNS) {
        return attempt::order_stop(step, id, Cause::CompactionLoop, false);
    }
    // What its predecessors forgot does not count against it.
    let before = current.as_ref().map_or(0, |task| step.state.tasks[task].compactions_before);
    if compactions - before >= step.state.limits.compaction.hand_over_after.max(1) {
        return attempt::order_stop(step, id, Cause::Compacted, false);
    }
    let able = traits(step.state, id);
    if able.reinjects {
        return;
    }
    if able.takes_messages {
        let text = notice(step.state, id);
        tell(step, id, text, true);
    } else {
        attempt::order_stop(step, id, Cause::Compacted, false);
    }
}

/// What an agent without a hook is told after a compaction: the same notice that a hook gives to others.
fn notice(state: &State, id: AttemptId) -> String {
    let Some(mut facts) = brief::facts_from(state, id) else { return String::new() };
    let run = state.run.as_ref().map(|run| run.id.to_string()).unwrap_or_default();
    facts.nonce = format!("{run} {id} {}", state.attempts[&id].cli_session.compactions);
    facts.channels =
        brief::ReportChannels { program: Some("rekindle".to_owned()), signals: true, mcp: traits(state, id).mcp };
    brief::reinject(&facts)
}

/// A compaction that was prepared for is over: the agent continues, or another has taken over.
pub(super) fn compaction_over(step: &mut OpenStep<'_>, attempt: AttemptId, compaction_number: u32) {
    let (full_reload, progress) = (reloads(compaction_number), Progress::of(step.state));
    let over = CompactionOver { attempt, compaction_number, full_reload, progress };
    step.emit_attempt(attempt, SessionEvent::CompactionComplete(over));
}

fn on_task(step: &mut OpenStep<'_>, id: AttemptId) {
    if cli_session(step.state, id).astray.is_some() {
        step.emit_attempt(id, SessionEvent::AgentOnTask { attempt: id });
    }
}

/// An agent spoke about its task: whatever it forgot, it is working on it.
pub(super) fn reported(step: &mut OpenStep<'_>, id: AttemptId) {
    team::answered(step, id);
    if step.state.attempts.get(&id).is_some_and(|found| found.cli_session.astray.is_some()) {
        on_task(step, id);
    }
}

fn called(step: &mut OpenStep<'_>, id: AttemptId, calls: u64) {
    let Some(astray) = cli_session(step.state, id).astray else { return };
    if calls.saturating_sub(astray.calls) >= ON_TASK_CALLS {
        lost_its_thread(step, id);
    }
}

/// When a compacted agent must have been seen working on its task.
pub(super) fn astray_at(state: &State, id: AttemptId) -> Option<Time> {
    let found = state.attempts.get(&id)?;
    let astray = found.cli_session.astray.filter(|_| !state.open_tasks(id).is_empty());
    astray.map(|astray| astray.since.plus_ms(ON_TASK_MS))
}

/// The agent has not been seen working on its task since a compaction: it is told once more if it takes messages, then its
/// work is handed over.
pub(super) fn lost_its_thread(step: &mut OpenStep<'_>, id: AttemptId) {
    let Some(astray) = cli_session(step.state, id).astray else { return };
    if step.state.attempts[&id].stop.is_some() {
        return;
    }
    if astray.told_again || !traits(step.state, id).takes_messages {
        return attempt::order_stop(step, id, Cause::Compacted, false);
    }
    remind(step, id, "You have not been seen at your task since your context was compacted.");
}

/// An agent loops. The first time it is told, if it takes messages; the second time without a report in between it is
/// stopped, and a fresh agent is told what did not work. The message does not quote what a tool printed, because those are
/// not our words.
fn stalled(step: &mut OpenStep<'_>, id: AttemptId, times: u32, words: &str, printed: &str) {
    if step.state.attempts[&id].stop.is_some() {
        return;
    }
    let again = cli_session(step.state, id).circled;
    let printed = format!("{words}, which ended with: {printed}");
    step.emit_attempt(id, SessionEvent::AgentStalled(AgentStalled { attempt: id, times, words: printed }));
    if again {
        return attempt::order_stop(step, id, Cause::StalledNoProgress, false);
    }
    if !hears(step.state, id) {
        return;
    }
    let text = format!(
        "You are going round in circles: {words}. Stop repeating it. Say what you have learned, then try something different; if \
         only a person can help, ask with rekindle (ask), and if it cannot be done, report it (task_fail). If this continues you \
         will be replaced."
    );
    tell(step, id, text, false);
}

fn failed(step: &mut OpenStep<'_>, id: AttemptId, failure: Failure) {
    let cause = failure.cause().unwrap_or(Cause::StalledNoProgress);
    let runaway = failure.runaway;
    step.emit_attempt(id, SessionEvent::AgentFailed { attempt: id, failure });
    if runaway {
        attempt::order_stop(step, id, cause, false);
    }
}

/// An agent ended its turn. If it waits for messages it is told once what is still open, otherwise it is let go.
fn turn_ended(step: &mut OpenStep<'_>, id: AttemptId, ok: bool) {
    step.emit_attempt(id, SessionEvent::TurnEnded { attempt: id, ok });
    after_turn(step, id);
}

/// What follows when an agent's turn is over and none of its claims is being proven.
pub(super) fn after_turn(step: &mut OpenStep<'_>, id: AttemptId) {
    let Some(found) = step.state.attempts.get(&id) else { return };
    let known = &found.cli_session;
    let waits = found.is_live() && found.stop.is_none() && known.turn_ended.is_some() && !known.input_closed;
    if !waits || !traits(step.state, id).takes_messages {
        return;
    }
    let open = step.state.open_tasks(id);
    if open.iter().any(|task| step.state.tasks[task].is_being_proven()) {
        return;
    }
    if open.is_empty() && team::hand_next(step, id) {
        return;
    }
    let Some(known) = step.state.attempts.get(&id).map(|found| &found.cli_session) else { return };
    let asked = open.iter().any(|task| step.state.open_question(task).is_some());
    if open.is_empty() || asked || known.failure.is_some() || known.preparing.is_some() || !remindable(known) {
        step.emit_attempt(id, SessionEvent::InputClosed { attempt: id });
        return;
    }
    remind(step, id, "You ended your turn.");
}

/// Whether a reminder may still help: not twice without a report in between, and not for ever.
fn remindable(known: &CliSession) -> bool {
    !known.reminded && known.reminders < REMINDERS_MAX
}

/// Tells an agent what is open and how to report it.
fn remind(step: &mut OpenStep<'_>, id: AttemptId, why: &str) {
    let open = step.state.open_tasks(id);
    let current = open.iter().find(|task| step.state.tasks[*task].state == TaskState::InProgress).or(open.first());
    let Some(current) = current else { return };
    let title = step.state.plan_task(current).map(|task| task.title.clone()).unwrap_or_default();
    let checks = match step.state.tasks[current].evidence.as_ref().filter(|evidence| !evidence.passed()) {
        Some(evidence) => format!(" Its last check did not pass: {}.", evidence.complaint()),
        None => String::new(),
    };
    let tool = match step.state.attempts[&id].role {
        Role::Critic => Some("review"),
        Role::Auditor | Role::HealthAuditor => Some("audit"),
        Role::Developer | Role::Remediation => None,
    };
    let what = match tool {
        Some(tool) => format!(
            "{why} The work of task {current} ({title}) is not judged yet. Finish looking at it and give your verdict with rekindle \
             ({tool}), or ask if only a person can decide. An end without a verdict counts as a failed attempt."
        ),
        None => format!(
            "{why} Task {current} ({title}) is still open.{checks} Look at what is done, finish it and report it with rekindle \
             (task_done), save a checkpoint if you have to stop, ask if only a person can decide, or report task_fail if it \
             cannot be done. An end without a report counts as a failed attempt."
        ),
    };
    tell(step, id, what, true);
}

/// Records a message for a running agent; it is delivered once this is durable.
pub(super) fn tell(step: &mut OpenStep<'_>, id: AttemptId, text: String, reminder: bool) {
    let number = cli_session(step.state, id).told.last().map_or(1, |told| told.number + 1);
    step.emit_attempt(id, SessionEvent::AgentTold { attempt: id, number, text, reminder, tell: None });
}

/// The same for a person's message.
pub(super) fn carry(step: &mut OpenStep<'_>, id: AttemptId, text: String, tell: u64) {
    let number = cli_session(step.state, id).told.last().map_or(1, |told| told.number + 1);
    step.emit_attempt(id, SessionEvent::AgentTold { attempt: id, number, text, reminder: false, tell: Some(tell) });
}

/// Tells a running agent what a person answered.
pub(super) fn answered(step: &mut OpenStep<'_>, id: AttemptId, question: &str, answer: &str) {
    let Some(found) = step.state.attempts.get(&id) else { return };
    let hears = found.is_live() && found.stop.is_none() && !found.cli_session.input_closed;
    if hears && traits(step.state, id).takes_messages {
        tell(step, id, format!("Your question \"{question}\" was answered: {answer}"), false);
    }
}

/// Records what an agent that has ended left of its own session, and its last measures.
pub(super) fn session_closed(
    step: &mut OpenStep<'_>,
    id: AttemptId,
    measure: Measure,
    (transcript, cut_off, under_way): (Transcript, Option<String>, UnderWay),
) -> Reply {
    if !step.state.attempts.get(&id).is_some_and(Attempt::is_live) {
        return Reply::Already;
    }
    note_measure(step, id, measure);
    step.emit_attempt(id, SessionEvent::SessionClosed(SessionClosed { attempt: id, transcript, cut_off, under_way }));
    Reply::Accepted
}
