//! A machine that refuses: what it lacks resources for, what cannot be watched, inspected or read for a while. Drawn at the
//! calls themselves, until the story becomes quiet.

use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_core::input::{Found, Refused};
use rekindle_core::refusal::Refusal;
use rekindle_core::report::{CheckResult, Evidence, Exit};
use rekindle_engine::driver::Message;
use rekindle_engine::world::{Admission, CheckOrder};

use super::outside::Asked;
use super::plant::Plant;
use super::world::{Bell, Sim};

/// How often a call is refused, in percent.
const REFUSED_PERCENT: u64 = 3;

/// How often, in percent, if a bug is planted that only a refusal shows.
const PLANTED_PERCENT: u64 = 50;

/// How often the output of an agent that has ended cannot be read, in percent: its last output matters most, and is read
/// once.
const LAST_READ_PERCENT: u64 = 50;

/// The cap of an agent that is killed for reaching one.
const CAP_BYTES: u64 = 1 << 30;

/// How much later the watch reports what the system does not watch for it.
pub const POLL_MS: u64 = 250;

/// The machine's refusal.
pub fn refusal() -> Refusal {
    Refusal { reason: "no room (simulated)".to_owned(), hint: "make room".to_owned() }
}

impl Sim {
    /// Whether the machine lacks the resources for something.
    pub fn refuses(&mut self, what: &'static str) -> bool {
        let refused = !self.quiet && self.rng.chance(REFUSED_PERCENT);
        if refused {
            self.count(what);
        }
        refused
    }

    /// The same for calls that are so rare that only more refusals show a planted bug.
    pub fn refuses_or(&mut self, plant: Plant, what: &'static str) -> bool {
        if self.plant != Some(plant) {
            return self.refuses(what);
        }
        !self.quiet && self.rng.chance(PLANTED_PERCENT)
    }

    /// Whether the order to launch is refused before anything is started.
    pub fn launch_taken(&mut self, attempt: AttemptId) -> Admission {
        if !self.refuses("launch refused") {
            return Admission::Yes;
        }
        self.say(format_args!("no room to launch attempt {attempt}"));
        self.checkers.truth.machine.attempts.insert(attempt);
        Admission::Refused(refusal())
    }

    /// Whether a launching thread lacks the resources for a bundle. Reported truthfully, unless a bug is planted.
    pub fn bundle_refused(&mut self, attempt: AttemptId) -> bool {
        if !self.refuses("bundle refused") {
            return false;
        }
        self.checkers.truth.machine.attempts.insert(attempt);
        self.bundles.remove(&attempt);
        self.coordinator.launching.remove(&attempt);
        let plain = self.plant == Some(Plant::RefusalAsFailure);
        self.ring(0, if plain { Bell::NotStarted(attempt) } else { Bell::Refused(attempt) });
        true
    }

    /// Whether the worktree of a launch cannot be set up. Reported truthfully, unless a bug is planted.
    pub fn set_up_failed(&mut self, attempt: AttemptId) -> bool {
        let apart = self.setting.limits.worktrees && !self.checkers.replayed.preparing.without;
        if !apart || !self.refuses_or(Plant::SetupAsFailure, "set-up failed") {
            return false;
        }
        self.checkers.truth.not_set_up.insert(attempt);
        self.checkers.truth.machine.attempts.insert(attempt);
        self.bundles.remove(&attempt);
        self.coordinator.launching.remove(&attempt);
        let plain = self.plant == Some(Plant::SetupAsFailure);
        self.ring(0, if plain { Bell::NotStarted(attempt) } else { Bell::NotSetUp(attempt) });
        true
    }

    /// A live shim cannot be pinned or watched: it is polled instead. The planted bug is an earlier one: to report it as not
    /// started.
    pub fn unwatched(&mut self, attempt: AttemptId) {
        if !self.refuses("watch refused") {
            return;
        }
        self.say(format_args!("attempt {attempt} cannot be watched"));
        self.coordinator.polled.insert(attempt);
        if self.plant == Some(Plant::UnknownAsRefused) {
            self.coordinator.watched.remove(&attempt);
            self.ring(1, Bell::NotStarted(attempt));
        }
    }

    /// An agent that was found alive cannot be watched either.
    pub fn adopted_unwatched(&mut self, attempt: AttemptId) {
        if self.refuses("watch of an adopted one refused") {
            self.coordinator.polled.insert(attempt);
        }
    }

    /// Whether there is no thread for checks that are not in progress; none of them is started.
    pub fn checks_taken(&mut self, order: &CheckOrder) -> Admission {
        let key = (order.task.clone(), order.epoch);
        if self.coordinator.under_way.contains(&Asked::Checks(key.0.clone(), key.1)) || !self.refuses("checks refused")
        {
            return Admission::Yes;
        }
        self.say(format_args!("no room to begin the checks of {} epoch {}", key.0, key.1));
        self.coordinator.asked.insert(Asked::Checks(key.0.clone(), key.1));
        self.checkers.truth.machine.checks.insert(key);
        Admission::Refused(refusal())
    }

