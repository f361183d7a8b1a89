//! The coordinator's end of the socket: a handshake and requests, each within a time budget.
//!
//! A peer that is silent, slow, of another user or without the nonce is an error of this connection and of nothing else.
//! What to do about a shim that does not answer is decided elsewhere.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::bundle::{Bundle, SOCK, Spec, VERSION};
use crate::clock;
use crate::ladder::Rung;
use crate::os;
use crate::wire::{self, Hello, Refusal, Reply, Request, Status};

/// Pause before connecting again to a shim whose connection backlog is full.
const BACKLOG_PAUSE_MS: u64 = 5;

/// The longest reply: a status stays well within it.
const REPLY_MAX_BYTES: usize = 64 << 10;

/// Why a shim could not be reached.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused, or nothing is listening.
    #[error("cannot reach the shim: {0}")]
    Io(#[from] io::Error),
    #[error("the shim did not answer in time")]
    TimedOut,
    /// The shim answered and refused.
    #[error("the shim refused: {0:?}")]
    Refused(Refusal),
    /// The peer is not the shim of this attempt.
    #[error("the peer is not this attempt's shim: {0}")]
    Stranger(&'static str),
}

/// What became of a line for the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// Its last byte is in the agent's pipe.
    Written,
    /// It had already been written.
    Duplicate,
}

/// A connection to a shim after the handshake.
#[derive(Debug)]
pub struct Client {
    socket: OwnedFd,
    incoming: Vec<u8>,
    epoch: u64,
    budget_ms: u64,
}

impl Client {
    /// Connects and exchanges handshakes. Every later request has the same budget again. Fails when nothing is listening,
    /// the time is over, or the peer is not this attempt's shim.
    pub fn connect(bundle: &Bundle, spec: &Spec, budget: Duration) -> Result<Self, Error> {
        let budget_ms = u64::try_from(budget.as_millis()).unwrap_or(u64::MAX);
        let deadline_ms = clock::monotonic_ms().saturating_add(budget_ms);
        let socket = connect(bundle, deadline_ms)?;
        if os::peer_uid(&socket)? != rustix::process::geteuid().as_raw() {
            return Err(Error::Stranger("it belongs to another user"));
        }
        let mut client = Self { socket, incoming: Vec::new(), epoch: spec.epoch, budget_ms };
        let hello =
            Hello { version: VERSION, attempt: spec.attempt.clone(), epoch: spec.epoch, nonce: spec.nonce.clone() };
        match client.exchange(&Request::Hello(hello), deadline_ms)? {
            Reply::Hello(hello) if !wire::same_secret(&hello.nonce, &spec.nonce) => {
                Err(Error::Stranger("it does not know the nonce"))
            }
            Reply::Hello(hello) if hello.attempt != spec.attempt || hello.epoch != spec.epoch => {
                Err(Error::Stranger("it holds another attempt"))
            }
            Reply::Hello(_) => Ok(client),
            other => Err(unexpected(&other)),
        }
    }

    /// Asks for the shim's status. Fails when the shim does not answer correctly within the budget.
    pub fn status(&mut self) -> Result<Status, Error> {
        match self.request(&Request::Status { epoch: self.epoch })? {
            Reply::Status(status) => Ok(status),
            other => Err(unexpected(&other)),
        }
    }

    /// Makes the shim climb a ladder; `None` means the spec's own. Accepted means that it will happen, whichever process
    /// dies meanwhile.
    pub fn stop(&mut self, ladder: Option<Vec<Rung>>) -> Result<(), Error> {
        self.accepted(&Request::Stop { epoch: self.epoch, ladder })
    }

