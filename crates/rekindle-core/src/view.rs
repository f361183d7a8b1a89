//! The rows that readers see, derived from the state and stored beside the events that made them so.
//!
//! A row holds what a table shows; how it is shown is left to the views.

mod attempts;
mod budget;
mod counts;
mod occupied;
mod question;
mod status_line;
mod steering;
mod waits;
mod waits_for;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::budget::Spending;
use crate::decide::turns;
use crate::event::{
    AttemptEvent, Body, Event, Landed, MachineEvent, Outcome, PauseReason, PersonEvent, RunEvent, SessionEvent,
    TaskEvent,
};
use crate::ids::{AgentName, AttemptId, Epoch, QuestionId, TaskId};
use crate::plan::PlanTask;
use crate::pull_request::KnownPullRequest;
use crate::report::{Checkpoint, Evidence};
use crate::review::{GivenVerdict, Rework, Stage};
use crate::role::Role;
use crate::state::{RunPhase, State, Task, TaskState};
use crate::time::Time;

pub use attempts::{AttemptRow, attempt_row, number_of};
pub use budget::{BudgetRow, BudgetState, line as budget_line};
pub use counts::Counts;
pub use question::{QuestionRow, question_row};
pub use status_line::status_line;
pub use steering::{AttachedRow, PlacedRow, ToldRow};
pub use waits::{HeldRow, WaitRow};
pub use waits_for::{Because, BreakerRow, PersonAct, RunSchedule, SetUp, TaskSchedule, Waits, WaitsFor, waits_of};

/// The run, as a table shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    pub id: String,
    pub plan: String,
    pub title: String,
    pub plan_path: String,
    /// `created`, `running`, `pausing`, `paused`, `waiting` (paused, resumes automatically), `complete` or `failed`.
    pub state: String,
    pub started_at: Time,
    pub ended_at: Option<Time>,
    /// How often it continued after a pause.
    pub resumes: u32,
    /// Attempts allowed per task.
    pub attempts: u32,
    /// Whether the plan's file differs from the pinned plan.
    pub plan_changed: bool,
    /// The branch that accepted work goes to, if tasks have worktrees.
    #[serde(default)]
    pub work_branch: Option<String>,
    /// The commit that the branch began at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_base: Option<String>,
    /// Where the person last put its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<Landed>,
    /// The state of its pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<KnownPullRequest>,
    /// The accounts that have to wait.
    #[serde(default)]
    pub waits: Vec<WaitRow>,
    /// Why it is paused, as the log's keyword.
    #[serde(default)]
    pub pause_reason: Option<PauseReason>,
    /// When a waiting run resumes automatically, if known.
    #[serde(default)]
    pub resumes_at: Option<Time>,
    /// Why nothing new is started while the machine lacks something.
    #[serde(default)]
    pub held: Option<HeldRow>,
    /// The parts of the schedule that its tasks may wait for.
    #[serde(default)]
    pub schedule: RunSchedule,
    /// Orders that the person can still take back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placed: Vec<PlacedRow>,
    #[serde(default)]
    pub budget: BudgetRow,
}

/// A task, as a table shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskRow {
    pub id: TaskId,
    pub title: String,
    /// `pending`, `in_progress`, `awaiting_review`, `awaiting_audit`, `blocked`, `complete`, `failed` or `skipped`.
    pub state: String,
    /// Attempts that count.
    pub attempts: u32,
    pub attempt_limit: u32,
    /// The agent that works on it or would.
    pub agent: Option<AgentName>,
    pub wave: u32,
    pub cause: Option<String>,
    /// In words: what it waits for, or why it ended as it did.
    pub reason: Option<String>,
    /// The outcome in the agent's words.
    pub result: Option<String>,
    /// Complete on an agent's word alone.
    pub unproven: bool,
    /// No agent reported it: its checks, or a person, showed that it is done.
    #[serde(default)]
    pub unreported: bool,
    /// Whether its claim is being proven right now.
    pub verifying: bool,
    pub epoch: Epoch,
    pub blocked_by: Vec<TaskId>,
    /// When the current attempt at it began, or the one it ended with.
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub not_before: Option<Time>,
    /// The progress that its agent reported last.
    pub checkpoint: Option<Checkpoint>,
    pub evidence: Option<Evidence>,
    /// Compactions of agents while they worked on it.
    #[serde(default)]
    pub compactions: u32,
    /// Its current stage: `implement`, `review` or `audit`.
    #[serde(default)]
    pub stage: Stage,
    /// Why its work was sent back, until it is proven again.
    #[serde(default)]
    pub rework: Option<Rework>,
    /// What reviewers said, newest last.
    #[serde(default)]
    pub verdicts: Vec<GivenVerdict>,
    /// The task that it is a part of.
    #[serde(default)]
    pub parent: Option<TaskId>,
    /// The commit of the run's branch that holds its work.
    #[serde(default)]
    pub merged: Option<String>,
    /// The task's own workspace.
    #[serde(default)]
    pub workspace: Option<String>,
    /// The parts that it was split into, in order.
    #[serde(default)]
    pub parts: Vec<TaskId>,
    /// Where its checks run, if the plan names environments.
    #[serde(default)]
    pub environments: Vec<String>,
    /// The parts of the schedule that it may wait for.
    #[serde(default)]
    pub schedule: TaskSchedule,
    /// A person decided how it ended.
    #[serde(default)]
    pub by_operator: bool,
    /// The plan no longer has it.
    #[serde(default)]
    pub removed: bool,
    /// A person added it to the run.
    #[serde(default)]
    pub by_hand: bool,
    /// What the person told its agent, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<ToldRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<AttachedRow>,
    /// What its agents have spent.
    #[serde(default, skip_serializing_if = "Spending::is_none")]
    pub spending: Spending,
}

