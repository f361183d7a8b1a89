//! Brings a database forward from the shadow log, and the shadow log from the database. This file owns the order in which
//! records are trusted: only what continues the chain is taken. `open` and `repair` decide when to replay.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;

use super::read;
use super::shadow::{self, Shadow};
use super::write::{ROWS_STALE, put_event, put_meta, put_offset};
use super::{SpoolGap, check};
use crate::store::chain;
use crate::store::{Error, Head, SpoolOffset, Stream};

/// Offsets by spool.
pub type Offsets = BTreeMap<(u64, Stream), u64>;

#[derive(Debug, Default)]
pub struct Replayed {
    pub head: Head,
    pub events: u64,
    /// How far spools had been read after the last of them, as far as the shadow log says.
    pub offsets: Offsets,
    /// An undamaged record claims to be the next event but is chained to another one.
    pub diverged: bool,
}

/// Adds the events of the shadow log that continue after `head`. The caller holds the transaction.
pub fn events(conn: &Connection, shadow_dir: &Path, head: Head) -> Result<Replayed, Error> {
    let mut replayed = Replayed { head, ..Replayed::default() };
    shadow::records(shadow_dir, |record| {
        let offsets: Vec<SpoolOffset> = record.offsets().collect();
        let ends_at = record.head().map(|head| head.last_seq);
        for event in record.events.into_iter().filter_map(shadow::ShadowEvent::into_stored) {
            if event.seq != replayed.head.last_seq + 1 {
                continue;
            }
            if chain::follow(&mut replayed.head, &event).is_err() {
                replayed.diverged = true;
                continue;
            }
            put_event(conn, &event)?;
            replayed.events += 1;
        }
        // Offsets count once an event of this replay needs them; those of records that did not fit are not trusted.
        if replayed.events > 0 && ends_at.is_none_or(|seq| seq == replayed.head.last_seq) {
            replayed.offsets.extend(offsets.iter().map(|o| ((o.attempt, o.stream), o.next)));
        }
        Ok(())
    })?;
    Ok(replayed)
}

/// Writes the offsets that a replay found; returns the parts of spools whose lines are now missing in the index.
pub fn write_offsets(conn: &Connection, offsets: &Offsets) -> Result<Vec<SpoolGap>, Error> {
    let before: Offsets = read::offsets(conn)?.into_iter().map(|o| ((o.attempt, o.stream), o.next)).collect();
    let mut gaps = Vec::new();
    for (&(attempt, stream), &next) in offsets {
        put_offset(conn, SpoolOffset { attempt, stream, next })?;
        let from = before.get(&(attempt, stream)).copied().unwrap_or(0);
        if next > from {
            gaps.push(SpoolGap { attempt, stream, from, to: next });
        }
    }
    put_meta(conn, ROWS_STALE, 1)?;
    Ok(gaps)
}

/// Brings the shadow log up to the database.
pub fn catch_up(conn: &Connection, shadow: &mut Shadow) -> Result<(), Error> {
    let mut behind = false;
    loop {
        let events = read::events(conn, shadow.reached(), check::CHUNK)?;
        if events.is_empty() {
            break;
        }
        behind = true;
        shadow.append(&events)?;
    }
    if behind {
        // After the events, in a record of their own: attached to an earlier one they would be ahead of it.
        shadow.note_offsets(&read::offsets(conn)?);
        shadow.append(&[])?;
    }
    Ok(())
}
