//! A systemd scope for an agent: where the user may make no group below their own, systemd makes one.
//!
//! The process waits for its first instruction meanwhile. systemd moves it, so nothing here needs to be root.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{Dir, Group, Layout, Mount};
use crate::caps::{By, Caps};
use crate::clock;

/// Longest wait for systemd. It answers within some milliseconds; an agent waits no longer for its caps than a person would.
const WAIT_MS: u64 = 2_000;

/// Poll interval.
const LOOK_MS: u64 = 5;

/// The program that speaks to systemd.
const BUSCTL: &str = "busctl";

pub fn unit(name: &str) -> String {
    format!("{name}.scope")
}

/// Whether systemd could be asked here. Changes nothing.
pub(crate) fn is_offered(layout: &Layout) -> bool {
    let there = |path: PathBuf| fs::metadata(path).is_ok_and(|found| found.file_type().is_socket());
    layout.unified.is_some() && layout.memory.is_none() && private_socket().is_some_and(there) && has_busctl()
}

/// The socket that the manager listens on: the system's for the superuser, else the user's own.
fn private_socket() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/run/systemd/private"));
    }
    Some(Path::new(&std::env::var_os("XDG_RUNTIME_DIR")?).join("systemd/private"))
}

fn has_busctl() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(BUSCTL).is_file())
}

/// Makes systemd put a process into a scope with its caps. `None` if it does not do so in time.
pub(crate) fn put(layout: &Layout, name: &str, caps: &Caps, pid: u32) -> Option<Group> {
    if !is_offered(layout) {
        return None;
    }
    let unit = unit(name);
    let manager = if rustix::process::geteuid().is_root() { "--system" } else { "--user" };
    let mut properties: Vec<[String; 3]> = vec![["Delegate".into(), "b".into(), "true".into()]];
    let number = |key: &str, value: Option<u64>| value.map(|value| [key.to_owned(), "t".to_owned(), value.to_string()]);
    properties.extend(number("MemoryMax", caps.memory_max));
    properties.extend(number("TasksMax", caps.processes_max));
    let mut ask = Command::new(BUSCTL);
    ask.args([manager, "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1"])
        .args(["org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))", &unit, "fail"])
        .arg((properties.len() + 1).to_string())
        .args(["PIDs", "au", "1", &pid.to_string()])
        .args(properties.iter().flatten())
        .arg("0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let give_up_at_ms = clock::monotonic_ms() + WAIT_MS;
    if !succeeds(ask.spawn().ok()?, give_up_at_ms) {
        return None;
    }
    loop {
        if let Some(path) = dir_of(pid, &unit) {
            let has = |file: &str| path.join(file).exists();
            let memory = has("memory.events");
            let memory_capped = memory && caps.memory_max.is_some() && has("memory.max");
            let processes = caps.processes_max.is_some() && has("pids.max");
            return Some(Group { dirs: vec![Dir { path, by: By::Scope, memory, memory_capped, processes }] });
        }
        if clock::monotonic_ms() >= give_up_at_ms {
            return None;
        }
        clock::pause(LOOK_MS);
    }
}

/// Awaits a child, and ends it when the time is over.
fn succeeds(mut child: Child, give_up_at_ms: u64) -> bool {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if clock::monotonic_ms() < give_up_at_ms => clock::pause(LOOK_MS),
            _ => {
                let _gone = child.kill();
                let _reaped = child.wait();
                return false;
            }
        }
    }
}

/// The directory of a process's group, once the group is the unit.
fn dir_of(pid: u32, unit: &str) -> Option<PathBuf> {
    let table = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let path = super::own_path(&table, "").filter(|path| path.ends_with(&format!("/{unit}")))?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mounts = mounts.lines().filter_map(Mount::read).filter(|mount| mount.holds(""));
    mounts.filter_map(|mount| mount.dir_of(path)).find(|dir| dir.is_dir())
}
