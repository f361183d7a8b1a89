//! The contract of every adapter's reader, over recorded streams: what each recording means, and that bytes torn, lines cut,
//! repeated or out of order, and damage of any kind bring no panic and nothing without a bound. Recordings are found by their
//! place under `fixtures/streams/KIND`.

mod damage;
mod guard;
mod histories;
mod laws;
mod loops;
mod planted;
mod recordings;
mod shown;

use rekindle_engine::agents;

use damage::{Dice, damaged_bytes, damaged_values};
use laws::{Law, outcome};
use recordings::{Recording, Step, all};

/// Damaged copies of each recording, by bytes and by values each: all recordings together stay within seconds.
const DAMAGED_COPIES: u64 = 32;

/// Orders of the lines that are tried per recording.
const ORDERS: u64 = 8;

fn each(check: impl Fn(&Recording)) {
    let recordings = all();
    assert!(!recordings.is_empty(), "no recordings were found");
    recordings.iter().for_each(check);
}

#[test]
fn every_kind_that_tells_has_recordings() {
    let recordings = all();
    for adapter in agents::KINDS.iter().filter(|adapter| adapter.traits(&agents::Program::default()).structured_output)
    {
        let kind = adapter.kind();
        assert!(recordings.iter().any(|recording| recording.kind == kind), "no recording of {kind}");
    }
    for recording in &recordings {
        assert!(agents::KINDS.of(&recording.kind).is_some(), "{} is of no known kind", recording.label());
    }
}

#[test]
fn every_recording_means_what_it_did() {
    each(|recording| {
        let text = shown::snapshot(recording);
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(format!("{}__{}", recording.kind, recording.name), text);
        });
    });
}

#[test]
fn every_snapshot_has_its_recording() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams/snapshots");
    let labels: Vec<String> = all().iter().map(|found| format!("{}__{}.snap", found.kind, found.name)).collect();
    for entry in std::fs::read_dir(dir).expect("the snapshots are there") {
        let name = entry.expect("listed").file_name().to_string_lossy().into_owned();
        assert!(labels.contains(&name), "{name} has no recording");
    }
}

#[test]
fn bytes_that_arrive_in_pieces_mean_the_same() {
    each(|recording| {
        let whole = recording.steps();
        for size in [1, 2, 3, 7, 61, 1024, 8192, 65_536] {
            assert_eq!(recording.torn(|_| size), whole, "{} in pieces of {size}", recording.label());
        }
        for seed in 1..=ORDERS {
            let mut dice = Dice::new(seed);
            let torn = recording.torn(|_| 1 + dice.below(300));
            assert_eq!(torn, whole, "{} torn by seed {seed}", recording.label());
        }
        let expected = laws::activities(recording.reader().as_mut(), &whole);
        assert_eq!(laws::activities(recording.reader().as_mut(), &whole), expected, "{}", recording.label());
    });
}

/// Output and transcript are read side by side: whichever comes first, what is known in the end is the same.
#[test]
fn the_order_between_the_sources_does_not_matter_in_the_end() {
    each(|recording| {
        let expected = outcome(recording.reader().as_mut(), &recording.steps());
        let mut orders = vec![recording.one_after_the_other(false), recording.one_after_the_other(true)];
        orders.extend((1..=ORDERS).map(|seed| {
            let mut dice = Dice::new(seed);
            recording.merged(|| dice.below(2) == 0)
        }));
        for steps in orders {
            let found = outcome(recording.reader().as_mut(), &steps);
            assert_eq!(found, expected, "{} in another order", recording.label());
        }
    });
}

#[test]
fn a_recording_that_ends_anywhere_says_nothing_that_the_whole_one_does_not() {
    each(|recording| {
        let steps = recording.steps();
        let whole = laws::activities(recording.reader().as_mut(), &steps);
        for lines in 0..steps.len() {
            let some = laws::activities(recording.reader().as_mut(), &steps[..lines]);
            assert!(whole.starts_with(&some), "{} after {lines} lines", recording.label());
            let Some(last) = steps.get(lines) else { continue };
            // The line under way when the process ended.
            let mut cut = steps[..lines].to_vec();
            let half = last.line.floor_char_boundary(last.line.len() / 2);
            cut.push(Step { source: last.source, line: last.line[..half].to_owned(), whole: false });
            let law = Law::check(recording.reader().as_mut(), &cut);
            assert_eq!(law, Ok(()), "{} cut in line {lines}", recording.label());
        }
    });
}

#[test]
fn lines_out_of_order_and_repeated_stay_within_bounds() {
    each(|recording| {
        let steps = recording.steps();
        let sessions = laws::sessions(recording.reader().as_mut(), &steps);
        let mut orders = vec![steps.iter().flat_map(|step| [step.clone(), step.clone()]).collect()];
        for seed in 1..=ORDERS {
            let mut dice = Dice::new(seed);
            let mut mixed = steps.clone();
            for _ in 0..mixed.len() {
                let (a, b) = (dice.below(mixed.len()), dice.below(mixed.len()));
                mixed.swap(a, b);
            }
            orders.push(steps.iter().chain(&mixed).cloned().collect());
            orders.push(mixed);
        }
        for (at, lines) in orders.iter().enumerate() {
            assert_eq!(Law::check(recording.reader().as_mut(), lines), Ok(()), "{} order {at}", recording.label());
            let found = laws::sessions(recording.reader().as_mut(), lines);
            assert!(found.is_subset(&sessions), "{} order {at}: {found:?}", recording.label());
        }
    });
}

#[test]
fn damage_of_any_kind_brings_no_panic_and_nothing_without_a_bound() {
    let recordings = all();
    for recording in &recordings {
        for seed in 1..=DAMAGED_COPIES {
            let mut dice = Dice::new(seed);
            let other = &recordings[dice.below(recordings.len())];
            for steps in [damaged_bytes(recording, other, &mut dice), damaged_values(recording, &mut dice)] {
                let law = Law::check(recording.reader().as_mut(), &steps);
                assert_eq!(law, Ok(()), "{} damaged by seed {seed}", recording.label());
            }
        }
    }
}
