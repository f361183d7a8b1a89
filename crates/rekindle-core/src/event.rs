//! The facts in the log. An event is past, durable and enough: replaying all of them gives the whole state.

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::ids::{AgentName, AttemptId, Epoch, QuestionId, RunId, TaskId};
use crate::limits::Limits;
use crate::plan::Plan;
use crate::report::{Checkpoint, Door, Evidence, Exit};
use crate::role::Role;
use crate::time::Time;

/// One fact, with the envelope that every reader can rely on. Sequence and hash are added by the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When it was decided.
    pub time: Time,
    /// The run it belongs to.
    pub run: RunId,
    /// The agent it is about.
    pub agent: Option<AgentName>,
    /// The task it is about.
    pub task: Option<TaskId>,
    /// The epoch of the attempt it is about.
    pub epoch: Option<Epoch>,
    /// What happened.
    pub body: Body,
}

/// How a run stands when it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every task is complete or skipped.
    Complete,
    /// Some task failed or can no longer be reached.
    Failed,
}

/// Why a run was paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// `rekindle pause`.
    Operator,
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// `rekindle stop`, or Ctrl-C twice: at once.
    Stop,
    /// `--no-wait`, and only a person or a reset is missing.
    NoWait,
    /// The account's usage limit.
    UsageLimit,
    /// Something is wrong with the system.
    SystemError,
}

impl PauseReason {
    /// The reason in the words of the pause message.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Operator | Self::Interrupt | Self::Terminate | Self::Stop | Self::NoWait => "User stop",
            Self::UsageLimit => "Usage limit",
            Self::SystemError => "System error",
        }
    }
}

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
    CoordinatorRecovered {
        /// Agents that were lost.
        orphaned_agents: u32,
        /// Facts found outside the log and taken into it.
        events_reconciled: u32,
        /// Agents that were still alive and were adopted.
        adopted: u32,
        /// Agents that had finished meanwhile.
        finished: u32,
    },
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
        /// The door.
        door: Door,
        /// The outcome in the agent's words.
        result: Option<String>,
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
    /// A pause was ordered: no new work, agents are stopped.
    SessionPause {
        /// Why.
        reason: PauseReason,
        /// Usage left, where known.
        remaining_percent: Option<u8>,
        /// When usage resets, where known.
        resets_at: Option<Time>,
    },
    /// All agents of a paused run have ended.
    RunPaused {},
    /// A paused run goes on.
    SessionResume {
        /// How often by now.
        resume_count: u32,
        /// Completions that are validated again.
        tasks_to_revalidate: u32,
    },
    /// The machine is short of something: nothing new is started until it no longer is.
    StartsHeld {
        /// Of what.
        reason: String,
    },
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
    RunFinished {
        /// How it stands.
        outcome: Outcome,
        /// Complete tasks.
        complete: u32,
        /// Failed tasks.
        failed: u32,
        /// Skipped tasks.
        skipped: u32,
        /// Tasks that can no longer be reached.
        unreachable: u32,
    },
}

