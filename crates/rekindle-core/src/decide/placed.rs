//! Orders that a person can cancel for a moment: recorded first, then acted on when the moment is over.
//!
//! The order itself is durable at once, so neither closing a view nor killing the coordinator loses it; only its effect
//! waits.

use super::{OpenStep, Reply, operator};
use crate::event::PersonEvent;
use crate::state::{RunPhase, State};
use crate::steering::{UNDO_MS, Undoable};
use crate::time::Time;

/// Orders that may wait at the same time: a person gives them one by one.
const PLACED_MAX: usize = 64;

/// Records an order that waits for its moment.
pub(super) fn place(step: &mut OpenStep<'_>, order: Undoable) -> Reply {
    if let Some((number, _)) = step.state.steering.placed.iter().find(|(_, placed)| placed.order == order) {
        return Reply::Placed(*number);
    }
    if let Some(number) = other_answer(step.state, &order) {
        let reason = format!("order {number} already answers this question: undo it first");
        return Reply::Refused { reason };
    }
    if step.state.steering.placed.len() >= PLACED_MAX {
        return operator::ordered(step, order.into());
    }
    // An order that would be refused is refused now, while the person is watching.
    let mut tried = step.state.clone();
    let mut trial = OpenStep { state: &mut tried, now: step.now, events: Vec::new() };
    match operator::ordered(&mut trial, order.clone().into()) {
        Reply::Accepted => {}
        settled @ (Reply::Already
        | Reply::Refused { .. }
        | Reply::Verifying { .. }
        | Reply::Asked(_)
        | Reply::Placed(_)) => return settled,
    }
    let number = step.state.steering.last_placed + 1;
    let due = step.now.plus_ms(UNDO_MS);
    step.emit_run(PersonEvent::OrderPlaced { number, order, due });
    Reply::Placed(number)
}

/// The waiting order with another answer to the same question. The first would win and the second would be lost silently.
fn other_answer(state: &State, order: &Undoable) -> Option<u64> {
    let Undoable::Answer { id, .. } = order else { return None };
    let same = |placed: &Undoable| matches!(placed, Undoable::Answer { id: other, .. } if other == id);
    state.steering.placed.iter().find(|(_, placed)| same(&placed.order)).map(|(number, _)| *number)
}

/// Cancels an order that has not been acted on.
pub(super) fn undo(step: &mut OpenStep<'_>, number: u64) -> Reply {
    if !step.state.steering.placed.contains_key(&number) {
        let reason = format!("order {number} cannot be undone: it was carried out or undone already");
        return Reply::Refused { reason };
    }
    step.emit_run(PersonEvent::OrderUndone { number });
    Reply::Accepted
}

/// Acts on every order whose moment is over.
pub(super) fn act_on_due(step: &mut OpenStep<'_>) -> Reply {
    let due = step.state.steering.placed.iter().filter(|(_, placed)| placed.due <= step.now);
    let due: Vec<(u64, Undoable)> = due.map(|(number, placed)| (*number, placed.order.clone())).collect();
    if due.is_empty() {
        return Reply::Already;
    }
    for (number, order) in due {
        step.emit_run(PersonEvent::OrderTaken { number });
        // An order that no longer makes sense was overtaken by what happened meanwhile; the log shows both.
        let _overtaken = operator::ordered(step, order.into());
    }
    Reply::Accepted
}

/// When the next order is acted on. In a paused run no order is acted on before it continues.
pub(super) fn next_due(state: &State) -> Option<Time> {
    let paused = state.run.as_ref().is_none_or(|run| matches!(run.phase, RunPhase::Paused(_)));
    let due = state.steering.placed.values().map(|placed| placed.due);
    due.filter(|_| !paused).min()
}
