//! Events from reviewers, environments, health commands, parts, merges and allowances, in words.

use rekindle_core::event::{
    Added, Body, Cleaned, ClockSeen, EnvironmentsDiffer, HealthSeen, MachineEvent, PreflightSeen, ReviewEvent,
    UsageLeft,
};
use rekindle_core::preflight::Outcome;
use rekindle_core::review::{DisagreementType, GivenVerdict, Rework, ReworkSource, Stage, Verdict};
use rekindle_core::size;
use rekindle_core::text::counted;
use rekindle_core::time::Time;

use super::Parts;
use crate::ui::{Tone, clock_time, elapsed, one_line, short_commit};

pub(super) fn tell(fact: &ReviewEvent) -> Parts {
    match fact {
        ReviewEvent::TaskHandedOn(on) => {
            let to = match on.stage {
                Stage::Implement => "to its developer",
                Stage::Review => "to the critic",
                Stage::Audit => "to the auditor",
            };
            let result = on.result.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
            ("HANDED ON", Tone::Active, format!("proven, {to}{result}"))
        }
        ReviewEvent::VerdictGiven(given) => verdict(given),
        ReviewEvent::TaskRework(rework) => (
            "REWORK",
            Tone::Warning,
            format!("sent back by {}: {}", sent_by(rework), rework.findings.issues.join("; ")),
        ),
        ReviewEvent::CriticBypassed {} => {
            ("BYPASSED", Tone::Warning, "its critics failed too often: it continues without one".to_owned())
        }
        ReviewEvent::ReviewAuditDisagreement(what) => {
            let kind = match what.disagreement_type {
                DisagreementType::AcceptanceCriteria => "a check fails",
                DisagreementType::CodeQuality => "all checks pass, so the critic missed it",
                DisagreementType::EnvironmentSpecific => "checks differ between environments",
            };
            let text = format!("the critic passed what the auditor failed ({kind}, about {})", what.issue_category);
            ("DISAGREED", Tone::Warning, text)
        }
        ReviewEvent::CriticMissedQualityIssue { issues } => {
            ("MISSED", Tone::Dim, format!("by the critic: {}", issues.join("; ")))
        }
        ReviewEvent::EnvironmentDisagreement(differ) => ("DIFFERS", Tone::Warning, environments(differ)),
        ReviewEvent::FocusReset {} => ("FORGOTTEN", Tone::Dim, "what critics had learned to look for".to_owned()),
        ReviewEvent::MergeOrdered(_) => ("MERGING", Tone::Dim, "its work goes into the run's branch".to_owned()),
        ReviewEvent::WorkMerged { commit: Some(commit) } => {
            ("MERGED", Tone::Good, format!("as {}", short_commit(commit)))
        }
        ReviewEvent::WorkMerged { commit: None } => ("MERGED", Tone::Dim, "nothing had changed".to_owned()),
        ReviewEvent::MergeConflicted { files } => {
            ("CONFLICT", Tone::Warning, format!("others changed the same files: {}", files.join(", ")))
        }
    }
}

