//! `run --detach`: the same command again in the background, in a process group of its own, with its output in a file.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rekindle_engine::state_dir::StateDir;

use crate::commands::Context;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::ui;

/// The file in the state directory that a background coordinator writes its output to.
const LOG: &str = "coordinator.log";

/// How often the coordinator's lock is checked: repairing a large store takes longest.
const TRIES: u32 = 600;

/// Pause between two checks.
const LOOK_MS: u32 = 50;

/// Starts the coordinator in the background and waits until it holds the state.
pub(super) fn start(context: &Context) -> Result<Exit> {
    let dir = StateDir::open_or_create(&context.project.state_dir)?;
    let log_path = dir.path().join(LOG);
    let fail = |error: std::io::Error| CliError::internal("cannot start in the background").because(&error);
    let log = std::fs::OpenOptions::new().create(true).append(true).open(&log_path).map_err(fail)?;
    let length_before = log.metadata().map_err(fail)?.len();
    let arguments = std::env::args_os().skip(1).filter(|argument| argument != "--detach");
    let program = std::env::current_exe().map_err(fail)?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(fail)?)
        .stderr(log)
        // Out of reach of this terminal's keys; a hang-up of the terminal is ignored by every coordinator.
        .process_group(0)
        .spawn()
        .map_err(fail)?;
    for _ in 0..TRIES {
        if let Some(status) = child.try_wait().map_err(fail)? {
            return ended_early(context, &log_path, length_before, status.code());
        }
        if dir.owner()?.flatten().is_some_and(|owner| owner.pid == child.id()) {
            let message = format!("coordinator {} runs in the background", child.id());
            context.ui.say(&message);
            context.ui.hint("watch it: rekindle top, or in a browser: rekindle serve; stop it: rekindle pause");
            return Ok(Exit::Success);
        }
        ui::pause(LOOK_MS);
    }
    let message = format!("the coordinator (process {}) does not take over the state", child.id());
    Err(CliError::internal(message).hint(format!("see {}", log_path.display())))
}

/// The coordinator ended before it was seen to hold the state directory: shows its output and returns its exit code.
fn ended_early(context: &Context, log: &std::path::Path, from: u64, code: Option<i32>) -> Result<Exit> {
    use std::io::{Read, Seek, SeekFrom};
    let mut said = String::new();
    if let Ok(mut file) = std::fs::File::open(log) {
        let _unread = file.seek(SeekFrom::Start(from)).and_then(|_| file.read_to_string(&mut said));
    }
    context.ui.say(ui::harmless(&said).trim_end());
    Exit::from_code(code.unwrap_or(1)).ok_or_else(|| CliError::internal("the coordinator was killed as it started"))
}
