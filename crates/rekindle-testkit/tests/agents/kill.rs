//! `kill -9` of an agent's program while its tool runs. The tool outlives the program and is ended; the CLI session goes on.

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::Script;

use crate::bed::{Bed, assert_gone, bye, done, waiting_tool, work};
use crate::matrix::{Fault, assert_outcome};
use crate::{for_each_cli, lean};

for_each_cli!(killed_in_a_tool_is_resumed_and_leaves_nothing);

fn killed_in_a_tool_is_resumed_and_leaves_nothing(cli: Cli) {
    let script = Script::new().then(waiting_tool()).then(work()).then(done()).then(bye());
    let bed = Bed::new(cli, script);
    let run = bed.rig.run();
    let tool = bed.await_tool();
    // The program runs the call and tells of it at about the same time; killed in between, nobody could know of it.
    bed.await_told(1, "tool-runs.new");
    bed.pin_agent(1).kill();
    // Before anything else is started: what it left would get into its successor's way.
    let dispatched = || bed.rig.events_of("developer_dispatched").len() > 1;
    bed.rig.until("a second attempt", || dispatched().then_some(()));
    assert_gone(tool);
    bed.finish(run);
    assert_outcome(cli, Fault::Killed, &bed.seen(), || bed.story());
    let sessions = bed.sessions();
    assert!(sessions.len() == 2 && sessions[0] == sessions[1], "the same session: {sessions:?}\n{}", bed.story());
    let resumed = &bed.server.main()[1];
    assert!(resumed.mentions("Your session continues"), "it is told why: {}", resumed.last_text());
    let told = resumed.messages.iter().rev().find(|message| message.text.contains("Your session continues"));
    let told = told.map(|message| message.text.clone()).unwrap_or_default();
    assert!(told.contains("tool-runs.new"), "it is told of the call that was cut off: {told}");
    lean::assert_resume_is_short(resumed, || bed.story());
}
