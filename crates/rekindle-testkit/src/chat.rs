//! Fake chat servers on loopback: ntfy, Telegram and Slack as far as rekindle talks to them, with deliberate faults. They
//! keep what was sent, and a test defines what a person writes back.

mod speak;

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rekindle_core::phone::Via;

/// Largest request that is read.
const REQUEST_MAX_BYTES: usize = 1 << 20;

/// How long a call hangs on purpose: longer than any client waits for one.
const HANG: Duration = Duration::from_secs(120);

/// Poll interval for whether the server has ended meanwhile.
const LOOK: Duration = Duration::from_millis(50);

/// What goes wrong with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Too many requests: wait this many seconds.
    Wait(u64),
    /// The connection ends in the middle of the answer; the request has been carried out.
    Cut,
    /// The connection ends before anything is done.
    Drop,
    /// The server fails.
    Fail,
    /// No answer comes.
    Hang,
    /// It refuses permanently.
    Refuse,
}

/// A message in the chat.
#[derive(Clone, Debug)]
struct Message {
    /// Its number: an update's id, a second, a part of a time stamp.
    number: i64,
    user: String,
    place: String,
    text: String,
    thread: Option<String>,
    /// Whether rekindle sent it.
    own: bool,
}

#[derive(Debug)]
struct Inner {
    via: Via,
    messages: Vec<Message>,
    /// The number of the next message.
    next: i64,
    faults: VecDeque<(String, Fault)>,
    calls: Vec<String>,
    /// Everything is delivered again and again, newest first.
    repeats: bool,
}

#[derive(Debug)]
struct Shared {
    stopped: AtomicBool,
    inner: Mutex<Inner>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A fake chat server that listens until it is dropped.
#[derive(Debug)]
pub struct Chat {
    via: Via,
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Chat {
    /// The person whose replies count.
    pub fn user(via: Via) -> &'static str {
        match via {
            Via::Ntfy | Via::Telegram => "4711",
            Via::Slack => "U0123456789",
        }
    }

    /// The chat or channel; for ntfy the topic.
    pub fn place(via: Via) -> &'static str {
        match via {
            Via::Ntfy => "a-topic-that-is-hard-to-guess",
            Via::Telegram => "-100200",
            Via::Slack => "C0123456789",
        }
    }

    /// The token that calls must carry.
    pub fn token(via: Via) -> &'static str {
        match via {
            Via::Ntfy => "tk_testtesttesttesttesttest",
            Via::Telegram => "123456789:AAtesttesttesttesttesttesttesttest",
            Via::Slack => "xoxb-testtesttesttesttest",
        }
    }

    /// Listens on a free port of loopback.
    ///
    /// # Panics
    ///
    /// When no port is free.
    #[must_use]
    pub fn start(via: Via) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        // Slack and ntfy count in seconds since 1970; our own counter makes no test depend on the clock.
        let next = speak::first_number();
        let inner =
            Inner { via, messages: Vec::new(), next, faults: VecDeque::new(), calls: Vec::new(), repeats: false };
        let shared = Arc::new(Shared { stopped: AtomicBool::new(false), inner: Mutex::new(inner) });
        let theirs = Arc::clone(&shared);
        std::thread::spawn(move || accept(&listener, &theirs));
        Self { via, address, shared }
    }

    /// Its address, as the base of its API.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What rekindle has sent, oldest first.
    #[must_use]
    pub fn sent(&self) -> Vec<String> {
        self.shared.lock().messages.iter().filter(|message| message.own).map(|message| message.text.clone()).collect()
    }

    /// Every call so far: its method and path, without the token.
    #[must_use]
    pub fn calls(&self) -> Vec<String> {
        self.shared.lock().calls.clone()
    }

    /// The configured person writes something.
    pub fn say(&self, text: &str) {
        self.say_as(Self::user(self.via), Self::place(self.via), text, None);
    }

    /// A given user writes something in a given place.
    pub fn say_as(&self, user: &str, place: &str, text: &str, thread: Option<&str>) {
        let mut inner = self.shared.lock();
        let number = inner.next;
        inner.next += 1;
        inner.messages.push(Message {
            number,
            user: user.to_owned(),
            place: place.to_owned(),
            text: text.to_owned(),
            thread: thread.map(str::to_owned),
            own: false,
        });
    }

    /// The id of one of rekindle's own messages, for a reply in its thread.
    #[must_use]
    pub fn thread_of(&self, part: &str) -> Option<String> {
        let inner = self.shared.lock();
        let found = inner.messages.iter().find(|message| message.own && message.text.contains(part));
        found.map(|message| speak::time_stamp(message.number))
    }

    /// Makes the next call whose path contains `part` go wrong.
    pub fn fault(&self, part: &str, fault: Fault) {
        self.shared.lock().faults.push_back((part.to_owned(), fault));
    }

    /// Whether all faults have happened.
    #[must_use]
    pub fn faults_are_over(&self) -> bool {
        self.shared.lock().faults.is_empty()
    }

    /// From now on everything is delivered again with every call, newest first.
    pub fn repeat(&self) {
        self.shared.lock().repeats = true;
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        // The server waits for one more caller.
        let _ended = TcpStream::connect(self.address);
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopped.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            let _hung_up = serve(stream, &shared);
        });
    }
}

