//! Faults of review, parts, merges, health and waits that the simulator found, each as the shortest story that shows it.

use rekindle_core::activity::{Failure, Problem, StreamEvent};
use rekindle_core::cause::Cause;
use rekindle_core::decide::{self, Reply, Standstill};
use rekindle_core::event::{Body, PauseReason, TaskEvent, UsageLeft};
use rekindle_core::ids::{AttemptId, QuestionId};
use rekindle_core::input::{Found, Input, MergeOutcome, Order, Refused};
use rekindle_core::limits::{Limits, Traits, UsageLimits};
use rekindle_core::refusal::Refusal;
use rekindle_core::report::{CheckResult, Report};
use rekindle_core::review::{Findings, Stage, Verdict};
use rekindle_core::role::Role;
use rekindle_core::state::{AttemptPhase, RunPhase, TaskState};
use rekindle_core::view::Touched;

use crate::harness::{Story, evidence, exit_code, task};

const REVIEWED: &str = "---\nreview: [critic, auditor]\n---\n# Demo\n\n### T1: a\n- accept: `true`\n";

fn verdict(role: Role, verdict: Verdict) -> Report {
    let issues = vec!["an edge case".to_owned()];
    Report::Verdict { task: None, role, verdict, findings: Findings { issues, ..Findings::default() } }
}

fn split(id: &str) -> Report {
    Report::Split { task: task(id), subtasks: vec!["one".into(), "two".into()] }
}

fn fail(id: &str) -> Report {
    Report::Fail { task: task(id), reason: "cannot".into() }
}

/// An attempt does its task and leaves.
fn through(story: &mut Story, attempt: u64, id: &str) {
    story.started(attempt);
    story.done(attempt, id);
    story.checked(id, true);
    if story.state.attempts[&AttemptId(attempt)].is_live() {
        story.exited(attempt, exit_code(0));
    }
}

/// The coordinator is killed and another takes over, with nobody alive.
fn crash(story: &mut Story) {
    let limits = story.state.limits.clone();
    let lost: Vec<_> = story.state.live_attempts().map(|(id, _)| (id, Found::Lost)).collect();
    story.coordinator(limits, lost.clone());
    for (attempt, _) in lost {
        story.input(Input::AttemptLost { attempt, with_host: false });
    }
}

fn role_of(story: &Story, attempt: u64) -> Role {
    story.state.attempts[&AttemptId(attempt)].role
}

#[test]
fn a_verdict_without_a_task_meets_the_same_fence() {
    let mut story = Story::of(REVIEWED);
    through(&mut story, 1, "T1");
    story.started(2);
    assert_eq!(role_of(&story, 2), Role::Critic);
    story.report(2, fail("T1"));
    assert_eq!(story.state.tasks[&task("T1")].holder, None, "it gave up");
    let step = story.report(2, verdict(Role::Critic, Verdict::Pass));
    assert!(matches!(step.reply, Reply::Refused { .. }), "{:?}", step.reply);
    assert_eq!(story.state.tasks[&task("T1")].workflow.stage, Stage::Review);
}

#[test]
fn a_reviewer_cannot_claim_a_repair() {
    let mut story = Story::of(REVIEWED);
    through(&mut story, 1, "T1");
    story.started(2);
    let step = story.report(2, verdict(Role::Remediation, Verdict::Pass));
    assert!(matches!(step.reply, Reply::Refused { .. }), "{:?}", step.reply);
    assert!(story.state.tasks[&task("T1")].claim.is_none());
}

fn apart() -> Limits {
    Limits { worktrees: true, ..Limits::default() }
}

#[test]
fn accepted_work_is_not_given_up_while_it_is_merged() {
    let mut story = Story::with("# Demo\n\n### T1: a\n- accept: `true`\n", apart());
    story.started(1);
    story.done(1, "T1");
    story.checked("T1", true);
    assert!(story.state.tasks[&task("T1")].workflow.merging.is_some());
    let step = story.report(1, fail("T1"));
    assert_eq!((step.reply, step.events.len()), (Reply::Already, 0));
    let epoch = story.state.tasks[&task("T1")].epoch;
    let outcome = MergeOutcome::Merged { commit: None };
    story.input(Input::WorkMerged { task: task("T1"), epoch, outcome });
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Complete);
}

