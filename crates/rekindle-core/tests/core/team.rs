//! The agents as a team: a silent one is asked after a restart before it is replaced, an idle one is used again.

use rekindle_core::activity::StreamEvent;
use rekindle_core::decide::Step;
use rekindle_core::effect::Effect;
use rekindle_core::event::{Body, Event, RunEvent};
use rekindle_core::ids::AttemptId;
use rekindle_core::input::{Found, Input};
use rekindle_core::limits::{Limits, Traits};
use rekindle_core::report::{Checkpoint, Report};
use rekindle_core::state::TaskState;
use rekindle_core::team::{Class, class_of};

use crate::harness::{Story, lines, task};

const ONE: &str = "# Demo\n\n### T1: first\n- accept: `true`\n\nDo it.\n";

/// T3 of the same agent becomes ready only when another agent's T2 is complete.
const TWO_AGENTS: &str = "# Demo\n\n### T1: first\n- agent: ann\n\nDo it.\n\n### T2: second\n- agent: bob\n\nDo it.\n\n\
                          ### T3: third\n- agent: ann\n- blocked by: T2\n- accept: `make third`\n\nThen this.\n";

fn limits(takes_messages: bool) -> Limits {
    let traits = Traits { structured_output: true, takes_messages, compacts: true, ..Traits::new("able") };
    Limits { traits: [("default".to_owned(), traits)].into(), ..Limits::default() }
}

fn names(step: &Step) -> Vec<String> {
    step.events.iter().map(|event| event.body.name()).collect()
}

fn silent(story: &mut Story) -> Step {
    let evidence = "no output".to_owned();
    story.input(Input::AttemptSilent { attempt: AttemptId(1), quiet_ms: 300_000, evidence })
}

/// A story whose only agent was found alive by a second coordinator.
fn adopted(takes_messages: bool) -> Story {
    let mut story = Story::with(ONE, limits(takes_messages));
    story.started(1);
    let step = story.coordinator(limits(takes_messages), vec![(AttemptId(1), Found::Alive { pid: 100, shim_pid: 99 })]);
    let team = step.events.iter().find_map(|event| match &event.body {
        Body::Run(RunEvent::TeamChecked(team)) => Some(team.clone()),
        _ => None,
    });
    assert_eq!(team.map(|team| (team.working, team.idle, team.unresponsive)), Some((1, 0, 0)));
    story
}

#[test]
fn an_adopted_agent_that_shows_nothing_is_asked_and_replaced_when_it_stays_silent() {
    let mut story = adopted(true);
    let step = silent(&mut story);
    assert_eq!(names(&step), ["status_asked", "agent_told"], "{}", lines(&step));
    let told = step.effects.iter().any(|effect| {
        matches!(effect, Effect::TellAgent { text, .. }
        if text.starts_with("Status check after a restart of the coordinator: report your current task state"))
    });
    assert!(told, "{}", lines(&step));
    assert_eq!(class_of(&story.state, AttemptId(1)), Some(Class::Unresponsive));
    story.after_ms(29_999);
    assert_eq!(names(&silent(&mut story)), [""; 0], "it has its time");
    story.after_ms(1);
    let step = silent(&mut story);
    assert_eq!(names(&step), ["agent_hung", "stop_ordered", "team_checked"], "{}", lines(&step));
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn one_that_answers_goes_on() {
    for by_report in [true, false] {
        let mut story = adopted(true);
        silent(&mut story);
        let step = match by_report {
            true => story.report(1, Report::Checkpoint { task: task("T1"), checkpoint: Checkpoint::default() }),
            false => story.input(Input::Streamed { attempt: AttemptId(1), event: StreamEvent::Acted }),
        };
        assert!(names(&step).contains(&"status_answered".to_owned()), "{}", lines(&step));
        assert_eq!(class_of(&story.state, AttemptId(1)), Some(Class::Working));
        assert!(story.state.attempts[&AttemptId(1)].stop.is_none());
        assert_eq!(story.replayed(), story.state);
    }
}

#[test]
fn who_cannot_be_asked_or_was_not_taken_over_is_replaced_as_ever() {
    let mut deaf = adopted(false);
    assert_eq!(names(&silent(&mut deaf)), ["agent_hung", "stop_ordered"]);
    let mut own = Story::with(ONE, limits(true));
    own.started(1);
    assert_eq!(names(&silent(&mut own)), ["agent_hung", "stop_ordered"]);
}

/// Ann has finished T1 and waits, Bob, who was started first because others wait for him, is at T2.
fn one_idle(takes_messages: bool) -> Story {
    let mut story = Story::with(TWO_AGENTS, limits(takes_messages));
    story.started(1);
    story.started(2);
    story.done(2, "T1");
    story.checked("T1", true);
    assert_eq!(class_of(&story.state, AttemptId(2)), Some(Class::Idle));
    story
}

fn of<'a>(step: &'a Step, name: &str) -> Option<&'a Event> {
    step.events.iter().find(|event| event.body.name() == name)
}

