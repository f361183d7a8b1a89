//! The run's branch: where it begins, whose name it takes, and that the user's own things stay as they are.

use rekindle_engine::git::{Error, Repo, Start};

use crate::bed::{Bed, RUN, git, merged, write};

#[test]
fn it_begins_at_head_and_the_user_notices_nothing() {
    let bed = Bed::new();
    bed.write("README.md", b"not committed\n");
    bed.write("staged", b"staged\n");
    bed.git(&["add", "staged"]);
    let before = bed.users();
    let work = bed.work();
    let space = work.workspace("T1").expect("a workspace");
    write(&space.dir, "out.txt", b"done\n");
    merged(work.accept("T1", "T1: done", None).expect("accepted"));
    assert_eq!(bed.users(), before);
    assert_eq!(bed.in_branch("out.txt").as_deref(), Some("done"));
    assert_eq!(bed.in_branch("staged"), None, "what the user has not committed is the user's");
    let counted = work.counted(None).expect("counted");
    assert_eq!((counted.commits, counted.files, counted.insertions, counted.taken), (1, 1, 1, false));
    bed.git(&["stash", "-q"]);
    bed.git(&["merge", "-q", "rekindle/plan"]);
    assert!(work.counted(None).expect("counted").taken);
    assert_eq!(std::fs::read(bed.repo().join("out.txt")).expect("taken"), b"done\n");
}

#[test]
fn a_detached_head_is_as_good() {
    let bed = Bed::new();
    let first = bed.git(&["rev-parse", "HEAD"]);
    bed.write("README.md", b"second\n");
    bed.commit("second");
    bed.git(&["checkout", "-q", "--detach", &first]);
    let before = bed.users();
    let base = bed.begin();
    assert_eq!((base.branch.as_str(), base.commit), ("rekindle/plan", first));
    assert_eq!(bed.users(), before);
}

#[test]
fn an_unborn_branch_stays_unborn_and_its_run_has_an_empty_beginning() {
    let bed = Bed::unborn();
    let work = bed.work();
    let space = work.workspace("T1").expect("a workspace");
    write(&space.dir, "first.txt", b"first\n");
    merged(work.accept("T1", "first", None).expect("accepted"));
    assert_eq!(bed.in_branch("first.txt").as_deref(), Some("first"));
    assert_eq!(bed.refs("refs/heads/main"), Vec::<String>::new());
    assert_eq!(work.counted(None).expect("counted").commits, 2);
    bed.git(&["merge", "-q", "rekindle/plan"]);
    assert_eq!(std::fs::read(bed.repo().join("first.txt")).expect("taken"), b"first\n");
}

#[test]
fn an_earlier_runs_branch_is_continued_moved_or_left_alone() {
    let bed = Bed::new();
    let work = bed.work();
    let space = work.workspace("T1").expect("a workspace");
    write(&space.dir, "a", b"a\n");
    let tip = merged(work.accept("T1", "a", None).expect("accepted"));
    // The run goes on.
    let start = Start::Continue { branch: "rekindle/plan", known: Some(&tip) };
    let base = bed.open().begin("plan", RUN, start).expect("continued");
    assert_eq!((base.branch.as_str(), base.commit.as_str()), ("rekindle/plan", tip.as_str()));
    // Another run, and what the first did is not in HEAD.
    let other = bed.open().begin("plan", "run-2", Start::New).expect("begun");
    assert_eq!(other.branch, "rekindle/plan-2");
    // Another one, after the user has taken the first's result.
    bed.git(&["merge", "-q", "rekindle/plan"]);
    let head = bed.commit("more");
    let third = bed.open().begin("plan", "run-3", Start::New).expect("begun");
    assert_eq!((third.branch.as_str(), third.commit), ("rekindle/plan", head));
}

