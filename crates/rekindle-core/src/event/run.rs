//! What happens to the run as a whole: coordinators, pauses, waves, its end.

use serde::{Deserialize, Serialize};

use super::{AttemptsLost, Finish, Landed, Pause, PlanReloaded, Recovery, Resume, TeamStanding, WorkBranch};
use crate::limits::Limits;
use crate::plan::Plan;
use crate::pull_request::PullRequestChange;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEvent {
    /// A run began; the plan is pinned here.
    RunStarted {
        plan: Box<Plan>,
        plan_path: String,
        /// The git branch it was started on, if in a repository.
        branch: Option<String>,
    },
    /// A coordinator took over the state.
    CoordinatorStarted {
        pid: u32,
        /// The limits in force from now on.
        limits: Box<Limits>,
        boot_id: String,
        /// Time since that boot, to measure time over restarts without trusting the wall clock.
        boottime_ms: u64,
    },
    /// A coordinator found the state as a crash left it and repaired it.
    CoordinatorRecovered(Recovery),
    /// Bundles of attempts that the log does not know were found.
    AttemptsLost(AttemptsLost),
    /// A fact from outside was taken over during recovery or reconciliation.
    StateReconciled {
        event_type: String,
        detail: String,
    },
    /// A pause was ordered: no new work, agents are stopped.
    SessionPause(Pause),
    /// All agents of a paused run have ended.
    RunPaused {},
    SessionResume(Resume),
    /// An operator opened work in a finished run; it can be continued.
    RunReopened {},
    /// Every reachable task of a wave has ended; the disk is inspected before the next wave starts.
    WaveEnded {
        wave: u32,
    },
    DiskInspected {
        /// Complete tasks whose artifacts are gone.
        missing: u32,
    },
    /// The tasks of a wave may begin.
    WaveStarted {
        wave: u32,
    },
    /// The plan's file differs from the pinned plan.
    PlanChanged {
        /// Current hash of the file.
        hash: String,
    },
    /// A person had the changed plan taken over.
    PlanReloaded(Box<PlanReloaded>),
    /// The branch that accepted work goes to.
    BranchMade(WorkBranch),
    /// A person took the result into a branch of their own.
    Landed(Landed),
    /// What became of the run's pull request.
    PullRequest(Box<PullRequestChange>),
    /// The agents were checked after a pause or a crash.
    TeamChecked(TeamStanding),
    RunFinished(Finish),
}
