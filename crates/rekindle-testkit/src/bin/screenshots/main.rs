//! Makes the README's pictures: a run whose agents crash, lie, fail and ask, shown with `top`, in the dashboard and in the
//! report. Usage: `screenshots DIR`, with `rekindle` beside it; `cargo xtask screenshots` does both. It judges nothing: a
//! person reviews the pictures.

#![expect(clippy::print_stdout, reason = "a developer's tool talks to its terminal")]

mod screen;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rekindle_testkit::browser::Browser;
use tempfile::TempDir;

/// The plan in the pictures.
const PLAN: &str = include_str!("plan.md");

/// The agent in the pictures.
const AGENT: &str = include_str!("agent.sh");

/// The settings: attempts follow each other quickly, so that the pictures show some.
const SETTINGS: &str = "[agents.dev]\nkind = \"command\"\ncommand = [\"/bin/sh\", \"./agent.sh\"]\n\n\
    [run]\nagent = \"dev\"\nbackoff = \"1s\"\n\n[stop]\ngrace = \"300ms\"\n\n[notify]\ndesktop = false\n";

/// Size of the terminal in the picture.
const TERMINAL: (&str, &str) = ("118", "32");

/// Longer than anything takes on a loaded machine.
const BOUND: Duration = Duration::from_secs(120);

/// Poll interval.
const LOOK: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    let Some(dir) = std::env::args_os().nth(1).map(PathBuf::from) else {
        println!("usage: screenshots DIR");
        return ExitCode::FAILURE;
    };
    std::fs::create_dir_all(&dir).expect("the directory for the pictures");
    let stage = Stage::set();
    stage.run_until_it_shows_something();
    let browser = Browser::start();
    browser.prefer("light");
    picture_of_top(&stage, &browser, &dir.join("top.png"));
    picture_of_dashboard(&stage, &browser, &dir.join("dashboard.png"));
    picture_of_report(&stage, &browser, &dir.join("report.png"));
    ExitCode::SUCCESS
}

/// A project in a temporary directory.
struct Stage {
    home: TempDir,
    program: PathBuf,
}

impl Stage {
    fn set() -> Self {
        let home = tempfile::Builder::new().prefix("rk-pictures-").tempdir().expect("tempdir");
        let program = std::env::current_exe().expect("this program").with_file_name("rekindle");
        assert!(program.is_file(), "{} is missing: cargo build -p rekindle", program.display());
        let stage = Self { home, program };
        std::fs::create_dir(stage.project()).expect("project");
        for (name, text) in [("plan.md", PLAN), ("agent.sh", AGENT), ("rekindle.toml", SETTINGS)] {
            std::fs::write(stage.project().join(name), text).expect("written");
        }
        stage
    }

    fn project(&self) -> PathBuf {
        self.home.path().join("project")
    }

    fn prepare(&self, command: &mut Command) {
        let beside = self.program.parent().expect("a directory").display().to_string();
        command
            .current_dir(self.project())
            .env_clear()
            .env("PATH", format!("{beside}:/usr/local/bin:/usr/bin:/bin"))
            .envs([("TZ", "UTC"), ("LC_ALL", "C.UTF-8"), ("TERM", "xterm-256color"), ("COLORTERM", "truecolor")])
            .env("HOME", self.home.path())
            .stdin(Stdio::null());
    }

    fn rekindle(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.program);
        self.prepare(&mut command);
        let output = command.args(arguments).output().expect("rekindle starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts the run and waits until there is a question, a failure, a recovery, and work in progress.
    fn run_until_it_shows_something(&self) {
        self.rekindle(&["run", "plan.md", "--detach"]);
        await_that("something to show", || {
            let status = self.rekindle(&["status", "--json"]);
            let logs = self.rekindle(&["logs"]);
            let asked = self.rekindle(&["questions"]).contains("answer it");
            asked && status.contains("\"failed\"") && logs.contains("step 14")
        });
    }
}

impl Drop for Stage {
    /// Leaves nothing behind, whatever went wrong.
    fn drop(&mut self) {
        self.rekindle(&["stop"]);
        let started = Instant::now();
        while !self.rekindle(&["status", "--json"]).contains("\"paused\"") && started.elapsed() < BOUND {
            std::thread::sleep(LOOK);
        }
    }
}

fn picture_of_top(stage: &Stage, browser: &Browser, file: &Path) {
    let socket = stage.home.path().join("tmux");
    let tmux = |arguments: &[&str]| {
        let mut command = Command::new("tmux");
        stage.prepare(&mut command);
        let output = command.arg("-S").arg(&socket).args(arguments).output().expect("tmux starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let (columns, rows) = TERMINAL;
    tmux(&["-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", rows, "rekindle top --color always"]);
    await_that("top", || tmux(&["capture-pane", "-p"]).contains("T3"));
    // Selects a task that is in progress, so that its log is shown beside the list.
    tmux(&["send-keys", "G", "k", "k", "k", "k", "k", "k"]);
    await_that("a log", || tmux(&["capture-pane", "-p"]).contains("step"));
    let page = screen::page(&tmux(&["capture-pane", "-p", "-e"]));
    tmux(&["kill-server"]);
    show(stage, browser, &page, (1_026, 572), file);
}

fn picture_of_dashboard(stage: &Stage, browser: &Browser, file: &Path) {
    let mut command = Command::new(&stage.program);
    stage.prepare(&mut command);
    let mut server = Server(command.arg("serve").stdout(Stdio::piped()).spawn().expect("the server starts"));
    let mut lines = BufReader::new(server.0.stdout.take().expect("its output")).lines();
    let address = lines.find_map(|line| {
        let line = line.ok()?;
        line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned)
    });
    browser.resize(1_200, 1_000);
    browser.open(&address.expect("an address"));
    browser.until("document.readyState === 'complete' && document.querySelector('h1') !== null");
    browser.screenshot(file);
    println!("wrote {}", file.display());
}

/// A server that ends when this value is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn picture_of_report(stage: &Stage, browser: &Browser, file: &Path) {
    let page = stage.rekindle(&["report", "--html", "-"]);
    show(stage, browser, &page, (1_200, 1_000), file);
}

fn show(stage: &Stage, browser: &Browser, page: &str, (width, height): (u32, u32), file: &Path) {
    let shown = stage.home.path().join("shown.html");
    std::fs::write(&shown, page).expect("written");
    browser.resize(width, height);
    browser.open(&format!("file://{}", shown.display()));
    browser.until("document.readyState === 'complete'");
    browser.screenshot(file);
    println!("wrote {}", file.display());
}

fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < BOUND, "waited in vain for {what}");
        std::thread::sleep(LOOK);
    }
}
