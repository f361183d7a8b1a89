//! What views read of a log that one agent fills with reports: as much as of a short one. Counted in events, so that it says the
//! same on every machine.

use rekindle_core::decide;
use rekindle_core::ids::{AttemptId, Epoch, RunId, TaskId};
use rekindle_core::input::Input;
use rekindle_core::limits::Limits;
use rekindle_core::plan;
use rekindle_core::report::{Channel, Checkpoint, Report};
use rekindle_core::state::State;
use rekindle_core::time::Time;
use rekindle_engine::driver;
use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{Batch, Options, SqliteStore, Store};

use super::{RunView, View};
use crate::picture::RunReader;
use crate::project::Project;
use crate::report;

const PLAN: &str = "# Plan\n\n### T1: One\n\nWork.\n\n### T2: Two\n\nWork.\n";

/// A state directory with a run whose first agent has reported so often.
fn state(project: &Project, reports: usize) {
    let dir = StateDir::open_or_create(&project.state_dir).expect("a state directory");
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("a store");
    let mut state = State::default();
    let run = RunId::new("r1").expect("a name");
    let plan = Box::new(plan::parse("plan", PLAN.as_bytes()).plan.expect("a plan"));
    let mut inputs = vec![
        Input::RunRequested { run, plan, plan_path: "plan.md".into(), branch: None },
        Input::CoordinatorStarted {
            pid: 1,
            limits: Box::new(Limits { max_agents: 1, ..Limits::default() }),
            boot_id: "boot".into(),
            boottime_ms: 1,
            found: Vec::new(),
            missing: Vec::new(),
        },
        Input::AttemptStarted { attempt: AttemptId(1), pid: 2, shim_pid: 3, own_bytes: 0 },
    ];
    inputs.extend((0..reports).map(|number| {
        let checkpoint = Checkpoint { status: format!("at step {number}"), ..Checkpoint::default() };
        let task = TaskId::new("T1").expect("a name");
        let report = Report::Checkpoint { task, checkpoint };
        Input::Reported { attempt: AttemptId(1), epoch: Epoch(1), channel: Channel::Command, report }
    }));
    let mut events = Vec::new();
    for (ms, input) in (1_000..).zip(inputs) {
        let step = decide::decide(&mut state, Time(ms), input);
        events.extend(step.events.iter().map(driver::encode));
    }
    store.append(Batch { events, rows: driver::all_rows(&state), ..Batch::default() }).expect("appended");
}

/// Events that a report and a first page read.
fn read(reports: usize) -> (u64, u64) {
    let dir = tempfile::tempdir().expect("a directory");
    let project = Project { root: dir.path().to_owned(), config: None, state_dir: dir.path().join(".rekindle") };
    state(&project, reports);
    let view = View::open(&project).expect("a view");
    assert!(view.last_event().expect("a log") >= reports as u64, "the log is as long as it should be");
    let run: RunView<'_> = view.the_run().expect("a run");
    let told = report::gather(&run, None).expect("a report");
    assert_eq!(told.tasks.len(), 2);
    let of_report = view.reader.as_ref().expect("a store").events_read();
    let mut reader = RunReader::new(&project, None);
    let picture = reader.look().expect("a look").expect("a run");
    assert_eq!(picture.history.spans.len(), 1, "what is shown was read");
    let seen = reader.view().expect("a view").expect("a store");
    (of_report, seen.reader.as_ref().expect("a store").events_read())
}

#[test]
fn a_log_ten_times_as_long_costs_a_report_and_a_page_no_more() {
    let (short, long) = (read(300), read(3_000));
    assert_eq!(short, long, "events read of a log with 300 and with 3,000 reports");
    assert!(long.0 < 100 && long.1 < 100, "{long:?}");
}
