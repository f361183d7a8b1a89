//! Worktrees: the same path over attempts, mended whatever has happened to them, removed only with proof.

use rekindle_engine::git::{Error, Place, Removed, Work};

use crate::bed::{Bed, Files, RUN, files, git, git_any, merged, odd_work, write};

/// A workspace with odd work in it, of which some is committed.
fn worked() -> (Bed, Work, std::path::PathBuf, Files) {
    let bed = Bed::new();
    let work = bed.work();
    let dir = work.workspace("T1").expect("a workspace").dir;
    write(&dir, "committed.txt", b"an agent's commit\n");
    git(&dir, &["add", "committed.txt"]);
    git(&dir, &["commit", "-q", "-m", "an agent's own"]);
    odd_work(&dir);
    let wanted = files(&dir);
    (bed, work, dir, wanted)
}

#[test]
fn the_second_call_finds_the_first_ones_work() {
    let (bed, work, dir, wanted) = worked();
    let again = work.workspace("T1").expect("a workspace");
    assert_eq!((again.dir.clone(), again.made), (dir, false));
    assert_eq!(files(&again.dir), wanted);
    let restarted = bed.again("rekindle/plan").workspace("T1").expect("a workspace");
    assert_eq!(restarted, again);
    assert_eq!(again.notes, Vec::<String>::new());
}

