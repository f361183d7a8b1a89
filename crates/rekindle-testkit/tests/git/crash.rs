//! A process that is killed before, after and in the middle of every call of git that it makes; then another one goes on. No
//! byte that was on disk is lost at any of these instants.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rekindle_engine::git::{Accepted, Removed};

use crate::bed::{Bed, Files, RUN, files, git, git_any, odd_work, write};

/// The program that is killed.
pub fn worker(bed: &Bed, operation: &str, key: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_git-worker"));
    command.args([bed.repo(), bed.state()]).args([RUN, "rekindle/plan", operation, key]).stdout(Stdio::piped());
    command
}

/// Stands in for git, counts its calls, and kills its caller at one of them.
const WRAPPER: &str = r#"#!/bin/sh
n=$(cat "$CRASH_COUNT" 2>/dev/null || echo 0)
n=$((n + 1))
echo "$n" > "$CRASH_COUNT"
if [ "$n" = "$CRASH_AT" ]; then
  case "$CRASH_WHEN" in
    before) kill -9 "$PPID"; exit 1 ;;
    after) "$CRASH_REAL" "$@"; kill -9 "$PPID"; exit 1 ;;
    *) strace -f -qq -o /dev/null -e trace=rename,link,unlink,mkdir \
         -e "inject=rename,link,unlink,mkdir:signal=SIGKILL:when=$CRASH_WHEN" "$CRASH_REAL" "$@"
       kill -9 "$PPID"; exit 1 ;;
  esac
fi
exec "$CRASH_REAL" "$@"
"#;

/// A repository in the state before the operation, which every try begins from.
struct Crash {
    bed: Bed,
    image: PathBuf,
    bin: PathBuf,
    real: PathBuf,
    wanted: Files,
}

impl Crash {
    fn new() -> Self {
        let bed = Bed::new();
        let work = bed.work();
        for key in ["T1", "T2"] {
            work.workspace(key).expect("a workspace");
        }
        let (one, two) = (work.path("T1"), work.path("T2"));
        write(&two, "from-two", b"2\n");
        crate::bed::merged(work.accept("T2", "T2", None).expect("accepted"));
        write(&one, "committed.txt", b"an agent's commit\n");
        git(&one, &["add", "committed.txt"]);
        git(&one, &["commit", "-q", "-m", "an agent's own"]);
        odd_work(&one);
        let wanted = files(&one);
        let bin = bed.dir.path().join("bin");
        std::fs::create_dir(&bin).expect("a directory");
        std::fs::write(bin.join("git"), WRAPPER).expect("written");
        std::fs::set_permissions(bin.join("git"), PermissionsExt::from_mode(0o755)).expect("mode");
        let path = std::env::var_os("PATH").expect("a PATH");
        let real = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).expect("git");
        let image = bed.dir.path().join("image");
        copy(&bed.repo(), &image);
        Self { bed, image, bin, real, wanted }
    }

    /// Puts everything back to the beginning, at the same path.
    fn reset(&self) {
        std::fs::remove_dir_all(self.bed.repo()).expect("removed");
        copy(&self.image, &self.bed.repo());
    }

    /// Runs an operation and kills it at the call number `at`. Says whether it came that far.
    fn killed(&self, operation: &str, key: &str, at: u32, when: &str) -> bool {
        let count = self.bed.dir.path().join("count");
        let _first_time = std::fs::remove_file(&count);
        let path = std::env::var_os("PATH").expect("a PATH");
        let paths = std::iter::once(self.bin.clone()).chain(std::env::split_paths(&path));
        let status = worker(&self.bed, operation, key)
            .env("PATH", std::env::join_paths(paths).expect("paths"))
            .env("CRASH_COUNT", &count)
            .env("CRASH_AT", at.to_string())
            .env("CRASH_WHEN", when)
            .env("CRASH_REAL", &self.real)
            .stdout(Stdio::null())
            .status()
            .expect("the worker runs");
        assert!(status.signal() == Some(9) || status.success(), "{operation} {when} {at}: {status}");
        status.signal() == Some(9)
    }

    /// Kills an operation at every call of git, before, after and inside, and lets `recover` go on each time.
    fn everywhere(&self, operation: &str, key: &str, recover: impl Fn(&Bed, &str)) {
        for when in ["before", "after", "1", "2"] {
            let mut at = 1;
            loop {
                self.reset();
                let killed = self.killed(operation, key, at, when);
                let what = format!("{operation} killed at call {at}, {when}");
                let worktree = self.bed.state().join("worktrees/T1");
                self.bed.assert_kept(&worktree, &self.wanted, &what);
                recover(&self.bed, &what);
                self.bed.assert_kept(&worktree, &self.wanted, &format!("{what}, then recovered"));
                assert_eq!(git_any(&self.bed.repo(), &["fsck", "--connectivity-only", "--no-dangling"]).0, 0, "{what}");
                if !killed {
                    assert!(at > 5, "{operation} makes only {at} calls: the wrapper is not what it calls");
                    break;
                }
                at += 1;
            }
        }
    }
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs");
    assert!(status.success());
}

