//! `git clean -fdx` deletes the state directory under a run: that is noticed, its agents end, and the next run begins with none
//! of them beside its own.

use crate::processes;
use crate::rig::Rig;

const PLAN: &str = "# Clean\n\n### T1: one\n- accept: `test -e made`\n\nWork.\n";

/// Says that it began, and works until it is told to go on.
const AGENT: &str = "echo $$ >> \"$OUTSIDE/began\"\n$FAKE wait \"$OUTSIDE/go\"\ntouch made\nrekindle task done T1\n";

fn project(isolation: &str) -> Rig {
    let rig = Rig::new(PLAN, "true\n");
    let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
    rig.write("rekindle.toml", &settings.replace("[run]\n", &format!("[run]\nisolation = \"{isolation}\"\n")));
    std::fs::create_dir(rig.outside("told")).expect("a directory");
    rig.write("agent.sh", &AGENT.replace("$OUTSIDE", &rig.outside("told").to_string_lossy()));
    rig.commit_first("-A");
    rig
}

fn began(rig: &Rig) -> Vec<u32> {
    let text = std::fs::read_to_string(rig.outside("told/began")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Deletes the state of a run whose agent works; says who that agent is.
fn cleaned(rig: &Rig) -> u32 {
    let agent = rig.until("the first agent", || began(rig).first().copied());
    rig.await_event("agent_started");
    rig.git(&["clean", "-fdxq"]);
    assert!(!rig.state().join("state.db").exists());
    agent
}

#[test]
fn the_coordinator_says_so_and_its_agent_ends() {
    let rig = project("shared");
    let run = rig.run();
    let agent = cleaned(&rig);
    let ended = run.end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("was deleted while its run was in progress"), "{ended:?}");
    assert!(ended.err.contains("rekindle run"), "{ended:?}");
    rig.until("the end of its agent", || (!processes::runs(agent)).then_some(()));
    rig.assert_nothing_left();
}

#[test]
fn the_next_run_starts_nobody_beside_the_agents_of_the_last() {
    for isolation in ["shared", "worktree"] {
        let rig = project(isolation);
        let run = rig.run();
        let agent = cleaned(&rig);
        // Whether or not the coordinator has noticed.
        run.kill();
        let next = rig.run();
        rig.until("a second agent", || (began(&rig).len() >= 2).then_some(()));
        assert!(!processes::runs(agent), "{isolation}: two agents work in one place");
        std::fs::write(rig.outside("told/go"), "").expect("go");
        let ended = next.end();
        assert_eq!(ended.code, Some(0), "{isolation}: {ended:?}\n{}", rig.story());
        assert_eq!(began(&rig).len(), 2, "{isolation}");
        rig.assert_nothing_left();
    }
}

#[test]
fn an_agent_that_nobody_ends_is_named_and_nobody_else_begins() {
    let rig = project("shared");
    let run = rig.run();
    let agent = rig.until("the first agent", || began(&rig).first().copied());
    rig.await_event("agent_started");
    let shim = rig.until("its shim", || rig.shim_record(1))["shim"]["pid"].as_u64().expect("a number");
    let shim = u32::try_from(shim).expect("a number");
    // Without its shim nobody ends the agent.
    rig.pin(shim).kill();
    run.kill();
    rig.git(&["clean", "-fdxq"]);
    let ended = rig.run().end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains(&agent.to_string()), "{agent} is not named: {ended:?}");
    assert_eq!(began(&rig).len(), 1, "another agent began");
    processes::signal(agent, &rig.root().parent().expect("a parent").to_string_lossy(), rustix::process::Signal::KILL);
    std::fs::write(rig.outside("told/go"), "").expect("go");
    rig.finish();
}
