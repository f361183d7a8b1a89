//! The one place where decisions are made: a state, a moment and an input give events, effects and an answer.
//!
//! `decide` changes the state only through `apply`, event by event, so that replaying the events gives the same state. This
//! file routes; each subject has a file of its own. No clock, no randomness, no I/O.

mod attempt;
mod budget;
mod finish;
mod gate;
mod health;
mod hold;
mod operator;
mod phone;
mod placed;
mod preflight;
mod probe;
mod pull_request;
mod reconcile;
mod reload;
mod report;
mod review;
mod schedule;
mod session;
mod setup;
mod split;
mod steer;
mod strategy;
mod stream;
mod team;
mod timers;
pub mod turns;
mod unreported;
mod usage;

use std::collections::BTreeSet;

use crate::apply::apply;
use crate::effect::{self, Effect};
use crate::event::{Body, Event, MachineEvent, RunEvent};
use crate::ids::{AttemptId, Epoch, QuestionId, RunId, TaskId};
use crate::input::Input;
use crate::state::State;
use crate::time::Time;

pub use attempt::{answer_limit_ms, silence_limit_ms};
pub use finish::Standstill;
pub use finish::standstill;
pub use preflight::to_try;
pub use setup::{RETRY, STOP, WITHOUT};
pub use timers::{next_deadline, next_deadline_but};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Facts to make durable, in order, before anything else.
    pub events: Vec<Event>,
    /// What to do once they are durable.
    pub effects: Vec<Effect>,
    /// What to tell whoever caused the input.
    pub reply: Reply,
}

/// The answer to whoever caused an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reply {
    #[default]
    Accepted,
    /// Already done: nothing new.
    Already,
    /// The claim is being proven; the outcome follows.
    Verifying {
        task: TaskId,
        epoch: Epoch,
    },
    Asked(QuestionId),
    /// The order takes effect after a moment, unless it is cancelled by this number.
    Placed(u64),
    Refused {
        /// Why, and what to do.
        reason: String,
    },
}

/// Decides on one input at one moment.
pub fn decide(state: &mut State, now: Time, input: Input) -> Step {
    let mut step = OpenStep { now: now.max(state.last_time), state, events: Vec::new() };
    let reply = route(&mut step, input);
    reload::settle(&mut step);
    budget::look(&mut step);
    schedule::fill_slots(&mut step);
    budget::ask(&mut step);
    steer::deliver(&mut step);
    finish::finish_if_over(&mut step);
    let events = step.events;
    let effects = events.iter().filter_map(effect::following).collect();
    Step { events, effects, reply }
}

/// Decides on an input while no coordinator runs: it is recorded, but nothing is started and nothing is ended.
pub fn record(state: &mut State, now: Time, input: Input) -> Step {
    let mut step = OpenStep { now: now.max(state.last_time), state, events: Vec::new() };
    // Nothing else acts on an order that is due.
    placed::act_on_due(&mut step);
    let reply = route(&mut step, input);
    let events = step.events;
    Step { events, effects: Vec::new(), reply }
}

fn route(step: &mut OpenStep<'_>, input: Input) -> Reply {
    match input {
        Input::RunRequested { run, plan, plan_path, branch } => {
            session::run_requested(step, run, plan, plan_path, branch)
        }
        Input::CoordinatorStarted { pid, limits, boot_id, boottime_ms, found, missing } => {
            let started = RunEvent::CoordinatorStarted { pid, limits, boot_id, boottime_ms };
            session::coordinator_started(step, started, found, missing)
        }
        Input::AttemptStarted { attempt, pid, shim_pid, own_bytes } => {
            attempt::started(step, attempt, pid, shim_pid, own_bytes)
        }
        Input::AttemptExited { attempt, epoch, exit } => attempt::exited(step, attempt, epoch, exit),
        Input::AttemptLost { attempt, with_host } => attempt::lost(step, attempt, with_host),
        Input::AttemptNotStarted { attempt, reason } => attempt::not_started(step, attempt, reason),
        Input::AttemptSilent { attempt, quiet_ms, evidence } => attempt::silent(step, attempt, quiet_ms, evidence),
        Input::Reported { attempt, epoch, channel, report } => report::reported(step, attempt, epoch, channel, report),
        Input::ChecksFinished { task, epoch, evidence } => report::checks_finished(step, &task, epoch, evidence),
        Input::Streamed { attempt, event } => stream::streamed(step, attempt, event),
        Input::SessionClosed { attempt, measure, transcript, cut_off, under_way } => {
            stream::session_closed(step, attempt, measure, (transcript, cut_off, under_way))
        }
        Input::MessageTaken { attempt, number } => steer::message_taken(step, attempt, number),
        Input::PersonLeft { task, by, changed } => steer::detach(step, &task, &by, changed),
        Input::AgentSaid(said) => unreported::said(step, said),
        Input::BaselineSeen { attempt, task, baseline } => unreported::baseline_seen(step, attempt, &task, baseline),
        Input::DiskInspected { missing } => reconcile::disk_inspected(step, missing),
        Input::WorkMerged { task, epoch, outcome } => review::merged(step, &task, epoch, outcome),
        Input::AttemptsLost { highest } => session::attempts_lost(step, highest),
        Input::BranchMade(made) => {
            step.emit_run(RunEvent::BranchMade(made));
            Reply::Accepted
        }
        Input::SetUp { task, seen } => setup::seen(step, &task, seen),
        Input::SetupFailed { attempt, task, reason } => setup::failed(step, attempt, &task, reason),
        Input::ChecksNotSetUp { task, epoch, reason } => setup::not_proven(step, &task, epoch, &reason),
        Input::Preflight(seen) => preflight::seen(step, seen),
        Input::Noted(noted) => reconcile::noted(step, noted),
        Input::HealthChecked { results } => health::checked(step, results),
        Input::UsageSeen(left) => usage::seen(step, left),
        Input::PressureSeen { short } => hold::pressure_seen(step, short),
        Input::Refused { what, refusal } => hold::refused(step, what, refusal),
        Input::OutputUnreadable { attempt, reason } => attempt::output_unreadable(step, attempt, &reason),
        Input::PlanFileChanged { hash } => session::plan_file_changed(step, hash),
        Input::Ordered(order) => operator::ordered(step, order),
        Input::CalendarSeen(seen) => budget::calendar_seen(step, seen),
        Input::MomentSeen { clock, calendar } => {
            step.emit_run(MachineEvent::ClockMoved(clock));
            budget::calendar_seen(step, calendar)
        }
        Input::ClockSeen(seen) => {
            step.emit_run(MachineEvent::ClockMoved(seen));
            Reply::Accepted
        }
        Input::TimePassed => timers::fire_due(step, &BTreeSet::new()),
        Input::TimePassedBut(gone) => timers::fire_due(step, &gone),
    }
}

