//! Removing log lines of an attempt that is over, and the record of which. Places of lines are given out without gaps, so a gap
//! that is not on record is damage.

use std::ops::RangeInclusive;

use tokio_postgres::types::Type;

use super::link::Link;
use super::read::{Answer, damaged};
use super::write::{Lead, stored};
use crate::store::{RemovedLines, chain};

/// Lines removed in one transaction: some milliseconds, so that an append that comes in between hardly waits.
const STEP_LINES: i64 = 512;

/// Removes some lines of one attempt. None means that none is left.
pub(super) fn step(link: &mut Link, lead: Lead, attempt: u64) -> Answer<RemovedLines> {
    let attempt = stored(attempt);
    let sql = "SELECT seq, length(text) FROM rekindle.line WHERE space = $1 AND attempt = $2 ORDER BY seq LIMIT $3";
    let arguments = [(&lead.space as _, Type::INT8), (&attempt as _, Type::INT8), (&STEP_LINES as _, Type::INT8)];
    let going: Vec<(i64, i32)> = link.query(sql, &arguments, 0)?.iter().map(|row| (row.get(0), row.get(1))).collect();
    if going.is_empty() {
        return Ok(RemovedLines::default());
    }
    let seqs: Vec<i64> = going.iter().map(|(seq, _)| *seq).collect();
    let places: Vec<u64> = seqs.iter().map(|seq| seq.cast_unsigned()).collect();
    let (gone, parts) = merged(&all(link, lead.space)?, &places);
    let gone: Vec<i64> = gone.into_iter().map(stored).collect();
    let first: Vec<i64> = parts.iter().map(|part| stored(*part.start())).collect();
    let last: Vec<i64> = parts.iter().map(|part| stored(*part.end())).collect();
    let sum: Vec<i64> = parts.iter().map(|part| chain::removed_sum(*part.start(), *part.end())).collect();
    let arguments = [
        (&lead.space as _, Type::INT8),
        (&lead.epoch as _, Type::INT8),
        (&seqs as _, Type::INT8_ARRAY),
        (&gone as _, Type::INT8_ARRAY),
        (&first as _, Type::INT8_ARRAY),
        (&last as _, Type::INT8_ARRAY),
        (&sum as _, Type::INT8_ARRAY),
    ];
    link.query("SELECT rekindle.remove_lines($1, $2, $3, $4, $5, $6, $7)", &arguments, 0)?;
    let bytes = going.iter().map(|(_, length)| u64::from(length.unsigned_abs())).sum();
    Ok(RemovedLines { lines: going.len() as u64, bytes })
}

/// What the record becomes when `places` go too: which of its parts go, by their first place, and which come. Parts that meet
/// become one.
fn merged(record: &[RangeInclusive<u64>], places: &[u64]) -> (Vec<u64>, Vec<RangeInclusive<u64>>) {
    let (mut gone, mut parts) = (Vec::new(), Vec::new());
    for run in places.chunk_by(|one, next| one + 1 == *next) {
        let [Some(mut first), Some(mut last)] = [run.first().copied(), run.last().copied()] else { continue };
        for part in record {
            if *part.end() + 1 == first || *part.start() == last + 1 {
                gone.push(*part.start());
                (first, last) = (first.min(*part.start()), last.max(*part.end()));
            }
        }
        // A part of the record between two runs meets both: the second run joins what the first became.
        match parts.last_mut() {
            Some(before) if RangeInclusive::end(before) >= &first => *before = *before.start()..=last,
            _ => parts.push(first..=last),
        }
    }
    gone.dedup();
    (gone, parts)
}

/// All removed places, in order.
pub(super) fn all(link: &mut Link, space: i64) -> Answer<Vec<RangeInclusive<u64>>> {
    let sql = "SELECT first, last, sum FROM rekindle.removed_line WHERE space = $1 ORDER BY first";
    let rows = link.query(sql, &[(&space, Type::INT8)], 0)?;
    rows.iter()
        .map(|row| {
            let part = row.get::<_, i64>(0).cast_unsigned()..=row.get::<_, i64>(1).cast_unsigned();
            if part.is_empty() || chain::removed_sum(*part.start(), *part.end()) != row.get::<_, i64>(2) {
                return damaged(format!("the record of removed lines at {} does not match its checksum", part.start()));
            }
            Ok(part)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::merged;

    #[test]
    fn parts_that_meet_become_one() {
        assert_eq!(merged(&[], &[3, 4, 7]), (vec![], vec![3..=4, 7..=7]));
        assert_eq!(merged(&[1..=2, 6..=8], &[3, 4, 9]), (vec![1, 6], vec![1..=4, 6..=9]));
        assert_eq!(merged(&[4..=5], &[3, 6]), (vec![4], vec![3..=6]));
        assert_eq!(merged(&[10..=20], &[3]), (vec![], vec![3..=3]));
    }
}
