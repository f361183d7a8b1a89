//! A program that is asked something: it runs in a process group of its own, within a deadline, with bounded output, and is
//! killed with everything that it started. What is asked is left to the callers; a longer conversation is left to `talk`.

pub mod talk;

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use rekindle_shim::clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

/// Between two checks whether a program has ended, while it prints nothing.
const LOOK_MS: u64 = 20;

/// The same once its output has ended: it exits within a moment.
const LEAVING_LOOK_MS: u64 = 1;

/// Bytes read at once: as much as a pipe holds.
const PIECE_BYTES: usize = 64 * 1024;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub within_ms: u64,
    /// Most that it may print; a program that prints more is killed.
    pub out_max: usize,
    /// How much of the end of its error output is kept. `None`: it goes where the command sends it.
    pub err_max: Option<usize>,
    /// Whether processes that it leaves running are killed with it.
    pub ends_leftovers: bool,
}

/// A program that exited on its own.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub out: Vec<u8>,
    /// The end of its error output.
    pub err: Vec<u8>,
}

/// Why a program did not exit on its own.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("it cannot be started: {0}")]
    Start(io::Error),
    #[error("it cannot be read: {0}")]
    Read(io::Error),
    #[error("it did not end in time")]
    TimedOut { out: Vec<u8> },
    /// It printed more than allowed.
    #[error("it printed too much")]
    TooMuch {
        /// The output up to the limit.
        out: Vec<u8>,
    },
}

/// Runs a program until it exits. A process that it leaves behind is not waited for, even if that holds its pipes open.
/// Fails if it cannot be started, takes too long or prints too much; then it is killed with everything that it started.
pub fn run(command: &mut Command, input: &[u8], limits: &Limits) -> Result<Finished, Error> {
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() }).stdout(Stdio::piped());
    if limits.err_max.is_some() {
        command.stderr(Stdio::piped());
    }
    let mut group = Group::start(command).map_err(Error::Start)?;
    let mut pipes = Pipes::of(&mut group.child).map_err(Error::Read)?;
    let (mut rest, mut out, mut err) = (input, Vec::new(), Vec::new());
    let give_up = clock::monotonic_ms().saturating_add(limits.within_ms);
    let mut ended = false;
    loop {
        let fed = feed(&mut pipes.stdin, &mut rest);
        let heard = read_available(&mut pipes.stdout, &mut out).map_err(Error::Read)?;
        let heard = read_available(&mut pipes.stderr, &mut err).map_err(Error::Read)? || heard;
        err.drain(..err.len().saturating_sub(limits.err_max.unwrap_or(0)));
        if out.len() > limits.out_max {
            out.truncate(limits.out_max);
            return Err(Error::TooMuch { out });
        }
        // Checked before its last output is read: everything that it printed before it exited is then there.
        if ended && !heard {
            let status = group.finish(limits.ends_leftovers).map_err(Error::Read)?;
            return Ok(Finished { status, out, err });
        }
        ended = ended || group.has_ended();
        if !ended && clock::monotonic_ms() >= give_up {
            return Err(Error::TimedOut { out });
        }
        if !ended && !heard && !fed {
            pipes.wait();
        }
    }
}

/// Our ends of a program's pipes; none of them blocks.
struct Pipes {
    stdin: Option<std::process::ChildStdin>,
    stdout: Option<std::process::ChildStdout>,
    stderr: Option<std::process::ChildStderr>,
}

impl Pipes {
    fn of(child: &mut Child) -> io::Result<Self> {
        let pipes = Self { stdin: child.stdin.take(), stdout: child.stdout.take(), stderr: child.stderr.take() };
        pipes.stdin.iter().try_for_each(|pipe| ioctl_fionbio(pipe, true))?;
        pipes.stdout.iter().try_for_each(|pipe| ioctl_fionbio(pipe, true))?;
        pipes.stderr.iter().try_for_each(|pipe| ioctl_fionbio(pipe, true))?;
        Ok(pipes)
    }

    /// Waits until one of them is ready or a moment has passed.
    fn wait(&self) {
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        fds.extend(self.stdout.as_ref().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)));
        fds.extend(self.stderr.as_ref().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)));
        let moment = if fds.is_empty() { LEAVING_LOOK_MS } else { LOOK_MS };
        fds.extend(self.stdin.as_ref().map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::OUT)));
        let span = Timespec { tv_sec: 0, tv_nsec: i64::try_from(moment * 1_000_000).unwrap_or(0) };
        // An interruption only makes the next check come earlier.
        let _ = poll(&mut fds, Some(&span));
    }
}

/// Writes what fits. Returns whether anything did. A program that does not read its input says why itself.
fn feed(pipe: &mut Option<std::process::ChildStdin>, rest: &mut &[u8]) -> bool {
    let Some(target) = pipe else { return false };
    match target.write(rest) {
        Ok(count) => *rest = &rest[count..],
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return false,
        Err(_) => *rest = &[],
    }
    if rest.is_empty() {
        *pipe = None;
    }
    true
}

/// Reads what is available. Returns whether there was anything.
fn read_available(pipe: &mut Option<impl Read>, into: &mut Vec<u8>) -> io::Result<bool> {
    let Some(source) = pipe else { return Ok(false) };
    let mut piece = [0; PIECE_BYTES];
    match source.read(&mut piece) {
        Ok(0) => *pipe = None,
        Ok(count) => into.extend_from_slice(&piece[..count]),
        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
        Err(error) if error.kind() == ErrorKind::Interrupted => {}
        Err(error) => return Err(error),
    }
    Ok(true)
}

/// A program in a process group of its own. When dropped, it is killed with the whole group.
struct Group {
    child: Child,
    reaped: bool,
}

impl Group {
    fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Self { child: command.process_group(0).spawn()?, reaped: false })
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Whether the program has exited. It is not reaped here: its process id stays its own until its group has been killed.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.reaped || !matches!(waitid(WaitId::Pid(self.pid()), options), Ok(None))
    }

    /// Asks the program itself to end.
    fn terminate(&self) {
        if !self.reaped {
            let _gone_already = kill_process(self.pid(), Signal::TERM);
        }
    }

    /// Waits for the program, and first kills the rest of its group if requested.
    fn finish(&mut self, ends_group: bool) -> io::Result<ExitStatus> {
        if ends_group && !self.reaped {
            let _gone_already = kill_process_group(self.pid(), Signal::KILL);
        }
        let status = self.child.wait();
        self.reaped = true;
        status
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.reaped {
            let _reaped = self.finish(true);
        }
    }
}

#[cfg(test)]
mod tests;
