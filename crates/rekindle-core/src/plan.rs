//! The plan language: Markdown in, a checked [`Plan`] or every problem at once out. Owns what a plan is; the parts of the
//! language are in the files below, one each. Reading the file, running the plan and comparing it with a changed one are
//! left to others.

mod bullets;
mod check;
mod checklist;
mod draft;
mod fold;
mod front_matter;
pub mod graph;
mod heading;
mod keys;
pub mod nearest;
mod outline;
mod problem;
mod read;
mod readiness;
mod settings;
mod show;
mod values;
mod write;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use fold::folded;
pub use graph::Graph;
pub use heading::looks_like_order;
pub use problem::{Problem, Severity, Span};
pub use readiness::{Finding, Readiness, readiness};
pub use settings::{FrontMatter, Isolation, Setting};
pub use show::show;
pub use values::workspace_path;
pub use write::{Written, speakable, write};

use crate::ids::{AgentName, TaskId, name_from};
use problem::Problems;

/// Largest plan read: ten thousand tasks of 3 KB each, and a mistaken file is refused before it costs memory.
pub const PLAN_MAX_BYTES: usize = 32 * 1024 * 1024;

/// The name of a plan whose file name has no letter or digit.
const FALLBACK_NAME: &str = "plan";

/// A checked plan: ids are unique, blockers exist, and there are no cycles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The name of its runs: from the front matter, else from the file's name. Follows the rule for names.
    pub name: String,
    /// The level-1 heading, or the name.
    pub title: String,
    /// What every agent is told: the text under the title and all sections that are neither tasks nor dispatch rules.
    pub goal: String,
    /// The text under `## Dispatch rules`.
    pub dispatch_rules: Option<String>,
    pub settings: FrontMatter,
    /// Whether the plan names waves. If not, `wave` only shows the levels of `blocked_by` and delays nothing.
    pub explicit_waves: bool,
    /// In the order of the document.
    pub tasks: Vec<PlanTask>,
    /// The hash of the file's bytes (BLAKE3, hex): what a run is pinned to.
    pub hash: String,
}

/// A task as the plan has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanTask {
    /// Unique in its plan.
    pub id: TaskId,
    /// The rest of its heading.
    pub title: String,
    /// The text after its keys, as written.
    pub body: String,
    /// The agent that does it; tasks with the same one go to one process, in order.
    pub agent: Option<AgentName>,
    pub role: Option<String>,
    /// Which `[agents.NAME]` runs it.
    pub cli: Option<String>,
    /// The tasks that must be complete before it.
    pub blocked_by: Vec<TaskId>,
    /// The stage that it belongs to.
    pub wave: u32,
    /// Files that must exist when it is complete, relative to the workspace and never outside of it.
    pub artifacts: Vec<String>,
    /// Shell commands that must exit 0.
    pub accept: Vec<String>,
    /// Where its checks run; if empty, as the plan says.
    pub environments: Vec<String>,
    /// What to read before the work.
    pub reading: Vec<String>,
    /// How long it may take, from its own start.
    pub timeout_ms: Option<u64>,
    /// Maximum number of attempts.
    pub attempts: Option<u32>,
    /// Higher goes first among tasks that are otherwise alike.
    pub priority: i64,
    /// Ticked off in a checklist, or `done: yes`: complete before the run begins.
    pub done: bool,
    /// The line of the plan that it begins on, from 1.
    pub line: u32,
}

/// The result of parsing: a plan unless there was an error, and all problems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The plan, if no problem is an error.
    pub plan: Option<Plan>,
    /// Errors and warnings in the order of the text.
    pub problems: Vec<Problem>,
    /// How many tasks were read, even if problems keep the plan from running.
    pub tasks: usize,
}

impl Plan {
    /// The tasks with their blockers as a graph; its indices are those of `tasks`.
    pub fn graph(&self) -> Graph {
        Graph::of(&self.tasks)
    }

    /// The task with an id.
    pub fn task(&self, id: &str) -> Option<&PlanTask> {
        self.tasks.iter().find(|task| task.id.as_str() == id)
    }
}

impl PlanTask {
    /// Whether only its agent's word can show that it is complete.
    pub fn is_unproven(&self) -> bool {
        self.artifacts.is_empty() && self.accept.is_empty()
    }
}

impl Parsed {
    /// The problems that keep the plan from running.
    pub fn errors(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|p| p.severity == Severity::Error)
    }

    /// The problems that do not keep it from running.
    pub fn warnings(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|p| p.severity == Severity::Warning)
    }
}

/// The hash that a plan with these bytes has.
pub fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Parses a plan and reports everything that is wrong with it. `name` is the file's name without its extension, for plans
/// that do not name themselves.
pub fn parse(name: &str, bytes: &[u8]) -> Parsed {
    let mut problems = Problems::default();
    let Some(text) = as_text(bytes, &mut problems) else {
        // If not all bytes are text, a position is counted up to the first byte that is not.
        let readable = String::from_utf8_lossy(&bytes[..bytes.len().min(PLAN_MAX_BYTES)]);
        return Parsed { plan: None, problems: problems.finish(&readable), tasks: 0 };
    };
    let plan = read::plan(name, text, &mut problems);
    let tasks = plan.as_ref().map_or(0, |plan| plan.tasks.len());
    let plan = plan.filter(|_| !problems.any_error());
    Parsed { plan: plan.map(|plan| Plan { hash: hash(bytes), ..plan }), problems: problems.finish(text), tasks }
}

fn as_text<'a>(bytes: &'a [u8], problems: &mut Problems) -> Option<&'a str> {
    if bytes.len() > PLAN_MAX_BYTES {
        let message = format!("the plan has {} bytes, at most {PLAN_MAX_BYTES} are read", bytes.len());
        problems.error("too-large", 0..0, message);
        return None;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let at = error.valid_up_to();
            let end = at + error.error_len().unwrap_or(bytes.len() - at);
            let message = format!("the plan is not text: byte {at} is not UTF-8");
            problems.error("not-text", at..end, message).hint("save the file as UTF-8");
            return None;
        }
    };
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        let message = format!("the plan is not text: byte {at} is a NUL");
        problems.error("not-text", at..at + 1, message);
        return None;
    }
    Some(text)
}

fn plan_name(settings: &FrontMatter, file: &str) -> String {
    let given = settings.plan.clone();
    given.or_else(|| name_from(file)).unwrap_or_else(|| FALLBACK_NAME.to_owned())
}
