//! The events of the protocol: each is written when it should be, with its fields under their names.

use rekindle_core::event::Event;
use rekindle_core::ids::AttemptId;
use rekindle_core::input::{Found, Input};
use rekindle_core::limits::Limits;
use rekindle_core::review::Verdict;
use serde_json::Value;

use crate::errors::differing;
use crate::harness::{Story, evidence, exit_code, task};
use crate::scene::{PLAIN, REVIEWED, able, begin, compact, context_left, crash, details, develop, judge, last, later};

/// The newest event of a name has these fields in its details, and names task and agent where it is about them.
fn has(story: &Story, name: &str, fields: &[&str]) -> Value {
    let known = details(story, name);
    for field in fields {
        assert!(known.get(field).is_some(), "{name} has no {field}: {known}");
    }
    known
}

fn is_about(event: &Event, id: &str) {
    assert_eq!(event.task, Some(task(id)), "{event:?}");
    assert!(event.agent.is_some(), "{event:?}");
}

/// The role at work takes too long, is replaced, and the replacement is said.
fn timed_out_and_replaced(story: &mut Story, role: &str) {
    let attempt = begin(story);
    story.after_ms(16 * 60 * 1000).input(Input::TimePassed);
    story.exited(attempt, exit_code(143));
    later(story);
    has(story, &format!("{role}_timeout"), &["timeout_ms"]);
    is_about(last(story, &format!("{role}_timeout")), "T1");
    let again = has(story, &format!("{role}_redispatched"), &["attempt"]);
    assert_eq!(again["attempt"], 2);
    is_about(last(story, &format!("{role}_dispatched")), "T1");
}

fn reviewing() -> Story {
    let mut story = Story::of(REVIEWED);
    develop(&mut story, "T1");
    story
}

fn auditing() -> Story {
    let mut story = reviewing();
    judge(&mut story, "T1", Verdict::Pass, &[], evidence(true));
    story
}

