//! The state of a coordinator that holds its connection and does not answer: its process, what that process is doing, and
//! what to type.

use std::os::unix::net::UnixStream;

/// The process at the other end of a connection, as the operating system sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stall {
    pid: Option<u32>,
    state: Option<char>,
}

impl Stall {
    /// The process that listens at the other end.
    pub(crate) fn of(stream: &UnixStream) -> Self {
        let peer = rustix::net::sockopt::socket_peercred(stream).ok();
        let pid = peer.and_then(|peer| u32::try_from(peer.pid.as_raw_nonzero().get()).ok());
        Self { pid, state: pid.and_then(state_of) }
    }

    /// A process that accepted no connection.
    pub(crate) fn unnamed() -> Self {
        Self { pid: None, state: None }
    }

    /// The same, with a process id known from elsewhere if this has none.
    pub(crate) fn or_of(self, pid: Option<u32>) -> Self {
        match (self.pid, pid) {
            (None, Some(pid)) => Self { pid: Some(pid), state: state_of(pid) },
            _ => self,
        }
    }

    /// Whether the process is stopped, or held by a debugger.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, Some('T' | 't'))
    }

    /// The state of the process, in words.
    pub(crate) fn words(&self) -> String {
        let who = self.pid.map_or_else(|| "the coordinator".to_owned(), |pid| format!("the coordinator (pid {pid})"));
        match self.state {
            Some('T') => format!("{who} is stopped"),
            Some('t') => format!("{who} is held by a debugger"),
            Some('D') => format!("{who} waits for a disk that does not answer"),
            Some('Z' | 'X') => format!("{who} has just ended"),
            _ => format!("{who} does not answer"),
        }
    }

    pub(crate) fn hint(&self) -> String {
        match (self.state, self.pid) {
            (Some('T'), Some(pid)) => format!("let it continue: kill -CONT {pid}"),
            (Some('t'), Some(pid)) => format!("detach the debugger from process {pid}"),
            (Some('D'), _) => "look at the disk of the state directory: dmesg, df".to_owned(),
            (_, Some(pid)) => format!("try again; if that fails, kill it and continue: kill -9 {pid}; rekindle resume"),
            _ => "look at it: rekindle doctor".to_owned(),
        }
    }
}

/// The state letter of a process: it comes after the program's name, which may contain anything.
fn state_of(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}
