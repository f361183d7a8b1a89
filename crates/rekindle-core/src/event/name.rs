//! The names of facts in the log, and the way back from a name and its details.

use super::Body;

/// Writes down the name of every fact. There is no wildcard: an event without a name does not compile, since a log with one
/// could not be read again.
macro_rules! names {
    ($($variant:ident $name:literal)*) => {
        impl Body {
            /// The name by which the log is read back.
            fn tag(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)*
                }
            }
        }

        #[cfg(test)]
        const TAGS: &[&str] = &[$($name),*];
    };
}

names! {
    Dispatched "dispatched"
    Redispatched "redispatched"
    RoleTimeout "role_timeout"
    RunStarted "run_started"
    CoordinatorStarted "coordinator_started"
    CoordinatorRecovered "coordinator_recovered"
    AttemptsLost "attempts_lost"
    AgentAdopted "agent_adopted"
    OrphanAgentDetected "orphan_agent_detected"
    StateReconciled "state_reconciled"
    AgentStarted "agent_started"
    TaskStarted "task_started"
    TaskClaimed "task_claimed"
    ChecksFinished "checks_finished"
    TaskCompleted "task_completed"
    TaskFailReported "task_fail_reported"
    CheckpointSaved "checkpoint_saved"
    SplitProposed "split_proposed"
    NoteRecorded "note_recorded"
    QuestionAsked "question_asked"
    QuestionAnswered "question_answered"
    ReportRefused "report_refused"
    AgentHung "agent_hung"
    StopOrdered "stop_ordered"
    AgentCrashed "agent_crashed"
    AttemptExited "attempt_exited"
    AttemptEnded "attempt_ended"
    TaskRequeued "task_requeued"
    TaskParked "task_parked"
    WorkflowFailed "workflow_failed"
    TaskSkipped "task_skipped"
    TaskReopened "task_reopened"
    BreakerOpened "breaker_opened"
    PersonAlerted "person_alerted"
    AgentSession "agent_session"
    AgentMeasured "agent_measured"
    AgentCompacted "agent_compacted"
    AgentStalled "agent_stalled"
    AgentOnTask "agent_on_task"
    CompactionStart "compaction_start"
    CompactionComplete "compaction_complete"
    AgentTold "agent_told"
    InputClosed "input_closed"
    AgentFailed "agent_failed"
    TurnEnded "turn_ended"
    AgentSaid "agent_said"
    BaselineSeen "baseline_seen"
    SessionClosed "session_closed"
    GateClosed "gate_closed"
    GateWidened "gate_widened"
    GateOpened "gate_opened"
    SessionPause "session_pause"
    RunPaused "run_paused"
    SessionResume "session_resume"
    StartsHeld "starts_held"
    StartsReleased "starts_released"
    RunReopened "run_reopened"
    WaveEnded "wave_ended"
    DiskInspected "disk_inspected"
    WaveStarted "wave_started"
    PlanChanged "plan_changed"
    RunFinished "run_finished"
    TaskHandedOn "task_handed_on"
    VerdictGiven "verdict_given"
    TaskRework "task_rework"
    CriticBypassed "critic_bypassed"
    ReviewAuditDisagreement "review_audit_disagreement"
    CriticMissedQualityIssue "critic_missed_quality_issue"
    EnvironmentDisagreement "environment_disagreement"
    FocusReset "focus_reset"
    TaskAdded "task_added"
    SplitSuggested "split_suggested"
    MergeOrdered "merge_ordered"
    WorkMerged "work_merged"
    MergeConflicted "merge_conflicted"
    BranchMade "branch_made"
    HealthOrdered "health_ordered"
    HealthChecked "health_checked"
    UsageAsked "usage_asked"
    UsageSeen "usage_seen"
    ValidationStarted "validation_started"
    TeamChecked "team_checked"
    StatusAsked "status_asked"
    StatusAnswered "status_answered"
    TaskAssigned "task_assigned"
    ClockMoved "clock_moved"
}

impl Body {
    /// The name that readers of the log see. Names that carry a role are made from it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Dispatched { role, .. } => format!("{role}_dispatched"),
            Self::Redispatched { role, .. } => format!("{role}_redispatched"),
            Self::RoleTimeout { role, .. } => format!("{role}_timeout"),
            other => other.tag().to_owned(),
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
        // Put together as text: a tree in between costs more than everything else.
        let fields = details.trim().strip_prefix('{').unwrap_or(details);
        let comma = if fields.trim_start().starts_with('}') { "" } else { "," };
        let tag = serde_json::to_string(tag)?;
        serde_json::from_str(&format!("{{\"body\":{tag}{comma}{fields}"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::activity::{Failure, Measure, Problem, Usage};
    use crate::cause::Cause;
    use crate::ids::AttemptId;
    use crate::time::Time;

    #[test]
    fn every_name_is_one_of_a_kind_and_leads_back_to_an_event() {
        let known = |name: &str| match Body::from_parts(name, "{}") {
            Ok(_) => true,
            Err(error) => !error.to_string().contains("unknown variant"),
        };
        assert!(!known("unnamed"), "what is not known is told apart from what lacks details");
        let strangers: Vec<_> = TAGS.iter().filter(|name| !known(name)).collect();
        assert!(strangers.is_empty(), "{strangers:?}");
        assert_eq!(TAGS.iter().collect::<BTreeSet<_>>().len(), TAGS.len());
    }

    /// A cause stands among the other details of its event: no field of one may hide a field of the other.
    #[test]
    fn every_cause_comes_back_from_the_log_whatever_it_carries() {
        let causes = [
            Cause::Crashed { code: Some(3), signal: None },
            Cause::Crashed { code: None, signal: Some(9) },
            Cause::UsageLimit { resets_at: Some(Time(7)) },
            Cause::StartFailed { reason: "no such program".to_owned() },
            Cause::Machine(crate::cause::Refused { reason: "no space".to_owned(), hint: "df".to_owned() }),
            Cause::StoppedByOperator,
        ];
        for cause in causes {
            let bodies = [
                Body::StopOrdered { attempt: AttemptId(1), cause: cause.clone(), at_once: true },
                Body::AttemptEnded { attempt: AttemptId(1), cause: cause.clone(), last_words: None },
                Body::GateClosed(crate::event::GateClosed {
                    account: "a".to_owned(),
                    cause: cause.clone(),
                    until: Some(Time(4)),
                    question: None,
                    strikes: 1,
                    reset: Some(Time(3)),
                    probe: 2,
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
    fn findings_stand_among_the_details_of_their_event() {
        let words = r#"{"attempt":1,"issues":["no test"],"passed":[],"required":[],"role":"critic","verdict":"fail"}"#;
        let body = Body::from_parts("verdict_given", words).expect("a verdict");
        let Body::VerdictGiven(given) = &body else { panic!("{body:?}") };
        assert_eq!(given.findings.issues, ["no test"]);
        assert_eq!(body.details(), words);
        let short = r#"{"source":"critic"}"#;
        assert!(Body::from_parts("task_rework", short).is_ok(), "what was not found may be left out");
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
