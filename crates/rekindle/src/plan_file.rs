//! A plan's file: read, parsed, and its problems shown where they stand.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rekindle_core::plan::{self, PLAN_MAX_BYTES, Parsed, Plan, Problem, Severity};

use crate::error::{CliError, Result};
use crate::ui::{Diagnostic, Place};

/// The plan that is meant when none is named.
pub const DEFAULT_PLAN: &str = "plan.md";

/// A file that was read and parsed.
pub struct PlanFile {
    /// Where it lies, as it was named.
    pub path: PathBuf,
    /// What became of it.
    pub parsed: Parsed,
    source: Arc<str>,
}

impl PlanFile {
    /// Reads and parses a file.
    ///
    /// # Errors
    /// When it cannot be read; what is wrong in it is no error here.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = read_bytes(path).map_err(|error| {
            let unread = CliError::usage(format!("cannot read the plan {}", path.display())).because(&error);
            match error.kind() {
                std::io::ErrorKind::NotFound => unread.hint("write one to start from: rekindle init"),
                _ => unread,
            }
        })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Self {
            path: path.to_owned(),
            parsed: plan::parse(&name, &bytes),
            source: String::from_utf8_lossy(&bytes).into(),
        })
    }

    /// The plan.
    ///
    /// # Errors
    /// With every problem, when one of them keeps it from being run.
    pub fn plan(&self) -> Result<&Plan> {
        match &self.parsed.plan {
            Some(plan) => Ok(plan),
            None => Err(CliError::diagnosed(&self.path.display().to_string(), self.diagnostics())),
        }
    }

    /// Everything that is wrong or doubtful in it.
    #[must_use]
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let problems = self.parsed.problems.iter();
        problems.map(|problem| self.diagnostic(problem)).collect()
    }

    fn diagnostic(&self, problem: &Problem) -> Diagnostic {
        Diagnostic {
            warning: problem.severity == Severity::Warning,
            message: problem.message.clone(),
            hint: problem.hint.clone(),
            place: Some(Place {
                path: self.path.display().to_string(),
                source: Arc::clone(&self.source),
                span: problem.span.start..problem.span.end,
            }),
        }
    }
}

fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    // One byte more than the parser takes, so that it can say that it was too many.
    file.take(PLAN_MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