/// T1 was sent back and waits for its agent; T2, of the same agent and workspace, is merged by an operator's word. Attempt 1 has ended, so
/// no process holds the workspace: only the merge does.
#[test]
fn nobody_starts_in_a_shared_workspace_while_another_tasks_work_there_is_merged() {
    let plan = "# Demo\n\n### T1: a\n- agent: anna\n- accept: `true`\n\n### T2: b\n- agent: anna\n- accept: `true`\n";
    let mut story = Story::with(plan, apart());
    story.started(1);
    story.done(1, "T1");
    story.checked("T1", true);
    let merged = |story: &mut Story, id: &str, outcome| {
        let epoch = story.state.tasks[&task(id)].epoch;
        story.input(Input::WorkMerged { task: task(id), epoch, outcome })
    };
    merged(&mut story, "T1", MergeOutcome::Conflict { files: vec!["a".into()], advice: String::new() });
    let short = Refusal { reason: "no memory".into(), hint: "free some".into() };
    story.input(Input::PressureSeen { short: Some(short) });
    story.exited(1, exit_code(1));
    assert_eq!(story.state.attempts[&AttemptId(1)].phase, AttemptPhase::Ended);
    story.order(Order::Complete { task: task("T2"), result: None });
    assert!(story.state.tasks[&task("T2")].workflow.merging.is_some());
    story.input(Input::PressureSeen { short: None });
    story.after_ms(24 * 60 * 60_000).input(Input::TimePassed);
    assert_eq!(story.state.attempts.len(), 1, "an agent beside the merge: {:?}", story.state.attempts.keys());
    merged(&mut story, "T2", MergeOutcome::Merged { commit: None });
    assert_eq!(story.state.attempts[&AttemptId(2)].tasks, [task("T1")], "it goes on when the merge is through");
}

#[test]
fn an_operators_word_decides_a_claim_and_ends_its_agent_before_the_merge() {
    let mut story = Story::with("# Demo\n\n### T1: a\n- accept: `true`\n", apart());
    story.started(1);
    story.done(1, "T1");
    story.order(Order::Complete { task: task("T1"), result: None });
    assert!(story.state.attempts[&AttemptId(1)].stop.is_some(), "nobody goes on changing what is merged");
    let step = story.checked("T1", false);
    assert_eq!(step.reply, Reply::Already);
    assert!(story.state.tasks[&task("T1")].workflow.merging.is_some());
}

/// Work that the operator completed and that is being merged, with an agent dispatched for it of which nothing is known yet.
fn merging_beside_a_new_agent() -> Story {
    let mut story = Story::with("# Demo\n\n### T1: a\n- accept: `true`\n", apart());
    story.started(1);
    story.exited(1, exit_code(1));
    story.after_ms(600_000).input(Input::TimePassed);
    assert_eq!(story.state.attempts.len(), 2, "its second agent is dispatched");
    story.order(Order::Complete { task: task("T1"), result: None });
    assert!(story.state.tasks[&task("T1")].workflow.merging.is_some());
    story
}

/// The agent of `merging_beside_a_new_agent` is gone: the merge goes on, nobody is dispatched, and the task ends complete.
fn goes_on_being_merged(story: &mut Story) {
    assert_eq!(story.state.attempts.len(), 2, "nobody else is dispatched");
    let requeued =
        story.log.iter().filter(|event| matches!(event.body, Body::Task(TaskEvent::TaskRequeued { .. }))).count();
    assert_eq!(requeued, 1, "after its first agent");
    assert!(story.state.tasks[&task("T1")].workflow.merging.is_some(), "the operator's word holds");
    let epoch = story.state.tasks[&task("T1")].epoch;
    story.input(Input::WorkMerged { task: task("T1"), epoch, outcome: MergeOutcome::Merged { commit: None } });
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Complete);
    assert!(!story.state.attempts[&AttemptId(2)].is_live());
}

#[test]
fn an_agent_that_never_started_does_not_reopen_what_is_being_merged() {
    let mut story = merging_beside_a_new_agent();
    story.coordinator(apart(), vec![(AttemptId(2), Found::NeverStarted)]);
    goes_on_being_merged(&mut story);
}

#[test]
fn an_agent_that_cannot_start_does_not_reopen_what_is_being_merged() {
    let mut story = merging_beside_a_new_agent();
    story.input(Input::AttemptNotStarted { attempt: AttemptId(2), reason: "no such file".into() });
    goes_on_being_merged(&mut story);
}

