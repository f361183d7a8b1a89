//! How quickly a run with a million events is shown: `status`, `report` and the first page of the dashboard. Nearly all of the
//! events are reports of one agent, as an agent prints them that has lost its way.

use std::io::{BufRead, BufReader, Read as _, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use rekindle_engine::store::Store;
use rustix::process::{Pid, Signal, kill_process};

use crate::bed::{DriverBed, open_store, program, scratch};
use crate::measure::{Options, Ratio, Row, Samples, human};

/// Events, as the goal says; a quick look takes a tenth.
const EVENTS: usize = 1_000_000;

/// Events that reach the driver together.
const TOGETHER: usize = 2_000;

/// Rounds.
const ROUNDS: usize = 5;

/// Seconds that each may take, as the goal says.
const GOAL_S: f64 = 1.0;

/// Ticks of a second in `/proc`: Linux tells every architecture the same.
const TICKS_S: f64 = 100.0;

/// Times four ways to show a long log.
pub fn shown(options: &Options) -> Vec<Row> {
    let dir = scratch();
    let state = dir.path().join(".rekindle");
    let events = if options.quick { EVENTS / 10 } else { EVENTS };
    let store: Arc<dyn Store> = Arc::new(open_store(&state));
    let mut bed = DriverBed::new(Arc::clone(&store), 100);
    while (store.head().expect("a head").last_seq as usize) < events {
        let messages: Vec<_> = (0..TOGETHER).map(|number| bed.checkpoint(number)).collect();
        bed.driver.handle(messages).expect("a batch");
    }
    drop(bed);
    drop(store);
    shown_of(dir.path(), options, &format!("{events} events, 100 tasks"))
}

/// Times four ways to show the run of a project, and reading its database once beside them.
pub fn shown_of(dir: &Path, options: &Options, what: &str) -> Vec<Row> {
    let state = dir.join(".rekindle");
    let [mut read, mut status, mut json, mut report, mut page] = [const { Taken::new() }; 5];
    for _ in 0..options.rounds(ROUNDS) {
        read.add(|| {
            let begun = own_ticks();
            let bytes = std::fs::read(state.join("state.db")).expect("a database");
            assert!(!bytes.is_empty(), "it holds something");
            own_ticks() - begun
        });
        status.add(|| command(dir, &["status"]));
        json.add(|| command(dir, &["status", "--json"]));
        report.add(|| command(dir, &["report", "--markdown", "report.md"]));
        let (took, ticks) = first_page(&state);
        page.wall.push(took);
        page.processor.push(ticks / TICKS_S);
    }
    let row = |area: &str, taken: &Taken| {
        let (took, used) = (taken.wall.median(), taken.processor.median());
        let times = Ratio::of(&taken.wall, &read.wall).times();
        let detail = format!("{what}; {times} reading the database once ({})", human(read.wall.median()));
        let measured = format!("{}, {used:.2} s of processor time", human(took));
        Row::judged(&format!("{area}, {what}"), &format!("≤ {GOAL_S} s"), measured, took <= GOAL_S, detail)
    };
    vec![
        row("`rekindle status`", &status),
        row("`rekindle status --json`", &json),
        row("`rekindle report`", &report),
        row("first page of `serve`", &page),
    ]
}

/// What a way to show a run took, round by round, in seconds.
struct Taken {
    wall: Samples,
    processor: Samples,
}

impl Taken {
    const fn new() -> Taken {
        Taken { wall: Samples { rounds: Vec::new() }, processor: Samples { rounds: Vec::new() } }
    }

    /// Adds a round of work that returns the processor time it used.
    fn add(&mut self, work: impl FnOnce() -> f64) {
        let begun = Instant::now();
        let ticks = work();
        self.wall.push(begun.elapsed().as_secs_f64());
        self.processor.push(ticks / TICKS_S);
    }
}

/// Processor time of a process in the kernel's ticks: its own, and that of children it has waited for.
fn ticks(stat: &str) -> [f64; 2] {
    let fields = stat.rsplit(')').next().expect("fields after the name");
    let fields: Vec<f64> = fields.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0.0)).collect();
    // `utime`, `stime`, `cutime` and `cstime` are fields 14 to 17 of `/proc/PID/stat`; the third one comes first here.
    [fields[10] + fields[11], fields[12] + fields[13]]
}

fn own_stat() -> [f64; 2] {
    ticks(&std::fs::read_to_string("/proc/self/stat").expect("a status"))
}

fn own_ticks() -> f64 {
    own_stat()[0]
}

/// Starts the program, waits for it, and returns the processor time it used.
fn command(dir: &Path, arguments: &[&str]) -> f64 {
    let before = own_stat()[1];
    let mut command = Command::new(program());
    command.args(arguments).current_dir(dir).env_remove("REKINDLE_STATE_DIR");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().expect("a start").success(), "{arguments:?} succeeds");
    own_stat()[1] - before
}

/// From a server that has looked at nothing to the whole of its first page.
fn first_page(state: &Path) -> (f64, f64) {
    let mut server = Command::new(program())
        .arg("--state-dir")
        .arg(state)
        .args(["serve", "--read-only"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a server");
    let mut line = String::new();
    BufReader::new(server.stdout.take().expect("piped")).read_line(&mut line).expect("its address");
    let rest = line.trim_end().strip_prefix("http://").expect("an address");
    let (host, token) = rest.split_once("/?token=").expect("a token");
    let used = || ticks(&std::fs::read_to_string(format!("/proc/{}/stat", server.id())).expect("a status"))[0];
    let (begun, before) = (Instant::now(), used());
    let mut stream = TcpStream::connect(host).expect("a connection");
    let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("asked");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("a page");
    let (took, ticks) = (begun.elapsed().as_secs_f64(), used() - before);
    assert!(answer.starts_with(b"HTTP/1.1 200"), "a page");
    let pid = Pid::from_child(&server);
    let _gone = kill_process(pid, Signal::TERM);
    let _ended = server.wait();
    (took, ticks)
}
