//! A declared artifact that git ignores, and git locks that somebody left or holds: proven work is neither lost nor failed.

use std::process::Command;

use crate::rig::Rig;

const PLAN: &str = "---\nplan: build\n---\n# Build\n\n### T1: build\n- artifacts: dist/app.js\n- accept: `test -s dist/app.js`\n\nBuild.\n\n\
    ### T2: use it\n- blocked by: T1\n- accept: `test -s dist/app.js && test -e used`\n\nUse.\n";

const AGENT: &str = "if [ $REKINDLE_TASK = T1 ]; then mkdir -p dist; echo built > dist/app.js; echo x > dist/cache\n\
    else cat dist/app.js > used; fi\n[ ! -e \"$PROJECT/hook\" ] || . \"$PROJECT/hook\"\nrekindle task done $REKINDLE_TASK\n";

fn git(rig: &Rig, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    rig.prepare(&mut command);
    let output = command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(arguments).output().expect("git");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn project() -> Rig {
    let rig = Rig::new(PLAN, "true\n");
    let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
    rig.write("rekindle.toml", &settings.replace("[run]\n", "[run]\nisolation = \"worktree\"\n"));
    rig.write("agent.sh", &AGENT.replace("$PROJECT", &rig.root().to_string_lossy()));
    rig.write(".gitignore", "dist/\n");
    git(&rig, &["init", "-q", "-b", "main"]);
    git(&rig, &["add", "-A"]);
    git(&rig, &["commit", "-q", "-m", "first"]);
    rig
}

#[test]
fn a_proven_artifact_that_git_ignores_is_in_the_result_and_the_next_task_finds_it() {
    let rig = project();
    rig.finish();
    let tree = git(&rig, &["ls-tree", "-r", "--name-only", "rekindle/build"]);
    assert!(tree.lines().any(|path| path == "dist/app.js"), "destroyed: {tree}\n{}", rig.story());
    assert!(!tree.contains("dist/cache"), "left out on purpose: {tree}");
    assert_eq!(git(&rig, &["show", "rekindle/build:used"]), "built");
    assert!(!rig.state().join("worktrees/T1").exists(), "it is merged, so its worktree goes");
    rig.audit();
}

#[test]
fn a_lock_that_an_agent_died_with_fails_no_proven_work() {
    let rig = project();
    // As if a git of the agent had been killed in the middle.
    rig.write("hook", "[ $REKINDLE_TASK = T2 ] || touch \"$(git rev-parse --git-path HEAD.lock)\"\n");
    rig.finish();
    for id in ["T1", "T2"] {
        assert_eq!(rig.task(id)["attempts"], 1, "{}", rig.story());
    }
    let noted = rig.events_of("state_reconciled");
    assert!(noted.iter().any(|event| event.to_string().contains("HEAD.lock")), "not on record: {noted:?}");
    rig.audit();
}

#[test]
fn a_lock_that_somebody_holds_is_waited_for_and_costs_nothing() {
    let rig = project();
    let common = rig.path(".git");
    let lock = common.join("refs/heads/rekindle/build.lock");
    std::fs::create_dir_all(common.join("refs/heads/rekindle")).expect("a directory");
    let run = rig.run();
    rig.await_event("agent_started");
    let held = std::fs::File::create(&lock).expect("held");
    rig.until("the wait is said", || {
        rig.events_of("state_reconciled")
            .iter()
            .any(|event| event.to_string().contains("waiting_for_machine"))
            .then_some(())
    });
    assert_eq!(rig.task("T1")["state"], "in_progress", "{}", rig.story());
    std::fs::remove_file(&lock).expect("given back");
    drop(held);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.task("T1")["attempts"], 1);
    rig.audit();
}
