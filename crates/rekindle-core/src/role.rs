//! The roles an agent can have in the life of a task.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What an agent is there for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Does the work.
    #[default]
    Developer,
    /// Criticises it.
    Critic,
    /// Proves it.
    Auditor,
    /// Repairs what was broken before.
    Remediation,
    /// Proves the repair.
    HealthAuditor,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Developer, Self::Critic, Self::Auditor, Self::Remediation, Self::HealthAuditor];

    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Whether it judges the work of others.
    pub fn reviews(self) -> bool {
        matches!(self, Self::Critic | Self::Auditor | Self::HealthAuditor)
    }

    /// The name in events, files and the environment.
    pub fn name(self) -> &'static str {
        match self {
            Self::Developer => "developer",
            Self::Critic => "critic",
            Self::Auditor => "auditor",
            Self::Remediation => "remediation",
            Self::HealthAuditor => "health_auditor",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
