//! Messages for running agents: carried by a thread of the coordinator, delivered by the shim once per number, read by an
//! agent that listens.

use rekindle_core::ids::AttemptId;
use rekindle_core::report::Exit;
use rekindle_engine::driver::Message;

use super::checkers::Invariant;
use super::plant::Plant;
use super::script;
use super::world::{Happening, Sim};

/// How often a thread connects to a shim that does not answer.
const TRIES: u32 = 3;

/// How often a shim's answer to a thread is lost, in percent.
const LOST_ANSWER_PERCENT: u64 = 25;

/// How long one connection takes.
const TRY_MS: u64 = 5_000;

/// What a thread carries to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The message of this number.
    Message(u32),
    /// No more messages.
    Close,
}

impl Sim {
    /// A coordinator's thread starts with a line.
    pub fn carry(&mut self, attempt: AttemptId, line: Line) {
        let number = self.coordinator.number;
        if self.refuses_or(Plant::AckRefused, "message refused") {
            self.say(format_args!("no room to carry {line:?} to attempt {attempt}"));
            if self.plant == Some(Plant::AckRefused) {
                self.acknowledge(number, attempt, line);
            }
            return;
        }
        let delay = self.rng.between(1, 20);
        self.queue.after_ms(delay, Happening::Carried(number, attempt, line, 0));
    }

    /// The thread connects to the shim.
    pub fn carried(&mut self, number: u32, attempt: AttemptId, line: Line, tries: u32) {
        if self.coordinator.launching.contains(&attempt) {
            self.queue.after_ms(5, Happening::Carried(number, attempt, line, tries));
            return;
        }
        let now = self.queue.now_ms();
        // The shim accepts it, but its answer is lost: the thread retries.
        let percent = if self.plant == Some(Plant::AckUnsent) { 2 * LOST_ANSWER_PERCENT } else { LOST_ANSWER_PERCENT };
        let unsure = !self.quiet && self.rng.chance(percent) && tries + 1 < TRIES;
        let Some(bundle) = self.bundles.get_mut(&attempt).filter(|bundle| bundle.shim_alive) else { return };
        if bundle.deaf_until_ms > now {
            if tries + 1 < TRIES {
                self.queue.after_ms(TRY_MS, Happening::Carried(number, attempt, line, tries + 1));
            }
            return;
        }
        if unsure && matches!(line, Line::Message(_)) && self.plant == Some(Plant::AckUnsent) {
            return self.acknowledge(number, attempt, line);
        }
        if unsure {
            self.queue.after_ms(TRY_MS, Happening::Carried(number, attempt, line, tries + 1));
        }
        match line {
            Line::Close => bundle.input_closed = true,
            Line::Message(message) => {
                let known = !bundle.delivered.insert(message) && self.plant != Some(Plant::TellTwice);
                let closed = bundle.input_closed;
                if !closed && !unsure {
                    self.acknowledge(number, attempt, line);
                }
                if known || closed {
                    return;
                }
                self.say(format_args!("attempt {attempt} is given message {message}"));
                if !self.checkers.truth.delivered.insert((attempt, message)) {
                    let what = format!("attempt {attempt} is given message {message} again");
                    self.checkers.broken(Invariant::ToldOnce, what);
                }
                if let Some(agent) = self.agents.get_mut(&attempt) {
                    agent.unheard += 1;
                }
            }
        }
        if self.agents.get(&attempt).is_some_and(|agent| agent.listening) {
            self.listen(attempt);
        }
    }

    /// The thread reports to its coordinator that the shim has a message. Only a person's messages are waited for in this
    /// way.
    fn acknowledge(&mut self, number: u32, attempt: AttemptId, line: Line) {
        let Line::Message(message) = line else { return };
        if self.is_up(number) && !self.checkers.replayed.steering.tells.is_empty() {
            self.deliver(Message::MessageTaken { attempt, number: message });
        }
    }

    /// An agent waits for a line, and reads what is there.
    pub fn listen(&mut self, attempt: AttemptId) {
        let closed = self.bundles.get(&attempt).is_some_and(|bundle| bundle.input_closed);
        let Some(agent) = self.agents.get_mut(&attempt).filter(|agent| agent.alive) else { return };
        agent.listening = agent.unheard == 0 && !closed;
        if agent.listening {
            return;
        }
        if agent.unheard > 0 {
            agent.unheard = 0;
            let script = script::on_message(self, attempt);
            if let Some(agent) = self.agents.get_mut(&attempt) {
                agent.script = script;
            }
            return self.plan_step(attempt, 10);
        }
        self.say(format_args!("attempt {attempt} hears no more and leaves"));
        self.leader_ends(attempt, Exit { code: Some(0), ..Exit::default() });
    }
}