/// Describes the event; `now` is when it happened.
pub(super) fn tell_machine(fact: &MachineEvent, now: Time) -> Parts {
    match fact {
        MachineEvent::StartsHeld(held) => ("HELD", Tone::Warning, crate::waits::held(&held.reason, &held.hint)),
        MachineEvent::StartsReleased {} => ("RELEASED", Tone::Good, "new agents are started again".to_owned()),
        MachineEvent::BreakerOpened { cli, .. } => {
            ("LEFT ALONE", Tone::Warning, format!("{cli} failed to start too often"))
        }
        MachineEvent::SetupStarted { command } => ("SET UP", Tone::Dim, one_line(command)),
        MachineEvent::SetupFinished { took_ms } => ("SET UP", Tone::Dim, format!("finished in {}", elapsed(*took_ms))),
        MachineEvent::SetupFailed { reason, .. } => ("SETUP FAILED", Tone::Error, reason.clone()),
        MachineEvent::SetupRetried { .. } => ("SET UP", Tone::Dim, "it is tried again".to_owned()),
        MachineEvent::PreflightOrdered {} => {
            ("PREFLIGHT", Tone::Dim, "every check is tried once before the first agent starts".to_owned())
        }
        MachineEvent::Preflight(seen) => preflight(seen),
        MachineEvent::Cleaned(cleaned) => ("CLEANED", Tone::Dim, cleaned_words(cleaned)),
        MachineEvent::HealthOrdered {} => ("HEALTH", Tone::Dim, "the plan's health commands are run".to_owned()),
        MachineEvent::HealthChecked(seen) => health(seen),
        MachineEvent::UsageAsked {} => ("USAGE", Tone::Dim, "the usage command is asked".to_owned()),
        MachineEvent::UsageSeen(left) => usage(*left, now),
        MachineEvent::ClockMoved(seen) => ("CLOCK", Tone::Dim, clock(seen)),
        MachineEvent::BudgetNotice(_)
        | MachineEvent::BudgetReached(_)
        | MachineEvent::BudgetAsked(_)
        | MachineEvent::BudgetAnswered(_)
        | MachineEvent::DayBegan { .. }
        | MachineEvent::QuietBegan { .. }
        | MachineEvent::QuietEnded {} => {
            super::budget::tell(fact, now).unwrap_or_else(|| ("BUDGET", Tone::Dim, String::new()))
        }
    }
}

fn cleaned_words(cleaned: &Cleaned) -> String {
    let parts: Vec<&str> = cleaned.parts.iter().map(|part| part.words()).collect();
    let of = cleaned.run.as_ref().map(|run| format!(" of run {run}")).unwrap_or_default();
    let given_up = if cleaned.discarded { ", given up by the operator" } else { "" };
    let freed = if cleaned.bytes > 0 { format!("; {} freed", size::format(cleaned.bytes)) } else { String::new() };
    format!("{}{of}{freed}{given_up}", parts.join(", "))
}

fn preflight(seen: &PreflightSeen) -> Parts {
    let named = |outcome: Outcome| -> Vec<String> {
        seen.with(outcome).map(|check| format!("`{}`", one_line(&check.command))).collect()
    };
    let mut parts =
        vec![format!("{} tried in {}", counted(seen.checks.len(), "check", "checks"), elapsed(seen.took_ms))];
    let kinds = [
        (Outcome::CannotRun, "cannot run"),
        (Outcome::Passes, "passing before any work is done, and so proving nothing"),
        (Outcome::MayCome, "calling a file that is not there yet"),
    ];
    for (outcome, words) in kinds {
        let commands = named(outcome);
        if !commands.is_empty() {
            parts.push(format!("{words}: {}", commands.join(", ")));
        }
    }
    parts.extend(seen.problem.as_ref().map(|problem| one_line(problem)));
    let tone = match () {
        () if seen.question.is_some() => Tone::Error,
        () if parts.len() > 1 => Tone::Warning,
        () => Tone::Dim,
    };
    ("PREFLIGHT", tone, parts.join("; "))
}

fn verdict(given: &GivenVerdict) -> Parts {
    let issues = || given.findings.issues.join("; ");
    match given.verdict {
        Verdict::Pass => ("PASSED", Tone::Good, format!("by its {}", given.role)),
        Verdict::Fail => ("REJECTED", Tone::Warning, format!("by its {}: {}", given.role, issues())),
        Verdict::Blocked => ("BLOCKED", Tone::Warning, format!("its {} cannot judge it: {}", given.role, issues())),
    }
}

/// Who sent work back, in words.
pub(crate) fn sent_by(rework: &Rework) -> &'static str {
    match rework.source {
        ReworkSource::Critic => "the critic",
        ReworkSource::Auditor => "the auditor",
        ReworkSource::Checks => "its checks",
        ReworkSource::Environment => "its checks, which differ between environments",
        ReworkSource::Merge => "the merge into the run's branch",
        ReworkSource::Validation => "the check of recent completions",
        ReworkSource::PullRequest => "the pull request",
    }
}

fn environments(differ: &EnvironmentsDiffer) -> String {
    let failed: Vec<String> = differ
        .failed
        .iter()
        .map(|failed| {
            let code = failed.code.map(|code| format!(" ({code})")).unwrap_or_default();
            format!("`{}` in {}{code}", failed.check, failed.env)
        })
        .collect();
    format!("passed in {}, failed: {}", differ.passed.join(", "), failed.join(", "))
}

