//! A second user on the machine: reads nothing, writes nothing, and what it puts in the way is refused.

use std::os::unix::fs::{PermissionsExt, chown};
use std::process::{Command, Output};

use crate::rig::Rig;

/// Nobody that this machine knows.
const NEIGHBOUR: u32 = 61_234;

/// Runs a line of shell as the neighbour.
fn as_neighbour(rig: &Rig, line: &str) -> Output {
    let user = NEIGHBOUR.to_string();
    let ids = ["--reuid", &user, "--regid", &user, "--clear-groups"];
    let output = Command::new("setpriv").args(ids).args(["sh", "-c", line]).current_dir(rig.root()).output();
    output.expect("setpriv")
}

fn open_to_all(rig: &Rig) {
    for dir in [rig.root().parent().expect("a parent"), rig.root()] {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    }
}

#[test]
fn a_neighbour_reads_and_writes_nothing_of_a_run() {
    let rig =
        Rig::new("# P\n\n### T1: one\n\nWork.\n", "touch here\n$FAKE wait go\nrekindle task done $REKINDLE_TASK\n");
    open_to_all(&rig);
    let run = rig.run();
    rig.await_file("here");
    assert!(as_neighbour(&rig, "cat plan.md").status.success(), "it may look at the project");
    let attempts = [
        "ls .rekindle",
        "cat .rekindle/state.db",
        "cat .rekindle/secret",
        "cat .rekindle/attempts/00000001/out.log",
        "cat .rekindle/attempts/00000001/spec.json",
        "echo x > .rekindle/planted",
        "mkdir .rekindle/attempts/00000002",
        "rm .rekindle/coordinator.lock",
        "cd .rekindle",
    ];
    for line in attempts {
        let tried = as_neighbour(&rig, line);
        assert!(!tried.status.success(), "{line}: {}", String::from_utf8_lossy(&tried.stdout));
        assert!(tried.stdout.is_empty(), "{line}: {}", String::from_utf8_lossy(&tried.stdout));
    }
    let environment = format!("cat /proc/{}/environ", rig.shim_record(1).expect("a record")["agent"]["pid"]);
    assert!(as_neighbour(&rig, &environment).stdout.is_empty(), "the token stands in the agent's environment only");
    rig.touch("go");
    assert_eq!(run.end().code, Some(0), "{}", rig.story());
}

#[test]
fn what_a_neighbour_puts_in_the_way_is_refused() {
    let rig = Rig::new("# P\n\n### T1: one\n\nWork.\n", "rekindle task done $REKINDLE_TASK\n");
    rig.finish();
    let state = rig.state();
    for (name, mode) in [("", 0o700), ("binding", 0o600), ("coordinator.lock", 0o600)] {
        let path = if name.is_empty() { state.clone() } else { state.join(name) };
        chown(&path, Some(NEIGHBOUR), None).expect("chown");
        let refused = rig.start(&["run", "plan.md", "--again"]).end();
        assert!(matches!(refused.code, Some(1 | 2)), "{name}: {refused:?}");
        assert!(refused.err.contains("belongs to user 61234"), "{name}: {refused:?}");
        chown(&path, Some(rustix::process::geteuid().as_raw()), None).expect("chown");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("chmod");
    }
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o777)).expect("chmod");
    let refused = rig.start(&["run", "plan.md", "--again"]).end();
    assert!(refused.code == Some(2) && refused.err.contains("chmod go-rwx"), "{refused:?}");
}
