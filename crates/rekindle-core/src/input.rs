//! What can happen: everything that reaches a decision, as past facts. Only these enter the core.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::activity::{Measure, StreamEvent, Transcript, UnderWay};
use crate::budget::Calendar;
use crate::event::{AgentSaid, Cleaned, ClockSeen, Landed, PauseReason, UsageLeft, WorkBranch};
use crate::ids::{AgentName, AttemptId, Epoch, QuestionId, RunId, TaskId};
use crate::limits::Limits;
use crate::phone::{PhoneMessage, PhoneOrder};
use crate::plan::Plan;
use crate::pull_request::{Feedback, PullRequestChange};
use crate::refusal::Refusal;
use crate::report::{Baseline, Channel, CheckResult, Evidence, Exit, Report};
use crate::steering::{PersonProcess, Undoable};

#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// An operator asked for a run of a plan.
    RunRequested {
        run: RunId,
        plan: Box<Plan>,
        plan_path: String,
        /// The git branch, in a repository.
        branch: Option<String>,
    },
    /// A coordinator took over the state.
    CoordinatorStarted {
        pid: u32,
        limits: Box<Limits>,
        boot_id: String,
        /// Time since that boot.
        boottime_ms: u64,
        /// What was found of every attempt that is open in the state.
        found: Vec<(AttemptId, Found)>,
        /// Complete tasks with artifacts that are no longer on disk.
        missing: Vec<(TaskId, Vec<String>)>,
    },
    AttemptStarted {
        attempt: AttemptId,
        pid: u32,
        shim_pid: u32,
        /// Bytes of its prompt that are rekindle's own.
        own_bytes: u64,
    },
    /// An agent's process has ended, by its exit record.
    AttemptExited {
        attempt: AttemptId,
        epoch: Epoch,
        exit: Exit,
    },
    /// Nothing proves how an attempt ended: its shim is dead and what was left of its tree has been ended.
    AttemptLost {
        attempt: AttemptId,
        /// The whole machine went down.
        with_host: bool,
    },
    /// An attempt could not be started at all.
    AttemptNotStarted {
        attempt: AttemptId,
        reason: String,
    },
    /// An attempt was silent for longer than the limit.
    AttemptSilent {
        attempt: AttemptId,
        quiet_ms: u64,
        evidence: String,
    },
    /// An agent's own stream said something that decisions depend on.
    Streamed {
        attempt: AttemptId,
        event: StreamEvent,
    },
    /// An agent has ended, and its own session was inspected.
    SessionClosed {
        attempt: AttemptId,
        /// Its total usage.
        measure: Measure,
        transcript: Transcript,
        /// The call that it was in the middle of.
        cut_off: Option<String>,
        /// The calls that its resumed conversation lacks or contains without an outcome.
        under_way: UnderWay,
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
    /// What an agent said last: at the end of its turn, and at its own end.
    AgentSaid(AgentSaid),
    /// The checks of a task were run before its agent was started.
    BaselineSeen {
        /// The attempt that is being started.
        attempt: AttemptId,
        task: TaskId,
        baseline: Baseline,
    },
    Reported {
        attempt: AttemptId,
        /// The epoch its token names.
        epoch: Epoch,
        channel: Channel,
        report: Report,
    },
    /// The checks of a claim have ended.
    ChecksFinished {
        task: TaskId,
        epoch: Epoch,
        evidence: Evidence,
    },
    /// The disk was inspected: complete tasks whose artifacts are gone.
    DiskInspected {
        missing: Vec<(TaskId, Vec<String>)>,
    },
    /// Accepted work was merged, or could not be.
    WorkMerged {
        task: TaskId,
        epoch: Epoch,
        outcome: MergeOutcome,
    },
    /// The state directory has bundles of attempts that the log does not know, and a person said to continue without them.
    AttemptsLost {
        highest: AttemptId,
    },
    /// The branch that accepted work goes to was made.
    BranchMade(WorkBranch),
    /// The set-up of a task's worktree began or ended.
    SetUp {
        task: TaskId,
        seen: SetupSeen,
    },
    /// The worktree of an attempt could not be set up, so the attempt never started.
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
    /// The checks of the plan were run before the first agent started.
    Preflight(PreflightTried),
    /// Something outside was fixed, or is being waited for.
    Noted(Noted),
    /// The plan's health commands were run.
    HealthChecked {
        results: Vec<CheckResult>,
    },
    /// The user's command was asked what is left of the allowance.
    UsageSeen(UsageLeft),
    /// The machine was checked: whether it is short of something, and of what.
    PressureSeen {
        short: Option<Refusal>,
    },
    /// The machine had no room for something: nothing of it was started.
    Refused {
        what: Refused,
        refusal: Refusal,
    },
    /// The output of an attempt that has ended cannot be read to its end, however often it is retried.
    OutputUnreadable {
        attempt: AttemptId,
        reason: String,
    },
    /// The plan's file was seen to differ from the pinned plan.
    PlanFileChanged {
        hash: String,
    },
    Ordered(Order),
    /// The calendar was read, in the person's time zone.
    CalendarSeen(Calendar),
    /// Both have news: nothing is decided by the one before the other is known.
    MomentSeen {
        clock: ClockSeen,
        calendar: Calendar,
    },
    /// The machine's clocks were read.
    ClockSeen(ClockSeen),
    TimePassed,
    /// The same for all but these attempts: their processes are gone and their last words have not been read yet, so no
    /// limit applies to them.
    TimePassedBut(BTreeSet<AttemptId>),
}

