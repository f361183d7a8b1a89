//! A process that appends to a store and prints on its standard output what was acknowledged, so that tests can kill it and
//! compare. Usage: `store-writer DIR COUNT`. It decides nothing about what should survive.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use rekindle_engine::state_dir::{Owner, StateDir};
use rekindle_engine::store::{
    Batch, LogLine, NewEvent, Options, Read, Row, SpoolOffset, SqliteStore, Store, Stream, Table,
};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let (Some(dir), Some(count)) = (args.get(1), args.get(2).and_then(|n| n.parse().ok())) else {
        return say("usage: store-writer DIR COUNT").map_or(ExitCode::FAILURE, |()| ExitCode::FAILURE);
    };
    match write(Path::new(dir), count) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => say(&format!("error {error}")).map_or(ExitCode::FAILURE, |()| ExitCode::FAILURE),
    }
}

fn write(dir: &Path, count: u64) -> Result<(), Box<dyn std::error::Error>> {
    let dir = StateDir::open_or_create(dir)?;
    let owner = Owner { pid: std::process::id(), host: "test".into(), since_ms: 0, plan: "test".into(), process: None };
    let _lock = dir.lock_coordinator(&owner)?;
    let (store, report) = SqliteStore::open(&dir, Options::default())?;
    let mut n = store.head()?.last_seq;
    say(&format!("open {n} repaired {} replayed {}", report.repaired.is_some(), report.replayed))?;
    for _ in 0..count {
        match store.append(batch(n)) {
            Ok(told) => {
                say(&format!("ack {} {}", told.last_seq, told.last_hash))?;
                n += 1;
            }
            Err(error) => say(&format!("refused {} {error}", n + 1))?,
        }
    }
    say("end")?;
    Ok(())
}

/// The batch that makes event `n + 1`; tests know it too.
fn batch(n: u64) -> Batch {
    let text = format!("line {n} of the output");
    let event = NewEvent {
        time_ms: 7,
        run: "run".into(),
        kind: "developer_dispatched".into(),
        agent: None,
        task: Some(format!("T{n}")),
        epoch: Some(n),
        details: format!("{{\"n\":{n}}}"),
    };
    let line = LogLine {
        attempt: 1,
        agent: "agent".into(),
        epoch: 1,
        stream: Stream::Out,
        time_ms: 7,
        offset: n,
        len: 1,
        text,
        torn: false,
    };
    Batch {
        expect_last_seq: Some(n),
        events: vec![event],
        lines: vec![line],
        offsets: vec![SpoolOffset { attempt: 1, stream: Stream::Out, next: n + 1 }],
        rows: vec![Row {
            table: Table::Task,
            run: "run".into(),
            key: format!("T{}", n % 7),
            order: n,
            json: "{}".into(),
        }],
        snapshot: n.is_multiple_of(5).then(|| n.to_le_bytes().to_vec()),
    }
}

/// One whole line in one write: a reader never sees half an acknowledgement.
fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    out.flush()
}
