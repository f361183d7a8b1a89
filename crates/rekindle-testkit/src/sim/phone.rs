//! The simulated phone: replies to questions, pauses and resumes that a channel delivers once, again, late or after a crash,
//! and replies that nobody sent. It has its own random numbers, so that stories without a phone stay as they are.

use std::collections::BTreeSet;

use rekindle_core::event::PersonEvent;
use rekindle_core::ids::QuestionId;
use rekindle_core::input::Order;
use rekindle_core::phone::{self, Code, PhoneMessage, PhoneOrder, Via};
use rekindle_core::state::{Question, RunPhase};

use super::checkers::Invariant;
use super::plant::Plant;
use super::rng::Rng;
use super::story::SECOND;
use super::world::{Happening, Sim};

/// Mixed with the story's seed for the phone's random numbers.
const OWN: u64 = 0x0f0e_a110_7e1e_0001;

/// Messages that a channel may still deliver again.
const KEPT: usize = 32;

/// Marks a message that a planted bug has given another id.
const RENAMED: char = '\'';

/// What a stranger's replies begin with; nobody who is asked writes so.
const FORGED: &str = "forged";

/// The phone, and the channel behind it.
#[derive(Debug)]
pub struct Phone {
    rng: Rng,
    /// Whether this story has a phone.
    used: bool,
    made: u32,
    /// What the channel may deliver again, as it was written.
    delivered: Vec<(PhoneMessage, String)>,
    /// Answers that the person really gave.
    said: BTreeSet<(QuestionId, String)>,
    /// Messages whose orders the log has.
    taken: BTreeSet<String>,
}

impl Phone {
    /// The phone of a seed, if it has one.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ OWN);
        let used = rng.chance(40);
        let (delivered, said, taken) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        Self { rng, used, made: 0, delivered, said, taken }
    }

    /// Another run has other codes: what was sent to the last run does not apply to it.
    pub fn another_run(&mut self) {
        self.delivered.clear();
        self.said.clear();
    }
}

impl Sim {
    /// Something is written on the phone or delivered again, and something else later, until the faults are over: those of the run,
    /// and those of publishing it.
    pub fn phone_rings(&mut self) {
        if !self.phone.used || self.quiet && (self.lander.over || self.is_calm()) {
            return;
        }
        let next = self.phone.rng.between(2 * SECOND, 20 * SECOND);
        self.queue.after_ms(next, Happening::PhoneRings);
        if !self.phone.delivered.is_empty() && self.phone.rng.chance(45) {
            let index = self.phone.rng.index(self.phone.delivered.len());
            let (mut from, text) = self.phone.delivered[index].clone();
            self.count("reply delivered again");
            if self.plant == Some(Plant::ReplyRenamed) {
                from.message.push(RENAMED);
            }
            return self.heard(from, &text);
        }
        let Some(text) = self.write_reply() else { return };
        self.phone.made += 1;
        let via = self.phone.rng.pick(&Via::ALL).copied().unwrap_or(Via::Ntfy);
        let from = PhoneMessage { via, message: format!("m{}", self.phone.made) };
        self.phone.delivered.push((from.clone(), text.clone()));
        let excess = self.phone.delivered.len().saturating_sub(KEPT);
        self.phone.delivered.drain(..excess);
        self.heard(from, &text);
    }

