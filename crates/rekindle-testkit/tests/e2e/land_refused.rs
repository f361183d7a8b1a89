//! Landing on a machine that refuses: a disk without room, a disk that fills while git writes the files, a git that is killed there,
//! and errors at the command's own calls. A landing that failed changed nothing, or the same command puts it right.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::disk::SmallDisk;
use crate::land::copy;
use crate::refusal_points::{ERRORS, EXECVE, every_group};
use crate::rig::{Ended, Rig, program};

const PLAN: &str =
    "---\nplan: build\n---\n# Build it\n\n### T1: first\n- accept: `test -s new/deep/one.txt`\n\nMake it.\n";

/// Every way in which a file of a checkout can change.
const AGENT: &str = "mkdir -p new/deep other; echo one > new/deep/one.txt; seq 1 20000 > long.txt; seq 5 9000 > edited.txt\n\
    git rm -q gone.txt; ln -s long.txt link; echo two > other/two.txt; chmod +x mode.sh\nrekindle task done T1\n";

fn prepared(rig: &Rig) {
    let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
    rig.write("rekindle.toml", &settings.replace("[run]\n", "[run]\nisolation = \"worktree\"\n"));
    rig.write("edited.txt", &"the old words\n".repeat(2_000));
    rig.write("gone.txt", "it goes\n");
    rig.write("mode.sh", "true\n");
    rig.commit_first("-A");
    // A folder of the person's that git does not know, where a file is to come.
    std::fs::create_dir(rig.path("other")).expect("a folder");
    rig.finish();
}

/// Everything that a person sees of their checkout.
fn seen(rig: &Rig) -> String {
    let status = rig.git(&["status", "--porcelain", "--untracked-files=all"]);
    let listed = Command::new("sh")
        .args(["-c", "find . -path ./.git -prune -o -path ./.rekindle -prune -o -printf '%p %y %m %l\\n' | sort; cat edited.txt gone.txt mode.sh"])
        .current_dir(rig.root())
        .output()
        .expect("sh");
    format!("{}\n{status}\n{}", rig.git(&["rev-parse", "HEAD"]), String::from_utf8_lossy(&listed.stdout))
}

fn landed(rig: &Rig, point: &str) {
    assert_eq!(rig.lines("new/deep/one.txt"), ["one"], "{point}");
    assert_eq!(rig.lines("long.txt").len(), 20_000, "{point}");
    assert_eq!((rig.has("gone.txt"), rig.has("link")), (false, true), "{point}");
    assert_eq!(rig.git(&["status", "--porcelain", "--untracked-files=no"]), "", "{point}");
    assert_eq!(rig.git(&["rev-parse", "HEAD"]), rig.git(&["rev-parse", "rekindle/build"]), "{point}");
    assert_eq!(rig.events_of("landed").len(), 1, "{point}");
    assert!(!rig.path(".git/rekindle/landing.json").exists(), "{point}");
}

/// A folder for PATH whose git runs one of its commands as a line says.
fn wrapped_git(rig: &Rig, name: &str, line: &str) -> String {
    let found = Command::new("sh").args(["-c", "command -v git"]).output().expect("sh").stdout;
    let real = String::from_utf8(found).expect("a path").trim().to_owned();
    let dir = rig.outside(name);
    std::fs::create_dir_all(&dir).expect("a folder");
    std::fs::write(dir.join("git"), format!("#!/bin/sh\nreal={real}\n{line}\nexec $real \"$@\"\n")).expect("written");
    std::fs::set_permissions(dir.join("git"), PermissionsExt::from_mode(0o755)).expect("runnable");
    format!("{}:{}", dir.display(), std::env::var("PATH").expect("PATH"))
}

/// A git of which one command meets an error from its Nth call of a kind on.
fn failing(command: &str, calls: &str, fault: &str) -> String {
    format!(
        "case \" $* \" in *' {command} '*) exec strace -f -qq -o /dev/null -e trace={calls} -e inject={calls}:{fault} $real \"$@\";; esac"
    )
}

fn land_with(rig: &Rig, path: &str) -> Ended {
    let mut command = rig.command(&["land"]);
    command.env("PATH", path);
    rig.launch(command).end()
}

