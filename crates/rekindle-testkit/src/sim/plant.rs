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
    /// A shim gives its agent every message it is handed, whatever its number.
    TellTwice,
    /// A reader tells a compaction again when the process has ended.
    RepeatSigns,
    /// A reader does not know a failure for what it is, so that nobody waits.
    MisreadLimit,
}

impl Plant {
    /// Every plant.
    pub const ALL: [Self; 8] = [
        Self::NoEpochCheck,
        Self::AckBeforeCommit,
        Self::KillpgOnly,
        Self::IngestWithoutOffset,
        Self::TrustDone,
        Self::TellTwice,
        Self::RepeatSigns,
        Self::MisreadLimit,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoEpochCheck => "no-epoch-check",
            Self::AckBeforeCommit => "ack-before-commit",
            Self::KillpgOnly => "killpg-only",
            Self::IngestWithoutOffset => "ingest-without-offset",
            Self::TrustDone => "trust-done",
            Self::TellTwice => "tell-twice",
            Self::RepeatSigns => "repeat-signs",
            Self::MisreadLimit => "misread-limit",
        }
    }

    /// The plant with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plant| plant.name() == name)
    }
}
