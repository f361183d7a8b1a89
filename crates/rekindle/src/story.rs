//! An event in words: a verb to find it by, a sentence, and the evidence below it. The commands decide what is shown where.

pub(crate) mod blocks;
mod budget;
pub(crate) mod chapters;
pub(crate) mod person;
pub(crate) mod protocol;
mod pull_request;
pub(crate) mod session;

use rekindle_core::duration;
use rekindle_core::event::{
    AgentSaid, AttemptEvent, Body, ChangedPart, CompactionNear, Finish, Landed, Outcome, PauseReason, PersonEvent,
    PlanReloaded, Recovery, ReviewEvent, RunEvent, SessionEvent, TaskEvent, TeamStanding,
};
use rekindle_core::ids::AttemptId;
use rekindle_core::last_words;
use rekindle_core::report::{Baseline, Channel, Evidence, Exit, Origin};
use rekindle_core::review;
use rekindle_core::role::Role;
use rekindle_core::text::counted;
use rekindle_core::time::Time;
use rekindle_engine::store::StoredEvent;
use serde_json::Value;

use crate::ui::{Tone, elapsed, one_line, short_commit};

/// Longest piece of an unknown event's details that is shown in a line.
const VALUE_MAX_CHARS: usize = 80;

/// An event in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// What happened, in a word.
    pub verb: &'static str,
    /// How that is to be taken.
    pub tone: Tone,
    /// What happened, in a sentence.
    pub text: String,
}

/// The event's body, where this version knows it.
pub(crate) fn body(event: &StoredEvent) -> Option<Body> {
    Body::from_parts(&event.kind, &event.details).ok()
}

/// The attempt that a fact names.
pub(crate) fn attempt_of(body: &Body) -> Option<AttemptId> {
    match body {
        Body::Attempt(AttemptEvent::Dispatched { attempt, .. } | AttemptEvent::AgentStarted { attempt, .. })
        | Body::Task(
            TaskEvent::TaskStarted { attempt, .. }
            | TaskEvent::TaskClaimed { attempt, .. }
            | TaskEvent::TaskFailReported { attempt, .. },
        )
        | Body::Person(PersonEvent::QuestionAsked { attempt, .. } | PersonEvent::TellDelivered { attempt, .. })
        | Body::Attempt(
            AttemptEvent::AgentAdopted { attempt, .. }
            | AttemptEvent::OrphanAgentDetected { attempt, .. }
            | AttemptEvent::RoleTimeout { attempt, .. }
            | AttemptEvent::AgentHung { attempt, .. }
            | AttemptEvent::StopOrdered { attempt, .. }
            | AttemptEvent::AgentCrashed { attempt, .. }
            | AttemptEvent::AttemptExited { attempt, .. }
            | AttemptEvent::AttemptEnded { attempt, .. },
        )
        | Body::Session(
            SessionEvent::AgentSession { attempt, .. }
            | SessionEvent::AgentMeasured { attempt, .. }
            | SessionEvent::AgentCompacted(rekindle_core::event::AgentCompacted { attempt, .. })
            | SessionEvent::AgentStalled(rekindle_core::event::AgentStalled { attempt, .. })
            | SessionEvent::AgentOnTask { attempt }
            | SessionEvent::CompactionStart(CompactionNear { attempt, .. })
            | SessionEvent::AgentSaid(AgentSaid { attempt, .. })
            | SessionEvent::AgentTold { attempt, .. }
            | SessionEvent::InputClosed { attempt }
            | SessionEvent::StatusAsked { attempt }
            | SessionEvent::StatusAnswered { attempt },
        )
        | Body::Task(TaskEvent::TaskAssigned { attempt })
        | Body::Session(
            SessionEvent::AgentFailed { attempt, .. }
            | SessionEvent::TurnEnded { attempt, .. }
            | SessionEvent::SessionClosed(rekindle_core::event::SessionClosed { attempt, .. }),
        )
        | Body::Attempt(AttemptEvent::ReportRefused { attempt, .. }) => Some(*attempt),
        Body::Session(SessionEvent::CompactionComplete(over)) => Some(over.attempt),
        Body::Review(ReviewEvent::VerdictGiven(given)) => Some(given.attempt),
        Body::Run(_)
        | Body::Attempt(_)
        | Body::Task(_)
        | Body::Review(_)
        | Body::Gate(_)
        | Body::Machine(_)
        | Body::Person(_) => None,
    }
}

