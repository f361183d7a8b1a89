//! Caps: a hog and a fork bomb are ended or refused alone, others work on; what ran out of memory says so; without cgroups the
//! run completes all the same; nothing of a group is left.
//!
//! Nothing here takes more than some hundred megabytes or processes, capped or not.

use std::path::{Path, PathBuf};
use std::process::Command;

use rekindle_shim::cgroup::{self, Layout};
use serde_json::Value;

use crate::rig::{Rig, Running, program, until};

/// Two tasks at once, in one directory.
const TWO: &str = "# Two\n\n### T1: greedy\n- accept: `test -e made-T1`\n\nWork.\n\n### T2: calm\n- accept: `test -e made-T2`\n\nWork.\n";

/// T1 misbehaves at its first attempt, as its line says; T2 works on meanwhile, until it is told to end.
fn two(misbehaves: &str, caps: &str) -> Rig {
    let agent = format!(
        "echo run-$REKINDLE_TASK >> ran\n\
         if [ $REKINDLE_TASK = T1 ] && [ ! -e tried ]; then $FAKE wait here-T2; touch tried; {misbehaves}; fi\n\
         touch here-$REKINDLE_TASK\n\
         [ $REKINDLE_TASK = T1 ] || $FAKE wait go\n\
         touch made-$REKINDLE_TASK\n\
         rekindle task done $REKINDLE_TASK >> told 2>&1\n"
    );
    Rig::new(TWO, &agent).with_settings(&format!(
        "[agents.script]\ncommand = [\"/bin/sh\", \"./agent.sh\"]\n{caps}\n\
         [run]\nagent = \"script\"\nbackoff = \"10ms\"\nisolation = \"shared\"\n\n[stop]\ngrace = \"300ms\"\n"
    ))
}

/// The causes of a task's attempts, oldest first.
fn causes(rig: &Rig, task: &str) -> Vec<String> {
    let ended = rig.events_of("attempt_ended").into_iter().filter(|event| event["task"] == task || about(event, task));
    ended.filter_map(|event| event["details"]["cause"].as_str().map(str::to_owned)).collect()
}

fn about(event: &Value, task: &str) -> bool {
    event["agent"].as_str().is_some_and(|agent| agent.ends_with(task))
}

/// The calm task was done by its first agent, which nobody touched.
fn calm_was_untouched(rig: &Rig) {
    let calm = rig.task("T2");
    assert_eq!((&calm["state"], &calm["attempts"]), (&"complete".into(), &1.into()), "{calm}\n{}", rig.story());
    assert_eq!(rig.lines("ran").iter().filter(|line| *line == "run-T2").count(), 1, "{}", rig.story());
}

/// Directories of groups that belong to attempts of this project.
fn groups(rig: &Rig) -> Vec<PathBuf> {
    let bundles = std::fs::read_dir(rig.state().join("attempts")).into_iter().flatten().flatten();
    let names: Vec<String> = bundles
        .filter_map(|bundle| std::fs::read(bundle.path().join("spec.json")).ok())
        .filter_map(|spec| serde_json::from_slice::<Value>(&spec).ok())
        .map(|spec| cgroup::name(spec["attempt"].as_str().expect("text"), spec["nonce"].as_str().expect("text")))
        .collect();
    let layout = Layout::here();
    let dirs = layout.dirs().flat_map(|base| names.iter().map(move |name| base.join(name)));
    dirs.filter(|dir| dir.is_dir()).collect()
}

fn nothing_is_left(rig: &Rig) {
    rig.audit();
    assert_eq!(until(|| groups(rig).is_empty().then_some(())), Some(()), "{:?}", groups(rig));
}

