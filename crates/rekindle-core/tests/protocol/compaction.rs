//! The compaction procedure: persist, compact, resume, and the full reload with every second one.

use rekindle_core::brief::reloads;
use rekindle_core::cause::Cause;
use rekindle_core::ids::AttemptId;
use rekindle_core::input::Input;
use rekindle_core::limits::{Limits, Traits};

use crate::harness::{Story, exit_code, task};
use crate::scene::{PLAIN, able, begin, compact, context_left, details, happened, later, place};

/// An agent whose context is nearly full.
fn full() -> (Story, u64) {
    let mut story = Story::with(
        "# Demo\n\n### T1: a\n- agent: duo\n- accept: `true`\n\nDo.\n\n### T2: b\n- agent: duo\n\nDo.\n\n### T3: c\n\nDo.\n",
        able(),
    );
    story.started(1);
    story.started(2);
    context_left(&mut story, 1, 10);
    (story, 1)
}

/// An agent that cannot compact by itself and hears messages.
fn cannot() -> Limits {
    let traits = Traits { structured_output: true, takes_messages: true, ..Traits::new("plain") };
    Limits { traits: [("default".to_owned(), traits)].into(), clis: vec!["default".to_owned()], ..Limits::default() }
}

rows! {
    "Auto-compaction procedure";
    "Trigger: context ≤ threshold (10 %) remaining" => at_ten_percent_a_compaction_is_prepared {
        let mut story = Story::with(PLAIN, able());
        let attempt = begin(&mut story);
        context_left(&mut story, attempt, 11);
        assert!(!happened(&story, "compaction_start"));
        context_left(&mut story, attempt, 10);
        assert!(happened(&story, "compaction_start"));
    }
    "Persist 1. No further task for that agent" => no_further_task_while_it_is_prepared {
        let (mut story, attempt) = full();
        story.done(attempt, "T1");
        story.checked("T1", true);
        assert_eq!(story.state.tasks[&task("T2")].state, rekindle_core::state::TaskState::Pending);
    }
    "Persist 2. A checkpoint is asked for" => a_checkpoint_is_asked_for {
        let (story, _) = full();
        assert!(details(&story, "agent_told")["text"].as_str().is_some_and(|text| text.contains("checkpoint")));
    }
    "Persist 2. Healthy agents are left alone" => healthy_agents_are_left_alone {
        let (story, _) = full();
        let other = &story.state.attempts[&AttemptId(2)];
        assert!(other.cli_session.told.is_empty() && other.stop.is_none());
    }
    "Persist 3, 5. The counter goes up and compaction_start is logged" => the_counter_goes_up {
        let (story, _) = full();
        assert_eq!(details(&story, "compaction_start")["compaction_number"], 1);
    }
    "Persist 4. State is written before anything is told" => the_state_is_written_first {
        let (story, _) = full();
        assert!(place(&story, "compaction_start") < place(&story, "agent_told"));
        assert_eq!(story.replayed(), story.state);
    }
    "Compact 1. The CLI's own way where it has one" => a_kind_that_compacts_is_left_to_it {
        let (story, attempt) = full();
        assert!(story.state.attempts[&AttemptId(attempt)].stop.is_none());
    }
    "Compact 1. … else a hand-over after 30 s for the checkpoint" => a_kind_that_does_not_is_handed_over {
        let mut story = Story::with(PLAIN, cannot());
        let attempt = begin(&mut story);
        context_left(&mut story, attempt, 5);
        story.after_ms(29_999).input(Input::TimePassed);
        assert!(story.state.attempts[&AttemptId(attempt)].stop.is_none());
        story.after_ms(1).input(Input::TimePassed);
        assert_eq!(story.state.attempts[&AttemptId(attempt)].stop.as_ref().map(|stop| stop.cause.clone()), Some(Cause::ContextExhausted));
        story.exited(attempt, exit_code(143));
        later(&mut story);
        let facts = rekindle_core::brief::facts_from(&story.state, AttemptId(2)).expect("a fresh agent");
        assert!(facts.advise_split);
    }
    "Resume 2. Full plan reload if compaction_count % 2 == 0" => every_second_compaction_reloads_the_plan {
        assert_eq!((0..=6).map(reloads).collect::<Vec<_>>(), [false, false, true, false, true, false, true]);
    }
    "Resume 5. compaction_complete with full_reload" => the_completion_says_whether_the_plan_was_reloaded {
        let (mut story, attempt) = full();
        compact(&mut story, attempt, 20);
        assert_eq!(details(&story, "compaction_complete")["full_reload"], false);
    }
    "Resume: the agent is on task when it touches its work, else told once more, then handed over" => an_agent_astray_is_told_then_replaced {
        let (mut story, attempt) = full();
        compact(&mut story, attempt, 20);
        story.after_ms(5 * 60 * 1000).input(Input::TimePassed);
        assert!(story.state.attempts[&AttemptId(attempt)].stop.is_none(), "it is told once more");
        story.after_ms(5 * 60 * 1000).input(Input::TimePassed);
        assert_eq!(story.state.attempts[&AttemptId(attempt)].stop.as_ref().map(|stop| stop.cause.clone()), Some(Cause::Compacted));
    }
    "Repeated compaction on one task hands over to a fresh agent" => repeated_compaction_hands_over {
        let (mut story, attempt) = full();
        compact(&mut story, attempt, 20);
        compact(&mut story, attempt, 60);
        assert_eq!(story.state.attempts[&AttemptId(attempt)].stop.as_ref().map(|stop| stop.cause.clone()), Some(Cause::Compacted));
    }
    "Two compactions with at most four model turns between them are a loop" => a_loop_is_recognised {
        let (mut story, attempt) = full();
        compact(&mut story, attempt, 20);
        compact(&mut story, attempt, 24);
        assert_eq!(story.state.attempts[&AttemptId(attempt)].stop.as_ref().map(|stop| stop.cause.clone()), Some(Cause::CompactionLoop));
    }
}
