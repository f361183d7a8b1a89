//! Trouble with a provider that most programs see to themselves by trying again, and the one that never stops trying.

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Answer, End, Fail, Purpose, Script, When};

use crate::bed::{Bed, bye, done, work};
use crate::for_each_cli;
use crate::matrix::{Fault, assert_outcome};

for_each_cli!(answer_that_breaks_off_is_asked_for_again);
for_each_cli!(overload_is_waited_out);

fn answer_that_breaks_off_is_asked_for_again(cli: Cli) {
    met(cli, bye().end(End::Cut), Fault::BrokenOff);
}

fn overload_is_waited_out(cli: Cli) {
    met(cli, Answer::fail(Fail::Overloaded), Fault::Overloaded);
}

fn met(cli: Cli, trouble: Answer, fault: Fault) {
    let script = Script::new().then(work()).then(trouble).then(done()).then(bye());
    let bed = Bed::new(cli, script);
    bed.finish(bed.rig.run());
    assert_outcome(cli, fault, &bed.seen(), || bed.story());
    assert!(bed.server.unused().is_empty(), "{:?}\n{}", bed.server.unused(), bed.story());
}

/// One program asks again at once and for ever when answers end too soon: hundreds of times a minute. It is stopped, its account
/// is left alone for a while, and its session goes on.
#[test]
fn program_that_asks_without_end_is_stopped() {
    let not_resumed = [When::Purpose(Purpose::Main), When::Nowhere("Your session continues".to_owned())];
    let script = Script::new().then(work()).whenever(not_resumed, bye().end(End::Unfinished)).then(done()).then(bye());
    let bed = Bed::new(Cli::Opencode, script);
    bed.finish(bed.rig.run());
    let seen = bed.seen();
    assert_eq!(seen.causes, ["overloaded", "completed"], "{seen:?}\n{}", bed.story());
    assert_eq!(seen.strategies, ["first", "resume"], "{seen:?}\n{}", bed.story());
    assert_eq!(bed.rig.events_of("gate_closed").len(), 1, "{}", bed.story());
    assert_eq!(bed.rig.task("T1")["attempts"], 1, "no attempt is spent on it\n{}", bed.story());
}

/// Refused credentials stop the program at once and ask a person, whose answer lets its session go on.
fn refused_credentials_ask_a_person(cli: Cli) {
    let not_resumed = [When::Purpose(Purpose::Main), When::Nowhere("Your session continues".to_owned())];
    let script = Script::new().then(work()).whenever(not_resumed, Answer::fail(Fail::Auth)).then(done()).then(bye());
    let bed = Bed::new(cli, script);
    let run = bed.rig.run();
    bed.rig.await_event("question_asked");
    bed.rig.await_event("gate_closed");
    bed.rig.ok(&["answer", "1", "done"]);
    bed.finish(run);
    let seen = bed.seen();
    assert_eq!(seen.causes, ["auth", "completed"], "{seen:?}\n{}", bed.story());
    assert_eq!(seen.strategies, ["first", "resume"], "{seen:?}\n{}", bed.story());
    assert_eq!(bed.rig.task("T1")["attempts"], 1, "no attempt is spent on it\n{}", bed.story());
}

// The fourth program tries for three minutes before it believes that its key is refused: its recordings show what it says then.
#[test]
fn refused_credentials_ask_a_person_codex() {
    refused_credentials_ask_a_person(Cli::Codex);
}

#[test]
fn refused_credentials_ask_a_person_gemini() {
    refused_credentials_ask_a_person(Cli::Gemini);
}

#[test]
fn refused_credentials_ask_a_person_opencode() {
    refused_credentials_ask_a_person(Cli::Opencode);
}
