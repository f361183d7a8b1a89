//! The same count in every view, at fifty moments of runs that were made up from seeds and put into a real store: `status --json`,
//! the report in both forms, the dashboard, the screen of `top`, and the files for people.

use std::collections::BTreeMap;
use std::path::Path;

use rekindle_core::decide::{self, Step};
use rekindle_core::effect::Effect;
use rekindle_core::event::Event;
use rekindle_core::ids::{AttemptId, RunId, TaskId};
use rekindle_core::input::{Input, Order};
use rekindle_core::limits::Limits;
use rekindle_core::plan;
use rekindle_core::render::{build_status, session_state};
use rekindle_core::report::{Channel, Evidence, Exit, Report};
use rekindle_core::state::{State, TaskState};
use rekindle_core::time::Time;
use rekindle_core::view::Counts;
use rekindle_engine::driver;
use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{Batch, Options, SqliteStore, Store};

use super::made;
use super::text;
use crate::contract::status;
use crate::page::{self, Page, Site};
use crate::picture::RunReader;
use crate::project::Project;
use crate::report::{self, html, markdown};
use crate::view::View;

/// Moments that are looked at.
const MOMENTS: u64 = 50;

/// Most moves before a moment.
const MOVES: u64 = 60;

/// A run up to some moment of it.
struct Made {
    state: State,
    events: Vec<Event>,
    now: Time,
    seed: u64,
}

impl Made {
    fn of(seed: u64) -> Self {
        let mut made =
            Self { state: State::default(), events: Vec::new(), now: Time(1_790_000_000_000), seed: seed + 1 };
        let tasks = (1..=8).map(|at| {
            let after = if at % 3 == 0 { format!("- blocked by: T{}\n", at - 1) } else { String::new() };
            format!("### T{at}: Task {at}\n- attempts: 2\n{after}\nWork.\n\n")
        });
        let text = format!("# Plan\n\n{}", tasks.collect::<String>());
        let plan = Box::new(plan::parse("plan", text.as_bytes()).plan.expect("a plan"));
        let run = RunId::new("r1").expect("a name");
        made.take(Input::RunRequested { run, plan, plan_path: "plan.md".into(), branch: None });
        made.take(Input::CoordinatorStarted {
            pid: 1,
            limits: Box::new(Limits { max_agents: 3, ..Limits::default() }),
            boot_id: "boot".into(),
            boottime_ms: 1,
            found: Vec::new(),
            missing: Vec::new(),
        });
        for _ in 0..made.random(MOVES) {
            made.go_on();
        }
        made
    }

    /// A number below another, the same for the same seed.
    fn random(&mut self, below: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed % below
    }

    fn take(&mut self, input: Input) {
        let Step { events, effects, .. } = decide::decide(&mut self.state, self.now, input);
        self.events.extend(events);
        for effect in effects {
            match effect {
                Effect::RunChecks { task, epoch } => {
                    self.take(Input::ChecksFinished { task, epoch, evidence: Evidence::default() });
                }
                Effect::InspectDisk => self.take(Input::DiskInspected { missing: Vec::new() }),
                Effect::LaunchAttempt { attempt } => {
                    self.take(Input::AttemptStarted { attempt, pid: 2, shim_pid: 3, own_bytes: 0 });
                }
                Effect::StopAttempt { attempt, .. } => self.exit(attempt, 0),
                _ => {}
            }
        }
    }

    fn exit(&mut self, attempt: AttemptId, code: i32) {
        let Some(epoch) = self.state.attempts.get(&attempt).map(|found| found.epoch) else { return };
        self.take(Input::AttemptExited { attempt, epoch, exit: Exit { code: Some(code), ..Exit::default() } });
    }

    fn go_on(&mut self) {
        self.now = self.now.plus_ms(20_000);
        let live: Vec<AttemptId> = self.state.live_attempts().map(|(id, _)| id).collect();
        let tasks: Vec<TaskId> = self.state.tasks.keys().cloned().collect();
        let at = usize::try_from(self.random(97)).expect("small");
        let task = tasks[at % tasks.len()].clone();
        match (self.random(8), live.get(at % live.len().max(1)).copied()) {
            (0, _) => self.take(Input::Ordered(Order::Skip { task, reason: "not needed".into() })),
            (1, _) => self.take(Input::Ordered(Order::Stop { task })),
            (2, _) => self.take(Input::Ordered(Order::Retry { task })),
            (3, Some(attempt)) => self.exit(attempt, 7),
            (4..=6, Some(attempt)) => {
                let Some(task) = self.state.open_tasks(attempt).first().cloned() else { return };
                let epoch = self.state.attempts[&attempt].epoch;
                let report = Report::Done { task, result: None };
                self.take(Input::Reported { attempt, epoch, channel: Channel::Command, report });
                self.exit(attempt, 0);
            }
            _ => self.take(Input::TimePassed),
        }
    }

