//! The names of facts in the log, and the way back from a name and its details.

use super::Body;

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
            Self::CoordinatorRecovered(_) => "coordinator_recovered",
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
            Self::AgentSession { .. } => "agent_session",
            Self::AgentMeasured { .. } => "agent_measured",
            Self::AgentCompacted(_) => "agent_compacted",
            Self::AgentOnTask { .. } => "agent_on_task",
            Self::CompactionStart { .. } => "compaction_start",
            Self::CompactionComplete(_) => "compaction_complete",
            Self::AgentTold { .. } => "agent_told",
            Self::InputClosed { .. } => "input_closed",
            Self::AgentFailed { .. } => "agent_failed",
            Self::TurnEnded { .. } => "turn_ended",
            Self::SessionClosed { .. } => "session_closed",
            Self::GateClosed(_) => "gate_closed",
            Self::GateWidened { .. } => "gate_widened",
            Self::GateOpened { .. } => "gate_opened",
            Self::SessionPause(_) => "session_pause",
            Self::RunPaused { .. } => "run_paused",
            Self::SessionResume(_) => "session_resume",
            Self::StartsHeld { .. } => "starts_held",
            Self::StartsReleased { .. } => "starts_released",
            Self::RunReopened { .. } => "run_reopened",
            Self::WaveEnded { .. } => "wave_ended",
            Self::DiskInspected { .. } => "disk_inspected",
            Self::WaveStarted { .. } => "wave_started",
            Self::PlanChanged { .. } => "plan_changed",
            Self::RunFinished(_) => "run_finished",
            _ => return self.protocol_name().to_owned(),
        };
        fixed.to_owned()
    }

    /// The names of what reviewers, environments, merges and allowances bring.
    fn protocol_name(&self) -> &'static str {
        match self {
            Self::TaskHandedOn(_) => "task_handed_on",
            Self::VerdictGiven(_) => "verdict_given",
            Self::TaskRework(_) => "task_rework",
            Self::CriticBypassed { .. } => "critic_bypassed",
            Self::ReviewAuditDisagreement(_) => "review_audit_disagreement",
            Self::CriticMissedQualityIssue { .. } => "critic_missed_quality_issue",
            Self::EnvironmentDisagreement(_) => "environment_disagreement",
            Self::FocusReset { .. } => "focus_reset",
            Self::TaskAdded(_) => "task_added",
            Self::SplitSuggested { .. } => "split_suggested",
            Self::MergeOrdered(_) => "merge_ordered",
            Self::WorkMerged { .. } => "work_merged",
            Self::MergeConflicted { .. } => "merge_conflicted",
            Self::BranchMade(_) => "branch_made",
            Self::HealthOrdered { .. } => "health_ordered",
            Self::HealthChecked(_) => "health_checked",
            Self::UsageAsked { .. } => "usage_asked",
            Self::UsageSeen(_) => "usage_seen",
            Self::ValidationStarted { .. } => "validation_started",
            Self::TeamChecked(_) => "team_checked",
            Self::StatusAsked { .. } => "status_asked",
            Self::StatusAnswered { .. } => "status_answered",
            Self::TaskAssigned { .. } => "task_assigned",
            _ => "unnamed",
        }
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
    use crate::activity::{Failure, Measure, Problem, Usage};
    use crate::cause::Cause;
    use crate::ids::AttemptId;
    use crate::time::Time;

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
                Body::GateClosed(crate::event::GateClosed {
                    account: "a".to_owned(),
                    cause: cause.clone(),
                    until: Some(Time(4)),
                    question: None,
                    strikes: 1,
                }),
                Body::TaskRequeued { cause, counted: true, not_before: Some(Time(9)), reason: "in words".to_owned() },
            ];
            for body in bodies {
                let details = body.details();
                let back = Body::from_parts(&body.name(), &details);
                assert_eq!(back.ok().as_ref(), Some(&body), "{details}");
            }
        }
    }

    #[test]
    fn what_an_agent_says_of_itself_comes_back_from_the_log() {
        let usage = Usage { input_tokens: 1, output_tokens: 2, cached_tokens: 3, cost_usd: Some(0.25) };
        let measure = Measure { usage, context_used: Some(4), context_window: None };
        let failure = Failure {
            problem: Problem::UsageLimit,
            resets_at: Some(Time(5)),
            text: "no more".to_owned(),
            runaway: false,
        };
        let bodies = [
            Body::AgentMeasured { attempt: AttemptId(1), measure },
            Body::AgentFailed { attempt: AttemptId(1), failure },
        ];
        for body in bodies {
            let details = body.details();
            assert_eq!(Body::from_parts(&body.name(), &details).ok().as_ref(), Some(&body), "{details}");
        }
    }
}
