//! The events of the log, judged one by one against the state before them and against what really happened.

use std::collections::BTreeSet;
use std::fmt;

use rekindle_core::apply::apply;
use rekindle_core::event::{AttemptEvent, Body, Event, GateEvent, PersonEvent, RunEvent, TaskEvent};
use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_core::report::Channel;
use rekindle_core::state::{AttemptPhase, Preflight, State, TaskState};
use rekindle_engine::store::StoredEvent;

use super::super::story::Setting;
use super::protocol::{is_own, limit_of};
use super::signs::CREDENTIALS;
use super::{Checkers, Invariant, Verb, Verdict, require};

/// Limit on refused reports of one attempt in the log.
const REFUSALS: u32 = 20;

/// Beginning of questions about a budget.
const BUDGET: &str = "the budget of ";

/// Beginning of questions about a worktree that could not be set up.
const SET_UP: &str = "The set-up of the worktree of ";

/// Beginning of the question about checks that cannot run.
const PREFLIGHT: &str = "These checks cannot run in a fresh worktree";

/// Beginning of the question that rekindle asks when the rounds of repair are used up.
const HEALTH: &str = "the plan's health commands still fail";

/// Part of the question that rekindle asks for a reviewer.
const CANNOT_JUDGE: &str = "cannot judge it";

/// An event in one line.
pub fn line(event: &Event) -> String {
    let about = |name: &str, text: Option<String>| text.map(|text| format!(" {name}={text}")).unwrap_or_default();
    let mut details = event.body.details();
    if let Body::Run(RunEvent::RunStarted { .. } | RunEvent::CoordinatorStarted { .. }) = event.body {
        details.clear();
    }
    format!(
        "{}{}{}{} {details}",
        event.body.name(),
        about("task", event.task.as_ref().map(ToString::to_string)),
        about("agent", event.agent.as_ref().map(ToString::to_string)),
        about("epoch", event.epoch.map(|epoch| epoch.to_string())),
    )
}

/// The same for a stored event, whose details are already text.
pub struct Shown<'a>(pub &'a StoredEvent);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(event) = self;
        f.write_str(&event.kind)?;
        for (name, text) in [(" task=", event.task.as_deref()), (" agent=", event.agent.as_deref())] {
            if let Some(text) = text {
                f.write_str(name)?;
                f.write_str(text)?;
            }
        }
        f.write_str(" ")?;
        let long = matches!(event.kind.as_ref(), "run_started" | "coordinator_started");
        if long { Ok(()) } else { f.write_str(&event.details) }
    }
}

impl Checkers {
    /// Judges an event, then applies it.
    pub fn event(&mut self, setting: &Setting, event: &Event) {
        let verdict = self.before(setting, event).and_then(|()| self.protocol(setting, event));
        let verdict = verdict.and_then(|()| self.machine(event));
        let verdict = verdict.and_then(|()| self.changes(event)).and_then(|()| self.budget(setting, event));
        self.judge(verdict);
        let word = event.task.as_ref().and_then(|id| self.replayed.tasks.get(id)).and_then(|task| task.workflow.word);
        self.remember(event);
        self.ways.remember(setting, &self.replayed, event);
        let epochs: Vec<(TaskId, Epoch)> =
            event.task.iter().filter_map(|id| Some((id.clone(), self.replayed.tasks.get(id)?.epoch))).collect();
        apply(&mut self.replayed, event);
        let verdict = after(setting, &self.replayed, event, &epochs);
        let verdict = verdict.and_then(|()| self.reloaded(event)).and_then(|()| self.word_kept(event, word));
        self.judge(verdict);
    }

