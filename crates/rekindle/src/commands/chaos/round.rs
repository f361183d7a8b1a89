//! One run of the sandbox's plan with one fault: it is started, damaged, restarted if its coordinator died, and brought to
//! its end. `verdict` judges it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rekindle_engine::clock;
use rekindle_shim::identity::Process;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::agent;
use super::fault::Fault;
use super::inject;
use super::parties::{self, Held};
use super::random::Random;
use super::sandbox::PLAN;
use super::verdict::{self, Evidence, Finding};
use super::witness::Witness;
use crate::error::Result;
use crate::project::Project;
use crate::ui;
use crate::view::View;

/// Pause between two polls of the run.
const LOOK_MS: u32 = 20;

/// How many times a fault is injected in one run: with more, a task could rightly use up its attempts.
const MOMENTS: usize = 3;

/// Longest time after an agent's start until a fault hits it: about as long as a stand-in works on its task.
const LATEST_MS: u64 = 900;

/// How long leftover processes of a finished run may take to end.
const LAST_LOOK_MS: u64 = 10_000;

/// What a run is to be, in a form that another process can read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Spec {
    pub dir: PathBuf,
    pub root: PathBuf,
    pub fault: Fault,
    pub round: u32,
    pub seed: u64,
    pub budget_ms: u64,
    /// Tasks that are open when the run starts.
    pub tasks: Vec<String>,
    /// Whether the configured agents do the work.
    pub real: bool,
    /// Whether a healthy agent is killed without being recorded as a hit: a verdict must then fail.
    pub plant: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub fault: Fault,
    pub round: u32,
    pub injected: u32,
    /// Why the fault was not injected, if it was not.
    pub not_injected: Option<String>,
    pub took_ms: u64,
    /// The findings on the promises.
    pub findings: Vec<Finding>,
    pub dir: PathBuf,
}

impl Outcome {
    /// The outcome of a run whose fault was not injected.
    pub(super) fn without(spec: &Spec, why: impl Into<String>) -> Self {
        Self {
            fault: spec.fault,
            round: spec.round,
            injected: 0,
            not_injected: Some(why.into()),
            took_ms: 0,
            findings: Vec::new(),
            dir: spec.dir.clone(),
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.findings.iter().any(|finding| !finding.broken.is_empty())
    }
}

/// A run in progress.
pub(super) struct Round<'a> {
    pub spec: &'a Spec,
    pub state: PathBuf,
    /// What happened so far.
    pub evidence: Evidence,
    coordinator: Child,
    starts: u32,
    began_ms: u64,
    stop: &'a AtomicBool,
}

/// Does the run. Fails when the sandbox itself fails.
pub(super) fn play(spec: &Spec, stop: &AtomicBool) -> Result<Outcome> {
    let failed = |error: io::Error| crate::error::CliError::internal("the sandbox failed").because(&error);
    let began_ms = clock::boottime_ms();
    let state = inject::state_dir(spec).map_err(failed)?;
    Witness::of(&spec.dir).create().map_err(failed)?;
    let mut random = Random::new(spec.seed);
    let moments = moments(spec, &mut random);
    inject::before(spec, moments.keys()).map_err(failed)?;
    let mut bystander = bystander(&spec.root).map_err(failed)?;
    let coordinator = start(spec, &state, 1).map_err(failed)?;
    let mut round = Round { spec, state, evidence: Evidence::default(), coordinator, starts: 1, began_ms, stop };
    let ended = round.drive(moments).map_err(failed);
    round.end_leftovers();
    let lives = matches!(bystander.try_wait(), Ok(None));
    // Our own child, not waited for yet.
    let _ = bystander.kill().and_then(|()| bystander.wait());
    round.evidence.strangers = u32::from(!lives);
    ended?;
    Ok(round.outcome())
}

/// Which tasks the fault hits, and how long after the start of their agent.
fn moments(spec: &Spec, random: &mut Random) -> BTreeMap<String, u64> {
    let mut tasks = spec.tasks.clone();
    let mut chosen = BTreeMap::new();
    while chosen.len() < MOMENTS && !tasks.is_empty() {
        let task = tasks.swap_remove(random.below(tasks.len()));
        chosen.insert(task, random.below(usize::try_from(LATEST_MS).unwrap_or(1)) as u64);
    }
    chosen
}