#[test]
fn an_agent_that_the_machine_refuses_does_not_reopen_what_is_being_merged() {
    let mut story = merging_beside_a_new_agent();
    let refusal = Refusal { reason: "no process".into(), hint: "ulimit -u".into() };
    story.input(Input::Refused { what: Refused::Attempt(AttemptId(2)), refusal });
    goes_on_being_merged(&mut story);
}

#[test]
fn a_whole_that_is_left_out_takes_its_parts_with_it() {
    let mut story = Story::of("# Demo\n\n### T1: a\n- accept: `true`\n");
    story.started(1);
    story.report(1, split("T1"));
    story.order(Order::Skip { task: task("T1"), reason: "enough".into() });
    assert_eq!(story.state.tasks[&task("T1.1")].state, TaskState::Skipped);
    assert_eq!(story.state.tasks[&task("T1.2")].state, TaskState::Skipped);
    assert!(story.state.attempts[&AttemptId(1)].stop.is_some());
}

#[test]
fn a_task_that_was_split_and_opened_again_can_be_split_again() {
    let mut story = Story::of("# Demo\n\n### T1: a\n- accept: `true`\n\n### T2: b\n- accept: `true`\n");
    story.started(1);
    story.report(1, split("T1"));
    story.order(Order::Skip { task: task("T1"), reason: "enough".into() });
    story.exited(1, exit_code(0));
    story.order(Order::Retry { task: task("T1") });
    story.started(3);
    let step = story.report(3, split("T1"));
    assert_eq!(step.reply, Reply::Accepted);
    let parts = ["T1.3", "T1.4"];
    assert_eq!(story.state.tasks[&task("T1")].workflow.parts, parts.map(task));
    assert_eq!(story.report(3, split("T1")).reply, Reply::Already, "said again, it is one split");
    assert_eq!(
        story.state.tasks[&task("T1.1")].state,
        TaskState::Skipped,
        "those of the first split stay as they were"
    );
    for part in parts {
        story.done(3, part);
        story.checked(part, true);
    }
    story.checked("T1", true);
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Complete);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_part_is_not_opened_again_once_the_whole_has_gone_on() {
    let mut story = Story::of("# Demo\n\n### T1: a\n- accept: `true`\n");
    story.started(1);
    story.report(1, split("T1"));
    for part in ["T1.1", "T1.2"] {
        story.done(1, part);
        story.checked(part, true);
    }
    assert!(story.state.tasks[&task("T1")].claim.is_some(), "the whole is looked at");
    let step = story.order(Order::Retry { task: task("T1.1") });
    assert!(matches!(step.reply, Reply::Refused { .. }), "{:?}", step.reply);
    // Seed 57788: it was given up while the whole was being merged, which was then complete without it.
    let step = story.order(Order::Fail { task: task("T1.1"), reason: "given up".into() });
    assert!(matches!(step.reply, Reply::Refused { .. }), "{:?}", step.reply);
    assert_eq!(story.state.tasks[&task("T1.1")].state, TaskState::Complete);
}

#[test]
fn a_whole_is_looked_at_when_its_own_blocker_is_through_again() {
    let plan =
        "# Demo\n\n### T1: a\n- artifacts: a.txt\n\n### T2: b\n- blocked by: T1\n- accept: `true`\n- attempts: 1\n";
    let mut story = Story::of(plan);
    through(&mut story, 1, "T1");
    story.started(2);
    story.report(2, split("T2"));
    story.order(Order::Retry { task: task("T1") });
    for part in ["T2.1", "T2.2"] {
        story.done(2, part);
        story.checked(part, true);
    }
    story.exited(2, exit_code(0));
    assert!(story.state.tasks[&task("T2")].claim.is_none(), "T1 is being done again");
    through(&mut story, 3, "T1");
    assert!(story.state.tasks[&task("T2")].claim.is_some(), "it is proven, not handed out once more");
}

#[test]
fn work_that_was_sent_back_and_split_is_still_looked_at_as_a_whole() {
    let mut story = Story::of(REVIEWED);
    through(&mut story, 1, "T1");
    story.started(2);
    story.report(2, verdict(Role::Critic, Verdict::Fail));
    story.exited(2, exit_code(0));
    story.started(3);
    story.report(3, split("T1"));
    for part in ["T1.1", "T1.2"] {
        story.done(3, part);
        story.checked(part, true);
    }
    assert!(story.state.tasks[&task("T1")].claim.is_some());
}

