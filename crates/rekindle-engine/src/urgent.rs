//! Signals to this process, separate from the message queue: they are seen even while the queue is full or the store
//! refuses.

use std::sync::{Arc, Mutex, PoisonError};

use rekindle_core::event::PauseReason;

/// Signals that are kept: later ones cannot ask for anything more urgent.
const KEPT: usize = 16;

/// The signals received so far.
#[derive(Clone, Debug, Default)]
pub struct Urgent(Arc<Mutex<Heard>>);

#[derive(Debug, Default)]
struct Heard {
    reasons: Vec<PauseReason>,
    taken: usize,
}

/// How urgently this process should exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wish {
    /// No signal was received.
    Stay,
    /// The run should be paused.
    Pause,
    Leave,
}

impl Urgent {
    /// Records a signal.
    pub fn pause(&self, reason: PauseReason) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.reasons.len() < KEPT {
            heard.reasons.push(reason);
        }
    }

    /// The signals received since the last call.
    pub(crate) fn take(&self) -> Vec<PauseReason> {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = heard.reasons.len();
        let taken = std::mem::replace(&mut heard.taken, all);
        heard.reasons[taken..].to_vec()
    }

    /// The most urgent wish of all signals received.
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
