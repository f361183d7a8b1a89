//! What a tool use means: the same for a hook and for the transcript.

use rekindle_core::guard::fact::{self, Fact, Outcome, Todo};
use serde_json::Value;

use super::super::super::fields;
use super::super::super::hook_events::{self, CallStage, DESCRIPTION_MAX_BYTES, Use};

/// How much of a foreign tool's input is shown: enough to know what the tool was used on.
const FOREIGN_INPUT_MAX_BYTES: usize = 300;

pub fn facts(used: &Use<'_>) -> Vec<Fact> {
    match used.tool {
        "Agent" | "Task" => helper(used),
        "SendMessage" => message(used).into_iter().collect(),
        "TaskStop" | "KillShell" => stopped(used).into_iter().collect(),
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => changed(used),
        "Read" => read(used).into_iter().collect(),
        "Bash" | "PowerShell" => command(used).into_iter().collect(),
        "TaskCreate" => created(used).into_iter().collect(),
        "TaskUpdate" => updated(used),
        "TaskList" => listed(used),
        "TodoWrite" => todos(used).into_iter().collect(),
        "AskUserQuestion" => question(used).into_iter().collect(),
        "ExitPlanMode" => plan(used).into_iter().collect(),
        tool if tool.starts_with("mcp__") => foreign(used).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Whether this tool's end is a good time to write the state.
pub fn ends_batch(tool: &str) -> bool {
    matches!(tool, "Agent" | "Task" | "ExitPlanMode" | "AskUserQuestion")
}

/// A task in the program's own format, on disk or in a list.
pub fn task(task: &Value) -> Option<Fact> {
    if task.get("metadata").is_some_and(|about| about.get("_internal").is_some()) {
        return None;
    }
    Some(Fact::Task {
        id: id(task, "id")?,
        subject: fields::text(task, "subject").map(fact::text),
        description: fields::text(task, "description").map(|text| fact::bounded(text, DESCRIPTION_MAX_BYTES)),
        status: fields::text(task, "status").and_then(hook_events::status),
        owner: fields::text(task, "owner").filter(|owner| !owner.is_empty()).map(fact::text),
        blocked_by: ids(task, "blockedBy"),
    })
}

fn helper(used: &Use<'_>) -> Vec<Fact> {
    let call = Some(used.call.to_owned());
    match used.stage {
        CallStage::Called => {
            let name = used.given("name").or_else(|| used.given("description")).unwrap_or_default();
            vec![Fact::HelperCalled {
                call: used.call.to_owned(),
                name: fact::text(name),
                kind: kind(used),
                prompt: fact::text(used.given("prompt").unwrap_or_default()),
            }]
        }
        CallStage::Answered(answer) => {
            let given = ["agentId", "agent_id", "teammate_id"].into_iter().find_map(|name| fields::text(answer, name));
            let helper = given.filter(|id| !id.is_empty()).map(str::to_owned);
            let mut facts = Vec::new();
            if let Some(helper) = helper.clone() {
                facts.push(Fact::HelperRuns { call: call.clone(), helper, kind: kind(used) });
            }
            let goes_on = fields::text(answer, "status").is_some_and(|status| status != "completed");
            if !goes_on {
                let words = fields::words(answer.get("content").unwrap_or(answer));
                let words = fact::text(without_own_notes(&words));
                facts.push(Fact::HelperEnded { call, helper, outcome: hook_events::outcome_of(&words), words });
            }
            facts
        }
        CallStage::Failed(words) => {
            let stopped = words.contains("doesn't want to") || words.contains("interrupted");
            let outcome = if stopped { Outcome::Stopped } else { Outcome::Failed };
            vec![Fact::HelperEnded { call, helper: None, outcome, words: fact::text(words) }]
        }
    }
}

fn kind(used: &Use<'_>) -> String {
    fact::text(used.given("subagent_type").unwrap_or("general-purpose"))
}

/// Removes the program's own lines about the helper from the end of a helper's answer as the model sees it.
fn without_own_notes(words: &str) -> &str {
    words.rsplit_once("\nagentId: ").map_or(words, |(before, _)| before)
}

/// A helper that receives a message continues. A bare name is not a helper's id, and the helper behind an unknown name
/// cannot be determined.
fn message(used: &Use<'_>) -> Option<Fact> {
    let CallStage::Answered(answer) = used.stage else {
        return None;
    };
    let went = answer.get("success").and_then(Value::as_bool).unwrap_or(false);
    let to = used.given("to").filter(|to| went && is_helper_id(to))?;
    Some(Fact::HelperRuns { call: None, helper: fact::text(to), kind: String::new() })
}

fn is_helper_id(text: &str) -> bool {
    let is_own = text.len() > 8 && text.starts_with('a') && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_own || text.contains('@')
}

fn stopped(used: &Use<'_>) -> Option<Fact> {
    let CallStage::Answered(answer) = used.stage else {
        return None;
    };
    let task = used.given("task_id").or_else(|| used.given("shell_id"))?;
    let is_helper = fields::text(answer, "task_type").is_some_and(|kind| kind.contains("agent"));
    (is_helper || is_helper_id(task)).then(|| Fact::HelperEnded {
        call: None,
        helper: Some(fact::text(task)),
        outcome: Outcome::Stopped,
        words: String::new(),
    })
}

fn changed(used: &Use<'_>) -> Vec<Fact> {
    let path = used.given("file_path").or_else(|| used.given("notebook_path"));
    match (used.stage, path) {
        (CallStage::Answered(_), Some(path)) => used.changed(path),
        _ => Vec::new(),
    }
}

fn read(used: &Use<'_>) -> Option<Fact> {
    matches!(used.stage, CallStage::Answered(_)).then(|| used.plan(used.given("file_path")?))?
}

fn command(used: &Use<'_>) -> Option<Fact> {
    let line = used.given("command")?;
    match used.stage {
        CallStage::Called => None,
        CallStage::Failed(words) => Some(used.command(line, Some(words), "")),
        CallStage::Answered(answer) => {
            let part = |name: &str| fields::text(answer, name).unwrap_or_default();
            let printed = match answer {
                Value::Object(_) if part("stderr").is_empty() => part("stdout").to_owned(),
                Value::Object(_) => format!("{}\n{}", part("stdout"), part("stderr")),
                answer => fields::words(answer),
            };
            let interrupted = answer.get("interrupted").and_then(Value::as_bool).unwrap_or(false);
            Some(used.command(line, interrupted.then_some("interrupted"), &printed))
        }
    }
}

/// Third-party tools may change the world as a command does.
fn foreign(used: &Use<'_>) -> Option<Fact> {
    let input = if used.input.is_null() { String::new() } else { used.input.to_string() };
    let line = format!("{} {}", used.tool, fact::bounded(&input, FOREIGN_INPUT_MAX_BYTES));
    match used.stage {
        CallStage::Called => None,
        CallStage::Failed(words) => Some(used.command(&line, Some(words), "")),
        CallStage::Answered(answer) => {
            let printed = fields::words(answer.get("content").unwrap_or(answer));
            Some(used.command(&line, None, &printed))
        }
    }
}

fn created(used: &Use<'_>) -> Option<Fact> {
    let CallStage::Answered(answer) = used.stage else {
        return None;
    };
    // As the model sees it: "Task #1 created successfully: …".
    let in_words = || {
        let words = fields::words(answer);
        let number = words.strip_prefix("Task #")?.split_once(' ')?.0;
        Some(fact::text(number))
    };
    let id = answer.get("task").and_then(|task| id(task, "id")).or_else(in_words)?;
    Some(Fact::Task {
        id,
        subject: used.given("subject").map(fact::text),
        description: used.given("description").map(|text| fact::bounded(text, DESCRIPTION_MAX_BYTES)),
        // Not `pending`: a transcript is also read long after the task was finished.
        status: None,
        owner: None,
        blocked_by: Vec::new(),
    })
}

fn updated(used: &Use<'_>) -> Vec<Fact> {
    let went = match used.stage {
        CallStage::Answered(answer) => answer.get("success").and_then(Value::as_bool).unwrap_or(true),
        _ => false,
    };
    let Some(task) = id(used.input, "taskId").filter(|_| went) else {
        return Vec::new();
    };
    let blocked = |other: String| Fact::Task {
        id: other,
        subject: None,
        description: None,
        status: None,
        owner: None,
        blocked_by: vec![task.clone()],
    };
    let mut facts = vec![Fact::Task {
        id: task.clone(),
        subject: used.given("subject").map(fact::text),
        description: used.given("description").map(|text| fact::bounded(text, DESCRIPTION_MAX_BYTES)),
        status: used.given("status").and_then(hook_events::status),
        owner: used.given("owner").map(fact::text),
        blocked_by: ids(used.input, "addBlockedBy"),
    }];
    facts.extend(ids(used.input, "addBlocks").into_iter().map(blocked));
    facts
}

fn listed(used: &Use<'_>) -> Vec<Fact> {
    match used.stage {
        CallStage::Answered(answer) => fields::list(answer, "tasks").iter().filter_map(task).collect(),
        _ => Vec::new(),
    }
}

fn todos(used: &Use<'_>) -> Option<Fact> {
    let item = |todo: &Value| {
        let text = fact::text(fields::text(todo, "content")?);
        Some(Todo { text, status: hook_events::status(fields::text(todo, "status")?)? })
    };
    matches!(used.stage, CallStage::Answered(_))
        .then(|| Fact::Todos { items: fields::list(used.input, "todos").iter().filter_map(item).collect() })
}

fn question(used: &Use<'_>) -> Option<Fact> {
    match used.stage {
        CallStage::Called => hook_events::asked(used),
        CallStage::Answered(answer) => Some(hook_events::answered(used, answer)),
        CallStage::Failed(words) => {
            let text = fact::bounded(&format!("not answered: {words}"), FOREIGN_INPUT_MAX_BYTES);
            Some(Fact::Answered { call: used.call.to_owned(), text })
        }
    }
}

fn plan(used: &Use<'_>) -> Option<Fact> {
    let CallStage::Answered(answer) = used.stage else {
        return None;
    };
    let path = fields::text(answer, "filePath").or_else(|| used.given("planFilePath"))?;
    used.by.is_none().then(|| Fact::PlanFile { path: fact::text(path) })
}

/// An id may be a number.
fn id(value: &Value, name: &str) -> Option<String> {
    id_of(value.get(name)?)
}

fn ids(value: &Value, name: &str) -> Vec<String> {
    fields::list(value, name).iter().filter_map(id_of).collect()
}

fn id_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(fact::text(text)),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
