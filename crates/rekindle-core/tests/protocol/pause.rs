//! The pause procedure and the order in which a run goes on after it.

use rekindle_core::effect::Effect;
use rekindle_core::event::{PauseReason, UsageLeft};
use rekindle_core::ids::AttemptId;
use rekindle_core::input::{Input, Order};
use rekindle_core::limits::Limits;
use rekindle_core::refusal::Refusal;
use rekindle_core::report::{Checkpoint, Report};
use rekindle_core::review::Verdict;
use rekindle_core::role::Role;
use rekindle_core::state::{RunPhase, TaskState};
use rekindle_core::time::Time;

use crate::harness::{Story, evidence, exit_code, task};
use crate::scene::{REVIEWED, able, begin, details, develop, happened, judge, last, newest, place, role, stands};

/// Two tasks side by side, for agents that hear messages, with a command that tells what is left.
const TWO: &str = "# Demo\n\n### T1: first\n- accept: `true`\n\nDo.\n\n### T2: second\n- accept: `true`\n\nDo.\n\n### T3: third\n- blocked by: T1, T2\n- accept: `true`\n\nDo.\n";

fn asking(limits: Limits) -> Limits {
    let mut limits = limits;
    limits.usage.asks = true;
    limits
}

fn left(percent: u8, resets_at: Option<Time>) -> Input {
    Input::UsageSeen(UsageLeft { remaining_percent: Some(percent), resets_at })
}

/// A run whose allowance is nearly used up before anything was begun.
pub fn low() -> Story {
    let mut story = Story::with(TWO, asking(able()));
    assert!(story.state.attempts.is_empty(), "nothing begins before the allowance is known");
    let reset = story.now.plus_ms(3_600_000);
    story.input(left(5, Some(reset)));
    story
}

/// The reset comes, and the grace after it.
pub fn reset(story: &mut Story) {
    let at = story.state.run.as_ref().and_then(|run| run.resumes_at).expect("it goes on by itself");
    let wait = at.since_ms(story.now);
    story.after_ms(wait).input(Input::TimePassed);
}

/// A run with one task complete and one in progress, whose agent hears messages, is being paused.
fn pausing() -> Story {
    let mut story = Story::with(TWO, able());
    story.started(1);
    story.started(2);
    story.done(1, "T1");
    story.checked("T1", true);
    story.exited(1, exit_code(0));
    story.order(Order::Pause(PauseReason::Operator));
    story
}

/// The same, paused.
fn paused() -> Story {
    let mut story = pausing();
    checkpoint(&mut story);
    story.exited(2, exit_code(143));
    story
}

fn checkpoint(story: &mut Story) {
    let checkpoint = Checkpoint { status: "half".into(), remaining: vec!["the rest".into()], ..Checkpoint::default() };
    story.report(2, Report::Checkpoint { task: task("T2"), checkpoint });
}

fn resume(story: &mut Story) {
    let limits = story.state.limits.clone();
    story.coordinator(limits, Vec::new());
}

