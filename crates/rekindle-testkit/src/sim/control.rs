//! The simulated control socket: connections between callers and the coordinator. Callers hang up, coordinators hang up on
//! them, and both come again; a caller that stays is answered once.

use std::sync::{Arc, Mutex, PoisonError};

use rekindle_core::ids::{AttemptId, QuestionId};
use rekindle_engine::control::Called;
use rekindle_engine::control::wire::{Request, Response};
use rekindle_engine::driver::Message;

use super::agent::{Act, Way};
use super::calls::Caller;
use super::checkers::Invariant;
use super::plant::Plant;
use super::story::SECOND;
use super::world::{Happening, Sim};

/// How many callers hang up before they are answered, in percent: because of agents' own time limits for a command, and
/// killed terminals.
const HANG_UP_PERCENT: u64 = 6;

/// A planted coordinator forgets one in this many calls.
const FORGOTTEN_EACH: u64 = 5;

/// What the coordinator did with its connections: answers, and those that it only closed.
pub type Outbox = Arc<Mutex<Vec<(u64, Option<Response>)>>>;

/// Calls in progress.
#[derive(Debug, Default)]
pub struct Calls {
    /// Number of calls so far.
    made: u64,
    pub waiting: std::collections::BTreeMap<u64, Caller>,
    /// Callers that hung up and whose connection the coordinator still holds, with the question that they waited for.
    pub hung_up: std::collections::BTreeMap<u64, Option<QuestionId>>,
    outbox: Outbox,
}

/// The coordinator's end of a connection. Dropping it hangs up.
struct Connection {
    id: u64,
    outbox: Outbox,
    open: bool,
    plant: Option<Plant>,
}

impl Connection {
    fn answer(mut self, answer: Response) {
        self.open = false;
        if self.plant == Some(Plant::ForgetCaller) && self.id.is_multiple_of(FORGOTTEN_EACH) {
            return;
        }
        if self.plant == Some(Plant::AnswerTwice) {
            self.put(Some(answer.clone()));
        }
        self.put(Some(answer));
    }

    fn put(&self, answer: Option<Response>) {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner).push((self.id, answer));
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.open {
            self.put(None);
        }
    }
}

impl Sim {
    /// Calls the coordinator. Some hang up before they are answered.
    pub fn call(&mut self, token: Option<String>, ancestors: Vec<u32>, call: Request, caller: Caller) -> u64 {
        self.calls.made += 1;
        let id = self.calls.made;
        self.calls.waiting.insert(id, caller);
        let connection = Connection { id, outbox: Arc::clone(&self.calls.outbox), open: true, plant: self.plant };
        if !self.quiet && self.rng.chance(HANG_UP_PERCENT) {
            let delay = if self.rng.chance(50) { self.rng.below(20) } else { self.rng.between(20, 30 * SECOND) };
            self.queue.after_ms(delay, Happening::HangsUp(id));
        }
        let reply = Box::new(move |answer| connection.answer(answer));
        self.deliver(Message::Called(Called { token, ancestors, call, reply }));
        id
    }

    /// Passes the coordinator's answers and hang-ups on to the callers.
    pub fn hand_out_answers(&mut self) {
        let done = std::mem::take(&mut *self.calls.outbox.lock().unwrap_or_else(PoisonError::into_inner));
        for (id, answer) in done {
            match (self.calls.waiting.remove(&id), answer) {
                (Some(caller), Some(answer)) => self.answered(id, caller, answer),
                (Some(caller), None) => self.cut_off(id, caller),
                (None, answer) => {
                    let left = self.calls.hung_up.remove(&id).is_some();
                    if !left && answer.is_some() {
                        self.checkers.broken(Invariant::Answered, format!("call {id} is answered again: {answer:?}"));
                    }
                }
            }
        }
    }

    /// A caller has waited long enough: it hangs up, and comes again.
    pub fn hangs_up(&mut self, id: u64) {
        let Some(caller) = self.calls.waiting.remove(&id) else { return };
        self.say(format_args!("{caller:?} hangs up"));
        self.count("caller hung up");
        let question = if let Caller::Waits(_, question) = &caller { Some(*question) } else { None };
        self.calls.hung_up.insert(id, question);
        match caller {
            Caller::Report(attempt, report) | Caller::Asked(attempt, report, _) if self.waits(attempt, id) => {
                if let Some(agent) = self.agents.get_mut(&attempt) {
                    agent.script.push_front(Act::Say(report, Way::Command));
                }
                self.go_on(attempt, id, SECOND);
            }
            other => self.cut_off(id, other),
        }
    }

    /// The coordinator is gone: every caller sees its connection break.
    pub fn disconnect(&mut self) {
        for (id, caller) in std::mem::take(&mut self.calls.waiting) {
            self.cut_off(id, caller);
        }
        self.calls.hung_up.clear();
        self.calls.outbox.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// A caller sees its connection break.
    fn cut_off(&mut self, id: u64, caller: Caller) {
        match caller {
            Caller::Report(attempt, report) | Caller::Asked(attempt, report, _) if self.waits(attempt, id) => {
                self.wait_no_more(attempt);
                self.keep(attempt, report);
            }
            Caller::Waits(attempt, question) => self.wait_again(attempt, id, question),
            Caller::Plain(attempt) => self.go_on(attempt, id, 50),
            Caller::Lander => self.lander_heard(id, false),
            _ => {}
        }
    }

    /// Whether an agent waits for the answer to this call.
    pub fn waits(&self, attempt: AttemptId, id: u64) -> bool {
        self.agents.get(&attempt).is_some_and(|agent| agent.waits_for == Some(id))
    }
}
