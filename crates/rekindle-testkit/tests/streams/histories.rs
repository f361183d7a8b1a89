//! What a resumed session will know, held to what the real programs' requests held when their record was cut after every line.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rekindle_core::activity::{Ending, Fold, History, Ledger, UnderWay, under_way};
use rekindle_engine::agents::history::Record;
use rekindle_engine::agents::{self, LineSource};
use serde::Deserialize;

/// The kinds with a record in a file.
const KINDS: [&str; 3] = ["claude", "codex", "gemini"];

/// What the first request of a resumed session held.
#[derive(Deserialize)]
struct Resumed {
    did: BTreeSet<u32>,
    prompted: bool,
}

fn file(kind: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/histories").join(kind).join(name)
}

fn read(kind: &str, name: &str) -> String {
    fs::read_to_string(file(kind, name)).expect("a recording")
}

fn ledger(kind: &str, lines: usize) -> Ledger {
    let adapter = agents::KINDS.of(kind).expect("an adapter");
    let (mut reader, mut fold) = (adapter.reader(), Fold::default());
    for line in read(kind, "stream.jsonl").lines().take(lines) {
        reader.line(LineSource::Out, line, true).iter().for_each(|activity| drop(fold.take(activity)));
    }
    fold.ledger().clone()
}

fn compared(kind: &str, ledger: &Ledger, lines: &str) -> (UnderWay, bool) {
    let adapter = agents::KINDS.of(kind).expect("an adapter");
    let history = adapter.history(&Record { lines, whole: true, ledger });
    let prompted = matches!(history, History::Read { prompted: true, .. });
    (under_way(ledger, &history), prompted)
}

/// The results that are told as finished.
fn told(under_way: &UnderWay) -> BTreeSet<u32> {
    let number = |output: &str| output.trim().strip_prefix("did ").and_then(|number| number.parse().ok());
    let finished = |ending: &Ending| match ending {
        Ending::Finished { ok: true, output } => number(output),
        _ => None,
    };
    under_way.calls.iter().filter_map(|lost| finished(&lost.ending)).collect()
}

#[test]
fn what_the_program_forgets_is_told_and_nothing_else() {
    for kind in KINDS {
        let record = read(kind, "record.jsonl");
        let resumed: Vec<Option<Resumed>> = serde_json::from_str(&read(kind, "resumed.json")).expect("recorded");
        let lines: Vec<&str> = record.lines().collect();
        assert_eq!(lines.len(), resumed.len(), "{kind}");
        let ledger = ledger(kind, usize::MAX);
        for (at, resumed) in resumed.iter().enumerate() {
            let Some(resumed) = resumed else { continue };
            let (under_way, prompted) = compared(kind, &ledger, &lines[..=at].join("\n"));
            let told = told(&under_way);
            let all: BTreeSet<u32> = resumed.did.union(&told).copied().collect();
            assert_eq!(all, BTreeSet::from([1, 2, 3, 4]), "{kind} cut after line {}: something is lost", at + 1);
            assert!(resumed.did.is_disjoint(&told), "{kind} cut after line {}: {told:?} is known", at + 1);
            assert!(resumed.prompted || !prompted, "{kind} cut after line {}: the prompt is not there", at + 1);
        }
        assert!(compared(kind, &ledger, &record).0.is_empty(), "{kind}: of a whole record nothing is told");
    }
}

#[test]
fn a_call_without_an_outcome_is_named_whichever_of_the_two_tells_of_it() {
    for kind in KINDS {
        let (stream, record) = (read(kind, "stream.jsonl"), read(kind, "record.jsonl"));
        for heard in 0..=stream.lines().count() {
            let ledger = ledger(kind, heard);
            for cut in 0..=record.lines().count() {
                let lines: Vec<&str> = record.lines().take(cut).collect();
                let (under_way, _) = compared(kind, &ledger, &lines.join("\n"));
                let known = |step: u32| lines.iter().any(|line| line.contains(&format!("did {step}")));
                for entry in ledger.entries().filter(|entry| entry.outcome.is_none()) {
                    let step = entry
                        .call
                        .input
                        .trim_end_matches(['\'', '"'])
                        .chars()
                        .last()
                        .and_then(|last| last.to_digit(10));
                    let named = under_way.calls.iter().any(|lost| lost.input == entry.call.input);
                    let answered = step.is_some_and(known);
                    assert!(named || answered, "{kind}: {heard} lines heard, {cut} recorded: {entry:?}");
                }
            }
        }
    }
}

#[test]
fn a_torn_or_foreign_record_is_no_reason_to_stop() {
    for kind in KINDS {
        let (record, ledger) = (read(kind, "record.jsonl"), ledger(kind, usize::MAX));
        let half = &record[..record.floor_char_boundary(record.len() / 2)];
        let (under_way, _) = compared(kind, &ledger, half);
        assert!(!under_way.calls.is_empty(), "{kind}");
        let (nothing, prompted) = compared(kind, &ledger, "no JSON\n[1]\n{\"type\": 7, \"payload\": []}\n");
        assert_eq!((nothing.calls.len(), prompted), (4, false), "{kind}: {nothing:?}");
    }
}
