//! The way of proven work: to the critic, to the auditor, back to the developer, into the run's branch, to completion.

use super::{Reply, Turn, attempt, health, hold, report, unreported};
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

/// Longest part of a check's output in the words of a rework; the whole of it stands with the evidence.
const OUTPUT_MAX_BYTES: usize = 2_000;

/// The work of a task was proven: a reviewer looks at it next, or it is accepted.
pub(super) fn proven(turn: &mut Turn<'_>, id: &TaskId, result: Option<String>, unproven: bool) {
    match next_stage(turn.state, id) {
        Some(stage) => turn.emit_task(id, ReviewEvent::TaskHandedOn(HandedOn { stage, result })),
        None => accept(turn, id, result, unproven),
    }
}

/// The stage after the one where a task stands. A part of a task is reviewed with the whole.
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

/// Accepted work goes into the run's branch where it was done apart, then its task is complete.
pub(super) fn accept(turn: &mut Turn<'_>, id: &TaskId, result: Option<String>, unproven: bool) {
    let way = &turn.state.tasks[id].workflow;
    // What was only looked at again is in the run's branch already; its workspace may hold the next task's work by now.
    let apart = turn.state.limits.worktrees && way.parent.is_none() && !way.validating;
    if apart {
        turn.emit_task(id, ReviewEvent::MergeOrdered(Merging { result, unproven }));
    } else {
        complete(turn, id, result, unproven);
    }
}

fn complete(turn: &mut Turn<'_>, id: &TaskId, result: Option<String>, unproven: bool) {
    let unreported = turn.state.tasks[id].workflow.unreported;
    turn.emit_task(id, TaskEvent::TaskCompleted { result, unproven, unreported });
    after_end(turn, id);
}

/// What follows from the end of a task: a repair counts from now on.
pub(super) fn after_end(turn: &mut Turn<'_>, id: &TaskId) {
    health::repaired(turn, id);
}

/// Looks at every split task whose parts have ended. Not at the end of its last part: a blocker of its own may be open by then.
pub(super) fn claim_wholes(turn: &mut Turn<'_>) {
    let through = |(id, task): &(&TaskId, &Task)| task.waits_for_parts() && turn.state.blockers_met(id);
    let wholes: Vec<TaskId> = turn.state.begun().filter(through).map(|(id, _)| id.clone()).collect();
    for whole in wholes {
        claim_for_itself(turn, &whole);
    }
}

/// rekindle itself claims a task, to have its checks run: after its last part, or to look at old work again.
pub(super) fn claim_for_itself(turn: &mut Turn<'_>, id: &TaskId) {
    let task = &turn.state.tasks[id];
    let attempt = task.last_attempts.at(Stage::Implement).unwrap_or(AttemptId(0));
    let result = task.result.clone();
    turn.emit_task(id, TaskEvent::TaskClaimed { attempt, door: Channel::Own, result, verdict: None });
}

/// A verdict counts only from the role that may give it, at the stage where it is asked for.
pub(super) fn verdict(turn: &mut Turn<'_>, id: AttemptId, task: &TaskId, door: Channel, given: GivenVerdict) -> Reply {
    let role = turn.state.role_of(task);
    if given.role != role || turn.state.attempts[&id].role != role {
        let own = turn.state.attempts[&id].role;
        let reason =
            format!("the verdict of the {} on task {task} is not yours to give: you are its {own}", given.role);
        return report::refuse(turn, id, reason);
    }
    if turn.state.tasks[task].is_being_proven() {
        return Reply::Already;
    }
    let decided = given.verdict;
    turn.emit_task(task, ReviewEvent::VerdictGiven(given.clone()));
    match (role, decided) {
        (_, Verdict::Blocked) => {
            let why = given.findings.issues.join("; ");
            let text = format!("the {role} of task {task} cannot judge it: {why}. See to it, then answer `done`");
            attempt::ask_person(turn, id, task, text, given.findings.required.join("\n"));
        }
        (Role::Critic, Verdict::Fail) => send_back(turn, task, rework_of(ReworkSource::Critic, given)),
        (Role::Critic, Verdict::Pass) if next_stage(turn.state, task).is_some() => {
            let result = turn.state.tasks[task].result.clone();
            proven(turn, task, result, false);
        }
        // Whatever was said, the checks are run: they tell what the verdict is worth.
        _ => {
            let result = turn.state.tasks[task].result.clone();
            turn.emit_task(task, TaskEvent::TaskClaimed { attempt: id, door, result, verdict: Some(decided) });
        }
    }
    report::go_on(turn, id);
    Reply::Accepted
}

