//! The team: who is left in place, who is used again, who is replaced; how many run at once, and in which order.

use rekindle_core::ids::AttemptId;
use rekindle_core::input::{Found, Input};
use rekindle_core::limits::Limits;

use crate::harness::{Story, exit_code, task};
use crate::scene::{begin, details, develop, newest};

const TWO: &str = "# Demo\n\n### T1: a\n\nDo.\n\n### T2: b\n\nDo.\n";

rows! {
    "Team state, slots and waves";
    "Responsive + working: leave in place" => a_working_agent_is_left_alone {
        let mut story = Story::of(TWO);
        begin(&mut story);
        story.started(1);
        let alive = Found::Alive { pid: 100, shim_pid: 99 };
        story.coordinator(Limits::default(), vec![(AttemptId(1), alive.clone()), (AttemptId(2), alive)]);
        assert_eq!(details(&story, "team_checked")["working"], 2);
        assert!(story.state.attempts.values().all(|attempt| attempt.stop.is_none()));
        assert_eq!(newest(&story.state), 2);
    }
    "Unresponsive: replaced" => an_unresponsive_agent_is_replaced {
        let mut story = Story::of(TWO);
        story.started(1);
        story.started(2);
        story.coordinator(Limits::default(), vec![(AttemptId(1), Found::Unresponsive), (AttemptId(2), Found::Unresponsive)]);
        assert_eq!(details(&story, "team_checked")["unresponsive"], 2);
        let silent = Input::AttemptSilent { attempt: AttemptId(1), quiet_ms: 300_000, evidence: "nothing".into() };
        story.input(silent);
        story.exited(1, exit_code(143));
        story.after_ms(400_000).input(Input::TimePassed);
        assert!(newest(&story.state) >= 3, "another agent took over");
    }
    "At most max_agents run at once" => slots_are_not_exceeded {
        let mut story = Story::with(TWO, Limits { max_agents: 1, ..Limits::default() });
        assert_eq!(story.state.live_attempts().count(), 1);
        develop(&mut story, "T1");
        assert_eq!(story.state.live_attempts().count(), 1);
    }
    "The task that unblocks most goes first, then priority, then document order" => the_most_useful_task_goes_first {
        let plan = "# Demo\n\n### T1: a\n\nDo.\n\n### T2: b\n- priority: 5\n\nDo.\n\n### T3: c\n\nDo.\n\n### T4: d\n- blocked by: T3\n\nDo.\n";
        let mut story = Story::with(plan, Limits { max_agents: 1, ..Limits::default() });
        let mut order = Vec::new();
        for _ in 0..4 {
            let id = story.state.attempts[&AttemptId(newest(&story.state))].tasks[0].to_string();
            develop(&mut story, &id);
            order.push(id);
        }
        assert_eq!(order, ["T3", "T2", "T1", "T4"]);
    }
    "Two tasks that declare the same artifact never run side by side" => one_artifact_is_one_agents {
        let plan = "# Demo\n\n### T1: a\n- artifacts: x.rs\n\nDo.\n\n### T2: b\n- artifacts: x.rs\n\nDo.\n";
        let mut story = Story::of(plan);
        assert_eq!(story.state.live_attempts().count(), 1);
        develop(&mut story, "T1");
        assert_eq!(story.state.attempts[&AttemptId(newest(&story.state))].tasks, [task("T2")]);
    }
    "… and not while one of them is under review" => an_artifact_under_review_is_left_alone {
        let plan = "---\nreview: [critic]\n---\n# Demo\n\n### T1: a\n- artifacts: x.rs\n\nDo.\n\n### T2: b\n- artifacts: x.rs\n\nDo.\n";
        let mut story = Story::of(plan);
        develop(&mut story, "T1");
        assert!(story.state.live_attempts().all(|(_, attempt)| attempt.tasks == [task("T1")]));
    }
    "Finished agents do not hold slots" => a_finished_agent_is_stopped {
        let mut story = Story::with(TWO, Limits { max_agents: 1, ..Limits::default() });
        let attempt = begin(&mut story);
        story.done(attempt, "T1");
        story.checked("T1", true);
        story.after_ms(30_000).input(Input::TimePassed);
        assert!(story.state.attempts[&AttemptId(attempt)].stop.is_some());
    }
    "With review on, a named agent ends at READY_FOR_REVIEW and its next task resumes it" => a_named_agent_is_resumed_for_its_next_task {
        let plan = "---\nreview: [critic]\n---\n# Demo\n\n### T1: a\n- agent: duo\n\nDo.\n\n### T2: b\n- agent: duo\n\nDo.\n";
        let mut story = Story::with(plan, crate::scene::able());
        let attempt = begin(&mut story);
        assert_eq!(story.state.attempts[&AttemptId(attempt)].tasks, [task("T1")], "one task a process");
        crate::scene::sign(&mut story, attempt, rekindle_core::activity::StreamEvent::Session { id: "s1".into(), model: None });
        story.done(attempt, "T1");
        story.checked("T1", true);
        assert!(story.state.attempts.values().all(|found| found.role == rekindle_core::role::Role::Developer), "the critic waits for the process to end");
        story.exited(attempt, exit_code(0));
        let next = story.state.attempts.values().find(|found| found.tasks == [task("T2")]).expect("its next task");
        assert_eq!(next.cli_session.resumes.as_deref(), Some("s1"));
    }
}
