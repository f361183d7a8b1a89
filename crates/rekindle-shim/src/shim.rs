//! The shim's life: take the lock, start the agent behind the barrier, hold it, sweep its tree, record its end.
//!
//! One thread and one poll. The steps live in the files named after them; this one only says in which order.

mod start;

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitStatus, getrlimit, setrlimit};

use crate::bundle::{self, Bundle, ERR, ExitRecord, OUT, Spec};
use crate::capped::Capped;
use crate::caps::evidence::{End, Evidence};
use crate::clock;
use crate::exit::{self, LogId, Reserved};
use crate::feeder::{Caller, Feeder};
use crate::identity::Process;
use crate::ladder::{Act, Climb, Rung};
use crate::lock::Lock;
use crate::os;
use crate::refusal;
use crate::server::Server;
use crate::tree;
use crate::wire::{Refusal, Reply, Request, Status};

use start::{Started, blank, never_started, not_begun, start};

/// Exit code: another shim holds this bundle.
pub const EXIT_LOCKED: u8 = 3;
/// Exit code: a shim has already held an agent here; a bundle is used once.
pub const EXIT_USED: u8 = 4;
/// Exit code: there is no spec, or it cannot be read.
pub const EXIT_SPEC: u8 = 5;
/// Exit code: the system refused something without which there can be no record.
pub const EXIT_IO: u8 = 6;
/// Exit code: the machine lacked resources (descriptors, processes, memory, space) before the agent's first instruction.
pub const EXIT_REFUSED: u8 = 7;

/// Interval for checking whether the bundle still exists. The check is one call of some microseconds; a person who deletes
/// the state of a run and starts another waits this long at most.
const LOSS_LOOK_MS: u64 = 2_000;

/// Why a shim exited without an exit record of its own.
#[derive(Debug, thiserror::Error)]
enum Stop {
    #[error("another shim holds this bundle")]
    Locked,
    #[error("this bundle has already been used")]
    Used,
    #[error("no usable spec: {0}")]
    Spec(String),
    #[error("{what}: {why}")]
    Io { what: &'static str, why: String, refused: bool },
}

impl Stop {
    fn io(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Io { what, why: error.to_string(), refused: refusal::is_refused(&error) }
    }

    fn bundle(what: &'static str) -> impl Fn(bundle::Error) -> Self {
        move |error| Self::Io { what, refused: error.is_refusal(), why: error.to_string() }
    }

    /// The spec cannot be read: for lack of resources, or because of its content.
    fn unread(error: bundle::Error) -> Self {
        if error.is_refusal() { Self::bundle("spec")(error) } else { Self::Spec(error.to_string()) }
    }

