//! kill -9 of the coordinator, a shim, an agent, and any of them together, at each stage of an attempt's life. Beside the
//! task it happens to, another agent is healthy and must not notice.

use serde_json::Value;

use crate::processes::{self, Pinned};
use crate::rig::{Rig, Running, until_quickly};

const PLAN: &str = "# Kills\n\n\
    ### T1: the one it happens to\n- artifacts: t1\n- accept: `touch checking; $FAKE wait check-go && test -s t1`\n\nDo it.\n\n\
    ### T2: the healthy one\n- artifacts: t2\n- accept: `test -s t2`\n\nDo it too.\n\n\
    ### T3: the last\n- blocked by: T1, T2\n- accept: `test -s t1`\n\nThen this.\n";

/// Says that it runs, works until it is told, claims, and lingers until it is told again. What it makes is there whole or not at
/// all: the other one's check may be looking.
const AGENT: &str = r#"
test -e deaf && test $REKINDLE_TASK = T1 && trap '' INT TERM
echo "$REKINDLE_TASK $REKINDLE_ATTEMPT $$" >> ran
echo "first words of $REKINDLE_TASK"
touch "working-$REKINDLE_TASK"
$FAKE count "go-$REKINDLE_TASK"
for made in t1 t2; do echo yes > "$made.$$"; mv "$made.$$" "$made"; done
rekindle task done "$REKINDLE_TASK" --result "by $$" || exit 1
touch "claimed-$REKINDLE_TASK"
$FAKE wait leave
"#;

/// Long enough that the kills fall into the pause, short enough to wait for.
const SETTINGS: &str = "\n[hang]\nafter_result = \"60s\"\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its shim or its agent is there, and hardly more.
    Starting,
    /// It prints.
    Working,
    /// It has claimed, and its checks run.
    Checks,
    /// Its task is complete and it lingers.
    Claimed,
    /// It was told to leave for a pause and does not.
    Stopping,
}

use Stage::{Checks, Claimed, Starting, Stopping, Working};

/// Who dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Party {
    Coordinator,
    Shim,
    Agent,
}

use Party::{Agent, Coordinator, Shim};

/// One case: the run is brought to the stage, the parties die at once, and the run must come to its end.
fn case(stage: Stage, parties: &[Party]) {
    let rig = Rig::new(PLAN, AGENT).with(SETTINGS);
    if stage == Stopping {
        rig.touch("deaf");
    }
    let mut coordinator = rig.run();
    bring_to(&rig, &mut coordinator, stage, parties);
    let pinned: Vec<Pinned> = parties.iter().map(|party| pin(&rig, &coordinator, *party)).collect();
    for process in pinned {
        process.kill();
    }
    let coordinator_died = parties.contains(&Coordinator);
    if stage == Stopping {
        std::fs::remove_file(rig.path("deaf")).expect("hears again");
    }
    let ended = match (coordinator_died, stage) {
        (true, _) => {
            coordinator.end();
            let next = rig.run();
            // Nobody goes on before the next one has looked, or there is nobody left to adopt.
            rig.await_event("coordinator_recovered");
            release(&rig);
            next.end()
        }
        (false, Stopping) => {
            let paused = coordinator.end();
            assert_eq!(paused.code, Some(4), "{paused:?}\n{}", rig.story());
            release(&rig);
            rig.run().end()
        }
        (false, Starting | Working) => {
            // An agent without its shim could still finish, and be right.
            rig.await_event("attempt_ended");
            release(&rig);
            coordinator.end()
        }
        (false, _) => {
            release(&rig);
            coordinator.end()
        }
    };
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    rig.audit();
    judge(&rig, stage, parties);
}

/// Awaits the stage. The healthy agent works from before it to after it.
fn bring_to(rig: &Rig, coordinator: &mut Running, stage: Stage, parties: &[Party]) {
    let bundle = rig.state().join("attempts/00000001");
    match stage {
        // Looked for without a pause: the stage is over within milliseconds.
        Starting if parties == [Coordinator] => until_quickly(|| bundle.join("spec.json").exists()),
        Starting => until_quickly(|| bundle.join("shim.json").exists()),
        Working | Stopping => {
            rig.await_file("working-T1");
            rig.await_file("working-T2");
        }
        Checks => {
            rig.await_file("working-T2");
            rig.touch("go-T1");
            rig.await_file("checking");
        }
        Claimed => {
            rig.await_file("working-T2");
            rig.touch("check-go");
            rig.touch("go-T1");
            rig.await_file("claimed-T1");
        }
    }
    if stage == Stopping {
        rig.ok(&["pause"]);
    }
    assert!(coordinator.has_ended().is_none(), "{}", rig.story());
}

fn pin(rig: &Rig, coordinator: &Running, party: Party) -> Pinned {
    let pid = match party {
        Coordinator => u64::from(coordinator.pid()),
        Shim => rig.shim_record(1).expect("record")["shim"]["pid"].as_u64().expect("pid"),
        Agent => rig.shim_record(1).expect("record")["agent"]["pid"].as_u64().expect("pid"),
    };
    rig.pin(u32::try_from(pid).expect("a process number"))
}

/// Lets everything go on that waits.
fn release(rig: &Rig) {
    for name in ["go-T1", "go-T2", "go-T3", "check-go", "leave"] {
        rig.touch(name);
    }
}

