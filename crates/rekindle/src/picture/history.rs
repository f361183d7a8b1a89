//! The events of a run summed up for a timeline: which attempt held which task from when to when, and what happened to it.
//!
//! It is fed event by event and never looks back, so a live view reads only what is new.

use std::collections::BTreeMap;

use rekindle_core::event::{
    AttemptEvent, Body, GateEvent, PersonEvent, ReviewEvent, RunEvent, SessionEvent, TaskEvent,
};
use rekindle_core::ids::{AttemptId, TaskId};
use rekindle_core::role::Role;
use rekindle_core::text;
use rekindle_core::time::Time;
use rekindle_engine::store::StoredEvent;

use crate::story;
use crate::ui::Tone;

/// Marks kept for one attempt at a task: its first marks and their number are enough for a loop of compactions.
const MARKS_MAX: usize = 64;

/// Longest text of a mark: an agent's words may be long, and the event has all of them.
const TEXT_MAX_BYTES: usize = 300;

/// Recoveries and alerts that are kept, newest last.
const NEWS_MAX: usize = 200;

/// What happened to an attempt, for a symbol on its bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum MarkKind {
    Compaction,
    /// Its process crashed or was lost.
    Crash,
    /// It was silent or too slow.
    Hang,
    /// Its account has to wait.
    Limit,
    /// It was adopted, resumed or replaced.
    Recovery,
    /// Its claim was not proven, or its work was sent back.
    Refused,
    Question,
    /// The task failed for good.
    Failed,
    Done,
}

impl MarkKind {
    /// All kinds, in the order of a legend.
    pub(crate) const ALL: [Self; 9] = [
        Self::Compaction,
        Self::Crash,
        Self::Hang,
        Self::Limit,
        Self::Recovery,
        Self::Refused,
        Self::Question,
        Self::Failed,
        Self::Done,
    ];

    /// Its name, for a legend, a class and a screen reader.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Compaction => "compaction",
            Self::Crash => "crash",
            Self::Hang => "hang",
            Self::Limit => "limit",
            Self::Recovery => "recovery",
            Self::Refused => "refused",
            Self::Question => "question",
            Self::Failed => "failed",
            Self::Done => "complete",
        }
    }

    /// How often it happened, in words.
    pub(crate) fn counted(self, many: u64) -> String {
        let (one, more) = match self {
            Self::Compaction => ("compaction", "compactions"),
            Self::Crash => ("crash", "crashes"),
            Self::Hang => ("hang", "hangs"),
            Self::Limit => ("limit", "limits"),
            Self::Recovery => ("recovery", "recoveries"),
            Self::Refused => ("refused claim", "refused claims"),
            Self::Question => ("question", "questions"),
            Self::Failed => ("failed task", "failed tasks"),
            Self::Done => ("completion", "completions"),
        };
        text::counted(many, one, more)
    }

    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Compaction => "◆",
            Self::Crash => "✖",
            Self::Hang => "◷",
            Self::Limit => "‖",
            Self::Recovery => "↻",
            Self::Refused => "!",
            Self::Question => "?",
            Self::Failed => "✖",
            Self::Done => "✔",
        }
    }

    pub(crate) fn tone(self) -> Tone {
        match self {
            Self::Crash | Self::Failed => Tone::Error,
            Self::Compaction | Self::Hang | Self::Limit | Self::Refused | Self::Question => Tone::Warning,
            Self::Recovery => Tone::Hint,
            Self::Done => Tone::Good,
        }
    }
}

/// One thing that happened to an attempt at a task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mark {
    pub kind: MarkKind,
    pub time: Time,
    pub text: String,
    /// The event's sequence number.
    pub seq: u64,
}

/// One attempt at one task, for a bar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    pub attempt: AttemptId,
    pub agent: String,
    pub role: Role,
    /// Which `[agents.NAME]` runs it.
    pub cli: String,
    /// The attempt's number for the task.
    pub number: u32,
    /// When the task was free to start, judged by its own history: the end of the previous attempt.
    pub free_at: Option<Time>,
    /// When the attempt was decided on: its start-up begins here.
    pub begun_at: Time,
    /// When its process was running: its work begins here.
    pub runs_at: Option<Time>,
    /// When it left the task.
    pub ended_at: Option<Time>,
    /// Why it left: the cause's name, or `complete`, `skipped`, `handed_on`, `parked`, `sent_back`, `replaced`, or the limit
    /// that made the task fail for good.
    pub outcome: Option<String>,
    /// What happened to it.
    pub marks: Vec<Mark>,
    /// Marks that were left out.
    pub more_marks: usize,
}

/// Something that a person wants to see without looking for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct News {
    /// The event's sequence number.
    pub seq: u64,
    pub time: Time,
    pub kind: MarkKind,
    /// The task, if it is about one.
    pub task: Option<String>,
    /// The agent, if it is about one.
    pub agent: Option<String>,
    pub text: String,
}

