//! Worktrees that work: what git ignores and checks need is brought into each of them before anybody begins, and what cannot be
//! brought costs no attempt.

use crate::rig::Rig;

const PLAN: &str = "---\nplan: build\n---\n# Build\n\n### T1: first\n- accept: `grep -q secret .env && test -e node_modules/dep && test -e installed && test -e local/settings && test -s out`\n\nMake it.\n";

fn project(worktree: &str, agent: &str) -> Rig {
    let rig = Rig::new(PLAN, agent);
    let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
    let settings = settings.replace("[run]\n", "[run]\nisolation = \"worktree\"\npreflight = false\n");
    rig.write("rekindle.toml", &format!("{settings}\n[worktree]\n{worktree}\n"));
    rig.write(".gitignore", ".env\nnode_modules/\ninstalled\nlocal/\n.rekindle/\n");
    rig.write(".worktreeinclude", "# what everybody has of their own\nlocal/settings\n");
    rig.write("package-lock.json", "{}\n");
    rig.commit_first("-A");
    rig.write(".env", "TOKEN=secret\n");
    for (folder, file) in [("node_modules", "node_modules/dep"), ("local", "local/settings")] {
        std::fs::create_dir(rig.path(folder)).expect("a folder");
        rig.write(file, "x\n");
    }
    rig.write("local/other", "not asked for\n");
    rig
}

const AGENT: &str =
    "echo $REKINDLE_PORT_BASE > out\ntest ! -e local/other || exit 1\nrekindle task done $REKINDLE_TASK\n";

#[test]
fn ignored_files_packages_and_ports_are_there_before_the_first_check() {
    let counted = "setup = \"echo x >> $SETUPS; echo $REKINDLE_PORT_BASE > installed\"\nteardown = \"touch $SETUPS.gone\"\n\
        copy = [\".env\", \"not-there\"]\nlink = [\"node_modules\"]\nports = 10\n";
    let place = tempfile::tempdir().expect("a directory");
    let setups = place.path().join("setups");
    // The first attempt fails: the second finds its worktree as it was set up.
    let agent = format!("[ $REKINDLE_ATTEMPT != 1 ] || exit 3\n{AGENT}");
    let rig = project(&counted.replace("$SETUPS", &setups.to_string_lossy()), &agent);
    rig.finish();
    assert_eq!(std::fs::read_to_string(&setups).expect("it was set up"), "x\n", "once for the same inputs");
    assert!(place.path().join("setups.gone").exists(), "its teardown ran");
    let base: u16 = rig.git(&["show", "rekindle/build:out"]).parse().expect("a port");
    assert!(base >= 1024, "{base}");
    assert_eq!(rig.events_of("setup_started").len(), 1, "{}", rig.story());
    assert_eq!(rig.events_of("setup_finished").len(), 1);
    assert_eq!(rig.lines(".env"), ["TOKEN=secret"]);
    let tree = rig.git(&["ls-tree", "-r", "--name-only", "rekindle/build"]);
    assert!(!tree.contains(".env") && !tree.contains("installed") && !tree.contains("node_modules"), "{tree}");
    assert!(!rig.ok(&["plan", "show", "plan.md", "--commands"]).is_empty());
    assert!(
        rig.ok(&["plan", "show", "plan.md", "--commands"]).contains("worktree.setup"),
        "it is shown what a project brings"
    );
    rig.audit();
}

#[test]
fn a_set_up_that_fails_costs_no_attempt_is_told_everywhere_and_continues_when_it_is_mended() {
    let place = tempfile::tempdir().expect("a directory");
    let mended = place.path().join("mended");
    let setup = format!(
        "setup = \"test -e {} && touch installed || {{ echo no such registry; exit 7; }}\"\ncopy = [\".env\"]\nlink = [\"node_modules\"]\n",
        mended.display()
    );
    let rig = project(&setup, AGENT);
    let run = rig.run();
    let asked = rig.await_event("question_asked");
    let text = asked["details"]["text"].as_str().expect("a text").to_owned();
    assert!(text.contains("The set-up of the worktree of T1 failed") && text.contains("exited with 7"), "{text}");
    assert!(text.contains("no such registry") && text.contains("[worktree]"), "{text}");
    assert!(!rig.events_of("setup_failed").is_empty());
    assert_eq!(rig.events_of("agent_started").len(), 0, "nobody works in half a worktree");
    assert_eq!(rig.task("T1")["attempts"], 0, "{}", rig.story());
    std::fs::write(&mended, "").expect("mended");
    rig.ok(&["answer", "1", "1"]);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.task("T1")["attempts"], 1, "{}", rig.story());
    rig.audit();
}

#[test]
fn another_lock_file_is_another_set_up() {
    let place = tempfile::tempdir().expect("a directory");
    let setups = place.path().join("setups");
    let setup = format!(
        "setup = \"echo x >> {}; touch installed\"\ncopy = [\".env\"]\nlink = [\"node_modules\"]\n",
        setups.display()
    );
    // The first attempt changes what is to be installed, and dies.
    let agent = format!("if [ $REKINDLE_ATTEMPT = 1 ]; then echo more > package-lock.json; exit 3; fi\n{AGENT}");
    let rig = project(&setup, &agent);
    rig.finish();
    assert_eq!(std::fs::read_to_string(&setups).expect("set up"), "x\nx\n");
    rig.audit();
}