    fn code(&self) -> u8 {
        match self {
            Self::Locked => EXIT_LOCKED,
            Self::Used => EXIT_USED,
            Self::Spec(_) => EXIT_SPEC,
            Self::Io { refused: true, .. } => EXIT_REFUSED,
            Self::Io { .. } => EXIT_IO,
        }
    }
}

/// Holds the agent of the bundle to its end.
pub fn shim_main(bundle: &Path) -> ExitCode {
    match run(bundle) {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => {
            // Standard error is the bundle's own log; if even that fails, the exit code remains.
            let _ = writeln!(io::stderr(), "shim: {stop}");
            ExitCode::from(stop.code())
        }
    }
}

fn run(path: &Path) -> Result<(), Stop> {
    os::close_inherited().map_err(Stop::io("inherited descriptors"))?;
    detach();
    give_limit_back();
    let path = path.canonicalize().map_err(Stop::io("bundle"))?;
    let bundle = Bundle::open(&path).map_err(Stop::unread)?;
    let bundle = bundle.ok_or_else(|| Stop::Spec("the bundle is gone".to_owned()))?;
    // A working directory of ours would keep a filesystem busy.
    rustix::process::chdir("/").map_err(|error| Stop::io("working directory")(error.into()))?;
    let lock = Lock::inherit(&bundle).map_err(Stop::bundle("lock"))?;
    let lock = lock.ok_or(Stop::Locked)?;
    if bundle.has(bundle::EXIT) {
        return Ok(());
    }
    if bundle.has(bundle::SHIM) {
        return Err(Stop::Used);
    }
    let spec = bundle.spec().map_err(Stop::unread)?;
    let spec = spec.ok_or_else(|| Stop::Spec("it is not there".to_owned()))?;
    let signals = Signals::catch().map_err(Stop::io("signals"))?;
    os::become_subreaper().map_err(Stop::io("subreaper"))?;
    let reserved = Reserved::new(&bundle).map_err(Stop::io("space for the exit record"))?;
    let server = Server::bind(&bundle, &spec).map_err(Stop::io("socket"))?;
    let started_ms = clock::monotonic_ms();
    let record = match start(&bundle, &spec) {
        Ok(started) => {
            let mut holding = Holding::new(spec, server, signals, started, &lock);
            holding.hold();
            holding.finish(&bundle)
        }
        Err(error) => never_started(&spec, started_ms, error),
    };
    reserved.fill(&bundle, &record).map_err(Stop::io("exit record"))
}

/// Sets the soft limit on descriptors to what it was before the coordinator raised its own. The agent inherits it: programs
/// that use `select` break under a large one.
fn give_limit_back() {
    let told = std::env::var(crate::DESCRIPTORS_ENV).ok().and_then(|text| text.parse().ok());
    let Some(soft) = told else { return };
    let hard = getrlimit(Resource::Nofile).maximum;
    // A limit that cannot be lowered is no reason not to start the agent.
    let _stays = setrlimit(Resource::Nofile, Rlimit { current: Some(soft), maximum: hard });
}

/// Leaves the starter's session and terminal. A process that leads its group may not; it joins its parent's group for an
/// instant first. If even that fails it has at least its own group, which no key press reaches.
fn detach() {
    if rustix::process::setsid().is_ok() {
        return;
    }
    // Read from the table: rustix asserts that no group is 0, but the group of the first process is.
    let group = rustix::process::getppid()
        .and_then(|parent| u32::try_from(parent.as_raw_nonzero().get()).ok())
        .and_then(|parent| os::stat(parent).ok())
        .and_then(|parent| i32::try_from(parent.group).ok())
        .and_then(Pid::from_raw);
    if group.is_some() && rustix::process::setpgid(None, group).is_ok() {
        let _ = rustix::process::setsid();
    }
}

/// The signals that mean something to a shim. They have handlers and are not ignored: the agent would inherit ignored
/// signals.
struct Signals {
    wake: UnixStream,
    terminate: Arc<AtomicBool>,
}

impl Signals {
    fn catch() -> io::Result<Self> {
        use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
        let (wake, signalled) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let terminate = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&terminate))?;
        }
        for signal in [SIGCHLD, SIGHUP, SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, signalled.try_clone()?)?;
        }
        Ok(Self { wake, terminate })
    }

    fn drain(&mut self) {
        let mut buffer = [0; 1024];
        while matches!(self.wake.read(&mut buffer), Ok(n) if n > 0) {}
    }
}

/// A running agent.
struct Holding<'a> {
    spec: Spec,
    server: Server,
    signals: Signals,
    agent: Process,
    feeder: Feeder,
    capped: Vec<Capped>,
    logs: [LogId; 2],
    /// Held until the end is recorded: its owner is the caller.
    lock: &'a Lock,
    /// When to check again whether the bundle still exists.
    look_at_ms: u64,
    started_ms: u64,
    climb: Option<Climb>,
    kill: bool,
    timed_out: bool,
    stop_requested: bool,
    status: Option<WaitStatus>,
    evidence: Option<Evidence>,
}

