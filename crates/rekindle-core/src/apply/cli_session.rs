//! How events change what is known of an agent's own session, and of the accounts that agents share.

use crate::activity::Problem;
use crate::cause::Cause;
use crate::event::{Body, Event};
use crate::ids::{AttemptId, QuestionId};
use crate::last_words;
use crate::report::Channel;
use crate::state::{Astray, AttemptPhase, CliSession, Gate, State, TOLD_KEPT, Told};
use crate::time::Time;

pub(super) fn apply(state: &mut State, event: &Event) {
    let now = event.time;
    match &event.body {
        Body::AgentSession { attempt, session_id, model, .. } => on(state, *attempt, |cli_session| {
            cli_session.words += 1;
            cli_session.session = Some(session_id.clone());
            cli_session.model = model.clone().or(cli_session.model.take());
        }),
        Body::AgentMeasured { attempt, measure } => on(state, *attempt, |cli_session| {
            cli_session.measure = *measure;
            cli_session.measured_at = Some(now);
        }),
        Body::AgentCompacted(crate::event::AgentCompacted { attempt, turns, calls, .. }) => {
            on(state, *attempt, |cli_session| {
                cli_session.compactions += 1;
                cli_session.compacted_at_turn = Some(*turns);
                cli_session.astray = Some(Astray { since: now, calls: *calls, told_again: false });
            });
            if let Some(task) = &event.task {
                state.change_task(task, |task| task.compactions += 1);
            }
        }
        Body::AgentStalled(stalled) => on(state, stalled.attempt, |cli_session| {
            cli_session.words += 1;
            cli_session.stalled = Some(stalled.words.clone());
            cli_session.circled = true;
        }),
        Body::AgentOnTask { attempt } => on(state, *attempt, |cli_session| cli_session.astray = None),
        Body::CompactionStart(near) => on(state, near.attempt, |cli_session| cli_session.preparing = Some(now)),
        Body::CompactionComplete(over) => on(state, over.attempt, |cli_session| cli_session.preparing = None),
        Body::AgentTold { attempt, number, text, reminder } => on(state, *attempt, |cli_session| {
            told(cli_session, now, Told { number: *number, text: text.clone() }, *reminder);
        }),
        Body::StatusAsked { attempt } => on(state, *attempt, |cli_session| cli_session.status_asked = Some(now)),
        Body::StatusAnswered { attempt } => on(state, *attempt, |cli_session| cli_session.status_asked = None),
        Body::InputClosed { attempt } => on(state, *attempt, |cli_session| cli_session.input_closed = true),
        Body::AgentFailed { attempt, failure } => on(state, *attempt, |cli_session| {
            cli_session.words += 1;
            cli_session.failure = Some(failure.clone());
        }),
        Body::TurnEnded { attempt, ok } => on(state, *attempt, |cli_session| {
            cli_session.words += 1;
            cli_session.turn_ended = Some(now);
            note_turn(cli_session, *ok);
            // A program that gives up because it goes round in circles ends its turn all the same.
            let looping = cli_session.failure.as_ref().is_some_and(|failure| failure.problem == Problem::Looping);
            if *ok && !looping {
                cli_session.failure = None;
            }
        }),
        Body::AgentSaid(said) => on(state, said.attempt, |cli_session| {
            cli_session.words += 1;
            cli_session.last_words.clone_from(&said.text);
            cli_session.asks = said.asks;
        }),
        Body::SessionClosed(closed) => on(state, closed.attempt, |cli_session| {
            cli_session.transcript = Some(closed.transcript);
            cli_session.cut_off.clone_from(&closed.cut_off);
            cli_session.under_way.clone_from(&closed.under_way);
        }),
        _ => {}
    }
}

/// Notes that an agent runs: started with so many bytes of our own, or found alive.
pub(super) fn begun(state: &mut State, event: &Event, attempt: AttemptId) {
    on(state, attempt, |cli_session| match &event.body {
        Body::AgentStarted { own_bytes, .. } => cli_session.own_bytes += own_bytes,
        _ => cli_session.adopted = true,
    });
}

fn told(cli_session: &mut CliSession, now: Time, message: Told, reminder: bool) {
    cli_session.own_bytes += message.text.len() as u64;
    cli_session.told.push(message);
    let excess = cli_session.told.len().saturating_sub(TOLD_KEPT);
    cli_session.told.drain(..excess);
    cli_session.reminded |= reminder;
    cli_session.reminders += u32::from(reminder);
    cli_session.turn_ended = None;
    if let Some(astray) = cli_session.astray.as_mut().filter(|_| reminder) {
        astray.told_again = true;
        astray.since = now;
    }
}

/// Notes how a turn ended, and whether it was one more in a row that ended in a question.
fn note_turn(cli_session: &mut CliSession, ok: bool) {
    cli_session.turn_failed = !ok;
    let asks = ok && last_words::ends_in_question(&cli_session.last_words);
    cli_session.asking = if asks { cli_session.asking + 1 } else { 0 };
}

/// Notes that an agent spoke of its task: it is at it.
pub(super) fn heard(state: &mut State, event: &Event) {
    let attempt = match &event.body {
        Body::TaskClaimed { attempt, door: Channel::Unreported, .. } => {
            return on(state, *attempt, |cli_session| cli_session.looked = true);
        }
        // A person took its work: it has said nothing more itself.
        Body::TaskClaimed { door: Channel::Operator, .. } => None,
        // A question of rekindle's own about its work is no word of the agent's either, but its attempt waits for the answer.
        Body::QuestionAsked { attempt, takes_work: true, .. } => {
            return on(state, *attempt, |cli_session| cli_session.asked = true);
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
        on(state, attempt, |cli_session| {
            cli_session.reported = true;
            cli_session.reminded = false;
            cli_session.circled = false;
            cli_session.asked = matches!(event.body, Body::QuestionAsked { .. });
            match &event.body {
                Body::CheckpointSaved { checkpoint } => cli_session.leaves_work = checkpoint.leaves_work(),
                Body::TaskClaimed { .. } => cli_session.leaves_work = false,
                _ => {}
            }
        });
    }
}

/// Notes that checks were seen to their end after an agent had left: there is nothing new to look at.
pub(super) fn checked(state: &mut State, attempt: AttemptId) {
    if let Some(found) = state.attempts.get_mut(&attempt).filter(|found| found.phase == AttemptPhase::Exited) {
        found.cli_session.looked = true;
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

fn on(state: &mut State, attempt: AttemptId, change: impl FnOnce(&mut CliSession)) {
    if let Some(attempt) = state.attempts.get_mut(&attempt) {
        change(&mut attempt.cli_session);
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