fn judge(rig: &Rig, stage: Stage, parties: &[Party]) {
    let ran = rig.lines("ran");
    let runs = |task: &str| ran.iter().filter(|line| line.starts_with(task)).count();
    let attempts = |task: &str| rig.task(task)["attempts"].as_u64().expect("attempts");
    let lost_it = parties.contains(&Shim) || parties.contains(&Agent);
    // A claim that stood before the kill is proven without its agent; work that was not claimed is done again.
    let redone = lost_it && matches!(stage, Starting | Working);
    let story = || format!("{ran:?}\n{}", rig.story());
    match stage {
        // A process that was killed before it became the agent costs no attempt: then only the second one ever ran.
        Starting if redone => {
            let counted = attempts("T1");
            assert!(counted == 2 || (counted == 1 && runs("T1") == 1), "attempts at T1: {}", story());
        }
        // One that dies before the order to stop has reached its shim died by itself, and that counts.
        Stopping if parties.contains(&Agent) => assert!((1..=2).contains(&attempts("T1")), "{}", story()),
        _ => assert_eq!(attempts("T1"), if redone { 2 } else { 1 }, "attempts at T1: {}", story()),
    }
    match stage {
        // Whether the first process came as far as its first line before it was killed is open.
        Starting if redone => assert!((1..=2).contains(&runs("T1")), "{}", story()),
        // One that was told to leave may have claimed before it did, or be replaced.
        Stopping => assert!((1..=2).contains(&runs("T1")) && (1..=2).contains(&runs("T2")), "{}", story()),
        _ => assert_eq!(runs("T1"), if redone { 2 } else { 1 }, "{}", story()),
    }
    assert_eq!(attempts("T2"), 1, "{}", story());
    assert!(stage == Stopping || runs("T2") == 1, "a healthy agent was restarted: {}", story());
    assert_eq!(runs("T3"), 1, "{}", story());
    if !parties.contains(&Coordinator) {
        return;
    }
    assert_eq!(rig.events_of("coordinator_recovered").len(), 1, "{}", story());
    let adopted = rig.events_of("agent_adopted");
    if matches!(stage, Working | Checks | Claimed) {
        let healthy = adopted.iter().find(|event| event["task"] == "T2").unwrap_or_else(|| panic!("{}", story()));
        let pid = healthy["details"]["pid"].to_string();
        assert!(ran.iter().any(|line| line.starts_with("T2") && line.ends_with(&format!(" {pid}"))), "{}", story());
    }
}

macro_rules! cases {
    ($($name:ident: $stage:ident, $parties:expr;)*) => {
        $(#[test] fn $name() { case($stage, &$parties); })*
    };
}

cases! {
    starting_coordinator: Starting, [Coordinator];
    starting_shim: Starting, [Shim];
    starting_agent: Starting, [Agent];
    starting_coordinator_and_shim: Starting, [Coordinator, Shim];
    starting_coordinator_and_agent: Starting, [Coordinator, Agent];
    starting_shim_and_agent: Starting, [Shim, Agent];
    starting_all: Starting, [Coordinator, Shim, Agent];
    working_coordinator: Working, [Coordinator];
    working_shim: Working, [Shim];
    working_agent: Working, [Agent];
    working_coordinator_and_shim: Working, [Coordinator, Shim];
    working_coordinator_and_agent: Working, [Coordinator, Agent];
    working_shim_and_agent: Working, [Shim, Agent];
    working_all: Working, [Coordinator, Shim, Agent];
    checks_coordinator: Checks, [Coordinator];
    checks_shim: Checks, [Shim];
    checks_agent: Checks, [Agent];
    checks_coordinator_and_shim: Checks, [Coordinator, Shim];
    checks_coordinator_and_agent: Checks, [Coordinator, Agent];
    checks_shim_and_agent: Checks, [Shim, Agent];
    checks_all: Checks, [Coordinator, Shim, Agent];
    claimed_coordinator: Claimed, [Coordinator];
    claimed_shim: Claimed, [Shim];
    claimed_agent: Claimed, [Agent];
    claimed_coordinator_and_shim: Claimed, [Coordinator, Shim];
    claimed_coordinator_and_agent: Claimed, [Coordinator, Agent];
    claimed_shim_and_agent: Claimed, [Shim, Agent];
    claimed_all: Claimed, [Coordinator, Shim, Agent];
    stopping_coordinator: Stopping, [Coordinator];
    stopping_shim: Stopping, [Shim];
    stopping_agent: Stopping, [Agent];
    stopping_coordinator_and_shim: Stopping, [Coordinator, Shim];
    stopping_coordinator_and_agent: Stopping, [Coordinator, Agent];
    stopping_shim_and_agent: Stopping, [Shim, Agent];
    stopping_all: Stopping, [Coordinator, Shim, Agent];
}

/// The supervisor of a running check dies: what it held is ended before the check is run again, and nothing is taken for
/// passed that was not.
#[test]
fn a_check_whose_shim_is_killed_is_run_again_alone() {
    for with_coordinator in [false, true] {
        let rig = Rig::new(PLAN, AGENT).with(SETTINGS);
        let mut coordinator = rig.run();
        bring_to(&rig, &mut coordinator, Checks, &[]);
        let record = rig.state().join("checks/T1-1/000001/shim.json");
        let record: Value = serde_json::from_slice(&std::fs::read(record).expect("record")).expect("JSON");
        let number = |who: &str| u32::try_from(record[who]["pid"].as_u64().expect("pid")).expect("number");
        let (shim, check) = (rig.pin(number("shim")), number("agent"));
        if with_coordinator {
            coordinator.kill();
            shim.kill();
            coordinator = rig.run();
        } else {
            shim.kill();
        }
        rig.until("the end of the orphaned check", || (!processes::runs(check)).then_some(()));
        release(&rig);
        let ended = coordinator.end();
        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
        rig.audit();
        assert_eq!(rig.lines("ran").iter().filter(|line| line.starts_with("T2")).count(), 1, "{}", rig.story());
    }
}