#[test]
fn a_path_that_leads_out_is_refused_with_what_to_write() {
    let rig = project("copy = [\"../elsewhere\"]\n", AGENT);
    let run = rig.run();
    let asked = rig.await_event("question_asked");
    let text = asked["details"]["text"].as_str().expect("a text");
    assert!(text.contains("../elsewhere is not a path inside"), "{asked}");
    rig.ok(&["stop"]);
    run.end();
}

#[test]
fn checks_are_tried_in_a_fresh_worktree_before_anybody_works() {
    let rig = project("copy = [\".env\"]\nlink = [\"node_modules\"]\nsetup = \"touch installed\"\n", AGENT);
    let plan = "# Build\n\n### T1: first\n- accept: `grep -q secret .env && test -e installed && test -e node_modules/dep`\n- accept: `no-such-tool --check`\n\nOne.\n\n\
        ### T2: second\n- accept: `test -s out`\n- accept: `no-such-tool --check`\n\nTwo.\n";
    rig.write("plan.md", plan);
    let tried = rig.rekindle(&["plan", "check", "--try", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&tried.out).unwrap_or_else(|error| panic!("{error}: {tried:?}"));
    let outcomes: Vec<(&str, usize)> = told["tried"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (one["outcome"].as_str().expect("a word"), one["tasks"].as_array().expect("tasks").len()))
        .collect();
    assert_eq!(outcomes, [("passes", 1), ("cannot_run", 2), ("fails", 1)], "{told:#}");
    let said = rig.rekindle(&["plan", "check", "--try"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains("cannot run") && said.out.contains("fails, as it should"), "{said:?}");
    assert!(said.err.contains("[worktree]") && said.err.contains("proves nothing"), "{said:?}");
    assert_eq!(rig.git(&["worktree", "list"]).lines().count(), 1, "nothing is left");
    assert!(!rig.has("installed"), "the checkout is as it was");
    let broken = project("setup = \"echo no registry; exit 3\"\n", AGENT).rekindle(&["plan", "check", "--try"]);
    assert!(
        broken.code == Some(1) && broken.err.contains("exited with 3") && broken.err.contains("no registry"),
        "{broken:?}"
    );
}

#[test]
fn a_landing_on_a_moved_branch_sets_its_checkout_up_too() {
    let rig = project("copy = [\".env\"]\nlink = [\"node_modules\"]\nsetup = \"touch installed\"\n", AGENT);
    rig.finish();
    rig.write("mine.txt", "mine\n");
    rig.git(&["add", "mine.txt"]);
    rig.git(&["commit", "-q", "-m", "by hand"]);
    let landed = rig.rekindle(&["land"]);
    assert_eq!(landed.code, Some(0), "{landed:?}");
    assert!(rig.has("out") && rig.has("mine.txt"));
}

#[test]
fn what_a_failed_set_up_left_is_not_committed_and_landing_keeps_the_persons_folder() {
    let place = tempfile::tempdir().expect("a directory");
    let once = place.path().join("once");
    let setup = format!(
        "copy = [\".env\", \"fifo\", \".rekindle\", \"plan.md\"]\nlink = [\"node_modules\"]\nsetup = \"date > scaffold.txt; touch installed; test -e {0} || {{ touch {0}; exit 1; }}\"\n",
        once.display()
    );
    // An agent that changes what is to be installed, and a file that the set-up made, has done work.
    let agent = format!("echo work > scaffold.txt\necho more > package-lock.json\ngit rm -q plan.md\n{AGENT}");
    let rig = project(&setup, &agent);
    let made = std::process::Command::new("mkfifo").arg(rig.path("fifo")).status().expect("mkfifo");
    assert!(made.success());
    let run = rig.run();
    rig.await_event("question_asked");
    rig.ok(&["answer", "1", "1"]);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    let tree = rig.git(&["ls-tree", "-r", "--name-only", "rekindle/build"]);
    assert!(!tree.contains("node_modules") && !tree.contains("plan.md"), "{tree}");
    assert_eq!(rig.git(&["show", "rekindle/build:scaffold.txt"]), "work", "a set-up does not run over an agent's work");
    rig.ok(&["land"]);
    assert_eq!(rig.lines("node_modules/dep"), ["x"]);
}

#[test]
fn a_stop_ends_a_set_up_that_takes_long_and_nobody_is_started() {
    let rig = project("copy = [\".env\"]\nlink = [\"node_modules\"]\nsetup = \"sleep 3000\"\n", AGENT);
    let run = rig.run();
    rig.await_event("setup_started");
    rig.ok(&["stop"]);
    let ended = run.end();
    assert_eq!(ended.code, Some(4), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.events_of("agent_started").len(), 0, "{}", rig.story());
    rig.assert_nothing_left();
    let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
    rig.write("rekindle.toml", &settings.replace("sleep 3000", "touch installed"));
    let ended = rig.rekindle(&["resume"]);
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.task("T1")["attempts"], 1, "{}", rig.story());
}
