//! Everything that is known about a run. It changes only in `apply`, by events; nothing in here is a cache of the outside
//! world.

mod cli_session;
mod index;
mod last_attempts;
mod preparing;
mod steering;
mod task;
mod workspace;

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::budget::Ledger;
use crate::cause::Cause;
use crate::event::{ClockSeen, Follow, Landed, Outcome, PauseReason, UsageLeft};
use crate::ids::{AgentName, AttemptId, Epoch, QuestionId, RunId, TaskId};
use crate::limits::Limits;
use crate::plan::{FrontMatter, Plan, PlanTask};
use crate::pull_request::KnownPullRequest;
use crate::report::{CheckResult, Exit, cut_outputs};
use crate::review::{KeptDisagreement, Stage};
use crate::role::Role;
use crate::time::Time;

pub use cli_session::{Astray, CliSession, Gate, TOLD_KEPT, ToldMessage};
pub use index::Index;
pub use last_attempts::LastAttempts;
pub use preparing::{Asked, Preflight, Preparing, RETRY, STOP, SetupWait, WITHOUT};
pub use steering::Steering;
pub use task::{Claim, Task, TaskState, Word, Workflow};

/// Decisions kept for briefs; older ones stay in the log.
pub const NOTES_KEPT: usize = 200;

/// The whole state of the current run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub last_time: Time,
    /// The run, once there is one.
    pub run: Option<Run>,
    pub limits: Limits,
    pub tasks: BTreeMap<TaskId, Task>,
    /// Attempts of the run, ended ones included while one of their tasks is known in full.
    pub attempts: BTreeMap<AttemptId, Attempt>,
    /// The highest epoch each agent's name has had.
    pub agents: BTreeMap<AgentName, Epoch>,
    pub questions: BTreeMap<QuestionId, Question>,
    /// Decisions noted, newest last.
    pub notes: Vec<Note>,
    /// Failed starts by `[agents.NAME]`.
    pub breakers: BTreeMap<String, Breaker>,
    #[serde(default)]
    pub gates: BTreeMap<String, Gate>,
    /// The highest attempt number ever given; bundles are named after it, over all runs.
    pub last_attempt: u64,
    /// The highest question number ever given.
    pub last_question: u64,
    /// Why nothing new is started, while the machine is short of something.
    #[serde(default)]
    pub held: Option<String>,
    /// What else is known about that hold.
    #[serde(default)]
    pub hold: Hold,
    pub coordinator: Option<Coordinator>,
    /// Where critics and auditors did not agree, over all runs, newest last.
    #[serde(default)]
    pub disagreements: Vec<KeptDisagreement>,
    /// What the user's own command said about the allowance.
    #[serde(default)]
    pub usage: Usage,
    /// What the plan's health commands said.
    #[serde(default)]
    pub health: Health,
    /// What the machine's clocks said when they were last read.
    #[serde(default)]
    pub clocks: ClockSeen,
    /// The tasks that ended last, oldest first: these are known in full. For older ones only what decisions need is kept.
    #[serde(default)]
    pub ended: VecDeque<TaskId>,
    /// What was dropped with older ones.
    #[serde(default)]
    pub past: Past,
    /// What is still to follow from changes of the plan, by task.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub follows: BTreeMap<TaskId, Follow>,
    /// What the person said to agents, which tasks they hold, and which orders they may still cancel.
    #[serde(default, skip_serializing_if = "Steering::is_empty")]
    pub steering: Steering,
    /// What the run and the day have spent.
    #[serde(default, skip_serializing_if = "Ledger::is_none")]
    pub budget: Ledger,
    #[serde(default, skip_serializing_if = "Preparing::is_empty")]
    pub preparing: Preparing,
    /// The layout of this state: a stored state with another layout is not used, the log gives the same.
    #[serde(default = "Layout::first")]
    pub layout: Layout,
    /// Which tasks have started; derived from the tasks.
    #[serde(skip)]
    pub index: Index,
}

