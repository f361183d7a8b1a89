//! The termination ladder as data: which signal, how long to wait, and the whole tree at the end.
//!
//! The shim climbs it, so a stop continues when the process that asked for it is gone. Time is passed in as an argument.

use std::collections::VecDeque;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

/// Limit on rungs in a request: more are a mistake, and each costs a wait.
pub const RUNGS_MAX: usize = 16;

/// The longest grace of one rung: an hour is more than any agent needs to shut down.
pub const GRACE_MAX_MS: u64 = 3_600_000;

/// A signal with which an agent may be asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopSignal {
    #[serde(rename = "SIGHUP")]
    Hup,
    /// Interrupt, as Ctrl-C does.
    #[serde(rename = "SIGINT")]
    Int,
    #[serde(rename = "SIGQUIT")]
    Quit,
    #[serde(rename = "SIGTERM")]
    Term,
    /// First signal without a fixed meaning.
    #[serde(rename = "SIGUSR1")]
    Usr1,
    /// Second signal without a fixed meaning.
    #[serde(rename = "SIGUSR2")]
    Usr2,
}

impl StopSignal {
    pub fn signal(self) -> Signal {
        match self {
            Self::Hup => Signal::HUP,
            Self::Int => Signal::INT,
            Self::Quit => Signal::QUIT,
            Self::Term => Signal::TERM,
            Self::Usr1 => Signal::USR1,
            Self::Usr2 => Signal::USR2,
        }
    }
}

/// One rung: a signal to the agent, then patience.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rung {
    pub signal: StopSignal,
    /// How long the agent has before the next rung.
    pub grace_ms: u64,
}

/// The ladder used where none is given: interrupt and terminate, five seconds each, as a person would.
pub fn default_rungs() -> Vec<Rung> {
    vec![Rung { signal: StopSignal::Int, grace_ms: 5_000 }, Rung { signal: StopSignal::Term, grace_ms: 5_000 }]
}

/// What is due now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Signal(StopSignal),
    /// No gentler step is left: end the whole tree.
    KillTree,
}

/// A ladder being climbed.
#[derive(Debug)]
pub struct Climb {
    rungs: VecDeque<Rung>,
    next_at_ms: u64,
}

impl Climb {
    /// Begins at the first rung, which is due at once.
    pub fn start(rungs: &[Rung], now_ms: u64) -> Self {
        Self { rungs: rungs.iter().take(RUNGS_MAX).copied().collect(), next_at_ms: now_ms }
    }

    /// What is due at `now_ms`, if anything. Each rung is returned once; after the last one, always the whole tree.
    pub fn due(&mut self, now_ms: u64) -> Option<Act> {
        if now_ms < self.next_at_ms {
            return None;
        }
        let Some(rung) = self.rungs.pop_front() else {
            return Some(Act::KillTree);
        };
        self.next_at_ms = now_ms.saturating_add(rung.grace_ms.min(GRACE_MAX_MS));
        Some(Act::Signal(rung.signal))
    }

    /// When to ask again.
    pub fn next_at_ms(&self) -> u64 {
        self.next_at_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn climbs_rung_by_rung_and_then_takes_the_tree() {
        let mut climb = Climb::start(&default_rungs(), 100);
        assert_eq!(climb.due(99), None);
        assert_eq!(climb.due(100), Some(Act::Signal(StopSignal::Int)));
        assert_eq!(climb.due(5_099), None);
        assert_eq!(climb.due(5_100), Some(Act::Signal(StopSignal::Term)));
        assert_eq!(climb.next_at_ms(), 10_100);
        assert_eq!(climb.due(10_100), Some(Act::KillTree));
    }

    #[test]
    fn an_empty_ladder_is_the_tree_at_once() {
        assert_eq!(Climb::start(&[], 7).due(7), Some(Act::KillTree));
    }

    #[test]
    fn a_grace_without_end_is_capped() {
        let mut climb = Climb::start(&[Rung { signal: StopSignal::Term, grace_ms: u64::MAX }], 1);
        climb.due(1);
        assert_eq!(climb.next_at_ms(), 1 + GRACE_MAX_MS);
    }

    #[test]
    fn signals_are_written_by_name() {
        let rung = Rung { signal: StopSignal::Term, grace_ms: 5 };
        assert_eq!(serde_json::to_string(&rung).expect("json"), r#"{"signal":"SIGTERM","grace_ms":5}"#);
    }
}
