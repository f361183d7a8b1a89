//! Budgets and quiet hours: when nothing new may start because of money or the hour, who is told, and what follows from a
//! person's answer. Running agents continue: a budget never ends an agent.

use super::schedule::ready;
use super::{About, OpenStep, Reply, operator, session};
use crate::budget::{Allowance, Calendar, Choice, Level, NOTICE_PERCENT, Scope, Spending, Standing};
use crate::event::{BudgetAnswered, BudgetAsked, BudgetSeen, MachineEvent, PauseReason, PersonEvent};
use crate::ids::{AttemptId, QuestionId, TaskId};
use crate::phone::Via;
use crate::state::{RunPhase, State};
use crate::time::Time;

/// A moment after every backoff, so that tasks that wait for their next attempt count as ready too.
const SOME_DAY: Time = Time(i64::MAX);

/// The two budgets that apply to all tasks, in the order in which a person is asked about them.
const SHARED: [Scope; 2] = [Scope::Run, Scope::Day];

fn spending<'a>(state: &'a State, scope: Scope, task: Option<&TaskId>) -> Option<&'a Spending> {
    match scope {
        Scope::Run => Some(&state.budget.run),
        Scope::Day => Some(&state.budget.day),
        Scope::Task => state.tasks.get(task?).map(|task| &task.spending),
    }
}

fn admits_of(state: &State, scope: Scope, task: Option<&TaskId>, now: Time) -> bool {
    let limit = state.limits.budget.of(scope);
    limit.is_none() || spending(state, scope, task).is_none_or(|spending| spending.admits(limit, now))
}

/// Whether the budgets of run and day let anything start.
pub(super) fn admits_any(state: &State, now: Time) -> bool {
    SHARED.into_iter().all(|scope| admits_of(state, scope, None, now))
}

/// Whether a task's own budget lets it start.
pub(super) fn admits_task(state: &State, task: &TaskId, now: Time) -> bool {
    admits_of(state, Scope::Task, Some(task), now)
}

/// Whether every budget lets a task start.
pub(super) fn admits(state: &State, task: &TaskId, now: Time) -> bool {
    admits_any(state, now) && admits_task(state, task, now)
}

/// Whether these are hours in which nothing new starts.
pub(super) fn is_quiet(state: &State, now: Time) -> bool {
    state.budget.quiet_until.is_some_and(|until| state.clocks.wall(now) < until)
}

/// When the quiet hours end.
pub(super) fn quiet_until(state: &State) -> Option<Time> {
    state.budget.quiet_until.map(|until| state.clocks.at_wall(until))
}

/// Records the day and the quiet hours from the calendar, if they changed.
pub(super) fn calendar_seen(step: &mut OpenStep<'_>, seen: Calendar) -> Reply {
    let known = (step.state.budget.date.clone(), step.state.budget.quiet_until);
    if known.0 != seen.date {
        step.emit_run(MachineEvent::DayBegan { date: seen.date });
    }
    match seen.quiet_until {
        Some(until) if known.1 != Some(until) => step.emit_run(MachineEvent::QuietBegan { until }),
        None if known.1.is_some() => step.emit_run(MachineEvent::QuietEnded {}),
        _ => {}
    }
    Reply::Accepted
}

/// The known end of the quiet hours has come.
pub(super) fn quiet_over(step: &mut OpenStep<'_>) {
    if step.state.budget.quiet_until.is_some() && !is_quiet(step.state, step.now) {
        step.emit_run(MachineEvent::QuietEnded {});
    }
}

/// When the running time passes the next level of a budget.
pub(super) fn deadlines(state: &State) -> Vec<Time> {
    let budget = &state.limits.budget;
    let shared = SHARED.into_iter().filter_map(|scope| next_level_at(spending(state, scope, None)?, budget.of(scope)));
    let of_task = |(id, _): (AttemptId, &crate::state::Attempt)| {
        let open = state.open_tasks(id).into_iter();
        open.filter_map(|task| next_level_at(&state.tasks.get(&task)?.spending, &budget.task)).min()
    };
    let tasks = budget.task.wall_ms.map(|_| state.live_attempts().filter_map(of_task));
    shared.chain(tasks.into_iter().flatten()).collect()
}

fn next_level_at(spending: &Spending, limit: &Allowance) -> Option<Time> {
    let (since, limit) = (spending.running_since?, limit.raised(spending.raised).wall_ms?);
    let near = u64::try_from((u128::from(limit) * u128::from(NOTICE_PERCENT)).div_ceil(100)).unwrap_or(limit);
    let next = match spending.told {
        Level::Fine => near,
        Level::Near => limit,
        Level::Reached => return None,
    };
    Some(since.plus_ms(next.saturating_sub(spending.spent.wall_ms)))
}

