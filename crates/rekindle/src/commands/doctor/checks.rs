//! The doctor's checks: the machine, the state directory, the configuration. They change nothing.

use rekindle_core::text::counted;
use rekindle_core::time::Time;
use rekindle_engine::alert::webhook;
use rekindle_engine::state_dir::{self, StateDir};
use rekindle_engine::store;

use super::super::status::disk_words;
use super::{Finding, Verdict};
use crate::caps;
use crate::config::{Config, FILE_NAME, find_program};
use crate::error::CliError;
use crate::project::Project;
use crate::ui::stamp;

/// Free space under which a run is in danger: logs of a busy fleet fill this in an hour.
const SPACE_LOW_BYTES: u64 = 1024 * 1024 * 1024;

pub(super) fn machine(project: &Project) -> Vec<Finding> {
    let system = rustix::system::uname();
    let system = format!(
        "{} {} {}",
        system.sysname().to_string_lossy(),
        system.release().to_string_lossy(),
        system.machine().to_string_lossy()
    );
    vec![
        ok("rekindle", env!("CARGO_PKG_VERSION")),
        ok("system", &system),
        sqlite(),
        process_handles(),
        space(project),
        git(project),
        caps(),
    ]
}

fn sqlite() -> Finding {
    ok("SQLite", rekindle_engine::store::sqlite_version())
}

/// Without process handles, less certain facts must tell a process from a stranger with the same id.
fn process_handles() -> Finding {
    #[cfg(target_os = "linux")]
    let handle = rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty())
        .map(drop)
        .map_err(std::io::Error::from);
    #[cfg(not(target_os = "linux"))]
    let handle: std::io::Result<()> = Err(std::io::ErrorKind::Unsupported.into());
    match handle {
        Ok(()) => ok("process handles", "the kernel has pidfd"),
        Err(error) => Finding {
            hint: Some("processes are identified by pid, start time and boot instead".to_owned()),
            ..finding("process handles", Verdict::Warning, &format!("no pidfd: {error}"))
        },
    }
}

fn space(project: &Project) -> Finding {
    let place = project.state_dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(&project.root);
    match rustix::fs::statvfs(place) {
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let text = format!("{} MiB free at {}", free / (1024 * 1024), place.display());
            match free < SPACE_LOW_BYTES {
                true => Finding {
                    hint: Some("make space, or keep the state elsewhere: --state-dir DIR".to_owned()),
                    ..finding("disk", Verdict::Warning, &text)
                },
                false => ok("disk", &text),
            }
        }
        Err(error) => finding("disk", Verdict::Warning, &format!("cannot be asked: {error}")),
    }
}

/// What enforces agents' caps. Without a cgroup, only the kernel's log or an unexplained SIGKILL shows that memory ran out.
fn caps() -> Finding {
    let held = rekindle_engine::caps::standing();
    let text = caps::words(&held);
    match caps::is_whole(&held) {
        true => ok("caps", &text),
        false => Finding { hint: Some(caps::HINT.to_owned()), ..finding("caps", Verdict::Warning, &text) },
    }
}

fn git(project: &Project) -> Finding {
    let path = std::env::var_os("PATH");
    match find_program("git", path.as_deref(), &project.root) {
        Ok(program) => ok("git", &program.display().to_string()),
        Err(missing) => Finding {
            hint: Some("briefs will not tell what changed on disk".to_owned()),
            ..finding("git", Verdict::Warning, &missing.to_string())
        },
    }
}

/// The state directory, its store and its coordinator.
pub(super) fn state(project: &Project) -> Vec<Finding> {
    let dir = match StateDir::open(&project.state_dir) {
        Ok(dir) => dir,
        Err(state_dir::Error::Missing(path)) => {
            return vec![ok("state", &format!("none yet at {}", path.display()))];
        }
        Err(error) => return vec![trouble("state", error.into())],
    };
    let disk = ok("state size", &disk_words(dir.path()));
    vec![ok("state", &dir.path().display().to_string()), disk, store(&dir), coordinator(&dir)]
}

fn store(dir: &StateDir) -> Finding {
    let verified = match store::reader(dir) {
        Ok(None) => return ok("store", "none yet"),
        Ok(Some(reader)) => reader.verify(0),
        Err(error) => Err(error),
    };
    match verified {
        Ok(found) if found.ok() => {
            let events = counted(found.events, "event", "events");
            ok("store", &format!("{events} and {} verified", counted(found.lines, "log line", "log lines")))
        }
        Ok(found) => Finding {
            hint: Some("repair it by continuing the run: rekindle resume".to_owned()),
            ..finding("store", Verdict::Problem, &found.problems.join("; "))
        },
        Err(error) => trouble("store", error.into()),
    }
}

fn coordinator(dir: &StateDir) -> Finding {
    match dir.owner() {
        Ok(None) => ok("coordinator", "none is running"),
        Ok(Some(None)) => ok("coordinator", "one is starting"),
        Ok(Some(Some(owner))) => ok("coordinator", &format!("{owner}, since {}", stamp(Time(owner.since_ms)))),
        Err(error) => trouble("coordinator", error.into()),
    }
}

/// The webhook for alerts, if there is one: only its form is checked, nothing is sent.
pub(super) fn webhook(config: &Config) -> Option<Finding> {
    let found = match webhook::check(config.notify_webhook()?) {
        Ok(target) if target.encrypted || target.loopback => ok("webhook", &target.host),
        Ok(target) => Finding {
            hint: Some("use https://: what alerts say can be read on the way".to_owned()),
            ..finding("webhook", Verdict::Warning, &format!("{} without encryption", target.host))
        },
        Err(why) => Finding {
            hint: Some("correct notify.webhook; until then no alert goes there".to_owned()),
            ..finding("webhook", Verdict::Problem, &why)
        },
    };
    Some(found)
}

pub(super) fn configuration(config: Result<&Config, &CliError>, project: &Project) -> Vec<Finding> {
    let config = match config {
        Ok(config) => config,
        Err(_) => return vec![finding("configuration", Verdict::Problem, "it has errors, see below")],
    };
    let mut findings = vec![match config.file() {
        Some(path) => ok("configuration", &path.display().to_string()),
        None => Finding {
            hint: Some("write one to start from: rekindle init".to_owned()),
            ..finding(
                "configuration",
                Verdict::Warning,
                &format!("there is no {FILE_NAME} in {}", project.root.display()),
            )
        },
    }];
    for warning in &config.warnings {
        findings.push(finding("configuration", Verdict::Warning, &warning.message));
    }
    if config.file().is_some() {
        match config.default_agent() {
            Ok(name) => findings.push(ok("default agent", name)),
            Err(error) => findings.push(trouble("default agent", error)),
        }
    }
    findings
}

/// The environments that checks may run in, besides this machine itself.
pub(super) fn environments(config: &Config) -> impl Iterator<Item = Finding> {
    let named = config.environments.iter().filter(|(_, prefix)| !prefix.is_empty());
    named.map(|(name, prefix)| ok(&format!("environment {name}"), &prefix.join(" ")))
}

pub(super) fn finding(name: &str, verdict: Verdict, text: &str) -> Finding {
    Finding { name: name.to_owned(), verdict, text: text.to_owned(), hint: None }
}

/// A finding that everything is as it should be.
pub(super) fn ok(name: &str, text: &str) -> Finding {
    finding(name, Verdict::Ok, text)
}

fn trouble(name: &str, error: CliError) -> Finding {
    Finding { hint: error.hints.first().cloned(), ..finding(name, Verdict::Problem, &error.message) }
}
