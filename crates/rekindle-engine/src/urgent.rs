//! Signals to this process, beside the queue of messages: they are heard even while the queue is full or the store refuses.

use std::sync::{Arc, Mutex, PoisonError};

use rekindle_core::event::PauseReason;

/// Signals that are kept: after these nothing sharper can be said.
const KEPT: usize = 16;

/// What signals said so far.
#[derive(Clone, Debug, Default)]
pub struct Urgent(Arc<Mutex<Heard>>);

#[derive(Debug, Default)]
struct Heard {
    reasons: Vec<PauseReason>,
    taken: usize,
}

/// How urgently this process is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wish {
    /// Nobody asked.
    Stay,
    /// The run is to be paused.
    Pause,
    Leave,
}

impl Urgent {
    /// A signal came.
    pub fn pause(&self, reason: PauseReason) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.reasons.len() < KEPT {
            heard.reasons.push(reason);
        }
    }

    /// What came since it was last taken.
    pub(crate) fn take(&self) -> Vec<PauseReason> {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = heard.reasons.len();
        let taken = std::mem::replace(&mut heard.taken, all);
        heard.reasons[taken..].to_vec()
    }

    /// What all of it comes to.
    pub(crate) fn wish(&self) -> Wish {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |reason: &PauseReason| match reason {
            PauseReason::Stop | PauseReason::Terminate => Wish::Leave,
            _ => Wish::Pause,
        };
        heard.reasons.iter().map(of).max().unwrap_or(Wish::Stay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_signal_and_a_service_manager_want_it_gone() {
        let urgent = Urgent::default();
        assert_eq!(urgent.wish(), Wish::Stay);
        urgent.pause(PauseReason::Interrupt);
        assert_eq!((urgent.wish(), urgent.take()), (Wish::Pause, vec![PauseReason::Interrupt]));
        urgent.pause(PauseReason::Stop);
        assert_eq!((urgent.wish(), urgent.take()), (Wish::Leave, vec![PauseReason::Stop]));
        assert_eq!(urgent.take(), []);
        let other = Urgent::default();
        other.pause(PauseReason::Terminate);
        assert_eq!(other.wish(), Wish::Leave);
        for _ in 0..2 * KEPT {
            other.pause(PauseReason::Stop);
        }
        assert_eq!(other.take().len(), KEPT, "bounded");
    }
}
