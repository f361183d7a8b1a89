//! The plan's health commands: the baseline at the start, where later failures come from, and their repair as a task of its
//! own in at most three rounds, then a person.

use super::{About, OpenStep, Reply, attempt};
use crate::event::{Added, HealthSeen, MachineEvent, TaskEvent};
use crate::ids::{AttemptId, TaskId};
use crate::plan::PlanTask;
use crate::report::{CheckResult, Evidence, Origin};
use crate::state::{RunPhase, State};

/// Rounds of repair and audit before a person is asked.
const ROUNDS: u32 = 3;

/// What the repair is called; a plan may have a task of that name already.
const NAMES: [&str; 3] = ["health", "plan-health", "rekindle-health"];

/// Whether the baseline is still missing: nothing new begins before it.
pub(super) fn baseline_missing(state: &State) -> bool {
    state.health.baseline.is_none() && state.run.as_ref().is_some_and(|run| !run.plan.settings.health.is_empty())
}

/// Orders the baseline at the beginning of a run.
pub(super) fn order_baseline(step: &mut OpenStep<'_>) {
    if baseline_missing(step.state) && !step.state.health.checking {
        step.emit_run(MachineEvent::HealthOrdered {});
    }
}

pub(super) fn checked(step: &mut OpenStep<'_>, results: Vec<CheckResult>) -> Reply {
    if !step.state.health.checking {
        return Reply::Already;
    }
    let failing: Vec<String> =
        results.iter().filter(|check| !check.passed).map(|check| check.command.clone()).collect();
    step.emit_run(MachineEvent::HealthChecked(HealthSeen { results }));
    remediate(step, &failing);
    Reply::Accepted
}

/// Determines, for every health command that failed with a claim, where its failure comes from.
pub(super) fn classify(state: &State, evidence: &mut Evidence) {
    let baseline = state.health.baseline.as_deref().unwrap_or_default();
    for seen in evidence.health.iter_mut().filter(|seen| !seen.check.passed) {
        let before = baseline.iter().find(|check| check.command == seen.check.command);
        seen.origin = Some(match before {
            // A command that was cut off, then or now, says nothing about who broke what.
            Some(before) if before.timed_out || before.code.is_none() && !before.passed => Origin::Uncertain,
            _ if seen.check.timed_out || seen.check.code.is_none() => Origin::Uncertain,
            Some(before) if before.passed => Origin::Introduced,
            Some(_) => Origin::Before,
            None => Origin::Uncertain,
        });
    }
}

/// Failures that the work did not introduce go to repair.
pub(super) fn after_claim(step: &mut OpenStep<'_>, id: &TaskId, evidence: &Evidence) {
    if step.state.tasks.get(id).is_none_or(|task| task.workflow.health) {
        return;
    }
    let others = |seen: &&crate::report::HealthResult| matches!(seen.origin, Some(Origin::Before | Origin::Uncertain));
    let failing: Vec<String> = evidence.health.iter().filter(others).map(|seen| seen.check.command.clone()).collect();
    remediate(step, &failing);
}

/// Adds the repair as a task, unless there is one for this run already.
fn remediate(step: &mut OpenStep<'_>, failing: &[String]) {
    let over = step.state.run.as_ref().is_none_or(|run| matches!(run.phase, RunPhase::Finished(_)));
    let known = step.state.tasks.values().any(|task| task.workflow.health);
    if failing.is_empty() || known || over {
        return;
    }
    let Some(run) = step.state.run.as_ref() else { return };
    let free = NAMES.iter().filter_map(|name| TaskId::new(*name).ok()).find(|id| !step.state.tasks.contains_key(id));
    let Some(id) = free else { return };
    let commands: Vec<String> = failing.iter().map(|command| format!("- `{command}`")).collect();
    let body = format!(
        "These health commands of the plan fail, and not because of a task of this run:\n\n{}\n\nFind out why and repair \
         the cause with the smallest change that is right. Do not weaken the commands, and leave the tasks of the plan to \
         others.",
        commands.join("\n")
    );
    let task = PlanTask {
        id: id.clone(),
        title: "Repair what the plan's health commands found".to_owned(),
        body,
        agent: None,
        role: None,
        cli: None,
        blocked_by: Vec::new(),
        wave: run.wave.max(1),
        artifacts: Vec::new(),
        accept: failing.to_vec(),
        environments: Vec::new(),
        reading: Vec::new(),
        timeout_ms: None,
        attempts: Some(ROUNDS),
        priority: 0,
        done: false,
        line: 0,
    };
    let added = Added { task, parent: None, health: true, holder: None };
    step.emit(About { attempt: None, task: Some(id), epoch: None }, TaskEvent::TaskAdded(Box::new(added)));
}

/// A complete repair counts from now on: if a task breaks it again, that task introduced the failure.
pub(super) fn repaired(step: &mut OpenStep<'_>, id: &TaskId) {
    let task = &step.state.tasks[id];
    let proof = task.evidence.as_ref().filter(|evidence| task.workflow.health && evidence.passed());
    let (Some(proof), Some(baseline)) = (proof, &step.state.health.baseline) else { return };
    let newer = |check: &CheckResult| proof.checks.iter().find(|seen| seen.command == check.command);
    let results = baseline.iter().map(|check| newer(check).unwrap_or(check).clone()).collect();
    step.emit_task(id, MachineEvent::HealthChecked(HealthSeen { results }));
}

/// The rounds are used up: a person decides.
pub(super) fn ask_person(step: &mut OpenStep<'_>, id: &TaskId, detail: &str) {
    let text = format!(
        "the plan's health commands still fail after {ROUNDS} rounds of repair ({detail}). See to it, then answer `done` for \
         another round, or leave it out with `rekindle task skip {id}`"
    );
    let task = &step.state.tasks[id];
    let asker = task.holder.or_else(|| task.last_attempts.newest()).unwrap_or(AttemptId(0));
    if let Some(question) = attempt::ask_person(step, asker, id, text, String::new()) {
        step.emit_task(id, TaskEvent::TaskParked { question });
    }
}
