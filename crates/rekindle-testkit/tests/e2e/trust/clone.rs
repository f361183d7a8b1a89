//! A hostile clone: nothing of it is executed by anything but `run`, and its state directory decides nothing.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::duplicate;
use crate::rig::Rig;

const PLAN: &str = "---\nhealth: [\"echo health >> executed\"]\nusage.command: echo front >> executed\n---\n# Clone\n\n\
    ### T1: one\n- accept: `echo check >> executed; test -e executed`\n\nWork.\n";

const AGENT: &str = "echo agent >> executed\nrekindle task done $REKINDLE_TASK --result ok\n";

/// Agents of every kind of program that lies in the project, or is named or given an environment by it.
const HOSTILE: &str = "\n[agents.claude]\nkind = \"claude\"\ncommand = [\"./evil\"]\n\n[agents.codex]\nkind = \"codex\"\nenv = { LD_PRELOAD = \"./evil.so\" }\n\
    \n[agents.own]\nkind = \"claude\"\ncommand = [\"/bin/sh\", \"-c\", \"echo inline >> executed\"]\n\n[notify]\ncommand = [\"./evil\"]\n\n[usage]\ncommand = \"echo usage >> executed\"\n";

fn git(rig: &Rig, arguments: &[&str]) {
    let mut command = Command::new("git");
    rig.prepare(&mut command);
    let done =
        command.args(["-c", "user.name=x", "-c", "user.email=x@localhost"]).args(arguments).output().expect("git");
    assert!(done.status.success(), "{done:?}");
}

fn hostile() -> Rig {
    let rig = Rig::new(PLAN, AGENT).with(HOSTILE);
    rig.write("evil", "#!/bin/sh\necho \"evil $*\" >> \"$(dirname \"$0\")/executed\"\necho 9.9.9\n");
    std::fs::set_permissions(rig.path("evil"), std::fs::Permissions::from_mode(0o755)).expect("executable");
    rig
}

#[test]
fn only_run_executes_what_a_project_brings() {
    let rig = hostile();
    let views: [&[&str]; 8] = [
        &["doctor"],
        &["doctor", "--json"],
        &["plan", "show"],
        &["plan", "show", "--commands"],
        &["plan", "check"],
        &["status"],
        &["events"],
        &["report"],
    ];
    for arguments in views {
        let _some_have_no_run_to_show = rig.rekindle(arguments);
        assert!(!rig.has("executed"), "{arguments:?} executed {:?}", rig.lines("executed"));
    }
    let told = rig.rekindle(&["doctor", "--try"]);
    assert!(rig.lines("executed").iter().any(|line| line.starts_with("evil")), "{told:?}");
    for started in ["evil --version", "echo usage >> executed"] {
        assert!(told.err.contains("starts ") && told.err.contains(started), "it says what: {told:?}");
    }
}

#[test]
fn every_command_is_shown_with_its_place_and_the_front_matter_with_what_it_sets() {
    let rig = hostile();
    let commands = rig.ok(&["plan", "show", "--commands"]);
    for (what, place) in [
        ("usage.command: echo front >> executed", "front matter of plan.md"),
        ("notify.command: ./evil", "rekindle.toml:"),
        ("agents.claude: ./evil", "rekindle.toml:"),
        ("agents.codex: codex with LD_PRELOAD set", "rekindle.toml:"),
        ("health: echo health >> executed", "front matter of plan.md"),
        ("T1 accept: echo check >> executed; test -e executed", "plan.md:"),
    ] {
        assert!(commands.lines().any(|line| line.contains(what) && line.contains(place)), "{what}\n{commands}");
    }
    let shown = rig.ok(&["plan", "show"]);
    assert!(shown.contains("front matter sets usage.command echo front >> executed"), "{shown}");
    assert!(shown.contains("front matter sets health echo health >> executed"), "{shown}");
}

#[test]
fn the_first_run_tells_what_is_brought_and_so_does_one_after_a_change() {
    let rig = Rig::new("# P\n\n### T1: one\n\nWork.\n", AGENT);
    let first = rig.finish();
    assert!(first.err.contains("agents.script: /bin/sh ./agent.sh  (rekindle.toml:1)"), "{first:?}");
    let again = rig.start(&["run", "plan.md", "--again"]).end();
    assert!(!again.err.contains("agents.script"), "told once: {again:?}");
    let rig = rig.with("\n[notify]\ncommand = [\"true\"]\n");
    let changed = rig.start(&["run", "plan.md", "--again"]).end();
    assert!(changed.err.contains("notify.command: true"), "a pull brought a new one: {changed:?}");
}

