//! The result of a run: told in every view, shown by `diff`, and taken by `land`, which changes nothing unless everything is proven.

use std::path::Path;
use std::process::Command;

use crate::rig::Rig;

const PLAN: &str = "---\nplan: build\n---\n# Build it\n\n### T1: first\n- accept: `test -s one.txt`\n- accept: `! grep -q bad README`\n\nMake one.\n\n\
    ### T2: second\n- blocked by: T1\n- accept: `test -s two.txt`\n\nMake two.\n";

const AGENT: &str = "case $REKINDLE_TASK in T1) printf 'a\\nb\\n' > one.txt;; T2) echo two > two.txt;; esac\n\
    rekindle task done $REKINDLE_TASK\n";

fn project() -> Rig {
    let rig = Rig::new(PLAN, AGENT);
    let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
    rig.write("rekindle.toml", &settings.replace("[run]\n", "[run]\nisolation = \"worktree\"\n"));
    rig.write("README", "good\n");
    rig.commit_first("-A");
    rig
}

/// A person's own commit beside the run.
fn commit(rig: &Rig, name: &str, text: &str) {
    rig.write(name, text);
    rig.git(&["add", name]);
    rig.git(&["commit", "-q", "-m", "by hand"]);
}

fn branch(rig: &Rig) -> String {
    rig.git(&["symbolic-ref", "--short", "HEAD"])
}

#[test]
fn the_result_is_the_same_in_every_view_and_landing_takes_it() {
    let rig = project();
    let ended = rig.finish();
    let card = "2 commits on rekindle/build: 2 files, +3 −0";
    assert!(ended.out.contains(card), "{}", ended.out);
    let result = &rig.status()["result"];
    assert_eq!((&result["commits"], &result["files"], &result["insertions"]), (&2.into(), &2.into(), &3.into()));
    assert_eq!((&result["branch"], &result["deletions"]), (&"rekindle/build".into(), &0.into()), "{result}");
    for view in [&["status"][..], &["report", "--markdown", "-"], &["report", "--html", "-"]] {
        let shown = rig.ok(view);
        assert!(shown.contains("2 commits on rekindle/build"), "{view:?}: {shown}");
    }
    let stat = rig.ok(&["diff", "--stat"]);
    assert!(stat.contains("one.txt") && stat.contains("two.txt"), "{stat}");
    let one = rig.ok(&["diff", "T1"]);
    assert!(one.contains("+++ b/one.txt") && !one.contains("two.txt"), "{one}");
    let message = rig.git(&["log", "-1", "--format=%B", "rekindle/build^{/T1}"]);
    assert!(message.starts_with("T1: first\n"), "{message}");
    assert!(message.contains("Rekindle-Check: test -s one.txt\n"), "{message}");
    assert!(!message.contains("T1: T1"), "{message}");
    assert!(!rig.has("one.txt"), "nobody touched the checkout");

    let told = rig.ok(&["land"]);
    assert!(told.starts_with(&format!("landed in {} as ", branch(&rig))), "{told}");
    assert_eq!(rig.lines("one.txt"), ["a", "b"]);
    assert_eq!(rig.git(&["status", "--porcelain", "--untracked-files=no"]), "");
    assert_eq!(rig.events_of("landed").len(), 1);
    assert!(rig.ok(&["status"]).contains("landed in "), "{}", rig.ok(&["status"]));
    let again = rig.ok(&["land"]);
    assert!(again.contains("has it already"), "{again}");
    assert_eq!(rig.events_of("landed").len(), 1, "once on record");
    rig.audit();
}

#[test]
fn a_branch_that_moved_is_merged_first_and_every_check_runs_on_both() {
    for form in ["--merge", "--squash", "--rebase"] {
        let rig = project();
        rig.finish();
        // A worktree of the person's on a disk that is away for now.
        let away = rig.outside("away");
        rig.git(&["worktree", "add", "-q", "--detach", &away.to_string_lossy()]);
        std::fs::rename(&away, rig.outside("unmounted")).expect("moved");
        commit(&rig, "mine.txt", "mine\n");
        let before = rig.git(&["rev-parse", "HEAD"]);
        // The first check of T1 looks at a file that is the person's.
        commit(&rig, "README", "bad\n");
        let refused = rig.rekindle(&["land", form]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.err.contains("a check fails on the merged files: ! grep -q bad README"), "{refused:?}");
        assert!(!rig.has("one.txt"), "nothing was changed");
        rig.git(&["reset", "-q", "--hard", &before]);
        let told = rig.rekindle(&["land", form, "--json"]);
        assert_eq!(told.code, Some(0), "{told:?}");
        let landed: serde_json::Value = serde_json::from_str(&told.out).expect("JSON");
        assert_eq!(landed["checks"], 3, "{landed}");
        assert_eq!(landed["commit"], rig.git(&["rev-parse", "HEAD"]));
        assert_eq!(
            (rig.lines("one.txt"), rig.lines("mine.txt")),
            (vec!["a".to_owned(), "b".to_owned()], vec!["mine".to_owned()])
        );
        let parents = rig.git(&["log", "-1", "--format=%P"]).split(' ').count();
        assert_eq!(parents, if form == "--merge" { 2 } else { 1 }, "{form}");
        let commits = rig.git(&["rev-list", "--count", &format!("{before}..HEAD")]);
        assert_eq!(
            commits,
            match form {
                "--merge" => "3",
                "--squash" => "1",
                _ => "2",
            },
            "{form}"
        );
        // What was landed is known again, whatever came after it.
        commit(&rig, "more.txt", "more\n");
        assert!(rig.ok(&["land", form]).contains("has it already"), "{form}");
        assert_eq!(rig.events_of("landed").len(), 1, "{form}");
        assert!(no_trial_is_left(&rig), "the trial is gone");
        let listed = rig.git(&["worktree", "list"]);
        assert!(listed.lines().count() == 2 && listed.contains("/away"), "{form}: {listed}");
    }
}

