//! `rekindle chaos --real-agents`: the configured program does the plan's own work in the sandbox, is hurt there, and every promise that
//! can be looked at with it holds.

use std::path::Path;

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::Script;
use serde_json::Value;

use crate::bed::{Bed, PATIENCE, bye, done, work};
use crate::for_each_cli;
use crate::rig::until_within;

for_each_cli!(a_killed_coordinator_costs_the_real_program_nothing);

fn a_killed_coordinator_costs_the_real_program_nothing(cli: Cli) {
    // A quick program is through before its moment comes: the model answers when the coordinator was killed.
    let gate = tempfile::tempdir().expect("a folder");
    let killed = gate.path().join("killed");
    let script = Script::new().then(work().after(&killed)).then(done()).then(bye());
    let bed = Bed::new(cli, script);
    let arguments =
        ["chaos", "plan.md", "--real-agents", "--fault", "kill-coordinator", "--json", "--seed", "1", "--for", "4m"];
    let mut chaos = bed.rig.start(&arguments);
    let scratch = bed.rig.outside("tmp");
    let ended = until_within(PATIENCE, || {
        if second_coordinator(&scratch) {
            std::fs::write(&killed, "").expect("the gate");
        }
        chaos.has_ended()
    });
    let (code, printed) = (ended.and_then(|status| status.code()), chaos.printed());
    let told: Value =
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}{}", chaos.said()));
    assert_eq!((code, &told["held"]), (Some(0), &true.into()), "{told:#}\n{}", chaos.said());
    let run = &told["runs"][0];
    assert!(run["injected"].as_u64().is_some_and(|times| times >= 1), "nothing was killed: {told:#}");
    let looked = told["promises"].as_array().expect("promises").iter().filter(|one| one["looked_at"] != 0).count();
    assert!(looked >= 3, "too little was looked at: {told:#}");
    assert!(!bed.server.main().is_empty(), "the real program asked its model");
    assert!(!bed.rig.has("made.txt"), "the work was done in the sandbox, not here");
    bed.rig.assert_nothing_left();
}

/// Whether a run of the sandbox was started a second time.
fn second_coordinator(scratch: &Path) -> bool {
    let sandboxes = std::fs::read_dir(scratch).expect("the folder for temporary files");
    sandboxes.flatten().any(|sandbox| sandbox.path().join("kill-coordinator-1/run-2.log").exists())
}
