//! Locks that a killed git left behind, of every kind: those of our own refs and worktrees, and those that all worktrees share,
//! go when nobody who lives can hold them; others stay and are named.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rekindle_engine::git::{Error, Work};

use crate::bed::{Bed, RUN, merged, write};

/// The run's share, for somebody who need not wait long for a dead one's lock.
fn work(bed: &Bed) -> Work {
    let branch = bed.begin().branch;
    Work::new(bed.open().patient_for(200), &bed.state(), RUN, &branch).expect("names")
}

fn lock(path: &Path, seconds_old: u64) {
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
    let file = std::fs::File::create(path).expect("locked");
    let made = SystemTime::now() - Duration::from_secs(seconds_old);
    file.set_modified(made).expect("its time");
}

#[test]
fn every_lock_that_a_merge_can_meet_goes_when_it_was_left() {
    let bed = Bed::new();
    let work = work(&bed);
    let common = bed.repo().join(".git");
    let locks = [
        "worktrees/T1/index.lock",
        "worktrees/T1/HEAD.lock",
        "refs/heads/rekindle-work/run-1/T1.lock",
        "refs/heads/rekindle/plan.lock",
        "refs/rekindle-run/run-1.lock",
    ];
    for (n, name) in locks.iter().enumerate() {
        let dir = work.workspace("T1").expect("a workspace").dir;
        write(&dir, &format!("file-{n}"), name.as_bytes());
        lock(&common.join(name), 90);
        merged(work.accept("T1", "T1", None).unwrap_or_else(|error| panic!("{name}: {error}")));
        assert!(!common.join(name).exists(), "{name} stands");
        let notes = work.repo().notes();
        assert!(notes.iter().any(|note| note.contains(name)), "{name} is not on record: {notes:?}");
        assert_eq!(bed.in_branch(&format!("file-{n}")).as_deref(), Some(*name));
    }
}

#[test]
fn several_locks_at_once_and_those_of_a_snapshot_and_a_removal() {
    let bed = Bed::new();
    let work = work(&bed);
    let dir = work.workspace("T1").expect("a workspace").dir;
    write(&dir, "a", b"a\n");
    let common = bed.repo().join(".git");
    for name in ["worktrees/T1/index.lock", "worktrees/T1/HEAD.lock", "refs/heads/rekindle/plan.lock"] {
        lock(&common.join(name), 90);
    }
    merged(work.accept("T1", "T1", None).expect("accepted"));
    lock(&common.join("refs/rekindle/run-1/T1/last.lock"), 90);
    write(&dir, "b", b"b\n");
    work.snapshot(rekindle_engine::git::Place::Own, "T1", 1, "end").expect("taken");
    // The branch was packed, so taking it away needs the file that all share.
    bed.git(&["pack-refs", "--all"]);
    lock(&common.join("packed-refs.lock"), 90);
    assert_eq!(work.remove("T1", 1, "removed").expect("removed"), rekindle_engine::git::Removed::Yes);
    assert_eq!(bed.refs("refs/heads/rekindle-work/"), Vec::<String>::new());
    work.workspace("T2").expect("the next one is made");
}

#[test]
fn a_shared_lock_that_is_young_is_waited_for() {
    let bed = Bed::new();
    let work = work(&bed);
    work.workspace("T1").expect("a workspace");
    bed.git(&["pack-refs", "--all"]);
    let shared = bed.repo().join(".git/packed-refs.lock");
    lock(&shared, 0);
    // The branch stays: it costs nothing. The lock is not ours to take.
    work.remove("T1", 1, "removed").expect("removed");
    assert!(shared.exists());
}

#[test]
fn the_users_own_locks_are_never_taken() {
    let bed = Bed::new();
    let work = work(&bed);
    let dir = work.workspace("T1").expect("a workspace").dir;
    write(&dir, "a", b"a\n");
    let common = bed.repo().join(".git");
    let users: Vec<PathBuf> =
        ["index.lock", "HEAD.lock", "refs/heads/main.lock"].iter().map(|name| common.join(name)).collect();
    // A worktree that the user made by hand.
    bed.git(&["worktree", "add", "-q", "../mine"]);
    let mine = common.join("worktrees/mine/index.lock");
    for path in users.iter().chain([&mine]) {
        lock(path, 100_000);
    }
    merged(work.accept("T1", "T1", None).expect("accepted"));
    work.remove("T1", 1, "removed").expect("removed");
    assert!(users.iter().chain([&mine]).all(|path| path.exists()));
}

#[test]
fn a_lock_is_not_taken_from_a_git_that_lives_and_has_closed_it() {
    let bed = Bed::new();
    let work = work(&bed);
    let dir = work.workspace("T1").expect("a workspace").dir;
    write(&dir, "a", b"a\n");
    crate::bed::git(&dir, &["add", "a"]);
    // As with a slow hook: git commit holds the lock of the index, closed, while its editor runs.
    let (begun, end) = (bed.dir.path().join("begun"), bed.dir.path().join("end"));
    std::process::Command::new("mkfifo").arg(&end).status().expect("a pipe");
    let editor = format!("touch '{}'; cat '{}' > /dev/null; echo by hand >", begun.display(), end.display());
    let mut commit = crate::bed::command(&dir, &["commit", "-q", "-a"]).env("GIT_EDITOR", editor).spawn().expect("git");
    let waited = std::time::Instant::now();
    while !begun.exists() {
        assert!(waited.elapsed() < Duration::from_secs(600), "its editor never ran");
        std::thread::yield_now();
    }
    let lock = bed.repo().join(".git/worktrees/T1/index.lock");
    assert!(lock.exists(), "git holds its lock while the editor runs");
    let error = work.accept("T1", "T1", None).expect_err("locked");
    assert!(matches!(&error, Error::Locked { path, .. } if path.ends_with("index.lock")), "{error}");
    assert!(error.passes() && lock.exists());
    std::fs::write(&end, b"").expect("the editor goes on");
    assert!(commit.wait().expect("ended").success(), "the agent's own commit is whole");
    merged(work.accept("T1", "T1", None).expect("accepted"));
}