rows! {
    "Events and their fields";
    "compaction_start: compaction_number, context_remaining" => compaction_start_tells_number_and_rest {
        let mut story = Story::with(PLAIN, able());
        let attempt = begin(&mut story);
        context_left(&mut story, attempt, 9);
        let known = has(&story, "compaction_start", &["compaction_number", "context_remaining"]);
        assert_eq!((known["compaction_number"].as_u64(), known["context_remaining"].as_u64()), (Some(1), Some(9)));
    }
    "compaction_complete: compaction_number, full_reload" => compaction_complete_tells_number_and_reload {
        let mut story = Story::with(PLAIN, able());
        story.state.limits.compaction.hand_over_after = 9;
        let attempt = begin(&mut story);
        for number in 1..=2 {
            context_left(&mut story, attempt, 9);
            compact(&mut story, attempt, number * 20);
            let known = has(&story, "compaction_complete", &["compaction_number", "full_reload"]);
            assert_eq!((known["compaction_number"].as_u64(), known["full_reload"].as_bool()), (Some(number), Some(number == 2)));
            context_left(&mut story, attempt, 80);
        }
    }
    "session_pause: reason, remaining_percent, resets_at" => session_pause_tells_why_and_until_when {
        let story = crate::pause::low();
        let known = has(&story, "session_pause", &["reason", "remaining_percent", "resets_at"]);
        assert_eq!((known["reason"].as_str(), known["remaining_percent"].as_u64()), (Some("usage_limit"), Some(5)));
    }
    "session_resume: resume_count, tasks_to_revalidate" => session_resume_tells_how_often_and_what_is_looked_at {
        let mut story = crate::pause::low();
        crate::pause::reset(&mut story);
        let known = has(&story, "session_resume", &["resume_count", "tasks_to_revalidate"]);
        assert_eq!(known["resume_count"], 1);
    }
    "developer_dispatched: task_id, agent_id, blocked_by, resumed" => developer_dispatched_tells_whom_and_whether_it_goes_on {
        let mut story = Story::of(PLAIN);
        assert_eq!(has(&story, "developer_dispatched", &["blocked_by", "resumed"])["resumed"], false);
        is_about(last(&story, "developer_dispatched"), "T1");
        crash(&mut story);
        assert_eq!(has(&story, "developer_dispatched", &["resumed"])["resumed"], true);
    }
    "developer_timeout, developer_redispatched: task_id, developer_id, attempt" => developer_timeout_and_replacement_are_said {
        timed_out_and_replaced(&mut Story::of(PLAIN), "developer");
    }
    "critic_dispatched, critic_timeout, critic_redispatched: task_id, critic_id, attempt" => critic_timeout_and_replacement_are_said {
        timed_out_and_replaced(&mut reviewing(), "critic");
    }
    "auditor_dispatched, auditor_timeout, auditor_redispatched: task_id, auditor_id, attempt" => auditor_timeout_and_replacement_are_said {
        timed_out_and_replaced(&mut auditing(), "auditor");
    }
    "agent_crashed: agent_id, task_id" => agent_crashed_names_agent_and_task {
        let mut story = Story::of(PLAIN);
        crash(&mut story);
        is_about(last(&story, "agent_crashed"), "T1");
    }
    "workflow_failed: reason, task_id" => workflow_failed_names_limit_and_task {
        let mut story = Story::of(PLAIN);
        for _ in 0..3 {
            crash(&mut story);
        }
        has(&story, "workflow_failed", &["reason"]);
        assert_eq!(last(&story, "workflow_failed").task, Some(task("T1")));
    }
    "review_audit_disagreement: task_id, critic_passed, auditor_failed" => review_audit_disagreement_tells_both_sides {
        let mut story = auditing();
        judge(&mut story, "T1", Verdict::Fail, &["bad names"], evidence(true));
        let known = has(&story, "review_audit_disagreement", &["critic_passed", "auditor_failed", "disagreement_type", "issue_category"]);
        assert_eq!(known["auditor_failed"][0], "bad names");
        is_about(last(&story, "review_audit_disagreement"), "T1");
    }
    "critic_missed_quality_issue: task_id, issues" => critic_missed_quality_issue_tells_the_issues {
        let mut story = auditing();
        judge(&mut story, "T1", Verdict::Fail, &["bad names"], evidence(true));
        assert_eq!(has(&story, "critic_missed_quality_issue", &["issues"])["issues"][0], "bad names");
    }
    "environment_disagreement: task_id, passed, failed (env, check, error)" => environment_disagreement_tells_where {
        let mut story = auditing();
        judge(&mut story, "T1", Verdict::Pass, &[], differing());
        let known = has(&story, "environment_disagreement", &["passed", "failed"]);
        assert_eq!(known["passed"][0], "local");
        let failed = &known["failed"][0];
        assert_eq!((failed["env"].as_str(), failed["check"].as_str(), failed["error"].as_str()), (Some("minimal"), Some("true"), Some("sh: jq: not found")));
        assert_eq!(last(&story, "environment_disagreement").task, Some(task("T1")));
    }
    "coordinator_recovered: orphaned_agents, events_reconciled" => coordinator_recovered_counts {
        let mut story = Story::of(PLAIN);
        begin(&mut story);
        story.coordinator(Limits::default(), vec![(AttemptId(1), Found::Lost)]);
        let known = has(&story, "coordinator_recovered", &["orphaned_agents", "events_reconciled"]);
        assert_eq!((known["orphaned_agents"].as_u64(), known["events_reconciled"].as_u64()), (Some(1), Some(1)));
    }
    "orphan_agent_detected: agent_id, task_id, type" => orphan_agent_detected_names_agent_task_and_type {
        let mut story = Story::of(PLAIN);
        begin(&mut story);
        story.coordinator(Limits::default(), vec![(AttemptId(1), Found::Lost)]);
        assert_eq!(has(&story, "orphan_agent_detected", &["type"])["type"], "developer");
        is_about(last(&story, "orphan_agent_detected"), "T1");
    }
    "state_reconciled: event_type, task_id" => state_reconciled_names_the_fact_and_the_task {
        let mut story = Story::of(PLAIN);
        begin(&mut story);
        story.coordinator(Limits::default(), vec![(AttemptId(1), Found::Finished(exit_code(0)))]);
        assert_eq!(has(&story, "state_reconciled", &["event_type"])["event_type"], "attempt_exited");
        is_about(last(&story, "state_reconciled"), "T1");
    }
}
