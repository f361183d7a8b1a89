//! Who may speak to a shim, and that nobody can keep it from its work.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rekindle_shim::client::{Client, Error};
use rekindle_shim::wire::Refusal;

use crate::rig::{BOUND, Rig, until};

const SLEEPER: &str = "echo up >up; sleep 1000";

fn raw(rig: &Rig) -> UnixStream {
    rig.record();
    let stream = UnixStream::connect(rig.dir.join("sock")).expect("connect");
    stream.set_read_timeout(Some(BOUND)).expect("timeout");
    stream
}

fn end(rig: &Rig, mut shim: std::process::Child) {
    assert!(!rig.client().status().expect("status").stopping, "something was changed");
    rig.client().kill().expect("kill");
    rig.finish(&mut shim);
}

#[test]
fn a_wrong_nonce_attempt_or_epoch_is_refused_and_changes_nothing() {
    let rig = Rig::sh(SLEEPER);
    let shim = rig.start();
    rig.await_file("up");
    let refusal = |change: fn(&mut rekindle_shim::bundle::Spec)| {
        let mut spec = rig.spec.clone();
        change(&mut spec);
        match Client::connect(&rig.bundle(), &spec, BOUND) {
            Err(Error::Refused(why)) => why,
            other => panic!("not refused: {other:?}"),
        }
    };
    assert_eq!(refusal(|spec| spec.nonce = "0".repeat(32)), Refusal::NotYours);
    assert_eq!(refusal(|spec| spec.nonce.clear()), Refusal::NotYours);
    assert_eq!(refusal(|spec| spec.attempt = "other".to_owned()), Refusal::NotYours);
    assert_eq!(refusal(|spec| spec.epoch -= 1), Refusal::StaleEpoch);
    end(&rig, shim);
}

#[test]
fn a_request_with_an_older_epoch_is_refused_even_after_the_handshake() {
    let rig = Rig::sh(SLEEPER);
    let shim = rig.start();
    let mut stream = raw(&rig);
    let hello = format!(
        "{{\"type\":\"hello\",\"version\":1,\"attempt\":\"{}\",\"epoch\":4,\"nonce\":\"{}\"}}\n",
        rig.spec.attempt, rig.spec.nonce
    );
    // Two requests in one write, the second torn in two.
    stream.write_all(hello.as_bytes()).expect("write");
    stream.write_all(b"{\"type\":\"kill\",\"epoch\":3}\n{\"type\":\"st").expect("write");
    let mut lines = BufReader::new(stream.try_clone().expect("clone")).lines();
    let mut next = || lines.next().expect("a line").expect("readable");
    assert!(next().contains("\"type\":\"hello\""));
    assert_eq!(next(), r#"{"type":"refused","why":"stale_epoch"}"#);
    stream.write_all(b"atus\",\"epoch\":4}\nnonsense\n").expect("write");
    assert!(next().contains("\"type\":\"status\""));
    assert_eq!(next(), r#"{"type":"refused","why":"malformed"}"#);
    end(&rig, shim);
}

#[test]
fn garbage_is_refused_and_the_connection_closed() {
    let rig = Rig::sh(SLEEPER);
    let shim = rig.start();
    for garbage in
        [&b"\n"[..], b"GET / HTTP/1.1\n", b"{\"type\":\"kill\",\"epoch\":4}\n", b"\xff\0\xfe\n", &[b'x'; 10_000]]
    {
        let mut stream = raw(&rig);
        // The shim may close the connection before all of it is through.
        let _ = stream.write_all(garbage);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(String::from_utf8_lossy(&answer).contains("refused"), "{garbage:?}");
    }
    end(&rig, shim);
}

#[test]
fn silent_and_dripping_callers_are_dropped_and_others_served_meanwhile() {
    let rig = Rig::sh(SLEEPER);
    let shim = rig.start();
    rig.await_file("up");
    let mut strangers: Vec<UnixStream> = (0..40).map(|_| raw(&rig)).collect();
    for stranger in &mut strangers {
        let _ = stranger.write_all(b"{");
    }
    // Waiting for forty strangers, one after the other, takes longer than this call may.
    let mut client = Client::connect(&rig.bundle(), &rig.spec, crate::rig::BOUND).expect("served");
    client.status().expect("served");
    for stranger in &mut strangers {
        until("the connection to close", || {
            let _ = stranger.write_all(b" ");
            matches!(stranger.read(&mut [0; 1]), Ok(0) | Err(_)).then_some(())
        });
    }
    client.status().expect("an introduced caller stays");
    end(&rig, shim);
}

#[test]
fn a_caller_that_never_reads_is_dropped() {
    let rig = Rig::sh(SLEEPER);
    let shim = rig.start();
    let mut stream = raw(&rig);
    let hello = format!(
        "{{\"type\":\"hello\",\"version\":1,\"attempt\":\"{}\",\"epoch\":4,\"nonce\":\"{}\"}}\n",
        rig.spec.attempt, rig.spec.nonce
    );
    stream.write_all(hello.as_bytes()).expect("write");
    stream.set_write_timeout(Some(BOUND)).expect("timeout");
    let questions = "{\"type\":\"status\",\"epoch\":4}\n".repeat(1000);
    let dropped = (0..1000).any(|_| stream.write_all(questions.as_bytes()).is_err());
    assert!(dropped, "a million unread answers are kept somewhere");
    end(&rig, shim);
}

#[test]
fn a_fake_shim_is_found_out_within_the_budget() {
    use std::os::unix::net::UnixListener;
    let rig = Rig::sh("true");
    let bundle = rig.create();
    let listener = UnixListener::bind(rig.dir.join("sock")).expect("bind");
    let budget = Duration::from_millis(300);
    // Listens and never accepts.
    assert!(matches!(Client::connect(&bundle, &rig.spec, budget), Err(Error::TimedOut)));
    let answers = [
        "{\"type\":\"hello\",\"version\":1,\"attempt\":\"a\",\"epoch\":4,\"nonce\":\"n\"}\n".to_owned(),
        "garbage\n".to_owned(),
        "{\"type\":\"accepted\"}\n".to_owned(),
        "x".repeat(100_000),
    ];
    for answer in answers {
        let connecting = std::thread::scope(|scope| {
            let fake = scope.spawn(|| {
                loop {
                    let (mut stream, _) = listener.accept().expect("accept");
                    let mut line = String::new();
                    // The connection of the first attempt is still waiting in the queue; it ends at once.
                    if BufReader::new(stream.try_clone().expect("clone")).read_line(&mut line).unwrap_or(0) > 0
                        && stream.write_all(answer.as_bytes()).is_ok()
                    {
                        return;
                    }
                }
            });
            let result = Client::connect(&bundle, &rig.spec, BOUND);
            fake.join().expect("fake");
            result
        });
        assert!(matches!(connecting, Err(Error::Stranger(_))), "{answer:.40}: {connecting:?}");
    }
    drop(listener);
    assert!(matches!(Client::connect(&bundle, &rig.spec, budget), Err(Error::Io(_))));
}
