//! What a coordinator of a story looks after besides its agents: the machine's resources and the plan's file.

use std::cell::RefCell;
use std::rc::Rc;

use rekindle_core::refusal::Refusal;
use rekindle_core::state::State;
use rekindle_core::time::Time;
use rekindle_engine::coordinator::{House, Notice};

use super::refusals::refusal;
use super::world::Sim;

/// The house of one coordinator.
pub struct SimHouse {
    sim: Rc<RefCell<Sim>>,
}

impl SimHouse {
    /// A house over the story.
    pub fn new(sim: Rc<RefCell<Sim>>) -> Self {
        Self { sim }
    }
}

impl House for SimHouse {
    fn short(&mut self) -> Option<Refusal> {
        self.sim.borrow().short.then(refusal)
    }

    fn plan_file(&mut self) -> Option<String> {
        self.sim.borrow().plan_file.clone()
    }

    /// No files for people are written here: nothing depends on them.
    fn files_due(&mut self, _seq: u64, _now: Time) -> Option<Time> {
        None
    }

    fn write_files(&mut self, _state: &State, _seq: u64, _now: Time) {}

    fn tell(&mut self, notice: &Notice) {
        self.sim.borrow_mut().say(format_args!("a person is told: {notice:?}"));
    }
}
