//! Changes of a plan while its run goes on, and the operator's word.

use rekindle_core::decide::{self, Reply, Step};
use rekindle_core::event::{Body, Follow, PauseReason, RunEvent, TaskEvent};
use rekindle_core::ids::AttemptId;
use rekindle_core::input::{Found, Input, MergeOutcome, NewTask, Order, TaskEdit};
use rekindle_core::limits::Limits;
use rekindle_core::plan;
use rekindle_core::reload;
use rekindle_core::report::{Baseline, Report};
use rekindle_core::state::{RunPhase, TaskState, Word};

use crate::harness::{Story, exit_code, task};

const TWO: &str =
    "# Demo\n\n### T1: a\n- accept: `one`\n\nDo a.\n\n### T2: b\n- blocked by: T1\n- accept: `two`\n\nDo b.\n";

fn parsed(text: &str) -> plan::Plan {
    let parsed = plan::parse("demo", text.as_bytes());
    parsed.plan.unwrap_or_else(|| panic!("{:?}", parsed.problems))
}

fn reload(story: &mut Story, text: &str) -> Step {
    let step = story.order(Order::Reload { plan: Box::new(parsed(text)) });
    assert_eq!(story.replayed(), story.state, "replay is exact");
    step
}

fn edit(story: &mut Story, id: &str, edit: TaskEdit) -> Step {
    let step = story.order(Order::Edit { task: task(id), edit: Box::new(edit) });
    assert_eq!(story.replayed(), story.state, "replay is exact");
    step
}

fn new_task(id: &str, after: &[&str]) -> NewTask {
    NewTask {
        id: task(id),
        title: "more".into(),
        text: "Do more.".into(),
        after: after.iter().map(|id| task(id)).collect(),
        accept: vec!["true".into()],
        artifacts: Vec::new(),
        agent: None,
        timeout_ms: None,
    }
}

fn add(story: &mut Story, new: NewTask) -> Step {
    let step = story.order(Order::Add(Box::new(new)));
    assert_eq!(story.replayed(), story.state, "replay is exact");
    step
}

fn state_of(story: &Story, id: &str) -> TaskState {
    story.state.tasks[&task(id)].state
}

fn phase(story: &Story) -> RunPhase {
    story.state.run.as_ref().expect("a run").phase
}

fn names(step: &Step) -> Vec<String> {
    let named = |event: &rekindle_core::event::Event| {
        format!("{} {}", event.body.name(), event.task.as_ref().map(ToString::to_string).unwrap_or_default())
    };
    step.events.iter().map(named).collect()
}

fn refused(step: &Step) -> &str {
    match &step.reply {
        Reply::Refused { reason } => reason,
        other => panic!("{other:?}"),
    }
}

/// An attempt does its task and leaves.
fn through(story: &mut Story, attempt: u64, id: &str) {
    story.started(attempt);
    story.done(attempt, id);
    story.checked(id, true);
    if story.state.attempts[&AttemptId(attempt)].is_live() {
        story.exited(attempt, exit_code(0));
    }
}

fn finished() -> Story {
    let mut story = Story::of(TWO);
    through(&mut story, 1, "T1");
    through(&mut story, 2, "T2");
    assert!(matches!(phase(&story), RunPhase::Finished(_)));
    story
}

