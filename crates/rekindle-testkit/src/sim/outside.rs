//! What a coordinator asks of the world besides processes: checks, merges, health commands, the user's own command for the
//! allowance, a machine that is short of something. Some of it is slow, some differs, some is answered twice.

use rekindle_core::event::UsageLeft;
use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_core::input::{MergeOutcome, PreflightTried};
use rekindle_core::preflight::TryCheck;
use rekindle_core::report::{Baseline, CheckResult, Evidence, HealthResult};
use rekindle_engine::driver::Message;
use rekindle_engine::world::{CheckOrder, MergeOrder};

use super::changes::STRICT;
use super::checkers::Invariant;
use super::plant::Plant;
use super::story::{MINUTE, SECOND, mark_of, strict_mark_of};
use super::world::{Happening, Sim};

/// A request of a coordinator that the log has not answered yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    /// The checks of a claim.
    Checks(TaskId, Epoch),
    Merge(TaskId, Epoch),
    /// The health commands.
    Health,
    /// The user's command.
    Usage,
    /// The pre-flight.
    Preflight,
}

impl Sim {
    /// Whether a planted coordinator forgets what it should take up when it starts.
    pub fn forgets(&self) -> bool {
        self.plant == Some(Plant::ForgetOutstanding) && self.coordinator.taking_over
    }

    pub fn begin_checks(&mut self, order: CheckOrder) {
        self.coordinator.asked.insert(Asked::Checks(order.task.clone(), order.epoch));
        if !self.coordinator.under_way.insert(Asked::Checks(order.task.clone(), order.epoch)) {
            return;
        }
        let delay = if self.rng.chance(80) { self.rng.between(5, 2_000) } else { self.rng.between(2_000, 40_000) };
        let number = self.coordinator.number;
        self.queue.after_ms(delay, Happening::Checked(number, order));
    }

    /// Runs the checks of a claim on the disk as it is now.
    pub fn checked(&mut self, mut order: CheckOrder) {
        self.coordinator.under_way.remove(&Asked::Checks(order.task.clone(), order.epoch));
        if self.checks_refused(&order) {
            return;
        }
        let first = || self.setting.plan.task(order.task.as_str()).map(|task| task.accept.clone());
        if let Some(commands) = first().filter(|_| self.plant == Some(Plant::OldChecks)) {
            order.commands = commands;
        }
        self.checkers.truth.changes.run.insert((order.task.clone(), order.epoch), order.commands.clone());
        let missing: Vec<String> = order.artifacts.iter().filter(|path| !self.disk.contains(*path)).cloned().collect();
        let made = order.commands.iter().all(|command| self.is_sound(&order.task, command));
        let flaky = !self.quiet && self.rng.chance(3);
        if missing.is_empty() && made {
            self.checkers.truth.proofs.insert((order.task.clone(), order.epoch));
        }
        let trusted = self.plant == Some(Plant::TrustDone);
        let odd = (!self.quiet && self.rng.chance(20)).then(|| self.rng.pick(&order.environments).cloned()).flatten();
        let mut checks = Vec::new();
        for place in places(&order.environments) {
            let differs = odd.is_some() && odd == place;
            for command in &order.commands {
                let passed = trusted || (self.is_sound(&order.task, command) && !flaky && !differs);
                checks.push(result(command, passed, place.clone()));
            }
        }
        let health = order.health.iter().map(|command| self.health_result(command, trusted));
        let health = health.collect::<Vec<_>>().into_iter().map(|check| HealthResult { check, origin: None }).collect();
        let missing_artifacts = if trusted { Vec::new() } else { missing };
        let evidence = Evidence { checks, missing_artifacts, health };
        self.say(format_args!("checked {} epoch {}: {}", order.task, order.epoch, evidence.complaint()));
        self.deliver(Message::ChecksDone { task: order.task, epoch: order.epoch, evidence });
    }

    /// Runs checks before an attempt starts; now and then one takes too long.
    pub fn take_baselines(&mut self, attempt: AttemptId, orders: Vec<CheckOrder>) {
        for order in orders {
            let missing = order.artifacts.iter().find(|path| !self.disk.contains(*path)).cloned();
            let failing = order.commands.iter().find(|command| !self.is_sound(&order.task, command)).cloned();
            let mut failed = missing.or(failing);
            if failed.is_some() {
                self.checkers.truth.undone.insert((attempt, order.task.clone()));
            }
            let slow = !self.quiet && self.rng.chance(10);
            let unknown = slow.then(|| "it took too long (simulated)".to_owned());
            if slow {
                failed = None;
            }
            if self.plant == Some(Plant::FalseBaseline) {
                failed = Some("a check that passed".to_owned());
            }
            let baseline = Baseline { failed, unknown };
            self.deliver(Message::BaselineSeen { attempt, task: order.task, baseline });
        }
    }

