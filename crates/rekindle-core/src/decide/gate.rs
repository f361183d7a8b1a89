//! Accounts that have to wait: a usage limit, an overloaded provider, refused credentials. The gate is per account, survives
//! restarts, costs no task an attempt, and opens by a probe: one agent, then two, then four.

use super::probe::{self, Probe};
use super::{OpenStep, attempt, schedule, usage};
use crate::cause::Cause;
use crate::event::{GateClosed, GateEvent};
use crate::ids::{AttemptId, QuestionId, TaskId};
use crate::policy;
use crate::state::{Attempt, Gate, State};
use crate::time::Time;

/// The account whose allowance an `[agents.NAME]` uses.
fn account_of(state: &State, cli: &str) -> String {
    state.limits.traits_of(cli).account.clone()
}

/// Whether another agent of `cli` may be started now.
pub(super) fn admits(state: &State, cli: &str, now: Time) -> bool {
    if state.gates.is_empty() {
        return true;
    }
    let account = account_of(state, cli);
    let Some(gate) = state.gates.get(&account) else {
        return true;
    };
    if waits(gate, now) {
        return false;
    }
    let since = state.live_attempts().filter(|(id, _)| id.0 > gate.after);
    // An agent that waits for a person uses nothing of the account: it must not block the others until somebody answers.
    let uses = |(id, attempt): &(AttemptId, &Attempt)| {
        account_of(state, &attempt.cli) == account && !state.waits_for_person(*id)
    };
    since.filter(uses).count() < gate.allowed as usize
}

fn waits(gate: &Gate, now: Time) -> bool {
    gate.question.is_some() || gate.until.is_some_and(|until| until > now)
}

/// The `[agents.NAME]` that can take a task now: its own, else its stand-in while its account waits.
pub(super) fn cli_now(state: &State, task: &TaskId, now: Time) -> Option<String> {
    let cli = schedule::cli_for(state, task);
    if admits(state, &cli, now) {
        return Some(cli);
    }
    let stand_in = state.limits.traits_of(&cli).fallback.clone()?;
    let known = state.limits.clis.contains(&stand_in) && !schedule::breaker_open(state, &stand_in, now);
    (known && !has_failed(state, task, &cli, &stand_in) && admits(state, &stand_in, now)).then_some(stand_in)
}

/// The accounts that could run a task: its own, and that of its stand-in.
pub(super) fn accounts(state: &State, task: &TaskId) -> Vec<String> {
    let cli = schedule::cli_for(state, task);
    let stand_in = state.limits.traits_of(&cli).fallback.clone();
    let known = stand_in.filter(|name| state.limits.clis.contains(name) && !has_failed(state, task, &cli, name));
    let mut accounts = vec![account_of(state, &cli)];
    accounts.extend(known.map(|name| account_of(state, &name)).filter(|other| *other != accounts[0]));
    accounts
}

/// Whether the stand-in has failed at a task since the task's own agent had to wait: it is not started again, else the task
/// would use up its attempts while all it needs is time.
fn has_failed(state: &State, task: &TaskId, cli: &str, stand_in: &str) -> bool {
    let since = state.gates.get(&account_of(state, cli)).map_or(0, |gate| gate.after);
    let last = state.tasks.get(task).and_then(crate::state::Task::last_attempt).filter(|id| id.0 > since);
    last.and_then(|id| state.attempts.get(&id)).is_some_and(|attempt| attempt.cli == stand_in)
}

/// Whether a task waits for a reset and has no stand-in for its agent.
pub(super) fn waits_for_reset(state: &State, task: &TaskId, now: Time) -> bool {
    let gate = state.gates.get(&account_of(state, &schedule::cli_for(state, task)));
    gate.is_some_and(|gate| gate.until.is_some_and(|until| until > now)) && cli_now(state, task, now).is_none()
}

/// Whether a task waits for a person to fix its agent and has no stand-in for it.
pub(super) fn waits_for_person(state: &State, task: &TaskId, now: Time) -> bool {
    let gate = state.gates.get(&account_of(state, &schedule::cli_for(state, task)));
    gate.is_some_and(|gate| gate.question.is_some()) && cli_now(state, task, now).is_none()
}

