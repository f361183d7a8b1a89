//! A person's own program on a task: its identity, whether it is alive, and what changed while it ran. Nothing here sends
//! signals.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use rekindle_core::steering::PersonProcess;
use rekindle_shim::clock;
use rekindle_shim::identity::{Opened, ProcId, Process};
use rustix::event::{PollFd, PollFlags, poll};

use crate::git::{Place, Work};

/// Between two checks of a process that cannot be waited for.
const LOOK_MS: u64 = 500;

/// This process. A program that it becomes through exec keeps the identity.
pub fn this_process() -> io::Result<PersonProcess> {
    Process::own().map(|process| of(process.id().clone()))
}

/// A child of this process.
pub fn of_child(pid: u32) -> io::Result<PersonProcess> {
    Process::of_child(pid).map(|process| of(process.id().clone()))
}

fn of(id: ProcId) -> PersonProcess {
    let ProcId { boot_id, pid, pidfd_inode, start_ticks, pid_ns_inode } = id;
    PersonProcess { boot_id, pid, pidfd_inode, start_ticks, pid_ns_inode }
}

fn id_of(process: &PersonProcess) -> ProcId {
    let PersonProcess { boot_id, pid, pidfd_inode, start_ticks, pid_ns_inode } = process.clone();
    ProcId { boot_id, pid, pidfd_inode, start_ticks, pid_ns_inode }
}

/// Whether a person's program has ended. If the system does not say, it has not.
pub fn is_gone(process: &PersonProcess) -> bool {
    matches!(id_of(process).open(), Ok(Opened::Gone | Opened::OtherBoot))
}

/// Waits until a person's program has ended, however long that takes.
pub fn wait_for_end(process: &PersonProcess) {
    loop {
        match id_of(process).open() {
            Ok(Opened::Gone | Opened::OtherBoot) => return,
            Ok(Opened::Ours(found) | Opened::Likely(found)) => {
                let mut ended = [PollFd::from_borrowed_fd(found.as_fd(), PollFlags::IN)];
                // An interrupted wait is repeated.
                let _again = poll(&mut ended, None);
            }
            // From another namespace its end cannot be seen: it holds the task until it gives it back itself.
            Ok(Opened::OtherNamespace) | Err(_) => {}
        }
        clock::pause(LOOK_MS);
    }
}

/// Where a task is worked on.
#[derive(Clone, Debug)]
pub struct WorkedOn {
    /// The task's own workspace; `None` if all agents work in the project's directory.
    pub workspace: Option<String>,
    pub task: String,
    /// The attempt before the person.
    pub attempt: u64,
}

impl WorkedOn {
    fn place(&self) -> (Place, &str) {
        match &self.workspace {
            Some(key) => (Place::Own, key),
            None => (Place::Shared, &self.task),
        }
    }

    pub fn dir(&self, work: Option<&Work>, project: &std::path::Path) -> PathBuf {
        let standing = self.workspace.as_ref().zip(work).and_then(|(key, work)| work.standing(key));
        standing.unwrap_or_else(|| project.to_owned())
    }

    /// Keeps what is there before the person begins: changes are counted from here.
    pub fn keep(&self, work: &Work) {
        let (place, key) = self.place();
        // Without it, changes are counted from the end of the last attempt.
        let _counted_from_before = work.keep_for_person(place, key, self.attempt);
    }

    /// What has changed since, one line each: files with their kind of change, then commits. Empty if nothing has, or git
    /// cannot say.
    pub fn changed(&self, work: Option<&Work>) -> Vec<String> {
        let Some(work) = work else { return Vec::new() };
        let (place, key) = self.place();
        work.changed_by_person(place, key, self.attempt).unwrap_or_default()
    }
}