    /// Whether a command would pass now: a health command unless something is broken, any other when its task was made.
    fn is_sound(&self, task: &TaskId, command: &str) -> bool {
        let health = self.setting.plan.settings.health.iter().any(|known| known == command);
        let strict = !command.starts_with(STRICT) || self.disk.contains(&strict_mark_of(task));
        if health { !self.sick.contains(command) } else { strict && self.disk.contains(&mark_of(task)) }
    }

    fn health_result(&mut self, command: &str, trusted: bool) -> CheckResult {
        let cut_off = !self.quiet && self.rng.chance(3);
        let mut seen = result(command, trusted || (!self.sick.contains(command) && !cut_off), None);
        if cut_off && !seen.passed {
            (seen.code, seen.timed_out) = (None, true);
        }
        seen
    }

    pub fn begin_merge(&mut self, order: MergeOrder) {
        self.coordinator.asked.insert(Asked::Merge(order.task.clone(), order.epoch));
        if !self.coordinator.under_way.insert(Asked::Merge(order.task.clone(), order.epoch)) {
            self.checkers.broken(Invariant::Alone, format!("{} is merged twice at a time", order.task));
        }
        let delay =
            if self.rng.chance(80) { self.rng.between(5, 3 * SECOND) } else { self.rng.between(SECOND, MINUTE) };
        let number = self.coordinator.number;
        if self.plant == Some(Plant::MergeAnsweredEarly) {
            self.checkers.truth.merged.insert((order.task.clone(), order.epoch));
            let outcome = MergeOutcome::Merged { commit: None };
            self.deliver(Message::Merged { task: order.task.clone(), epoch: order.epoch, outcome });
        }
        self.merges.push((order.task.clone(), order.epoch, order.workspace.clone()));
        self.queue.after_ms(delay, Happening::Merged(number, order));
    }

    /// A merge has finished. The work of one acceptance is merged once, however often that is asked for.
    pub fn merged(&mut self, order: &MergeOrder) {
        let key = (order.task.clone(), order.epoch);
        self.coordinator.under_way.remove(&Asked::Merge(order.task.clone(), order.epoch));
        let mine = |known: &(TaskId, Epoch, String)| known.0 == key.0 && known.1 == key.1;
        if let Some(at) = self.merges.iter().position(mine) {
            self.merges.remove(at);
        }
        let known = self.checkers.truth.merged.contains(&key);
        let drawn = if self.quiet || known { 0 } else { self.rng.weighted(&[70, 20, 6, 4]) };
        if drawn == 2 {
            self.count("merge refused");
        }
        let outcome = match drawn {
            0 => {
                if self.plant != Some(Plant::SkipMerge) {
                    self.checkers.truth.merged.insert(key.clone());
                }
                let commit = Some(format!("{}-{}", key.0, key.1)).filter(|_| self.rng.chance(80));
                MergeOutcome::Merged { commit }
            }
            1 => MergeOutcome::Conflict { files: vec!["a file".to_owned()], advice: "mind the others".to_owned() },
            2 => MergeOutcome::Failed { reason: "No space left on device (simulated)".to_owned() },
            _ => MergeOutcome::Failed { reason: "the repository is not there (simulated)".to_owned() },
        };
        self.say(format_args!("merged {} epoch {}: {outcome:?}", key.0, key.1));
        let times = if !self.quiet && self.rng.chance(10) { 2 } else { 1 };
        for _ in 0..times {
            self.deliver(Message::Merged { task: key.0.clone(), epoch: key.1, outcome: outcome.clone() });
        }
    }

    pub fn begin_health(&mut self, commands: &[String]) {
        self.coordinator.asked.insert(Asked::Health);
        if !self.coordinator.under_way.insert(Asked::Health) {
            return;
        }
        let (delay, number) = (self.rng.between(5, 20 * SECOND), self.coordinator.number);
        self.queue.after_ms(delay, Happening::HealthSeen(number, commands.to_vec()));
    }

    /// The health commands have finished; now and then that is reported twice.
    pub fn health_seen(&mut self, commands: &[String]) {
        self.coordinator.under_way.remove(&Asked::Health);
        if self.health_refused() {
            return;
        }
        let results: Vec<CheckResult> = commands.iter().map(|command| self.health_result(command, false)).collect();
        self.say(format_args!("health: {:?}", results.iter().map(|seen| seen.passed).collect::<Vec<_>>()));
        let times = if !self.quiet && self.rng.chance(10) { 2 } else { 1 };
        for _ in 0..times {
            self.deliver(Message::HealthChecked { results: results.clone() });
        }
    }

