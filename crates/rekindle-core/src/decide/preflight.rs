//! The pre-flight: before the first agent starts, every check of the plan is run once in a fresh worktree. A check that
//! cannot run there raises a question, because no agent's work would pass it; a check that passes already is worth a line.

use super::{OpenStep, Reply, session, setup};
use crate::event::{MachineEvent, PauseReason, PreflightCheck, PreflightSeen};
use crate::ids::TaskId;
use crate::input::PreflightTried;
use crate::plan::PlanTask;
use crate::preflight::{self, TryCheck};
use crate::state::{Preflight, State};

/// Maximum number of checks to run: more would take longer than they save.
const CHECKS_MAX: usize = 100;

/// Commands that a question names.
const NAMED_MAX: usize = 5;

/// The answer that leaves the checks as they are.
const GO_ON: &str = "go on anyway";

/// Whether the pre-flight is still open: nothing starts before it has ended.
pub(super) fn is_open(state: &State) -> bool {
    state.preparing.preflight == Preflight::Ordered
}

/// Orders it at the start of a run, and of a run that was stopped to fix its checks. It is not safe in a shared directory: a
/// check may change files that are not rekindle's.
pub(super) fn order(step: &mut OpenStep<'_>) {
    let wanted = step.state.limits.preflight && step.state.limits.worktrees;
    if wanted && !is_open(step.state) && !to_try(step.state).is_empty() {
        step.emit_run(MachineEvent::PreflightOrdered {});
    }
}

/// Every check of open tasks once, in the order of the plan.
pub fn to_try(state: &State) -> Vec<TryCheck> {
    let mut checks = preflight::distinct(open(state).map(|planned| (planned, state.environments_of(planned))));
    checks.truncate(CHECKS_MAX);
    checks
}

fn open(state: &State) -> impl Iterator<Item = &PlanTask> {
    let plan = state.run.iter().flat_map(|run| &run.plan.tasks);
    plan.filter(|planned| state.tasks.get(&planned.id).is_some_and(|task| !task.state.is_terminal()))
}

/// Open tasks that have a check.
fn tasks_with(state: &State, check: &PreflightCheck) -> Vec<TaskId> {
    let has = open(state).filter(|planned| {
        let environments = state.environments_of(planned);
        preflight::matrix(&environments, &planned.accept)
            .any(|(environment, command)| environment == check.environment.as_deref() && command == check.command)
    });
    has.map(|planned| planned.id.clone()).collect()
}

pub(super) fn seen(step: &mut OpenStep<'_>, tried: PreflightTried) -> Reply {
    if !is_open(step.state) {
        return Reply::Already;
    }
    let checks: Vec<PreflightCheck> = tried.results.iter().map(PreflightCheck::of).collect();
    let broken: Vec<&PreflightCheck> =
        checks.iter().filter(|check| check.outcome == preflight::Outcome::CannotRun).collect();
    let mut waiting: Vec<TaskId> = Vec::new();
    for task in broken.iter().flat_map(|check| tasks_with(step.state, check)) {
        if !waiting.contains(&task) {
            waiting.push(task);
        }
    }
    let question = waiting.first().cloned().map(|task| {
        let named = broken.iter().take(NAMED_MAX).map(|check| format!("`{}` ({})", check.command, check.said));
        let text = format!(
            "These checks cannot run in a fresh worktree, so that no work could pass them: {}. Install or bring what they need \
             ([worktree] in rekindle.toml), or change them: rekindle task edit {task} --accept COMMAND. Then answer `{}`.",
            named.collect::<Vec<_>>().join(", "),
            setup::RETRY
        );
        let waits = waiting.iter().map(TaskId::as_str).collect::<Vec<_>>().join(", ");
        let options = vec![setup::RETRY.to_owned(), GO_ON.to_owned(), setup::STOP.to_owned()];
        setup::put(step, None, &task, (text, format!("waiting for it: {waits}; no attempt is counted"), options))
    });
    let PreflightTried { problem, took_ms, .. } = tried;
    step.emit_run(MachineEvent::Preflight(PreflightSeen { checks, problem, took_ms, question, waiting }));
    Reply::Accepted
}

/// A person answered the question about checks: the checks are run again, unless the answer says otherwise.
pub(super) fn answered(step: &mut OpenStep<'_>, answer: &str) {
    let said = |word: &str| answer.trim().eq_ignore_ascii_case(word);
    if said(setup::STOP) {
        session::pause(step, PauseReason::Operator);
    } else if !said(GO_ON) {
        order(step);
    }
}

/// A run that was stopped to fix its checks runs them again when it resumes.
pub(super) fn order_again(step: &mut OpenStep<'_>) {
    if step.state.preparing.preflight == Preflight::Again {
        order(step);
    }
}
