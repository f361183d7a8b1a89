//! A writer killed at any moment: every event that it said was acknowledged is there, and the chain holds.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{OpenReport, Read};

use crate::bed::{Random, image, knob, open, writer_program};

/// What a writer said before it ended.
#[derive(Default)]
struct Said {
    acks: Vec<(u64, String)>,
    refused: Vec<String>,
    acks_after_refusal: usize,
    ended: bool,
}

impl Said {
    fn take(&mut self, line: &str) {
        let mut words = line.split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("ack"), Some(seq), Some(hash)) => {
                self.acks.push((seq.parse().expect("a number"), hash.to_owned()));
                self.acks_after_refusal += usize::from(!self.refused.is_empty());
            }
            (Some("refused" | "error"), ..) => self.refused.push(line.to_owned()),
            (Some("end"), ..) => self.ended = true,
            _ => {}
        }
    }
}

/// Runs the writer, optionally under strace, and kills it after some acknowledgements.
fn run(dir: &Path, count: u64, strace: &[&str], kill_after: Option<usize>) -> Said {
    let mut command = if strace.is_empty() {
        Command::new(writer_program())
    } else {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null"]).args(strace).arg(writer_program());
        command
    };
    let mut child = command.arg(dir).arg(count.to_string()).stdout(Stdio::piped()).spawn().expect("the writer runs");
    let mut said = Said::default();
    for line in BufReader::new(child.stdout.take().expect("piped")).lines() {
        said.take(&line.expect("text"));
        if kill_after.is_some_and(|after| said.acks.len() == after) {
            child.kill().expect("killed");
        }
    }
    child.wait().expect("ended");
    said
}

/// Opens what is left and compares it with what was said.
fn check(dir: &Path, said: &Said, what: &str) -> OpenReport {
    let dir = StateDir::open_or_create(dir).expect("the directory opens");
    let (store, report) = open(&dir);
    let events = store.events(0, usize::MAX).expect("events");
    for (seq, hash) in &said.acks {
        let at = usize::try_from(*seq).expect("small") - 1;
        let found = events.get(at).unwrap_or_else(|| panic!("{what}: acknowledged event {seq} is missing"));
        assert_eq!(found.hash.to_string(), *hash, "{what}: event {seq} is another one");
    }
    for (n, event) in events.iter().enumerate() {
        assert_eq!(event.details, format!("{{\"n\":{n}}}"), "{what}: event {} is not as written", event.seq);
    }
    let lines = store.log_since(None, 0, usize::MAX).expect("lines");
    let starts: Vec<u64> = lines.iter().map(|l| l.line.offset).collect();
    assert_eq!(starts, (0..events.len() as u64).collect::<Vec<_>>(), "{what}: one line an event, in order");
    let offset = store.offset(1, rekindle_engine::store::Stream::Out).expect("offset");
    assert_eq!(offset, events.len() as u64, "{what}: the offset stands where the lines end");
    let verified = store.verify(0).expect("verify");
    assert!(verified.ok(), "{what}: {verified:?}");
    report
}

#[test]
fn killed_at_random_again_and_again() {
    let seed = knob("REKINDLE_KILL_SEED", 1);
    let mut random = Random(seed);
    let parent = tempfile::tempdir().expect("a temporary directory");
    let dir = parent.path().join("state");
    for round in 0..knob("REKINDLE_KILL_ROUNDS", 25) {
        let after = usize::try_from(1 + random.below(60)).expect("small");
        let said = run(&dir, 100_000, &[], Some(after));
        assert!(said.acks.len() >= after && !said.ended, "the writer was killed while writing");
        let report = check(&dir, &said, &format!("seed {seed} round {round}"));
        assert_eq!(report.repaired, None, "a kill damages nothing");
        assert_eq!(report.lost_after, None, "a kill loses nothing");
    }
}

/// Kills at the Nth of some system calls, for N from 1 until the writer gets through.
fn killed_at_every(calls: &str, limit: u64, step: u64) {
    let mut killed = 0;
    let mut at = 1;
    while at <= limit {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let dir = parent.path().join("state");
        let inject = format!("inject={calls}:signal=SIGKILL:when={at}");
        let said = run(&dir, 12, &["-e", &format!("trace={calls}"), "-e", &inject], None);
        assert_eq!(said.refused, Vec::<String>::new());
        check(&dir, &said, &format!("killed at {calls} number {at}"));
        if said.ended {
            break;
        }
        killed += 1;
        at += step;
    }
    assert!(killed >= 10, "only {killed} kills: the calls are not the ones the writer makes");
}

