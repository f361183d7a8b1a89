//! Starts and stops attempts: the bundle's contents, and the background threads that do it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rekindle_core::brief;
use rekindle_core::ids::{AttemptId, TaskId};
use rekindle_core::input::Refused;
use rekindle_core::refusal::Refusal;
use rekindle_shim::bundle::{Output, Spec, VERSION};

use super::setup::Moment;
use super::{Shared, baseline, bundles, checks, cli_session, disk};
use crate::agents::{CONTEXT_FILE, PROMPTED_FILE, Place, Start};
use crate::control::server::SOCKET;
use crate::pressure;
use crate::refusal::{self, Trouble};
use crate::supervise::{self, BundleKey, LaunchError, Launched};
use crate::world::Message;
use crate::world::{Admission, LaunchOrder};

/// How long a shim may take to accept an order; it answers at once unless the machine is badly loaded.
const ORDER_BUDGET: Duration = Duration::from_secs(5);

/// Orders that did not arrive are repeated this often; after that the deadline of the stop orders it anew.
const ORDER_TRIES: u32 = 3;

/// Longest time that a stop waits for the launch it is meant to end; a launch takes milliseconds.
const LAUNCH_BUDGET: Duration = Duration::from_secs(30);

/// Longest wait for a turn where memory is tight; shorter than a stop waits for its launch.
const TURN_BUDGET: Duration = Duration::from_secs(20);

/// How long a newly started agent takes to allocate most of its memory.
const SETTLE_MS: u64 = 1_500;

/// Launches in progress in this process. A stop that overtook its launch would find nothing to stop, the attempt would count
/// as never started, and the process would run on unattended; the same would happen to an attempt that is launched twice at
/// a time.
#[derive(Debug, Default)]
pub(super) struct Launches {
    under_way: Mutex<BTreeSet<AttemptId>>,
    through: Condvar,
    /// Launches that were ordered to stop before they finished: nothing is started for them any more.
    unwanted: Mutex<BTreeSet<AttemptId>>,
    /// Where the set-up of their worktrees runs.
    setting_up: Mutex<BTreeMap<AttemptId, PathBuf>>,
    /// Whether a launch has the turn where launches are staged.
    stage: Mutex<bool>,
    next: Condvar,
}

/// The turn of one launch. It lasts a while longer than the launch: only then has the agent allocated what it needs to
/// start.
struct LaunchTurn<'a>(&'a Launches);

impl Drop for LaunchTurn<'_> {
    fn drop(&mut self) {
        rekindle_shim::clock::pause(SETTLE_MS);
        *self.0.stage.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.next.notify_one();
    }
}

impl Launches {
    /// Registers a launch; returns whether it is the first for this attempt.
    fn begin(&self, attempt: AttemptId) -> bool {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner).insert(attempt)
    }

    /// Handles a stop order: a launch in progress ends as soon as it can, and its set-up at once.
    fn give_up(&self, attempt: AttemptId) {
        if !self.is_under_way(attempt) {
            return;
        }
        self.unwanted.lock().unwrap_or_else(PoisonError::into_inner).insert(attempt);
        let place = self.setting_up.lock().unwrap_or_else(PoisonError::into_inner).get(&attempt).cloned();
        place.iter().for_each(|place| checks::end_leftovers(place));
    }

    /// Does the set-up of an attempt, unless a stop was ordered. An error means that nothing may be started.
    fn while_wanted(
        &self,
        attempt: AttemptId,
        place: Option<PathBuf>,
        set_up: impl FnOnce() -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let stopped = || {
            let unwanted = self.unwanted.lock().unwrap_or_else(PoisonError::into_inner).contains(&attempt);
            let reason = "it was stopped while its worktree was set up".to_owned();
            if unwanted { Err(Trouble::Refused(Refusal { reason, hint: String::new() })) } else { Ok(()) }
        };
        let mut under_way = self.setting_up.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.extend(place.map(|place| (attempt, place)));
        drop(under_way);
        let done = stopped().and_then(|()| set_up());
        self.setting_up.lock().unwrap_or_else(PoisonError::into_inner).remove(&attempt);
        stopped().and(done)
    }

    fn end(&self, attempt: AttemptId) {
        self.unwanted.lock().unwrap_or_else(PoisonError::into_inner).remove(&attempt);
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner).remove(&attempt);
        self.through.notify_all();
    }

    /// Where memory is tight, launches that came together are started one after the other, and each checks the memory that
    /// the last one left. The turn lasts as long as the returned value is kept.
    fn take_turn(&self, tight: bool, short: impl Fn() -> Option<Refusal>) -> Result<Option<LaunchTurn<'_>>, Trouble> {
        if !tight {
            return Ok(None);
        }
        let busy = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        // After the budget it is started anyway: its own memory check remains.
        let (mut busy, _) =
            self.next.wait_timeout_while(busy, TURN_BUDGET, |busy| *busy).unwrap_or_else(PoisonError::into_inner);
        if let Some(refusal) = short() {
            // Wake the next one too, instead of letting it wait for a turn that is free.
            self.next.notify_one();
            return Err(Trouble::Refused(refusal));
        }
        *busy = true;
        Ok(Some(LaunchTurn(self)))
    }

    pub(super) fn is_under_way(&self, attempt: AttemptId) -> bool {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner).contains(&attempt)
    }

    pub(super) fn wait_for(&self, attempt: AttemptId) {
        let under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        // After the budget the order is given anyway, and again when the stop is overdue.
        let _in_time = self.through.wait_timeout_while(under_way, LAUNCH_BUDGET, |all| all.contains(&attempt));
    }
}

