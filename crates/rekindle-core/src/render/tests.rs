//! Both files from a state with a bit of everything, and from states far too large.

use proptest::prelude::*;

use super::*;
use crate::apply::apply;
use crate::cause::Cause;
use crate::event::{AttemptEvent, Body, Event, PersonEvent, RunEvent, TaskEvent};
use crate::ids::{AgentName, AttemptId, Epoch, QuestionId, RunId, TaskId};
use crate::plan::{Plan, PlanTask};
use crate::report::{Channel, Checkpoint};
use crate::role::Role;
use crate::time::Time;

fn task_id(text: &str) -> TaskId {
    TaskId::new(text).expect("valid")
}

fn planned(id: &str, title: &str, wave: u32, agent: Option<&str>, blocked_by: &[&str]) -> PlanTask {
    PlanTask {
        id: task_id(id),
        title: title.into(),
        body: format!("Do {id}."),
        agent: agent.map(|name| AgentName::new(name).expect("valid")),
        role: None,
        cli: None,
        blocked_by: blocked_by.iter().map(|id| task_id(id)).collect(),
        wave,
        artifacts: Vec::new(),
        accept: vec!["true".into()],
        environments: Vec::new(),
        reading: Vec::new(),
        timeout_ms: None,
        attempts: None,
        priority: 0,
        done: false,
        line: 1,
    }
}

fn plan(tasks: Vec<PlanTask>) -> Plan {
    Plan {
        name: "auth".into(),
        title: "Auth rewrite".into(),
        goal: "Goal of the plan.".into(),
        dispatch_rules: Some("Never touch `legacy/`.\n\n- one | two".into()),
        settings: crate::plan::FrontMatter::default(),
        explicit_waves: true,
        tasks,
        hash: "h".into(),
    }
}

struct Log(State);

impl Log {
    fn add(&mut self, task: Option<&str>, agent: Option<(&str, u64)>, body: Body) {
        let event = Event {
            time: Time(1_000),
            run: RunId::new("r1").expect("valid"),
            agent: agent.map(|(name, _)| AgentName::new(name).expect("valid")),
            task: task.map(task_id),
            epoch: agent.map(|(_, epoch)| Epoch(epoch)),
            body,
        };
        apply(&mut self.0, &event);
    }

    fn dispatch(&mut self, attempt: u64, agent: &str, epoch: u64, tasks: &[&str], number: u32) {
        let body = Body::Attempt(AttemptEvent::Dispatched {
            attempt: AttemptId(attempt),
            role: Role::Developer,
            cli: "claude".into(),
            tasks: tasks.iter().map(|id| task_id(id)).collect(),
            blocked_by: Vec::new(),
            resumed: false,
            strategy: crate::strategy::Strategy::First,
            session: None,
            asks_for_report: false,
            reason: String::new(),
        });
        self.add(Some(tasks[0]), Some((agent, epoch)), body);
        let body = Body::Task(TaskEvent::TaskStarted { attempt: AttemptId(attempt), number, nth: number });
        self.add(Some(tasks[0]), Some((agent, epoch)), body);
    }

    fn complete(&mut self, task: &str, result: &str) {
        let body =
            Body::Task(TaskEvent::TaskCompleted { result: Some(result.into()), unproven: false, unreported: false });
        self.add(Some(task), None, body);
    }
}

/// A run in its middle: T1 and T2 complete, T3 in its second attempt after a timeout, T4 next in the same list, T5 failed,
/// T6 skipped, T7 blocked by it all, T8 about to be retried.
pub(crate) fn state() -> State {
    let mut log = Log(State::default());
    let tasks = vec![
        planned("T1", "Title one", 1, Some("backend"), &[]),
        planned("T2", "Title | two", 1, None, &[]),
        planned("T3", "Title three", 2, Some("backend"), &[]),
        planned("T4", "Title four", 2, Some("backend"), &["T3"]),
        planned("T5", "Title five", 2, None, &[]),
        planned("T6", "Title six", 2, None, &[]),
        planned("T7", "Title seven", 3, None, &["T4"]),
        planned("T8", "Title eight", 2, None, &[]),
    ];
    let body = Body::Run(RunEvent::RunStarted {
        plan: Box::new(plan(tasks)),
        plan_path: "plan.md".into(),
        branch: Some("main".into()),
    });
    log.add(None, None, body);
    log.add(None, None, Body::Run(RunEvent::WaveStarted { wave: 2 }));
    log.dispatch(1, "backend", 1, &["T1", "T3", "T4"], 1);
    log.complete("T1", "Added the module.\nTests pass.");
    log.complete("T2", "| done | <b>\u{1b}[31m");
    begin_t3(&mut log);
    hand_t3_over(&mut log);
    log.0
}