#[test]
fn a_memory_hog_is_ended_alone_and_its_successor_is_told() {
    let rig = two("exec $FAKE hog 200", "memory_max = \"64MiB\"\n");
    let run = rig.run();
    rig.await_file("made-T1");
    rig.touch("go");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(causes(&rig, "T1"), ["out_of_memory", "completed"], "{}", rig.story());
    let first = rig.events_of("attempt_ended").into_iter().find(|event| event["details"]["cause"] == "out_of_memory");
    assert_eq!(first.expect("an end")["details"]["memory_cap_bytes"], 64 << 20);
    assert_eq!(rig.task("T1")["attempts"], 2, "its own doing costs an attempt");
    let why = rig.ok(&["why", "T1"]);
    assert!(why.contains("cap of 64 MiB") && why.contains("raise `memory_max` of [agents.script]"), "{why}");
    let status: Value = serde_json::from_str(&rig.ok(&["status", "--json", "--all"])).expect("JSON");
    let causes: Vec<&str> =
        status["agents"].as_array().expect("a list").iter().filter_map(|agent| agent["cause"].as_str()).collect();
    assert!(causes.contains(&"out_of_memory"), "{status}");
    let told = std::fs::read_to_string(rig.state().join("attempts/00000003/prompt")).expect("its brief");
    assert!(told.contains("Use less memory than it did"), "{told}");
    calm_was_untouched(&rig);
    nothing_is_left(&rig);
}

#[test]
fn a_fork_bomb_meets_its_cap_alone_and_the_whole_of_it_is_ended() {
    let rig = two("exec $FAKE bomb 150 never", "processes_max = 48\n");
    let claimed = capped_here(&rig);
    let run = rig.run();
    rig.await_file("made-T1");
    rig.touch("go");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    let said = std::fs::read_to_string(rig.state().join("attempts/00000001/out.log")).unwrap_or_default()
        + &std::fs::read_to_string(rig.state().join("attempts/00000002/out.log")).unwrap_or_default();
    assert_eq!(said.contains("refused after "), claimed, "what `doctor` says holds: {said}");
    calm_was_untouched(&rig);
    nothing_is_left(&rig);
}

/// T1's check misbehaves at its first run; T2 works on meanwhile.
fn check_that(misbehaves: &str, caps: &str) -> Rig {
    let plan = format!(
        "# Two\n\n### T1: greedy\n- accept: `test -e here-T1 || exit 1; test -e tried || {{ touch tried; exec {misbehaves}; }}`\n\nWork.\n\n\
         ### T2: calm\n- accept: `test -e made-T2`\n\nWork.\n"
    );
    let fake = env!("CARGO_BIN_EXE_fake-agent");
    let agent = "echo run-$REKINDLE_TASK >> ran\ntouch here-$REKINDLE_TASK\n\
        if [ $REKINDLE_TASK = T1 ]; then $FAKE wait here-T2; else $FAKE wait go; touch made-T2; fi\n\
        rekindle task done $REKINDLE_TASK >> told-$REKINDLE_TASK 2>&1 && exit\n\
        rekindle task done $REKINDLE_TASK >> told-$REKINDLE_TASK 2>&1\n";
    Rig::new(&plan.replace("$FAKE", fake), agent).with(&format!("\n[caps]\n{caps}"))
}

/// The check failed once, for the cap; its agent was told, and nobody else noticed.
fn the_check_alone_paid(rig: &Rig, said: &str) {
    let run = rig.run();
    rig.await_event("task_completed");
    rig.touch("go");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    let why = rig.ok(&["why", "T1"]);
    assert!(why.contains(said), "{why}");
    let task = rig.task("T1");
    assert_eq!(task["attempts"], 1, "{task}\n{}", rig.story());
    calm_was_untouched(rig);
    rig.audit();
    rig.assert_nothing_left();
}

#[test]
fn a_check_that_takes_all_memory_is_ended_alone_and_reported() {
    let rig = check_that("$FAKE hog 200", "memory_max = \"64MiB\"\n");
    the_check_alone_paid(&rig, "lack of memory, at its cap of 64 MiB");
}

#[test]
fn a_check_that_is_a_fork_bomb_meets_its_cap_alone_and_is_reported() {
    let rig = check_that("$FAKE bomb 150 never", "processes_max = 48\n");
    assert!(capped_here(&rig), "this test needs a cgroup that caps processes");
    the_check_alone_paid(&rig, "its cap of 48 processes");
}

/// Whether the program says that processes are capped on this machine.
fn capped_here(rig: &Rig) -> bool {
    let told: Value = serde_json::from_str(&rig.rekindle(&["doctor", "--json"]).out).expect("JSON");
    let caps = told["findings"].as_array().expect("a list").iter().find(|found| found["name"] == "caps").cloned();
    let text = caps.expect("a word on caps")["text"].as_str().expect("text").to_owned();
    !text.contains("processes are not capped")
}

