//! The real world: bundles, shims and their watch, checks, the workspace's files.
//!
//! Work that takes time runs on its own thread and comes back as a message, so that the driver never waits for a process.

mod allowance;
mod baseline;
mod bundles;
mod check_line;
mod checks;
mod cli_session;
mod disk;
mod launch;
mod person;
mod phone;
mod preflight;
mod settle;
mod setup;
mod workspaces;

pub use allowance::read as read_allowance;
pub use bundles::{Lost, highest as highest_bundle, lost};
pub use check_line::{CheckLine, CheckPlace, REMOVED, check_line};
pub use setup::{Worktree, bring, changed_words, free_ports};

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use jiff::tz::TimeZone;
use rekindle_core::activity::{History, Ledger, Transcript};
use rekindle_core::budget::Calendar;
use rekindle_core::event::ClockSeen;
use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_core::input::Found;
use rekindle_core::preflight::TryCheck;
use rekindle_core::steering::PersonProcess;
use rekindle_core::time::Time;
use rekindle_shim::bundle::{self, Bundle, ShimRecord};
use rekindle_shim::tree::Activity;

use super::{Admission, CheckOrder, KeptReport, LaunchOrder, LeaveOrder, MergeOrder, Message, Notice, World, kept};
use crate::agents::history::Record;
use crate::agents::{Program, Reader};
use crate::alert::phone::{Asking, Phones};
use crate::alert::{Alert, Alerts, Channels, Session};
use crate::calendar::{self, QuietHours};
use crate::caps::Defaults;
use crate::clock::{self, Clock};
use crate::control::Answerer;
use crate::evidence::Outputs;
use crate::git::Work;
use crate::living::Living;
use crate::person::WorkedOn;
use crate::state_dir::StateDir;
use crate::store::Stream;
use crate::supervise::{self, BundleKey, Launcher, Observation, PROBE_BUDGET, Watch};
use crate::token::Tokens;

/// Observations that may wait to be passed on.
const OBSERVATIONS: usize = 1_024;

/// Every `[agents.NAME]`, and what all of them share.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    pub agents: BTreeMap<String, Program>,
    /// Longest time for one acceptance command.
    pub check_timeout_ms: u64,
    /// How to notify a person.
    pub alerts: Channels,
    /// Command prefixes by the environment's name.
    pub environments: BTreeMap<String, Vec<String>>,
    /// The shell line that reports how much of the allowance is left; empty if there is none.
    pub usage: String,
    /// The resource limits of an agent that does not set its own.
    pub caps: Defaults,
    /// What worktrees need besides the files that git has.
    pub worktree: Worktree,
    /// Hours in which nothing new starts.
    pub quiet: Option<QuietHours>,
}

/// State shared by the threads of this world.
struct Shared {
    bundles: PathBuf,
    state_dir: PathBuf,
    workspace: PathBuf,
    work: Option<Work>,
    jobs: workspaces::Jobs,
    living: Option<Living>,
    programs: Programs,
    tokens: Tokens,
    launcher: Launcher,
    launches: launch::Launches,
    watch: Watch,
    messages: SyncSender<Message>,
    stop_grace_ms: u64,
    /// The pre-flight is running.
    flying: AtomicBool,
    /// The pre-flight must end: the coordinator is exiting.
    grounded: AtomicBool,
    /// Held while ports are chosen.
    port_lock: Mutex<()>,
    /// People's programs that are being watched.
    people: Mutex<BTreeSet<u32>>,
    /// Claims whose checks run, and the health commands as a claim without a task: a second order for one of them changes nothing.
    checking: Mutex<BTreeSet<Option<(TaskId, Epoch)>>>,
}

pub struct RealWorld {
    clock: Clock,
    shared: Arc<Shared>,
    records: BTreeMap<AttemptId, ShimRecord>,
    /// Transcripts that were found.
    tails: BTreeMap<AttemptId, cli_session::Tail>,
    /// Files of kept reports that the driver was given and has not yet made durable.
    handed_out: BTreeMap<AttemptId, Vec<PathBuf>>,
    /// Attempts whose launch was started here. A bundle that is still being written looks like one that never started, so a
    /// second order must not get as far as probing it.
    launched: BTreeSet<AttemptId>,
    alerts: Alerts,
    phones: Phones,
    outputs: Outputs,
}