#[test]
fn a_disk_without_room_is_named_before_a_file_is_touched() {
    let outside = tempfile::tempdir().expect("a directory");
    let disk = SmallDisk::new(outside.path().join("small"), 40);
    let rig = Rig::within(&outside.path().join("small"), PLAN, AGENT);
    prepared(&rig);
    let before = seen(&rig);
    disk.fill();
    // Some room, and too little for the files of the result.
    let filler = std::fs::File::options().write(true).open(outside.path().join("small/filler")).expect("filler");
    let length = filler.metadata().expect("its length").len();
    filler.set_len(length - 200 * 1024).expect("shorter");
    let refused = rig.rekindle(&["land", "--json"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let told: serde_json::Value =
        serde_json::from_str(&refused.out).unwrap_or_else(|error| panic!("{error}: {refused:?}"));
    assert_eq!(told["error"]["code"], "no_room", "{told}");
    assert!(refused.err.contains("has no room for it") && refused.err.contains("nothing was changed"), "{refused:?}");
    drop(filler);
    disk.relieve();
    assert_eq!(seen(&rig), before);
    rig.ok(&["land"]);
    landed(&rig, "after it");
    drop(rig);
}

#[test]
fn a_disk_that_fills_while_the_files_are_written_changes_nothing() {
    let rig = Rig::new(PLAN, AGENT);
    prepared(&rig);
    let (before, kept) = (seen(&rig), rig.outside("kept"));
    copy(rig.root(), &kept);
    let mut failed = 0;
    // From the first write to the last: files, the index, the branch.
    for (calls, fault) in [("write", "error=ENOSPC"), ("openat", "error=EMFILE"), ("rename", "error=EIO")] {
        for nth in 1..60 {
            let point = format!("{calls} {fault} from {nth} on");
            let path = wrapped_git(&rig, "shim", &failing("merge", calls, &format!("{fault}:when={nth}+")));
            let ended = land_with(&rig, &path);
            assert!(!ended.err.contains("panicked"), "{point}: {ended:?}");
            if ended.code == Some(0) {
                landed(&rig, &point);
                break;
            }
            failed += 1;
            assert!(ended.err.contains("nothing was changed"), "{point}: {ended:?}");
            assert_eq!(seen(&rig), before, "{point}: {ended:?}");
            assert!(!rig.path(".git/rekindle/landing.json").exists(), "{point}");
        }
        std::fs::remove_dir_all(rig.root()).expect("removed");
        copy(&kept, rig.root());
    }
    assert!(failed > 10, "{failed} points failed");
}

#[test]
fn what_cannot_be_put_back_is_named_and_the_same_command_does_it() {
    let rig = Rig::new(PLAN, AGENT);
    prepared(&rig);
    let both = format!(
        "{}\n{}",
        failing("merge", "write", "error=ENOSPC:when=3+"),
        failing("checkout-index", "write", "error=ENOSPC:when=1+")
    );
    let ended = land_with(&rig, &wrapped_git(&rig, "shim", &both));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("could not all be put back") && ended.err.contains("edited.txt"), "{ended:?}");
    // What the person writes meanwhile is theirs.
    rig.write("mode.sh", "mine\n");
    let again = rig.rekindle(&["land"]);
    assert!(again.code == Some(1) && again.err.contains("mode.sh"), "{again:?}");
    assert_eq!(rig.lines("mode.sh"), ["mine"]);
    assert_eq!(rig.git(&["status", "--porcelain", "--untracked-files=no"]), "M mode.sh", "the rest is put back");
    rig.git(&["checkout", "-q", "--", "mode.sh"]);
    rig.ok(&["land"]);
    landed(&rig, "after it");
}

#[test]
fn a_git_that_is_killed_with_its_landing_is_put_right_by_the_next() {
    let rig = Rig::new(PLAN, AGENT);
    prepared(&rig);
    let kept = rig.outside("kept");
    copy(rig.root(), &kept);
    for (calls, nth) in [("write", 3), ("unlink", 1), ("rename", 1)] {
        let point = format!("killed at {calls} {nth}");
        let line = format!(
            "case \" $* \" in *' merge '*) strace -f -qq -o /dev/null -e trace={calls} -e inject={calls}:signal=SIGKILL:when={nth} $real \"$@\"; kill -9 $PPID; exit 1;; esac"
        );
        let ended = land_with(&rig, &wrapped_git(&rig, "shim", &line));
        assert_ne!(ended.code, Some(0), "{point}: {ended:?}");
        assert!(rig.path(".git/rekindle/landing.json").exists(), "{point}");
        rig.ok(&["land"]);
        landed(&rig, &point);
        std::fs::remove_dir_all(rig.root()).expect("removed");
        copy(&kept, rig.root());
    }
}

#[test]
fn errors_at_the_calls_of_the_command_itself_lose_nothing() {
    let rig = Rig::new(PLAN, AGENT);
    prepared(&rig);
    let (before, kept) = (seen(&rig), rig.outside("kept"));
    copy(rig.root(), &kept);
    for (index, calls) in every_group().iter().enumerate().filter(|(_, calls)| **calls != EXECVE) {
        for nth in [4, 30] {
            let error = ERRORS[(index + nth) % ERRORS.len()];
            let point = format!("{calls} {nth} {error}");
            let mut strace = Command::new("strace");
            rig.prepare(&mut strace);
            strace.args(["-f", "-b", "execve", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}")]);
            strace.args(["-e", &format!("inject={calls}:error={error}:when={nth}")]).arg(program()).arg("land");
            let ended = rig.launch(strace).end();
            assert!(!ended.err.contains("panicked"), "{point}: {ended:?}");
            if ended.code != Some(0) && ended.err.contains("nothing was changed") {
                assert_eq!(seen(&rig), before, "{point}: {ended:?}");
            }
            rig.ok(&["land"]);
            landed(&rig, &point);
            std::fs::remove_dir_all(rig.root()).expect("removed");
            copy(&kept, rig.root());
        }
    }
}
