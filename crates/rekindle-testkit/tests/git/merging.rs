//! Merges: many at once, conflicts, and whatever state an agent leaves its worktree in.

use std::sync::Mutex;

use rekindle_engine::git::{Accepted, Error};

use crate::bed::{Bed, git, git_any, merged, write};

#[test]
fn sixteen_workspaces_from_eight_threads_are_all_merged() {
    let bed = Bed::new();
    let work = bed.work();
    let keys: Vec<String> = (1..=16).map(|n| format!("T{n}")).collect();
    let queue = Mutex::new(keys.clone());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            // Its own repository and work, as a restart or another program would have: only the process is shared.
            let work = bed.again(work.branch());
            let queue = &queue;
            scope.spawn(move || {
                while let Some(key) = { queue.lock().expect("a lock").pop() } {
                    let dir = work.workspace(&key).expect("a workspace").dir;
                    write(&dir, &format!("{key}.txt"), key.as_bytes());
                    write(&dir, &format!("shared/{key}"), b"x\n");
                    merged(work.accept(&key, &format!("{key}: done"), None).expect("accepted"));
                }
            });
        }
    });
    for key in &keys {
        assert_eq!(bed.in_branch(&format!("{key}.txt")).as_deref(), Some(key.as_str()));
        assert!(bed.in_branch(&format!("shared/{key}")).is_some());
        assert!(matches!(work.accept(key, "again", None).expect("accepted"), Accepted::Already { .. }));
    }
    assert_eq!(bed.git(&["fsck", "--no-dangling"]), "");
    let ahead: u64 = bed.git(&["rev-list", "--count", "main..rekindle/plan"]).parse().expect("a number");
    assert_eq!(work.counted(None).expect("counted").commits, ahead);
}

#[test]
fn processes_that_merge_at_once_lose_nothing_to_each_other() {
    let bed = Bed::new();
    let work = bed.work();
    let keys: Vec<String> = (1..=6).map(|n| format!("T{n}")).collect();
    for key in &keys {
        let dir = work.workspace(key).expect("a workspace").dir;
        write(&dir, key, b"x\n");
    }
    let started: Vec<_> =
        keys.iter().map(|key| (key, crate::crash::worker(&bed, "accept", key).spawn().expect("it runs"))).collect();
    for (key, child) in started {
        let output = child.wait_with_output().expect("ended");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.starts_with("Merged"), "{key}: {said}");
    }
    for key in &keys {
        assert!(bed.in_branch(key).is_some(), "{key}");
    }
}

