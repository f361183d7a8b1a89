//! The user's command that tells what is left of the allowance, asked once.

use std::process::{Command, Stdio};
use std::time::Duration;

use rekindle_engine::world::real::read_allowance;

use super::checks::{finding, ok};
use super::probe::Probe;
use super::{Finding, Verdict, tell_start};
use crate::commands::Context;
use crate::config::Config;
use crate::project::Project;
use crate::ui::stamp;

/// What it may take between two lines, as in a run.
const PATIENCE: Duration = Duration::from_secs(30);

/// What it may take to leave once it has said all.
const LEAVING: Duration = Duration::from_secs(2);

/// Lines of an answer at most: it is one object.
const LINES_MAX: usize = 64;

/// Asks it, where there is one.
pub fn look(config: &Config, context: &Context, tries: bool) -> Option<Finding> {
    let line = Some(config.usage_command()).filter(|line| !line.is_empty())?;
    if let Err(error) = config.usage_agents() {
        let hint = error.hints.first().cloned();
        return Some(Finding { hint, ..finding("usage", Verdict::Problem, &error.message) });
    }
    if !tries {
        let hint = Some("ask it: rekindle doctor --try".to_owned());
        return Some(Finding { hint, ..ok("usage", &format!("not asked: {line}")) });
    }
    tell_start(context, line);
    Some(match ask(line, &context.project) {
        Ok(said) => match read_allowance(&said) {
            Some(left) => {
                let percent = left.remaining_percent.map(|percent| format!("{percent} % left")).unwrap_or_default();
                let reset = left.resets_at.map(|at| format!(", resets at {}", stamp(at))).unwrap_or_default();
                ok("usage", &format!("{percent}{reset}"))
            }
            None => doubtful(&format!("the command's answer cannot be read: {}", said.trim())),
        },
        Err(why) => doubtful(&format!("the command gives no answer: {why}")),
    })
}

/// A run goes on without an answer: this keeps nobody from working.
fn doubtful(text: &str) -> Finding {
    let hint = r#"it must print {"remaining_percent": N, "resets_at": "RFC 3339"} and exit with 0"#;
    Finding { hint: Some(hint.to_owned()), ..finding("usage", Verdict::Warning, text) }
}

fn ask(line: &str, project: &Project) -> Result<String, String> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).current_dir(&project.root).stdin(Stdio::null());
    let probe = Probe::start(&mut command).map_err(|error| error.to_string())?;
    let mut said = String::new();
    for _ in 0..LINES_MAX {
        match probe.line(PATIENCE) {
            Ok(Some(line)) => {
                said.push_str(&line);
                said.push('\n');
            }
            Ok(None) => break,
            Err(_) => return Err(format!("nothing within {} s", PATIENCE.as_secs())),
        }
    }
    match probe.end(LEAVING) {
        Some(status) if status.success() => Ok(said),
        Some(status) => Err(status.to_string()),
        None => Err("it does not end".to_owned()),
    }
}
