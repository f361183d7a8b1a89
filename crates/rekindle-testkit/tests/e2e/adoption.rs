//! A fleet that lives on while its coordinator is killed, again and again.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::rig::Rig;

/// How many agents live at once.
const FLEET: usize = 64;

const AGENT: &str = "echo \"$REKINDLE_TASK $$\" >> ran\n$FAKE count go\nrekindle task done $REKINDLE_TASK\n";

fn fleet(size: usize) -> Rig {
    let mut plan = String::from("# Fleet\n");
    for n in 1..=size {
        write!(plan, "\n### T{n}: work {n}\n\nCount.\n").expect("text");
    }
    Rig::new(&plan, AGENT).with("").with_settings(&format!(
        "[agents.script]\nkind = \"command\"\ncommand = [\"/bin/sh\", \"./agent.sh\"]\n\n\
         [run]\nagent = \"script\"\nmax_agents = {size}\n"
    ))
}

#[test]
fn sixty_four_living_agents_are_adopted() {
    let rig = fleet(FLEET);
    let coordinator = rig.run();
    rig.until("the whole fleet", || (rig.lines("ran").len() == FLEET).then_some(()));
    rig.until("all recorded", || (running(&rig) == FLEET).then_some(()));
    coordinator.kill();
    let written = spooled(&rig);
    let second = rig.run();
    rig.await_event("coordinator_recovered");
    assert_eq!(rig.events_of("agent_adopted").len(), FLEET, "{}", rig.story());
    rig.until("output that goes on", || {
        let now = spooled(&rig);
        written.iter().all(|(name, bytes)| now[name] > *bytes).then_some(())
    });
    rig.touch("go");
    let ended = second.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.lines("ran").len(), FLEET, "an agent was started twice");
    let started: BTreeMap<String, String> = pids(&rig.lines("ran"));
    for event in rig.events_of("agent_adopted") {
        let task = event["task"].as_str().expect("task").to_owned();
        assert_eq!(started[&task], event["details"]["pid"].to_string(), "{event}");
    }
    for task in rig.status()["tasks"].as_array().expect("tasks") {
        assert_eq!((&task["state"], &task["attempts"]), (&"complete".into(), &1.into()), "{task}");
    }
    rig.audit();
}

#[test]
fn a_coordinator_that_is_killed_ten_times_while_it_recovers_burns_no_attempt() {
    let rig = fleet(8);
    let coordinator = rig.run();
    rig.until("the whole fleet", || (rig.lines("ran").len() == 8).then_some(()));
    rig.until("all recorded", || (running(&rig) == 8).then_some(()));
    coordinator.kill();
    for round in 0..10_u32 {
        let next = rig.run();
        // Each round dies a little later: before the lock, in the repair, while it adopts, after it.
        std::thread::sleep(std::time::Duration::from_millis(u64::from(round) * 6));
        next.kill();
    }
    rig.touch("go");
    rig.finish();
    assert_eq!(rig.lines("ran").len(), 8, "an agent was started twice\n{}", rig.story());
    for task in rig.status()["tasks"].as_array().expect("tasks") {
        assert_eq!((&task["state"], &task["attempts"]), (&"complete".into(), &1.into()), "{task}");
    }
    rig.audit();
}

fn running(rig: &Rig) -> usize {
    let status = rig.status();
    let agents = status["agents"].as_array().expect("agents");
    agents.iter().filter(|agent| agent["pid"].is_u64() && agent["state"] != "ended").count()
}

/// Bytes in each agent's spool.
fn spooled(rig: &Rig) -> BTreeMap<String, u64> {
    let bundles = std::fs::read_dir(rig.state().join("attempts")).expect("bundles").flatten();
    let size = |bundle: std::fs::DirEntry| {
        let name = bundle.file_name().into_string().expect("text");
        (name, bundle.path().join("out.log").metadata().map_or(0, |found| found.len()))
    };
    bundles.map(size).collect()
}

fn pids(ran: &[String]) -> BTreeMap<String, String> {
    ran.iter().filter_map(|line| line.split_once(' ')).map(|(task, pid)| (task.to_owned(), pid.to_owned())).collect()
}