impl RealWorld {
    /// The world of a state directory, with the project's directory and the run's share of its repository. Fails when
    /// processes cannot be watched or the directory cannot be written.
    pub fn new(
        clock: Clock,
        dir: &StateDir,
        (workspace, work): (PathBuf, Option<Work>),
        programs: Programs,
        tokens: Tokens,
        stop_grace_ms: u64,
        messages: SyncSender<Message>,
    ) -> io::Result<Self> {
        let bundles = dir.path().join("attempts");
        make_dir(&bundles)?;
        make_dir(&dir.path().join("checks"))?;
        supervise::prepare_groups(&bundles);
        let (observed, observations) = sync_channel(OBSERVATIONS);
        let alerts = Alerts::start(&programs.alerts, &Session::of_this_process());
        let phones = phone::start(&programs.alerts, dir.path(), &tokens, &messages);
        let shared = Arc::new(Shared {
            bundles,
            state_dir: dir.path().to_owned(),
            workspace,
            living: work.as_ref().map(|work| Living::of(work.repo(), dir.path())),
            work,
            jobs: workspaces::Jobs::default(),
            programs,
            tokens,
            launcher: Launcher::default(),
            launches: launch::Launches::default(),
            watch: Watch::start(observed)?,
            messages: messages.clone(),
            stop_grace_ms,
            flying: AtomicBool::new(false),
            grounded: AtomicBool::new(false),
            port_lock: Mutex::default(),
            people: Mutex::default(),
            checking: Mutex::default(),
        });
        let (bundles, living) = (shared.bundles.clone(), shared.living.clone());
        std::thread::Builder::new()
            .name("observe".to_owned())
            .spawn(move || pass_on(&observations, &bundles, living.as_ref(), &messages))?;
        Ok(Self {
            clock,
            shared,
            records: BTreeMap::new(),
            tails: BTreeMap::new(),
            handed_out: BTreeMap::new(),
            launched: BTreeSet::new(),
            alerts,
            phones,
            outputs: Outputs::of(dir.path()),
        })
    }

    /// The transcript of an attempt's session, searched for until it exists.
    fn tail(&mut self, attempt: AttemptId, cli: &str, session: &str) -> Option<&cli_session::Tail> {
        if !self.tails.contains_key(&attempt) {
            let tail = self.shared.find_transcript(attempt, cli, session)?;
            self.tails.insert(attempt, tail);
        }
        self.tails.get(&attempt)
    }

    fn record(&mut self, attempt: AttemptId) -> io::Result<Option<&ShimRecord>> {
        if !self.records.contains_key(&attempt) {
            let bundle = Bundle::open(&self.shared.bundle(attempt)).map_err(io::Error::other)?;
            let record = bundle.map_or(Ok(None), |bundle| bundle.shim()).map_err(io::Error::other)?;
            let Some(record) = record else { return Ok(None) };
            self.records.insert(attempt, record);
        }
        Ok(self.records.get(&attempt))
    }
}

impl Shared {
    fn bundle(&self, attempt: AttemptId) -> PathBuf {
        self.bundles.join(format!("{:08}", attempt.0))
    }
}

/// Turns observations into messages. It ends when the watch ends.
fn pass_on(
    observations: &Receiver<Observation>,
    bundles: &Path,
    living: Option<&Living>,
    messages: &SyncSender<Message>,
) {
    for observation in observations {
        let attempt = |key: BundleKey| AttemptId(key.0);
        let message = match observation {
            Observation::Recorded(key) => {
                let dir = bundles.join(format!("{:08}", key.0));
                let record = Bundle::open(&dir).ok().flatten().and_then(|bundle| bundle.shim().ok().flatten());
                let Some(record) = record else { continue };
                if let Some(living) = living {
                    living.record(key.0, &record);
                }
                let (pid, shim_pid) = (record.agent.pid, record.shim.pid);
                Message::Started { attempt: attempt(key), pid, shim_pid }
            }
            Observation::Grew(key, _) => Message::Grew { attempt: attempt(key) },
            Observation::Ended(key) => Message::Ended { attempt: attempt(key) },
        };
        if messages.send(message).is_err() {
            return;
        }
    }
}

impl Drop for RealWorld {
    fn drop(&mut self) {
        preflight::ground(&self.shared);
    }
}

impl World for RealWorld {
    fn now(&mut self) -> Time {
        self.clock.now()
    }

