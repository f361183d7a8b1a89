//! Damaged files: single flipped bits and cut ends, in the database, its WAL, the shadow log and backups. Whatever
//! opens afterwards is right as far as it claims to be; the rest is refused.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{
    Error, OpenReport, Options, Read, Row, SpoolGap, SpoolOffset, SqliteStore, Store, StoredEvent, StoredLine, Table,
};
use rekindle_testkit::contract::store::{event, line, offset, row};
use tempfile::TempDir;

use crate::bed::{Random, fast_dir, image, knob, open, state};

/// What a store holds.
#[derive(Debug, PartialEq, Eq)]
struct Content {
    events: Vec<StoredEvent>,
    lines: Vec<StoredLine>,
    offsets: Vec<SpoolOffset>,
    rows: Vec<Row>,
}

fn content(store: &dyn Read) -> Result<Content, Error> {
    let mut rows = Vec::new();
    for table in Table::ALL {
        rows.extend(store.rows(table, None)?);
    }
    Ok(Content {
        events: store.events(0, usize::MAX)?,
        lines: store.log_since(None, 0, usize::MAX)?,
        offsets: store.offsets()?,
        rows,
    })
}

/// A directory as a killed coordinator leaves it, and what it holds.
struct Image {
    _parent: TempDir,
    path: PathBuf,
    truth: Content,
    snapshots: BTreeMap<u64, Vec<u8>>,
}

/// Appends one step of a run: an event or three, lines, rows, now and then a snapshot.
fn step(store: &dyn Store, n: u64, snapshots: &mut BTreeMap<u64, Vec<u8>>) {
    let start = store.offset(n % 3, rekindle_engine::store::Stream::Out).expect("offset");
    let texts: Vec<String> = (0..4)
        .map(|k| format!("step {n} line {k} {}", "output ".repeat(usize::try_from(n % 9).expect("small"))))
        .collect();
    let mut at = start;
    let mut lines = Vec::new();
    for text in &texts {
        lines.push(line(&format!("agent-{}", n % 3), n % 3, at, text));
        at += text.len() as u64 + 1;
    }
    let state = format!("state after step {n} ").repeat(40).into_bytes();
    let batch = rekindle_engine::store::Batch {
        expect_last_seq: None,
        events: (0..1 + n % 3).map(|k| event(n * 10 + k)).collect(),
        lines,
        offsets: vec![offset(n % 3, at)],
        rows: vec![row(Table::Task, "run-1", &format!("T{}", n % 20), n % 20, &format!("{{\"step\":{n}}}"))],
        snapshot: n.is_multiple_of(10).then(|| state.clone()),
    };
    let keep = batch.snapshot.is_some();
    let told = store.append(batch).expect("append");
    if keep {
        snapshots.insert(told.last_seq, state);
    }
}

/// `checkpointed` has most in the database file and a backup beside it; otherwise nearly all is still in the WAL.
fn make(checkpointed: bool) -> Image {
    let (parent, dir) = state();
    let mut snapshots = BTreeMap::new();
    let mut from = 0;
    if checkpointed {
        let (store, _) = open(&dir);
        (0..60).for_each(|n| step(&store, n, &mut snapshots));
        store.backup(1).expect("backup");
        (60..90).for_each(|n| step(&store, n, &mut snapshots));
        from = 90;
    }
    let (store, _) = open(&dir);
    (from..from + 40).for_each(|n| step(&store, n, &mut snapshots));
    let truth = content(&store).expect("content");
    let path = parent.path().join("image");
    image(dir.path(), &path);
    assert!(path.join("state.db-wal").metadata().expect("a WAL").len() > 4096, "the image has a WAL");
    drop(store);
    Image { _parent: parent, path, truth, snapshots }
}

/// What came of one damaged image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Harmless,
    Replayed,
    Repaired,
    Refused,
}

/// Damages a copy of the image, opens it and compares. Panics when anything wrong is passed on.
fn trial(image_of: &Image, what: &str, damage: impl FnOnce(&Path)) -> Outcome {
    let parent = fast_dir();
    let path = parent.path().join("state");
    image(&image_of.path, &path);
    damage(&path);
    let dir = StateDir::open_or_create(&path).expect("the directory opens");
    let (store, report) = match SqliteStore::open(&dir, Options::default()) {
        Ok(opened) => opened,
        Err(Error::Database(why)) => {
            panic!("{what}: damage was taken for a mistake of the program: {why}")
        }
        Err(_) => return Outcome::Refused,
    };
    compare(image_of, &store, &report, what);
    // What was opened can be gone on with, and is then as sound as any other.
    step(&store, 1_000, &mut BTreeMap::new());
    assert!(store.verify(0).expect("verify").ok(), "{what}: not sound after going on");
    drop(store);
    let (_, again) = open(&dir);
    assert_eq!(again.repaired, None, "{what}: repaired twice");
    match report {
        OpenReport { repaired: Some(_), .. } => Outcome::Repaired,
        OpenReport { replayed, .. } if replayed > 0 => Outcome::Replayed,
        _ => Outcome::Harmless,
    }
}

