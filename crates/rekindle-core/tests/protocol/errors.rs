//! What is done about each kind of error.

use rekindle_core::cause::Cause;
use rekindle_core::ids::AttemptId;
use rekindle_core::input::Input;
use rekindle_core::report::Evidence;
use rekindle_core::review::{ReworkSource, Verdict};
use rekindle_core::role::Role;
use rekindle_core::state::TaskState;
use rekindle_core::strategy::Strategy;

use crate::harness::{Story, evidence, exit_code, task};
use crate::scene::{
    CRITICISED, PLAIN, REVIEWED, able, begin, crash, details, develop, happened, judge, later, newest, role, sign,
    stands,
};

/// A check that passes in one environment and fails in another.
pub fn differing() -> Evidence {
    let (good, bad) = (evidence(true), evidence(false));
    let mut checks = [good.checks, bad.checks].concat();
    checks[0].environment = Some("local".to_owned());
    checks[1].environment = Some("minimal".to_owned());
    checks[1].output = "sh: jq: not found".to_owned();
    Evidence { checks, ..Evidence::default() }
}

fn times_out(story: &mut Story) {
    let attempt = begin(story);
    story.after_ms(16 * 60 * 1000).input(Input::TimePassed);
    story.exited(attempt, exit_code(143));
    later(story);
}