/// What is still to be done, derived from the state alone. A new coordinator performs exactly this.
pub fn outstanding(state: &State) -> Vec<Effect> {
    use crate::state::{AttemptPhase, Inspection, Preflight};
    let mut effects = Vec::new();
    for (id, attempt) in state.live_attempts() {
        if attempt.phase == AttemptPhase::Starting {
            effects.push(Effect::LaunchAttempt { attempt: id });
        }
        if let Some(stop) = &attempt.stop {
            effects.push(Effect::StopAttempt { attempt: id, at_once: stop.at_once });
        }
        // Sent whether delivered or not: a message acts once by its number, and so does the end of all messages.
        for told in &attempt.cli_session.told {
            effects.push(Effect::TellAgent { attempt: id, number: told.number, text: told.text.clone() });
        }
        if attempt.cli_session.input_closed {
            effects.push(Effect::CloseInput { attempt: id });
        }
    }
    for (task, attached) in &state.steering.attached {
        let (by, since) = (attached.by.clone(), attached.attempt);
        effects.push(Effect::WatchPerson { task: task.clone(), by, since });
    }
    if state.run.as_ref().is_some_and(|run| run.inspection == Inspection::Asked) {
        effects.push(Effect::InspectDisk);
    }
    if state.health.checking {
        effects.push(Effect::CheckHealth);
    }
    if state.preparing.preflight == Preflight::Ordered {
        effects.push(Effect::Preflight);
    }
    if state.usage.asking {
        effects.push(Effect::AskUsage);
    }
    for (id, task) in &state.tasks {
        if let Some(claim) = &task.claim {
            effects.push(Effect::RunChecks { task: id.clone(), epoch: claim.epoch });
        }
        if task.workflow.merging.is_some() {
            effects.push(Effect::MergeWork { task: id.clone(), epoch: task.epoch });
        }
    }
    effects
}

/// A [`Step`] that is still being decided: the state so far, and the events that made it so.
struct OpenStep<'a> {
    state: &'a mut State,
    now: Time,
    events: Vec<Event>,
}

/// Whom an event is about.
#[derive(Default)]
struct About {
    attempt: Option<AttemptId>,
    task: Option<TaskId>,
    epoch: Option<Epoch>,
}

impl OpenStep<'_> {
    /// Records an event and applies it.
    fn emit(&mut self, about: About, body: impl Into<Body>) {
        if let Some(run) = &self.state.run {
            self.emit_for(run.id.clone(), about, body);
        }
    }

    fn emit_for(&mut self, run: RunId, about: About, body: impl Into<Body>) {
        let attempt = about.attempt.and_then(|id| self.state.attempts.get(&id));
        let event = Event {
            time: self.now,
            run,
            agent: attempt.map(|attempt| attempt.agent.clone()),
            epoch: about.epoch.or(attempt.map(|attempt| attempt.epoch)),
            task: about.task,
            body: body.into(),
        };
        self.push(event);
    }

    fn push(&mut self, event: Event) {
        apply(self.state, &event);
        self.events.push(event);
    }

    fn emit_run(&mut self, body: impl Into<Body>) {
        self.emit(About::default(), body);
    }

    fn emit_attempt(&mut self, attempt: AttemptId, body: impl Into<Body>) {
        // The attempt's current task is named too, so that a task's story holds what happened to its agent.
        let task = self.state.attempts.get(&attempt).and_then(|found| {
            let open = self.state.open_tasks(attempt);
            open.into_iter().next().or_else(|| found.tasks.last().cloned())
        });
        self.emit(About { attempt: Some(attempt), task, epoch: None }, body);
    }

    fn emit_task(&mut self, task: &TaskId, body: impl Into<Body>) {
        let (attempt, epoch) = self.state.tasks.get(task).map_or((None, None), |found| {
            (found.holder.or(found.claim.as_ref().map(|claim| claim.attempt)), Some(found.epoch))
        });
        self.emit(About { attempt, task: Some(task.clone()), epoch }, body);
    }
}