    pub fn begin_preflight(&mut self, tries: Vec<TryCheck>) {
        self.coordinator.asked.insert(Asked::Preflight);
        if !self.coordinator.under_way.insert(Asked::Preflight) {
            return;
        }
        let (delay, number) = (self.rng.between(5, 30 * SECOND), self.coordinator.number);
        self.queue.after_ms(delay, Happening::Flown(number, tries));
    }

    /// The checks of the pre-flight were run: some cannot run, some pass already, and now and then none could be run.
    pub fn flown(&mut self, tries: &[TryCheck]) {
        self.coordinator.under_way.remove(&Asked::Preflight);
        let problem = self.refuses("pre-flight refused").then(|| "no room (simulated)".to_owned());
        let broken = if self.quiet { 0 } else { 10 };
        let mut results = Vec::new();
        for check in tries.iter().filter(|_| problem.is_none()) {
            let code = if self.rng.chance(broken) { 127 } else { i32::from(!self.rng.chance(10)) };
            results.push(CheckResult {
                command: check.command.clone(),
                passed: code == 0,
                code: Some(code),
                timed_out: false,
                output: String::new(),
                took_ms: 5,
                environment: check.environment.clone(),
                kept: None,
            });
        }
        self.say(format_args!("pre-flight: {:?}", results.iter().map(|seen| seen.code).collect::<Vec<_>>()));
        let times = if !self.quiet && self.rng.chance(10) { 2 } else { 1 };
        for _ in 0..times {
            let (results, problem) = (results.clone(), problem.clone());
            self.deliver(Message::Preflight(PreflightTried { results, problem, took_ms: 5 }));
        }
    }

    /// The user's command is started.
    pub fn begin_usage(&mut self) {
        self.coordinator.asked.insert(Asked::Usage);
        let refused = self.refuses_or(Plant::UnaskedAsPlenty, "usage command refused");
        let delay =
            if self.rng.chance(85) { self.rng.between(5, 2 * SECOND) } else { self.rng.between(SECOND, MINUTE) };
        let number = self.coordinator.number;
        // Without a thread to run it, there is no answer.
        self.queue.after_ms(if refused { 0 } else { delay }, Happening::UsageTold(number, refused));
    }

    /// The user's command answers: plenty, hardly anything, or nothing that can be understood.
    pub fn usage_told(&mut self, refused: bool) {
        let now = self.machine.now(self.queue.now_ms());
        if refused {
            let nothing = UsageLeft { remaining_percent: None, resets_at: None };
            self.checkers.truth.usage = Some((now, nothing));
            let plenty = UsageLeft { remaining_percent: Some(100), resets_at: None };
            let told = if self.plant == Some(Plant::UnaskedAsPlenty) { plenty } else { nothing };
            return self.deliver(Message::UsageSeen(told));
        }
        let drawn = if self.quiet { 0 } else { self.rng.weighted(&[60, 20, 8, 12]) };
        let low = u8::try_from(self.rng.below(u64::from(self.setting.limits.usage.threshold_percent) + 1)).unwrap_or(0);
        let left = match drawn {
            0 => UsageLeft { remaining_percent: Some(80), resets_at: None },
            1 => {
                let wall = self.machine.wall(self.queue.now_ms());
                let reset = wall.plus_ms(self.rng.between(SECOND, 10 * MINUTE));
                UsageLeft { remaining_percent: Some(low), resets_at: Some(reset) }
            }
            2 => UsageLeft { remaining_percent: Some(low), resets_at: None },
            _ => UsageLeft { remaining_percent: None, resets_at: None },
        };
        self.say(format_args!("usage: {left:?}"));
        self.checkers.truth.usage = Some((now, left));
        let times = if !self.quiet && self.rng.chance(10) { 2 } else { 1 };
        for _ in 0..times {
            self.deliver(Message::UsageSeen(left));
        }
    }
}

fn places(environments: &[String]) -> Vec<Option<String>> {
    if environments.is_empty() { vec![None] } else { environments.iter().cloned().map(Some).collect() }
}

fn result(command: &str, passed: bool, environment: Option<String>) -> CheckResult {
    CheckResult {
        command: command.to_owned(),
        passed,
        code: Some(i32::from(!passed)),
        timed_out: false,
        output: "looked".to_owned(),
        kept: None,
        took_ms: 1,
        environment,
    }
}