/// T3 is begun, half done, asked about and answered.
fn begin_t3(log: &mut Log) {
    let number = 1;
    let attempt = AttemptId(1);
    let begun = Body::Task(TaskEvent::TaskStarted { attempt, number, nth: number });
    log.add(Some("T3"), Some(("backend", 1)), begun);
    let checkpoint = Checkpoint {
        status: "lexer done".into(),
        completed: vec!["lexer".into()],
        remaining: vec!["parser".into()],
        files: vec!["src/lexer.rs".into()],
        progress: Some(40),
    };
    log.add(Some("T3"), Some(("backend", 1)), Body::Task(TaskEvent::CheckpointSaved { checkpoint }));
    let asked = Body::Person(PersonEvent::QuestionAsked {
        id: QuestionId(1),
        attempt: AttemptId(1),
        text: "Which port?".into(),
        options: Vec::new(),
        context: String::new(),
        takes_work: false,
    });
    log.add(Some("T3"), Some(("backend", 1)), asked);
    log.add(
        Some("T3"),
        None,
        Body::Person(PersonEvent::QuestionAnswered { id: QuestionId(1), answer: "8080".into(), via: None }),
    );
    log.add(
        None,
        Some(("backend", 1)),
        Body::Person(PersonEvent::NoteRecorded { text: "serde for all formats".into() }),
    );
}

/// T3 times out and is begun again; the tasks beside it end in other ways.
fn hand_t3_over(log: &mut Log) {
    for (task, counted, cause) in [("T3", true, Cause::TimedOut), ("T8", true, Cause::ExitedIncomplete)] {
        if task == "T8" {
            log.dispatch(3, "developer-T8", 1, &["T8"], 1);
        }
        let body =
            Body::Task(TaskEvent::TaskRequeued { cause, counted, not_before: None, reason: "tried again".into() });
        log.add(Some(task), None, body);
    }
    let ended =
        Body::Attempt(AttemptEvent::AttemptEnded { attempt: AttemptId(1), cause: Cause::TimedOut, last_words: None });
    log.add(None, Some(("backend", 1)), ended);
    log.dispatch(2, "backend", 2, &["T3", "T4"], 2);
    let failed = Body::Task(TaskEvent::WorkflowFailed {
        reason: "developer_crash_limit".into(),
        detail: "3 attempts failed".into(),
    });
    log.dispatch(4, "developer-T5", 1, &["T5"], 3);
    log.add(Some("T5"), None, failed);
    log.add(Some("T6"), None, Body::Task(TaskEvent::TaskSkipped { reason: "not needed".into() }));
    let asked = Body::Person(PersonEvent::QuestionAsked {
        id: QuestionId(2),
        attempt: AttemptId(2),
        text: "May I add a crate?".into(),
        options: vec!["yes".into(), "no".into()],
        context: String::new(),
        takes_work: false,
    });
    log.add(Some("T3"), Some(("backend", 2)), asked);
}

#[test]
fn the_build_status_file() {
    insta::assert_snapshot!(build_status::render(&state()).expect("a run"));
}

#[test]
fn the_session_state_file() {
    let files = ["src/auth.rs".to_owned()];
    insta::assert_snapshot!(session_state::render(&state(), &files).expect("a run"));
}

#[test]
fn without_a_run_there_is_no_file() {
    assert_eq!(build_status::render(&State::default()), None);
    assert_eq!(session_state::render(&State::default(), &[]), None);
    assert_eq!(build_status::file_name("../x y"), "build-status--x-y.md");
}

#[test]
fn the_current_wave() {
    let mut log = Log(State::default());
    let tasks = vec![planned("A", "a", 1, None, &[]), planned("B", "b", 2, None, &[]), planned("C", "c", 3, None, &[])];
    let body = Body::Run(RunEvent::RunStarted { plan: Box::new(plan(tasks)), plan_path: "p".into(), branch: None });
    log.add(None, None, body);
    assert_eq!(build_status::current_wave(&log.0), Some(1), "nothing has begun");
    log.dispatch(1, "developer-B", 1, &["B"], 1);
    assert_eq!(build_status::current_wave(&log.0), Some(2), "a task of wave 2 is in progress");
    log.complete("B", "x");
    assert_eq!(build_status::current_wave(&log.0), Some(1), "wave 2 has none open, wave 3 has not begun");
    log.complete("A", "x");
    assert_eq!(build_status::current_wave(&log.0), Some(3), "only wave 3 is left");
    log.complete("C", "x");
    assert_eq!(build_status::current_wave(&log.0), None);
}

