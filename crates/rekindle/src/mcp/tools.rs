//! The tools as a client lists them: names, what models are told of them, the schemas of what goes in and comes out.
//!
//! The schemas are written out in the few words that every provider of models accepts: no references, no unions.

use rekindle_core::role::Role;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// Tools that only those have who do work themselves.
const FOR_WORK: [&str; 2] = ["task_done", "task_split"];

/// The tools of a role, by name: a list that never changes keeps the prompt caches of models warm. Who judges work does none,
/// and a verdict is offered only to the role that may give it.
pub fn of(role: Role) -> Vec<Tool> {
    let mut tools = for_everybody();
    if role.reviews() {
        tools.retain(|tool| !FOR_WORK.contains(&tool.name.as_ref()));
        tools.push(verdict(role));
    }
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools
}

/// The tool that a reviewer ends its work with.
fn verdict(role: Role) -> Tool {
    let (name, words, verdicts) = match role {
        Role::Critic => (
            "review",
            "Gives your verdict on the work of a task: pass when it is good, fail when it has to go back to its developer. This \
             ends your work.",
            vec!["pass", "fail"],
        ),
        _ => (
            "audit",
            "Gives your verdict on the work of a task: pass when every criterion is proven, fail when something is not as it \
             should be, blocked when a person has to see to something before it can be judged. This ends your work.",
            vec!["pass", "fail", "blocked"],
        ),
    };
    let decided = json!({ "type": "string", "enum": verdicts, "description": "Your verdict" });
    let properties = vec![
        ("task", text("The id of the task, as in your prompt")),
        ("verdict", decided),
        ("issues", texts("What is wrong, one point each; empty when it passes")),
        ("required", texts("What the developer must do about it, one point each")),
        ("passed", texts("What is good as it is and must not be broken")),
    ];
    tool(name, words, properties, &["task", "verdict", "issues"], false)
}

fn for_everybody() -> Vec<Tool> {
    let task = ("task", text("The id of one of your tasks, as in your prompt"));
    vec![
        tool("task_list", "Lists your tasks in order with their state and checks.", vec![], &[], true),
        tool("task_start", "Says that you begin with a task.", vec![task.clone()], &["task"], false),
        tool(
            "task_done",
            "Says that a task is finished. Runs the task's checks, waits for them and answers with their result: complete, handed \
             to a reviewer, or the failing check's output, which you then repair before you call it again.",
            vec![task.clone(), ("result", text("What you did, in one or two sentences"))],
            &["task", "result"],
            false,
        ),
        tool(
            "task_fail",
            "Gives a task up that cannot be done. Use it only when trying again would not help.",
            vec![task.clone(), ("reason", text("Why it cannot be done"))],
            &["task", "reason"],
            false,
        ),
        tool(
            "task_split",
            "Breaks a task that is too large for one go into subtasks. They become tasks of yours, named like T1.1, T1.2: work \
             through them in order and report each of them with task_done. The whole is proven when they are through.",
            vec![task.clone(), ("subtasks", texts("The subtasks, in the order to work in"))],
            &["task", "subtasks"],
            false,
        ),
        tool(
            "checkpoint",
            "Saves where you stand. Call it after every larger step: whoever goes on after a crash or a full context starts from \
             your last checkpoint.",
            vec![
                task.clone(),
                ("status", text("One line on where you stand")),
                ("completed", texts("What is done; it is not done again")),
                ("remaining", texts("What is left, next step first")),
                ("files", texts("Files you changed")),
                ("progress", json!({ "type": "integer", "description": "Progress in percent, 0 to 100" })),
            ],
            &["task", "status"],
            false,
        ),
        tool(
            "ask",
            "Asks a person when only a person can decide. It does not wait: end your turn afterwards, the answer comes with your \
             next prompt.",
            vec![
                task,
                ("question", text("The question")),
                ("options", texts("Answers to choose from")),
                ("context", text("What a person needs to know to answer")),
            ],
            &["task", "question"],
            false,
        ),
        tool(
            "note",
            "Notes a decision that agents after you should know of.",
            vec![("decision", text("The decision"))],
            &["decision"],
            false,
        ),
        tool("heartbeat", "Gives a sign of life during long silent work.", vec![], &[], false),
    ]
}

fn tool(
    name: &'static str,
    description: &'static str,
    properties: Vec<(&str, Value)>,
    required: &[&str],
    read_only: bool,
) -> Tool {
    let properties: JsonObject = properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let mut input = json!({ "type": "object", "properties": properties });
    // An empty list is no schema for older readers.
    if !required.is_empty() {
        input["required"] = json!(required);
    }
    let hints = ToolAnnotations::new().read_only(read_only).destructive(false).idempotent(true).open_world(false);
    Tool::new(name, description, object(&input))
        .with_raw_output_schema(object(&output(name)).into())
        .with_annotations(hints)
}

/// What every answer has, and what this tool's has beside it.
fn output(name: &str) -> Value {
    let flag = |description: &str| json!({ "type": "boolean", "description": description });
    let mut properties = json!({
        "ok": flag("Whether it was done"),
        "message": text("What came of it and what to do next"),
        "kept": flag("No coordinator was running: the report is kept and counts when one starts"),
        "over": flag("This work is no longer yours: stop and end your turn"),
    });
    match name {
        "task_list" => {
            properties["tasks"] = list_of(json!({
                "id": text("The task"),
                "title": text("Its title"),
                "state": text("How it stands"),
                "epoch": number("The epoch you hold it in"),
                "accept": texts("Commands that must exit with 0"),
                "artifacts": texts("Files that must exist"),
            }));
        }
        "task_done" => {
            properties["task"] = text("The task");
            properties["state"] = text("complete, handed_on, not_proven or checking");
            properties["missing_artifacts"] = texts("Files that must exist and do not");
            properties["checks"] = list_of(json!({
                "command": text("The command"),
                "passed": flag("Whether it exited with 0 in time"),
                "timed_out": flag("Whether it took too long"),
                "output": text("The last part of what it printed"),
                "took_ms": number("How long it took"),
            }));
        }
        "ask" => {
            properties["question"] = number("The question's number");
            properties["answer"] = text("The answer, if there is one already");
        }
        _ => {}
    }
    json!({ "type": "object", "properties": properties, "required": ["ok", "message"] })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn texts(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": description })
}

fn number(description: &str) -> Value {
    json!({ "type": "integer", "description": description })
}

fn list_of(properties: Value) -> Value {
    json!({ "type": "array", "items": { "type": "object", "properties": properties } })
}

fn object(value: &Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}
