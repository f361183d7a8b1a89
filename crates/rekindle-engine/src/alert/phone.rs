//! Questions that go to a person's phone, and the replies: ntfy, Telegram and Slack. Owns which channels there are, where
//! their secrets come from, and the threads that talk to them.
//!
//! Only outgoing calls, never a listening port. A reply counts by its one-time code and its sender; whether it changes
//! anything is decided like any other order, and durable, before the channel's cursor moves. Each channel has its own
//! thread, so nothing in here can delay a run.

mod http;
mod memory;
mod ntfy;
mod secret;
mod slack;
mod talk;
mod telegram;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rekindle_core::ids::{AttemptId, QuestionId};
use rekindle_core::phone::{PhoneMessage, PhoneOrder, Via, unheard_text};
use rekindle_core::text::{one_line, sanitize, truncate_bytes};
use rekindle_core::time::Time;

use super::{Alert, Channels, LAST_WORDS};
use crate::token::Tokens;

pub use secret::{Secret, Source};

use http::Trouble;
use talk::Talk;

/// Largest message that is sent: Telegram refuses more than 4096 characters, ntfy turns more than 4096 bytes into a file.
const MESSAGE_MAX_BYTES: usize = 4_000;

/// Largest line of an alert.
const LINE_MAX_BYTES: usize = 300;

/// Lines of evidence in an alert: the first ones say what went wrong.
const EVIDENCE_LINES: usize = 6;

/// How often sending an alert is attempted at most.
const TRIES: usize = 3;

/// A channel to a person's phone, as it is configured.
#[derive(Clone, Debug)]
pub enum Phone {
    Ntfy {
        /// The server; `None` means the public one.
        server: Option<String>,
        /// Where messages go. Anybody who knows it can read and write there, so it is a secret.
        topic: Source,
        /// Where replies arrive; `None` means the same topic.
        reply_topic: Option<Source>,
        token: Option<Source>,
    },
    Telegram {
        api: Option<String>,
        token: Source,
        chat: i64,
        /// Whose replies count.
        user: i64,
    },
    Slack {
        api: Option<String>,
        token: Source,
        channel: String,
        /// Whose replies count.
        user: String,
    },
}

impl Phone {
    pub fn via(&self) -> Via {
        match self {
            Self::Ntfy { .. } => Via::Ntfy,
            Self::Telegram { .. } => Via::Telegram,
            Self::Slack { .. } => Via::Slack,
        }
    }

    fn sources(&self) -> Vec<&Source> {
        match self {
            Self::Ntfy { topic, reply_topic, token, .. } => {
                [Some(topic), reply_topic.as_ref(), token.as_ref()].into_iter().flatten().collect()
            }
            Self::Telegram { token, .. } | Self::Slack { token, .. } => vec![token],
        }
    }

    /// Its secrets, as far as they can be read, for redacting them from texts.
    pub fn secrets(&self) -> Vec<Secret> {
        self.sources().into_iter().filter_map(|source| source.read().ok()).collect()
    }

    /// Variables that hold its secrets: agents do not get them.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.sources().into_iter().filter_map(Source::variable)
    }

    /// Whether its secrets can be read and are well-formed; nothing is sent.
    pub fn check(&self) -> Result<(), String> {
        self.open().map(drop)
    }

    /// Opens the channel. The error says what is missing, without any secret.
    fn open(&self) -> Result<Box<dyn Chat>, String> {
        Ok(match self {
            Self::Ntfy { server, topic, reply_topic, token } => {
                let token = token.as_ref().map(Source::read).transpose()?;
                let reply_topic = reply_topic.as_ref().map(Source::read).transpose()?;
                Box::new(ntfy::Ntfy::new(server.as_deref(), topic.read()?, reply_topic, token)?)
            }
            Self::Telegram { api, token, chat, user } => {
                Box::new(telegram::Telegram::new(api.as_deref(), &token.read()?, *chat, *user)?)
            }
            Self::Slack { api, token, channel, user } => {
                Box::new(slack::Slack::new(api.as_deref(), token.read()?, channel, user)?)
            }
        })
    }
}

