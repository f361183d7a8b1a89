//! Durable transitions: one at a time against one synced commit and one synced write, and many at once against a group
//! commit that does nothing else. Syncs are counted at the kernel.

use std::process::Command;
use std::sync::Arc;

use rekindle_engine::store::{Batch, Head, NewEvent, Row as StoreRow, Store, Table};

use crate::bed::{DriverBed, open_store, scratch};
use crate::floor::{self, RECORD_BYTES, RawDatabase, SyncedFile};
use crate::measure::{Options, Ratio, Row, Samples, human, seconds, typical};

/// Operations in a round: long enough for a median, short enough for both halves to see the same machine.
const OPERATIONS: usize = 200;

const ROUNDS: usize = 21;

/// Callers at once, as the goal says.
const CALLERS: usize = 64;

/// Appends of each caller in a round.
const APPENDS: usize = 60;

/// Rounds before the first that counts.
const WARMING: usize = 2;

/// Appends counted with strace.
const COUNTED: usize = 400;

/// One event and the task row it changes.
fn transition(number: u64, expected: Option<Head>) -> Batch {
    let event = NewEvent {
        time_ms: 1_000,
        run: "run".into(),
        kind: "checkpoint_saved".into(),
        agent: Some("developer-T1".into()),
        task: Some(format!("T{}", number % 100)),
        epoch: Some(1),
        details: format!("{{\"text\":\"{}\"}}", "x".repeat(RECORD_BYTES)),
    };
    let row = StoreRow {
        table: Table::Task,
        run: "run".into(),
        key: format!("T{}", number % 100),
        order: number % 100,
        json: "x".repeat(RECORD_BYTES),
    };
    Batch {
        expect_last_seq: expected.map(|head| head.last_seq),
        events: vec![event],
        rows: vec![row],
        ..Batch::default()
    }
}

/// One transition after the other.
pub fn one_at_a_time(options: &Options) -> Vec<Row> {
    let dir = scratch();
    let mut file = SyncedFile::new(dir.path());
    let mut raw = RawDatabase::new(dir.path());
    let store = open_store(&dir.path().join("store"));
    let driven: Arc<dyn Store> = Arc::new(open_store(&dir.path().join("driven")));
    let mut bed = DriverBed::new(driven, 100);
    let [mut synced, mut committed, mut appended, mut handled] = [const { Samples { rounds: Vec::new() } }; 4];
    let mut head = Head::default();
    let mut number = 0;
    for round in 0..WARMING + options.rounds(ROUNDS) {
        if round == WARMING {
            for samples in [&mut synced, &mut committed, &mut appended, &mut handled] {
                samples.rounds.clear();
            }
        }
        raw.checkpoint();
        synced.push(typical(OPERATIONS, || file.write()));
        committed.push(typical(OPERATIONS, || raw.commit_one()));
        appended.push(typical(OPERATIONS, || {
            head = store.append(transition(head.last_seq, Some(head))).expect("an append");
        }));
        handled.push(typical(OPERATIONS, || {
            number += 1;
            let message = bed.checkpoint(number);
            bed.driver.handle([message]).expect("a transition");
        }));
    }
    let detail = |samples: &Samples, limit: &Samples, name: &str| {
        format!("{} against {} ({name})", human(samples.median()), human(limit.median()))
    };
    let append = Ratio::of(&appended, &committed);
    let handle = Ratio::of(&handled, &committed);
    let write = Ratio::of(&handled, &synced);
    vec![
        Row::judged(
            "one durable transition, driver (decide, encode, store, answer)",
            "≤ 2× one FULL commit",
            handle.times(),
            handle.median <= 2.0,
            detail(&handled, &committed, "raw SQLite commit of the same shape"),
        ),
        Row::judged(
            "one durable transition, store alone",
            "≤ 2× one FULL commit",
            append.times(),
            append.median <= 2.0,
            detail(&appended, &committed, "raw SQLite commit of the same shape"),
        ),
        Row::told(
            "one durable transition, driver, to write + fdatasync",
            write.times(),
            detail(&handled, &synced, "200 B"),
        ),
        syncs(),
    ]
}

/// Syncs per append, counted by the kernel's own account of the writer program.
fn syncs() -> Row {
    let area = "syncs per transition (strace)";
    let dir = scratch();
    let trace = dir.path().join("trace");
    let traced = Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=fsync,fdatasync,write", "-e", "signal=none", "-o"])
        .arg(&trace)
        .arg(env!("CARGO_BIN_EXE_store-writer"))
        .arg(dir.path().join("state"))
        .arg(COUNTED.to_string())
        .output();
    let told = match traced {
        Ok(output) if output.status.success() => std::fs::read_to_string(&trace).unwrap_or_default(),
        Ok(output) => return Row::told(area, "not measured".into(), format!("strace ended with {}", output.status)),
        Err(error) => return Row::told(area, "not measured".into(), format!("no strace: {error}")),
    };
    let acks: Vec<usize> = told.match_indices("\"ack ").map(|(at, _)| at).collect();
    let (Some(first), Some(last)) = (acks.first(), acks.last()) else {
        return Row::told(area, "not measured".into(), "no acknowledgement was seen".into());
    };
    let during = &told[*first..*last];
    let count = during.matches("fsync(").count() + during.matches("fdatasync(").count();
    let each = count as f64 / (acks.len() - 1) as f64;
    let detail = format!("{count} for {} appends, the shadow log's one a second included", acks.len() - 1);
    Row::judged(area, "1.0", format!("{each:.2}"), each < 1.05, detail)
}

/// Many callers, each waiting for its own.
pub fn concurrent(options: &Options) -> Vec<Row> {
    let [mut floor_rate, mut store_rate] = [const { Samples { rounds: Vec::new() } }; 2];
    let all = (CALLERS * APPENDS) as f64;
    let dir = scratch();
    let store = open_store(&dir.path().join("store"));
    let mut raw = RawDatabase::new(dir.path());
    // Not counted: the store's WAL gets its size, as the limit's has.
    (0..WARMING).for_each(|_| append_from_many(&store));
    for _ in 0..options.rounds(ROUNDS) {
        raw.checkpoint();
        floor_rate.push(all / seconds(|| floor::group_commit(&mut raw, CALLERS, APPENDS)));
        store_rate.push(all / seconds(|| append_from_many(&store)));
    }
    let ratio = Ratio::of(&store_rate, &floor_rate);
    let detail = format!("{:.0}/s against {:.0}/s", store_rate.median(), floor_rate.median());
    let area = "durable transitions, 64 callers at once";
    vec![Row::judged(area, "≥ 40 % of a raw group commit", ratio.percent(), ratio.median >= 0.4, detail)]
}

fn append_from_many(store: &dyn Store) {
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            scope.spawn(move || {
                for number in 0..APPENDS {
                    store.append(transition((caller * APPENDS + number) as u64, None)).expect("an append");
                }
            });
        }
    });
}
