//! The settings of `rekindle land --pr` and `--watch`.

use super::{Config, Value};

/// Where and how a result is published.
#[derive(Clone, Debug)]
pub(crate) struct Landing {
    pub remote: String,
    /// The branch that it goes into; `None` means the remote's default branch.
    pub base: Option<String>,
    /// `auto`, `gh`, `glab` or `command`.
    pub forge: String,
    /// The user's own program.
    pub command: Vec<String>,
    /// People whose comments are acted on besides those who belong to the project according to the forge.
    pub reviewers: Vec<String>,
    pub auto_merge: bool,
    /// `merge`, `squash` or `rebase`.
    pub merge_form: String,
    /// Pause between two polls of the forge.
    pub poll_ms: u64,
}

impl Config {
    pub(crate) fn landing(&self) -> Landing {
        let command = match &self.sourced("land.command").value {
            Value::Command(words) => words.clone(),
            _ => Vec::new(),
        };
        Landing {
            remote: self.text("land.remote").to_owned(),
            base: Some(self.text("land.base").to_owned()).filter(|base| !base.is_empty()),
            forge: self.text("land.forge").to_owned(),
            command,
            reviewers: self.names("land.reviewers"),
            auto_merge: self.is_on("land.auto_merge"),
            merge_form: self.text("land.merge_form").to_owned(),
            poll_ms: self.duration_ms("land.poll"),
        }
    }
}
