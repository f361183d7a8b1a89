//! The protocol of the control socket. Versioned: an agent may have been started by an older rekindle than the one it talks
//! to.

use rekindle_core::ids::{Epoch, QuestionId, TaskId};
use rekindle_core::input::Order;
use rekindle_core::report::{Evidence, Report};
use rekindle_core::role::Role;
use serde::{Deserialize, Serialize};

/// Version of this protocol.
pub const VERSION: u32 = 1;

/// Longest request or answer in bytes: a report with a long result fits, a flood does not.
pub const LINE_LIMIT: usize = 4 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    pub version: u32,
    /// The agent's token; `None` means the operator.
    #[serde(default)]
    pub token: Option<String>,
    pub call: Request,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case", expecting = "not a call that this version knows, or a part of one")]
pub enum Request {
    /// An agent reports. `done` is answered when the checks have ended.
    Report {
        report: Report,
        /// Whether it was made with a tool of the MCP server.
        #[serde(default)]
        mcp: bool,
    },
    /// An agent gives a sign of life.
    Heartbeat,
    /// An agent asks for its tasks.
    MyTasks,
    /// An agent needs its notice again because its context was compacted.
    Context,
    /// Asks for the answer to a question, and waits for it if there is none yet.
    WaitForAnswer {
        question: QuestionId,
    },
    Ping,
    /// An operator gives an order. It is part of the request as it is, without a level of its own.
    #[serde(untagged)]
    Order(Order),
}

impl Request {
    /// A report made on the command line.
    pub fn report(report: Report) -> Self {
        Self::Report { report, mcp: false }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Response {
    /// Accepted and durable.
    Accepted,
    /// Nothing changed: it was already done.
    Already,
    /// The claim is proven and the task is complete.
    Complete {
        task: TaskId,
    },
    /// The claim is proven and a reviewer inspects the work next.
    HandedOn {
        task: TaskId,
        to: Role,
    },
    /// The claim is recorded. The machine has no room to prove it; it is proven as soon as there is.
    Held {
        task: TaskId,
        reason: String,
        /// What to type, or where to look.
        hint: String,
    },
    NotProven {
        task: TaskId,
        evidence: Evidence,
    },
    Asked {
        question: QuestionId,
    },
    /// The order is carried out after a moment, unless it is undone.
    Placed {
        /// The number by which it is undone.
        number: u64,
    },
    Answered {
        question: QuestionId,
        text: String,
    },
    Tasks {
        tasks: Vec<TaskLine>,
    },
    /// The notice for the agent.
    Context {
        text: String,
    },
    Refused {
        reason: String,
    },
    Pong {
        pid: u32,
    },
}

/// A task, as its agent sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskLine {
    pub id: TaskId,
    pub title: String,
    pub state: String,
    /// The epoch it is held in.
    pub epoch: Epoch,
    pub accept: Vec<String>,
    pub artifacts: Vec<String>,
}

#[cfg(test)]
mod tests {
    use rekindle_core::event::PauseReason;
    use rekindle_core::input::{NewTask, TaskEdit};

    use super::*;

    #[test]
    fn an_order_is_a_call_like_any_other_on_the_socket() {
        let task = || TaskId::new("T1").expect("an id");
        let orders = [
            (Order::Pause(PauseReason::Operator), r#"{"call":"pause","stop":false}"#),
            (Order::Pause(PauseReason::Stop), r#"{"call":"pause","stop":true}"#),
            (Order::Recover { agent: "a".to_owned() }, r#"{"call":"recover","agent":"a"}"#),
            (Order::Skip { task: task(), reason: "r".to_owned() }, r#"{"call":"skip","task":"T1","reason":"r"}"#),
            (Order::Stop { task: task() }, r#"{"call":"stop_task","task":"T1"}"#),
            (Order::Retry { task: task() }, r#"{"call":"retry","task":"T1"}"#),
            (Order::Complete { task: task(), result: None }, r#"{"call":"complete","task":"T1","result":null}"#),
            (Order::Answer { id: QuestionId(7), text: "t".to_owned() }, r#"{"call":"answer","id":7,"text":"t"}"#),
            (Order::Note { text: "t".to_owned() }, r#"{"call":"note","text":"t"}"#),
            (
                Order::Split { task: task(), subtasks: vec!["a".to_owned()] },
                r#"{"call":"split","task":"T1","subtasks":["a"]}"#,
            ),
            (Order::ForgetFocus, r#"{"call":"forget_focus"}"#),
            (Order::Fail { task: task(), reason: "r".to_owned() }, r#"{"call":"fail_task","task":"T1","reason":"r"}"#),
            (
                Order::Add(Box::new(NewTask {
                    id: task(),
                    title: "t".to_owned(),
                    text: String::new(),
                    after: Vec::new(),
                    accept: vec!["true".to_owned()],
                    artifacts: Vec::new(),
                    agent: None,
                    timeout_ms: None,
                })),
                r#"{"call":"add_task","id":"T1","title":"t","text":"","after":[],"accept":["true"],"artifacts":[],"agent":null,"timeout_ms":null}"#,
            ),
            (
                Order::Edit { task: task(), edit: Box::new(TaskEdit { timeout_ms: Some(5), ..TaskEdit::default() }) },
                r#"{"call":"edit_task","task":"T1","edit":{"timeout_ms":5}}"#,
            ),
        ];
        for (order, text) in orders {
            let call = Request::Order(order);
            assert_eq!(serde_json::to_string(&call).expect("text"), text);
            assert_eq!(serde_json::from_str::<Request>(text).expect("a call"), call, "{text}");
        }
        assert_eq!(serde_json::from_str::<Request>(r#"{"call":"ping"}"#).expect("a call"), Request::Ping);
        serde_json::from_str::<Request>(r#"{"call":"sing"}"#).expect_err("no such call");
    }
}