#[test]
fn killed_at_every_sync() {
    killed_at_every("fsync,fdatasync", 60, 1);
}

#[test]
fn killed_at_every_fifth_write_to_the_database() {
    killed_at_every("pwrite64", 400, knob("REKINDLE_KILL_STEP", 5));
}

#[test]
fn killed_at_every_rename_and_unlink() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    for at in 1..=6 {
        let dir = parent.path().join(format!("state-{at}"));
        let inject = format!("inject=rename,unlink:signal=SIGKILL:when={at}");
        let said = run(&dir, 3, &["-e", "trace=rename,unlink", "-e", &inject], None);
        check(&dir, &said, &format!("killed at rename or unlink number {at}"));
    }
}

#[test]
fn a_failed_sync_is_never_acknowledged_and_the_store_asks_to_be_opened_again() {
    let mut refused = 0;
    for at in 1..=14 {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let dir = parent.path().join("state");
        // Made before, so that the failing syncs are those of the writer thread's appends.
        check(&dir, &run(&dir, 1, &[], None), "made");
        let inject = format!("inject=fsync:error=EIO:when={at}");
        let said = run(&dir, 6, &["-e", "trace=fsync", "-e", &inject], None);
        let first = said.refused.first().cloned().unwrap_or_default();
        if first.starts_with("refused") {
            refused += 1;
            assert!(first.contains("must be opened again"), "{first}");
            assert_eq!(said.acks_after_refusal, 0, "after a failed sync nothing is acknowledged any more");
        }
        check(&dir, &said, &format!("sync {at} failed"));
    }
    assert!(refused >= 3, "only {refused} of the failing syncs hit an append");
}

#[test]
fn a_failed_write_is_told_and_the_next_append_goes_through() {
    let mut told = 0;
    // The first eight are the opening of the shared memory file, in another thread.
    for at in [9, 10, 11, 13, 16, 20] {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let dir = parent.path().join("state");
        check(&dir, &run(&dir, 1, &[], None), "made");
        let inject = format!("inject=pwrite64:error=EIO:when={at}");
        let said = run(&dir, 12, &["-e", "trace=pwrite64", "-e", &inject], None);
        let refused =
            said.refused.iter().filter(|line| line.starts_with("refused") && line.contains("input/output")).count();
        told += usize::from(refused > 0 && said.acks_after_refusal > 0);
        check(&dir, &said, &format!("write {at} failed"));
    }
    assert!(told >= 2, "only {told} of the failing writes hit an append");
}

#[test]
fn a_shadow_log_that_cannot_be_synced_costs_no_acknowledgement() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let dir = parent.path().join("state");
    let inject = "inject=fdatasync:error=EIO:when=1";
    // Long enough for the companion thread's second to pass while appends go on.
    let said = run(&dir, 6_000, &["-e", "trace=fdatasync", "-e", inject], None);
    assert_eq!((said.acks.len(), said.refused.len()), (6_000, 0));
    let report = check(&dir, &said, "the shadow log's sync failed");
    assert_eq!((report.repaired, report.replayed), (None, 0));
    // Without the database the shadow log alone must give everything back.
    std::fs::remove_file(dir.join("state.db")).expect("removed");
    let dir = StateDir::open_or_create(&dir).expect("the directory opens");
    let (store, _) = open(&dir);
    assert_eq!(store.head().expect("head").last_seq, 6_000);
}

#[test]
fn killed_at_every_step_of_a_repair() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let damaged = parent.path().join("damaged");
    let said = run(&damaged, 30, &[], None);
    std::fs::write(damaged.join("state.db"), vec![0x5a; 8_192]).expect("overwritten");
    let mut killed = 0;
    for at in 1..60 {
        let dir = parent.path().join(format!("state-{at}"));
        image(&damaged, &dir);
        let inject = format!("inject=fsync,rename,unlink:signal=SIGKILL:when={at}");
        let first = run(&dir, 0, &["-e", "trace=fsync,rename,unlink", "-e", &inject], None);
        let state = StateDir::open_or_create(&dir).expect("the directory opens");
        let (store, report) = open(&state);
        assert_eq!(report.lost_after, None, "killed at step {at}");
        let events = store.events(0, usize::MAX).expect("events");
        assert_eq!(events.len(), said.acks.len(), "killed at step {at}");
        assert_eq!(events[29].hash.to_string(), said.acks[29].1, "killed at step {at}");
        if first.ended {
            break;
        }
        killed += 1;
    }
    assert!(killed >= 8, "only {killed} steps");
}
