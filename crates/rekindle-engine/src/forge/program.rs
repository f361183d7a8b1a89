//! A forge's program: run within bounds, asked for JSON, and its permanent refusals distinguished from temporary ones.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::de::DeserializeOwned;

use super::{Error, Result};
use crate::process::{self, Limits};

/// How long one call may take: enough for a slow network and a slow forge, but not for a program that hangs.
const CALL_MS: u64 = 120_000;

/// Largest answer: a thousand long comments.
const ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// How much of the end of its error output is kept.
const SAID_BYTES: usize = 2_000;

/// The exit code with which a program of the user's own asks to be called again later (`EX_TEMPFAIL`).
pub(super) const TRY_LATER: i32 = 75;

/// What programs print when a retry may work later. Compared in lower case.
const PASSING: &[&str] = &[
    "http 429",
    "http 500",
    "http 502",
    "http 503",
    "http 504",
    "429 too many requests",
    "rate limit",
    "500 internal server error",
    "502 bad gateway",
    "503 service unavailable",
    "504 gateway timeout",
    "error connecting to",
    "could not resolve host",
    "no such host",
    "connection refused",
    "connection reset",
    "network is unreachable",
    "i/o timeout",
    "tls handshake timeout",
    "unexpected eof",
];

pub(super) struct Program {
    words: Vec<String>,
    dir: PathBuf,
    variables: &'static [(&'static str, &'static str)],
}

impl Program {
    pub(super) fn new(words: Vec<String>, dir: &Path, variables: &'static [(&'static str, &'static str)]) -> Self {
        Self { words, dir: dir.to_owned(), variables }
    }

    fn name(&self) -> String {
        self.words.first().cloned().unwrap_or_default()
    }

    /// Runs it to its end and returns its output.
    pub(super) fn run(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>> {
        let program = self.name();
        let mut command = Command::new(&program);
        command.args(self.words.iter().skip(1)).args(arguments).current_dir(&self.dir);
        command.envs(self.variables.iter().copied());
        let limits =
            Limits { within_ms: CALL_MS, out_max: ANSWER_BYTES, err_max: Some(SAID_BYTES), ends_leftovers: true };
        let done = process::run(&mut command, input, &limits).map_err(|error| match error {
            process::Error::Start(why) => Error::NoProgram { program: program.clone(), why: why.to_string() },
            error => Error::NoAnswer { program: program.clone(), said: error.to_string() },
        })?;
        if done.status.success() {
            return Ok(done.out);
        }
        let said = String::from_utf8_lossy(&done.err).trim().to_owned();
        Err(match done.status.code() {
            None => Error::NoAnswer { program, said: format!("it was killed ({})", done.status) },
            Some(code) if code == TRY_LATER || passes(&said) => Error::Later { program, said },
            Some(code) if said.is_empty() => Error::Refused { program, said: format!("exit code {code}") },
            Some(_) => Error::Refused { program, said },
        })
    }

    /// Runs it and reads its answer.
    pub(super) fn ask<T: DeserializeOwned>(&self, arguments: &[&str], input: &[u8]) -> Result<T> {
        let out = self.run(arguments, input)?;
        serde_json::from_slice(&out).map_err(|error| self.garbled(&error))
    }

    /// The same for lists that come page by page, one list after the other.
    pub(super) fn ask_pages<T: DeserializeOwned>(&self, arguments: &[&str]) -> Result<Vec<T>> {
        let out = self.run(arguments, &[])?;
        let mut all = Vec::new();
        for page in serde_json::Deserializer::from_slice(&out).into_iter::<Vec<T>>() {
            all.extend(page.map_err(|error| self.garbled(&error))?);
        }
        Ok(all)
    }

    /// An answer that ends too early was cut off; anything else comes from another program.
    fn garbled(&self, error: &serde_json::Error) -> Error {
        let (program, said) = (self.name(), error.to_string());
        if error.is_eof() { Error::NoAnswer { program, said } } else { Error::Garbled { program, said } }
    }
}

fn passes(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    PASSING.iter().any(|words| said.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_is_told_apart_from_a_refusal() {
        for said in ["HTTP 429: slow down", "gh: Bad gateway (HTTP 502)", "API rate limit exceeded for user"] {
            assert!(passes(said), "{said}");
        }
        for said in ["HTTP 404: Not Found", "a pull request for branch x already exists", "GraphQL: not authorized"] {
            assert!(!passes(said), "{said}");
        }
    }

    #[test]
    fn a_cut_answer_is_none_and_a_wrong_one_is_garbled() {
        let say =
            |text: &str| Program::new(vec!["printf".to_owned(), "%s".to_owned(), text.to_owned()], Path::new("/"), &[]);
        assert!(matches!(say("[1, 2").ask::<Vec<u8>>(&[], &[]), Err(Error::NoAnswer { .. })));
        assert!(matches!(say("").ask::<Vec<u8>>(&[], &[]), Err(Error::NoAnswer { .. })));
        assert!(matches!(say("{}").ask::<Vec<u8>>(&[], &[]), Err(Error::Garbled { .. })));
        assert_eq!(say("[1][2]").ask_pages::<u8>(&[]).expect("pages"), [1, 2]);
    }
}
