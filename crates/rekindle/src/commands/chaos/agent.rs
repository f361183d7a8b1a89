//! The stand-in for an AI agent: it prints, records what it does, makes what its check looks for and reports like any agent.
//! If ordered to, it crashes, hangs, lies or gives up, once.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Signal, getpid, getppid, kill_process};

use super::sandbox::{WORK_DIR, task_file};
use super::witness::{Note, What, Witness};
use crate::ui;

/// The hidden subcommand under which the rekindle binary becomes this agent.
pub(crate) const COMMAND: &str = "__chaos-agent";

/// Arguments for a process that only stays alive: for a while, or as long as its parent.
pub(crate) const IDLE: &str = "idle";
pub(crate) const BYSTANDER: &str = "bystander";

/// Lines that a stand-in prints for one task.
const STEPS: u32 = 20;

/// Pause between two lines: together about a second of work.
const STEP_MS: u32 = 40;

/// How long a stand-in does nothing: longer than any limit of the sandbox, but it ends even if everything else is gone.
const IDLE_MS: u32 = 120_000;

/// How often a report is repeated, for a coordinator that has no descriptor or no disk for a while.
const TRIES: u32 = 60;

/// Pause between two of them.
const TRY_MS: u32 = 500;

/// Works on the tasks that the environment names.
pub(crate) fn main(dir: &Path) -> ExitCode {
    if dir == Path::new(IDLE) {
        ui::pause(IDLE_MS);
        return ExitCode::SUCCESS;
    }
    if dir == Path::new(BYSTANDER) {
        let parent = getppid();
        while getppid() == parent {
            ui::pause(TRY_MS);
        }
        return ExitCode::SUCCESS;
    }
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let bundle = PathBuf::from(variable("REKINDLE_BUNDLE"));
    let number = bundle.file_name().and_then(|name| name.to_str()?.parse().ok()).unwrap_or(0);
    let agent =
        StandIn { witness: Witness::of(dir), dir: dir.to_owned(), bundle: number, role: variable("REKINDLE_ROLE") };
    let tasks = variable("REKINDLE_TASKS");
    match tasks.split(',').filter(|task| !task.is_empty()).try_for_each(|task| agent.work(task)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A missing reader must not change how the agent ends.
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

struct StandIn {
    witness: Witness,
    dir: PathBuf,
    bundle: u64,
    role: String,
}

impl StandIn {
    fn work(&self, task: &str) -> io::Result<()> {
        let lock = self.witness.lock(task)?;
        if lock.is_none() {
            self.note(What::Twins, task)?;
        }
        self.note(What::Begin, task)?;
        match self.role.as_str() {
            "critic" => self.report(task, &["review", "pass", task])?,
            "auditor" | "health_auditor" => self.report(task, &["audit", "pass", task])?,
            _ => self.develop(task)?,
        }
        self.note(What::End, task)
    }

    fn develop(&self, task: &str) -> io::Result<()> {
        let order = self.witness.take_order(task);
        if order.as_deref() == Some("lie") {
            self.note(What::Misbehaves, task)?;
            let said = rekindle(&["task", "done", task, "--result", "all done, trust me"])?;
            return self.say(&said.1);
        }
        // A process that the agent leaves behind in a session of its own: nothing of it may be left at the end.
        Command::new("setsid").arg(std::env::current_exe()?).args([COMMAND, IDLE]).stdout(Stdio::null()).spawn().ok();
        for step in 1..=STEPS {
            self.say(&format!("{task}: step {step} of {STEPS}, bundle {}", self.bundle))?;
            ui::pause(STEP_MS);
            if let (Some(order), true) = (&order, step == STEPS / 2) {
                self.misbehave(task, order)?;
            }
        }
        patient(|| self.make(task))?;
        self.report(task, &["task", "done", task, "--result", "by a stand-in"])
    }

    fn misbehave(&self, task: &str, order: &str) -> io::Result<()> {
        self.note(What::Misbehaves, task)?;
        match order {
            "crash" => Ok(kill_process(getpid(), Signal::KILL)?),
            "hang" => {
                ui::pause(IDLE_MS);
                Ok(())
            }
            _ => Err(io::Error::other("the provider closed the connection")),
        }
    }

    /// Makes the file that the task's check looks for, and the declared artifacts that are missing.
    fn make(&self, task: &str) -> io::Result<()> {
        for path in super::sandbox::artifacts(&self.dir, task)? {
            let path = Path::new(&path);
            if path.symlink_metadata().is_err() {
                let (parent, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
                let parent = Path::new(".").join(parent);
                std::fs::create_dir_all(&parent)?;
                rekindle_shim::atomic::save(&parent, &name.to_string_lossy(), b"made by a stand-in\n")?;
            }
        }
        std::fs::create_dir_all(WORK_DIR)?;
        rekindle_shim::atomic::save(Path::new(WORK_DIR), &task_file(task), b"done\n")
    }

    /// Reports like any agent, with the rekindle command line; a report that is not answered is repeated.
    fn report(&self, task: &str, arguments: &[&str]) -> io::Result<()> {
        for _ in 0..TRIES {
            let (taken, said) = rekindle(arguments)?;
            self.say(&said)?;
            if taken {
                return self.note(What::Told, task);
            }
            ui::pause(TRY_MS);
        }
        Err(io::Error::other("the report was never taken"))
    }

    fn note(&self, what: What, task: &str) -> io::Result<()> {
        self.witness.note(&Note { what, task: task.to_owned(), bundle: self.bundle, role: self.role.clone() })
    }

    /// Prints each line, then records it: if one more line was printed than recorded, it was the last.
    fn say(&self, text: &str) -> io::Result<()> {
        for line in text.lines() {
            let whole = format!("{line}\n");
            let mut left = whole.as_bytes();
            while !left.is_empty() {
                let written = patient(|| Ok(rustix::io::write(rustix::stdio::stdout(), left)?))?;
                left = &left[written..];
            }
            self.witness.printed(self.bundle, line)?;
        }
        Ok(())
    }
}

/// Retries while the disk is full: what an agent does then is its own affair, and not what is judged here.
fn patient<T>(mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..TRIES {
        match act() {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => ui::pause(TRY_MS),
            other => return other,
        }
    }
    act()
}

/// Runs the rekindle binary and returns whether it succeeded and what it printed.
fn rekindle(arguments: &[&str]) -> io::Result<(bool, String)> {
    let output = Command::new(std::env::current_exe()?).args(arguments).stdin(Stdio::null()).output()?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}
