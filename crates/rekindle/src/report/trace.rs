//! A run as a trace of events in Chrome's format, which Perfetto and `chrome://tracing` open: a lane for every task and
//! every agent, a slice for every attempt, an instant for everything that happened to it, and the number of running agents.

use std::collections::{BTreeMap, BTreeSet};

use rekindle_core::time::Time;
use serde_json::{Value, json};

use crate::picture::Picture;
use crate::picture::history::Span;
use crate::ui::{cut, one_line, stamp};

/// The group of lanes that are tasks.
const TASKS: u32 = 1;

/// The group of lanes that are agents.
const AGENTS: u32 = 2;

/// Longest text of an event, in columns.
const TEXT_COLUMNS: usize = 500;

pub(crate) fn render(picture: &Picture) -> String {
    let mut trace = Trace { picture, events: Vec::new() };
    let names: BTreeSet<&str> = spans(picture).map(|(_, span)| span.agent.as_str()).collect();
    let lanes: BTreeMap<&str, usize> = names.into_iter().enumerate().map(|(at, name)| (name, at + 1)).collect();
    trace.named(TASKS, None, &format!("tasks of {}", picture.run.plan));
    trace.named(AGENTS, None, "agents");
    for (at, task) in picture.tasks.iter().enumerate() {
        trace.named(TASKS, Some(at + 1), &format!("{} {}", task.id, task.title));
    }
    for (name, lane) in &lanes {
        trace.named(AGENTS, Some(*lane), name);
    }
    for (lane, span) in spans(picture) {
        let agent = lanes.get(span.agent.as_str()).copied().unwrap_or_default();
        trace.attempt(lane, agent, span, picture.tasks[lane - 1].id.as_str());
    }
    trace.running();
    let whole = json!({
        "displayTimeUnit": "ms",
        "otherData": { "run": picture.run.id, "plan": text(&picture.run.plan), "started_at": stamp(picture.run.started_at), "state": picture.run.state },
        "traceEvents": trace.events,
    });
    format!("{whole}\n")
}

/// Every attempt with its task's lane.
fn spans(picture: &Picture) -> impl Iterator<Item = (usize, &Span)> {
    let lanes = picture.tasks.iter().enumerate();
    lanes.flat_map(|(at, task)| picture.history.of(&task.id).iter().map(move |span| (at + 1, span)))
}

struct Trace<'a> {
    picture: &'a Picture,
    events: Vec<Value>,
}

impl Trace<'_> {
    /// Names a group or one of its lanes, and sets its position.
    fn named(&mut self, group: u32, lane: Option<usize>, name: &str) {
        let (kind, sort, lane) = match lane {
            Some(lane) => ("thread_name", "thread_sort_index", lane),
            None => ("process_name", "process_sort_index", 0),
        };
        let place = if lane == 0 { usize::try_from(group).unwrap_or_default() } else { lane };
        self.events.push(json!({ "ph": "M", "name": kind, "pid": group, "tid": lane, "args": { "name": text(name) } }));
        self.events
            .push(json!({ "ph": "M", "name": sort, "pid": group, "tid": lane, "args": { "sort_index": place } }));
    }

    fn attempt(&mut self, lane: usize, agent: usize, span: &Span, task: &str) {
        let end = span.ended_at.unwrap_or(self.picture.until()).max(span.begun_at);
        let runs = span.runs_at.unwrap_or(end).clamp(span.begun_at, end);
        let outcome = span.outcome.as_deref().unwrap_or("running");
        let about = json!({
            "attempt": span.attempt.0, "agent": text(&span.agent), "runs": text(&span.cli), "role": span.role.to_string(),
            "outcome": text(outcome), "more_marks": span.more_marks,
        });
        let name = format!("attempt {}: {}", span.number, text(&outcome.replace('_', " ")));
        self.slice((TASKS, lane), "attempt", &name, (span.begun_at, end), &about);
        if runs > span.begun_at {
            self.slice((TASKS, lane), "starting", "starting", (span.begun_at, runs), &json!({}));
        }
        self.slice((AGENTS, agent), "attempt", task, (span.begun_at, end), &about);
        for mark in &span.marks {
            let ts = self.ts(mark.time);
            self.events.push(json!({
                "ph": "i", "s": "t", "name": mark.kind.name(), "cat": "mark", "pid": TASKS, "tid": lane, "ts": ts,
                "args": { "text": text(&mark.text), "seq": mark.seq },
            }));
        }
    }

    fn slice(&mut self, place: (u32, usize), kind: &str, name: &str, (from, until): (Time, Time), about: &Value) {
        let (ts, end) = (self.ts(from), self.ts(until));
        self.events.push(json!({
            "ph": "X", "name": name, "cat": kind, "pid": place.0, "tid": place.1, "ts": ts, "dur": end.saturating_sub(ts).max(0),
            "args": about,
        }));
    }

    /// How many agents ran, at every change.
    fn running(&mut self) {
        let mut changes: BTreeMap<i64, i64> = BTreeMap::new();
        for (_, span) in spans(self.picture) {
            let end = span.ended_at.unwrap_or(self.picture.until()).max(span.begun_at);
            *changes.entry(self.ts(span.begun_at)).or_default() += 1;
            *changes.entry(self.ts(end)).or_default() -= 1;
        }
        let mut running = 0;
        for (ts, change) in changes {
            running += change;
            let event = json!({ "ph": "C", "name": "running agents", "pid": TASKS, "tid": 0, "ts": ts, "args": { "running": running } });
            self.events.push(event);
        }
    }

    /// Microseconds since the run began.
    fn ts(&self, time: Time) -> i64 {
        time.0.saturating_sub(self.picture.run.started_at.0).saturating_mul(1_000)
    }
}

fn text(words: &str) -> String {
    cut(&one_line(words), TEXT_COLUMNS)
}
