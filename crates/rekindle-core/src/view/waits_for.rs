//! What an open task that no agent is working on waits for: decided here, once, for every view.
//!
//! It reads only rows, so the answer is the same with and without a coordinator. `view` adds to the rows whatever is missing
//! there from the schedule; how to put the answer into words is left to the views.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::budget::BudgetState;
use super::occupied::Occupied;
use super::{AttemptRow, QuestionRow, RunRow, TaskRow, WaitRow};
use crate::budget::Scope;
use crate::decide::turns;
use crate::event::PauseReason;
use crate::ids::{AgentName, QuestionId, TaskId};
use crate::state::{State, TaskState};
use crate::time::Time;
use crate::view;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WaitsFor {
    /// Other tasks have to end first.
    Task { tasks: Vec<TaskId>, because: Because },
    /// An earlier wave has to end.
    Wave { wave: u32 },
    /// All agents that may run at once are running.
    Slot { max_agents: u32 },
    /// Its account: a usage limit, an overloaded provider, refused credentials.
    Account {
        account: String,
        cause: String,
        /// When the wait ends, if it is a matter of time; a time in the past means that the account is being tried.
        until: Option<Time>,
    },
    Person {
        act: PersonAct,
        #[serde(skip_serializing_if = "Option::is_none")]
        question: Option<QuestionId>,
    },
    /// What precedes any task: the plan's health commands, or another check of recent completions.
    SetUp { what: SetUp },
    /// The machine, or an agent's program, cannot start anything for now.
    Machine { reason: String, until: Option<Time> },
    /// The pause before its next attempt.
    Time { until: Time },
    /// A budget is used up: its own, the run's or the day's.
    Budget {
        scope: Scope,
        #[serde(skip_serializing_if = "Option::is_none")]
        question: Option<QuestionId>,
    },
    /// The quiet hours, in which nothing new starts.
    Quiet { until: Time },
    /// An agent that is done with it or was told to stop has not ended yet: nobody continues its work beside it.
    Agent { agent: AgentName, stopping: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// The plan says so.
    Plan,
    /// The plan says so, and they failed: a person has to retry or skip them.
    Failed,
    /// The same agent works on it.
    Agent,
    /// It works on the same files.
    Files,
    /// Both are worked on in the same worktree.
    Worktree,
}

/// What a person has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonAct {
    Answer,
    Resume,
    /// Start a coordinator: the last one ended without pausing the run.
    GoOn,
    /// Give back the task that they hold.
    GiveBack,
}

/// What comes before any task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetUp {
    /// The plan's health commands run first.
    Health,
    /// Recent completions are checked again first.
    Validation,
    /// The checks of the plan are tried first.
    Preflight,
}

/// An agent's program that failed to start too often, as a table shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerRow {
    pub cli: String,
    pub until: Time,
}

/// The parts of the schedule that belong to the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSchedule {
    /// The wave whose tasks may start; `None` if the plan has no waves.
    pub wave: Option<u32>,
    /// Agents that may run at once; 0 in rows of earlier versions.
    pub max_agents: u32,
    pub set_up: Option<SetUp>,
    pub breakers: Vec<BreakerRow>,
}

impl RunSchedule {
    pub(super) fn of(state: &State) -> Self {
        let run = state.run.as_ref();
        let breakers = state.breakers.iter();
        let breakers = breakers.filter_map(|(cli, open)| Some(BreakerRow { cli: cli.clone(), until: open.until? }));
        let set_up = match (turns::waits_for_health(state), turns::waits_for_validation(state)) {
            (true, _) => Some(SetUp::Health),
            (false, true) => Some(SetUp::Validation),
            (false, false) => turns::waits_for_preflight(state).then_some(SetUp::Preflight),
        };
        Self {
            wave: run.filter(|run| run.plan.explicit_waves).map(|run| run.wave),
            max_agents: state.limits.max_agents,
            set_up,
            breakers: breakers.collect(),
        }
    }
}

/// The parts of the schedule that belong to one task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskSchedule {
    /// Tasks that have to end before it, and have not.
    pub unmet: Vec<TaskId>,
    /// Those of them that failed: nothing happens until a person sees to them.
    pub failed: Vec<TaskId>,
    /// Which `[agents.NAME]` runs it.
    pub cli: String,
    /// Its account, and that of the agent that stands in for its own.
    pub accounts: Vec<String>,
    /// It was complete and is being checked again, so it waits for no set-up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub validating: bool,
    pub artifacts: Vec<String>,
    /// An attempt holds it: an agent that gave it up may still be running.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// It waits for the answer to a question about another task too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
}

