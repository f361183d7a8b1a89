//! How events change what is known of an agent's own session, and of the accounts that agents share.

use crate::activity::Problem;
use crate::cause::Cause;
use crate::event::{Body, Event};
use crate::ids::{AttemptId, QuestionId};
use crate::last_words;
use crate::report::Door;
use crate::state::{Astray, AttemptPhase, Gate, Native, State, TOLD_KEPT, Told};
use crate::time::Time;

pub(super) fn apply(state: &mut State, event: &Event) {
    let now = event.time;
    match &event.body {
        Body::AgentSession { attempt, session_id, model, .. } => on(state, *attempt, |native| {
            native.words += 1;
            native.session = Some(session_id.clone());
            native.model = model.clone().or(native.model.take());
        }),
        Body::AgentMeasured { attempt, measure } => on(state, *attempt, |native| {
            native.measure = *measure;
            native.measured_at = Some(now);
        }),
        Body::AgentCompacted(crate::event::AgentCompacted { attempt, turns, calls, .. }) => {
            on(state, *attempt, |native| {
                native.compactions += 1;
                native.compacted_at_turn = Some(*turns);
                native.astray = Some(Astray { since: now, calls: *calls, told_again: false });
            });
            if let Some(task) = &event.task {
                state.change_task(task, |task| task.compactions += 1);
            }
        }
        Body::AgentStalled(stalled) => on(state, stalled.attempt, |native| {
            native.words += 1;
            native.stalled = Some(stalled.words.clone());
            native.circled = true;
        }),
        Body::AgentOnTask { attempt } => on(state, *attempt, |native| native.astray = None),
        Body::CompactionStart(near) => on(state, near.attempt, |native| native.preparing = Some(now)),
        Body::CompactionComplete(over) => on(state, over.attempt, |native| native.preparing = None),
        Body::AgentTold { attempt, number, text, reminder } => on(state, *attempt, |native| {
            told(native, now, Told { number: *number, text: text.clone() }, *reminder);
        }),
        Body::StatusAsked { attempt } => on(state, *attempt, |native| native.status_asked = Some(now)),
        Body::StatusAnswered { attempt } => on(state, *attempt, |native| native.status_asked = None),
        Body::InputClosed { attempt } => on(state, *attempt, |native| native.input_closed = true),
        Body::AgentFailed { attempt, failure } => on(state, *attempt, |native| {
            native.words += 1;
            native.failure = Some(failure.clone());
        }),
        Body::TurnEnded { attempt, ok } => on(state, *attempt, |native| {
            native.words += 1;
            native.turn_ended = Some(now);
            note_turn(native, *ok);
            // A program that gives up because it goes round in circles ends its turn all the same.
            let looping = native.failure.as_ref().is_some_and(|failure| failure.problem == Problem::Looping);
            if *ok && !looping {
                native.failure = None;
            }
        }),
        Body::AgentSaid(said) => on(state, said.attempt, |native| {
            native.words += 1;
            native.last_words.clone_from(&said.text);
            native.asks = said.asks;
        }),
        Body::SessionClosed(closed) => on(state, closed.attempt, |native| {
            native.transcript = Some(closed.transcript);
            native.cut_off.clone_from(&closed.cut_off);
            native.under_way.clone_from(&closed.under_way);
        }),
        _ => {}
    }
}

/// Notes that an agent runs: started with so many bytes of our own, or found alive.
pub(super) fn begun(state: &mut State, event: &Event, attempt: AttemptId) {
    on(state, attempt, |native| match &event.body {
        Body::AgentStarted { own_bytes, .. } => native.own_bytes += own_bytes,
        _ => native.adopted = true,
    });
}

fn told(native: &mut Native, now: Time, message: Told, reminder: bool) {
    native.own_bytes += message.text.len() as u64;
    native.told.push(message);
    let excess = native.told.len().saturating_sub(TOLD_KEPT);
    native.told.drain(..excess);
    native.reminded |= reminder;
    native.reminders += u32::from(reminder);
    native.turn_ended = None;
    if let Some(astray) = native.astray.as_mut().filter(|_| reminder) {
        astray.told_again = true;
        astray.since = now;
    }
}

