//! A world that is all in memory: launches are recorded, spools are served from a buffer, and nothing happens unless a test
//! makes it happen. For tests and measurements of the driver and the store.

use std::collections::BTreeSet;

use rekindle_core::event::ClockSeen;
use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_core::input::Found;
use rekindle_core::time::Time;
use rekindle_shim::tree::Activity;

use super::{Admission, CheckOrder, KeptReport, LaunchOrder, MergeOrder, World};
use crate::agents::Reader;
use crate::alert::Alert;
use crate::clock::Clock;
use crate::evidence::Outputs;
use crate::store::Stream;

pub struct MemoryWorld {
    /// The time, if it stands still.
    pub time: Time,
    /// Milliseconds that pass with every read of the time.
    pub tick_ms: u64,
    /// The clock, if time passes.
    pub clock: Option<Clock>,
    /// What the machine's other clocks say, if it has any.
    pub clocks: Option<ClockSeen>,
    /// The probe result for every attempt.
    pub found: Found,
    /// Makes the reader of an attempt, if agents' output is understood.
    pub reader: Option<fn() -> Box<dyn Reader>>,
    /// What every agent has written to its standard output.
    pub output: Vec<u8>,
    /// What the processes of every agent have used; `None` while that cannot be determined.
    pub activity: Option<Activity>,
    /// Where outputs of checks are kept.
    pub outputs: Option<Outputs>,
    pub launched: Vec<AttemptId>,
    /// Tasks whose checks were ordered.
    pub checks: Vec<(TaskId, Epoch)>,
    /// Attempts that nothing more will be asked about.
    pub forgotten: BTreeSet<AttemptId>,
}

impl Default for MemoryWorld {
    /// The time stands still, no agent has written anything, and no attempt was ever started.
    fn default() -> Self {
        Self {
            time: Time(1_000),
            tick_ms: 0,
            clock: None,
            clocks: None,
            found: Found::NeverStarted,
            reader: None,
            output: Vec::new(),
            activity: Some(Activity::default()),
            outputs: None,
            launched: Vec::new(),
            checks: Vec::new(),
            forgotten: BTreeSet::new(),
        }
    }
}

impl World for MemoryWorld {
    fn now(&mut self) -> Time {
        self.time = self.time.plus_ms(self.tick_ms);
        self.clock.as_ref().map_or(self.time, Clock::now)
    }

    fn clocks(&mut self) -> Option<ClockSeen> {
        self.clocks.clone()
    }

    fn reader(&mut self, _: &str) -> Option<Box<dyn Reader>> {
        self.reader.map(|reader| reader())
    }

    fn launch(&mut self, order: LaunchOrder) -> Admission {
        self.launched.push(order.attempt);
        Admission::Yes
    }

    fn stop(&mut self, _: AttemptId, _: bool) {}

    fn run_checks(&mut self, order: CheckOrder) -> Admission {
        self.checks.push((order.task, order.epoch));
        Admission::Yes
    }

    fn keep_output(&mut self, output: &str) -> Option<String> {
        self.outputs.as_mut()?.keep(output).ok()
    }

    fn read_spool(
        &mut self,
        _: AttemptId,
        stream: Stream,
        offset: u64,
        limit: usize,
        into: &mut Vec<u8>,
    ) -> std::io::Result<()> {
        if stream == Stream::Out {
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.output.len());
            let to = from.saturating_add(limit).min(self.output.len());
            into.extend_from_slice(&self.output[from..to]);
        }
        Ok(())
    }

    fn probe(&mut self, attempts: &[(AttemptId, Epoch)]) -> Vec<Found> {
        attempts.iter().map(|_| self.found.clone()).collect()
    }

    fn kept_reports(&mut self, _: AttemptId) -> std::io::Result<Vec<KeptReport>> {
        Ok(Vec::new())
    }

    fn drop_kept_reports(&mut self, _: AttemptId) {}

    fn missing(&mut self, _: &[String], _: Option<&str>) -> Vec<String> {
        Vec::new()
    }

    fn merge(&mut self, _: MergeOrder) {}

    fn check_health(&mut self, _: &[String]) -> Admission {
        Admission::Yes
    }

    fn preflight(&mut self, _: Vec<rekindle_core::preflight::TryCheck>) -> Admission {
        Admission::Yes
    }

    fn ask_usage(&mut self) {}

    fn alert(&mut self, _: &Alert) {}

    fn written(&mut self, _: AttemptId) -> u64 {
        self.output.len() as u64
    }

    fn activity(&mut self, _: AttemptId) -> std::io::Result<Option<Activity>> {
        self.activity.map(Some).ok_or_else(|| std::io::Error::other("too many open files"))
    }

    fn watch(&mut self, _: AttemptId) {}

    fn forget(&mut self, attempt: AttemptId) {
        self.forgotten.insert(attempt);
    }
}