impl TaskSchedule {
    pub(super) fn of(state: &State, id: &TaskId) -> Self {
        let Some(task) = state.tasks.get(id).filter(|task| !task.state.is_terminal()) else { return Self::default() };
        let unmet = state.unmet_blockers(id);
        let has_failed = |id: &&TaskId| state.tasks.get(*id).is_some_and(|task| task.state == TaskState::Failed);
        Self {
            failed: unmet.iter().filter(has_failed).cloned().collect(),
            unmet,
            cli: turns::agent_program(state, id),
            accounts: turns::accounts(state, id),
            validating: task.workflow.validating,
            held: task.holder.is_some(),
            question: state.preparing.question_of(id),
            artifacts: state.plan_task(id).map(|task| task.artifacts.clone()).unwrap_or_default(),
        }
    }
}

/// Knows what each task of a run waits for at one moment.
pub struct Waits<'a> {
    run: &'a RunRow,
    coordinated: bool,
    now: Time,
    live: Vec<&'a AttemptRow>,
    questions: BTreeMap<&'a TaskId, QuestionId>,
    occupied: Occupied<'a>,
}

impl<'a> Waits<'a> {
    /// Reads the rows of a run; `coordinated` says whether a coordinator is running.
    pub fn new(
        run: &'a RunRow,
        tasks: &'a [TaskRow],
        attempts: &'a [AttemptRow],
        questions: &'a [QuestionRow],
        coordinated: bool,
        now: Time,
    ) -> Self {
        let live: Vec<&AttemptRow> = attempts.iter().filter(|attempt| attempt.ended_at.is_none()).collect();
        let open = questions.iter().filter(|question| question.answer.is_none());
        Self {
            run,
            coordinated,
            now,
            occupied: Occupied::new(tasks, attempts, run.schedule.wave),
            // Of several questions the first is answered first.
            questions: open.rev().map(|question| (&question.task, question.id)).collect(),
            live,
        }
    }

    /// What a task waits for; `None` if it has ended or an agent is working on it.
    pub fn of(&self, task: &TaskRow) -> Option<WaitsFor> {
        if matches!(task.state.as_str(), "complete" | "failed" | "skipped") {
            return None;
        }
        let question = self.questions.get(&task.id).copied().or(task.schedule.question);
        if let Some(question) = question {
            return Some(WaitsFor::Person { act: PersonAct::Answer, question: Some(question) });
        }
        if task.attached.is_some() {
            return Some(WaitsFor::Person { act: PersonAct::GiveBack, question: None });
        }
        // A row of an earlier version does not say whether the task is held: a live attempt that lists it counts as its
        // holder.
        let held = task.schedule.held || task.schedule.cli.is_empty();
        let holder = self.live.iter().rev().find(|attempt| held && attempt.tasks.contains(&task.id));
        let at_it = holder.is_some_and(|holder| holder.task.as_ref() == Some(&task.id));
        if task.verifying || at_it {
            return None;
        }
        // It is on the list of an agent that is working on another task.
        let listed = holder.and_then(|holder| holder.task.clone());
        Some(before(task).or_else(|| self.of_run(task)).unwrap_or_else(|| self.of_turn(task, listed)))
    }

    /// What every task of the run waits for.
    fn of_run(&self, task: &TaskRow) -> Option<WaitsFor> {
        let (run, schedule) = (self.run, &self.run.schedule);
        if let Some(wave) = schedule.wave.filter(|wave| task.wave > *wave) {
            return Some(WaitsFor::Wave { wave });
        }
        if matches!(run.state.as_str(), "paused" | "pausing") {
            return Some(WaitsFor::Person { act: PersonAct::Resume, question: None });
        }
        if !self.coordinated {
            return Some(WaitsFor::Person { act: PersonAct::GoOn, question: None });
        }
        if let Some(held) = run.held.as_ref() {
            return Some(WaitsFor::Machine { reason: held.reason.clone(), until: held.until.or(run.resumes_at) });
        }
        if run.state == "waiting" && run.pause_reason != Some(PauseReason::SystemError) {
            let gate = run.waits.iter().find(|wait| self.is_closed(wait)).or(run.waits.first());
            let account =
                gate.map_or_else(|| task.schedule.accounts.first().cloned(), |wait| Some(wait.account.clone()));
            let cause = gate.map_or_else(|| "usage_limit".to_owned(), |wait| wait.cause.clone());
            return Some(WaitsFor::Account { account: account.unwrap_or_default(), cause, until: run.resumes_at });
        }
        let set_up = schedule.set_up.filter(|what| *what != SetUp::Validation || !task.schedule.validating);
        set_up.map(|what| WaitsFor::SetUp { what }).or_else(|| self.of_budget(task))
    }