impl Body {
    /// The name that readers of the log see. Names that carry a role are made from it.
    #[must_use]
    pub fn name(&self) -> String {
        let fixed = match self {
            Self::Dispatched { role, .. } => return format!("{role}_dispatched"),
            Self::Redispatched { role, .. } => return format!("{role}_redispatched"),
            Self::RoleTimeout { role, .. } => return format!("{role}_timeout"),
            Self::RunStarted { .. } => "run_started",
            Self::CoordinatorStarted { .. } => "coordinator_started",
            Self::CoordinatorRecovered { .. } => "coordinator_recovered",
            Self::AgentAdopted { .. } => "agent_adopted",
            Self::OrphanAgentDetected { .. } => "orphan_agent_detected",
            Self::StateReconciled { .. } => "state_reconciled",
            Self::AgentStarted { .. } => "agent_started",
            Self::TaskStarted { .. } => "task_started",
            Self::TaskClaimed { .. } => "task_claimed",
            Self::ChecksFinished { .. } => "checks_finished",
            Self::TaskCompleted { .. } => "task_completed",
            Self::TaskFailReported { .. } => "task_fail_reported",
            Self::CheckpointSaved { .. } => "checkpoint_saved",
            Self::SplitProposed { .. } => "split_proposed",
            Self::NoteRecorded { .. } => "note_recorded",
            Self::QuestionAsked { .. } => "question_asked",
            Self::QuestionAnswered { .. } => "question_answered",
            Self::ReportRefused { .. } => "report_refused",
            Self::AgentHung { .. } => "agent_hung",
            Self::StopOrdered { .. } => "stop_ordered",
            Self::AgentCrashed { .. } => "agent_crashed",
            Self::AttemptExited { .. } => "attempt_exited",
            Self::AttemptEnded { .. } => "attempt_ended",
            Self::TaskRequeued { .. } => "task_requeued",
            Self::TaskParked { .. } => "task_parked",
            Self::WorkflowFailed { .. } => "workflow_failed",
            Self::TaskSkipped { .. } => "task_skipped",
            Self::TaskReopened { .. } => "task_reopened",
            Self::BreakerOpened { .. } => "breaker_opened",
            Self::PersonAlerted { .. } => "person_alerted",
            Self::SessionPause { .. } => "session_pause",
            Self::RunPaused { .. } => "run_paused",
            Self::SessionResume { .. } => "session_resume",
            Self::StartsHeld { .. } => "starts_held",
            Self::StartsReleased { .. } => "starts_released",
            Self::RunReopened { .. } => "run_reopened",
            Self::WaveEnded { .. } => "wave_ended",
            Self::DiskInspected { .. } => "disk_inspected",
            Self::WaveStarted { .. } => "wave_started",
            Self::PlanChanged { .. } => "plan_changed",
            Self::RunFinished { .. } => "run_finished",
        };
        fixed.to_owned()
    }

    /// The details as a JSON object, without the name.
    #[must_use]
    pub fn details(&self) -> String {
        let mut value = serde_json::to_value(self).expect("a body holds nothing that JSON cannot");
        if let Some(object) = value.as_object_mut() {
            object.remove("body");
        }
        value.to_string()
    }

    /// The body back from its name and details.
    ///
    /// # Errors
    /// When the log was written by a version that knows other events, or is damaged.
    pub fn from_parts(name: &str, details: &str) -> Result<Self, serde_json::Error> {
        let tag = if name.ends_with("_redispatched") {
            "redispatched"
        } else if name.ends_with("_dispatched") {
            "dispatched"
        } else if name.ends_with("_timeout") {
            "role_timeout"
        } else {
            name
        };
        let mut value: serde_json::Value = serde_json::from_str(details)?;
        if let Some(object) = value.as_object_mut() {
            object.insert("body".to_owned(), tag.into());
        }
        serde_json::from_value(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cause stands among the other details of its event: no field of one may hide a field of the other.
    #[test]
    fn every_cause_comes_back_from_the_log_whatever_it_carries() {
        let causes = [
            Cause::Crashed { code: Some(3), signal: None },
            Cause::Crashed { code: None, signal: Some(9) },
            Cause::UsageLimit { resets_at: Some(Time(7)) },
            Cause::StartFailed { reason: "no such program".to_owned() },
            Cause::StoppedByOperator,
        ];
        for cause in causes {
            let bodies = [
                Body::StopOrdered { attempt: AttemptId(1), cause: cause.clone(), at_once: true },
                Body::AttemptEnded { attempt: AttemptId(1), cause: cause.clone() },
                Body::TaskRequeued { cause, counted: true, not_before: Some(Time(9)), reason: "in words".to_owned() },
            ];
            for body in bodies {
                let details = body.details();
                let back = Body::from_parts(&body.name(), &details);
                assert_eq!(back.ok().as_ref(), Some(&body), "{details}");
            }
        }
    }
}
