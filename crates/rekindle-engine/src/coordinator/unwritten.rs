//! A store that refuses for a reason that may pass: what was decided is kept and tried again, a person is told, signals are heard.

use std::time::Duration;

use rekindle_core::refusal::Refusal;

use super::turn::STORE_RETRY_MS;
use super::{Coordinator, Error, House as _};
use crate::store;
use crate::urgent::Wish;

/// Signals are looked for this often meanwhile: whoever presses a key sees an answer at once.
const SIGNAL_LOOK: Duration = Duration::from_millis(50);

/// What a person is told beside the log, because the log cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The store refuses for a reason that may pass.
    Unwritten(String),
    /// A pause was asked for and cannot be written either.
    CannotPause,
    /// It can be written again.
    Written,
    /// The system has no file watch left, so that agents are looked at in turn: what to type.
    Polling(Refusal),
    /// It has watches again.
    Watching,
}

pub type Teller = Box<dyn Fn(&Notice)>;

impl Coordinator {
    /// Waits a moment, and hears signals: with nothing to write to, leaving is all that is left to do.
    pub(super) fn wait_for_store(&mut self, error: store::Error) -> Result<(), Error> {
        if self.told.is_none() {
            self.tell_unwritten(Notice::Unwritten(error.to_string()));
        }
        let mut waited = Duration::ZERO;
        while waited < Duration::from_millis(STORE_RETRY_MS) {
            match self.urgent.wish() {
                Wish::Leave => return Err(Error::Unwritten(error)),
                Wish::Pause if self.told != Some(Notice::CannotPause) => self.tell_unwritten(Notice::CannotPause),
                Wish::Pause | Wish::Stay => {}
            }
            std::thread::park_timeout(SIGNAL_LOOK);
            waited += SIGNAL_LOOK;
        }
        Ok(())
    }

    fn tell_unwritten(&mut self, notice: Notice) {
        self.turns.house().tell(&notice);
        self.told = Some(notice);
    }

    /// Whatever could not be written is.
    pub(super) fn is_written(&mut self) {
        if self.told.take().is_some() {
            self.turns.house().tell(&Notice::Written);
        }
    }
}
