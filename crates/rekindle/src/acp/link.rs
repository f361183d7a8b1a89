//! The agent's process and every event that can reach the bridge, as one queue: the agent's messages, lines of input,
//! signals. Threads do the reading and writing, so that a slow party does not hold up the others.

use std::io;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use rekindle_engine::agents::acp::Setup;
use rekindle_engine::clock;
use rekindle_engine::process::talk::{Talk, read_lines, spawn};
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Events waiting in the queue; a sender that finds it full blocks.
const QUEUE: usize = 256;

/// Longest line from the agent or the input; a longer one is skipped.
const LINE_MAX_BYTES: u64 = 64 << 20;

/// How long an agent may take to exit on its own once its input has ended.
const LEAVES_WITHIN_MS: u64 = 3_000;

/// How long an agent may take to exit after it was told to.
const ENDS_WITHIN_MS: u64 = 1_500;

/// Pause between two checks whether the agent has exited.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) enum Event {
    /// A protocol message from the agent.
    Said(Value),
    /// Any other output of the agent.
    Noise(String),
    Gone,
    Prompt(String),
    InputClosed,
    Signal(i32),
}

/// The agent's process.
pub(super) struct Link {
    talk: Talk,
    events: Receiver<Event>,
    closed_at: u64,
}

impl Link {
    /// Starts the agent and listens to it, to the input and to signals.
    pub(super) fn open(setup: &Setup) -> io::Result<Self> {
        let (program, arguments) = setup.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        // Listen for signals before there is an agent to end.
        let (give, events) = sync_channel(QUEUE);
        listen(give.clone())?;
        let (mut command, from_agent) = (Command::new(program), give.clone());
        let talk = Talk::start(command.args(arguments).current_dir(&setup.cwd), LINE_MAX_BYTES, move |line| {
            from_agent.send(line.map_or(Event::Gone, said)).is_ok()
        })?;
        spawn("input", move || {
            let take = |line: Vec<u8>| prompt(&line).is_none_or(|prompt| give.send(Event::Prompt(prompt)).is_ok());
            read_lines(io::stdin(), LINE_MAX_BYTES, take);
            let _nobody_left = give.send(Event::InputClosed);
        })?;
        Ok(Self { talk, events, closed_at: 0 })
    }

    /// Sends the agent a message. An agent that no longer reads is ended by its supervisor, not by a full queue.
    pub(super) fn send(&self, message: &Value) {
        let _not_read = self.talk.send(&message.to_string());
    }

    /// The next event; `None` when it takes too long or can never come.
    pub(super) fn next(&self, within: Option<Duration>) -> Option<Event> {
        match within {
            Some(within) => self.events.recv_timeout(within).ok(),
            None => self.events.recv().ok(),
        }
    }

    pub(super) fn close(&mut self) {
        self.talk.close();
        self.closed_at = clock::boottime_ms();
    }

    /// An event that arrives while the agent exits; `None` once it has exited or takes too long.
    pub(super) fn last_words(&mut self) -> Option<Event> {
        while clock::boottime_ms() < self.closed_at + LEAVES_WITHIN_MS {
            match self.events.recv_timeout(LOOK) {
                Ok(Event::Gone | Event::Signal(_)) | Err(RecvTimeoutError::Disconnected) => return None,
                Ok(event) => return Some(event),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.talk.has_ended() {
                return None;
            }
        }
        None
    }

    /// Ends the agent by whatever means it takes and returns its exit code. Processes that left its process group are ended
    /// by the shim.
    pub(super) fn end(&mut self) -> Option<i32> {
        if !self.ends_within(ENDS_WITHIN_MS) {
            self.talk.terminate();
            self.ends_within(ENDS_WITHIN_MS);
        }
        self.talk.kill().and_then(|status| status.code())
    }

    fn ends_within(&self, ms: u64) -> bool {
        let until = clock::boottime_ms() + ms;
        while !self.talk.has_ended() {
            if clock::boottime_ms() >= until {
                return false;
            }
            // Receiving events also unblocks an agent that cannot exit because its output is not read.
            let _too_late = self.events.recv_timeout(LOOK);
        }
        true
    }
}

fn listen(give: SyncSender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    spawn("signals", move || {
        for signal in signals.forever() {
            if give.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    })
}

fn said(line: Vec<u8>) -> Event {
    match serde_json::from_slice::<Value>(&line) {
        Ok(message) if message.is_object() => Event::Said(message),
        _ => Event::Noise(String::from_utf8_lossy(&line).trim_end().to_owned()),
    }
}

/// The prompt of a line of input.
fn prompt(line: &[u8]) -> Option<String> {
    let line: Value = serde_json::from_slice(line).ok()?;
    line["prompt"].as_str().map(str::to_owned)
}
