//! Checks tried in a fresh checkout that nobody works in: it is set up as a task's worktree is, and each command runs once, within its
//! time, with nothing left behind.

use std::path::Path;
use std::process::Command;

use rekindle_core::text::tail_bytes;
use rekindle_engine::clock;
use rekindle_engine::process::{self, Limits};
use rekindle_engine::world::real::bring;

use super::Context;
use crate::config::Config;
use crate::error::{CliError, Result};
use crate::ui::{harmless, one_line};

/// Most that a command may print, and how much of it is shown when it fails.
const OUTPUT_BYTES: usize = 16 * 1024 * 1024;
const SHOWN_BYTES: usize = 2_000;

/// A command that was tried.
pub(crate) struct Tried {
    /// Its exit code; none when it was ended.
    pub code: Option<i32>,
    pub took_ms: u64,
    /// The end of what it printed, harmless.
    pub output: String,
}

impl Tried {
    pub(crate) fn passed(&self) -> bool {
        self.code == Some(0)
    }

    /// The shell found no such command, or could not run it.
    pub(crate) fn cannot_run(&self) -> bool {
        matches!(self.code, Some(126 | 127))
    }
}

/// Sets a checkout up as a worktree. Fails with what the set-up said.
pub(crate) fn set_up(context: &Context, config: &Config, dir: &Path) -> Result<()> {
    let wanted = config.programs().worktree;
    let failed = |reason: String| {
        CliError::refused(format!("the set-up of the checkout failed: {reason}"))
            .hint("fix [worktree] in rekindle.toml")
    };
    bring(&context.project.root, dir, &wanted).map_err(failed)?;
    if wanted.setup.is_empty() {
        return Ok(());
    }
    context.ui.say(&format!("set-up: {}", one_line(&wanted.setup)));
    let tried = run(&wanted.setup, dir, config)?;
    if tried.passed() {
        return Ok(());
    }
    context.ui.say(&tried.output);
    Err(failed(format!("`{}` {}", one_line(&wanted.setup), how(&tried))))
}

/// Runs one command. Fails when no shell can be started.
pub(crate) fn run(command: &str, dir: &Path, config: &Config) -> Result<Tried> {
    let limits =
        Limits { within_ms: config.check_timeout_ms(), out_max: OUTPUT_BYTES, err_max: None, ends_leftovers: true };
    let began_ms = clock::boottime_ms();
    // Both streams in the order in which they were written.
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "exec 2>&1; eval \"$0\"", command]).current_dir(dir);
    let (code, said) = match process::run(&mut shell, &[], &limits) {
        Ok(ended) => (ended.status.code(), ended.out),
        Err(process::Error::TimedOut { out } | process::Error::TooMuch { out }) => (None, out),
        Err(error) => return Err(CliError::internal(format!("cannot run {}", one_line(command))).because(&error)),
    };
    let said = String::from_utf8_lossy(&said).into_owned();
    let took_ms = clock::boottime_ms().saturating_sub(began_ms);
    Ok(Tried { code, took_ms, output: harmless(tail_bytes(&said, SHOWN_BYTES)) })
}

/// How a command ended, in words.
pub(crate) fn how(tried: &Tried) -> String {
    match tried.code {
        Some(code) => format!("exited with {code}"),
        None => "took too long or printed too much".to_owned(),
    }
}