    fn remember(&mut self, event: &Event) {
        *self.told.entry(event.body.name().to_string()).or_default() += 1;
        self.signs.remember(event);
        match (&event.body, &event.task, event.epoch) {
            (Body::Attempt(AttemptEvent::Dispatched { attempt, .. }), ..) => {
                self.dispatched.insert(*attempt);
            }
            (Body::Attempt(AttemptEvent::StopOrdered { attempt, at_once, .. }), ..) => {
                self.stops.insert(*attempt, *at_once);
            }
            (Body::Task(TaskEvent::TaskClaimed { attempt, channel, .. }), Some(task), Some(epoch)) => {
                self.claims.insert((task.clone(), epoch), *attempt);
                if *channel == Channel::Unreported {
                    self.left.insert((*attempt, task.clone()));
                }
            }
            (Body::Task(TaskEvent::TaskCompleted { .. }), Some(task), Some(epoch)) => {
                self.ended.insert((task.clone(), epoch));
                self.completed.insert((task.clone(), epoch));
            }
            (Body::Task(TaskEvent::WorkflowFailed { .. } | TaskEvent::TaskSkipped { .. }), Some(task), Some(epoch)) => {
                self.ended.insert((task.clone(), epoch));
            }
            _ => {}
        }
    }

    fn before(&self, setting: &Setting, event: &Event) -> Verdict {
        let state = &self.replayed;
        let speaker = event.agent.as_ref().zip(event.epoch).and_then(|(agent, epoch)| {
            state
                .attempts
                .iter()
                .rev()
                .find(|(_, found)| found.agent == *agent && found.epoch == epoch)
                .map(|(id, _)| *id)
        });
        match &event.body {
            Body::Task(TaskEvent::TaskClaimed { .. }) if self.repeats_claim(event) => Ok(()),
            Body::Attempt(AttemptEvent::Dispatched { attempt, tasks, cli, .. }) => {
                dispatched(state, event, *attempt, tasks).and_then(|()| self.may_start(event.time, cli))
            }
            Body::Task(TaskEvent::TaskClaimed { attempt, channel: Channel::Unreported, .. }) => {
                self.looked_at(event, *attempt)
            }
            Body::Task(TaskEvent::TaskClaimed { channel: Channel::Operator, .. }) => self.confirmed(event),
            Body::Task(TaskEvent::BaselineSeen(baseline)) => self.seen_before(event, baseline),
            Body::Person(PersonEvent::QuestionAsked { attempt, text, takes_work, .. })
                if self.asked_about(event, *attempt, text, *takes_work) =>
            {
                Ok(())
            }
            Body::Gate(GateEvent::GateClosed(closed)) => self.probes_in_time(event.time, closed),
            Body::Task(TaskEvent::TaskClaimed { channel, .. }) if is_own(*channel) => self.own_claim(event),
            Body::Task(TaskEvent::TaskClaimed { attempt, verdict, .. }) => {
                let verb = if verdict.is_some() { Verb::Verdict } else { Verb::Done };
                self.spoke(event, Some(*attempt), verb)
            }
            Body::Task(TaskEvent::TaskFailReported { attempt, .. }) => self.spoke(event, Some(*attempt), Verb::Fail),
            Body::Person(PersonEvent::QuestionAsked { attempt, text, .. }) if text.starts_with(CREDENTIALS) => {
                self.refused(*attempt)
            }
            Body::Person(PersonEvent::QuestionAsked { text, .. }) if text.starts_with(HEALTH) => Ok(()),
            Body::Person(PersonEvent::QuestionAsked { attempt: AttemptId(0), text, .. })
                if text.starts_with(BUDGET) =>
            {
                self.asks_for_budget(setting, event)
            }
            Body::Person(PersonEvent::QuestionAsked { attempt, text, .. })
                if text.starts_with(SET_UP) || text.starts_with(PREFLIGHT) =>
            {
                self.asks_to_prepare(event, *attempt, text)
            }
            Body::Person(PersonEvent::QuestionAsked { attempt, text, .. }) if text.contains(CANNOT_JUDGE) => {
                self.spoke(event, Some(*attempt), Verb::Verdict)
            }
            Body::Person(PersonEvent::QuestionAsked { attempt, .. }) => self.spoke(event, Some(*attempt), Verb::Ask),
            Body::Task(TaskEvent::CheckpointSaved { .. }) => self.spoke(event, speaker, Verb::Checkpoint),
            Body::Task(TaskEvent::SplitProposed { .. })
                if event.task.as_ref().is_some_and(|task| self.truth.splits.contains(task)) =>
            {
                Ok(())
            }
            Body::Task(TaskEvent::SplitProposed { .. }) => self.spoke(event, speaker, Verb::Split),
            Body::Task(TaskEvent::TaskCompleted { unreported: true, .. }) => {
                self.completed(event).and_then(|()| self.taken(event))
            }
            Body::Task(TaskEvent::TaskCompleted { .. }) => self.completed(event),
            Body::Task(TaskEvent::WorkflowFailed { .. } | TaskEvent::TaskSkipped { .. }) => self.ends(event),
            Body::Task(TaskEvent::TaskStarted { number, .. }) => started(setting, state, event, *number),
            Body::Task(TaskEvent::TaskRequeued { .. } | TaskEvent::TaskParked { .. }) => open(state, event),
            _ => Ok(()),
        }
    }

