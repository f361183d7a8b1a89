//! Caps on one agent: how much memory and how many processes its whole tree may use, and what enforces that.
//!
//! A cgroup is best: it counts the whole tree and nothing else. Where there is none, limits on the processes themselves do
//! part of it. A cap is a protection and not a condition: an agent that cannot be capped is started anyway, and the record
//! says so.

pub(crate) mod evidence;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::bundle::Spec;
use crate::cgroup::{self, Group, Layout, scope};
use crate::os;

/// What an agent may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caps {
    /// Memory of the whole tree in bytes; `None` if it may use all.
    #[serde(default)]
    pub memory_max: Option<u64>,
    /// Processes and threads of the whole tree.
    #[serde(default)]
    pub processes_max: Option<u64>,
    /// A person configured the memory cap. Only then is it enforced by a limit on each process where there is no cgroup:
    /// programs that reserve far more than they use would not start under a limit that nobody asked for.
    #[serde(default)]
    pub memory_named: bool,
}

/// What enforces a cap on an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    Cgroup2,
    Cgroup1,
    /// A scope that systemd made: also a cgroup of version 2.
    Scope,
    /// A limit on each of its processes.
    Rlimit,
    #[default]
    Nothing,
}

/// What enforced an agent's caps from its first instruction on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    #[serde(default)]
    pub group: Group,
    #[serde(default)]
    pub memory: By,
    #[serde(default)]
    pub processes: By,
}

/// A kill by the kernel for lack of memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutOfMemory {
    /// The agent's own cap in bytes, if it reached that; `None` if the machine had no memory left.
    #[serde(default)]
    pub cap: Option<u64>,
}

/// What would enforce the caps of an agent that is started here now. Changes nothing.
pub fn standing() -> Held {
    let layout = Layout::here();
    let (memory, processes) = layout.controllers();
    let otherwise = |found: By, rlimit: By| match found {
        By::Nothing if scope::is_offered(&layout) => By::Scope,
        By::Nothing => rlimit,
        found => found,
    };
    Held { group: Group::default(), memory: otherwise(memory, By::Rlimit), processes: otherwise(processes, per_user()) }
}

/// The system's limit on a user's processes applies to everyone except the superuser.
fn per_user() -> By {
    if rustix::process::geteuid().is_root() { By::Nothing } else { By::Rlimit }
}

/// Puts a process that waits for its first instruction under its caps. Never fails: the result says what cannot be enforced.
pub(crate) fn hold(caps: &Caps, spec: &Spec, pid: u32) -> Held {
    let name = cgroup::name(&spec.attempt, &spec.nonce);
    let layout = Layout::here();
    let mut group = Group::make(&layout, &name, caps);
    group.admit(pid);
    let lacks = |group: &Group| {
        caps.memory_max.is_some() && group.memory_by() == By::Nothing
            || caps.processes_max.is_some() && group.processes_by() == By::Nothing
    };
    if lacks(&group)
        && let Some(scope) = scope::put(&layout, &name, caps, pid)
    {
        // The process has moved: the group made for it before is empty.
        group.remove();
        group = scope;
    }
    let memory = match (caps.memory_max, group.memory_by()) {
        (None, _) => By::Nothing,
        (Some(_), By::Nothing) if caps.memory_named => By::Rlimit,
        (Some(_), by) => by,
    };
    let processes = match (caps.processes_max, group.processes_by()) {
        (None, _) => By::Nothing,
        (Some(_), By::Nothing) => per_user(),
        (Some(_), by) => by,
    };
    Held { group, memory, processes }
}

/// Limits this process, which is about to become the agent, where no cgroup does.
pub(crate) fn limit_self(caps: &Caps, held: &Held) {
    if let (Some(bytes), By::Rlimit) = (caps.memory_max, held.memory) {
        // Not the address space: runtimes reserve terabytes of it and use none of them.
        lower(Resource::Data, bytes);
    }
    if let (Some(more), By::Rlimit) = (caps.processes_max, held.processes) {
        // The limit counts everything that the user runs anywhere, so what is already running is added.
        lower(Resource::Nproc, os::tasks_of_user().saturating_add(more));
    }
}

/// Lowers a limit for this process and all its descendants; a limit that is already lower stays.
fn lower(resource: Resource, to: u64) {
    let now = getrlimit(resource);
    let least = |limit: Option<u64>| Some(limit.map_or(to, |limit| limit.min(to)));
    // A limit that cannot be set is no reason not to start the agent.
    let _stays = setrlimit(resource, Rlimit { current: least(now.current), maximum: least(now.maximum) });
}
