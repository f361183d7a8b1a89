//! The simulator itself: stories repeat exactly, and a first few seeds pass here and now.

use rekindle_testkit::sim::{Options, Outcome, play};

/// Seeds played in the tests; `cargo xtask sim` plays many more.
const SEEDS: u64 = 60;

fn story(seed: u64) -> Outcome {
    play(Options { seed, plant: None, aloud: false })
}

#[test]
fn a_seed_tells_the_same_story_every_time() {
    for seed in 0..10 {
        let (once, again) = (story(seed), story(seed));
        assert_eq!(once.hash, again.hash, "seed {seed}");
        assert_eq!(once.lines, again.lines, "seed {seed}");
    }
    assert_ne!(story(1).hash, story(2).hash);
}

#[test]
fn no_invariant_breaks() {
    let (mut coordinators, mut events, mut signs) = (0, 0, 0);
    for seed in 0..SEEDS {
        let outcome = story(seed);
        assert_eq!(outcome.violation, None, "seed {seed}:\n{}", outcome.lines.join("\n"));
        coordinators += u64::from(outcome.coordinators);
        events += outcome.events;
        signs += outcome.signs;
    }
    assert!(coordinators > 2 * SEEDS, "coordinators hardly ever died: {coordinators}");
    assert!(signs > 5 * SEEDS, "hardly anybody told of itself: {signs}");
    assert!(events > 50 * SEEDS, "hardly anything happened: {events}");
}
