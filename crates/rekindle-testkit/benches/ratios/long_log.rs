//! How quickly a run with a million events is shown: `status`, `report` and the first page of the dashboard. Nearly all of the
//! events are reports of one agent, as an agent prints them that has lost its way.

use std::io::{BufRead, BufReader, Read as _, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use rekindle_engine::store::Store;
use rustix::process::{Pid, Signal, kill_process};

use crate::bed::{DriverBed, open_store, program, scratch};
use crate::measure::{Options, Row, Samples, human};

/// Events, as the goal says; a quick look takes a tenth.
const EVENTS: usize = 1_000_000;

/// Events that reach the driver together.
const TOGETHER: usize = 2_000;

const ROUNDS: usize = 5;

/// Seconds that each may take, as the goal says.
const GOAL_S: f64 = 1.0;

/// Times three ways to show a long log.
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
    let [mut status, mut report, mut page] = [const { Samples { rounds: Vec::new() } }; 3];
    for _ in 0..options.rounds(ROUNDS) {
        status.push(command(dir.path(), &["status"]));
        report.push(command(dir.path(), &["report", "--markdown", "report.md"]));
        page.push(first_page(&state));
    }
    let row = |area: &str, samples: &Samples| {
        let took = samples.median();
        Row::judged(area, &format!("≤ {GOAL_S} s"), human(took), took <= GOAL_S, format!("{events} events"))
    };
    vec![
        row("`rekindle status`, a million events", &status),
        row("`rekindle report`, a million events", &report),
        row("first page of `serve`, a million events", &page),
    ]
}

fn command(dir: &std::path::Path, arguments: &[&str]) -> f64 {
    let begun = Instant::now();
    let mut command = Command::new(program());
    command.args(arguments).current_dir(dir).env_remove("REKINDLE_STATE_DIR");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().expect("a start").success(), "{arguments:?} succeeds");
    begun.elapsed().as_secs_f64()
}

/// From a server that has looked at nothing to the whole of its first page.
fn first_page(state: &std::path::Path) -> f64 {
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
    let begun = Instant::now();
    let mut stream = TcpStream::connect(host).expect("a connection");
    let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("asked");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("a page");
    let took = begun.elapsed().as_secs_f64();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "a page");
    let pid = Pid::from_child(&server);
    let _gone = kill_process(pid, Signal::TERM);
    let _ended = server.wait();
    took
}
