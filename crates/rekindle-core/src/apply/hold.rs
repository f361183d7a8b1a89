//! Holds on new starts: what a machine that is short of something says, and what remains of it when it is over.

use crate::event::{Body, Event};
use crate::state::State;

pub(super) fn apply(state: &mut State, event: &Event) {
    match &event.body {
        Body::StartsHeld(held) => {
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
        Body::StartsReleased {} => {
            state.held = None;
            (state.hold.since, state.hold.until) = (None, None);
            state.hold.hint.clear();
        }
        _ => {}
    }
}

/// Something that the machine may refuse was done: it is believed again.
pub(super) fn worked(state: &mut State) {
    state.hold.strikes = 0;
}
