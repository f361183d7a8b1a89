//! Simulated shims and the bundles they leave: launching, the stop ladder, exit records, deaths. They outlive coordinators.
//!
//! What a launching or stopping thread of the coordinator does dies with the coordinator; an order that a shim has received
//! does not.

use std::collections::BTreeSet;

use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_core::input::Found;
use rekindle_core::report::Exit;
use rekindle_core::role::Role;
use rekindle_engine::store::Stream;
use rekindle_engine::world::{CheckOrder, KeptReport, LaunchOrder};

use super::agent::Agent;
use super::plant::Plant;
use super::refusals::POLL_MS;
use super::story::SECOND;
use super::world::{Bell, Happening, Sim};

/// How often a stopping thread tries to give its order, as the engine's does.
const ORDER_TRIES: u32 = 3;

/// How long one connection to a shim that does not answer takes.
const ORDER_BUDGET_MS: u64 = 5_000;

/// How far a bundle has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// A launching thread has been started.
    Asked,
    /// The spec exists.
    Made,
    /// The shim holds the lock.
    Spawned,
    /// The agent is recorded and runs.
    Recorded,
}

/// One attempt's directory and the processes around it.
#[derive(Debug)]
pub struct Bundle {
    pub epoch: Epoch,
    /// The agent's tasks.
    pub tasks: Vec<TaskId>,
    pub role: Role,
    /// Its own workspace, if it has one.
    pub workspace: Option<String>,
    /// The `[agents.NAME]` entry that runs it.
    pub cli: String,
    /// Checks that are run before it begins.
    pub baselines: Vec<CheckOrder>,
    /// The session that it should resume.
    pub resume: Option<String>,
    /// Numbers of messages that the shim has delivered.
    pub delivered: BTreeSet<u32>,
    /// It gets no more messages.
    pub input_closed: bool,
    /// How far it has come.
    pub stage: Stage,
    pub boot: u32,
    /// Whether the shim is alive.
    pub shim_alive: bool,
    /// The shim does not answer before this moment.
    pub deaf_until_ms: u64,
    /// Whether the agent's own process is alive.
    pub leader_alive: bool,
    /// Other live processes of its tree.
    pub children: u32,
    /// How the leader ended, as the shim saw it.
    pub ended: Option<Exit>,
    /// The exit record.
    pub exit: Option<Exit>,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: Vec<u8>,
    /// Reports left in it.
    pub kept: Vec<KeptReport>,
    /// Of those, how many the driver has been given.
    pub handed_out: usize,
    /// A ladder is being climbed.
    pub stopping: bool,
    /// It is reported as gone although it was not stopped: a planted bug.
    pub taken_for_stopped: bool,
    /// When it was last active.
    pub active_ms: u64,
    /// Since when its program has been retrying.
    pub retrying_ms: Option<u64>,
}

impl Bundle {
    /// The processes of an attempt: the agent's and its shim's.
    pub fn pids(attempt: AttemptId) -> (u32, u32) {
        let base = 10_000 + u32::try_from(attempt.0).unwrap_or(0) * 10;
        (base, base + 1)
    }

    pub fn spool(&self, stream: Stream) -> &Vec<u8> {
        match stream {
            Stream::Out | Stream::Transcript => &self.out,
            Stream::Err => &self.err,
        }
    }

    /// Whether any process of the agent's tree lives.
    pub fn tree_alive(&self) -> bool {
        self.leader_alive || self.children > 0
    }

    /// Whether agent and shim are well.
    pub fn healthy(&self) -> bool {
        self.stage == Stage::Recorded && self.shim_alive && self.leader_alive && !self.stopping
    }
}

