//! Who may give a verdict, on what, and what a word is worth that is said twice or by somebody else.

use rekindle_core::decide::{Reply, Step};
use rekindle_core::ids::AttemptId;
use rekindle_core::report::Report;
use rekindle_core::review::{Findings, Stage, Verdict};
use rekindle_core::role::Role;
use rekindle_core::state::TaskState;

use crate::harness::{Story, exit_code, task};

const ONE: &str = "---\nreview: [critic, auditor]\n---\n# Demo\n\n### T1: a\n- accept: `true`\n\nDo.\n";

fn verdict(role: Role, verdict: Verdict, named: Option<&str>) -> Report {
    let issues = if verdict == Verdict::Pass { Vec::new() } else { vec!["no test".to_owned()] };
    Report::Verdict { task: named.map(task), role, verdict, findings: Findings { issues, ..Findings::default() } }
}

/// Up to the critic, who runs as attempt 2.
fn at_review() -> Story {
    let mut story = Story::of(ONE);
    story.started(1);
    story.done(1, "T1");
    story.checked("T1", true);
    story.exited(1, exit_code(0));
    story.started(2);
    assert_eq!(story.state.attempts[&AttemptId(2)].role, Role::Critic);
    story
}

fn refused(step: &Step) -> &str {
    match &step.reply {
        Reply::Refused { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_claim_said_again_is_answered_like_the_first() {
    let mut story = Story::of(ONE);
    story.started(1);
    story.done(1, "T1");
    story.checked("T1", true);
    assert_eq!(story.state.tasks[&task("T1")].workflow.stage, Stage::Review);
    let again = story.done(1, "T1");
    assert!(matches!(again.reply, Reply::Verifying { .. }), "{:?}", again.reply);
    assert!(again.events.is_empty(), "{:?}", again.events);
}

#[test]
fn a_developer_cannot_pass_its_own_review() {
    let mut story = Story::of(ONE);
    story.started(1);
    for role in [Role::Critic, Role::Auditor] {
        let step = story.report(1, verdict(role, Verdict::Pass, Some("T1")));
        assert!(refused(&step).contains("not yours to give"), "{}", refused(&step));
    }
    story.done(1, "T1");
    story.checked("T1", true);
    let step = story.report(1, verdict(Role::Critic, Verdict::Pass, Some("T1")));
    assert!(refused(&step).contains("no longer yours"), "{}", refused(&step));
    assert_eq!(story.state.tasks[&task("T1")].workflow.stage, Stage::Review);
}

#[test]
fn a_repair_is_reported_only_by_who_repairs() {
    let mut story = at_review();
    for attempt in [1, 2] {
        let step = story.report(attempt, verdict(Role::Remediation, Verdict::Pass, None));
        assert!(matches!(step.reply, Reply::Refused { .. }), "{attempt}: {:?}", step.reply);
        let held = &story.state.tasks[&task("T1")];
        assert_eq!((held.workflow.stage, held.claim.is_some()), (Stage::Review, false), "{attempt}");
    }
}

#[test]
fn a_verdict_said_again_after_a_lost_answer_is_one_verdict() {
    let mut story = at_review();
    assert_eq!(story.report(2, verdict(Role::Critic, Verdict::Pass, Some("T1"))).reply, Reply::Accepted);
    assert_eq!(story.report(2, verdict(Role::Critic, Verdict::Pass, None)).reply, Reply::Already);
    assert_eq!(story.state.tasks[&task("T1")].workflow.verdicts.len(), 1);
    let other = story.report(2, verdict(Role::Critic, Verdict::Fail, Some("T1")));
    assert!(refused(&other).contains("no longer yours"), "{}", refused(&other));
}

#[test]
fn an_auditor_of_health_may_speak_like_any_auditor() {
    let text = "---\nhealth: [make]\n---\n# Demo\n\n### T1: a\n- accept: `true`\n- blocked by: T2\n\nDo.\n\n### T2: b\n\nDo.\n";
    let mut story = Story::of(text);
    let check = |passed: bool| crate::harness::evidence(passed).checks;
    story.input(rekindle_core::input::Input::HealthChecked { results: check(false) });
    let repairs = |story: &Story| {
        let mut live = story.state.live_attempts();
        live.find(|(_, found)| found.tasks.contains(&task("health"))).map(|(id, found)| (id.0, found.role))
    };
    let (first, role) = repairs(&story).expect("a repair");
    assert_eq!(role, Role::Remediation);
    story.started(first);
    let step = story.report(first, verdict(Role::Remediation, Verdict::Pass, None));
    assert!(matches!(step.reply, Reply::Verifying { .. }), "{:?}", step.reply);
    story.checked("health", true);
    story.exited(first, exit_code(0));
    let (second, role) = repairs(&story).expect("its audit");
    assert_eq!(role, Role::HealthAuditor);
    story.started(second);
    assert_eq!(story.report(second, verdict(Role::Auditor, Verdict::Pass, Some("health"))).reply, Reply::Accepted);
    story.checked("health", true);
    assert_eq!(story.state.tasks[&task("health")].state, TaskState::Complete);
    assert_eq!(story.replayed(), story.state);
}

/// Found by the properties: a task that is looked at again and waits for another one kept that one from being begun.
#[test]
fn what_is_looked_at_again_keeps_nobody_waiting_whom_it_waits_for() {
    let text = "# Demo\n\n### T1: a\n- accept: `true`\n\nDo.\n\n### T2: b\n- accept: `true`\n- blocked by: T1\n\nDo.\n";
    let mut story = Story::of(text);
    for (attempt, id) in [(1, "T1"), (2, "T2")] {
        story.started(attempt);
        story.done(attempt, id);
        story.checked(id, true);
        story.exited(attempt, exit_code(0));
    }
    // The log ends in the middle: both are open again, and only the second is known to be looked at.
    let mut state = story.state.clone();
    state.run.as_mut().expect("a run").phase = rekindle_core::state::RunPhase::Running;
    for id in ["T1", "T2"] {
        state.tasks.get_mut(&task(id)).expect("a task").state = TaskState::Pending;
    }
    state.tasks.get_mut(&task("T2")).expect("a task").workflow.validating = true;
    state.forget_index();
    story.state = state;
    story.input(rekindle_core::input::Input::TimePassed);
    let (_, found) = story.state.live_attempts().next().expect("somebody begins");
    assert_eq!(found.tasks, [task("T1")]);
}
