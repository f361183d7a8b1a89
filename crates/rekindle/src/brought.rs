//! The commands that a project brings: in `rekindle.toml`, in a plan's front matter and in its tasks, each with its place.
//! It only reads them; none is run here.

use std::path::Path;

use rekindle_core::plan::Plan;
use serde::Serialize;

use crate::config::{Config, Origin, Value};
use crate::ui::one_line;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Brought {
    /// Where the command comes from: a setting, an agent, a task.
    pub what: String,
    pub command: String,
    /// The file and line, or the nearest description of the place.
    pub place: String,
}

impl Brought {
    pub(crate) fn line(&self) -> String {
        format!("{}: {}  ({})", one_line(&self.what), one_line(&self.command), one_line(&self.place))
    }
}

/// The commands in settings. Environment variables and flags are the operator's own words and are left out.
pub(crate) fn by_settings(config: &Config, path: &Path, plan: &Plan) -> Vec<Brought> {
    let mut found = Vec::new();
    for (key, sourced) in config.all() {
        if !matches!(sourced.origin, Origin::File { .. } | Origin::Plan(_)) {
            continue;
        }
        let command = match &sourced.value {
            Value::Command(words) if !words.is_empty() => words.join(" "),
            Value::Text(line)
                if ["usage.command", "worktree.setup", "worktree.teardown"].contains(&key.name) && !line.is_empty() =>
            {
                line.clone()
            }
            _ => continue,
        };
        found.push(Brought { what: key.name.to_owned(), command, place: sourced.origin.to_string() });
    }
    let file = config.file().map(|file| file.file_name().unwrap_or_default().to_string_lossy().into_owned());
    let file = file.unwrap_or_default();
    for (name, agent) in &config.agents {
        let names: Vec<&str> = agent.program.env.keys().map(String::as_str).collect();
        if agent.program.command.is_empty() && names.is_empty() {
            continue;
        }
        let program = if agent.program.command.is_empty() {
            agent.program_name().to_owned()
        } else {
            agent.program.command.join(" ")
        };
        let with = if names.is_empty() { String::new() } else { format!(" with {} set", names.join(", ")) };
        let (what, command) = (format!("agents.{name}"), format!("{program}{with}"));
        found.push(Brought { what, command, place: format!("{file}:{}", agent.line) });
    }
    for (name, prefix) in config.environments.iter().filter(|(_, prefix)| !prefix.is_empty()) {
        found.push(Brought { what: format!("environments.{name}"), command: prefix.join(" "), place: file.clone() });
    }
    let place = format!("front matter of {}", path.display());
    let health = plan.settings.health.iter();
    found.extend(health.map(|line| Brought { what: "health".to_owned(), command: line.clone(), place: place.clone() }));
    found
}

/// The commands in a plan's tasks: their checks.
pub(crate) fn by_tasks(path: &Path, plan: &Plan) -> Vec<Brought> {
    let checks = plan.tasks.iter().flat_map(|task| task.accept.iter().map(move |line| (task, line)));
    let place = |line: u32| format!("{}:{line}", path.display());
    checks
        .map(|(task, line)| Brought {
            what: format!("{} accept", task.id),
            command: line.clone(),
            place: place(task.line),
        })
        .collect()
}
