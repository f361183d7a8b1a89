//! An agent that sends another into the background and ends its turn: the work goes on, and nobody takes the end of the turn for the
//! end of the work.

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Act, Answer, Purpose, Rule, Script, When};
use serde_json::json;

use crate::bed::{Bed, bye, done};
use crate::matrix::{Fault, assert_outcome};
use crate::setting::Setting;

/// Shorter than the helper's work.
const SETTINGS: &str = "\n[hang]\nafter_result = \"3s\"\n";

/// What the helper is told, and what only its lead knows.
const HELPER: &str = "Make what numbat-5 wants.";
const LEAD: &str = "Make the file";

/// The helper's work: longer than a finished agent may linger, and it shows nothing meanwhile.
const SLOW: &str = "sleep 8; printf yes > made.txt";

#[test]
fn a_helper_in_the_background_is_not_cut_off_by_the_end_of_a_turn() {
    let helper =
        || vec![When::Purpose(Purpose::Main), When::Anywhere(HELPER.to_owned()), When::Nowhere(LEAD.to_owned())];
    let agent = json!({ "description": "make it", "prompt": HELPER, "subagent_type": "general-purpose",
        "run_in_background": true });
    let sends = Answer { acts: vec![Act::Call { tool: "Agent".to_owned(), args: agent }], ..Answer::default() };
    let script = Script::new()
        .rule(Rule { when: helper(), times: Some(1), answer: Answer::shell(SLOW) })
        .rule(Rule { when: helper(), times: None, answer: Answer::say("I made it.") })
        .then(sends)
        .then(bye())
        .then(done())
        .then(bye());
    let bed = Bed::with(Cli::Claude, script, Setting::default(), SETTINGS);
    bed.finish(bed.rig.run());
    assert_outcome(Cli::Claude, Fault::Nothing, &bed.seen(), || bed.story());
    assert!(bed.rig.events_of("agent_told").is_empty(), "it was reminded of its work in the middle\n{}", bed.story());
}