    /// Whether there is no thread for the health commands.
    pub fn health_taken(&mut self) -> Admission {
        if self.coordinator.under_way.contains(&Asked::Health) || !self.refuses("health refused") {
            return Admission::Yes;
        }
        self.coordinator.asked.insert(Asked::Health);
        Admission::Refused(refusal())
    }

    /// A probe of a bundle that the machine lacks resources for: nothing is known, so nothing is concluded.
    pub fn look_refused(&mut self) -> Option<Found> {
        let planted = self.plant == Some(Plant::UnknownAsLost);
        let found = if planted { Found::Lost } else { Found::Unresponsive };
        self.refuses_or(Plant::UnknownAsLost, "look refused").then_some(found)
    }

    /// Whether the machine lacks the resources to run checks; a planted bug reports that as their failure.
    pub fn checks_refused(&mut self, order: &CheckOrder) -> bool {
        let key = (order.task.clone(), order.epoch);
        if !self.refuses("checks refused in the middle") {
            self.checkers.truth.machine.checks.remove(&key);
            return self.checks_not_set_up(order);
        }
        self.say(format_args!("no room to check {} epoch {}", order.task, order.epoch));
        self.checkers.truth.machine.checks.insert(key);
        let message = match self.plant {
            Some(Plant::RefusalAsFailure) => failed(order),
            _ => Message::Refused { what: Refused::Checks(order.task.clone(), order.epoch), refusal: refusal() },
        };
        self.deliver(message);
        true
    }

    /// Whether the worktree of a claim cannot be set up; a planted bug takes that for the failure of its checks.
    fn checks_not_set_up(&mut self, order: &CheckOrder) -> bool {
        let apart = self.setting.limits.worktrees && !self.checkers.replayed.preparing.without;
        if !apart || !self.refuses("set-up before checks failed") {
            return false;
        }
        self.checkers.truth.machine.checks.insert((order.task.clone(), order.epoch));
        self.checkers.truth.checks_not_set_up.insert(order.task.clone());
        let (task, epoch, reason) = (order.task.clone(), order.epoch, "npm ci exited with 1 (simulated)".to_owned());
        self.deliver(match self.plant {
            Some(Plant::SetupAsFailure) => failed(order),
            _ => Message::ChecksNotSetUp { task, epoch, reason },
        });
        true
    }

    /// Whether the machine lacks the resources to run the health commands.
    pub fn health_refused(&mut self) -> bool {
        let refused = self.refuses("health refused in the middle");
        if refused {
            self.deliver(Message::Refused { what: Refused::Health, refusal: refusal() });
        }
        refused
    }

    /// Whether a spool cannot be read now. The planted bug treats that as its end.
    pub fn read_refused(&mut self, attempt: AttemptId) -> Option<std::io::Result<()>> {
        let gone = self.bundles.get(&attempt).is_some_and(|bundle| !bundle.shim_alive);
        let percent = if gone { LAST_READ_PERCENT } else { REFUSED_PERCENT };
        let refused = !self.quiet && self.rng.chance(percent);
        if refused {
            self.count(if gone { "last read refused" } else { "read refused" });
        }
        let error = || std::io::Error::other("input/output error (simulated)");
        let end = self.plant == Some(Plant::ErrorAsEnd);
        refused.then(|| if end { Ok(()) } else { Err(error()) })
    }
}

impl Sim {
    /// The kernel kills an agent for lack of memory, of the machine or under a cap. Its shim reports so, unless a bug is
    /// planted.
    pub fn killed_for_memory(&mut self, attempt: AttemptId) {
        let cap = self.rng.chance(50).then_some(CAP_BYTES);
        if self.agents.get(&attempt).is_none_or(|agent| !agent.alive) {
            return;
        }
        self.count(if cap.is_some() { "out of memory under a cap" } else { "out of memory" });
        self.checkers.truth.machine.wants.insert(attempt, cap);
        let told = self.plant != Some(Plant::WantAsCrash);
        let memory_cap = cap.filter(|_| told);
        self.leader_ends(attempt, Exit { signal: Some(9), out_of_memory: told, memory_cap, ..Exit::default() });
    }
}

/// The result that was once reported for checks that were never run.
fn failed(order: &CheckOrder) -> Message {
    let checks = order.commands.iter().map(|command| CheckResult {
        command: command.clone(),
        passed: false,
        code: None,
        timed_out: false,
        output: String::new(),
        took_ms: 0,
        environment: None,
        kept: None,
    });
    let evidence =
        Evidence { checks: checks.collect(), missing_artifacts: order.artifacts.clone(), ..Evidence::default() };
    Message::ChecksDone { task: order.task.clone(), epoch: order.epoch, evidence }
}

/// What the machine really refused.
#[derive(Debug, Default)]
pub struct Refusals {
    /// Attempts that were never started for lack of resources.
    pub attempts: std::collections::BTreeSet<AttemptId>,
    /// Claims whose checks could not be run the last time.
    pub checks: std::collections::BTreeSet<(TaskId, Epoch)>,
    /// Agents that the kernel killed for lack of memory, with the cap that they reached.
    pub wants: std::collections::BTreeMap<AttemptId, Option<u64>>,
}
