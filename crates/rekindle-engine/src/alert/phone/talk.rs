//! One channel's conversation: what is asked, which replies are polled for, what each of them means and how it is answered.
//!
//! The order of durability is: the order's own event first, then the channel's cursor, then the answer to the person.
//! Wherever this is cut off, a reply counts once, and one that is delivered again is found to be done.

use std::sync::Arc;
use std::time::Duration;

use rekindle_core::phone::{self, Code, PhoneMessage, PhoneOrder, Reply, Via};
use rekindle_core::state::meant;

use super::http::Trouble;
use super::memory::{Asked, Memory, WRONG_MAX};
use super::{Asking, Chat, Heard, Line, OpenQuestion, PausedFromPhone, Said, Shared};
use crate::alert::{Channels, Complaints};
use crate::clock;
use crate::token::Tokens;

/// How long a thread with nothing to do sleeps, unless it is woken.
pub(super) const IDLE: Duration = Duration::from_secs(60);

/// Refusals that are sent in a row; after that one a minute. Flooding a channel must not make it answer.
const REFUSALS: u32 = 6;

/// How long it takes until another refusal may be sent.
const REFUSAL_EVERY_MS: u64 = 60_000;

/// Failures in a row that are tolerated: connections break.
const FAILURES_TOLERATED: usize = 3;

pub(super) struct Talk {
    via: Via,
    chat: Box<dyn Chat>,
    memory: Memory,
    codes: Tokens,
    line: Arc<dyn Line>,
    asks: bool,
    control: bool,
    every_ms: u64,
    complaints: Complaints,
    paused: PausedFromPhone,
    failures: usize,
    /// No call before this.
    quiet_until: u64,
    /// When replies are polled for next.
    poll_at: u64,
    refusals_left: u32,
    refusal_at: u64,
}

/// The outcome of a message.
enum Done {
    /// It has been handled, and this is the answer.
    Told(String),
    /// It has been handled, and this is the answer unless there were too many refusals.
    Refused(String),
    Ignored,
    /// Its outcome is unknown: it is handled again later.
    NotNow,
}

impl Talk {
    pub(super) fn new(via: Via, chat: Box<dyn Chat>, channels: &Channels, shared: &Shared) -> Self {
        Self {
            via,
            chat,
            memory: Memory::load(&shared.dir, via, shared.codes.run()),
            codes: shared.codes.clone(),
            line: Arc::clone(&shared.line),
            asks: channels.needs_you,
            control: channels.control,
            every_ms: channels.poll_ms,
            complaints: channels.complaints.clone(),
            paused: channels.paused.clone(),
            failures: 0,
            quiet_until: 0,
            poll_at: 0,
            refusals_left: REFUSALS,
            refusal_at: 0,
        }
    }

    /// Sends what is new, polls for replies if any are expected, and returns when to run again; `None` means when it is
    /// woken.
    pub(super) fn turn(&mut self, asking: &Asking) -> Option<Duration> {
        let now = clock::boottime_ms();
        if now >= self.quiet_until
            && let Err(trouble) = self.speak(asking).and_then(|()| self.listen(asking))
        {
            self.failed(&trouble);
        }
        let now = clock::boottime_ms();
        let next = if self.quiet_until > now { self.quiet_until } else { self.poll_at };
        self.listens(asking).then(|| Duration::from_millis(next.saturating_sub(now)))
    }

    /// The coordinator is leaving: questions that have not been sent are sent now.
    pub(super) fn last_words(&mut self, asking: &Asking) {
        if clock::boottime_ms() >= self.quiet_until {
            let _nobody_is_told = self.speak(asking);
        }
    }

    /// Sends a text. A successful call resets the count of failures in a row.
    fn send(&mut self, text: &str) -> Result<Option<String>, Trouble> {
        let sent = self.chat.send(text)?;
        self.failures = 0;
        Ok(sent)
    }

    fn failed(&mut self, trouble: &Trouble) {
        self.failures += 1;
        let wait = u64::try_from(trouble.wait(self.failures).as_millis()).unwrap_or(u64::MAX);
        self.quiet_until = clock::boottime_ms().saturating_add(wait);
        if trouble.is_final() || self.failures > FAILURES_TOLERATED {
            self.complaints.add(self.via.name(), trouble.why());
        }
    }