/// Notes how a turn ended, and whether it was one more in a row that ended in a question.
fn note_turn(native: &mut Native, ok: bool) {
    native.turn_failed = !ok;
    let asks = ok && last_words::ends_in_question(&native.last_words);
    native.asking = if asks { native.asking + 1 } else { 0 };
}

/// Notes that an agent spoke of its task: it is at it.
pub(super) fn heard(state: &mut State, event: &Event) {
    let attempt = match &event.body {
        Body::TaskClaimed { attempt, door: Door::Unreported, .. } => {
            return on(state, *attempt, |native| native.looked = true);
        }
        // A person took its work: it has said nothing more itself.
        Body::TaskClaimed { door: Door::Operator, .. } => None,
        // A question of rekindle's own about its work is no word of the agent's either, but its attempt waits for the answer.
        Body::QuestionAsked { attempt, takes_work: true, .. } => {
            return on(state, *attempt, |native| native.asked = true);
        }
        Body::TaskClaimed { attempt, .. }
        | Body::TaskFailReported { attempt, .. }
        | Body::QuestionAsked { attempt, .. } => Some(*attempt),
        Body::CheckpointSaved { .. } => {
            event.task.as_ref().and_then(|task| state.tasks.get(task)).and_then(|task| task.holder)
        }
        _ => None,
    };
    if let Some(attempt) = attempt {
        on(state, attempt, |native| {
            native.reported = true;
            native.reminded = false;
            native.circled = false;
            native.asked = matches!(event.body, Body::QuestionAsked { .. });
            match &event.body {
                Body::CheckpointSaved { checkpoint } => native.leaves_work = checkpoint.leaves_work(),
                Body::TaskClaimed { .. } => native.leaves_work = false,
                _ => {}
            }
        });
    }
}

/// Notes that checks were seen to their end after an agent had left: there is nothing new to look at.
pub(super) fn checked(state: &mut State, attempt: AttemptId) {
    if let Some(found) = state.attempts.get_mut(&attempt).filter(|found| found.phase == AttemptPhase::Exited) {
        found.native.looked = true;
    }
}

pub(super) fn gate(state: &mut State, event: &Event) {
    match &event.body {
        Body::GateClosed(crate::event::GateClosed { account, cause, until, question, strikes, reset, probe }) => {
            let gate = Gate {
                cause: cause.name().to_owned(),
                closed_at: event.time,
                until: *until,
                question: *question,
                after: state.last_attempt,
                strikes: *strikes,
                reset: *reset,
                probe: *probe,
                allowed: 1,
            };
            state.gates.insert(account.clone(), gate);
        }
        Body::GateWidened { account, allowed } => {
            if let Some(gate) = state.gates.get_mut(account) {
                gate.allowed = *allowed;
            }
        }
        Body::GateOpened { account } => {
            state.gates.remove(account);
        }
        _ => {}
    }
}

/// What a person had to see to is seen to; an account that waits for a reset besides still does.
pub(super) fn answered(state: &mut State, question: QuestionId, now: Time) {
    state.gates.retain(|_, gate| {
        let its_own = gate.question == Some(question);
        if its_own {
            gate.question = None;
            // What it still waits for is the reset of a limit that was met besides.
            gate.cause = Cause::UsageLimit { resets_at: gate.until }.name().to_owned();
        }
        !its_own || gate.until.is_some_and(|until| until > now)
    });
}

fn on(state: &mut State, attempt: AttemptId, change: impl FnOnce(&mut Native)) {
    if let Some(attempt) = state.attempts.get_mut(&attempt) {
        change(&mut attempt.native);
    }
}

/// Counted by attempt: a coordinator that is killed before it settles the loss leaves it to be found once more.
pub(super) fn orphaned(state: &mut State, id: AttemptId) {
    for task in super::held_in_progress(state, id) {
        super::on_task(state, &task, |task| task.crashes += 1);
    }
    if let Some(attempt) = state.attempts.get_mut(&id) {
        attempt.orphaned = true;
    }
}
