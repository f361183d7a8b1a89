//! A provider that goes silent: no program here notices by itself in useful time. It is noticed without a token, by the
//! silence of everything that the agent could show.

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Answer, End, Script};

use crate::bed::{Bed, bye, done, work};
use crate::for_each_cli;
use crate::matrix::{Fault, assert_outcome};
use crate::setting::Setting;

/// Short for a test, and longer than a program on a loaded machine does nothing at all while it starts or works.
const SETTINGS: &str = "\n[hang]\nfirst_event = \"15s\"\nsilence = \"10s\"\n";

for_each_cli!(hang_before_headers_is_caught);
for_each_cli!(hang_mid_stream_is_caught);

fn hang_before_headers_is_caught(cli: Cli) {
    caught(cli, End::HangBeforeHeaders, Fault::HangBeforeHeaders);
}

fn hang_mid_stream_is_caught(cli: Cli) {
    caught(cli, End::HangMidStream, Fault::HangMidStream);
}

fn caught(cli: Cli, end: End, fault: Fault) {
    // In the middle means: after a call, so that every program has shown its session.
    let begun = if fault == Fault::HangMidStream { Script::new().then(work()) } else { Script::new() };
    let script = begun.then(bye().end(end)).then(work()).then(done()).then(bye());
    let bed = Bed::with(cli, script, Setting::default(), SETTINGS);
    bed.finish(bed.rig.run());
    assert_outcome(cli, fault, &bed.seen(), || bed.story());
    let hung = bed.rig.events_of("agent_hung");
    let evidence = hung.first().map(|event| event["details"]["evidence"].to_string()).unwrap_or_default();
    assert!(hung.len() == 1 && evidence.contains("provider had not answered"), "{evidence}\n{}", bed.story());
}

for_each_cli!(an_answer_that_drips_in_is_never_called_hung);

/// A model that thinks: its program shows nothing for longer than it may be silent, and all that moves is a byte now and then on its
/// connection.
fn an_answer_that_drips_in_is_never_called_hung(cli: Cli) {
    let script = Script::new().then(work()).then(done().end(End::Drips { for_s: 16 })).then(bye());
    let bed = Bed::with(cli, script, Setting::default(), SETTINGS);
    bed.finish(bed.rig.run());
    assert_outcome(cli, Fault::Nothing, &bed.seen(), || bed.story());
    assert!(bed.rig.events_of("agent_hung").is_empty(), "{}", bed.story());
}

/// A tool that never ends and does nothing at all: its program would wait for it, and so would nobody else. A tool that works is
/// left alone, however quiet it is.
fn silent_tool_is_caught_and_a_busy_one_is_not(cli: Cli) {
    let busy =
        Answer::shell("end=$(($(date +%s) + 14)); while [ $(date +%s) -lt $end ]; do :; done; printf yes > made.txt");
    let script = Script::new().then(Answer::shell("exec sleep 1000")).then(busy).then(done()).then(bye());
    let bed = Bed::with(cli, script, Setting::default(), SETTINGS);
    bed.finish(bed.rig.run());
    let seen = bed.seen();
    assert_eq!(seen.causes, ["hung_mid_stream", "completed"], "{seen:?}\n{}", bed.story());
    let hung = bed.rig.events_of("agent_hung");
    let evidence = hung.first().map(|event| event["details"]["evidence"].to_string()).unwrap_or_default();
    assert!(hung.len() == 1 && evidence.contains("sleep 1000"), "{hung:?}\n{}", bed.story());
}

#[test]
fn silent_tool_is_caught_and_a_busy_one_is_not_claude() {
    silent_tool_is_caught_and_a_busy_one_is_not(Cli::Claude);
}

#[test]
fn silent_tool_is_caught_and_a_busy_one_is_not_codex() {
    silent_tool_is_caught_and_a_busy_one_is_not(Cli::Codex);
}
