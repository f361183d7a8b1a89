//! The allowance as reported by the user's own command, and the pauses that end on their own.

use super::probe::{self, Probe};
use super::{About, OpenStep, Reply, gate, session};
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

/// Whether the allowance lets something be dispatched; asks if the answer is too old.
pub(super) fn may_dispatch(step: &mut OpenStep<'_>) -> bool {
    if !step.state.limits.usage.asks {
        return true;
    }
    if step.state.usage.asking {
        return false;
    }
    let fresh = step.state.usage.seen_at.is_some_and(|at| step.now.since_ms(at) < FRESH_MS);
    if !fresh {
        step.emit_run(MachineEvent::UsageAsked {});
    }
    fresh
}

pub(super) fn seen(step: &mut OpenStep<'_>, left: UsageLeft) -> Reply {
    if !step.state.usage.asking {
        return Reply::Already;
    }
    let silent = |left: &UsageLeft| left.remaining_percent.is_none();
    let told = step.state.usage.left.as_ref().is_some_and(silent);
    step.emit_run(MachineEvent::UsageSeen(left));
    if silent(&left) && !told {
        let text = "the usage command gives no answer that can be read: the run continues without it".to_owned();
        step.emit_run(PersonEvent::PersonAlerted { text, choices: vec!["rekindle doctor".to_owned()] });
    }
    let limits = step.state.limits.usage.clone();
    if left.remaining_percent.is_none_or(|percent| percent > limits.threshold_percent) {
        return Reply::Accepted;
    }
    if limits.agents.is_empty() {
        let next = goes_on_at(step, step.state.usage.tried, left.resets_at);
        pause(step, left.remaining_percent, next);
        return Reply::Accepted;
    }
    let account = |cli: &String| step.state.limits.traits_of(cli).account.clone();
    let mut accounts: Vec<String> = limits.agents.iter().map(account).collect();
    accounts.sort();
    accounts.dedup();
    for account in accounts {
        // An account that already waits that long is left as it is, and so is an unanswered question.
        let known = step.state.gates.get(&account);
        let next = goes_on_at(step, gate::tried(known), left.resets_at);
        let stands = |gate: &Gate| {
            let until = gate.limit_until();
            let longer = until >= Some(next.at) && !(next.reset.is_some() && gate::is_guess(gate));
            longer || until > Some(step.now) && gate.reset.is_some() && next.reset <= gate.reset
        };
        if known.is_some_and(stands) {
            continue;
        }
        let cause = Cause::UsageLimit { resets_at: left.resets_at };
        let (question, strikes) = (known.and_then(|gate| gate.question), known.map_or(1, |gate| gate.strikes));
        let overloaded = gate::overloaded_until(known, step.now);
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
        step.emit(About::default(), GateEvent::GateClosed(closed));
    }
    Reply::Accepted
}

/// When the allowance is asked for again, with a little jitter that stays within the grace.
fn goes_on_at(step: &OpenStep<'_>, before: Option<(Time, u32)>, resets_at: Option<Time>) -> Probe {
    let limits = &step.state.limits.usage;
    let clocks = &step.state.clocks;
    let next = probe::by_wall(limits, (step.now, clocks), before, resets_at, 1);
    let Some(reset) = next.reset.map(|reset| clocks.at_wall(reset)) else { return next };
    let run = step.state.run.as_ref().map(|run| run.id.to_string()).unwrap_or_default();
    let wait = next.at.since_ms(reset);
    let jitter = policy::backoff_ms(wait / JITTER_PART, 1, &format!("{run} usage"));
    Probe { at: next.at.plus_ms(jitter.min(limits.grace_ms.saturating_sub(wait))), ..next }
}

/// Pauses the run until the allowance is back.
pub(super) fn pause(step: &mut OpenStep<'_>, remaining_percent: Option<u8>, next: Probe) {
    if !step.state.run.as_ref().is_some_and(|run| run.phase == RunPhase::Running) {
        return;
    }
    let progress = Progress::of(step.state);
    let resumes_at = Some(next.at).filter(|_| !step.state.limits.no_wait);
    let (reason, resets_at, probe) = (PauseReason::UsageLimit, next.reset, next.number);
    step.emit_run(RunEvent::SessionPause(Pause { reason, remaining_percent, resets_at, resumes_at, probe, progress }));
    session::collect_and_stop(step, false);
}

/// When a run that waits for its allowance continues.
pub(super) fn resumes_at(state: &State) -> Option<Time> {
    let run = state.run.as_ref()?;
    matches!(run.phase, RunPhase::Waiting(PauseReason::UsageLimit)).then_some(run.resumes_at).flatten()
}
