//! What a brief is made of: plain data, all of it from outside.

use serde::{Deserialize, Serialize};

use super::BUDGET_BYTES;
use crate::activity::UnderWay;
use crate::cause::Cause;
use crate::ids::{AgentName, Epoch, TaskId};
use crate::memory::Calls;
use crate::report::{CheckResult, Checkpoint};
use crate::review::{FocusArea, GivenVerdict, Rework};
use crate::role::Role;
use crate::time::Time;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub agent: AgentName,
    pub role: Role,
    pub epoch: Epoch,
    /// The number of this attempt at the current task, from 1.
    pub attempt: u32,
    /// The total number of attempts.
    pub attempt_limit: u32,
    pub workspace: String,
    pub plan_path: String,
    pub build_status_path: String,
    pub plan_title: String,
    /// The plan's goal, which every agent receives.
    pub goal: String,
    pub dispatch_rules: Option<String>,
    /// The attempt's tasks in order, and those its agent has completed before.
    pub tasks: Vec<TaskFacts>,
    /// Tasks of the plan that others have completed.
    pub completed_elsewhere: Vec<NamedTask>,
    /// Why the previous attempt ended; `None` if there was none.
    pub cause: Option<Cause>,
    /// The previous agent's last report of its progress.
    pub checkpoint: Option<Checkpoint>,
    /// The parts that the current task was broken into, in order.
    #[serde(default)]
    pub split: Vec<String>,
    pub disk: Disk,
    /// Decisions noted during the run, newest last.
    pub decisions: Vec<Decision>,
    /// What the person told the agents of these tasks, oldest first.
    #[serde(default)]
    pub tells: Vec<PersonTold>,
    /// Questions that a person has answered.
    pub answers: Vec<Answered>,
    /// Questions that nobody has answered yet.
    #[serde(default)]
    pub open_questions: Vec<Asked>,
    #[serde(default)]
    pub results: Vec<TaskResult>,
    /// What earlier agents repeated at this task without getting anywhere, oldest first.
    #[serde(default)]
    pub dead_ends: Vec<String>,
    /// The calls of this attempt and of earlier ones on the same task.
    #[serde(default)]
    pub calls: Calls,
    /// When the first attempt at the current task began.
    #[serde(default)]
    pub began_at: Option<Time>,
    /// The resumed session was compacted before: it has forgotten what it was told.
    #[serde(default)]
    pub forgot: bool,
    /// What was already done and must not be done again.
    pub do_not_redo: Vec<String>,
    /// What the previous agent did last, oldest first.
    pub activity: Vec<Activity>,
    /// Ask for smaller steps although it is not the third attempt.
    pub advise_split: bool,
    /// The call that the agent's own session was in the middle of when it ended; the session itself may have forgotten it.
    #[serde(default)]
    pub cut_off: Option<String>,
    /// The calls of the previous session that the agent does not know of, or knows without an outcome.
    #[serde(default)]
    pub under_way: UnderWay,
    /// The agent's own session continues, so it remembers; if not, it starts afresh.
    #[serde(default)]
    pub resumed: bool,
    /// Only a report is asked for: the agent ended its turn without one.
    #[serde(default)]
    pub asks_for_report: bool,
    /// The agent's session continues with its next task.
    #[serde(default)]
    pub next_task: bool,
    /// What reviewers said, and what they have to know.
    #[serde(default)]
    pub review: ReviewFacts,
    /// The text of the user's own prompt for the role, if there is one.
    #[serde(default)]
    pub template: Option<String>,
    /// The whole plan, if the agent gets it again.
    #[serde(default)]
    pub whole_plan: Option<Vec<PlanLine>>,
    /// 32 random letters or digits, new for every brief; the fence is made of them. Anything else is hashed into that form.
    pub nonce: String,
    pub channels: ReportChannels,
    /// The longest the brief may be.
    pub budget_bytes: usize,
}

impl Facts {
    /// The facts of a first prompt without tasks; the caller fills in everything else.
    pub fn new(agent: AgentName) -> Self {
        Self {
            agent,
            role: Role::default(),
            epoch: Epoch(1),
            attempt: 1,
            attempt_limit: 3,
            workspace: String::new(),
            plan_path: String::new(),
            build_status_path: String::new(),
            plan_title: String::new(),
            goal: String::new(),
            dispatch_rules: None,
            tasks: Vec::new(),
            completed_elsewhere: Vec::new(),
            cause: None,
            checkpoint: None,
            split: Vec::new(),
            disk: Disk::default(),
            decisions: Vec::new(),
            tells: Vec::new(),
            answers: Vec::new(),
            open_questions: Vec::new(),
            results: Vec::new(),
            dead_ends: Vec::new(),
            calls: Calls::default(),
            began_at: None,
            forgot: false,
            do_not_redo: Vec::new(),
            activity: Vec::new(),
            advise_split: false,
            cut_off: None,
            under_way: UnderWay::default(),
            resumed: false,
            asks_for_report: false,
            next_task: false,
            review: ReviewFacts::default(),
            template: None,
            whole_plan: None,
            nonce: String::new(),
            channels: ReportChannels::default(),
            budget_bytes: BUDGET_BYTES,
        }
    }

