//! The simulated outside as the driver sees it: `rekindle_engine::world::World` over one shared [`Sim`].
//!
//! Owns what all parts of a story share. What shims, agents, operators and faults do stands in the files named after them;
//! whether what the driver asks for is allowed is the checkers' business.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use rekindle_core::activity::Transcript;
use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_core::input::{Found, Refused};
use rekindle_core::time::Time;
use rekindle_engine::agents::Reader;
use rekindle_engine::alert::Alert;
use rekindle_engine::door::wire::{Answer, Call};
use rekindle_engine::driver::Message;
use rekindle_engine::store::{MemoryStore, Stream};
use rekindle_engine::token::Tokens;
use rekindle_engine::world::{CheckOrder, KeptReport, LaunchOrder, MergeOrder, Taken, World};
use rekindle_shim::tree::Activity;

use super::agent::Agent;
use super::calls::Caller;
use super::checkers::{Checkers, Invariant};
use super::clock::{Machine, Queue};
use super::faults::{Fault, Kill, Killed};
use super::outside::Asked;
use super::plant::Plant;
use super::refusals::{POLL_MS, refusal};
use super::rng::Rng;
use super::shim::Bundle;
use super::story::Setting;
use super::tells::TellReader;
use super::told::Line;
use super::trace::Trace;

/// Something that is going to happen.
#[derive(Debug)]
pub enum Happening {
    /// A coordinator is started.
    CoordinatorStarts,
    /// The coordinator of this number handles what has arrived.
    Wakes(u32),
    /// The turn that it planned is due.
    Ticks(u32, u64),
    /// It tries again to commit.
    CommitsAgain(u32),
    /// A message reaches it.
    Arrives(u32, Bell),
    /// Its launching thread writes the bundle.
    BundleMade(u32, AttemptId),
    /// Its launching thread spawns the shim.
    ShimSpawned(u32, AttemptId),
    /// A shim writes down who it and its agent are, and lets the agent go.
    Recorded(AttemptId),
    /// Its stopping thread speaks to a shim, for the n-th time.
    OrderGiven(u32, AttemptId, bool, u32),
    /// Its thread gives a shim a line for its agent, for the n-th time.
    Carried(u32, AttemptId, Line, u32),
    /// A shim takes the next rung of its ladder.
    Rung(AttemptId, u32),
    /// An agent takes its next step.
    Step(AttemptId, u32),
    /// A shim writes its exit record and leaves.
    ShimLeaves(AttemptId),
    /// Checks are through.
    Checked(u32, CheckOrder),
    /// A merge is through.
    Merged(u32, MergeOrder),
    /// The health commands are through.
    HealthSeen(u32, Vec<String>),
    /// The user's command for the allowance answers.
    UsageTold(u32),
    /// An agent has written a report into its bundle.
    Kept(AttemptId, KeptReport),
    /// Somebody uses a token long after its attempt.
    LateReport(AttemptId),
    /// The operator looks in.
    OperatorLooks,
    /// Something breaks.
    Breaks(Fault),
    /// The next fault is drawn.
    FaultDue,
    /// No more faults from here on.
    Quiet,
}

/// What tells a coordinator that something happened.
#[derive(Clone, Debug)]
pub enum Bell {
    /// From the watch: the shim's record is there.
    Started(AttemptId),
    /// From the watch: output.
    Grew(AttemptId),
    /// From the watch: the shim is gone.
    Ended(AttemptId),
    /// From a thread: look at it.
    Look(AttemptId),
    /// From a thread: it could not be started.
    NotStarted(AttemptId),
    /// From a thread: there was no room for it.
    Refused(AttemptId),
}