impl Sim {
    /// A coordinator's thread starts to launch. If called twice, it launches once.
    pub fn launch(&mut self, order: &LaunchOrder) {
        if !self.coordinator.launching.insert(order.attempt) {
            return;
        }
        let bundle = Bundle {
            epoch: order.epoch,
            tasks: order.tasks.clone(),
            role: order.role,
            workspace: order.workspace.clone(),
            cli: order.cli.clone(),
            baselines: order.baselines.clone(),
            resume: order.resume.clone(),
            delivered: BTreeSet::new(),
            input_closed: false,
            stage: Stage::Asked,
            boot: self.machine.boot,
            shim_alive: false,
            deaf_until_ms: 0,
            leader_alive: false,
            children: 0,
            ended: None,
            exit: None,
            out: Vec::new(),
            err: Vec::new(),
            kept: Vec::new(),
            handed_out: 0,
            taken_for_stopped: false,
            stopping: false,
            active_ms: self.queue.now_ms(),
            retrying_ms: None,
        };
        let absent = self.bundles.get(&order.attempt).is_none_or(|found| found.stage == Stage::Asked);
        if absent {
            self.bundles.insert(order.attempt, bundle);
        }
        let (delay, number) = (self.rng.between(1, 30), self.coordinator.number);
        self.queue.after_ms(delay, Happening::BundleMade(number, order.attempt));
    }

    /// The launching thread writes the bundle, or meets one.
    pub fn bundle_made(&mut self, attempt: AttemptId) {
        let Some(bundle) = self.bundles.get(&attempt) else { return };
        if bundle.stage != Stage::Asked {
            self.coordinator.launching.remove(&attempt);
            self.ring(0, Bell::Look(attempt));
            return;
        }
        if self.bundle_refused(attempt) || self.set_up_failed(attempt) {
            return;
        }
        if !self.quiet && self.rng.chance(2) {
            self.bundles.remove(&attempt);
            self.coordinator.launching.remove(&attempt);
            self.ring(0, Bell::NotStarted(attempt));
            return;
        }
        let Some(bundle) = self.bundles.get_mut(&attempt) else { return };
        bundle.stage = Stage::Made;
        let baselines = std::mem::take(&mut bundle.baselines);
        self.take_baselines(attempt, baselines);
        let (delay, number) = (self.rng.between(0, 10), self.coordinator.number);
        self.queue.after_ms(delay, Happening::ShimSpawned(number, attempt));
    }

    /// The launching thread spawns the shim and watches it.
    pub fn shim_spawned(&mut self, attempt: AttemptId) {
        let Some(bundle) = self.bundles.get_mut(&attempt) else { return };
        bundle.stage = Stage::Spawned;
        bundle.shim_alive = true;
        self.coordinator.launching.remove(&attempt);
        self.coordinator.watched.insert(attempt);
        self.unwatched(attempt);
        if !self.quiet && self.rng.chance(1) {
            return self.kill_shim(attempt);
        }
        let delay = self.rng.between(1, 40);
        self.queue.after_ms(delay, Happening::Recorded(attempt));
    }

    /// The shim writes its record and releases the agent.
    pub fn recorded(&mut self, attempt: AttemptId) {
        let now = self.queue.now_ms();
        let Some(bundle) = self.bundles.get_mut(&attempt) else { return };
        if !bundle.shim_alive || bundle.stage != Stage::Spawned || bundle.ended.is_some() {
            return;
        }
        bundle.stage = Stage::Recorded;
        bundle.leader_alive = true;
        bundle.active_ms = now;
        let (epoch, tasks, stopping) = (bundle.epoch, bundle.tasks.clone(), bundle.stopping);
        self.ring(1, Bell::Started(attempt));
        if !self.quiet && self.rng.chance(2) {
            let exit = Exit { start_error: Some("permission denied (simulated)".to_owned()), ..Exit::default() };
            return self.leader_ends(attempt, exit);
        }
        let agent = Agent::draw(self, attempt, epoch, &tasks);
        self.say(format_args!("attempt {attempt} runs as {}", agent.mood));
        self.agents.insert(attempt, agent);
        if self.plant == Some(Plant::EarlyExit) {
            let delay = self.rng.between(5 * SECOND, 40 * SECOND);
            self.queue.after_ms(delay, Happening::ShimLeaves(attempt));
            if let Some(bundle) = self.bundles.get_mut(&attempt) {
                bundle.ended = Some(Exit { code: Some(0), ..Exit::default() });
            }
        }
        // Long enough for the record to reach the coordinator before the agent's first word.
        let first = self.rng.between(40, 200);
        self.plan_step(attempt, first);
        if stopping {
            self.queue.after_ms(0, Happening::Rung(attempt, 0));
        }
    }