    /// Makes the shim end the whole tree now.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.accepted(&Request::Kill { epoch: self.epoch })
    }

    /// Sends one line to the agent. Without an answer nothing is known: send it again under the same id, which takes effect
    /// once.
    pub fn stdin(&mut self, id: &str, line: &str) -> Result<Delivered, Error> {
        let request = Request::Stdin { epoch: self.epoch, id: id.to_owned(), line: line.to_owned() };
        match self.request(&request)? {
            Reply::Written { id: written } if written == id => Ok(Delivered::Written),
            Reply::Duplicate { id: written } if written == id => Ok(Delivered::Duplicate),
            other => Err(unexpected(&other)),
        }
    }

    /// Closes the agent's standard input after the lines that were accepted.
    pub fn close_stdin(&mut self) -> Result<(), Error> {
        self.accepted(&Request::CloseStdin { epoch: self.epoch })
    }

    fn accepted(&mut self, request: &Request) -> Result<(), Error> {
        match self.request(request)? {
            Reply::Accepted => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    fn request(&mut self, request: &Request) -> Result<Reply, Error> {
        self.exchange(request, clock::monotonic_ms().saturating_add(self.budget_ms))
    }

    fn exchange(&mut self, request: &Request, deadline_ms: u64) -> Result<Reply, Error> {
        let mut line = serde_json::to_vec(request).map_err(io::Error::from)?;
        line.push(b'\n');
        self.send(&line, deadline_ms)?;
        let line = self.line(deadline_ms)?;
        serde_json::from_slice(&line).map_err(|_| Error::Stranger("it does not speak this language"))
    }

    fn send(&self, mut bytes: &[u8], deadline_ms: u64) -> Result<(), Error> {
        while !bytes.is_empty() {
            match rustix::net::send(&self.socket, bytes, os::SEND_FLAGS) {
                Ok(n) => bytes = &bytes[n..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => await_ready(&self.socket, PollFlags::OUT, deadline_ms)?,
                // The peer may have said why before it closed; that answer is waiting to be read.
                Err(Errno::PIPE | Errno::CONNRESET) => return Ok(()),
                Err(error) => return Err(Error::Io(error.into())),
            }
        }
        Ok(())
    }

    fn line(&mut self, deadline_ms: u64) -> Result<Vec<u8>, Error> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(end) = self.incoming.iter().position(|byte| *byte == b'\n') {
                let rest = self.incoming.split_off(end + 1);
                return Ok(std::mem::replace(&mut self.incoming, rest));
            }
            if self.incoming.len() > REPLY_MAX_BYTES {
                return Err(Error::Stranger("its answer does not end"));
            }
            match rustix::io::read(&self.socket, &mut buffer) {
                Ok(0) => return Err(Error::Io(io::ErrorKind::UnexpectedEof.into())),
                Ok(n) => self.incoming.extend_from_slice(&buffer[..n]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => await_ready(&self.socket, PollFlags::IN, deadline_ms)?,
                Err(error) => return Err(Error::Io(error.into())),
            }
            // A peer that sends single bytes is never "not ready"; the budget applies to it too.
            if clock::monotonic_ms() >= deadline_ms {
                return Err(Error::TimedOut);
            }
        }
    }
}

fn connect(bundle: &Bundle, deadline_ms: u64) -> Result<OwnedFd, Error> {
    let address = os::socket_address(bundle.as_fd(), SOCK)?;
    loop {
        let socket = os::stream_socket()?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => return Ok(socket),
            Err(Errno::AGAIN | Errno::INTR) if clock::monotonic_ms() < deadline_ms => {
                clock::pause(BACKLOG_PAUSE_MS);
            }
            Err(Errno::AGAIN) => return Err(Error::TimedOut),
            Err(error) => return Err(Error::Io(error.into())),
        }
    }
}

fn await_ready(socket: &OwnedFd, flags: PollFlags, deadline_ms: u64) -> Result<(), Error> {
    let left_ms = deadline_ms.saturating_sub(clock::monotonic_ms());
    let mut fds = [PollFd::new(socket, flags)];
    match poll(&mut fds, Some(&clock::timeout(left_ms))) {
        Ok(0) => Err(Error::TimedOut),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(Error::Io(error.into())),
    }
}

fn unexpected(reply: &Reply) -> Error {
    match reply {
        Reply::Refused { why } => Error::Refused(*why),
        _ => Error::Stranger("its answer does not fit the question"),
    }
}
