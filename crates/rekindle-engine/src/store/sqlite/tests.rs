//! What only the inside of the engine can show: migrations, the text index against its definition, foreign locks,
//! interrupted repairs, pragmas.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::*;
use crate::store::search::Query;
use crate::store::{Hash, LogLine, NewEvent, Read, SpoolOffset, Table};

fn state() -> (tempfile::TempDir, StateDir) {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let dir = StateDir::open_or_create(&parent.path().join("state")).expect("a state directory");
    (parent, dir)
}

fn event(n: u64) -> NewEvent {
    NewEvent {
        time_ms: 1,
        run: "r".into(),
        kind: "k".into(),
        agent: None,
        task: None,
        epoch: Some(n),
        details: "{}".into(),
    }
}

fn events(count: u64) -> Batch {
    Batch { events: (0..count).map(event).collect(), ..Batch::default() }
}

fn line(n: u64, text: &str) -> LogLine {
    LogLine {
        attempt: n % 3,
        agent: format!("agent-{}", n % 2),
        epoch: 1,
        stream: Stream::Out,
        time_ms: 1,
        offset: n,
        len: 1,
        text: text.into(),
        torn: false,
    }
}

/// Waits for a fact, with a bound.
fn until(what: &str, mut fact: impl FnMut() -> bool) {
    let started = Instant::now();
    while !fact() {
        assert!(started.elapsed() < Duration::from_secs(600), "{what} did not come about");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A second step for the schema, as a later version would have it.
const NEXT: &str = "CREATE TABLE later (x INTEGER) STRICT; INSERT INTO later VALUES (1);";

#[test]
fn an_older_schema_is_migrated_after_a_verified_backup() {
    let (_parent, dir) = state();
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("opens");
    store.append(events(5)).expect("append");
    drop(store);
    let both = [schema::MIGRATIONS, &[NEXT]].concat();
    let opened = open::open(&dir, Options { now_ms: 77, ..Options::default() }, &both).expect("migrates");
    assert_eq!(opened.report.migrated, Some((3, 4)));
    let x: i64 = opened.conn.query_row("SELECT x FROM later", [], |row| row.get(0)).expect("the new table");
    assert_eq!(x, 1);
    let kept = backup::list(&dir).expect("listed");
    assert_eq!(kept.iter().map(|k| (k.seq, k.time_ms)).collect::<Vec<_>>(), [(5, 77)]);
    assert_eq!(backup::verified_head(&kept[0].path, &both).expect("good"), 5);
    drop(opened);
    let again = open::open(&dir, Options::default(), &both).expect("opens");
    assert!(again.report.migrated.is_none() && again.report.repaired.is_none());
    drop(again);
    let Err(error) = SqliteStore::open(&dir, Options::default()) else { panic!("an older program opened it") };
    assert!(matches!(error, Error::Newer { found: 4, known: 3, .. }), "{error}");
}

#[test]
fn a_migration_that_fails_leaves_the_old_schema() {
    let (_parent, dir) = state();
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("opens");
    store.append(events(5)).expect("append");
    drop(store);
    let broken =
        [schema::MIGRATIONS, &["CREATE TABLE later (x INTEGER) STRICT; INSERT INTO nowhere VALUES (1);"]].concat();
    assert!(open::open(&dir, Options::default(), &broken).is_err());
    let (store, report) = SqliteStore::open(&dir, Options::default()).expect("opens as before");
    assert_eq!((report.repaired, report.migrated, store.head().expect("head").last_seq), (None, None, 5));
}

#[test]
fn every_setting_of_the_writer_is_as_wanted() {
    let (_parent, dir) = state();
    let opened = open::open(&dir, Options::default(), schema::MIGRATIONS).expect("opens");
    let wanted = [
        ("synchronous", 2),
        ("foreign_keys", 1),
        ("busy_timeout", 5_000),
        ("trusted_schema", 0),
        ("cell_size_check", 1),
        ("mmap_size", 0),
        ("wal_autocheckpoint", 0),
    ];
    for (name, value) in wanted {
        assert_eq!(connect::pragma(&opened.conn, name).expect("read"), value, "{name}");
    }
    let mode: String = opened.conn.query_row("PRAGMA journal_mode", [], |row| row.get(0)).expect("read");
    assert_eq!(mode, "wal");
    let reader = connect::reader(&dir.database()).expect("opens");
    assert!(reader.execute("DELETE FROM event", []).is_err(), "a reader cannot write");
}

/// Words whose cases and lengths are awkward for an index.
const WORDS: [&str; 12] =
    ["error", "ERROR", "src/main.rs", "größe", "GRÖSSE", "漢字", "a\0b", "\"q\"", "x", "İstanbul", "ß", "e\u{301}t"];

/// What is looked for among them.
const QUERIES: [&str; 15] = [
    "error", "Main.RS", "größe", "GRÖSSE", "漢字", "字e", "a\0b", "b x", "\"q\"", "İst", "i̇s", "ßx", "1", "e\u{301}",
    "rorx",
];

/// The answer by definition: look at every line.
fn by_definition(lines: &[LogLine], query: &str, agent: Option<&str>, limit: usize) -> Vec<u64> {
    let parsed = Query::new(query);
    let wanted = |l: &&LogLine| parsed.matches(&l.text) && agent.is_none_or(|a| a == l.agent);
    let all: Vec<u64> = lines.iter().filter(wanted).map(|l| l.offset).collect();
    all[all.len().saturating_sub(limit)..].to_vec()
}

fn check_searches(store: &SqliteStore, lines: &[LogLine], when: &str) {
    for query in QUERIES {
        for (agent, limit) in [(None, 10_000), (Some("agent-1"), 7)] {
            let found = store.log_search(query, agent, limit).expect("search");
            let found: Vec<u64> = found.iter().map(|l| l.line.offset).collect();
            assert_eq!(found, by_definition(lines, query, agent, limit), "{when}: {query:?} of {agent:?}");
        }
    }
}

#[test]
fn indexed_and_scanned_lines_answer_alike() {
    let (_parent, dir) = state();
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("opens");
    let text = |n: u64| {
        let pick = |k: u64| WORDS[usize::try_from((n * 7 + k * k + n / 5) % 12).expect("small")];
        format!("{n} {}{} {}", pick(1), pick(2), pick(3))
    };
    let lines: Vec<LogLine> = (0..1_500).map(|n| line(n, &text(n))).collect();
    for chunk in lines.chunks(100) {
        store.append(Batch { lines: chunk.to_vec(), ..Batch::default() }).expect("append");
    }
    check_searches(&store, &lines, "before or while indexing");
    until("the index", || store.pool.ask(|conn| read::meta(conn, text_index::INDEXED_UPTO)).expect("meta") == 1_500);
    check_searches(&store, &lines, "indexed");
    let sql = "SELECT count(*) FROM line_text WHERE line_text MATCH '\"err\"'";
    let asked = store.pool.ask(|conn| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(connect::fault));
    assert!(asked.expect("asked") > 0, "the index itself knows the lines");
}

#[test]
fn a_foreign_lock_is_waited_for_then_told_and_nothing_is_lost() {
    let (_parent, dir) = state();
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("opens");
    store.append(events(1)).expect("append");
    let foreign = Connection::open(dir.database()).expect("opens");
    foreign.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let answer = store.append(events(1));
    assert!(matches!(answer, Err(Error::Busy(_))), "{answer:?}");
    foreign.execute_batch("ROLLBACK").expect("unlocked");
    assert_eq!(store.append(events(1)).expect("goes on").last_seq, 2);
}

#[test]
fn a_damaged_snapshot_is_passed_over_for_an_older_one() {
    let (_parent, dir) = state();
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("opens");
    for n in 1..=3 {
        store.append(Batch { snapshot: Some(vec![n; 100]), ..events(1) }).expect("append");
    }
    let foreign = Connection::open(dir.database()).expect("opens");
    foreign.execute("UPDATE snapshot SET state = x'00' WHERE seq = 3", []).expect("changed");
    let found = store.latest_snapshot().expect("snapshot").expect("an older one");
    assert_eq!((found.seq, found.state), (2, vec![2; 100]));
    assert!(!store.verify(0).expect("verify").ok(), "and a verification says so");
}

#[test]
fn changed_content_is_an_error_on_reading_and_found_by_verify() {
    let changes = [
        "UPDATE event SET details = '{\"forged\":1}' WHERE seq = 2",
        "DELETE FROM event WHERE seq = 2",
        "INSERT INTO event SELECT 9, time_ms, run, kind, agent, task, epoch, details, hash FROM event WHERE seq = 1",
        "UPDATE line SET text = 'forged' WHERE seq = 1",
        "DELETE FROM line WHERE seq = 1",
        "UPDATE source SET agent = 'forged'",
        "UPDATE spool SET next = next + 1",
        "UPDATE task SET json = 'forged'",
        "UPDATE meta SET value = value + 1",
    ];
    for change in changes {
        let (_parent, dir) = state();
        let (store, _) = SqliteStore::open(&dir, Options::default()).expect("opens");
        let batch = Batch {
            lines: vec![line(0, "one"), line(0, "two")],
            offsets: vec![SpoolOffset { attempt: 0, stream: Stream::Out, next: 9 }],
            rows: vec![Row { table: Table::Task, run: "r".into(), key: "k".into(), order: 0, json: "{}".into() }],
            ..events(3)
        };
        store.append(batch).expect("append");
        until("the index", || store.pool.ask(|conn| read::meta(conn, text_index::INDEXED_UPTO)).expect("meta") == 2);
        assert!(store.verify(0).expect("verify").ok());
        drop(store);
        let foreign = Connection::open(dir.database()).expect("opens");
        assert!(foreign.execute(change, []).expect("changed") > 0, "{change}");
        drop(foreign);
        let view = SqliteReader::open(&dir).expect("opens");
        assert!(!view.verify(0).expect("verify").ok(), "{change}");
        let (store, report) = SqliteStore::open(&dir, Options::default()).expect("repaired");
        assert!(report.repaired.is_some(), "{change}");
        assert_eq!(store.head().expect("head").last_seq, 3, "{change}");
        assert!(store.verify(0).expect("verify").ok(), "{change}");
    }
}

#[test]
fn an_interrupted_exchange_is_finished_at_every_step() {
    for moved in 0..=2 {
        let (_parent, dir) = state();
        let (store, _) = SqliteStore::open(&dir, Options::default()).expect("opens");
        store.append(events(4)).expect("append");
        let good = store.backup(1).expect("backup");
        drop(store);
        std::fs::write(dir.database(), b"garbage").expect("written");
        std::fs::write(dir.path().join("state.db-wal"), b"garbage").expect("written");
        std::fs::copy(good, dir.path().join("repaired.db")).expect("copied");
        // As a crash leaves it: the complete new database waits, some of the old files are already aside.
        for name in ["state.db", "state.db-wal"].iter().take(moved) {
            std::fs::rename(dir.path().join(name), dir.path().join(format!("moved-{name}"))).expect("moved");
        }
        let (store, report) = SqliteStore::open(&dir, Options::default()).expect("finished");
        assert_eq!((report.repaired, store.head().expect("head").last_seq), (None, 4));
        assert!(!dir.path().join("repaired.db").exists());
    }
}

#[test]
fn rows_that_are_the_same_are_not_written() {
    let (_parent, dir) = state();
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("opens");
    let row = |n: u64| Row { table: Table::Task, run: "r".into(), key: format!("T{n}"), order: n, json: "{}".into() };
    store.append(Batch { rows: (0..50).map(row).collect(), ..Batch::default() }).expect("append");
    let wal = dir.path().join("state.db-wal");
    let watcher = connect::reader(&dir.database()).expect("opens");
    let version = || connect::pragma(&watcher, "data_version").expect("read");
    let before = version();
    store.replace_rows((0..50).rev().map(row).collect()).expect("replaced");
    assert_eq!(version(), before, "nothing was written ({})", wal.display());
    store.replace_rows((0..49).map(row).collect()).expect("replaced");
    assert_ne!(version(), before);
    assert_eq!(store.rows(Table::Task, None).expect("rows").len(), 49);
}

#[test]
fn the_wal_does_not_grow_without_end() {
    let (_parent, dir) = state();
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("opens");
    let text = "x".repeat(4_000);
    for _ in 0..60 {
        let lines = (0..256).map(|n| line(n, &text)).collect();
        store.append(Batch { lines, ..Batch::default() }).expect("append");
    }
    let len = dir.path().join("state.db-wal").metadata().expect("there").len();
    assert!(len < 64 * 1024 * 1024, "{len} bytes of WAL after 60 MiB of lines");
}

#[test]
fn a_verification_beside_a_busy_index_raises_no_false_alarm() {
    let (_parent, dir) = state();
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("opens");
    let view = SqliteReader::open(&dir).expect("opens");
    let mut count = 0;
    for round in 0..40 {
        // Large parts first, small ones later: the small ones take the large ones' names.
        let size = if round <= 5 { 400 } else { 3 };
        let lines: Vec<LogLine> = (0..size)
            .map(|n: u64| line(n, &format!("line {} {round}", Hash([n.to_le_bytes()[0]; 32]))))
            .map(|l| LogLine { text: l.text.replace('0', &l.offset.to_string()), ..l })
            .collect();
        count += lines.len();
        store.append(Batch { lines, ..Batch::default() }).expect("append");
        let upto = || store.pool.ask(|conn| read::meta(conn, text_index::INDEXED_UPTO)).expect("meta");
        until("the index", || usize::try_from(upto()).expect("small") == count);
        // Both connections see an early state of the index; the later rounds merge its parts away.
        if round == 5 {
            for reader in [&store as &dyn Read, &view] {
                assert!(!reader.log_search("line", None, 5).expect("search").is_empty());
            }
        }
    }
    for report in [store.verify(0).expect("verify"), view.verify(0).expect("verify")] {
        assert!(report.ok(), "{report:?}");
    }
}

/// The library calls a text index without its own settings a mistake of the caller; it is damage like any other.
#[test]
fn a_text_index_that_lost_its_settings_is_repaired() {
    let (_parent, dir) = state();
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("opens");
    store.append(Batch { lines: vec![line(1, "hello")], ..events(5) }).expect("append");
    drop(store);
    let conn = Connection::open(dir.database()).expect("the file");
    assert_eq!(conn.execute("DELETE FROM line_text_config", []).expect("removed"), 1);
    drop(conn);
    let (store, report) = SqliteStore::open(&dir, Options::default()).expect("repairs");
    assert!(report.repaired.is_some());
    assert_eq!(store.head().expect("head").last_seq, 5);
}

#[test]
fn some_kinds_of_events_are_found_without_reading_the_others() {
    let (_parent, dir) = state();
    let opened = open::open(&dir, Options::default(), schema::MIGRATIONS).expect("opens");
    for sql in [kinds::NEXT_KIND, kinds::PLACES, kinds::COUNT] {
        let mut plan = opened.conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a plan");
        let steps: Vec<String> = plan
            .query_map(rusqlite::params_from_iter(std::iter::repeat_n(1, plan.parameter_count())), |row| row.get(3))
            .expect("steps")
            .map(|step| step.expect("a step"))
            .collect();
        assert!(steps.iter().all(|step| step.contains("COVERING INDEX event_by_kind (kind")), "{sql}: {steps:?}");
    }
}

#[test]
fn a_database_of_the_first_version_is_read_as_it_is_and_gets_its_index_from_the_next_coordinator() {
    let (_parent, dir) = state();
    drop(open::open(&dir, Options::default(), &schema::MIGRATIONS[..1]).expect("as it was"));
    let reader = SqliteReader::open(&dir).expect("a view opens it");
    assert_eq!(reader.events_of(&["any"], 0, 5).expect("none"), []);
    drop(reader);
    let (store, report) = SqliteStore::open(&dir, Options::default()).expect("a coordinator opens it");
    assert_eq!(report.migrated, Some((1, 3)));
    assert_eq!(store.kinds().expect("kinds"), Vec::<String>::new());
}

/// All lines of an attempt go, step by step.
fn remove_all(store: &SqliteStore, attempt: u64) -> u64 {
    let steps = std::iter::from_fn(|| Some(store.remove_lines(attempt).expect("a step")).filter(|step| step.lines > 0));
    steps.map(|step| step.lines).sum()
}

#[test]
fn removed_lines_are_no_damage_and_their_places_are_not_given_out_again() {
    let (_parent, dir) = state();
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("opens");
    let lines = |from: u64, to: u64| (from..to).map(|n| line(n, &format!("needle {n} in the log"))).collect();
    store.append(Batch { lines: lines(0, 3_000), ..events(3) }).expect("append");
    until("the index", || store.pool.ask(|conn| read::meta(conn, text_index::INDEXED_UPTO)).expect("read") == 3_000);
    // The second and the last attempt: gaps in the middle and at the end, more than one step each.
    assert_eq!((remove_all(&store, 1), remove_all(&store, 2)), (1_000, 1_000));
    assert_eq!(store.remove_lines(1).expect("nothing left"), RemovedLines::default());
    assert_eq!(store.attempt_tail(2, 10).expect("read"), []);
    let found = store.log_search("needle", None, 5_000).expect("searched");
    assert_eq!((found.len(), found.iter().all(|found| found.line.attempt == 0)), (1_000, true));
    let verified = store.verify(0).expect("verified");
    assert_eq!((verified.problems, verified.lines), (Vec::<String>::new(), 1_000));
    store.append(Batch { lines: vec![line(0, "after it")], ..Batch::default() }).expect("append");
    assert_eq!(store.log_tail(None, 1).expect("read")[0].seq, 3_001, "no place is given twice");
    store.backup(1).expect("a copy of it is good too");
    drop(store);
    let (store, report) = SqliteStore::open(&dir, Options { whole_check: true, ..Options::default() }).expect("opens");
    assert_eq!((report.repaired, report.head.last_seq), (None, 3));
    // Gaps that nobody made are still seen.
    store.pool.ask(|_| Ok(())).expect("open");
    drop(store);
    let conn = Connection::open(dir.database()).expect("opens");
    conn.execute("DELETE FROM line WHERE seq = 3001 - 3", []).expect("a removed place");
    conn.execute("DELETE FROM line WHERE seq = 1", []).expect("deleted behind our back");
    drop(conn);
    let (_, report) = SqliteStore::open(&dir, Options { whole_check: true, ..Options::default() }).expect("repairs");
    assert!(report.repaired.expect("damage").why.contains("log line 1 is missing"));
}

#[test]
fn lines_that_go_before_they_are_indexed_leave_the_index_at_rest() {
    let (_parent, dir) = state();
    let opened = open::open(&dir, Options::default(), schema::MIGRATIONS).expect("opens");
    let (mut cursor, mut sources) = (write::Cursor::read(&opened.conn).expect("read"), write::Sources::default());
    for n in 0..10 {
        write::put_line(&opened.conn, &mut cursor, &mut sources, &line(n * 3, "words")).expect("put");
    }
    assert_eq!(removed::step(&opened.conn, 0).expect("a step").lines, 10);
    assert_eq!(text_index::step(&opened.conn, 0).expect("a step"), 10, "there is nothing left to index");
    assert_eq!(removed::all(&opened.conn).expect("read"), [1..=10]);
}

#[test]
fn a_damaged_database_is_repaired_with_its_removed_lines_left_out() {
    let (_parent, dir) = state();
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("opens");
    let lines = |from: u64, to: u64| (from..to).map(|n| line(n, "words")).collect();
    store.append(Batch { lines: lines(0, 30), ..events(3) }).expect("append");
    store.backup(1).expect("a backup");
    store.append(Batch { lines: lines(30, 60), ..events(3) }).expect("append");
    assert_eq!(remove_all(&store, 1), 20);
    drop(store);
    let conn = Connection::open(dir.database()).expect("opens");
    conn.execute("UPDATE task SET sum = 1", []).expect("no rows");
    conn.execute("INSERT INTO task (run, key, ord, json, sum) VALUES ('r', 'T1', 0, '{}', 1)", []).expect("damage");
    drop(conn);
    let (store, report) =
        SqliteStore::open(&dir, Options { whole_check: true, ..Options::default() }).expect("repairs");
    assert!(report.repaired.is_some() && report.gaps.is_empty(), "{report:?}");
    let left = |attempt| store.attempt_tail(attempt, 100).expect("read").len();
    assert_eq!((left(0), left(1), left(2)), (20, 10, 20), "the backup still had ten of them");
    assert_eq!(store.verify(0).expect("verified").problems, Vec::<String>::new());
}

#[test]
fn the_room_of_removed_lines_is_given_back() {
    let (_parent, dir) = state();
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("opens");
    let text = "x".repeat(8_000);
    for n in 0..40 {
        let lines = (0..20).map(|_| line(n % 2 * 3 + 1, &text)).collect();
        store.append(Batch { lines, ..events(1) }).expect("append");
    }
    assert_eq!(store.compact().expect("compacted"), 0, "nothing is free");
    assert_eq!(remove_all(&store, 1), 800);
    assert!(store.compact().expect("compacted") > 4 << 20);
    assert!(dir.database().metadata().expect("there").len() < 2 << 20);
    assert_eq!(store.verify(0).expect("verified").problems, Vec::<String>::new());
    store.append(events(1)).expect("and it goes on");
}