    /// Whether replies are expected. Without an open question, and without control, no call is made.
    fn listens(&self, asking: &Asking) -> bool {
        self.control || (self.asks && !asking.open.is_empty())
    }

    fn speak(&mut self, asking: &Asking) -> Result<(), Trouble> {
        if !self.memory.has_begun() && self.listens(asking) {
            let begin = self.chat.begin()?;
            self.memory.begin(begin);
            self.memory.save();
        }
        if self.control && !self.memory.announced {
            self.send(&phone::control_text(&asking.plan, &self.codes.control_code()))?;
            self.memory.announced = true;
            self.memory.save();
        }
        let asks = self.asks;
        for question in asking.open.iter().filter(|_| asks) {
            if !self.memory.asked.iter().any(|asked| asked.is(question)) {
                let thread = self.send(&self.text(asking, question))?;
                self.memory.asked(question, thread);
                self.memory.save();
            }
        }
        self.close(asking)
    }

    /// Questions that were answered elsewhere need no reply any more.
    fn close(&mut self, asking: &Asking) -> Result<(), Trouble> {
        let is_open = |asked: &Asked| asking.open.iter().any(|question| asked.is(question));
        let closed: Vec<usize> = (0..self.memory.asked.len())
            .filter(|index| self.memory.asked[*index].open && !is_open(&self.memory.asked[*index]))
            .collect();
        for index in closed {
            let asked = &mut self.memory.asked[index];
            asked.open = false;
            let (id, here) = (asked.id, asked.answered_here);
            self.memory.save();
            if !here {
                self.send(&format!("rekindle: question {id} is answered; it needs no reply any more"))?;
            }
        }
        Ok(())
    }

    fn text(&self, asking: &Asking, question: &OpenQuestion) -> String {
        let asked = phone::Asked {
            id: question.id,
            plan: &asking.plan,
            task: &question.task,
            agent: &question.agent,
            text: &question.text,
            options: &question.options,
            context: &question.context,
        };
        let code = self.codes.question_code(question.id, question.attempt, question.asked_at);
        phone::question_text(&asked, &code)
    }

    fn listen(&mut self, asking: &Asking) -> Result<(), Trouble> {
        let now = clock::boottime_ms();
        if !self.listens(asking) || now < self.poll_at {
            return Ok(());
        }
        self.poll_at = now.saturating_add(self.every_ms);
        let memory = &self.memory;
        let heard = self.chat.poll(&|source| memory.cursor(source), &memory.threads())?;
        self.failures = 0;
        let mut unsaved = false;
        for heard in heard {
            if self.memory.has_seen(&heard) {
                continue;
            }
            let done = self.hear(&heard, asking);
            if matches!(done, Done::NotNow) {
                break;
            }
            self.memory.note(&heard);
            unsaved = matches!(done, Done::Ignored);
            if !unsaved {
                self.memory.save();
            }
            self.reply(done)?;
        }
        if unsaved {
            self.memory.save();
        }
        Ok(())
    }

    fn reply(&mut self, done: Done) -> Result<(), Trouble> {
        match done {
            Done::Told(text) => self.send(&format!("rekindle: {text}")).map(|_| ()),
            Done::Refused(text) if self.may_refuse() => self.send(&format!("rekindle: {text}")).map(|_| ()),
            Done::Refused(_) | Done::Ignored | Done::NotNow => Ok(()),
        }
    }

    /// Whether another refusal may be sent.
    fn may_refuse(&mut self) -> bool {
        let now = clock::boottime_ms();
        let minutes = now.saturating_sub(self.refusal_at) / REFUSAL_EVERY_MS;
        if minutes > 0 {
            self.refusals_left = REFUSALS.min(self.refusals_left.saturating_add(u32::try_from(minutes).unwrap_or(1)));
            self.refusal_at = now;
        }
        let may = self.refusals_left > 0;
        self.refusals_left = self.refusals_left.saturating_sub(1);
        may
    }

