//! How quickly the program answers a person: its bare start, `status` over ten thousand tasks, and the program's size.

use std::process::{Command, Stdio};
use std::sync::Arc;

use rekindle_engine::store::Store;

use crate::bed::{DriverBed, open_store, program, scratch};
use crate::measure::{Options, Ratio, Row, Samples, human, typical};

/// Tasks that `status` shows, as the goal says.
const TASKS: usize = 10_000;

/// Starts in a round.
const STARTS: usize = 7;

const ROUNDS: usize = 15;

fn start_of(command: &mut Command) -> f64 {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    typical(STARTS, || assert!(command.status().expect("a start").success(), "it succeeds"))
}

/// Starts of the program against the start of a program that does nothing.
pub fn start(options: &Options) -> Vec<Row> {
    let dir = scratch();
    let driven: Arc<dyn Store> = Arc::new(open_store(&dir.path().join(".rekindle")));
    drop(DriverBed::new(driven, TASKS));
    let program = program();
    let command = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).current_dir(dir.path()).env_remove("REKINDLE_STATE_DIR");
        command
    };
    let [mut nothing, mut version, mut status, mut json] = [const { Samples { rounds: Vec::new() } }; 4];
    for _ in 0..options.rounds(ROUNDS) {
        nothing.push(start_of(&mut Command::new("/bin/true")));
        version.push(start_of(&mut command(&["--version"])));
        status.push(start_of(&mut command(&["status"])));
        json.push(start_of(&mut command(&["status", "--json"])));
    }
    let row = |area: &str, goal_ms: f64, samples: &Samples| {
        let took = samples.median();
        let times = Ratio::of(samples, &nothing).times();
        let detail = format!("against /bin/true's {}", human(nothing.median()));
        let measured = format!("{}, {times}", human(took));
        Row::judged(area, &format!("≤ {goal_ms} ms"), measured, took <= goal_ms / 1e3, detail)
    };
    let bytes = program.metadata().expect("the program").len();
    let size = format!("{:.1} MB", bytes as f64 / 1e6);
    vec![
        row("`rekindle --version`", 5.0, &version),
        row("`rekindle status`, 10 k tasks", 20.0, &status),
        row("`rekindle status --json`, 10 k tasks", 20.0, &json),
        Row::judged("size of the program, stripped", "≤ 15 MB", size, bytes <= 15_000_000, String::new()),
    ]
}
