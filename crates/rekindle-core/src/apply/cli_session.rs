//! How events change what is known of an agent's own session, and of the accounts that agents share.

use crate::activity::Problem;
use crate::cause::Cause;
use crate::event::{Event, GateEvent, SessionEvent, TaskEvent};
use crate::ids::{AttemptId, QuestionId};
use crate::last_words;
use crate::report::Channel;
use crate::state::{Astray, AttemptPhase, CliSession, Gate, State, TOLD_KEPT, ToldMessage};
use crate::time::Time;

pub(super) fn apply(state: &mut State, event: &Event, fact: &SessionEvent) {
    let now = event.time;
    match fact {
        SessionEvent::AgentSession { attempt, session_id, model, .. } => on(state, *attempt, |cli_session| {
            cli_session.words += 1;
            cli_session.session = Some(session_id.clone());
            cli_session.model = model.clone().or(cli_session.model.take());
        }),
        SessionEvent::AgentMeasured { attempt, measure } => {
            on(state, *attempt, |cli_session| {
                cli_session.measure = *measure;
                cli_session.measured_at = Some(now);
            });
            super::budget::measured(state, event, *attempt, &measure.usage);
        }
        SessionEvent::AgentCompacted(crate::event::AgentCompacted { attempt, turns, calls, .. }) => {
            on(state, *attempt, |cli_session| {
                cli_session.compactions += 1;
                cli_session.compacted_at_turn = Some(*turns);
                cli_session.astray = Some(Astray { since: now, calls: *calls, told_again: false });
            });
            if let Some(task) = &event.task {
                state.change_task(task, |task| task.compactions += 1);
            }
        }
        SessionEvent::AgentStalled(stalled) => on(state, stalled.attempt, |cli_session| {
            cli_session.words += 1;
            cli_session.stalled = Some(stalled.words.clone());
            cli_session.circled = true;
        }),
        SessionEvent::AgentOnTask { attempt } => on(state, *attempt, |cli_session| cli_session.astray = None),
        SessionEvent::CompactionStart(near) => on(state, near.attempt, |cli_session| cli_session.preparing = Some(now)),
        SessionEvent::CompactionComplete(over) => on(state, over.attempt, |cli_session| cli_session.preparing = None),
        SessionEvent::AgentTold { attempt, number, text, reminder, .. } => on(state, *attempt, |cli_session| {
            told(cli_session, now, ToldMessage { number: *number, text: text.clone() }, *reminder);
        }),
        SessionEvent::StatusAsked { attempt } => {
            on(state, *attempt, |cli_session| cli_session.status_asked = Some(now))
        }
        SessionEvent::StatusAnswered { attempt } => on(state, *attempt, |cli_session| cli_session.status_asked = None),
        SessionEvent::InputClosed { attempt } => on(state, *attempt, |cli_session| cli_session.input_closed = true),
        SessionEvent::AgentFailed { attempt, failure } => on(state, *attempt, |cli_session| {
            cli_session.words += 1;
            cli_session.failure = Some(failure.clone());
        }),
        SessionEvent::TurnEnded { attempt, ok } => on(state, *attempt, |cli_session| {
            cli_session.words += 1;
            cli_session.turn_ended = Some(now);
            note_turn(cli_session, *ok);
            // A program that gives up because it repeats itself still ends its turn.
            let looping = cli_session.failure.as_ref().is_some_and(|failure| failure.problem == Problem::Looping);
            if *ok && !looping {
                cli_session.failure = None;
            }
        }),
        SessionEvent::AgentSaid(said) => on(state, said.attempt, |cli_session| {
            cli_session.words += 1;
            cli_session.last_words.clone_from(&said.text);
            cli_session.asks = said.asks;
        }),
        SessionEvent::SessionClosed(closed) => on(state, closed.attempt, |cli_session| {
            cli_session.transcript = Some(closed.transcript);
            cli_session.cut_off.clone_from(&closed.cut_off);
            cli_session.under_way.clone_from(&closed.under_way);
        }),
    }
}