    /// A coordinator's thread starts to give a stop order; it waits for a launch of its own that is in progress.
    pub fn order_stop(&mut self, attempt: AttemptId, at_once: bool) {
        if self.refuses_or(Plant::StopUngiven, "stop refused") {
            self.say(format_args!("no room to stop attempt {attempt}"));
            if let (Some(Plant::StopUngiven), Some(bundle)) = (self.plant, self.bundles.get_mut(&attempt)) {
                bundle.taken_for_stopped = true;
                self.ring(0, Bell::Look(attempt));
            }
            return;
        }
        let (delay, number) = (self.rng.between(1, 20), self.coordinator.number);
        self.queue.after_ms(delay, Happening::OrderGiven(number, attempt, at_once, 0));
    }

    /// The stopping thread connects to the shim.
    pub fn give_order(&mut self, number: u32, attempt: AttemptId, at_once: bool, tries: u32) {
        if self.coordinator.launching.contains(&attempt) {
            self.queue.after_ms(5, Happening::OrderGiven(number, attempt, at_once, tries));
            return;
        }
        let now = self.queue.now_ms();
        let Some(bundle) = self.bundles.get_mut(&attempt).filter(|bundle| bundle.shim_alive) else {
            return self.ring(0, Bell::Look(attempt));
        };
        if bundle.deaf_until_ms > now {
            let next = tries + 1;
            if next < ORDER_TRIES {
                self.queue.after_ms(ORDER_BUDGET_MS, Happening::OrderGiven(number, attempt, at_once, next));
            } else {
                self.ring(ORDER_BUDGET_MS, Bell::Look(attempt));
            }
            return;
        }
        if at_once {
            bundle.stopping = true;
            self.leader_ends(attempt, Exit { signal: Some(9), ..Exit::default() });
        } else if !bundle.stopping {
            bundle.stopping = true;
            if bundle.stage == Stage::Recorded {
                self.queue.after_ms(0, Happening::Rung(attempt, 0));
            }
        }
    }

    /// The shim takes a rung: asks, asks harder, ends.
    pub fn rung(&mut self, attempt: AttemptId, rung: u32) {
        let grace = self.setting.limits.stop_grace_ms;
        let Some(bundle) = self.bundles.get(&attempt).filter(|bundle| bundle.shim_alive && bundle.leader_alive) else {
            return;
        };
        let deaf = bundle.deaf_until_ms;
        let now = self.queue.now_ms();
        if deaf > now {
            self.queue.after_ms(deaf - now, Happening::Rung(attempt, rung));
            return;
        }
        if rung >= 2 {
            return self.leader_ends(attempt, Exit { signal: Some(9), ..Exit::default() });
        }
        self.asked_to_leave(attempt, rung);
        self.queue.after_ms(grace, Happening::Rung(attempt, rung + 1));
    }

    /// The agent's own process is gone. Its shim, if it lives, sweeps the tree and leaves a record.
    pub fn leader_ends(&mut self, attempt: AttemptId, exit: Exit) {
        let now = self.queue.now_ms();
        if let Some(agent) = self.agents.get_mut(&attempt) {
            agent.dies();
        }
        if !self.quiet && self.rng.chance(15) {
            let delay = self.rng.between(100, 40 * SECOND);
            self.queue.after_ms(delay, Happening::LateReport(attempt));
        }
        let late = !self.quiet && self.rng.chance(5);
        let delay = if late { self.rng.between(100, 20_000) } else { self.rng.between(1, 20) };
        let Some(bundle) = self.bundles.get_mut(&attempt) else { return };
        bundle.leader_alive = false;
        if !bundle.shim_alive || bundle.ended.is_some() {
            return;
        }
        let by_itself = exit.start_error.is_none() && !bundle.stopping;
        bundle.ended = Some(Exit { by_itself, ..exit });
        let deaf = bundle.deaf_until_ms.saturating_sub(now);
        self.queue.after_ms(deaf + delay, Happening::ShimLeaves(attempt));
    }

    /// The shim sweeps what is left, writes its exit record and exits.
    pub fn shim_leaves(&mut self, attempt: AttemptId) {
        let killpg_only = self.plant == Some(Plant::KillpgOnly);
        let Some(bundle) = self.bundles.get_mut(&attempt) else { return };
        if !bundle.shim_alive {
            return;
        }
        if !killpg_only {
            bundle.children = 0;
        }
        bundle.exit.clone_from(&bundle.ended);
        bundle.shim_alive = false;
        self.say(format_args!("attempt {attempt} left its exit record"));
        let times = if !self.quiet && self.rng.chance(8) { 2 } else { 1 };
        for _ in 0..times {
            let delay = self.rng.between(0, 30);
            self.ring(delay, Bell::Ended(attempt));
        }
    }