rows! {
    "Error recovery summary";
    "Agent timeout: elapsed > timeout_ms: re-dispatch (up to limit)" => an_agent_that_times_out_is_replaced_up_to_the_limit {
        let mut story = Story::of(PLAIN);
        for attempt in 1..=3 {
            assert_eq!(newest(&story.state), attempt);
            times_out(&mut story);
        }
        assert_eq!(stands(&story, "T1"), TaskState::Failed);
        assert_eq!(details(&story, "workflow_failed")["reason"], "attempts_used", "a timeout is no crash");
    }
    "Agent crash: status == \"failed\": re-dispatch (up to limit)" => an_agent_that_crashes_is_replaced_up_to_the_limit {
        let mut story = Story::of(PLAIN);
        for attempt in 1..=3 {
            assert_eq!(newest(&story.state), attempt);
            crash(&mut story);
        }
        assert_eq!(stands(&story, "T1"), TaskState::Failed);
        assert_eq!(newest(&story.state), 3, "nobody is started for a task without attempts, nor behind it");
    }
    "Parse failure: no recognized signal: request checkpoint" => an_end_without_a_report_is_asked_about_once {
        let mut story = Story::with(PLAIN, able());
        let attempt = begin(&mut story);
        sign(&mut story, attempt, rekindle_core::activity::StreamEvent::Session { id: "s1".into(), model: None });
        story.exited(attempt, exit_code(0));
        later(&mut story);
        let asked = &story.state.attempts[&AttemptId(2)];
        assert!(asked.cli_session.asks_for_report && asked.cli_session.strategy == Strategy::Resume);
        assert_eq!(story.state.tasks[&task("T1")].attempts, 1, "the question costs no attempt");
    }
    "Review/audit disagreement: Critic passed, Auditor failed: log pattern, normal flow" => a_disagreement_is_kept_and_the_work_goes_back {
        let mut story = Story::of(REVIEWED);
        develop(&mut story, "T1");
        judge(&mut story, "T1", Verdict::Pass, &[], evidence(true));
        judge(&mut story, "T1", Verdict::Fail, &["no error handling"], evidence(true));
        assert_eq!(story.state.disagreements.len(), 1);
        let rework = story.state.tasks[&task("T1")].workflow.rework.clone().expect("sent back");
        assert_eq!(rework.source, ReworkSource::Auditor);
        assert_eq!((rework.findings.issues[0].as_str(), rework.findings.required[0].as_str()), ("no error handling", "handle the error"));
        assert!(rework.findings.passed.contains(&"the tests".to_owned()));
        assert_eq!(role(&story), Role::Developer);
        develop(&mut story, "T1");
        assert_eq!(role(&story), Role::Critic, "audit rework passes the critic again");
    }
    "Environment disagreement: pass in some, fail in others: developer rework with context" => differing_environments_are_sent_back_with_their_context {
        let mut story = Story::of(REVIEWED);
        develop(&mut story, "T1");
        judge(&mut story, "T1", Verdict::Pass, &[], evidence(true));
        judge(&mut story, "T1", Verdict::Pass, &[], differing());
        let rework = story.state.tasks[&task("T1")].workflow.rework.clone().expect("sent back");
        assert_eq!(rework.source, ReworkSource::Environment);
        assert!(rework.findings.issues[0].contains("`minimal`") && rework.findings.issues[0].contains("exit code 1"), "{rework:?}");
        assert!(rework.context.contains("sh: jq: not found") && rework.findings.passed[0].contains("`local`"), "{rework:?}");
    }
    "Developer fails at the limit: workflow_failed{developer_crash_limit}" => a_developer_at_its_limit_fails_the_task {
        let mut story = Story::of(PLAIN);
        for _ in 0..3 {
            crash(&mut story);
        }
        assert_eq!(details(&story, "workflow_failed")["reason"], "developer_crash_limit");
    }
    "Critic fails 3 times: bypassed to the auditor" => a_critic_at_its_limit_is_bypassed {
        let mut story = Story::of(REVIEWED);
        develop(&mut story, "T1");
        for _ in 0..3 {
            assert_eq!(role(&story), Role::Critic);
            crash(&mut story);
        }
        assert!(happened(&story, "critic_bypassed"));
        assert_eq!(role(&story), Role::Auditor);
        judge(&mut story, "T1", Verdict::Pass, &[], evidence(true));
        assert_eq!(stands(&story, "T1"), TaskState::Complete);
    }
    "Critic fails 3 times and there is no auditor: workflow_failed{critic_crash_limit}" => a_critic_at_its_limit_without_an_auditor_fails_the_task {
        let mut story = Story::of(CRITICISED);
        develop(&mut story, "T1");
        for _ in 0..3 {
            crash(&mut story);
        }
        assert_eq!(details(&story, "workflow_failed")["reason"], "critic_crash_limit");
        assert_eq!(stands(&story, "T1"), TaskState::Failed);
    }
    "Auditor fails 3 times: workflow_failed{auditor_crash_limit}" => an_auditor_at_its_limit_fails_the_task {
        let mut story = Story::of(REVIEWED);
        develop(&mut story, "T1");
        judge(&mut story, "T1", Verdict::Pass, &[], evidence(true));
        for _ in 0..3 {
            assert_eq!(role(&story), Role::Auditor);
            crash(&mut story);
        }
        assert_eq!(details(&story, "workflow_failed")["reason"], "auditor_crash_limit");
        assert_eq!(stands(&story, "T1"), TaskState::Failed);
    }
    "Retry: suggest breaking the task into smaller subtasks" => a_second_timeout_proposes_a_split {
        let mut story = Story::of(PLAIN);
        times_out(&mut story);
        assert!(!happened(&story, "split_suggested"));
        times_out(&mut story);
        assert!(happened(&story, "split_suggested"));
        let facts = rekindle_core::brief::facts_from(&story.state, AttemptId(3)).expect("a third attempt");
        assert!(facts.advise_split);
    }
    "Escalation: after max retries, mark the task failed and alert a person" => a_failed_task_alerts_a_person_with_choices {
        let mut story = Story::of(PLAIN);
        for _ in 0..3 {
            crash(&mut story);
        }
        let alert = details(&story, "person_alerted");
        let choices = alert["choices"].to_string();
        for choice in ["rekindle task retry T1", "rekindle task skip T1", "rekindle task split T1", "timeout", "clarify"] {
            assert!(choices.contains(choice), "{choice} is missing in {choices}");
        }
    }
    "A usage limit counts no attempt" => a_usage_limit_costs_no_attempt {
        let mut story = Story::with(PLAIN, able());
        let attempt = begin(&mut story);
        let failure = rekindle_core::activity::Failure {
            problem: rekindle_core::activity::Problem::UsageLimit,
            resets_at: Some(story.now.plus_ms(60_000)),
            text: "limit".into(),
            runaway: false,
        };
        sign(&mut story, attempt, rekindle_core::activity::StreamEvent::Failed(failure));
        story.exited(attempt, exit_code(1));
        assert!(matches!(story.state.attempts[&AttemptId(1)].cause, Some(Cause::UsageLimit { .. })));
        assert_eq!(story.state.tasks[&task("T1")].attempts, 0);
    }
}
