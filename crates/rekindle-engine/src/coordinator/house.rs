//! What the shipped coordinator looks after on this machine: its disk and memory, the plan's file, the files for people, and
//! who receives notices.

use std::path::PathBuf;

use rekindle_core::refusal::Refusal;
use rekindle_core::state::State;
use rekindle_core::time::Time;

use super::{House, Notice, Teller};
use crate::files::Files;
use crate::polling;
use crate::pressure;

pub(super) struct RealHouse {
    pub(super) files: Files,
    pub(super) plan_path: PathBuf,
    pub(super) state_dir: PathBuf,
    pub(super) teller: Option<Teller>,
}

impl House for RealHouse {
    fn short(&mut self) -> Option<Refusal> {
        pressure::look(&self.state_dir)
    }

    fn plan_file(&mut self) -> Option<String> {
        std::fs::read(&self.plan_path).ok().map(|bytes| rekindle_core::plan::hash(&bytes))
    }

    fn files_due(&mut self, seq: u64, now: Time) -> Option<Time> {
        self.files.due(seq, now)
    }

    fn write_files(&mut self, state: &State, seq: u64, now: Time) {
        // A full disk must not turn a finished run into a failed one.
        let _tried_again_with_the_next_change = self.files.write(state, seq, now);
    }

    fn tell(&mut self, notice: &Notice) {
        match notice {
            Notice::Polling(lack) => polling::put(&self.state_dir, lack),
            Notice::Watching => polling::clear(&self.state_dir),
            Notice::Unwritten(_) | Notice::CannotPause | Notice::Written => {}
        }
        if let Some(teller) = &self.teller {
            teller(notice);
        }
    }
}
