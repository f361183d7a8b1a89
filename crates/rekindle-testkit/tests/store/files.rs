//! Files that vanish, hang in the wrong place or are locked by others, while the store is in use.

use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{Error, Options, Read, SqliteReader, SqliteStore, Store};
use rekindle_testkit::contract::store::{event, events_only};

use crate::bed::{open, state};

fn fill(store: &dyn Store, n: u64) -> u64 {
    (0..n).map(|n| store.append(events_only(vec![event(n)])).expect("append").last_seq).last().expect("some")
}

#[test]
fn a_removed_wal_or_database_is_noticed_and_nothing_acknowledged_is_lost() {
    for name in ["state.db-wal", "state.db", "state.db-shm"] {
        let (_parent, dir) = state();
        let (store, _) = open(&dir);
        let last = fill(&store, 20);
        std::fs::remove_file(dir.path().join(name)).expect("removed");
        let answer = store.append(events_only(vec![event(99)]));
        if name != "state.db-shm" {
            assert!(matches!(answer, Err(Error::Gone(_))), "{name}: {answer:?}");
            assert!(store.append(events_only(vec![event(99)])).is_err(), "{name}: and it stays refused");
            assert!(store.head().is_err(), "{name}: nor is anything read from files that are gone");
        }
        drop(store);
        let (store, _) = open(&dir);
        assert!(store.head().expect("head").last_seq >= last, "{name}: every acknowledged event is back");
        assert!(store.verify(0).expect("verify").ok());
    }
}

#[test]
fn a_replaced_database_is_noticed() {
    let (_parent, dir) = state();
    let (store, _) = open(&dir);
    fill(&store, 3);
    std::fs::rename(dir.database(), dir.path().join("elsewhere")).expect("moved");
    std::fs::write(dir.database(), b"something else").expect("written");
    assert!(matches!(store.append(events_only(vec![event(9)])), Err(Error::Gone(_))));
    drop(store);
    let (store, report) = open(&dir);
    assert!(report.repaired.is_some());
    assert_eq!(store.head().expect("head").last_seq, 3);
}

#[test]
fn a_state_directory_that_is_gone_is_noticed() {
    let (_parent, dir) = state();
    let (store, _) = open(&dir);
    fill(&store, 3);
    std::fs::remove_dir_all(dir.path()).expect("removed");
    assert!(matches!(store.append(events_only(vec![event(9)])), Err(Error::Gone(_))));
    assert!(!dir.path().exists(), "and nothing new is put in its place");
}

#[test]
fn a_missing_database_beside_its_copies_is_never_a_new_empty_one() {
    let (_parent, dir) = state();
    let (store, report) = open(&dir);
    assert!(report.created);
    let last = fill(&store, 5);
    drop(store);
    std::fs::remove_file(dir.database()).expect("removed");
    let (store, report) = open(&dir);
    assert!(!report.created && report.repaired.is_some());
    assert_eq!(store.head().expect("head").last_seq, last);
}

#[test]
fn backups_are_taken_when_due_verified_and_only_five_are_kept() {
    let (_parent, dir) = state();
    let (store, _) = open(&dir);
    let hour = 3_600_000;
    assert!(store.backup_if_due(0).expect("backup").is_some(), "the first is due");
    assert_eq!(store.backup_if_due(hour - 1).expect("backup"), None);
    for n in 1..=6 {
        fill(&store, 5);
        let path = store.backup_if_due(n * hour).expect("backup").expect("due");
        assert!(path.exists());
    }
    assert!(store.backup_if_due(hour).expect("backup").is_some(), "a clock set back does not end backups");
    assert_eq!(dir.backups().read_dir().expect("listed").count(), 5);
    drop(store);
    // Any of them, put in place by hand, opens and is brought forward by the shadow log.
    for entry in dir.backups().read_dir().expect("listed") {
        std::fs::copy(entry.expect("entry").path(), dir.database()).expect("copied");
        let (store, report) = open(&dir);
        assert_eq!(report.repaired, None);
        assert_eq!(store.head().expect("head").last_seq, 30);
    }
}

#[test]
fn a_newer_schema_is_refused_by_name_and_left_alone() {
    let (_parent, dir) = state();
    drop(open(&dir));
    let before = {
        // `user_version` stands at byte 60 of the header.
        let mut bytes = std::fs::read(dir.database()).expect("read");
        bytes[60..64].copy_from_slice(&9_u32.to_be_bytes());
        std::fs::write(dir.database(), &bytes).expect("written");
        bytes
    };
    for error in [
        SqliteStore::open(&dir, Options::default()).err().expect("refused"),
        SqliteReader::open(&dir).err().expect("refused"),
    ] {
        assert!(matches!(error, Error::Newer { found: 9, known: 3, .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("schema 9") && text.contains("up to 3"), "{text}");
    }
    assert_eq!(std::fs::read(dir.database()).expect("read"), before);
}

#[test]
fn two_histories_are_refused() {
    let (_parent, dir) = state();
    let (store, _) = open(&dir);
    fill(&store, 5);
    drop(store);
    let (_other_parent, other) = state();
    let (store, _) = open(&other);
    store.append(events_only((100..110).map(event).collect())).expect("append");
    drop(store);
    std::fs::copy(other.database(), dir.database()).expect("copied");
    let error = SqliteStore::open(&dir, Options::default()).err().expect("refused");
    assert!(matches!(error, Error::Diverged { seq: 5 }), "{error}");
}

#[test]
fn an_unreadable_file_is_not_called_damage() {
    let (_parent, dir) = state();
    let (store, _) = open(&dir);
    fill(&store, 5);
    drop(store);
    // Root ignores permissions, so the file is made unreadable by what even root cannot open: a directory's place.
    let aside = dir.path().join("aside");
    std::fs::rename(dir.database(), &aside).expect("moved");
    std::fs::create_dir(dir.database()).expect("made");
    let error = SqliteStore::open(&dir, Options::default()).err().expect("refused");
    assert!(matches!(error, Error::Foreign { .. }), "{error}");
    std::fs::remove_dir(dir.database()).expect("removed");
    std::fs::rename(&aside, dir.database()).expect("moved back");
    let (store, report) = open(&dir);
    assert_eq!((report.repaired, store.head().expect("head").last_seq), (None, 5));
    let same = StateDir::open(dir.path()).expect("the directory is as it was");
    assert_eq!(same.path(), dir.path());
}
