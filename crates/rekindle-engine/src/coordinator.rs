//! One coordinator process: takes the lock, opens the store, takes over the run and drives it until it is over or paused.
//!
//! What it does in a turn is in `turn`, for any world; here it does the real waiting, for messages and for a store that
//! refuses. It shows nothing; views read the store.

mod house;
mod room;
mod turn;
mod unwritten;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use rekindle_core::decide::Reply;
use rekindle_core::event::WorkBranch;
use rekindle_core::ids::AttemptId;
use rekindle_core::input::Input;
use rekindle_core::limits::Limits;
use rekindle_core::plan::Isolation;
use rekindle_core::retention::Rules;
use rekindle_core::role::Role;
use rekindle_core::state::{Run, RunPhase, State};
use rekindle_core::time::Time;

use crate::clean::{Background, Place};
use crate::clock::{self, Clock};
use crate::control;
use crate::descriptors;
use crate::driver::{self, Driver, LoadError, Message, Settings};
use crate::files::Files;
use crate::isolation;
use crate::polling;
use crate::redact::Redactor;
use crate::state_dir::{self, StateDir};
use crate::store::{self, OpenReport, Store};
use crate::token::Tokens;
use crate::urgent::Urgent;
use crate::world::real::{Lost, Programs, RealWorld};

use house::RealHouse;
use room::{look_for_lost, refuse_agents, refuse_beside};

pub use turn::{Arrived, House, Loop, Next, STORE_RETRY_MS, Start};
pub use unwritten::{Notice, Teller};

/// Messages that may wait for the driver; senders wait when it is full.
const QUEUE: usize = 1_024;

/// Time between two commits of output alone; decisions never wait. Every commit costs half a millisecond of processor time
/// whatever is in it, and with a hundred agents a line comes every few milliseconds: below 20 ms nobody sees the wait.
const OUTPUT_WINDOW_MS: u64 = 15;

/// A file in the state directory that says that damage was seen: the next start then checks everything, whatever its size.
const SUSPECT: &str = "suspect";

pub struct Setup {
    pub dir: StateDir,
    pub workspace: PathBuf,
    /// Whether agents work in isolation.
    pub isolation: Isolation,
    pub limits: Limits,
    /// What each `[agents.NAME]` stands for.
    pub programs: Programs,
    /// Lines of the previous agent's output in a brief.
    pub log_context_lines: usize,
    /// Largest prompt.
    pub brief_budget_bytes: usize,
    /// The user's own prompts, by role.
    pub prompts: BTreeMap<Role, String>,
    /// Where the files for people go.
    pub files_dir: PathBuf,
    /// A new run, unless an unfinished one continues.
    pub new_run: Option<Input>,
    /// The plan that the lock names as its owner, for another process that finds it.
    pub plan_path: PathBuf,
    /// A person said to continue although events of attempts were lost.
    pub forget_lost: bool,
    /// The state directory, if it had to be opened before it could be read.
    pub opened: Option<Opened>,
    /// What is removed of earlier runs during this one; `None` if only a person cleans.
    pub retention: Option<Rules>,
}

/// A state directory that is locked and whose store is open and intact, before anything is decided about its run.
pub struct Opened {
    lock: state_dir::CoordinatorLock,
    store: Arc<dyn Store>,
    report: OpenReport,
    state: State,
    last_seq: u64,
}

impl Opened {
    /// Takes the lock, opens the store (repairing it if needed) and loads the state. Fails if another coordinator holds the
    /// state, or it cannot be used.
    pub fn new(dir: &StateDir, plan_path: &Path) -> Result<Self, Error> {
        let wall = clock::wall();
        let owner = state_dir::Owner::this_process(wall.0, &plan_path.to_string_lossy());
        let lock = dir.lock_coordinator(&owner)?;
        let suspect = dir.path().join(SUSPECT);
        let options = store::Options { now_ms: wall.0, whole_check: suspect.exists() };
        let (store, report) = store::open(dir, options)?;
        // Checked completely, and repaired if that was needed: no longer suspect.
        let _not_there = std::fs::remove_file(&suspect);
        let (state, last_seq) = driver::load(store.as_ref())?;
        Ok(Self { lock, store, report, state, last_seq })
    }

    pub fn run(&self) -> Option<&Run> {
        self.state.run.as_ref()
    }
}

