//! The path of proven work: to the critic, to the auditor, back to the developer, into the run's branch, to completion.

use super::{OpenStep, Reply, attempt, health, hold, report, unreported};
use crate::event::{EnvironmentsDiffer, HandedOn, ReviewEvent, TaskEvent};
use crate::ids::{AttemptId, TaskId};
use crate::input::MergeOutcome;
use crate::report::{Channel, Evidence};
use crate::review::{
    self, Disagreement, DisagreementType, Findings, GivenVerdict, Merging, Rework, ReworkSource, Stage, Verdict,
    categorise,
};
use crate::role::Role;
use crate::state::{Claim, State, Task, Word};
use crate::text;

/// Longest part of a check's output in the text of a rework; the evidence has all of it.
const OUTPUT_MAX_BYTES: usize = 2_000;

/// A task's work was proven: a reviewer judges it next, or it is accepted.
pub(super) fn proven(step: &mut OpenStep<'_>, id: &TaskId, result: Option<String>, unproven: bool) {
    match next_stage(step.state, id) {
        Some(stage) => step.emit_task(id, ReviewEvent::TaskHandedOn(HandedOn { stage, result })),
        None => accept(step, id, result, unproven),
    }
}

/// The stage after a task's current one. A part of a task is reviewed with the whole.
fn next_stage(state: &State, id: &TaskId) -> Option<Stage> {
    let way = &state.tasks.get(id)?.workflow;
    let audited = state.reviews(Role::Auditor).then_some(Stage::Audit);
    match (way.stage, way.health) {
        _ if way.parent.is_some() => None,
        (Stage::Implement, true) => Some(Stage::Audit),
        (Stage::Implement, false) if state.reviews(Role::Critic) && !way.validating => Some(Stage::Review),
        (Stage::Implement | Stage::Review, false) => audited,
        (Stage::Review, true) | (Stage::Audit, _) => None,
    }
}

/// Merges accepted work into the run's branch if it was done in its own worktree, then completes its task.
pub(super) fn accept(step: &mut OpenStep<'_>, id: &TaskId, result: Option<String>, unproven: bool) {
    let way = &step.state.tasks[id].workflow;
    // Work that was only validated again is already in the run's branch; its workspace may contain the next task's work by
    // now.
    let apart = step.state.limits.worktrees && way.parent.is_none() && !way.validating;
    if apart {
        step.emit_task(id, ReviewEvent::MergeOrdered(Merging { result, unproven }));
    } else {
        complete(step, id, result, unproven);
    }
}

fn complete(step: &mut OpenStep<'_>, id: &TaskId, result: Option<String>, unproven: bool) {
    let unreported = step.state.tasks[id].workflow.unreported;
    step.emit_task(id, TaskEvent::TaskCompleted { result, unproven, unreported });
    after_end(step, id);
}

/// What follows from the end of a task: a repair counts from now on.
pub(super) fn after_end(step: &mut OpenStep<'_>, id: &TaskId) {
    health::repaired(step, id);
}

/// Checks every split task whose parts have ended. This is not done at the end of its last part, because a blocker of its
/// own may be open by then.
pub(super) fn claim_wholes(step: &mut OpenStep<'_>) {
    let through = |(id, task): &(&TaskId, &Task)| task.waits_for_parts() && step.state.blockers_met(id);
    let wholes: Vec<TaskId> = step.state.begun().filter(through).map(|(id, _)| id.clone()).collect();
    for whole in wholes {
        claim_for_itself(step, &whole);
    }
}

/// rekindle itself claims a task, to have its checks run: after its last part, or to validate old work again.
pub(super) fn claim_for_itself(step: &mut OpenStep<'_>, id: &TaskId) {
    let task = &step.state.tasks[id];
    let attempt = task.last_attempts.at(Stage::Implement).unwrap_or(AttemptId(0));
    let result = task.result.clone();
    step.emit_task(id, TaskEvent::TaskClaimed { attempt, channel: Channel::Own, result, verdict: None });
}

