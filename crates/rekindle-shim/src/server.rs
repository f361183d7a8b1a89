//! The shim's socket: checks callers, and exchanges whole lines without ever waiting for any of them.
//!
//! Every connection is non-blocking with bounded buffers. A caller must be of our user and must prove the attempt's nonce in
//! its first line within a short time. The loop that polls the server decides what a request does.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use crate::bundle::{Bundle, SOCK, Spec, VERSION};
use crate::feeder::Caller;
use crate::os;
use crate::wire::{self, Hello, Refusal, Reply, Request};

/// Callers at the same time; a coordinator and a few commands.
const CALLERS_MAX: usize = 16;

/// Time for a caller to send its handshake; after that it only takes up space.
const HELLO_MAX_MS: u64 = 2_000;

/// Limit on replies that a caller has not read; more means that it does not read.
const UNREAD_MAX_BYTES: usize = 256 << 10;

/// Bytes taken from one caller before the others have their turn.
const TURN_BYTES: usize = 64 << 10;

/// Limit on waiting connections; more than callers, so that a burst is not refused.
const BACKLOG: i32 = 64;

/// A request of a caller after its handshake, or why its line is not a request; answered in order.
pub(crate) type Asked = (Caller, Result<Request, Refusal>);

struct Connection {
    caller: Caller,
    socket: OwnedFd,
    incoming: Vec<u8>,
    /// Where the search for a line's end continues.
    searched: usize,
    outgoing: Vec<u8>,
    introduced: bool,
    /// Close once everything is sent.
    leaving: bool,
    gone: bool,
    active_at_ms: u64,
}

/// The listening socket and its callers.
pub(crate) struct Server {
    listener: OwnedFd,
    connections: Vec<Connection>,
    next_caller: Caller,
    identity: Hello,
}

impl Server {
    /// Binds the bundle's socket, in place of one that a dead shim left.
    pub(crate) fn bind(bundle: &Bundle, spec: &Spec) -> io::Result<Self> {
        match rustix::fs::unlinkat(bundle, SOCK, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let listener = os::stream_socket()?;
        rustix::net::bind(&listener, &os::socket_address(bundle.as_fd(), SOCK)?)?;
        rustix::fs::chmodat(bundle, SOCK, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
        rustix::net::listen(&listener, BACKLOG)?;
        let identity =
            Hello { version: VERSION, attempt: spec.attempt.clone(), epoch: spec.epoch, nonce: spec.nonce.clone() };
        Ok(Self { listener, connections: Vec::new(), next_caller: 0, identity })
    }

    pub(crate) fn poll_fds(&self) -> Vec<PollFd<'_>> {
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        for connection in &self.connections {
            let mut flags = if connection.leaving { PollFlags::empty() } else { PollFlags::IN };
            if !connection.outgoing.is_empty() {
                flags |= PollFlags::OUT;
            }
            fds.push(PollFd::new(&connection.socket, flags));
        }
        fds
    }

    /// When the time of a caller ends whose handshake is missing, or that is being closed.
    pub(crate) fn next_at_ms(&self) -> Option<u64> {
        self.connections.iter().filter_map(Connection::expires_at_ms).min()
    }

    /// Gives every caller a turn and returns the requests of those that have completed the handshake.
    pub(crate) fn turn(&mut self, now_ms: u64) -> Vec<Asked> {
        let mut requests = Vec::new();
        for connection in &mut self.connections {
            connection.send();
            connection.receive(&self.identity, now_ms, &mut requests);
        }
        let expired = |connection: &Connection| connection.expires_at_ms().is_some_and(|at_ms| now_ms >= at_ms);
        self.connections.retain(|connection| !connection.gone && !expired(connection));
        self.accept(now_ms);
        requests
    }

    /// Replies to a caller, if it is still connected.
    pub(crate) fn answer(&mut self, caller: Caller, reply: &Reply) {
        if let Some(connection) = self.connections.iter_mut().find(|connection| connection.caller == caller) {
            connection.answer(reply);
            connection.send();
        }
    }

    fn accept(&mut self, now_ms: u64) {
        while let Ok(socket) = os::accept(&self.listener) {
            // Another user's process is not even answered.
            if os::peer_uid(&socket).ok() != Some(rustix::process::geteuid().as_raw()) {
                continue;
            }
            if self.connections.len() >= CALLERS_MAX {
                self.make_room();
            }
            self.next_caller += 1;
            self.connections.push(Connection::new(self.next_caller, socket, now_ms));
        }
    }

    /// Drops the caller that has been silent longest; callers without a handshake first.
    fn make_room(&mut self) {
        let rank = |connection: &Connection| (connection.introduced, connection.active_at_ms);
        if let Some(index) = (0..self.connections.len()).min_by_key(|index| rank(&self.connections[*index])) {
            self.connections.swap_remove(index);
        }
    }
}

impl Connection {
    fn new(caller: Caller, socket: OwnedFd, now_ms: u64) -> Self {
        Self {
            caller,
            socket,
            incoming: Vec::new(),
            searched: 0,
            outgoing: Vec::new(),
            introduced: false,
            leaving: false,
            gone: false,
            active_at_ms: now_ms,
        }
    }