/// Tries a channel in both directions: sends a message and polls for replies. Replies that the poll finds are left where
/// they are.
pub fn probe(phone: &Phone) -> Result<(), String> {
    let chat = phone.open()?;
    let said = |trouble: Trouble| trouble.why().to_owned();
    chat.send("rekindle: this is a test; replies work too").map_err(said)?;
    chat.peek().map_err(said)
}

/// A message that arrived.
#[derive(Clone, Debug)]
struct Heard {
    /// The channel's own message id.
    id: String,
    /// Which cursor it moves, and to where.
    source: String,
    cursor: String,
    /// Whether the configured person wrote it.
    right_sender: bool,
    /// Its text; `None` if no person wrote it.
    text: Option<String>,
}

/// How to talk to a channel.
trait Chat: Send {
    /// The cursor from which polling starts, before anything was ever sent.
    fn begin(&self) -> Result<(String, String), Trouble>;
    /// Sends a text. Returns the id under which replies to it are found, if the channel has one.
    fn send(&self, text: &str) -> Result<Option<String>, Trouble>;
    /// What arrived since the cursors, oldest first; `threads` are the ids of messages that may have been replied to.
    fn poll(&self, cursor: &dyn Fn(&str) -> Option<String>, threads: &[String]) -> Result<Vec<Heard>, Trouble>;
    /// Whether replies can be read.
    fn peek(&self) -> Result<(), Trouble>;
}

/// A question that nobody has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenQuestion {
    pub id: QuestionId,
    pub attempt: AttemptId,
    pub asked_at: Time,
    pub task: String,
    pub agent: String,
    pub text: String,
    pub options: Vec<String>,
    pub context: String,
}

/// What a run asks a person at the moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asking {
    pub plan: String,
    pub open: Vec<OpenQuestion>,
}

/// The outcome of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Taken,
    /// Nothing changed: the order had already taken effect.
    Already,
    Refused(String),
}

/// Carries out a person's orders.
pub trait Line: Send + Sync {
    /// Gives an order and waits until it is durable. `None` means that the outcome is unknown: the same message is given
    /// again later.
    fn order(&self, from: PhoneMessage, order: PhoneOrder) -> Option<Said>;
    /// The state of the run, in one line.
    fn status(&self) -> Option<String>;
}

/// The channels that questions go to, each with its own thread. When dropped, they get a moment to send what is left.
pub struct Phones {
    asking: Arc<Mutex<Option<Asking>>>,
    threads: Vec<Thread>,
}

struct Thread {
    wake: SyncSender<()>,
    /// Carries nothing: it closes when the thread ends.
    through: Receiver<()>,
}

/// What all channels of a run share.
pub struct Shared {
    /// The state directory.
    pub dir: PathBuf,
    pub codes: Tokens,
    pub line: Arc<dyn Line>,
}

impl Phones {
    /// Starts a thread for every channel. One that cannot be started is complained about.
    pub fn start(channels: &Channels, shared: &Shared) -> Self {
        let asking = Arc::new(Mutex::new(None));
        let mut threads = Vec::new();
        for phone in channels.phones.iter().filter(|_| channels.needs_you || channels.control) {
            let name = phone.via().name();
            match phone.open() {
                Ok(chat) => {
                    let talk = Talk::new(phone.via(), chat, channels, shared);
                    threads.extend(thread(name, talk, Arc::clone(&asking)));
                }
                Err(why) => channels.complaints.add(name, &why),
            }
        }
        Self { asking, threads }
    }

    /// Whether there are no channels.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Sets what the run asks from now on: new questions are sent, and replies are polled for as long as there are any
    /// questions.
    pub fn ask(&self, asking: Asking) {
        *self.asking.lock().unwrap_or_else(PoisonError::into_inner) = Some(asking);
        for thread in &self.threads {
            // A thread that is already awake checks anyway.
            let _awake = thread.wake.try_send(());
        }
    }
}

impl Drop for Phones {
    fn drop(&mut self) {
        let through: Vec<Receiver<()>> = self.threads.drain(..).map(|thread| thread.through).collect();
        for through in through {
            let _in_time = through.recv_timeout(LAST_WORDS);
        }
    }
}

