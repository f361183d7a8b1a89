//! One call through the coordinator's socket: connect, one line out, one line back, each within a bound.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rekindle_engine::door::server::SOCKET;
use rekindle_engine::door::wire::{Answer, Call, LINE_LIMIT, Request, VERSION};
use rekindle_shim::socket;

/// Time for a request to be taken: the coordinator reads at once or not at all.
const SEND_PATIENCE: Duration = Duration::from_secs(10);

/// Why a call was not answered.
#[derive(Debug, thiserror::Error)]
pub enum Away {
    /// Nobody listens.
    #[error("no coordinator listens on {path}")]
    Nobody {
        /// The socket.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The connection broke, or the answer took too long: the call may have been taken.
    #[error("the coordinator went away before it answered")]
    Lost(#[source] io::Error),
    /// The answer is not one that this version knows.
    #[error("the coordinator's answer cannot be understood; it may be another version of rekindle")]
    Garbled(#[source] serde_json::Error),
}

/// The coordinator's socket, and who is speaking.
#[derive(Clone)]
pub struct Door {
    path: PathBuf,
    token: Option<String>,
}

impl Door {
    /// The door of a socket, for an agent with a token or for the operator.
    #[must_use]
    pub fn new(path: PathBuf, token: Option<String>) -> Self {
        Self { path, token }
    }

    /// The operator's door of a state directory.
    #[must_use]
    pub fn of_state_dir(dir: &Path) -> Self {
        Self::new(dir.join(SOCKET), None)
    }

    /// The same door for an agent.
    #[must_use]
    pub fn speaking_as(mut self, token: String) -> Self {
        self.token = Some(token);
        self
    }

    /// Asks once and waits for the answer, at most that long.
    ///
    /// # Errors
    /// When nobody listens, or no answer came.
    pub fn call(&self, call: Call, patience: Duration) -> Result<Answer, Away> {
        let mut stream = connect(&self.path).map_err(|source| Away::Nobody { path: self.path.clone(), source })?;
        let request = Request { version: VERSION, token: self.token.clone(), call };
        let mut line = serde_json::to_vec(&request).map_err(Away::Garbled)?;
        line.push(b'\n');
        let answer = exchange(&mut stream, &line, patience).map_err(Away::Lost)?;
        serde_json::from_slice(&answer).map_err(Away::Garbled)
    }
}

fn exchange(stream: &mut UnixStream, line: &[u8], patience: Duration) -> io::Result<Vec<u8>> {
    stream.set_write_timeout(Some(SEND_PATIENCE))?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(line)?;
    let mut answer = Vec::new();
    let limit = LINE_LIMIT as u64 + 1;
    BufReader::new(stream.take(limit)).read_until(b'\n', &mut answer)?;
    if answer.pop() != Some(b'\n') {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(answer)
}

/// Connects by way of the directory: a project's path is often longer than a socket's address may be.
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
        let answer = Door::of_state_dir(&dir).call(Call::Ping, PATIENCE).expect("answer");
        assert_eq!(answer, Answer::Pong { pid: 7 });
        let request = server.join().expect("server");
        let request: Request = serde_json::from_slice(&request).expect("a request");
        assert_eq!(request, Request { version: VERSION, token: None, call: Call::Ping });
    }

    #[test]
    fn nobody_a_broken_answer_and_a_foreign_answer_are_told_apart() {
        let dir = tempfile::tempdir().expect("tempdir");
        let door = Door::of_state_dir(dir.path());
        assert!(matches!(door.call(Call::Ping, PATIENCE), Err(Away::Nobody { .. })));
        for (reply, lost) in [(&b"{\"answer\":"[..], true), (b"", true), (b"{\"answer\":\"sing\"}\n", false)] {
            let dir = tempfile::tempdir().expect("tempdir");
            let server = answer_once(listener_in(dir.path()), reply);
            let error = Door::of_state_dir(dir.path()).call(Call::Ping, PATIENCE).expect_err("no answer");
            assert_eq!(matches!(error, Away::Lost(_)), lost, "{error}");
            server.join().expect("server");
        }
    }
}
