//! Declared artifacts that git ignores: they are in snapshots and in the run's branch, the next task finds them, and no worktree
//! is removed that holds one which could not be taken.

use rekindle_engine::git::{Place, Removed};

use crate::bed::{Bed, git, merged, write};

fn paths(all: &[&str]) -> Vec<String> {
    all.iter().map(|path| (*path).to_owned()).collect()
}

#[test]
fn a_declared_file_is_merged_although_git_ignores_it_and_the_next_task_finds_it() {
    let bed = Bed::new();
    let work = bed.work();
    let dir = work.workspace("T1").expect("a workspace").dir;
    work.declare("T1", &paths(&["target/app.js", "never-made"])).expect("declared");
    write(&dir, "target/app.js", b"built\n");
    write(&dir, "target/cache", b"not promised\n");
    write(&dir, "x.o", b"not promised\n");
    let taken = work.snapshot(Place::Own, "T1", 1, "end").expect("taken");
    assert_eq!(taken.left, []);
    let held = bed.git(&["ls-tree", "-r", "--name-only", taken.commit.as_deref().expect("a commit")]);
    assert!(held.lines().any(|path| path == "target/app.js"), "{held}");
    merged(work.accept("T1", "T1", None).expect("accepted"));
    assert_eq!(bed.in_branch("target/app.js").as_deref(), Some("built"));
    assert_eq!(bed.in_branch("target/cache"), None, "left out on purpose");
    assert_eq!(bed.in_branch("x.o"), None, "left out on purpose");
    assert_eq!(work.remove("T1", 1, "removed").expect("looked"), Removed::Yes);
    let next = work.workspace("T2").expect("a workspace").dir;
    assert_eq!(std::fs::read(next.join("target/app.js")).expect("there"), b"built\n");
    let again = work.missing(&bed.git(&["rev-parse", "rekindle/plan"]), &paths(&["target/app.js"])).expect("looked");
    assert_eq!(again, Vec::<String>::new());
}

#[test]
fn a_declared_folder_is_taken_whole() {
    let bed = Bed::new();
    let work = bed.work();
    let dir = work.workspace("T1").expect("a workspace").dir;
    work.declare("T1", &paths(&["./target/"])).expect("declared");
    write(&dir, "target/a", b"a\n");
    write(&dir, "target/deep/b.o", b"b\n");
    merged(work.accept("T1", "T1", None).expect("accepted"));
    assert_eq!(bed.in_branch("target/deep/b.o").as_deref(), Some("b"));
    // Another try finds all of it merged.
    assert_eq!(work.remove("T1", 1, "removed").expect("looked"), Removed::Yes);
}

#[test]
fn what_lies_behind_links_is_taken_with_the_links() {
    let bed = Bed::new();
    let work = bed.work();
    let dir = work.workspace("T1").expect("a workspace").dir;
    work.declare("T1", &paths(&["dist/app.js"])).expect("declared");
    write(&dir, "target/out/app.js", b"built\n");
    std::os::unix::fs::symlink("target/out", dir.join("dist")).expect("a link");
    merged(work.accept("T1", "T1", None).expect("accepted"));
    assert_eq!(bed.in_branch("dist").as_deref(), Some("target/out"));
    assert_eq!(bed.in_branch("target/out/app.js").as_deref(), Some("built"));
}

#[test]
fn an_earlier_runs_artifact_is_kept_by_whoever_finds_its_worktree() {
    let bed = Bed::new();
    let work = bed.work();
    let dir = work.workspace("T1").expect("a workspace").dir;
    work.declare("T1", &paths(&["target/app.js"])).expect("declared");
    work.snapshot(Place::Own, "T1", 1, "start").expect("taken");
    write(&dir, "target/app.js", b"built after\n");
    // Another process, which has not been told what was promised.
    let mut worker = crate::crash::worker(&bed, "remove", "T1");
    assert!(worker.status().expect("it runs").success());
    assert!(!dir.exists());
    let kept = bed.git(&["show", "refs/rekindle/run-1/T1/last:target/app.js"]);
    assert_eq!(kept, "built after");
}

#[test]
fn a_worktree_stays_while_it_holds_an_artifact_that_could_not_be_taken() {
    let bed = Bed::new();
    let work = bed.work();
    let dir = work.workspace("T1").expect("a workspace").dir;
    // Too large to be kept in a repository: a file of holes, which costs the disk nothing.
    work.declare("T1", &paths(&["target/image"])).expect("declared");
    write(&dir, "target/image", b"");
    let image = std::fs::File::options().write(true).open(dir.join("target/image")).expect("open");
    image.set_len(2 * 1024 * 1024 * 1024).expect("holes");
    let Removed::Kept(left) = work.remove("T1", 1, "removed").expect("looked") else { panic!("removed") };
    assert_eq!(left[0].path, "target/image");
    assert!(left[0].why.contains("too large"), "{left:?}");
    assert!(dir.join("target/image").exists());
    // In a repository inside, which ignores it: nobody but the worktree has it.
    let dir = work.workspace("T2").expect("a workspace").dir;
    work.declare("T2", &paths(&["inner/out/app.js"])).expect("declared");
    write(&dir, "inner/.gitignore", b"out/\n");
    write(&dir, "inner/out/app.js", b"built\n");
    git(&dir.join("inner"), &["init", "-q"]);
    let Removed::Kept(left) = work.remove("T2", 1, "removed").expect("looked") else { panic!("removed") };
    assert!(left.iter().any(|left| left.path == "inner/out/app.js"), "{left:?}");
    assert_eq!(std::fs::read(dir.join("inner/out/app.js")).expect("there"), b"built\n");
}

#[test]
fn in_the_users_checkout_a_snapshot_holds_the_declared_artifact() {
    let bed = Bed::new();
    let work = bed.work();
    work.declare("T1", &paths(&["target/app.js"])).expect("declared");
    bed.write("target/app.js", b"built\n");
    bed.write("target/other", b"not promised\n");
    let before = bed.users();
    let taken = work.snapshot(Place::Shared, "T1", 1, "end").expect("taken");
    let held = bed.git(&["ls-tree", "-r", "--name-only", taken.commit.as_deref().expect("a commit")]);
    assert!(held.lines().any(|path| path == "target/app.js") && !held.contains("other"), "{held}");
    assert_eq!(bed.users(), before, "the user's checkout and index are as they were");
}

#[test]
fn whether_an_artifact_is_ignored_is_known_before_it_is_there() {
    let bed = Bed::new();
    bed.write(".gitignore", b"dist/\n*.o\n");
    let repo = bed.open();
    for (path, ignored) in
        [("dist/app.js", true), ("dist", true), ("a.o", true), ("src/app.js", false), ("../x", false)]
    {
        assert_eq!(repo.ignores_artifact(path).expect("asked"), ignored, "{path}");
    }
}