    /// Budgets and quiet hours.
    fn of_budget(&self, task: &TaskRow) -> Option<WaitsFor> {
        let budget = &self.run.budget;
        if let Some((scope, question)) = budget.stops(self.now) {
            return Some(WaitsFor::Budget { scope, question });
        }
        if BudgetState::of(&task.spending, &budget.limits.task, self.now).stops() {
            return Some(WaitsFor::Budget { scope: Scope::Task, question: task.spending.question });
        }
        let until = budget.quiet_until.filter(|until| *until > self.now)?;
        Some(WaitsFor::Quiet { until })
    }

    /// What delays its turn.
    fn of_turn(&self, task: &TaskRow, listed: Option<TaskId>) -> WaitsFor {
        let schedule = &task.schedule;
        if let Some(other) = listed {
            return WaitsFor::Task { tasks: vec![other], because: Because::Agent };
        }
        if let Some(until) = task.not_before.filter(|until| *until > self.now) {
            return WaitsFor::Time { until };
        }
        let broken = self.run.schedule.breakers.iter().find(|open| open.cli == schedule.cli && open.until > self.now);
        if let Some(open) = broken {
            let reason = format!("`{}` failed to start several times in a row", open.cli);
            return WaitsFor::Machine { reason, until: Some(open.until) };
        }
        let gates: Vec<Option<&WaitRow>> =
            schedule.accounts.iter().map(|name| self.run.waits.iter().find(|wait| wait.account == *name)).collect();
        let account = |wait: &WaitRow| WaitsFor::Account {
            account: wait.account.clone(),
            cause: wait.cause.clone(),
            until: wait.until,
        };
        let closed = gates.iter().all(|gate| gate.is_some_and(|gate| self.is_closed(gate)));
        if let Some(wait) = gates.first().copied().flatten().filter(|_| closed) {
            return account(wait);
        }
        // Before the slots: the slot that it waits for may be its own agent's.
        if let Some(waits) = self.occupied.before(task) {
            return waits;
        }
        let max_agents = self.run.schedule.max_agents;
        let slot = WaitsFor::Slot { max_agents };
        if max_agents > 0 && self.live.len() >= max_agents as usize {
            return slot;
        }
        gates.first().copied().flatten().map_or(slot, account)
    }

    fn is_closed(&self, wait: &WaitRow) -> bool {
        wait.until.is_none_or(|until| until > self.now)
    }
}

/// Tasks of the plan that come first.
fn before(task: &TaskRow) -> Option<WaitsFor> {
    let schedule = &task.schedule;
    if !schedule.failed.is_empty() {
        return Some(WaitsFor::Task { tasks: schedule.failed.clone(), because: Because::Failed });
    }
    if !schedule.unmet.is_empty() {
        return Some(WaitsFor::Task { tasks: schedule.unmet.clone(), because: Because::Plan });
    }
    if schedule.cli.is_empty() && !task.blocked_by.is_empty() && task.state == "blocked" {
        // A row of an earlier version does not say which of them are still open.
        return Some(WaitsFor::Task { tasks: task.blocked_by.clone(), because: Because::Plan });
    }
    // Its agent has left, and the answer has not been acted on yet.
    (task.state == "blocked").then_some(WaitsFor::Person { act: PersonAct::Answer, question: None })
}

/// What every open task of a state waits for, derived from its rows.
pub fn waits_of(state: &State, coordinated: bool, now: Time) -> BTreeMap<TaskId, WaitsFor> {
    let Some(run) = view::run_row(state) else { return BTreeMap::new() };
    let tasks: Vec<TaskRow> = state.tasks.keys().filter_map(|id| view::task_row(state, id)).collect();
    let attempts: Vec<AttemptRow> = state.attempts.keys().filter_map(|id| view::attempt_row(state, *id)).collect();
    let questions: Vec<QuestionRow> = state.questions.keys().filter_map(|id| view::question_row(state, *id)).collect();
    let waits = Waits::new(&run, &tasks, &attempts, &questions, coordinated, now);
    tasks.iter().filter_map(|task| Some((task.id.clone(), waits.of(task)?))).collect()
}
