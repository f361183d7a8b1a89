//! The simulated phone: replies to questions, pauses and resumes that a channel delivers once, again, late or after a crash,
//! and replies that nobody sent. It has its own random numbers, so that stories without a phone stay as they are.

use std::collections::BTreeSet;

use rekindle_core::event::PersonEvent;
use rekindle_core::ids::QuestionId;
use rekindle_core::input::Order;
use rekindle_core::phone::{PhoneMessage, PhoneOrder, Via};

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

/// The phone, and the channel behind it.
#[derive(Debug)]
pub struct Phone {
    rng: Rng,
    /// Whether this story has a phone.
    used: bool,
    made: u32,
    /// What the channel may deliver again.
    delivered: Vec<(PhoneMessage, PhoneOrder)>,
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
    /// Something arrives from the phone, and something else later, until the faults are over.
    pub fn phone_rings(&mut self) {
        if !self.phone.used || self.quiet {
            return;
        }
        let next = self.phone.rng.between(2 * SECOND, 20 * SECOND);
        self.queue.after_ms(next, Happening::PhoneRings);
        if !self.coordinator.up {
            return;
        }
        if !self.phone.delivered.is_empty() && self.phone.rng.chance(45) {
            let index = self.phone.rng.between(0, self.phone.delivered.len() as u64 - 1);
            let index = usize::try_from(index).unwrap_or(0);
            let (mut from, order) = self.phone.delivered[index].clone();
            if self.plant == Some(Plant::ReplyRenamed) {
                from.message.push(RENAMED);
            }
            return self.order_by_call(Order::FromPhone { from, order });
        }
        let Some(order) = self.draw_reply() else { return };
        self.phone.made += 1;
        let via = self.phone.rng.pick(&Via::ALL).copied().unwrap_or(Via::Ntfy);
        let from = PhoneMessage { via, message: format!("m{}", self.phone.made) };
        self.phone.delivered.push((from.clone(), order.clone()));
        let excess = self.phone.delivered.len().saturating_sub(KEPT);
        self.phone.delivered.drain(..excess);
        self.order_by_call(Order::FromPhone { from, order });
    }

    /// What the person writes next. The channel drops a reply without the right code, unless a bug is planted.
    fn draw_reply(&mut self) -> Option<PhoneOrder> {
        let open: Vec<QuestionId> = self.checkers.open_questions().into_iter().map(|(id, ..)| id).collect();
        let id = self.phone.rng.pick(&open).copied().filter(|_| !self.setting.mute);
        if let (Some(Plant::ReplyForged), Some(id)) = (self.plant, id) {
            return Some(PhoneOrder::Answer { id, text: "forged".to_owned() });
        }
        match self.phone.rng.weighted(&[60, 15, 4, 21]) {
            0 => {
                let (id, text) = (id?, format!("by phone, {}", self.phone.made));
                self.phone.said.insert((id, text.clone()));
                Some(PhoneOrder::Answer { id, text })
            }
            1 => None,
            2 => Some(PhoneOrder::Pause),
            _ => Some(PhoneOrder::Resume),
        }
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
