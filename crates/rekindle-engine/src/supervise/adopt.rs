//! Proves what became of a bundle: by the exit record first, the lock second, the handshake third.
//!
//! Nothing is signalled, deleted or repaired here; every state is an answer. Records are read again after the lock was seen
//! free or the handshake failed, because a shim may end between two checks.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rekindle_shim::bundle::{Bundle, Error, ExitRecord, ShimRecord, Spec};
use rekindle_shim::client::Client;
use rekindle_shim::refusal::is_refused;
use rekindle_shim::{clock, lock};

/// The time one shim gets to answer. It answers within a millisecond if it can answer at all; starting on a loaded machine
/// takes some tens of milliseconds.
pub const PROBE_BUDGET: Duration = Duration::from_secs(2);

/// Pause before connecting again within the budget; a shim that is still starting has no socket yet.
const PAUSE_MS: u64 = 5;

/// Probes at the same time: they mostly wait, and each costs a few descriptors.
const THREADS_MAX: usize = 16;

/// What a bundle's files, lock and shim say.
#[derive(Debug)]
pub enum Probe {
    /// The attempt ended, and this is how.
    Finished(Box<ExitRecord>),
    /// Its shim lives and has proven that it holds this attempt.
    Alive(Box<ShimRecord>),
    /// A shim holds the lock and does not answer: keep it, ask again later, never kill it by its process id.
    Unresponsive {
        /// Which shim it is, if it got as far as writing its record.
        record: Option<Box<ShimRecord>>,
        /// What went wrong with the handshake.
        reason: String,
    },
    /// The shim is dead and left no exit record; its agent may still be alive.
    ShimDied(Box<ShimRecord>),
    /// It ran in another boot of this machine: nothing of it is alive.
    HostLost(Box<ShimRecord>),
    /// The spec was written, and its agent provably never ran.
    NeverStarted(Box<Spec>),
    /// There is no bundle, or one without a spec.
    Absent,
    /// The machine lacked the resources to check: nothing is known, and nothing may be concluded. Ask again.
    Unknown(String),
    /// Something in the bundle is not what it should be: quarantine it, delete nothing.
    Unreadable(String),
}

/// Inspects one bundle, for at most `budget`.
pub fn probe(dir: &Path, budget: Duration) -> Probe {
    match look(dir, budget) {
        Ok(probe) => probe,
        Err(error) if error.is_refusal() => Probe::Unknown(error.to_string()),
        Err(error) => Probe::Unreadable(error.to_string()),
    }
}

/// Inspects many bundles at once; the results are in the order of `dirs`.
pub fn probe_all(dirs: &[PathBuf], budget: Duration) -> Vec<Probe> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = (2 * cores).min(THREADS_MAX).min(dirs.len());
    let next = AtomicUsize::new(0);
    let answers: Mutex<Vec<(usize, Probe)>> = Mutex::new(Vec::with_capacity(dirs.len()));
    std::thread::scope(|scope| {
        let work = || {
            while let Some((index, dir)) = take_next(dirs, &next) {
                let answer = probe(dir, budget);
                answers.lock().expect("no probe panics").push((index, answer));
            }
        };
        for _ in 1..threads {
            // If no further thread can be started, the existing ones do its share.
            let _fewer = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut answers = answers.into_inner().expect("no probe panics");
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

fn take_next<'a>(dirs: &'a [PathBuf], next: &AtomicUsize) -> Option<(usize, &'a PathBuf)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    dirs.get(index).map(|dir| (index, dir))
}

fn look(dir: &Path, budget: Duration) -> Result<Probe, Error> {
    let Some(bundle) = Bundle::open(dir)? else {
        return Ok(Probe::Absent);
    };
    let Some(spec) = bundle.spec()? else {
        return without_spec(&bundle);
    };
    let deadline_ms = clock::monotonic_ms() + u64::try_from(budget.as_millis()).unwrap_or(u64::MAX / 2);
    loop {
        if let Some(finished) = finished(&bundle, &spec)? {
            return Ok(finished);
        }
        if !lock::is_held(&bundle)? {
            return abandoned(&bundle, spec);
        }
        let left_ms = deadline_ms.saturating_sub(clock::monotonic_ms());
        let reason = match Client::connect(&bundle, &spec, Duration::from_millis(left_ms)) {
            Ok(_) => match bundle.shim()? {
                Some(record) => return Ok(Probe::Alive(Box::new(record))),
                None => "it answers without a record".to_owned(),
            },
            Err(error) => error.to_string(),
        };
        if clock::monotonic_ms() + PAUSE_MS >= deadline_ms {
            return unresponsive(&bundle, spec, reason);
        }
        clock::pause(PAUSE_MS);
    }
}

fn without_spec(bundle: &Bundle) -> Result<Probe, Error> {
    if bundle.exit()?.is_some() || bundle.shim()?.is_some() {
        return Ok(Probe::Unreadable("it holds records of a process and no spec".to_owned()));
    }
    Ok(Probe::Absent)
}

fn finished(bundle: &Bundle, spec: &Spec) -> Result<Option<Probe>, Error> {
    let Some(exit) = bundle.exit()? else {
        return Ok(None);
    };
    if exit.attempt != spec.attempt || exit.epoch != spec.epoch || exit.nonce != spec.nonce {
        return Ok(Some(Probe::Unreadable("its exit record is of another attempt".to_owned())));
    }
    Ok(Some(Probe::Finished(Box::new(exit))))
}

/// The lock is free: no shim lives here. A shim that ended since the first check has left its record.
fn abandoned(bundle: &Bundle, spec: Spec) -> Result<Probe, Error> {
    if let Some(finished) = finished(bundle, &spec)? {
        return Ok(finished);
    }
    let Some(record) = bundle.shim()? else {
        return Ok(Probe::NeverStarted(Box::new(spec)));
    };
    let this_boot = record.shim.is_this_boot();
    match this_boot {
        Ok(true) => Ok(Probe::ShimDied(Box::new(record))),
        Ok(false) => Ok(Probe::HostLost(Box::new(record))),
        Err(error) if is_refused(&error) => Ok(Probe::Unknown(format!("the boot of this machine is unknown: {error}"))),
        Err(error) => Ok(Probe::Unreadable(format!("the boot of this machine is unknown: {error}"))),
    }
}

/// The budget is spent; a shim that ended during the last connection is still recognised.
fn unresponsive(bundle: &Bundle, spec: Spec, reason: String) -> Result<Probe, Error> {
    if let Some(finished) = finished(bundle, &spec)? {
        return Ok(finished);
    }
    if !lock::is_held(bundle)? {
        return abandoned(bundle, spec);
    }
    Ok(Probe::Unresponsive { record: bundle.shim()?.map(Box::new), reason })
}
