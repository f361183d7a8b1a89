//! What the machine refuses to the set-up of a worktree: it costs no attempt, asks nobody to mend the project, is told as what it is,
//! and goes on by itself. What is wrong with the project is asked about, before an agent and before checks alike.

use std::process::Command;

use crate::rig::{Rig, program};

const PLAN: &str = "---\nplan: build\n---\n# Build\n\n### T1: first\n- accept: `grep -q secret .env && test -e node_modules/dep && test -e installed && test -e local/settings && test -s out`\n\nMake it.\n";

const AGENT: &str =
    "echo \"$REKINDLE_TASK\" >> \"$PLACE/ran\"\necho $REKINDLE_PORT_BASE > out\nrekindle task done $REKINDLE_TASK\n";

/// A project whose checks need what git ignores. `setup` is a shell line of its set-up.
fn project(plan: &str, setup: &str, agent: &str) -> Rig {
    let rig = Rig::new(plan, agent);
    let place = rig.outside("place");
    std::fs::create_dir(&place).expect("a folder");
    rig.set("PLACE", &place);
    let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
    let settings = settings.replace("[run]\n", "[run]\nisolation = \"worktree\"\npreflight = false\n");
    let worktree = format!("[worktree]\nsetup = '{setup}'\ncopy = [\".env\"]\nlink = [\"node_modules\"]\nports = 2\n");
    rig.write("rekindle.toml", &format!("{settings}\n{worktree}"));
    rig.write(".gitignore", ".env\nnode_modules/\ninstalled\nlocal/\n.rekindle/\n");
    rig.write(".worktreeinclude", "local/settings\n");
    rig.commit_first("-A");
    rig.write(".env", "TOKEN=secret\n");
    for (folder, file) in [("node_modules", "node_modules/dep"), ("local", "local/settings")] {
        std::fs::create_dir(rig.path(folder)).expect("a folder");
        rig.write(file, "x\n");
    }
    rig
}

/// The reason and the hint of the first hold. Nobody was asked, nobody was started, nothing was paid.
fn held(rig: &Rig) -> (String, String) {
    let held = rig.await_event("starts_held");
    let text = |key: &str| held["details"][key].as_str().unwrap_or_default().to_owned();
    let (reason, hint) = (text("reason"), text("hint"));
    assert!(!reason.is_empty() && !hint.is_empty() && !hint.contains("[worktree]"), "{held}");
    assert_eq!(rig.events_of("question_asked").len(), 0, "{}", rig.story());
    assert_eq!(rig.events_of("agent_started").len(), 0, "nobody works in half a worktree: {}", rig.story());
    assert_eq!(rig.task("T1")["attempts"], 0, "{}", rig.story());
    (reason, hint)
}

fn was_done_once(rig: &Rig) {
    let ran = std::fs::read_to_string(rig.outside("place/ran")).unwrap_or_default();
    assert_eq!(ran, "T1\n", "{}", rig.story());
    let task = rig.task("T1");
    assert_eq!((&task["state"], &task["attempts"]), (&"complete".into(), &1.into()), "{task}\n{}", rig.story());
    assert_eq!(rig.events_of("question_asked").len(), 0, "{}", rig.story());
    rig.assert_nothing_left();
    rig.audit();
}

/// Refuses calls of the coordinator at one path for as long as its tracer lives, then lets it go on.
fn refuse(calls: &str, error: &str, path: &str, words: &str) {
    let point = format!("{calls} {error} at {path}");
    let rig = project(PLAN, "touch installed", AGENT);
    let mut strace = Command::new("strace");
    rig.prepare(&mut strace);
    strace.arg("-P").arg(rig.path(path)).args(["-f", "-b", "execve", "-qq", "-o", "/dev/null"]);
    strace.args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:error={error}")]);
    strace.arg(program()).args(["run", "plan.md"]);
    let traced = rig.launch(strace);
    let (reason, hint) = held(&rig);
    assert!(reason.contains(words), "{point}: {reason} / {hint}");
    // Without its tracer it goes on by itself.
    traced.kill();
    rig.until("its end", || rig.living().is_empty().then_some(()));
    was_done_once(&rig);
}

#[test]
fn a_copy_that_is_refused_costs_nothing() {
    refuse("openat", "EMFILE", ".env", "no file descriptor left");
    refuse("copy_file_range,sendfile", "ENOSPC", ".env", "no space");
    refuse("statx,newfstatat,lstat", "EIO", ".env", "gives errors");
}

#[test]
fn what_cannot_be_looked_at_is_not_taken_for_missing() {
    refuse("openat", "EMFILE", ".worktreeinclude", "no file descriptor left");
    refuse("read,pread64", "EIO", ".worktreeinclude", "gives errors");
    refuse("statx,newfstatat,stat", "EIO", "node_modules", "gives errors");
}

/// A command that says what the machine lacks, until it does not.
fn command(setup: &str, words: &str, hint_words: &str) {
    let rig = project(PLAN, &format!("test -e $PLACE/room && touch installed || {{ {setup}; }}"), AGENT);
    let run = rig.run();
    let (reason, hint) = held(&rig);
    assert!(reason.contains(words) && reason.contains("exited with"), "what is lacking, and who met it: {reason}");
    assert!(hint.contains(hint_words), "{hint}");
    std::fs::write(rig.outside("place/room"), "").expect("room");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    was_done_once(&rig);
}

#[test]
fn a_disk_that_a_set_up_fills_costs_nothing() {
    command("cat .gitignore > /dev/full", "no space", "df -h");
}

#[test]
fn a_set_up_without_descriptors_costs_nothing() {
    command("ulimit -n 3; exec 9< .gitignore", "no file descriptor left", "ulimit -n");
}

const TWO: &str = "---\nplan: build\n---\n# Build\n\n### T1: first\n- accept: `test -e installed && test -s T1`\n\nMake it.\n\n\
    ### T2: second\n- blocked by: T1\n- accept: `test -e installed && test -s T2`\n\nMake it.\n";

/// What was complete shortly before a kill is proven again, in a worktree of its own.
#[test]
fn a_set_up_that_fails_before_checks_is_asked_about_as_before_an_agent() {
    let agent = "echo x > $REKINDLE_TASK\ntouch $PLACE/here-$REKINDLE_TASK\n\
        [ $REKINDLE_TASK = T1 ] || $FAKE wait $PLACE/go\nrekindle task done $REKINDLE_TASK\n";
    let setup = "test -e $PLACE/mended && touch installed || { echo no such registry; exit 7; }";
    let rig = project(TWO, setup, agent);
    let mended = rig.outside("place/mended");
    std::fs::write(&mended, "").expect("mended");
    let first = rig.run();
    rig.until("the second task", || rig.outside("place/here-T2").exists().then_some(()));
    first.kill();
    std::fs::remove_file(&mended).expect("broken");
    let run = rig.run();
    let asked = rig.await_event("question_asked");
    let text = asked["details"]["text"].as_str().expect("a text").to_owned();
    assert!(text.contains("The set-up of the worktree of T1 failed") && text.contains("no such registry"), "{text}");
    assert_eq!(rig.events_of("starts_held").len(), 0, "it is no want of the machine: {}", rig.story());
    let attempts = rig.task("T1")["attempts"].clone();
    std::fs::write(&mended, "").expect("mended");
    std::fs::write(rig.outside("place/go"), "").expect("go");
    rig.ok(&["answer", "1", "1"]);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.task("T1")["attempts"], attempts, "nobody worked on it again: {}", rig.story());
    assert_eq!(rig.events_of("question_asked").len(), 1, "{}", rig.story());
    rig.audit();
}
