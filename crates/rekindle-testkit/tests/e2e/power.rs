//! Power cuts, where agents share a directory and where they work apart: the project is on a disk of its own, every process is
//! killed at once, and the run goes on with what had reached that disk by then. What was acknowledged is neither lost nor done
//! again.
//!
//! `REKINDLE_POWER_ROUNDS=500` runs that many rounds of each kind.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::processes;
use crate::rig::{Rig, until};
use crate::tally;

/// Rounds of each kind where nobody asks for more: each takes some seconds.
const ROUNDS: u32 = 2;

/// Size of the disk: a repository, a state directory and the work fit.
const MEGABYTES: u64 = 64;

/// Tries to copy the disk while nothing is written to it; the kernel may be writing when the first begins.
const COPIES: u32 = 50;

/// A disk that can lose its power.
struct Disk {
    image: PathBuf,
    at: PathBuf,
}

impl Disk {
    fn new(dir: &Path) -> Self {
        let disk = Self { image: dir.join("image"), at: dir.join("disk") };
        std::fs::create_dir(&disk.at).expect("mount point");
        std::fs::File::create(&disk.image).expect("image").set_len(MEGABYTES * 1024 * 1024).expect("its size");
        command("mkfs.ext4", &["-q", "-F", &disk.image.to_string_lossy()]);
        disk.mount();
        disk
    }

    /// What is not synced stays in memory for longer than any round takes.
    fn mount(&self) {
        let (image, at) = (self.image.to_string_lossy(), self.at.to_string_lossy());
        command("mount", &["-o", "loop,commit=3600", &image, &at]);
    }

    /// Takes the power away: what is on the disk now is all that there is when it comes back. Nobody may be at work on it.
    fn cut(&mut self, round: u32) {
        let next = self.image.with_file_name(format!("image-{round}"));
        let mut before = std::fs::read(&self.image).expect("the disk");
        let whole = (0..COPIES).any(|_| {
            let now = std::fs::read(&self.image).expect("the disk");
            std::mem::replace(&mut before, now) == before
        });
        assert!(whole, "somebody writes to the disk all the time");
        std::fs::write(&next, before).expect("copied");
        command("umount", &["-l", &self.at.to_string_lossy()]);
        std::fs::remove_file(&self.image).expect("the old disk");
        self.image = next;
        self.mount();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _left_to_the_machine = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

fn command(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).output().expect("it runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program} {arguments:?}: this test needs root and a loop device: {said}");
}

const PLAN: &str = "---\nplan: power\n---\n# Power\n\n### T1: one\n- artifacts: made/T1\n- accept: `cmp made/T1 want`\n\nWork.\n\n\
    ### T2: two\n- artifacts: made/T2\n- accept: `cmp made/T2 want`\n\nWork.\n\n\
    ### T3: three\n- blocked by: T1\n- artifacts: made/T3\n- accept: `cmp made/T3 want && cmp made/T1 want`\n\nWork.\n\n\
    ### T4: four\n- blocked by: T3\n- artifacts: made/T4\n- accept: `cmp made/T4 want && cmp made/T3 want`\n\nWork.\n";

/// Writes as programs do: nothing of it is synced. Half of the tasks are committed by their agents.
const AGENT: &str = "mkdir -p made\ncp want made/$REKINDLE_TASK\n\
    case $REKINDLE_TASK in T1|T4) [ \"$APART\" = yes ] && git add -A && git -c user.name=a -c user.email=a@a commit -qm work;; esac\n\
    rekindle task done $REKINDLE_TASK\n";

fn project(disk: &Disk, isolation: &str) -> Rig {
    let rig = Rig::within(&disk.at, PLAN, AGENT);
    let settings = std::fs::read_to_string(rig.path("rekindle.toml")).expect("settings");
    rig.write("rekindle.toml", &settings.replace("[run]\n", &format!("[run]\nisolation = \"{isolation}\"\n")));
    rig.set("APART", if isolation == "worktree" { "yes" } else { "no" });
    rig.write("want", &"what the work is to be\n".repeat(5_000));
    rig.commit_first("-A");
    // The project itself is old; only what the run writes is at stake.
    command("sync", &[]);
    rig
}

/// Tasks that the run has called complete, as anybody could read it.
fn acknowledged(rig: &Rig) -> BTreeSet<String> {
    let ended = rig.rekindle(&["events", "--json", "--kind", "task_completed"]);
    let done = crate::rig::objects(&ended.out);
    done.iter().map(|event| event["task"].as_str().expect("a task").to_owned()).collect()
}

/// Kills everything of a project, as one.
fn kill_all(rig: &Rig) {
    let mark = rig.root().parent().expect("a parent").to_string_lossy().into_owned();
    let gone = until(|| {
        let left = rig.living();
        for pid in &left {
            processes::signal(*pid, &mark, Signal::KILL);
        }
        left.is_empty().then_some(())
    });
    gone.expect("all are dead");
}

fn rounds() -> u32 {
    std::env::var("REKINDLE_POWER_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS)
}

/// Cuts the power once so many tasks are acknowledged, some events later. Says how many were acknowledged.
fn round(isolation: &str, round: u32) -> usize {
    // In memory where there is one: a disk that is slow makes the moments fewer, not the losses.
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("tempdir");
    let mut disk = Disk::new(dir.path());
    let rig = project(&disk, isolation);
    let wanted = 1 + round as usize % 3;
    let mut run = rig.run();
    rig.until("acknowledged tasks", || (acknowledged(&rig).len() >= wanted).then_some(()));
    // Some events later: another one in every round, until the run is over.
    let moment = rig.events().len() + round as usize % 7;
    rig.until("another moment", || (rig.events().len() >= moment || run.has_ended().is_some()).then_some(()));
    let known = acknowledged(&rig);
    kill_all(&rig);
    drop(run);
    disk.cut(round);
    let what = format!("{isolation}, round {round}, acknowledged {:?}", &known);
    if isolation == "worktree" {
        for task in &known {
            let held = rig.git(&["show", &format!("rekindle/power:made/{task}")]);
            assert!(held.starts_with("what the work"), "{what}: {task} is not in the run's branch");
        }
        rig.git(&["rev-list", "--objects", "--quiet", "rekindle/power"]);
    }
    let ended = rig.run().end();
    assert_eq!(ended.code, Some(0), "{what}: {ended:?}\n{}", rig.story());
    let events = rig.events();
    for task in &known {
        let again = events.iter().filter(|event| event["task"] == task.as_str());
        let again: Vec<_> = again.filter(|event| event["kind"] == "task_rework").collect();
        assert!(again.is_empty(), "{what}: {task} was acknowledged and is done again: {again:?}\n{}", rig.story());
        assert_eq!(rig.task(task)["attempts"], 1, "{what}: {task}\n{}", rig.story());
    }
    rig.audit();
    drop(rig);
    drop(disk);
    tally::add("power", &[("acknowledged", known.len() as u64), ("tasks", 4), (isolation, 1)]);
    known.len()
}

#[test]
fn nothing_acknowledged_is_lost_where_agents_share_a_directory() {
    let acknowledged: usize = (0..rounds()).map(|n| round("shared", n)).sum();
    assert!(acknowledged >= 1, "nothing was ever acknowledged");
}

#[test]
fn nothing_acknowledged_is_lost_where_agents_work_apart() {
    let acknowledged: usize = (0..rounds()).map(|n| round("worktree", n)).sum();
    assert!(acknowledged >= 1, "nothing was ever acknowledged");
}
