//! The course of a task's work, judged event by event: reviewers in their order, merges, wholes after their parts, nothing
//! new while a run is paused, unproven or out of allowance, and everything in progress taken up again.

use std::collections::{BTreeMap, BTreeSet};

use rekindle_core::event::{AttemptEvent, Body, Event, MachineEvent, PauseReason, ReviewEvent, RunEvent, TaskEvent};
use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_core::report::Channel;
use rekindle_core::review::{GivenVerdict, Stage, Verdict as Opinion};
use rekindle_core::role::Role;
use rekindle_core::state::{AttemptPhase, Preflight, RunPhase, State, Task, TaskState};
use rekindle_core::time::Time;
use rekindle_engine::world::LaunchOrder;

use super::super::outside::Asked;
use super::super::story::{MINUTE, Setting};
use super::super::world::Sim;
use super::log::line;
use super::{Checkers, Invariant, Verb, Verdict, require};

/// How old an answer about the allowance may be when something is dispatched.
const USAGE_FRESH_MS: u64 = MINUTE;

/// What the log has recorded of every task's course since its work was last restarted.
#[derive(Debug, Default)]
pub(super) struct Ways {
    of: BTreeMap<TaskId, Passage>,
    /// Completions that have to be checked again before anything new starts.
    to_validate: BTreeSet<TaskId>,
    /// The newest event before the newest coordinator.
    saved_at: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct Passage {
    critic: bool,
    auditor: bool,
    bypassed: bool,
    /// rekindle's own checks passed since the last claim or verdict.
    checked: bool,
    merged: bool,
    validating: bool,
}

impl Ways {
    fn way(&self, task: &TaskId) -> Passage {
        self.of.get(task).copied().unwrap_or_default()
    }

    pub(super) fn remember(&mut self, setting: &Setting, state: &State, event: &Event) {
        self.remember_run(setting, state, event);
        let Some(task) = &event.task else { return };
        let way = self.of.entry(task.clone()).or_default();
        match &event.body {
            Body::Task(TaskEvent::TaskClaimed { .. }) => way.checked = false,
            Body::Task(TaskEvent::ChecksFinished { passed, .. }) => way.checked = *passed,
            Body::Review(ReviewEvent::VerdictGiven(GivenVerdict { role, verdict, .. })) => {
                way.checked = false;
                match role {
                    Role::Critic => way.critic = *verdict == Opinion::Pass,
                    _ => way.auditor = *verdict == Opinion::Pass,
                }
            }
            Body::Review(ReviewEvent::CriticBypassed {}) => way.bypassed = true,
            Body::Review(ReviewEvent::MergeOrdered(_)) => way.merged = false,
            Body::Review(ReviewEvent::WorkMerged { .. }) => way.merged = true,
            Body::Review(ReviewEvent::TaskRework(_)) | Body::Task(TaskEvent::TaskReopened { .. }) => {
                *way = Passage::default();
                self.to_validate.remove(task);
            }
            Body::Task(TaskEvent::ValidationStarted {}) => way.validating = true,
            _ => {}
        }
    }