/// Starts an attempt in the background.
pub(super) fn in_background(shared: &Arc<Shared>, order: LaunchOrder) -> Admission {
    let attempt = order.attempt;
    if !shared.launches.begin(attempt) {
        return Admission::Yes;
    }
    let worker = Arc::clone(shared);
    let spawned = std::thread::Builder::new().name("launch".to_owned()).spawn(move || {
        let launched = launch(&worker, order);
        worker.launches.end(attempt);
        let message = match launched {
            Ok(()) => return,
            Err(NotLaunched::Trouble(Trouble::Refused(refusal))) => {
                Message::Refused { what: Refused::Attempt(attempt), refusal }
            }
            Err(NotLaunched::Trouble(Trouble::Wrong(reason))) => Message::NotStarted { attempt, reason },
            Err(NotLaunched::NotSetUp { task, reason }) => Message::SetupFailed { attempt, task, reason },
        };
        let _leaving = worker.messages.send(message);
    });
    let Err(error) = spawned else { return Admission::Yes };
    shared.launches.end(attempt);
    Admission::Refused(refusal::words(refusal::errno_of(&error), &shared.state_dir))
}

/// Why an attempt was not started.
enum NotLaunched {
    Trouble(Trouble),
    /// Its worktree could not be set up.
    NotSetUp {
        task: TaskId,
        reason: String,
    },
}

impl<T: Into<Trouble>> From<T> for NotLaunched {
    fn from(trouble: T) -> Self {
        Self::Trouble(trouble.into())
    }
}

/// Starts an attempt. An error means that no process was started: a process that may live is watched instead.
fn launch(shared: &Shared, mut order: LaunchOrder) -> Result<(), NotLaunched> {
    let _turn = shared.launches.take_turn(pressure::is_tight(), pressure::memory)?;
    let (adapter, program) = shared.adapter(&order.cli).ok_or_else(|| format!("there is no [agents.{}]", order.cli))?;
    let workspace = take_place(shared, &mut order).map_err(|reason| {
        refusal::in_text(&reason, &shared.workspace).map_or(Trouble::Wrong(reason), Trouble::Refused)
    })?;
    set_up(shared, &order, &workspace)?;
    let prompt = prompt_of(&order);
    let dir = shared.bundle(order.attempt);
    if dir.to_str().is_none() && adapter.traits(program).mcp {
        let place = dir.display();
        return Err(format!("this kind of agent needs a UTF-8 path, and {place} is none: move the project").into());
    }
    let start = Start {
        program,
        prompt: &prompt,
        resume: order.resume.as_deref(),
        new_session: &shared.tokens.session(order.attempt, order.epoch),
        bundle: &dir,
        workspace: &workspace,
        rekindle: &own_program(),
    };
    let launch = adapter.start(&start)?;
    let mut env = program.env.clone();
    env.extend(launch.env);
    env.extend(environment(shared, &order, program.env.get("PATH")));
    let spec = Spec {
        version: VERSION,
        run: shared.tokens.run().to_owned(),
        attempt: order.attempt.to_string(),
        epoch: order.epoch.0,
        nonce: shared.tokens.nonce(order.attempt, order.epoch),
        argv: launch.argv.into_iter().map(|word| found_in(&shared.workspace, &workspace, word)).collect(),
        cwd: workspace.clone(),
        env,
        env_remove: launch.env_remove.into_iter().chain(shared.programs.alerts.phone_variables()).collect(),
        stdin: launch.stdin,
        output: Output::Spool,
        deadline_ms: None,
        stop: adapter.ladder(shared.stop_grace_ms),
        caps: Some(shared.programs.caps.or_own(program.memory_max, program.processes_max)),
    };
    let place = Place { program, workspace: &workspace, bundle: &dir };
    let mut files = launch.files;
    // What the agent is told after a compaction while no coordinator is running.
    files.insert(CONTEXT_FILE.to_owned(), brief::reinject(&order.facts));
    if order.resume.is_some() && order.facts.forgot {
        files.insert(PROMPTED_FILE.to_owned(), String::new());
    }
    let prepare = |dir: &Path| {
        cli_session::write_files(dir, &files)?;
        cli_session::make_links(dir, &launch.links)?;
        if let Some(session) = &order.resume {
            cli_session::note_transcript(adapter, &place, session);
        }
        Ok(())
    };
    bundles::make_way(shared, order.attempt, order.epoch)?;
    if !dir.exists() {
        // No work was done for this attempt yet. If the agent were already started, its work would be mistaken for what was
        // there before.
        baseline::take(shared, order.attempt, &order.baselines);
    }
    let launched = shared.launcher.launch_prepared(&dir, &spec, Some(launch.input.as_bytes()), prepare);
    Ok(watch_over(shared, order.attempt, launched)?)
}

