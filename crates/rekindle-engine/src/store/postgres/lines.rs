//! Questions about log lines, each checked against its checksum, and searching them. The index of the database proposes lines,
//! [`Query`] decides.

use std::fmt::Write as _;

use tokio_postgres::Row as SqlRow;
use tokio_postgres::types::{ToSql, Type};

use super::link::{Argument, Link};
use super::read::{Answer, damaged, limit_of, text};
use super::write::stored;
use crate::store::chain::{self, stream_from_code};
use crate::store::search::Query;
use crate::store::{LogLine, StoredLine};

/// The columns of a line, in the order [`line_of`] takes them.
const LINE: &str = "SELECT seq, attempt, agent, epoch, stream, time_ms, pos, len, torn, text, sum FROM rekindle.line";

/// Lines read at once where it is not known how many are wanted: bounds memory, amortises the query.
pub(super) const PAGE: usize = 4_096;

/// What a line may come to, for the deadline of reading many.
const LINE_BYTES: usize = 1_024;

/// Which lines are asked for.
#[derive(Clone, Copy)]
pub(super) enum Of<'a> {
    All,
    Agent(&'a str),
    Attempt(u64),
}

impl<'a> Of<'a> {
    pub(super) fn agent(agent: Option<&'a str>) -> Self {
        agent.map_or(Of::All, Of::Agent)
    }
}

/// The last `n` lines, oldest first.
pub(super) fn tail(link: &mut Link, space: i64, of: Of<'_>, n: usize) -> Answer<Vec<StoredLine>> {
    let mut lines = select(link, space, of, "", &[], true, n)?;
    lines.reverse();
    Ok(lines)
}

/// Lines after a place, oldest first.
pub(super) fn since(link: &mut Link, space: i64, of: Of<'_>, after: u64, limit: usize) -> Answer<Vec<StoredLine>> {
    let after = stored(after);
    select(link, space, of, "AND seq > $3", &[(&after, Type::INT8)], false, limit)
}

/// The places of an attempt's lines after one, from the index alone.
pub(super) fn places(link: &mut Link, space: i64, attempt: u64, after: u64, limit: usize) -> Answer<Vec<u64>> {
    let (attempt, after, limit) = (stored(attempt), stored(after), limit_of(limit));
    let sql = "SELECT seq FROM rekindle.line WHERE space = $1 AND attempt = $2 AND seq > $3 ORDER BY seq LIMIT $4";
    let arguments =
        [(&space as _, Type::INT8), (&attempt as _, Type::INT8), (&after as _, Type::INT8), (&limit as _, Type::INT8)];
    Ok(link.query(sql, &arguments, 0)?.iter().map(|row| row.get::<_, i64>(0).cast_unsigned()).collect())
}

/// The last `limit` lines that match, oldest first.
pub(super) fn search(link: &mut Link, space: i64, query: &str, of: Of<'_>, limit: usize) -> Answer<Vec<StoredLine>> {
    let query = Query::new(query);
    if query.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    let patterns: Vec<String> = query.words().iter().map(|word| pattern(word)).collect();
    let (mut found, mut below) = (Vec::new(), i64::MAX);
    loop {
        let mut condition = "AND seq < $3".to_owned();
        for n in 0..patterns.len() {
            // Writing to a string cannot fail.
            let _ = write!(condition, " AND rekindle.searchable(text) LIKE ${}", n + 4);
        }
        let mut arguments: Vec<Argument<'_>> = vec![(&below as _, Type::INT8)];
        arguments.extend(patterns.iter().map(|pattern| (pattern as &(dyn ToSql + Sync), Type::TEXT)));
        let page = select(link, space, of, &condition, &arguments, true, PAGE.min(limit.max(64)))?;
        let Some(last) = page.last() else { break };
        below = stored(last.seq);
        found.extend(page.into_iter().filter(|line| query.matches(&line.line.text)));
        if found.len() >= limit {
            break;
        }
    }
    found.truncate(limit);
    found.reverse();
    Ok(found)
}

/// A word as the database writes a text to be searched, for LIKE: ASCII as it is, every other byte in octal.
fn pattern(word: &str) -> String {
    let mut pattern = String::from("%");
    for byte in word.bytes() {
        match byte {
            // The database doubles a backslash, and LIKE wants each of the two escaped.
            b'\\' => pattern.push_str(r"\\\\"),
            b'%' | b'_' => {
                pattern.push('\\');
                pattern.push(char::from(byte));
            }
            0 | 0x80.. => {
                let _ = write!(pattern, r"\\{byte:03o}");
            }
            _ => pattern.push(char::from(byte)),
        }
    }
    pattern.push('%');
    pattern
}

/// Every line after a place, in pages, for verification.
pub(super) fn page(link: &mut Link, space: i64, after: u64) -> Answer<Vec<StoredLine>> {
    since(link, space, Of::All, after, PAGE)
}

/// Lines that fit a condition. `$1` is the space and `$2` the agent or attempt; the condition's arguments begin at `$3`.
fn select(
    link: &mut Link,
    space: i64,
    of: Of<'_>,
    condition: &str,
    more: &[Argument<'_>],
    newest_first: bool,
    limit: usize,
) -> Answer<Vec<StoredLine>> {
    let agent = if let Of::Agent(agent) = of { Some(agent.as_bytes()) } else { None };
    let attempt = if let Of::Attempt(attempt) = of { Some(stored(attempt)) } else { None };
    let (which, second): (&str, Argument<'_>) = match of {
        Of::All => ("$2::bigint IS NULL", (&attempt, Type::INT8)),
        Of::Agent(_) => ("agent = $2", (&agent, Type::BYTEA)),
        Of::Attempt(_) => ("attempt = $2", (&attempt, Type::INT8)),
    };
    let count = limit_of(limit);
    let mut arguments: Vec<Argument<'_>> = vec![(&space as _, Type::INT8), second];
    arguments.extend_from_slice(more);
    arguments.push((&count as _, Type::INT8));
    let order = if newest_first { "DESC" } else { "ASC" };
    let last = arguments.len();
    let sql = format!("{LINE} WHERE space = $1 AND {which} {condition} ORDER BY seq {order} LIMIT ${last}");
    let rows = link.query(&sql, &arguments, limit.saturating_mul(LINE_BYTES))?;
    rows.iter().map(line_of).collect()
}

fn line_of(row: &SqlRow) -> Answer<StoredLine> {
    let seq = row.get::<_, i64>(0).cast_unsigned();
    let Some(stream) = stream_from_code(row.get::<_, i16>(4).into()) else {
        return damaged(format!("log line {seq} does not match its checksum"));
    };
    let line = LogLine {
        attempt: row.get::<_, i64>(1).cast_unsigned(),
        agent: text(row, 2)?,
        epoch: row.get::<_, i64>(3).cast_unsigned(),
        stream,
        time_ms: row.get(5),
        offset: row.get::<_, i64>(6).cast_unsigned(),
        len: row.get::<_, i64>(7).cast_unsigned(),
        text: text(row, 9)?,
        torn: row.get(8),
    };
    if chain::line_sum(seq, &line) != row.get::<_, i64>(10) {
        return damaged(format!("log line {seq} does not match its checksum"));
    }
    Ok(StoredLine { seq, line })
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn a_word_is_written_as_the_database_writes_a_text() {
        assert_eq!(pattern("main.rs"), "%main.rs%");
        assert_eq!(pattern("50%_"), r"%50\%\_%");
        assert_eq!(pattern("a\\b"), r"%a\\\\b%");
        assert_eq!(pattern("ö\0"), r"%\\303\\266\\000%");
    }
}