/// A thread for one channel. `None` if no thread can be started: then nobody is asked there, and nothing else changes.
fn thread(name: &str, mut talk: Talk, asking: Arc<Mutex<Option<Asking>>>) -> Option<Thread> {
    let (wake, woken) = sync_channel::<()>(1);
    let (working, through) = sync_channel::<()>(1);
    let work = move || {
        let _until_the_end = working;
        let now = || asking.lock().unwrap_or_else(PoisonError::into_inner).clone();
        loop {
            let wait = now().map_or(Some(talk::IDLE), |asking| talk.turn(&asking)).unwrap_or(talk::IDLE);
            match woken.recv_timeout(wait) {
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if let Some(asking) = now() {
            talk.last_words(&asking);
        }
    };
    std::thread::Builder::new().name(format!("phone-{name}")).spawn(work).ok()?;
    Some(Thread { wake, through })
}

/// Whether the run was paused from a phone, for code that waits for it to be resumed from there.
#[derive(Clone, Debug, Default)]
pub struct PausedFromPhone {
    so: Arc<AtomicBool>,
    unawaited: Arc<AtomicBool>,
}

impl PausedFromPhone {
    pub fn is_so(&self) -> bool {
        self.so.load(Ordering::Relaxed)
    }

    pub fn set(&self, so: bool) {
        self.so.store(so, Ordering::Relaxed);
    }

    /// The process ends with the pause: nobody is left to hear a `resume`.
    pub fn nobody_waits(&self) {
        self.unawaited.store(true, Ordering::Relaxed);
    }

    pub fn is_awaited(&self) -> bool {
        !self.unawaited.load(Ordering::Relaxed)
    }
}

/// Tells every phone that may control the run that nobody hears it from now on, and what to type instead. Whoever calls this ends
/// next, so a channel gets a moment and no second try.
pub fn tell_nobody_hears(channels: &Channels, plan: &str) {
    let mut threads = Vec::new();
    for phone in channels.phones.iter().filter(|_| channels.control) {
        let (Ok(chat), text) = (phone.open(), unheard_text(plan)) else { continue };
        let (working, through) = sync_channel::<()>(1);
        let work = move || {
            let _until_the_end = working;
            let _nobody_is_left_to_tell = chat.send(&text);
        };
        let started = std::thread::Builder::new().name(format!("phone-{}", phone.via().name())).spawn(work);
        threads.extend(started.ok().map(|_| through));
    }
    for through in threads {
        let _in_time = through.recv_timeout(LAST_WORDS);
    }
}

/// A channel that alerts are sent through, without replies.
pub(super) struct Teller {
    chat: Box<dyn Chat>,
}

impl Teller {
    pub(super) fn new(phone: &Phone) -> Result<Self, String> {
        Ok(Self { chat: phone.open()? })
    }

    /// Sends an alert. `wait` waits before a retry. Questions are sent with their codes by `Phones`.
    pub(super) fn tell(&self, alert: &Alert, wait: &mut dyn FnMut(Duration)) -> Result<(), String> {
        if alert.question.is_some() {
            return Ok(());
        }
        let text = alert_text(alert);
        let mut tries = 1;
        loop {
            match self.chat.send(&text) {
                Ok(_) => return Ok(()),
                Err(trouble) if trouble.is_final() || tries >= TRIES => return Err(trouble.why().to_owned()),
                Err(trouble) => wait(trouble.wait(tries)),
            }
            tries += 1;
        }
    }
}

fn alert_text(alert: &Alert) -> String {
    let mut lines = vec![format!("rekindle, {}: {}", alert.plan, sanitize(&alert.text))];
    lines.extend(alert.evidence.iter().take(EVIDENCE_LINES).map(|line| one_line(line, LINE_MAX_BYTES)));
    lines.extend(alert.choices.iter().map(|choice| one_line(choice, LINE_MAX_BYTES)));
    truncate_bytes(&lines.join("\n"), MESSAGE_MAX_BYTES).to_owned()
}

/// The directory of the channels' saved state.
fn memory_dir(state_dir: &Path) -> PathBuf {
    state_dir.join("phone")
}