/// Kills of everybody who holds a group: the agent works on in it, is found again, and nothing is left of it at the end.
#[test]
fn an_adopted_agent_is_still_in_its_group_and_an_orphaned_one_is_ended_with_it() {
    let rig = two("touch waits; exec $FAKE hog 8 never", "memory_max = \"64MiB\"\n");
    let first = rig.run();
    rig.await_file("waits");
    rig.await_event("agent_started");
    let (before, held) = (groups(&rig), caps_of_living(&rig));
    first.kill();
    let second = rig.run();
    rig.until("both adopted", || (rig.events_of("agent_adopted").len() >= 2).then_some(()));
    assert_eq!((groups(&rig), caps_of_living(&rig)), (before, held));
    // Its shim dies: what it left is found by its group, its marker and its session.
    let shim = rig.until("the shim of T1", || shim_of(&rig, "T1"));
    rig.pin(shim).kill();
    rig.await_file("made-T1");
    rig.touch("go");
    let ended = second.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(causes(&rig, "T1"), ["shim_lost", "completed"], "{}", rig.story());
    calm_was_untouched(&rig);
    nothing_is_left(&rig);
}

#[test]
fn what_a_dead_attempt_left_is_removed_at_the_next_start_and_a_strangers_group_stays() {
    let rig = Rig::new("# One\n\n### T1: work\n- accept: `true`\n\nWork.\n", "rekindle task done $REKINDLE_TASK\n");
    rig.finish();
    let layout = Layout::here();
    let spec: Value =
        serde_json::from_slice(&std::fs::read(rig.state().join("attempts/00000001/spec.json")).expect("a spec"))
            .expect("JSON");
    let own = cgroup::name("1", spec["nonce"].as_str().expect("text"));
    let strangers = cgroup::name("1", rig.root().to_str().expect("text"));
    let made: Vec<(PathBuf, PathBuf)> = layout
        .dirs()
        .map(|base| (base.join(&own), base.join(&strangers)))
        .filter(|(own, other)| std::fs::create_dir(own).is_ok() && std::fs::create_dir(other).is_ok())
        .collect();
    assert!(!made.is_empty(), "this test makes cgroups, and none can be made in {layout:?}");
    rig.ok(&["run", "plan.md", "--again"]);
    let left: Vec<(bool, bool)> = made.iter().map(|(own, other)| (own.exists(), other.exists())).collect();
    for (own, other) in &made {
        let _gone_already = std::fs::remove_dir(own);
        std::fs::remove_dir(other).expect("the stranger's");
    }
    assert!(left.iter().all(|found| *found == (false, true)), "own and stranger's: {left:?}");
    nothing_is_left(&rig);
}

fn caps_of_living(rig: &Rig) -> Value {
    rig.status()["caps"].clone()
}

fn shim_of(rig: &Rig, task: &str) -> Option<u32> {
    let status = rig.status();
    let agent =
        status["agents"].as_array()?.iter().find(|agent| agent["task"] == task && agent["ended_at"].is_null())?;
    u32::try_from(agent["shim_pid"].as_u64()?).ok()
}

/// A command of the program in a place where no cgroup can be seen.
fn without_groups(rig: &Rig, arguments: &str) -> Command {
    let mut command = Command::new("unshare");
    rig.prepare(&mut command);
    let line = format!("mount -t tmpfs none /sys/fs/cgroup && exec {} {arguments}", program().display());
    command.args(["--mount", "sh", "-c", &line]);
    command
}

#[test]
fn without_cgroups_a_named_cap_holds_each_process_and_the_run_completes() {
    let rig = two("exec $FAKE hog 200", "memory_max = \"64MiB\"\n");
    let doctor = rig.launch(without_groups(&rig, "doctor")).end();
    assert!(doctor.out.contains("memory is capped process by process"), "{doctor:?}");
    let run = rig.launch(without_groups(&rig, "run plan.md"));
    rig.await_file("made-T1");
    rig.touch("go");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(causes(&rig, "T1"), ["out_of_memory", "completed"], "{}", rig.story());
    let record: Value = rig.shim_record(1).expect("a record");
    assert_eq!(
        (&record["caps"]["memory"], &record["caps"]["group"]["dirs"]),
        (&"rlimit".into(), &Value::Array(vec![]))
    );
    calm_was_untouched(&rig);
    nothing_is_left(&rig);
}