/// Whoever comes after may have to move a lock aside that a killed git left; it need not wait long for a dead one.
fn after(bed: &Bed) -> rekindle_engine::git::Work {
    let repo = bed.open().patient_for(100);
    rekindle_engine::git::Work::new(repo, &bed.state(), RUN, "rekindle/plan").expect("names")
}

#[test]
fn during_a_snapshot() {
    let crash = Crash::new();
    let wanted = crash.wanted.clone();
    crash.everywhere("snapshot", "T1", |bed, what| {
        let taken = after(bed).snapshot(rekindle_engine::git::Place::Own, "T1", 2, "again");
        let taken = taken.unwrap_or_else(|error| panic!("{what}: {error}"));
        bed.assert_holds(taken.commit.as_deref().expect("a commit"), &wanted);
        assert_eq!(files(&bed.state().join("worktrees/T1")), wanted, "{what}: the worktree is as it was");
    });
}

#[test]
fn during_a_snapshot_of_the_users_checkout() {
    let crash = Crash::new();
    crash.everywhere("shared", "T9", |bed, what| {
        let image = crash.bed.dir.path().join("image");
        assert_eq!(files(&bed.repo()), files(&image), "{what}: the checkout is as it was");
        let index = |dir: &Path| std::fs::read(dir.join(".git/index")).expect("an index");
        assert_eq!(index(&bed.repo()), index(&image), "{what}: the index is as it was");
    });
}

#[test]
fn during_a_merge() {
    let crash = Crash::new();
    let wanted = crash.wanted.clone();
    crash.everywhere("accept", "T1", |bed, what| {
        let accepted = after(bed).accept("T1", "accepted", None).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(matches!(accepted, Accepted::Merged { .. } | Accepted::Already { .. }), "{what}: {accepted:?}");
        let mut all = wanted.clone();
        all.insert(b"from-two".to_vec(), b"2\n".to_vec());
        bed.assert_holds("rekindle/plan", &all);
        assert_eq!(files(&bed.state().join("worktrees/T1")), wanted, "{what}: the worktree's files are as they were");
        assert_eq!(git_any(&bed.state().join("worktrees/T1"), &["status", "--porcelain"]).1, "", "{what}");
        // Once, and not once for every try.
        let merges = bed.git(&["rev-list", "--count", "--merges", "rekindle/plan"]);
        assert_eq!(merges, "1", "{what}");
    });
}

#[test]
fn during_the_making_of_a_workspace() {
    let crash = Crash::new();
    crash.everywhere("workspace", "T3", |bed, what| {
        let work = after(bed);
        // Checks run in a workspace that stands: half of one would fail proven work.
        let standing = work.standing("T3");
        assert!(standing.is_none_or(|dir| dir.join("from-two").exists()), "{what}: half a workspace stands");
        let space = work.workspace("T3").unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(git_any(&space.dir, &["status", "--porcelain"]), (0, String::new()), "{what}");
        assert_eq!(git(&space.dir, &["rev-parse", "HEAD"]), bed.git(&["rev-parse", "rekindle/plan"]), "{what}");
        assert_eq!(git(&space.dir, &["branch", "--show-current"]), "rekindle-work/run-1/T3", "{what}");
        assert!(space.dir.join("from-two").exists(), "{what}");
    });
}

