//! Snapshots: all that is on disk, nothing disturbed, nothing twice.

use rekindle_engine::git::{Place, Snapshot};

use crate::bed::{Bed, Files, files, git, git_any, odd_work, write};

fn commit_of(snapshot: &Snapshot) -> &str {
    snapshot.commit.as_deref().expect("a commit")
}

#[test]
fn everything_on_disk_is_in_it_byte_for_byte() {
    let bed = Bed::new();
    let work = bed.work();
    let space = work.workspace("T1").expect("a workspace");
    let beginning = work.snapshot(Place::Own, "T1", 1, "start").expect("looked");
    assert_eq!(beginning.made, None, "a new workspace holds nothing of its own");
    odd_work(&space.dir);
    let (wanted, index) = (files(&space.dir), git(&space.dir, &["ls-files", "-s"]));
    let (status, head) = (git(&space.dir, &["status", "--porcelain"]), git(&space.dir, &["rev-parse", "HEAD"]));
    let taken = work.snapshot(Place::Own, "T1", 1, "end").expect("taken");
    assert_eq!((taken.made.as_deref(), taken.left.len()), (Some("refs/rekindle/run-1/T1/1-end"), 0));
    bed.assert_holds(commit_of(&taken), &wanted);
    assert_eq!(files(&space.dir), wanted);
    assert_eq!(git(&space.dir, &["ls-files", "-s"]), index);
    assert_eq!(git(&space.dir, &["status", "--porcelain"]), status);
    assert_eq!(git(&space.dir, &["rev-parse", "HEAD"]), head);
    let modes = bed.git(&["ls-tree", "-r", commit_of(&taken)]);
    assert!(modes.contains("100755 blob") && modes.contains("120000 blob"), "{modes}");
    let staged = bed.git(&["show", &format!("{}^2:src/staged.rs", commit_of(&taken))]);
    assert_eq!(staged, "staged", "what was staged and then changed is kept too");
}

#[test]
fn nothing_new_makes_no_new_ref_and_a_taken_name_is_not_overwritten() {
    let bed = Bed::new();
    let work = bed.work();
    let space = work.workspace("T1").expect("a workspace");
    write(&space.dir, "a", b"1\n");
    let first = work.snapshot(Place::Own, "T1", 1, "end").expect("taken");
    let same = bed.again("rekindle/plan").snapshot(Place::Own, "T1", 2, "start").expect("looked");
    assert_eq!((same.made, same.commit), (None, first.commit.clone()));
    write(&space.dir, "a", b"2\n");
    let second = work.snapshot(Place::Own, "T1", 1, "end").expect("taken");
    assert_eq!(second.made.as_deref(), Some("refs/rekindle/run-1/T1/1-end.2"));
    assert_eq!(bed.git(&["show", &format!("{}:a", commit_of(&first))]), "1");
    assert_eq!(bed.git(&["show", &format!("{}:a", commit_of(&second))]), "2");
    // A commit changes no file and is still work.
    git(&space.dir, &["add", "-A"]);
    git(&space.dir, &["commit", "-q", "-m", "an agent's own"]);
    assert!(work.snapshot(Place::Own, "T1", 2, "end").expect("taken").made.is_some());
}

/// A file that was changed in the instant in which its index was written has the size and times that the index tells of
/// it, and other bytes. That instant cannot be met by trying, so the index is made to tell it.
#[test]
fn a_change_of_the_same_size_in_the_same_instant_is_seen() {
    let bed = Bed::new();
    let work = bed.work();
    let space = work.workspace("T1").expect("a workspace");
    let racy = space.dir.join("racy");
    write(&space.dir, "racy", b"before\n");
    let before = bytes_of(&git(&space.dir, &["hash-object", "-w", "racy"]));
    write(&space.dir, "racy", b"after!\n");
    // Long ago, so that whatever is written now is later, to the second that git looks at.
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000);
    set_time(&racy, then);
    git(&space.dir, &["add", "racy"]);
    let after = bytes_of(&git(&space.dir, &["hash-object", "racy"]));
    let path = bed.repo().join(".git/worktrees/T1/index");
    let mut index = std::fs::read(&path).expect("an index");
    let at = index.windows(after.len()).position(|bytes| bytes == after).expect("the file's id");
    index[at..at + before.len()].copy_from_slice(&before);
    // Git takes an index that ends with zeros as one without a checksum.
    let end = index.len() - before.len();
    index[end..].fill(0);
    std::fs::write(&path, index).expect("written");
    set_time(&path, then);
    let taken = work.snapshot(Place::Own, "T1", 1, "end").expect("taken");
    bed.assert_holds(commit_of(&taken), &files(&space.dir));
}

fn set_time(path: &std::path::Path, time: std::time::SystemTime) {
    std::fs::File::options().write(true).open(path).expect("opened").set_modified(time).expect("set");
}

fn bytes_of(id: &str) -> Vec<u8> {
    (0..id.len()).step_by(2).map(|at| u8::from_str_radix(&id[at..at + 2], 16).expect("digits")).collect()
}

