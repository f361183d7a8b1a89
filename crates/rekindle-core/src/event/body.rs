//! Every kind of fact, in families: code that changes the state by a fact, or puts it into words, handles one family at a
//! time.

use serde::Serialize;

use super::{AttemptEvent, GateEvent, MachineEvent, PersonEvent, ReviewEvent, RunEvent, SessionEvent, TaskEvent};

/// What happened. The log has no families: an event is stored by its own name and fields.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Body {
    Run(RunEvent),
    Attempt(AttemptEvent),
    /// What happened in an agent's session.
    Session(SessionEvent),
    Task(TaskEvent),
    Review(ReviewEvent),
    /// What happened to an account's gate.
    Gate(GateEvent),
    /// What was seen of the surroundings.
    Machine(MachineEvent),
    /// What passed between a run and a person.
    Person(PersonEvent),
}