/// Records what is newly near or used up, and withdraws questions that have become pointless.
pub(super) fn look(step: &mut OpenStep<'_>) {
    withdraw(step);
    if step.state.limits.budget.is_none() {
        return;
    }
    for scope in SHARED {
        tell(step, scope, None);
    }
    if step.state.limits.budget.task.is_none() {
        return;
    }
    let open: Vec<TaskId> = step.state.begun().map(|(id, _)| id.clone()).collect();
    for id in open {
        tell(step, Scope::Task, Some(&id));
    }
}

fn tell(step: &mut OpenStep<'_>, scope: Scope, task: Option<&TaskId>) {
    let Some(known) = spending(step.state, scope, task).copied() else { return };
    let limit = step.state.limits.budget.of(scope).raised(known.raised);
    let spent = known.by(step.now);
    let level = Standing::of(&spent, &limit).level;
    if level <= known.told {
        return;
    }
    let seen = BudgetSeen { scope, spent, limit, alerts: level == Level::Near || !asks_now(step, scope, task) };
    let event = match level {
        Level::Reached => MachineEvent::BudgetReached(seen),
        Level::Near | Level::Fine => MachineEvent::BudgetNotice(seen),
    };
    emit(step, task, event);
}

fn emit(step: &mut OpenStep<'_>, task: Option<&TaskId>, event: MachineEvent) {
    match task {
        Some(task) => step.emit_task(task, event),
        None => step.emit_run(event),
    }
}

/// Whether a question about a used-up budget follows at once: then the question tells a person everything.
fn asks_now(step: &OpenStep<'_>, scope: Scope, task: Option<&TaskId>) -> bool {
    is_running(step.state)
        && match (scope, task) {
            (Scope::Task, Some(task)) => ready(step.state, SOME_DAY).any(|next| next == task),
            _ => ready(step.state, SOME_DAY).next().is_some(),
        }
}

fn is_running(state: &State) -> bool {
    state.run.as_ref().is_some_and(|run| run.phase == RunPhase::Running)
}

/// Asks a person if something could start but a budget prevents it: about one shared budget, else about each task.
pub(super) fn ask(step: &mut OpenStep<'_>) {
    if step.state.limits.budget.is_none() || !is_running(step.state) {
        return;
    }
    for scope in SHARED {
        if admits_of(step.state, scope, None, step.now) {
            continue;
        }
        let next = ready(step.state, SOME_DAY).next().cloned();
        let asks = spending(step.state, scope, None).is_some_and(|spending| is_silent(step.state, spending));
        if let Some(task) = next.filter(|_| asks) {
            put(step, scope, &task);
        }
        return;
    }
    if step.state.limits.budget.task.is_none() {
        return;
    }
    let state = &*step.state;
    let asks = |id: &TaskId| !admits_task(state, id, step.now) && is_silent(state, &state.tasks[id].spending);
    let kept = ready(state, SOME_DAY).filter(|id| asks(id));
    let kept: Vec<TaskId> = kept.cloned().collect();
    for task in kept {
        put(step, Scope::Task, &task);
    }
}

/// Whether no question about a budget is open and nobody has taken it back. A log that ends inside a step may lack the
/// meaning of an answer: then a person is asked again.
fn is_silent(state: &State, spending: &Spending) -> bool {
    let is_open = |id| state.questions.get(&id).is_some_and(|question| question.answer.is_none());
    !spending.question.is_some_and(is_open) && !spending.handed_back
}

/// Records the question. A question about a run or a day is attached to the task that would start next.
fn put(step: &mut OpenStep<'_>, scope: Scope, task: &TaskId) {
    let own = Some(task).filter(|_| scope == Scope::Task);
    let Some(known) = spending(step.state, scope, own).copied() else { return };
    let limit = *step.state.limits.budget.of(scope);
    let standing = Standing::of(&known.by(step.now), &limit.raised(known.raised));
    let (name, rest) = match scope {
        Scope::Task => (format!("the budget of task {task}"), "no other agent is started for it"),
        Scope::Run => ("the budget of the run".to_owned(), "running agents finish, and nothing new is started"),
        Scope::Day => ("the budget of the day".to_owned(), "running agents finish, and nothing new is started"),
    };
    let text = format!("{name} is used up ({}): {rest}. How should it go on?", standing.at_level());
    let higher = Standing::of(&known.by(step.now), &limit.raised(known.raised + 1)).limits();
    let options: Vec<String> = Choice::ALL
        .into_iter()
        .map(|choice| format!("{}: {}", choice.word(), option(choice, scope, task, &higher)))
        .collect();
    let question = QuestionId(step.state.last_question + 1);
    let choices =
        options.iter().enumerate().map(|(at, option)| format!("rekindle answer {question} {} ({option})", at + 1));
    let alert = PersonEvent::PersonAlerted { text: text.clone(), choices: choices.collect() };
    let about = About { attempt: None, task: Some(task.clone()), epoch: Some(step.state.tasks[task].epoch) };
    let (attempt, context) = (AttemptId(0), standing.words());
    step.emit(about, PersonEvent::QuestionAsked { id: question, attempt, text, options, context, takes_work: false });
    emit(step, own, MachineEvent::BudgetAsked(BudgetAsked { scope, question }));
    step.emit_task(task, alert);
}

