//! A disk that is full or read-only: nothing is acknowledged that is not durable, and the run goes on when it can.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::rig::{Rig, Running};

/// A small disk of its own, gone with the test.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    pub fn new(at: PathBuf, megabytes: u32) -> Self {
        std::fs::create_dir(&at).expect("mount point");
        mount(&["-t", "tmpfs", "-o", &format!("size={megabytes}m,mode=0700"), "tmpfs"], &at);
        Self(at)
    }

    /// One on which there is room for so many files.
    pub fn of_files(at: PathBuf, megabytes: u32, files: u32) -> Self {
        std::fs::create_dir(&at).expect("mount point");
        mount(&["-t", "tmpfs", "-o", &format!("size={megabytes}m,nr_inodes={files},mode=0700"), "tmpfs"], &at);
        Self(at)
    }

    /// Makes files until no more can be made.
    pub fn use_up_files(&self) {
        let dir = self.0.join("fillers");
        std::fs::create_dir(&dir).expect("directory");
        while File::create(dir.join(std::fs::read_dir(&dir).expect("list").count().to_string())).is_ok() {}
    }

    pub fn give_files_back(&self) {
        std::fs::remove_dir_all(self.0.join("fillers")).expect("fillers");
    }

    fn remount(&self, how: &str) {
        mount(&["-o", &format!("remount,{how}")], &self.0);
    }

    /// Fills it to the last byte.
    pub fn fill(&self) {
        let mut file = File::create(self.0.join("filler")).expect("filler");
        let mut chunk = vec![0_u8; 1024 * 1024];
        while !chunk.is_empty() {
            // A chunk that does not fit leaves what did; smaller ones take the rest.
            if file.write_all(&chunk).is_err() {
                chunk.truncate(chunk.len() / 2);
            }
        }
    }

    pub fn relieve(&self) {
        std::fs::remove_file(self.0.join("filler")).expect("filler");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _left_to_the_machine = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn mount(arguments: &[&str], at: &Path) {
    let done = Command::new("mount").args(arguments).arg(at).output().expect("mount");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "this test mounts a small disk and needs root for it: {said}");
}

/// What a coordinator says when the disk refuses what it has to write.
const UNWRITTEN: &str = "the state cannot be written";

const PLAN: &str =
    "# Disk\n\n### T1: work\n- accept: `test -e made`\n\nWork.\n\n### T2: more\n- blocked by: T1\n\nMore.\n";

/// Everything it says about its claim goes to the project's disk, which has space.
const AGENT: &str = "touch here-$REKINDLE_TASK\n$FAKE wait go\ntouch made claiming\n\
    rekindle task done $REKINDLE_TASK > told 2>&1; echo $? >> code\n";

fn project() -> (Rig, SmallDisk) {
    let rig = Rig::new(PLAN, AGENT);
    let disk = SmallDisk::new(rig.outside("disk"), 24);
    rig.set("REKINDLE_STATE_DIR", rig.outside("disk/state"));
    (rig, disk)
}

#[test]
fn a_full_disk_acknowledges_nothing_and_the_run_goes_on_when_there_is_space() {
    let (rig, disk) = project();
    let mut run = rig.run();
    rig.await_file("here-T1");
    rig.await_event("agent_started");
    disk.fill();
    rig.touch("go");
    rig.await_file("claiming");
    // The claim was to be made durable and could not be: nobody may have been told that it is.
    rig.until("the refusal of the disk", || run.said().contains(UNWRITTEN).then_some(()));
    assert!(rig.lines("code").is_empty(), "acknowledged on a full disk: {:?}", rig.lines("told"));
    assert!(run.has_ended().is_none(), "the coordinator gave up: {}", run.said());
    assert_eq!(rig.task("T1")["state"], "in_progress");
    disk.relieve();
    let ended = run.end();
    assert!(ended.err.contains("can be written again"), "{ended:?}");
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", rig.story());
    assert_eq!(rig.lines("code"), ["0", "0"]);
    assert_eq!(rig.task("T1")["attempts"], 1);
    rig.audit();
    drop(rig);
    drop(disk);
}

#[test]
fn a_coordinator_killed_on_a_full_disk_loses_nothing() {
    let (rig, disk) = project();
    let run = rig.run();
    rig.await_file("here-T1");
    rig.await_event("agent_started");
    disk.fill();
    rig.touch("go");
    rig.await_file("claiming");
    run.kill();
    // A start on a full disk may find room for its few bytes, wait, or fail with a reason; it must not forget anything.
    let mut next = rig.run();
    let words = [UNWRITTEN, "ADOPTED"];
    let started =
        |next: &mut Running| next.has_ended().is_some() || words.iter().any(|word| next.said().contains(word));
    rig.until("a start or its reason", || started(&mut next).then_some(()));
    if let Some(status) = next.has_ended() {
        assert!(matches!(status.code(), Some(1 | 2)), "{status:?} {}", next.said());
        assert!(next.said().contains("space"), "{}", next.said());
    }
    assert!(rig.lines("code").is_empty(), "acknowledged on a full disk: {:?}", rig.lines("told"));
    next.kill();
    disk.relieve();
    rig.finish();
    rig.audit();
    drop(rig);
    drop(disk);
}

#[test]
fn a_read_only_disk_is_named_and_nothing_is_lost() {
    let (rig, disk) = project();
    let run = rig.run();
    rig.await_file("here-T1");
    rig.await_event("agent_started");
    rig.ok(&["pause"]);
    assert_eq!(run.end().code, Some(4));
    let before = rig.events();
    disk.remount("ro");
    let ended = rig.run().end();
    assert!(matches!(ended.code, Some(1 | 2)), "{ended:?}");
    assert!(ended.err.contains("read-only"), "{ended:?}");
    let shown = rig.rekindle(&["status"]);
    assert_eq!(shown.code, Some(0), "what is there can be read: {shown:?}");
    assert!(shown.out.contains("paused"), "{shown:?}");
    disk.remount("rw");
    assert_eq!(rig.events(), before);
    rig.touch("go");
    rig.finish();
    rig.audit();
    drop(rig);
    drop(disk);
}
