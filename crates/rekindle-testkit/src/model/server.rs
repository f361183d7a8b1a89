//! The server: accepts connections, consults the script, answers, and keeps every request. One thread per connection; a
//! deliberate hang ends with its client or with the server.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::asked::{Asked, Purpose};
use super::dialect::{self, Body, Encoded};
use super::peer::Peer;
use super::script::{End, Picked, Play, Rule, Script};
use super::wire::{self, Head};

/// Poll interval for a file or for a client that is left hanging.
const LOOK: Duration = Duration::from_millis(20);

/// Polls before an answer that waits for a file is given up: five minutes, longer than any test.
const LOOKS: u32 = 15_000;

/// Pause between two characters of an answer that drips in.
const DRIP: Duration = Duration::from_millis(500);

/// Bytes of such an answer that are sent only at its end.
const DRIP_KEPT_BYTES: usize = 64;

/// Header lines that carry a key, real or not.
const KEYS: &[&str] = &["authorization", "x-api-key", "x-goog-api-key"];

/// A fake provider that listens on loopback until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    stopped: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    play: Play,
    asked: Vec<Asked>,
    log: Option<std::fs::File>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

impl Server {
    /// Listens on a free port of loopback.
    ///
    /// # Errors
    ///
    /// No port is free.
    pub fn start(script: Script) -> io::Result<Self> {
        Self::start_on(0, script, None)
    }

    /// Listens on a port of loopback and writes every request to a file, one JSON object per line.
    ///
    /// # Errors
    ///
    /// The port is taken, or the file cannot be created.
    pub fn start_on(port: u16, script: Script, log: Option<&Path>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        let address = listener.local_addr()?;
        let log = log.map(|path| std::fs::File::options().create(true).append(true).open(path)).transpose()?;
        let inner = Mutex::new(Inner { play: Play::new(script), asked: Vec::new(), log });
        let shared = Arc::new(Shared { stopped: AtomicBool::new(false), inner });
        let theirs = Arc::clone(&shared);
        std::thread::spawn(move || accept(&listener, &theirs));
        Ok(Self { address, shared })
    }

    /// Its address, as a base for paths: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds rules after the existing ones.
    pub fn add(&self, script: Script) {
        self.shared.lock().play.add(script);
    }

    /// Every request so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.lock().asked.clone()
    }

    /// Every request of the main conversation so far.
    #[must_use]
    pub fn main(&self) -> Vec<Asked> {
        self.of(Purpose::Main)
    }

    /// Every request with this purpose so far.
    #[must_use]
    pub fn of(&self, purpose: Purpose) -> Vec<Asked> {
        self.shared.lock().asked.iter().filter(|asked| asked.purpose == purpose).cloned().collect()
    }

    /// Rules with a limit that were never used.
    #[must_use]
    pub fn unused(&self) -> Vec<Rule> {
        self.shared.lock().play.unused()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for a connection.
        let _woken = TcpStream::connect(self.address);
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopped() {
            return;
        }
        let Ok(stream) = stream else { continue };
        let theirs = Arc::clone(shared);
        std::thread::spawn(move || {
            // A client that is gone needs no answer.
            let _gone = serve(&stream, &theirs);
        });
    }
}

fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    let Some(head) = wire::read(stream)? else { return Ok(()) };
    let peer = Peer::of(stream);
    let (asked, picked) = record(head, peer, shared);
    if let Some(file) = &picked.answer.after {
        let there = (0..LOOKS).any(|_| {
            let there = file.exists() || shared.stopped();
            if !there {
                std::thread::park_timeout(LOOK);
            }
            there
        });
        if !there {
            return wire::whole(stream, 500, &Vec::new(), b"waited in vain");
        }
    }
    perform(stream, &asked, &picked, shared)
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Interprets a request, picks its answer and keeps the request.
fn record(head: Head, peer: Option<Peer>, shared: &Shared) -> (Asked, Picked) {
    let now = now();
    let body: Value = serde_json::from_slice(&head.body).unwrap_or_default();
    let meaning = dialect::understand(&head.method, &head.path, &head.headers, &body);
    let headers = head.headers.into_iter().filter(|(name, _)| !KEYS.contains(&name.as_str())).collect();
    let mut asked = Asked {
        number: 0,
        main_number: None,
        at_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        method: head.method,
        path: head.path,
        api: meaning.api,
        purpose: meaning.purpose,
        stream: meaning.stream,
        peer,
        headers,
        messages: meaning.messages,
        tools: meaning.tools,
        rule: None,
        body,
    };
    let goes_on = dialect::goes_on(&asked);
    if goes_on.is_some() {
        asked.purpose = Purpose::Side;
    }
    let mut inner = shared.lock();
    asked.number = inner.asked.len() as u64 + 1;
    if asked.purpose == Purpose::Main {
        let before = inner.asked.iter().filter(|asked| asked.purpose == Purpose::Main).count();
        asked.main_number = Some(before as u64 + 1);
    }
    let picked = match goes_on {
        Some(answer) => Picked { rule: None, answer, resets_at: None },
        None => inner.play.pick(&asked, now.as_secs()),
    };
    asked.rule = picked.rule;
    inner.asked.push(asked.clone());
    if let Some(log) = &mut inner.log {
        // Without the log a test still has the requests; with a full disk it has other troubles.
        let _unwritten = serde_json::to_string(&asked).map(|line| log.write_all(format!("{line}\n").as_bytes()));
    }
    (asked, picked)
}

fn perform(stream: &TcpStream, asked: &Asked, picked: &Picked, shared: &Shared) -> io::Result<()> {
    let end = &picked.answer.end;
    if *end == End::HangBeforeHeaders {
        return hang(stream, shared);
    }
    if *end == End::Refused {
        return wire::reset(stream);
    }
    let Encoded { status, headers, body } = dialect::encode(asked, picked, now().as_secs());
    let events = match body {
        Body::Events(events) => events,
        Body::Whole(body) if matches!(end, End::Whole | End::Fail(_)) => {
            let body = if asked.method == "HEAD" { "" } else { body.as_str() };
            return wire::whole(stream, status, &headers, body.as_bytes());
        }
        // In one piece the only middle is that of the body.
        Body::Whole(body) => dialect::halves(&body).map(str::to_owned).to_vec(),
    };
    wire::begin(stream, &headers)?;
    if let End::Drips { for_s } = end {
        return drip(stream, &events.concat(), Duration::from_secs(*for_s), shared);
    }
    let middle = events.len() / 2;
    let sent = match end {
        End::HangAfterHeaders => 0,
        End::Cut | End::Unfinished | End::HangMidStream => middle.max(1),
        _ => events.len(),
    };
    for event in &events[..sent] {
        wire::piece(stream, event)?;
    }
    match end {
        End::HangAfterHeaders | End::HangMidStream => hang(stream, shared),
        // Closed without the end that the client was promised. A reset could overtake what was sent before it.
        End::Cut => Ok(()),
        _ => wire::end(stream),
    }
}

/// Sends the beginning a character at a time, then the rest.
fn drip(stream: &TcpStream, answer: &str, time: Duration, shared: &Shared) -> io::Result<()> {
    let mut rest = answer;
    let begun = Instant::now();
    while begun.elapsed() < time && !shared.stopped() {
        let first = rest.chars().next().map_or(0, char::len_utf8);
        // The last characters are kept, so that the answer is not whole too early.
        if rest.len() > DRIP_KEPT_BYTES {
            wire::piece(stream, &rest[..first])?;
            rest = &rest[first..];
        }
        std::thread::park_timeout(DRIP);
    }
    wire::piece(stream, rest)?;
    wire::end(stream)
}

/// Keeps the connection open until the client or the server goes.
fn hang(mut stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(LOOK))?;
    let mut byte = [0];
    while !shared.stopped() {
        match stream.read(&mut byte) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
