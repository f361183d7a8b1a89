//! Every kind of fact, with its fields as readers of the log see them.

use serde::{Deserialize, Serialize};

use super::{
    Added, AgentCompacted, AgentSaid, AgentStalled, AttemptsLost, ClockSeen, CompactionNear, CompactionOver,
    EnvironmentsDiffer, Finish, GateClosed, HandedOn, HealthSeen, Held, Pause, Recovery, Resume, SessionClosed,
    TeamStanding, UsageLeft, WorkBranch,
};
use crate::activity::{Failure, Measure};
use crate::cause::Cause;
use crate::ids::{AttemptId, QuestionId, TaskId};
use crate::limits::Limits;
use crate::plan::Plan;
use crate::report::{Baseline, Channel, Checkpoint, Evidence, Exit};
use crate::review::{Disagreement, GivenVerdict, Rework, Verdict};
use crate::{role::Role, state::Merging, strategy::Strategy, time::Time};

/// What happened. Fields are named as readers of the log see them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "body", rename_all = "snake_case")]
pub enum Body {
    /// A run began; the plan is pinned here.
    RunStarted {
        /// The plan, whole.
        plan: Box<Plan>,
        /// Where its file lies.
        plan_path: String,
        /// The git branch it was started on, in a repository.
        branch: Option<String>,
    },
    /// A coordinator took the state over.
    CoordinatorStarted {
        /// Its process.
        pid: u32,
        /// The limits in force from now on.
        limits: Limits,
        /// The machine's boot.
        boot_id: String,
        /// Time since that boot, to measure time over restarts without trusting the wall clock.
        boottime_ms: u64,
    },
    /// A coordinator found the state as a crash left it and made it whole.
    CoordinatorRecovered(Recovery),
    /// Bundles were found of attempts that the log does not know.
    AttemptsLost(AttemptsLost),
    /// A living agent was found and is supervised again.
    AgentAdopted {
        /// Its attempt.
        attempt: AttemptId,
        /// The agent's process.
        pid: u32,
        /// Its shim's process.
        shim_pid: u32,
    },
    /// An agent had been dispatched and nothing is left of it.
    OrphanAgentDetected {
        /// Its attempt.
        attempt: AttemptId,
        /// Its role.
        #[serde(rename = "type")]
        role: Role,
    },
    /// A fact from outside was taken over during recovery or reconciliation.
    StateReconciled {
        /// Which fact.
        event_type: String,
        /// In words.
        detail: String,
    },
    /// An attempt was decided on; its process is started after this is durable.
    Dispatched {
        /// The attempt.
        attempt: AttemptId,
        /// Its role.
        role: Role,
        /// Which `[agents.NAME]` runs it.
        cli: String,
        /// Its tasks in order.
        tasks: Vec<TaskId>,
        /// What the first task was blocked by.
        blocked_by: Vec<TaskId>,
        /// Whether earlier work on the task is taken up.
        resumed: bool,
        /// How it is started.
        #[serde(default)]
        strategy: Strategy,
        /// The CLI session that is resumed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// Whether only a report is asked for, after an end without one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        asks_for_report: bool,
        /// Why it is started this way.
        reason: String,
    },
    /// As `Dispatched`, said again for a replacement.
    Redispatched {
        /// The role.
        role: Role,
        /// Which try at the task.
        attempt: u32,
    },
    /// The agent's process runs.
    AgentStarted {
        /// The attempt.
        attempt: AttemptId,
        /// The agent's process.
        pid: u32,
        /// Its shim's process.
        shim_pid: u32,
        /// Bytes of its prompt that are neither the plan's words nor a record of the work.
        #[serde(default, skip_serializing_if = "super::facts::none")]
        own_bytes: u64,
    },
    /// A task was handed over: it is in progress, and this counts as one attempt at it.
    TaskStarted {
        /// The attempt.
        attempt: AttemptId,
        /// Which try.
        number: u32,
    },
    /// An agent claims that a task is complete; the checks run after this is durable.
    TaskClaimed {
        /// The attempt.
        attempt: AttemptId,
        /// How the report came.
        door: Channel,
        /// The outcome in the agent's words.
        result: Option<String>,
        /// The verdict that is being proven, where a reviewer's is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verdict: Option<Verdict>,
    },
    /// The checks are through.
    ChecksFinished {
        /// What was seen.
        evidence: Evidence,
        /// Whether it proves the claim.
        passed: bool,
    },
    /// A task is complete.
    TaskCompleted {
        /// The outcome in the agent's words.
        result: Option<String>,
        /// Neither artifacts nor checks: the agent's word alone.
        unproven: bool,
        /// No agent reported it: its checks, or a person, showed that it is done.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unreported: bool,
    },
    /// An agent gave a task up.
    TaskFailReported {
        /// The attempt.
        attempt: AttemptId,
        /// Why.
        reason: String,
    },
    /// An agent said where it stands.
    CheckpointSaved {
        /// Where.
        checkpoint: Checkpoint,
    },
    /// An agent broke its task into smaller ones, which it works through in order.
    SplitProposed {
        /// The parts, in order.
        subtasks: Vec<String>,
    },
    /// An agent or a person noted a decision.
    NoteRecorded {
        /// The decision.
        text: String,
    },
    /// An agent asked a person.
    QuestionAsked {
        /// Its number.
        id: QuestionId,
        /// Who asked.
        attempt: AttemptId,
        /// The question.
        text: String,
        /// Answers to choose from.
        options: Vec<String>,
        /// What a person needs to know.
        context: String,
        /// The answer `done` takes the work as it is.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        takes_work: bool,
    },
    /// A person answered.
    QuestionAnswered {
        /// Its number.
        id: QuestionId,
        /// The answer.
        answer: String,
    },
    /// A report was refused.
    ReportRefused {
        /// The attempt.
        attempt: AttemptId,
        /// Why.
        reason: String,
    },
    /// A task took longer than its role may.
    RoleTimeout {
        /// The role.
        role: Role,
        /// The attempt.
        attempt: AttemptId,
        /// The limit that was passed.
        timeout_ms: u64,
    },
    /// No sign of life.
    AgentHung {
        /// The attempt.
        attempt: AttemptId,
        /// How long.
        quiet_ms: u64,
        /// What was looked at.
        evidence: String,
    },
    /// An attempt is to be stopped.
    StopOrdered {
        /// The attempt.
        attempt: AttemptId,
        /// What its end will be put down to.
        #[serde(flatten)]
        cause: Cause,
        /// Without grace.
        at_once: bool,
    },
    /// An agent ended by a signal or with a code other than 0, with work open.
    AgentCrashed {
        /// The attempt.
        attempt: AttemptId,
        /// Exit code.
        code: Option<i32>,
        /// Signal.
        signal: Option<i32>,
    },
    /// An agent's process has ended, by its exit record.
    AttemptExited {
        /// The attempt.
        attempt: AttemptId,
        /// How it ended.
        exit: Exit,
    },
    /// An attempt is over: nothing of it is running and none of its claims is open.
    AttemptEnded {
        /// The attempt.
        attempt: AttemptId,
        /// Why.
        #[serde(flatten)]
        cause: Cause,
        /// What it said last, in one short line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_words: Option<String>,
    },
    /// A task goes back into the queue.
    TaskRequeued {
        /// Why the last attempt ended.
        #[serde(flatten)]
        cause: Cause,
        /// Whether that attempt counts.
        counted: bool,
        /// Not before this time.
        not_before: Option<Time>,
        /// In words, for `why`.
        reason: String,
    },
    /// A task waits for a person's answer; its agent has ended.
    TaskParked {
        /// The question.
        question: QuestionId,
    },
    /// A task reached its limit.
    WorkflowFailed {
        /// Which limit.
        reason: String,
        /// The last cause, in words.
        detail: String,
    },
    /// An operator skipped a task.
    TaskSkipped {
        /// Why.
        reason: String,
    },
    /// A task that had ended is open again, with a new epoch.
    TaskReopened {
        /// Why.
        reason: String,
        /// Whether its attempts start from zero.
        reset_attempts: bool,
    },
    /// An agent's program failed to start too often.
    BreakerOpened {
        /// Which `[agents.NAME]`.
        cli: String,
        /// Until when it is left alone.
        until: Time,
    },
    /// A person should look.
    PersonAlerted {
        /// What it is about.
        text: String,
        /// The commands to choose from.
        choices: Vec<String>,
    },
    /// The agent's own session is known.
    AgentSession {
        /// The attempt.
        attempt: AttemptId,
        /// The id that resumes it.
        session_id: String,
        /// The model, where it says so.
        model: Option<String>,
        /// The session that should have come back; given only when another did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected: Option<String>,
    },
    /// What an agent has used so far, and how full its context is.
    AgentMeasured {
        /// The attempt.
        attempt: AttemptId,
        /// How much.
        #[serde(flatten)]
        measure: Measure,
    },
    /// An agent's context was compacted: it has forgotten.
    AgentCompacted(AgentCompacted),
    /// An agent goes round in circles.
    AgentStalled(AgentStalled),
    /// After a compaction an agent was seen at its task again.
    AgentOnTask {
        /// The attempt.
        attempt: AttemptId,
    },
    /// An agent's context is nearly full: it gets no further task, and a compaction is prepared for.
    CompactionStart(CompactionNear),
    /// The compaction that was prepared for is through.
    CompactionComplete(CompactionOver),
    /// A message for a running agent; it is delivered after this is durable.
    AgentTold {
        /// The attempt.
        attempt: AttemptId,
        /// The message's number within the attempt: one number is delivered once.
        number: u32,
        /// The message.
        text: String,
        /// Whether it reminds the agent of its open task, which is done once.
        #[serde(default)]
        reminder: bool,
    },
    /// An agent that waits for messages gets no more: it is to leave.
    InputClosed {
        /// The attempt.
        attempt: AttemptId,
    },
    /// An agent's turn or session failed, by its own stream.
    AgentFailed {
        /// The attempt.
        attempt: AttemptId,
        /// How.
        #[serde(flatten)]
        failure: Failure,
    },
    /// An agent ended its turn.
    TurnEnded {
        /// The attempt.
        attempt: AttemptId,
        /// Whether it says that it worked.
        ok: bool,
    },
    /// What an agent said last.
    AgentSaid(AgentSaid),
    /// What a task's checks said before anybody worked on it.
    BaselineSeen(Baseline),
    /// What an agent that has ended left of its own session.
    SessionClosed(SessionClosed),
    /// An account has to wait: nothing more is started on it until then.
    GateClosed(GateClosed),
    /// An agent on the account worked: more may run at once.
    GateWidened {
        /// Whose.
        account: String,
        /// How many.
        allowed: u32,
    },
    /// An account no longer has to wait.
    GateOpened {
        /// Whose.
        account: String,
    },
    /// A pause was ordered: no new work, agents are stopped.
    SessionPause(Pause),
    /// All agents of a paused run have ended.
    RunPaused {},
    /// A paused run goes on.
    SessionResume(Resume),
    /// The machine is short of something: nothing new is started until it no longer is.
    StartsHeld(Held),
    /// The machine has room again.
    StartsReleased {},
    /// An operator opened work in a finished run; it can be continued.
    RunReopened {},
    /// Every task of a wave that can be reached has ended; the disk is looked at before the next begins.
    WaveEnded {
        /// Which.
        wave: u32,
    },
    /// The disk was looked at.
    DiskInspected {
        /// Complete tasks whose artifacts are gone.
        missing: u32,
    },
    /// The tasks of a wave may begin.
    WaveStarted {
        /// Which.
        wave: u32,
    },
    /// The plan's file differs from the pinned plan.
    PlanChanged {
        /// Hash of the file now.
        hash: String,
    },
    /// The run is over.
    RunFinished(Finish),
    /// The work of a task was proven and goes to a reviewer.
    TaskHandedOn(HandedOn),
    /// A reviewer gave a verdict.
    VerdictGiven(GivenVerdict),
    /// A task's work goes back to its developer.
    TaskRework(Rework),
    /// The critic failed too often: the work goes to the auditor without it.
    CriticBypassed {},
    /// A critic passed what an auditor failed.
    ReviewAuditDisagreement(Disagreement),
    /// The auditor found issues that the critic missed although every check passes.
    CriticMissedQualityIssue {
        /// Which.
        issues: Vec<String>,
    },
    /// Checks passed in some environments and failed in others.
    EnvironmentDisagreement(EnvironmentsDiffer),
    /// What was learned from disagreements is forgotten.
    FocusReset {},
    /// A task that is not in the plan's file.
    TaskAdded(Box<Added>),
    /// A task proved too large again and again: it should be split.
    SplitSuggested {
        /// Why.
        reason: String,
    },
    /// Accepted work is to be merged into the run's branch.
    MergeOrdered(Merging),
    /// Accepted work is in the run's branch.
    WorkMerged {
        /// The commit that holds it; nothing where nothing had changed.
        commit: Option<String>,
    },
    /// Accepted work does not fit what others have merged meanwhile.
    MergeConflicted {
        /// The files.
        files: Vec<String>,
    },
    /// The branch that accepted work goes to.
    BranchMade(WorkBranch),
    /// The plan's health commands are to be run.
    HealthOrdered {},
    /// What they said.
    HealthChecked(HealthSeen),
    /// The user's own command is to be asked what is left of the allowance.
    UsageAsked {},
    /// What is left of it.
    UsageSeen(UsageLeft),
    /// A task completed shortly before a pause or a crash is looked at again.
    ValidationStarted {},
    /// An agent that was found alive and shows nothing was asked how it stands.
    StatusAsked {
        /// The attempt.
        attempt: AttemptId,
    },
    /// It showed that it is there.
    StatusAnswered {
        /// The attempt.
        attempt: AttemptId,
    },
    /// An idle agent goes on with another task of its name.
    TaskAssigned {
        /// The attempt.
        attempt: AttemptId,
    },
    /// The agents were looked at after a pause or a crash.
    TeamChecked(TeamStanding),
    /// The machine slept, or its wall clock was set.
    ClockMoved(ClockSeen),
}
