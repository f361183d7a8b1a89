//! `kill -9` of the coordinator while an agent's tool runs: the next one adopts the agent, which notices nothing.

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::Script;

use crate::bed::{Bed, bye, done, waiting_tool, work};
use crate::for_each_cli;
use crate::matrix::{Fault, assert_outcome};
use crate::processes;

for_each_cli!(adopted_after_the_coordinators_death);

fn adopted_after_the_coordinators_death(cli: Cli) {
    let script = Script::new().then(waiting_tool()).then(work()).then(done()).then(bye());
    let bed = Bed::new(cli, script);
    let run = bed.rig.run();
    let tool = bed.await_tool();
    let agent = bed.agent_pid(1);
    run.kill();
    let again = bed.rig.run();
    bed.rig.await_event("agent_adopted");
    assert!(processes::runs(agent) && processes::runs(tool), "both live on\n{}", bed.story());
    bed.go();
    bed.finish(again);
    assert_outcome(cli, Fault::CoordinatorKilled, &bed.seen(), || bed.story());
    assert_eq!(bed.sessions().len(), 1, "{}", bed.story());
    assert_eq!(bed.server.main().len(), 4, "nothing was asked twice\n{}", bed.story());
}
