//! The store on PostgreSQL: the contract, and what only a real server shows. Lost answers, a fenced leader, damage, bad addresses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rekindle_engine::store::postgres::{Address, Lease};
use rekindle_engine::store::{Batch, Error, PostgresReader, PostgresStore, Read, Store, Table};
use rekindle_testkit::contract::store::{Subject, check, event, events_only, line, lines_only, offset, row};
use rekindle_testkit::database::Server;

use crate::proxy::{Fault, Proxy};

/// A lease that no test outlives, so that only a test that means to loses it.
const LONG: Duration = Duration::from_secs(3_600);

fn lease(holder: &str, length: Duration) -> Lease {
    Lease { holder: holder.into(), length }
}

fn open(url: &str, space: &str) -> PostgresStore {
    let address = Address::parse(url, false).expect("an address");
    PostgresStore::open(&address, space, lease("test", LONG)).expect("the store opens").0
}

/// A name that no other space has.
fn fresh() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("space-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A space as a subject of the contract.
struct InSpace {
    server: Arc<Server>,
    name: String,
    store: PostgresStore,
}

impl InSpace {
    fn make(server: &Arc<Server>) -> Box<dyn Subject> {
        InSpace::of(server, fresh())
    }

    fn of(server: &Arc<Server>, name: String) -> Box<dyn Subject> {
        Box::new(InSpace { server: Arc::clone(server), store: open(&server.url(), &name), name })
    }
}

/// The tables that hold a space's content.
const TABLES: [&str; 6] = ["event", "snapshot", "line", "removed_line", "spool", "derived"];

/// Copies a space as it is committed at this moment: what another process would find.
fn copy_space(server: &Server, from: &str) -> String {
    let to = fresh();
    let mut sql = format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ; \
         INSERT INTO rekindle.space (name, leader_epoch, head_seq, head_hash, last_line) \
         SELECT '{to}', leader_epoch, head_seq, head_hash, last_line FROM rekindle.space WHERE name = '{from}';"
    );
    for table in TABLES {
        let columns = server.sql(&format!(
            "SELECT string_agg(column_name, ', ') FROM information_schema.columns \
             WHERE table_schema = 'rekindle' AND table_name = '{table}' AND column_name <> 'space'"
        ));
        sql += &format!(
            "INSERT INTO rekindle.{table} (space, {columns}) SELECT (SELECT id FROM rekindle.space WHERE name = '{to}'), \
             {columns} FROM rekindle.{table} WHERE space = (SELECT id FROM rekindle.space WHERE name = '{from}');"
        );
    }
    server.sql(&(sql + "COMMIT;"));
    to
}

impl Subject for InSpace {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn killed(&self) -> Box<dyn Subject> {
        InSpace::of(&self.server, copy_space(&self.server, &self.name))
    }
}

#[test]
fn the_store_on_postgresql_keeps_the_contract() {
    let server = Arc::new(Server::start());
    check(&|| InSpace::make(&server));
}

#[test]
fn spaces_of_one_database_do_not_see_each_other() {
    let server = Arc::new(Server::start());
    let (one, other) = (InSpace::make(&server), InSpace::make(&server));
    one.store()
        .append(Batch { lines: vec![line("a", 1, 0, "of one")], ..events_only(vec![event(1)]) })
        .expect("append");
    assert_eq!(other.store().head().expect("head").last_seq, 0);
    assert_eq!(other.store().log_search("one", None, 5).expect("search"), []);
    other.store().append(events_only(vec![event(1), event(2)])).expect("append");
    assert_eq!(one.store().events(0, 9).expect("events").len(), 1);
}

#[test]
fn a_view_reads_what_the_leader_writes_and_writes_nothing_itself() {
    let server = Server::start();
    let name = fresh();
    let address = Address::parse(&server.url(), false).expect("an address");
    match PostgresReader::open(&address, &name) {
        Err(Error::NoSpace { space, .. }) => assert_eq!(space, name),
        other => panic!("{:?}", other.map(drop)),
    }
    let store = open(&server.url(), &name);
    let view = PostgresReader::open(&address, &name).expect("a view");
    for n in 0..20 {
        let told = store.append(events_only(vec![event(n)])).expect("append");
        assert_eq!(view.head().expect("head"), told, "a view sees what was acknowledged");
    }
    assert!(view.verify(0).expect("verify").ok());
}