impl<'a> Holding<'a> {
    fn new(spec: Spec, server: Server, signals: Signals, started: Started, lock: &'a Lock) -> Self {
        let lines = spec.stdin == bundle::Stdin::Lines;
        let mut feeder = Feeder::new(lines.then_some(started.input));
        // An agent that reads lines gets its prompt as the first of them, whichever process dies meanwhile.
        if !started.prompt.is_empty() {
            feeder.preload(bundle::PROMPT, &started.prompt);
        }
        Self {
            spec,
            server,
            signals,
            agent: started.agent,
            feeder,
            capped: started.capped,
            logs: started.logs,
            lock,
            look_at_ms: 0,
            started_ms: clock::monotonic_ms(),
            climb: None,
            kill: false,
            timed_out: false,
            stop_requested: false,
            status: None,
            evidence: started.evidence,
        }
    }

    /// Holds the agent until it has ended, or no gentler step is left.
    fn hold(&mut self) {
        loop {
            let now_ms = clock::monotonic_ms();
            let reaped = tree::reap(self.agent.id().pid);
            self.status = reaped.awaited;
            if self.status.is_some() || reaped.childless {
                return;
            }
            if self.signals.terminate.swap(false, Ordering::Relaxed) {
                self.stop(None, now_ms);
            }
            self.heed_deadline(now_ms);
            self.heed_loss(now_ms);
            self.climb(now_ms);
            if self.kill {
                return;
            }
            self.wait(now_ms);
            self.signals.drain();
            self.capped.iter_mut().for_each(Capped::pump);
            self.serve(clock::monotonic_ms());
        }
    }

    fn heed_deadline(&mut self, now_ms: u64) {
        let over = self.deadline_at_ms().is_some_and(|deadline_ms| now_ms >= deadline_ms);
        if over && !self.timed_out {
            self.timed_out = true;
            self.climb.get_or_insert_with(|| Climb::start(&self.spec.stop, now_ms));
        }
    }

    /// A deleted bundle (`git clean -fdx`) leaves an agent that no process can find, read or stop: another agent would be
    /// started beside it.
    fn heed_loss(&mut self, now_ms: u64) {
        if now_ms < self.look_at_ms {
            return;
        }
        self.look_at_ms = now_ms + LOSS_LOOK_MS;
        self.evidence.as_mut().into_iter().for_each(Evidence::look);
        if self.lock.is_lost() {
            self.stop(None, now_ms);
        }
    }

    fn deadline_at_ms(&self) -> Option<u64> {
        self.spec.deadline_ms.map(|deadline_ms| self.started_ms.saturating_add(deadline_ms))
    }

    fn stop(&mut self, ladder: Option<&[Rung]>, now_ms: u64) {
        self.stop_requested = true;
        let rungs = ladder.unwrap_or(&self.spec.stop);
        self.climb.get_or_insert_with(|| Climb::start(rungs, now_ms));
    }

    fn climb(&mut self, now_ms: u64) {
        match self.climb.as_mut().and_then(|climb| climb.due(now_ms)) {
            None => {}
            Some(Act::KillTree) => self.kill = true,
            Some(Act::Signal(signal)) => {
                let _ = self.agent.signal(signal.signal());
                // A stopped process would not see the signal before it is continued.
                let _ = self.agent.signal(Signal::CONT);
            }
        }
    }

