//! One call through the coordinator's socket: connect, one line out, one line back, each within a bound.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rekindle_engine::clock::boottime_ms;
use rekindle_engine::control::server::SOCKET;
use rekindle_engine::control::wire::{Envelope, LINE_LIMIT, Request, Response, VERSION};
use rekindle_shim::socket;

use super::stall::Stall;

/// Time limit for sending a request: the coordinator reads at once or not at all.
const SEND_PATIENCE: Duration = Duration::from_secs(10);

/// How often the process at the other end is checked while waiting for its answer.
const LOOK: Duration = Duration::from_millis(500);

/// How long a coordinator may be stopped before the operator is told: stopping and continuing it at a terminal takes less.
const STOPPED_PATIENCE: Duration = Duration::from_secs(2);

/// Why a call was not answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Away {
    #[error("no coordinator listens on {path}")]
    Nobody { path: PathBuf, source: io::Error },
    /// The connection broke: the call may have been taken.
    #[error("the coordinator ended before it answered")]
    Lost(#[source] io::Error),
    /// The coordinator holds the connection and says nothing: it may still take the call.
    #[error("{}", stall.words())]
    Stalled {
        /// The state of its process.
        stall: Stall,
    },
    /// This version does not know the answer.
    #[error("cannot read the coordinator's answer; it may run another version of rekindle")]
    Garbled(#[source] serde_json::Error),
}

/// The coordinator's socket, and who is calling.
#[derive(Clone)]
pub(crate) struct ControlSocket {
    path: PathBuf,
    token: Option<String>,
}

impl ControlSocket {
    /// A control socket, for an agent with a token or for the operator.
    pub(crate) fn new(path: PathBuf, token: Option<String>) -> Self {
        Self { path, token }
    }

    /// The operator's control socket of a state directory.
    pub(crate) fn of_state_dir(dir: &Path) -> Self {
        Self::new(dir.join(SOCKET), None)
    }

    /// The same socket for an agent.
    pub(crate) fn speaking_as(mut self, token: String) -> Self {
        self.token = Some(token);
        self
    }

    /// Asks once and waits for the answer, at most for `patience`. Fails when nothing listens, or no answer came.
    pub(crate) fn call(&self, call: Request, patience: Duration) -> Result<Response, Away> {
        let mut stream = match connect(&self.path) {
            // Its backlog is full: it accepts no connections.
            Err(error) if is_late(&error) => return Err(Away::Stalled { stall: Stall::unnamed() }),
            other => other.map_err(|source| Away::Nobody { path: self.path.clone(), source })?,
        };
        let request = Envelope { version: VERSION, token: self.token.clone(), call };
        let mut line = serde_json::to_vec(&request).map_err(Away::Garbled)?;
        line.push(b'\n');
        // An agent has time: its own limits bound it, and a coordinator that is stopped for a moment must not cost its report.
        let stopped_patience = if self.token.is_some() { patience } else { STOPPED_PATIENCE };
        let answer = exchange(&mut stream, &line, patience, stopped_patience)?;
        serde_json::from_slice(&answer).map_err(Away::Garbled)
    }
}

fn exchange(
    stream: &mut UnixStream,
    line: &[u8],
    patience: Duration,
    stopped_patience: Duration,
) -> Result<Vec<u8>, Away> {
    stream.set_write_timeout(Some(SEND_PATIENCE)).map_err(Away::Lost)?;
    stream.set_read_timeout(Some(LOOK.min(patience))).map_err(Away::Lost)?;
    stream.write_all(line).map_err(Away::Lost)?;
    let begun = boottime_ms();
    let mut reader = BufReader::new(Read::by_ref(stream).take(LINE_LIMIT as u64 + 1));
    let mut answer = Vec::new();
    let mut stopped_since: Option<u64> = None;
    loop {
        match reader.read_until(b'\n', &mut answer) {
            Ok(_) if answer.pop() == Some(b'\n') => return Ok(answer),
            Ok(_) => return Err(Away::Lost(ErrorKind::UnexpectedEof.into())),
            Err(error) if is_late(&error) => {}
            Err(error) => return Err(Away::Lost(error)),
        }
        let stall = Stall::of(reader.get_ref().get_ref());
        let now = boottime_ms();
        stopped_since = stall.is_stopped().then(|| stopped_since.unwrap_or(now));
        let over = |since: u64, patience: Duration| u128::from(now.saturating_sub(since)) >= patience.as_millis();
        if stopped_since.is_some_and(|since| over(since, stopped_patience)) || over(begun, patience) {
            return Err(Away::Stalled { stall });
        }
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Connects through the directory: a project's path is often longer than a socket address may be.
fn connect(path: &Path) -> io::Result<UnixStream> {
    match (path.parent(), path.file_name().and_then(OsStr::to_str)) {
        (Some(dir), Some(name)) => socket::connect(dir, name),
        _ => Err(ErrorKind::InvalidInput.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Long enough for a busy machine, short enough to notice a hang.
    const PATIENCE: Duration = Duration::from_secs(20);

    fn listener_in(dir: &Path) -> UnixListener {
        socket::listen(dir, SOCKET).expect("a socket")
    }

    fn answer_once(listener: UnixListener, reply: &'static [u8]) -> std::thread::JoinHandle<Vec<u8>> {
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("caller");
            let mut line = Vec::new();
            BufReader::new(&stream).read_until(b'\n', &mut line).expect("request");
            stream.write_all(reply).expect("reply");
            line
        })
    }

    #[test]
    fn a_call_is_answered_also_under_a_path_of_200_bytes() {
        let base = tempfile::tempdir().expect("tempdir");
        let dir = base.path().join("x".repeat(200));
        std::fs::create_dir(&dir).expect("directory");
        let server = answer_once(listener_in(&dir), b"{\"answer\":\"pong\",\"pid\":7}\n");
        let answer = ControlSocket::of_state_dir(&dir).call(Request::Ping, PATIENCE).expect("answer");
        assert_eq!(answer, Response::Pong { pid: 7 });
        let request = server.join().expect("server");
        let request: Envelope = serde_json::from_slice(&request).expect("a request");
        assert_eq!(request, Envelope { version: VERSION, token: None, call: Request::Ping });
    }

    #[test]
    fn nobody_a_broken_answer_and_a_foreign_answer_are_told_apart() {
        let dir = tempfile::tempdir().expect("tempdir");
        let socket = ControlSocket::of_state_dir(dir.path());
        assert!(matches!(socket.call(Request::Ping, PATIENCE), Err(Away::Nobody { .. })));
        for (reply, lost) in [(&b"{\"answer\":"[..], true), (b"", true), (b"{\"answer\":\"sing\"}\n", false)] {
            let dir = tempfile::tempdir().expect("tempdir");
            let server = answer_once(listener_in(dir.path()), reply);
            let error = ControlSocket::of_state_dir(dir.path()).call(Request::Ping, PATIENCE).expect_err("no answer");
            assert_eq!(matches!(error, Away::Lost(_)), lost, "{error}");
            server.join().expect("server");
        }
    }
}