/// How much was dropped of a run whose tasks ended long ago: their rows and the log have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Past {
    pub attempts: u64,
    pub questions: u64,
    /// Compactions of those attempts.
    pub compactions: u32,
}

/// The layout of a stored state. It changes when the same events add up to something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Layout(u32);

impl Layout {
    /// The current layout: for tasks that ended long ago only what decisions need is kept, a person's word is recorded as
    /// one, a task knows how many attempts have started it, and spending is summed up.
    pub const TODAY: Self = Self(5);

    fn first() -> Self {
        Self(1)
    }
}

impl Default for Layout {
    fn default() -> Self {
        Self::TODAY
    }
}

/// A hold on new starts, and what remains of one: a machine that refused something is trusted again when something has
/// worked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hold {
    /// Since when nothing new is started.
    pub since: Option<Time>,
    /// What to type, or where to look.
    pub hint: String,
    /// When the machine is retried, if only a retry can tell; `None` means that a check of the machine ends the hold.
    pub until: Option<Time>,
    /// Refusals in a row; several at one moment count as one.
    pub strikes: u32,
    /// When a person was last alerted.
    pub alerted_at: Option<Time>,
    /// The attempt whose supervisor ended that series, and how long the series was: its program may still be refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<(AttemptId, u32)>,
}

/// What the user's own command said about the allowance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// It was asked and has not answered.
    pub asking: bool,
    pub seen_at: Option<Time>,
    pub left: Option<UsageLeft>,
    /// The reset that the run last waited for, and the number of the probe after it.
    #[serde(default)]
    pub tried: Option<(Time, u32)>,
}

/// What the plan's health commands said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// They are being run.
    pub checking: bool,
    /// What they said at the start, or after a repair; `None` until they have run.
    pub baseline: Option<Vec<CheckResult>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    pub plan: Plan,
    pub plan_path: String,
    /// The git branch it was started on.
    pub branch: Option<String>,
    pub phase: RunPhase,
    pub started_at: Time,
    pub ended_at: Option<Time>,
    /// How often it continued after a pause.
    pub resumes: u32,
    /// Hash of the plan's file when it was last seen to differ from the pinned plan.
    pub changed_plan: Option<String>,
    /// The highest wave that was started, to notice when one is over.
    pub wave: u32,
    /// Whether the disk has been inspected since that wave ended.
    pub inspection: Inspection,
    /// The branch that accepted work goes to, if worktrees are used.
    #[serde(default)]
    pub work_branch: Option<String>,
    /// The newest commit on it that is known.
    #[serde(default)]
    pub work_commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_base: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<Landed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<KnownPullRequest>,
    /// When its current or last pause started.
    #[serde(default)]
    pub paused_at: Option<Time>,
    /// When it resumes on its own.
    #[serde(default)]
    pub resumes_at: Option<Time>,
    /// The settings of a plan that was taken over; the next coordinator begins with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_settings: Option<FrontMatter>,
}

impl Run {
    /// The settings that the next coordinator begins with.
    pub fn settings(&self) -> &FrontMatter {
        self.next_settings.as_ref().unwrap_or(&self.plan.settings)
    }
}

/// The inspection of the disk between two waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inspection {
    None,
    Asked,
    /// Done, and nothing has been reopened since.
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// Requested; no coordinator has taken it yet.
    Created,
    Running,
    /// A pause was ordered; agents are being stopped.
    Pausing(PauseReason),
    /// Paused; nothing runs.
    Paused(PauseReason),
    /// Paused; it resumes on its own when what it waits for has come.
    Waiting(PauseReason),
    Finished(Outcome),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coordinator {
    pub pid: u32,
    pub since: Time,
    pub boot_id: String,
    /// Time since that boot when it started.
    pub boottime_ms: u64,
}

