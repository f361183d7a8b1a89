//! Runs checks in a fresh checkout that nobody works in: it is set up like a task's worktree, and each command runs once, as
//! in a run, within its time limit, with nothing left behind.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use rekindle_core::preflight::{self, Outcome, TryCheck};
use rekindle_core::text::tail_bytes;
use rekindle_engine::process::{self, Limits};
use rekindle_engine::refusal::Trouble;
use rekindle_engine::world::real::{CheckLine, CheckPlace, REMOVED, bring, changed_words, check_line, free_ports};
use rekindle_engine::{clock, git};

use super::Context;
use crate::config::Config;
use crate::error::{CliError, Result};
use crate::ui::{harmless, one_line};

/// Most that a command may print, and how much of it is shown when it fails.
const OUTPUT_BYTES: usize = 16 * 1024 * 1024;
const SHOWN_BYTES: usize = 2_000;

/// A command that took too long or printed too much.
pub(crate) struct Stopped;

/// A command that was tried.
pub(crate) struct Tried {
    /// Its exit code, `None` after a signal; or it was stopped.
    pub ended: std::result::Result<Option<i32>, Stopped>,
    pub took_ms: u64,
    /// The end of its output, made harmless.
    pub output: String,
}

impl Tried {
    pub(crate) fn passed(&self) -> bool {
        matches!(self.ended, Ok(Some(0)))
    }

    /// What the result means before any work is done.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.ended {
            Ok(code) => preflight::outcome(code, false, &self.output),
            Err(Stopped) => Outcome::Slow,
        }
    }

    /// How it ended, in words.
    pub(crate) fn how(&self) -> String {
        match self.ended {
            Ok(Some(code)) => format!("exited with {code}"),
            Ok(None) => "was killed by a signal".to_owned(),
            Err(Stopped) => "took too long or printed too much".to_owned(),
        }
    }
}

/// A checkout that is set up like a worktree; whatever its set-up started is ended with it.
pub(crate) struct Place<'a> {
    dir: &'a Path,
    config: &'a Config,
    /// The first of its ports.
    port: Option<u16>,
}

impl<'a> Place<'a> {
    /// Sets up the checkout. Fails with the output of the set-up.
    pub(crate) fn set_up(context: &Context, config: &'a Config, dir: &'a Path) -> Result<Self> {
        let wanted = config.programs().worktree;
        let failed = |reason: String| {
            let error = CliError::refused(format!("the set-up of the checkout failed: {reason}"));
            error.hint("fix [worktree] in rekindle.toml")
        };
        let state = &context.project.state_dir;
        bring(&context.project.root, state, dir, &wanted).map_err(|trouble| match trouble {
            Trouble::Wrong(reason) => failed(reason),
            Trouble::Refused(refusal) => CliError::internal(refusal.reason).hint(refusal.hint),
        })?;
        let free = |many| free_ports(many, state, &BTreeSet::new()).map_err(|error| failed(error.to_string()));
        let port = (wanted.ports > 0).then(|| free(wanted.ports)).transpose()?;
        let place = Self { dir, config, port };
        if !wanted.setup.is_empty() {
            context.ui.say(&format!("set-up: {}", one_line(&wanted.setup)));
            let tried = place.run_at(&CheckPlace::default(), &wanted.setup)?;
            if !tried.passed() {
                context.ui.say(&tried.output);
                return Err(failed(format!("`{}` {}", one_line(&wanted.setup), tried.how())));
            }
        }
        let changed: Vec<String> =
            git::modified(dir).unwrap_or_default().iter().map(|path| path.display().to_string()).collect();
        if !changed.is_empty() {
            context.ui.warn(&one_line(&changed_words(&changed)));
        }
        Ok(place)
    }

    /// Runs one check as a run does. Fails when it cannot be started.
    pub(crate) fn run(&self, check: &TryCheck) -> Result<Tried> {
        let (task, environment) = (Some(&check.task), check.environment.as_deref());
        self.run_at(&CheckPlace { task, environment, port: None }, &check.command)
    }

    fn run_at(&self, place: &CheckPlace<'_>, command: &str) -> Result<Tried> {
        let place = CheckPlace { port: self.port.map(|port| port.to_string()), ..place.clone() };
        let line = check_line(&self.config.programs().environments, &place, command).map_err(CliError::usage)?;
        self.run_line(line, command)
    }

    fn run_line(&self, CheckLine { argv, env }: CheckLine, command: &str) -> Result<Tried> {
        let limits = Limits {
            within_ms: self.config.check_timeout_ms(),
            out_max: OUTPUT_BYTES,
            err_max: None,
            ends_leftovers: true,
        };
        let began_ms = clock::boottime_ms();
        // Both streams in the order in which they were written.
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "exec 2>&1; exec \"$@\"", "sh"]).args(argv).current_dir(self.dir).envs(env);
        for name in REMOVED {
            shell.env_remove(name);
        }
        let (ended, said) = match process::run(&mut shell, &[], &limits) {
            Ok(ended) => (Ok(ended.status.code()), ended.out),
            Err(process::Error::TimedOut { out } | process::Error::TooMuch { out }) => (Err(Stopped), out),
            Err(error) => return Err(CliError::internal(format!("cannot run {}", one_line(command))).because(&error)),
        };
        let said = String::from_utf8_lossy(&said).into_owned();
        let took_ms = clock::boottime_ms().saturating_sub(began_ms);
        Ok(Tried { ended, took_ms, output: harmless(tail_bytes(&said, SHOWN_BYTES)) })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let teardown = self.config.programs().worktree.teardown;
        if !teardown.is_empty() {
            // The checkout is removed whatever the teardown says.
            let _said = self.run_at(&CheckPlace::default(), &teardown);
        }
    }
}
