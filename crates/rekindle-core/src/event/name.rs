//! The names of facts in the log, and the conversion back from a name and its details.

use super::{AttemptEvent, Body, GateEvent, MachineEvent, PersonEvent, ReviewEvent, RunEvent, SessionEvent, TaskEvent};
use crate::role::Role;

/// Defines the name of every fact. There is no wildcard: an event without a name does not compile, since a log with one
/// could not be read again.
macro_rules! names {
    ($($family:ident $events:ident { $($variant:ident $name:literal)* })*) => {
        $(impl From<$events> for Body {
            fn from(event: $events) -> Self {
                Self::$family(event)
            }
        })*

        impl Body {
            /// The name by which the log is read back.
            fn tag(&self) -> &'static str {
                match self {
                    $($(Self::$family($events::$variant { .. }) => $name,)*)*
                }
            }

            /// Parses the fact of a name from its JSON.
            fn read(tag: &str, json: &str) -> Result<Self, serde_json::Error> {
                match tag {
                    $($($name)|* => serde_json::from_str(json).map(Self::$family),)*
                    _ => Err(serde::de::Error::unknown_variant(tag, TAGS)),
                }
            }
        }

        const TAGS: &[&str] = &[$($($name),*),*];
    };
}

names! {
    Run RunEvent {
        RunStarted "run_started"
        CoordinatorStarted "coordinator_started"
        CoordinatorRecovered "coordinator_recovered"
        AttemptsLost "attempts_lost"
        StateReconciled "state_reconciled"
        SessionPause "session_pause"
        RunPaused "run_paused"
        SessionResume "session_resume"
        RunReopened "run_reopened"
        WaveEnded "wave_ended"
        DiskInspected "disk_inspected"
        WaveStarted "wave_started"
        PlanChanged "plan_changed"
        PlanReloaded "plan_reloaded"
        BranchMade "branch_made"
        Landed "landed"
        PullRequest "pull_request"
        TeamChecked "team_checked"
        RunFinished "run_finished"
    }
    Attempt AttemptEvent {
        Dispatched "dispatched"
        Redispatched "redispatched"
        AgentStarted "agent_started"
        AgentAdopted "agent_adopted"
        OrphanAgentDetected "orphan_agent_detected"
        ReportRefused "report_refused"
        RoleTimeout "role_timeout"
        AgentHung "agent_hung"
        StopOrdered "stop_ordered"
        AgentCrashed "agent_crashed"
        AttemptExited "attempt_exited"
        AttemptEnded "attempt_ended"
    }
    Session SessionEvent {
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
        SessionClosed "session_closed"
        StatusAsked "status_asked"
        StatusAnswered "status_answered"
    }
    Task TaskEvent {
        TaskAdded "task_added"
        TaskEdited "task_edited"
        TaskAssigned "task_assigned"
        BaselineSeen "baseline_seen"
        TaskStarted "task_started"
        TaskClaimed "task_claimed"
        ChecksFinished "checks_finished"
        TaskCompleted "task_completed"
        OperatorCompleted "operator_completed"
        TaskFailReported "task_fail_reported"
        CheckpointSaved "checkpoint_saved"
        SplitProposed "split_proposed"
        SplitSuggested "split_suggested"
        TaskRequeued "task_requeued"
        TaskParked "task_parked"
        WorkflowFailed "workflow_failed"
        TaskSkipped "task_skipped"
        TaskReopened "task_reopened"
        ValidationStarted "validation_started"
    }
    Review ReviewEvent {
        TaskHandedOn "task_handed_on"
        VerdictGiven "verdict_given"
        TaskRework "task_rework"
        CriticBypassed "critic_bypassed"
        ReviewAuditDisagreement "review_audit_disagreement"
        CriticMissedQualityIssue "critic_missed_quality_issue"
        EnvironmentDisagreement "environment_disagreement"
        FocusReset "focus_reset"
        MergeOrdered "merge_ordered"
        WorkMerged "work_merged"
        MergeConflicted "merge_conflicted"
    }
    Gate GateEvent {
        GateClosed "gate_closed"
        GateWidened "gate_widened"
        GateOpened "gate_opened"
    }
    Machine MachineEvent {
        StartsHeld "starts_held"
        StartsReleased "starts_released"
        ClockMoved "clock_moved"
        BreakerOpened "breaker_opened"
        SetupStarted "setup_started"
        SetupFinished "setup_finished"
        SetupFailed "setup_failed"
        Cleaned "cleaned"
        SetupRetried "setup_retried"
        PreflightOrdered "preflight_ordered"
        Preflight "preflight"
        HealthOrdered "health_ordered"
        HealthChecked "health_checked"
        UsageAsked "usage_asked"
        UsageSeen "usage_seen"
        BudgetNotice "budget_notice"
        BudgetReached "budget_reached"
        BudgetAsked "budget_asked"
        BudgetAnswered "budget_answered"
        DayBegan "day_began"
        QuietBegan "quiet_began"
        QuietEnded "quiet_ended"
    }
    Person PersonEvent {
        QuestionAsked "question_asked"
        QuestionAnswered "question_answered"
        PhoneOrder "phone_order"
        NoteRecorded "note_recorded"
        PersonAlerted "person_alerted"
        Told "told"
        TellDelivered "tell_delivered"
        Attached "attached"
        Detached "detached"
        OrderPlaced "order_placed"
        OrderTaken "order_taken"
        OrderUndone "order_undone"
    }
}

