//! Snapshots found again and restored, byte for byte, over nothing that differs.

use std::os::unix::fs::PermissionsExt;

use rekindle_engine::git::{Error, Place};

use crate::bed::{Bed, files, git, odd_work, write};

#[test]
fn what_was_lost_from_disk_is_restored_byte_for_byte() {
    let bed = Bed::new();
    let work = bed.work();
    let dir = work.workspace("T1").expect("a workspace").dir;
    odd_work(&dir);
    let wanted = files(&dir);
    work.snapshot(Place::Own, "T1", 4, "end").expect("taken");
    work.snapshot(Place::Shared, "other", 5, "end").expect("taken");
    write(&dir, "later", b"later\n");
    work.snapshot(Place::Own, "T1", 6, "end").expect("taken");
    std::fs::remove_dir_all(&dir).expect("deleted");
    let found = bed.open().snapshots(Some("T1")).expect("listed");
    let told: Vec<(u64, &str)> = found.iter().map(|one| (one.attempt, one.label.as_str())).collect();
    assert_eq!(told, [(4, "end"), (6, "end")]);
    assert!(found[0].files.contains(&"README.md".to_owned()) && found[0].time > 0, "{:?}", found[0]);
    assert!(!found[0].files.contains(&"src/lib.rs".to_owned()), "only what differs: {:?}", found[0]);
    let target = bed.dir.path().join("restored");
    let done = bed.open().restore(&found[0].commit, &target, false).expect("restored");
    assert_eq!((done.files, done.written), (wanted.len(), wanted.len()));
    assert_eq!(files(&target), wanted);
    let mode = std::fs::metadata(target.join("tool.sh")).expect("there").permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
    let again = bed.open().restore(&found[0].commit, &target, false).expect("restored");
    assert_eq!(again.written, 0);
}

#[test]
fn files_that_differ_are_overwritten_only_with_consent() {
    let bed = Bed::new();
    let work = bed.work();
    let dir = work.workspace("T1").expect("a workspace").dir;
    write(&dir, "README.md", b"the agent's\n");
    write(&dir, "new", b"new\n");
    work.snapshot(Place::Own, "T1", 1, "end").expect("taken");
    let found = bed.open().snapshots(None).expect("listed");
    bed.write("README.md", b"the user's, not committed\n");
    let before = bed.users();
    let error = bed.open().restore(&found[0].commit, &bed.repo(), false).expect_err("refused");
    assert!(matches!(&error, Error::WouldOverwrite { files, .. } if *files == ["README.md"]), "{error}");
    assert_eq!(bed.users(), before, "nothing was written");
    bed.open().restore(&found[0].commit, &bed.repo(), true).expect("restored");
    assert_eq!(std::fs::read(bed.repo().join("README.md")).expect("there"), b"the agent's\n");
    assert_eq!(bed.users().1, before.1, "the user's index is as it was");
    // As a branch, which must not be there yet.
    bed.open().restore_as_branch(&found[0].commit, "salvaged").expect("a branch");
    assert_eq!(git(&bed.repo(), &["show", "salvaged:new"]), "new");
    assert!(bed.open().restore_as_branch(&found[0].commit, "salvaged").is_err());
    assert!(bed.open().restore_as_branch(&found[0].commit, "-x").is_err());
}
