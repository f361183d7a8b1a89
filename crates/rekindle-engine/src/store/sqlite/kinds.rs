//! Finds some kinds of events among many by the index of kinds: a view of a run with a million notes reads the few events
//! that it shows. Each event is checked against its hash and the hash before it.

use rusqlite::{Connection, OptionalExtension};

use super::connect::fault;
use super::read::{event_of, head_at, limit_of, stored};
use crate::store::chain;
use crate::store::{Error, Head, StoredEvent};

/// The next kind after a given one.
pub const NEXT_KIND: &str = "SELECT kind FROM event WHERE kind > ?1 ORDER BY kind LIMIT 1";

/// The first sequence numbers of a kind after a given one.
pub const PLACES: &str = "SELECT seq FROM event WHERE kind = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";

/// How many events of a kind there are after a sequence number.
pub const COUNT: &str = "SELECT count(*) FROM event WHERE kind = ?1 AND seq > ?2";

/// The kinds that the log holds; each costs one step of the index.
pub fn all(conn: &Connection) -> Result<Vec<String>, Error> {
    let mut next = conn.prepare_cached(NEXT_KIND).map_err(fault)?;
    let mut kinds: Vec<String> = Vec::new();
    loop {
        let last = kinds.last().map_or("", String::as_str);
        match next.query_row([last], |row| row.get(0)).optional().map_err(fault)? {
            Some(kind) => kinds.push(kind),
            None => return Ok(kinds),
        }
    }
}

/// Events of these kinds after a sequence number, in order.
pub fn events(conn: &Connection, kinds: &[&str], after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
    // The index has the events of each kind in order: the first of all are among the first of each.
    let mut of_kind = conn.prepare_cached(PLACES).map_err(fault)?;
    let mut places: Vec<u64> = Vec::new();
    for kind in kinds {
        let rows =
            of_kind.query_map((kind, stored(after_seq), limit_of(limit)), |row| row.get::<_, i64>(0)).map_err(fault)?;
        for place in rows {
            places.push(place.map_err(fault)?.cast_unsigned());
        }
    }
    places.sort_unstable();
    places.dedup();
    places.truncate(limit);
    let mut at = conn
        .prepare_cached("SELECT seq, time_ms, run, kind, agent, task, epoch, details, hash FROM event WHERE seq = ?1")
        .map_err(fault)?;
    let mut head = Head::default();
    let mut events = Vec::with_capacity(places.len());
    for place in places {
        if head.last_seq + 1 != place {
            let before = head_at(conn, place - 1)?;
            head = before.ok_or_else(|| Error::Corrupt(format!("event {place} has none before it")))?;
        }
        let event = at.query_row([stored(place)], event_of).map_err(fault)?;
        chain::follow(&mut head, &event)?;
        events.push(event);
    }
    Ok(events)
}

/// Counts the events of a kind after a sequence number.
pub fn count(conn: &Connection, kind: &str, after_seq: u64) -> Result<u64, Error> {
    let counted: i64 = conn
        .prepare_cached(COUNT)
        .and_then(|mut query| query.query_row((kind, stored(after_seq)), |row| row.get(0)))
        .map_err(fault)?;
    Ok(counted.cast_unsigned())
}