fn compare(image_of: &Image, store: &SqliteStore, report: &OpenReport, what: &str) {
    let truth = &image_of.truth;
    let found = content(store).unwrap_or_else(|e| panic!("{what}: opened, but not readable: {e}"));
    assert_eq!(found.events, truth.events, "{what}: one good copy of every event was left, {report:?}");
    assert_eq!(found.lines, truth.lines[..found.lines.len()], "{what}: lines are not as written");
    let gaps: &[SpoolGap] = &report.gaps;
    for missing in &truth.lines[found.lines.len()..] {
        let at = &missing.line;
        let in_gap = gaps
            .iter()
            .any(|g| (g.attempt, g.stream) == (at.attempt, at.stream) && (g.from..g.to).contains(&at.offset));
        let stored = store.offset(at.attempt, at.stream).expect("offset");
        assert!(in_gap || at.offset >= stored, "{what}: line {} is lost and nobody is told", missing.seq);
    }
    for there in &found.lines {
        let at = &there.line;
        let in_gap = gaps
            .iter()
            .any(|g| (g.attempt, g.stream) == (at.attempt, at.stream) && (g.from..g.to).contains(&at.offset));
        let stored = store.offset(at.attempt, at.stream).expect("offset");
        assert!(!in_gap && at.offset < stored, "{what}: line {} would be read a second time", there.seq);
    }
    assert!(report.rows_stale || found.rows == truth.rows, "{what}: derived rows are wrong and nobody is told");
    if let Some(snapshot) = store.latest_snapshot().expect("snapshot") {
        assert_eq!(image_of.snapshots.get(&snapshot.seq), Some(&snapshot.state), "{what}: a wrong snapshot");
    }
}

fn flip(path: &Path, bit: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).expect("opened");
    let mut byte = [0];
    file.read_exact_at(&mut byte, bit / 8).expect("read");
    byte[0] ^= 1 << (bit % 8);
    file.write_all_at(&byte, bit / 8).expect("written");
}

/// The files of an image that hold content.
fn targets(image_of: &Image) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        ["state.db", "state.db-wal", "shadow/000001.jsonl"].iter().map(PathBuf::from).collect();
    if let Ok(backups) = image_of.path.join("backups").read_dir() {
        found.extend(backups.map(|e| Path::new("backups").join(e.expect("entry").file_name())));
    }
    found
}

#[test]
fn flipped_bits_are_never_passed_on() {
    let seed = knob("REKINDLE_DAMAGE_SEED", 1);
    let trials = knob("REKINDLE_DAMAGE_TRIALS", 300);
    let images = [make(false), make(true)];
    let mut random = Random(seed);
    let mut outcomes: BTreeMap<(PathBuf, Outcome), u64> = BTreeMap::new();
    for n in 0..trials {
        let image_of = &images[usize::try_from(n % 2).expect("small")];
        let targets = targets(image_of);
        let target = &targets[usize::try_from(random.below(targets.len() as u64)).expect("small")];
        let bits = image_of.path.join(target).metadata().expect("there").len() * 8;
        let bit = random.below(bits);
        let what = format!("seed {seed} trial {n}: bit {bit} of {}", target.display());
        let outcome = trial(image_of, &what, |path| flip(&path.join(target), bit));
        let kind = if target.starts_with("backups") { PathBuf::from("backup") } else { target.clone() };
        *outcomes.entry((kind, outcome)).or_default() += 1;
    }
    let of = |wanted: Outcome| -> u64 { outcomes.iter().filter(|((_, o), _)| *o == wanted).map(|(_, n)| n).sum() };
    assert!(of(Outcome::Refused) * 20 <= trials, "too much is refused with a good copy beside it: {outcomes:?}");
    assert!(of(Outcome::Repaired) > 0 && of(Outcome::Replayed) > 0, "damage was not found: {outcomes:?}");
}