/// What the checks of a plan said in a fresh worktree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PreflightTried {
    pub results: Vec<CheckResult>,
    /// Why the rest, or all of them, could not be run.
    pub problem: Option<String>,
    pub took_ms: u64,
}

/// What became of the set-up of a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupSeen {
    Started { command: String },
    Finished { took_ms: u64 },
}

impl SetupSeen {
    /// The same with its text made presentable.
    pub fn with_text(self, clean: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Started { command } => Self::Started { command: clean(&command) },
            Self::Finished { took_ms } => Self::Finished { took_ms },
        }
    }
}

/// Something that changes no state and is only recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    /// The task that it is about.
    pub task: Option<TaskId>,
    /// A word for programs.
    pub event_type: String,
    /// A line for people.
    pub detail: String,
}

/// What a machine had no room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// An attempt: no process of it was started.
    Attempt(AttemptId),
    /// The checks of a claim, or some of them: nothing is known.
    Checks(TaskId, Epoch),
    /// The merge of accepted work: nothing was merged.
    Merge(TaskId, Epoch),
    Health,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MergeOutcome {
    /// The work is in the run's branch.
    Merged {
        /// The commit that contains it; `None` if nothing had changed.
        commit: Option<String>,
    },
    /// It does not fit what others have merged meanwhile.
    Conflict {
        files: Vec<String>,
        /// How to resolve it.
        advice: String,
    },
    Failed {
        reason: String,
    },
}

/// What was found of an attempt when a coordinator started. Attempts that ended are settled by inputs of their own, after
/// their output.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// It lives: its shim answered.
    Alive {
        /// The agent's process.
        pid: u32,
        shim_pid: u32,
    },
    /// Its shim lives but does not answer: keep it and ask again.
    Unresponsive,
    /// It has ended, according to its exit record.
    Finished(Exit),
    /// Its shim is dead; what was left of it has been ended.
    Lost,
    HostLost,
    NeverStarted,
    /// It never began, because the machine had no room for it.
    Refused(Refusal),
    /// Its bundle cannot be read and was set aside.
    Unreadable {
        reason: String,
    },
}

