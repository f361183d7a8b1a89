//! How long each role may take.

use rekindle_core::event::{AttemptEvent, Body};
use rekindle_core::ids::AttemptId;
use rekindle_core::input::Input;
use rekindle_core::review::Verdict;
use rekindle_core::role::Role;

use crate::harness::{Story, evidence};
use crate::scene::{REVIEWED, begin, details, develop, happened, judge, role};

/// The role at work times out after so many minutes, and not a moment before.
fn times_out(story: &mut Story, expected: Role, minutes: u64) {
    assert_eq!(role(story), expected);
    let attempt = begin(story);
    let limit = minutes * 60 * 1000;
    story.after_ms(limit - 1).input(Input::TimePassed);
    assert!(story.state.attempts[&AttemptId(attempt)].stop.is_none(), "{expected} was stopped too early");
    story.after_ms(1).input(Input::TimePassed);
    assert!(story.state.attempts[&AttemptId(attempt)].stop.is_some(), "{expected} was not stopped");
    let told = story
        .log
        .iter()
        .any(|event| matches!(event.body, Body::Attempt(AttemptEvent::RoleTimeout { role, .. }) if role == expected));
    assert!(told, "no event for {expected}");
    assert_eq!(details(story, &format!("{expected}_timeout"))["timeout_ms"], limit);
}

/// A plan whose health command fails at the start, so that it is repaired.
fn unhealthy() -> Story {
    let mut story = Story::of(
        "---\nhealth: [\"make check\"]\n---\n# Demo\n\n### T1: first\n- blocked by: T0\n\nDo.\n\n### T0: zero\n\nDo.\n",
    );
    let mut failing = evidence(false).checks;
    failing[0].command = "make check".to_owned();
    story.state.limits.max_agents = 1;
    story.input(Input::HealthChecked { results: failing });
    story
}

rows! {
    "Timeout values by agent type";
    "Developer: 15 min" => developer_has_15_minutes {
        times_out(&mut Story::of(REVIEWED), Role::Developer, 15);
    }
    "Critic: 10 min" => critic_has_10_minutes {
        let mut story = Story::of(REVIEWED);
        develop(&mut story, "T1");
        times_out(&mut story, Role::Critic, 10);
    }
    "Auditor: 10 min" => auditor_has_10_minutes {
        let mut story = Story::of(REVIEWED);
        develop(&mut story, "T1");
        judge(&mut story, "T1", Verdict::Pass, &[], evidence(true));
        times_out(&mut story, Role::Auditor, 10);
    }
    "Remediation: 5 min" => remediation_has_5_minutes {
        let mut story = unhealthy();
        finish_others(&mut story);
        times_out(&mut story, Role::Remediation, 5);
    }
    "Health Auditor: 5 min" => health_auditor_has_5_minutes {
        let mut story = unhealthy();
        finish_others(&mut story);
        develop(&mut story, "health");
        times_out(&mut story, Role::HealthAuditor, 5);
    }
    "Timeout tracking: counted from the task's start, not the process's" => time_counts_from_the_tasks_start {
        let mut story = Story::of("# Demo\n\n### T1: a\n- agent: duo\n\nDo.\n\n### T2: b\n- agent: duo\n\nDo.\n");
        let attempt = begin(&mut story);
        story.after_ms(14 * 60 * 1000);
        story.done(attempt, "T1");
        story.checked("T1", true);
        story.after_ms(14 * 60 * 1000).input(Input::TimePassed);
        assert!(!happened(&story, "developer_timeout"), "the second task has a time of its own");
        story.after_ms(60 * 1000).input(Input::TimePassed);
        assert!(happened(&story, "developer_timeout"));
    }
}

/// The tasks of the plan are through, so that only the repair is left.
fn finish_others(story: &mut Story) {
    for _ in 0..4 {
        if role(story) == Role::Remediation {
            return;
        }
        let attempt = AttemptId(crate::scene::newest(&story.state));
        let id = story.state.attempts[&attempt].tasks[0].to_string();
        develop(story, &id);
    }
    panic!("no repair began");
}
