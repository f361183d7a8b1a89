//! What all parts of a story share: one [`Sim`]. The coordinator sees it through `seam`.
//!
//! What shims, agents, operators and faults do is in the files named after them; the checkers decide whether what the driver
//! asks for is allowed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_core::input::Refused;
use rekindle_core::preflight::TryCheck;
use rekindle_engine::driver::Message;
use rekindle_engine::store::MemoryStore;
use rekindle_engine::token::Tokens;
use rekindle_engine::world::{CheckOrder, KeptReport, MergeOrder};

use super::agent::Agent;
use super::checkers::{Checkers, Invariant};
use super::clock::{Machine, Queue};
use super::control::Calls;
use super::days::Days;
use super::faults::{Fault, Kill};
use super::lander::Lander;
use super::outside::Asked;
use super::person::Person;
use super::phone::Phone;
use super::plant::Plant;
use super::refusals::{POLL_MS, refusal};
use super::rng::Rng;
use super::shim::Bundle;
use super::story::Setting;
use super::told::Line;
use super::trace::Trace;

/// Something that is going to happen.
#[derive(Debug)]
pub enum Happening {
    CoordinatorStarts,
    /// The coordinator of this number handles what has arrived.
    Wakes(u32),
    /// The turn that it planned is due.
    Ticks(u32, u64),
    /// It retries a commit.
    CommitsAgain(u32),
    /// A message reaches it.
    Arrives(u32, Bell),
    /// Its launching thread writes the bundle.
    BundleMade(u32, AttemptId),
    /// Its launching thread spawns the shim.
    ShimSpawned(u32, AttemptId),
    /// A shim writes its record of itself and its agent, and releases the agent.
    Recorded(AttemptId),
    /// Its stopping thread connects to a shim, for the n-th time.
    OrderGiven(u32, AttemptId, bool, u32),
    /// Its thread gives a shim a line for its agent, for the n-th time.
    Carried(u32, AttemptId, Line, u32),
    /// A shim takes the next rung of its ladder.
    Rung(AttemptId, u32),
    /// An agent takes its next step.
    Step(AttemptId, u32),
    /// A shim writes its exit record and exits.
    ShimLeaves(AttemptId),
    /// Checks have finished.
    Checked(u32, CheckOrder),
    /// A merge has finished.
    Merged(u32, MergeOrder),
    /// The health commands have finished.
    HealthSeen(u32, Vec<String>),
    /// The pre-flight has finished.
    Flown(u32, Vec<TryCheck>),
    /// The user's command for the allowance answers, or could not be started.
    UsageTold(u32, bool),
    /// An agent has written a report into its bundle.
    Kept(AttemptId, KeptReport),
    /// A token is used long after its attempt.
    LateReport(AttemptId),
    OperatorLooks,
    /// The person who steers checks the run.
    PersonSteers,
    /// Something arrives from the person's phone.
    PhoneRings,
    /// Whoever publishes the run takes a round.
    LanderLooks,
    /// People act at the forge.
    ForgeMoves,
    /// A person's program ends.
    PersonLeaves(u32),
    /// The person undoes the newest order.
    PersonUndoes,
    /// By now the coordinator must have learned that a person's program ended, if it was running all the time.
    PersonMissed(u32, u32),
    /// Something breaks.
    Breaks(Fault),
    /// The next fault is drawn.
    FaultDue,
    /// A caller has waited long enough.
    HangsUp(u64),
    /// No more faults from here on.
    Quiet,
}

/// What tells a coordinator that something happened.
#[derive(Clone, Debug)]
pub enum Bell {
    /// From the watch: the shim's record exists.
    Started(AttemptId),
    /// From the watch: output.
    Grew(AttemptId),
    /// From the watch: the shim is gone.
    Ended(AttemptId),
    /// From a thread: probe it.
    Look(AttemptId),
    /// From a thread: it could not be started.
    NotStarted(AttemptId),
    /// From a thread: the machine lacked the resources for it.
    Refused(AttemptId),
    NotSetUp(AttemptId),
}

/// The coordinator as the world sees it.
#[derive(Debug, Default)]
pub struct Coordinator {
    /// Its number, rising with every start.
    pub number: u32,
    /// Whether it is running.
    pub up: bool,
    /// Where it will die.
    pub kill: Option<Kill>,
    /// Attempts it was asked to launch.
    pub launching: BTreeSet<AttemptId>,
    pub watched: BTreeSet<AttemptId>,
    /// Of those, the ones that the system does not watch for it.
    pub polled: BTreeSet<AttemptId>,
    /// Checks, merges and health commands in progress: none is started twice at a time.
    pub under_way: BTreeSet<Asked>,
    /// Of those, the ones whose growth was reported and not yet read.
    pub told: BTreeSet<AttemptId>,
    /// It is taking over from its predecessor.
    pub taking_over: bool,
    /// What it asked for and what the log has not answered.
    pub asked: BTreeSet<Asked>,
}