#[test]
fn during_a_removal() {
    let crash = Crash::new();
    crash.everywhere("remove", "T1", |bed, what| {
        let dir = bed.state().join("worktrees/T1");
        assert!(!dir.exists() || files(&dir) == crash.wanted, "{what}: half a worktree");
        let removed = after(bed).remove("T1", 1, "removed").unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(removed, Removed::Yes, "{what}");
        let left: Vec<_> = std::fs::read_dir(bed.state().join("worktrees")).expect("there").flatten().collect();
        assert_eq!(left.len(), 1, "{what}: only T2 is left: {left:?}");
    });
}

#[test]
fn while_files_are_being_deleted() {
    let crash = Crash::new();
    let mut killed = 0;
    for at in (1..200).step_by(3) {
        crash.reset();
        // Only the worker itself is traced: its own deletions, not those of the gits that it calls.
        let plain = worker(&crash.bed, "remove", "T1");
        let inject = format!("inject=unlinkat,rmdir,unlink:signal=SIGKILL:when={at}");
        let status = Command::new("strace")
            .args(["-qq", "-o", "/dev/null", "-e", "trace=unlinkat,rmdir,unlink", "-e", &inject])
            .arg(plain.get_program())
            .args(plain.get_args())
            .stdout(Stdio::null())
            .status()
            .expect("strace runs");
        let dir = crash.bed.state().join("worktrees/T1");
        let what = format!("killed at deletion {at}");
        assert!(!dir.exists() || files(&dir) == crash.wanted, "{what}: half a worktree");
        crash.bed.assert_kept(&dir, &crash.wanted, &what);
        assert_eq!(after(&crash.bed).remove("T1", 1, "removed").expect("removed"), Removed::Yes, "{what}");
        crash.bed.assert_kept(&dir, &crash.wanted, &what);
        if status.success() {
            break;
        }
        killed += 1;
    }
    assert!(killed >= 5, "only {killed} kills: these are not the calls that it makes");
}

/// Empties files, as a power cut does with what was never synced.
fn tear(paths: &[PathBuf]) {
    for path in paths {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o644)).expect("mode");
        std::fs::File::options().write(true).open(path).expect("there").set_len(0).expect("emptied");
    }
}

#[test]
fn commits_of_an_agent_that_a_power_cut_tore_are_done_without() {
    for what in ["objects", "ref", "HEAD", "index", "all", "staged"] {
        let bed = Bed::new();
        let work = bed.work();
        let dir = work.workspace("T1").expect("a workspace").dir;
        let loose = || {
            let found = git_any(&bed.repo(), &["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]).1;
            found.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
        };
        let before = loose();
        write(&dir, "made", b"by an agent\n");
        git(&dir, &["add", "-A"]);
        if what != "staged" {
            git(&dir, &["commit", "-q", "-m", "an agent's own"]);
        }
        let common = bed.repo().join(".git");
        let object = |id: &String| common.join("objects").join(&id[..2]).join(&id[2..]);
        let (objects, reference): (Vec<_>, _) =
            (loose().difference(&before).map(object).collect(), common.join("refs/heads/rekindle-work/run-1/T1"));
        let (head, index) = (common.join("worktrees/T1/HEAD"), common.join("worktrees/T1/index"));
        match what {
            "objects" | "staged" => tear(&objects),
            "ref" => tear(&[reference]),
            "HEAD" => tear(&[head]),
            "index" => tear(&[index]),
            _ => tear(&[objects, vec![reference, index, dir.join("made")]].concat()),
        }
        // As every coordinator that goes on with a run does.
        let start = rekindle_engine::git::Start::Continue { branch: "rekindle/plan", known: None };
        bed.open().begin("plan", RUN, start).unwrap_or_else(|error| panic!("{what}: {error}"));
        let again = after(&bed);
        let dir = again.workspace("T1").unwrap_or_else(|error| panic!("{what}: {error}")).dir;
        // The next agent does the same again, byte for byte.
        write(&dir, "made", b"by an agent\n");
        git(&dir, &["add", "-A"]);
        git(&dir, &["commit", "-q", "--allow-empty", "-m", "an agent's own"]);
        again.snapshot(rekindle_engine::git::Place::Own, "T1", 2, "end").unwrap_or_else(|e| panic!("{what}: {e}"));
        again.accept("T1", "T1", None).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(bed.in_branch("made").as_deref(), Some("by an agent"), "{what}");
        assert_eq!(bed.in_branch("README.md").as_deref(), Some("hello"), "{what}: nothing of the beginning is missing");
    }
}
