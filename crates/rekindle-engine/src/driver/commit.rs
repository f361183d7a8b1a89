//! Making decisions durable, and only then acting on them and answering.

use rekindle_core::effect::Effect;
use rekindle_core::event::Event;

use super::{Driver, Error, Pending, rows};
use crate::store::NewEvent;
use crate::world::World;

/// Events after which the whole state is stored, so that a start replays at most this many; more if the state is large.
pub(super) const SNAPSHOT_EVERY: usize = 1_000;

/// Bytes of a stored state that are read in the time in which one event is replayed: a state of a hundred thousand tasks is
/// stored so seldom that replaying the events after it takes as long as reading it, and writing it costs little per event.
const BYTES_PER_EVENT: usize = 1_024;

/// Largest state that is stored: what a database takes as one value, with room to spare. A larger one is replayed instead.
const SNAPSHOT_MAX_BYTES: usize = 512 * 1024 * 1024;

/// Lines read before a commit: enough to make a commit cheap per line, few enough to keep it short.
pub(super) const LINES_PER_COMMIT: usize = 2_000;

/// An event in the store's format. It is stored as decided, or replay would not give the same state: what must not be stored
/// is redacted before it reaches a decision.
pub fn encode(event: &Event) -> NewEvent {
    NewEvent {
        time_ms: event.time.0,
        run: event.run.to_string(),
        kind: event.body.name(),
        agent: event.agent.as_ref().map(ToString::to_string),
        task: event.task.as_ref().map(ToString::to_string),
        epoch: event.epoch.map(|epoch| epoch.0),
        details: event.body.details(),
    }
}

impl<W: World> Driver<W> {
    /// Makes everything decided so far durable, then performs its effects and sends its responses. Fails if the store
    /// refuses: nothing was acted on and nothing was answered; calling it again retries.
    pub fn commit(&mut self) -> Result<(), Error> {
        if self.pending.is_empty() {
            self.answer_waiters();
            return Ok(());
        }
        self.append_pending()?;
        let Pending { effects, answers, kept, touched, .. } = std::mem::take(&mut self.pending);
        if !self.taking_over && !touched.questions.is_empty() {
            self.ask_phones();
        }
        for attempt in kept {
            self.world.drop_kept_reports(attempt);
        }
        for effect in effects {
            // While the state is taken over, all but an alert is derived from it afterwards.
            if !self.taking_over || matches!(effect, Effect::AlertPerson { .. } | Effect::TellEnd { .. }) {
                self.act(effect);
            }
        }
        for (reply, answer) in answers {
            reply(answer);
        }
        self.answer_waiters();
        // An effect with an immediate result (a check of the disk) has led to more decisions.
        if self.pending.batch.events.is_empty() { Ok(()) } else { self.commit() }
    }

    fn append_pending(&mut self) -> Result<(), Error> {
        if self.pending.batch.is_empty() {
            return Ok(());
        }
        let mut batch = self.pending.batch.clone();
        batch.expect_last_seq = Some(self.last_seq);
        batch.rows.extend(rows::touched_rows(&self.state, &self.pending.touched));
        let events = self.events_since_snapshot + batch.events.len();
        let snapshot = events >= SNAPSHOT_EVERY.max(self.snapshot_bytes / BYTES_PER_EVENT);
        if snapshot {
            let state = serde_json::to_vec(&self.state).expect("the state holds nothing that JSON cannot");
            self.snapshot_bytes = state.len();
            batch.snapshot = Some(state).filter(|state| state.len() <= SNAPSHOT_MAX_BYTES);
        }
        self.last_seq = self.store.append(batch)?.last_seq;
        self.events_since_snapshot = if snapshot { 0 } else { events };
        Ok(())
    }
}