/// Why a coordinator could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The state directory cannot be used, or another coordinator holds it.
    #[error(transparent)]
    StateDir(#[from] state_dir::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The operating system refused something else.
    #[error("{what}: {source}")]
    Os { what: &'static str, source: std::io::Error },
    #[error("{} was deleted while its run was in progress, as git clean -fdx does; its agents are being ended", .0.display())]
    Deleted(PathBuf),
    #[error("{0}")]
    Refused(String),
    /// There are bundles of attempts that the log does not know: a person has to decide what happens to them.
    #[error("{0}")]
    AttemptsLost(Lost),
    /// It was told to leave while the store refused writes: the last decisions are not written, and agents continue.
    #[error("the state cannot be written: {0}")]
    Unwritten(store::Error),
}

impl From<driver::Error> for Error {
    fn from(error: driver::Error) -> Self {
        match error {
            driver::Error::Store(error) => Self::Store(error),
        }
    }
}

/// A coordinator that holds its lock and is ready to go.
pub struct Coordinator {
    turns: Loop<RealWorld, RealHouse>,
    next: Next,
    messages: Receiver<Message>,
    sender: SyncSender<Message>,
    report: OpenReport,
    clock: Clock,
    last_output: Time,
    made: Option<WorkBranch>,
    urgent: Urgent,
    /// What a person was last told about a store that refuses writes.
    told: Option<Notice>,
    /// Declared after the messages, which it sends, and before the lock, under which it writes.
    _cleaning: Background,
    lock: state_dir::CoordinatorLock,
}

impl Coordinator {
    /// Opens the state, unless it is open already, and takes over its run. Fails if another coordinator holds the state, or
    /// it cannot be used.
    pub fn open(mut setup: Setup) -> Result<Self, Error> {
        descriptors::raise();
        let opened = setup.opened.take().map_or_else(|| Opened::new(&setup.dir, &setup.plan_path), Ok)?;
        let Opened { lock, store, report, state, last_seq } = opened;
        refuse_agents(&state)?;
        let lost = look_for_lost(&setup, &state)?;
        let clock = Clock::starting_after(state.last_time, state.coordinator.as_ref());
        let (sender, messages) = sync_channel(QUEUE);
        let tokens = Tokens::new(*setup.dir.secret()?.bytes()).of_run(&run_id(&state, setup.new_run.as_ref()));
        let slug = plan_name(&state, setup.new_run.as_ref());
        let redactor = redactor(&setup.programs);
        let settings = settings_of(&setup, &slug);
        let apart = settle_isolation(&setup, &state, &slug)?;
        setup.limits.worktrees = apart.worktrees;
        let made = apart.made;
        let world = RealWorld::new(
            clock.clone(),
            &setup.dir,
            (setup.workspace.clone(), apart.work),
            setup.programs,
            tokens.clone(),
            setup.limits.stop_grace_ms,
            sender.clone(),
        )
        .map_err(|source| Error::Os { what: "cannot watch processes", source })?;
        refuse_beside(&world)?;
        let driver = Driver::new(Arc::clone(&store), world, (state, last_seq), tokens, redactor, settings);
        polling::clear(setup.dir.path());
        let house = RealHouse {
            files: Files::new(&setup.files_dir),
            plan_path: setup.plan_path,
            state_dir: setup.dir.path().to_owned(),
            teller: None,
        };
        let mut turns = Loop::new(driver, Arc::clone(&store), house);
        let lost = lost.map(|lost| AttemptId(lost.highest));
        if let Reply::Refused { reason } = turns.begin(setup.new_run, lost, made.clone())? {
            return Err(Error::Refused(reason));
        }
        control::server::open(setup.dir.path(), sender.clone())
            .map_err(|source| Error::Os { what: "cannot open the socket", source })?;
        if !report.whole {
            verify_beside(&store, &setup.dir, &sender);
        }
        let next = turns.start(Start {
            pid: std::process::id(),
            limits: setup.limits,
            boot_id: clock::boot_id(),
            boottime_ms: clock::boottime_ms(),
            gaps: report.gaps.clone(),
            repaired: report.repaired.is_some() || report.replayed > 0,
        })?;
        let place = Place { state_dir: setup.dir.path().to_owned(), root: setup.workspace };
        Ok(Self {
            _cleaning: Background::start(&store, place, setup.retention, sender.clone()),
            turns,
            next,
            messages,
            sender,
            report,
            last_output: clock.now(),
            clock,
            made,
            urgent: Urgent::default(),
            told: None,
            lock,
        })
    }

    /// The outcome of opening the store.
    pub fn report(&self) -> &OpenReport {
        &self.report
    }

    /// The branch that accepted work goes to, if it was created by this start.
    pub fn branch_made(&self) -> Option<&WorkBranch> {
        self.made.as_ref()
    }

    /// A sender of messages to the running coordinator.
    pub fn sender(&self) -> SyncSender<Message> {
        self.sender.clone()
    }

    /// A sender for signals, which is never full.
    pub fn urgent(&self) -> Urgent {
        self.urgent.clone()
    }

    /// Sets who receives the notices that the log cannot hold.
    pub fn telling(mut self, teller: Teller) -> Self {
        self.turns.house().teller = Some(teller);
        self
    }

    /// Drives the run until it is over or paused, and returns its phase. Fails if the store refuses for a permanent reason.
    /// Agents continue; the next coordinator adopts them.
    pub fn drive(mut self) -> Result<RunPhase, Error> {
        loop {
            let arrived = match std::mem::replace(&mut self.next, Next::Wait(Time(0))) {
                Next::Wait(until) => {
                    self.is_written();
                    self.gather(until)
                }
                Next::Unwritten(error) => {
                    self.wait_for_store(error)?;
                    Arrived::default()
                }
                Next::Over(phase) => {
                    self.is_written();
                    self.turns.finish()?;
                    return Ok(phase);
                }
            };
            if self.lock.is_lost() {
                // Whatever is at its path now belongs to another coordinator. The shims notice this on their own.
                return Err(Error::Deleted(self.turns.house().state_dir.clone()));
            }
            self.next = self.turns.turn(arrived)?;
        }
    }

    /// Waits for the next messages. Output alone is collected for a moment.
    fn gather(&mut self, until: Time) -> Arrived {
        let mut arrived = Arrived::default();
        self.urgent.take().into_iter().for_each(|reason| arrived.push(Message::Pause(reason)));
        let wait_ms = if arrived.is_empty() { until.since_ms(self.clock.now()) } else { 0 };
        let mut next = self.messages.recv_timeout(Duration::from_millis(wait_ms)).ok();
        while let Some(message) = next {
            arrived.push(message);
            if arrived.is_full() {
                break;
            }
            // If something is already due, there is no waiting for more output either.
            let more = |arrived| if wait_ms > 0 { self.wait_for_more_output(arrived) } else { None };
            next = self.messages.try_recv().ok().or_else(|| more(&arrived));
        }
        if arrived.has_output() {
            self.last_output = self.clock.now();
        }
        arrived
    }

    fn wait_for_more_output(&self, arrived: &Arrived) -> Option<Message> {
        let since = self.clock.now().since_ms(self.last_output);
        if !arrived.is_output_alone() || since >= OUTPUT_WINDOW_MS {
            return None;
        }
        self.messages.recv_timeout(Duration::from_millis(OUTPUT_WINDOW_MS - since)).ok()
    }
}

/// Checks a store that is too large to be checked completely at the start, in the background.
fn verify_beside(store: &Arc<dyn Store>, dir: &StateDir, messages: &SyncSender<Message>) {
    let (store, dir, messages) = (Arc::clone(store), dir.path().to_owned(), messages.clone());
    let verify = move || {
        let Ok(found) = store.verify(0) else { return };
        if let Some(problem) = found.problems.first() {
            let _marked_or_found_again = rekindle_shim::atomic::save(&dir, SUSPECT, problem.as_bytes());
            let _leaving = messages.send(Message::StoreDamaged { problem: problem.clone() });
        }
    };
    // Without a thread for it the store is checked at the next start.
    let _unchecked = std::thread::Builder::new().name("verify".to_owned()).spawn(verify);
}

/// The driver's settings from the setup.
fn settings_of(setup: &Setup, slug: &str) -> Settings {
    Settings {
        log_context_lines: setup.log_context_lines,
        brief_budget_bytes: setup.brief_budget_bytes,
        prompts: setup.prompts.clone(),
        workspace: setup.workspace.to_string_lossy().into_owned(),
        build_status_path: Files::build_status_path(&setup.files_dir, slug).to_string_lossy().into_owned(),
    }
}

/// What is secret: the operator's secrets, those given to agents, and where alerts go.
fn redactor(programs: &Programs) -> Redactor {
    let given = programs.agents.values().flat_map(|program| program.env.clone());
    let environment = std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()));
    // Whoever knows the webhook's URL can write there.
    let webhook = programs.alerts.webhook.iter().map(|url| ("webhook", url.clone()));
    let phones = programs.alerts.phones.iter().flat_map(|phone| {
        let name = phone.via().name();
        phone.secrets().into_iter().map(move |secret| (name, secret.reveal().to_owned()))
    });
    Redactor::with_secrets(environment.chain(given), webhook.chain(phones))
}

fn settle_isolation(setup: &Setup, state: &State, slug: &str) -> Result<isolation::Apart, Error> {
    let run = run_id(state, setup.new_run.as_ref());
    if run.is_empty() {
        return Ok(isolation::Apart::default());
    }
    let known = state.run.as_ref().filter(|_| setup.new_run.is_none());
    let of = isolation::Of { run: &run, slug, known };
    isolation::choose(setup.isolation, setup.limits.max_agents, setup.dir.path(), &setup.workspace, of)
        .map_err(|error| Error::Refused(error.to_string()))
}

fn run_id(state: &State, new_run: Option<&Input>) -> String {
    match (new_run, &state.run) {
        (Some(Input::RunRequested { run, .. }), _) => run.to_string(),
        (_, Some(run)) => run.id.to_string(),
        _ => String::new(),
    }
}

fn plan_name(state: &State, new_run: Option<&Input>) -> String {
    match (new_run, &state.run) {
        (Some(Input::RunRequested { plan, .. }), _) => plan.name.clone(),
        (_, Some(run)) => run.plan.name.clone(),
        _ => String::new(),
    }
}
