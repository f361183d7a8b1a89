//! Where work is done and what becomes of it: workspaces, snapshots at the boundaries of attempts, merges, tidying up. How git
//! does each of them is the business of `git`; when is decided by the core and the driver.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rekindle_core::ids::{AttemptId, TaskId};
use rekindle_core::input::MergeOutcome;

use super::Shared;
use crate::driver::Message;
use crate::git::{Accepted, Place, Work};
use crate::world::MergeOrder;

/// Longest wait for what is under way when a coordinator leaves: what is cut off then is taken up by the next one.
const LEAVE_BUDGET: Duration = Duration::from_secs(60);

/// Snapshots, merges and removals under way.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    count: Mutex<usize>,
    through: Condvar,
}

impl Jobs {
    fn change(&self, change: impl FnOnce(&mut usize)) {
        change(&mut self.count.lock().unwrap_or_else(PoisonError::into_inner));
        self.through.notify_all();
    }

    /// Waits until none is under way.
    pub(super) fn wait(&self) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let _in_time = self.through.wait_timeout_while(count, LEAVE_BUDGET, |count| *count > 0);
    }
}

impl Shared {
    /// The directory of a workspace, made where it is not there; without a key the project's own.
    pub(super) fn place(&self, key: Option<&str>) -> Result<PathBuf, String> {
        let (Some(key), Some(work)) = (key, &self.work) else { return Ok(self.workspace.clone()) };
        let made = work.workspace(key).map_err(|error| format!("there is no workspace for {key}: {error}"))?;
        Ok(made.dir)
    }

    /// The same for looking only: a workspace that is there is not touched, for somebody may be at work in it.
    pub(super) fn standing_place(&self, key: Option<&str>) -> Result<PathBuf, String> {
        let standing = key.zip(self.work.as_ref()).and_then(|(key, work)| work.standing(key));
        standing.map_or_else(|| self.place(key), Ok)
    }

    /// Keeps what is in a workspace before or after an attempt.
    pub(super) fn snapshot(
        &self,
        key: Option<&str>,
        task: &TaskId,
        attempt: AttemptId,
        label: &str,
    ) -> Result<(), String> {
        let Some(work) = &self.work else { return Ok(()) };
        let (place, key) = match key {
            Some(key) => (Place::Own, key),
            None => (Place::Shared, task.as_str()),
        };
        let taken = work.snapshot(place, key, attempt.0, label).map(|_| ());
        taken.map_err(|error| format!("the workspace of {task} could not be kept: {error}"))
    }

    fn in_background(self: &Arc<Self>, name: &str, job: impl FnOnce(&Self) + Send + 'static) -> bool {
        self.jobs.change(|count| *count += 1);
        let worker = Arc::clone(self);
        let run = move || {
            job(&worker);
            worker.jobs.change(|count| *count -= 1);
        };
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(run).is_ok();
        if !spawned {
            self.jobs.change(|count| *count -= 1);
        }
        spawned
    }
}

/// An attempt is over: what it left is kept, and its workspace goes where it is no longer needed.
pub(super) fn leave_in_background(
    shared: &Arc<Shared>,
    attempt: AttemptId,
    task: &TaskId,
    workspace: Option<&str>,
    tidy: bool,
) {
    let (task, workspace) = (task.clone(), workspace.map(str::to_owned));
    let leave = move |shared: &Shared| {
        // What cannot be kept stays where it is: nothing is deleted without a proof that it is somewhere else.
        let kept = shared.snapshot(workspace.as_deref(), &task, attempt, "end");
        if let (Ok(()), true, Some(key), Some(work)) = (kept, tidy, &workspace, &shared.work) {
            let _stays_if_not = work.remove(key, attempt.0, "removed");
        }
    };
    // Without a thread the next attempt keeps it before it begins.
    let _kept_later = shared.in_background("leave", leave);
}

/// Merges accepted work beside the driver.
pub(super) fn merge_in_background(shared: &Arc<Shared>, order: MergeOrder) {
    let (task, epoch) = (order.task.clone(), order.epoch);
    let merge = move |shared: &Shared| {
        let outcome = match &shared.work {
            Some(work) => merge(work, &order),
            None => MergeOutcome::Failed { reason: "there is no repository any more".to_owned() },
        };
        let message = Message::Merged { task: order.task, epoch: order.epoch, outcome };
        let _leaving = shared.messages.send(message);
    };
    if !shared.in_background("merge", merge) {
        let outcome = MergeOutcome::Failed { reason: "no thread to merge with".to_owned() };
        let _full = shared.messages.try_send(Message::Merged { task, epoch, outcome });
    }
}

fn merge(work: &Work, order: &MergeOrder) -> MergeOutcome {
    match work.accept(&order.workspace, &order.message, order.known.as_deref()) {
        Ok(Accepted::Merged { commit, .. } | Accepted::Already { commit }) => {
            MergeOutcome::Merged { commit: Some(commit) }
        }
        Ok(Accepted::Nothing { .. }) => MergeOutcome::Merged { commit: None },
        Ok(Accepted::Conflict { files, .. }) => {
            let branch = work.branch();
            let advice = format!(
                "Your work is committed on the branch of your workspace. Merge the branch `{branch}` into it (`git merge \
                 {branch}`), resolve the conflicts so that both sides keep their meaning, run the checks, commit, and report \
                 the task done again. Change nothing else."
            );
            MergeOutcome::Conflict { files, advice }
        }
        Err(error) => MergeOutcome::Failed { reason: error.to_string() },
    }
}
