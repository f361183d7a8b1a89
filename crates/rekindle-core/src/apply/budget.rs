//! Where money and time go: every attempt's bill is added to its task, the run and the day. Bills are totals, so an event
//! that repeats what is known adds nothing, and replay gives the same sums.

use crate::activity::Usage;
use crate::budget::{Choice, Level, Scope, Spending, price_of};
use crate::event::{AttemptEvent, Body, BudgetAnswered, BudgetAsked, BudgetSeen, Event, RunEvent, TaskEvent};
use crate::ids::{AttemptId, TaskId};
use crate::limits::Limits;
use crate::state::{State, TaskState};
use crate::time::Time;

/// Records an attempt's total usage. What is new in it belongs to the task that the attempt is working on.
pub(super) fn measured(state: &mut State, event: &Event, attempt: AttemptId, usage: &Usage) {
    let Some(found) = state.attempts.get_mut(&attempt) else { return };
    let price = price_of(&state.limits.prices, found.cli_session.model.as_deref());
    let before = found.cli_session.bill;
    let now = before.next(usage, price);
    found.cli_session.bill = now;
    state.budget.run.rebill(&before, &now);
    state.budget.day.rebill(&before, &now);
    if let Some(task) = &event.task {
        super::on_task(state, task, |task| task.spending.rebill(&before, &now));
    }
}

/// Starts and stops the clocks of what an event touched.
pub(super) fn after(state: &mut State, event: &Event) {
    let attempt = match &event.body {
        Body::Attempt(
            AttemptEvent::Dispatched { attempt, .. }
            | AttemptEvent::AttemptExited { attempt, .. }
            | AttemptEvent::AttemptEnded { attempt, .. },
        ) => Some(*attempt),
        Body::Task(_) | Body::Review(_) | Body::Attempt(_) => None,
        Body::Run(RunEvent::SessionResume(_)) => return take_up(state),
        Body::Run(_) | Body::Session(_) | Body::Gate(_) | Body::Machine(_) | Body::Person(_) => return,
    };
    let held = attempt.and_then(|id| state.attempts.get(&id)).map(|found| found.tasks.clone()).unwrap_or_default();
    for task in held.iter().chain(&event.task) {
        run_clock_of(state, task, event.time);
    }
    if attempt.is_some() {
        let runs = state.live_attempts().next().is_some();
        state.budget.run.run_clock(runs, event.time);
        state.budget.day.run_clock(runs, event.time);
    }
    match (&event.body, &event.task) {
        // This is the one more attempt that was allowed.
        (Body::Attempt(AttemptEvent::Dispatched { tasks, .. }), _) => {
            for id in tasks {
                super::on_task(state, id, |task| task.spending.goes_on = false);
            }
        }
        // Whoever reopens it has seen what it cost.
        (Body::Task(TaskEvent::TaskReopened { .. }), Some(id)) => {
            super::on_task(state, id, |task| task.spending.handed_back = false);
        }
        _ => {}
    }
}

fn run_clock_of(state: &mut State, id: &TaskId, now: Time) {
    let Some(task) = state.tasks.get(id) else { return };
    let live = |holder| state.attempts.get(&holder).is_some_and(crate::state::Attempt::is_live);
    let runs = task.state == TaskState::InProgress && task.holder.is_some_and(live);
    if runs != task.spending.running_since.is_some() {
        super::on_task(state, id, |task| task.spending.run_clock(runs, now));
    }
}

/// Returns a resumed run to the person: they are asked again where a budget is still used up.
fn take_up(state: &mut State) {
    state.budget.run.handed_back = false;
    state.budget.day.handed_back = false;
}

/// Starts a run with nothing spent; the day continues, and no agent of the previous run is known any more.
pub(super) fn run_started(state: &mut State, now: Time) {
    state.budget.run = Spending::default();
    state.budget.day.run_clock(false, now);
    (state.budget.day.question, state.budget.day.handed_back) = (None, false);
}

/// Starts a day with nothing spent; what runs over midnight continues in the new day.
pub(super) fn day_began(state: &mut State, now: Time, date: &str) {
    let day = &mut state.budget.day;
    let (question, running_since) = (day.question, day.running_since.map(|_| now));
    *day = Spending { question, running_since, ..Spending::default() };
    date.clone_into(&mut state.budget.date);
}

/// The machine slept: no agent was running.
pub(super) fn slept(state: &mut State, slept_ms: u64) {
    let later = |spending: &mut Spending| {
        spending.running_since = spending.running_since.map(|since| since.plus_ms(slept_ms));
    };
    later(&mut state.budget.run);
    later(&mut state.budget.day);
    state.tasks.values_mut().for_each(|task| later(&mut task.spending));
}

pub(super) fn told(state: &mut State, event: &Event, seen: &BudgetSeen, level: Level) {
    on(state, seen.scope, event.task.as_ref(), |spending| spending.told = spending.told.max(level));
}

pub(super) fn asked(state: &mut State, event: &Event, asked: &BudgetAsked) {
    if let Some(question) = state.questions.get_mut(&asked.question) {
        question.is_budget = true;
    }
    on(state, asked.scope, event.task.as_ref(), |spending| spending.question = Some(asked.question));
}

pub(super) fn answered(state: &mut State, event: &Event, answered: &BudgetAnswered) {
    on(state, answered.scope, event.task.as_ref(), |spending| {
        spending.question = None;
        match answered.choice {
            Choice::Raise => {
                spending.raised = spending.raised.saturating_add(1);
                spending.told = Level::Fine;
                spending.handed_back = false;
            }
            Choice::GoOn => spending.goes_on = true,
            Choice::HandBack | Choice::Stop => spending.handed_back = true,
            Choice::Withdrawn => {}
        }
    });
}

fn on(state: &mut State, scope: Scope, task: Option<&TaskId>, change: impl FnOnce(&mut Spending)) {
    match (scope, task) {
        (Scope::Run, _) => change(&mut state.budget.run),
        (Scope::Day, _) => change(&mut state.budget.day),
        (Scope::Task, Some(id)) => super::on_task(state, id, |task| change(&mut task.spending)),
        (Scope::Task, None) => {}
    }
}

/// The configuration changed: what was reported for the old limits does not apply to the new ones.
pub(super) fn limits_changed(state: &mut State, limits: &Limits) {
    if state.limits.budget == limits.budget {
        return;
    }
    state.budget.run.told = Level::Fine;
    state.budget.day.told = Level::Fine;
    state.tasks.values_mut().for_each(|task| task.spending.told = Level::Fine);
}
