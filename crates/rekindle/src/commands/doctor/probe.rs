//! A program that is asked something: bounded in time and words, without a terminal, and ended with all that it started.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::ui;

/// Lines that may wait to be looked at: the few that answer a question; who says more waits until it is ended.
const LINES_MAX: usize = 64;

/// What is read of it in all: a version and a list of tools are far smaller.
const OUTPUT_MAX_BYTES: u64 = 1024 * 1024;

/// Between two looks whether it has left.
const LOOK_MS: u32 = 20;

/// A program that runs. Dropping it ends it.
pub struct Probe {
    child: Child,
    lines: Receiver<String>,
}

impl Probe {
    /// Starts it in a process group of its own, with its errors thrown away.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> std::io::Result<Self> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0).spawn()?;
        let (sender, lines) = sync_channel(LINES_MAX);
        let output = child.stdout.take();
        let reading = std::thread::Builder::new().name("probe".to_owned()).spawn(move || {
            let Some(output) = output else { return };
            for line in BufReader::new(output.take(OUTPUT_MAX_BYTES)).split(b'\n') {
                let Ok(line) = line else { return };
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        });
        let probe = Self { child, lines };
        reading.map(|_ends_with_the_output| probe)
    }

    /// The next line that is not empty; nothing when it says no more.
    ///
    /// # Errors
    /// When the time is over.
    pub fn line(&self, budget: Duration) -> Result<Option<String>, RecvTimeoutError> {
        // Empty lines are few and come at once; a program that prints nothing else is given up.
        for _ in 0..LINES_MAX {
            match self.lines.recv_timeout(budget) {
                Ok(line) if line.trim().is_empty() => {}
                Ok(line) => return Ok(Some(line)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => return Err(RecvTimeoutError::Timeout),
            }
        }
        Ok(None)
    }

    /// Writes a line to it.
    ///
    /// # Errors
    /// When it does not listen.
    pub fn tell(&mut self, line: &str) -> std::io::Result<()> {
        let input: &mut ChildStdin = self.child.stdin.as_mut().ok_or(std::io::ErrorKind::NotConnected)?;
        input.write_all(line.as_bytes())?;
        input.write_all(b"\n")?;
        input.flush()
    }

    /// Waits for it to leave by itself, at most that long, and ends it and all of its group.
    pub fn end(mut self, patience: Duration) -> Option<ExitStatus> {
        drop(self.child.stdin.take());
        let looks = patience.as_millis() / u128::from(LOOK_MS);
        let left = (0..looks).any(|_| {
            let has_left = self.has_left();
            if !has_left {
                ui::pause(LOOK_MS);
            }
            has_left
        });
        self.kill();
        self.child.wait().ok().filter(|_| left)
    }

    /// Whether it has ended. It is not reaped yet: its number stays its own until its group has been ended.
    fn has_left(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(self.pid()), options), Ok(Some(_)))
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn kill(&self) {
        let _gone_already = kill_process_group(self.pid(), Signal::KILL);
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // After `end` it is reaped, and its number may be a stranger's.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
            let _reaped = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Probe {
        Probe::start(Command::new("/bin/sh").args(["-c", script]).stdin(Stdio::piped())).expect("started")
    }

    #[test]
    fn it_answers_and_leaves() {
        let mut probe = shell("read name; echo; echo \"hello $name\"; exit 3");
        probe.tell("you").expect("it listens");
        assert_eq!(probe.line(LONG), Ok(Some("hello you".to_owned())));
        assert_eq!(probe.line(LONG), Ok(None));
        assert_eq!(probe.end(LONG).and_then(|status| status.code()), Some(3));
    }

    #[test]
    fn silence_is_bounded_and_nothing_is_left() {
        let probe = shell("sleep 1000 & echo $!; exec sleep 1000");
        let child: i32 = probe.line(LONG).expect("in time").expect("a number").trim().parse().expect("a number");
        assert_eq!(probe.line(Duration::from_millis(50)), Err(RecvTimeoutError::Timeout));
        drop(probe);
        let child = Pid::from_raw(child).expect("a process");
        // Whoever takes in orphans may not have reaped it yet: it is gone or a zombie within the bound.
        let gone = (0..500).any(|_| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.as_raw_nonzero())).unwrap_or_default();
            let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
            let gone = state.is_none_or(|state| state == 'Z');
            if !gone {
                ui::pause(20);
            }
            gone
        });
        assert!(gone, "{child:?} lives");
    }

    #[test]
    fn a_program_that_does_not_leave_is_ended() {
        let probe = shell("exec >/dev/null; exec sleep 1000");
        assert_eq!(probe.line(LONG), Ok(None));
        assert_eq!(probe.end(Duration::from_millis(200)), None);
    }
}