#[test]
fn marks_in_the_index_hide_nothing() {
    let bed = Bed::new();
    let work = bed.work();
    let space = work.workspace("T1").expect("a workspace");
    git(&space.dir, &["update-index", "--assume-unchanged", "README.md"]);
    git(&space.dir, &["update-index", "--skip-worktree", "src/lib.rs"]);
    write(&space.dir, "README.md", b"hidden one\n");
    write(&space.dir, "src/lib.rs", b"hidden two\n");
    let taken = work.snapshot(Place::Own, "T1", 1, "end").expect("taken");
    bed.assert_holds(commit_of(&taken), &files(&space.dir));
}

#[test]
fn line_ends_and_filters_change_no_byte() {
    let bed = Bed::new();
    bed.write(".gitattributes", b"*.txt text eol=lf\n*.enc working-tree-encoding=UTF-16LE\n*.up filter=up\n");
    bed.commit("attributes");
    let trace = bed.dir.path().join("filter-ran");
    bed.git(&["config", "filter.up.clean", &format!("cat /proc/$PPID/cmdline >>{}; tr a-z A-Z", trace.display())]);
    bed.git(&["config", "core.autocrlf", "true"]);
    let work = bed.work();
    let space = work.workspace("T1").expect("a workspace");
    let checked_out = files(&space.dir);
    write(&space.dir, "a.txt", b"one\r\ntwo\n");
    write(&space.dir, "b.enc", b"h\0i\0\n\0");
    write(&space.dir, "c.up", b"lower\n");
    write(&space.dir, "d", b"x\r\ny\r\n");
    // What git itself wrote with other line ends and nobody changed is in the commit: by the times in the index git may
    // know that without a look at the bytes, or not.
    let wanted: Files = files(&space.dir).into_iter().filter(|(path, _)| !checked_out.contains_key(path)).collect();
    assert_eq!(wanted.len(), 4);
    let taken = work.snapshot(Place::Own, "T1", 1, "end").expect("taken");
    bed.assert_kept(&bed.dir.path().join("none"), &wanted, "in the snapshot");
    assert_eq!(taken.left, []);
    let ran = std::fs::read_to_string(&trace).unwrap_or_default();
    assert_eq!(ran, "", "a filter of the repository's configuration was run");
}

#[test]
fn the_users_own_checkout_is_read_and_not_disturbed() {
    let bed = Bed::new();
    let work = bed.work();
    odd_work(&bed.repo());
    std::fs::write(bed.repo().join(".git/index.lock"), b"").expect("locked by somebody");
    let before = bed.users();
    let taken = work.snapshot(Place::Shared, "developer-T1", 3, "end").expect("taken in spite of the lock");
    assert_eq!(bed.users(), before);
    let wanted = files(&bed.repo());
    bed.assert_holds(commit_of(&taken), &wanted);
    assert_eq!(work.snapshot(Place::Shared, "developer-T1", 3, "again").expect("looked").made, None);
}

#[test]
fn repositories_inside_are_taken_as_files_and_their_history_is_said_to_be_left() {
    let bed = Bed::new();
    let work = bed.work();
    let space = work.workspace("T1").expect("a workspace");
    std::fs::create_dir(space.dir.join("fresh")).expect("a directory");
    git(&space.dir.join("fresh"), &["init", "-q"]);
    write(&space.dir, "fresh/a", b"in a repository without commits\n");
    std::fs::create_dir(space.dir.join("clone")).expect("a directory");
    git(&space.dir.join("clone"), &["init", "-q"]);
    write(&space.dir, "clone/b", b"committed there\n");
    git(&space.dir.join("clone"), &["add", "-A"]);
    git(&space.dir.join("clone"), &["commit", "-q", "-m", "theirs"]);
    write(&space.dir, "clone/c", b"not committed there\n");
    let taken = work.snapshot(Place::Own, "T1", 1, "end").expect("taken");
    bed.assert_holds(commit_of(&taken), &files(&space.dir));
    let left: Vec<&str> = taken.left.iter().map(|left| left.path.as_str()).collect();
    assert_eq!(left, ["clone"]);
    let merged = crate::bed::merged(work.accept("T1", "T1", None).expect("accepted"));
    bed.assert_holds(&merged, &files(&space.dir));
}

#[test]
fn ten_thousand_files_are_taken_and_merged() {
    let bed = Bed::new();
    for n in 0..10_000 {
        bed.write(&format!("many/{}/{n}.txt", n % 100), format!("file {n}\n").as_bytes());
    }
    bed.commit("many");
    let work = bed.work();
    let space = work.workspace("T1").expect("a workspace");
    for n in (0..10_000).step_by(100) {
        write(&space.dir, &format!("many/{}/{n}.txt", n % 100), b"changed\n");
    }
    for n in 0..2_000 {
        write(&space.dir, &format!("more/{n}"), format!("new {n}\n").as_bytes());
    }
    let wanted = files(&space.dir);
    let taken = work.snapshot(Place::Own, "T1", 1, "end").expect("taken");
    bed.assert_holds(commit_of(&taken), &wanted);
    let commit = crate::bed::merged(work.accept("T1", "T1", None).expect("accepted"));
    bed.assert_holds(&commit, &wanted);
    assert_eq!(git_any(&space.dir, &["status", "--porcelain"]), (0, String::new()));
}
