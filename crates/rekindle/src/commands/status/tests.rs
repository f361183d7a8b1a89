//! What `status` shows, and how much of a large run it reads for it.

use rekindle_core::ids::{AttemptId, RunId};
use rekindle_core::limits::Limits;
use rekindle_core::plan;
use rekindle_core::state::State;
use rekindle_core::{decide, input::Input};
use rekindle_engine::driver;
use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{Batch, Options, SqliteStore, Store};
use serde_json::json;

use super::*;
use crate::project::Project;
use crate::ui::Paint;

fn row(measure: serde_json::Value, compactions: u32) -> AttemptRow {
    let row = json!({
        "attempt": 1, "name": "a", "cli": "c", "role": "developer", "state": "running", "tasks": ["T1"], "task": "T1",
        "epoch": 1, "started_at": 0, "measure": measure, "compactions": compactions,
    });
    serde_json::from_value(row).expect("a row")
}

#[test]
fn what_agents_use_gets_columns_only_where_it_is_told_and_fits() {
    let heading = |rows: &[AttemptRow], width| {
        let table = agent_table(rows, Time(0), width).render(Paint::OFF, width);
        table.lines().next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let usage = json!({ "input_tokens": 5, "output_tokens": 1, "cached_tokens": 0, "cost_usd": null });
    let told = row(usage, 0);
    let plain = "AGENT STATE EPOCH PID TIME ROLE TASK";
    assert_eq!(heading(&[row(serde_json::Value::Null, 0)], 120), plain);
    assert_eq!(heading(std::slice::from_ref(&told), 80), plain);
    assert_eq!(heading(&[told], 120), "AGENT STATE EPOCH PID TIME TOKENS ROLE TASK");
}

#[test]
fn a_context_is_shown_by_what_is_known_of_it() {
    let measure = |used, window| {
        json!({
            "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "cost_usd": null,
            "context_used": used, "context_window": window,
        })
    };
    assert_eq!(context_cell(&row(measure(Some(900), Some(1_000)), 2)), "90% +2c");
    assert_eq!(context_cell(&row(measure(Some(1_500), None), 0)), "1.5k");
    assert_eq!(context_cell(&row(measure(None, Some(1_000)), 0)), "");
}

/// What people are shown of a run with so many tasks, two of them begun, and the rows that were read for it.
fn shown(tasks: usize, all: bool) -> (Shown, u64) {
    let dir = tempfile::tempdir().expect("a directory");
    let project = Project { root: dir.path().to_owned(), config: None, state_dir: dir.path().join(".rekindle") };
    let state_dir = StateDir::open_or_create(&project.state_dir).expect("a state directory");
    let (store, _) = SqliteStore::open(&state_dir, Options::default()).expect("a store");
    let text: String = (1..=tasks).map(|number| format!("### T{number}: Task\n\nWork.\n\n")).collect();
    let plan = Box::new(plan::parse("plan", format!("# Plan\n\n{text}").as_bytes()).plan.expect("a plan"));
    let run = RunId::new("r1").expect("a name");
    let inputs = [
        Input::RunRequested { run, plan, plan_path: "plan.md".into(), branch: None },
        Input::CoordinatorStarted {
            pid: 1,
            limits: Box::new(Limits { max_agents: 2, ..Limits::default() }),
            boot_id: "boot".into(),
            boottime_ms: 1,
            found: Vec::new(),
            missing: Vec::new(),
        },
        Input::AttemptStarted { attempt: AttemptId(1), pid: 2, shim_pid: 3, own_bytes: 0 },
        Input::AttemptStarted { attempt: AttemptId(2), pid: 4, shim_pid: 5, own_bytes: 0 },
    ];
    let (mut state, mut events) = (State::default(), Vec::new());
    for (ms, input) in (1_000..).zip(inputs) {
        events.extend(decide::decide(&mut state, Time(ms), input).events.iter().map(driver::encode));
    }
    store.append(Batch { events, rows: driver::all_rows(&state), ..Batch::default() }).expect("appended");
    let view = View::open(&project).expect("a view");
    let run = view.the_run().expect("a run");
    let before = view.rows_read();
    let shown = Shown::for_people(&run, all).expect("it is read");
    (shown, view.rows_read() - before)
}

#[test]
fn of_a_large_run_what_is_open_is_read_and_the_rest_is_counted() {
    let (small, read) = shown(50, false);
    assert_eq!((small.tasks.len(), small.counts.all, read, unlisted(&small)), (50, 50, 52, None));
    let (large, read) = shown(3_000, false);
    assert_eq!((large.tasks.len(), large.agents.len(), large.counts.all), (2, 2, 3_000));
    assert_eq!(read, 4, "two tasks and two attempts of 3,000 tasks");
    let words = "not listed: tasks (2998 pending); list them: rekindle status --all";
    assert_eq!(unlisted(&large).as_deref(), Some(words));
    let (whole, read) = shown(3_000, true);
    assert_eq!((whole.tasks.len(), read, unlisted(&whole)), (3_000, 3_002, None));
}
