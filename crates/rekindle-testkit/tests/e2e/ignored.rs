//! A declared artifact that git ignores, and git locks that somebody left or holds: proven work is neither lost nor failed.

use crate::rig::Rig;

const PLAN: &str = "---\nplan: build\n---\n# Build\n\n### T1: build\n- artifacts: dist/app.js\n- accept: `test -s dist/app.js`\n\nBuild.\n\n\
    ### T2: use it\n- blocked by: T1\n- accept: `test -s dist/app.js && test -e used`\n\nUse.\n";

const AGENT: &str = "if [ $REKINDLE_TASK = T1 ]; then mkdir -p dist; echo built > dist/app.js; echo x > dist/cache\n\
    else cat dist/app.js > used; fi\n[ ! -e \"$PROJECT/hook\" ] || . \"$PROJECT/hook\"\nrekindle task done $REKINDLE_TASK\n";

fn project() -> Rig {
    let rig = Rig::new(PLAN, "true\n");
    let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
    rig.write("rekindle.toml", &settings.replace("[run]\n", "[run]\nisolation = \"worktree\"\n"));
    rig.write("agent.sh", &AGENT.replace("$PROJECT", &rig.root().to_string_lossy()));
    rig.write(".gitignore", "dist/\n");
    rig.commit_first("-A");
    rig
}

#[test]
fn a_proven_artifact_that_git_ignores_is_in_the_result_and_the_next_task_finds_it() {
    let rig = project();
    rig.finish();
    let tree = rig.git(&["ls-tree", "-r", "--name-only", "rekindle/build"]);
    assert!(tree.lines().any(|path| path == "dist/app.js"), "destroyed: {tree}\n{}", rig.story());
    assert!(!tree.contains("dist/cache"), "left out on purpose: {tree}");
    assert_eq!(rig.git(&["show", "rekindle/build:used"]), "built");
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
    // Said like any other want of the machine: what, since when, and what to type.
    let said = rig.until("it is held", || Some(rig.status()["held"].clone()).filter(|held| !held.is_null()));
    assert!(said["reason"].as_str().is_some_and(|reason| reason.contains("build.lock")), "{said}");
    assert!(said["hint"].as_str().is_some_and(|hint| hint.contains("rm ") && hint.contains("build.lock")), "{said}");
    assert!(said["since"].is_string(), "{said}");
    std::fs::remove_file(&lock).expect("given back");
    drop(held);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.task("T1")["attempts"], 1);
    assert!(rig.status()["held"].is_null(), "{}", rig.story());
    rig.audit();
}