/// What an answer does, in words.
fn option(choice: Choice, scope: Scope, task: &TaskId, higher: &str) -> String {
    match (choice, scope) {
        (Choice::Raise, _) => format!("the limit becomes {higher}"),
        (Choice::GoOn, Scope::Task) => "one more attempt, then you are asked again".to_owned(),
        (Choice::GoOn, Scope::Run) => "without this limit until the run ends".to_owned(),
        (Choice::GoOn, Scope::Day) => "without this limit until the day ends".to_owned(),
        (Choice::HandBack, Scope::Task) => {
            format!("you take it; `rekindle task retry {task}` gives it to an agent again")
        }
        (Choice::HandBack, _) => "running agents finish, then the run is paused".to_owned(),
        (Choice::Stop, Scope::Task) => format!("the task is given up; `rekindle task retry {task}` opens it again"),
        (Choice::Stop, _) => "the run is paused now; agents save a checkpoint and stop".to_owned(),
        (Choice::Withdrawn, _) => "it is no longer asked".to_owned(),
    }
}

/// The budget that a question asks about, while it waits for its answer.
fn asked_about(state: &State, id: QuestionId) -> Option<(Scope, Option<TaskId>)> {
    let question = state.questions.get(&id).filter(|question| question.is_budget && question.answer.is_none())?;
    let scope = SHARED.into_iter().find(|scope| spending(state, *scope, None).is_some_and(|s| s.question == Some(id)));
    Some(scope.map_or_else(|| (Scope::Task, Some(question.task.clone())), |scope| (scope, None)))
}

/// Takes a person's answer; `None` if the question is about something else.
pub(super) fn answered(step: &mut OpenStep<'_>, id: QuestionId, answer: &str, via: Option<Via>) -> Option<Reply> {
    let (scope, task) = asked_about(step.state, id)?;
    let Some(choice) = Choice::of(answer) else {
        let words: Vec<String> =
            Choice::ALL.iter().enumerate().map(|(at, choice)| format!("{} ({})", at + 1, choice.word())).collect();
        let reason = format!("question {id} is about a budget: answer {}", words.join(", "));
        return Some(Reply::Refused { reason });
    };
    settle(step, id, (answer.to_owned(), via), (scope, task.as_ref(), choice));
    match (choice, &task) {
        (Choice::Stop, Some(task)) => {
            // It may have ended while the question was open.
            let _ended = operator::stop(step, task);
        }
        (Choice::Stop, None) => {
            session::pause(step, PauseReason::Operator);
        }
        _ => {}
    }
    Some(Reply::Accepted)
}

fn settle(
    step: &mut OpenStep<'_>,
    id: QuestionId,
    (answer, via): (String, Option<Via>),
    (scope, task, choice): (Scope, Option<&TaskId>, Choice),
) {
    let about = step.state.questions.get(&id).map(|question| question.task.clone());
    step.emit(About { attempt: None, task: about, epoch: None }, PersonEvent::QuestionAnswered { id, answer, via });
    emit(step, task, MachineEvent::BudgetAnswered(BudgetAnswered { scope, choice, question: Some(id) }));
}

/// Withdraws questions that no longer need an answer: the limit was raised in the configuration, the day is over, or nothing
/// is left to start.
fn withdraw(step: &mut OpenStep<'_>) {
    let open = step.state.questions.iter().filter(|(_, question)| question.is_budget && question.answer.is_none());
    let open: Vec<QuestionId> = open.map(|(id, _)| *id).collect();
    for id in open {
        let Some((scope, task)) = asked_about(step.state, id) else { continue };
        let over = match &task {
            Some(task) => step.state.tasks.get(task).is_none_or(|task| task.state.is_terminal()),
            None => step.state.begun().chain(step.state.untouched()).next().is_none(),
        };
        let free = admits_of(step.state, scope, task.as_ref(), step.now);
        if over || free {
            let why = if over { "nothing is left to start" } else { "the budget is no longer used up" };
            settle(step, id, (format!("withdrawn: {why}"), None), (scope, task.as_ref(), Choice::Withdrawn));
        }
    }
}

/// Gives a task that a person had taken back to an agent again, with its original amount to spend once more. Returns whether
/// it was such a task.
pub(super) fn take_up(step: &mut OpenStep<'_>, id: &TaskId) -> bool {
    let handed_back =
        step.state.tasks.get(id).is_some_and(|task| task.spending.handed_back && !task.state.is_terminal());
    if handed_back {
        let answered = BudgetAnswered { scope: Scope::Task, choice: Choice::Raise, question: None };
        step.emit_task(id, MachineEvent::BudgetAnswered(answered));
    }
    handed_back
}

/// Whether a person took the run back while one of its budgets is used up.
pub(super) fn is_handed_back(state: &State) -> bool {
    let now = state.last_time;
    SHARED
        .into_iter()
        .any(|scope| spending(state, scope, None).is_some_and(|s| s.handed_back) && !admits_of(state, scope, None, now))
}