impl Round<'_> {
    /// Watches the run until it has ended, and injects the fault at the chosen moments.
    fn drive(&mut self, mut moments: BTreeMap<String, u64>) -> io::Result<()> {
        let mut planted = !self.spec.plant;
        loop {
            if let Some(status) = self.coordinator.try_wait()? {
                self.evidence.exit = status.code();
                return Ok(());
            }
            if self.is_over() {
                self.evidence.gave_up = true;
                return self.give_up();
            }
            let now = clock::boottime_ms();
            let open: Vec<Held> = parties::attempts(&self.state).into_iter().filter(|held| held.open).collect();
            let due = open.iter().find_map(|held| {
                // A task that is hit again and again would fail, and rightly so.
                if held.tasks.iter().any(|task| self.evidence.was_hit(task)) {
                    return None;
                }
                let since = now.saturating_sub(held.record.started_boottime_ms);
                let task = held.tasks.iter().find(|task| moments.get(*task).is_some_and(|after| since >= *after))?;
                Some((task.clone(), held))
            });
            if let Some((task, held)) = due {
                moments.remove(&task);
                inject::at(self, held)?;
            } else if !planted {
                let begun = open.iter().find(|held| self.has_begun(held.bundle));
                planted = begun.is_some_and(|held| held.kill(&held.record.agent));
            }
            inject::meanwhile(self)?;
            ui::pause(LOOK_MS);
        }
    }

    /// Whether the stand-in of a bundle has recorded that it started.
    fn has_begun(&self, bundle: u64) -> bool {
        let notes = Witness::of(&self.spec.dir).notes().unwrap_or_default();
        notes.iter().any(|note| note.bundle == bundle)
    }

    fn is_over(&self) -> bool {
        let late = clock::boottime_ms().saturating_sub(self.began_ms) > self.spec.budget_ms;
        late || self.stop.load(Ordering::Relaxed)
    }

    /// The coordinator, pinned: it is our own child and keeps its process id until we wait for it.
    pub(super) fn coordinator(&self) -> io::Result<Process> {
        Process::of_child(self.coordinator.id())
    }

    /// Kills the coordinator and starts the next one. Returns whether it was killed: it may have ended by then.
    pub(super) fn replace_coordinator(&mut self) -> io::Result<bool> {
        self.coordinator.kill()?;
        let killed = self.coordinator.wait()?.code().is_none();
        self.starts += 1;
        self.coordinator = start(self.spec, &self.state, self.starts)?;
        Ok(killed)
    }

    /// Records all events that could have been read by now: none of them may be missing at the end.
    pub(super) fn remember(&mut self) {
        let Ok(events) = verdict::events(&self.project()) else { return };
        self.evidence.seen.extend(events.into_iter().map(|event| (event.seq, event.hash)));
    }

    pub(super) fn project(&self) -> Project {
        Project::from(&self.spec.root, Some(&self.state))
    }

    fn give_up(&mut self) -> io::Result<()> {
        self.coordinator.kill()?;
        self.evidence.exit = self.coordinator.wait()?.code();
        Ok(())
    }

    /// Checks whether all processes end; otherwise ends them.
    fn end_leftovers(&mut self) {
        let began = clock::boottime_ms();
        loop {
            let (living, looked_at) = parties::living(&self.state);
            self.evidence.processes = looked_at;
            self.evidence.left = living.iter().map(|process| format!("process {}", process.id().pid)).collect();
            let patience = if self.evidence.gave_up { 0 } else { LAST_LOOK_MS };
            if living.is_empty() || clock::boottime_ms().saturating_sub(began) > patience {
                break;
            }
            ui::pause(LOOK_MS);
        }
        parties::end_all(&self.state);
        if self.evidence.gave_up {
            self.evidence.left.clear();
        }
    }

    fn outcome(mut self) -> Outcome {
        inject::after(&mut self);
        let injected = self.evidence.injected;
        let not_injected = (injected == 0).then(|| match &self.evidence.refused {
            Some(why) => why.clone(),
            None => "the run ended before the fault could be injected".to_owned(),
        });
        let findings = verdict::judge(self.spec, &self.project(), &mut self.evidence);
        inject::keep(self.spec, findings.iter().any(|finding| !finding.broken.is_empty()));
        Outcome {
            fault: self.spec.fault,
            round: self.spec.round,
            injected,
            not_injected,
            took_ms: clock::boottime_ms().saturating_sub(self.began_ms),
            findings,
            dir: self.spec.dir.clone(),
        }
    }
}

/// `rekindle run`, as a user would type it, in its own process group: Ctrl-C is for us.
fn start(spec: &Spec, state: &Path, nth: u32) -> io::Result<Child> {
    let log = File::create(spec.dir.join(format!("run-{nth}.log")))?;
    let mut command = Command::new(std::env::current_exe()?);
    // A run inside a run must not take the outer one's place.
    for name in std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with("REKINDLE_"))
    {
        command.env_remove(name);
    }
    // The user's alerts are for the user's runs.
    command.env("REKINDLE_NOTIFY_NEEDS_YOU", "false").env("REKINDLE_NOTIFY_FINISHED", "off");
    command.args(["run", PLAN, "--state-dir"]).arg(state).current_dir(&spec.root).process_group(0);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()
}

/// A process beside the run that has nothing to do with it.
fn bystander(root: &Path) -> io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args([agent::COMMAND, agent::BYSTANDER])
        .current_dir(root)
        .process_group(0)
        .stdin(Stdio::null())
        .spawn()
}

/// Whether a run can be read at all.
pub(super) fn readable(project: &Project) -> bool {
    View::open(project).is_ok_and(|view| matches!(view.run(), Ok(Some(_))))
}

/// Stops a pinned process for a while and continues it. Fails when it has ended.
pub(super) fn freeze(process: &Process, ms: u32) -> io::Result<()> {
    process.signal(Signal::STOP)?;
    ui::pause(ms);
    process.signal(Signal::CONT)
}
