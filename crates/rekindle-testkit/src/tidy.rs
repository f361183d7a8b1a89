//! The house rules as a test. This file owns what the compiler and clippy cannot check: sizes, names, which crate may import
//! which, the one place for each dangerous call. It reads files and reports; formatting, types and lints stay with their own
//! tools.
//!
//! A rule is a function from the repository to findings. Each has a test with a planted violation next to it
//! (`tidy/tests.rs`), since a checker that finds nothing proves nothing.

mod arrows;
mod calls;
mod glossary;
mod modules;
mod paths;
mod place;
mod size;
mod source;
mod tree;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

use source::Source;

/// One broken rule at one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the repository's root.
    pub path: String,
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// What was found there.
    pub what: String,
    /// Why it is not allowed, or where it belongs.
    pub why: &'static str,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>, why: &'static str) -> Self {
        Self { path: path.to_owned(), line, what: what.into(), why }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} ({})", self.path, self.line, self.what, self.why)
    }
}

/// Why the repository could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// git is missing, or the directory is no checkout.
    #[error("cannot list the repository's files: {0}")]
    List(String),
    /// A listed file exists but cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file that was listed.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
}

/// A repository's files, read once.
#[derive(Debug)]
pub struct Repo {
    rust: Vec<Source>,
    texts: BTreeMap<String, String>,
}

impl Repo {
    /// Reads every tracked file, and Rust files that are not tracked yet: a rule should report before the commit.
    pub fn load(root: &Path) -> Result<Self, Error> {
        let mut names = list(root, &[])?;
        names.extend(list(root, &["--others", "--exclude-standard", "--", "*.rs"])?);
        let mut files = Vec::with_capacity(names.len());
        for path in names {
            match std::fs::read(root.join(&path)) {
                Ok(bytes) => files.push((path, String::from_utf8_lossy(&bytes).into_owned())),
                // Tracked, but removed or a submodule's directory: nothing to check.
                Err(error)
                    if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::IsADirectory) => {}
                Err(source) => return Err(Error::Read { path, source }),
            }
        }
        Ok(Self::from_files(files))
    }

    /// A repository made of the given paths and texts.
    pub fn from_files(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let texts: BTreeMap<_, _> = files.into_iter().collect();
        let rust = texts
            .iter()
            .filter(|(path, _)| path.ends_with(".rs"))
            .map(|(path, text)| Source::new(path, text))
            .collect();
        Self { rust, texts }
    }

    /// How many Rust files were read; a test asserts that it is not zero.
    pub fn rust_file_count(&self) -> usize {
        self.rust.len()
    }
}

/// Every broken rule, ordered by file and line.
pub fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    size::check(repo, &mut findings);
    calls::check(repo, &mut findings);
    arrows::check(repo, &mut findings);
    modules::check(repo, &mut findings);
    tree::check(repo, &mut findings);
    glossary::check(repo, &mut findings);
    findings.sort();
    findings.dedup();
    findings
}

fn list(root: &Path, arguments: &[&str]) -> Result<Vec<String>, Error> {
    let output = Command::new("git")
        // A checkout made by another user (a container, a CI cache) is read here, never acted on.
        .args(["-c", "safe.directory=*", "ls-files", "-z"])
        .args(arguments)
        .current_dir(root)
        .output()
        .map_err(|error| Error::List(error.to_string()))?;
    if !output.status.success() {
        return Err(Error::List(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}
