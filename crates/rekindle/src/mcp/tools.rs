//! The tools as a client lists them: names, descriptions for models, and the schemas of input and output.
//!
//! The schemas use only the few keywords that every model provider accepts: no references, no unions.

use rekindle_core::role::Role;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// Tools for roles that do work themselves.
const FOR_WORK: [&str; 2] = ["task_done", "task_split"];

/// Tools that are accepted but not offered: every prompt has what they say, and everything that is offered is part of each
/// request to a model.
const UNLISTED: [&str; 3] = ["heartbeat", "task_list", "task_start"];

/// Offered from the second attempt at a task on: it may be too large for one.
const FOR_ANOTHER_TRY: &str = "task_split";

/// The tool that replaces all of an agent's tools.
pub(super) const IN_ONE: &str = "report";

/// What it can report, by the names of the tools it replaces, and the field of each that its `text` becomes.
const KINDS: [(&str, &str); 6] = [
    ("task_done", "result"),
    ("checkpoint", "status"),
    ("ask", "question"),
    ("note", "decision"),
    ("task_split", "text"),
    ("task_fail", "reason"),
];

/// The tools that a role is offered, by name: a list that never changes keeps the models' prompt caches warm. A role that
/// judges work does none, and a verdict is offered only to the role that may give it.
pub(super) fn offered(role: Role, again: bool) -> Vec<Tool> {
    let mut tools = of(role);
    tools.retain(|tool| !UNLISTED.contains(&tool.name.as_ref()) && (again || tool.name != FOR_ANOTHER_TRY));
    tools
}

/// All of an agent's tools in one, for a program that adds much of its own to every request as soon as it has a server.
pub(super) fn in_one(again: bool) -> Tool {
    let offered = KINDS.iter().map(|(kind, _)| *kind).filter(|kind| again || *kind != FOR_ANOTHER_TRY);
    let mut properties = vec![
        ("kind", json!({ "type": "string", "enum": offered.collect::<Vec<_>>() })),
        ("task", text()),
        ("text", text()),
        ("completed", texts()),
        ("remaining", texts()),
    ];
    if again {
        properties.push(("subtasks", texts()));
    }
    let words = "task_done runs the checks: repair what fails, call again. After ask end your turn.";
    tool(IN_ONE, words, properties, &["kind", "task", "text"], false)
}

/// Translates a call of the combined tool into a call of the tool that is meant. The error says what is wrong with it, for
/// the model.
pub(super) fn meant(given: &JsonObject) -> Result<(&'static str, JsonObject), String> {
    let kind = given.get("kind").and_then(Value::as_str).unwrap_or_default().trim();
    let Some((kind, field)) = KINDS.into_iter().find(|(known, _)| *known == kind) else {
        let known: Vec<&str> = KINDS.iter().map(|(known, _)| *known).collect();
        return Err(format!("`{IN_ONE}` needs `kind`, one of {}", known.join(", ")));
    };
    let mut meant = given.clone();
    meant.remove("kind");
    // Models know the names of the other tools from the prompt, and may use the name of the field.
    if let Some(text) = meant.remove("text") {
        meant.entry(field).or_insert(text);
    }
    Ok((kind, meant))
}

/// The tools that are accepted from a role, by name.
pub(super) fn of(role: Role) -> Vec<Tool> {
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
        Role::Critic => {
            ("review", "Give your verdict: fail sends the work back. Ends your work.", vec!["pass", "fail"])
        }
        _ => (
            "audit",
            "Give your verdict: fail sends the work back, blocked asks a person. Ends your work.",
            vec!["pass", "fail", "blocked"],
        ),
    };
    let properties = vec![
        ("task", text()),
        ("verdict", json!({ "type": "string", "enum": verdicts })),
        ("issues", described(texts(), "What is wrong")),
        ("required", described(texts(), "What must be done about it")),
        ("passed", described(texts(), "What must stay as it is")),
    ];
    tool(name, words, properties, &["task", "verdict", "issues"], false)
}