/// A request, as far as these servers parse one.
struct Asked {
    method: String,
    path: String,
    bearer: Option<String>,
    body: String,
}

fn serve(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let Some(asked) = read(&mut stream)? else { return Ok(()) };
    let fault = {
        let mut inner = shared.lock();
        let shown = format!("{} {}", asked.method, asked.path.replace(Chat::token(inner.via), "TOKEN"));
        inner.calls.push(shown);
        let found = inner.faults.iter().position(|(part, _)| asked.path.contains(part.as_str()));
        found.and_then(|index| inner.faults.remove(index)).map(|(_, fault)| fault)
    };
    match fault {
        Some(Fault::Drop) => return Ok(()),
        Some(Fault::Hang) => {
            let mut waited = Duration::ZERO;
            while waited < HANG && !shared.stopped.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK);
                waited += LOOK;
            }
            return Ok(());
        }
        Some(Fault::Wait(seconds)) => {
            let extra = format!("Retry-After: {seconds}\r\n");
            let body =
                format!("{{\"ok\":false,\"error\":\"ratelimited\",\"parameters\":{{\"retry_after\":{seconds}}}}}");
            return write(&mut stream, "429 Too Many Requests", &extra, &body, body.len());
        }
        Some(Fault::Fail) => return write(&mut stream, "500 Oops", "", "", 0),
        Some(Fault::Refuse) => return write(&mut stream, "401 Unauthorized", "", "{\"ok\":false}", 12),
        Some(Fault::Cut) | None => {}
    }
    let (status, body) = speak::answer(&mut shared.lock(), &asked);
    let kept = if fault == Some(Fault::Cut) { body.len() / 2 } else { body.len() };
    write(&mut stream, status, "", &body[..kept], body.len())
}

fn write(stream: &mut TcpStream, status: &str, extra: &str, body: &str, length: usize) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n{extra}Content-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.flush()
}

fn read(stream: &mut TcpStream) -> std::io::Result<Option<Asked>> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let header = |name: &str| {
                let lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
                lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned()).next()
            };
            let length: usize = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                let mut words = head.split(' ');
                let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
                let bearer = header("authorization").and_then(|value| Some(value.strip_prefix("Bearer ")?.to_owned()));
                let (method, path, body) = (method.to_owned(), path.to_owned(), body.to_owned());
                return Ok(Some(Asked { method, path, bearer, body }));
            }
        }
        let count = stream.read(&mut buffer)?;
        if count == 0 || bytes.len() > REQUEST_MAX_BYTES {
            return Ok(None);
        }
        bytes.extend_from_slice(&buffer[..count]);
    }
}