/// The coordinator as the outside sees it.
#[derive(Debug, Default)]
pub struct Coordinator {
    /// Its number, rising with every start.
    pub number: u32,
    /// Whether it lives.
    pub up: bool,
    /// Where it is going to die.
    pub kill: Option<Kill>,
    /// Attempts it was asked to launch.
    pub launching: BTreeSet<AttemptId>,
    /// Attempts it watches.
    pub watched: BTreeSet<AttemptId>,
    /// Of those, the ones that the system does not watch for it.
    pub polled: BTreeSet<AttemptId>,
    /// Checks, merges and health commands under way: none is begun twice at a time.
    pub under_way: BTreeSet<Asked>,
    /// Of those, the ones whose growth it was told and has not read.
    pub told: BTreeSet<AttemptId>,
    /// It takes over what was before it.
    pub taking_over: bool,
    /// What it asked for and what the log has not answered.
    pub asked: BTreeSet<Asked>,
}

/// Answers that the driver gave, by call.
pub type Outbox = Arc<Mutex<Vec<(u64, Answer)>>>;

/// Everything of a story but the coordinator itself.
pub struct Sim {
    /// Chance.
    pub rng: Rng,
    /// What is to happen.
    pub queue: Queue<Happening>,
    /// Clocks.
    pub machine: Machine,
    /// The setting.
    pub setting: Setting,
    /// The bug planted, if one is.
    pub plant: Option<Plant>,
    /// Faults are over.
    pub quiet: bool,
    /// Since when.
    pub quiet_since_ms: u64,
    /// Bundles by attempt.
    pub bundles: BTreeMap<AttemptId, Bundle>,
    /// Agents by attempt, dead ones included.
    pub agents: BTreeMap<AttemptId, Agent>,
    /// Paths that exist.
    pub disk: BTreeSet<String>,
    /// Health commands that fail.
    pub sick: BTreeSet<String>,
    /// The machine is short of something.
    pub short: bool,
    /// The hash of the plan's file; nothing while it cannot be read.
    pub plan_file: Option<String>,
    /// Merges under way, with their workspaces.
    pub merges: Vec<(TaskId, Epoch, String)>,
    /// The coordinator.
    pub coordinator: Coordinator,
    /// What has arrived for it.
    pub inbox: VecDeque<Message>,
    /// What it answered.
    pub outbox: Outbox,
    /// Calls without an answer.
    pub calls: BTreeMap<u64, Caller>,
    /// Calls so far.
    pub calls_made: u64,
    /// Tokens of this state directory.
    pub tokens: Tokens,
    /// The store whose content is what is durable.
    pub durable: Arc<MemoryStore>,
    /// The checkers.
    pub checkers: Checkers,
    /// The trace.
    pub trace: Trace,
}

impl Sim {
    /// Writes a line of the trace.
    pub fn say(&mut self, text: std::fmt::Arguments<'_>) {
        self.trace.say(self.queue.now_ms(), text);
    }

    /// Whether this coordinator lives.
    pub fn is_up(&self, number: u32) -> bool {
        self.coordinator.up && self.coordinator.number == number
    }

    /// Puts a message before the coordinator and wakes it soon.
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

    /// Whether the agent of an attempt tells of itself.
    pub fn tells(&self, attempt: AttemptId) -> bool {
        self.bundles.get(&attempt).is_some_and(|bundle| self.setting.limits.traits_of(&bundle.cli).tells)
    }

    /// Rings a bell at the coordinator after a while.
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