/// Everything of a story but the coordinator itself.
pub struct Sim {
    /// The random numbers.
    pub rng: Rng,
    pub queue: Queue<Happening>,
    /// Clocks.
    pub machine: Machine,
    pub setting: Setting,
    /// The planted bug, if any.
    pub plant: Option<Plant>,
    /// Faults are over.
    pub quiet: bool,
    pub quiet_since_ms: u64,
    pub bundles: BTreeMap<AttemptId, Bundle>,
    /// Agents by attempt, dead ones included.
    pub agents: BTreeMap<AttemptId, Agent>,
    /// Paths that exist.
    pub disk: BTreeSet<String>,
    /// Health commands that fail.
    pub sick: BTreeSet<String>,
    /// The machine is short of something.
    pub short: bool,
    /// Processes cannot be inspected before this moment.
    pub blind_until_ms: u64,
    /// The hash of the plan's file; `None` while it cannot be read.
    pub plan_file: Option<String>,
    /// Merges in progress, with their workspaces.
    pub merges: Vec<(TaskId, Epoch, String)>,
    pub coordinator: Coordinator,
    /// Messages that have arrived for it.
    pub inbox: VecDeque<Message>,
    /// Calls in progress.
    pub calls: Calls,
    /// Reads of the store that are going to be refused.
    pub reads_refused: Arc<AtomicU64>,
    /// Tokens of this state directory.
    pub tokens: Tokens,
    /// The store that holds what is durable.
    pub durable: Arc<MemoryStore>,
    pub checkers: Checkers,
    /// The person who steers.
    pub person: Person,
    pub phone: Phone,
    pub days: Days,
    pub lander: Lander,
    pub trace: Trace,
    /// How often the machine refused, by kind of call, and how often each of the other faults happened.
    pub drawn: BTreeMap<&'static str, u64>,
}

impl Sim {
    /// Writes a line of the trace.
    pub fn say(&mut self, text: std::fmt::Arguments<'_>) {
        self.trace.say(self.queue.now_ms(), text);
    }

    /// Counts something that went wrong.
    pub fn count(&mut self, what: &'static str) {
        *self.drawn.entry(what).or_default() += 1;
    }

    /// Whether this coordinator is running.
    pub fn is_up(&self, number: u32) -> bool {
        self.coordinator.up && self.coordinator.number == number
    }

    /// Puts a message into the coordinator's inbox and wakes it soon.
    pub fn deliver(&mut self, message: Message) {
        if !self.coordinator.up {
            return;
        }
        self.inbox.push_back(message);
        if self.inbox.len() == 1 {
            let (delay, number) = (self.rng.below(6), self.coordinator.number);
            self.queue.after_ms(delay, Happening::Wakes(number));
        }
    }

    /// Whether the agent of an attempt has structured output.
    pub fn tells(&self, attempt: AttemptId) -> bool {
        self.bundles.get(&attempt).is_some_and(|bundle| self.setting.limits.traits_of(&bundle.cli).structured_output)
    }

    /// Notifies the coordinator after a while.
    pub fn ring(&mut self, delay_ms: u64, bell: Bell) {
        if self.coordinator.up {
            let late = match bell {
                Bell::Started(attempt) | Bell::Grew(attempt) | Bell::Ended(attempt)
                    if self.coordinator.polled.contains(&attempt) =>
                {
                    self.rng.between(0, POLL_MS)
                }
                _ => 0,
            };
            let number = self.coordinator.number;
            self.queue.after_ms(delay_ms + late, Happening::Arrives(number, bell));
        }
    }

    /// A notification reaches the coordinator, unless the watch has dropped the attempt meanwhile.
    pub fn bell_arrives(&mut self, bell: Bell) {
        let watched = |sim: &Self, attempt| sim.coordinator.watched.contains(&attempt);
        let message = match bell {
            Bell::Started(attempt) | Bell::Grew(attempt) | Bell::Ended(attempt) if !watched(self, attempt) => return,
            Bell::Started(attempt) => {
                let (pid, shim_pid) = Bundle::pids(attempt);
                Message::Started { attempt, pid, shim_pid }
            }
            Bell::Grew(attempt) => Message::Grew { attempt },
            Bell::Ended(attempt) | Bell::Look(attempt) => Message::Ended { attempt },
            Bell::Refused(attempt) => Message::Refused { what: Refused::Attempt(attempt), refusal: refusal() },
            Bell::NotSetUp(attempt) => {
                let Some(task) = self.checkers.replayed.attempts.get(&attempt).and_then(|found| found.tasks.first())
                else {
                    return;
                };
                let reason = "npm ci exited with 1 (simulated)".to_owned();
                Message::SetupFailed { attempt, task: task.clone(), reason }
            }
            Bell::NotStarted(attempt) => {
                Message::NotStarted { attempt, reason: "no such program (simulated)".to_owned() }
            }
        };
        self.deliver(message);
    }

    /// Whether the pending kill hits now.
    pub fn struck(&mut self) -> bool {
        match &mut self.coordinator.kill {
            Some(Kill::AtWorldCall { left }) if *left == 0 => true,
            Some(Kill::AtWorldCall { left }) => {
                *left -= 1;
                false
            }
            _ => false,
        }
    }
}

impl Sim {
    /// Brings the checkers up to what is durable, then asks them about an effect.
    pub fn check_effect(&mut self, allowed: impl FnOnce(&Checkers) -> Result<(), (Invariant, String)>) {
        self.sync_checkers();
        if let Err((invariant, what)) = allowed(&self.checkers) {
            self.checkers.broken(invariant, what);
        }
    }
}
