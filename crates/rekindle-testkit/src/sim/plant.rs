//! Bugs planted on purpose, to show that the checkers see them. Each sits at a seam around the product, never in it.

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// Reports of attempts that are over pass as the current one's.
    NoEpochCheck,
    /// The store says that a batch is durable before it is.
    AckBeforeCommit,
    /// Stopping an attempt ends its process group and leaves the rest of its tree.
    KillpgOnly,
    /// A restart forgets how far the spools were read.
    IngestWithoutOffset,
    /// Checks are taken as passed because the agent says it is done.
    TrustDone,
}

impl Plant {
    /// Every plant.
    pub const ALL: [Self; 5] =
        [Self::NoEpochCheck, Self::AckBeforeCommit, Self::KillpgOnly, Self::IngestWithoutOffset, Self::TrustDone];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoEpochCheck => "no-epoch-check",
            Self::AckBeforeCommit => "ack-before-commit",
            Self::KillpgOnly => "killpg-only",
            Self::IngestWithoutOffset => "ingest-without-offset",
            Self::TrustDone => "trust-done",
        }
    }

    /// The plant with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plant| plant.name() == name)
    }
}
