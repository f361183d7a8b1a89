//! Whether a database is as new as its log: views ask before they show it. The next coordinator repairs it.

use super::shadow;
use crate::state_dir::StateDir;
use crate::store::{Error, Head, Read};
use rekindle_core::text::counted;

/// How a database disagrees with its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lag {
    /// There is no database, but the log has events.
    Missing { events: u64 },
    /// The database lacks the newest events.
    Behind { events: u64 },
    /// The database and its log hold different events with the same sequence number.
    Differs { seq: u64 },
}

impl std::fmt::Display for Lag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing { events } => {
                write!(f, "the database is missing, and its log holds {}", counted(*events, "event", "events"))
            }
            Self::Behind { events } => {
                write!(f, "the database is behind its log by {}", counted(*events, "event", "events"))
            }
            Self::Differs { seq } => write!(f, "the database differs from its log at event {seq}"),
        }
    }
}

/// Compares a database with the end of its shadow log. The log is read first: it is written after the database, so a database
/// that is whole is never older than what was read.
pub fn lag(dir: &StateDir, reader: Option<&dyn Read>) -> Result<Option<Lag>, Error> {
    let Some(logged) = shadow::quick_end(&dir.shadow())? else { return Ok(None) };
    let Some(reader) = reader else { return Ok(Some(Lag::Missing { events: logged.last_seq })) };
    let head = reader.head()?;
    if head.last_seq < logged.last_seq {
        return Ok(Some(Lag::Behind { events: logged.last_seq - head.last_seq }));
    }
    let there = match head.last_seq == logged.last_seq {
        true => Some(head),
        false => at(reader, logged.last_seq)?,
    };
    Ok(there.filter(|there| there.last_hash != logged.last_hash).map(|there| Lag::Differs { seq: there.last_seq }))
}

fn at(reader: &dyn Read, seq: u64) -> Result<Option<Head>, Error> {
    let found = reader.events(seq.saturating_sub(1), 1)?;
    Ok(found.first().map(|event| Head { last_seq: event.seq, last_hash: event.hash }))
}
