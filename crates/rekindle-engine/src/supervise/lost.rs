//! Ends the processes that a dead shim left behind, and no others.
//!
//! A process is ours when it is the recorded agent itself (proven), a descendant of a proven one, a member of the living
//! agent's session, is in the cgroup that is named after this attempt's nonce, or was started with this attempt's marker in
//! its environment. All of them are stopped until no new one turns up, and only then killed, so that none can fork away. A
//! process that cannot be proven to be ours is left alone.

use std::collections::BTreeSet;
use std::io;

use rekindle_shim::bundle::{ShimRecord, Survivor};
use rekindle_shim::cgroup::Group;
use rekindle_shim::clock;
use rekindle_shim::identity::{Opened, Process};
use rekindle_shim::tree::{Pause, SWEEP_MAX_MS, Table, await_any, kill_all, name_survivors};
use rustix::process::Signal;

/// Rounds of stopping before the killing starts: each needs a process that forked at the instant of the last scan.
const FREEZE_ROUNDS_MAX: u32 = 20;

/// What became of a lost tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ended {
    pub killed: u32,
    /// Processes that did not die in time.
    pub survivors: Vec<Survivor>,
    /// It was recorded in another boot or pid namespace: no process here belongs to it, and none was searched for.
    pub elsewhere: bool,
}

/// Why a tree was not ended.
#[derive(Debug, thiserror::Error)]
pub enum LostError {
    /// The shim lives: send the order to it.
    #[error("the shim is alive, its tree is not lost")]
    ShimAlive,
    /// The process table cannot be read.
    #[error("cannot look at processes: {0}")]
    Io(#[from] io::Error),
}

/// Ends the tree of an attempt whose shim died. Bounded in time; safe to repeat. Fails when the shim lives, or when the
/// system does not let us inspect processes.
pub fn end_lost_tree(record: &ShimRecord, nonce: &str) -> Result<Ended, LostError> {
    match record.shim.open()? {
        Opened::OtherBoot | Opened::OtherNamespace => {
            return Ok(Ended { elsewhere: true, ..Ended::default() });
        }
        // Only a shim proven alive forbids it: on an old kernel, merely matching numbers do not.
        Opened::Ours(_) => return Err(LostError::ShimAlive),
        Opened::Likely(_) | Opened::Gone => {}
    }
    let group = record.caps.as_ref().map(|held| held.group.proven(&record.attempt, nonce)).unwrap_or_default();
    let mut killed = BTreeSet::new();
    let mut pause = Pause::default();
    let give_up_at_ms = clock::monotonic_ms() + SWEEP_MAX_MS;
    loop {
        let members = freeze(record, nonce, &group)?;
        if members.is_empty() {
            group.remove();
        }
        if members.is_empty() || clock::monotonic_ms() >= give_up_at_ms {
            let count = u32::try_from(killed.len()).unwrap_or(u32::MAX);
            return Ok(Ended { killed: count, survivors: name_survivors(&members), elsewhere: false });
        }
        killed.extend(kill_all(&members));
        group.kill();
        await_any(&members, pause.next_ms());
    }
}

/// Stops members until a scan finds no new one, and returns all of them.
fn freeze(record: &ShimRecord, nonce: &str, group: &Group) -> io::Result<Vec<Process>> {
    let mut members: Vec<Process> = Vec::new();
    let mut seen = BTreeSet::new();
    for _ in 0..FREEZE_ROUNDS_MAX {
        let mut grew = false;
        for process in find(record, nonce, group)? {
            if seen.insert((process.id().pid, process.id().start_ticks)) {
                let _ = process.signal(Signal::STOP);
                members.push(process);
                grew = true;
            }
        }
        if !grew {
            break;
        }
    }
    Ok(members)
}

/// Every process that provably belongs to this attempt and is alive now. May name a process more than once.
fn find(record: &ShimRecord, nonce: &str, group: &Group) -> io::Result<Vec<Process>> {
    let agent = match record.agent.open()? {
        Opened::Ours(agent) => Some(agent),
        Opened::Likely(agent) => Some(agent).filter(|agent| agent.carries_nonce(nonce)),
        Opened::Gone | Opened::OtherBoot | Opened::OtherNamespace => None,
    };
    let table = Table::scan()?;
    let mut roots = table.pin_marked(nonce);
    roots.extend(group.members());
    if let Some(agent) = agent {
        roots.extend(table.pin_session(&agent));
        roots.push(agent);
    }
    let below: Vec<Process> = roots.iter().flat_map(|root| table.pin_descendants(Some(root))).collect();
    roots.extend(below);
    roots.retain(|process| process.id().pid != std::process::id());
    Ok(roots)
}
