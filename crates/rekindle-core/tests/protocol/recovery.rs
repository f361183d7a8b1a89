//! Coordinator recovery: the order in which a state that a crash left is made whole.

use rekindle_core::event::PauseReason;
use rekindle_core::ids::AttemptId;
use rekindle_core::input::{Found, Input, Order};
use rekindle_core::limits::Limits;
use rekindle_core::report::Report;
use rekindle_core::review::Verdict;
use rekindle_core::role::Role;

use crate::harness::{Story, evidence, exit_code, task};
use crate::scene::{PLAIN, REVIEWED, begin, details, develop, happened, judge, newest, place, role};

const THREE: &str = "# Demo\n\n### T1: a\n- accept: `true`\n\nDo.\n\n### T2: b\n- accept: `true`\n\nDo.\n\n### T3: c\n- accept: `true`\n\nDo.\n";

/// One task complete, one agent alive, one lost, and a question open when the coordinator is killed.
fn crashed() -> Story {
    let mut story = Story::of(THREE);
    for attempt in 1..=3 {
        story.started(attempt);
    }
    story.done(1, "T1");
    story.checked("T1", true);
    story.exited(1, exit_code(0));
    let ask = Report::Ask { task: task("T2"), text: "Which?".into(), options: Vec::new(), context: String::new() };
    story.report(2, ask);
    let alive = Found::Alive { pid: 100, shim_pid: 99 };
    story.coordinator(Limits::default(), vec![(AttemptId(2), alive), (AttemptId(3), Found::Lost)]);
    story
}

rows! {
    "Coordinator recovery";
    "Trigger: prior state and no explicit pause recorded" => a_state_without_a_pause_is_recovered {
        assert!(happened(&crashed(), "coordinator_recovered"));
    }
    "Trigger: a cleanly paused state is resumed, not recovered" => a_paused_state_is_resumed {
        let mut story = Story::of(PLAIN);
        begin(&mut story);
        story.order(Order::Pause(PauseReason::Operator));
        story.exited(1, exit_code(143));
        story.coordinator(Limits::default(), Vec::new());
        assert!(happened(&story, "session_resume") && !happened(&story, "coordinator_recovered"));
    }
    "Trigger: no prior state: start fresh" => without_a_state_nothing_is_recovered {
        assert!(!happened(&Story::of(PLAIN), "coordinator_recovered"));
    }
    "Step 2. Reconcile with the event log" => the_log_gives_the_state_back {
        let story = crashed();
        assert_eq!(story.replayed(), story.state);
    }
    "Step 3. Identify orphaned agents, re-queue their tasks" => orphans_are_found_and_their_tasks_queued_again {
        let mut story = crashed();
        assert!(happened(&story, "orphan_agent_detected"));
        story.input(Input::AttemptLost { attempt: AttemptId(3), with_host: false });
        story.checked("T1", true);
        story.after_ms(400_000).input(Input::TimePassed);
        assert_eq!(story.state.attempts[&AttemptId(newest(&story.state))].tasks, [task("T3")]);
    }
    "Step 3. Living agents are adopted, not restarted" => living_agents_are_adopted {
        let story = crashed();
        assert_eq!(details(&story, "coordinator_recovered")["adopted"], 1);
        assert!(story.state.attempts[&AttemptId(2)].is_live());
    }
    "Step 4. Validate recent completions" => recent_completions_are_validated {
        let story = crashed();
        assert_eq!(details(&story, "coordinator_recovered")["to_validate"], 1);
        assert!(story.state.tasks[&task("T1")].claim.is_some());
    }
    "Step 5. Save, log coordinator_recovered" => recovery_is_logged_with_its_counts {
        let known = details(&crashed(), "coordinator_recovered");
        assert_eq!((known["orphaned_agents"].as_u64(), known["events_reconciled"].as_u64()), (Some(1), Some(1)));
    }
    "Step 6. Resume normal operation" => the_run_goes_on {
        let mut story = crashed();
        story.input(Input::AttemptLost { attempt: AttemptId(3), with_host: false });
        story.checked("T1", true);
        story.after_ms(400_000).input(Input::TimePassed);
        assert_eq!(story.state.live_attempts().count(), 2);
    }
    "Order: questions, validation, in-progress, audits, loop" => the_order_is_kept {
        let mut story = crashed();
        assert!(place(&story, "person_alerted") < place(&story, "validation_started"), "questions first");
        story.input(Input::AttemptLost { attempt: AttemptId(3), with_host: false });
        story.after_ms(400_000).input(Input::TimePassed);
        assert_eq!(newest(&story.state), 3, "nothing new before validation is through");
        story.checked("T1", true);
        assert_eq!(newest(&story.state), 4, "then what was in progress");
    }
    "Order: pending audits go on" => a_pending_audit_goes_on {
        let mut story = Story::of(REVIEWED);
        develop(&mut story, "T1");
        judge(&mut story, "T1", Verdict::Pass, &[], evidence(true));
        let attempt = begin(&mut story);
        story.coordinator(Limits::default(), vec![(AttemptId(attempt), Found::Lost)]);
        story.input(Input::AttemptLost { attempt: AttemptId(attempt), with_host: false });
        story.after_ms(400_000).input(Input::TimePassed);
        assert_eq!(role(&story), Role::Auditor);
        assert!(newest(&story.state) > attempt);
    }
}
