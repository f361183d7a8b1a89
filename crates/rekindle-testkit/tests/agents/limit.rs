//! An allowance that is used up until a few seconds from now: waited for without spending an attempt, then finished.

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Answer, Asked, Fail, Script};

use crate::bed::{Bed, bye, done, work};
use crate::for_each_cli;
use crate::matrix::{Fault, assert_outcome};
use crate::setting::Setting;

/// How long the allowance stays used up, in seconds. One program waits out a minute by itself, so it is more for that one.
fn resets_in_s(cli: Cli) -> u64 {
    match cli {
        Cli::Opencode => 64,
        Cli::Claude | Cli::Codex | Cli::Gemini => 8,
    }
}

/// One program names no reset: it waits this long, in seconds, which is longer.
const SETTINGS: &str = "\n[usage]\ngrace = \"0s\"\ndefault_wait = \"9s\"\n";

for_each_cli!(usage_limit_is_waited_out);

fn script(resets_in_s: u64) -> Script {
    Script::new().then(work()).then(Answer::fail(Fail::UsageLimit { resets_in_s })).then(done()).then(bye())
}

fn usage_limit_is_waited_out(cli: Cli) {
    let script = script(resets_in_s(cli));
    let setting = Setting { subscribed: true, ..Setting::default() };
    let bed = Bed::with(cli, script, setting, SETTINGS);
    bed.finish(bed.rig.run());
    assert_outcome(cli, Fault::UsageLimit, &bed.seen(), || bed.story());
    let refused: Vec<Asked> = bed.server.main().into_iter().filter(|asked| asked.rule == Some(1)).collect();
    assert_eq!(refused.len(), 1, "asked again before the reset\n{}", bed.story());
    assert_eq!(bed.rig.events_of("gate_closed").len(), 1, "{}", bed.story());
    assert_eq!(bed.rig.task("T1")["attempts"], 1, "a wait costs no attempt\n{}", bed.story());
}

/// A program that waits by itself for a short while is left to it.
#[test]
fn short_wait_of_a_program_that_waits_by_itself_is_left_to_it() {
    let bed = Bed::with(Cli::Opencode, script(5), Setting::default(), SETTINGS);
    bed.finish(bed.rig.run());
    assert_outcome(Cli::Opencode, Fault::Nothing, &bed.seen(), || bed.story());
    let refused = bed.server.main().into_iter().filter(|asked| asked.rule == Some(1)).count();
    assert!(refused > 0, "it was refused and went on\n{}", bed.story());
}

/// A session that was refused at its first request may not be there to be resumed: that costs no attempt either.
fn refused_at_the_first_request(cli: Cli) {
    let refused = Answer::fail(Fail::UsageLimit { resets_in_s: resets_in_s(cli) });
    let script = Script::new().then(refused).then(work()).then(done()).then(bye());
    let setting = Setting { subscribed: true, ..Setting::default() };
    let bed = Bed::with(cli, script, setting, SETTINGS);
    bed.finish(bed.rig.run());
    assert_eq!(bed.rig.events_of("gate_closed").len(), 1, "{}", bed.story());
    assert_eq!(bed.rig.task("T1")["attempts"], 1, "a wait costs no attempt\n{}", bed.story());
}

#[test]
fn refused_at_the_first_request_claude() {
    refused_at_the_first_request(Cli::Claude);
}

#[test]
fn refused_at_the_first_request_codex() {
    refused_at_the_first_request(Cli::Codex);
}

#[test]
fn refused_at_the_first_request_gemini() {
    refused_at_the_first_request(Cli::Gemini);
}
