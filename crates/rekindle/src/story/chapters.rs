//! Every decision about a task in order, each with its evidence: what `why` prints and every view shows.

mod trail;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rekindle_core::cause::Cause;
use rekindle_core::event::{AttemptEvent, Body, GateEvent, SessionEvent, TaskEvent};
use rekindle_core::ids::AttemptId;
use rekindle_core::time::Time;
use rekindle_engine::store::StoredEvent;

use self::trail::Trail;
use crate::error::Result;
use crate::story;
use crate::view::RunView;

pub(crate) fn of(run: &RunView<'_>, task: &str) -> Result<Vec<Chapter>> {
    let mut chapters = Vec::new();
    let mut teller = Teller::of(task);
    run.events(0, |event| {
        let body = story::body(event);
        chapters.extend(body.and_then(|body| teller.chapter(event, &body)));
        Ok(())
    })?;
    Ok(chapters)
}

/// The newest chapters of a task.
#[derive(Default)]
pub(crate) struct Newest {
    /// The chapters, oldest first.
    pub chapters: VecDeque<Chapter>,
    /// Older ones that were left out.
    pub left_out: usize,
}

/// The newest chapters of each task, at most `most` of one: the log is read once for all of them.
pub(crate) fn of_each<'a>(run: &RunView<'_>, tasks: &[&'a str], most: usize) -> Result<BTreeMap<&'a str, Newest>> {
    let mut told: Vec<(Teller<'a>, Newest)> = tasks.iter().map(|task| (Teller::of(task), Newest::default())).collect();
    run.events(0, |event| {
        let Some(body) = story::body(event) else { return Ok(()) };
        for (teller, newest) in &mut told {
            let Some(chapter) = teller.chapter(event, &body) else { continue };
            newest.chapters.push_back(chapter);
            if newest.chapters.len() > most {
                newest.chapters.pop_front();
                newest.left_out += 1;
            }
        }
        Ok(())
    })?;
    Ok(told.into_iter().map(|(teller, newest)| (teller.about.task, newest)).collect())
}

/// One decision or fact about the task.
pub(crate) struct Chapter {
    pub event: StoredEvent,
    /// What it says.
    pub body: Body,
    /// The attempt that it is about.
    pub attempt: Option<AttemptId>,
    /// The cause that it names, or that led to it.
    pub cause: Option<&'static str>,
    /// Its evidence, including everything seen of the attempt so far if that led to it.
    pub evidence: Vec<String>,
    /// The same for people, who have read above what was seen.
    pub shown: Vec<String>,
}

/// Reads through the log and remembers what was seen of the current attempt.
struct Teller<'a> {
    about: About<'a>,
    trail: Trail,
}

impl<'a> Teller<'a> {
    fn of(task: &'a str) -> Self {
        Self { about: About { task, attempts: BTreeSet::new() }, trail: Trail::default() }
    }

    fn chapter(&mut self, event: &StoredEvent, body: &Body) -> Option<Chapter> {
        if !self.about.concerns(event, body) {
            return None;
        }
        let starts = matches!(body, Body::Attempt(AttemptEvent::Dispatched { .. }));
        if !starts {
            self.trail.add(body, Time(event.time_ms));
        }
        // Only what follows from these events is a decision.
        if matches!(body, Body::Session(SessionEvent::AgentMeasured { .. } | SessionEvent::TurnEnded { .. })) {
            return None;
        }
        let own = story::evidence(body);
        let seen = if Trail::leads_to(body) { self.trail.lines() } else { Vec::new() };
        let evidence: Vec<String> = own.iter().chain(&seen).cloned().collect();
        let cause = cause_of(body).map(Cause::name).or(self.trail.cause().filter(|_| starts));
        if starts {
            self.trail = Trail::default();
        }
        let attempt = story::attempt_of(body).or(self.about.attempts.last().copied());
        let shown = if starts { evidence.clone() } else { own };
        Some(Chapter { event: event.clone(), body: body.clone(), attempt, cause, evidence, shown })
    }
}

/// Tells the events of one task from the rest: its own, and those of the attempts that held it.
struct About<'a> {
    task: &'a str,
    attempts: BTreeSet<AttemptId>,
}

impl About<'_> {
    fn concerns(&mut self, event: &StoredEvent, body: &Body) -> bool {
        if let Body::Attempt(AttemptEvent::Dispatched { attempt, tasks, .. }) = body {
            let holds = tasks.iter().any(|task| task.as_str() == self.task);
            if holds {
                self.attempts.insert(*attempt);
            }
            return holds;
        }
        let own = event.task.as_deref().map(|task| task == self.task);
        let of_attempt = || story::attempt_of(body).is_some_and(|attempt| self.attempts.contains(&attempt));
        // An event that names another task belongs to that task, although the same agent holds both.
        own.unwrap_or_else(of_attempt)
    }
}

fn cause_of(body: &Body) -> Option<&Cause> {
    match body {
        Body::Attempt(AttemptEvent::StopOrdered { cause, .. } | AttemptEvent::AttemptEnded { cause, .. })
        | Body::Task(TaskEvent::TaskRequeued { cause, .. })
        | Body::Gate(GateEvent::GateClosed(rekindle_core::event::GateClosed { cause, .. })) => Some(cause),
        Body::Run(_)
        | Body::Attempt(_)
        | Body::Session(_)
        | Body::Task(_)
        | Body::Review(_)
        | Body::Gate(_)
        | Body::Machine(_)
        | Body::Person(_) => None,
    }
}