    fn save(&self, project: &Project) {
        let dir = StateDir::open_or_create(&project.state_dir).expect("a state directory");
        let (store, _) = SqliteStore::open(&dir, Options::default()).expect("a store");
        let events = self.events.iter().map(driver::encode).collect();
        store.append(Batch { events, rows: driver::all_rows(&self.state), ..Batch::default() }).expect("appended");
    }

    /// Counted here, by other means than the views have.
    fn count(&self, state: TaskState) -> usize {
        self.state.tasks.values().filter(|task| task.state == state).count()
    }
}

fn check(seed: u64, root: &Path) -> (usize, usize) {
    let made = Made::of(seed);
    let project = Project { root: root.to_owned(), config: None, state_dir: root.join(".rekindle") };
    made.save(&project);
    let (complete, failed, all) =
        (made.count(TaskState::Complete), made.count(TaskState::Failed), made.state.tasks.len());
    let progress = format!("{complete}/{all}");

    let view = View::open(&project).expect("a view");
    let run = view.the_run().expect("a run");
    let json = status::for_programs(&project, Some(&view), Some(&run), false).expect("status");
    let json = serde_json::to_value(&json).expect("JSON");
    let told = |key: &str| json["run"][key].as_u64().and_then(|count| usize::try_from(count).ok());
    assert_eq!((told("complete"), told("failed"), told("total")), (Some(complete), Some(failed), Some(all)), "{seed}");

    let picture = RunReader::new(&project, None).look().expect("a look").expect("a run");
    let words = picture.counts().words();
    assert!(words.starts_with(&format!("{progress} complete")), "{seed}: {words}");
    assert_eq!(words.contains("failed"), failed > 0, "{seed}: {words}");
    let told = report::gather(&run, None).expect("a report");
    let text_report = markdown::render(&told);
    assert!(text_report.contains(&format!("**{complete} of {all} tasks complete**, {failed} failed")), "{text_report}");
    let page = html::render(&told, &picture, &BTreeMap::new());
    assert!(page.contains(&format!("<b>{complete}</b> of {all} complete")), "{seed}: the HTML report");

    let app = made::app(picture.as_ref().clone(), (200, 60));
    let screen = text(&app);
    assert!(screen.contains(&format!("{progress} complete")), "{seed}: {screen}");
    assert_eq!(screen.contains(&format!("✖ {failed} failed")), failed > 0, "{seed}: {screen}");

    let site = Site { project, picture: Some(picture), read_only: true };
    let dashboard = page::answer(&site, &Page::Overview, &BTreeMap::new()).expect("a page").0;
    assert!(dashboard.contains(&format!("<strong class=\"num\">{progress}</strong>")), "{seed}: the dashboard");
    assert!(dashboard.contains(&format!("data-done=\"{complete}\" data-all=\"{all}\"")), "{seed}: what is spoken");

    let file = session_state::render(&made.state, &[]).expect("a run");
    assert!(file.contains(&format!("- Progress: {progress} tasks complete")), "{seed}: {file}");
    let file = build_status::render(&made.state).expect("a run");
    assert!(file.contains(&format!("{all} in all, {complete} PASS, {failed} FAIL")), "{seed}: {file}");
    (complete, failed)
}

#[test]
fn every_view_shows_the_same_count_at_fifty_moments() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut seen = (0, 0);
    for seed in 0..MOMENTS {
        let root = dir.path().join(seed.to_string());
        std::fs::create_dir(&root).expect("a directory");
        let (complete, failed) = check(seed, &root);
        seen = (seen.0 + complete, seen.1 + failed);
    }
    assert!(seen.0 > 50 && seen.1 > 10, "the moments have something to count: {seen:?}");
    assert_eq!(Counts::default().words(), "0/0 complete");
}