/// When time alone lets an account continue.
pub(super) fn deadlines(state: &State) -> impl Iterator<Item = Time> + '_ {
    state.gates.values().filter(|gate| gate.question.is_none()).filter_map(|gate| gate.until)
}

/// Closes the account's gate if an attempt ended for a reason that others on the account would meet as well.
pub(super) fn close_for(step: &mut OpenStep<'_>, id: AttemptId, cause: &Cause, held: &[TaskId]) {
    let Some(found) = step.state.attempts.get(&id) else { return };
    let account = account_of(step.state, &found.cli);
    let known = step.state.gates.get(&account).cloned();
    // Several agents meet the same limit at the same time: that is one strike, not many.
    let same = known.as_ref().filter(|gate| id.0 <= gate.after);
    let strikes = same.map_or_else(|| known.as_ref().map_or(1, |gate| gate.strikes + 1), |gate| gate.strikes);
    let limits = &step.state.limits;
    let mut tries: Option<Probe> = None;
    let (until, question) = match cause {
        Cause::UsageLimit { resets_at } => {
            let before = tried(known.as_ref());
            tries = Some(probe::by_wall(&limits.usage, (step.now, &step.state.clocks), before, *resets_at, strikes));
            (tries.map(|tries| tries.at), None)
        }
        Cause::Overloaded => {
            let wait = policy::backoff_ms(limits.backoff_ms, strikes, &format!("{account} {strikes}"));
            let until = step.now.plus_ms(limits.backoff_ms.saturating_add(wait));
            return close_for_overload(step, id, GateWait { account, strikes, until }, known);
        }
        Cause::Auth => match known.as_ref().and_then(|gate| gate.question) {
            Some(question) => (None, Some(question)),
            None => match ask(step, id, held) {
                Some(question) => (None, Some(question)),
                // No task waits for it, so there is nothing to ask about.
                None => return,
            },
        },
        Cause::Completed
        | Cause::ExitedIncomplete
        | Cause::Crashed { .. }
        | Cause::HungBeforeFirstEvent
        | Cause::HungMidStream
        | Cause::HungAfterResult
        | Cause::TimedOut
        | Cause::Compacted
        | Cause::CompactionLoop
        | Cause::ContextExhausted
        | Cause::WaitingForInput
        | Cause::OutOfMemory { .. }
        | Cause::StartFailed { .. }
        | Cause::SetupFailed { .. }
        | Cause::Machine(_)
        | Cause::ShimLost
        | Cause::HostLost
        | Cause::StalledNoProgress
        | Cause::StoppedByOperator => return,
    };
    // A wait that is already longer stays, and so does an unanswered question.
    let again = same.zip(tries).is_some_and(|(gate, tries)| gate.reset.is_some() && tries.reset <= gate.reset);
    let named = tries.is_some_and(|tries| tries.reset.is_some());
    let longer = |gate: &Gate| gate.limit_until() > until && !(named && is_guess(gate));
    let stands = known.as_ref().filter(|gate| gate.limit_until() > Some(step.now) && (again || longer(gate)));
    let (limit, reset, probe) = match stands {
        Some(gate) => (gate.limit_until(), gate.reset, gate.probe),
        None => (until, tries.and_then(|tries| tries.reset), tries.map_or(0, |tries| tries.number)),
    };
    let overloaded = overloaded_until(known.as_ref(), step.now);
    let question = question.or(known.and_then(|gate| gate.question));
    let (until, limit_until) = (limit.max(overloaded), limit.filter(|_| overloaded.is_some()));
    let (cause, overloaded_until) = (cause.clone(), overloaded);
    let closed = GateClosed { account, cause, until, question, strikes, reset, probe, overloaded_until, limit_until };
    step.emit_attempt(id, GateEvent::GateClosed(closed));
}

/// An account whose provider is overloaded.
struct GateWait {
    account: String,
    strikes: u32,
    until: Time,
}

