//! How each fault is injected. Signals go only to processes that are proven to belong to the sandbox; limits are changed
//! only for the coordinator or in a namespace that nothing else uses.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use rekindle_engine::clock;
use rekindle_shim::atomic;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::fault::Fault;
use super::parties::Held;
use super::round::{self, Round, Spec};
use super::witness::{What, Witness};
use crate::ui;

/// How long the coordinator is frozen.
const FREEZE_MS: u32 = 3_000;

/// How long the coordinator has no descriptors, or its disk no space: several of its polls.
const SHORT_MS: u32 = 2_000;

/// Descriptors that are always open: with a limit this low nothing more can be opened.
const FEW_DESCRIPTORS: u64 = 3;

/// Size of the disk for a state directory that is to be filled: enough for some hundred tasks of stand-ins.
const DISK_MEGABYTES: u32 = 64;

/// Bytes written at a time to fill a disk.
const CHUNK: usize = 64 * 1024;

/// How long the usage allowance is exhausted.
const LIMIT_MS: u64 = 4_000;

/// The number of inotify watches, set to 0 for the fault without inotify.
const WATCHES: &str = "/proc/sys/user/max_inotify_watches";

/// Where the state is kept. Prepares the place first if the fault needs it.
pub(super) fn state_dir(spec: &Spec) -> io::Result<PathBuf> {
    if spec.fault != Fault::FullDisk {
        return Ok(spec.root.join(crate::project::STATE_DIR_NAME));
    }
    let disk = spec.dir.join("disk");
    std::fs::create_dir_all(&disk)?;
    let options = format!("size={DISK_MEGABYTES}m,mode=0700");
    let done = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&disk).output()?;
    if !done.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&done.stderr).into_owned()));
    }
    Ok(disk.join("state"))
}

/// Prepares the fault before the run starts.
pub(super) fn before<'a>(spec: &Spec, victims: impl Iterator<Item = &'a String>) -> io::Result<()> {
    let witness = Witness::of(&spec.dir);
    if let Some(order) = spec.fault.order() {
        for task in victims {
            witness.order(task, order)?;
        }
    }
    match spec.fault {
        Fault::NoInotify => OpenOptions::new().write(true).open(WATCHES)?.write_all(b"0"),
        Fault::UsageLimit => allow(spec, 0, clock::wall().0 + i64::try_from(LIMIT_MS).unwrap_or(0)),
        _ => Ok(()),
    }
}

/// Injects the fault at the chosen moment of an attempt. Fails when that is not possible for a reason other than that the
/// victim has just ended.
pub(super) fn at(round: &mut Round<'_>, held: &Held) -> io::Result<()> {
    let fault = round.spec.fault;
    match fault {
        Fault::KillCoordinator => {
            round.remember();
            if !round.replace_coordinator()? {
                return Ok(());
            }
        }
        Fault::KillShim | Fault::KillAgent | Fault::KillAll => {
            let shim = fault != Fault::KillAgent && held.kill(&held.record.shim);
            let agent = fault != Fault::KillShim && held.kill(&held.record.agent);
            if !shim && !agent {
                // It had just ended.
                return Ok(());
            }
            round.evidence.hit(held);
            if fault == Fault::KillAll {
                round.remember();
                round.replace_coordinator()?;
            }
        }
        Fault::Freeze => {
            round.remember();
            round::freeze(&round.coordinator()?, FREEZE_MS)?;
        }
        Fault::NoDescriptors => without_descriptors(round)?,
        Fault::FullDisk => {
            let ballast = fill(&round.spec.dir.join("disk"))?;
            ui::pause(SHORT_MS);
            std::fs::remove_file(ballast)?;
        }
        // These are prepared before the run and counted after it.
        Fault::NoInotify
        | Fault::UsageLimit
        | Fault::ConnectionLost
        | Fault::AgentCrash
        | Fault::AgentHang
        | Fault::AgentLie => return Ok(()),
    }
    round.evidence.injected += 1;
    Ok(())
}

/// What has to be done while the run is going on.
pub(super) fn meanwhile(round: &mut Round<'_>) -> io::Result<()> {
    if round.spec.fault == Fault::UsageLimit && round.evidence.injected == 0 {
        let paused = super::verdict::events(&round.project())
            .is_ok_and(|events| events.iter().any(|event| event.kind == "session_pause"));
        if paused {
            round.evidence.injected = 1;
            allow(round.spec, 100, 0)?;
        }
    }
    Ok(())
}

/// Counts what stand-ins did themselves from what they recorded.
pub(super) fn after(round: &mut Round<'_>) {
    let misbehaved =
        |notes: Vec<super::witness::Note>| notes.iter().filter(|note| note.what == What::Misbehaves).count();
    match round.spec.fault {
        fault if fault.order().is_some() => {
            let count = Witness::of(&round.spec.dir).notes().map_or(0, misbehaved);
            round.evidence.injected = u32::try_from(count).unwrap_or(u32::MAX);
        }
        Fault::NoInotify => round.evidence.injected = u32::from(round::readable(&round.project())),
        _ => {}
    }
}

/// Copies a disk that would vanish with its namespace to a place where it can be inspected.
pub(super) fn keep(spec: &Spec, broken: bool) {
    if spec.fault == Fault::FullDisk && broken {
        // A failed copy only means that it cannot be inspected.
        let _ = Command::new("cp").arg("-a").arg(spec.dir.join("disk/.")).arg(spec.dir.join("disk-kept")).status();
    }
}

/// Takes the coordinator's descriptors away for a while. Only its soft limit is touched, which its owner may raise again.
fn without_descriptors(round: &mut Round<'_>) -> io::Result<()> {
    let coordinator = round.coordinator()?;
    let pid = i32::try_from(coordinator.id().pid).ok().and_then(Pid::from_raw);
    let before = read_limit(coordinator.id().pid)?;
    // It is our own child and not waited for yet, so its process id cannot have been reused.
    prlimit(pid, Resource::Nofile, Rlimit { current: Some(FEW_DESCRIPTORS), ..before })?;
    ui::pause(SHORT_MS);
    prlimit(pid, Resource::Nofile, before)?;
    Ok(())
}

/// The limits on descriptors of a process.
fn read_limit(pid: u32) -> io::Result<Rlimit> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/limits"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"));
    let mut numbers = line.unwrap_or_default().split_whitespace().map(|word| word.parse::<u64>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(current), Some(maximum)) => Ok(Rlimit { current, maximum }),
        _ => Err(io::Error::other("the limits of a process cannot be read here")),
    }
}

/// Fills a disk to the last byte and returns the file that fills it.
fn fill(disk: &Path) -> io::Result<PathBuf> {
    let path = disk.join("ballast");
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let mut size = CHUNK;
    while size > 0 {
        match file.write(&vec![0; size]) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::StorageFull => size /= 2,
            Err(error) => return Err(error),
        }
    }
    Ok(path)
}

/// Sets the remaining allowance that the stand-in for the provider reports.
fn allow(spec: &Spec, percent: u32, resets_at_ms: i64) -> io::Result<()> {
    let reset = jiff::Timestamp::from_millisecond(resets_at_ms).map_err(io::Error::other)?;
    let text = format!("{{\"remaining_percent\": {percent}, \"resets_at\": \"{reset}\"}}\n");
    atomic::save(&spec.dir, "allowance", text.as_bytes())
}
