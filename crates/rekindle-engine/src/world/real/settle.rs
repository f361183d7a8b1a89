//! Derives what became of an attempt from its bundle.

use std::path::Path;

use rekindle_core::ids::{AttemptId, Epoch};
use rekindle_core::input::Found;
use rekindle_core::report::Exit;
use rekindle_shim::bundle::{Bundle, ExitRecord, ShimRecord};
use rekindle_shim::refusal::is_refused;

use super::{RealWorld, bundles};
use crate::refusal;
use crate::supervise::{self, BundleKey, Probe};

impl RealWorld {
    /// Its agent never ran, which costs nothing; only a bundle that cannot be understood is the attempt's own fault.
    fn never_started(&self, id: AttemptId) -> Found {
        let bundle = self.shared.bundle(id);
        let Some(code) = self.shared.watch.shim_code(BundleKey(id.0)) else { return Found::NeverStarted };
        let refusal = refusal::of_shim(&bundle, &self.shared.bundles, Some(code));
        if code == i32::from(rekindle_shim::EXIT_SPEC) {
            return Found::Finished(Exit { start_error: Some(refusal.reason), ..Exit::default() });
        }
        Found::Refused(refusal)
    }

    /// A dead shim's tree has been ended: the stub's mark shows whether its agent ever ran.
    fn lost(&self, id: AttemptId, record: &ShimRecord) -> Found {
        match Bundle::open(&self.shared.bundle(id)) {
            Ok(Some(bundle)) if bundle.never_began(record) => self.never_started(id),
            _ => Found::Lost,
        }
    }

    /// Derives what became of the attempt from its bundle; ends the processes that a dead shim left.
    pub(super) fn outcome(&mut self, id: AttemptId, epoch: Epoch, probe: Probe) -> Found {
        let nonce = match bundles::nonce(&self.shared, id, epoch) {
            Ok(nonce) => nonce.unwrap_or_else(|| self.shared.tokens.nonce(id, epoch)),
            Err(reason) => return self.settle_foreign(id, &reason, &probe),
        };
        match probe {
            Probe::Finished(record) => Found::Finished(exit_of(&record, &self.shared.bundles)),
            Probe::Alive(record) => {
                let found = Found::Alive { pid: record.agent.pid, shim_pid: record.shim.pid };
                self.records.insert(id, *record);
                found
            }
            Probe::Unresponsive { record, .. } => {
                if let Some(record) = record {
                    self.records.insert(id, *record);
                }
                Found::Unresponsive
            }
            Probe::ShimDied(record) => match supervise::end_lost_tree(&record, &nonce) {
                Ok(_) => self.lost(id, &record),
                Err(supervise::LostError::ShimAlive) => Found::Unresponsive,
                // An agent that may be alive is not given up for lack of a descriptor.
                Err(supervise::LostError::Io(error)) if is_refused(&error) => Found::Unresponsive,
                Err(error) => Found::Unreadable { reason: error.to_string() },
            },
            Probe::HostLost(_) => Found::HostLost,
            // It is being started at this moment: only after that can it count as never started.
            Probe::NeverStarted(_) | Probe::Absent if self.shared.launches.is_under_way(id) => Found::Unresponsive,
            Probe::NeverStarted(_) | Probe::Absent => self.never_started(id),
            Probe::Unknown(_) => Found::Unresponsive,
            Probe::Unreadable(reason) => self.set_aside(id, &reason),
        }
    }

    /// Another attempt's bundle is in the place of this one's. An agent that still runs in it is kept and waited for.
    fn settle_foreign(&self, id: AttemptId, reason: &str, probe: &Probe) -> Found {
        match probe {
            Probe::Alive(_) | Probe::Unresponsive { .. } => Found::Unresponsive,
            _ => self.set_aside(id, reason),
        }
    }

    fn set_aside(&self, id: AttemptId, reason: &str) -> Found {
        let reason = bundles::set_aside(&self.shared, id, reason).unwrap_or_else(|failed| failed);
        Found::Unreadable { reason }
    }
}

fn exit_of(record: &ExitRecord, bundles: &Path) -> Exit {
    Exit {
        code: record.code,
        signal: record.signal,
        start_error: record.start_error.as_ref().map(|error| error.text.clone()),
        out_of_memory: record.out_of_memory.is_some(),
        memory_cap: record.out_of_memory.as_ref().and_then(|found| found.cap),
        refused: refusal::of_exit(record, bundles),
        by_itself: record.start_error.is_none() && !record.stop_requested && !record.timed_out,
    }
}