/// Every name that readers of the log may see; those that carry a role once per role.
pub fn names() -> Vec<String> {
    let by_role = |tag: &str| matches!(tag, "dispatched" | "redispatched" | "role_timeout");
    let mut names = Vec::new();
    for tag in TAGS {
        match by_role(tag) {
            true => names.extend(Role::ALL.iter().map(|role| format!("{role}_{}", tag.trim_start_matches("role_")))),
            false => names.push((*tag).to_owned()),
        }
    }
    names
}

impl Body {
    /// The name that readers of the log see. Names that carry a role are made from it.
    pub fn name(&self) -> String {
        if let Self::Attempt(
            AttemptEvent::Dispatched { role, .. }
            | AttemptEvent::Redispatched { role, .. }
            | AttemptEvent::RoleTimeout { role, .. },
        ) = self
        {
            return format!("{role}_{}", self.tag().trim_start_matches("role_"));
        }
        self.tag().to_owned()
    }

    /// The details as a JSON object, without the name.
    pub fn details(&self) -> String {
        let value = serde_json::to_value(self).expect("a body holds nothing that JSON cannot");
        value.get(self.tag()).map_or_else(|| "{}".to_owned(), ToString::to_string)
    }

    /// The body from its name and details. Fails if the log is damaged or was written by a version with other events.
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
        // Built as text, the name around the details: a tree in between, or a name among the details that requires keeping
        // the others until it is found, costs more than everything else.
        let quoted = serde_json::to_string(tag)?;
        Self::read(tag, &["{", &quoted, ":", details, "}"].concat())
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

    /// A cause is stored among the other details of its event: no field of one may hide a field of the other.
    #[test]
    fn every_cause_comes_back_from_the_log_whatever_it_carries() {
        let causes = [
            Cause::Crashed { code: Some(3), signal: None },
            Cause::Crashed { code: None, signal: Some(9) },
            Cause::UsageLimit { resets_at: Some(Time(7)) },
            Cause::StartFailed { reason: "no such program".to_owned() },
            Cause::SetupFailed { reason: "npm ci exited with 1".to_owned() },
            Cause::Machine(crate::cause::MachineRefusal { reason: "no space".to_owned(), hint: "df".to_owned() }),
            Cause::StoppedByOperator,
        ];
        for cause in causes {
            let bodies = [
                Body::Attempt(AttemptEvent::StopOrdered { attempt: AttemptId(1), cause: cause.clone(), at_once: true }),
                Body::Attempt(AttemptEvent::AttemptEnded {
                    attempt: AttemptId(1),
                    cause: cause.clone(),
                    last_words: None,
                }),
                Body::Gate(GateEvent::GateClosed(crate::event::GateClosed {
                    account: "a".to_owned(),
                    cause: cause.clone(),
                    until: Some(Time(4)),
                    question: None,
                    strikes: 1,
                    reset: Some(Time(3)),
                    probe: 2,
                    overloaded_until: Some(Time(4)),
                    limit_until: Some(Time(3)),
                })),
                Body::Task(TaskEvent::TaskRequeued {
                    cause,
                    counted: true,
                    not_before: Some(Time(9)),
                    reason: "in words".to_owned(),
                }),
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
        let Body::Review(ReviewEvent::VerdictGiven(given)) = &body else { panic!("{body:?}") };
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
            Body::Session(SessionEvent::AgentMeasured { attempt: AttemptId(1), measure }),
            Body::Session(SessionEvent::AgentFailed { attempt: AttemptId(1), failure }),
        ];
        for body in bodies {
            let details = body.details();
            assert_eq!(Body::from_parts(&body.name(), &details).ok().as_ref(), Some(&body), "{details}");
        }
    }
}
