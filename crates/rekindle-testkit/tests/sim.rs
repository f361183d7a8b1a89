//! The simulator itself: stories repeat exactly, some seeds pass here and now, and planted bugs are seen.

use rekindle_testkit::sim::{Invariant, Options, Outcome, Plant, play};

/// Seeds within which a planted bug must show; most show in the first few.
const SEEDS: u64 = 60;

fn story(seed: u64, plant: Option<Plant>) -> Outcome {
    play(Options { seed, plant, aloud: false })
}

#[test]
fn a_seed_tells_the_same_story_every_time() {
    for seed in [1, 7, 42] {
        let (once, again) = (story(seed, None), story(seed, None));
        assert_eq!(once.hash, again.hash, "seed {seed}");
        assert_eq!(once.lines, again.lines, "seed {seed}");
        assert!(once.happenings > 50, "seed {seed} is no story: {}", once.happenings);
    }
    assert_ne!(story(1, None).hash, story(2, None).hash);
}

#[test]
fn nothing_breaks_without_a_planted_bug() {
    let (mut coordinators, mut events) = (0, 0);
    for seed in 0..SEEDS {
        let outcome = story(seed, None);
        assert_eq!(outcome.violation, None, "seed {seed}:\n{}", outcome.lines.join("\n"));
        coordinators += u64::from(outcome.coordinators);
        events += outcome.events;
    }
    assert!(coordinators > 2 * SEEDS, "coordinators hardly ever died: {coordinators}");
    assert!(events > 50 * SEEDS, "hardly anything happened: {events}");
}

/// Every violation of a planted bug on these seeds must be one of the invariants it breaks, and the first of them be seen.
fn is_seen(plant: Plant, expected: &[Invariant]) {
    let mut seen = false;
    for seed in 0..SEEDS {
        if let Some(violation) = story(seed, Some(plant)).violation {
            assert!(
                expected.contains(&violation.invariant),
                "seed {seed}: {} was seen as `{}`: {}",
                plant.name(),
                violation.invariant,
                violation.what
            );
            seen |= violation.invariant == expected[0];
        }
    }
    assert!(seen, "{} was not seen on {SEEDS} seeds", plant.name());
}

#[test]
fn a_dropped_epoch_check_is_seen() {
    is_seen(Plant::NoEpochCheck, &[Invariant::StaleEpoch]);
}

#[test]
fn an_acknowledgement_before_the_commit_is_seen() {
    is_seen(Plant::AckBeforeCommit, &[Invariant::AckSurvives, Invariant::DurableFirst]);
}

#[test]
fn ending_only_the_process_group_is_seen() {
    is_seen(Plant::KillpgOnly, &[Invariant::TreeGone]);
}

#[test]
fn ingest_without_a_stored_offset_is_seen() {
    is_seen(Plant::IngestWithoutOffset, &[Invariant::OutputExact]);
}

#[test]
fn trusting_an_agents_word_is_seen() {
    is_seen(Plant::TrustDone, &[Invariant::Proven]);
}
