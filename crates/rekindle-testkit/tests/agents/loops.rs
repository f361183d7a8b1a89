//! Agents that go round in circles: a test that fails in the same way again and again although its output varies, and the
//! program's own word that its model loops. The successor is fresh and knows what did not work.

#![expect(clippy::print_stdout, reason = "the score is printed")]

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Answer, Purpose, Script, When};

use crate::bed::{Bed, bye, done, work};

/// Requests within which a loop of failing tests must have been noticed and its agent replaced.
const REQUESTS_MAX: usize = 40;

/// In the brief of an agent whose predecessor went round in circles.
const ADVICE: &str = "did not work, try something else";

/// A test that takes another time and runs as another process each time, and fails with the same words.
fn failing_test() -> Answer {
    Answer::shell("echo \"run $$ took $(date +%N) ns\"; echo 'test sum_is_right ... FAILED'; exit 1")
}

fn failing_tests_without_end(cli: Cli) {
    let not_advised = [When::Purpose(Purpose::Main), When::Nowhere(ADVICE.to_owned())];
    let script = Script::new().whenever(not_advised, failing_test()).then(work()).then(done()).then(bye());
    let bed = Bed::new(cli, script);
    bed.finish(bed.rig.run());
    let seen = bed.seen();
    assert_eq!(seen.causes, ["stalled_no_progress", "completed"], "{seen:?}\n{}", bed.story());
    assert_eq!(seen.strategies, ["first", "fresh"], "{seen:?}\n{}", bed.story());
    let asked = bed.server.main().len();
    assert!(asked <= REQUESTS_MAX, "{asked} requests\n{}", bed.story());
    assert!(bed.rig.events_of("agent_stalled").len() <= 2, "{}", bed.story());
    println!("loop of failing tests, {}: over after {asked} requests in all", cli.name());
}

#[test]
fn claude_is_told_once_and_then_replaced() {
    failing_tests_without_end(Cli::Claude);
}

#[test]
fn codex_is_replaced_at_once() {
    failing_tests_without_end(Cli::Codex);
}

/// Gemini CLI warns its model at the first repetition and gives up at the second, with an exit code of 0.
#[test]
fn a_loop_that_the_program_noticed_itself_is_not_resumed() {
    let round_and_round = "It goes round and round and never comes to an end. ".repeat(40);
    let same_session = [When::Purpose(Purpose::Main), When::Nowhere("continuing work".to_owned())];
    let script =
        Script::new().whenever(same_session, Answer::say(round_and_round)).then(work()).then(done()).then(bye());
    let bed = Bed::new(Cli::Gemini, script);
    bed.finish(bed.rig.run());
    let seen = bed.seen();
    assert_eq!(seen.causes, ["stalled_no_progress", "completed"], "{seen:?}\n{}", bed.story());
    assert_eq!(seen.strategies, ["first", "fresh"], "{seen:?}\n{}", bed.story());
}
