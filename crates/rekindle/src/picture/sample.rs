//! Hand-made runs, for tests of the code that draws one: a script of events and the matching rows.

use std::sync::Arc;

use rekindle_core::cause::Cause;
use rekindle_core::event::{AttemptEvent, Body, TaskEvent};
use rekindle_core::ids::{AttemptId, TaskId};
use rekindle_core::role::Role;
use rekindle_core::strategy::Strategy;
use rekindle_core::time::Time;
use rekindle_core::view::{AttemptRow, QuestionRow, RunRow, TaskRow};
use rekindle_engine::store::{Hash, StoredEvent};
use serde_json::json;

use super::Picture;
use super::history::{History, is_told};

/// When every script begins.
pub(crate) const START: i64 = 1_790_000_000_000;

/// Events, one after the other.
#[derive(Default)]
pub(crate) struct Script {
    pub events: Vec<StoredEvent>,
}

impl Script {
    /// Adds what happened `ms` after the start.
    pub(crate) fn at(&mut self, ms: i64, agent: &str, task: &str, body: &Body) -> &mut Self {
        let named = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
        self.events.push(StoredEvent {
            seq: u64::try_from(self.events.len()).expect("few") + 1,
            time_ms: START.saturating_add(ms),
            run: "r1".to_owned(),
            kind: body.name(),
            agent: named(agent),
            task: named(task),
            epoch: None,
            details: body.details(),
            hash: Hash::ZERO,
        });
        self
    }

    pub(crate) fn dispatched(&mut self, ms: i64, agent: &str, task: &str, attempt: u64, resumed: bool) -> &mut Self {
        let body = Body::Attempt(AttemptEvent::Dispatched {
            attempt: AttemptId(attempt),
            role: Role::Developer,
            cli: "demo".to_owned(),
            tasks: vec![id(task)],
            blocked_by: Vec::new(),
            resumed,
            strategy: Strategy::default(),
            session: None,
            asks_for_report: false,
            reason: "first attempt".to_owned(),
        });
        self.at(ms, agent, task, &body)
    }

    /// The task starts, with its attempt's number.
    pub(crate) fn task_started(&mut self, ms: i64, agent: &str, task: &str, attempt: u64, number: u32) -> &mut Self {
        self.at(
            ms,
            agent,
            task,
            &Body::Task(TaskEvent::TaskStarted { attempt: AttemptId(attempt), number, nth: number }),
        )
    }

    /// The agent's process is running.
    pub(crate) fn runs(&mut self, ms: i64, agent: &str, task: &str, attempt: u64) -> &mut Self {
        self.at(
            ms,
            agent,
            task,
            &Body::Attempt(AttemptEvent::AgentStarted {
                attempt: AttemptId(attempt),
                pid: 1,
                shim_pid: 2,
                own_bytes: 0,
            }),
        )
    }

    /// A crash, as the core records it.
    pub(crate) fn crashed(&mut self, ms: i64, agent: &str, task: &str, attempt: u64) -> &mut Self {
        let (attempt, cause) = (AttemptId(attempt), Cause::Crashed { code: None, signal: Some(9) });
        self.at(ms, agent, task, &Body::Attempt(AttemptEvent::AgentCrashed { attempt, code: None, signal: Some(9) }));
        self.at(
            ms,
            agent,
            task,
            &Body::Attempt(AttemptEvent::AttemptEnded { attempt, cause: cause.clone(), last_words: None }),
        );
        let reason = "it was ended by signal 9".to_owned();
        self.at(
            ms,
            agent,
            task,
            &Body::Task(TaskEvent::TaskRequeued { cause, counted: true, not_before: None, reason }),
        )
    }

    /// The task is complete and its attempt over.
    pub(crate) fn done(&mut self, ms: i64, agent: &str, task: &str, attempt: u64) -> &mut Self {
        self.at(
            ms,
            agent,
            task,
            &Body::Task(TaskEvent::TaskCompleted { result: None, unproven: false, unreported: false }),
        );
        self.at(
            ms + 5,
            agent,
            task,
            &Body::Attempt(AttemptEvent::AttemptEnded {
                attempt: AttemptId(attempt),
                cause: Cause::Completed,
                last_words: None,
            }),
        )
    }

    /// The summary of the events.
    pub(crate) fn history(&self) -> History {
        let (mut history, mut read) = (History::default(), History::default());
        for event in &self.events {
            history.take(event);
            if is_told(&event.kind) {
                read.take(event);
            }
        }
        // The events that are skipped when a long log is read change only when something last happened.
        read.last_time = history.last_time;
        assert_eq!(format!("{read:?}"), format!("{history:?}"));
        history
    }

    /// A picture of it, `until` milliseconds after the start.
    pub(crate) fn picture(&self, tasks: Vec<TaskRow>, until: i64) -> Picture {
        Picture {
            run: run("running"),
            tasks,
            attempts: Vec::new(),
            questions: Vec::new(),
            history: Arc::new(self.history()),
            outputs: Arc::default(),
            coordinator: Some(1),
            damage: None,
            seq: self.events.len() as u64,
            now: Time(START.saturating_add(until)),
            result: None,
            removed: None,
            waits: std::sync::OnceLock::new(),
        }
    }
}

pub(crate) fn id(name: &str) -> TaskId {
    TaskId::new(name).expect("a name")
}

pub(crate) fn run(state: &str) -> RunRow {
    serde_json::from_value(json!({
        "id": "r1", "plan": "plan", "title": "A plan", "plan_path": "plan.md", "state": state, "started_at": START,
        "ended_at": null, "resumes": 0, "attempts": 3, "plan_changed": false,
    }))
    .expect("a run")
}

/// A task that waits for others.
pub(crate) fn task(name: &str, title: &str, state: &str, blocked_by: &[&str]) -> TaskRow {
    serde_json::from_value(json!({
        "id": name, "title": title, "state": state, "attempts": 1, "attempt_limit": 3, "agent": format!("dev-{name}"),
        "wave": 1, "cause": null, "reason": null, "result": null, "unproven": false, "verifying": false, "epoch": 1,
        "blocked_by": blocked_by, "started_at": null, "ended_at": null, "not_before": null, "checkpoint": null,
        "evidence": null,
    }))
    .expect("a task")
}

pub(crate) fn attempt(number: u64, agent: &str, tasks: &[&str], state: &str) -> AttemptRow {
    serde_json::from_value(json!({
        "attempt": number, "name": agent, "cli": "demo", "role": "developer", "state": state, "pid": 1, "shim_pid": 2,
        "task": tasks.first(), "tasks": tasks, "epoch": 1, "started_at": START, "ended_at": null, "cause": null,
    }))
    .expect("an attempt")
}

pub(crate) fn question(number: u64, task: &str, text: &str, options: &[&str]) -> QuestionRow {
    serde_json::from_value(json!({
        "id": number, "task": task, "agent": format!("dev-{task}"), "text": text, "options": options, "context": "",
        "answer": null, "asked_at": START,
    }))
    .expect("a question")
}
