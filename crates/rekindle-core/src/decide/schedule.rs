//! Which task runs next: free slots go to ready tasks, most useful first; one process per named agent; no two agents on one
//! artifact.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{
    About, OpenStep, budget, finish, gate, health, hold, preflight, reload, report, review, strategy, stream, team,
    usage,
};
use crate::cause::Cause;
use crate::event::{AttemptEvent, Body, RunEvent};
use crate::ids::{AgentName, AttemptId, Epoch, TaskId};
use crate::plan::PlanTask;
use crate::review::Stage;
use crate::role::Role;
use crate::state::{AttemptPhase, Inspection, RunPhase, State, Task, TaskState};

/// Starts attempts until slots or ready tasks run out.
pub(super) fn fill_slots(step: &mut OpenStep<'_>) {
    if !step.state.run.as_ref().is_some_and(|run| run.phase == RunPhase::Running) {
        return;
    }
    reload::prove(step);
    review::claim_wholes(step);
    open_wave(step);
    let stopped = budget::is_quiet(step.state, step.now) || !budget::admits_any(step.state, step.now);
    let unready = health::baseline_missing(step.state) || preflight::is_open(step.state);
    if step.state.held.is_some() || unready || stopped {
        return;
    }
    team::use_idle(step);
    let free = (step.state.limits.max_agents as usize).saturating_sub(step.state.live_attempts().count());
    let mut free = hold::allowed(step.state, free);
    if free == 0 {
        return;
    }
    if ready(step.state, step.now).next().is_none() || !usage::may_dispatch(step) {
        return;
    }
    let mut taken = Occupied::of(step.state);
    // A task that was just started may block the next one, so the remaining slots are filled again until no task fits.
    loop {
        let (state, now) = (&*step.state, step.now);
        let fits = |task: &TaskId| {
            budget::admits_task(state, task, now)
                && !taken.conflicts(state, task)
                && gate::cli_now(state, task, now).is_some()
        };
        let next: Vec<TaskId> = ready(state, now).filter(|task| fits(task)).take(free).cloned().collect();
        let before = free;
        for task in next {
            if taken.conflicts(step.state, &task) {
                continue;
            }
            let Some(cli) = gate::cli_now(step.state, &task, step.now) else { continue };
            if let Some(attempt) = dispatch(step, &task, &cli, &taken) {
                taken.add(step.state, attempt);
                free -= 1;
            }
        }
        if free == 0 || free == before {
            return;
        }
    }
}

/// What living attempts occupy: their names and the artifacts of everything on their lists.
pub(super) struct Occupied {
    agents: BTreeSet<AgentName>,
    /// Tasks of processes that have not ended, each as the whole that it is a part of: work is neither judged nor continued
    /// while another process may still change it.
    tasks: BTreeSet<TaskId>,
    /// Each with the task that uses it: a task never blocks itself.
    artifacts: BTreeMap<String, TaskId>,
    /// Workspaces with a running process.
    workspaces: BTreeSet<String>,
    /// Workspaces with the work of an unfinished task.
    begun: BTreeMap<String, TaskId>,
}

impl Occupied {
    pub(super) fn of(state: &State) -> Self {
        Self::beside(state, None)
    }

    /// What all attempts except one occupy.
    pub(super) fn beside(state: &State, own: Option<AttemptId>) -> Self {
        let mut taken = Self {
            agents: BTreeSet::new(),
            tasks: BTreeSet::new(),
            artifacts: BTreeMap::new(),
            workspaces: BTreeSet::new(),
            begun: BTreeMap::new(),
        };
        let busy = state.attempts.iter().filter(|(_, attempt)| attempt.phase != AttemptPhase::Ended);
        for (id, _) in busy.filter(|(id, _)| Some(**id) != own) {
            taken.add(state, *id);
        }
        for id in state.steering.attached.keys() {
            taken.leave_to_person(state, id);
        }
        // Tasks between two stages, under review or sent back, are not touched by others either. A task that could not
        // continue itself blocks no other: it may be waiting for exactly that one.
        let validating = validation_open(state);
        let goes_on = |id: &TaskId, task: &Task| {
            task.is_being_proven() || (!validating || task.workflow.validating) && comes_next(state, id)
        };
        let begun = state.begun().filter(|(id, task)| task.is_between_stages() && goes_on(id, task));
        // In a workspace that several tasks share, the one that is being proven or merged comes before one that waits for its turn.
        let (proven, waiting): (Vec<_>, Vec<_>) = begun.partition(|(_, task)| task.is_being_proven());
        for (id, _) in proven.into_iter().chain(waiting) {
            taken.hold(state, id);
            if let Some(workspace) = state.workspace_of(id) {
                taken.begun.entry(workspace).or_insert_with(|| state.root_of(id));
            }
        }
        taken
    }

    fn hold(&mut self, state: &State, id: &TaskId) {
        let artifacts = state.plan_task(id).map(|task| task.artifacts.as_slice()).unwrap_or_default();
        for artifact in artifacts {
            // A running task comes first; of two that wait for each other's artifacts, the first continues.
            self.artifacts.entry(artifact.clone()).or_insert_with(|| id.clone());
        }
    }

