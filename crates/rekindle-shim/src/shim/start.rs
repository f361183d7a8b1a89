//! The start of an agent: everything that can be refused happens before it is released, and whether it started is recorded.

use std::io;
use std::os::fd::OwnedFd;

use crate::bundle::{self, BEGUN, Bundle, ERR, ExitRecord, OUT, Output, ShimRecord, Spec, StartError, VERSION};
use crate::capped::Capped;
use crate::caps;
use crate::caps::evidence::{End, Evidence};
use crate::cgroup;
use crate::child::Waiting;
use crate::clock;
use crate::exit::{self, LogId};
use crate::identity::Process;
use crate::tree;

/// A released agent and what belongs to it.
pub(super) struct Started {
    pub(super) agent: Process,
    pub(super) input: OwnedFd,
    /// The first input of an agent that reads lines.
    pub(super) prompt: String,
    pub(super) capped: Vec<Capped>,
    pub(super) logs: [LogId; 2],
    pub(super) evidence: Option<Evidence>,
}

pub(super) fn start(bundle: &Bundle, spec: &Spec) -> Result<Started, StartError> {
    let failed = |what: &str, error: &io::Error| StartError {
        errno: error.raw_os_error().unwrap_or(0),
        text: exit::cut(&format!("{what}: {error}")),
    };
    let open = |name: &str| {
        exit::open_log(bundle, name).map_err(|error| match error {
            bundle::Error::Io { name, source } => failed(&name, &source),
            other => StartError { errno: 0, text: exit::cut(&other.to_string()) },
        })
    };
    let prompt = first_line(bundle, spec).map_err(|error| failed(bundle::PROMPT, &error))?;
    let (mut out, mut err) = (open(OUT)?, open(ERR)?);
    let id = |log: &OwnedFd| LogId::of(log).map_err(|error| failed("log", &error));
    let logs = [id(&out)?, id(&err)?];
    let mut capped = Vec::new();
    if let Output::Capped { bytes } = spec.output {
        for stream in [&mut out, &mut err] {
            let log = stream.try_clone().map_err(|error| failed("log", &error))?;
            let (copy, end) = Capped::new(log, bytes).map_err(|error| failed("pipe", &error))?;
            *stream = end;
            capped.push(copy);
        }
    }
    let waiting = Waiting::spawn(bundle.path(), out, err).map_err(|error| failed("cannot start a process", &error))?;
    // From here on a failure drops the barrier unopened, and the stub exits without becoming the agent.
    if spec.stdin == bundle::Stdin::Lines {
        // Only for our end: the agent's end is another description, and blocks as it expects.
        waiting.never_block().map_err(|error| failed("standard input", &error))?;
    }
    let own = Process::own().map_err(|error| failed("own identity", &error))?;
    let held = spec.caps.as_ref().map(|wanted| caps::hold(wanted, spec, waiting.process.id().pid));
    let record = ShimRecord {
        version: VERSION,
        attempt: spec.attempt.clone(),
        epoch: spec.epoch,
        shim: own.id().clone(),
        agent: waiting.process.id().clone(),
        started_at_ms: clock::wall_ms(),
        started_boottime_ms: clock::boottime_ms(),
        caps: held.clone(),
        marks_begin: true,
    };
    let evidence = spec.caps.clone().zip(held).map(|(wanted, held)| Evidence::begin(wanted, held));
    bundle
        .save(bundle::SHIM, &record)
        .map_err(|error| StartError { errno: error.errno(), text: exit::cut(&format!("cannot record it: {error}")) })?;
    let (agent, input) = waiting.release().map_err(|error| failed("barrier", &error))?;
    Ok(Started { agent, input, prompt, capped, logs, evidence })
}

pub(super) fn never_started(spec: &Spec, started_ms: u64, error: StartError) -> ExitRecord {
    // A stub may be waiting at a barrier that is gone now.
    tree::sweep(0);
    if spec.caps.is_some() {
        cgroup::Group::named(&cgroup::name(&spec.attempt, &spec.nonce)).remove();
    }
    ExitRecord { start_error: Some(error), ..blank(spec, started_ms) }
}

pub(super) fn blank(spec: &Spec, started_ms: u64) -> ExitRecord {
    ExitRecord {
        version: VERSION,
        attempt: spec.attempt.clone(),
        epoch: spec.epoch,
        nonce: spec.nonce.clone(),
        code: None,
        signal: None,
        start_error: None,
        ended_at_ms: clock::wall_ms(),
        ended_boottime_ms: clock::boottime_ms(),
        ran_ms: clock::monotonic_ms().saturating_sub(started_ms),
        user_ms: 0,
        sys_ms: 0,
        max_rss_kb: 0,
        out: bundle::LogEnd::default(),
        err: bundle::LogEnd::default(),
        swept: 0,
        survivors: Vec::new(),
        timed_out: false,
        stop_requested: false,
        sync_error: None,
        out_of_memory: None,
        processes_cap: None,
        never_began: false,
    }
}

/// The prompt of an agent that takes lines, as the first of them.
fn first_line(bundle: &Bundle, spec: &Spec) -> io::Result<String> {
    if spec.stdin != bundle::Stdin::Lines {
        return Ok(String::new());
    }
    match std::fs::read_to_string(bundle.path().join(bundle::PROMPT)) {
        Ok(prompt) => Ok(prompt.trim_end_matches('\n').to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// Why the program did not start, if it provably did not, and whether nothing more is known: its process ended before it was
/// the agent, and could not report why.
pub(super) fn not_begun(bundle: &Bundle, end: End) -> (Option<StartError>, bool) {
    let said = bundle.start_error();
    if !bundle.lacks(BEGUN) || matches!(said, Ok(Some(_))) {
        return (said.ok().flatten(), false);
    }
    let how = match (end.code, end.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "it could not be ended".to_owned(),
    };
    let text = format!("its process ended before it became the agent ({how})");
    (Some(StartError { errno: 0, text }), true)
}