#[test]
fn whatever_is_broken_about_it_its_files_stay() {
    type Break = (&'static str, fn(&Bed, &std::path::Path));
    let breaks: &[Break] = &[
        ("pruned", |bed, _| std::fs::remove_dir_all(bed.repo().join(".git/worktrees")).expect("removed")),
        ("no .git", |_, dir| std::fs::remove_file(dir.join(".git")).expect("removed")),
        (".git is garbage", |_, dir| std::fs::write(dir.join(".git"), "gitdir: /nowhere\n").expect("written")),
        (".git is another repository", |_, dir| {
            std::fs::remove_file(dir.join(".git")).expect("removed");
            git(dir, &["init", "-q"]);
        }),
        (".git is a link", |bed, dir| {
            std::fs::remove_file(dir.join(".git")).expect("removed");
            std::os::unix::fs::symlink(bed.repo().join(".git"), dir.join(".git")).expect("a link");
        }),
        ("branch deleted", |bed, _| {
            bed.git(&["update-ref", "-d", "refs/heads/rekindle-work/run-1/T1"]);
        }),
        ("HEAD emptied", |bed, _| std::fs::write(bed.repo().join(".git/worktrees/T1/HEAD"), "").expect("written")),
        ("no index", |bed, _| std::fs::remove_file(bed.repo().join(".git/worktrees/T1/index")).expect("removed")),
        ("index is garbage", |bed, _| {
            std::fs::write(bed.repo().join(".git/worktrees/T1/index"), "DIRC garbage").expect("written");
        }),
        ("locked", |bed, dir| {
            bed.git(&["worktree", "lock", &dir.to_string_lossy()]);
        }),
        ("on another branch", |_, dir| {
            git(dir, &["checkout", "-q", "-b", "an-agents-idea"]);
        }),
        ("detached", |_, dir| {
            git(dir, &["checkout", "-q", "--detach"]);
        }),
    ];
    for (what, breaking) in breaks {
        let (bed, work, dir, wanted) = worked();
        breaking(&bed, &dir);
        // A snapshot needs none of it mended.
        work.snapshot(Place::Own, "T1", 1, "broken").unwrap_or_else(|error| panic!("{what}: {error}"));
        bed.assert_kept(&bed.dir.path().join("none"), &wanted, what);
        let space = work.workspace("T1").unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(files(&space.dir), wanted, "{what}");
        let commit = merged(work.accept("T1", "T1", None).unwrap_or_else(|error| panic!("{what}: {error}")));
        bed.assert_holds(&commit, &wanted);
        assert_eq!(git_any(&space.dir, &["status", "--porcelain"]), (0, String::new()), "{what}");
        assert_eq!(work.remove("T1", 1, "done").expect("removed"), Removed::Yes, "{what}");
        bed.assert_kept(&dir, &wanted, what);
    }
}

#[test]
fn a_directory_deleted_by_hand_comes_back_with_what_was_committed() {
    let (bed, work, dir, wanted) = worked();
    work.snapshot(Place::Own, "T1", 1, "end").expect("taken");
    std::fs::remove_dir_all(&dir).expect("deleted");
    let space = work.workspace("T1").expect("a workspace");
    assert!(space.made);
    assert_eq!(std::fs::read(dir.join("committed.txt")).expect("committed"), b"an agent's commit\n");
    bed.assert_kept(&dir, &wanted, "deleted by hand");
}

#[test]
fn it_takes_in_what_others_merged_only_where_nothing_is_open() {
    let bed = Bed::new();
    let work = bed.work();
    let one = work.workspace("T1").expect("a workspace").dir;
    let two = work.workspace("T2").expect("a workspace").dir;
    write(&one, "from-one", b"1\n");
    merged(work.accept("T1", "T1", None).expect("accepted"));
    write(&two, "open", b"2\n");
    work.workspace("T2").expect("a workspace");
    assert!(!two.join("from-one").exists() && two.join("open").exists());
    std::fs::remove_file(two.join("open")).expect("closed");
    work.workspace("T2").expect("a workspace");
    assert!(two.join("from-one").exists());
    // A file that is ignored there is not overwritten either.
    write(&one, ".gitignore", b"\n");
    write(&one, "x.o", b"tracked now\n");
    merged(work.accept("T1", "T1", None).expect("accepted"));
    write(&two, "x.o", b"ignored here\n");
    let space = work.workspace("T2").expect("a workspace");
    assert_eq!(std::fs::read(two.join("x.o")).expect("there"), b"ignored here\n");
    assert_eq!(space.notes.len(), 1, "{:?}", space.notes);
}

#[test]
fn a_worktree_of_another_run_is_kept_in_snapshots_and_replaced() {
    let (bed, _, dir, wanted) = worked();
    let base = bed.open().begin("plan", "run-2", rekindle_engine::git::Start::New).expect("begun");
    let other = Work::new(bed.open(), &bed.state(), "run-2", &base.branch).expect("names");
    let space = other.workspace("T1").expect("a workspace");
    assert_eq!(files(&space.dir), files(&bed.repo()), "nothing of the earlier run is in it");
    bed.assert_kept(&bed.dir.path().join("none"), &wanted, "replaced");
    assert_eq!(space.dir, dir);
}

#[test]
fn nothing_is_removed_that_is_nowhere_else() {
    let (bed, work, dir, wanted) = worked();
    let ignored = dir.join("target/ignored");
    assert!(ignored.exists());
    std::fs::create_dir(dir.join("clone")).expect("a directory");
    git(&dir.join("clone"), &["init", "-q"]);
    git(&dir.join("clone"), &["commit", "-q", "--allow-empty", "-m", "only here"]);
    assert!(matches!(work.remove("T1", 1, "done").expect("looked"), Removed::Kept(left) if left[0].path == "clone"));
    assert!(dir.exists() && ignored.exists());
    std::fs::remove_dir_all(dir.join("clone")).expect("removed");
    assert_eq!(work.remove("T1", 1, "done").expect("removed"), Removed::Yes);
    assert!(!dir.exists());
    bed.assert_kept(&dir, &wanted, "removed");
    assert_eq!(bed.refs("refs/heads/rekindle-work"), Vec::<String>::new(), "its commits are in the snapshot");
    assert_eq!(bed.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(work.remove("T1", 1, "done").expect("removed"), Removed::Yes, "twice is once");
}

#[test]
fn something_else_in_its_place_is_left_alone() {
    let bed = Bed::new();
    let work = bed.work();
    let elsewhere = bed.dir.path().join("elsewhere");
    write(&elsewhere, "mine", b"mine\n");
    std::fs::create_dir_all(bed.state().join("worktrees")).expect("a directory");
    std::os::unix::fs::symlink(&elsewhere, work.path("T1")).expect("a link");
    assert!(matches!(work.workspace("T1"), Err(Error::InTheWay(_))));
    assert!(matches!(work.remove("T1", 1, "done"), Err(Error::InTheWay(_))));
    assert_eq!(std::fs::read(elsewhere.join("mine")).expect("there"), b"mine\n");
    for bad in ["../x", "", ".", "a/b", "-x"] {
        assert!(matches!(work.workspace(bad), Err(Error::BadName(_))), "{bad:?}");
    }
}

#[test]
fn a_branch_that_somebody_looks_at_is_not_taken_from_them() {
    let (bed, work, dir, _) = worked();
    merged(work.accept("T1", "T1", None).expect("accepted"));
    std::fs::remove_dir_all(&dir).expect("deleted");
    bed.git(&["worktree", "prune"]);
    bed.git(&["checkout", "-q", "rekindle-work/run-1/T1"]);
    let before = bed.users();
    let space = work.workspace("T1").expect("a workspace");
    write(&space.dir, "more", b"more\n");
    merged(work.accept("T1", "more", None).expect("accepted"));
    assert_eq!(bed.users(), before);
    assert_eq!(bed.in_branch("more").as_deref(), Some("more"));
}

#[test]
fn a_project_below_the_repository_is_worked_on_below_the_worktree() {
    let bed = Bed::new();
    bed.write("project/here.txt", b"here\n");
    bed.commit("a project");
    let below = bed.repo().join("project");
    let repo = rekindle_engine::git::Repo::of(&below).expect("a repository");
    let base = repo.begin("plan", RUN, rekindle_engine::git::Start::New).expect("begun");
    let work = Work::new(repo, &bed.state(), RUN, &base.branch).expect("names");
    let space = work.workspace("T1").expect("a workspace");
    assert_eq!(space.dir, space.top.join("project"));
    write(&space.dir, "made.txt", b"made\n");
    let commit = merged(work.accept("T1", "T1", None).expect("accepted"));
    assert_eq!(bed.in_branch("project/made.txt").as_deref(), Some("made"));
    assert_eq!(work.missing(&commit, &["made.txt".to_owned()]).expect("looked"), Vec::<String>::new());
}

#[test]
fn submodules_are_filled_from_this_disk() {
    let bed = Bed::new();
    let origin = bed.dir.path().join("origin");
    std::fs::create_dir(&origin).expect("a directory");
    git(&origin, &["init", "-q", "-b", "main"]);
    write(&origin, "lib.c", b"library\n");
    git(&origin, &["add", "-A"]);
    git(&origin, &["commit", "-q", "-m", "library"]);
    bed.git(&["submodule", "--quiet", "add", &origin.to_string_lossy(), "deps/lib"]);
    bed.commit("with a submodule");
    // Wherever it came from is gone: only the user's own copy is left.
    std::fs::rename(&origin, bed.dir.path().join("moved")).expect("moved");
    let work = bed.work();
    let space = work.workspace("T1").expect("a workspace");
    assert_eq!(space.notes, Vec::<String>::new());
    let inside = space.dir.join("deps/lib");
    assert_eq!(std::fs::read(inside.join("lib.c")).expect("filled"), b"library\n");
    assert_eq!(git(&inside, &["config", "remote.origin.url"]), origin.to_string_lossy());
    assert_eq!(work.snapshot(Place::Own, "T1", 1, "start").expect("looked").made, None, "a clean submodule is no work");
    write(&inside, "lib.c", b"changed inside\n");
    write(&inside, "new.c", b"new inside\n");
    let wanted = files(&space.dir);
    let taken = work.snapshot(Place::Own, "T1", 1, "end").expect("taken");
    bed.assert_holds(taken.commit.as_deref().expect("a commit"), &wanted);
    assert!(matches!(work.remove("T1", 1, "done").expect("looked"), Removed::Kept(_)), "its own history is only here");
    git(&inside, &["checkout", "-q", "-f"]);
    std::fs::remove_file(inside.join("new.c")).expect("removed");
    assert_eq!(work.remove("T1", 1, "done").expect("removed"), Removed::Yes);
    bed.assert_kept(&space.dir, &wanted, "changes inside a submodule");
}
