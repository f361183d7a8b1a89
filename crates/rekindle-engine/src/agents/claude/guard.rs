//! A guarded interactive session of Claude Code: what its hooks and its transcript mean. What its tools mean is in `tools`,
//! what a prompt is in `prompt`, its transcript in `transcript`.

mod prompt;
#[cfg(test)]
mod tests;
mod tools;
mod transcript;

use std::path::{Path, PathBuf};

use rekindle_core::guard::fact::Fact;
use serde_json::Value;

use super::super::fields;
use super::super::guard_adapter::{GuardAdapter, Heard, Moment, Transcript};
use super::super::hook_events::{self, Dialect};
use super::Claude;

/// Tasks of a list that are read: the program numbers them, and nobody has a longer list.
const MAX_TASKS: usize = 200;

/// Longest file of a task that is read: a title and a description.
const TASK_MAX_BYTES: u64 = 64 << 10;

const DIALECT: Dialect = Dialect { tool: tools::facts, prompt: prompt::facts, ends_batch: tools::ends_batch };

/// If a hook's output is longer than 10,000 characters, the program moves all but its first two kilobytes to a file; 9,600
/// were seen to arrive.
const ROOM_BYTES: usize = 9_500;

impl GuardAdapter for Claude {
    fn read_hook(&self, asked: &Value, var: &dyn Fn(&str) -> Option<String>) -> Option<Heard> {
        let cwd = fields::text(asked, "cwd").unwrap_or_default();
        let dir = set(var, "CLAUDE_PROJECT_DIR").unwrap_or_else(|| cwd.to_owned());
        let mut heard = hook_events::read(asked, PathBuf::from(dir), &DIALECT)?;
        if heard.helper.is_none() && matches!(heard.moment, Moment::Batch | Moment::Begins(_)) {
            // Teammates change tasks in processes of their own, and this session does not receive their hooks.
            heard.facts.extend(tasks(&heard.session, var));
        }
        Some(heard)
    }

    fn transcript_reader(&self) -> Option<Box<dyn Transcript>> {
        Some(Box::<transcript::Lines>::default())
    }

    fn answer(&self, heard: &Heard, text: &str) -> Option<String> {
        hook_events::answer(heard, text)
    }

    fn room(&self) -> usize {
        ROOM_BYTES
    }

    fn session_variable(&self) -> Option<&'static str> {
        Some("CLAUDE_CODE_SESSION_ID")
    }

    fn launch(&self, prompt: &str) -> Vec<String> {
        vec!["claude".to_owned(), prompt.to_owned()]
    }

    fn team_files(&self, team: &str, var: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
        is_name(team).then(|| config_dir(var).map(|dir| dir.join("teams").join(team)))?
    }
}

/// The tasks of a session's list as they are on disk.
fn tasks(session: &str, var: &dyn Fn(&str) -> Option<String>) -> Vec<Fact> {
    let list = set(var, "CLAUDE_CODE_TASK_LIST_ID").unwrap_or_else(|| session.to_owned());
    let Some(dir) = config_dir(var).filter(|_| is_name(&list)).map(|dir| dir.join("tasks").join(list)) else {
        return Vec::new();
    };
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let is_task = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_task).take(MAX_TASKS).collect();
    let number = |path: &PathBuf| path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
    files.sort_by_key(|path| (number(path), path.clone()));
    files.iter().filter_map(|path| tools::task(&read(path)?)).collect()
}

fn read(path: &Path) -> Option<Value> {
    let found = std::fs::metadata(path).ok()?;
    if !found.is_file() || found.len() > TASK_MAX_BYTES {
        return None;
    }
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn config_dir(var: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let own = set(var, "CLAUDE_CONFIG_DIR").map(PathBuf::from);
    own.or_else(|| Some(PathBuf::from(set(var, "HOME")?).join(".claude")))
}

fn set(var: &dyn Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    var(name).filter(|value| !value.is_empty())
}

/// Whether it is the name of a single directory and cannot point elsewhere.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains('/') && text != "." && text != ".."
}