    fn clocks(&mut self) -> Option<ClockSeen> {
        Some(self.clock.seen())
    }

    fn calendar(&mut self) -> Option<Calendar> {
        calendar::look(clock::wall(), &TimeZone::system(), self.shared.programs.quiet.as_ref())
    }

    fn launch(&mut self, order: LaunchOrder) -> Admission {
        if self.launched.insert(order.attempt) {
            self.shared.jobs.want(order.workspace.as_deref());
            return launch::in_background(&self.shared, order);
        }
        Admission::Yes
    }

    fn stop(&mut self, attempt: AttemptId, at_once: bool) {
        launch::stop_in_background(&self.shared, attempt, at_once);
    }

    fn run_checks(&mut self, order: CheckOrder) -> Admission {
        self.shared.jobs.want(order.workspace.as_deref());
        checks::in_background(&self.shared, order)
    }

    fn keep_output(&mut self, output: &str) -> Option<String> {
        self.outputs.keep(output).ok()
    }

    fn read_spool(
        &mut self,
        attempt: AttemptId,
        stream: Stream,
        offset: u64,
        limit: usize,
        into: &mut Vec<u8>,
    ) -> io::Result<()> {
        let (name, side) = match stream {
            Stream::Out => (bundle::OUT, supervise::Stream::Out),
            Stream::Err => (bundle::ERR, supervise::Stream::Err),
            Stream::Transcript => return Ok(()),
        };
        // Before reading: anything written after the read is then reported again.
        self.shared.watch.rearm(BundleKey(attempt.0), side);
        let file = match open_plain(&self.shared.bundle(attempt).join(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        // Only as much as exists: clearing a whole chunk for every short line would cost more than reading the line.
        let there = file.metadata()?.len().saturating_sub(offset);
        let wanted = usize::try_from(there).unwrap_or(limit).min(limit);
        into.resize(wanted, 0);
        let mut filled = 0;
        while filled < wanted {
            match file.read_at(&mut into[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    into.clear();
                    return Err(error);
                }
            }
        }
        into.truncate(filled);
        Ok(())
    }

    fn reader(&mut self, cli: &str) -> Option<Box<dyn Reader>> {
        let (adapter, program) = self.shared.adapter(cli)?;
        adapter.traits(program).structured_output.then(|| adapter.reader())
    }

    fn read_transcript(
        &mut self,
        attempt: AttemptId,
        cli: &str,
        session: &str,
        offset: u64,
        limit: usize,
        into: &mut Vec<u8>,
    ) -> io::Result<()> {
        match self.tail(attempt, cli, session) {
            Some(tail) => tail.read(offset, limit, into),
            None => Ok(()),
        }
    }

    fn history(&mut self, attempt: AttemptId, cli: &str, session: &str, ledger: &Ledger) -> History {
        let Some((adapter, _)) = self.shared.adapter(cli) else { return History::Unknown };
        let keeps = adapter.about().keeps_transcript;
        match self.tail(attempt, cli, session).map(cli_session::Tail::end) {
            Some(Ok((lines, whole))) => adapter.history(&Record { lines: &lines, whole, ledger }),
            None if !keeps => adapter.history(&Record { lines: "", whole: true, ledger }),
            Some(Err(_)) | None => History::Unknown,
        }
    }

    fn transcript_state(&mut self, attempt: AttemptId, cli: &str, session: &str) -> Transcript {
        let keeps = self.shared.adapter(cli).is_some_and(|(adapter, _)| adapter.about().keeps_transcript);
        let none = if keeps { Transcript::Missing } else { Transcript::Unknown };
        self.tail(attempt, cli, session).map_or(none, cli_session::Tail::state)
    }

    fn noticing(&mut self, notice: Notice, reply: Answerer) -> Answerer {
        let shared = Arc::clone(&self.shared);
        Box::new(move |_| disk::answer_in_background(&shared, notice, reply))
    }

    fn tell(&mut self, attempt: AttemptId, cli: &str, number: u32, text: &str) {
        cli_session::tell_in_background(&self.shared, attempt, cli, number, text);
    }

    fn watch_person(&mut self, task: &TaskId, by: &PersonProcess, place: WorkedOn) {
        person::watch_in_background(&self.shared, task.clone(), by.clone(), place);
    }

    fn close_input(&mut self, attempt: AttemptId) {
        cli_session::close_in_background(&self.shared, attempt);
    }

    fn probe(&mut self, attempts: &[(AttemptId, Epoch)]) -> Vec<Found> {
        let dirs: Vec<PathBuf> = attempts.iter().map(|(id, _)| self.shared.bundle(*id)).collect();
        let probes = supervise::probe_all(&dirs, PROBE_BUDGET);
        attempts.iter().zip(probes).map(|((id, epoch), probe)| self.outcome(*id, *epoch, probe)).collect()
    }

    fn kept_reports(&mut self, attempt: AttemptId) -> io::Result<Vec<KeptReport>> {
        let (reports, files) = kept::read(&self.shared.bundle(attempt))?;
        if !files.is_empty() {
            self.handed_out.insert(attempt, files);
        }
        Ok(reports)
    }

    fn drop_kept_reports(&mut self, attempt: AttemptId) {
        // Only the reports that the driver was given: the agent may have left another one since.
        for path in self.handed_out.remove(&attempt).unwrap_or_default() {
            // A file that stays is read again at the next start and changes nothing: reports are idempotent.
            let _stays = std::fs::remove_file(path);
        }
    }

    fn missing(&mut self, paths: &[String], merged: Option<&str>) -> Vec<String> {
        match (merged, &self.shared.work) {
            // A git that cannot answer reopens nothing: the next check asks again.
            (Some(commit), Some(work)) => work.missing(commit, paths).unwrap_or_default(),
            _ => disk::missing(&self.shared.workspace, paths),
        }
    }

    fn merge(&mut self, order: MergeOrder) {
        workspaces::merge_in_background(&self.shared, order);
    }

    fn leave(&mut self, order: LeaveOrder) {
        workspaces::leave_in_background(&self.shared, order);
    }

    fn check_health(&mut self, commands: &[String]) -> Admission {
        checks::health_in_background(&self.shared, commands)
    }

    fn preflight(&mut self, tries: Vec<TryCheck>) -> Admission {
        preflight::in_background(&self.shared, tries)
    }

    fn ask_usage(&mut self) {
        checks::usage_in_background(&self.shared);
    }

    fn alert(&mut self, alert: &Alert) {
        self.alerts.tell(alert);
    }

    fn ask(&mut self, asking: Asking) {
        self.phones.ask(asking);
    }

    fn has_phones(&self) -> bool {
        !self.phones.is_empty()
    }

    fn written(&mut self, attempt: AttemptId) -> u64 {
        let size = |name| self.shared.bundle(attempt).join(name).symlink_metadata().map_or(0, |found| found.len());
        let tail = self.tails.get(&attempt).map_or(0, cli_session::Tail::bytes);
        size(bundle::OUT) + size(bundle::ERR) + tail
    }

    fn activity(&mut self, attempt: AttemptId) -> io::Result<Option<Activity>> {
        self.record(attempt)?.map_or(Ok(None), supervise::activity)
    }

    fn connections_quiet_ms(&mut self, attempt: AttemptId) -> Option<u64> {
        supervise::connections_quiet_ms(self.record(attempt).ok()??).ok().flatten()
    }

    fn polls(&mut self) -> bool {
        self.shared.watch.lacks_watches()
    }

    /// The last snapshots are taken while the coordinator exits.
    fn finish(&mut self) {
        self.shared.jobs.wait();
    }

    fn tidy(&mut self) {
        workspaces::tidy(&self.shared);
    }

    fn watch(&mut self, attempt: AttemptId) {
        let (key, record) = (BundleKey(attempt.0), self.records.get(&attempt));
        if self.shared.watch.add_adopted(key, &self.shared.bundle(attempt), record).is_err() {
            // It is already watched, and its last report could not be acted on: it is reported again after a moment.
            self.shared.watch.look_again(key);
        }
    }

    fn forget(&mut self, attempt: AttemptId) {
        self.records.remove(&attempt);
        self.tails.remove(&attempt);
        self.launched.remove(&attempt);
        self.shared.watch.remove(BundleKey(attempt.0));
        if let Some(living) = &self.shared.living {
            living.forget(attempt.0);
        }
    }
}

/// Opens a regular file that is not a link, without ever blocking on a pipe that was put in its place.
pub(super) fn open_plain(path: &Path) -> io::Result<std::fs::File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = std::fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}

fn make_dir(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}