#[test]
fn every_row_of_the_table_has_the_same_cells() {
    let mut state = state();
    if let Some(task) = state.tasks.get_mut("T2") {
        task.result = Some("a|b\\|c\n| d |\n\n## Dispatch Rules\nnone".into());
    }
    let text = build_status::render(&state).expect("a run");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 2 + 8);
    for row in rows {
        let bars = row.replace("\\\\", "").replace("\\|", "").matches('|').count();
        assert_eq!(bars, 8, "{row}");
    }
    assert_eq!(text.matches("\n## Dispatch Rules\n").count(), 1);
    assert!(text.contains("Never touch `legacy/`.\n\n- one | two\n"));
    assert!(text.contains("> a|b\\|c\n> | d |\n> \n> ## Dispatch Rules\n> none\n"), "{text}");
}

#[test]
fn what_is_open_outlives_what_is_done() {
    let mut log = Log(State::default());
    let tasks = (0..2_000).map(|n| planned(&format!("T{n}"), "A title of some length", 1, None, &[])).collect();
    let body = Body::Run(RunEvent::RunStarted { plan: Box::new(plan(tasks)), plan_path: "p".into(), branch: None });
    log.add(None, None, body);
    for n in 0..1_990 {
        let id = format!("T{n}");
        log.dispatch(n + 1, &format!("developer-{id}"), 1, &[&id], 1);
        log.complete(&id, "The agent's own words about what it has done.");
        let ended = Body::Attempt(AttemptEvent::AttemptEnded {
            attempt: AttemptId(n + 1),
            cause: Cause::Completed,
            last_words: None,
        });
        log.add(None, None, ended);
    }
    log.dispatch(5_000, "developer-T3", 2, &["T3"], 2);
    let text = session_state::render(&log.0, &[]).expect("a run");
    assert!(text.len() <= session_state::MAX_BYTES, "{}", text.len());
    assert!(text.contains("- [ ] T3: A title of some length (IN PROGRESS, attempt 2/3)"), "{text}");
    assert!(text.contains("attempt 5000, epoch 2) on T3: is being started"), "{text}");
    assert!(text.contains("- [ ] T1999: ") && text.contains("tasks folded"), "{text}");
    assert!(text.len() > 8_000, "the room is used: {}", text.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_files_hold_their_size_and_their_shape(
        words in prop::collection::vec("\\PC{0,400}|[\\x00-\\xff]{0,3000}", 1..12),
        tasks in 1usize..120,
        path in "\\PC{0,9000}",
    ) {
        let mut log = Log(State::default());
        let word = |n: usize| words[n % words.len()].as_str();
        let list = (0..tasks).map(|n| planned(&format!("T{n}"), word(n), 1 + (n % 4) as u32, None, &[])).collect();
        let body = Body::Run(RunEvent::RunStarted { plan: Box::new(plan(list)), plan_path: path, branch: Some(word(3).into()) });
        log.add(None, None, body);
        for n in 0..tasks {
            let id = format!("T{n}");
            log.dispatch(n as u64 + 1, &format!("developer-{id}"), 1, &[&id], 1);
            let text = word(n + 1).to_owned();
            log.add(None, None, Body::Person(PersonEvent::NoteRecorded { text: text.clone() }));
            let checkpoint = Checkpoint {
                status: text.clone(),
                files: vec![text.clone(), format!("{n}")],
                remaining: vec![text.clone()],
                ..Checkpoint::default()
            };
            log.add(Some(&id), None, Body::Task(TaskEvent::CheckpointSaved { checkpoint }));
            let asked = Body::Person(PersonEvent::QuestionAsked {
                id: QuestionId(n as u64),
                attempt: AttemptId(n as u64 + 1),
                text: text.clone(),
                options: vec![text.clone(); 3],
                context: text.clone(),
        takes_work: false,
            });
            if n % 3 == 0 {
                log.add(Some(&id), Some((&format!("developer-{id}"), 1)), asked);
            } else {
                log.complete(&id, &text);
            }
        }
        let session = session_state::render(&log.0, &words).expect("a run");
        prop_assert!(session.len() <= session_state::MAX_BYTES, "{}", session.len());
        prop_assert!(!session.chars().any(crate::text::is_harmful));
        prop_assert_eq!(session.lines().filter(|line| line.starts_with("## ")).count(), 6);
        let build = build_status::render(&log.0).expect("a run");
        prop_assert!(!build.chars().any(crate::text::is_harmful));
        prop_assert_eq!(build.lines().filter(|line| line.starts_with("| T")).count(), tasks + 1);
        prop_assert_eq!(build.lines().filter(|line| *line == "## Dispatch Rules").count(), 1);
    }

    #[test]
    fn claims_leave_both_files_whole(door in prop::sample::select(vec![Channel::Signal, Channel::Command])) {
        let mut log = Log(state());
        let body = Body::Task(TaskEvent::TaskClaimed { attempt: AttemptId(2), door, result: None, verdict: None });
        log.add(Some("T3"), Some(("backend", 2)), body);
        let build = build_status::render(&log.0).expect("a run");
        prop_assert!(build.contains("| T3 | IN PROGRESS | 2/3 | 2 | backend |"), "{}", build);
    }
}