impl TaskRow {
    /// Says that a person decided how it ended.
    pub fn decided(&self) -> Option<&'static str> {
        match self.state.as_str() {
            _ if !self.by_operator => None,
            _ if self.removed && self.state == "skipped" => Some("the operator removed it from the plan"),
            "complete" => Some("the operator decided that it is complete"),
            "skipped" => Some("the operator skipped it"),
            "failed" => Some("the operator gave it up"),
            _ => None,
        }
    }

    /// The reservation about a complete task that was not both reported and proven: a mark, and the same in words.
    pub fn doubt(&self) -> Option<(&'static str, &'static str)> {
        match (self.unreported, self.unproven) {
            _ if self.by_operator && self.state == "complete" => Some(("operator", "complete on the operator's word")),
            (true, true) => Some(("unreported", "complete on a person's word: its agent reported nothing")),
            (true, false) => Some(("unreported", "complete by its checks: its agent reported nothing")),
            (false, true) => Some(("unproven", "complete on its agent's word alone")),
            (false, false) => None,
        }
    }
}

/// Rows that events have changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Touched {
    pub run: bool,
    pub tasks: BTreeSet<TaskId>,
    pub attempts: BTreeSet<AttemptId>,
    pub questions: BTreeSet<QuestionId>,
    /// Tasks that ended: their rows are written even if the state keeps little of them a moment later.
    pub ended: BTreeSet<TaskId>,
}

impl Touched {
    pub fn everything(state: &State) -> Self {
        Self {
            run: state.run.is_some(),
            tasks: state.tasks.keys().cloned().collect(),
            attempts: state.attempts.keys().copied().collect(),
            questions: state.questions.keys().copied().collect(),
            ended: BTreeSet::new(),
        }
    }

    /// Tasks other than the one that a question is about may wait for its answer; which ones they were is no longer known.
    fn preparing_changed(&mut self, state: &State) {
        let open = state.tasks.iter().filter(|(_, task)| state.limits.worktrees && !task.state.is_terminal());
        self.tasks.extend(open.map(|(id, _)| id.clone()));
    }

