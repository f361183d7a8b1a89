//! What the machine, the plan's health commands and the allowance report: holds on new starts, and what remains of them when
//! they are over.

use super::{budget, clock, preparing};
use crate::budget::Level;
use crate::cause::Cause;
use crate::event::{Event, Held, MachineEvent, UsageLeft};
use crate::ids::AttemptId;
use crate::report::cut_outputs;
use crate::state::{Breaker, State};

pub(super) fn apply(state: &mut State, event: &Event, fact: &MachineEvent) {
    match fact {
        MachineEvent::StartsHeld(held) => hold(state, event, held),
        MachineEvent::StartsReleased {} => {
            state.held = None;
            (state.hold.since, state.hold.until) = (None, None);
            state.hold.hint.clear();
        }
        MachineEvent::ClockMoved(seen) => clock::moved(state, event.time, seen),
        MachineEvent::BreakerOpened { cli, until } => {
            state.breakers.insert(cli.clone(), Breaker { failed_starts: 0, until: Some(*until) });
        }
        MachineEvent::SetupStarted { .. }
        | MachineEvent::SetupFinished { .. }
        | MachineEvent::SetupFailed { .. }
        | MachineEvent::SetupRetried { .. }
        | MachineEvent::PreflightOrdered {}
        | MachineEvent::Preflight(_) => preparing::apply(state, event, fact),
        MachineEvent::Cleaned(_) => {}
        MachineEvent::HealthOrdered {} => state.health.checking = true,
        MachineEvent::HealthChecked(seen) => {
            state.health.checking = false;
            let mut results = seen.results.clone();
            cut_outputs(&mut results);
            state.health.baseline = Some(results);
        }
        MachineEvent::UsageAsked {} => state.usage.asking = true,
        MachineEvent::UsageSeen(left) => usage_seen(state, event, *left),
        MachineEvent::BudgetNotice(seen) => budget::told(state, event, seen, Level::Near),
        MachineEvent::BudgetReached(seen) => budget::told(state, event, seen, Level::Reached),
        MachineEvent::BudgetAsked(asked) => budget::asked(state, event, asked),
        MachineEvent::BudgetAnswered(answered) => budget::answered(state, event, answered),
        MachineEvent::DayBegan { date } => budget::day_began(state, event.time, date),
        MachineEvent::QuietBegan { until } => state.budget.quiet_until = Some(*until),
        MachineEvent::QuietEnded {} => state.budget.quiet_until = None,
    }
}

fn hold(state: &mut State, event: &Event, held: &Held) {
    let since = state.hold.since.filter(|_| state.held.is_some());
    state.held = Some(held.reason.clone());
    let hold = &mut state.hold;
    hold.since = since.or(Some(event.time));
    hold.hint.clone_from(&held.hint);
    hold.until = held.until;
    hold.strikes += u32::from(held.until.is_some());
    if held.alerts {
        hold.alerted_at = Some(event.time);
    }
}

fn usage_seen(state: &mut State, event: &Event, left: UsageLeft) {
    state.usage.asking = false;
    state.usage.seen_at = Some(event.time);
    state.usage.left = Some(left);
    let threshold = state.limits.usage.threshold_percent;
    // Enough is left: the next pause counts its probes from its own reset.
    if left.remaining_percent.is_some_and(|percent| percent > threshold) {
        state.usage.tried = None;
    }
}

/// Something that the machine may refuse succeeded: the machine is trusted again.
pub(super) fn worked(state: &mut State) {
    state.hold.strikes = 0;
    state.hold.tried = None;
}

/// A supervisor is running: the machine is trusted again, unless it refuses the program as well.
pub(super) fn tried(state: &mut State, attempt: AttemptId) {
    let strikes = std::mem::take(&mut state.hold.strikes);
    if strikes > 0 {
        state.hold.tried = Some((attempt, strikes));
    }
}

/// An attempt has ended. If its program was refused, it has shown nothing: the series of refusals continues.
pub(super) fn ended(state: &mut State, attempt: AttemptId, cause: &Cause) {
    let Some((_, strikes)) = state.hold.tried.take_if(|(tried, _)| *tried == attempt) else { return };
    if matches!(cause, Cause::Machine(_)) {
        state.hold.strikes = state.hold.strikes.max(strikes);
    }
}