#[test]
fn a_conflict_names_its_files_merges_nothing_and_can_be_resolved_in_the_worktree() {
    let bed = Bed::new();
    let work = bed.work();
    let one = work.workspace("T1").expect("a workspace").dir;
    let two = work.workspace("T2").expect("a workspace").dir;
    write(&one, "README.md", b"one\n");
    write(&two, "README.md", b"two\n");
    write(&two, "fine.txt", b"fine\n");
    let first = merged(work.accept("T1", "T1", None).expect("accepted"));
    for _ in 0..2 {
        match work.accept("T2", "T2", None).expect("looked") {
            Accepted::Conflict { files, with } => {
                assert_eq!((files, with), (vec!["README.md".to_owned()], first.clone()))
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(bed.git(&["rev-parse", "rekindle/plan"]), first, "nothing was merged");
    assert_eq!(git_any(&two, &["status", "--porcelain"]), (0, String::new()), "its work is committed");
    // The agent merges and leaves the conflict in the file: that is not resolved.
    assert_ne!(git_any(&two, &["merge", "rekindle/plan"]).0, 0);
    assert!(matches!(work.accept("T2", "T2", None).expect("looked"), Accepted::Conflict { .. }));
    // It resolves it and neither stages nor commits: that is.
    write(&two, "README.md", b"one and two\n");
    merged(work.accept("T2", "T2", None).expect("accepted"));
    assert_eq!(bed.in_branch("README.md").as_deref(), Some("one and two"));
    assert_eq!(bed.in_branch("fine.txt").as_deref(), Some("fine"));
    assert_eq!(git_any(&two, &["rev-parse", "-q", "--verify", "MERGE_HEAD"]).0, 1, "the merge is over");
}

#[test]
fn changes_to_one_file_in_different_places_are_merged() {
    let bed = Bed::new();
    let work = bed.work();
    let one = work.workspace("T1").expect("a workspace").dir;
    let two = work.workspace("T2").expect("a workspace").dir;
    write(&one, "src/lib.rs", b"ONE\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n");
    write(&two, "src/lib.rs", b"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nNINE\n");
    merged(work.accept("T1", "T1", None).expect("accepted"));
    merged(work.accept("T2", "T2", None).expect("accepted"));
    let both = bed.in_branch("src/lib.rs").expect("there");
    assert!(both.starts_with("ONE\n") && both.ends_with("NINE"), "{both}");
    let parents = bed.git(&["rev-list", "--parents", "-n", "1", "rekindle/plan"]);
    assert_eq!(parents.split(' ').count(), 3, "the first was a fast-forward, the second a merge");
    assert_eq!(bed.git(&["log", "-1", "--format=%cn <%ce>", "rekindle/plan"]), "rekindle <rekindle@localhost>");
}

#[test]
fn nothing_done_and_done_already_are_told_apart() {
    let bed = Bed::new();
    let work = bed.work();
    let head = bed.git(&["rev-parse", "HEAD"]);
    let dir = work.workspace("T1").expect("a workspace").dir;
    assert_eq!(work.accept("T1", "T1", None).expect("looked"), Accepted::Nothing { tip: head.clone() });
    write(&dir, "a", b"a\n");
    let commit = merged(work.accept("T1", "T1", None).expect("accepted"));
    assert_eq!(work.accept("T1", "T1", None).expect("looked"), Accepted::Already { commit });
    assert_eq!(
        work.accept("never-made", "T9", None).expect("looked"),
        Accepted::Nothing { tip: bed.git(&["rev-parse", "rekindle/plan"]) }
    );
}

#[test]
fn a_lock_that_a_killed_git_left_in_the_worktree_is_moved_aside_and_the_users_is_not() {
    let bed = Bed::new();
    let branch = bed.begin().branch;
    let repo = bed.open().patient_for(200);
    let work = rekindle_engine::git::Work::new(repo, &bed.state(), crate::bed::RUN, &branch).expect("names");
    let dir = work.workspace("T1").expect("a workspace").dir;
    write(&dir, "a", b"a\n");
    let lock = bed.repo().join(".git/worktrees/T1/index.lock");
    // Somebody holds it: it is theirs.
    let held = std::fs::File::create(&lock).expect("locked");
    let error = work.accept("T1", "T1", None).expect_err("locked");
    assert!(matches!(&error, Error::Locked { path, .. } if path.ends_with("index.lock")), "{error}");
    assert!(error.to_string().contains("rm '"), "{error}");
    drop(held);
    merged(work.accept("T1", "T1", None).expect("accepted"));
    assert!(!lock.exists() && work.repo().notes().iter().any(|note| note.contains("index.lock")));
    // So is one on the run's branch.
    write(&dir, "b", b"b\n");
    let lock = bed.repo().join(".git/refs/heads/rekindle/plan.lock");
    let held = std::fs::File::create(&lock).expect("locked");
    let error = work.accept("T1", "T1", None).expect_err("locked");
    assert!(matches!(&error, Error::Locked { path, .. } if path.ends_with("plan.lock")), "{error}");
    assert!(lock.exists(), "not ours to remove");
    drop(held);
    merged(work.accept("T1", "T1", None).expect("accepted"));
    assert!(!lock.exists());
    assert_eq!(bed.in_branch("b").as_deref(), Some("b"));
}

#[test]
fn what_an_agent_committed_wherever_it_stood_is_merged() {
    let bed = Bed::new();
    let work = bed.work();
    let dir = work.workspace("T1").expect("a workspace").dir;
    git(&dir, &["checkout", "-q", "-b", "own-branch"]);
    write(&dir, "a", b"a\n");
    git(&dir, &["add", "-A"]);
    git(&dir, &["commit", "-q", "-m", "a"]);
    merged(work.accept("T1", "T1", None).expect("accepted"));
    git(&dir, &["checkout", "-q", "--orphan", "fresh"]);
    write(&dir, "b", b"b\n");
    merged(work.accept("T1", "T1", None).expect("accepted"));
    assert_eq!(bed.in_branch("a").as_deref(), Some("a"));
    assert_eq!(bed.in_branch("b").as_deref(), Some("b"));
}
