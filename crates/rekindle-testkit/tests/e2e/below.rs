//! Processes that the coordinator starts, met before their first instruction: each is stopped as it becomes another program, and let
//! go; the one that a test is about is killed or handed to a tracer of its own first.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use crate::processes;
use crate::rig::{Rig, Running, program};

/// Which process of the first attempt a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The one that holds the agent.
    Shim,
    /// The one that becomes the agent.
    Stub,
}

impl Party {
    /// Its hidden subcommand.
    fn command(self) -> &'static str {
        match self {
            Self::Shim => "__shim",
            Self::Stub => "__stub",
        }
    }
}

/// What is done to it.
#[derive(Clone, Copy)]
pub enum Deed<'a> {
    Kill,
    /// It is traced like this.
    Trace(&'a [&'a str]),
}

/// What a tracer does that stops everybody who becomes another program.
const STOPS: &[&str] = &["-e", "trace=execve", "-e", "inject=execve:signal=SIGSTOP"];

/// Follows children until they become other programs.
const FOLLOWS: &[&str] = &["-f", "-b", "execve", "-qq", "-o"];

/// Where tracers that are attached complain.
const COMPLAINTS: &str = "tracers";

/// A run whose children are stopped as they begin.
pub struct Below<'a> {
    rig: &'a Rig,
    party: Party,
    deed: Deed<'a>,
    log: PathBuf,
    tracers: Vec<(u32, Child)>,
    met: bool,
}

impl<'a> Below<'a> {
    /// Starts the plan.
    pub fn start(rig: &'a Rig, party: Party, deed: Deed<'a>) -> (Self, Running) {
        let mut strace = Command::new("strace");
        rig.prepare(&mut strace);
        strace.args(FOLLOWS).arg("/dev/null").args(STOPS).arg(program()).args(["run", "plan.md"]);
        let run = rig.launch(strace);
        (Self { rig, party, deed, log: rig.outside("traced"), tracers: Vec::new(), met: false }, run)
    }

    /// Lets everybody go who was stopped. To be called again and again.
    pub fn tend(&mut self) {
        for pid in self.rig.living().into_iter().filter(|pid| is_stopped(*pid)) {
            let Some(process) = self.rig.pinned(pid) else { continue };
            let what = processes::describe(pid);
            let first = what.contains("attempts/00000001");
            if first && !self.met && what.contains(self.party.command()) {
                self.met = true;
                match &self.deed {
                    Deed::Kill => process.kill(),
                    Deed::Trace(tracing) => self.trace(pid, tracing, self.log.clone()),
                }
            } else if first && self.party == Party::Stub && what.contains(Party::Shim.command()) {
                self.trace(pid, STOPS, "/dev/null".into());
            }
            process.send(Signal::CONT);
        }
    }

    /// Attaches a tracer and awaits that it holds the process.
    fn trace(&mut self, pid: u32, tracing: &[&str], log: PathBuf) {
        if self.tracers.iter().any(|(traced, _)| *traced == pid) {
            return;
        }
        let mut strace = Command::new("strace");
        strace.args(FOLLOWS).arg(log).args(tracing).args(["-p", &pid.to_string()]);
        let said =
            std::fs::File::options().create(true).append(true).open(self.rig.outside(COMPLAINTS)).expect("a file");
        strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        self.tracers.push((pid, strace.spawn().expect("strace is needed")));
        self.rig.until("a tracer that holds the process", || is_traced(pid).then_some(()));
    }

    /// What tracers said that were attached.
    pub fn complaints(&self) -> String {
        std::fs::read_to_string(self.rig.outside(COMPLAINTS)).unwrap_or_default()
    }

    /// What the party's tracer saw; nothing where the party was never met.
    pub fn seen(&self) -> Option<String> {
        let seen = || String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned();
        self.met.then(seen)
    }
}

impl Drop for Below<'_> {
    fn drop(&mut self) {
        for (_, tracer) in &mut self.tracers {
            let _ended = tracer.kill();
            let _reaped = tracer.wait();
        }
    }
}

/// The value of a line of a process's status.
fn status_of(pid: u32, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

fn is_stopped(pid: u32) -> bool {
    status_of(pid, "State").is_some_and(|state| state.starts_with('T'))
}

fn is_traced(pid: u32) -> bool {
    // One that is gone is held by nobody, and nobody waits for it.
    status_of(pid, "TracerPid").is_none_or(|tracer| tracer != "0")
}