fn clock(seen: &ClockSeen) -> String {
    let (slept, wall) = (elapsed(seen.slept_ms), elapsed(seen.wall_ahead_ms.unsigned_abs()));
    let side = if seen.wall_ahead_ms < 0 { "behind" } else { "ahead" };
    format!("the machine has slept {slept} since it was started; the wall clock is {wall} {side}")
}

pub(super) fn added_words(added: &Added) -> String {
    match (&added.parent, added.health) {
        (Some(parent), _) => format!("as a part of {parent}: {}", added.task.title),
        (None, true) => "to repair what the plan's health commands found".to_owned(),
        (None, false) => added.task.title.clone(),
    }
}

fn health(seen: &HealthSeen) -> Parts {
    let failing: Vec<String> =
        seen.results.iter().filter(|check| !check.passed).map(|check| format!("`{}`", check.command)).collect();
    match failing.is_empty() {
        true => ("HEALTHY", Tone::Good, format!("all {} health commands pass", seen.results.len())),
        false => ("UNHEALTHY", Tone::Warning, format!("fails: {}", failing.join(", "))),
    }
}

fn usage(left: UsageLeft, now: Time) -> Parts {
    let Some(percent) = left.remaining_percent else {
        return ("USAGE", Tone::Warning, "the usage command gave no answer that can be read".to_owned());
    };
    let reset = left.resets_at.filter(|at| *at > now);
    let reset = reset.map(|at| format!(", reset at {} (in {})", clock_time(at), elapsed(at.since_ms(now))));
    ("USAGE", Tone::Dim, format!("{percent} % left{}", reset.unwrap_or_default()))
}

