//! Where work is done and what becomes of it: workspaces, snapshots at the boundaries of attempts, merges, cleanup. `git`
//! knows how to do each of them; the core and the driver decide when.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rekindle_core::ids::{AttemptId, TaskId};
use rekindle_core::input::{MergeOutcome, Noted, Refused};
use rekindle_core::report::Evidence;

use super::Shared;
use crate::durable;
use crate::git::{self, Accepted, Place, Work};
use crate::refusal;
use crate::world::Message;
use crate::world::{CheckOrder, LeaveOrder, MergeOrder};

/// Longest wait for jobs in progress when a coordinator exits: the next one takes up those that are interrupted.
const LEAVE_BUDGET: Duration = Duration::from_secs(60);

/// Pause before a retry of something that the machine refused for now, such as a git lock held by another process.
const AGAIN: Duration = Duration::from_secs(2);

/// If a disk takes longer than this to sync, it is named as what is waited for.
const SLOW_DISK: Duration = Duration::from_secs(30);

/// Snapshots, merges and removals in progress.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    at_work: Mutex<AtWork>,
    through: Condvar,
    /// How often each workspace was asked for: one that is wanted again is not removed. At most one entry per task.
    wanted: Mutex<BTreeMap<String, u64>>,
    /// Held during a removal: a job that wants a workspace waits for the removal to end.
    removing: Mutex<()>,
}

#[derive(Debug, Default)]
struct AtWork {
    count: usize,
    leaving: bool,
}

impl Jobs {
    fn change(&self, change: impl FnOnce(&mut AtWork)) {
        change(&mut self.at_work.lock().unwrap_or_else(PoisonError::into_inner));
        self.through.notify_all();
    }

    /// Waits until no job is in progress. Jobs that wait for the machine are told to end.
    pub(super) fn wait(&self) {
        self.change(|at_work| at_work.leaving = true);
        let at_work = self.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        let _in_time = self.through.wait_timeout_while(at_work, LEAVE_BUDGET, |at_work| at_work.count > 0);
    }

    /// Waits before a retry. Returns false when the coordinator is exiting: the next one tries again.
    fn pause(&self) -> bool {
        let at_work = self.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.through.wait_timeout_while(at_work, AGAIN, |at_work| !at_work.leaving);
        !waited.unwrap_or_else(PoisonError::into_inner).0.leaving
    }

    /// Registers that a workspace is about to be used for work, reading or a merge. Called before anything is started, in
    /// the order of the decisions.
    pub(super) fn want(&self, key: Option<&str>) {
        let Some(key) = key else { return };
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        *wanted.entry(key.to_owned()).or_default() += 1;
    }

    fn times_wanted(&self, key: Option<&str>) -> u64 {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        key.and_then(|key| wanted.get(key).copied()).unwrap_or(0)
    }

    /// Removes a workspace unless it was wanted since.
    fn remove_unwanted<T>(&self, key: &str, times: u64, remove: impl FnOnce() -> T) -> Option<T> {
        let _others_wait = self.removing.lock().unwrap_or_else(PoisonError::into_inner);
        (self.times_wanted(Some(key)) == times).then(remove)
    }

    fn after_removals(&self) {
        drop(self.removing.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn leaving(&self) -> bool {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner).leaving
    }
}

impl Shared {
    /// The directory of a workspace, created if it does not exist; without a key, the project's own.
    pub(super) fn place(&self, key: Option<&str>) -> Result<PathBuf, String> {
        self.made_place(key).map_err(|error| format!("there is no workspace for {}: {error}", key.unwrap_or_default()))
    }

    fn made_place(&self, key: Option<&str>) -> git::Result<PathBuf> {
        let (Some(key), Some(work)) = (key, &self.work) else { return Ok(self.workspace.clone()) };
        self.jobs.after_removals();
        let made = work.workspace(key);
        self.put_on_record(work, None);
        Ok(made?.dir)
    }

    /// The same for reading only: an existing workspace is not touched, because an agent may be working in it.
    pub(super) fn standing_place(&self, key: Option<&str>) -> Result<PathBuf, String> {
        let standing = key.zip(self.work.as_ref()).and_then(|(key, work)| work.standing(key));
        standing.map_or_else(|| self.place(key), Ok)
    }

    /// The same for checks of proven work: a refusal by the machine shows nothing about the work, so it is retried. `None`
    /// when the coordinator exits meanwhile.
    pub(super) fn patient_place(&self, order: &CheckOrder) -> Option<Result<PathBuf, String>> {
        let key = order.workspace.as_deref();
        self.jobs.after_removals();
        if let Some(standing) = key.zip(self.work.as_ref()).and_then(|(key, work)| work.standing(key)) {
            return Some(Ok(standing));
        }
        let checks = Refused::Checks(order.task.clone(), order.epoch);
        let made = self.persistently(&order.task, &checks, "its workspace", || self.made_place(key))?;
        Some(made.map_err(|error| format!("there is no workspace for {}: {error}", key.unwrap_or_default())))
    }

