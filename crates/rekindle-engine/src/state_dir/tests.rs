//! What a state directory accepts and refuses, on real directories.

use std::os::unix::fs::symlink;
use std::process::Command;

use super::*;

fn parent() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn owner(plan: &str) -> Owner {
    Owner { pid: std::process::id(), host: "here".into(), since_ms: 7, plan: plan.into(), process: None }
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().expect("there").permissions().mode() & 0o777
}

#[test]
fn a_new_directory_is_private_ignored_by_git_and_opens_again() {
    let parent = parent();
    let path = parent.path().join("state");
    let dir = StateDir::open_or_create(&path).expect("made");
    assert_eq!(mode(dir.path()), 0o700);
    assert_eq!(std::fs::read_to_string(path.join(".gitignore")).expect("there"), "*\n");
    StateDir::open_or_create(&path).expect("opened again");
    StateDir::open(&path).expect("opened for reading");
    assert!(matches!(StateDir::open(&parent.path().join("other")), Err(Error::Missing(_))));
}

#[test]
fn a_readable_directory_is_tightened_and_a_writable_one_refused() {
    let parent = parent();
    let path = parent.path().join("state");
    StateDir::open_or_create(&path).expect("made");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("chmod");
    StateDir::open_or_create(&path).expect("readable by others is mended");
    assert_eq!(mode(&path), 0o700);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o770)).expect("chmod");
    assert!(matches!(StateDir::open_or_create(&path), Err(Error::TooOpen { mode: 0o770, .. })));
}

#[test]
fn a_link_a_file_a_foreign_folder_and_a_foreign_owner_are_refused() {
    let parent = parent();
    let real = parent.path().join("real");
    StateDir::open_or_create(&real).expect("made");
    let link = parent.path().join("link");
    symlink(&real, &link).expect("symlink");
    assert!(matches!(StateDir::open_or_create(&link), Err(Error::NotADirectory(_))));
    let file = parent.path().join("file");
    std::fs::write(&file, "x").expect("written");
    assert!(matches!(StateDir::open_or_create(&file), Err(Error::NotADirectory(_))));
    let documents = parent.path().join("documents");
    std::fs::create_dir(&documents).expect("made");
    std::fs::set_permissions(&documents, PermissionsExt::from_mode(0o700)).expect("chmod");
    std::fs::write(documents.join("letter"), "dear").expect("written");
    assert!(matches!(StateDir::open_or_create(&documents), Err(Error::NotOurs(_))));
    assert!(!documents.join(".gitignore").exists(), "a refused folder stays as it was");
    assert!(rustix::process::geteuid().is_root(), "giving a directory away needs root");
    std::os::unix::fs::chown(&real, Some(12345), None).expect("chown");
    assert!(matches!(StateDir::open_or_create(&real), Err(Error::ForeignOwner { owner: 12345, .. })));
}

#[test]
fn a_newer_or_broken_version_marker_is_refused() {
    let parent = parent();
    let path = parent.path().join("state");
    StateDir::open_or_create(&path).expect("made");
    std::fs::write(path.join("version"), "2\n").expect("written");
    let error = StateDir::open_or_create(&path).expect_err("newer").to_string();
    assert!(error.contains("version 2") && error.contains("up to 1"), "{error}");
    std::fs::write(path.join("version"), "one").expect("written");
    assert!(matches!(StateDir::open(&path), Err(Error::Damaged(_))));
}

#[test]
fn a_cut_short_creation_is_finished() {
    let parent = parent();
    let path = parent.path().join("state");
    DirBuilder::new().mode(0o700).create(&path).expect("made");
    std::fs::write(path.join("version.tmp"), "").expect("written");
    StateDir::open_or_create(&path).expect("finished");
    StateDir::open(&path).expect("complete");
}