#[test]
fn nobody_reviews_a_whole_while_the_developer_of_a_part_is_there() {
    let mut story = Story::of(REVIEWED);
    story.order(Order::Split { task: task("T1"), subtasks: vec!["all of it".into()] });
    story.exited(1, exit_code(0));
    story.started(2);
    assert_eq!(story.state.attempts[&AttemptId(2)].tasks, [task("T1.1")]);
    story.done(2, "T1.1");
    story.checked("T1.1", true);
    story.checked("T1", true);
    assert_eq!(story.state.tasks[&task("T1")].workflow.stage, Stage::Review);
    assert_eq!(story.state.attempts.len(), 2, "its developer may still change it");
    story.exited(2, exit_code(0));
    assert_eq!(role_of(&story, 3), Role::Critic);
}

#[test]
fn what_is_only_looked_at_again_is_not_merged_again() {
    let mut story = Story::with("# Demo\n\n### T1: a\n- accept: `true`\n\n### T2: b\n- blocked by: T1\n", apart());
    through(&mut story, 1, "T1");
    let epoch = story.state.tasks[&task("T1")].epoch;
    story.input(Input::WorkMerged { task: task("T1"), epoch, outcome: MergeOutcome::Merged { commit: None } });
    crash(&mut story);
    assert!(story.state.tasks[&task("T1")].workflow.validating);
    story.checked("T1", true);
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Complete);
}

#[test]
fn a_look_again_that_waits_for_a_person_holds_nobody_up() {
    let plan = "---\nreview: [auditor]\n---\n# Demo\n\n### T1: a\n- accept: `true`\n\n### T2: b\n- accept: `true`\n";
    let mut story = Story::with(plan, Limits { max_agents: 1, ..Limits::default() });
    through(&mut story, 1, "T1");
    story.started(2);
    story.report(2, verdict(Role::Auditor, Verdict::Pass));
    story.checked("T1", true);
    story.exited(2, exit_code(0));
    crash(&mut story);
    story.checked("T1", true);
    let auditor = story.state.last_attempt;
    assert_eq!(role_of(&story, auditor), Role::Auditor, "T1 is looked at again");
    story.started(auditor);
    story.report(auditor, verdict(Role::Auditor, Verdict::Blocked));
    story.exited(auditor, exit_code(0));
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Blocked);
    story.after_ms(600_000).input(Input::TimePassed);
    assert_eq!(story.state.attempts[&AttemptId(story.state.last_attempt)].tasks, [task("T2")]);
}

#[test]
fn a_look_again_behind_work_that_was_sent_back_does_not_stand_in_its_way() {
    let plan = "---\nreview: [auditor]\n---\n# Demo\n\n### T1: a\n- artifacts: a.txt\n\n### T2: b\n- artifacts: a.txt\n- blocked by: T1\n";
    let mut story = Story::of(plan);
    for (developer, id) in [(1, "T1"), (3, "T2")] {
        through(&mut story, developer, id);
        story.started(developer + 1);
        story.report(developer + 1, verdict(Role::Auditor, Verdict::Pass));
        // The last of them is cut short: T2 is complete and the run goes on.
        story.checked(id, true);
        if developer == 1 {
            story.exited(2, exit_code(0));
        }
    }
    crash(&mut story);
    story.checked("T2", true);
    story.checked("T1", false);
    assert!(story.state.tasks[&task("T1")].workflow.rework.is_some());
    let newest = &story.state.attempts[&AttemptId(story.state.last_attempt)];
    assert_eq!(newest.tasks, [task("T1")], "T2 waits for T1, so T1 goes on");
}

#[test]
fn of_two_that_share_an_artifact_whoever_runs_comes_first() {
    let plan = "---\nreview: [auditor]\n---\n# Demo\n\n### T1: a\n- artifacts: a.txt\n- priority: 9\n\n### T2: b\n- artifacts: a.txt\n";
    let mut story = Story::with(plan, Limits { max_agents: 3, ..Limits::default() });
    through(&mut story, 1, "T1");
    story.started(2);
    story.report(2, verdict(Role::Auditor, Verdict::Pass));
    story.checked("T1", true);
    story.exited(2, exit_code(0));
    story.started(3);
    assert_eq!(story.state.attempts[&AttemptId(3)].tasks, [task("T2")]);
    let alive = vec![(AttemptId(3), Found::Alive { pid: 1, shim_pid: 2 })];
    story.coordinator(story.state.limits.clone(), alive);
    story.checked("T1", true);
    assert_eq!(story.state.tasks[&task("T1")].workflow.stage, Stage::Audit);
    assert_eq!(story.state.last_attempt, 3, "its auditor waits for whoever is at the artifact");
}

