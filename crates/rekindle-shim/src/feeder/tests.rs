//! Lines through a real pipe: whole, once, in order, bounded.

use rustix::pipe::{PipeFlags, pipe_with};

use super::*;

fn feeder() -> (OwnedFd, Feeder) {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).expect("pipe");
    (read, Feeder::new(Some(write)))
}

fn drain(read: &OwnedFd) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = [0; 65536];
    while let Ok(n) = rustix::io::read(read, &mut buffer) {
        if n == 0 {
            break;
        }
        all.extend_from_slice(&buffer[..n]);
    }
    all
}

fn written(id: &str) -> Reply {
    Reply::Written { id: id.to_owned() }
}

fn duplicate(id: &str) -> Reply {
    Reply::Duplicate { id: id.to_owned() }
}

#[test]
fn a_line_is_acknowledged_only_when_its_last_byte_is_in_the_pipe() {
    let (read, mut feeder) = feeder();
    let long = "x".repeat(300_000);
    assert_eq!(feeder.offer(1, "a", &long), None);
    assert_eq!(feeder.offer(2, "b", "second"), None);
    assert_eq!(feeder.pump(), vec![]);
    assert_eq!(feeder.offer(3, "a", &long), None, "a repetition of a waiting line waits too");
    let mut got = Vec::new();
    let mut answers = Vec::new();
    while answers.len() < 3 {
        got.extend(drain(&read));
        answers.extend(feeder.pump());
    }
    got.extend(drain(&read));
    assert_eq!(answers, vec![(1, written("a")), (3, duplicate("a")), (2, written("b"))]);
    assert_eq!(got, format!("{long}\nsecond\n").into_bytes());
    assert_eq!(feeder.offer(4, "a", "other"), Some(duplicate("a")));
    assert_eq!(drain(&read), b"");
}

#[test]
fn a_line_break_inside_a_line_is_refused() {
    let (_read, mut feeder) = feeder();
    for bad in ["a\nb", "a\r", "\n"] {
        assert_eq!(feeder.offer(1, "i", bad), Some(Reply::Refused { why: Refusal::BadLine }));
    }
    assert_eq!(feeder.offer(1, "", "x"), Some(Reply::Refused { why: Refusal::BadLine }));
}

#[test]
fn closing_lets_accepted_lines_through_first() {
    let (read, mut feeder) = feeder();
    feeder.offer(1, "a", "last");
    assert!(feeder.close());
    assert_eq!(feeder.offer(1, "b", "late"), Some(Reply::Refused { why: Refusal::StdinClosed }));
    assert_eq!(feeder.pump(), vec![(1, written("a"))]);
    assert_eq!(drain(&read), b"last\n");
    let end = rustix::io::read(&read, &mut [0; 1]).expect("end of file, not would-block");
    assert_eq!(end, 0);
    assert!(!feeder.close());
}

#[test]
fn a_reader_that_left_turns_waiting_lines_into_refusals() {
    let (read, mut feeder) = feeder();
    drop(read);
    feeder.offer(1, "a", "x");
    assert_eq!(feeder.pump(), vec![(1, Reply::Refused { why: Refusal::StdinClosed })]);
    assert_eq!(feeder.offer(1, "a", "x"), Some(Reply::Refused { why: Refusal::StdinClosed }));
}

#[test]
fn the_queue_is_bounded() {
    let (_read, mut feeder) = feeder();
    let mut accepted = 0;
    let refused = (0..10_000).find_map(|n| {
        let answer = feeder.offer(1, &n.to_string(), "x");
        accepted += 1;
        answer
    });
    assert_eq!(refused, Some(Reply::Refused { why: Refusal::Busy }));
    assert!(accepted <= QUEUE_MAX_LINES + 1);
}