/// One process of one agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    pub agent: AgentName,
    pub role: Role,
    /// Which `[agents.NAME]` runs it.
    pub cli: String,
    pub epoch: Epoch,
    pub tasks: Vec<TaskId>,
    /// Whether earlier work is continued.
    pub resumed: bool,
    pub phase: AttemptPhase,
    /// The agent's process, once recorded.
    pub pid: Option<u32>,
    /// Its shim's process, once recorded.
    pub shim_pid: Option<u32>,
    pub dispatched_at: Time,
    pub ended_at: Option<Time>,
    pub stop: Option<Stop>,
    pub exit: Option<Exit>,
    pub cause: Option<Cause>,
    /// A coordinator found that nothing is left of it; reported and counted once.
    #[serde(default)]
    pub orphaned: bool,
    /// Since when it has no open task left.
    pub idle_since: Option<Time>,
    /// Reports refused, to bound what a confused agent writes into the log.
    pub refused: u32,
    /// The number of this attempt at each task that it has started, counted for people from 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub numbers: BTreeMap<TaskId, u32>,
    #[serde(default)]
    #[serde(rename = "native")]
    pub cli_session: CliSession,
}

impl Attempt {
    /// Whether a process of it runs or may run.
    pub fn is_live(&self) -> bool {
        matches!(self.phase, AttemptPhase::Starting | AttemptPhase::Running)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptPhase {
    /// Decided on; the process is not recorded yet.
    Starting,
    Running,
    /// Its process has ended; one of its claims is still being proven.
    Exited,
    Ended,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// The cause that its end will have.
    pub cause: Cause,
    pub at_once: bool,
    pub ordered_at: Time,
    /// When it was last ordered; an order that was not taken is repeated.
    pub repeated_at: Time,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    pub task: TaskId,
    pub agent: AgentName,
    pub attempt: AttemptId,
    pub text: String,
    pub options: Vec<String>,
    /// What a person needs to know.
    pub context: String,
    /// The answer `done` takes the work as it is.
    #[serde(default)]
    pub takes_work: bool,
    /// It asks about a budget: no agent is told about it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_budget: bool,
    pub answer: Option<String>,
    /// The channel of the answer, if it came from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<crate::phone::Via>,
    pub asked_at: Time,
}

impl Question {
    /// What an answer means: the option's text if the answer is its number, else the answer as it is. If an option itself is
    /// that number, that option is meant.
    pub fn meant(&self, answer: &str) -> String {
        meant(&self.options, answer)
    }
}

/// The same for a question's options alone.
pub fn meant(options: &[String], answer: &str) -> String {
    let typed = answer.trim();
    let numbered = typed.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
    match numbered {
        Some(option) if !options.iter().any(|option| option == typed) => option.clone(),
        _ => answer.to_owned(),
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    pub time: Time,
    /// The agent that noted it; `None` means the operator.
    pub agent: Option<AgentName>,
    pub text: String,
}

/// Failed starts of one agent's program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Breaker {
    /// In a row.
    pub failed_starts: u32,
    /// Not started until then.
    pub until: Option<Time>,
}

impl State {
    /// Cuts outputs of checks down to what `apply` keeps of them.
    pub fn cut_outputs(&mut self) {
        for evidence in self.tasks.values_mut().filter_map(|task| task.evidence.as_mut()) {
            cut_outputs(evidence.all_mut());
        }
        if let Some(results) = &mut self.health.baseline {
            cut_outputs(results);
        }
    }

    /// The plan's text for a task.
    pub fn plan_task(&self, id: &TaskId) -> Option<&PlanTask> {
        let task = self.tasks.get(id)?;
        self.run.as_ref()?.plan.tasks.get(task.index)
    }

    /// Attempts whose process runs or may run.
    pub fn live_attempts(&self) -> impl Iterator<Item = (AttemptId, &Attempt)> {
        self.attempts.iter().filter(|(_, attempt)| attempt.is_live()).map(|(id, attempt)| (*id, attempt))
    }

    /// Whether one of these processes is the shim of a living agent: a process that descends from it is that agent.
    pub fn holds_any_of(&self, processes: &[u32]) -> bool {
        self.live_attempts().any(|(_, attempt)| attempt.shim_pid.is_some_and(|shim| processes.contains(&shim)))
    }

    /// Tasks that an attempt holds and that have not ended, in its order.
    pub fn open_tasks(&self, id: AttemptId) -> Vec<TaskId> {
        let Some(attempt) = self.attempts.get(&id) else {
            return Vec::new();
        };
        attempt
            .tasks
            .iter()
            .filter(|task| {
                self.tasks.get(*task).is_some_and(|task| task.holder == Some(id) && !task.state.is_terminal())
            })
            .cloned()
            .collect()
    }

    /// The unanswered question that a task waits for, if there is one.
    pub fn open_question(&self, task: &TaskId) -> Option<QuestionId> {
        self.questions
            .iter()
            .find(|(_, question)| question.task == *task && question.answer.is_none())
            .map(|(id, _)| *id)
    }

    /// Whether an attempt waits for a person's answer.
    pub fn waits_for_person(&self, id: AttemptId) -> bool {
        self.open_tasks(id).iter().any(|task| self.open_question(task).is_some())
    }

    /// Blockers of a task that have neither completed nor been skipped.
    pub fn unmet_blockers(&self, id: &TaskId) -> Vec<TaskId> {
        let Some(plan_task) = self.plan_task(id) else {
            return Vec::new();
        };
        let parts = self.tasks.get(id).map(|task| task.workflow.parts.as_slice()).unwrap_or_default();
        plan_task
            .blocked_by
            .iter()
            .chain(parts)
            .filter(|blocker| !self.tasks.get(*blocker).is_some_and(|task| task.state.unblocks()))
            .cloned()
            .collect()
    }

    /// Whether every blocker of a task has completed or was skipped.
    pub fn blockers_met(&self, id: &TaskId) -> bool {
        let Some(plan_task) = self.plan_task(id) else { return true };
        let parts = self.tasks.get(id).map(|task| task.workflow.parts.as_slice()).unwrap_or_default();
        let mut all = plan_task.blocked_by.iter().chain(parts);
        all.all(|blocker| self.tasks.get(blocker).is_some_and(|task| task.state.unblocks()))
    }

    /// The task of the plan that a part belongs to; any other task is its own.
    pub fn root_of(&self, id: &TaskId) -> TaskId {
        let mut root = id;
        while let Some(parent) = self.tasks.get(root).and_then(|task| task.workflow.parent.as_ref()) {
            root = parent;
        }
        root.clone()
    }

    /// The role that works on a task at its current stage.
    pub fn role_of(&self, id: &TaskId) -> Role {
        let Some(task) = self.tasks.get(id) else { return Role::Developer };
        match (task.workflow.stage, task.workflow.health) {
            (Stage::Implement, true) => Role::Remediation,
            (Stage::Implement, false) => {
                self.plan_task(id).and_then(|planned| planned.role.as_deref()).and_then(Role::of).unwrap_or_default()
            }
            (Stage::Review, _) => Role::Critic,
            (Stage::Audit, true) => Role::HealthAuditor,
            (Stage::Audit, false) => Role::Auditor,
        }
    }

    /// Whether the plan asks for a reviewer of a role.
    pub fn reviews(&self, role: Role) -> bool {
        let review = self.run.as_ref().and_then(|run| run.plan.settings.review.as_ref());
        review.is_some_and(|roles| roles.iter().any(|name| name == role.name()))
    }

    pub fn attempt_limit(&self, id: &TaskId) -> u32 {
        self.plan_task(id).and_then(|task| task.attempts).unwrap_or(self.limits.attempts)
    }

    /// The name of the agent that has a role on a task; the task's own id where that name would be too long.
    pub fn agent_for(&self, id: &TaskId, role: Role) -> Option<AgentName> {
        let plan_task = self.plan_task(id)?;
        let made = || AgentName::new(format!("{role}-{id}")).or_else(|_| AgentName::new(id.as_str())).ok();
        let named = plan_task.agent.clone().filter(|_| !role.reviews());
        named.or_else(made)
    }
}