/// A state directory with a pinned plan of its own is checked in; whoever clones it runs nothing of that.
#[test]
fn a_state_directory_that_came_with_a_clone_is_refused() {
    let author = Rig::new("# P\n\n### T1: one\n- accept: `echo pinned >> executed; false`\n\nWork.\n", AGENT);
    author.rekindle(&["run", "plan.md", "--no-recover"]);
    author.write("plan.md", "# P\n\n### T1: one\n- accept: `true`\n\nWork.\n");
    let _made_by_the_run = std::fs::remove_file(author.path("executed"));
    git(&author, &["init", "-q"]);
    git(
        &author,
        &[
            "add",
            "-f",
            "plan.md",
            "rekindle.toml",
            "agent.sh",
            ".rekindle/version",
            ".rekindle/state.db",
            ".rekindle/shadow",
        ],
    );
    git(&author, &["commit", "-qm", "all"]);
    let rig = Rig::new("# P\n", AGENT);
    std::fs::remove_dir_all(rig.root()).expect("removed");
    let cloned = Command::new("git").args(["clone", "-q"]).arg(author.root()).arg(rig.root()).status().expect("git");
    assert!(cloned.success());
    for arguments in [&["run", "plan.md"][..], &["resume"], &["status"], &["task", "retry", "T1"]] {
        let refused = rig.rekindle(arguments);
        assert_eq!(refused.code, Some(2), "{arguments:?}: {refused:?}");
        assert!(refused.err.contains("is tracked by git"), "{arguments:?}: {refused:?}");
        assert!(refused.err.contains("git rm -r --cached"), "what to type: {refused:?}");
    }
    assert!(!rig.has("executed"), "{:?}", rig.lines("executed"));
    // An archive has no repository; there its permissions give it away.
    std::fs::remove_dir_all(rig.path(".git")).expect("removed");
    let refused = rig.run().end();
    assert!(refused.code == Some(2) && refused.err.contains("was not made by rekindle here"), "{refused:?}");
    std::fs::remove_dir_all(rig.state()).expect("as the hint says");
    rig.finish();
}

#[test]
fn a_state_directory_of_another_machine_or_user_is_refused_and_one_that_was_moved_goes_on() {
    let rig = Rig::new("# P\n\n### T1: one\n\nWork.\n", AGENT);
    rig.finish();
    let binding = rig.state().join("binding");
    let bound: serde_json::Value = serde_json::from_slice(&std::fs::read(&binding).expect("bound")).expect("JSON");
    for (key, value, why) in
        [("machine", "elsewhere".into(), "on another machine"), ("user", 4_294_000_000_u32.into(), "by another user")]
    {
        let mut other = bound.clone();
        other[key] = value;
        std::fs::write(&binding, other.to_string()).expect("written");
        for arguments in [&["run", "plan.md", "--again"][..], &["status"]] {
            let refused = rig.rekindle(arguments);
            assert!(refused.code == Some(2) && refused.err.contains(why), "{arguments:?}: {refused:?}");
            assert!(refused.err.contains("/binding'"), "what to type: {refused:?}");
        }
    }
    // A state directory of an earlier version has none: it is bound at its first opening.
    std::fs::remove_file(&binding).expect("removed");
    rig.status();
    let again = rig.start(&["run", "plan.md", "--again"]).end();
    assert!(again.code == Some(0) && !again.err.contains("the run continues here"), "{again:?}");
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&std::fs::read(&binding).expect("bound")).expect("JSON"),
        bound
    );
    let rig = rig.moved_to("elsewhere");
    assert_eq!(rig.status()["tasks"][0]["state"], "complete");
    let moved = rig.start(&["run", "plan.md", "--again"]).end();
    assert_eq!(moved.code, Some(0), "{moved:?}");
    assert_eq!(moved.err.matches("/project/.rekindle before; the run continues here").count(), 1, "{moved:?}");
    let then = rig.start(&["run", "plan.md", "--again"]).end();
    assert!(!then.err.contains("the run continues here"), "{then:?}");
}

#[test]
fn a_pinned_plan_that_is_not_the_files_is_never_run_without_a_word() {
    let rig =
        Rig::new("# P\n\n### T1: one\n\nWork.\n", "touch here\n$FAKE wait go\nrekindle task done $REKINDLE_TASK\n");
    let run = rig.run();
    rig.await_file("here");
    rig.ok(&["pause"]);
    run.end();
    rig.touch("go");
    rig.write("plan.md", "# P\n\n### T1: one\n- accept: `false`\n\nWork.\n");
    let copy = rig.outside("copy");
    duplicate(&rig.state(), &copy);
    assert!(rig.ok(&["plan", "show", "--run"]).contains("unproven"), "the pinned plan can be looked at");
    for arguments in [&["resume"][..], &["run", "plan.md"]] {
        std::fs::remove_dir_all(rig.state()).expect("removed");
        duplicate(&copy, &rig.state());
        let ended = rig.rekindle(arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
        assert!(ended.err.contains("the run continues with the plan it began with"), "{arguments:?}: {ended:?}");
    }
}