    fn remember_run(&mut self, setting: &Setting, state: &State, event: &Event) {
        let Some(run) = &state.run else { return };
        let before = match &event.body {
            Body::Run(RunEvent::CoordinatorStarted { .. }) => {
                self.saved_at = state.last_time;
                return;
            }
            Body::Run(RunEvent::CoordinatorRecovered(_)) if !matches!(run.phase, RunPhase::Waiting(_)) => self.saved_at,
            Body::Run(RunEvent::SessionResume { .. }) => run.paused_at.unwrap_or(self.saved_at),
            _ => return,
        };
        let from = before.minus_ms(setting.limits.validation_window_ms);
        let recent = |id: &TaskId, task: &Task| {
            let provable = state.plan_task(id).is_some_and(|planned| !planned.is_unproven());
            task.state == TaskState::Complete
                && task.workflow.word.is_none()
                && !task.workflow.removed
                && task.workflow.parent.is_none()
                && task.ended_at.is_some_and(|at| at >= from)
                && (provable || asks_for(setting, Role::Auditor))
        };
        self.to_validate = state.tasks.iter().filter(|(id, task)| recent(id, task)).map(|(id, _)| id.clone()).collect();
    }
}

/// Whether the user's plan asks for a reviewer.
fn asks_for(setting: &Setting, role: Role) -> bool {
    setting.plan.settings.review.iter().flatten().any(|name| name == role.name())
}

/// Attempts that the user allows for a task.
pub(super) fn limit_of(setting: &Setting, state: &State, id: &TaskId) -> u32 {
    state.plan_task(id).and_then(|task| task.attempts).unwrap_or(setting.limits.attempts)
}

impl Checkers {
    /// Judges what belongs to the protocol, against the state before the event.
    pub(super) fn protocol(&self, setting: &Setting, event: &Event) -> Verdict {
        let state = &self.replayed;
        match (&event.body, &event.task) {
            (Body::Attempt(AttemptEvent::Dispatched { role, tasks, .. }), _) => {
                self.may_dispatch(setting, event, tasks)?;
                alone(state, event, *role, tasks)
            }
            (Body::Review(ReviewEvent::VerdictGiven(given)), Some(task)) => self.verdict(setting, event, task, given),
            (Body::Review(ReviewEvent::TaskHandedOn(on)), Some(task)) => {
                let way = self.ways.way(task);
                let from = state.tasks.get(task).map(|task| task.workflow.stage);
                let proven = if from == Some(Stage::Review) { way.critic || way.bypassed } else { way.checked };
                require(proven, Invariant::Reviewed, || format!("{task} is handed on to {:?}: {way:?}", on.stage))
            }
            (Body::Review(ReviewEvent::CriticBypassed {}), Some(task)) => {
                let (tries, limit) = (state.tasks[task].workflow.review_tries, limit_of(setting, state, task));
                require(tries >= limit, Invariant::Reviewed, || format!("{task}: bypassed after {tries} of {limit}"))
            }
            (Body::Review(ReviewEvent::MergeOrdered(_)), Some(task)) => self.accepted(setting, task),
            (Body::Task(TaskEvent::TaskCompleted { .. }), Some(task)) => {
                self.accepted(setting, task)?;
                self.is_merged(setting, task, event.epoch.unwrap_or_default())
            }
            (Body::Run(RunEvent::SessionResume { .. }), _) => resumes_in_time(state, event),
            (Body::Machine(MachineEvent::UsageSeen(left)), _) => {
                let told = self.truth.usage.is_some_and(|(_, truth)| truth == *left);
                require(told, Invariant::Allowance, || format!("nobody said that {left:?} is left"))
            }
            _ => Ok(()),
        }
    }

    /// A claim of rekindle's own: to check old work again, or a whole whose parts are complete.
    pub(super) fn own_claim(&self, event: &Event) -> Verdict {
        let held = event.task.as_ref().and_then(|task| self.replayed.tasks.get(task).map(|found| (task, found)));
        let Some((id, task)) = held else {
            return Err((Invariant::OwnTasks, format!("a claim on nothing: {}", line(event))));
        };
        let whole = !task.workflow.parts.is_empty() && self.replayed.blockers_met(id);
        let free = task.holder.is_none() && task.claim.is_none() && task.state == TaskState::Pending;
        require(free && (whole || self.ways.way(id).validating || self.proves_anew(id)), Invariant::Proven, || {
            format!("rekindle claims {id} for itself while {:?} held by {:?}", task.state, task.holder)
        })
    }

