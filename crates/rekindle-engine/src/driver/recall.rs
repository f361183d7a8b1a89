//! What agents did before, according to their own streams: those of the running attempt, and of earlier ones on the same
//! task, whose streams are read again. Nothing of it is kept in the state.

use rekindle_core::activity::Ledger;
use rekindle_core::ids::AttemptId;
use rekindle_core::memory::Calls;

use super::Driver;
use super::spools::{CHUNK_BYTES, source};
use crate::ingest::{Cursor, UNDERSTOOD_HEAD_BYTES};
use crate::store::Stream;
use crate::world::World;

/// Earlier attempts that are read again: a task has three in all by default.
const EARLIER_MAX: usize = 4;

/// How much of the end of a stream is read again: hundreds of calls, in a few milliseconds.
const RECALL_BYTES: u64 = 1024 * 1024;

impl<W: World> Driver<W> {
    /// The calls on the current task of an attempt, oldest first. A reviewer has none to continue from.
    pub(super) fn calls_of(&mut self, id: AttemptId) -> Calls {
        let mut calls = Calls::default();
        for earlier in self.earlier_on_its_task(id) {
            match self.read_calls(earlier) {
                Some((ledger, whole)) => {
                    calls.add(&ledger, true, &|text| self.clean(text));
                    calls.unread += u32::from(!whole);
                }
                None => calls.unread += 1,
            }
        }
        if let Some(understood) = self.spools.get(&id).and_then(|spools| spools.understood.as_ref()) {
            calls.add(understood.fold.ledger(), false, &|text| self.clean(text));
        }
        calls
    }

    fn earlier_on_its_task(&self, id: AttemptId) -> Vec<AttemptId> {
        let Some(found) = self.state.attempts.get(&id).filter(|found| !found.role.reviews()) else { return Vec::new() };
        let Some(current) = self.state.open_tasks(id).into_iter().next() else { return Vec::new() };
        let same = self.state.attempts.range(..id).rev().filter(|(_, earlier)| {
            earlier.role == found.role && earlier.tasks.contains(&current) && !earlier.is_live()
        });
        let mut earlier: Vec<AttemptId> = same.map(|(id, _)| *id).take(EARLIER_MAX).collect();
        earlier.reverse();
        earlier
    }

    /// The calls of an attempt that is over, and whether its stream was read from its start; `None` if it cannot be read.
    fn read_calls(&mut self, attempt: AttemptId) -> Option<(Ledger, bool)> {
        let cli = self.state.attempts.get(&attempt)?.cli.clone();
        let mut reader = self.world.reader(&cli)?;
        let (mut ledger, mut whole) = (Ledger::default(), true);
        // The stream that reports the start of calls comes before the one that reports how they ended.
        for stream in [Stream::Err, Stream::Out] {
            let end = self.store.offset(attempt.0, stream).ok()?;
            let from = end.saturating_sub(RECALL_BYTES);
            whole &= from == 0;
            let mut cursor = Cursor::at(from).keeping(UNDERSTOOD_HEAD_BYTES);
            let mut torn = from > 0;
            let mut bytes = Vec::new();
            while cursor.scanned() < end {
                let left = usize::try_from(end - cursor.scanned()).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
                bytes.clear();
                self.world.read_spool(attempt, stream, cursor.scanned(), left, &mut bytes).ok()?;
                if bytes.is_empty() {
                    break;
                }
                for record in cursor.feed(&bytes) {
                    // A stream that is read from its middle starts with a partial line.
                    if std::mem::take(&mut torn) {
                        continue;
                    }
                    let activities = reader.line(source(stream), &record.text(), record.is_whole());
                    activities.iter().for_each(|activity| ledger.take(activity));
                }
            }
        }
        Some((ledger, whole))
    }
}
