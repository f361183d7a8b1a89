//! The setting of a story, drawn from its seed: a plan in the product's own format, the limits, how long faults last.

use rekindle_core::budget::{Allowance, Budgets};
use rekindle_core::ids::TaskId;
use rekindle_core::limits::{Limits, Traits, UsageLimits};
use rekindle_core::plan::{self, Plan};
use rekindle_core::role::Role;

use super::rng::Rng;

/// A second in milliseconds.
pub const SECOND: u64 = 1_000;

/// A minute in milliseconds.
pub const MINUTE: u64 = 60 * SECOND;

/// The setting of a story.
#[derive(Clone, Debug)]
pub struct Setting {
    pub plan: Plan,
    pub limits: Limits,
    /// When faults stop and agents become good.
    pub quiet_at_ms: u64,
    /// Percent of agents that cause trouble.
    pub trouble: u64,
    /// Mean time between two faults.
    pub fault_every_ms: u64,
    /// Questions are never answered.
    pub mute: bool,
}

impl Setting {
    /// Draws a setting.
    pub fn draw(rng: &mut Rng) -> Self {
        let plan = draw_plan(rng);
        let limits = draw_limits(rng);
        let mut setting = Self {
            plan,
            limits,
            quiet_at_ms: rng.between(20 * SECOND, 12 * MINUTE),
            trouble: rng.between(10, 80),
            fault_every_ms: rng.between(2 * SECOND, MINUTE),
            mute: rng.chance(4),
        };
        // Made of what was drawn, so that stories without budgets stay as they were.
        setting.limits.budget = budgets(setting.quiet_at_ms, &setting.limits);
        setting
    }
}

/// The mark on the disk that a task's work was really done; checks look for it.
pub fn mark_of(task: &TaskId) -> String {
    format!("work/{task}")
}

/// The mark of work that was made while a stricter check was required.
pub fn strict_mark_of(task: &TaskId) -> String {
    format!("strict/{task}")
}

fn draw_limits(rng: &mut Rng) -> Limits {
    let mut limits = Limits {
        max_agents: u32::try_from(rng.between(1, 6)).unwrap_or(1),
        attempts: u32::try_from(rng.between(1, 4)).unwrap_or(1),
        backoff_ms: rng.between(0, 5 * SECOND),
        recover: !rng.chance(4),
        after_result_ms: rng.between(2 * SECOND, 30 * SECOND),
        silence_ms: rng.between(30 * SECOND, 3 * MINUTE),
        stop_grace_ms: rng.between(200, 5 * SECOND),
        no_wait: rng.chance(8),
        first_event_ms: rng.between(10 * SECOND, MINUTE),
        usage: UsageLimits {
            default_wait_ms: rng.between(10 * SECOND, 5 * MINUTE),
            grace_ms: rng.between(SECOND, 6 * MINUTE),
            asks: rng.chance(25),
            ..UsageLimits::default()
        },
        worktrees: rng.chance(35),
        validation_window_ms: [0, rng.between(SECOND, 20 * MINUTE)][rng.index(2)],
        ..Limits::default()
    };
    limits.preflight = limits.worktrees && limits.backoff_ms.is_multiple_of(2);
    limits.compaction.hand_over_after = u32::try_from(rng.between(1, 4)).unwrap_or(1);
    if rng.chance(55) {
        draw_tellers(rng, &mut limits);
    }
    if rng.chance(30) {
        limits.usage.agents = limits.clis.iter().filter(|_| rng.chance(60)).cloned().collect();
    }
    for role in Role::ALL {
        limits.timeout_ms.insert(role, rng.between(MINUTE, 8 * MINUTE));
    }
    limits
}

/// Budgets that a story reaches, if its agents report their usage; every third story has some.
fn budgets(by: u64, limits: &Limits) -> Budgets {
    if limits.traits.is_empty() || !by.is_multiple_of(3) {
        return Budgets::default();
    }
    let tokens = |tokens: u64| Allowance { tokens: Some(tokens), ..Allowance::default() };
    let (task, run, day) = (tokens(300 + by % 700), tokens(500 + by % 4_000), tokens(900 + by % 6_000));
    match by / 3 % 4 {
        0 => Budgets { run, ..Budgets::default() },
        1 => Budgets { task, ..Budgets::default() },
        2 => Budgets { day, ..Budgets::default() },
        _ => Budgets { task, run, day },
    }
}

