//! The event stream: complete, in order, taken up where it broke, and indifferent to listeners that do not listen.

use rustix::process::Signal;
use serde_json::Value;

use super::http::Open;
use super::{ONE, QUICK, Served, file_descriptors, soon};
use crate::rig::{Rig, objects};

/// An agent that tells a lot.
const TALKATIVE: &str = "touch here\n$FAKE wait go\ni=0\nwhile [ $i -lt 40 ]; do i=$((i+1)); rekindle checkpoint --task T1 \"step $i\"; done\n\
    touch made\nrekindle task done T1\n";

/// Listeners that the program takes at once.
const LISTENERS: usize = 256;

fn listen(served: &Served, path: &str, last: Option<u64>) -> Open {
    let asked = served.asked("GET", path);
    let asked = last.map_or_else(|| asked.clone(), |last| asked.clone().with("Last-Event-ID", &last.to_string()));
    let open = Open::new(&asked);
    assert_eq!(open.status, 200);
    let kind = open.headers.iter().find(|(name, _)| name == "content-type").map(|(_, kind)| kind.as_str());
    assert_eq!(kind, Some("text/event-stream"));
    open
}

#[test]
fn a_listener_that_comes_back_again_and_again_hears_every_event_once() {
    let rig = Rig::new(ONE, TALKATIVE);
    let run = rig.run();
    rig.await_file("here");
    let served = Served::start(&rig, &[]);
    // These take nothing, and hold up nobody.
    let stalled: Vec<Open> = (0..20).map(|_| listen(&served, "/api/events?after=0", None)).collect();
    let mut steady = listen(&served, "/api/events?after=0", None);
    rig.touch("go");
    let (mut heard, mut last): (Vec<String>, u64) = (Vec::new(), 0);
    let is_end = |data: &str| {
        let event: Value = serde_json::from_str(data).expect("JSON");
        event["kind"] == "run_finished"
    };
    'all: loop {
        // Another connection every few events, at places that are not those of whatever was sent together.
        let mut open = match last {
            0 => listen(&served, "/api/events?after=0", None),
            last => listen(&served, "/api/events?after=1", Some(last)),
        };
        for _ in 0..7 {
            let (id, data) = open.message();
            assert!(id > last, "{id} after {last}");
            last = id;
            let over = is_end(&data);
            heard.push(data);
            if over {
                break 'all;
            }
        }
    }
    assert_eq!(run.end().code, Some(0));
    let printed: Vec<String> = rig.ok(&["events", "--json"]).lines().map(str::to_owned).collect();
    assert!(printed.len() > 40, "{}", printed.len());
    assert_eq!(heard, printed, "the same lines as the command prints");
    let whole: Vec<String> = printed.iter().map(|_| steady.message().1).collect();
    assert_eq!(whole, printed);
    drop(stalled);
    served.end(Signal::INT);
    rig.audit();
}

#[test]
fn without_a_place_only_what_is_new_is_told_and_folded_only_how_much() {
    let rig = Rig::new(ONE, "$FAKE wait go\ntouch made\nrekindle task done T1\n");
    let run = rig.run();
    rig.await_event("agent_started");
    let served = Served::start(&rig, &[]);
    let known = rig.events().len() as u64;
    let mut new = listen(&served, "/api/events", None);
    let mut folded = listen(&served, "/api/events?fold=1&after=0", None);
    let (id, data) = folded.message();
    let fold: Value = serde_json::from_str(&data).expect("JSON");
    assert_eq!((&fold["seq"], &fold["events"]), (&id.into(), &id.into()));
    rig.touch("go");
    let (first, data) = new.message();
    assert!(first > known, "{first} was known: {data}");
    let mut sum = id;
    let end = rig.until("the end", || {
        let events = objects(&rig.ok(&["events", "--json", "--kind", "run_finished"]));
        events.first().and_then(|event| event["seq"].as_u64())
    });
    while sum < end {
        let (id, data) = folded.message();
        let fold: Value = serde_json::from_str(&data).expect("JSON");
        sum += fold["events"].as_u64().expect("a number");
        assert_eq!(sum, id, "nothing is counted twice or left out");
    }
    assert_eq!(run.end().code, Some(0));
    served.end(Signal::INT);
}

#[test]
fn there_is_room_for_so_many_listeners_and_a_place_is_free_when_one_goes() {
    let rig = Rig::new(ONE, QUICK);
    rig.finish();
    let served = Served::start(&rig, &[]);
    let mut listeners: Vec<Open> = (0..LISTENERS).map(|_| listen(&served, "/api/events", None)).collect();
    let many = file_descriptors(&served);
    let one_more = || Open::new(&served.asked("GET", "/api/events").with("Connection", "close")).status;
    assert_eq!(one_more(), 503);
    assert_eq!(served.get("/api/status").status, 200, "whoever only reads is not kept out");
    listeners.pop();
    soon("a free place", || one_more() == 200);
    drop(listeners);
    soon("their sockets to be closed", || file_descriptors(&served) + LISTENERS / 2 < many);
    served.end(Signal::INT);
}

#[test]
fn many_connections_that_say_nothing_keep_nobody_out_and_do_not_keep_it_from_ending() {
    let rig = Rig::new(ONE, QUICK);
    let served = Served::start(&rig, &[]);
    let connect = || std::net::TcpStream::connect(("127.0.0.1", served.port)).expect("a server");
    let silent: Vec<_> = (0..600).map(|_| connect()).collect();
    soon("places to be taken", || file_descriptors(&served) > 500);
    assert_eq!(served.get("/api/status").status, 200, "strangers give their places up");
    served.end(Signal::TERM);
    drop(silent);
}

#[test]
fn what_is_no_request_is_refused_with_a_head_alone() {
    let rig = Rig::new(ONE, QUICK);
    let served = Served::start(&rig, &[]);
    for garbage in ["nonsense\r\n\r\n", "GET / HTTP/1.1\r\nbad header\r\n\r\n"] {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", served.port)).expect("a server");
        stream.set_read_timeout(Some(crate::rig::BOUND)).expect("a bound");
        std::io::Write::write_all(&mut stream, garbage.as_bytes()).expect("sent");
        let mut told = String::new();
        std::io::Read::read_to_string(&mut stream, &mut told).expect("an answer");
        // The HTTP library answers it, without our headers: there must be nothing that a browser could show or run.
        assert!(told.starts_with("HTTP/1.1 4") && told.ends_with("\r\n\r\n"), "{told}");
        assert_eq!(told.matches("\r\n\r\n").count(), 1, "{told}");
    }
    served.end(Signal::TERM);
}
