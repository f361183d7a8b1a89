//! The control socket of a real process: callers that hang up while they wait, and a process without a free descriptor.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rekindle_core::ids::QuestionId;
use rekindle_engine::control::wire::{Envelope, Request, Response, VERSION};
use rekindle_engine::control::{Answerer, Called, server};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Longest wait for anything: far above what a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(600);

/// Callers that wait and leave, as many as were seen to pile up.
const WAITERS: usize = 300;

/// Both tests count what the whole process has.
static ALONE: Mutex<()> = Mutex::new(());

fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// Ids of this process's threads of a name.
fn threads(name: &str) -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
    let named = |dir: &Path| std::fs::read_to_string(dir.join("comm")).is_ok_and(|comm| comm.trim() == name);
    let tasks = tasks.flatten().filter(|task| named(&task.path()));
    tasks.map(|task| task.file_name().to_string_lossy().into_owned()).collect()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("descriptors").count()
}

fn opened() -> (tempfile::TempDir, Receiver<Called>) {
    let dir = tempfile::tempdir().expect("tempdir");
    let (sender, messages) = sync_channel(1_024);
    server::open(dir.path(), sender).expect("a control socket");
    (dir, messages)
}

fn say(stream: &mut UnixStream, call: Request) {
    let mut line = serde_json::to_vec(&Envelope { version: VERSION, token: None, call }).expect("a request");
    line.push(b'\n');
    stream.write_all(&line).expect("said");
}

fn called(messages: &Receiver<Called>) -> Answerer {
    messages.recv_timeout(PATIENCE).expect("a call").reply
}

#[test]
fn callers_that_hang_up_leave_no_thread_and_no_descriptor() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (dir, messages) = opened();
    let before = descriptors();
    let mut waiting = Vec::new();
    let mut replies = Vec::new();
    for _ in 0..WAITERS {
        let mut stream = UnixStream::connect(dir.path().join(server::SOCKET)).expect("a caller");
        say(&mut stream, Request::WaitForAnswer { question: QuestionId(1) });
        waiting.push(stream);
        // Nobody answers: the driver keeps them until a person does.
        replies.push(called(&messages));
    }
    assert_eq!(threads("caller").len(), WAITERS);
    let stays = waiting.pop().expect("one that stays");
    stays.shutdown(std::net::Shutdown::Write).expect("it says nothing more and still listens");
    drop(waiting);
    await_that("their threads end", || threads("caller").len() == 1);
    await_that("their descriptors are closed", || descriptors() <= before + 2);

    let last = replies.pop().expect("its reply");
    last(Response::Answered { question: QuestionId(1), text: "go on".to_owned() });
    let mut line = String::new();
    BufReader::new(&stays).read_line(&mut line).expect("an answer");
    assert!(line.contains("go on"), "who waits is still answered: {line}");
}

/// How often the thread of an open `status` file has waited of its own accord.
fn waits_of(status: &File) -> u64 {
    let mut bytes = [0; 8_192];
    let count = status.read_at(&mut bytes, 0).expect("a status");
    let status = String::from_utf8_lossy(&bytes[..count]).into_owned();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).expect("a count");
    line.trim().parse().expect("a number")
}

#[test]
fn a_control_socket_without_descriptors_pauses_and_listens_again() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (dir, messages) = opened();
    await_that("the control socket listens", || threads("control").len() == 1);
    let status = File::open(format!("/proc/self/task/{}/status", threads("control")[0])).expect("its status");
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    let address = SocketAddrUnix::new(dir.path().join(server::SOCKET)).expect("an address");
    let limits = getrlimit(Resource::Nofile);
    // Below the standard streams nothing is free.
    setrlimit(Resource::Nofile, Rlimit { current: Some(3), ..limits }).expect("a low limit");
    let before = waits_of(&status);
    rustix::net::connect(&socket, &address).expect("it waits to be accepted");
    // A loop without a pause never waits: a call that fails returns at once.
    await_that("it pauses again and again", || waits_of(&status) >= before + 5);
    setrlimit(Resource::Nofile, limits).expect("the old limit");

    let mut caller = UnixStream::from(socket);
    say(&mut caller, Request::Ping);
    called(&messages)(Response::Pong { pid: 7 });
    let mut line = String::new();
    BufReader::new(&caller).read_line(&mut line).expect("an answer");
    assert!(line.contains("pong"), "{line}");
}