    /// The task to begin or continue.
    pub fn current(&self) -> Option<&TaskFacts> {
        self.tasks.iter().find(|task| task.standing == Standing::Current)
    }

    /// Whether no agent has worked on the current task before.
    pub fn is_first(&self) -> bool {
        self.cause.is_none() && self.attempt <= 1 && self.review.rework.is_none() && !self.role.reviews()
    }

    /// Whether smaller steps are asked for: always from the second retry on.
    pub fn asks_for_split(&self) -> bool {
        !self.role.reviews() && (self.advise_split || self.attempt >= 3)
    }
}

/// A person's message, or what they changed while they held the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonTold {
    /// The message's number within the run.
    pub number: u64,
    pub task: TaskId,
    pub text: String,
    /// The person held the task and has given it back; the text says what changed.
    pub given_back: bool,
    /// The resumed session already contains it.
    pub known: bool,
}

/// What belongs to review in a brief.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReviewFacts {
    /// Why the current task was sent back.
    pub rework: Option<Rework>,
    /// The outcome of the current task in its developer's words.
    pub result: Option<String>,
    /// Earlier verdicts on it, newest last.
    pub verdicts: Vec<GivenVerdict>,
    pub focus: Vec<FocusArea>,
    /// The environments in which its checks run.
    pub environments: Vec<String>,
}

/// A task of the whole plan, with its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanLine {
    pub id: TaskId,
    pub title: String,
    pub state: String,
    pub blocked_by: Vec<TaskId>,
    pub accept: Vec<String>,
    pub artifacts: Vec<String>,
    /// A contradiction between its state and the plan.
    pub doubt: Option<String>,
}

/// A task's state in a brief.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Done; not to be touched.
    Completed,
    /// To begin or continue.
    Current,
    /// Next in the list.
    Pending,
}

/// A task, as a brief shows it. The words are the plan's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFacts {
    pub id: TaskId,
    pub title: String,
    pub standing: Standing,
    pub body: String,
    /// Commands that must exit 0.
    pub accept: Vec<String>,
    pub artifacts: Vec<String>,
    pub reading: Vec<String>,
    /// Tasks that had to be complete before it.
    pub blocked_by: Vec<TaskId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedTask {
    pub id: TaskId,
    pub title: String,
}

/// What is on disk, seen by rekindle itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Commits since the work on the task began, one line each.
    pub commits: Vec<String>,
    /// `git diff --stat` since then.
    pub diff_stat: String,
    pub artifacts_present: Vec<String>,
    pub artifacts_missing: Vec<String>,
    pub checks: Vec<CheckSeen>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSeen {
    pub task: TaskId,
    pub result: CheckResult,
    /// Whether it was run just now, with no agent running; if not, on the last claim.
    pub just_now: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The agent that noted it; `None` means the operator.
    pub by: Option<AgentName>,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The task it was asked for.
    pub task: TaskId,
    /// The question, in the asking agent's words.
    pub question: String,
    /// The answer, in the operator's.
    pub answer: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub task: TaskId,
    /// The question, in the asking agent's words.
    pub question: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskResult {
    pub id: TaskId,
    /// Its outcome, in the words of the agent that did it.
    pub result: String,
    /// Whether the current task had to wait for it.
    pub needed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    #[default]
    Out,
    Err,
}

/// What a line is; calls and errors are kept longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// Anything else.
    #[default]
    Plain,
    Tool,
    Error,
}

/// One line of the previous agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    pub text: String,
    pub stream: Stream,
    pub kind: LineKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportChannels {
    /// The program to call for the command line; `None` where it cannot be called.
    pub program: Option<String>,
    /// Whether signal lines in its output are read.
    pub signals: bool,
    /// Whether it has rekindle's MCP server.
    pub mcp: bool,
}

impl Default for ReportChannels {
    fn default() -> Self {
        Self { program: Some("rekindle".to_owned()), signals: true, mcp: false }
    }
}