    /// A question about a set-up is asked only where one failed, one about checks only where they were run.
    fn asks_to_prepare(&self, event: &Event, attempt: AttemptId, text: &str) -> Verdict {
        if text.starts_with(SET_UP) {
            let claim = event.task.as_ref().filter(|_| attempt == AttemptId(0));
            let failed = claim
                .map_or(self.truth.not_set_up.contains(&attempt), |task| self.truth.checks_not_set_up.contains(task));
            return require(failed, Invariant::Machine, || format!("a set-up that did not fail: {}", line(event)));
        }
        let tried = attempt == AttemptId(0) && self.replayed.preparing.preflight == Preflight::Ordered;
        require(tried, Invariant::DurableFirst, || format!("checks that nobody tried: {}", line(event)))
    }

    /// Something that only an attempt's own process can have said, about a task that it holds now.
    pub(super) fn spoke(&self, event: &Event, attempt: Option<AttemptId>, verb: Verb) -> Verdict {
        let (Some(attempt), Some(task)) = (attempt, &event.task) else {
            return Err((Invariant::OwnTasks, format!("a {verb:?} of nobody: {}", line(event))));
        };
        let said = self.truth.said.contains(&(attempt, Some(task.clone()), verb));
        require(said, Invariant::StaleEpoch, || format!("attempt {attempt} never said {verb:?} of {task}"))?;
        let held = self.replayed.attempts.get(&attempt).zip(self.replayed.tasks.get(task));
        let Some((found, held)) = held else {
            return Err((Invariant::OwnTasks, format!("a {verb:?} on nothing: {}", line(event))));
        };
        require(found.tasks.contains(task), Invariant::OwnTasks, || format!("{task} is not of attempt {attempt}"))?;
        let current = held.holder == Some(attempt) && held.epoch == found.epoch && event.epoch == Some(found.epoch);
        require(current, Invariant::StaleEpoch, || format!("attempt {attempt} no longer holds {task}"))?;
        open(&self.replayed, event)
    }

    fn completed(&self, event: &Event) -> Verdict {
        self.ends(event)?;
        let (Some(task), Some(epoch)) = (&event.task, event.epoch) else {
            return Err((Invariant::Proven, format!("a completion of nothing: {}", line(event))));
        };
        if self.truth.ordered.contains(task) {
            return Ok(());
        }
        let key = (task.clone(), epoch);
        require(self.claims.contains_key(&key), Invariant::Proven, || format!("{task} was not claimed in {epoch}"))?;
        let unproven = self.replayed.plan_task(task).is_none_or(rekindle_core::plan::PlanTask::is_unproven);
        require(unproven || self.truth.proofs.contains(&key), Invariant::Proven, || {
            format!("{task} is complete in epoch {epoch}, and the disk never proved it")
        })
    }

