//! The limits of the machine, each as the shortest honest program: a synced write, a synced commit, a group commit, rows
//! in batches. They hold nothing of the product but the settings and the shape of what is stored.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rusqlite::Connection;

/// Bytes of a record, as the table says.
pub const RECORD_BYTES: usize = 200;

/// Requests that one transaction of the group commit takes: the same as the product's.
const GROUP: usize = 256;

/// Rows written beforehand, so that the WAL has its size: a file that grows syncs slower than one that is reused.
const WARMING_ROWS: usize = 40_000;

/// A file that is written and synced, over and over in place, which is faster than growing it.
pub struct SyncedFile {
    file: File,
    record: Vec<u8>,
}

impl SyncedFile {
    /// A file in a directory, allocated beforehand.
    pub fn new(dir: &Path) -> SyncedFile {
        let mut file = File::create(dir.join("synced")).expect("a file");
        file.write_all(&vec![0; 1 << 20]).expect("room for records");
        file.sync_all().expect("a sync");
        SyncedFile { file, record: vec![b'x'; RECORD_BYTES] }
    }

    /// One record, durable.
    pub fn write(&mut self) {
        self.file.seek(SeekFrom::Start(0)).expect("a seek");
        self.file.write_all(&self.record).expect("a write");
        self.file.sync_data().expect("a sync");
    }
}

/// A database with an event log and task rows, without hashes, checksums or anything else.
pub struct RawDatabase {
    conn: Connection,
    next: i64,
    details: String,
}

impl RawDatabase {
    /// A new one in a directory: WAL, every commit synced.
    pub fn new(dir: &Path) -> RawDatabase {
        let conn = Connection::open(dir.join("raw.db")).expect("a database");
        conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).expect("WAL");
        conn.execute_batch("PRAGMA synchronous = FULL").expect("FULL");
        conn.pragma_update(None, "wal_autocheckpoint", 0).expect("checkpoints on demand");
        conn.execute_batch(
            "CREATE TABLE event (seq INTEGER PRIMARY KEY, time_ms INTEGER, run TEXT, kind TEXT, details TEXT);
             CREATE TABLE task (key TEXT PRIMARY KEY, json TEXT) WITHOUT ROWID;
             CREATE TABLE line (seq INTEGER PRIMARY KEY, agent INTEGER, time_ms INTEGER, text TEXT)",
        )
        .expect("tables");
        let mut raw = RawDatabase { conn, next: 1, details: "x".repeat(RECORD_BYTES) };
        raw.put_lines(WARMING_ROWS, WARMING_ROWS);
        raw.checkpoint();
        raw
    }

    /// Moves the WAL into the database, as the product does in its idle moments: between two measurements.
    pub fn checkpoint(&mut self) {
        self.conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).expect("a checkpoint");
    }

    fn put_transition(&mut self) {
        let mut insert = self
            .conn
            .prepare_cached("INSERT INTO event VALUES (?1, 1000, 'run', 'checkpoint_saved', ?2)")
            .expect("SQL");
        insert.execute((self.next, &self.details)).expect("an event");
        let mut upsert = self
            .conn
            .prepare_cached("INSERT INTO task VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET json = excluded.json")
            .expect("SQL");
        upsert.execute((format!("T{}", self.next % 100), &self.details)).expect("a row");
        self.next += 1;
    }

    fn transaction(&mut self, work: impl FnOnce(&mut RawDatabase)) {
        self.conn.prepare_cached("BEGIN IMMEDIATE").and_then(|mut s| s.execute([])).expect("BEGIN");
        work(self);
        self.conn.prepare_cached("COMMIT").and_then(|mut s| s.execute([])).expect("COMMIT");
    }

    /// One event and its row, durable.
    pub fn commit_one(&mut self) {
        self.transaction(RawDatabase::put_transition);
    }

    /// Log lines in transactions of `each`, durable.
    pub fn put_lines(&mut self, lines: usize, each: usize) {
        for _ in 0..lines / each {
            self.transaction(|raw| {
                for _ in 0..each {
                    let sql = "INSERT INTO line VALUES (?1, 1, 1000, ?2)";
                    let mut insert = raw.conn.prepare_cached(sql).expect("SQL");
                    insert.execute((raw.next, &raw.details)).expect("a line");
                    raw.next += 1;
                }
            });
        }
    }

    /// Reads every task row and where the log ends: the least that a start has to read.
    pub fn read_state(path: &Path) -> usize {
        let conn = Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a database");
        let mut query = conn.prepare("SELECT json FROM task").expect("SQL");
        let texts = query.query_map([], |row| row.get::<_, String>(0)).expect("rows");
        let bytes: usize = texts.map(|text| text.expect("a row").len()).sum();
        let last: i64 = conn.query_row("SELECT max(seq) FROM event", [], |row| row.get(0)).expect("the end");
        bytes + usize::try_from(last).expect("a place")
    }
}

/// Many producers, one writing thread, a transaction for whatever waits: the shape of the product's writer without what
/// it protects.
pub fn group_commit(raw: &mut RawDatabase, producers: usize, each: usize) {
    let (send, receive) = sync_channel::<SyncSender<()>>(1_024);
    let write = move || serve(raw, &receive);
    std::thread::scope(|scope| {
        scope.spawn(write);
        for _ in 0..producers {
            let send = send.clone();
            scope.spawn(move || {
                for _ in 0..each {
                    let (reply, answer) = sync_channel(1);
                    send.send(reply).expect("the writer lives");
                    answer.recv().expect("the writer answers");
                }
            });
        }
        drop(send);
    });
}

fn serve(raw: &mut RawDatabase, receive: &Receiver<SyncSender<()>>) {
    while let Ok(first) = receive.recv() {
        let mut group = vec![first];
        group.extend(receive.try_iter().take(GROUP - 1));
        raw.transaction(|raw| group.iter().for_each(|_| raw.put_transition()));
        for reply in group {
            reply.send(()).expect("a producer waits");
        }
    }
}