/// The summary of all events.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Attempts at each task, oldest first.
    pub spans: BTreeMap<TaskId, Vec<Span>>,
    /// Crashes, limits, recoveries and the like over the whole run, oldest first; the newest are kept.
    pub news: Vec<News>,
    /// How many of each kind there were.
    pub counts: BTreeMap<MarkKind, u64>,
    pub last_time: Option<Time>,
    known: BTreeMap<AttemptId, SeenTask>,
}

#[derive(Clone, Debug)]
struct SeenTask {
    agent: String,
    role: Role,
    cli: String,
    begun_at: Time,
    runs_at: Option<Time>,
}

impl History {
    /// A history that knows only when something last happened.
    pub(crate) fn up_to(last_time: Option<Time>) -> Self {
        Self { last_time, ..Self::default() }
    }

    /// The spans of a task.
    pub(crate) fn of(&self, task: &TaskId) -> &[Span] {
        self.spans.get(task).map(Vec::as_slice).unwrap_or_default()
    }

    /// How often something of a kind happened.
    pub(crate) fn count(&self, kind: MarkKind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }

    /// Takes the next event of the run.
    pub(crate) fn take(&mut self, event: &StoredEvent) {
        let now = Time(event.time_ms);
        self.last_time = Some(now);
        let Some(body) = story::body(event) else { return };
        let task = event.task.as_deref().and_then(|id| TaskId::new(id).ok());
        self.take_begin(event, &body, task.as_ref(), now);
        if let Some(kind) = mark_kind(&body) {
            self.mark(event, &body, kind, task.as_ref(), now);
        }
        self.take_end(&body, task.as_ref(), now);
    }

    fn take_begin(&mut self, event: &StoredEvent, body: &Body, task: Option<&TaskId>, now: Time) {
        match body {
            Body::Attempt(AttemptEvent::Dispatched { attempt, role, cli, tasks, .. }) => {
                let agent = event.agent.clone().unwrap_or_default();
                let known = SeenTask { agent, role: *role, cli: cli.clone(), begun_at: now, runs_at: None };
                self.known.insert(*attempt, known);
                if let Some(first) = tasks.first() {
                    self.open(*attempt, first, now);
                }
            }
            // An adopted attempt may have started while no coordinator was running to record it.
            Body::Attempt(AttemptEvent::AgentStarted { attempt, .. } | AttemptEvent::AgentAdopted { attempt, .. }) => {
                if let Some(known) = self.known.get_mut(attempt) {
                    known.runs_at.get_or_insert(now);
                }
                for span in self.open_spans(*attempt) {
                    span.runs_at.get_or_insert(now);
                }
            }
            Body::Task(TaskEvent::TaskStarted { attempt, number, nth }) => {
                let Some(task) = task else { return };
                self.open(*attempt, task, now);
                let last = self.spans.get_mut(task).and_then(|spans| spans.last_mut());
                if let Some(span) = last.filter(|span| span.attempt == *attempt) {
                    span.number = if *nth > 0 { *nth } else { *number };
                }
            }
            Body::Run(_)
            | Body::Attempt(_)
            | Body::Session(_)
            | Body::Task(_)
            | Body::Review(_)
            | Body::Gate(_)
            | Body::Machine(_)
            | Body::Person(_) => {}
        }
    }

    /// Opens a span, unless the attempt already holds the task.
    fn open(&mut self, attempt: AttemptId, task: &TaskId, now: Time) {
        let Some(known) = self.known.get(&attempt) else { return };
        let spans = self.spans.entry(task.clone()).or_default();
        if spans.last().is_some_and(|last| last.attempt == attempt && last.ended_at.is_none()) {
            return;
        }
        if let Some(last) = spans.last_mut().filter(|last| last.ended_at.is_none()) {
            (last.ended_at, last.outcome) = (Some(now), Some("replaced".to_owned()));
        }
        let number = u32::try_from(spans.len()).unwrap_or(u32::MAX).saturating_add(1);
        spans.push(Span {
            attempt,
            agent: known.agent.clone(),
            role: known.role,
            cli: known.cli.clone(),
            number,
            free_at: spans.last().and_then(|last| last.ended_at),
            begun_at: if known.runs_at.is_some() { now } else { known.begun_at },
            runs_at: known.runs_at.map(|runs| runs.max(now)),
            ended_at: None,
            outcome: None,
            marks: Vec::new(),
            more_marks: 0,
        });
    }

    fn take_end(&mut self, body: &Body, task: Option<&TaskId>, now: Time) {
        let outcome = match body {
            Body::Task(TaskEvent::TaskCompleted { .. }) => "complete".to_owned(),
            Body::Task(TaskEvent::TaskRequeued { cause, .. }) => cause.name().to_owned(),
            Body::Task(TaskEvent::TaskSkipped { .. }) => "skipped".to_owned(),
            Body::Task(TaskEvent::WorkflowFailed { reason, .. }) => reason.clone(),
            Body::Review(ReviewEvent::TaskHandedOn(_)) => "handed_on".to_owned(),
            Body::Task(TaskEvent::TaskParked { .. }) => "parked".to_owned(),
            Body::Review(ReviewEvent::TaskRework(_)) => "sent_back".to_owned(),
            Body::Attempt(AttemptEvent::AttemptEnded { attempt, cause, .. }) => {
                for span in self.open_spans(*attempt) {
                    (span.ended_at, span.outcome) = (Some(now), Some(cause.name().to_owned()));
                }
                return;
            }
            Body::Run(_)
            | Body::Attempt(_)
            | Body::Session(_)
            | Body::Task(_)
            | Body::Review(_)
            | Body::Gate(_)
            | Body::Machine(_)
            | Body::Person(_) => return,
        };
        let last = task.and_then(|task| self.spans.get_mut(task)).and_then(|spans| spans.last_mut());
        if let Some(span) = last.filter(|span| span.ended_at.is_none()) {
            (span.ended_at, span.outcome) = (Some(now), Some(outcome));
        }
    }

