//! Runs the user's command that reports the remaining allowance, once.

use std::process::{Command, Stdio};

use rekindle_engine::process::{self, Limits};
use rekindle_engine::world::real::read_allowance;

use super::checks::{finding, ok};
use super::{Finding, Verdict, tell_start};
use crate::commands::Context;
use crate::config::Config;
use crate::project::Project;
use crate::ui::stamp;

/// How long it may take, as in a run.
const WITHIN_MS: u64 = 30_000;

/// An answer is one small object; processes that the command leaves running are ended.
const LIMITS: Limits = Limits { within_ms: WITHIN_MS, out_max: 64 * 1024, err_max: None, ends_leftovers: true };

/// Runs the command, if one is configured.
pub(super) fn look(config: &Config, context: &Context, tries: bool) -> Option<Finding> {
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

/// The finding when there is no usable answer. A run continues without one, so this is only a warning.
fn doubtful(text: &str) -> Finding {
    let hint = r#"it must print {"remaining_percent": N, "resets_at": "RFC 3339"} and exit with 0"#;
    Finding { hint: Some(hint.to_owned()), ..finding("usage", Verdict::Warning, text) }
}

fn ask(line: &str, project: &Project) -> Result<String, String> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).current_dir(&project.root).stderr(Stdio::null());
    match process::run(&mut command, b"", &LIMITS) {
        Ok(done) if done.status.success() => Ok(String::from_utf8_lossy(&done.out).into_owned()),
        Ok(done) => Err(done.status.to_string()),
        Err(process::Error::TimedOut { .. }) => Err(format!("nothing within {} s", WITHIN_MS / 1000)),
        Err(error) => Err(error.to_string()),
    }
}