/// A memory group around a whole run, which the run itself does not see: the machine, as far as it is concerned.
struct SmallMachine {
    dir: PathBuf,
}

impl SmallMachine {
    fn new(rig: &Rig, mebibytes: u64) -> Self {
        let layout = Layout::here();
        layout.prepare();
        let unique = rig.root().parent().and_then(Path::file_name).and_then(|name| name.to_str()).expect("a name");
        let (base, file) = match (&layout.memory, &layout.unified) {
            (Some(dir), _) => (dir, "memory.limit_in_bytes"),
            (None, Some(dir)) => (dir, "memory.max"),
            _ => panic!("this test makes a memory cgroup, and none can be seen here"),
        };
        let dir = base.join(format!("small-{unique}"));
        std::fs::create_dir(&dir).unwrap_or_else(|error| panic!("this test needs {}: {error}", dir.display()));
        std::fs::write(dir.join(file), (mebibytes << 20).to_string()).expect("a limit");
        Self { dir }
    }

    /// A line of shell within it.
    fn run(&self, rig: &Rig, line: &str) -> Running {
        let mut command = Command::new("unshare");
        rig.prepare(&mut command);
        let line = format!("echo $$ > {}/cgroup.procs && {line}", self.dir.display());
        command.args(["--mount", "sh", "-c", &line]);
        rig.launch(command)
    }
}

impl Drop for SmallMachine {
    fn drop(&mut self) {
        // Agents that a failed test left are ended by the rig after this; a group with somebody in it stays.
        let _stays = until(|| std::fs::remove_dir(&self.dir).is_ok().then_some(()));
    }
}

#[test]
fn the_kernels_log_tells_a_want_of_the_machine_which_costs_no_attempt() {
    let rig = two("exec $FAKE hog 400", "memory_max = \"none\"\n");
    let machine = SmallMachine::new(&rig, 256);
    let hidden = format!("mount -t tmpfs none /sys/fs/cgroup && exec {} run plan.md", program().display());
    let run = machine.run(&rig, &hidden);
    rig.await_file("made-T1");
    rig.touch("go");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(causes(&rig, "T1"), ["out_of_memory", "completed"], "{}", rig.story());
    let end = rig.events_of("attempt_ended").into_iter().find(|event| event["details"]["cause"] == "out_of_memory");
    assert!(end.expect("an end")["details"]["memory_cap_bytes"].is_null(), "no cap of its own");
    assert_eq!(rig.task("T1")["attempts"], 1, "the first time is nobody's fault\n{}", rig.story());
    let held = rig.events_of("starts_held");
    assert!(held.iter().any(|event| event.to_string().contains("run.max_agents")), "{held:?}");
    calm_was_untouched(&rig);
    nothing_is_left(&rig);
    drop(machine);
}

#[test]
fn nothing_new_is_started_while_memory_is_short_and_it_goes_on_by_itself() {
    let agent = "touch here\ntouch made\nrekindle task done $REKINDLE_TASK > told 2>&1\n";
    let rig = Rig::new("# One\n\n### T1: work\n- accept: `test -e made`\n\nWork.\n", agent);
    let machine = SmallMachine::new(&rig, 512);
    let balloon = machine.run(&rig, &format!("exec {} hog 470 let-go", env!("CARGO_BIN_EXE_fake-agent")));
    rig.until("the balloon", || balloon.printed().contains("took").then_some(()));
    let run = machine.run(&rig, &format!("exec {} run plan.md", program().display()));
    let held = rig.until("word of the hold", || {
        let status = rig.rekindle(&["status", "--json"]);
        let status: Value = serde_json::from_str(&status.out).ok()?;
        Some(status["held"].clone()).filter(Value::is_object)
    });
    assert!(held["reason"].as_str().expect("a reason").contains("memory"), "{held}");
    assert!(held["hint"].as_str().expect("a hint").contains("run.max_agents"), "{held}");
    assert!(!rig.has("here"), "nobody was started");
    rig.touch("let-go");
    assert_eq!(balloon.end().code, Some(0));
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.task("T1")["attempts"], 1, "{}", rig.story());
    nothing_is_left(&rig);
    drop(machine);
}
