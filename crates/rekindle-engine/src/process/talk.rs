//! A conversation with a program, line by line. Threads read and write, so that neither a slow reader nor a slow writer
//! delays the caller; what is said is left to the callers.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use rekindle_shim::clock;

use super::{Group, LOOK_MS};

/// Messages that wait to be read by the program: requests and answers, of which there are few at a time.
const OUTBOX: usize = 256;

/// A program in a conversation. When dropped, it is killed with its whole process group.
pub struct Talk {
    group: Group,
    outbox: Option<SyncSender<Vec<u8>>>,
}

impl Talk {
    /// Starts it. `take` gets every line of up to `line_max` bytes, and `None` once its output has ended; it returns whether
    /// it wants more. Fails if the program or a thread cannot be started.
    pub fn start(
        command: &mut Command,
        line_max: u64,
        mut take: impl FnMut(Option<Vec<u8>>) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let mut group = Group::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let (input, output) = (group.child.stdin.take(), group.child.stdout.take());
        let (outbox, messages) = sync_channel(OUTBOX);
        spawn("to a program", move || write_all(input, &messages))?;
        spawn("from a program", move || {
            let wants_more = output.is_none_or(|output| read_lines(output, line_max, |line| take(Some(line))));
            if wants_more {
                take(None);
            }
        })?;
        Ok(Self { group, outbox: Some(outbox) })
    }

    /// Sends it a line. Fails if the program does not read, or its input was closed.
    pub fn send(&self, line: &str) -> io::Result<()> {
        let outbox = self.outbox.as_ref().ok_or(ErrorKind::NotConnected)?;
        outbox.try_send(format!("{line}\n").into_bytes()).map_err(|error| match error {
            TrySendError::Full(_) => ErrorKind::WouldBlock.into(),
            TrySendError::Disconnected(_) => ErrorKind::BrokenPipe.into(),
        })
    }

    /// Closes its input once everything that was sent is written.
    pub fn close(&mut self) {
        self.outbox = None;
    }

    pub fn has_ended(&self) -> bool {
        self.group.has_ended()
    }

    pub fn terminate(&self) {
        self.group.terminate();
    }

    /// Closes its input and waits for its exit, at most this long; then kills it with its whole group. `None` if it had to
    /// be killed.
    pub fn end(mut self, within_ms: u64) -> Option<ExitStatus> {
        self.close();
        let give_up = clock::monotonic_ms().saturating_add(within_ms);
        while !self.has_ended() && clock::monotonic_ms() < give_up {
            clock::pause(LOOK_MS);
        }
        let by_itself = self.has_ended();
        self.kill().filter(|_| by_itself)
    }

    /// Kills it with its whole group.
    pub fn kill(&mut self) -> Option<ExitStatus> {
        self.group.finish(true).ok()
    }
}

/// Starts a thread that nobody waits for.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(|_ends_with_its_pipe| ())
}

fn write_all(input: Option<ChildStdin>, messages: &Receiver<Vec<u8>>) {
    let Some(mut input) = input else { return };
    for message in messages {
        if input.write_all(&message).and_then(|()| input.flush()).is_err() {
            return;
        }
    }
}

/// Reads lines until their end, or until `take` wants no more; returns whether it still does. A line longer than `line_max`
/// is replaced by a remark.
pub fn read_lines(from: impl Read, line_max: u64, mut take: impl FnMut(Vec<u8>) -> bool) -> bool {
    let mut reader = BufReader::new(from);
    loop {
        let mut line = Vec::new();
        match reader.by_ref().take(line_max).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return true,
            Ok(_) => {}
        }
        if line.last() != Some(&b'\n') && line.len() as u64 == line_max {
            line = format!("a line longer than {line_max} bytes was dropped").into_bytes();
            if reader.skip_until(b'\n').is_err() {
                return true;
            }
        }
        if !take(line) {
            return false;
        }
    }
}
