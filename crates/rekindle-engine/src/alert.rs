//! Alerting a person: by a command, on the desktop, through a webhook. Owns the channels and their bounds; when a person is
//! alerted is decided in the core, and what `run` prints is left to the views.
//!
//! Nothing in here can harm a run: every channel runs beside the driver, with a bounded queue, bounded retries and bounded
//! time, and an alert that cannot be delivered is complained about once. Alerts are not kept for the next start: they would
//! be repeated again and again, and `rekindle status` shows what they were about.

mod desktop;
pub mod phone;
pub mod webhook;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rekindle_core::ids::{QuestionId, TaskId};
use rekindle_core::time::Time;

pub use desktop::Session;
pub use phone::{PausedFromPhone, Phone};

/// Alerts that may wait for one channel: nobody reads more at once.
const QUEUE: usize = 64;

/// Between two polls for replies from a phone: the public ntfy server allows one every five seconds.
pub const POLL_MS: u64 = 10_000;

/// How long a coordinator that ends waits for alerts that are still being sent.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Complaints that are kept until a view takes them; there are few channels.
const COMPLAINTS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A person has to do something: answer, or deal with a failure.
    NeedsYou,
    Finished,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::NeedsYou => "needs_you",
            Self::Finished => "finished",
        }
    }
}

/// Where the end of a run is announced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finished {
    Off,
    /// Where the person is: the bell and the desktop.
    #[default]
    Local,
    All,
}

impl Finished {
    /// The choices, as they are written in a configuration.
    pub const NAMES: [&str; 3] = ["off", "local", "all"];

    /// The choice with this name; the default for any other name.
    pub fn named(name: &str) -> Self {
        match name {
            "off" => Self::Off,
            "all" => Self::All,
            _ => Self::Local,
        }
    }
}

/// Something a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    pub kind: Kind,
    pub text: String,
    pub choices: Vec<String>,
    pub run: String,
    pub plan: String,
    /// The task, if it is about one.
    pub task: Option<TaskId>,
    /// The question, if phones are asked it too.
    pub question: Option<QuestionId>,
    /// What its agent printed last, errors first, if it failed.
    pub evidence: Vec<String>,
    pub time: Time,
}

#[derive(Clone, Debug)]
pub struct Channels {
    /// A command that gets the text as its last argument; empty means none.
    pub command: Vec<String>,
    /// A URL that gets the alert as JSON.
    pub webhook: Option<String>,
    /// The desktop, if there is one.
    pub desktop: bool,
    /// Phones that questions and alerts go to.
    pub phones: Vec<Phone>,
    /// Whether a person may pause, resume and ask for the status from a phone.
    pub control: bool,
    /// How often replies are polled for while any are expected.
    pub poll_ms: u64,
    /// Whether the run was paused from a phone.
    pub paused: PausedFromPhone,
    /// The terminal's bell, which is left to the views.
    pub bell: bool,
    /// Whether a person is alerted when one is needed.
    pub needs_you: bool,
    /// Where the end of a run is announced.
    pub finished: Finished,
    /// Where channels that do not work are complained about.
    pub complaints: Complaints,
}

impl Default for Channels {
    /// No channel, but every kind of alert that one would carry by default.
    fn default() -> Self {
        Self {
            command: Vec::new(),
            webhook: None,
            phones: Vec::new(),
            control: false,
            poll_ms: POLL_MS,
            paused: PausedFromPhone::default(),
            desktop: false,
            bell: false,
            needs_you: true,
            finished: Finished::default(),
            complaints: Complaints::default(),
        }
    }
}

impl Channels {
    /// Variables that hold secrets of phones: agents do not get them.
    pub fn phone_variables(&self) -> Vec<String> {
        self.phones.iter().flat_map(Phone::variables).map(str::to_owned).collect()
    }

    /// Whether an alert is for the bell and the desktop.
    pub fn tells_here(&self, kind: Kind) -> bool {
        match kind {
            Kind::NeedsYou => self.needs_you,
            Kind::Finished => self.finished != Finished::Off,
        }
    }

    /// Whether it is for the command and the webhook, which may reach others.
    pub fn tells_afar(&self, kind: Kind) -> bool {
        match kind {
            Kind::NeedsYou => self.needs_you,
            Kind::Finished => self.finished == Finished::All,
        }
    }
}

/// What does not work, each reported once; kept until a view shows it.
#[derive(Clone, Debug, Default)]
pub struct Complaints(Arc<Mutex<Said>>);

#[derive(Debug, Default)]
struct Said {
    channels: BTreeSet<&'static str>,
    waiting: Vec<String>,
}

impl Complaints {
    /// Complains about a channel, unless that was done before.
    pub fn add(&self, channel: &'static str, why: &str) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.channels.insert(channel) && said.waiting.len() < COMPLAINTS {
            let text = format!("alerts cannot be sent by {channel}: {why}; this is reported once");
            said.waiting.push(text);
        }
    }

    /// Complaints that have not been shown yet.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).waiting)
    }
}

/// The channels in use. When dropped, it gives alerts that are still being sent a moment to finish.
#[derive(Debug)]
pub struct Alerts {
    queues: Vec<Queue>,
    complaints: Complaints,
}

