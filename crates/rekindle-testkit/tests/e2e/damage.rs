//! A database that was damaged between two runs: the next run repairs it or refuses with a reason. What was complete stays
//! complete, what was told stays told, and nothing is done twice.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::rig::Rig;
use crate::tally;

const PLAN: &str = "# Damage\n\n### T1: early\n- artifacts: made\n- accept: `test -s made`\n\nWork.\n\n### T2: late\n- blocked by: T1\n\nWork.\n";

const AGENT: &str = "echo $REKINDLE_TASK >> ran\necho \"$REKINDLE_TASK works\"\n[ $REKINDLE_TASK = T1 ] && echo yes > made\n\
    [ $REKINDLE_TASK = T2 ] && { touch here; $FAKE wait go; }\nrekindle task done $REKINDLE_TASK --result \"by $REKINDLE_TASK\"\n";

/// A paused run with one task behind it, and a copy of its state to damage.
struct Bed {
    rig: Rig,
    copy: PathBuf,
    before: Vec<Value>,
}

impl Bed {
    fn new() -> Self {
        let rig = Rig::new(PLAN, AGENT);
        let run = rig.run();
        rig.await_file("here");
        rig.ok(&["pause"]);
        assert_eq!(run.end().code, Some(4), "{}", rig.story());
        rig.touch("go");
        let before = rig.events();
        let copy = rig.outside("copy");
        duplicate(&rig.state(), &copy);
        Self { rig, copy, before }
    }

    /// Puts the copy in place, damages it, runs, and judges. Says why where the run was refused.
    fn case(&self, what: &str, damage: impl FnOnce(&Path)) -> Option<String> {
        std::fs::remove_dir_all(self.rig.state()).expect("state");
        duplicate(&self.copy, &self.rig.state());
        self.rig.write("ran", "");
        damage(&self.rig.state());
        let ended = self.rig.run().end();
        let ran = self.rig.lines("ran");
        assert!(!ran.contains(&"T1".to_owned()), "{what}: work was done twice\n{ended:?}\n{}", self.rig.story());
        if ended.code != Some(0) {
            assert!(matches!(ended.code, Some(1 | 2)), "{what}: {ended:?}");
            assert!(ended.err.contains("error: "), "{what}: {ended:?}");
            assert!(!ended.err.contains("panicked"), "{what}: {ended:?}");
            self.rig.assert_nothing_left();
            tally::add("damage", &[("refused", 1)]);
            return Some(format!("{what}: {}", ended.err));
        }
        let after = self.rig.events();
        assert!(after.len() > self.before.len(), "{what}: events are missing");
        assert_eq!(after[..self.before.len()], self.before[..], "{what}: history has changed");
        let task = self.rig.task("T1");
        // Looked at again, perhaps, for it was completed just before; done once.
        assert_eq!(
            (&task["state"], &task["attempts"], &task["result"]),
            (&"complete".into(), &1.into(), &"by T1".into()),
            "{what}"
        );
        let audited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.rig.audit()));
        assert!(audited.is_ok(), "{what}: see above; the run said {ended:?}");
        tally::add("damage", &[("repaired", 1)]);
        None
    }
}

fn duplicate(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp");
    assert!(done.success());
}

/// A small generator, so that a case can be repeated by its number.
fn draw(seed: u64, below: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    for _ in 0..3 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x % below.max(1)
}

fn flip(file: &Path, seed: u64) {
    let mut bytes = std::fs::read(file).expect("file to damage");
    let at = usize::try_from(draw(seed, bytes.len() as u64)).expect("place");
    bytes[at] ^= 1 << draw(seed + 1, 8);
    std::fs::write(file, bytes).expect("damaged");
}

fn cut(file: &Path, seed: u64) {
    let length = file.metadata().expect("file to cut").len();
    let file = std::fs::OpenOptions::new().write(true).open(file).expect("file to cut");
    file.set_len(draw(seed, length)).expect("cut");
}

/// So many cases, or many more when all are asked for.
fn seeds(usually: u64) -> u64 {
    if std::env::var_os(crate::crash_points::ALL).is_some() { 20 * usually } else { usually }
}

/// The files of a store that exist and are not empty.
fn files(state: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["state.db", "state.db-wal"].iter().map(|name| state.join(name)).collect();
    found.extend(std::fs::read_dir(state.join("shadow")).expect("shadow log").flatten().map(|entry| entry.path()));
    found.retain(|path| path.metadata().is_ok_and(|found| found.is_file() && found.len() > 0));
    found.sort();
    found
}

#[test]
fn flipped_bits_are_repaired_or_refused() {
    let bed = Bed::new();
    assert_eq!(bed.case("nothing", |_| {}), None, "an undamaged state must go on");
    let mut refused = Vec::new();
    for seed in 0..seeds(16) {
        refused.extend(bed.case(&format!("bit flip {seed}"), |state| {
            let files = files(state);
            flip(&files[usize::try_from(seed).expect("small") % files.len()], seed);
        }));
    }
    assert!(refused.is_empty(), "one copy was good in every case: {refused:?}");
}

#[test]
fn truncated_files_are_repaired_or_refused() {
    let bed = Bed::new();
    let mut refused = Vec::new();
    for seed in 0..seeds(12) {
        refused.extend(bed.case(&format!("cut {seed}"), |state| {
            let files = files(state);
            cut(&files[usize::try_from(seed).expect("small") % files.len()], seed);
        }));
    }
    assert!(refused.is_empty(), "one copy was good in every case: {refused:?}");
}

#[test]
fn missing_and_foreign_files_are_repaired_or_refused() {
    let bed = Bed::new();
    let all_of_it = |state: &Path| {
        for name in ["state.db", "state.db-wal", "state.db-shm"] {
            let _not_there = std::fs::remove_file(state.join(name));
        }
    };
    assert_eq!(bed.case("database removed", all_of_it), None, "the shadow log has everything");
    bed.case("only the database removed", |state| std::fs::remove_file(state.join("state.db")).expect("removed"));
    bed.case("shadow log removed", |state| std::fs::remove_dir_all(state.join("shadow")).expect("removed"));
    bed.case("database empty", |state| std::fs::write(state.join("state.db"), "").expect("written"));
    let picture = b"\x89PNG\r\n\x1a\n and so on";
    bed.case("database is a picture", |state| std::fs::write(state.join("state.db"), picture).expect("written"));
    let kept = Command::new("grep").args(["-rlaF", "PNG"]).arg(bed.rig.state()).output().expect("grep").stdout;
    assert!(!kept.is_empty(), "a file that is not ours was deleted");
}

#[test]
fn a_finished_run_whose_database_is_damaged_is_not_begun_again() {
    let bed = Bed::new();
    bed.case("nothing", |_| {});
    let before = bed.rig.events();
    bed.rig.write("ran", "");
    std::fs::write(bed.rig.state().join("state.db"), "").expect("written");
    let _not_there = std::fs::remove_file(bed.rig.state().join("state.db-wal"));
    let ended = bed.rig.run().end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.err.contains("repaired"), "{ended:?}");
    assert!(bed.rig.lines("ran").is_empty(), "a finished plan was run again: {}", bed.rig.story());
    assert_eq!(bed.rig.events()[..before.len()], before[..]);
    bed.rig.audit();
}