    /// Says which artifacts the tasks of a workspace promise: they are kept although git ignores them.
    pub(super) fn declare(&self, key: Option<&str>, task: &TaskId, declared: &[String]) {
        if let Some(work) = &self.work {
            // A name that cannot be a workspace's has none to declare anything for.
            let _no_workspace = work.declare(key.unwrap_or(task.as_str()), declared);
        }
    }

    /// Takes a snapshot of a workspace before or after an attempt.
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
        self.put_on_record(work, Some(task));
        taken.map_err(|error| format!("the workspace of {task} could not be kept: {error}"))
    }

    /// The new files of a workspace before its checks run; `None` without a separate workspace or if git cannot tell.
    pub(super) fn untracked(&self, order: &CheckOrder) -> Option<git::Untracked> {
        let (work, key) = (self.work.as_ref()?, order.workspace.as_deref()?);
        work.untracked(key).ok()
    }

    /// Files that checks made are not a result. If they cannot be recorded, they are merged with the rest: nothing is lost
    /// by that.
    pub(super) fn made_by_checks(&self, order: &CheckOrder, before: Option<&git::Untracked>, beside: git::Beside) {
        if let (Some(work), Some(key), Some(before)) = (&self.work, order.workspace.as_deref(), before) {
            let _merged_with_the_rest = work.made_by_checks(key, before, beside);
        }
    }

    /// Whether the work of a proven claim is on disk: only then may it be accepted. A disk that refuses is asked again;
    /// false when the coordinator exits meanwhile, and the next one runs the checks again.
    pub(super) fn is_on_disk(&self, order: &CheckOrder, evidence: &Evidence) -> bool {
        if !evidence.passed() {
            return true;
        }
        let Ok(dir) = self.standing_place(order.workspace.as_deref()) else { return true };
        let artifacts = order.artifacts.iter().map(|path| dir.join(path));
        let places = durable::file_systems(std::iter::once(dir.clone()).chain(artifacts));
        let checks = Refused::Checks(order.task.clone(), order.epoch);
        self.persistently(&order.task, &checks, "its disk", || self.synced(&order.task, &places))
            .is_some_and(|done| done.is_ok())
    }

    /// Syncs file systems on a separate thread, so that a disk that hangs can be named.
    fn synced(&self, task: &TaskId, places: &[PathBuf]) -> git::Result<()> {
        let at = |place: &Path, source| git::Error::Io { path: place.to_owned(), source };
        let (done, answer) = sync_channel(1);
        let theirs = places.to_vec();
        let sync = move || {
            let synced = theirs.iter().try_for_each(|place| durable::sync(place).map_err(|source| at(place, source)));
            let _nobody_waits = done.send(synced);
        };
        let first = places.first().map_or(Path::new(""), PathBuf::as_path);
        std::thread::Builder::new().name("sync".to_owned()).spawn(sync).map_err(|source| at(first, source))?;
        loop {
            match answer.recv_timeout(SLOW_DISK) {
                Ok(synced) => return synced,
                Err(RecvTimeoutError::Timeout) if !self.jobs.leaving() => {
                    let detail = format!("{} is still being written to disk", first.display());
                    self.note(Some(task), "waiting_for_disk", detail);
                }
                Err(_) => {
                    let source = std::io::Error::other("it was not written to disk in time");
                    return Err(at(first, source));
                }
            }
        }
    }

    /// Repeats something with git or the disk until the machine no longer refuses it, records once what is waited for, holds
    /// starts meanwhile, and returns the result. `None` when the coordinator exits first.
    fn persistently<T>(
        &self,
        task: &TaskId,
        order: &Refused,
        what: &str,
        act: impl Fn() -> git::Result<T>,
    ) -> Option<git::Result<T>> {
        let mut told = false;
        loop {
            match act() {
                Err(error) if error.passes() => {
                    if !std::mem::replace(&mut told, true) {
                        self.note(Some(task), "waiting_for_machine", format!("{what} is waited for: {error}"));
                    }
                    // At every retry: the hold of an earlier one may be over, and whatever is refused during a hold is part
                    // of it.
                    let refusal = refusal::of_git(&error, &self.state_dir);
                    let _leaving = self.messages.send(Message::Refused { what: order.clone(), refusal });
                    if !self.jobs.pause() {
                        return None;
                    }
                }
                done => return Some(done),
            }
        }
    }

    /// Records what git has noted.
    fn put_on_record(&self, work: &Work, task: Option<&TaskId>) {
        for detail in work.repo().notes() {
            self.note(task, "stale_lock_removed", detail);
        }
    }

    /// The key of the workspace that a directory belongs to.
    pub(super) fn key_of(&self, dir: &Path) -> Option<String> {
        let inside = dir.strip_prefix(self.work.as_ref()?.worktrees()).ok()?;
        Some(inside.components().next()?.as_os_str().to_str()?.to_owned())
    }

    pub(super) fn note(&self, task: Option<&TaskId>, event_type: &str, detail: String) {
        let noted = Noted { task: task.cloned(), event_type: event_type.to_owned(), detail };
        let _leaving = self.messages.send(Message::Noted(noted));
    }