    /// Adds what one event changed. `state` is the state after the event.
    pub fn add(&mut self, state: &State, event: &Event) {
        match &event.body {
            // A coordinator brings limits, and every task's row shows its own.
            Body::Run(
                RunEvent::RunStarted { .. } | RunEvent::CoordinatorStarted { .. } | RunEvent::PlanReloaded(_),
            )
            | Body::Task(TaskEvent::TaskEdited(_)) => *self = Self::everything(state),
            // A new task may change the levels of all.
            Body::Task(TaskEvent::TaskAdded(added)) if added.is_by_hand() => *self = Self::everything(state),
            // A split task waits for its parts.
            Body::Task(TaskEvent::TaskAdded(added)) => self.tasks.extend(added.parent.clone()),
            Body::Person(PersonEvent::QuestionAsked { id, .. }) => {
                self.questions.insert(*id);
            }
            // The answer may open an account, and the run's row shows which accounts have to wait.
            Body::Person(PersonEvent::QuestionAnswered { id, .. }) => {
                self.questions.insert(*id);
                self.account_changed(state);
                self.preparing_changed(state);
            }
            Body::Machine(MachineEvent::Preflight(seen)) => self.tasks.extend(seen.waiting.iter().cloned()),
            Body::Gate(_) => self.account_changed(state),
            Body::Attempt(AttemptEvent::AttemptEnded { attempt, .. } | AttemptEvent::Dispatched { attempt, .. }) => {
                self.attempt_changed(state, *attempt);
                self.tasks.extend(steering::tasks_with_tells_of(state, *attempt));
            }
            Body::Attempt(AttemptEvent::AttemptExited { attempt, .. }) => self.attempt_changed(state, *attempt),
            // The run's row shows what was spent.
            Body::Session(SessionEvent::AgentMeasured { .. }) => self.run = true,
            // Agents that were asleep with the machine have not used that time.
            Body::Machine(MachineEvent::ClockMoved(_)) => self.tasks.extend(running(state)),
            Body::Session(SessionEvent::AgentTold { attempt, tell: Some(_), .. }) => {
                self.tasks.extend(steering::tasks_with_tells_of(state, *attempt));
            }
            Body::Run(_)
            | Body::Attempt(_)
            | Body::Session(_)
            | Body::Task(_)
            | Body::Review(_)
            | Body::Machine(_)
            | Body::Person(_) => {}
        }
        // What a run as a whole waits for changes with the stages of its tasks.
        let stage = match &event.body {
            Body::Task(fact) => !matches!(fact, TaskEvent::CheckpointSaved { .. } | TaskEvent::BaselineSeen(_)),
            Body::Review(_) => true,
            Body::Run(_) | Body::Attempt(_) | Body::Session(_) | Body::Gate(_) | Body::Machine(_) | Body::Person(_) => {
                false
            }
        };
        if stage || (event.task.is_none() && event.agent.is_none()) {
            self.run = true;
        }
        let task = event.task.as_ref().filter(|task| state.tasks.contains_key(*task));
        if let Some(id) = task {
            self.tasks.insert(id.clone());
            if ends_or_opens(&event.body) {
                self.tasks.extend(dependants(state, id));
                self.ended.insert(id.clone());
            }
        }
        if let (Some(agent), Some(epoch)) = (&event.agent, event.epoch) {
            let newest =
                state.attempts.iter().rev().find(|(_, attempt)| attempt.agent == *agent && attempt.epoch == epoch);
            self.attempts.extend(newest.map(|(id, _)| *id));
        }
    }
}

impl Touched {
    /// An attempt began or ended: the time of all its tasks runs with it, and the run's row shows what was spent.
    fn attempt_changed(&mut self, state: &State, attempt: AttemptId) {
        self.tasks.extend(state.attempts.get(&attempt).into_iter().flat_map(|found| found.tasks.clone()));
        self.run = true;
    }

    /// An account opened or closed: a task that another program worked on last may be assigned to this one again, or no
    /// longer.
    fn account_changed(&mut self, state: &State) {
        self.run = true;
        let last = |id: &TaskId| state.tasks[id].last_attempt().and_then(|attempt| state.attempts.get(&attempt));
        let stood_in = |id: &&TaskId| last(id).is_some_and(|attempt| attempt.cli != turns::agent_program(state, id));
        self.tasks.extend(state.begun().map(|(id, _)| id).filter(stood_in).cloned());
    }
}

/// Tasks whose time is running.
fn running(state: &State) -> impl Iterator<Item = TaskId> {
    let runs = |(_, task): &(&TaskId, &Task)| task.spending.running_since.is_some();
    state.begun().filter(runs).map(|(id, _)| id.clone())
}

/// Whether tasks that depend on the event's task are shown differently after the event.
fn ends_or_opens(body: &Body) -> bool {
    matches!(
        body,
        Body::Task(
            TaskEvent::TaskCompleted { .. }
                | TaskEvent::WorkflowFailed { .. }
                | TaskEvent::TaskSkipped { .. }
                | TaskEvent::TaskReopened { .. }
        )
    )
}

fn dependants<'a>(state: &'a State, id: &'a TaskId) -> impl Iterator<Item = TaskId> + 'a {
    let tasks = state.run.as_ref().map(|run| run.plan.tasks.as_slice()).unwrap_or_default();
    // A split task waits for its parts as other tasks wait for their blockers.
    let whole = state.tasks.get(id).and_then(|task| task.workflow.parent.clone());
    tasks.iter().filter(|task| task.blocked_by.contains(id)).map(|task| task.id.clone()).chain(whole)
}