fn rework_of(source: ReworkSource, given: GivenVerdict) -> Rework {
    Rework { source, findings: given.findings, context: String::new() }
}

/// The checks of a claim have ended and its evidence is recorded: what becomes of the task.
pub(super) fn checked(turn: &mut Turn<'_>, id: &TaskId, claim: &Claim, evidence: &Evidence, unproven: bool) {
    if let Some((passed, failed)) = review::environments(evidence) {
        turn.emit_task(id, ReviewEvent::EnvironmentDisagreement(EnvironmentsDiffer { passed, failed }));
    }
    let validating = turn.state.tasks[id].workflow.validating;
    if claim.verdict.is_none() && turn.state.tasks[id].workflow.word == Some(Word::Done) {
        // A person said that it is complete; it was only to be brought together with what others had merged.
        return accept(turn, id, claim.result.clone(), unproven || !evidence.passed());
    }
    match (claim.verdict, evidence.passed()) {
        (None, true) if claim.door == Channel::Unreported => unreported::passed(turn, id, claim, unproven),
        (None | Some(Verdict::Pass), true) => proven(turn, id, claim.result.clone(), unproven),
        (Some(Verdict::Fail | Verdict::Blocked), _) => audit_failed(turn, id, evidence),
        (Some(Verdict::Pass), false) => send_back(turn, id, from_checks(evidence, ReworkSource::Checks)),
        (None, false) if validating => send_back(turn, id, from_checks(evidence, ReworkSource::Validation)),
        (None, false) if turn.state.tasks[id].holder.is_none() => {
            send_back(turn, id, from_checks(evidence, ReworkSource::Checks));
        }
        // Its agent is told what failed and goes on.
        (None, false) => {}
    }
}