rows! {
    "Session pause and the order of resumption after it";
    "Trigger: remaining ≤ threshold from the usage script" => usage_at_the_threshold_pauses {
        let story = low();
        assert!(matches!(story.state.run.as_ref().map(|run| run.phase), Some(RunPhase::Waiting(PauseReason::UsageLimit))));
    }
    "Trigger: user stop" => an_operator_pauses {
        let story = paused();
        assert!(matches!(story.state.run.as_ref().map(|run| run.phase), Some(RunPhase::Paused(PauseReason::Operator))));
    }
    "Trigger: system error" => want_of_room_pauses_until_there_is_some {
        let mut story = Story::of(TWO);
        for attempt in [1, 2] {
            story.started(attempt);
        }
        story.input(Input::PressureSeen { short: Some(Refusal { reason: "the disk is full".into(), hint: "df".into() }) });
        for (attempt, id) in [(1, "T1"), (2, "T2")] {
            story.done(attempt, id);
            story.checked(id, true);
            story.exited(attempt, exit_code(0));
        }
        assert_eq!(details(&story, "session_pause")["reason"], "system_error");
        story.input(Input::PressureSeen { short: None });
        assert!(happened(&story, "session_resume"));
    }
    "1. Stop all new task assignments immediately" => nothing_is_assigned_in_a_pause {
        let mut story = paused();
        story.after_ms(3_600_000).input(Input::TimePassed);
        assert_eq!(newest(&story.state), 2);
    }
    "2. Collect checkpoints from all active developers" => agents_are_asked_for_checkpoints_before_they_are_stopped {
        let mut story = pausing();
        assert!(details(&story, "agent_told")["text"].as_str().is_some_and(|text| text.contains("checkpoint")));
        assert!(story.state.attempts[&AttemptId(2)].stop.is_none(), "it has time to answer");
        checkpoint(&mut story);
        assert!(story.state.attempts[&AttemptId(2)].stop.is_some());
        assert!(place(&story, "checkpoint_saved") < place(&story, "stop_ordered"));
    }
    "2. … and 30 s to answer" => an_agent_that_does_not_answer_is_stopped_after_30_seconds {
        let mut story = pausing();
        story.after_ms(29_999).input(Input::TimePassed);
        assert!(story.state.attempts[&AttemptId(2)].stop.is_none());
        story.after_ms(1).input(Input::TimePassed);
        assert!(story.state.attempts[&AttemptId(2)].stop.is_some());
    }
    "3. Write state; 4. log session_pause" => a_pause_is_in_the_log_before_agents_are_stopped {
        let mut story = pausing();
        checkpoint(&mut story);
        assert!(place(&story, "session_pause") < place(&story, "stop_ordered"));
        assert_eq!(story.replayed(), story.state);
    }
    "6. Wait until resets_at + 5 minutes: asked after 10 s, 30 s and 2 minutes already" => a_run_asks_from_the_reset_until_five_minutes_after_it {
        let mut story = low();
        let resets_at = Time(details(&story, "session_pause")["resets_at"].as_i64().expect("a time"));
        let wait = resets_at.since_ms(story.now);
        story.after_ms(wait).input(Input::TimePassed);
        assert!(!happened(&story, "session_resume"), "not at the reset itself");
        for seconds in [10, 30, 120, 300] {
            reset(&mut story);
            let after = last(&story, "session_resume").time.since_ms(resets_at) / 1_000;
            let bound = (seconds + seconds / 10).min(300);
            assert!((seconds..=bound).contains(&after), "asked {after} s after the reset, due after {seconds}");
            assert!(story.state.attempts.is_empty(), "it is asked, nothing is begun");
            story.input(left(5, Some(resets_at)));
        }
    }
    "7. Auto-resume" => a_run_goes_on_by_itself_and_asks_again {
        let mut story = low();
        reset(&mut story);
        assert_eq!(story.state.run.as_ref().map(|run| run.phase), Some(RunPhase::Running));
        assert!(story.state.usage.asking && story.state.attempts.is_empty(), "the allowance is asked for first");
        story.input(left(90, None));
        assert_eq!(story.state.live_attempts().count(), 2);
    }
    "Resume 1, 2. SESSION RESUMED with session_resume first" => the_resumption_is_said_first {
        let mut story = paused();
        resume(&mut story);
        let before = place(&story, "session_resume");
        assert!(before < place(&story, "validation_started"));
    }
    "Resume 5. Increment session_resume_count" => resumptions_are_counted {
        let mut story = paused();
        resume(&mut story);
        assert_eq!(details(&story, "session_resume")["resume_count"], 1);
        assert_eq!(story.state.run.as_ref().map(|run| run.resumes), Some(1));
    }
    "Resume 6. Pending questions before agents are restored" => questions_come_before_agents {
        let mut story = Story::with(TWO, able());
        story.started(1);
        let ask = Report::Ask { task: task("T1"), text: "Which?".into(), options: Vec::new(), context: String::new() };
        story.report(1, ask);
        story.order(Order::Pause(PauseReason::Stop));
        for attempt in [1, 2] {
            story.exited(attempt, exit_code(143));
        }
        resume(&mut story);
        assert!(details(&story, "person_alerted")["text"].as_str().is_some_and(|text| text.contains("Which?")));
        assert!(place(&story, "person_alerted") < place(&story, "developer_dispatched"));
    }
    "Resume 7. Tasks completed in the last 60 minutes before the pause are validated" => recent_completions_are_validated {
        let mut story = paused();
        let told = { resume(&mut story); details(&story, "session_resume")["tasks_to_revalidate"].clone() };
        assert_eq!(told, 1);
        let epoch = story.state.tasks[&task("T1")].epoch;
        assert!(rekindle_core::decide::outstanding(&story.state).contains(&Effect::RunChecks { task: task("T1"), epoch }));
    }
    "Resume 7. … and by an auditor where the plan has one" => recent_completions_are_audited_too {
        let mut story = Story::of(REVIEWED);
        develop(&mut story, "T1");
        judge(&mut story, "T1", Verdict::Pass, &[], evidence(true));
        let attempt = begin(&mut story);
        story.state.run.as_mut().expect("a run").plan.tasks[0].accept = vec!["true".to_owned()];
        crate::scene::give(&mut story, attempt, "T1", Role::Auditor, Verdict::Pass, &[]);
        story.order(Order::Pause(PauseReason::Operator));
        story.checked("T1", true);
        story.exited(attempt, exit_code(0));
        assert_eq!(stands(&story, "T1"), TaskState::Complete);
        resume(&mut story);
        story.checked("T1", true);
        assert_eq!(role(&story), Role::Auditor, "the checks passed, now its auditor");
        judge(&mut story, "T1", Verdict::Fail, &["it no longer works"], evidence(true));
        assert_eq!(stands(&story, "T1"), TaskState::InProgress, "it is open again and handed out");
        assert_eq!(role(&story), Role::Developer);
    }
    "Resume 7. … counted from the pause, not from now" => the_window_is_counted_from_the_pause {
        let mut story = paused();
        story.after_ms(5 * 3_600_000);
        resume(&mut story);
        assert!(happened(&story, "validation_started"), "the pause itself does not count");
        let mut early = Story::with(TWO, able());
        early.started(1);
        early.started(2);
        early.done(1, "T1");
        early.checked("T1", true);
        early.exited(1, exit_code(0));
        early.after_ms(61 * 60 * 1000).order(Order::Pause(PauseReason::Stop));
        early.exited(2, exit_code(143));
        resume(&mut early);
        assert!(!happened(&early, "validation_started"), "it was complete for more than an hour");
    }
    "Resume 8. Wait for validation before assigning new work" => nothing_new_before_validation_is_through {
        let mut story = paused();
        resume(&mut story);
        assert_eq!(newest(&story.state), 2, "nothing is handed out yet");
        story.checked("T1", true);
        assert_eq!(newest(&story.state), 3);
    }
    "Resume 8. … and a failure reopens the task" => a_failed_validation_reopens_the_task {
        let mut story = paused();
        resume(&mut story);
        story.checked("T1", false);
        let reopened = &story.state.tasks[&task("T1")];
        assert!(reopened.workflow.rework.is_some() && !reopened.state.is_terminal());
    }
    "Resume 9. Restore in-progress work with its checkpoint" => work_in_progress_is_restored_with_its_checkpoint {
        let mut story = paused();
        resume(&mut story);
        story.checked("T1", true);
        let facts = rekindle_core::brief::facts_from(&story.state, AttemptId(3)).expect("an attempt");
        assert_eq!(facts.current().map(|current| current.id.clone()), Some(task("T2")));
        assert_eq!(facts.checkpoint.map(|checkpoint| checkpoint.status), Some("half".to_owned()));
        assert_eq!(details(&story, "developer_dispatched")["resumed"], true);
    }
    "Resume 10. Process pending audits" => pending_audits_go_on {
        let mut story = Story::of(REVIEWED);
        develop(&mut story, "T1");
        judge(&mut story, "T1", Verdict::Pass, &[], evidence(true));
        story.order(Order::Pause(PauseReason::Stop));
        let attempt = newest(&story.state);
        story.exited(attempt, exit_code(143));
        resume(&mut story);
        assert_eq!(role(&story), Role::Auditor);
        assert_eq!(story.state.tasks[&task("T1")].workflow.audit_tries, 1, "the pause cost no try");
    }
    "Resume: pending audits before developers (finish before starting)" => reviewers_go_before_auditors_before_developers {
        let mut story = Story::with(
            "---\nreview: [critic, auditor]\nmax_agents: 1\n---\n# Demo\n\n### T1: a\n\nDo.\n\n### T2: b\n\nDo.\n",
            Limits { max_agents: 1, ..Limits::default() },
        );
        develop(&mut story, "T1");
        assert_eq!(role(&story), Role::Critic, "the critic of the first goes before the developer of the second");
        judge(&mut story, "T1", Verdict::Pass, &[], evidence(true));
        assert_eq!(role(&story), Role::Auditor);
    }
    "A pause survives the coordinator" => a_wait_for_the_reset_survives_the_coordinator {
        let mut story = low();
        let limits = story.state.limits.clone();
        story.after_ms(1_000).coordinator(limits, Vec::new());
        assert!(matches!(story.state.run.as_ref().map(|run| run.phase), Some(RunPhase::Waiting(_))));
        reset(&mut story);
        assert!(happened(&story, "session_resume"));
    }
}
