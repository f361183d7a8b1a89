//! The agents as a team: an agent that does not answer after a restart is asked once before it is replaced, and an idle
//! agent gets the next task of its name instead of a new process.

use super::schedule::{Occupied, ready};
use super::{About, OpenStep, budget, gate, health, report, stream, usage};
use crate::event::{SessionEvent, TaskEvent, TeamStanding};
use crate::ids::{AttemptId, TaskId};
use crate::plan::PlanTask;
use crate::role::Role;
use crate::state::{AttemptPhase, RunPhase, State};
use crate::team::{Class, class_of};
use crate::time::Time;

/// How long an agent has to answer a status check.
const ANSWER_MS: u64 = 30_000;

pub(super) fn standing(state: &State) -> TeamStanding {
    let mut team = TeamStanding::default();
    for class in state.live_attempts().filter_map(|(id, _)| class_of(state, id)) {
        match class {
            Class::Working => team.working += 1,
            Class::Idle => team.idle += 1,
            Class::Unresponsive => team.unresponsive += 1,
        }
    }
    team
}

/// Whether a silent agent is asked before it counts as hung: only one that was taken over after a restart and takes
/// messages, and only once. The evidence is still checked: an agent that shows something is not asked again.
pub(super) fn asks_first(step: &mut OpenStep<'_>, id: AttemptId) -> bool {
    let Some(found) = step.state.attempts.get(&id) else { return false };
    if let Some(asked) = found.cli_session.status_asked {
        return step.now.since_ms(asked) < ANSWER_MS;
    }
    if !found.cli_session.adopted || !stream::hears(step.state, id) {
        return false;
    }
    step.emit_attempt(id, SessionEvent::StatusAsked { attempt: id });
    let text = "Status check after a restart of the coordinator: report your current task state. Save a checkpoint of your \
                task with rekindle now, then continue.";
    stream::tell(step, id, text.to_owned(), false);
    true
}

/// An agent that was asked for its status showed that it is there.
pub(super) fn answered(step: &mut OpenStep<'_>, id: AttemptId) {
    if step.state.attempts.get(&id).is_some_and(|found| found.cli_session.status_asked.is_some()) {
        step.emit_attempt(id, SessionEvent::StatusAnswered { attempt: id });
    }
}

/// Gives every idle agent the next ready task of its name.
pub(super) fn use_idle(step: &mut OpenStep<'_>) {
    let live: Vec<AttemptId> = step.state.live_attempts().map(|(id, _)| id).collect();
    for id in live {
        hand_next(step, id);
    }
}

/// Gives an idle agent the next ready task of its name by a message. Returns whether it did.
pub(super) fn hand_next(step: &mut OpenStep<'_>, id: AttemptId) -> bool {
    let Some(task) = next_for(step.state, id, step.now) else { return false };
    let Some(text) = step.state.plan_task(&task).map(words) else { return false };
    if !usage::may_dispatch(step) {
        return false;
    }
    let about = About { attempt: Some(id), task: Some(task.clone()), epoch: None };
    step.emit(about, TaskEvent::TaskAssigned { attempt: id });
    report::begin(step, id, &task);
    stream::tell(step, id, text, false);
    true
}

/// The task that an idle agent takes next: one that it would be started for and that has had no agent.
fn next_for(state: &State, id: AttemptId, now: Time) -> Option<TaskId> {
    let goes_on = state.run.as_ref().is_some_and(|run| run.phase == RunPhase::Running) && state.held.is_none();
    let reviewed = state.reviews(Role::Critic) || state.reviews(Role::Auditor);
    let stopped = budget::is_quiet(state, now) || !budget::admits_any(state, now);
    if !goes_on || stopped || reviewed || health::baseline_missing(state) || !is_usable(state, id) {
        return None;
    }
    let found = &state.attempts[&id];
    let place = found.tasks.first().and_then(|task| state.workspace_of(task));
    let fits = |task: &TaskId| {
        let Some(planned) = state.plan_task(task).filter(|planned| planned.agent.as_ref() == Some(&found.agent)) else {
            return false;
        };
        let open = &state.tasks[task];
        let untouched = open.tries() == 0 && open.last_cause.is_none() && open.workflow.rework.is_none();
        // Its reports count only for tasks that were never handed to a later attempt.
        untouched
            && budget::admits_task(state, task, now)
            && !planned.done
            && open.epoch < found.epoch
            && state.role_of(task) == found.role
            && state.workspace_of(task) == place
            && gate::cli_now(state, task, now).as_deref() == Some(found.cli.as_str())
    };
    let fitting: Vec<TaskId> = ready(state, now).filter(|task| fits(task)).cloned().collect();
    let taken = (!fitting.is_empty()).then(|| Occupied::beside(state, Some(id)))?;
    fitting.into_iter().find(|task| !taken.conflicts(state, task))
}

fn is_usable(state: &State, id: AttemptId) -> bool {
    let Some(found) = state.attempts.get(&id) else { return false };
    let cli_session = &found.cli_session;
    let fresh = cli_session.preparing.is_none() && cli_session.failure.is_none() && cli_session.astray.is_none();
    found.phase == AttemptPhase::Running
        && found.stop.is_none()
        && found.role == Role::Developer
        && fresh
        && !cli_session.input_closed
        && state.limits.traits_of(&found.cli).takes_messages
        && class_of(state, id) == Some(Class::Idle)
}

fn words(task: &PlanTask) -> String {
    let mut out = format!("Your next task, in the same session: {}: {}\n\n{}\n", task.id, task.title, task.body.trim());
    let lists =
        [("Artifacts", &task.artifacts), ("Read first", &task.reading), ("Checks that must pass", &task.accept)];
    for (name, items) in lists.into_iter().filter(|(_, items)| !items.is_empty()) {
        out.push_str(&format!("\n{name}:\n"));
        out.extend(items.iter().map(|item| format!("- {item}\n")));
    }
    out.push_str(&format!("\nReport it with rekindle (task_done {}) when it is finished.", task.id));
    out
}
