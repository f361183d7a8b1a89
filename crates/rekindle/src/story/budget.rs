//! Budgets, days and quiet hours in words.

use rekindle_core::budget::{Choice, Scope};
use rekindle_core::event::{BudgetAnswered, MachineEvent};
use rekindle_core::time::Time;

use super::Parts;
use crate::ui::{Tone, near_time};

/// Describes the event; `now` is when it happened. `None` if it is about something else.
pub(super) fn tell(fact: &MachineEvent, now: Time) -> Option<Parts> {
    Some(match fact {
        MachineEvent::BudgetNotice(seen) => ("BUDGET", Tone::Warning, seen.words(None)),
        MachineEvent::BudgetReached(seen) => ("BUDGET", Tone::Warning, seen.words(None)),
        MachineEvent::BudgetAsked(asked) => {
            let whose = asked.scope.name();
            ("BUDGET", Tone::Dim, format!("question {} is about the budget of the {whose}", asked.question))
        }
        MachineEvent::BudgetAnswered(answered) => ("BUDGET", Tone::Hint, answer(answered)),
        MachineEvent::DayBegan { date } => ("DAY", Tone::Dim, format!("what is spent counts for {date} from now on")),
        MachineEvent::QuietBegan { until } => {
            ("QUIET", Tone::Warning, format!("nothing new is started until {}", near_time(*until, now)))
        }
        MachineEvent::QuietEnded {} => ("QUIET", Tone::Good, "the quiet hours are over".to_owned()),
        MachineEvent::StartsHeld(_)
        | MachineEvent::StartsReleased {}
        | MachineEvent::ClockMoved(_)
        | MachineEvent::BreakerOpened { .. }
        | MachineEvent::SetupStarted { .. }
        | MachineEvent::SetupFinished { .. }
        | MachineEvent::SetupFailed { .. }
        | MachineEvent::SetupRetried { .. }
        | MachineEvent::PreflightOrdered {}
        | MachineEvent::Preflight(_)
        | MachineEvent::Cleaned(_)
        | MachineEvent::HealthOrdered {}
        | MachineEvent::HealthChecked(_)
        | MachineEvent::UsageAsked {}
        | MachineEvent::UsageSeen(_) => return None,
    })
}

fn answer(answered: &BudgetAnswered) -> String {
    let whose = format!("the budget of the {}", answered.scope.name());
    match (answered.choice, answered.scope) {
        (Choice::Raise, _) => format!("{whose} was raised by as much again"),
        (Choice::GoOn, Scope::Task) => "one more attempt is allowed over the task's budget".to_owned(),
        (Choice::GoOn, scope) => format!("{whose} no longer counts until the {} ends", scope.name()),
        (Choice::HandBack, Scope::Task) => "a person took the task back; its budget is used up".to_owned(),
        (Choice::HandBack, _) => "a person took the run back; running agents finish, then it pauses".to_owned(),
        (Choice::Stop, Scope::Task) => "a person gave the task up; its budget is used up".to_owned(),
        (Choice::Stop, _) => "a person stopped the run; its budget is used up".to_owned(),
        (Choice::Withdrawn, _) => format!("{whose} asks for nothing any more"),
    }
}
