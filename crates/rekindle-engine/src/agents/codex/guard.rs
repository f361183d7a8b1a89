//! A guarded interactive session of Codex: what its hooks and its transcript mean. What its tools mean is in `tools`, its
//! transcript in `transcript`.

#[cfg(test)]
mod tests;
mod tools;
mod transcript;

use std::path::PathBuf;

use serde_json::Value;

use super::super::fields;
use super::super::guard_adapter::{GuardAdapter, Heard, Transcript};
use super::super::hook_events::{self, Dialect};
use super::Codex;

const DIALECT: Dialect = Dialect { tool: tools::facts, prompt: transcript::prompt, ends_batch: tools::ends_batch };

impl GuardAdapter for Codex {
    fn read_hook(&self, asked: &Value, _var: &dyn Fn(&str) -> Option<String>) -> Option<Heard> {
        let dir = PathBuf::from(fields::text(asked, "cwd").unwrap_or_default());
        hook_events::read(asked, dir, &DIALECT)
    }

    fn transcript_reader(&self) -> Option<Box<dyn Transcript>> {
        Some(Box::<transcript::Lines>::default())
    }

    fn answer(&self, heard: &Heard, text: &str) -> Option<String> {
        hook_events::answer(heard, text)
    }

    fn session_variable(&self) -> Option<&'static str> {
        Some("CODEX_SESSION_ID")
    }

    fn launch(&self, prompt: &str) -> Vec<String> {
        vec!["codex".to_owned(), prompt.to_owned()]
    }
}
