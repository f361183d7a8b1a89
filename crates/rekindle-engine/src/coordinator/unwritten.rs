//! A store that refuses for a reason that may pass: what was decided is kept and tried again, a person is told, signals are heard.

use std::time::Duration;

use rekindle_core::refusal::Refusal;

use super::{Coordinator, Error};
use crate::driver::{self, Driver};
use crate::store;
use crate::urgent::Wish;
use crate::world::real::RealWorld;

/// How long to wait before trying again when the store refused for a reason that may pass (no space, a lock).
const STORE_RETRY: Duration = Duration::from_millis(500);

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
}

/// Tells a person.
pub type Teller = Box<dyn Fn(&Notice)>;

impl Coordinator {
    /// Lets the driver do something, and while the store refuses for a reason that may pass, waits and tries again: what was
    /// decided is kept, agents work on, nothing is acted on or answered before it is durable.
    pub(super) fn persistently(
        &mut self,
        what: impl FnOnce(&mut Driver<RealWorld>) -> Result<(), driver::Error>,
    ) -> Result<(), Error> {
        let mut outcome = what(&mut self.driver);
        let mut told: Option<Notice> = None;
        loop {
            match outcome {
                Err(driver::Error::Store(
                    error @ (store::Error::Full(_) | store::Error::Busy(_) | store::Error::Io(_)),
                )) => {
                    self.wait_for_store(error, &mut told)?;
                    outcome = self.driver.handle([]);
                }
                other => {
                    if told.is_some() && other.is_ok() {
                        self.tell(&Notice::Written);
                    }
                    return other.map_err(Error::from);
                }
            }
        }
    }

    /// Waits a moment, and hears signals: with nothing to write to, leaving is all that is left to do.
    fn wait_for_store(&self, error: store::Error, told: &mut Option<Notice>) -> Result<(), Error> {
        if told.is_none() {
            let notice = Notice::Unwritten(error.to_string());
            self.tell(&notice);
            *told = Some(notice);
        }
        let mut waited = Duration::ZERO;
        while waited < STORE_RETRY {
            match self.urgent.wish() {
                Wish::Leave => return Err(Error::Unwritten(error)),
                Wish::Pause if *told != Some(Notice::CannotPause) => {
                    self.tell(&Notice::CannotPause);
                    *told = Some(Notice::CannotPause);
                }
                Wish::Pause | Wish::Stay => {}
            }
            std::thread::park_timeout(SIGNAL_LOOK);
            waited += SIGNAL_LOOK;
        }
        Ok(())
    }

    pub(super) fn tell(&self, notice: &Notice) {
        if let Some(teller) = &self.teller {
            teller(notice);
        }
    }
}