    /// A bell reaches the coordinator; what the watch has forgotten meanwhile does not.
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
            Bell::NotStarted(attempt) => {
                Message::NotStarted { attempt, reason: "no such program (simulated)".to_owned() }
            }
        };
        self.deliver(message);
    }

    /// Answers given since the last look.
    pub fn take_answers(&mut self) -> Vec<(u64, Answer)> {
        std::mem::take(&mut *self.outbox.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls the coordinator.
    pub fn call(&mut self, token: Option<String>, ancestors: Vec<u32>, call: Call, caller: Caller) -> u64 {
        self.calls_made += 1;
        let id = self.calls_made;
        self.calls.insert(id, caller);
        let outbox = Arc::clone(&self.outbox);
        let reply = Box::new(move |answer| outbox.lock().unwrap_or_else(PoisonError::into_inner).push((id, answer)));
        self.deliver(Message::Called { token, ancestors, call, reply });
        id
    }

    /// Whether the kill that is due hits now.
    fn struck(&mut self) -> bool {
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

/// The world of one coordinator.
pub struct SimWorld {
    sim: Rc<RefCell<Sim>>,
}

impl SimWorld {
    /// A world over the story.
    pub fn new(sim: Rc<RefCell<Sim>>) -> Self {
        Self { sim }
    }

    /// Does something the driver asks for; the coordinator may die before or after it.
    fn ask<T>(&mut self, what: impl FnOnce(&mut Sim) -> T) -> T {
        let mut sim = self.sim.borrow_mut();
        let struck = sim.struck();
        if struck && sim.rng.chance(50) {
            drop(sim);
            // Not a panic: no hook speaks, and the runner catches it.
            std::panic::resume_unwind(Box::new(Killed));
        }
        let done = what(&mut sim);
        drop(sim);
        if struck {
            std::panic::resume_unwind(Box::new(Killed));
        }
        done
    }
}

impl World for SimWorld {
    fn now(&mut self) -> Time {
        let sim = self.sim.borrow();
        sim.machine.now(sim.queue.now_ms())
    }

    fn launch(&mut self, order: LaunchOrder) -> Taken {
        self.ask(|sim| {
            let (role, tasks, place) = (order.role, &order.tasks, order.workspace.as_deref().unwrap_or("the project"));
            sim.say(format_args!("launch attempt {} epoch {} {role} {tasks:?} in {place}", order.attempt, order.epoch));
            sim.check_effect(|checkers| checkers.allows_launch(order.attempt));
            sim.check_alone(&order);
            let taken = sim.launch_taken(order.attempt);
            if taken == Taken::Yes {
                sim.launch(&order);
            }
            taken
        })
    }

    fn stop(&mut self, attempt: AttemptId, at_once: bool) {
        self.ask(|sim| {
            sim.say(format_args!("stop attempt {attempt} at once: {at_once}"));
            sim.check_effect(|checkers| checkers.allows_stop(attempt, at_once));
            sim.order_stop(attempt, at_once);
        });
    }

    fn run_checks(&mut self, order: CheckOrder) -> Taken {
        self.ask(|sim| {
            sim.say(format_args!("check {} epoch {}", order.task, order.epoch));
            sim.check_effect(|checkers| checkers.allows_checks(&order.task, order.epoch));
            if !sim.forgets() {
                sim.begin_checks(order);
            }
        });
        Taken::Yes
    }

    fn read_spool(
        &mut self,
        attempt: AttemptId,
        stream: Stream,
        offset: u64,
        limit: usize,
        into: &mut Vec<u8>,
    ) -> std::io::Result<()> {
        let mut sim = self.sim.borrow_mut();
        sim.coordinator.told.remove(&attempt);
        if let Some(refused) = sim.read_refused(attempt) {
            return refused;
        }
        let Some(bundle) = sim.bundles.get(&attempt) else { return Ok(()) };
        let spool = bundle.spool(stream);
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(spool.len());
        let to = from.saturating_add(limit).min(spool.len());
        into.extend_from_slice(&spool[from..to]);
        Ok(())
    }

    fn reader(&mut self, cli: &str) -> Option<Box<dyn Reader>> {
        let sim = self.sim.borrow();
        let tells = sim.setting.limits.traits_of(cli).tells;
        tells.then(|| Box::new(TellReader::new(sim.plant)) as Box<dyn Reader>)
    }

    fn transcript_state(&mut self, _attempt: AttemptId, _cli: &str, _session: &str) -> Transcript {
        self.ask(|sim| if !sim.quiet && sim.rng.chance(10) { Transcript::Missing } else { Transcript::Whole })
    }

    fn tell(&mut self, attempt: AttemptId, _cli: &str, number: u32, _text: &str) {
        self.ask(|sim| {
            sim.check_effect(|checkers| checkers.allows_message(attempt, number));
            sim.carry(attempt, Line::Message(number));
        });
    }

    fn close_input(&mut self, attempt: AttemptId) {
        self.ask(|sim| {
            sim.check_effect(|checkers| checkers.allows_close(attempt));
            sim.carry(attempt, Line::Close);
        });
    }

    fn probe(&mut self, attempts: &[(AttemptId, Epoch)]) -> Vec<Found> {
        self.ask(|sim| attempts.iter().map(|(attempt, _)| sim.probe(*attempt)).collect())
    }

    fn kept_reports(&mut self, attempt: AttemptId) -> std::io::Result<Vec<KeptReport>> {
        self.ask(|sim| {
            if let Some(Err(refused)) = sim.read_refused(attempt) {
                return Err(refused);
            }
            let Some(bundle) = sim.bundles.get_mut(&attempt) else { return Ok(Vec::new()) };
            bundle.handed_out = bundle.kept.len();
            Ok(bundle.kept.clone())
        })
    }

    fn drop_kept_reports(&mut self, attempt: AttemptId) {
        self.ask(|sim| {
            if let Some(bundle) = sim.bundles.get_mut(&attempt) {
                bundle.kept.drain(..std::mem::take(&mut bundle.handed_out));
            }
        });
    }

    fn missing(&mut self, paths: &[String], _merged: Option<&str>) -> Vec<String> {
        self.ask(|sim| paths.iter().filter(|path| !sim.disk.contains(*path)).cloned().collect())
    }

    fn merge(&mut self, order: MergeOrder) {
        self.ask(|sim| {
            sim.say(format_args!("merge {} epoch {} of {}", order.task, order.epoch, order.workspace));
            sim.check_effect(|checkers| checkers.allows_merge(&order.task, order.epoch));
            if !sim.forgets() {
                sim.begin_merge(order);
            }
        });
    }

    fn check_health(&mut self, commands: &[String]) -> Taken {
        self.ask(|sim| {
            sim.check_effect(Checkers::allows_health);
            if !sim.forgets() {
                sim.begin_health(commands);
            }
        });
        Taken::Yes
    }

    fn ask_usage(&mut self) {
        self.ask(|sim| {
            sim.check_effect(Checkers::allows_usage);
            if !sim.forgets() {
                sim.begin_usage();
            }
        });
    }

    fn alert(&mut self, alert: &Alert) {
        self.ask(|sim| sim.say(format_args!("alert: {}", alert.text)));
    }

    fn written(&mut self, attempt: AttemptId) -> u64 {
        self.ask(|sim| sim.bundles.get(&attempt).map_or(0, |bundle| (bundle.out.len() + bundle.err.len()) as u64))
    }

    fn activity(&mut self, attempt: AttemptId) -> Option<Activity> {
        self.ask(|sim| sim.activity(attempt))
    }

    fn polls(&mut self) -> bool {
        !self.sim.borrow().coordinator.polled.is_empty()
    }

    fn watch(&mut self, attempt: AttemptId) {
        self.ask(|sim| sim.watch(attempt));
    }

    fn forget(&mut self, attempt: AttemptId) {
        self.ask(|sim| {
            sim.coordinator.watched.remove(&attempt);
            sim.coordinator.polled.remove(&attempt);
            sim.coordinator.told.remove(&attempt);
        });
    }
}

impl Sim {
    /// Brings the checkers up to what is durable, then asks them about an effect.
    fn check_effect(&mut self, allowed: impl FnOnce(&Checkers) -> Result<(), (Invariant, String)>) {
        self.sync_checkers();
        if let Err((invariant, what)) = allowed(&self.checkers) {
            self.checkers.broken(invariant, what);
        }
    }
}