    fn open_spans(&mut self, attempt: AttemptId) -> impl Iterator<Item = &mut Span> {
        let last = self.spans.values_mut().filter_map(|spans| spans.last_mut());
        last.filter(move |span| span.attempt == attempt && span.ended_at.is_none())
    }

    fn mark(&mut self, event: &StoredEvent, body: &Body, kind: MarkKind, task: Option<&TaskId>, now: Time) {
        *self.counts.entry(kind).or_default() += 1;
        let text = text::one_line(&story::tell(event).text, TEXT_MAX_BYTES);
        let attempt = story::attempt_of(body);
        let on = |spans: &&mut Vec<Span>| {
            let last = spans.last();
            last.is_some_and(|span| attempt.is_none_or(|attempt| span.attempt == attempt))
        };
        let by_task = task.filter(|task| self.spans.contains_key(*task)).cloned();
        let spans = match &by_task {
            Some(task) => self.spans.get_mut(task).filter(on),
            None => self.spans.values_mut().filter(|_| attempt.is_some()).find(on),
        };
        if let Some(span) = spans.and_then(|spans| spans.last_mut()) {
            if span.marks.len() < MARKS_MAX {
                span.marks.push(Mark { kind, time: now, text: text.clone(), seq: event.seq });
            } else {
                span.more_marks += 1;
            }
        }
        if kind != MarkKind::Done {
            if self.news.len() == NEWS_MAX {
                self.news.remove(0);
            }
            let (task, agent) = (event.task.clone(), event.agent.clone());
            self.news.push(News { seq: event.seq, time: now, kind, task, agent, text });
        }
    }
}

/// Kinds of events that make up the course of every task, except those with a role in their name.
const COURSE: [&str; 12] = [
    "agent_adopted",
    "checks_finished",
    "coordinator_recovered",
    "run_started",
    "task_completed",
    "task_parked",
    "task_reopened",
    "task_requeued",
    "task_rework",
    "task_skipped",
    "task_started",
    "workflow_failed",
];

/// Kinds that a timeline shows in addition.
const BESIDES: [&str; 14] = [
    "agent_compacted",
    "agent_crashed",
    "agent_hung",
    "agent_started",
    "attempt_ended",
    "gate_closed",
    "orphan_agent_detected",
    "question_asked",
    "run_finished",
    "run_paused",
    "session_pause",
    "session_resume",
    "stop_ordered",
    "task_handed_on",
];

/// Whether events of a kind belong to the course of a task: a long log has a million that do not.
pub(crate) fn is_course(kind: &str) -> bool {
    COURSE.contains(&kind) || kind.ends_with("dispatched")
}

/// Whether events of a kind are shown in a timeline.
pub(crate) fn is_told(kind: &str) -> bool {
    is_course(kind) || BESIDES.contains(&kind) || kind.ends_with("_timeout")
}

/// The mark of an event on a bar, if it has one.
pub(crate) fn mark_kind(body: &Body) -> Option<MarkKind> {
    Some(match body {
        Body::Session(SessionEvent::AgentCompacted(_)) => MarkKind::Compaction,
        Body::Attempt(AttemptEvent::AgentCrashed { .. } | AttemptEvent::OrphanAgentDetected { .. }) => MarkKind::Crash,
        Body::Attempt(AttemptEvent::AgentHung { .. } | AttemptEvent::RoleTimeout { .. }) => MarkKind::Hang,
        Body::Gate(GateEvent::GateClosed(_)) => MarkKind::Limit,
        Body::Attempt(AttemptEvent::AgentAdopted { .. })
        | Body::Run(RunEvent::CoordinatorRecovered(_))
        | Body::Attempt(AttemptEvent::Dispatched { resumed: true, .. }) => MarkKind::Recovery,
        Body::Task(TaskEvent::ChecksFinished { passed: false, .. }) | Body::Review(ReviewEvent::TaskRework(_)) => {
            MarkKind::Refused
        }
        Body::Person(PersonEvent::QuestionAsked { .. }) => MarkKind::Question,
        Body::Task(TaskEvent::WorkflowFailed { .. }) => MarkKind::Failed,
        Body::Task(TaskEvent::TaskCompleted { .. }) => MarkKind::Done,
        Body::Run(_)
        | Body::Attempt(_)
        | Body::Session(_)
        | Body::Task(_)
        | Body::Review(_)
        | Body::Gate(_)
        | Body::Machine(_)
        | Body::Person(_) => return None,
    })
}

#[cfg(test)]
mod tests;