/// An operator's order: decided as it is, and sent through the control socket as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum Order {
    /// Stop agents, keep state, continue later.
    Pause(#[serde(with = "stop_flag")] PauseReason),
    /// Replace an agent now.
    Recover {
        agent: String,
    },
    Skip {
        task: TaskId,
        reason: String,
    },
    /// Stop the agent that is working on a task and give up the task, until it is reopened.
    #[serde(rename = "stop_task")]
    Stop {
        task: TaskId,
    },
    Retry {
        task: TaskId,
    },
    /// Complete a task on the operator's word.
    Complete {
        task: TaskId,
        result: Option<String>,
    },
    Answer {
        id: QuestionId,
        text: String,
    },
    Note {
        text: String,
    },
    /// Break a task into smaller ones.
    Split {
        task: TaskId,
        /// The parts, in order.
        subtasks: Vec<String>,
    },
    /// Forget what was learned from disagreements.
    ForgetFocus,
    /// Give up a task for good, on the operator's word.
    #[serde(rename = "fail_task")]
    Fail {
        task: TaskId,
        reason: String,
    },
    Reload {
        plan: Box<Plan>,
    },
    /// Add a task to the run.
    #[serde(rename = "add_task")]
    Add(Box<NewTask>),
    /// Change a task of the run.
    #[serde(rename = "edit_task")]
    Edit {
        task: TaskId,
        edit: Box<TaskEdit>,
    },
    /// Send a message to a task's agent.
    Tell {
        task: TaskId,
        text: String,
        /// Chosen by the caller: the same order sent twice is taken once.
        #[serde(default)]
        key: String,
    },
    /// Take over a task; its agent is stopped.
    Attach {
        task: TaskId,
        /// The program that the person works in.
        by: PersonProcess,
    },
    /// Give back a task whose program has ended.
    Detach {
        task: TaskId,
        by: PersonProcess,
        /// What changed meanwhile, a line each.
        changed: Vec<String>,
    },
    /// Give an order that can be cancelled for a moment.
    WithUndo {
        order: Undoable,
    },
    Undo {
        number: u64,
    },
    /// Record that the person took the result into a branch of their own.
    Landed(Landed),
    /// Record what became of the run's pull request.
    PullRequest(Box<PullRequestChange>),
    /// Turn comments on the pull request into rework.
    Feedback(Box<Feedback>),
    /// Record what is removed of a finished run.
    Clean(Cleaned),
    /// Act on orders that are due, if no coordinator does.
    ActOnDue,
    /// A person orders something from elsewhere.
    FromPhone {
        from: PhoneMessage,
        order: PhoneOrder,
    },
}

impl From<Undoable> for Order {
    fn from(order: Undoable) -> Self {
        match order {
            Undoable::Skip { task, reason } => Self::Skip { task, reason },
            Undoable::Complete { task, result } => Self::Complete { task, result },
            Undoable::Answer { id, text } => Self::Answer { id, text },
        }
    }
}

/// A task that a person adds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTask {
    pub id: TaskId,
    pub title: String,
    #[serde(default)]
    pub text: String,
    /// The tasks that must be complete before it.
    #[serde(default)]
    pub after: Vec<TaskId>,
    #[serde(default)]
    pub accept: Vec<String>,
    #[serde(default)]
    pub artifacts: Vec<String>,
    #[serde(default)]
    pub agent: Option<AgentName>,
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// What a person changes of a task; fields that are not given stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskEdit {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Vec<TaskId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// For an operator's pause, the socket says only whether it stops agents at once.
mod stop_flag {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::event::PauseReason;

    #[derive(Serialize, Deserialize)]
    struct Pause {
        stop: bool,
    }

    pub(super) fn serialize<S: Serializer>(reason: &PauseReason, to: S) -> Result<S::Ok, S::Error> {
        Pause { stop: *reason == PauseReason::Stop }.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PauseReason, D::Error> {
        let Pause { stop } = Pause::deserialize(from)?;
        Ok(if stop { PauseReason::Stop } else { PauseReason::Operator })
    }
}