/// Sets up the worktree of an attempt, unless a person said to continue without.
fn set_up(shared: &Shared, order: &LaunchOrder, workspace: &Path) -> Result<(), NotLaunched> {
    let Some(task) = order.tasks.first() else { return Ok(()) };
    let key = order.workspace.as_deref();
    if !order.set_up {
        shared.leave_set_up(key);
        return Ok(());
    }
    let place = key.map(|key| shared.setup_place(key));
    let set_up = || shared.set_up(key, workspace, task, Moment::Launch);
    shared.launches.while_wanted(order.attempt, place, set_up).map_err(|trouble| match trouble {
        Trouble::Wrong(reason) => NotLaunched::NotSetUp { task: task.clone(), reason },
        refused => refused.into(),
    })
}

/// Watches whatever a launch started. Only a launch that provably started nothing is an error.
fn watch_over(shared: &Shared, attempt: AttemptId, launched: Result<Launched, LaunchError>) -> Result<(), Trouble> {
    let (key, dir) = (BundleKey(attempt.0), shared.bundle(attempt));
    match launched {
        // If it is already watched, there is nothing to report.
        Ok(launched) => {
            let _watched = shared.watch.add_launched(key, &dir, launched);
        }
        Err(LaunchError::Unpinned { pid, .. }) => {
            let _watched = shared.watch.add_unpinned(key, &dir, pid);
        }
        // The order was carried out a second time: the existing process is probed, not started again.
        Err(LaunchError::Exists(_) | LaunchError::Held(_)) => {
            let _leaving = shared.messages.send(Message::Ended { attempt });
        }
        Err(error) => {
            let refused = error.refusal(&shared.state_dir);
            return Err(refused.map_or_else(|| Trouble::Wrong(error.to_string()), Trouble::Refused));
        }
    }
    Ok(())
}

/// The agent's first prompt.
fn prompt_of(order: &LaunchOrder) -> String {
    match order.resume {
        Some(_) => brief::render_resumed(&order.facts),
        None => brief::render(&order.facts),
    }
}

/// The directory that an agent works in, with a snapshot taken before it starts; its prompt says what is there.
fn take_place(shared: &Shared, order: &mut LaunchOrder) -> Result<PathBuf, String> {
    let workspace = shared.place(order.workspace.as_deref())?;
    if let Some(task) = order.tasks.first() {
        shared.declare(order.workspace.as_deref(), task, &order.declared);
        let kept = shared.snapshot(order.workspace.as_deref(), task, order.attempt, "start");
        // In a shared directory, git may be in no state to take a snapshot; that is no reason not to work.
        if order.workspace.is_some() {
            kept?;
        }
    }
    order.facts.workspace = workspace.to_string_lossy().into_owned();
    let base = order.workspace.as_deref().zip(shared.work.as_ref()).and_then(|(key, work)| work.base(key));
    order.facts.disk = disk::facts(&workspace, base.as_deref(), &order.facts);
    Ok(workspace)
}

