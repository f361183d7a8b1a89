//! What looking costs whoever is looked at: the processor time that the driver and its store use for an event, alone and with
//! `rekindle serve` and fifty listeners beside them, in turns. Server and listeners are processes of their own, so this
//! process's own time is the driver's.

use std::io::{BufRead, BufReader, Read as _, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_engine::store::Store;
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};

use crate::bed::{DriverBed, open_store, program, scratch};
use crate::measure::{Options, Ratio, Row, Samples, human};

/// The argument under which this program is fifty listeners instead.
pub const LISTENERS: &str = "__listeners";

/// Agents at work, as the goal says.
const AGENTS: u32 = 1_000;

/// Events a second, as the goal says.
const RATE: usize = 5_000;

/// Listeners, as the goal says.
const MANY: usize = 50;

/// Events that reach the driver together: what piles up in a hundredth of a second.
const TOGETHER: usize = 50;

/// Batches of one measurement: two seconds.
const BATCHES: usize = 200;

/// Rounds, each with all measurements.
const ROUNDS: usize = 11;

/// The driver under its load.
struct Load {
    bed: DriverBed,
    store: Arc<dyn Store>,
    agents: Vec<(AttemptId, Epoch, TaskId)>,
    sent: usize,
}

/// What a measurement came to.
struct Taken {
    /// Processor seconds of this process for an event.
    each_s: f64,
    /// Events a second that were reached.
    rate: f64,
    events: u64,
}

impl Load {
    fn new(store: Arc<dyn Store>) -> Load {
        let bed = DriverBed::with_agents(Arc::clone(&store), AGENTS as usize, AGENTS);
        let agents = bed.living();
        assert_eq!(agents.len(), AGENTS as usize, "all of them are at work");
        Load { bed, store, agents, sent: 0 }
    }

    fn head(&self) -> u64 {
        self.store.head().expect("a head").last_seq
    }

    fn measure(&mut self) -> Taken {
        let slot = Duration::from_secs_f64(TOGETHER as f64 / RATE as f64);
        let (before, used, started) = (self.head(), own_processor_s(), Instant::now());
        for batch in 0..BATCHES {
            // By the plan of the whole measurement: a late batch does not make the next ones late.
            let due = slot * u32::try_from(batch).expect("few");
            std::thread::sleep(due.saturating_sub(started.elapsed()));
            let messages: Vec<_> = (0..TOGETHER)
                .map(|_| {
                    self.sent += 1;
                    self.bed.checkpoint_of(self.agents[self.sent % self.agents.len()].clone(), self.sent)
                })
                .collect();
            self.bed.driver.handle(messages).expect("a batch");
        }
        let events = self.head() - before;
        assert!(events as usize >= BATCHES * TOGETHER, "every report is an event: {events}");
        let each_s = (own_processor_s() - used) / events as f64;
        Taken { each_s, rate: events as f64 / started.elapsed().as_secs_f64(), events }
    }
}

fn own_processor_s() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// A server and its listeners; ended when dropped.
struct Audience {
    server: Child,
    listeners: Child,
    ask: ChildStdin,
    tell: BufReader<ChildStdout>,
}

