//! What every store promises, whatever its engine: run a [`Subject`] through [`check`]. This file owns the promises; the
//! subject decides how an engine is made and killed.
//!
//! A case panics with the promise that was broken, so that the suite reads as a test and a planted bug can be caught.

use rekindle_engine::store::{Batch, LogLine, NewEvent, Row, SpoolOffset, Store, Stream, Table};

mod crash;
mod events;
mod log;
mod tables;

/// A store under test.
pub trait Subject: Send + Sync {
    fn store(&self) -> &dyn Store;
    /// The store that opens when the process is killed at this moment and started again; this one may stay alive.
    fn killed(&self) -> Box<dyn Subject>;
}

/// Makes an empty store.
pub type Maker<'a> = &'a dyn Fn() -> Box<dyn Subject>;

/// One promise.
pub type Case = fn(Maker<'_>);

/// Every promise, by name.
pub const CASES: &[(&str, Case)] = &[
    ("events come back as they went in", events::come_back),
    ("events are read in pages", events::pages),
    ("events of some kinds are found", events::some_kinds),
    ("any text is kept", events::any_text),
    ("the chain holds and its head is told", events::chained),
    ("a conflict writes nothing", events::conflict),
    ("an empty batch is answered", events::empty),
    ("a batch over the limit is refused", events::too_large),
    ("a state over the limit is stored", events::large_state),
    ("a batch is there as a whole after a kill", crash::whole),
    ("lines and offsets stand or fall together", crash::lines_with_offsets),
    ("what was acknowledged to many threads survives a kill", crash::many_threads),
    ("of many that expect the same end one wins", crash::one_winner),
    ("rows replace each other and come in order", tables::rows),
    ("derived tables can be rebuilt", tables::rebuilt),
    ("offsets are kept per spool", tables::offsets),
    ("the newest snapshot is found", tables::snapshots),
    ("the end of the log is told", log::tail),
    ("the log is followed", log::since),
    ("the log is searched", log::search),
    ("no query is an error", log::hostile_queries),
];

/// Runs a maker of stores through every case.
pub fn check(make: Maker<'_>) {
    for (_, case) in CASES {
        case(make);
    }
}

/// An event that differs from others only by its number.
pub fn event(n: u64) -> NewEvent {
    NewEvent {
        time_ms: 1_000 + i64::try_from(n).expect("small"),
        run: "run-1".into(),
        kind: "developer_dispatched".into(),
        agent: Some(format!("agent-{n}")),
        task: Some("T1".into()),
        epoch: Some(n),
        details: format!("{{\"n\":{n}}}"),
    }
}

/// A line of an agent.
pub fn line(agent: &str, attempt: u64, offset: u64, text: &str) -> LogLine {
    LogLine {
        attempt,
        agent: agent.into(),
        epoch: 1,
        stream: Stream::Out,
        time_ms: 5,
        offset,
        len: text.len() as u64 + 1,
        text: text.into(),
        torn: false,
    }
}

/// How far an attempt's output has been read.
pub fn offset(attempt: u64, next: u64) -> SpoolOffset {
    SpoolOffset { attempt, stream: Stream::Out, next }
}

/// A derived row.
pub fn row(table: Table, run: &str, key: &str, order: u64, json: &str) -> Row {
    Row { table, run: run.into(), key: key.into(), order, json: json.into() }
}

/// A batch of events only.
pub fn events_only(events: Vec<NewEvent>) -> Batch {
    Batch { events, ..Batch::default() }
}

/// A batch of lines only.
pub fn lines_only(lines: Vec<LogLine>) -> Batch {
    Batch { lines, ..Batch::default() }
}

/// Texts that have broken stores before.
pub const HARD_TEXTS: &[&str] = &[
    "",
    "\0",
    "before\0after",
    "\u{feff}byte order mark",
    "line\nbreak\r\ttab\u{2028}separator",
    "quote \" apostrophe ' backslash \\ percent % underscore _ ; -- comment",
    "größe ΣΊΣΥΦΟΣ 漢字 🦀 e\u{301} \u{202e}reversed",
    "\u{ffff}\u{fffe}\u{10ffff}",
    "{\"json\":\"inside\"}",
    "NULL",
    "' OR 1=1 --",
    "x'00ff'",
];