/// A program or script of the project that is missing in the agent's own workspace, for example because it was never
/// committed, refers to the one in the project.
fn found_in(project: &Path, workspace: &Path, word: String) -> String {
    let plain = !word.starts_with('-') && Path::new(&word).is_relative() && project != workspace;
    let there = project.join(&word);
    if plain && there.is_file() && !workspace.join(&word).exists() {
        return there.to_string_lossy().into_owned();
    }
    word
}

/// The environment of an agent. The token is in no argument and no log.
fn environment(shared: &Shared, order: &LaunchOrder, own_path: Option<&String>) -> BTreeMap<String, String> {
    let tasks: Vec<String> = order.tasks.iter().map(ToString::to_string).collect();
    let dir = shared.bundle(order.attempt);
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let pairs = [
        ("REKINDLE_AGENT", order.agent.to_string()),
        ("REKINDLE_TASK", tasks.first().cloned().unwrap_or_default()),
        ("REKINDLE_TASKS", tasks.join(",")),
        ("REKINDLE_ROLE", order.role.to_string()),
        ("REKINDLE_ATTEMPT", order.number.to_string()),
        ("REKINDLE_EPOCH", order.epoch.to_string()),
        ("REKINDLE_TOKEN", shared.tokens.token(order.attempt, order.epoch)),
        ("REKINDLE_NONCE", shared.tokens.nonce(order.attempt, order.epoch)),
        ("REKINDLE_SOCKET", text(shared.state_dir.join(SOCKET))),
        ("REKINDLE_STATE_DIR", text(shared.state_dir.clone())),
        ("REKINDLE_BUNDLE", text(dir.clone())),
        ("REKINDLE_PROMPT_FILE", text(dir.join(rekindle_shim::bundle::PROMPT))),
        ("PATH", path_with_rekindle(own_path)),
    ];
    let ports = shared.port_variables(order.workspace.as_deref());
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(ports).collect()
}

/// The path of this program, for hooks and tools that an agent's program starts.
fn own_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("rekindle"))
}

/// The agent's own PATH, else the operator's, with the directory of this program in front, so that an agent's `rekindle` is this
/// one.
fn path_with_rekindle(own_path: Option<&String>) -> String {
    let inherited = || std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned());
    let path = own_path.cloned().unwrap_or_else(inherited);
    let own = std::env::current_exe().ok().and_then(|exe| exe.parent().map(|dir| dir.to_string_lossy().into_owned()));
    match own {
        Some(own) if !path.split(':').any(|dir| dir == own) => format!("{own}:{path}"),
        _ => path,
    }
}

/// Stops an attempt in the background: the shim climbs the ladder on its own, whatever becomes of this process.
pub(super) fn stop_in_background(shared: &Arc<Shared>, attempt: AttemptId, at_once: bool) {
    let worker = Arc::clone(shared);
    let dir = shared.bundle(attempt);
    let stop = move || {
        worker.launches.give_up(attempt);
        worker.launches.wait_for(attempt);
        for _ in 0..ORDER_TRIES {
            let ordered =
                if at_once { supervise::kill(&dir, ORDER_BUDGET) } else { supervise::stop(&dir, None, ORDER_BUDGET) };
            if ordered.is_ok() {
                return;
            }
        }
        // The order was not accepted: perhaps the shim is gone.
        let _leaving = worker.messages.send(Message::Ended { attempt });
    };
    // Without a thread the order is given again when the stop is overdue.
    let _ordered_again_later = std::thread::Builder::new().name("stop".to_owned()).spawn(stop);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn where_memory_is_tight_each_start_sees_what_the_last_one_took() {
        const ROOM: usize = 2;
        let (launches, taken, refused) = (Launches::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        let full =
            || (taken.load(Ordering::SeqCst) >= ROOM).then(|| Refusal { reason: "full".into(), hint: String::new() });
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| match launches.take_turn(true, full) {
                    // The agent allocates its memory while its launch has the turn: started together, all would have found
                    // enough memory.
                    Ok(turn) => {
                        assert!(turn.is_some(), "tight, and nobody waits");
                        taken.fetch_add(1, Ordering::SeqCst);
                        drop(turn);
                    }
                    Err(_) => drop(refused.fetch_add(1, Ordering::SeqCst)),
                });
            }
        });
        assert_eq!((taken.into_inner(), refused.into_inner()), (ROOM, 2));
        assert!(launches.take_turn(false, || None).is_ok_and(|turn| turn.is_none()), "with room nobody waits");
    }
}