#[test]
fn landing_refuses_what_it_cannot_do_and_says_what_to_type() {
    let rig = project();
    rig.finish();
    rig.write("README", "being edited\n");
    let open = rig.rekindle(&["land"]);
    assert!(open.code == Some(1) && open.err.contains("README") && open.err.contains("commit or stash"), "{open:?}");
    assert_eq!(rig.lines("README"), ["being edited"]);
    assert!(!rig.has("one.txt"));
    rig.git(&["checkout", "-q", "--", "README"]);

    let nowhere = rig.rekindle(&["land", "--into", "nowhere"]);
    assert!(nowhere.code != Some(0) && nowhere.err.contains("there is no branch nowhere"), "{nowhere:?}");

    commit(&rig, "one.txt", "the person's own\n");
    let before = rig.git(&["rev-parse", "HEAD"]);
    let conflict = rig.rekindle(&["land"]);
    assert!(conflict.code == Some(1) && conflict.err.contains("change the same lines: one.txt"), "{conflict:?}");
    assert!(conflict.err.contains("git merge rekindle/build"), "{conflict:?}");
    let rebase = rig.rekindle(&["land", "--rebase"]);
    assert!(rebase.code == Some(1) && rebase.err.contains("one.txt"), "{rebase:?}");
    assert_eq!((rig.git(&["rev-parse", "HEAD"]), rig.lines("one.txt")), (before, vec!["the person's own".to_owned()]));
    assert_eq!(rig.events_of("landed"), Vec::<serde_json::Value>::new());
    assert!(no_trial_is_left(&rig));
}

#[test]
fn a_run_that_is_not_complete_is_landed_only_when_asked_for() {
    let rig = project();
    rig.write("agent.sh", "[ $REKINDLE_TASK = T1 ] || exit 1\nprintf 'a\\nb\\n' > one.txt\nrekindle task done T1\n");
    rig.git(&["commit", "-q", "-a", "-m", "an agent that cannot do everything"]);
    rig.rekindle(&["run", "plan.md"]);
    let refused = rig.rekindle(&["land"]);
    assert!(refused.code == Some(1) && refused.err.contains("the run is not complete: 1 task failed"), "{refused:?}");
    rig.ok(&["land", "--partial"]);
    assert_eq!(rig.lines("one.txt"), ["a", "b"]);
}

#[test]
fn a_branch_that_is_checked_out_nowhere_is_moved_without_touching_the_checkout() {
    let rig = project();
    rig.git(&["branch", "release"]);
    rig.finish();
    rig.write("README", "being edited\n");
    let told = rig.ok(&["land", "--into", "release", "--squash"]);
    assert!(told.starts_with("landed in release as "), "{told}");
    assert_eq!(rig.git(&["show", "release:two.txt"]), "two");
    assert_eq!(rig.git(&["rev-list", "--count", "HEAD..release"]), "1");
    assert_eq!((rig.lines("README"), rig.has("one.txt")), (vec!["being edited".to_owned()], false));
}

#[test]
fn what_a_check_made_is_not_committed_unless_an_agent_made_it_too() {
    let plan = "---\nplan: build\n---\n# Build it\n\n### T1: first\n- artifacts: kept\n\
        - accept: `mkdir -p cache kept; echo c > cache/one; echo c > cache/own; echo r > kept/report.txt; test -s one.txt`\n\nMake one.\n";
    let rig = project();
    rig.write("plan.md", plan);
    // The check has run before the agent begins: the agent finds the cache, and makes one of its files its own.
    rig.write("agent.sh", "echo one > one.txt\necho mine > cache/own\necho new > cache/new\nrekindle task done T1\n");
    std::fs::create_dir(rig.path("kept")).expect("a folder");
    rig.write("kept/.keep", "");
    rig.git(&["add", "-A"]);
    rig.git(&["commit", "-q", "-m", "another plan"]);
    rig.finish();
    let tree = rig.git(&["ls-tree", "-r", "--name-only", "rekindle/build"]);
    let has = |name: &str| tree.lines().any(|line| line == name);
    assert!(has("one.txt") && has("cache/new") && has("kept/report.txt"), "{tree}");
    assert!(!has("cache/one"), "a check made it: {tree}");
    rig.audit();
}

