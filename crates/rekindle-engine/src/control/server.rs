//! The listening side: accepts callers, verifies that they belong to this user, and passes their requests to the driver.
//!
//! One thread per caller, few callers at a time; a slow or silent one holds only its own thread. What is answered is decided
//! elsewhere.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Called;
use super::wire::{Envelope, LINE_LIMIT, Response, VERSION};
use crate::descriptors;

/// The socket's name in the state directory.
pub const SOCKET: &str = "sock";

/// Callers served at once. Agents that wait for a person hold a connection each, so there is room for a large fleet.
const CALLERS: usize = 4_096;

/// The fraction of the file descriptors that callers may use is one in this many: the rest is for the store, spools and
/// processes.
const CALLERS_SHARE: u64 = 2;

/// How often a waiting caller is checked: one that hung up holds its thread and its descriptor no longer than this.
const HANG_UP_LOOK: Duration = Duration::from_secs(1);

/// Shortest and longest pause after a caller could not be accepted. Descriptors are freed when callers leave.
const ACCEPT_PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// How long a caller may take to send one line, so that a silent one does not hold a thread for ever.
const SPEAK_WITHIN: Duration = Duration::from_secs(30);

/// Ancestors checked to find out whether a caller belongs to an agent: far deeper than any real nesting.
const ANCESTORS: usize = 64;

/// Opens the control socket of a state directory. The caller holds the coordinator's lock, so an existing socket belongs to
/// a dead process.
pub fn open<M: From<Called> + Send + 'static>(state_dir: &Path, messages: SyncSender<M>) -> io::Result<()> {
    match std::fs::remove_file(state_dir.join(SOCKET)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = rekindle_shim::socket::listen(state_dir, SOCKET)?;
    std::thread::Builder::new().name("control".to_owned()).spawn(move || take_in(&listener, &messages))?;
    Ok(())
}

/// Starts a thread for every caller, as long as there is room.
fn take_in<M: From<Called> + Send + 'static>(listener: &UnixListener, messages: &SyncSender<M>) {
    let most = usize::try_from(descriptors::limit() / CALLERS_SHARE).map_or(CALLERS, |most| most.min(CALLERS));
    let callers = Arc::new(AtomicUsize::new(0));
    let mut pause = ACCEPT_PAUSE.0;
    loop {
        let served = match listener.accept() {
            // Hanging up says that there is no room; the caller retries.
            Ok(_) if callers.load(Ordering::Relaxed) >= most => Ok(()),
            Ok((stream, _)) => begin(stream, messages.clone(), &callers),
            Err(error) => Err(error),
        };
        match served {
            Ok(()) => pause = ACCEPT_PAUSE.0,
            // No descriptor or no thread is left: asking again at once would only use up a processor.
            Err(_) => {
                std::thread::park_timeout(pause);
                pause = (pause * 2).min(ACCEPT_PAUSE.1);
            }
        }
    }
}

fn begin<M: From<Called> + Send + 'static>(
    stream: UnixStream,
    messages: SyncSender<M>,
    callers: &Arc<AtomicUsize>,
) -> io::Result<()> {
    callers.fetch_add(1, Ordering::Relaxed);
    let done = Arc::clone(callers);
    let served = std::thread::Builder::new().name("caller".to_owned()).spawn(move || {
        let _gone = serve(&stream, &messages);
        drop(stream);
        done.fetch_sub(1, Ordering::Relaxed);
    });
    if served.is_err() {
        callers.fetch_sub(1, Ordering::Relaxed);
    }
    served.map(drop)
}

/// Serves one caller until it leaves.
fn serve<M: From<Called>>(stream: &UnixStream, messages: &SyncSender<M>) -> io::Result<()> {
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
            Ok(request) => ask_driver(stream, request, ancestors.clone(), messages),
            Err(reason) => Some(Response::Refused { reason }),
        };
        // A coordinator that is leaving has decided nothing: hanging up says so, and the caller keeps its report for the
        // next one.
        let Some(answer) = answer else { return Ok(()) };
        let mut text = serde_json::to_vec(&answer).map_err(io::Error::other)?;
        text.push(b'\n');
        (&mut &*stream).write_all(&text)?;
    }
}

fn read_request(line: &[u8]) -> Result<Envelope, String> {
    if !line.ends_with(b"\n") {
        return Err(format!("the request was cut off, or is longer than {LINE_LIMIT} bytes"));
    }
    let request: Envelope =
        serde_json::from_slice(line).map_err(|error| format!("the request cannot be read: {error}"))?;
    if request.version > VERSION {
        return Err(format!("the request speaks version {}, this coordinator knows {VERSION}", request.version));
    }
    Ok(request)
}

/// Passes a request on and waits for its answer, as long as the caller does.
fn ask_driver<M: From<Called>>(
    caller: &UnixStream,
    request: Envelope,
    ancestors: Vec<u32>,
    messages: &SyncSender<M>,
) -> Option<Response> {
    let (reply, answer) = sync_channel(1);
    let called = Called {
        token: request.token,
        ancestors,
        call: request.call,
        reply: Box::new(move |answer| {
            let _caller_left = reply.try_send(answer);
        }),
    };
    messages.send(called.into()).ok()?;
    loop {
        match answer.recv_timeout(HANG_UP_LOOK) {
            Ok(answer) => return Some(answer),
            Err(RecvTimeoutError::Timeout) if !has_hung_up(caller) => {}
            Err(_) => return None,
        }
    }
}

/// Whether both directions are closed. A caller that has only finished sending still wants its response.
fn has_hung_up(caller: &UnixStream) -> bool {
    let mut looked = [PollFd::new(caller, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut looked, Some(&now)).is_ok() && looked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// A process and its ancestors, as far as the operating system reports them.
pub(crate) fn ancestors(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut next = Some(pid);
    while let Some(pid) = next.filter(|pid| *pid > 1 && found.len() < ANCESTORS) {
        found.push(pid);
        next = rekindle_shim::tree::parent_of(pid);
    }
    found
}
