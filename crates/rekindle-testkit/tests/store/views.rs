//! Reading beside a writer: views see what is committed, in other processes too, with and without a coordinator.

use rekindle_engine::store::{Batch, Error, Read, SqliteReader, Store, Table};
use rekindle_testkit::contract::store::{event, events_only, line, lines_only, row};

use crate::bed::{image, open, state};

#[test]
fn a_view_follows_a_living_writer() {
    let (_parent, dir) = state();
    let (store, _) = open(&dir);
    let view = SqliteReader::open(&dir).expect("opens beside the writer");
    for n in 0..50 {
        let told = store
            .append(Batch { rows: vec![row(Table::Task, "r", "T", n, "{}")], ..events_only(vec![event(n)]) })
            .expect("append");
        assert_eq!(view.head().expect("head"), told);
        assert_eq!(view.rows(Table::Task, None).expect("rows").len(), 1);
    }
    assert!(view.verify(0).expect("verify").ok());
}

#[test]
fn a_view_works_without_a_coordinator_and_after_a_kill() {
    let (parent, dir) = state();
    let Err(error) = SqliteReader::open(&dir) else { panic!("there is no store yet") };
    assert!(matches!(error, Error::Gone(_)), "{error}");
    assert!(!dir.database().exists(), "looking makes nothing");
    let (store, _) = open(&dir);
    store.append(events_only(vec![event(1), event(2)])).expect("append");
    let killed = parent.path().join("killed");
    image(dir.path(), &killed);
    drop(store);
    for path in [dir.path(), &killed] {
        let dir = rekindle_engine::state_dir::StateDir::open(path).expect("there");
        let view = SqliteReader::open(&dir).expect("opens without a writer");
        assert_eq!(view.head().expect("head").last_seq, 2);
        drop(view);
        let (store, report) = open(&dir);
        assert_eq!((report.repaired, store.head().expect("head").last_seq), (None, 2), "looking changed nothing");
    }
}

#[test]
fn a_view_sees_the_repaired_store_not_the_old_file() {
    let (_parent, dir) = state();
    let (store, _) = open(&dir);
    store.append(events_only(vec![event(1)])).expect("append");
    let view = SqliteReader::open(&dir).expect("opens");
    assert_eq!(view.head().expect("head").last_seq, 1);
    std::fs::remove_file(dir.database()).expect("removed");
    assert!(view.head().is_err(), "a view of a removed store says so");
    drop(store);
    let (store, report) = open(&dir);
    assert!(report.repaired.is_some());
    store.append(events_only(vec![event(2)])).expect("append");
    assert_eq!(view.head().expect("head").last_seq, 2);
}

#[test]
fn slow_views_do_not_hold_up_the_writer() {
    let (_parent, dir) = state();
    let (store, _) = open(&dir);
    let lines: Vec<_> = (0..5_000).map(|n| line("a", 1, n, &format!("line {n} of a long log"))).collect();
    store.append(lines_only(lines)).expect("append");
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let view = SqliteReader::open(&dir).expect("opens");
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    assert_eq!(view.log_search("of a long", None, 10_000).expect("search").len(), 5_000);
                }
            });
        }
        for n in 0..200 {
            store.append(events_only(vec![event(n)])).expect("append");
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(store.head().expect("head").last_seq, 200);
}