fn audit_failed(turn: &mut Turn<'_>, id: &TaskId, evidence: &Evidence) {
    let verdicts = &turn.state.tasks[id].workflow.verdicts;
    let Some(audit) = verdicts.last().cloned() else { return };
    let critic = verdicts.iter().rev().skip(1).find(|given| given.role == Role::Critic);
    if let Some(critic) =
        critic.filter(|given| given.verdict == Verdict::Pass && !turn.state.tasks[id].workflow.bypassed)
    {
        let critic_passed = match critic.findings.passed.as_slice() {
            [] => "REVIEW_PASSED".to_owned(),
            passed => format!("REVIEW_PASSED: {}", passed.join("; ")),
        };
        let disagreement_type = categorise(evidence);
        let issue_category = review::category(&audit.findings.issues).to_owned();
        let auditor_failed = audit.findings.issues.clone();
        let what = Disagreement { critic_passed, auditor_failed, disagreement_type, issue_category };
        turn.emit_task(id, ReviewEvent::ReviewAuditDisagreement(what));
        if disagreement_type == DisagreementType::CodeQuality {
            turn.emit_task(id, ReviewEvent::CriticMissedQualityIssue { issues: audit.findings.issues.clone() });
        }
    }
    let source =
        if turn.state.tasks[id].workflow.validating { ReworkSource::Validation } else { ReworkSource::Auditor };
    let mut rework = rework_of(source, audit);
    let checks = from_checks(evidence, source);
    rework.findings.issues.extend(checks.findings.issues);
    rework.findings.passed.extend(checks.findings.passed);
    rework.context = checks.context;
    send_back(turn, id, rework);
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
pub(super) fn send_back(turn: &mut Turn<'_>, id: &TaskId, rework: Rework) {
    let (task, limit) = (&turn.state.tasks[id], turn.state.attempt_limit(id));
    let free = match rework.source {
        ReworkSource::Merge => task.workflow.conflicts < review::FREE_CONFLICTS,
        ReworkSource::Validation => true,
        ReworkSource::Critic | ReworkSource::Auditor | ReworkSource::Checks | ReworkSource::Environment => false,
    };
    if free || task.attempts < limit {
        return turn.emit_task(id, ReviewEvent::TaskRework(rework));
    }
    let issues = text::one_line(&rework.findings.issues.join("; "), OUTPUT_MAX_BYTES).to_string();
    let limit = text::counted(limit, "attempt", "attempts");
    let detail = format!("sent back by the {}: {issues}; {} of {limit} used", source_words(&rework), task.attempts);
    if task.workflow.health {
        // Should a person want another round, it begins with the repair.
        turn.emit_task(id, ReviewEvent::TaskRework(rework));
        return health::ask_person(turn, id, &detail);
    }
    attempt::fail(turn, id, "rework_limit", detail);
}

fn source_words(rework: &Rework) -> &'static str {
    match rework.source {
        ReworkSource::Critic => "critic",
        ReworkSource::Auditor => "auditor",
        ReworkSource::Checks | ReworkSource::Environment => "checks",
        ReworkSource::Merge => "merge",
        ReworkSource::Validation => "look at recent completions",
    }
}

/// A reviewer failed too often: the critic is bypassed to the auditor, anybody else fails the task.
pub(super) fn reviewer_exhausted(turn: &mut Turn<'_>, id: &TaskId, role: Role, reason: &str, detail: String) {
    if role == Role::Critic {
        turn.emit_task(id, ReviewEvent::CriticBypassed {});
        if next_stage(turn.state, id).is_some() {
            let result = turn.state.tasks[id].result.clone();
            return proven(turn, id, result, false);
        }
    }
    attempt::fail(turn, id, reason, detail);
}

/// The merge of accepted work ended.
pub(super) fn merged(turn: &mut Turn<'_>, id: &TaskId, epoch: crate::ids::Epoch, outcome: MergeOutcome) -> Reply {
    let Some(task) = turn.state.tasks.get(id) else { return Reply::Already };
    let Some(merging) = task.workflow.merging.clone().filter(|_| task.epoch == epoch) else { return Reply::Already };
    let holder = task.holder;
    match outcome {
        MergeOutcome::Merged { commit } => {
            turn.emit_task(id, ReviewEvent::WorkMerged { commit });
            // What may have been refused went through: nothing more is held for it.
            hold::forget_refusal(turn);
            complete(turn, id, merging.result, merging.unproven);
        }
        MergeOutcome::Conflict { files, advice } => {
            turn.emit_task(id, ReviewEvent::MergeConflicted { files: files.clone() });
            let issues = files.iter().map(|file| format!("{file} was changed by others too, and the changes conflict"));
            let passed = vec!["the work itself was accepted".to_owned()];
            let findings = Findings { issues: issues.collect(), required: Vec::new(), passed };
            let rework = Rework { source: ReworkSource::Merge, findings, context: advice };
            send_back(turn, id, rework);
        }
        MergeOutcome::Failed { reason } => {
            attempt::fail(turn, id, "merge_failed", format!("its accepted work could not be merged: {reason}"));
        }
    }
    if let Some(holder) = holder {
        report::go_on(turn, holder);
        super::stream::after_turn(turn, holder);
        attempt::end_if_settled(turn, holder);
    }
    Reply::Accepted
}