impl Audience {
    fn new(state: &std::path::Path, folded: bool) -> Audience {
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
        let mut out = BufReader::new(server.stdout.take().expect("a pipe"));
        out.read_line(&mut line).expect("a line");
        let rest = line.trim_end().strip_prefix("http://127.0.0.1:").expect("an address");
        let (port, token) = rest.split_once("/?token=").expect("a token");
        let path = if folded { "/api/events?fold=1" } else { "/api/events" };
        let mut listeners = Command::new(std::env::current_exe().expect("a path of this program"))
            .args([LISTENERS, port, token, path])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("listeners");
        let ask = listeners.stdin.take().expect("a pipe");
        let tell = BufReader::new(listeners.stdout.take().expect("a pipe"));
        let mut audience = Audience { server, listeners, ask, tell };
        assert_eq!(audience.line(), "ready", "all listen");
        audience
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.tell.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Messages that all listeners together have heard so far.
    fn heard(&mut self) -> u64 {
        self.ask.write_all(b"\n").expect("asked");
        self.line().parse().expect("a number")
    }
}

impl Drop for Audience {
    fn drop(&mut self) {
        let _gone = self.listeners.kill();
        let _reaped = self.listeners.wait();
        let _told = kill_process(Pid::from_child(&self.server), Signal::TERM);
        let _reaped = self.server.wait();
    }
}

/// Fifty listeners in this process: says `ready`, then for every line how many messages they have heard.
pub fn listeners(arguments: &[String]) -> ExitCode {
    let [port, token, path] = arguments else { return ExitCode::FAILURE };
    let heard = Arc::new(AtomicU64::new(0));
    for _ in 0..MANY {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("a server");
        let head = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("asked");
        let mut first = [0; 12];
        stream.read_exact(&mut first).expect("an answer");
        assert_eq!(&first, b"HTTP/1.1 200");
        let heard = Arc::clone(&heard);
        std::thread::spawn(move || {
            let mut lines = BufReader::with_capacity(1 << 16, stream);
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                heard.fetch_add(u64::from(line.starts_with(b"id: ")), Ordering::Relaxed);
                line.clear();
            }
        });
    }
    println!("ready");
    for _ in std::io::stdin().lines() {
        println!("{}", heard.load(Ordering::Relaxed));
    }
    ExitCode::SUCCESS
}

/// The driver alone, with listeners that are told every event, and with listeners that are told that something happened.
pub fn of_a_fleet(options: &Options) -> Vec<Row> {
    let dir = scratch();
    let state = dir.path().join("state");
    let store: Arc<dyn Store> = Arc::new(open_store(&state));
    let mut load = Load::new(store);
    load.measure();
    let [mut alone, mut watched, mut folded] = [const { Samples { rounds: Vec::new() } }; 3];
    let (mut rates, mut heard, mut owed) = (Samples::default(), 0, 0);
    for round in 0..options.rounds(ROUNDS) {
        let mut with = |load: &mut Load, samples: &mut Samples, is_folded: bool| {
            let mut audience = Audience::new(&state, is_folded);
            let taken = load.measure();
            samples.push(taken.each_s);
            rates.push(taken.rate);
            if !is_folded {
                owed += taken.events * MANY as u64;
                let whole = taken.events * MANY as u64;
                heard += crate::measure::await_some("all events at all listeners", crate::bed::PATIENCE, LOOK, || {
                    Some(audience.heard()).filter(|heard| *heard >= whole)
                });
            }
        };
        // The order changes from round to round: whoever comes first in a round has no advantage over all of them.
        if round % 2 == 0 {
            alone.push(load.measure().each_s);
            with(&mut load, &mut watched, false);
            with(&mut load, &mut folded, true);
        } else {
            with(&mut load, &mut folded, true);
            with(&mut load, &mut watched, false);
            alone.push(load.measure().each_s);
        }
    }
    assert_eq!(heard, owed, "every listener heard every event");
    let detail = |samples: &Samples| {
        let (with, without) = (human(samples.median()), human(alone.median()));
        format!("{with} an event against {without} alone, at {:.0} events/s", rates.median())
    };
    let row = |area: &str, samples: &Samples| {
        let ratio = Ratio::of(samples, &alone);
        Row::judged(area, "< 1.05×", ratio.exactly(), ratio.median < 1.05, detail(samples))
    };
    vec![
        row("driver's processor time, 1,000 agents, `serve` with 50 listeners that hear every event", &watched),
        row("the same with listeners that hear ten times a second that something happened", &folded),
    ]
}

/// Between two looks whether everything has arrived.
const LOOK: Duration = Duration::from_millis(20);