#[test]
fn an_idle_agent_gets_the_next_task_of_its_name_in_the_same_session() {
    let mut story = one_idle(true);
    story.done(1, "T2");
    let step = story.checked("T2", true);
    let assigned = of(&step, "task_assigned").unwrap_or_else(|| panic!("{}", lines(&step)));
    assert_eq!(assigned.task, Some(task("T3")));
    assert!(of(&step, "developer_dispatched").is_none(), "{}", lines(&step));
    let text = step.effects.iter().find_map(|effect| match effect {
        Effect::TellAgent { attempt: AttemptId(2), text, .. } => Some(text.clone()),
        _ => None,
    });
    let text = text.unwrap_or_else(|| panic!("{}", lines(&step)));
    for part in ["T3: third", "Then this.", "- make third", "task_done T3"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let third = &story.state.tasks[&task("T3")];
    assert_eq!((third.state, third.holder, third.attempts), (TaskState::InProgress, Some(AttemptId(2)), 1));
    assert_eq!(story.state.attempts[&AttemptId(2)].idle_since, None, "it does not linger");
    story.done(2, "T3");
    let step = story.checked("T3", true);
    assert!(of(&step, "task_completed").is_some(), "{}", lines(&step));
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn one_whose_turn_is_over_goes_on_too_and_is_let_go_when_nothing_is_left() {
    let mut story = Story::with(TWO_AGENTS, limits(true));
    story.started(1);
    story.started(2);
    story.done(1, "T2");
    story.checked("T2", true);
    story.done(2, "T1");
    story.checked("T1", true);
    let holder = story.state.tasks[&task("T3")].holder;
    assert_eq!(holder, Some(AttemptId(2)), "{:?}", story.state.tasks[&task("T3")]);
    story.done(2, "T3");
    story.input(Input::Streamed { attempt: AttemptId(2), event: StreamEvent::Result { ok: true } });
    let step = story.checked("T3", true);
    assert!(of(&step, "input_closed").is_some(), "{}", lines(&step));
}

#[test]
fn one_that_takes_no_messages_is_replaced_by_a_new_process() {
    let mut story = one_idle(false);
    story.done(1, "T2");
    let step = story.checked("T2", true);
    assert!(of(&step, "task_assigned").is_none(), "{}", lines(&step));
    story.exited(2, crate::harness::exit_code(0));
    assert_eq!(story.state.tasks[&task("T3")].holder, Some(AttemptId(3)));
}

#[test]
fn reviewed_work_is_never_handed_to_an_idle_agent() {
    let text = TWO_AGENTS.replace("# Demo", "---\nreview: [critic]\n---\n# Demo");
    let mut story = Story::with(&text, limits(true));
    story.started(1);
    story.started(2);
    story.done(2, "T1");
    story.checked("T1", true);
    story.done(1, "T2");
    story.checked("T2", true);
    assert!(!story.log.iter().any(|event| event.body.name() == "task_assigned"));
}