fn told(cli_session: &mut CliSession, now: Time, message: ToldMessage, reminder: bool) {
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

/// Notes how a turn ended, and whether it is another one in a row that ended in a question.
fn note_turn(cli_session: &mut CliSession, ok: bool) {
    cli_session.turn_failed = !ok;
    let asks = ok && last_words::ends_in_question(&cli_session.last_words);
    cli_session.asking = if asks { cli_session.asking + 1 } else { 0 };
}

/// Notes what an agent says about its task.
pub(super) fn heard(state: &mut State, event: &Event, fact: &TaskEvent) {
    if let TaskEvent::TaskClaimed { attempt, channel, .. } = fact {
        match channel {
            Channel::Unreported => on(state, *attempt, |cli_session| cli_session.looked = true),
            // A person took its work: the agent itself has said nothing more.
            Channel::Operator => {}
            Channel::Command | Channel::Signal | Channel::Kept | Channel::Mcp | Channel::Own => {
                spoke(state, *attempt, |cli_session| cli_session.leaves_work = false);
            }
        }
    }
    if let TaskEvent::TaskFailReported { attempt, .. } = fact {
        spoke(state, *attempt, |_| {});
    }
    if let TaskEvent::CheckpointSaved { checkpoint } = fact {
        let holder = event.task.as_ref().and_then(|task| state.tasks.get(task)).and_then(|task| task.holder);
        if let Some(attempt) = holder {
            spoke(state, attempt, |cli_session| cli_session.leaves_work = checkpoint.leaves_work());
        }
    }
}

/// Notes that an attempt waits for an answer. A question that rekindle itself asks about the agent's work does not count as
/// the agent speaking.
pub(super) fn asked(state: &mut State, attempt: AttemptId, takes_work: bool) {
    match takes_work {
        true => on(state, attempt, |cli_session| cli_session.asked = true),
        false => spoke(state, attempt, |cli_session| cli_session.asked = true),
    }
}

/// Notes that an agent spoke about its task: it is working on it.
fn spoke(state: &mut State, attempt: AttemptId, change: impl FnOnce(&mut CliSession)) {
    on(state, attempt, |cli_session| {
        cli_session.reported = true;
        cli_session.reminded = false;
        cli_session.circled = false;
        cli_session.asked = false;
        change(cli_session);
    });
}

/// Notes that checks ran to their end after an agent had exited: there is nothing new to inspect.
pub(super) fn checked(state: &mut State, attempt: AttemptId) {
    if let Some(found) = state.attempts.get_mut(&attempt).filter(|found| found.phase == AttemptPhase::Exited) {
        found.cli_session.looked = true;
    }
}

pub(super) fn gate(state: &mut State, event: &Event, fact: &GateEvent) {
    match fact {
        GateEvent::GateClosed(closed) => {
            let gate = Gate {
                cause: closed.cause.name().to_owned(),
                closed_at: event.time,
                until: closed.until,
                question: closed.question,
                after: state.last_attempt,
                strikes: closed.strikes,
                reset: closed.reset,
                probe: closed.probe,
                overloaded_until: closed.overloaded_until,
                limit_until: closed.limit_until,
                allowed: 1,
            };
            state.gates.insert(closed.account.clone(), gate);
        }
        GateEvent::GateWidened { account, allowed } => {
            if let Some(gate) = state.gates.get_mut(account) {
                gate.allowed = *allowed;
            }
        }
        GateEvent::GateOpened { account } => {
            state.gates.remove(account);
        }
    }
}

/// The person has dealt with what the question was about; an account that also waits for a reset still does.
pub(super) fn answered(state: &mut State, question: QuestionId, now: Time) {
    state.gates.retain(|_, gate| {
        let its_own = gate.question == Some(question);
        if its_own {
            gate.question = None;
            // It still waits for the reset of a limit that was also met.
            gate.cause = Cause::UsageLimit { resets_at: gate.until }.name().to_owned();
        }
        !its_own || gate.until.is_some_and(|until| until > now)
    });
}

pub(super) fn on(state: &mut State, attempt: AttemptId, change: impl FnOnce(&mut CliSession)) {
    if let Some(attempt) = state.attempts.get_mut(&attempt) {
        change(&mut attempt.cli_session);
    }
}

/// Counted per attempt: if the coordinator is killed before it settles the loss, the loss will be found once more.
pub(super) fn orphaned(state: &mut State, id: AttemptId) {
    for task in super::held_in_progress(state, id) {
        super::on_task(state, &task, |task| task.crashes += 1);
    }
    if let Some(attempt) = state.attempts.get_mut(&id) {
        attempt.orphaned = true;
    }
}