    /// Reserves what a person holds: no agent works on the task, in its workspace, or with its agent's session.
    fn leave_to_person(&mut self, state: &State, id: &TaskId) {
        self.agents.extend(state.agent_for(id, state.role_of(id)));
        self.hold(state, id);
        self.tasks.insert(state.root_of(id));
        self.workspaces.extend(state.workspace_of(id));
    }

    fn add(&mut self, state: &State, id: AttemptId) {
        let attempt = &state.attempts[&id];
        self.agents.insert(attempt.agent.clone());
        for task in &attempt.tasks {
            self.hold(state, task);
            self.tasks.insert(state.root_of(task));
            self.workspaces.extend(state.workspace_of(task));
        }
    }

    pub(super) fn conflicts(&self, state: &State, id: &TaskId) -> bool {
        let Some(task) = state.plan_task(id) else {
            return true;
        };
        let agent = state.agent_for(id, state.role_of(id));
        let mut workspace = state.workspace_of(id).into_iter();
        agent.is_none_or(|agent| self.agents.contains(&agent))
            || self.tasks.contains(&state.root_of(id))
            || self.holds_any_of(task)
            || workspace.any(|place| {
                let root = state.root_of(id);
                self.workspaces.contains(&place) || self.begun.get(&place).is_some_and(|other| *other != root)
            })
    }

    fn holds_any_of(&self, task: &PlanTask) -> bool {
        task.artifacts.iter().any(|artifact| self.artifacts.get(artifact).is_some_and(|other| *other != task.id))
    }
}

/// Notes that a wave has started, which is when the previous one is over.
fn open_wave(step: &mut OpenStep<'_>) {
    let Some(run) = step.state.run.as_ref() else {
        return;
    };
    if !run.plan.explicit_waves {
        return;
    }
    let (open, wave, inspection) = (finish::open_wave(step.state), run.wave, run.inspection);
    if open <= wave {
        return;
    }
    match inspection {
        Inspection::None if wave > 0 => step.emit_run(RunEvent::WaveEnded { wave }),
        Inspection::Asked => {}
        Inspection::None | Inspection::Done => step.emit_run(RunEvent::WaveStarted { wave: open }),
    }
}

/// The wave whose tasks may begin by now; all may where the plan names none.
fn wave_now(state: &State) -> u32 {
    state.run.as_ref().filter(|run| run.plan.explicit_waves).map_or(u32::MAX, |run| run.wave)
}

/// Tasks that could start now, in the order in which they should: started work is finished first.
pub(super) fn ready(state: &State, now: crate::time::Time) -> impl Iterator<Item = &TaskId> {
    let (open_wave, validating) = (wave_now(state), validation_open(state));
    let planned = move |task: &Task| state.run.as_ref().and_then(|run| run.plan.tasks.get(task.index));
    let rank = move |task: &Task| {
        let priority = planned(task).map_or(0, |planned| planned.priority);
        (finish_first(task.workflow.stage), Reverse(task.unblocks), Reverse(priority), task.index)
    };
    let mut begun: Vec<(&TaskId, &Task)> = state.begun().filter(|(_, task)| task.state == TaskState::Pending).collect();
    begun.sort_by_key(|(_, task)| rank(task));
    let (mut begun, mut untouched) = (begun.into_iter().peekable(), state.untouched().peekable());
    let in_order = std::iter::from_fn(move || match (begun.peek(), untouched.peek()) {
        (Some((_, first)), Some((_, second))) if rank(second) < rank(first) => untouched.next(),
        (Some(_), _) => begun.next(),
        (None, _) => untouched.next(),
    });
    let may_begin = move |(id, task): &(&TaskId, &Task)| {
        task.holder.is_none()
            && planned(task).is_some_and(|planned| planned.wave <= open_wave)
            && task.not_before.is_none_or(|time| time <= now)
            && state.blockers_met(id)
            && !state.waits_for_preparing(id)
            && (!validating || task.workflow.validating)
            && !breaker_open(state, &cli_for(state, id), now)
    };
    in_order.filter(may_begin).map(|(id, _)| id)
}

/// Whether everything that comes before a task is finished.
fn comes_next(state: &State, id: &TaskId) -> bool {
    let later = state.plan_task(id).is_some_and(|planned| planned.wave > wave_now(state));
    !later && state.blockers_met(id)
}

/// Whether something is being validated again: that comes before anything new. A validation that waits for a person, for
/// another task or for its wave blocks nothing: it may be waiting for exactly those.
pub(super) fn validation_open(state: &State) -> bool {
    let goes_on = |id: &TaskId, task: &Task| match task.state {
        TaskState::InProgress => true,
        TaskState::Pending => comes_next(state, id),
        TaskState::Blocked | TaskState::Complete | TaskState::Failed | TaskState::Skipped => false,
    };
    state.begun().any(|(id, task)| task.workflow.validating && goes_on(id, task))
}