/// Agents with structured output, perhaps with others that stand in for them.
fn draw_tellers(rng: &mut Rng, limits: &mut Limits) {
    let mut traits = |account: &str| Traits {
        account: account.to_owned(),
        structured_output: true,
        resumes: rng.chance(70),
        takes_messages: rng.chance(60),
        compacts: rng.chance(70),
        reinjects: rng.chance(40),
        ..Traits::new("teller")
    };
    let (mut own, second) = (traits("first"), traits("second"));
    limits.clis = vec![limits.default_cli.clone()];
    if rng.chance(25) {
        own.fallback = Some("other".to_owned());
        limits.clis.push("other".to_owned());
        if rng.chance(60) {
            limits.traits.insert("other".to_owned(), second);
        }
    }
    limits.traits.insert(limits.default_cli.clone(), own);
}

fn draw_plan(rng: &mut Rng) -> Plan {
    let text = draw_text(rng);
    let parsed = plan::parse("story", text.as_bytes());
    match parsed.plan {
        Some(plan) => plan,
        None => panic!("the simulator drew a plan that is none: {:?}\n{text}", parsed.problems),
    }
}

fn draw_text(rng: &mut Rng) -> String {
    // Now and then a plan is long: that shows what grows with the number of ended tasks.
    let (least, most) = [(4, 10), (11, 26), (50, 100)][rng.weighted(&[74, 24, 2])];
    let tasks = rng.between(least, most);
    let waves = if rng.chance(40) { rng.between(2, 4) } else { 0 };
    let named = rng.between(0, 3);
    let mut text = format!("---\nplan: story\n{}---\n# Story\n\nA story for agents.\n", draw_protocol(rng));
    let mut wave = 0;
    for number in 1..=tasks {
        if waves > 0 && (number - 1) * waves / tasks >= wave {
            wave += 1;
            text.push_str(&format!("\n## Wave {wave}\n"));
        }
        text.push_str(&format!("\n### T{number}: step {number}\n"));
        let blockers = draw_blockers(rng, number);
        if !blockers.is_empty() {
            text.push_str(&format!("- blocked by: {}\n", blockers.join(", ")));
        }
        if named > 0 && rng.chance(35) {
            text.push_str(&format!("- agent: worker{}\n", rng.between(1, named)));
        }
        text.push_str(&draw_proof(rng, number, tasks));
        if rng.chance(20) {
            text.push_str(&format!("- attempts: {}\n", rng.between(1, 4)));
        }
        if rng.chance(15) {
            text.push_str(&format!("- timeout: {}s\n", rng.between(30, 300)));
        }
        text.push_str(&format!("\nDo step {number}.\n"));
    }
    text
}

/// Which reviewers there are, where checks run, and which health commands must pass.
fn draw_protocol(rng: &mut Rng) -> String {
    let mut text = String::new();
    match rng.weighted(&[40, 15, 15, 30]) {
        0 => {}
        1 => text.push_str("review: [critic]\n"),
        2 => text.push_str("review: [auditor]\n"),
        _ => text.push_str("review: [critic, auditor]\n"),
    }
    if rng.chance(25) {
        text.push_str("environments: [here, there]\n");
    }
    if rng.chance(30) {
        text.push_str("health: [lint it, test it]\n");
    }
    text
}

fn draw_blockers(rng: &mut Rng, number: u64) -> Vec<String> {
    let wanted = [0, 0, 1, 1, 2, 3][rng.index(6)].min(number - 1);
    let mut blockers: Vec<u64> =
        (0..wanted).map(|_| rng.between(number.saturating_sub(8).max(1), number - 1)).collect();
    blockers.sort_unstable();
    blockers.dedup();
    blockers.iter().map(|blocker| format!("T{blocker}")).collect()
}

/// Artifacts of its own, artifacts that others claim too, a check, both, or nothing at all.
fn draw_proof(rng: &mut Rng, number: u64, tasks: u64) -> String {
    let mut text = String::new();
    let kind = rng.weighted(&[35, 25, 25, 8]);
    if kind == 0 || kind == 2 {
        let mut paths = vec![format!("out/{number}.txt")];
        if rng.chance(30) {
            paths.push(format!("shared/{}.txt", rng.below(tasks / 5 + 1)));
        }
        text.push_str(&format!("- artifacts: {}\n", paths.join(", ")));
    }
    if kind == 1 || kind == 2 {
        text.push_str(&format!("- accept: `check T{number}`\n"));
    }
    text
}