#[derive(Debug)]
struct Queue {
    channel: &'static str,
    alerts: SyncSender<Alert>,
    /// Carries nothing: dropping it ends all waits.
    _end: SyncSender<()>,
    /// Carries nothing: it closes when the thread ends.
    through: Receiver<()>,
}

impl Alerts {
    /// Starts the threads that the channels need. A channel that cannot be started is complained about.
    pub fn start(channels: &Channels, session: &Session) -> Self {
        let complaints = channels.complaints.clone();
        let mut queues = Vec::new();
        let desktop = if channels.desktop { desktop::program(session) } else { None };
        if !channels.command.is_empty() || desktop.is_some() {
            let (wanted, complaints) = (channels.clone(), complaints.clone());
            queues.extend(queue("programs", move |alert, _| {
                if !wanted.command.is_empty() && wanted.tells_afar(alert.kind) {
                    run("command", told_by(&wanted.command, alert), &complaints);
                }
                if let Some(desktop) = desktop.as_ref().filter(|_| wanted.tells_here(alert.kind)) {
                    run("desktop", desktop.command(alert), &complaints);
                }
            }));
        }
        match channels.webhook.as_deref().map(webhook::Webhook::new) {
            Some(Ok(webhook)) => {
                let (wanted, complaints) = (channels.clone(), complaints.clone());
                queues.extend(queue("webhook", move |alert, end| {
                    if !wanted.tells_afar(alert.kind) {
                        return;
                    }
                    if let Err(why) = webhook.tell(alert, &mut |wait| wait_for(end, wait)) {
                        complaints.add("webhook", &why);
                    }
                }));
            }
            Some(Err(why)) => complaints.add("webhook", &why),
            None => {}
        }
        for phone in &channels.phones {
            let name = phone.via().name();
            match phone::Teller::new(phone) {
                Ok(teller) => {
                    let (wanted, complaints) = (channels.clone(), complaints.clone());
                    queues.extend(queue(name, move |alert, end| {
                        if !wanted.tells_afar(alert.kind) {
                            return;
                        }
                        if let Err(why) = teller.tell(alert, &mut |wait| _ = wait_for(end, wait)) {
                            complaints.add(name, &why);
                        }
                    }));
                }
                Err(why) => complaints.add(name, &why),
            }
        }
        Self { queues, complaints }
    }

    /// Alerts a person through every channel, without blocking the caller.
    pub fn tell(&self, alert: &Alert) {
        for queue in &self.queues {
            if queue.alerts.try_send(alert.clone()).is_err() {
                self.complaints.add(queue.channel, "too many at once");
            }
        }
    }
}

impl Drop for Alerts {
    fn drop(&mut self) {
        let through: Vec<Receiver<()>> = self.queues.drain(..).map(|queue| queue.through).collect();
        for through in through {
            let _in_time = through.recv_timeout(LAST_WORDS);
        }
    }
}

/// A thread that takes alerts one by one. `None` if no thread can be started: then nobody is alerted, and nothing else
/// changes.
fn queue(channel: &'static str, mut tell: impl FnMut(&Alert, &Receiver<()>) + Send + 'static) -> Option<Queue> {
    let (alerts, waiting) = sync_channel::<Alert>(QUEUE);
    let (at_work, through) = sync_channel::<()>(1);
    let (end, ended) = sync_channel::<()>(1);
    let work = move || {
        let _until_the_end = at_work;
        while let Ok(alert) = waiting.recv() {
            tell(&alert, &ended);
        }
    };
    std::thread::Builder::new().name(format!("alert-{channel}")).spawn(work).ok()?;
    Some(Queue { channel, alerts, _end: end, through })
}

/// Waits before a retry, but not beyond the end: then the last retries are made at once. Always says to continue.
fn wait_for(end: &Receiver<()>, wait: Duration) -> bool {
    let _nothing_is_sent = end.recv_timeout(wait);
    true
}

/// The configured command for an alert.
fn told_by(words: &[String], alert: &Alert) -> Command {
    let (program, arguments) = words.split_first().map_or(("true", &[][..]), |(first, rest)| (first.as_str(), rest));
    let mut command = Command::new(program);
    command.args(arguments).arg(&alert.text);
    command.env("REKINDLE_CHOICES", alert.choices.join("\n"));
    command.env("REKINDLE_RUN", &alert.run).env("REKINDLE_PLAN", &alert.plan);
    command.env("REKINDLE_ALERT_KIND", alert.kind.name());
    command.env("REKINDLE_EVIDENCE", alert.evidence.join("\n"));
    if let Some(task) = &alert.task {
        command.env("REKINDLE_ALERT_TASK", task.as_str());
    }
    command
}

/// Starts a program that alerts a person; a separate thread waits for its end.
fn run(channel: &'static str, mut command: Command, complaints: &Complaints) {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let program = command.get_program().to_string_lossy().into_owned();
            return complaints.add(channel, &format!("{program} does not start: {error}"));
        }
    };
    let complaints = complaints.clone();
    let wait = move |mut child: Child| {
        if let Ok(status) = child.wait()
            && !status.success()
        {
            complaints.add(channel, &format!("its program ended with {status}"));
        }
    };
    // Without a thread nothing waits for its end, but the person is still alerted.
    let _not_waited_for = std::thread::Builder::new().name("alert-wait".to_owned()).spawn(move || wait(child));
}