const SICK: &str = "---\nhealth: [lint it]\n---\n# Demo\n\n### T1: a\n- accept: `true`\n";

fn lint(passed: bool) -> CheckResult {
    CheckResult { command: "lint it".into(), ..evidence(passed).checks[0].clone() }
}

#[test]
fn another_round_of_repair_begins_with_the_repair() {
    let mut story = Story::with(SICK, Limits { max_agents: 1, ..Limits::default() });
    story.input(Input::HealthChecked { results: vec![lint(false)] });
    for _ in 0..40 {
        let Some((id, found)) = story.state.live_attempts().next() else { break };
        let (of, role) = (found.tasks[0].clone(), found.role);
        story.started(id.0);
        match role {
            Role::HealthAuditor => {
                story.report(id.0, verdict(role, Verdict::Fail));
                story.checked("health", true);
            }
            _ => {
                story.done(id.0, of.as_str());
                story.checked(of.as_str(), true);
            }
        }
        story.exited(id.0, exit_code(0));
    }
    let health = &story.state.tasks[&task("health")];
    assert_eq!((health.state, health.workflow.stage), (TaskState::Blocked, Stage::Implement));
    story.order(Order::Answer { id: QuestionId(1), text: "done".into() });
    assert_eq!(role_of(&story, story.state.last_attempt), Role::Remediation);
}

#[test]
fn a_question_about_work_that_nobody_holds_can_be_answered() {
    let mut story = Story::of(SICK);
    story.input(Input::HealthChecked { results: vec![lint(false)] });
    let remediation =
        story.state.attempts.iter().find(|(_, found)| found.role == Role::Remediation).map(|(id, _)| id.0);
    let id = remediation.expect("the repair runs");
    story.started(id);
    for round in 0..3 {
        // The parts of a split are nobody's claim when the whole is looked at.
        if round == 0 {
            story.order(Order::Split { task: task("health"), subtasks: vec!["all".into()] });
            story.exited(id, exit_code(0));
        }
        let newest = story.state.last_attempt;
        story.started(newest);
        let of = story.state.attempts[&AttemptId(newest)].tasks[0].clone();
        story.done(newest, of.as_str());
        story.checked(of.as_str(), true);
        if of != task("health") {
            story.checked("health", false);
        }
        story.exited(newest, exit_code(0));
    }
    for (task, state) in story.state.tasks.iter().filter(|(_, task)| task.state == TaskState::Blocked) {
        assert!(story.state.open_question(task).is_some(), "{task} waits for an answer to nothing: {state:?}");
    }
}

#[test]
fn a_repair_is_added_although_the_run_is_being_paused() {
    let mut story = Story::of(SICK);
    story.order(Order::Pause(PauseReason::Operator));
    story.input(Input::HealthChecked { results: vec![lint(false)] });
    assert!(story.state.tasks.contains_key(&task("health")));
}

fn able(account: &str) -> Traits {
    Traits { structured_output: true, account: account.to_owned(), ..Traits::new("able") }
}

#[test]
fn a_shim_lost_after_a_limit_counts_as_that_limit() {
    let limits = Limits { traits: [("default".to_owned(), able("a"))].into(), ..Limits::default() };
    let mut story = Story::with("# Demo\n\n### T1: a\n- accept: `true`\n", limits);
    story.started(1);
    let failure = Failure { problem: Problem::UsageLimit, resets_at: None, text: "limit".into(), runaway: false };
    story.input(Input::Streamed { attempt: AttemptId(1), event: StreamEvent::Failed(failure) });
    story.input(Input::AttemptLost { attempt: AttemptId(1), with_host: false });
    let cause = story.state.attempts[&AttemptId(1)].cause.clone();
    assert_eq!(cause, Some(Cause::UsageLimit { resets_at: None }));
    assert!(story.state.gates.contains_key("a"));
}

fn asking(agents: Vec<String>) -> Limits {
    let usage = UsageLimits { asks: true, agents, ..UsageLimits::default() };
    Limits { usage, traits: [("default".to_owned(), able("a"))].into(), ..Limits::default() }
}

