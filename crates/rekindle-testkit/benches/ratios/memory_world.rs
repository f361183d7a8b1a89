//! An outside that is all in memory, so that what is measured is the driver and the store: launches are noted, spools are
//! served from a buffer, nothing else happens.

use rekindle_core::ids::{AttemptId, Epoch};
use rekindle_core::input::Found;
use rekindle_core::time::Time;
use rekindle_engine::clock::Clock;
use rekindle_engine::store::Stream;
use rekindle_engine::world::{CheckOrder, KeptReport, LaunchOrder, MergeOrder, Taken, World};

/// The outside.
pub struct MemoryWorld {
    clock: Clock,
    /// Attempts that were to be launched.
    pub launched: Vec<AttemptId>,
    /// What every agent has written to its standard output.
    pub output: Vec<u8>,
}

impl MemoryWorld {
    /// With nothing written yet.
    pub fn new() -> MemoryWorld {
        MemoryWorld { clock: Clock::starting_after(Time(0), None), launched: Vec::new(), output: Vec::new() }
    }
}

impl World for MemoryWorld {
    fn now(&mut self) -> Time {
        self.clock.now()
    }

    fn launch(&mut self, order: LaunchOrder) -> Taken {
        self.launched.push(order.attempt);
        Taken::Yes
    }

    fn stop(&mut self, _: AttemptId, _: bool) {}

    fn run_checks(&mut self, _: CheckOrder) -> Taken {
        Taken::Yes
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
        attempts.iter().map(|_| Found::NeverStarted).collect()
    }

    fn kept_reports(&mut self, _: AttemptId) -> std::io::Result<Vec<KeptReport>> {
        Ok(Vec::new())
    }

    fn drop_kept_reports(&mut self, _: AttemptId) {}

    fn missing(&mut self, _: &[String], _: Option<&str>) -> Vec<String> {
        Vec::new()
    }

    fn merge(&mut self, _: MergeOrder) {}
    fn check_health(&mut self, _: &[String]) -> Taken {
        Taken::Yes
    }
    fn ask_usage(&mut self) {}
    fn alert(&mut self, _: &rekindle_engine::alert::Alert) {}

    fn watch(&mut self, _: AttemptId) {}

    fn forget(&mut self, _: AttemptId) {}
}
