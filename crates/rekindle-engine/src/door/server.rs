//! The listening side: accepts callers, proves that they are this user's, and passes their words to the driver.
//!
//! One thread a caller, few callers at a time; a slow or silent one holds only its own thread. What is answered is decided
//! elsewhere.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use super::wire::{Answer, LINE_LIMIT, Request, VERSION};
use crate::driver::Message;

/// The socket's name in the state directory.
pub const SOCKET: &str = "sock";

/// Callers served at once. Agents that wait for a person hold a connection each, so there is room for a large fleet.
const CALLERS: usize = 4_096;

/// How long a caller may take to say one line, so that a silent one does not hold a thread for ever.
const SPEAK_WITHIN: Duration = Duration::from_secs(30);

/// Ancestors looked at to find out whether a caller belongs to an agent: far deeper than any real nesting.
const ANCESTORS: usize = 64;

/// Opens the door of a state directory. The caller holds the coordinator's lock, so a socket left there is a dead one's.
///
/// # Errors
/// When the socket cannot be made.
pub fn open(state_dir: &Path, messages: SyncSender<Message>) -> io::Result<()> {
    match std::fs::remove_file(state_dir.join(SOCKET)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = rekindle_shim::socket::listen(state_dir, SOCKET)?;
    let callers = Arc::new(AtomicUsize::new(0));
    std::thread::Builder::new().name("door".to_owned()).spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { continue };
            if callers.load(Ordering::Relaxed) >= CALLERS {
                continue;
            }
            callers.fetch_add(1, Ordering::Relaxed);
            let (messages, done) = (messages.clone(), Arc::clone(&callers));
            let served = std::thread::Builder::new().name("caller".to_owned()).spawn(move || {
                let _gone = serve(&stream, &messages);
                done.fetch_sub(1, Ordering::Relaxed);
            });
            if served.is_err() {
                callers.fetch_sub(1, Ordering::Relaxed);
            }
        }
    })?;
    Ok(())
}

/// Serves one caller until it leaves.
fn serve(stream: &UnixStream, messages: &SyncSender<Message>) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid != rustix::process::geteuid() {
        return Ok(());
    }
    let ancestors = ancestors(u32::try_from(peer.pid.as_raw_nonzero().get()).unwrap_or(0));
    stream.set_read_timeout(Some(SPEAK_WITHIN))?;
    stream.set_write_timeout(Some(SPEAK_WITHIN))?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let limit = u64::try_from(LINE_LIMIT).unwrap_or(u64::MAX);
        reader.by_ref().take(limit).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        let answer = match read_request(&line) {
            Ok(request) => ask_driver(request, ancestors.clone(), messages),
            Err(reason) => Some(Answer::Refused { reason }),
        };
        // A coordinator that is leaving has decided nothing: hanging up says so, and the caller keeps its word for the next.
        let Some(answer) = answer else { return Ok(()) };
        let mut text = serde_json::to_vec(&answer).map_err(io::Error::other)?;
        text.push(b'\n');
        (&mut &*stream).write_all(&text)?;
    }
}

fn read_request(line: &[u8]) -> Result<Request, String> {
    if !line.ends_with(b"\n") {
        return Err(format!("the request was cut off, or is longer than {LINE_LIMIT} bytes"));
    }
    let request: Request =
        serde_json::from_slice(line).map_err(|error| format!("the request cannot be read: {error}"))?;
    if request.version > VERSION {
        return Err(format!("the request speaks version {}, this coordinator knows {VERSION}", request.version));
    }
    Ok(request)
}

fn ask_driver(request: Request, ancestors: Vec<u32>, messages: &SyncSender<Message>) -> Option<Answer> {
    let (reply, answer) = sync_channel(1);
    let message = Message::Called {
        token: request.token,
        ancestors,
        call: request.call,
        reply: Box::new(move |answer| {
            let _caller_left = reply.try_send(answer);
        }),
    };
    messages.send(message).ok()?;
    answer.recv().ok()
}

/// A process and the processes it descends from, as far as the operating system tells.
pub(crate) fn ancestors(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut next = Some(pid);
    while let Some(pid) = next.filter(|pid| *pid > 1 && found.len() < ANCESTORS) {
        found.push(pid);
        next = rekindle_shim::tree::parent_of(pid);
    }
    found
}