#[test]
fn what_an_agent_writes_while_a_check_runs_is_its_work() {
    let plan = "---\nplan: build\n---\n# Build it\n\n### T1: first\n- accept: `mkdir -p src/__pycache__; echo c > src/__pycache__/x.pyc; sleep 2; test -s one.txt`\n\nMake one.\n";
    let rig = project();
    rig.write("plan.md", plan);
    rig.write("agent.sh", "echo one > one.txt\n(sleep 1; echo late > late.txt) &\nrekindle task done T1\nwait\n");
    rig.git(&["commit", "-q", "-a", "-m", "another plan"]);
    rig.finish();
    let tree = rig.git(&["ls-tree", "-r", "--name-only", "rekindle/build"]);
    assert!(tree.contains("late.txt"), "{tree}");
    assert!(!tree.contains("__pycache__"), "a cache is nobody's work: {tree}");
}

#[test]
fn a_file_of_a_check_that_an_agent_changed_in_any_way_is_its_work() {
    let plan = "---\nplan: build\n---\n# Build it\n\n### T1: first\n- accept: `mkdir -p gen; for f in mode same added left; do test -e gen/$f || echo aaa > gen/$f; done; test -s one.txt`\n\nMake one.\n";
    let rig = project();
    rig.write("plan.md", plan);
    let agent = "chmod +x gen/mode\nprintf 'bbb\\n' > gen/new; touch -r gen/same gen/new; mv gen/new gen/same\ngit add gen/added\n\
        echo one > one.txt\nrekindle task done T1\n";
    rig.write("agent.sh", agent);
    rig.git(&["commit", "-q", "-a", "-m", "another plan"]);
    rig.finish();
    let tree = rig.git(&["ls-tree", "-r", "--name-only", "rekindle/build"]);
    for name in ["gen/mode", "gen/same", "gen/added"] {
        assert!(tree.lines().any(|line| line == name), "{name} is lost: {tree}");
    }
    assert!(!tree.contains("gen/left"), "{tree}");
}

#[test]
fn what_was_done_in_a_merge_is_landed_or_the_landing_is_refused() {
    let rig = project();
    let plan = "---\nplan: build\nmax_agents: 2\n---\n# Build it\n\n### T1: first\n- accept: `test -s one.txt`\n\nOne.\n\n### T2: second\n- accept: `test -s two.txt`\n\nTwo.\n";
    rig.write("plan.md", plan);
    let agent = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b\n\
        if [ $REKINDLE_TASK = T1 ]; then until [ -e $REKINDLE_STATE_DIR/t2 ]; do sleep 0.1; done; echo one > one.txt; rekindle task done T1; exit; fi\n\
        touch $REKINDLE_STATE_DIR/t2; echo two > two.txt; git add -A; git commit -q -m two\n\
        until git show rekindle/build:one.txt >/dev/null 2>&1; do sleep 0.1; done\n\
        git merge -q --no-commit rekindle/build; echo glue > glue.txt; git add -A; git commit -q -m merge\n\
        rekindle task done T2\n";
    rig.write("agent.sh", agent);
    rig.git(&["commit", "-q", "-a", "-m", "another plan"]);
    rig.finish();
    let refused = rig.rekindle(&["land", "--rebase"]);
    let log = rig.git(&["log", "--graph", "--stat", "--oneline", "rekindle/build"]);
    assert!(refused.code == Some(1) && refused.err.contains("rekindle land --squash"), "{refused:?}\n{log}");
    assert!(!rig.has("two.txt"), "nothing was changed");
    rig.ok(&["land", "--squash"]);
    assert_eq!((rig.lines("glue.txt"), rig.lines("two.txt")), (vec!["glue".to_owned()], vec!["two".to_owned()]));
}