/// Closes the gate of an overloaded provider. What the account also waits for, the reset of a limit or an answer, is kept
/// with it: if it were forgotten, the reset could not follow a wall clock that is set.
fn close_for_overload(step: &mut OpenStep<'_>, id: AttemptId, wait: GateWait, known: Option<Gate>) {
    let question = known.as_ref().and_then(|gate| gate.question);
    let overloaded = Some(wait.until).max(overloaded_until(known.as_ref(), step.now));
    let limit = known.filter(|gate| gate.probe > 0 && gate.limit_until() > Some(step.now));
    let limit_until = limit.as_ref().and_then(Gate::limit_until);
    let closed = GateClosed {
        account: wait.account,
        cause: Cause::Overloaded,
        until: overloaded.max(limit_until),
        question,
        strikes: wait.strikes,
        reset: limit.as_ref().and_then(|gate| gate.reset),
        probe: limit.map_or(0, |gate| gate.probe),
        overloaded_until: overloaded,
        limit_until,
    };
    step.emit_attempt(id, GateEvent::GateClosed(closed));
}

/// When the current wait for an overloaded provider ends, if there is one.
pub(super) fn overloaded_until(gate: Option<&Gate>, now: Time) -> Option<Time> {
    gate.and_then(|gate| gate.overloaded_until).filter(|until| *until > now)
}

/// Whether a gate waits for a limit whose reset nobody has named. A named reset replaces it, whether sooner or later: if
/// both were kept, the reset would be forgotten, and setting the wall clock could not move the wait for it.
pub(super) fn is_guess(gate: &Gate) -> bool {
    gate.probe > 0 && gate.reset.is_none()
}

/// The probe that a gate waited for and that met the limit again; `None` if its account has worked since.
pub(super) fn tried(gate: Option<&Gate>) -> Option<(Time, u32)> {
    let gate = gate.filter(|gate| gate.allowed == 1)?;
    gate.reset.map(|reset| (reset, gate.probe))
}

/// Pauses the run until an account's allowance is back, if nothing is left to do before that. Returns whether it was paused.
///
/// A probe that has met the limit again is followed by another so soon that no pause is worth it.
pub(super) fn pause_for_reset(step: &mut OpenStep<'_>) -> bool {
    let waiting = step.state.gates.values().filter(|gate| waits(gate, step.now));
    let mut resets: Vec<(Time, Option<Time>, u32)> = Vec::new();
    for gate in waiting {
        // An overloaded provider is not worth a pause: it is back within seconds. Nor is a limit that is over: such a gate
        // waits for a person, and a pause until then would end as it starts.
        match gate.until.filter(|until| gate.cause == "usage_limit" && *until > step.now) {
            Some(until) if gate.probe <= 1 => resets.push((until, gate.reset, gate.probe)),
            _ => return false,
        }
    }
    let Some((at, reset, number)) = resets.into_iter().min() else { return false };
    usage::pause(step, Some(0), Probe { at, reset, number });
    true
}

/// Asks a person to fix an agent's credentials; the answer opens the gate.
fn ask(step: &mut OpenStep<'_>, id: AttemptId, held: &[TaskId]) -> Option<QuestionId> {
    let task = held.first()?;
    let found = step.state.attempts.get(&id)?;
    let said = found.cli_session.failure.as_ref().map(|failure| failure.text.clone()).unwrap_or_default();
    let text = format!("the credentials of `{}` were refused: log in, then answer `done`", found.cli);
    attempt::ask_person(step, id, task, text, said)
}

/// An agent on the account worked: the gate admits more, and is removed when all are admitted.
pub(super) fn widen_for(step: &mut OpenStep<'_>, id: AttemptId) {
    let Some(found) = step.state.attempts.get(&id) else { return };
    let account = account_of(step.state, &found.cli);
    let Some(gate) = step.state.gates.get(&account) else { return };
    if waits(gate, step.now) || id.0 <= gate.after {
        return;
    }
    let allowed = gate.allowed.saturating_mul(2);
    if allowed >= step.state.limits.max_agents {
        step.emit_run(GateEvent::GateOpened { account });
    } else {
        step.emit_run(GateEvent::GateWidened { account, allowed });
    }
}
