//! A disk that is full: told, nothing half written, and the same store goes on when there is space again.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{Batch, Error, Options, Read, SqliteStore, Store};
use rekindle_testkit::contract::store::{event, events_only, line, lines_only};

/// A small disk, unmounted with the test.
struct SmallDisk {
    _parent: tempfile::TempDir,
    path: PathBuf,
}

impl SmallDisk {
    fn new(size: &str) -> SmallDisk {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let path = parent.path().join("disk");
        std::fs::create_dir(&path).expect("made");
        let options = format!("size={size},mode=0700");
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(&path).status();
        assert!(
            status.is_ok_and(|s| s.success()),
            "mounting a small tmpfs is not permitted here, and this test needs it"
        );
        SmallDisk { _parent: parent, path }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.path).status());
    }
}

fn ballast(dir: &Path, bytes: usize) -> PathBuf {
    let path = dir.join("ballast");
    std::fs::write(&path, vec![1; bytes]).expect("written");
    path
}

/// Takes all space but so much.
fn all_but(dir: &Path, left: u64) -> PathBuf {
    let path = dir.join("ballast");
    let mut file = std::fs::File::create(&path).expect("created");
    while file.write_all(&[1; 4096]).is_ok() {}
    let len = file.metadata().expect("there").len();
    file.set_len(len - left).expect("cut");
    path
}

#[test]
fn a_full_disk_is_told_and_the_store_goes_on_when_there_is_space() {
    let disk = SmallDisk::new("1m");
    let dir = StateDir::open_or_create(&disk.path.join("state")).expect("a state directory");
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("opens");
    let ballast = ballast(&disk.path, 200_000);
    let mut acknowledged = 0;
    let error = loop {
        match store.append(events_only((0..20).map(event).collect())) {
            Ok(told) => acknowledged = told.last_seq,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Full(_)), "{error}");
    assert!(acknowledged > 0, "something fits");
    assert_eq!(store.head().expect("head").last_seq, acknowledged, "nothing of a refused batch is there");
    assert!(matches!(store.append(lines_only(vec![line("a", 1, 0, &"x".repeat(400_000))])), Err(Error::Full(_))));
    assert_eq!(store.log_tail(None, 5).expect("tail"), []);
    std::fs::remove_file(ballast).expect("removed");
    let told = store.append(events_only(vec![event(7)])).expect("the same store goes on");
    assert_eq!(told.last_seq, acknowledged + 1);
    assert!(store.verify(0).expect("verify").ok());
    drop(store);
    let (store, report) = SqliteStore::open(&dir, Options::default()).expect("opens again");
    assert_eq!((report.repaired, store.head().expect("head")), (None, told));
}

#[test]
fn one_batch_that_is_too_much_for_the_disk_does_not_fail_the_others() {
    let disk = SmallDisk::new("2m");
    let dir = StateDir::open_or_create(&disk.path.join("state")).expect("a state directory");
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("opens");
    let store = &store;
    let answers: Vec<_> = std::thread::scope(|scope| {
        let append = |n: usize| {
            let snapshot = n.is_multiple_of(8).then(|| vec![1; 3_000_000]);
            move || (snapshot.is_some(), store.append(Batch { snapshot, ..events_only(vec![event(1)]) }))
        };
        let threads: Vec<_> = (0..32).map(|n| scope.spawn(append(n))).collect();
        threads.into_iter().map(|t| t.join().expect("no panic")).collect()
    });
    for (large, answer) in &answers {
        assert_eq!(answer.is_err(), *large, "{answer:?}");
    }
    assert_eq!(store.head().expect("head").last_seq, 28);
}

#[test]
fn no_space_for_a_backup_or_a_repair_changes_nothing() {
    let disk = SmallDisk::new("1m");
    let dir = StateDir::open_or_create(&disk.path.join("state")).expect("a state directory");
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("opens");
    store.append(events_only((0..100).map(event).collect())).expect("append");
    let ballast = all_but(&disk.path, 64 * 1024);
    let refused = store.backup_if_due(1);
    assert!(matches!(refused, Err(Error::Full(_))), "{refused:?}");
    assert_eq!(dir.backups().read_dir().expect("listed").count(), 0, "no half backup is left");
    std::fs::remove_file(ballast).expect("removed");
    assert!(store.backup_if_due(2).expect("backup").is_some());
}
