//! Lines for a running agent: each exactly once, whole, in order, whoever repeats them.

use std::time::Duration;

use rekindle_shim::bundle::Stdin;
use rekindle_shim::client::{Client, Delivered, Error};
use rekindle_shim::wire::Refusal;

use crate::rig::{BOUND, Rig, until};

fn lines(script: &str) -> Rig {
    let mut rig = Rig::sh(script);
    rig.spec.stdin = Stdin::Lines;
    rig
}

#[test]
fn lines_arrive_once_and_in_order_though_everything_is_sent_twice() {
    let rig = lines("cat");
    let mut shim = rig.start();
    let mut expected = String::new();
    for n in 0..50 {
        let line = format!("{{\"n\":{n},\"text\":\"{}\"}}", "é".repeat(n * 3_000));
        let mut first = rig.client();
        assert_eq!(first.stdin(&n.to_string(), &line).expect("sent"), Delivered::Written);
        drop(first);
        assert_eq!(rig.client().stdin(&n.to_string(), &line).expect("sent"), Delivered::Duplicate);
        expected += &format!("{line}\n");
    }
    rig.client().close_stdin().expect("close");
    assert_eq!(rig.finish(&mut shim).code, Some(0));
    assert!(rig.out() == expected.into_bytes(), "the lines arrived changed");
}

#[test]
fn a_sender_that_dies_in_the_middle_of_a_frame_leaves_no_torn_line() {
    use std::io::Write;
    let rig = lines("cat");
    let mut shim = rig.start();
    let whole = "w".repeat(300_000);
    for cut in [10, 4_000, 150_000, 299_000] {
        rig.record();
        let mut stream = std::os::unix::net::UnixStream::connect(rig.dir.join("sock")).expect("connect");
        let hello = format!(
            "{{\"type\":\"hello\",\"version\":1,\"attempt\":\"{}\",\"epoch\":4,\"nonce\":\"{}\"}}\n",
            rig.spec.attempt, rig.spec.nonce
        );
        let frame = format!("{{\"type\":\"stdin\",\"epoch\":4,\"id\":\"a\",\"line\":\"{whole}\"}}\n");
        stream.write_all(hello.as_bytes()).expect("write");
        stream.write_all(&frame.as_bytes()[..cut]).expect("write");
    }
    let mut client = rig.client();
    assert_eq!(client.stdin("a", &whole).expect("sent"), Delivered::Written, "no part of it acted before");
    client.close_stdin().expect("close");
    rig.finish(&mut shim);
    assert!(rig.out() == format!("{whole}\n").into_bytes());
}

#[test]
fn an_agent_that_does_not_read_leaves_the_line_unacknowledged_and_the_shim_alive() {
    let rig = lines("echo up >up; read go <fifo; cat");
    assert!(std::process::Command::new("mkfifo").arg(rig.path("fifo")).status().expect("mkfifo").success());
    let mut shim = rig.start();
    rig.await_file("up");
    let long = "y".repeat(1_000_000);
    // On a busy machine its patience may end before it is let in, or before its line is through.
    until("a line that is taken and not read", || {
        let mut hasty = Client::connect(&rig.bundle(), &rig.spec, Duration::from_millis(200)).ok()?;
        assert!(matches!(hasty.stdin("a", &long), Err(Error::TimedOut)));
        (rig.client().status().expect("status").stdin_pending == 1).then_some(())
    });
    std::fs::write(rig.path("fifo"), "\n").expect("let it read");
    let mut patient = Client::connect(&rig.bundle(), &rig.spec, BOUND).expect("handshake");
    assert_eq!(patient.stdin("a", &long).expect("sent"), Delivered::Duplicate);
    patient.close_stdin().expect("close");
    rig.finish(&mut shim);
    assert!(rig.out() == format!("{long}\n").into_bytes());
}

#[test]
fn without_a_line_input_lines_are_refused() {
    let rig = Rig::sh("echo up >up; sleep 1000");
    let mut shim = rig.start();
    rig.await_file("up");
    let mut client = rig.client();
    assert!(matches!(client.stdin("a", "x"), Err(Error::Refused(Refusal::StdinClosed))));
    assert!(matches!(client.close_stdin(), Err(Error::Refused(Refusal::StdinClosed))));
    client.kill().expect("kill");
    rig.finish(&mut shim);
}

#[test]
fn an_agent_that_closed_its_input_gets_refusals_not_silence() {
    let rig = lines("exec <&-; echo up >up; sleep 1000");
    let mut shim = rig.start();
    rig.await_file("up");
    let mut client = rig.client();
    assert!(matches!(client.stdin("a", "x"), Err(Error::Refused(Refusal::StdinClosed))));
    client.kill().expect("kill");
    rig.finish(&mut shim);
}