#[test]
fn a_leader_that_was_replaced_writes_nothing_more() {
    let server = Server::start();
    let (name, url) = (fresh(), server.url());
    let address = Address::parse(&url, false).expect("an address");
    let old = open(&url, &name);
    old.append(events_only(vec![event(1)])).expect("append");
    match PostgresStore::open(&address, &name, lease("another host", LONG)) {
        Err(Error::Led(why)) => assert!(why.contains("test"), "it says who leads: {why}"),
        other => panic!("{:?}", other.map(drop)),
    }
    // The same holder is the same state directory, whose lock it holds: its earlier process is gone or will be.
    let new = open(&url, &name);
    assert!(matches!(old.append(events_only(vec![event(2)])), Err(Error::Fenced(_))));
    assert!(matches!(old.replace_rows(Vec::new()), Err(Error::Fenced(_))));
    assert!(matches!(old.remove_lines(1), Ok(_) | Err(Error::Fenced(_))));
    new.append(events_only(vec![event(3)])).expect("append");
    drop(old);
    new.append(events_only(vec![event(4)])).expect("an old leader that leaves does not take the lead with it");
    let kept: Vec<_> = new.events(0, 9).expect("events").into_iter().map(|event| event.epoch).collect();
    assert_eq!(kept, [Some(1), Some(3), Some(4)]);
    drop(new);
    PostgresStore::open(&address, &name, lease("another host", LONG))
        .expect("a lead that was given up is free at once");
}

#[test]
fn a_lease_that_ended_by_itself_is_renewed_unless_somebody_took_it() {
    let server = Server::start();
    let (name, url) = (fresh(), server.url());
    let address = Address::parse(&url, false).expect("an address");
    let store = open(&url, &name);
    let over = format!("UPDATE rekindle.space SET leader_until = now() - interval '1 minute' WHERE name = '{name}'");
    server.sql(&over);
    store.append(events_only(vec![event(1)])).expect("nobody took it: the same epoch continues");
    server.sql(&over);
    store.replace_rows(vec![row(Table::Task, "r", "T1", 0, "{}")]).expect("the same for rows");
    server.sql(&over);
    let _other =
        PostgresStore::open(&address, &name, lease("another host", LONG)).expect("a lease that is over is free");
    assert!(matches!(store.append(events_only(vec![event(2)])), Err(Error::Fenced(_))));
}

/// Content of every kind, that only its number tells from others.
fn batch(n: u64) -> Batch {
    Batch {
        expect_last_seq: Some(2 * n),
        events: vec![event(2 * n), event(2 * n + 1)],
        lines: vec![line("a", 1, 10 * n, &format!("line {n}"))],
        offsets: vec![offset(1, 10 * (n + 1))],
        rows: vec![row(Table::Task, "r", "T1", 0, &format!("{{\"n\":{n}}}"))],
        snapshot: None,
    }
}

/// Appends until it is acknowledged, as the driver does.
fn append_at_last(store: &PostgresStore, batch: &Batch) {
    for _ in 0..200 {
        match store.append(batch.clone()) {
            Ok(_) => return,
            Err(Error::Unreachable(_) | Error::Busy(_)) => std::thread::park_timeout(Duration::from_millis(20)),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("never acknowledged");
}

/// Every batch once, whole and in order.
fn assert_whole(store: &dyn Read, batches: u64) {
    assert_eq!(store.head().expect("head").last_seq, 2 * batches, "no event is missing or doubled");
    let lines = store.log_since(None, 0, usize::MAX >> 1).expect("lines");
    let starts: Vec<u64> = lines.iter().map(|line| line.line.offset).collect();
    assert_eq!(starts, (0..batches).map(|n| 10 * n).collect::<Vec<_>>(), "no line is missing or doubled");
    let report = store.verify(0).expect("verify");
    assert!(report.ok(), "{report:?}");
}

/// The connection is cut after every number of bytes of an append and its answer, in both directions: before the server has it,
/// while it works, and when the answer is on its way.
#[test]
fn an_append_whose_answer_is_lost_is_written_once() {
    let server = Server::start();
    let name = fresh();
    drop(open(&server.url(), &name));
    let proxy = Proxy::start(server.port());
    let store = open(&server.url_at(proxy.port()), &name);
    let mut n = 0;
    append_at_last(&store, &batch(n));
    for to_server in [true, false] {
        for bytes in (0..4_000).step_by(if to_server { 97 } else { 3 }) {
            n += 1;
            proxy.next(Fault::Cut { to_server, after: bytes });
            append_at_last(&store, &batch(n));
            if !to_server && bytes > 150 {
                break;
            }
        }
    }
    proxy.next(Fault::None);
    assert_whole(&store, n + 1);
    assert!(proxy.cuts() > 30, "only {} connections were cut", proxy.cuts());
}

/// A server that does not answer, or a line on which nothing comes through: the deadline is the client's own.
#[test]
fn a_call_that_gets_no_answer_is_given_up_and_written_once() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let store = open(&server.url_at(proxy.port()), "run");
    append_at_last(&store, &batch(0));
    for (n, to_server) in [(1, true), (2, false)] {
        proxy.next(Fault::Stall { to_server, after: 0 });
        append_at_last(&store, &batch(n));
    }
    assert_eq!(proxy.cuts(), 2);
    assert_whole(&store, 3);
}

#[test]
fn a_space_that_somebody_locks_is_busy_and_not_lost() {
    let server = Server::start();
    let store = open(&server.url(), "run");
    append_at_last(&store, &batch(0));
    std::thread::scope(|scope| {
        let hold = "BEGIN; SELECT id FROM rekindle.space FOR UPDATE; SELECT pg_sleep(7); COMMIT";
        scope.spawn(|| server.sql(hold));
        while server.sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(7)%'").as_str() < "2" {
            std::thread::yield_now();
        }
        let refused = store.append(batch(1));
        assert!(matches!(refused, Err(Error::Busy(_))), "{refused:?}");
        append_at_last(&store, &batch(1));
    });
    assert_whole(&store, 2);
}

