//! Plans that people already have in other tools' formats, turned into plans of ours: text in, plan text and remarks out.
//! Owns what is carried over and what is not; finding files and asking other programs is left to the callers.
//!
//! Imported text comes from strangers. It is quoted line by line, so that nothing in it can become a heading, a key or front
//! matter. No command is ever taken from another tool's tasks; from a document only those that it names as verification.

mod beads;
mod checklist;
mod draft;
mod github;
mod json;
mod kiro;
mod markdown;
mod open_spec;
mod recognise;
mod spec_kit;
mod task_files;
mod task_master;
mod write;

#[cfg(test)]
mod tests;

use draft::Draft;
pub use recognise::recognise;

/// Longest text kept of one item: what the largest of the trackers allows for an issue.
const TEXT_MAX_BYTES: usize = 64 * 1024;

/// Longest title: a heading is one line of a status table, the full text is below it.
const TITLE_MAX_BYTES: usize = 160;

/// Maximum number of items in one import: as many as the largest plan that can be read.
const ITEMS_MAX: usize = 10_000;

/// Maximum number of dependencies in one import, those on groups counted for each member: keeps hostile input linear.
const EDGES_MAX: usize = 200_000;

/// Maximum number of remarks: a person has to read them.
const REMARKS_MAX: usize = 100;

/// A supported import format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// spec-kit's `specs/NAME/tasks.md`.
    SpecKit,
    /// Task Master's `tasks.json`.
    TaskMaster,
    /// beads' `issues.jsonl`.
    Beads,
    /// A folder with one JSON file per task, as an agent's own task list is kept.
    TaskFiles,
    /// OpenSpec's `openspec/changes/NAME/tasks.md`.
    OpenSpec,
    /// Kiro's `.kiro/specs/NAME/tasks.md`.
    Kiro,
    /// GitHub issues as `gh issue list --json` prints them.
    GitHub,
    /// A document of headings, lists, checklists and tables.
    Markdown,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::SpecKit => "spec-kit",
            Format::TaskMaster => "Task Master",
            Format::Beads => "beads",
            Format::TaskFiles => "task files",
            Format::OpenSpec => "OpenSpec",
            Format::Kiro => "Kiro",
            Format::GitHub => "GitHub issues",
            Format::Markdown => "Markdown",
        }
    }
}

#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Its path, relative to the project if possible, with `/` as the separator.
    pub path: String,
    pub text: String,
}

/// All that a plan is made of.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The plan's title if the format does not give one.
    pub title: String,
    /// The files in order; all formats but task files have one.
    pub files: Vec<SourceFile>,
    /// Files next to it that explain the work (a specification, a design), as paths relative to the project.
    pub reading: Vec<String>,
    /// Which of several lists in the file is meant, for formats that have several.
    pub tag: Option<String>,
}

/// A plan made from a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The plan's text; it can be run as it is.
    pub text: String,
    pub tasks: usize,
    /// How many of them are complete already.
    pub done: usize,
    /// How many commands became checks.
    pub checks: usize,
    /// What could not be carried over, and what was changed; one line each, fit for a terminal.
    pub remarks: Vec<String>,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The text is not of this format.
    #[error("this is not what {format} writes: {why}")]
    Malformed { format: &'static str, why: String },
    /// Nothing in it is a task.
    #[error("no tasks found{0}")]
    Empty(String),
    /// More than is accepted.
    #[error("{what}: {count}, at most {max} are taken; import a part of it")]
    TooMany { what: &'static str, count: usize, max: usize },
    /// The file has several lists, and none was chosen or the chosen one does not exist.
    #[error("{why}: choose one of {tags}")]
    WhichTag {
        why: String,
        /// The names that there are.
        tags: String,
    },
    /// The plan would not have passed its own check: a bug in this code.
    #[error("the plan made of it cannot be used: {0}")]
    Unusable(String),
}

/// Turns a source into a plan.
pub fn convert(format: Format, source: &Source) -> Result<Imported, ImportError> {
    let draft = match format {
        Format::SpecKit => spec_kit::read(source)?,
        Format::TaskMaster => task_master::read(source)?,
        Format::Beads => beads::read(source)?,
        Format::TaskFiles => task_files::read(source)?,
        Format::OpenSpec => open_spec::read(source)?,
        Format::Kiro => kiro::read(source)?,
        Format::GitHub => github::read(source)?,
        Format::Markdown => markdown::read(source)?,
    };
    write::plan(format, draft)
}

fn only_file(source: &Source) -> &str {
    source.files.first().map_or("", |file| file.text.as_str())
}

fn malformed(format: Format, why: impl Into<String>) -> ImportError {
    ImportError::Malformed { format: format.name(), why: why.into() }
}