#[test]
fn names_that_are_in_the_way_are_gone_round() {
    let bed = Bed::new();
    bed.git(&["branch", "rekindle/plan/sub"]);
    assert_eq!(bed.begin().branch, "rekindle/plan-2", "a branch below the name");
    let bed = Bed::new();
    bed.git(&["branch", "rekindle"]);
    let base = bed.begin();
    assert_eq!(base.branch, "rekindle-run/plan", "a branch above the name");
    let bed = Bed::new();
    bed.git(&["checkout", "-q", "-b", "rekindle/plan"]);
    assert_eq!(bed.begin().branch, "rekindle/plan-2", "the user stands on it");
    let bed = Bed::new();
    bed.git(&["branch", "rekindle-work"]);
    let error = bed.work().workspace("T1").expect_err("no room for branches of work");
    assert!(matches!(error, Error::NameTaken(_)), "{error}");
    for odd in ["a..b", "x.lock", "end."] {
        let base = bed.open().begin(odd, RUN, Start::New).expect("names of plans become branches");
        git(&bed.repo(), &["rev-parse", "--verify", &base.branch]);
    }
}

#[test]
fn a_deleted_branch_is_made_again_from_what_is_recorded() {
    let bed = Bed::new();
    let work = bed.work();
    for key in ["T1", "T2"] {
        let space = work.workspace(key).expect("a workspace");
        write(&space.dir, key, b"x\n");
    }
    merged(work.accept("T1", "T1", None).expect("accepted"));
    bed.git(&["branch", "-q", "-D", "rekindle/plan"]);
    let work = bed.again("rekindle/plan");
    match work.accept("T2", "T2", None).expect("accepted") {
        rekindle_engine::git::Accepted::Merged { notes, .. } => assert!(notes[0].contains("made again"), "{notes:?}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(bed.in_branch("T1").as_deref(), Some("x"));
    assert_eq!(bed.in_branch("T2").as_deref(), Some("x"));
}

#[test]
fn a_branch_that_the_user_stands_on_is_not_moved() {
    let bed = Bed::new();
    let work = bed.work();
    let space = work.workspace("T1").expect("a workspace");
    write(&space.dir, "a", b"a\n");
    bed.git(&["checkout", "-q", "rekindle/plan"]);
    let before = bed.users();
    let error = work.accept("T1", "a", None).expect_err("refused");
    assert!(matches!(error, Error::CheckedOut { .. }), "{error}");
    assert_eq!(bed.users(), before);
    bed.git(&["checkout", "-q", "main"]);
    merged(work.accept("T1", "a", None).expect("accepted"));
}

#[test]
fn what_is_no_repository_to_work_in_is_said_so() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    assert!(matches!(Repo::of(dir.path()), Err(Error::NotARepository(_))));
    git(dir.path(), &["init", "-q", "--bare", "bare.git"]);
    assert!(matches!(Repo::of(&dir.path().join("bare.git")), Err(Error::Bare(_))));
}

#[test]
fn artifacts_are_missed_only_where_they_once_were() {
    let bed = Bed::new();
    let work = bed.work();
    let space = work.workspace("T1").expect("a workspace");
    write(&space.dir, "kept.txt", b"k\n");
    write(&space.dir, "docs/a/b.txt", b"b\n");
    write(&space.dir, "target/app", b"ignored\n");
    let commit = merged(work.accept("T1", "T1", None).expect("accepted"));
    let paths: Vec<String> =
        ["kept.txt", "./docs/a/", "docs/a/b.txt", "target/app", "never", "../out"].map(str::to_owned).to_vec();
    assert_eq!(work.missing(&commit, &paths).expect("looked"), Vec::<String>::new());
    let space = work.workspace("T2").expect("a workspace");
    std::fs::remove_dir_all(space.dir.join("docs")).expect("deleted");
    merged(work.accept("T2", "T2", None).expect("accepted"));
    assert_eq!(work.missing(&commit, &paths).expect("looked"), ["./docs/a/", "docs/a/b.txt"]);
}