    fn may_dispatch(&self, setting: &Setting, event: &Event, tasks: &[TaskId]) -> Verdict {
        let state = &self.replayed;
        let gate = |holds: bool, what: &str| require(holds, Invariant::Gated, || format!("{what}: {}", line(event)));
        let phase = state.run.as_ref().map(|run| run.phase);
        gate(phase == Some(RunPhase::Running) && !self.truth.paused, "dispatched although the run is paused")?;
        gate(state.held.is_none(), "dispatched although the machine has no room")?;
        let baseline = setting.plan.settings.health.is_empty() || state.health.baseline.is_some();
        gate(baseline, "dispatched before the baseline")?;
        gate(self.ways.to_validate.is_empty(), "dispatched before recent completions are looked at")?;
        let goes_on = |id: &TaskId, task: &Task| {
            let run = state.run.as_ref().filter(|run| run.plan.explicit_waves);
            let later = state.plan_task(id).zip(run).is_some_and(|(planned, run)| planned.wave > run.wave);
            let free = task.state == TaskState::Pending && !later && state.blockers_met(id);
            task.workflow.validating && (free || task.state == TaskState::InProgress)
        };
        let open = state.tasks.iter().any(|(id, task)| goes_on(id, task));
        let part = tasks.iter().all(|task| state.tasks.get(task).is_some_and(|task| task.workflow.validating));
        gate(!open || part, "dispatched past a validation")?;
        if !setting.limits.usage.asks {
            return Ok(());
        }
        let fresh = state.usage.seen_at.is_some_and(|at| event.time.since_ms(at) < USAGE_FRESH_MS);
        require(fresh && !state.usage.asking, Invariant::Allowance, || {
            format!("dispatched on {:?}: {}", state.usage, line(event))
        })?;
        let left = state.usage.left.and_then(|left| left.remaining_percent).unwrap_or(u8::MAX);
        let enough = left > setting.limits.usage.threshold_percent || !setting.limits.usage.agents.is_empty();
        require(enough, Invariant::Allowance, || format!("dispatched with {left} % left: {}", line(event)))
    }

    fn verdict(&self, setting: &Setting, event: &Event, id: &TaskId, given: &GivenVerdict) -> Verdict {
        self.spoke(event, Some(given.attempt), Verb::Verdict)?;
        let said = self.truth.judged.contains(&(given.attempt, given.role.name(), format!("{:?}", given.verdict)));
        require(said, Invariant::StaleEpoch, || format!("attempt {} never said so: {}", given.attempt, line(event)))?;
        let role = self.replayed.attempts.get(&given.attempt).map(|found| found.role);
        let asked = self.replayed.role_of(id);
        require(role == Some(given.role) && asked == given.role, Invariant::Reviewed, || {
            format!("{id} is to be seen by the {asked}, attempt {} is the {role:?}: {}", given.attempt, line(event))
        })?;
        let way = self.ways.way(id);
        let first = given.role == Role::Auditor && asks_for(setting, Role::Critic);
        require(!first || way.critic || way.bypassed || way.validating, Invariant::Reviewed, || {
            format!("{id} is audited before it was criticised: {way:?}")
        })
    }

    /// Work is accepted: every required reviewer has passed it, and the checks have passed since.
    fn accepted(&self, setting: &Setting, id: &TaskId) -> Verdict {
        let state = &self.replayed;
        let Some(task) = state.tasks.get(id) else { return Ok(()) };
        if self.truth.ordered.contains(id) {
            return Ok(());
        }
        let way = self.ways.way(id);
        let whole = task.workflow.parent.is_none();
        let critic = whole && asks_for(setting, Role::Critic) && !task.workflow.health && !way.validating;
        let auditor = whole && (asks_for(setting, Role::Auditor) || task.workflow.health);
        let passed = (!critic || way.critic || way.bypassed) && (!auditor || way.auditor);
        require(passed, Invariant::Reviewed, || format!("{id} is accepted without its reviewers: {way:?}"))?;
        let merging = task.workflow.merging.is_some();
        require(way.checked || merging, Invariant::Reviewed, || format!("{id} is accepted unchecked: {way:?}"))?;
        let open =
            task.workflow.parts.iter().find(|part| !state.tasks.get(*part).is_some_and(|task| task.state.unblocks()));
        require(open.is_none(), Invariant::Parts, || format!("{id} is accepted before its part {open:?}"))
    }