#[test]
fn what_was_left_before_a_pause_starts_nobody_after_it() {
    let mut story = Story::with("# Demo\n\n### T1: a\n- accept: `true`\n", asking(Vec::new()));
    story.input(Input::UsageSeen(UsageLeft { remaining_percent: Some(1), resets_at: None }));
    assert_eq!(story.state.run.as_ref().map(|run| run.phase), Some(RunPhase::Waiting(PauseReason::UsageLimit)));
    story.order(Order::Pause(PauseReason::Operator));
    let step = story.coordinator(story.state.limits.clone(), Vec::new());
    assert!(story.state.attempts.is_empty(), "{:?}", step.events);
    assert!(story.state.usage.asking, "it is asked again");
}

#[test]
fn a_low_allowance_does_not_take_a_question_about_credentials_away() {
    let plan = "# Demo\n\n### T1: a\n\nDo.\n\n### T2: b\n- blocked by: T1\n\nDo.\n";
    let mut story = Story::with(plan, asking(vec!["default".into()]));
    story.input(Input::UsageSeen(UsageLeft { remaining_percent: Some(90), resets_at: None }));
    story.started(1);
    let failure = Failure { problem: Problem::Auth, resets_at: None, text: "no".into(), runaway: false };
    story.input(Input::Streamed { attempt: AttemptId(1), event: StreamEvent::Failed(failure) });
    story.exited(1, exit_code(1));
    story.order(Order::Complete { task: task("T1"), result: None });
    story.after_ms(120_000).input(Input::TimePassed);
    story.input(Input::UsageSeen(UsageLeft { remaining_percent: Some(1), resets_at: None }));
    assert!(story.state.gates["a"].question.is_some(), "nobody has logged in");
    story.after_ms(24 * 60 * 60_000).input(Input::TimePassed);
    story.input(Input::UsageSeen(UsageLeft { remaining_percent: Some(90), resets_at: None }));
    assert_eq!(decide::standstill(&story.state), Standstill::Person);
}

#[test]
fn the_row_of_a_whole_follows_its_parts() {
    let mut story = Story::of("# Demo\n\n### T1: a\n- accept: `true`\n");
    story.started(1);
    story.report(1, split("T1"));
    story.done(1, "T1.1");
    let step = story.checked("T1.1", true);
    let mut touched = Touched::default();
    for event in &step.events {
        touched.add(&story.state, event);
    }
    assert!(touched.tasks.contains(&task("T1")), "it shows which parts it still waits for");
}

#[test]
fn a_log_that_ends_before_a_look_again_began_counts_no_attempt_twice() {
    let mut story = Story::of("# Demo\n\n### T1: a\n- accept: `true`\n- attempts: 1\n\n### T2: b\n- accept: `true`\n");
    through(&mut story, 1, "T1");
    crash(&mut story);
    let reopened = story
        .log
        .iter()
        .position(|event| matches!(event.body, Body::Task(TaskEvent::TaskReopened { .. })))
        .expect("again");
    story.log.truncate(reopened + 1);
    story.state = story.replayed();
    crash(&mut story);
    for (id, task) in &story.state.tasks {
        assert!(task.attempts <= story.state.attempt_limit(id), "{id}: {}", task.attempts);
    }
    let over = story.state.attempts.values().filter(|found| found.phase == AttemptPhase::Ended).count();
    assert!(over >= 1, "the first is over");
}

#[test]
fn a_named_agent_is_not_given_a_whole_behind_its_parts() {
    let mut story = Story::of("# Demo\n\n### T1: a\n- agent: solo\n- accept: `true`\n");
    story.started(1);
    story.report(1, split("T1"));
    story.exited(1, exit_code(1));
    story.after_ms(60_000).input(Input::TimePassed);
    let newest = &story.state.attempts[&AttemptId(2)];
    assert_eq!(newest.tasks, [task("T1.1"), task("T1.2")]);
}

/// Both tasks are complete: the second is put into a wave behind the first, which is reopened.
fn put_into_a_later_wave(story: &mut Story, plan: &str) {
    let later = plan.replace("### T1: a", "### T1: a, anew").replace("### T2", "## Wave 2\n\n### T2");
    let later = rekindle_core::plan::parse("demo", later.as_bytes()).plan.expect("a plan");
    assert_eq!(story.order(Order::Reload { plan: Box::new(later) }).reply, Reply::Accepted);
}