    /// `kill -9` of a shim: its agent lives on, and no record is written.
    pub fn kill_shim(&mut self, attempt: AttemptId) {
        let Some(bundle) = self.bundles.get_mut(&attempt).filter(|bundle| bundle.shim_alive) else { return };
        bundle.shim_alive = false;
        self.say(format_args!("shim of attempt {attempt} is killed"));
        let delay = self.rng.between(0, 30);
        self.ring(delay, Bell::Ended(attempt));
    }

    /// The result of probing a bundle; also ends what a dead shim left.
    pub fn probe(&mut self, attempt: AttemptId) -> Found {
        let now = self.queue.now_ms();
        if let Some(unknown) = self.look_refused() {
            self.say(format_args!("attempt {attempt} cannot be looked at"));
            return unknown;
        }
        if self.bundles.get(&attempt).is_some_and(|found| found.stage == Stage::Spawned && found.deaf_until_ms <= now) {
            // A probe waits for a shim that is still starting.
            self.recorded(attempt);
        }
        let boot = self.machine.boot;
        if self.coordinator.launching.contains(&attempt) {
            // A thread is about to start it.
            return Found::Unresponsive;
        }
        let Some(bundle) = self.bundles.get_mut(&attempt) else { return Found::NeverStarted };
        let found = if bundle.taken_for_stopped {
            Found::Lost
        } else if let Some(exit) = &bundle.exit {
            Found::Finished(exit.clone())
        } else if bundle.shim_alive {
            let (pid, shim_pid) = Bundle::pids(attempt);
            if bundle.deaf_until_ms > now { Found::Unresponsive } else { Found::Alive { pid, shim_pid } }
        } else if bundle.stage < Stage::Recorded {
            Found::NeverStarted
        } else if bundle.boot != boot {
            Found::HostLost
        } else {
            bundle.leader_alive = false;
            if self.plant != Some(Plant::KillpgOnly) {
                bundle.children = 0;
            }
            if let Some(agent) = self.agents.get_mut(&attempt) {
                agent.dies();
            }
            Found::Lost
        };
        self.say(format_args!("attempt {attempt} is found {found:?}"));
        found
    }

    /// The watch adds a bundle: what happened before is reported at once.
    pub fn watch(&mut self, attempt: AttemptId) {
        if !self.coordinator.watched.insert(attempt) {
            // The last report about it could not be acted on: it is reported again.
            if self.bundles.get(&attempt).is_none_or(|bundle| bundle.exit.is_some() || !bundle.shim_alive) {
                self.ring(POLL_MS, Bell::Ended(attempt));
            }
            return;
        }
        self.adopted_unwatched(attempt);
        let Some(bundle) = self.bundles.get(&attempt) else { return };
        let (recorded, grown, gone) = (
            bundle.stage == Stage::Recorded,
            !bundle.out.is_empty() || !bundle.err.is_empty(),
            bundle.exit.is_some() || !bundle.shim_alive,
        );
        if grown {
            self.ring(1, Bell::Grew(attempt));
        }
        if recorded {
            self.ring(1, Bell::Started(attempt));
        }
        if gone {
            self.ring(2, Bell::Ended(attempt));
        }
    }

    /// An agent writes to a stream.
    pub fn write(&mut self, attempt: AttemptId, stream: Stream, bytes: &[u8]) {
        let now = self.queue.now_ms();
        let Some(bundle) = self.bundles.get_mut(&attempt) else { return };
        match stream {
            Stream::Out | Stream::Transcript => bundle.out.extend_from_slice(bytes),
            Stream::Err => bundle.err.extend_from_slice(bytes),
        }
        bundle.active_ms = now;
        if self.coordinator.watched.contains(&attempt) && self.coordinator.told.insert(attempt) {
            let delay = self.rng.between(0, 10);
            self.ring(delay, Bell::Grew(attempt));
        }
    }
}
