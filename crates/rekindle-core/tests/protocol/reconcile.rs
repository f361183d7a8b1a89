//! Reconciling with the disk: when memory and disk disagree, the disk wins.

use rekindle_core::ids::AttemptId;
use rekindle_core::input::{Found, Input, Order};
use rekindle_core::limits::Limits;
use rekindle_core::state::TaskState;

use crate::harness::{Story, exit_code, task};
use crate::scene::{PLAIN, begin, crash, details, develop, happened, later, newest, stands};

fn restarted(story: &mut Story, found: Vec<(AttemptId, Found)>, missing: &[&str]) {
    let missing = missing.iter().map(|id| (task(id), vec!["a.txt".to_owned()])).collect();
    story.input(Input::CoordinatorStarted {
        pid: 2,
        limits: Box::new(Limits::default()),
        boot_id: "boot".into(),
        boottime_ms: 0,
        found,
        missing,
    });
}

rows! {
    "Reconcile rules";
    "PASS, artifacts on disk: stays completed" => a_complete_task_with_its_artifacts_stays_complete {
        let mut story = Story::of(PLAIN);
        develop(&mut story, "T1");
        // The crash is as late as the last thing that is known of the run.
        story.after_ms(61 * 60 * 1000).order(Order::Note { text: "an hour later".into() });
        restarted(&mut story, Vec::new(), &[]);
        assert_eq!(stands(&story, "T1"), TaskState::Complete);
    }
    "PASS, artifacts missing: queued for re-execution" => a_complete_task_without_its_artifacts_is_done_again {
        let mut story = Story::of(PLAIN);
        develop(&mut story, "T1");
        story.after_ms(61 * 60 * 1000);
        restarted(&mut story, Vec::new(), &["T1"]);
        assert!(!stands(&story, "T1").is_terminal());
        assert_eq!(details(&story, "state_reconciled")["event_type"], "artifacts_missing");
    }
    "FAIL, retry count < 3: queued for retry" => a_failure_under_the_limit_is_retried {
        let mut story = Story::of(PLAIN);
        crash(&mut story);
        restarted(&mut story, vec![(AttemptId(2), Found::NeverStarted)], &[]);
        later(&mut story);
        assert_eq!(newest(&story.state), 3);
        assert_eq!(story.state.tasks[&task("T1")].attempts, 2);
    }
    "FAIL, retry count >= 3: requires user intervention" => a_failure_at_the_limit_waits_for_a_person {
        let mut story = Story::of(PLAIN);
        for _ in 0..3 {
            crash(&mut story);
        }
        assert_eq!(stands(&story, "T1"), TaskState::Failed);
        assert!(happened(&story, "person_alerted"));
        later(&mut story);
        assert_eq!(newest(&story.state), 3);
    }
    "in_progress without a responsive agent, partial artifacts: completed by a new agent" => partial_work_is_completed_by_a_new_agent {
        let mut story = Story::of(PLAIN);
        let attempt = begin(&mut story);
        restarted(&mut story, vec![(AttemptId(attempt), Found::Lost)], &[]);
        story.input(Input::AttemptLost { attempt: AttemptId(attempt), with_host: false });
        later(&mut story);
        assert_eq!(details(&story, "developer_dispatched")["resumed"], true, "its brief tells what is on disk");
    }
    "in_progress without a responsive agent, no artifacts: full re-execution" => work_without_a_trace_is_done_again {
        let mut story = Story::of(PLAIN);
        restarted(&mut story, vec![(AttemptId(1), Found::NeverStarted)], &[]);
        later(&mut story);
        assert_eq!(story.state.attempts[&AttemptId(newest(&story.state))].tasks, [task("T1")]);
        assert_eq!(story.state.tasks[&task("T1")].attempts, 1, "an agent that never began costs nothing");
    }
    "Not in build-status: queued normally" => a_task_never_started_is_queued {
        let mut story = Story::of(PLAIN);
        develop(&mut story, "T1");
        story.after_ms(61 * 60 * 1000);
        restarted(&mut story, vec![(AttemptId(2), Found::NeverStarted)], &[]);
        later(&mut story);
        assert_eq!(story.state.attempts[&AttemptId(newest(&story.state))].tasks, [task("T2")]);
    }
    "After every wave, state is read again from disk" => the_disk_is_looked_at_between_waves {
        let mut story = Story::of("# Demo\n\n## Wave 1\n\n### T1: a\n- artifacts: a.txt\n\nDo.\n\n## Wave 2\n\n### T2: b\n\nDo.\n");
        develop(&mut story, "T1");
        assert!(happened(&story, "wave_ended"));
        assert_eq!(newest(&story.state), 1, "the next wave waits for the look");
        story.input(Input::DiskInspected { missing: vec![(task("T1"), vec!["a.txt".to_owned()])] });
        assert_eq!(story.state.attempts[&AttemptId(newest(&story.state))].tasks, [task("T1")], "the disk wins");
        develop(&mut story, "T1");
        story.input(Input::DiskInspected { missing: Vec::new() });
        assert_eq!(story.state.attempts[&AttemptId(newest(&story.state))].tasks, [task("T2")]);
        let last = newest(&story.state);
        story.started(last);
        story.exited(last, exit_code(0));
    }
}