#[test]
fn a_read_only_disk_is_named() {
    let parent = parent();
    let path = parent.path().join("disk");
    std::fs::create_dir(&path).expect("made");
    let run = |args: &[&str]| {
        let status = Command::new(args[0]).args(&args[1..]).arg(&path).status().expect("runs");
        assert!(status.success(), "{args:?} is needed for this test (root, mount)");
    };
    run(&["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "none"]);
    StateDir::open_or_create(&path).expect("made while writable");
    run(&["mount", "-o", "remount,ro"]);
    let refused = StateDir::open_or_create(&path);
    run(&["umount"]);
    assert!(matches!(refused, Err(Error::ReadOnly(_))), "{refused:?}");
}

#[test]
fn one_coordinator_at_a_time_and_the_lock_decides() {
    let parent = parent();
    let dir = StateDir::open_or_create(&parent.path().join("state")).expect("made");
    assert_eq!(dir.owner().expect("readable"), None);
    let held = dir.lock_coordinator(&owner("first")).expect("free");
    assert_eq!(dir.owner().expect("readable"), Some(Some(owner("first"))));
    let refused = dir.lock_coordinator(&owner("second")).expect_err("held");
    assert!(refused.to_string().contains("running first"), "{refused}");
    drop(held);
    assert_eq!(dir.owner().expect("readable"), None);
    // A file left by a killed owner says a name, but no lock: it is free.
    std::fs::write(dir.path().join("coordinator.lock"), serde_json::to_vec(&owner("dead")).expect("json"))
        .expect("written");
    assert_eq!(dir.owner().expect("readable"), None);
    drop(dir.lock_coordinator(&owner("third")).expect("free"));
}

#[test]
fn asking_for_the_owner_never_makes_a_free_lock_look_held() {
    let parent = parent();
    let dir = StateDir::open_or_create(&parent.path().join("state")).expect("made");
    drop(dir.lock_coordinator(&owner("first")).expect("free"));
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                dir.owner().expect("readable");
            }
        });
        for _ in 0..50 {
            drop(dir.lock_coordinator(&owner("again")).expect("nobody else holds it"));
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn the_secret_is_made_once_kept_and_guarded() {
    let parent = parent();
    let dir = StateDir::open_or_create(&parent.path().join("state")).expect("made");
    let secrets: Vec<Secret> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..4).map(|_| scope.spawn(|| dir.secret())).collect();
        asked.into_iter().map(|t| t.join().expect("no panic").expect("made or read")).collect()
    });
    let kept = dir.secret().expect("there");
    assert!(secrets.iter().all(|s| *s == kept) && kept.bytes() != &[0; 32]);
    assert_eq!(format!("{kept:?}"), "Secret(…)");
    let file = dir.path().join("secret");
    assert_eq!(mode(&file), 0o600);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).expect("chmod");
    assert!(matches!(dir.secret(), Err(Error::TooOpen { .. })));
    std::fs::remove_file(&file).expect("removed");
    symlink("/etc/hostname", &file).expect("symlink");
    assert!(dir.secret().is_err(), "a planted link is not followed");
}

/// A coordinator that is killed between fork and exec of a child leaves its lock to that child for a moment.
#[test]
fn a_lock_that_only_a_dead_owners_child_holds_is_waited_for() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};
    let parent = parent();
    let dir = StateDir::open_or_create(&parent.path().join("state")).expect("made");
    drop(dir.lock_coordinator(&owner("first")).expect("free"));
    let lock = dir.path().join("coordinator.lock");
    let mut dead = Command::new("true").spawn().expect("a process");
    let process = rekindle_shim::identity::Process::of_child(dead.id()).expect("known").id().clone();
    dead.wait().expect("ended");
    let record = Owner { process: Some(Box::new(process)), ..owner("dead") };
    assert!(record.is_dead() && !Owner::this_process(0, "me").is_dead() && !owner("unknown").is_dead());
    std::fs::write(&lock, serde_json::to_vec(&record).expect("json")).expect("written");
    for asks in [true, false] {
        let mut child = Command::new("sh")
            .args(["-c", "exec 9<>\"$0\"; flock 9; echo held; read -r line"])
            .arg(&lock)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a holder");
        let mut said = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut said).expect("a line");
        assert_eq!(said, "held\n");
        let input = child.stdin.take().expect("piped");
        let over = std::sync::atomic::AtomicBool::new(false);
        let (asked, taken) = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut input = input;
                // It lets go once somebody has been seen at the lock.
                let looked_at = || {
                    let fds = std::fs::read_dir("/proc/self/fd").expect("listed").flatten();
                    fds.filter_map(|fd| std::fs::read_link(fd.path()).ok()).any(|file| file == lock)
                };
                while !looked_at() && !over.load(std::sync::atomic::Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                writeln!(input, "go").expect("told");
            });
            let asked = asks.then(|| dir.owner());
            let taken = (!asks).then(|| dir.lock_coordinator(&record));
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            (asked, taken)
        });
        child.wait().expect("ended");
        assert!(asked.is_none_or(|asked| matches!(asked, Ok(None))), "nobody lives there");
        assert!(taken.is_none_or(|taken| taken.is_ok()), "free in the end");
    }
}