/// The evidence for a decision, one line each.
pub(crate) fn evidence(body: &Body) -> Vec<String> {
    let listed = |label: &'static str, items: &[String]| -> Vec<String> {
        items.iter().map(|item| format!("{label}: {item}")).collect()
    };
    match body {
        Body::Review(ReviewEvent::VerdictGiven(given)) => {
            let parts = [
                listed("issue", &given.findings.issues),
                listed("required", &given.findings.required),
                listed("good", &given.findings.passed),
            ];
            parts.concat()
        }
        Body::Review(ReviewEvent::TaskRework(rework)) => {
            let context = rework.context.lines().map(str::to_owned).collect();
            let parts = [
                listed("issue", &rework.findings.issues),
                listed("required", &rework.findings.required),
                listed("good", &rework.findings.passed),
                context,
            ];
            parts.concat()
        }
        Body::Review(ReviewEvent::ReviewAuditDisagreement(what)) => {
            let critic = format!("critic: {}", what.critic_passed);
            std::iter::once(critic).chain(listed("auditor", &what.auditor_failed)).collect()
        }
        Body::Review(ReviewEvent::EnvironmentDisagreement(differ)) => {
            differ.failed.iter().flat_map(|failed| failed.error.lines().map(|line| format!("  {line}"))).collect()
        }
        Body::Machine(MachineEvent::HealthChecked(seen)) => {
            let failing = seen.results.iter().filter(|check| !check.passed);
            failing.flat_map(|check| check.output.lines().map(|line| format!("  {line}"))).collect()
        }
        Body::Run(_)
        | Body::Attempt(_)
        | Body::Session(_)
        | Body::Task(_)
        | Body::Review(_)
        | Body::Gate(_)
        | Body::Machine(_)
        | Body::Person(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use rekindle_core::event::{HandedOn, RunEvent, TaskEvent, TeamStanding};
    use rekindle_core::ids::AttemptId;
    use rekindle_core::review::{Disagreement, FailedEnvironment, Findings};
    use rekindle_core::role::Role;

    use super::*;

    fn given(role: Role, verdict: Verdict) -> Body {
        let findings = Findings { issues: vec!["no test".to_owned()], ..Findings::default() };
        Body::Review(ReviewEvent::VerdictGiven(GivenVerdict { attempt: AttemptId(1), role, verdict, findings }))
    }

    fn told_as<const N: usize>(cases: [(Body, &str); N]) {
        for (body, expected) in cases {
            let (verb, _, text) = crate::story::tell_known(&body, Time(0));
            assert_eq!(format!("{verb}: {text}"), expected);
        }
    }

    #[test]
    fn every_event_of_a_review_has_a_sentence() {
        let failed = FailedEnvironment {
            env: "minimal".into(),
            check: "make".into(),
            code: Some(2),
            error: "no make\nhere".into(),
        };
        let rework = Rework {
            source: ReworkSource::Environment,
            findings: Findings { issues: vec!["a".into(), "b".into()], ..Findings::default() },
            context: String::new(),
        };
        let disagreement = Disagreement {
            critic_passed: "REVIEW_PASSED".into(),
            auditor_failed: vec!["slow".into()],
            disagreement_type: DisagreementType::CodeQuality,
            issue_category: "performance".into(),
        };
        told_as([
            (
                Body::Review(ReviewEvent::TaskHandedOn(HandedOn { stage: Stage::Audit, result: Some("made".into()) })),
                "HANDED ON: proven, to the auditor: made",
            ),
            (given(Role::Critic, Verdict::Pass), "PASSED: by its critic"),
            (given(Role::Auditor, Verdict::Fail), "REJECTED: by its auditor: no test"),
            (given(Role::Auditor, Verdict::Blocked), "BLOCKED: its auditor cannot judge it: no test"),
            (
                Body::Review(ReviewEvent::TaskRework(rework)),
                "REWORK: sent back by its checks, which differ between environments: a; b",
            ),
            (
                Body::Review(ReviewEvent::CriticBypassed {}),
                "BYPASSED: its critics failed too often: it continues without one",
            ),
            (
                Body::Review(ReviewEvent::ReviewAuditDisagreement(disagreement)),
                "DISAGREED: the critic passed what the auditor failed (all checks pass, so the critic missed it, about \
                 performance)",
            ),
            (
                Body::Review(ReviewEvent::CriticMissedQualityIssue { issues: vec!["slow".into()] }),
                "MISSED: by the critic: slow",
            ),
            (
                Body::Review(ReviewEvent::EnvironmentDisagreement(EnvironmentsDiffer {
                    passed: vec!["local".into()],
                    failed: vec![failed],
                })),
                "DIFFERS: passed in local, failed: `make` in minimal (2)",
            ),
            (Body::Review(ReviewEvent::FocusReset {}), "FORGOTTEN: what critics had learned to look for"),
            (Body::Review(ReviewEvent::WorkMerged { commit: Some("abc".into()) }), "MERGED: as abc"),
            (
                Body::Review(ReviewEvent::MergeConflicted { files: vec!["a".into()] }),
                "CONFLICT: others changed the same files: a",
            ),
        ]);
    }

    #[test]
    fn every_other_event_of_the_protocol_has_a_sentence() {
        told_as([
            (Body::Task(TaskEvent::SplitSuggested { reason: "twice".into() }), "TOO LARGE: it should be split: twice"),
            (Body::Machine(MachineEvent::HealthOrdered {}), "HEALTH: the plan's health commands are run"),
            (
                Body::Machine(MachineEvent::HealthChecked(HealthSeen { results: Vec::new() })),
                "HEALTHY: all 0 health commands pass",
            ),
            (Body::Machine(MachineEvent::UsageAsked {}), "USAGE: the usage command is asked"),
            (
                Body::Machine(MachineEvent::UsageSeen(UsageLeft { remaining_percent: None, resets_at: None })),
                "USAGE: the usage command gave no answer that can be read",
            ),
            (
                Body::Machine(MachineEvent::UsageSeen(UsageLeft { remaining_percent: Some(7), resets_at: None })),
                "USAGE: 7 % left",
            ),
            (
                Body::Task(TaskEvent::ValidationStarted {}),
                "VALIDATING: it was complete: its artifacts and checks are verified again",
            ),
            (
                Body::Run(RunEvent::TeamChecked(TeamStanding { working: 2, idle: 1, unresponsive: 0 })),
                "TEAM: 2 working, 1 idle, 0 unresponsive",
            ),
            (Body::Run(RunEvent::DiskInspected { missing: 2 }), "INSPECTED: 2 complete tasks have lost what they made"),
        ]);
    }
}
