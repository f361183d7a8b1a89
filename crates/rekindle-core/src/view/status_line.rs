//! The state of a run in one line, for a message.

use super::{Counts, run_row};
use crate::state::State;
use crate::text::counted;

/// The plan, the run's state, its count, the agents working on it, and what waits for a person.
pub fn status_line(state: &State) -> String {
    let Some(run) = run_row(state) else { return "there is no run".to_owned() };
    let agents = state.live_attempts().count();
    let open = state.questions.values().filter(|question| question.answer.is_none()).count();
    let mut line = format!("{} is {}: {}", run.plan, run.state, Counts::of_state(state).words());
    line += &format!("; {} running", counted(agents, "agent", "agents"));
    if open > 0 {
        line += &format!("; {} open", counted(open, "question", "questions"));
    }
    line
}