pub(crate) fn tell(event: &StoredEvent) -> Told {
    let known = body(event).map(|body| tell_known(&body, Time(event.time_ms)));
    let (verb, tone, text) = known.unwrap_or_else(|| ("EVENT", Tone::Dim, details(event)));
    Told { verb, tone, text }
}

type Parts = (&'static str, Tone, String);

fn tell_known(body: &Body, now: Time) -> Parts {
    match body {
        Body::Run(fact) => tell_run(fact),
        Body::Attempt(fact) => tell_attempt(fact),
        Body::Session(fact) => session::tell(fact, now),
        Body::Task(fact) => tell_task(fact),
        Body::Review(fact) => protocol::tell(fact),
        Body::Gate(fact) => session::tell_gate(fact, now),
        Body::Machine(fact) => protocol::tell_machine(fact, now),
        Body::Person(fact) => person::tell(fact),
    }
}

fn tell_task(fact: &TaskEvent) -> Parts {
    match fact {
        TaskEvent::TaskStarted { number, nth, .. } => {
            ("BEGUN", Tone::Active, format!("attempt {} starts", if *nth > 0 { nth } else { number }))
        }
        TaskEvent::TaskClaimed { channel: Channel::Unreported, .. } => {
            ("LOOKED AT", Tone::Warning, "its agent ended without a report: rekindle runs its checks".to_owned())
        }
        TaskEvent::TaskClaimed { channel: Channel::Operator, .. } => {
            ("CLAIMED", Tone::Active, "a person says it is done".to_owned())
        }
        TaskEvent::TaskClaimed { channel, result, .. } => {
            let result = result.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
            ("CLAIMED", Tone::Active, format!("its agent says it is done ({}){result}", through(*channel)))
        }
        TaskEvent::ChecksFinished { evidence, passed: true } => ("PROVEN", Tone::Good, proven(evidence.checks.len())),
        TaskEvent::ChecksFinished { evidence, .. } => ("NOT PROVEN", Tone::Warning, evidence.complaint()),
        TaskEvent::TaskCompleted { result, unproven, unreported } => {
            let how = match (*unreported, *unproven) {
                (true, true) => "complete on a person's word, unreported",
                (true, false) => "complete by its checks, unreported",
                (false, true) => "complete on its agent's word alone",
                (false, false) => "complete",
            };
            let result = result.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
            ("DONE", Tone::Good, format!("{how}{result}"))
        }
        TaskEvent::TaskFailReported { reason, .. } => {
            ("GIVEN UP", Tone::Warning, format!("its agent gave it up: {reason}"))
        }
        TaskEvent::CheckpointSaved { checkpoint } => {
            let done = checkpoint.completed.len();
            let left = checkpoint.remaining.len();
            ("CHECKPOINT", Tone::Dim, format!("{} ({done} done, {left} left)", checkpoint.status))
        }
        TaskEvent::SplitProposed { subtasks } => {
            ("SPLIT", Tone::Dim, format!("its agent works on it in {}", counted(subtasks.len(), "part", "parts")))
        }
        TaskEvent::TaskRequeued { counted, reason, .. } => {
            let counts = if *counted { "" } else { "; this attempt does not count" };
            ("REQUEUED", Tone::Warning, format!("{reason}{counts}"))
        }
        TaskEvent::TaskParked { question } => {
            ("WAITS", Tone::Warning, format!("for the answer to question {question}"))
        }
        TaskEvent::WorkflowFailed { reason, detail } => ("FAILED", Tone::Error, failure(reason, detail)),
        TaskEvent::TaskSkipped { reason } => ("SKIPPED", Tone::Dim, reason.clone()),
        TaskEvent::TaskReopened { reason, reset_attempts } => {
            let attempts = if *reset_attempts { "; its attempts start again" } else { "" };
            ("REOPENED", Tone::Warning, format!("{reason}{attempts}"))
        }
        TaskEvent::BaselineSeen(baseline) => ("BEFORE", Tone::Dim, before(baseline)),
        TaskEvent::TaskEdited(changed) => ("EDITED", Tone::Active, changed_words(&changed.parts)),
        TaskEvent::OperatorCompleted { result } => {
            let result = result.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
            ("OPERATOR", Tone::Active, format!("the operator says that it is complete{result}"))
        }
        TaskEvent::TaskAdded(added) => ("ADDED", Tone::Active, protocol::added_words(added)),
        TaskEvent::SplitSuggested { reason } => ("TOO LARGE", Tone::Warning, format!("it should be split: {reason}")),
        TaskEvent::ValidationStarted {} => {
            ("VALIDATING", Tone::Active, "it was complete: its artifacts and checks are verified again".to_owned())
        }
        TaskEvent::TaskAssigned { .. } => {
            ("GIVEN", Tone::Active, "its agent was idle and continues with it in the same session".to_owned())
        }
    }
}

fn proven(checks: usize) -> String {
    match checks {
        0 => "no check to run".to_owned(),
        1 => "its check passed".to_owned(),
        many => format!("all {many} checks passed"),
    }
}

fn tell_attempt(fact: &AttemptEvent) -> Parts {
    match fact {
        AttemptEvent::Dispatched { role: Role::Developer, cli, reason, .. } => {
            ("STARTED", Tone::Active, format!("{cli}, {reason}"))
        }
        AttemptEvent::Dispatched { role, cli, reason, .. } => {
            ("STARTED", Tone::Active, format!("{role} {cli}, {reason}"))
        }
        AttemptEvent::Redispatched { role: Role::Developer, .. } => {
            ("REKINDLE", Tone::Active, "a replacement".to_owned())
        }
        AttemptEvent::Redispatched { role, .. } => ("REKINDLE", Tone::Active, format!("a replacement for its {role}")),
        AttemptEvent::AgentStarted { pid, shim_pid, .. } => {
            ("RUNS", Tone::Dim, format!("process {pid}, held by {shim_pid}"))
        }
        AttemptEvent::AgentAdopted { pid, .. } => {
            ("ADOPTED", Tone::Good, format!("process {pid} is still alive and continues"))
        }
        AttemptEvent::OrphanAgentDetected { .. } => ("ORPHANED", Tone::Warning, "its agent is gone".to_owned()),
        AttemptEvent::ReportRefused { reason, .. } => ("REFUSED", Tone::Warning, reason.clone()),
        AttemptEvent::RoleTimeout { role, timeout_ms, .. } => {
            ("TIMED OUT", Tone::Warning, format!("longer than a {role} may take ({})", duration::format(*timeout_ms)))
        }
        AttemptEvent::AgentHung { quiet_ms, evidence, .. } => {
            let quiet = duration::format(quiet_ms - quiet_ms % 1000);
            ("HUNG", Tone::Warning, format!("no sign of life for {quiet} ({evidence})"))
        }
        AttemptEvent::StopOrdered { cause, at_once, .. } => {
            let how = if *at_once { "at once" } else { "with grace" };
            ("STOPPING", Tone::Warning, format!("{how}: {}", cause.words()))
        }
        AttemptEvent::AgentCrashed { code, signal, .. } => ("CRASHED", Tone::Error, ended(*code, *signal)),
        AttemptEvent::AttemptExited { exit, .. } => ("EXITED", Tone::Dim, exited(exit)),
        AttemptEvent::AttemptEnded { cause, last_words, .. } => {
            let told = format!("{cause}: {}", cause.words());
            ("ENDED", Tone::Dim, last_words::with(&told, last_words.as_deref()))
        }
    }
}

fn reloaded(reload: &PlanReloaded) -> String {
    let (changed, removed) = (reload.changed.len(), reload.removed.len());
    let added = counted(reload.added.len(), "task", "tasks");
    format!("the operator changed the plan: {added} added, {changed} changed, {removed} removed")
}

fn tell_run(fact: &RunEvent) -> Parts {
    match fact {
        RunEvent::RunStarted { plan, plan_path, .. } => {
            let tasks = counted(plan.tasks.len(), "task", "tasks");
            ("RUN", Tone::Active, format!("{} with {tasks} from {plan_path}", plan.name))
        }
        RunEvent::AttemptsLost(lost) => {
            let text =
                format!("the log ends at attempt {}, bundles at {}: continued without them", lost.known, lost.highest);
            ("EVENTS LOST", Tone::Warning, text)
        }
        RunEvent::BranchMade(made) => {
            let notes: String = made.notes.iter().map(|note| format!("; {note}")).collect();
            ("BRANCH", Tone::Dim, format!("accepted work goes to {}{notes}", made.branch))
        }
        RunEvent::Landed(landed) => {
            let Landed { into, commit, form, .. } = landed;
            ("LANDED", Tone::Good, format!("in {into} as {} ({form})", short_commit(commit)))
        }
        RunEvent::PullRequest(change) => pull_request::told(change),
        RunEvent::CoordinatorStarted { pid, .. } => ("COORDINATOR", Tone::Dim, format!("process {pid}")),
        RunEvent::CoordinatorRecovered(Recovery { orphaned_agents, events_reconciled, adopted, finished, .. }) => (
            "RECOVERED",
            Tone::Good,
            format!(
                "{adopted} adopted, {finished} finished meanwhile, {orphaned_agents} lost, {} reconciled",
                counted(*events_reconciled, "fact", "facts")
            ),
        ),
        RunEvent::StateReconciled { event_type, detail } => {
            ("RECONCILED", Tone::Dim, format!("{event_type}: {detail}"))
        }
        RunEvent::SessionPause(pause) => ("PAUSING", Tone::Warning, pausing(pause.reason).to_owned()),
        RunEvent::RunPaused {} => ("PAUSED", Tone::Warning, "all agents have ended".to_owned()),
        RunEvent::SessionResume(resume) => {
            let again = match resume.tasks_to_revalidate {
                0 => String::new(),
                1 => ", 1 recent completion is checked again".to_owned(),
                many => format!(", {many} recent completions are checked again"),
            };
            ("RESUMED", Tone::Active, format!("resume {} of this run{again}", resume.resume_count))
        }
        RunEvent::RunReopened {} => ("REOPENED", Tone::Warning, "there is work again".to_owned()),
        RunEvent::WaveStarted { wave } => ("WAVE", Tone::Dim, format!("{wave} begins")),
        RunEvent::WaveEnded { wave } => ("WAVE", Tone::Dim, format!("{wave} has ended")),
        RunEvent::PlanChanged { .. } => {
            ("CHANGED", Tone::Warning, "the plan's file differs from the plan of this run".to_owned())
        }
        RunEvent::PlanReloaded(reload) => ("RELOADED", Tone::Active, reloaded(reload)),
        RunEvent::RunFinished(Finish { outcome, complete, failed, skipped, unreachable }) => {
            let tone = if *outcome == Outcome::Complete { Tone::Good } else { Tone::Error };
            (
                "FINISHED",
                tone,
                format!("{complete} complete, {failed} failed, {skipped} skipped, {unreachable} out of reach"),
            )
        }
        RunEvent::TeamChecked(TeamStanding { working, idle, unresponsive }) => {
            ("TEAM", Tone::Dim, format!("{working} working, {idle} idle, {unresponsive} unresponsive"))
        }
        RunEvent::DiskInspected { missing: 0 } => {
            ("INSPECTED", Tone::Dim, "everything that is complete is on disk".to_owned())
        }
        RunEvent::DiskInspected { missing } => {
            ("INSPECTED", Tone::Warning, format!("{missing} complete tasks have lost what they made"))
        }
    }
}

fn changed_words(parts: &[ChangedPart]) -> String {
    let parts: Vec<&str> = parts.iter().map(|part| part.words()).collect();
    format!("the operator changed its {}", parts.join(", "))
}

/// The evidence for a decision, one line each.
pub(crate) fn evidence(body: &Body) -> Vec<String> {
    match body {
        Body::Task(TaskEvent::ChecksFinished { evidence, .. }) => of_checks(evidence),
        Body::Attempt(AttemptEvent::Dispatched { tasks, blocked_by, .. }) => {
            let mut lines = Vec::new();
            if tasks.len() > 1 {
                let names: Vec<&str> = tasks.iter().map(AsRef::as_ref).collect();
                lines.push(format!("tasks in order: {}", names.join(", ")));
            }
            if !blocked_by.is_empty() {
                let names: Vec<&str> = blocked_by.iter().map(AsRef::as_ref).collect();
                lines.push(format!("it waited for {}", names.join(", ")));
            }
            lines
        }
        Body::Task(TaskEvent::CheckpointSaved { checkpoint }) => {
            let done = checkpoint.completed.iter().map(|item| format!("done: {item}"));
            let left = checkpoint.remaining.iter().map(|item| format!("left: {item}"));
            done.chain(left).collect()
        }
        Body::Task(TaskEvent::SplitProposed { subtasks }) => {
            subtasks.iter().enumerate().map(|(index, part)| format!("{}. {part}", index + 1)).collect()
        }
        Body::Person(PersonEvent::PersonAlerted { choices, .. }) => {
            choices.iter().map(|choice| format!("choose: {choice}")).collect()
        }
        Body::Person(fact @ (PersonEvent::Detached { .. } | PersonEvent::Told { given_back: true, .. })) => {
            person::evidence(fact)
        }
        Body::Person(PersonEvent::QuestionAsked { options, context, .. }) => {
            let context = Some(context).filter(|text| !text.is_empty()).cloned();
            let options = options.iter().map(|option| format!("option: {option}"));
            context.into_iter().chain(options).collect()
        }
        Body::Run(_)
        | Body::Attempt(_)
        | Body::Session(_)
        | Body::Task(_)
        | Body::Review(_)
        | Body::Gate(_)
        | Body::Machine(_)
        | Body::Person(_) => protocol::evidence(body),
    }
}

/// The results of checks: each with its outcome, and the output of those that failed.
pub(crate) fn of_checks(evidence: &Evidence) -> Vec<String> {
    let mut lines = Vec::new();
    for check in &evidence.checks {
        let took = elapsed(check.took_ms);
        let how = check.outcome();
        let place = check.environment.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
        lines.push(format!("`{}` {how}{place} after {took}", check.command));
        if !check.passed {
            lines.extend(check.output.lines().map(|line| format!("  {line}")));
        }
    }
    if review::environments(evidence).is_some() {
        lines.push(review::COMMON_CAUSES.to_owned());
    }
    for seen in evidence.health.iter().filter(|seen| !seen.check.passed) {
        let origin = match seen.origin {
            Some(Origin::Before) => "failed before the work began",
            Some(Origin::Introduced) => "passed before the work began",
            _ => "it is not known since when",
        };
        lines.push(format!("health command `{}` fails: {origin}", seen.check.command));
        lines.extend(seen.check.output.lines().map(|line| format!("  {line}")));
    }
    let missing = evidence.missing_artifacts.iter();
    lines.extend(missing.map(|artifact| format!("{artifact} is not there")));
    lines
}

/// Why a task failed. A reason by its name in the log (`developer_crash_limit`) says less than the words beside it.
fn failure(reason: &str, detail: &str) -> String {
    match (reason.contains('_'), detail.is_empty()) {
        (true, false) => detail.to_owned(),
        (_, true) => reason.replace('_', " "),
        (false, false) => format!("{reason}: {detail}"),
    }
}

/// What a task's checks said before anybody worked on it.
fn before(baseline: &Baseline) -> String {
    match (&baseline.failed, &baseline.unknown) {
        // A command stands in backticks; anything else is an artifact.
        (Some(check), _) if check.starts_with('`') => format!("{check} fails before the work, as it should"),
        (Some(artifact), _) => format!("{artifact} is missing before the work, as it should be"),
        (None, Some(why)) => format!("not known whether its checks pass before the work: {why}"),
        (None, None) => "its checks pass already, so they cannot show that it was done".to_owned(),
    }
}

fn pausing(reason: PauseReason) -> &'static str {
    match reason {
        PauseReason::Operator => "by `rekindle pause`",
        PauseReason::Interrupt => "by Ctrl-C, which stops at once when pressed again",
        PauseReason::Terminate => "by SIGTERM",
        PauseReason::Stop => "at once, without a grace period for agents",
        PauseReason::NoWait => "every open task waits for a person or a reset (--no-wait)",
        PauseReason::Budget => "its budget is used up, and you took it back",
        PauseReason::UsageLimit | PauseReason::SystemError => reason.words(),
    }
}