    /// Work that was done in a separate workspace is in the run's branch before its task completes.
    fn is_merged(&self, setting: &Setting, id: &TaskId, epoch: Epoch) -> Verdict {
        let state = &self.replayed;
        let way = self.ways.way(id);
        let whole = state.tasks.get(id).is_some_and(|task| task.workflow.parent.is_none());
        let worked = |(part, task): (&TaskId, &Task)| !task.last_attempts.is_empty() && state.root_of(part) == *id;
        let apart = setting.limits.worktrees && whole && !way.validating && state.tasks.iter().any(worked);
        require(!apart || way.merged, Invariant::Merged, || format!("{id} completes and is not merged: {way:?}"))?;
        let truly = self.truth.merged.contains(&(id.clone(), epoch));
        require(!apart || truly, Invariant::Merged, || format!("nothing of {id} was merged in epoch {epoch}"))
    }

    /// Whether a merge follows from a durable event.
    pub fn allows_merge(&self, id: &TaskId, epoch: Epoch) -> Verdict {
        let task = self.replayed.tasks.get(id);
        let ordered = task.is_some_and(|task| task.epoch == epoch && task.workflow.merging.is_some());
        require(ordered, Invariant::DurableFirst, || format!("{id} is merged in epoch {epoch}, which nobody ordered"))
    }

    /// Whether the health commands were ordered.
    pub fn allows_health(&self) -> Verdict {
        require(self.replayed.health.checking, Invariant::DurableFirst, || "health is looked at unasked".to_owned())
    }

    /// Whether the checks were to be run, which happens before any agent has started.
    pub fn allows_preflight(&self) -> Verdict {
        let ordered = self.replayed.preparing.preflight == Preflight::Ordered;
        require(ordered, Invariant::DurableFirst, || "checks are tried unasked".to_owned())
    }

    /// Whether the user's command was to be asked.
    pub fn allows_usage(&self) -> Verdict {
        require(self.replayed.usage.asking, Invariant::DurableFirst, || "the allowance is asked for unasked".to_owned())
    }

