//! Agents' output: from the bytes of a spool through the driver (records, signals, sanitizing, redaction, the store)
//! against the same number of plain rows in SQLite, a hundred to a commit.

use std::sync::Arc;

use rekindle_engine::driver::Message;
use rekindle_engine::store::{Read, Store};

use crate::bed::{DriverBed, open_store, scratch};
use crate::floor::{RECORD_BYTES, RawDatabase};
use crate::measure::{Options, Ratio, Row, Samples, seconds};

/// Lines of a round.
const LINES: usize = 40_000;

/// Rows to a commit of the limit, as the goal says.
const BATCH: usize = 100;

const ROUNDS: usize = 9;

/// Lines as agents write them: JSON with some words, a path and a number, 200 bytes with the newline.
fn output(from: usize, lines: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(lines * RECORD_BYTES);
    for number in from..from + lines {
        let start = bytes.len();
        let head =
            format!("{{\"type\":\"tool\",\"n\":{number},\"path\":\"src/parser/mod.rs\",\"text\":\"read the file and ");
        bytes.extend_from_slice(head.as_bytes());
        bytes.resize(start + RECORD_BYTES - 3, b'a' + u8::try_from(number % 26).expect("a letter"));
        bytes.extend_from_slice(b"\"}\n");
    }
    bytes
}

/// Lines a second, durable.
pub fn lines(options: &Options) -> Vec<Row> {
    let dir = scratch();
    let mut raw = RawDatabase::new(dir.path());
    let store = Arc::new(open_store(&dir.path().join("store")));
    let driven: Arc<dyn Store> = store.clone();
    let mut bed = DriverBed::new(driven, 1);
    let attempt = bed.at_work().0;
    let [mut raw_rate, mut rate] = [const { Samples { rounds: Vec::new() } }; 2];
    let rounds = options.rounds(ROUNDS);
    for round in 0..rounds {
        raw.checkpoint();
        raw_rate.push(LINES as f64 / seconds(|| raw.put_lines(LINES, BATCH)));
        let more = output(round * LINES, LINES);
        bed.driver.world().output.extend_from_slice(&more);
        rate.push(
            LINES as f64
                / seconds(|| {
                    bed.driver.handle([Message::Grew { attempt }]).expect("ingest");
                    while !bed.driver.unread().is_empty() {
                        bed.driver.handle([Message::Grew { attempt }]).expect("ingest");
                    }
                }),
        );
    }
    let stored = store.log_tail(None, 1).expect("a tail").first().map_or(0, |line| line.seq);
    assert_eq!(stored, (rounds * LINES) as u64, "every line is there once");
    let ratio = Ratio::of(&rate, &raw_rate);
    let detail = format!("{:.0} lines/s against {:.0} rows/s", rate.median(), raw_rate.median());
    vec![
        Row::judged(
            "log ingest, 200 B lines, driver to durable",
            "≥ 30 % of raw SQLite, 100 rows a commit",
            ratio.percent(),
            ratio.median >= 0.3,
            detail,
        ),
        Row::judged(
            "log ingest, lines a second",
            "≥ 100 k/s",
            format!("{:.0} k/s", rate.median() / 1e3),
            rate.median() >= 100e3,
            "an absolute figure: it moves with the machine's load".into(),
        ),
    ]
}