    fn hear(&mut self, heard: &Heard, asking: &Asking) -> Done {
        let Some(text) = &heard.text else { return Done::Ignored };
        let control = self.codes.control_code();
        // Without a code it is chat, and with another run's mark it belongs to that run.
        let Some(reply) = phone::read(text).filter(|reply| reply.code.mark == control.mark) else {
            return Done::Ignored;
        };
        if !heard.right_sender {
            return Done::Refused("a reply was refused: it did not come from the person who is configured".to_owned());
        }
        if self.control && self.memory.wrong < WRONG_MAX && reply.code.fits(&control) {
            return self.controlled(heard, &reply);
        }
        let code = |asked: &Asked| self.codes.question_code(asked.id, asked.attempt, asked.asked_at);
        // All are compared, so that the timing does not reveal which one was nearly right.
        let fitting = self.memory.asked.iter().map(|asked| reply.code.fits(&code(asked)));
        match fitting.collect::<Vec<bool>>().iter().rposition(|fits| *fits) {
            Some(index) => self.answered(heard, &reply, index, asking),
            None => self.wrong(&reply.code),
        }
    }

    fn answered(&mut self, heard: &Heard, reply: &Reply, index: usize, asking: &Asking) -> Done {
        let (id, locked) = (self.memory.asked[index].id, self.memory.asked[index].is_locked());
        if locked {
            let hint = format!("rekindle answer {id} TEXT");
            return Done::Refused(format!(
                "question {id} takes no more replies from here after {WRONG_MAX} wrong codes; at the computer: {hint}"
            ));
        }
        if reply.words.is_empty() {
            return Done::Refused(format!("the answer to question {id} is empty: write it behind the code"));
        }
        let order = PhoneOrder::Answer { id, text: reply.words.clone() };
        match self.line.order(self.from(heard), order) {
            Some(Said::Taken | Said::Already) => {
                self.memory.asked[index].answered_here = true;
                let options =
                    asking.open.iter().find(|question| question.id == id).map(|question| &question.options[..]);
                Done::Told(format!("question {id} is answered: {}", meant(options.unwrap_or(&[]), &reply.words)))
            }
            Some(Said::Refused(reason)) => Done::Refused(format!("nothing was changed: {reason}")),
            None => Done::NotNow,
        }
    }

    /// A code that fits nothing counts against every question that could have been meant.
    fn wrong(&mut self, code: &Code) -> Done {
        self.memory.wrong = self.memory.wrong.saturating_add(1);
        let open = self.memory.asked.iter_mut().filter(|asked| asked.open);
        let counts = open.map(|asked| {
            asked.wrong = asked.wrong.saturating_add(1);
            asked.wrong
        });
        let most = counts.max().unwrap_or(self.memory.wrong);
        let then = match most >= WRONG_MAX {
            true => "no more replies are taken from here until there is another question".to_owned(),
            false => format!("{most} of {WRONG_MAX} that are allowed"),
        };
        Done::Refused(format!("the code {code} fits no question; wrong codes: {then}"))
    }

    fn controlled(&mut self, heard: &Heard, reply: &Reply) -> Done {
        let code = &reply.code;
        let order = match reply.words.to_ascii_lowercase().as_str() {
            "status" => return self.line.status().map_or(Done::NotNow, Done::Told),
            "pause" => PhoneOrder::Pause,
            "resume" => PhoneOrder::Resume,
            _ => return Done::Refused(format!("write {code} and one of these: status, pause, resume")),
        };
        let pauses = order == PhoneOrder::Pause;
        match self.line.order(self.from(heard), order) {
            Some(Said::Taken) if pauses => {
                self.paused.set(true);
                Done::Told(match self.paused.is_awaited() {
                    true => format!("the run is paused; to continue it, write: {code} resume"),
                    false => "the run is paused; to continue it, at the computer: rekindle resume".to_owned(),
                })
            }
            Some(Said::Taken) => Done::Told("the run is in progress".to_owned()),
            // Already paused, or this message was handled before: either way there is nothing to do.
            Some(Said::Already) => Done::Told("that was done already; nothing was changed".to_owned()),
            Some(Said::Refused(reason)) => Done::Refused(format!("nothing was changed: {reason}")),
            None => Done::NotNow,
        }
    }

    fn from(&self, heard: &Heard) -> PhoneMessage {
        PhoneMessage { via: self.via, message: heard.id.clone() }
    }
}