#[test]
fn cut_files_are_never_passed_on() {
    let step_pages = knob("REKINDLE_CUT_STEP", 3);
    for (name, image_of) in [("wal", make(false)), ("checkpointed", make(true))] {
        for target in targets(&image_of) {
            let len = image_of.path.join(&target).metadata().expect("there").len();
            let mut pages = 0;
            while pages * 4096 < len {
                let keep = pages * 4096;
                let what = format!("{name}: {} cut to {keep} of {len} bytes", target.display());
                let outcome = trial(&image_of, &what, |path| {
                    let file = OpenOptions::new().write(true).open(path.join(&target)).expect("opened");
                    file.set_len(keep).expect("cut");
                });
                assert_ne!(outcome, Outcome::Refused, "{what}: refused with a good copy beside it");
                pages += step_pages;
            }
        }
    }
}

#[test]
fn every_bit_of_the_header_is_safe() {
    let image_of = make(true);
    let step = knob("REKINDLE_HEADER_STEP", 7);
    let mut refused = 0;
    for bit in (0..100 * 8).step_by(usize::try_from(step).expect("small")) {
        let what = format!("bit {bit} of the header");
        let outcome = trial(&image_of, &what, |path| flip(&path.join("state.db"), bit));
        refused += u64::from(outcome == Outcome::Refused);
    }
    assert!(refused * 5 <= 800 / step, "{refused} header bits refused");
}

#[test]
fn a_damaged_database_is_restored_from_backup_and_shadow_log() {
    let image_of = make(true);
    let parent = tempfile::tempdir().expect("a temporary directory");
    let path = parent.path().join("state");
    image(&image_of.path, &path);
    std::fs::write(path.join("state.db"), vec![0xa5; 40_000]).expect("overwritten");
    let dir = StateDir::open_or_create(&path).expect("the directory opens");
    let (store, report) = open(&dir);
    let repaired = report.repaired.clone().expect("repaired");
    assert!(repaired.restored_from.is_some_and(|p| p.starts_with(dir.backups())), "the backup was used");
    assert!(repaired.replayed > 0 && report.lost_after.is_none());
    let kept = std::fs::read(repaired.kept_aside.join("state.db")).expect("kept");
    assert!(kept == vec![0xa5; 40_000], "the damaged file is kept as it was found");
    compare(&image_of, &store, &report, "overwritten");
    assert!(report.rows_stale, "rows of the backup are behind");
    store.replace_rows(image_of.truth.rows.clone()).expect("rebuilt");
    drop(store);
    let (store, report) = open(&dir);
    assert!(!report.rows_stale && content(&store).expect("content").rows == image_of.truth.rows);
}

#[test]
fn without_any_copy_what_the_chain_proves_is_salvaged() {
    let image_of = make(false);
    let parent = tempfile::tempdir().expect("a temporary directory");
    let path = parent.path().join("state");
    image(&image_of.path, &path);
    std::fs::remove_dir_all(path.join("shadow")).expect("removed");
    let dir = StateDir::open_or_create(&path).expect("the directory opens");
    drop(open(&dir));
    std::fs::remove_dir_all(path.join("shadow")).expect("removed");
    // An event in the middle is changed in the file; its text is known.
    let bytes = std::fs::read(path.join("state.db")).expect("read");
    let needle = b"{\"n\":201}";
    // Pages keep remains of what was moved elsewhere, so every place where it stands is changed.
    let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(needle)).collect();
    assert!(!places.is_empty(), "the event is in the file");
    places.iter().for_each(|at| flip(&path.join("state.db"), (*at as u64 + 6) * 8));
    let (store, report) = open(&dir);
    assert!(report.repaired.is_some());
    let kept = store.events(0, usize::MAX).expect("events");
    assert_eq!(kept, image_of.truth.events[..kept.len()], "what is left is the beginning of the truth");
    assert_eq!(report.lost_after, Some(kept.len() as u64), "and that something is lost is said");
    assert!(!kept.is_empty() && kept.len() < image_of.truth.events.len());
}

#[test]
fn without_anything_good_it_is_refused_and_left_alone() {
    let (_parent, dir) = state();
    for content in [&b"\x89PNG\r\n\x1a\n and so on"[..], &[], &[0; 8192]] {
        std::fs::write(dir.database(), content).expect("written");
        let Err(error) = SqliteStore::open(&dir, Options::default()) else { panic!("opened {content:?}") };
        let text = error.to_string();
        assert!(matches!(error, Error::Unrepairable { .. } | Error::Foreign { .. }), "{text}");
        assert!(text.contains("state.db"), "{text}");
        assert_eq!(std::fs::read(dir.database()).expect("read"), content, "the file is left as it was");
    }
}