#[test]
fn work_of_a_later_wave_that_was_sent_back_does_not_stand_in_the_way_of_this_one() {
    let plan = "# Demo\n\n## Wave 1\n\n### T1: a\n- artifacts: a.txt\n\n### T2: b\n- artifacts: a.txt\n";
    let mut story = Story::with(plan, Limits { max_agents: 1, ..Limits::default() });
    through(&mut story, 1, "T1");
    through(&mut story, 2, "T2");
    put_into_a_later_wave(&mut story, plan);
    crash(&mut story);
    story.checked("T2", false);
    assert!(story.state.tasks[&task("T2")].workflow.rework.is_some());
    story.after_ms(600_000).input(Input::TimePassed);
    let newest = &story.state.attempts[&AttemptId(story.state.last_attempt)];
    assert_eq!((newest.is_live(), newest.tasks.clone()), (true, vec![task("T1")]));
}

#[test]
fn a_claim_that_is_repeated_after_a_restart_is_answered_as_complete() {
    let mut story = Story::of("# Demo\n\n### T1: a\n- accept: `true`\n\n### T2: b\n- accept: `true`\n");
    story.started(1);
    story.started(2);
    story.done(1, "T1");
    story.checked("T1", true);
    let limits = story.state.limits.clone();
    let alive = Found::Alive { pid: 100, shim_pid: 99 };
    story.coordinator(limits, vec![(AttemptId(1), alive.clone()), (AttemptId(2), alive)]);
    assert!(story.state.tasks[&task("T1")].workflow.validating, "it is verified again");
    assert_eq!(story.done(1, "T1").reply, Reply::Already, "the answer was lost with the coordinator");
    story.checked("T1", true);
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Complete);
    assert_eq!(story.done(1, "T1").reply, Reply::Already);
    story.order(Order::Retry { task: task("T1") });
    assert!(matches!(story.done(1, "T1").reply, Reply::Refused { .. }), "now it is somebody else's");
}

#[test]
fn a_failed_task_that_is_completed_by_hand_ends_in_an_epoch_of_its_own() {
    let mut story = Story::with("# Demo\n\n### T1: a\n- attempts: 1\n- accept: `true`\n", apart());
    story.started(1);
    story.report(1, fail("T1"));
    let failed = story.state.tasks[&task("T1")].epoch;
    assert_eq!(story.state.tasks[&task("T1")].state, TaskState::Failed);
    story.order(Order::Complete { task: task("T1"), result: None });
    assert!(story.state.tasks[&task("T1")].workflow.merging.is_some());
    assert!(story.state.tasks[&task("T1")].epoch > failed);
}

#[test]
fn a_repeated_claim_on_work_that_was_completed_meanwhile_changes_nothing() {
    let mut story = Story::of(REVIEWED);
    story.started(1);
    story.done(1, "T1");
    story.checked("T1", true);
    assert!(matches!(story.done(1, "T1").reply, Reply::Verifying { .. }), "it is with its reviewers");
    story.order(Order::Complete { task: task("T1"), result: None });
    let step = story.done(1, "T1");
    assert_eq!((step.reply, step.events.len()), (Reply::Already, 0));
}

#[test]
fn a_look_again_in_a_later_wave_does_not_hold_this_one_up() {
    let plan = "---\nreview: [auditor]\n---\n# Demo\n\n## Wave 1\n\n### T1: a\n- accept: `true`\n\n### T2: b\n- accept: `true`\n";
    let mut story = Story::with(plan, Limits { max_agents: 1, ..Limits::default() });
    for (first, id) in [(1, "T1"), (3, "T2")] {
        through(&mut story, first, id);
        story.started(first + 1);
        story.report(first + 1, verdict(Role::Auditor, Verdict::Pass));
        story.checked(id, true);
        story.exited(first + 1, exit_code(0));
    }
    put_into_a_later_wave(&mut story, plan);
    crash(&mut story);
    story.checked("T2", true);
    assert_eq!(story.state.tasks[&task("T2")].workflow.stage, Stage::Audit, "it waits for its wave");
    story.after_ms(600_000).input(Input::TimePassed);
    let newest = &story.state.attempts[&AttemptId(story.state.last_attempt)];
    assert_eq!((newest.is_live(), newest.tasks.clone()), (true, vec![task("T1")]));
}