pub fn run_row(state: &State) -> Option<RunRow> {
    let run = state.run.as_ref()?;
    let name = match run.phase {
        RunPhase::Created => "created",
        RunPhase::Running => "running",
        RunPhase::Pausing(_) => "pausing",
        RunPhase::Paused(_) => "paused",
        RunPhase::Waiting(_) => "waiting",
        RunPhase::Finished(Outcome::Complete) => "complete",
        RunPhase::Finished(Outcome::Failed) => "failed",
    };
    Some(RunRow {
        id: run.id.to_string(),
        plan: run.plan.name.clone(),
        title: run.plan.title.clone(),
        plan_path: run.plan_path.clone(),
        state: name.to_owned(),
        started_at: run.started_at,
        ended_at: run.ended_at,
        resumes: run.resumes,
        attempts: state.limits.attempts,
        plan_changed: run.changed_plan.is_some(),
        pause_reason: match run.phase {
            RunPhase::Pausing(reason) | RunPhase::Paused(reason) | RunPhase::Waiting(reason) => Some(reason),
            RunPhase::Created | RunPhase::Running | RunPhase::Finished(_) => None,
        },
        work_branch: run.work_branch.clone(),
        work_base: run.work_base.clone(),
        landed: run.landed.clone(),
        pull_request: run.pull_request.clone(),
        resumes_at: run.resumes_at,
        waits: state.gates.iter().map(|(account, gate)| WaitRow::of(account, gate)).collect(),
        held: HeldRow::of(state),
        schedule: RunSchedule::of(state),
        placed: steering::placed(state),
        budget: BudgetRow::of(state),
    })
}

pub fn task_row(state: &State, id: &TaskId) -> Option<TaskRow> {
    let task = state.tasks.get(id)?;
    let planned = state.plan_task(id)?;
    let (name, waits_for) = shown_state(state, id);
    Some(TaskRow {
        id: id.clone(),
        title: planned.title.clone(),
        state: name.to_owned(),
        attempts: task.attempts,
        attempt_limit: state.attempt_limit(id),
        // After the end, the agent that did the work; until then, the agent that is working on it.
        agent: state.agent_for(id, if task.state.is_terminal() { Role::Developer } else { state.role_of(id) }),
        wave: planned.wave,
        cause: task.last_cause.as_ref().map(ToString::to_string),
        // The reason an earlier attempt ended says nothing about the running one.
        reason: waits_for.or_else(|| task.reason.clone().filter(|_| task.state != TaskState::InProgress)),
        result: task.result.clone(),
        unproven: task.unproven && task.state == TaskState::Complete,
        unreported: task.workflow.unreported && task.state == TaskState::Complete,
        verifying: task.is_being_proven(),
        epoch: task.epoch,
        blocked_by: planned.blocked_by.clone(),
        started_at: task.started_at,
        ended_at: task.ended_at,
        not_before: task.not_before,
        checkpoint: task.checkpoint.clone(),
        evidence: task.evidence.clone(),
        compactions: task.compactions,
        stage: task.workflow.stage,
        rework: task.workflow.rework.clone(),
        verdicts: task.workflow.verdicts.clone(),
        parent: task.workflow.parent.clone(),
        merged: task.workflow.merged.clone(),
        parts: task.workflow.parts.clone(),
        environments: environments_of(state, planned),
        workspace: state.workspace_of(id),
        schedule: TaskSchedule::of(state, id),
        by_operator: task.workflow.word.is_some() && task.state.is_terminal(),
        removed: task.workflow.removed,
        by_hand: task.workflow.by_hand,
        told: steering::told(state, id),
        attached: steering::attached(state, id),
        spending: task.spending,
    })
}

/// Where a task's checks run: the task's environments, else the plan's.
fn environments_of(state: &State, planned: &PlanTask) -> Vec<String> {
    let of_plan = state.run.as_ref().and_then(|run| run.plan.settings.environments.as_ref());
    if planned.environments.is_empty() { of_plan.cloned().unwrap_or_default() } else { planned.environments.clone() }
}

/// The state that people see: a pending task that waits for others is blocked, and so is one that waits for an answer.
pub fn shown_state(state: &State, id: &TaskId) -> (&'static str, Option<String>) {
    let Some(task) = state.tasks.get(id) else {
        return ("pending", None);
    };
    let question = || state.open_question(id).map(|id| format!("waits for an answer: rekindle answer {id} TEXT"));
    if let Some(held) = steering::held_for_you(state, id).filter(|_| !task.state.is_terminal()) {
        return ("blocked", Some(held));
    }
    match task.state {
        TaskState::Pending => {
            let unmet = state.unmet_blockers(id);
            if unmet.is_empty() || task.holder.is_some() {
                let sent_back = || {
                    task.workflow
                        .rework
                        .as_ref()
                        .map(|rework| format!("sent back: {}", rework.findings.issues.join("; ")))
                };
                return (task.workflow.stage.awaiting().unwrap_or("pending"), sent_back());
            }
            let names: Vec<String> = unmet.iter().map(ToString::to_string).collect();
            ("blocked", Some(format!("blocked by {}", names.join(", "))))
        }
        TaskState::InProgress => match question() {
            Some(question) => ("blocked", Some(question)),
            None => (task.workflow.stage.awaiting().unwrap_or("in_progress"), None),
        },
        TaskState::Blocked => ("blocked", question()),
        TaskState::Complete => ("complete", None),
        TaskState::Failed => ("failed", None),
        TaskState::Skipped => ("skipped", None),
    }
}
