//! An agent that does its work and says so only in prose: it is reminded once, then its checks decide.

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Answer, Script};

use crate::bed::{Bed, work};
use crate::for_each_cli;

const WORDS: &str = "The task is finished.";

for_each_cli!(work_that_is_reported_only_in_prose_is_taken);

fn work_that_is_reported_only_in_prose_is_taken(cli: Cli) {
    let script = Script::new().then(work()).then(Answer::say(WORDS)).then(Answer::say(WORDS));
    let bed = Bed::new(cli, script);
    bed.finish(bed.rig.run());
    let task = bed.rig.task("T1");
    assert_eq!((&task["unreported"], &task["attempts"]), (&true.into(), &1.into()), "{task:#}\n{}", bed.story());
    assert_eq!(task["result"], WORDS, "{}", bed.story());
    // The work, its end, and one reminder: nobody did it again.
    assert_eq!(bed.server.main().len(), 3, "{}", bed.story());
    let looked = bed.rig.events_of("task_claimed");
    assert_eq!((looked.len(), &looked[0]["details"]["door"]), (1, &"unreported".into()), "{looked:?}");
}
