//! What reaches the driver from everything outside.

use rekindle_core::event::{PauseReason, UsageLeft};
use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_core::input::{MergeOutcome, Noted, PreflightTried, Refused, SetupSeen};
use rekindle_core::refusal::Refusal;
use rekindle_core::report::{Baseline, CheckResult, Evidence};
use rekindle_core::steering::PersonProcess;

use crate::control::Called;

pub enum Message {
    /// An agent's process is recorded and runs.
    Started {
        attempt: AttemptId,
        pid: u32,
        shim_pid: u32,
    },
    /// An attempt could not be started.
    NotStarted {
        attempt: AttemptId,
        reason: String,
    },
    /// The machine lacked the resources for something: nothing of it was started.
    Refused {
        what: Refused,
        refusal: Refusal,
    },
    Grew {
        attempt: AttemptId,
    },
    /// An attempt's shim is gone: its exit record, or the lack of one, says how it ended.
    Ended {
        attempt: AttemptId,
    },
    /// The checks of a claim have ended.
    ChecksDone {
        task: TaskId,
        epoch: Epoch,
        evidence: Evidence,
    },
    /// The checks of a task were run before its agent was started.
    BaselineSeen {
        /// The attempt that is being started.
        attempt: AttemptId,
        task: TaskId,
        baseline: Baseline,
    },
    /// Accepted work was merged, or could not be.
    Merged {
        task: TaskId,
        epoch: Epoch,
        outcome: MergeOutcome,
    },
    /// The set-up of a task's worktree began or ended.
    SetUp {
        task: TaskId,
        seen: SetupSeen,
    },
    /// The worktree of an attempt could not be set up: nothing of the attempt was started.
    SetupFailed {
        attempt: AttemptId,
        task: TaskId,
        reason: String,
    },
    /// The worktree in which a claim is to be proven could not be set up: none of its checks was run.
    ChecksNotSetUp {
        task: TaskId,
        epoch: Epoch,
        reason: String,
    },
    /// The checks of the plan were run once before the first agent starts.
    Preflight(PreflightTried),
    /// Something outside was fixed, or is being waited for: this is recorded.
    Noted(Noted),
    /// The plan's health commands were run.
    HealthChecked {
        results: Vec<CheckResult>,
    },
    /// The user's command was asked how much of the allowance is left.
    UsageSeen(UsageLeft),
    Silent {
        attempt: AttemptId,
        quiet_ms: u64,
        evidence: String,
    },
    /// A message was written to a running agent's input.
    MessageTaken {
        attempt: AttemptId,
        /// The message's number within the attempt.
        number: u32,
    },
    /// The program in which a person worked on a task has ended.
    PersonLeft {
        task: TaskId,
        by: PersonProcess,
        /// What changed meanwhile, a line each.
        changed: Vec<String>,
    },
    /// A caller sent a request through the control socket.
    Called(Called),
    /// A signal to this process, or `rekindle pause`.
    Pause(PauseReason),
    Pressure {
        short: Option<Refusal>,
    },
    /// A background check of the whole store found damage.
    StoreDamaged {
        problem: String,
    },
    /// A person asks from elsewhere for the run's status.
    StatusAsked {
        reply: Box<dyn FnOnce(String) + Send>,
    },
    /// The plan's file differs from the pinned plan.
    PlanFileChanged {
        hash: String,
    },
}

impl Message {
    /// The same message again, if it only says where to look: only such a look can be interrupted by the store.
    pub(crate) fn looks_again(&self) -> Option<Self> {
        match self {
            Self::Grew { attempt } => Some(Self::Grew { attempt: *attempt }),
            Self::Ended { attempt } => Some(Self::Ended { attempt: *attempt }),
            _ => None,
        }
    }
}

impl From<Called> for Message {
    fn from(called: Called) -> Self {
        Self::Called(called)
    }
}