fn through(channel: Channel) -> &'static str {
    match channel {
        Channel::Command => "by command",
        Channel::Signal => "by a signal in its output",
        Channel::Kept => "kept while no coordinator was running",
        Channel::Mcp => "by MCP",
        Channel::Operator => "by the operator",
        Channel::Own | Channel::Unreported => "by rekindle itself",
    }
}

/// How a process ended.
pub(crate) fn ended(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (_, Some(signal)) => format!("ended by signal {signal}"),
        (Some(code), None) => format!("ended with code {code}"),
        (None, None) => "ended".to_owned(),
    }
}

/// How a process ended, by its exit record.
pub(crate) fn exited(exit: &Exit) -> String {
    if let Some(error) = &exit.start_error {
        return format!("could not be started: {error}");
    }
    let memory = if exit.out_of_memory { ", out of memory" } else { "" };
    format!("{}{memory}", ended(exit.code, exit.signal))
}

/// The details of an event that has no sentence of its own.
fn details(event: &StoredEvent) -> String {
    let value: Value = serde_json::from_str(&event.details).unwrap_or_default();
    let Value::Object(fields) = value else {
        return event.kind.clone();
    };
    let fields = fields.iter().map(|(key, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let short: String = one_line(&text).chars().take(VALUE_MAX_CHARS).collect();
        format!("{key}={short}")
    });
    std::iter::once(event.kind.clone()).chain(fields).collect::<Vec<_>>().join(" ")
}
