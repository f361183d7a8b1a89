//! A context that is compacted: the program forgets all but a summary that says nothing. What the agent has to know of its task
//! is before the model again in the next request.

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Answer, Purpose, Script, When};
use serde_json::json;

use crate::bed::{Bed, WORD, bye, done, work};
use crate::for_each_cli;
use crate::matrix::{Fault, assert_outcome};
use crate::setting::{MUCH, Setting};

/// In the checkpoint that the agent saved before: nobody repeats it but rekindle.
const KEPT: &str = "wombat-22";

/// All that the program's summary says.
const SUMMARY: &str = "numbat summary";

for_each_cli!(task_state_is_put_back_after_a_compaction);

fn task_state_is_put_back_after_a_compaction(cli: Cli) {
    let checkpoint =
        json!({ "task": "T1", "status": KEPT, "completed": ["looked around"], "remaining": ["write the file"] });
    let script = forgetting()
        .then(Answer::report("checkpoint", checkpoint).tokens(2_000, 20))
        .then(bending(cli))
        .then(Answer::shell("echo so far").tokens(MUCH, 50))
        .then(work())
        .then(done())
        .then(bye());
    let bed = Bed::with(cli, script, Setting { compacts: true, ..Setting::default() }, "");
    bed.finish(bed.rig.run());
    assert_outcome(cli, Fault::Compacted, &bed.seen(), || bed.story());
    let asked = bed.server.asked();
    let last = asked.iter().rposition(|asked| asked.purpose == Purpose::Compaction).expect("a summary was asked for");
    let next = asked[last..].iter().find(|asked| asked.purpose == Purpose::Main).expect("it went on");
    assert!(next.mentions(SUMMARY), "it has forgotten: {}\n{}", next.last_text(), bed.story());
    assert!(next.mentions(WORD), "the task: {}\n{}", next.last_text(), bed.story());
    assert!(next.mentions(KEPT), "its checkpoint: {}\n{}", next.last_text(), bed.story());
    assert_eq!(bed.rig.task("T1")["compactions"], 1, "{}", bed.story());
}

/// A program that is asked for a summary gets one that says nothing.
pub fn forgetting() -> Script {
    let summary =
        format!("<analysis>Read.</analysis><summary>{SUMMARY}</summary><state_snapshot>{SUMMARY}</state_snapshot>");
    Script::new().whenever([When::Purpose(Purpose::Compaction)], Answer::say(summary).tokens(500, 20))
}

/// One program compacts only what comes before another message of the user. It writes one itself when the model repeats itself.
pub fn bending(cli: Cli) -> Answer {
    match cli {
        Cli::Gemini => Answer::say("It goes round and round and never comes to an end. ".repeat(40)),
        Cli::Claude | Cli::Codex | Cli::Opencode => Answer::shell("echo so far").tokens(2_000, 20),
    }
}
