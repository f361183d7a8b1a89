//! Nothing goes wrong: an agent is given its task, does it, and reports it through rekindle's own tools. What it used is
//! accounted for.

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Answer, Script};
use serde_json::json;

use crate::bed::{Bed, WORD, bye, done, work};
use crate::for_each_cli;
use crate::matrix::{Fault, assert_outcome};

for_each_cli!(task_is_done_through_mcp);

fn task_is_done_through_mcp(cli: Cli) {
    let checkpoint =
        json!({ "task": "T1", "status": "half way", "completed": ["looked"], "remaining": ["write"], "progress": 50 });
    let script = Script::new()
        .then(Answer::report("checkpoint", checkpoint).tokens(5_000, 40))
        .then(done())
        .then(work().tokens(6_000, 30))
        .then(done())
        .then(bye());
    let bed = Bed::new(cli, script);
    bed.finish(bed.rig.run());
    assert_outcome(cli, Fault::Nothing, &bed.seen(), || bed.story());
    assert!(bed.server.main()[0].mentions(WORD), "the first request has the task");
    assert_eq!(bed.rig.events_of("checkpoint_saved").len(), 1, "{}", bed.story());
    let refused = bed.server.main()[2].last_text().to_owned();
    assert!(refused.contains("made.txt"), "a claim without its evidence is answered with what is missing: {refused}");
    accounted_for(&bed);
}

fn accounted_for(bed: &Bed) {
    let status = bed.rig.status();
    let agent = &status["agents"][0];
    let story = || format!("{status:#}\n{}", bed.story());
    assert_eq!(agent["session_id"].as_str(), bed.sessions().first().map(String::as_str), "{}", story());
    // Five answers, with a thousand tokens each where the script says nothing else.
    let tokens = agent["tokens"].as_u64();
    assert!(tokens.is_some_and(|tokens| tokens >= 14_000), "{}", story());
    assert!(agent["context_used"].as_u64().is_some_and(|used| (1_000..20_000).contains(&used)), "{}", story());
    assert_eq!(agent["compactions"], 0, "{}", story());
    // Only some programs say what it cost and how large their context is; where they do, it is told.
    let told = |field: &str| agent[field].as_f64().is_some_and(|number| number > 0.0);
    assert!(agent.get("cost_usd").is_some() && agent.get("context_window").is_some(), "{}", story());
    assert!(bed.cli != Cli::Claude || (told("cost_usd") && told("context_window")), "{}", story());
    assert!(bed.cli != Cli::Codex || told("context_window"), "{}", story());
}