    /// A task ends: once an epoch, unless the operator insists.
    fn ends(&self, event: &Event) -> Verdict {
        let (Some(task), Some(epoch)) = (&event.task, event.epoch) else {
            return Err((Invariant::EndsOnce, format!("an end of nothing: {}", line(event))));
        };
        let again = self.ended.contains(&(task.clone(), epoch));
        let insists =
            self.truth.ordered.contains(task) && !matches!(event.body, Body::Task(TaskEvent::WorkflowFailed { .. }));
        require(!again || insists, Invariant::EndsOnce, || {
            format!("{task} ends again in epoch {epoch}: {}", line(event))
        })
    }
}

/// The task of an event has not ended.
fn open(state: &State, event: &Event) -> Verdict {
    let ended = event.task.as_ref().and_then(|task| state.tasks.get(task)).is_some_and(|task| task.state.is_terminal());
    require(!ended, Invariant::EndsOnce, || format!("after the end of its task: {}", line(event)))
}

fn started(setting: &Setting, state: &State, event: &Event, number: u32) -> Verdict {
    open(state, event)?;
    let Some(task) = &event.task else { return Ok(()) };
    let limit = limit_of(setting, state, task);
    require(number <= limit, Invariant::AttemptLimit, || format!("attempt {number} of {limit} at {task}"))
}

fn dispatched(state: &State, event: &Event, attempt: AttemptId, tasks: &[TaskId]) -> Verdict {
    let epoch = event.epoch.unwrap_or_default();
    require(attempt.0 > state.last_attempt, Invariant::NoClash, || format!("attempt {attempt} is given twice"))?;
    let live = state.live_attempts().count();
    let slots = state.limits.max_agents as usize;
    require(live < slots, Invariant::NoClash, || format!("attempt {attempt} is one too many: {live} of {slots} run"))?;
    for id in tasks {
        let Some(task) = state.tasks.get(id) else {
            return Err((Invariant::OwnTasks, format!("{id} is no task")));
        };
        let free = task.state == TaskState::Pending && task.holder.is_none();
        require(free, Invariant::NoClash, || format!("{id} is given to attempt {attempt} while {:?}", task.state))?;
        require(epoch > task.epoch, Invariant::StaleEpoch, || format!("epoch {epoch} of {id} after {}", task.epoch))?;
    }
    let artifacts = |tasks: &[TaskId]| -> BTreeSet<String> {
        tasks.iter().filter_map(|id| state.plan_task(id)).flat_map(|task| task.artifacts.iter().cloned()).collect()
    };
    let wanted = artifacts(tasks);
    for (other, found) in state.attempts.iter().filter(|(_, found)| found.phase != AttemptPhase::Ended) {
        let named = Some(&found.agent) == event.agent.as_ref();
        require(!named, Invariant::NoClash, || format!("attempts {other} and {attempt} have one name"))?;
        let shared: Vec<String> = artifacts(&found.tasks).intersection(&wanted).cloned().collect();
        require(shared.is_empty(), Invariant::NoClash, || format!("attempts {other} and {attempt} share {shared:?}"))?;
    }
    Ok(())
}

fn after(setting: &Setting, state: &State, event: &Event, epochs: &[(TaskId, Epoch)]) -> Verdict {
    for (id, before) in epochs {
        let Some(task) = state.tasks.get(id) else { continue };
        require(task.epoch >= *before, Invariant::StaleEpoch, || format!("the epoch of {id} went back"))?;
        let reopened = matches!(event.body, Body::Task(TaskEvent::TaskReopened { .. }));
        require(!reopened || task.epoch > *before, Invariant::StaleEpoch, || {
            format!("{id} reopened in its old epoch")
        })?;
        let limit = limit_of(setting, state, id);
        let most = task.attempts.max(task.workflow.review_tries).max(task.workflow.audit_tries);
        require(most <= limit, Invariant::AttemptLimit, || format!("{most} of {limit} at {id}"))?;
    }
    let refused = state.attempts.values().map(|attempt| attempt.refused).max().unwrap_or(0);
    require(refused <= REFUSALS, Invariant::Bounds, || format!("{refused} refusals in the log for one attempt"))
}
