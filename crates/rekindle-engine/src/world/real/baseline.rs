//! The results of a task's checks before any work on it. They run in the task's own workspace and not in a copy of it: files
//! that git ignores, such as installed packages, are part of what they need, and a check that fails only for lack of them
//! proves nothing.

use std::path::Path;

use rekindle_core::ids::AttemptId;
use rekindle_core::report::Baseline;
use rekindle_core::text;

use super::{Shared, checks, disk};
use crate::git::Beside;
use crate::world::CheckOrder;
use crate::world::Message;

/// Time for all checks of an attempt together before its agent is started: enough for a check that fails at once because
/// nothing is there yet, little compared to the work of an agent. The result of a check that takes longer is unknown.
const BUDGET_MS: u64 = 30_000;

/// A shell's exit codes for a command that cannot be run or does not exist: they show nothing about the work.
const NOT_RUN: [i32; 2] = [126, 127];

/// Longest name of a check: the plan has the whole command.
const NAME_BYTES: usize = 200;

/// Runs the checks of tasks and reports their results, in order.
pub(super) fn take(shared: &Shared, attempt: AttemptId, orders: &[CheckOrder]) {
    let mut left_ms = BUDGET_MS;
    for order in orders {
        let baseline = match shared.standing_place(order.workspace.as_deref()) {
            Ok(dir) => {
                let before = shared.untracked(order);
                let seen = look(shared, order, &dir, &mut left_ms);
                shared.made_by_checks(order, before.as_ref(), Beside::Nobody);
                seen
            }
            Err(reason) => Baseline { failed: None, unknown: Some(reason) },
        };
        let _leaving = shared.messages.send(Message::BaselineSeen { attempt, task: order.task.clone(), baseline });
    }
}

/// Checks for artifacts first, which costs nothing, then runs commands until one fails.
fn look(shared: &Shared, order: &CheckOrder, dir: &Path, left_ms: &mut u64) -> Baseline {
    let named = |what: &str| Some(text::one_line(what, NAME_BYTES));
    if let Some(missing) = disk::missing(dir, &order.artifacts).first() {
        return Baseline { failed: named(missing), unknown: None };
    }
    for (environment, command) in checks::matrix(order) {
        if *left_ms == 0 {
            return Baseline { failed: None, unknown: named(&format!("no time was left for `{command}`")) };
        }
        let check = match checks::run_before(shared, order, dir, (environment, command), *left_ms) {
            Ok(check) => check,
            Err(refusal) => return Baseline { failed: None, unknown: named(&refusal.reason) },
        };
        *left_ms = left_ms.saturating_sub(check.took_ms);
        match check {
            check if check.passed => {}
            check if check.code.is_some_and(|code| !NOT_RUN.contains(&code)) && !check.timed_out => {
                return Baseline { failed: named(&format!("`{command}`")), unknown: None };
            }
            _ => {
                let why = format!("`{command}` took too long or could not be run");
                return Baseline { failed: None, unknown: named(&why) };
            }
        }
    }
    Baseline::default()
}