    /// What somebody writes next: the person, in time or not, or somebody who has no code.
    fn write_reply(&mut self) -> Option<String> {
        let (open, answered): (Vec<_>, Vec<_>) =
            self.checkers.replayed.questions.iter().partition(|(_, question)| question.answer.is_none());
        let ids = |of: Vec<(&QuestionId, &Question)>| of.into_iter().map(|(id, _)| *id).collect::<Vec<_>>();
        let (open, answered) = (ids(open), ids(answered));
        let control = self.tokens.control_code();
        let made = self.phone.made;
        match self.phone.rng.weighted(&[50, 12, 3, 15, 12, 8]) {
            0 => {
                let id = self.phone.rng.pick(&open).copied().filter(|_| !self.setting.mute)?;
                self.say_on_phone(id, format!("by phone, {made}"))
            }
            1 => None,
            2 => Some(format!("{control} pause")),
            3 => Some(format!("{control} resume")),
            4 => {
                let id = self.phone.rng.pick(&answered).copied()?;
                self.count("late reply");
                self.say_on_phone(id, format!("too late, {made}"))
            }
            _ => {
                // The mark of a run is no secret; the rest is guessed.
                self.count("forged reply");
                let mark = control.mark;
                let guessed = Code::of(&[], &made.to_le_bytes().repeat(4)).secret;
                Some(format!("{mark}-{guessed} {FORGED} {made}"))
            }
        }
    }

    /// The person answers a question with its code.
    fn say_on_phone(&mut self, id: QuestionId, words: String) -> Option<String> {
        let code = self.code_of(id)?;
        let text = format!("{code}: {words}");
        self.phone.said.insert((id, words));
        Some(text)
    }

    fn code_of(&self, id: QuestionId) -> Option<Code> {
        let question = self.checkers.replayed.questions.get(&id)?;
        Some(self.tokens.question_code(id, question.attempt, question.asked_at))
    }

    /// A message reaches the channel. Without a coordinator nobody listens; it may come again.
    fn heard(&mut self, from: PhoneMessage, text: &str) {
        let finished = |phase| matches!(phase, RunPhase::Finished(_));
        if self.checkers.replayed.run.as_ref().is_some_and(|run| finished(run.phase)) {
            self.count("reply after the end");
        }
        if !self.coordinator.up {
            return;
        }
        if let Some(order) = self.meant_by(text) {
            self.order_by_call(Order::FromPhone { from, order });
        }
    }

    /// What a text orders: nothing where its code fits nothing, unless a bug is planted.
    fn meant_by(&self, text: &str) -> Option<PhoneOrder> {
        let reply = phone::read(text)?;
        if reply.code.fits(&self.tokens.control_code()) {
            return match reply.words.as_str() {
                "pause" => Some(PhoneOrder::Pause),
                "resume" => Some(PhoneOrder::Resume),
                _ => None,
            };
        }
        let questions = &self.checkers.replayed.questions;
        let newest_open = questions.iter().rev().find(|(_, question)| question.answer.is_none()).map(|(id, _)| *id);
        let mut fitting = questions.keys().copied().filter(|id| self.code_of(*id).is_some_and(|c| reply.code.fits(&c)));
        let id = match (fitting.next(), self.plant) {
            (None, Some(Plant::ReplyForged)) => newest_open,
            (Some(id), Some(Plant::LateReply)) if questions[&id].answer.is_some() => newest_open,
            (fits, _) => fits,
        };
        Some(PhoneOrder::Answer { id: id?, text: reply.words })
    }

    /// Judges what the log says about answers and orders from the phone. The event is not applied yet.
    pub fn check_phone(&mut self, event: &PersonEvent) {
        match event {
            PersonEvent::QuestionAnswered { id, answer, via } => {
                let before = self.checkers.replayed.questions.get(id).and_then(|question| question.answer.clone());
                if let Some(before) = before {
                    let what = format!("question {id} is answered {before:?} and then {answer:?}");
                    self.checkers.broken(Invariant::RepliedOnce, what);
                }
                if via.is_some() && !self.phone.said.contains(&(*id, answer.clone())) {
                    let what = format!("question {id} is answered {answer:?} from the phone, and nobody said so");
                    self.checkers.broken(Invariant::RepliedOnce, what);
                }
            }
            PersonEvent::PhoneOrder { message, word, .. } => {
                let real = message.trim_end_matches(RENAMED).to_owned();
                if !self.phone.taken.insert(real.clone()) {
                    let what = format!("the message {real} ({}) is taken twice", word.name());
                    self.checkers.broken(Invariant::RepliedOnce, what);
                }
            }
            _ => {}
        }
    }
}
