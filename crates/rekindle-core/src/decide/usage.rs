//! The allowance as the user's own command tells it, and the pauses that end by themselves.

use super::{About, Reply, Turn, session};
use crate::cause::Cause;
use crate::event::{Body, GateClosed, Pause, PauseReason, UsageLeft};
use crate::policy;
use crate::progress::Progress;
use crate::state::{RunPhase, State};
use crate::time::Time;

/// How old an answer may be when something is dispatched.
const FRESH_MS: u64 = 60_000;

/// Jitter beyond the grace, as a part of it, so that many runs do not come back in the same instant.
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
        turn.emit_run(Body::UsageAsked {});
    }
    fresh
}

/// The user's command answered.
pub(super) fn seen(turn: &mut Turn<'_>, left: UsageLeft) -> Reply {
    if !turn.state.usage.asking {
        return Reply::Already;
    }
    let silent = |left: &UsageLeft| left.remaining_percent.is_none();
    let told = turn.state.usage.left.as_ref().is_some_and(silent);
    turn.emit_run(Body::UsageSeen(left));
    if silent(&left) && !told {
        let text = "the usage command gives no answer that can be read: the run goes on without it".to_owned();
        turn.emit_run(Body::PersonAlerted { text, choices: vec!["rekindle doctor".to_owned()] });
    }
    let limits = turn.state.limits.usage.clone();
    if left.remaining_percent.is_none_or(|percent| percent > limits.threshold_percent) {
        return Reply::Accepted;
    }
    let until = goes_on_at(turn, left.resets_at);
    if limits.agents.is_empty() {
        pause(turn, left.remaining_percent, left.resets_at, until);
        return Reply::Accepted;
    }
    let mut accounts: Vec<String> = limits.agents.iter().map(|cli| turn.state.limits.traits_of(cli).account).collect();
    accounts.sort();
    accounts.dedup();
    for account in accounts {
        // One that waits that long already is left as it is, and so is a question that nobody has answered.
        let known = turn.state.gates.get(&account);
        if known.and_then(|gate| gate.until).is_some_and(|known| known >= until) {
            continue;
        }
        let cause = Cause::UsageLimit { resets_at: left.resets_at };
        let (question, strikes) = (known.and_then(|gate| gate.question), known.map_or(1, |gate| gate.strikes));
        let closed = GateClosed { account, cause, until: Some(until), question, strikes };
        turn.emit(About::default(), Body::GateClosed(closed));
    }
    Reply::Accepted
}

/// The reset with the grace beyond it and a little jitter; the usual wait where no reset is known.
fn goes_on_at(turn: &Turn<'_>, resets_at: Option<Time>) -> Time {
    let limits = &turn.state.limits.usage;
    let run = turn.state.run.as_ref().map(|run| run.id.to_string()).unwrap_or_default();
    let jitter = policy::backoff_ms(limits.grace_ms / JITTER_PART, 1, &format!("{run} usage"));
    match resets_at.filter(|reset| *reset > turn.now) {
        Some(reset) => reset.plus_ms(limits.grace_ms).plus_ms(jitter),
        None => turn.now.plus_ms(limits.default_wait_ms),
    }
}

/// Pauses the run until the allowance is back.
pub(super) fn pause(turn: &mut Turn<'_>, remaining_percent: Option<u8>, resets_at: Option<Time>, until: Time) {
    if !turn.state.run.as_ref().is_some_and(|run| run.phase == RunPhase::Running) {
        return;
    }
    let progress = Progress::of(turn.state);
    let resumes_at = Some(until).filter(|_| !turn.state.limits.no_wait);
    let reason = PauseReason::UsageLimit;
    turn.emit_run(Body::SessionPause(Pause { reason, remaining_percent, resets_at, resumes_at, progress }));
    session::collect_and_stop(turn, false);
}

/// When a run that waits for its allowance goes on.
pub(super) fn resumes_at(state: &State) -> Option<Time> {
    let run = state.run.as_ref()?;
    matches!(run.phase, RunPhase::Waiting(PauseReason::UsageLimit)).then_some(run.resumes_at).flatten()
}
