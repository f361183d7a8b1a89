//! Whether a space says what was written into it: the hash chain, every checksum, and that the space's own row fits them.

use tokio_postgres::types::Type;

use super::link::{Fault, Link};
use super::read::{self, Answer, damaged};
use super::{lines, removed};
use crate::store::{Error, Head, Table, Verification};

/// Findings reported at most; the first ones say enough.
const MAX_PROBLEMS: usize = 16;

/// Follows the chain after an event; from 0 looks at every line too.
pub(super) fn content(link: &mut Link, space: i64, from_seq: u64) -> Answer<Verification> {
    let mut report = Verification::default();
    let end = read::head(link, space)?;
    let chain = follow(link, space, from_seq, end, &mut report);
    note(&mut report, chain)?;
    let beside = beside(link, space);
    note(&mut report, beside)?;
    if from_seq == 0 {
        let lines = every_line(link, space, &mut report);
        note(&mut report, lines)?;
    }
    Ok(report)
}

/// Damage is a finding; anything else ends the looking.
fn note(report: &mut Verification, result: Answer<()>) -> Answer<()> {
    match result {
        Err(Fault::Refused(Error::Corrupt(what))) => {
            if report.problems.len() < MAX_PROBLEMS {
                report.problems.push(what);
            }
            Ok(())
        }
        other => other,
    }
}

/// Follows the chain at least up to `end`, where it ended before the first page was read. More may be appended meanwhile.
fn follow(link: &mut Link, space: i64, from: u64, end: Head, report: &mut Verification) -> Answer<()> {
    let mut at = from;
    loop {
        let events = read::events(link, space, at, lines::PAGE)?;
        let Some(last) = events.last() else { break };
        let seen = events.iter().find(|event| event.seq == end.last_seq);
        if seen.is_some_and(|event| event.hash != end.last_hash) {
            return damaged(format!("the space ends with another event {}", end.last_seq));
        }
        at = last.seq;
        report.events += events.len() as u64;
        report.head = Head { last_seq: last.seq, last_hash: last.hash };
    }
    if at < end.last_seq {
        return damaged(format!("event {} is missing", at + 1));
    }
    if report.events == 0 {
        report.head = end;
    }
    Ok(())
}

/// Everything small: offsets, derived rows, snapshots.
fn beside(link: &mut Link, space: i64) -> Answer<()> {
    read::offsets(link, space)?;
    for table in Table::ALL {
        read::rows(link, space, table, None)?;
    }
    let mut below = i64::MAX;
    while let Some((snapshot, matches)) = read::snapshot_below(link, space, below)? {
        if !matches {
            return damaged(format!("the snapshot at event {} does not match its hash", snapshot.seq));
        }
        below = snapshot.seq.cast_signed();
    }
    Ok(())
}

/// Places of lines are given out without gaps, so a missing one that nobody removed is damage too.
fn every_line(link: &mut Link, space: i64, report: &mut Verification) -> Answer<()> {
    let rows = link.query("SELECT last_line FROM rekindle.space WHERE id = $1", &[(&space, Type::INT8)], 0)?;
    let end = rows.first().map_or(0, |row| row.get::<_, i64>(0).cast_unsigned());
    let mut next = 1;
    loop {
        let page = lines::page(link, space, next - 1)?;
        // Lines may be removed while they are read, so the record is read after them.
        let removed = removed::all(link, space)?;
        let skip = |next: u64| removed.iter().find(|part| part.contains(&next)).map_or(next, |part| part.end() + 1);
        for line in &page {
            next = skip(next);
            if line.seq > next {
                return damaged(format!("log line {next} is missing"));
            }
            next = line.seq + 1;
            report.lines += 1;
        }
        if page.is_empty() {
            next = skip(next);
            break;
        }
    }
    if next <= end { damaged(format!("log line {next} is missing")) } else { Ok(()) }
}
