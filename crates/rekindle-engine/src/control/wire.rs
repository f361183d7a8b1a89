//! The words spoken through the control socket. Versioned: an agent may have been started by an older rekindle than it speaks to.

use rekindle_core::ids::{Epoch, QuestionId, TaskId};
use rekindle_core::report::{Evidence, Report};
use rekindle_core::role::Role;
use serde::{Deserialize, Serialize};

/// Version of these words.
pub const VERSION: u32 = 1;

/// Longest request or answer in bytes: a report with a long result fits, a flood does not.
pub const LINE_LIMIT: usize = 4 * 1024 * 1024;

/// One request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Version of the words.
    pub version: u32,
    /// The agent's token; none means the operator.
    #[serde(default)]
    pub token: Option<String>,
    /// What is asked.
    pub call: Call,
}

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum Call {
    /// An agent reports. `done` is answered when the checks are through.
    Report {
        /// The report.
        report: Report,
        /// Whether it was made with a tool of the MCP server.
        #[serde(default)]
        mcp: bool,
    },
    /// An agent gives a sign of life.
    Heartbeat,
    /// An agent asks for its tasks.
    MyTasks,
    /// An agent has to be told again what it is doing: its context was compacted.
    Context,
    /// The answer to a question, waited for if it is missing.
    WaitForAnswer {
        /// The question.
        question: QuestionId,
    },
    /// An operator pauses (`stop`: at once).
    Pause {
        /// Without grace.
        stop: bool,
    },
    /// An operator replaces an agent.
    Recover {
        /// Its name.
        agent: String,
    },
    /// An operator leaves a task out.
    Skip {
        /// The task.
        task: TaskId,
        /// Why.
        reason: String,
    },
    /// An operator stops whoever is at a task and gives it up, until it is opened again.
    StopTask {
        /// The task.
        task: TaskId,
    },
    /// An operator opens a task again.
    Retry {
        /// The task.
        task: TaskId,
    },
    /// An operator completes a task on their own word.
    Complete {
        /// The task.
        task: TaskId,
        /// The outcome.
        result: Option<String>,
    },
    /// An operator answers a question.
    Answer {
        /// The question.
        id: QuestionId,
        /// The answer.
        text: String,
    },
    /// An operator breaks a task into smaller ones.
    Split {
        /// The task.
        task: TaskId,
        /// The parts, in order.
        subtasks: Vec<String>,
    },
    /// An operator has forgotten what was learned from disagreements between reviewers.
    ForgetFocus,
    /// An operator notes a decision.
    Note {
        /// The decision.
        text: String,
    },
    /// Is somebody there?
    Ping,
}

impl Call {
    /// A report made on the command line.
    #[must_use]
    pub fn report(report: Report) -> Self {
        Self::Report { report, mcp: false }
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// Taken, durable.
    Accepted,
    /// Nothing changed: it was already done.
    Already,
    /// The claim is proven and the task is complete.
    Complete {
        /// The task.
        task: TaskId,
    },
    /// The claim is proven and a reviewer looks at the work next.
    HandedOn {
        /// The task.
        task: TaskId,
        /// Who.
        to: Role,
    },
    /// The claim is not proven.
    NotProven {
        /// The task.
        task: TaskId,
        /// What was seen.
        evidence: Evidence,
    },
    /// The question was put down.
    Asked {
        /// Its number.
        question: QuestionId,
    },
    /// The answer of a person.
    Answered {
        /// The question.
        question: QuestionId,
        /// The answer.
        text: String,
    },
    /// The agent's tasks.
    Tasks {
        /// In order.
        tasks: Vec<TaskLine>,
    },
    /// What the agent has to be told.
    Context {
        /// In words.
        text: String,
    },
    /// Not taken.
    Refused {
        /// Why, and what to do.
        reason: String,
    },
    /// Answer to `Ping`.
    Pong {
        /// The coordinator's process.
        pid: u32,
    },
}

/// A task, as its agent sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskLine {
    /// Its id.
    pub id: TaskId,
    /// Its title.
    pub title: String,
    /// How it stands.
    pub state: String,
    /// The epoch it is held in.
    pub epoch: Epoch,
    /// What proves it.
    pub accept: Vec<String>,
    /// What must exist.
    pub artifacts: Vec<String>,
}