    fn expires_at_ms(&self) -> Option<u64> {
        (!self.introduced || self.leaving).then_some(self.active_at_ms + HELLO_MAX_MS)
    }

    fn answer(&mut self, reply: &Reply) {
        let Ok(mut bytes) = serde_json::to_vec(reply) else {
            return;
        };
        bytes.push(b'\n');
        if self.outgoing.len() + bytes.len() > UNREAD_MAX_BYTES {
            self.gone = true;
            return;
        }
        self.outgoing.append(&mut bytes);
    }

    fn refuse(&mut self, why: Refusal) {
        self.answer(&Reply::Refused { why });
    }

    fn send(&mut self) {
        while !self.outgoing.is_empty() {
            match rustix::net::send(&self.socket, &self.outgoing, os::SEND_FLAGS) {
                Ok(n) => drop(self.outgoing.drain(..n)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    self.gone = true;
                    return;
                }
            }
        }
        self.gone |= self.leaving;
    }

    fn receive(&mut self, identity: &Hello, now_ms: u64, requests: &mut Vec<Asked>) {
        let mut buffer = [0; 16 << 10];
        let mut taken = 0;
        while taken < TURN_BYTES && !self.gone && !self.leaving {
            match rustix::io::read(&self.socket, &mut buffer) {
                Ok(0) => self.gone = true,
                Ok(n) => {
                    taken += n;
                    self.incoming.extend_from_slice(&buffer[..n]);
                    // Single bytes do not extend the time of a caller without a handshake.
                    if self.introduced {
                        self.active_at_ms = now_ms;
                    }
                    self.lines(identity, now_ms, requests);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.gone = true,
            }
        }
        self.send();
    }

    fn lines(&mut self, identity: &Hello, now_ms: u64, requests: &mut Vec<Asked>) {
        while let Some(end) = self.incoming[self.searched..].iter().position(|byte| *byte == b'\n') {
            let rest = self.incoming.split_off(self.searched + end + 1);
            let line = std::mem::replace(&mut self.incoming, rest);
            self.searched = 0;
            if self.introduced {
                self.request(&line, identity, requests);
            } else {
                self.introduce(&line, identity, now_ms);
            }
            if self.leaving {
                return;
            }
        }
        self.searched = self.incoming.len();
        let max = if self.introduced { wire::LINE_MAX_BYTES } else { wire::HELLO_MAX_BYTES };
        if self.incoming.len() > max {
            self.refuse(Refusal::Malformed);
            self.leaving = true;
        }
    }

    fn introduce(&mut self, line: &[u8], identity: &Hello, now_ms: u64) {
        let why = match serde_json::from_slice(line) {
            Ok(Request::Hello(hello)) => {
                // Both comparisons always happen: the response time reveals nothing about the secret.
                let secret = wire::same_secret(&hello.nonce, &identity.nonce);
                let attempt = hello.attempt == identity.attempt;
                if !(secret && attempt) {
                    Refusal::NotYours
                } else if hello.version == 0 {
                    Refusal::Version
                } else if hello.epoch < identity.epoch {
                    Refusal::StaleEpoch
                } else {
                    self.introduced = true;
                    self.active_at_ms = now_ms;
                    // The older of the two versions is used; this side knows all up to its own.
                    let version = hello.version.min(VERSION);
                    self.answer(&Reply::Hello(Hello { version, ..identity.clone() }));
                    return;
                }
            }
            Ok(_) => Refusal::HandshakeExpected,
            Err(_) => Refusal::Malformed,
        };
        self.refuse(why);
        self.leaving = true;
    }

    fn request(&self, line: &[u8], identity: &Hello, requests: &mut Vec<Asked>) {
        let asked = match serde_json::from_slice::<Request>(line) {
            Ok(Request::Hello(_)) => Err(Refusal::HandshakeExpected),
            Ok(request) if request.epoch() < identity.epoch => Err(Refusal::StaleEpoch),
            Ok(request) => Ok(request),
            Err(_) => Err(Refusal::Malformed),
        };
        requests.push((self.caller, asked));
    }
}