#[test]
fn other_checks_of_complete_work_are_proven_without_an_agent() {
    let mut story = Story::of(TWO);
    through(&mut story, 1, "T1");
    let step = reload(&mut story, &TWO.replace("`one`", "`another`"));
    assert_eq!(
        names(&step),
        ["plan_reloaded ", "task_reopened T1", "validation_started T1", "task_claimed T1"],
        "no agent is started for it"
    );
    story.checked("T1", true);
    assert_eq!(state_of(&story, "T1"), TaskState::Complete);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn what_the_new_checks_do_not_prove_goes_back_as_rework() {
    let mut story = Story::of(TWO);
    through(&mut story, 1, "T1");
    reload(&mut story, &TWO.replace("`one`", "`another`"));
    let step = story.checked("T1", false);
    assert!(names(&step).contains(&"task_rework T1".to_owned()), "{:?}", names(&step));
    assert!(!story.state.tasks[&task("T1")].state.is_terminal());
}

#[test]
fn other_text_reopens_that_task_alone_and_proves_what_is_behind_it_afterwards() {
    let mut story = finished();
    let before = story.state.tasks[&task("T1")].epoch;
    let step = reload(&mut story, &TWO.replace("Do a.", "Do a, and better."));
    assert_eq!(names(&step), ["plan_reloaded ", "task_reopened T1", "run_reopened "]);
    assert!(story.state.tasks[&task("T1")].epoch > before);
    assert_eq!(state_of(&story, "T2"), TaskState::Complete);
    assert_eq!(story.state.follows.get(&task("T2")), Some(&Follow::Prove));
    story.coordinator(Limits::default(), Vec::new());
    // What was just completed is looked at by the resume already, T2 with its new blocker open.
    let attempt = story.state.last_attempt;
    story.checked("T2", true);
    let attempt = story.state.last_attempt.max(attempt);
    assert!(story.state.attempts[&AttemptId(attempt)].tasks.contains(&task("T1")));
    through(&mut story, attempt, "T1");
    assert!(matches!(phase(&story), RunPhase::Finished(_)));
}

#[test]
fn what_is_behind_a_changed_task_waits_for_it_before_it_is_proven_again() {
    let text = format!("{TWO}\n### T3: c\n- accept: `three`\n\nDo c.\n");
    let mut story = Story::with(&text, Limits { max_agents: 1, ..Limits::default() });
    through(&mut story, 1, "T1");
    through(&mut story, 2, "T2");
    reload(&mut story, &text.replace("Do a.", "Do a anew."));
    assert_eq!(state_of(&story, "T2"), TaskState::Complete, "nothing is proven before T1 is done again");
    story.started(3);
    story.done(3, "T3");
    story.checked("T3", true);
    story.exited(3, exit_code(0));
    story.started(4);
    story.done(4, "T1");
    let step = story.checked("T1", true);
    assert!(names(&step).contains(&"validation_started T2".to_owned()), "{:?}", names(&step));
}

#[test]
fn an_agent_that_works_by_the_old_text_is_stopped_and_nothing_is_counted() {
    let mut story = Story::of(TWO);
    story.started(1);
    let step = reload(&mut story, &TWO.replace("Do a.", "Do something else."));
    assert!(names(&step).contains(&"stop_ordered T1".to_owned()), "{:?}", names(&step));
    let late = story.done(1, "T1");
    assert!(matches!(late.reply, Reply::Refused { .. }), "its word counts no more: {:?}", late.reply);
    story.exited(1, exit_code(0));
    assert_eq!(story.state.tasks[&task("T1")].attempts, 1, "the new attempt is the first one");
    assert_eq!(story.state.live_attempts().count(), 1);
}

#[test]
fn checks_that_change_while_they_run_decide_nothing() {
    let mut story = Story::of(TWO);
    story.started(1);
    story.done(1, "T1");
    reload(&mut story, &TWO.replace("`one`", "`another`"));
    let step = story.checked("T1", true);
    assert_eq!(names(&step), ["task_claimed T1"], "the old checks passed, the new ones are run");
    story.checked("T1", true);
    assert_eq!(state_of(&story, "T1"), TaskState::Complete);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_removed_task_is_skipped_on_record_and_its_agent_is_stopped() {
    let mut story = Story::of(TWO);
    story.started(1);
    let step = reload(&mut story, "# Demo\n\n### T2: b\n- accept: `two`\n\nDo b.\n");
    assert!(
        names(&step).starts_with(&["plan_reloaded ".to_owned(), "task_skipped T1".to_owned()]),
        "{:?}",
        names(&step)
    );
    assert!(names(&step).contains(&"stop_ordered T1".to_owned()));
    assert_eq!(state_of(&story, "T1"), TaskState::Skipped);
    assert!(refused(&story.order(Order::Retry { task: task("T1") })).contains("no longer in the plan"));
    assert!(story.state.present_plan().expect("a plan").task("T1").is_none());
    // It comes back with the file.
    let step = reload(&mut story, TWO);
    assert!(names(&step).contains(&"task_reopened T1".to_owned()), "{:?}", names(&step));
}

#[test]
fn a_complete_task_that_is_removed_stays_complete_and_is_never_doubted() {
    let mut story = Story::of(TWO);
    through(&mut story, 1, "T1");
    reload(&mut story, "# Demo\n\n### T2: b\n- accept: `two`\n\nDo b.\n");
    assert_eq!(state_of(&story, "T1"), TaskState::Complete);
    story.order(Order::Pause(PauseReason::Stop));
    story.exited(2, exit_code(0));
    story.coordinator(Limits::default(), Vec::new());
    assert_eq!(state_of(&story, "T1"), TaskState::Complete);
}

#[test]
fn a_failed_task_whose_check_was_wrong_is_proven_by_the_right_one() {
    let mut story = Story::with(TWO, Limits { attempts: 1, ..Limits::default() });
    story.started(1);
    story.done(1, "T1");
    story.checked("T1", false);
    story.exited(1, exit_code(1));
    assert_eq!(state_of(&story, "T1"), TaskState::Failed);
    assert!(matches!(phase(&story), RunPhase::Finished(_)));
    edit(&mut story, "T1", TaskEdit { accept: Some(vec!["right".into()]), ..TaskEdit::default() });
    assert!(matches!(phase(&story), RunPhase::Paused(_)), "there is something to prove");
    let step = story.coordinator(Limits { attempts: 1, ..Limits::default() }, Vec::new());
    assert!(names(&step).contains(&"task_claimed T1".to_owned()), "{:?}", names(&step));
    story.checked("T1", true);
    assert_eq!(state_of(&story, "T1"), TaskState::Complete);
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_finished_plan_that_is_extended_goes_on() {
    let mut story = finished();
    add(&mut story, new_task("T3", &["T2"]));
    assert!(matches!(phase(&story), RunPhase::Paused(_)));
    story.after_ms(5 * 60 * 60_000).coordinator(Limits { validation_window_ms: 0, ..Limits::default() }, Vec::new());
    // They ended at the moment at which the run did.
    for id in ["T1", "T2"] {
        story.checked(id, true);
    }
    through(&mut story, 3, "T3");
    assert!(matches!(phase(&story), RunPhase::Finished(_)), "{:?}", phase(&story));
}

#[test]
fn the_same_addition_twice_is_one_task() {
    let mut story = Story::of(TWO);
    assert_eq!(add(&mut story, new_task("T3", &["T1"])).reply, Reply::Accepted);
    assert_eq!(add(&mut story, new_task("T3", &["T1"])).reply, Reply::Already);
    let other = NewTask { title: "other".into(), ..new_task("T3", &[]) };
    assert!(refused(&add(&mut story, other)).contains("already"));
    assert_eq!(story.state.tasks.len(), 3);
}

#[test]
fn what_a_person_added_stays_when_a_file_without_it_is_reloaded() {
    let mut story = Story::of(TWO);
    add(&mut story, new_task("T3", &[]));
    let difference = reload::compare(&story.state, &parsed(&TWO.replace("Do b.", "Do b!"))).expect("comparable");
    assert_eq!(difference.kept, [task("T3")]);
    reload(&mut story, &TWO.replace("Do b.", "Do b!"));
    assert_eq!(story.state.present_plan().expect("a plan").tasks.len(), 3);
}

#[test]
fn what_would_wait_for_itself_is_refused_whole() {
    let mut story = Story::of(TWO);
    let before = story.state.clone();
    let after = Some(vec![task("T2")]);
    assert!(refused(&edit(&mut story, "T1", TaskEdit { after, ..TaskEdit::default() })).contains("cycle"));
    assert!(refused(&add(&mut story, new_task("T3", &["T9"]))).contains("no task T9"));
    let other = plan::parse("other", TWO.as_bytes()).plan.expect("a plan");
    let step = story.order(Order::Reload { plan: Box::new(other) });
    assert!(refused(&step).contains("plan `other`"));
    assert_eq!(story.state, before, "nothing changed");
}

/// The simulator's seed 103290: the first part waited for itself, and the run never ended.
#[test]
fn a_whole_that_would_wait_for_its_own_part_is_refused() {
    let mut story = Story::of(TWO);
    story.order(Order::Split { task: task("T2"), subtasks: vec!["one".into(), "two".into()] });
    for part in ["T2.1", "T2.2"] {
        let after = Some(vec![task(part)]);
        let step = edit(&mut story, "T2", TaskEdit { after, ..TaskEdit::default() });
        let why = refused(&step);
        assert!(why.contains("wait for itself") || why.contains("cycle"), "{part}: {why}");
    }
}

/// The simulator's seed 201071: a part was failed while its whole was in review, and the whole was accepted all the same.
#[test]
fn a_part_whose_whole_is_past_it_is_not_failed_alone() {
    let mut story = Story::of(TWO);
    story.order(Order::Split { task: task("T2"), subtasks: vec!["one".into(), "two".into()] });
    let fail = |id: &str| Order::Fail { task: task(id), reason: "given up".into() };
    assert_eq!(story.order(Order::Complete { task: task("T2"), result: None }).reply, Reply::Accepted);
    assert!(refused(&story.order(fail("T2.1"))).contains("a part of T2, which is past it: fail T2"));
    assert_eq!(story.order(fail("T2")).reply, Reply::Accepted, "the whole can be");
}

#[test]
fn parts_follow_the_blockers_of_their_whole() {
    let mut story = Story::of(TWO);
    story.order(Order::Split { task: task("T2"), subtasks: vec!["one".into(), "two".into()] });
    // T1 now waits for T2: that is no circle, since T2 and its parts wait for nothing any more.
    let turned =
        "# Demo\n\n### T1: a\n- blocked by: T2\n- accept: `one`\n\nDo a.\n\n### T2: b\n- accept: `two`\n\nDo b.\n";
    assert_eq!(reload(&mut story, turned).reply, Reply::Accepted);
    assert!(story.state.unmet_blockers(&task("T2.1")).is_empty());
    assert!(
        refused(&reload(&mut story, &turned.replace("T2: b", "T2.1: b").replace("by: T2", "by: T2.1")))
            .contains("part")
    );
}

#[test]
fn a_text_that_would_be_a_heading_is_quoted() {
    let mut story = Story::of(TWO);
    add(&mut story, NewTask { text: "### T9: sneaked in\n\ndo".into(), ..new_task("T3", &[]) });
    assert_eq!(story.state.plan_task(&task("T3")).expect("planned").body, "> ### T9: sneaked in\n>\n> do");
    let written = plan::write(&story.state.present_plan().expect("a plan"), false).expect("written");
    assert_eq!(parsed(&written.text).tasks.len(), 3);
    assert!(
        refused(&add(&mut story, NewTask { title: "two\nlines".into(), ..new_task("T4", &[]) })).contains("one line")
    );
}

#[test]
fn settings_of_a_reloaded_plan_count_from_the_next_coordinator_on() {
    let mut story = Story::of(TWO);
    reload(&mut story, &format!("---\nreview: [critic]\n---\n{TWO}"));
    assert!(!story.state.reviews(rekindle_core::role::Role::Critic));
    let alive = vec![(AttemptId(1), Found::Alive { pid: 1, shim_pid: 2 })];
    story.coordinator(Limits::default(), alive);
    assert!(story.state.reviews(rekindle_core::role::Role::Critic));
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn an_order_while_nobody_runs_is_carried_out_by_the_next_coordinator() {
    let mut story = Story::of(TWO);
    through(&mut story, 1, "T1");
    story.order(Order::Pause(PauseReason::Stop));
    story.exited(2, exit_code(0));
    let plan = Box::new(parsed(&TWO.replace("`one`", "`another`")));
    let step = decide::record(&mut story.state, story.now, Input::Ordered(Order::Reload { plan }));
    story.log.extend(step.events.iter().cloned());
    assert_eq!(names(&step), ["plan_reloaded "], "nothing is begun");
    story.coordinator(Limits { validation_window_ms: 0, ..Limits::default() }, Vec::new());
    assert!(story.state.tasks[&task("T1")].claim.is_some(), "proven by the new checks");
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn a_log_that_ends_behind_the_reload_still_leads_to_what_follows() {
    let mut story = Story::of(TWO);
    through(&mut story, 1, "T1");
    reload(&mut story, "# Demo\n\n### T1: a\n- accept: `one`\n\nDo a anew.\n");
    let at = story.log.iter().position(|event| matches!(event.body, Body::Run(RunEvent::PlanReloaded(_))));
    story.log.truncate(at.expect("reloaded") + 1);
    story.state = story.replayed();
    story.coordinator(Limits::default(), vec![(AttemptId(2), Found::Lost)]);
    story.input(Input::AttemptLost { attempt: AttemptId(2), with_host: false });
    assert_eq!(state_of(&story, "T2"), TaskState::Skipped, "the file no longer has it");
    assert_ne!(state_of(&story, "T1"), TaskState::Complete, "its text is another one");
    assert_eq!(story.replayed(), story.state);
}

/// Every way in which rekindle itself doubts a completion.
fn doubt(story: &mut Story) {
    story.order(Order::Pause(PauseReason::Stop));
    let live: Vec<u64> = story.state.live_attempts().map(|(id, _)| id.0).collect();
    live.into_iter().for_each(|id| drop(story.exited(id, exit_code(0))));
    let missing = story.state.tasks.keys().map(|id| (id.clone(), vec!["gone.txt".to_owned()])).collect();
    story.input(Input::CoordinatorStarted {
        pid: 2,
        limits: Box::new(Limits::default()),
        boot_id: "boot".into(),
        boottime_ms: 0,
        found: Vec::new(),
        missing,
    });
}

#[test]
fn the_operators_word_is_final() {
    let mut story = Story::of(TWO);
    story.started(1);
    let step = story.order(Order::Complete { task: task("T1"), result: Some("by hand".into()) });
    assert!(
        names(&step).starts_with(&["operator_completed T1".into(), "task_completed T1".into()]),
        "{:?}",
        names(&step)
    );
    story.order(Order::Fail { task: task("T2"), reason: "not worth it".into() });
    doubt(&mut story);
    assert_eq!(state_of(&story, "T1"), TaskState::Complete);
    assert_eq!(state_of(&story, "T2"), TaskState::Failed);
    assert_eq!(story.state.tasks[&task("T1")].workflow.word, Some(Word::Done));
    assert_eq!(story.state.tasks[&task("T2")].workflow.word, Some(Word::Failed));
    // Other checks do not touch it, other words do, and so does a retry.
    edit(&mut story, "T1", TaskEdit { accept: Some(vec!["x".into()]), ..TaskEdit::default() });
    assert_eq!(state_of(&story, "T1"), TaskState::Complete);
    story.order(Order::Retry { task: task("T2") });
    assert_eq!(story.state.tasks[&task("T2")].workflow.word, None);
    edit(&mut story, "T1", TaskEdit { text: Some("Something else.".into()), ..TaskEdit::default() });
    assert_eq!(story.state.tasks[&task("T1")].workflow.word, None);
    assert_ne!(state_of(&story, "T1"), TaskState::Complete);
}

#[test]
fn a_person_may_take_back_a_completion() {
    let mut story = finished();
    let step = story.order(Order::Fail { task: task("T2"), reason: "it is wrong".into() });
    assert_eq!(names(&step), ["task_reopened T2", "workflow_failed T2"]);
    assert_eq!(story.order(Order::Fail { task: task("T2"), reason: "again".into() }).reply, Reply::Already);
}

#[test]
fn work_that_a_person_completed_and_that_conflicts_is_not_proven_away() {
    let mut story = Story::with(TWO, Limits { worktrees: true, ..Limits::default() });
    story.started(1);
    story.order(Order::Complete { task: task("T1"), result: None });
    story.exited(1, exit_code(0));
    let epoch = story.state.tasks[&task("T1")].epoch;
    let conflict = MergeOutcome::Conflict { files: vec!["a.txt".into()], advice: "rebase".into() };
    story.input(Input::WorkMerged { task: task("T1"), epoch, outcome: conflict });
    let attempt = story.state.last_attempt;
    story.started(attempt);
    story.report(attempt, Report::Done { task: task("T1"), result: None });
    story.checked("T1", false);
    assert!(story.state.tasks[&task("T1")].workflow.merging.is_some(), "a person said that it is complete");
    assert_eq!(story.replayed(), story.state);
}

#[test]
fn another_agent_does_not_move_work_to_another_workspace() {
    let text = "# Demo\n\n### T1: a\n- agent: dev\n- accept: `x`\n\n### T2: b\n- agent: dev\n- accept: `x`\n";
    let mut story = Story::with(text, Limits { worktrees: true, ..Limits::default() });
    story.started(1);
    let before = story.state.workspace_of(&task("T2"));
    assert_eq!(before.as_deref(), Some("T1"));
    let agent = Some(rekindle_core::ids::AgentName::new("other").expect("a name"));
    edit(&mut story, "T1", TaskEdit { agent, ..TaskEdit::default() });
    assert_eq!(story.state.workspace_of(&task("T1")).as_deref(), Some("T1"));
    assert_eq!(story.state.workspace_of(&task("T2")), before, "both are held by the attempt that works there");
    let added = |event: &rekindle_core::event::Event| matches!(event.body, Body::Task(TaskEvent::TaskEdited(_)));
    assert!(story.log.iter().any(added));
}

#[test]
fn work_that_nobody_reported_rests_on_what_showed_it_when_its_checks_change_later() {
    let mut story = Story::of(TWO);
    story.started(1);
    let baseline = Baseline { failed: Some("one".into()), unknown: None };
    story.input(Input::BaselineSeen { attempt: AttemptId(1), task: task("T1"), baseline });
    story.exited(1, exit_code(0));
    story.checked("T1", true);
    assert!(story.state.tasks[&task("T1")].workflow.unreported && state_of(&story, "T1") == TaskState::Complete);
    edit(&mut story, "T1", TaskEdit { accept: Some(vec!["another".into()]), ..TaskEdit::default() });
    story.checked("T1", true);
    let known = &story.state.tasks[&task("T1")];
    assert!(known.state == TaskState::Complete && known.workflow.baseline.is_some(), "{known:?}");
    // Of work that is still to be shown, other checks say nothing.
    story.started(2);
    let baseline = Baseline { failed: Some("two".into()), unknown: None };
    story.input(Input::BaselineSeen { attempt: AttemptId(2), task: task("T2"), baseline });
    edit(&mut story, "T2", TaskEdit { accept: Some(vec!["another".into()]), ..TaskEdit::default() });
    assert_eq!(story.state.tasks[&task("T2")].workflow.baseline, None);
}