/// Takes a verdict; it counts only from the role that may give it, at the stage that asks for it.
pub(super) fn verdict(
    step: &mut OpenStep<'_>,
    id: AttemptId,
    task: &TaskId,
    channel: Channel,
    given: GivenVerdict,
) -> Reply {
    let role = step.state.role_of(task);
    if given.role != role || step.state.attempts[&id].role != role {
        let own = step.state.attempts[&id].role;
        let reason =
            format!("the verdict of the {} on task {task} is not yours to give: you are its {own}", given.role);
        return report::refuse(step, id, reason);
    }
    if step.state.tasks[task].is_being_proven() {
        return Reply::Already;
    }
    let decided = given.verdict;
    step.emit_task(task, ReviewEvent::VerdictGiven(given.clone()));
    match (role, decided) {
        (_, Verdict::Blocked) => {
            let why = given.findings.issues.join("; ");
            let text = format!("the {role} of task {task} cannot judge it: {why}. See to it, then answer `done`");
            attempt::ask_person(step, id, task, text, given.findings.required.join("\n"));
        }
        (Role::Critic, Verdict::Fail) => send_back(step, task, rework_of(ReworkSource::Critic, given)),
        (Role::Critic, Verdict::Pass) if next_stage(step.state, task).is_some() => {
            let result = step.state.tasks[task].result.clone();
            proven(step, task, result, false);
        }
        // Whatever the verdict, the checks are run: they show what it is worth.
        _ => {
            let result = step.state.tasks[task].result.clone();
            step.emit_task(task, TaskEvent::TaskClaimed { attempt: id, channel, result, verdict: Some(decided) });
        }
    }
    report::go_on(step, id);
    Reply::Accepted
}

fn rework_of(source: ReworkSource, given: GivenVerdict) -> Rework {
    Rework { source, findings: given.findings, context: String::new() }
}

/// Decides what becomes of the task, after the checks of a claim have ended and the evidence is recorded.
pub(super) fn checked(step: &mut OpenStep<'_>, id: &TaskId, claim: &Claim, evidence: &Evidence, unproven: bool) {
    if let Some((passed, failed)) = review::environments(evidence) {
        step.emit_task(id, ReviewEvent::EnvironmentDisagreement(EnvironmentsDiffer { passed, failed }));
    }
    let validating = step.state.tasks[id].workflow.validating;
    if claim.verdict.is_none() && step.state.tasks[id].workflow.word == Some(Word::Done) {
        // A person said that it is complete; it only had to be combined with what others had merged.
        return accept(step, id, claim.result.clone(), unproven || !evidence.passed());
    }
    match (claim.verdict, evidence.passed()) {
        (None, true) if claim.channel == Channel::Unreported => unreported::passed(step, id, claim, unproven),
        (None | Some(Verdict::Pass), true) => proven(step, id, claim.result.clone(), unproven),
        (Some(Verdict::Fail | Verdict::Blocked), _) => audit_failed(step, id, evidence),
        (Some(Verdict::Pass), false) => send_back(step, id, from_checks(evidence, ReworkSource::Checks)),
        (None, false) if validating => send_back(step, id, from_checks(evidence, ReworkSource::Validation)),
        (None, false) if step.state.tasks[id].holder.is_none() => {
            send_back(step, id, from_checks(evidence, ReworkSource::Checks));
        }
        // Its agent is told what failed and continues.
        (None, false) => {}
    }
}

fn audit_failed(step: &mut OpenStep<'_>, id: &TaskId, evidence: &Evidence) {
    let verdicts = &step.state.tasks[id].workflow.verdicts;
    let Some(audit) = verdicts.last().cloned() else { return };
    let critic = verdicts.iter().rev().skip(1).find(|given| given.role == Role::Critic);
    if let Some(critic) =
        critic.filter(|given| given.verdict == Verdict::Pass && !step.state.tasks[id].workflow.bypassed)
    {
        let critic_passed = match critic.findings.passed.as_slice() {
            [] => "REVIEW_PASSED".to_owned(),
            passed => format!("REVIEW_PASSED: {}", passed.join("; ")),
        };
        let disagreement_type = categorise(evidence);
        let issue_category = review::category(&audit.findings.issues).to_owned();
        let auditor_failed = audit.findings.issues.clone();
        let what = Disagreement { critic_passed, auditor_failed, disagreement_type, issue_category };
        step.emit_task(id, ReviewEvent::ReviewAuditDisagreement(what));
        if disagreement_type == DisagreementType::CodeQuality {
            step.emit_task(id, ReviewEvent::CriticMissedQualityIssue { issues: audit.findings.issues.clone() });
        }
    }
    let source =
        if step.state.tasks[id].workflow.validating { ReworkSource::Validation } else { ReworkSource::Auditor };
    let mut rework = rework_of(source, audit);
    let checks = from_checks(evidence, source);
    rework.findings.issues.extend(checks.findings.issues);
    rework.findings.passed.extend(checks.findings.passed);
    rework.context = checks.context;
    send_back(step, id, rework);
}