    /// Everything that the state has in progress was ordered by the running coordinator.
    pub(super) fn taken_up(&self, asked: &BTreeSet<Asked>) -> Verdict {
        let state = &self.replayed;
        let mut wanted: Vec<Asked> = Vec::new();
        for (id, task) in &state.tasks {
            wanted.extend(task.claim.as_ref().map(|claim| Asked::Checks(id.clone(), claim.epoch)));
            wanted.extend(task.workflow.merging.as_ref().map(|_| Asked::Merge(id.clone(), task.epoch)));
        }
        wanted.extend(state.health.checking.then_some(Asked::Health));
        wanted.extend((state.preparing.preflight == Preflight::Ordered).then_some(Asked::Preflight));
        wanted.extend(state.usage.asking.then_some(Asked::Usage));
        let forgotten = wanted.into_iter().find(|wanted| !asked.contains(wanted));
        require(forgotten.is_none(), Invariant::Outstanding, || format!("under way and not taken up: {forgotten:?}"))
    }
}

/// No agent uses what a new attempt is to work on or to review, or its workspace.
fn alone(state: &State, event: &Event, role: Role, tasks: &[TaskId]) -> Verdict {
    let first = tasks.first();
    let fits = first.is_some_and(|task| state.role_of(task) == role) && (!role.reviews() || tasks.len() == 1);
    require(fits, Invariant::Reviewed, || format!("not the role that is asked for: {}", line(event)))?;
    let roots = |tasks: &[TaskId]| -> BTreeSet<TaskId> { tasks.iter().map(|task| state.root_of(task)).collect() };
    let places =
        |tasks: &[TaskId]| -> BTreeSet<String> { tasks.iter().filter_map(|task| state.workspace_of(task)).collect() };
    let (own, place) = (roots(tasks), places(tasks));
    for (id, found) in state.attempts.iter().filter(|(_, found)| found.phase != AttemptPhase::Ended) {
        let apart = roots(&found.tasks).is_disjoint(&own);
        require(apart, Invariant::Alone, || format!("attempt {id} is at {own:?}: {}", line(event)))?;
        let apart = places(&found.tasks).is_disjoint(&place);
        require(apart, Invariant::Alone, || format!("attempt {id} is in {place:?}: {}", line(event)))?;
    }
    let merging = |(id, task): &(&TaskId, &Task)| {
        task.workflow.merging.is_some() && state.workspace_of(id).is_some_and(|at| place.contains(&at))
    };
    let merging = state.tasks.iter().find(merging).map(|(id, _)| id);
    require(merging.is_none(), Invariant::Alone, || format!("{merging:?} is being merged: {}", line(event)))
}

fn resumes_in_time(state: &State, event: &Event) -> Verdict {
    let Some(run) = &state.run else { return Ok(()) };
    let waits = matches!(run.phase, RunPhase::Waiting(PauseReason::UsageLimit));
    let due = run.resumes_at.is_some_and(|at| at <= event.time);
    require(!waits || due, Invariant::Allowance, || format!("goes on at {:?} before {:?}", event.time, run.resumes_at))
}

impl Sim {
    /// What the log has answered is no longer in progress.
    pub(super) fn answered_by(&mut self, event: &Event) {
        let asked = &mut self.coordinator.asked;
        match (&event.body, &event.task) {
            (Body::Task(TaskEvent::ChecksFinished { .. }), Some(task)) => {
                asked.retain(|known| !matches!(known, Asked::Checks(id, _) if id == task));
            }
            (
                Body::Review(ReviewEvent::WorkMerged { .. } | ReviewEvent::MergeConflicted { .. })
                | Body::Task(TaskEvent::WorkflowFailed { .. }),
                Some(task),
            ) => {
                asked.retain(|known| !matches!(known, Asked::Merge(id, _) if id == task));
            }
            (Body::Machine(MachineEvent::HealthChecked(_)), None) => {
                asked.remove(&Asked::Health);
            }
            (Body::Machine(MachineEvent::Preflight(_)), _) => {
                asked.remove(&Asked::Preflight);
            }
            (Body::Machine(MachineEvent::UsageSeen(_)), _) => {
                asked.remove(&Asked::Usage);
            }
            (Body::Run(RunEvent::SessionResume { .. } | RunEvent::CoordinatorRecovered(_)), _) => {
                self.checkers.truth.paused = false
            }
            _ => {}
        }
    }

    /// A process is about to be started: no process really exists that could change what it works on.
    pub fn check_alone(&mut self, order: &LaunchOrder) {
        let state = &self.checkers.replayed;
        let roots = |tasks: &[TaskId]| -> BTreeSet<TaskId> { tasks.iter().map(|task| state.root_of(task)).collect() };
        let own = roots(&order.tasks);
        let there = |id: &AttemptId| self.bundles.get(id).is_some_and(super::super::shim::Bundle::tree_alive);
        let met = self.bundles.iter().find(|(id, bundle)| {
            let place = bundle.workspace.is_some() && bundle.workspace == order.workspace;
            let work = order.role.reviews() && !roots(&bundle.tasks).is_disjoint(&own);
            **id != order.attempt && there(id) && (place || work)
        });
        if let Some((id, _)) = met {
            let what = format!("attempt {} is started while attempt {id} is there", order.attempt);
            return self.checkers.broken(Invariant::Alone, what);
        }
        let ordered = &self.checkers.truth.ordered;
        let merging =
            self.merges.iter().find(|(task, _, at)| Some(at) == order.workspace.as_ref() && !ordered.contains(task));
        if let Some((task, ..)) = merging {
            let what = format!("attempt {} is started while {task} is being merged there", order.attempt);
            self.checkers.broken(Invariant::Alone, what);
        }
    }
}

/// Whether a claim may come without a report of its attempt.
pub(super) fn is_own(channel: Channel) -> bool {
    channel == Channel::Own
}

#[cfg(test)]
mod tests;
