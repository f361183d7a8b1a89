//! What work changes, as views show it: from the worktree, the newest snapshot and the merge, and never by writing anything.

use rekindle_engine::git::{ChangesIn, Place};

use crate::bed::{Bed, git, merged, write};

/// More than any of these changes.
const MOST: usize = 1 << 20;

#[test]
fn changes_are_found_in_the_worktree_then_in_the_snapshot_then_in_the_merge() {
    let bed = Bed::new();
    let work = bed.work();
    assert_eq!(work.changes("T1", None, MOST).expect("git works"), None, "nothing was begun");
    let dir = work.workspace("T1").expect("a workspace").dir;
    write(&dir, "README.md", b"changed\n");
    git(&dir, &["commit", "-qam", "the agent's own commit"]);
    write(&dir, "src/lib.rs", b"changed too\n");
    write(&dir, "new.txt", b"new\n");
    let before = bed.users();
    let seen = work.changes("T1", None, MOST).expect("git works").expect("changes");
    assert_eq!(
        (seen.place, seen.cut, seen.new_files.as_slice()),
        (ChangesIn::Worktree, false, &["new.txt".to_owned()][..])
    );
    assert!(seen.patch.contains("+new\n") && seen.patch.contains("b/new.txt"), "{}", seen.patch);
    assert!(seen.patch.contains("+changed\n") && seen.patch.contains("+changed too\n"), "{}", seen.patch);
    assert_eq!(bed.users(), before, "looking changes nothing");
    let short = work.changes("T1", None, 60).expect("git works").expect("changes");
    assert!(short.cut && short.patch.len() <= 60 && short.patch.ends_with('\n'), "{short:?}");
    work.snapshot(Place::Own, "T1", 1, "end").expect("taken");
    std::fs::remove_dir_all(&dir).expect("gone");
    let kept = work.changes("T1", None, MOST).expect("git works").expect("changes");
    assert_eq!(kept.place, ChangesIn::Snapshot);
    for line in ["+changed\n", "+changed too\n", "+new\n"] {
        assert!(kept.patch.contains(line), "{}", kept.patch);
    }
    let dir = work.workspace("T2").expect("a workspace").dir;
    write(&dir, "other.txt", b"merged\n");
    let commit = merged(work.accept("T2", "take it", None).expect("accepted"));
    let taken = work.changes("T2", Some(&commit), MOST).expect("git works").expect("changes");
    assert_eq!(taken.place, ChangesIn::Merged);
    assert!(taken.patch.contains("+merged\n") && !taken.patch.contains("+changed"), "{}", taken.patch);
}

#[test]
fn in_the_users_checkout_only_what_the_attempts_changed_is_shown() {
    let bed = Bed::new();
    let work = bed.work();
    bed.write("README.md", b"the user's own change\n");
    work.snapshot(Place::Shared, "T1", 1, "start").expect("taken");
    bed.write("src/lib.rs", b"the agent's\n");
    work.snapshot(Place::Shared, "T1", 1, "end").expect("taken");
    let seen = work.changes("T1", None, MOST).expect("git works").expect("changes");
    assert_eq!(seen.place, ChangesIn::Snapshot);
    assert!(seen.patch.contains("+the agent's\n") && !seen.patch.contains("the user's"), "{}", seen.patch);
}