/// Files of an authority, and of a server whose certificate it signed for a name.
fn certificates(dir: &std::path::Path, name: &str) -> [String; 3] {
    let run = |arguments: &str| {
        let mut command = std::process::Command::new("openssl");
        let output = command.current_dir(dir).args(arguments.split(' ')).output().expect("openssl runs");
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    run(&format!("req -x509 {key} -keyout {name}-ca.key -out {name}-ca.pem -subj /CN=authority -days 2"));
    run(&format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={name}"));
    std::fs::write(dir.join(format!("{name}.ext")), format!("subjectAltName=DNS:{name}\n")).expect("written");
    run(&format!(
        "x509 -req -in {name}.csr -CA {name}-ca.pem -CAkey {name}-ca.key -CAcreateserial -out {name}.pem -days 2 -extfile {name}.ext"
    ));
    ["pem", "key"]
        .map(|end| dir.join(format!("{name}.{end}")))
        .into_iter()
        .chain([dir.join(format!("{name}-ca.pem"))])
        .map(|path| path.to_str().expect("text").to_owned())
        .collect::<Vec<_>>()
        .try_into()
        .expect("three")
}

#[test]
fn a_server_with_tls_is_verified_by_authority_and_name() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let [certificate, key, authority] = certificates(dir.path(), "localhost");
    let [.., stranger] = certificates(dir.path(), "stranger");
    let server = Server::start_with_tls(&certificate, &key);
    let open = |host: &str, parameters: &str| {
        let url = format!("postgres://postgres@{host}:{}/rekindle{parameters}", server.port());
        let address = Address::parse(&url, false)?;
        PostgresStore::open(&address, "run", lease("test", LONG)).map(|(store, _)| store)
    };
    let trusted = format!("?sslmode=require&sslrootcert={authority}");
    let store = open("localhost", &trusted).expect("a server that is who it says");
    append_at_last(&store, &batch(0));
    assert_whole(&store, 1);
    drop(store);
    let refused = [
        open("localhost", ""),
        open("localhost", "?sslmode=require"),
        open("localhost", &format!("?sslmode=require&sslrootcert={stranger}")),
        open("127.0.0.1", &trusted),
    ];
    for (n, refused) in refused.into_iter().enumerate() {
        assert!(matches!(refused, Err(Error::Unreachable(_) | Error::Denied(_))), "case {n}: {:?}", refused.map(drop));
    }
}

/// What the driver adds between two tries goes with the second one, and nothing of the first is written twice.
#[test]
fn what_was_added_after_a_lost_answer_is_written_with_it() {
    let server = Server::start();
    let name = fresh();
    let proxy = Proxy::start(server.port());
    let store = open(&server.url_at(proxy.port()), &name);
    append_at_last(&store, &batch(0));
    // The answer is cut, and so is every new connection: the outcome stays unknown.
    proxy.next(Fault::Cut { to_server: false, after: 0 });
    proxy.refuse(true);
    assert!(matches!(store.append(batch(1)), Err(Error::Unreachable(_))));
    proxy.refuse(false);
    let mut grown = batch(1);
    let more = batch(2);
    grown.events.extend(more.events);
    grown.lines.extend(more.lines);
    let told = store.append(grown).expect("append");
    assert_eq!(told.last_seq, 6);
    assert_whole(&store, 3);
    // Another batch than the one that was sent is not taken for it.
    proxy.next(Fault::Cut { to_server: false, after: 0 });
    proxy.refuse(true);
    assert!(matches!(store.append(batch(3)), Err(Error::Unreachable(_))));
    proxy.refuse(false);
    let other = Batch { expect_last_seq: Some(6), ..events_only(vec![event(77)]) };
    assert_eq!(store.append(other), Err(Error::Conflict { expected: 6, found: 8 }));
}

#[test]
fn a_server_killed_in_the_middle_loses_nothing_that_was_acknowledged() {
    let mut server = Server::start();
    let store = Arc::new(open(&server.url(), "run"));
    let rounds = 6;
    for round in 0..rounds {
        let writer = Arc::clone(&store);
        let thread = std::thread::spawn(move || {
            for n in round * 20..(round + 1) * 20 {
                append_at_last(&writer, &batch(n));
            }
        });
        while store.head().map_or(0, |head| head.last_seq) < 40 * round + 10 {
            std::thread::yield_now();
        }
        server.kill();
        server.up();
        thread.join().expect("every batch is acknowledged at last");
        assert_whole(store.as_ref(), (round + 1) * 20);
    }
}

#[test]
fn damage_in_the_database_is_found_and_never_passed_on() {
    let server = Server::start();
    let name = fresh();
    let store = open(&server.url(), &name);
    for n in 0..5 {
        append_at_last(&store, &batch(n));
    }
    store.append(Batch { snapshot: Some(vec![1, 2, 3]), ..Batch::default() }).expect("append");
    let whose = format!("space = (SELECT id FROM rekindle.space WHERE name = '{name}')");
    let damages = [
        format!("UPDATE rekindle.event SET details = 'x' WHERE {whose} AND seq = 3"),
        format!("UPDATE rekindle.event SET hash = '' WHERE {whose} AND seq = 3"),
        format!("DELETE FROM rekindle.event WHERE {whose} AND seq = 3"),
        format!("DELETE FROM rekindle.event WHERE {whose} AND seq = 10"),
        format!("UPDATE rekindle.line SET text = 'x' WHERE {whose} AND seq = 2"),
        format!("UPDATE rekindle.line SET text = '\\xff' WHERE {whose} AND seq = 2"),
        format!("DELETE FROM rekindle.line WHERE {whose} AND seq = 5"),
        format!("DELETE FROM rekindle.line WHERE {whose} AND seq = 2"),
        format!("UPDATE rekindle.spool SET next = 1 WHERE {whose}"),
        format!("UPDATE rekindle.derived SET json = '{{}}' WHERE {whose}"),
        format!("UPDATE rekindle.snapshot SET state = 'x' WHERE {whose}"),
        format!("UPDATE rekindle.space SET head_hash = decode(repeat('11', 32), 'hex') WHERE name = '{name}'"),
    ];
    for damage in damages {
        let copy = copy_space(&server, &name);
        server.sql(&damage.replace(&format!("'{name}'"), &format!("'{copy}'")));
        let address = Address::parse(&server.url(), false).expect("an address");
        let view = PostgresReader::open(&address, &copy).expect("a view");
        let report = view.verify(0).expect("verify");
        assert!(!report.ok(), "not found: {damage}");
    }
    assert!(store.verify(0).expect("verify").ok(), "the original is whole");
}

/// A failover without its tail, or an old backup put in place under a living coordinator.
#[test]
fn a_database_that_lost_its_newest_events_is_not_written_over() {
    let server = Server::start();
    let store = open(&server.url(), "run");
    (0..5).for_each(|n| append_at_last(&store, &batch(n)));
    server.sql(
        "DELETE FROM rekindle.event WHERE seq > 4; DELETE FROM rekindle.line WHERE seq > 2; \
         UPDATE rekindle.space SET head_seq = 4, last_line = 2, head_hash = (SELECT hash FROM rekindle.event WHERE seq = 4)",
    );
    for _ in 0..2 {
        assert_eq!(store.append(batch(5)), Err(Error::Rewound { known: 10, found: 4 }));
    }
    assert_eq!(server.sql("SELECT max(seq) FROM rekindle.event"), "4", "nothing was written");
}

#[test]
fn removed_lines_are_no_damage_and_their_places_are_not_given_again() {
    let server = Server::start();
    let name = fresh();
    let store = open(&server.url(), &name);
    let of = |attempt: u64, n: u64| line("a", attempt, n, &format!("{attempt}.{n}"));
    store.append(lines_only((0..900).map(|n| of(n % 3, n)).collect())).expect("append");
    for attempt in [1, 2] {
        while store.remove_lines(attempt).expect("remove").lines > 0 {}
    }
    assert_eq!(store.attempt_lines(1, 0, 10).expect("lines"), []);
    assert_eq!(store.log_tail(None, 1_000).expect("tail").len(), 300);
    let report = store.verify(0).expect("verify");
    assert!(report.ok() && report.lines == 300, "{report:?}");
    store.append(lines_only(vec![of(9, 0)])).expect("append");
    assert_eq!(store.log_tail(None, 1).expect("tail")[0].seq, 901);
    assert!(store.verify(0).expect("verify").ok());
    let parts = server.sql("SELECT count(*) FROM rekindle.removed_line");
    assert_eq!(parts, "300", "places that meet are one part of the record");
}

#[test]
fn bad_input_is_refused_with_a_reason() {
    let server = Server::start();
    let refused = |url: &str, space: &str| {
        let address = Address::parse(url, false)?;
        PostgresStore::open(&address, space, lease("test", LONG)).map(drop)
    };
    let port = server.port();
    let nobody = refused(&format!("postgres://postgres@127.0.0.1:{}/rekindle", free_port()), "run");
    assert!(matches!(nobody, Err(Error::Unreachable(_))), "{nobody:?}");
    let no_database = refused(&format!("postgres://postgres@127.0.0.1:{port}/missing"), "run");
    assert!(matches!(&no_database, Err(Error::Denied(why)) if why.contains("missing")), "{no_database:?}");
    let no_user = refused(&format!("postgres://nobody-here@127.0.0.1:{port}/rekindle"), "run");
    assert!(matches!(no_user, Err(Error::Denied(_))), "{no_user:?}");
    let bad_name = refused(&server.url(), "a space/with'quotes");
    assert!(matches!(bad_name, Err(Error::Database(_))), "{bad_name:?}");
    let unsafe_server = Server::start_with(&["fsync=off"]);
    let refused_server = refused(&unsafe_server.url(), "run");
    assert!(matches!(&refused_server, Err(Error::Denied(why)) if why.contains("fsync")), "{refused_server:?}");
    let foreign = Server::start();
    foreign.sql("CREATE SCHEMA rekindle; CREATE TABLE rekindle.mine (x int)");
    let taken = refused(&foreign.url(), "run");
    assert!(matches!(taken, Err(Error::Foreign { .. })), "{taken:?}");
    assert_eq!(foreign.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'rekindle'"), "1", "nothing was changed");
    foreign.sql("COMMENT ON SCHEMA rekindle IS 'rekindle store, schema 99'");
    let newer = refused(&foreign.url(), "run");
    assert!(matches!(newer, Err(Error::Newer { found: 99, .. })), "{newer:?}");
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

/// Many coordinators that open an empty database at once: one makes the schema, all see it whole.
#[test]
fn a_schema_is_made_once_by_many() {
    let server = Server::start();
    let url = server.url();
    std::thread::scope(|scope| {
        for n in 0..12 {
            let url = url.clone();
            scope.spawn(move || {
                let store = open(&url, &format!("run-{}", n % 3));
                drop(store);
            });
        }
    });
    assert_eq!(server.sql("SELECT count(*) FROM rekindle.space"), "3");
}

/// The roles of the guide: a view reads, and nobody but the owner of the functions writes.
#[test]
fn whoever_may_read_cannot_write() {
    let server = Server::start();
    let store = open(&server.url(), "run");
    store.append(batch(0)).expect("append");
    server.sql(
        "CREATE ROLE looks LOGIN; GRANT USAGE ON SCHEMA rekindle TO looks; \
         GRANT SELECT ON ALL TABLES IN SCHEMA rekindle TO looks",
    );
    let url = server.url().replace("postgres@", "looks@");
    let address = Address::parse(&url, false).expect("an address");
    let view = PostgresReader::open(&address, "run").expect("a view");
    assert!(view.verify(0).expect("verify").ok());
    let led = PostgresStore::open(&address, "run", lease("test", LONG)).map(drop);
    assert!(matches!(led, Err(Error::Denied(_))), "{led:?}");
    assert_eq!(store.append(batch(1)).expect("the leader is not disturbed").last_seq, 4);
}