    fn wait(&self, now_ms: u64) {
        let climbing = self.climb.as_ref().map(Climb::next_at_ms);
        let deadline = self.deadline_at_ms().filter(|_| !self.timed_out);
        let next = [climbing, deadline, self.server.next_at_ms(), Some(self.look_at_ms)].into_iter().flatten().min();
        let timeout = next.map(|at_ms| clock::timeout(at_ms.saturating_sub(now_ms)));
        let mut fds = self.server.poll_fds();
        fds.push(PollFd::new(&self.signals.wake, PollFlags::IN));
        fds.push(PollFd::from_borrowed_fd(self.agent.as_fd(), PollFlags::IN));
        fds.extend(self.feeder.wants().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::OUT)));
        let pipes = self.capped.iter().filter_map(Capped::wants);
        fds.extend(pipes.map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)));
        // Interrupted by a signal: the loop checks everything anyway.
        let _ = poll(&mut fds, timeout.as_ref());
    }

    fn serve(&mut self, now_ms: u64) {
        for (caller, asked) in self.server.turn(now_ms) {
            let reply = match asked {
                Ok(request) => self.handle(caller, request, now_ms),
                Err(why) => Some(Reply::Refused { why }),
            };
            if let Some(reply) = reply {
                self.server.answer(caller, &reply);
            }
        }
        for (caller, reply) in self.feeder.pump() {
            self.server.answer(caller, &reply);
        }
    }

    fn handle(&mut self, caller: Caller, request: Request, now_ms: u64) -> Option<Reply> {
        match request {
            // The server lets no second handshake through.
            Request::Hello(_) => Some(Reply::Refused { why: Refusal::HandshakeExpected }),
            Request::Status { .. } => Some(Reply::Status(Status {
                agent: self.agent.id().clone(),
                ran_ms: now_ms.saturating_sub(self.started_ms),
                stopping: self.climb.is_some() || self.kill,
                stdin_pending: self.feeder.pending(),
            })),
            Request::Stop { ladder, .. } => {
                self.stop(ladder.as_deref(), now_ms);
                Some(Reply::Accepted)
            }
            Request::Kill { .. } => {
                self.stop_requested = true;
                self.kill = true;
                Some(Reply::Accepted)
            }
            Request::Stdin { id, line, .. } => self.feeder.offer(caller, &id, &line),
            Request::CloseStdin { .. } if self.feeder.close() => Some(Reply::Accepted),
            Request::CloseStdin { .. } => Some(Reply::Refused { why: Refusal::StdinClosed }),
        }
    }

    /// Sweeps the tree and records what became of it. It does not wait for the end of the streams: a daemon that was killed
    /// here held them, or one that cannot be killed still holds them.
    fn finish(mut self, bundle: &Bundle) -> ExitRecord {
        let ordered = self.status.is_none() || self.stop_requested || self.timed_out;
        let in_group = self.evidence.as_ref().map_or(0, Evidence::end_group);
        let swept = tree::sweep(self.agent.id().pid);
        let status = self.status.or(swept.awaited);
        self.capped.iter_mut().for_each(Capped::finish);
        let discarded = |index: usize| self.capped.get(index).map_or(0, Capped::discarded);
        let (out, out_error) = exit::end_log(bundle, OUT, self.logs[0], discarded(0));
        let (err, err_error) = exit::end_log(bundle, ERR, self.logs[1], discarded(1));
        let usage = os::children_usage();
        let code = status.and_then(WaitStatus::exit_status);
        let signal = status.and_then(WaitStatus::terminating_signal);
        let end = End { code, signal, ordered, max_rss_bytes: usage.max_rss_kb << 10 };
        let (start_error, never_began) = not_begun(bundle, end);
        let processes_cap = self.evidence.as_ref().and_then(Evidence::processes_cap_met);
        let out_of_memory = self.evidence.take().and_then(|evidence| evidence.close(self.agent.id().pid, end));
        ExitRecord {
            code,
            signal,
            out_of_memory,
            processes_cap,
            start_error,
            never_began,
            user_ms: usage.user_ms,
            sys_ms: usage.sys_ms,
            max_rss_kb: usage.max_rss_kb,
            out,
            err,
            swept: swept.killed.max(in_group),
            survivors: swept.survivors,
            timed_out: self.timed_out,
            stop_requested: self.stop_requested,
            sync_error: out_error.or(err_error),
            ..blank(&self.spec, self.started_ms)
        }
    }
}
