//! The faults by name: what each does, and what it needs from the machine. `inject` carries them out.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Fault {
    /// kill -9 of the coordinator while agents work
    KillCoordinator,
    /// kill -9 of the process that supervises an agent
    KillShim,
    /// kill -9 of an agent
    KillAgent,
    /// kill -9 of coordinator, supervisor and agent at once
    KillAll,
    /// the coordinator is frozen for seconds, then continues (SIGSTOP, SIGCONT)
    Freeze,
    /// the coordinator gets no file descriptor for a while
    NoDescriptors,
    /// the machine has no inotify watch left
    NoInotify,
    /// the disk of the state directory is full for a while
    FullDisk,
    /// the provider's allowance is used up until a reset
    UsageLimit,
    /// the provider closes the connection: the agent gives up with an error
    ConnectionLost,
    /// an agent crashes by itself
    AgentCrash,
    /// an agent falls silent
    AgentHang,
    /// an agent says done and has done nothing
    AgentLie,
}

impl Fault {
    /// The name, as it is typed.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// What it does, in a line.
    pub(super) fn what(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }

    /// What a stand-in is ordered to do by itself, if the fault works that way.
    pub(super) fn order(self) -> Option<&'static str> {
        match self {
            Self::AgentCrash => Some("crash"),
            Self::AgentHang => Some("hang"),
            Self::AgentLie => Some("lie"),
            Self::ConnectionLost => Some("gone"),
            _ => None,
        }
    }

    /// Whether only a stand-in can produce it.
    pub(super) fn needs_stand_in(self) -> bool {
        self.order().is_some() || self == Self::UsageLimit
    }

    /// Whether the run needs its own namespace, so that the machine's limits stay unchanged for everything else.
    pub(super) fn needs_namespace(self) -> bool {
        matches!(self, Self::NoInotify | Self::FullDisk)
    }
}
