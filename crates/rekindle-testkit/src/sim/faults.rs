//! What breaks, and when: drawn one after the other until the story becomes quiet.

use std::sync::atomic::Ordering;

use rekindle_core::ids::AttemptId;
use rekindle_core::report::Exit;
use rekindle_engine::store::memory;

use super::checkers::Sleep;
use super::story::{MINUTE, SECOND};
use super::world::{Happening, Sim};

/// Where a coordinator dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// Between two messages.
    Idle,
    /// Before its next append is durable.
    BeforeAppend,
    /// After its next append is durable, before it knows.
    AfterAppend,
    /// At a call to the outside, this many calls from now.
    AtWorldCall {
        /// Calls that still succeed.
        left: u32,
    },
}

/// The panic payload that unwinds a coordinator killed in the middle of something.
#[derive(Debug)]
pub struct Killed;

/// Something that breaks.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// `kill -9` of the coordinator.
    Coordinator(Kill),
    /// `kill -9` of a shim.
    Shim,
    /// `kill -9` of an agent.
    Agent,
    /// `kill -9` of a shim and of its agent.
    ShimAndAgent,
    /// A shim does not answer for a while.
    Deaf,
    /// Something is deleted from the workspace.
    Deleted,
    /// The machine sleeps.
    Asleep,
    /// The machine is restarted.
    Reboot,
    /// The wall clock is set.
    WallClock,
    /// The store refuses some appends and reads: no space, a lock, an error of its disk, a batch that is too large.
    Full,
    /// The watch reports a false end.
    FalseBell,
    /// A report comes with the token of an earlier attempt.
    Late,
    /// The machine is short of something, or no longer is.
    Short,
    /// One of the plan's health commands starts to fail or recovers on its own.
    Sick,
    /// The plan's file is edited, removed, or put back.
    PlanFile,
    /// Processes cannot be inspected for a while.
    Blind,
    /// The kernel kills an agent for lack of memory.
    OutOfMemory,
}

impl Sim {
    /// Draws the next fault and plans the one after it.
    pub fn draw_fault(&mut self) {
        if self.quiet {
            return;
        }
        let fault = match self.rng.weighted(&[18, 12, 12, 18, 10, 8, 4, 8, 8, 6, 3, 5, 12, 6, 14, 6, 5, 3, 5, 6]) {
            0 => Fault::Coordinator(Kill::Idle),
            1 => Fault::Coordinator(Kill::BeforeAppend),
            2 => Fault::Coordinator(Kill::AfterAppend),
            3 => Fault::Coordinator(Kill::AtWorldCall { left: u32::try_from(self.rng.below(12)).unwrap_or(0) }),
            4 => Fault::Shim,
            5 => Fault::Agent,
            6 => Fault::ShimAndAgent,
            7 => Fault::Deaf,
            8 => Fault::Deleted,
            9 => Fault::Asleep,
            10 => Fault::Reboot,
            11 => Fault::WallClock,
            12 => Fault::Full,
            13 => Fault::FalseBell,
            14 => Fault::Late,
            15 => Fault::Short,
            16 => Fault::Sick,
            17 => Fault::PlanFile,
            18 => Fault::Blind,
            _ => Fault::OutOfMemory,
        };
        self.queue.after_ms(0, Happening::Breaks(fault));
        let every = self.setting.fault_every_ms;
        let delay = self.rng.between(100, 2 * every);
        self.queue.after_ms(delay, Happening::FaultDue);
    }

    /// Breaks something. Returns whether that killed the coordinator.
    pub fn breaks(&mut self, fault: Fault) -> bool {
        if self.quiet {
            return false;
        }
        self.say(format_args!("FAULT {fault:?}"));
        match fault {
            Fault::Coordinator(kill) => return self.strike_coordinator(kill),
            Fault::Reboot => {
                self.reboot();
                return self.coordinator.up;
            }
            Fault::Shim | Fault::Agent | Fault::ShimAndAgent | Fault::Deaf | Fault::FalseBell | Fault::OutOfMemory => {
                if let Some(attempt) = self.draw_living() {
                    self.break_attempt(fault, attempt);
                }
            }
            Fault::Deleted => {
                let paths: Vec<String> = self.disk.iter().cloned().collect();
                if let Some(path) = self.rng.pick(&paths) {
                    self.disk.remove(path);
                    self.trace.say(self.queue.now_ms(), format_args!("{path} is deleted"));
                }
            }
            Fault::Asleep => {
                let ms = self.rng.between(MINUTE, 600 * MINUTE);
                self.queue.suspend(ms);
                self.machine.sleep(ms);
                let until_ms = self.queue.now_ms();
                self.checkers.truth.sleeps.push(Sleep { until_ms, ms });
            }
            Fault::WallClock => {
                let shift = self.draw_shift();
                self.machine.set_wall(shift);
            }
            Fault::Full => self.store_refuses(),
            Fault::Blind => {
                self.blind_until_ms = self.queue.now_ms() + self.rng.between(MINUTE, 20 * MINUTE);
            }
            Fault::PlanFile => {
                let hash = self.setting.plan.hash.clone();
                self.plan_file = [None, Some("edited".to_owned()), Some(hash)][self.rng.index(3)].clone();
            }
            Fault::Short => self.short = !self.short,
            Fault::Sick => {
                let drawn = self.rng.pick(&self.setting.plan.settings.health).cloned();
                if let Some(command) = drawn.filter(|command| !self.sick.remove(command)) {
                    self.sick.insert(command);
                }
            }
            Fault::Late => {
                if let Some(attempt) = self.draw_late() {
                    self.late_report(attempt);
                }
            }
        }
        false
    }

