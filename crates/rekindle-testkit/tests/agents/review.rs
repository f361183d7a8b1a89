//! A task on its way through developer, critic and auditor, all of them a real program: a defect is planted that the checks and
//! the critic do not see. The auditor finds it, and the developer mends it in the session that it had.

use rekindle_testkit::installed::Cli;
use rekindle_testkit::model::{Answer, Script};
use serde_json::{Value, json};

use crate::bed::{Bed, WORD, bye, done};

const PLAN: &str = "---\nreview: [critic, auditor]\n---\n# Reviewed agents\n\nA small plan.\n\n\
    ### T1: Make the files\n- artifacts: made.txt\n- accept: `test \"$(cat made.txt)\" = yes`\n\n\
    Write yes into made.txt, and the sum of 2 and 3 into sum.txt. The word of this task is quokka-7141.\n";

/// What the auditor finds: nobody else says so.
const FOUND: &str = "sum.txt holds 6, and 2 and 3 are 5: pademelon-15";

fn verdict(tool: &str, verdict: &str, issues: &[&str]) -> Answer {
    Answer::report(
        tool,
        json!({ "task": "T1", "verdict": verdict, "issues": issues, "required": [], "passed": ["made.txt"] }),
    )
}

#[test]
fn an_auditor_finds_what_the_critic_missed_and_the_developer_mends_it() {
    let script = Script::new()
        // The developer plants the defect; the checks do not look at that file.
        .then(Answer::shell("printf yes > made.txt && printf 6 > sum.txt"))
        .then(done())
        .then(bye())
        // The critic looks at one file only.
        .then(Answer::shell("cat made.txt"))
        .then(verdict("review", "pass", &[]))
        .then(bye())
        // The auditor looks at the other.
        .then(Answer::shell("cat sum.txt"))
        .then(verdict("audit", "fail", &[FOUND]))
        .then(bye())
        // The developer goes on in its session.
        .then(Answer::shell("printf 5 > sum.txt"))
        .then(done())
        .then(bye())
        .then(verdict("review", "pass", &[]))
        .then(bye())
        .then(Answer::shell("cat sum.txt"))
        .then(verdict("audit", "pass", &[]))
        .then(bye());
    let bed = Bed::new(Cli::Claude, script);
    bed.rig.write("plan.md", PLAN);
    bed.finish(bed.rig.run());
    assert_eq!(std::fs::read_to_string(bed.rig.path("sum.txt")).expect("a sum"), "5");

    let roles: Vec<String> = bed.rig.events().iter().filter_map(dispatched).collect();
    let expected = ["developer", "critic", "auditor", "developer", "critic", "auditor"];
    assert_eq!(roles, expected, "{}", bed.story());
    let disagreement = &bed.rig.events_of("review_audit_disagreement")[0]["details"];
    assert_eq!(disagreement["disagreement_type"], "code_quality", "{}", bed.story());
    assert_eq!(disagreement["auditor_failed"], json!([FOUND]));

    let sessions = bed.sessions();
    assert_eq!(sessions.len(), 6, "{}", bed.story());
    assert_eq!(sessions[0], sessions[3], "the developer goes on in its session\n{}", bed.story());
    assert!(sessions[1] != sessions[0] && sessions[1] != sessions[2], "reviewers have sessions of their own");
    let strategies = bed.seen().strategies;
    assert_eq!(strategies, ["first", "resume"], "{}", bed.story());

    let main = bed.server.main();
    let (critic, auditor, rework) = (&main[3], &main[6], &main[9]);
    assert!(critic.mentions(WORD) && critic.mentions("## The Task to Judge"), "{}", bed.story());
    assert!(critic.mentions("made.txt says yes"), "what the developer said: {}", bed.story());
    assert!(main[7].last_text().contains('6'), "it has read the file: {}", main[7].last_text());
    assert!(auditor.mentions("Prove independently") && auditor.mentions("REVIEW_PASSED"), "{}", bed.story());
    assert!(rework.mentions(FOUND), "{}\n{}", rework.last_text(), bed.story());
    assert!(rework.mentions("Sent Back by the Auditor"), "{}", rework.last_text());
    assert!(rework.mentions("printf 6 > sum.txt"), "it remembers what it did: {}", bed.story());
}

/// The role that an event sends out.
fn dispatched(event: &Value) -> Option<String> {
    event["kind"].as_str()?.strip_suffix("_dispatched").map(str::to_owned)
}