#[test]
fn landing_overwrites_nothing_that_git_ignores_and_obeys_no_setting_that_would_change_it() {
    let plan = "---\nplan: build\n---\n# Build it\n\n### T1: first\n- artifacts: dist/app.js\n- accept: `test -s dist/app.js`\n\nMake it.\n";
    let rig = project();
    rig.write("plan.md", plan);
    rig.write(".gitignore", "dist/\n");
    rig.write("agent.sh", "mkdir -p dist; echo built > dist/app.js\nrekindle task done T1\n");
    rig.git(&["add", ".gitignore"]);
    rig.git(&["commit", "-q", "-a", "-m", "another plan"]);
    std::fs::create_dir(rig.path("dist")).expect("a folder");
    rig.write("dist/app.js", "the person's own\n");
    rig.finish();
    let refused = rig.rekindle(&["land"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(rig.lines("dist/app.js"), ["the person's own"]);
    std::fs::remove_dir_all(rig.path("dist")).expect("moved away");
    rig.git(&["config", &format!("branch.{}.mergeOptions", branch(&rig)), "--squash"]);
    rig.git(&["config", "rebase.updateRefs", "true"]);
    rig.ok(&["land"]);
    assert_eq!(rig.lines("dist/app.js"), ["built"]);
    assert_eq!(rig.git(&["status", "--porcelain", "--untracked-files=no"]), "");
}

#[test]
fn what_comes_after_a_squash_can_be_landed_too() {
    let rig = project();
    rig.write("agent.sh", "case $REKINDLE_TASK in T1) echo a > one.txt;; T2) echo two > two.txt;; *) echo more >> one.txt;; esac\nrekindle task done $REKINDLE_TASK\n");
    rig.git(&["commit", "-q", "-a", "-m", "another agent"]);
    rig.finish();
    rig.ok(&["land", "--squash"]);
    assert!(rig.ok(&["status"]).contains("landed in "));
    rig.ok(&["task", "add", "one more line", "--accept", "grep -q more one.txt"]);
    let ended = rig.rekindle(&["resume"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(rig.ok(&["status"]).contains("take it: rekindle land"), "there is more: {}", rig.ok(&["status"]));
    rig.ok(&["land", "--squash"]);
    assert_eq!(rig.lines("one.txt"), ["a", "more"]);
    let own = rig.rekindle(&["land", "--into", "rekindle/build"]);
    assert!(own.code == Some(2) && own.err.contains("name a branch of your own"), "{own:?}");
}

/// Killed after any call of git, the command can be given again: the branch has the result once, and it is on record once.
#[test]
fn a_landing_that_is_killed_anywhere_can_be_given_again() {
    let rig = project();
    rig.finish();
    commit(&rig, "mine.txt", "mine\n");
    let before = rig.git(&["rev-parse", "HEAD"]);
    let kept = rig.outside("kept");
    copy(rig.root(), &kept);
    for form in ["--squash", "--merge", "--rebase"] {
        for stage in 1.. {
            std::fs::remove_dir_all(rig.root()).expect("removed");
            copy(&kept, rig.root());
            let mut command = rig.command(&["land", form]);
            command.env("PATH", killing_git(&rig, stage));
            let through = rig.launch(command).wait().success();
            rig.ok(&["land", form]);
            assert_eq!(rig.lines("one.txt"), ["a", "b"], "{form} {stage}");
            let commits = rig.git(&["rev-list", "--count", "--no-merges", &format!("{before}..HEAD")]);
            assert_eq!(commits, if form == "--squash" { "1" } else { "2" }, "{form}, killed at call {stage}");
            assert_eq!(rig.events_of("landed").len(), 1, "{form} {stage}");
            assert_eq!(rig.git(&["status", "--porcelain", "--untracked-files=no"]), "", "{form} {stage}");
            assert_eq!(rig.git(&["worktree", "list"]).lines().count(), 1, "{form} {stage}");
            if through {
                assert!(stage > 5, "git was hardly called");
                break;
            }
        }
    }
}

/// Copies a project with its times, its links and its state.
pub fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").args([from, to]).status().expect("cp");
    assert!(done.success());
}

/// A folder for PATH whose git kills its caller after its Nth call.
fn killing_git(rig: &Rig, stage: u32) -> String {
    let real = String::from_utf8(Command::new("sh").args(["-c", "command -v git"]).output().expect("sh").stdout)
        .expect("a path");
    let dir = rig.outside("shim");
    std::fs::create_dir_all(&dir).expect("a folder");
    let script = format!(
        "#!/bin/sh\nn=$(cat '{0}/n' 2>/dev/null || echo 0); n=$((n+1)); echo $n > '{0}/n'\n{1} \"$@\"; code=$?\n\
         if [ $n -eq {stage} ]; then kill -9 $PPID; fi\nexit $code\n",
        dir.display(),
        real.trim(),
    );
    std::fs::write(dir.join("git"), script).expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.join("git"), mode).expect("runnable");
    let _ = std::fs::remove_file(dir.join("n"));
    format!("{}:{}", dir.display(), std::env::var("PATH").expect("PATH"))
}

fn no_trial_is_left(rig: &Rig) -> bool {
    let mut entries = std::fs::read_dir(rig.state()).expect("the state").flatten();
    entries.all(|entry| !entry.file_name().to_string_lossy().starts_with("landing"))
}