    /// Some of the next appends and reads are refused.
    fn store_refuses(&mut self) {
        for _ in 0..self.rng.between(1, 4) {
            let drawn = match self.rng.weighted(&[60, 20, 18, 2]) {
                0 => memory::Fault::Full,
                1 => memory::Fault::Busy,
                2 => memory::Fault::Io,
                _ => memory::Fault::TooLarge,
            };
            self.count(match drawn {
                memory::Fault::Busy => "store busy",
                memory::Fault::Io => "store i/o error",
                memory::Fault::TooLarge => "batch too large",
                _ => "store full",
            });
            self.durable.inject(drawn);
        }
        self.reads_refused.store(self.rng.below(3), Ordering::Relaxed);
    }

    fn strike_coordinator(&mut self, kill: Kill) -> bool {
        match kill {
            Kill::Idle => return self.coordinator.up,
            Kill::BeforeAppend => self.durable.inject(memory::Fault::CrashBeforeCommit),
            Kill::AfterAppend => self.durable.inject(memory::Fault::CrashAfterCommit),
            Kill::AtWorldCall { .. } => self.coordinator.kill = Some(kill),
        }
        false
    }

    fn draw_living(&mut self) -> Option<AttemptId> {
        let living: Vec<AttemptId> =
            self.bundles.iter().filter(|(_, bundle)| bundle.shim_alive).map(|(id, _)| *id).collect();
        self.rng.pick(&living).copied()
    }

    /// The attempt whose token is used late: one that was replaced by another of its role, if there is one, else any.
    fn draw_late(&mut self) -> Option<AttemptId> {
        let state = &self.checkers.replayed;
        let replaced = |id: &AttemptId| {
            let before = state.attempts.get(id)?;
            let holder = state.tasks.get(before.tasks.first()?)?.holder.filter(|holder| holder != id)?;
            (state.attempts.get(&holder)?.role == before.role).then_some(())
        };
        let replaced: Vec<AttemptId> = self.bundles.keys().filter(|id| replaced(id).is_some()).copied().collect();
        // Of those, reviewers are rare and their verdicts weigh most.
        let reviews = |id: &&AttemptId| self.bundles.get(id).is_some_and(|bundle| bundle.role.reviews());
        let reviewers: Vec<AttemptId> = replaced.iter().filter(reviews).copied().collect();
        let all = self.bundles.keys().copied().collect();
        let drawn = [reviewers, replaced, all].into_iter().find(|some| !some.is_empty())?;
        self.rng.pick(&drawn).copied()
    }

    fn break_attempt(&mut self, fault: Fault, attempt: AttemptId) {
        let killed = Exit { signal: Some(9), ..Exit::default() };
        match fault {
            Fault::Shim => self.kill_shim(attempt),
            Fault::ShimAndAgent => {
                self.kill_shim(attempt);
                self.leader_ends(attempt, killed);
            }
            Fault::Agent => self.leader_ends(attempt, killed),
            Fault::OutOfMemory => self.killed_for_memory(attempt),
            Fault::FalseBell => self.ring(0, super::world::Bell::Ended(attempt)),
            _ => {
                let until = self.queue.now_ms() + self.rng.between(SECOND, 4 * MINUTE);
                if let Some(bundle) = self.bundles.get_mut(&attempt) {
                    bundle.deaf_until_ms = until;
                }
            }
        }
    }

    fn draw_shift(&mut self) -> i64 {
        let hours = i64::try_from(self.rng.below(9)).unwrap_or(0) - 4;
        hours * 3_600_000 + 17
    }

    /// Everything on the machine is gone; what is on disk stays.
    fn reboot(&mut self) {
        let shift = self.draw_shift();
        self.machine.reboot(self.queue.now_ms(), shift);
        for pid in self.person.rebooted() {
            self.must_be_heard_of(pid);
        }
        for agent in self.agents.values_mut() {
            agent.dies();
        }
        for bundle in self.bundles.values_mut() {
            bundle.shim_alive = false;
            bundle.leader_alive = false;
            bundle.children = 0;
        }
    }
}
