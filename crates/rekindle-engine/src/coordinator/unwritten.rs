//! A store that refuses for a temporary reason: decisions are kept and retried, a person is told, signals are handled.

use std::time::Duration;

use rekindle_core::refusal::Refusal;

use super::turn::STORE_RETRY_MS;
use super::{Coordinator, Error, House as _};
use crate::store;
use crate::urgent::Wish;

/// Signals are checked this often meanwhile: a person who presses a key sees a reaction at once.
const SIGNAL_LOOK: Duration = Duration::from_millis(50);

/// Notices to a person outside the log, because the log cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The store refuses for a temporary reason.
    Unwritten(String),
    /// A pause was asked for and cannot be written either.
    CannotPause,
    /// It can be written again.
    Written,
    /// The system has no file watch left, so agents are polled in turn: what to type.
    Polling(Refusal),
    /// It has watches again.
    Watching,
}

pub type Teller = Box<dyn Fn(&Notice)>;

impl Coordinator {
    /// Waits a moment and handles signals: with nothing to write to, leaving is all that is left to do.
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

    /// Everything that could not be written has been written.
    pub(super) fn is_written(&mut self) {
        if self.told.take().is_some() {
            self.turns.house().tell(&Notice::Written);
        }
    }
}
