//! The allowance as the user's own command tells it, and the pauses that end by themselves.

use super::probe::{self, Probe};
use super::{About, Reply, Turn, gate, session};
use crate::cause::Cause;
use crate::event::{GateClosed, GateEvent, MachineEvent, Pause, PauseReason, PersonEvent, RunEvent, UsageLeft};
use crate::policy;
use crate::progress::Progress;
use crate::state::{Gate, RunPhase, State};
use crate::time::Time;

/// How old an answer may be when something is dispatched.
const FRESH_MS: u64 = 60_000;

/// Jitter beyond a wait, as a part of it, so that many runs do not come back in the same instant.
const JITTER_PART: u64 = 10;

/// Whether something may be dispatched as far as the allowance goes; asks where the answer is too old.
pub(super) fn may_dispatch(turn: &mut Turn<'_>) -> bool {
    if !turn.state.limits.usage.asks {
        return true;
    }
    if turn.state.usage.asking {
        return false;
    }
    let fresh = turn.state.usage.seen_at.is_some_and(|at| turn.now.since_ms(at) < FRESH_MS);
    if !fresh {
        turn.emit_run(MachineEvent::UsageAsked {});
    }
    fresh
}

pub(super) fn seen(turn: &mut Turn<'_>, left: UsageLeft) -> Reply {
    if !turn.state.usage.asking {
        return Reply::Already;
    }
    let silent = |left: &UsageLeft| left.remaining_percent.is_none();
    let told = turn.state.usage.left.as_ref().is_some_and(silent);
    turn.emit_run(MachineEvent::UsageSeen(left));
    if silent(&left) && !told {
        let text = "the usage command gives no answer that can be read: the run goes on without it".to_owned();
        turn.emit_run(PersonEvent::PersonAlerted { text, choices: vec!["rekindle doctor".to_owned()] });
    }
    let limits = turn.state.limits.usage.clone();
    if left.remaining_percent.is_none_or(|percent| percent > limits.threshold_percent) {
        return Reply::Accepted;
    }
    if limits.agents.is_empty() {
        let next = goes_on_at(turn, turn.state.usage.tried, left.resets_at);
        pause(turn, left.remaining_percent, next);
        return Reply::Accepted;
    }
    let account = |cli: &String| turn.state.limits.traits_of(cli).account.clone();
    let mut accounts: Vec<String> = limits.agents.iter().map(account).collect();
    accounts.sort();
    accounts.dedup();
    for account in accounts {
        // One that waits that long already is left as it is, and so is a question that nobody has answered.
        let known = turn.state.gates.get(&account);
        let next = goes_on_at(turn, gate::tried(known), left.resets_at);
        let stands = |gate: &Gate| {
            let until = gate.limit_until();
            let longer = until >= Some(next.at) && !(next.reset.is_some() && gate::is_guess(gate));
            longer || until > Some(turn.now) && gate.reset.is_some() && next.reset <= gate.reset
        };
        if known.is_some_and(stands) {
            continue;
        }
        let cause = Cause::UsageLimit { resets_at: left.resets_at };
        let (question, strikes) = (known.and_then(|gate| gate.question), known.map_or(1, |gate| gate.strikes));
        let overloaded = gate::overloaded_until(known, turn.now);
        let closed = GateClosed {
            account,
            cause,
            until: Some(next.at).max(overloaded),
            question,
            strikes,
            reset: next.reset,
            probe: next.number,
            overloaded_until: overloaded,
            limit_until: overloaded.map(|_| next.at),
        };
        turn.emit(About::default(), GateEvent::GateClosed(closed));
    }
    Reply::Accepted
}

/// When the allowance is asked for again, with a little jitter that stays within the grace.
fn goes_on_at(turn: &Turn<'_>, before: Option<(Time, u32)>, resets_at: Option<Time>) -> Probe {
    let limits = &turn.state.limits.usage;
    let clocks = &turn.state.clocks;
    let next = probe::by_wall(limits, (turn.now, clocks), before, resets_at, 1);
    let Some(reset) = next.reset.map(|reset| clocks.at_wall(reset)) else { return next };
    let run = turn.state.run.as_ref().map(|run| run.id.to_string()).unwrap_or_default();
    let wait = next.at.since_ms(reset);
    let jitter = policy::backoff_ms(wait / JITTER_PART, 1, &format!("{run} usage"));
    Probe { at: next.at.plus_ms(jitter.min(limits.grace_ms.saturating_sub(wait))), ..next }
}

/// Pauses the run until the allowance is back.
pub(super) fn pause(turn: &mut Turn<'_>, remaining_percent: Option<u8>, next: Probe) {
    if !turn.state.run.as_ref().is_some_and(|run| run.phase == RunPhase::Running) {
        return;
    }
    let progress = Progress::of(turn.state);
    let resumes_at = Some(next.at).filter(|_| !turn.state.limits.no_wait);
    let (reason, resets_at, probe) = (PauseReason::UsageLimit, next.reset, next.number);
    turn.emit_run(RunEvent::SessionPause(Pause { reason, remaining_percent, resets_at, resumes_at, probe, progress }));
    session::collect_and_stop(turn, false);
}

/// When a run that waits for its allowance goes on.
pub(super) fn resumes_at(state: &State) -> Option<Time> {
    let run = state.run.as_ref()?;
    matches!(run.phase, RunPhase::Waiting(PauseReason::UsageLimit)).then_some(run.resumes_at).flatten()
}
