//! What one hook costs the program that calls it: from the start of the process to its end, with its record durable, beside an
//! empty C program and one write with its fsync.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::bed::{program, scratch};
use crate::measure::{Options, Ratio, Row, Samples, human, median, quantile};

/// Hooks, one after another, as a session calls them.
const HOOKS: usize = 400;

/// Of them in a round, between two rounds of the floor.
const IN_A_ROUND: usize = 20;

/// The floor: starts, appends as much as a record has, syncs, ends.
const FLOOR: &str = "#include <fcntl.h>\n#include <unistd.h>\nint main(int n, char **a) {\n\
    char line[200]; for (int i = 0; i < 200; i++) line[i] = 'x';\n\
    int f = open(a[1], O_WRONLY | O_CREAT | O_APPEND, 0600);\n\
    return f < 0 || write(f, line, 200) != 200 || fsync(f) != 0;\n}\n";

/// Hooks after a tool, which are nearly all of them.
pub fn one(options: &Options) -> Vec<Row> {
    let dir = scratch();
    let floor = floor(dir.path());
    let project = dir.path().join("project");
    std::fs::create_dir_all(project.join(".rekindle")).expect("a project");
    let call = |n: usize| {
        let event = serde_json::json!({
            "session_id": "bench", "transcript_path": dir.path().join("none.jsonl"), "cwd": project,
            "hook_event_name": "PostToolUse", "tool_name": "Write", "tool_use_id": format!("call-{n}"),
            "tool_input": { "file_path": project.join(format!("src/file-{}.rs", n % 40)), "content": "x".repeat(2_000) },
            "tool_response": { "type": "create" },
        });
        let mut command = Command::new(program());
        command.args(["hook", "claude"]).env("HOME", dir.path()).env_remove("REKINDLE_TOKEN");
        command.env_remove("REKINDLE_STATE_DIR").current_dir(&project);
        timed(command, event.to_string().as_bytes())
    };
    // The first makes the journal; it is no hook after a tool.
    call(0);
    let (mut hooks, mut floors) = (Samples::default(), Samples::default());
    let mut all = Vec::new();
    for round in 0..options.rounds(HOOKS / IN_A_ROUND) {
        let took: Vec<f64> = (0..IN_A_ROUND).map(|n| call(1 + round * IN_A_ROUND + n)).collect();
        let at_floor = |_| {
            let mut command = Command::new(&floor);
            command.arg(dir.path().join("floor"));
            timed(command, b"")
        };
        let bare: Vec<f64> = (0..IN_A_ROUND).map(at_floor).collect();
        all.extend(&took);
        hooks.push(median(&took));
        floors.push(median(&bare));
    }
    let (p50, p99) = (median(&all), quantile(&all, 0.99));
    let ratio = Ratio::of(&hooks, &floors);
    let detail = format!("{} hooks, floor {}", all.len(), human(floors.median()));
    vec![
        Row::judged("one hook, durable, median", "≤ 5 ms", human(p50), p50 <= 0.005, detail.clone()),
        Row::judged("one hook, durable, 99 of 100", "≤ 25 ms", human(p99), p99 <= 0.025, detail.clone()),
        Row::judged("one hook against an empty C program + fsync", "≤ 4×", ratio.times(), ratio.median <= 4.0, detail),
    ]
}

/// Seconds from the start of a process to its end.
fn timed(mut command: Command, input: &[u8]) -> f64 {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    let mut child = command.spawn().expect("started");
    // The floor reads nothing: it may be gone before.
    drop(child.stdin.take().map(|mut pipe| pipe.write_all(input)));
    assert!(child.wait().expect("ended").success(), "it succeeds");
    started.elapsed().as_secs_f64()
}

/// Compiles the floor.
fn floor(dir: &Path) -> std::path::PathBuf {
    let (source, made) = (dir.join("floor.c"), dir.join("floor-program"));
    std::fs::write(&source, FLOOR).expect("written");
    let compiled = Command::new("cc").arg("-O2").arg("-o").arg(&made).arg(&source).status().expect("a C compiler: cc");
    assert!(compiled.success(), "it compiles");
    made
}