/// What failing checks ask of a developer.
fn from_checks(evidence: &Evidence, source: ReworkSource) -> Rework {
    let place = |check: &crate::report::CheckResult| {
        check.environment.as_ref().map(|name| format!(" in environment `{name}`")).unwrap_or_default()
    };
    let failing = evidence.checks.iter().filter(|check| !check.passed).chain(evidence.introduced());
    let mut issues: Vec<String> = Vec::new();
    let mut context = String::new();
    for check in failing {
        let code = check.code.map_or("no exit code".to_owned(), |code| format!("exit code {code}"));
        let how = if check.timed_out { "timed out".to_owned() } else { code };
        issues.push(format!("`{}` fails{} ({how})", check.command, place(check)));
        let tail = text::tail_bytes(&check.output, OUTPUT_MAX_BYTES);
        context.push_str(&format!("Output of `{}`{}:\n{tail}\n", check.command, place(check)));
    }
    issues.extend(evidence.missing_artifacts.iter().map(|path| format!("the artifact {path} is missing")));
    let passing = evidence.checks.iter().filter(|check| check.passed);
    let passed = passing.map(|check| format!("`{}` passes{}", check.command, place(check))).collect();
    let differs = review::environments(evidence).is_some();
    if differs {
        context.push_str(review::COMMON_CAUSES);
    }
    let source = if differs && source == ReworkSource::Checks { ReworkSource::Environment } else { source };
    Rework { source, findings: Findings { issues, required: Vec::new(), passed }, context }
}

/// Sends work back to its developer, unless it has had all its attempts.
pub(super) fn send_back(step: &mut OpenStep<'_>, id: &TaskId, rework: Rework) {
    let (task, limit) = (&step.state.tasks[id], step.state.attempt_limit(id));
    let free = match rework.source {
        ReworkSource::Merge => task.workflow.conflicts < review::FREE_CONFLICTS,
        ReworkSource::Validation | ReworkSource::PullRequest => true,
        ReworkSource::Critic | ReworkSource::Auditor | ReworkSource::Checks | ReworkSource::Environment => false,
    };
    if free || task.attempts < limit {
        return step.emit_task(id, ReviewEvent::TaskRework(rework));
    }
    let issues = text::one_line(&rework.findings.issues.join("; "), OUTPUT_MAX_BYTES).to_string();
    let limit = text::counted(limit, "attempt", "attempts");
    let detail = format!("sent back by the {}: {issues}; {} of {limit} used", source_words(&rework), task.attempts);
    if task.workflow.health {
        // If a person wants another round, it starts with the repair.
        step.emit_task(id, ReviewEvent::TaskRework(rework));
        return health::ask_person(step, id, &detail);
    }
    attempt::fail(step, id, "rework_limit", detail);
}

fn source_words(rework: &Rework) -> &'static str {
    match rework.source {
        ReworkSource::Critic => "critic",
        ReworkSource::Auditor => "auditor",
        ReworkSource::Checks | ReworkSource::Environment => "checks",
        ReworkSource::Merge => "merge",
        ReworkSource::Validation => "look at recent completions",
        ReworkSource::PullRequest => "pull request",
    }
}

/// A reviewer failed too often: the critic is bypassed and the auditor follows; any other role fails the task.
pub(super) fn reviewer_exhausted(step: &mut OpenStep<'_>, id: &TaskId, role: Role, reason: &str, detail: String) {
    if role == Role::Critic {
        step.emit_task(id, ReviewEvent::CriticBypassed {});
        if next_stage(step.state, id).is_some() {
            let result = step.state.tasks[id].result.clone();
            return proven(step, id, result, false);
        }
    }
    attempt::fail(step, id, reason, detail);
}

/// The merge of accepted work ended.
pub(super) fn merged(step: &mut OpenStep<'_>, id: &TaskId, epoch: crate::ids::Epoch, outcome: MergeOutcome) -> Reply {
    let Some(task) = step.state.tasks.get(id) else { return Reply::Already };
    let Some(merging) = task.workflow.merging.clone().filter(|_| task.epoch == epoch) else { return Reply::Already };
    let holder = task.holder;
    match outcome {
        MergeOutcome::Merged { commit } => {
            step.emit_task(id, ReviewEvent::WorkMerged { commit });
            // The merge that may have been refused has succeeded: nothing more is held for it.
            hold::forget_refusal(step);
            complete(step, id, merging.result, merging.unproven);
        }
        MergeOutcome::Conflict { files, advice } => {
            step.emit_task(id, ReviewEvent::MergeConflicted { files: files.clone() });
            let issues = files.iter().map(|file| format!("{file} was changed by others too, and the changes conflict"));
            let passed = vec!["the work itself was accepted".to_owned()];
            let findings = Findings { issues: issues.collect(), required: Vec::new(), passed };
            let rework = Rework { source: ReworkSource::Merge, findings, context: advice };
            send_back(step, id, rework);
        }
        MergeOutcome::Failed { reason } => {
            attempt::fail(step, id, "merge_failed", format!("its accepted work could not be merged: {reason}"));
        }
    }
    if let Some(holder) = holder {
        report::go_on(step, holder);
        super::stream::after_turn(step, holder);
        attempt::end_if_settled(step, holder);
    }
    Reply::Accepted
}
