//! How a person opens an agent's own session in a terminal: with the program's own resume option, without anything added by
//! rekindle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Adapter, Place, Start};

/// What is started in the person's terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interactive {
    pub argv: Vec<String>,
    /// Variables added to the person's environment.
    pub env: BTreeMap<String, String>,
    pub env_remove: BTreeSet<String>,
}

impl Interactive {
    /// The adapter's program, found as for an agent, with these words after its first ones and the operator's `args` last.
    pub(super) fn of(adapter: &dyn Adapter, place: &Place<'_>, words: &[&str]) -> Result<Self, String> {
        let start = Start {
            program: place.program,
            prompt: "",
            resume: None,
            new_session: "",
            bundle: place.bundle,
            workspace: place.workspace,
            rekindle: Path::new(""),
        };
        let mut argv = start.program_words(adapter)?;
        argv.extend(words.iter().map(|word| (*word).to_owned()));
        if let Some(model) = &place.program.model {
            argv.extend(["--model".to_owned(), model.clone()]);
        }
        Ok(Self { argv, env: place.program.env.clone(), env_remove: BTreeSet::new() })
    }

    pub(super) fn and<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        self.argv.extend(words.into_iter().map(str::to_owned));
        self
    }
}
