//! An allowance that is used up until a few seconds from now: waited for without spending an attempt, then finished.

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Answer, Asked, Fail, Script};

use crate::bed::{Bed, bye, done, work};
use crate::for_each_cli;
use crate::matrix::{Fault, assert_outcome};
use crate::setting::Setting;

/// How long the allowance stays used up.
const RESETS_IN_S: u64 = 8;

/// One program names no reset: it waits this long, in seconds, which is longer.
const SETTINGS: &str = "\n[usage]\ngrace = \"0s\"\ndefault_wait = \"9s\"\n";

for_each_cli!(usage_limit_is_waited_out);

fn usage_limit_is_waited_out(cli: Cli) {
    let script = Script::new()
        .then(work())
        .then(Answer::fail(Fail::UsageLimit { resets_in_s: RESETS_IN_S }))
        .then(done())
        .then(bye());
    let setting = Setting { subscribed: true, ..Setting::default() };
    let bed = Bed::with(cli, script, setting, SETTINGS);
    bed.finish(bed.rig.run());
    assert_outcome(cli, Fault::UsageLimit, &bed.seen(), || bed.story());
    let refused: Vec<Asked> = bed.server.main().into_iter().filter(|asked| asked.rule == Some(1)).collect();
    assert_eq!(refused.len(), 1, "asked again before the reset\n{}", bed.story());
    assert_eq!(bed.rig.events_of("gate_closed").len(), 1, "{}", bed.story());
    assert_eq!(bed.rig.task("T1")["attempts"], 1, "a wait costs no attempt\n{}", bed.story());
}