    fn in_background(self: &Arc<Self>, name: &str, job: impl FnOnce(&Self) + Send + 'static) -> bool {
        self.jobs.change(|at_work| at_work.count += 1);
        let worker = Arc::clone(self);
        let run = move || {
            job(&worker);
            worker.jobs.change(|at_work| at_work.count -= 1);
        };
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(run).is_ok();
        if !spawned {
            self.jobs.change(|at_work| at_work.count -= 1);
        }
        spawned
    }
}

/// An attempt is over: the files it left are kept, and its workspace is removed if it is no longer needed.
pub(super) fn leave_in_background(shared: &Arc<Shared>, order: LeaveOrder) {
    let times = shared.jobs.times_wanted(order.workspace.as_deref());
    let leave = move |shared: &Shared| {
        let LeaveOrder { attempt, task, workspace, tidy, declared } = order;
        shared.declare(workspace.as_deref(), &task, &declared);
        // Files that cannot be kept stay where they are: nothing is deleted without proof that it is somewhere else.
        let kept = shared.snapshot(workspace.as_deref(), &task, attempt, "end");
        if let (Ok(()), true, Some(key), Some(work)) = (kept, tidy, &workspace, &shared.work) {
            if let Some(dir) = work.standing(key) {
                shared.tear_down(key, &dir, &task);
            }
            let removed = shared.jobs.remove_unwanted(key, times, || work.remove(key, attempt.0, "removed"));
            shared.put_on_record(work, Some(&task));
            if let Some(Ok(git::Removed::Kept(left))) = removed {
                let named = left.first().map(|left| format!("{} {}", left.path, left.why)).unwrap_or_default();
                let detail = format!("{} stays, because {named}", work.path(key).display());
                shared.note(Some(&task), "worktree_kept", detail);
            }
        }
    };
    // Without a thread the next attempt takes the snapshot before it starts.
    let _kept_later = shared.in_background("leave", leave);
}

/// Removes the workspaces that a complete run has left: those of skipped tasks, and those whose removal was interrupted. A
/// workspace whose content could not be kept elsewhere stays.
pub(super) fn tidy(shared: &Shared) {
    let Some(work) = &shared.work else { return };
    for key in work.own_worktrees() {
        if let (Some(dir), Ok(task)) = (work.standing(&key), TaskId::new(&key)) {
            shared.tear_down(&key, &dir, &task);
        }
    }
    let _told_by_clean = work.tidy_up();
}

/// Merges accepted work in the background.
pub(super) fn merge_in_background(shared: &Arc<Shared>, order: MergeOrder) {
    let (task, epoch) = (order.task.clone(), order.epoch);
    shared.jobs.want(Some(&order.workspace));
    let merge = move |shared: &Shared| {
        let outcome = match &shared.work {
            Some(work) => shared.merge(work, &order),
            None => Some(MergeOutcome::Failed { reason: "the repository is gone".to_owned() }),
        };
        // A merge that has not finished when the coordinator exits is ordered again by the next one.
        if let Some(outcome) = outcome {
            let message = Message::Merged { task: order.task, epoch: order.epoch, outcome };
            let _leaving = shared.messages.send(message);
        }
    };
    if !shared.in_background("merge", merge) {
        let outcome = MergeOutcome::Failed { reason: "no thread to merge with".to_owned() };
        let _full = shared.messages.try_send(Message::Merged { task, epoch, outcome });
    }
}

impl Shared {
    fn merge(&self, work: &Work, order: &MergeOrder) -> Option<MergeOutcome> {
        self.declare(Some(&order.workspace), &order.task, &order.declared);
        let accept = || {
            let accepted = work.accept(&order.workspace, &order.message, order.known.as_deref());
            self.put_on_record(work, Some(&order.task));
            accepted
        };
        let merge = Refused::Merge(order.task.clone(), order.epoch);
        Some(match self.persistently(&order.task, &merge, "its merge", accept)? {
            Ok(Accepted::Merged { commit, left, .. }) => {
                for left in left {
                    let detail = format!("{} {}", left.path, left.why);
                    self.note(Some(&order.task), "not_merged", detail);
                }
                MergeOutcome::Merged { commit: Some(commit) }
            }
            Ok(Accepted::Already { commit }) => MergeOutcome::Merged { commit: Some(commit) },
            Ok(Accepted::Nothing { .. }) => MergeOutcome::Merged { commit: None },
            Ok(Accepted::Conflict { files, .. }) => conflict(work.branch(), files),
            Err(error) => MergeOutcome::Failed { reason: error.to_string() },
        })
    }
}

fn conflict(branch: &str, files: Vec<String>) -> MergeOutcome {
    let advice = format!(
        "Your work is committed on the branch of your workspace. Merge the branch `{branch}` into it (`git merge {branch}`), \
         resolve the conflicts so that both sides keep their meaning, run the checks, commit, and report the task done again. \
         Change nothing else."
    );
    MergeOutcome::Conflict { files, advice }
}
