//! The stand-in for an AI agent that the demonstration runs: a real process that misbehaves on its first attempt.

use std::io::Write;
use std::process::{Command, ExitCode};

use rustix::process::{Signal, getpid, kill_process};

use crate::ui;

/// The hidden subcommand under which the rekindle binary becomes this agent.
pub(crate) const COMMAND: &str = "__demo-agent";

/// Lines that the slow agent writes.
const LONG_LINES: u32 = 40;

/// Pause between two lines.
const LINE_MS: u32 = 200;

/// Longer than any limit of the demonstration.
const FOR_EVER_MS: u32 = 600_000;

/// Works on the task that the environment names.
pub(crate) fn main() -> ExitCode {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let (task, attempt) = (variable("REKINDLE_TASK"), variable("REKINDLE_ATTEMPT"));
    say(&format!("attempt {attempt} at {task}"));
    let done = match (task.as_str(), attempt.as_str()) {
        ("crash", "1") => crash(),
        ("hang", "1") => hang(),
        ("lie", "1") => lie(),
        ("long", _) => slow_work(),
        (task, _) => work(task),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn work(task: &str) -> std::io::Result<()> {
    say("working");
    ui::pause(300);
    append(&format!("{task}.txt"), task)?;
    report(task, "the file is written")
}

fn slow_work() -> std::io::Result<()> {
    for line in 1..=LONG_LINES {
        append("long.txt", &format!("line {line}"))?;
        say(&format!("line {line} of {LONG_LINES}"));
        ui::pause(LINE_MS);
    }
    // Signals: its first word is enough for programs that can do nothing else.
    say("TASK_COMPLETE: long");
    say("Result: forty lines, without a restart");
    Ok(())
}

fn crash() -> std::io::Result<()> {
    append("crash.txt", "half a")?;
    say("working, and suddenly");
    Ok(kill_process(getpid(), Signal::KILL)?)
}

fn hang() -> std::io::Result<()> {
    say("thinking …");
    ui::pause(FOR_EVER_MS);
    Ok(())
}

fn lie() -> std::io::Result<()> {
    say("TASK_COMPLETE: lie");
    say("Result: all done, trust me");
    Ok(())
}

/// Reports like any agent, with the rekindle command line.
fn report(task: &str, result: &str) -> std::io::Result<()> {
    let status = Command::new("rekindle").args(["task", "done", task, "--result", result]).status()?;
    if status.success() { Ok(()) } else { Err(std::io::Error::other("the task was not accepted")) }
}

fn append(name: &str, line: &str) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(name)?;
    writeln!(file, "{line}")
}

fn say(line: &str) {
    // A missing reader is no reason for an agent to stop.
    let _ = writeln!(std::io::stdout(), "{line}");
}