/// Reviewers before auditors before developers: started work is finished first.
fn finish_first(stage: Stage) -> u8 {
    match stage {
        Stage::Review => 0,
        Stage::Audit => 1,
        Stage::Implement => 2,
    }
}

pub(super) fn breaker_open(state: &State, cli: &str, now: crate::time::Time) -> bool {
    state.breakers.get(cli).and_then(|breaker| breaker.until).is_some_and(|until| until > now)
}

/// Which `[agents.NAME]` runs a task: the one that the task names, else one named like its agent, else the default.
pub(super) fn cli_for(state: &State, id: &TaskId) -> String {
    let role = state.role_of(id);
    let default = || state.limits.roles.get(&role).unwrap_or(&state.limits.default_cli).clone();
    let Some(task) = state.plan_task(id).filter(|_| !role.reviews()) else {
        return default();
    };
    if let Some(cli) = &task.cli {
        return cli.clone();
    }
    let named =
        task.agent.as_ref().map(AgentName::as_str).filter(|name| state.limits.clis.iter().any(|cli| cli == name));
    named.map_or_else(default, str::to_owned)
}

fn dispatch(step: &mut OpenStep<'_>, first: &TaskId, cli: &str, taken: &Occupied) -> Option<AttemptId> {
    let role = step.state.role_of(first);
    let agent = step.state.agent_for(first, role)?;
    let mut tasks = list_for(step.state, first, &cli_for(step.state, first), taken);
    let (state, now) = (&*step.state, step.now);
    tasks.retain(|task| task == first || budget::admits_task(state, task, now));
    let known = step.state.agents.get(&agent).copied().unwrap_or(Epoch(0));
    let newest = tasks.iter().map(|task| step.state.tasks[task].epoch).max().unwrap_or(Epoch(0)).max(known);
    let attempt = AttemptId(step.state.last_attempt + 1);
    let task = &step.state.tasks[first];
    let number = task.tries() + 1;
    let resumed = task.last_cause.is_some() || number > 1 || task.workflow.rework.is_some();
    let handed_over = task.last_attempt().and_then(|before| prepared_by(step.state, before));
    let choice = strategy::choose(step.state, first, &agent, cli);
    let blocked_by = step.state.plan_task(first).map(|task| task.blocked_by.clone()).unwrap_or_default();
    let event = crate::event::Event {
        time: step.now,
        run: step.state.run.as_ref()?.id.clone(),
        agent: Some(agent),
        task: Some(first.clone()),
        epoch: Some(Epoch(newest.0 + 1)),
        body: Body::Attempt(AttemptEvent::Dispatched {
            attempt,
            role,
            cli: cli.to_owned(),
            tasks,
            blocked_by,
            resumed,
            strategy: choice.strategy,
            session: choice.session,
            asks_for_report: choice.asks_for_report,
            reason: choice.reason,
        }),
    };
    step.push(event);
    if number > 1 {
        let about = About { attempt: Some(attempt), task: Some(first.clone()), epoch: None };
        step.emit(about, AttemptEvent::Redispatched { role, attempt: number });
    }
    report::begin(step, attempt, first);
    if let Some(number) = handed_over {
        stream::compaction_over(step, attempt, number);
    }
    Some(attempt)
}

/// The compaction that an attempt prepared for and could not do: the agent that takes over continues in its place.
fn prepared_by(state: &State, before: AttemptId) -> Option<u32> {
    let found = state.attempts.get(&before).filter(|found| found.cli_session.preparing.is_some())?;
    let full = matches!(found.cause, Some(Cause::ContextExhausted | Cause::Compacted | Cause::CompactionLoop));
    full.then_some(found.cli_session.compactions + 1)
}

/// The task list for a process: every open task of its named agent, in plan order, whose blockers are complete or earlier in
/// the list, and whose artifacts no other agent is using. A task without a named agent is a list of one.
fn list_for(state: &State, first: &TaskId, cli: &str, taken: &Occupied) -> Vec<TaskId> {
    let mut list = vec![first.clone()];
    // Reviewed work ends its process: the agent's next task gets another process, which resumes the session.
    if state.reviews(Role::Critic) || state.reviews(Role::Auditor) || state.role_of(first).reviews() {
        return list;
    }
    let (Some(run), Some(Some(agent))) = (&state.run, state.plan_task(first).map(|task| task.agent.clone())) else {
        return list;
    };
    let (open_wave, place) = (wave_now(state), state.workspace_of(first));
    for planned in run.plan.tasks.iter().filter(|task| task.agent.as_ref() == Some(&agent) && task.id != *first) {
        let task = &state.tasks[&planned.id];
        let free = task.state == TaskState::Pending
            && task.holder.is_none()
            && task.not_before.is_none()
            // A whole is checked when its parts have ended, not worked on after them.
            && !task.waits_for_parts()
            && !taken.holds_any_of(planned)
            && state.workspace_of(&planned.id) == place;
        let reachable = state.unmet_blockers(&planned.id).iter().all(|blocker| list.contains(blocker));
        if free && reachable && planned.wave <= open_wave && cli_for(state, &planned.id) == cli {
            list.push(planned.id.clone());
        }
    }
    list
}
