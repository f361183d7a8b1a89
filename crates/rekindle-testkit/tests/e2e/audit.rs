//! What must hold after whatever happened: one end per task and epoch, rising epochs, attempts within their limit, every
//! byte of every spool in the index once and in order, a chain that verifies, no process left.

use std::collections::{BTreeMap, BTreeSet};

use rekindle_engine::driver;
use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{Read, SqliteReader, StoredLine, Stream};
use serde_json::Value;

use crate::rig::Rig;

/// Attempts that a task may have unless a test says otherwise.
const ATTEMPTS: u64 = 3;

impl Rig {
    /// Everything that must hold once a run is finished.
    pub fn audit(&self) {
        self.assert_nothing_left();
        let events = self.events();
        in_order(&events);
        ended_once(&events);
        epochs_rise(&events);
        let dir = StateDir::open(&self.state()).expect("state directory");
        let store = SqliteReader::open(&dir).expect("store");
        let verified = store.verify(0).expect("verification");
        assert!(verified.ok(), "the store does not verify: {:?}", verified.problems);
        let (state, _) = driver::load(&store).expect("state");
        for (id, task) in &state.tasks {
            assert!(u64::from(task.attempts) <= ATTEMPTS, "task {id} had {} attempts", task.attempts);
        }
        self.every_byte_once(&store);
    }

    fn every_byte_once(&self, store: &SqliteReader) {
        let mut lines: BTreeMap<(u64, Stream), Vec<StoredLine>> = BTreeMap::new();
        let mut after = 0;
        loop {
            let page = store.log_since(None, after, 10_000).expect("lines");
            let Some(last) = page.last() else { break };
            after = last.seq;
            for line in page {
                lines.entry((line.line.attempt, line.line.stream)).or_default().push(line);
            }
        }
        for bundle in std::fs::read_dir(self.state().join("attempts")).expect("bundles").flatten() {
            let name = bundle.file_name().into_string().expect("text");
            let Ok(attempt) = name.parse::<u64>() else { continue };
            for (stream, file) in [(Stream::Out, "out.log"), (Stream::Err, "err.log")] {
                // A bundle whose shim was killed before it began has no spools.
                let spool = std::fs::read(bundle.path().join(file)).unwrap_or_default();
                let indexed = lines.remove(&(attempt, stream)).unwrap_or_default();
                covers(&spool, &indexed, &format!("{}/{file}", bundle.path().display()));
            }
        }
        assert!(lines.is_empty(), "lines of attempts that have no bundle: {:?}", lines.keys());
    }
}

/// The indexed lines are exactly the records of the spool.
fn covers(spool: &[u8], indexed: &[StoredLine], what: &str) {
    let mut at = 0_usize;
    for stored in indexed {
        let line = &stored.line;
        assert_eq!(line.offset, at as u64, "{what}: line {} begins elsewhere", stored.seq);
        let end = at + usize::try_from(line.len).expect("length");
        let bytes = spool.get(at..end).unwrap_or_else(|| panic!("{what}: line {} is not in the spool", stored.seq));
        let newline = spool.get(end) == Some(&b'\n');
        assert_eq!(line.torn, !newline, "{what}: line {}", stored.seq);
        assert!(!bytes.contains(&b'\n'), "{what}: line {} holds several", stored.seq);
        if bytes.len() < 4096 && bytes.iter().all(|byte| (b' '..=b'~').contains(byte)) {
            assert_eq!(line.text.as_bytes(), bytes, "{what}: line {}", stored.seq);
        }
        at = end + usize::from(newline);
    }
    assert_eq!(at, spool.len(), "{what}: bytes that no line holds");
}

fn in_order(events: &[Value]) {
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().expect("seq")).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "events out of order: {seqs:?}");
}

fn ended_once(events: &[Value]) {
    let mut ended = BTreeSet::new();
    for event in events.iter().filter(|event| event["kind"] == "task_completed") {
        let key = (event["task"].to_string(), event["epoch"].as_u64());
        assert!(ended.insert(key.clone()), "{key:?} completed twice");
    }
}

fn epochs_rise(events: &[Value]) {
    let mut newest: BTreeMap<String, u64> = BTreeMap::new();
    for event in events.iter().filter(|event| event["kind"] == "developer_dispatched") {
        let epoch = event["epoch"].as_u64().expect("epoch");
        let before = newest.insert(event["task"].to_string(), epoch).unwrap_or(0);
        assert!(epoch > before, "epoch {epoch} after {before}: {event}");
    }
}