/// Every word here is part of every request to a model: names say what a field is, and descriptions only what a name cannot.
fn for_everybody() -> Vec<Tool> {
    let task = ("task", text());
    vec![
        tool("task_list", "List your tasks with their state and checks.", vec![], &[], true),
        tool("task_start", "Say that you begin with a task.", vec![task.clone()], &["task"], false),
        tool(
            "task_done",
            "Report a task finished. Runs its checks: repair what fails, then call again.",
            vec![task.clone(), ("result", text())],
            &["task", "result"],
            false,
        ),
        tool(
            "task_fail",
            "Give up a task that cannot be done.",
            vec![task.clone(), ("reason", text())],
            &["task", "reason"],
            false,
        ),
        tool(
            "task_split",
            "Break a task that is too large into parts. They are your tasks then (T1.1, T1.2): report each.",
            vec![task.clone(), ("subtasks", texts())],
            &["task", "subtasks"],
            false,
        ),
        tool(
            "checkpoint",
            "Save your progress: a replacement continues from it.",
            vec![
                task.clone(),
                ("status", text()),
                ("completed", texts()),
                ("remaining", texts()),
                ("files", texts()),
                ("progress", described(json!({ "type": "integer" }), "%")),
            ],
            &["task", "status"],
            false,
        ),
        tool(
            "ask",
            "Ask a person, then end your turn: the answer comes with your next prompt.",
            vec![task, ("question", text()), ("options", texts())],
            &["task", "question"],
            false,
        ),
        tool("note", "Note a decision for agents after you.", vec![("decision", text())], &["decision"], false),
        tool("heartbeat", "Send a heartbeat during long silent work.", vec![], &[], false),
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
    // Older readers do not accept an empty list in a schema.
    if !required.is_empty() {
        input["required"] = json!(required);
    }
    let hints = ToolAnnotations::new().read_only(read_only).destructive(false).idempotent(true).open_world(false);
    Tool::new(name, description, object(&input))
        .with_raw_output_schema(object(&output(name)).into())
        .with_annotations(hints)
}

/// The schema of an answer: what every answer has, and what this tool's has in addition.
fn output(name: &str) -> Value {
    let flag = |words: &str| described(json!({ "type": "boolean" }), words);
    let number = |words: &str| described(json!({ "type": "integer" }), words);
    let mut properties = json!({
        "ok": flag("Whether it was done"),
        "message": described(text(), "What came of it and what to do next"),
        "kept": flag("No coordinator was running: the report is kept and counts when one starts"),
        "over": flag("This work is no longer yours: stop and end your turn"),
    });
    match name {
        "task_list" => {
            properties["tasks"] = list_of(json!({
                "id": described(text(), "The task"),
                "title": described(text(), "Its title"),
                "state": described(text(), "How it stands"),
                "epoch": number("The epoch you hold it in"),
                "accept": described(texts(), "Commands that must exit with 0"),
                "artifacts": described(texts(), "Files that must exist"),
            }));
        }
        "task_done" => {
            properties["task"] = described(text(), "The task");
            properties["state"] = described(text(), "complete, handed_on, not_proven or checking");
            properties["missing_artifacts"] = described(texts(), "Files that must exist and do not");
            properties["checks"] = list_of(json!({
                "command": described(text(), "The command"),
                "passed": flag("Whether it exited with 0 in time"),
                "timed_out": flag("Whether it took too long"),
                "output": described(text(), "The last part of what it printed"),
                "took_ms": number("How long it took"),
            }));
        }
        "ask" => {
            properties["question"] = number("The question's number");
            properties["answer"] = described(text(), "The answer, if there is one already");
        }
        _ => {}
    }
    json!({ "type": "object", "properties": properties, "required": ["ok", "message"] })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn texts() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

fn described(mut schema: Value, words: &str) -> Value {
    schema["description"] = json!(words);
    schema
}

fn list_of(properties: Value) -> Value {
    json!({ "type": "array", "items": { "type": "object", "properties": properties } })
}

fn object(value: &Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::order::Order;

    fn meant_by(given: Value) -> Result<Order, String> {
        let (tool, arguments) = meant(&object(&given))?;
        Order::read(tool, &arguments, &["T1".to_owned()])
    }

    #[test]
    fn the_tool_that_stands_for_all_of_them_means_each_of_them() {
        for again in [false, true] {
            let tool = in_one(again);
            let kinds = tool.input_schema["properties"]["kind"]["enum"].as_array().cloned().expect("kinds");
            let offered = offered(Role::Developer, again);
            assert_eq!(kinds.len(), offered.len(), "{kinds:?}");
            for kind in kinds {
                let same = offered.iter().find(|tool| kind == tool.name.as_ref()).expect("a tool of its own");
                let mut given = json!({ "kind": kind, "task": "T1", "text": "words" });
                if kind == FOR_ANOTHER_TRY {
                    given["subtasks"] = json!(["one", "two"]);
                }
                let short = meant_by(given).expect("understood");
                let field = KINDS.iter().find(|(known, _)| kind == *known).expect("known").1;
                let long = json!({ "task": "T1", (field): "words", "subtasks": ["one", "two"] });
                assert_eq!(Order::read(&same.name, &object(&long), &[]), Ok(short), "{kind}");
            }
        }
    }

    #[test]
    fn what_it_cannot_report_is_said_with_what_it_can() {
        for given in [json!({}), json!({ "kind": "heartbeat" }), json!({ "kind": ["ask"] })] {
            let wrong = meant_by(given).expect_err("no kind");
            assert!(wrong.contains("`kind`") && wrong.contains("task_done"), "{wrong}");
        }
        assert!(meant_by(json!({ "kind": "task_done", "text": "done" })).expect_err("no task").contains("yours: T1"));
    }
}
