//! A plan's file: read, parsed, and its problems shown in place.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rekindle_core::import::{self, Format, Source, SourceFile};
use rekindle_core::plan::{self, PLAN_MAX_BYTES, Parsed, Plan, Problem, Severity};

use crate::diagnostic::{Diagnostic, SourceSpan};
use crate::error::{CliError, Result};

/// The plan that is meant when none is named.
pub(crate) const DEFAULT_PLAN: &str = "plan.md";

/// A file that was read and parsed.
pub(crate) struct PlanFile {
    /// Its path, as it was named.
    pub path: PathBuf,
    pub parsed: Parsed,
    source: Arc<str>,
}

/// A command that makes a plan from a file.
pub(crate) struct Offer {
    /// How many tasks it would have.
    pub tasks: usize,
    /// What to type.
    pub command: String,
}

impl Offer {
    fn sentence(&self) -> String {
        let tasks = if self.tasks == 1 { "1 task" } else { &format!("{} tasks", self.tasks) };
        format!("it can be read as a document with {tasks}: {}", self.command)
    }
}

/// A path as it is typed in a shell.
pub(crate) fn typed(path: &Path) -> String {
    let path = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@' | '%' | ',' | ':' | '=');
    let plain = !path.is_empty() && !path.starts_with('-') && path.chars().all(plain);
    if plain { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

impl PlanFile {
    /// Reads and parses a file. Fails when it cannot be read; problems in it are not errors here.
    pub(crate) fn read(path: &Path) -> Result<Self> {
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

    /// The plan. Fails with every problem, when one of them keeps it from being run.
    pub(crate) fn plan(&self) -> Result<&Plan> {
        match &self.parsed.plan {
            Some(plan) => Ok(plan),
            None => {
                let error = CliError::diagnosed(&self.path.display().to_string(), self.diagnostics());
                Err(match self.offer() {
                    Some(offer) => error.hint(offer.sentence()),
                    None => error,
                })
            }
        }
    }

    /// What to type to make a plan from a file that is not one: only if its tasks can be read, and it has no tasks in a
    /// plan's format.
    pub(crate) fn offer(&self) -> Option<Offer> {
        let no_plan = |problem: &Problem| matches!(problem.code, "no-tasks" | "bad-heading" | "bad-id");
        let mut errors = self.parsed.errors().peekable();
        if self.parsed.tasks > 0 || errors.peek().is_none() || !self.parsed.errors().any(no_plan) {
            return None;
        }
        let path = self.path.display().to_string();
        let title = self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let files = vec![SourceFile { path, text: self.source.to_string() }];
        let imported = import::convert(Format::Markdown, &Source { title, files, ..Source::default() }).ok()?;
        let out =
            if self.path.file_name().is_some_and(|name| name == DEFAULT_PLAN) { "rekindle.md" } else { DEFAULT_PLAN };
        let out = self.path.with_file_name(out);
        let command = format!("rekindle plan import --from markdown {} --out {}", typed(&self.path), typed(&out));
        Some(Offer { tasks: imported.tasks, command })
    }

    /// Adds a warning about a word below a key of the task that starts on `line`, in the order of the text.
    pub(crate) fn warn(
        &mut self,
        line: u32,
        (key, word): (&str, &str),
        code: &'static str,
        message: String,
        hint: &str,
    ) {
        let before: usize = self.source.split_inclusive('\n').take(line.saturating_sub(1) as usize).map(str::len).sum();
        let rest = self.source.get(before..).unwrap_or_default();
        let below = rest.find(key).unwrap_or(0);
        let found = rest[below..].find(word).map(|at| below + at);
        let start = before + found.unwrap_or(0);
        let end = start + found.map_or(0, |_| word.len());
        let passed = self.source.get(before..start).unwrap_or_default();
        let below = u32::try_from(passed.matches('\n').count()).unwrap_or(0);
        let column = passed.rsplit('\n').next().unwrap_or_default().chars().count();
        self.parsed.problems.push(Problem {
            severity: Severity::Warning,
            code,
            span: plan::Span { start, end },
            line: line + below,
            column: u32::try_from(column + 1).unwrap_or(1),
            message,
            hint: Some(hint.to_owned()),
        });
        self.parsed.problems.sort_by_key(|problem| problem.span.start);
    }

    /// All its errors and warnings; warnings of the same sort are combined.
    pub(crate) fn diagnostics(&self) -> Vec<Diagnostic> {
        let problems = plan::folded(&self.parsed.problems);
        problems.iter().map(|problem| self.diagnostic(problem)).collect()
    }

    fn diagnostic(&self, problem: &Problem) -> Diagnostic {
        Diagnostic {
            warning: problem.severity == Severity::Warning,
            message: problem.message.clone(),
            hint: problem.hint.clone(),
            place: Some(SourceSpan {
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
    // One byte more than the parser accepts, so that it can report that the file is too large.
    file.take(PLAN_MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
