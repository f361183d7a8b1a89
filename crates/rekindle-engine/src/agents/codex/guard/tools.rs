//! What a tool use means: the same for a hook and for the transcript.
//!
//! A hook calls the shell `Bash`, does not report how a command ended, and prefixes some names with the name of the tool's
//! group without a separator; the transcript has the names that the model uses.

use rekindle_core::guard::fact::{self, Fact, Outcome, Todo};
use serde_json::Value;

use super::super::super::fields;
use super::super::super::hook_events::{self, CallStage, Use};

/// The kind of a helper if none is requested, as the program itself names it.
const DEFAULT_KIND: &str = "default";

/// Longest helper name that is derived from its prompt.
const NAME_MAX_BYTES: usize = 60;

/// How much of a foreign tool's input is shown: enough to know what the tool was used on.
const FOREIGN_INPUT_MAX_BYTES: usize = 300;

/// Tools for helpers; their names come with or without the group's name as a prefix.
const ABOUT_HELPERS: [&str; 7] =
    ["spawn_agent", "wait_agent", "close_agent", "interrupt_agent", "send_input", "followup_task", "resume_agent"];

pub fn facts(used: &Use<'_>) -> Vec<Fact> {
    match plain(used.tool) {
        "spawn_agent" => spawned(used).into_iter().collect(),
        "wait_agent" => waited(used),
        "close_agent" | "interrupt_agent" => closed(used).into_iter().collect(),
        "send_input" | "followup_task" | "resume_agent" => goes_on(used).into_iter().collect(),
        "Bash" | "exec_command" | "shell_command" | "shell" => command(used).into_iter().collect(),
        "apply_patch" => patched(used),
        "update_plan" => todos(used).into_iter().collect(),
        "request_user_input" => question(used).into_iter().collect(),
        tool if tool.starts_with("mcp__") => foreign(used).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Whether this tool's end is a good time to write the state.
pub fn ends_batch(tool: &str) -> bool {
    matches!(plain(tool), "wait_agent" | "close_agent" | "update_plan")
}

/// The status of a helper, as several tools and notices report it: `{"completed": "words"}`, `{"errored": "words"}` or a
/// word.
pub fn ended(helper: &str, status: &Value) -> Option<Fact> {
    let named = |name: &str| status.get(name).map(|words| words.as_str().unwrap_or_default());
    let (outcome, words) = if let Some(words) = named("completed") {
        (Outcome::Finished, words)
    } else if let Some(words) = named("errored") {
        (Outcome::Failed, words)
    } else {
        match status.as_str()? {
            "completed" => (Outcome::Finished, ""),
            "shutdown" | "interrupted" => (Outcome::Stopped, ""),
            "errored" | "not_found" => (Outcome::Failed, ""),
            _ => return None,
        }
    };
    Some(Fact::HelperEnded { call: None, helper: Some(fact::text(helper)), outcome, words: fact::text(words) })
}

/// The files of a patch: those that were added, changed, deleted, and the new names of those that were moved.
pub fn files_of_patch(patch: &str) -> Vec<&str> {
    let marks = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    patch.lines().filter_map(|line| marks.iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim)).collect()
}

/// A tool's name without the group's prefix.
fn plain(tool: &str) -> &str {
    ABOUT_HELPERS.into_iter().find(|name| tool.ends_with(name)).unwrap_or(tool)
}

fn spawned(used: &Use<'_>) -> Option<Fact> {
    let kind = fact::text(used.given("agent_type").unwrap_or(DEFAULT_KIND));
    match used.stage {
        CallStage::Called => {
            let items = || fields::words(used.input.get("items").unwrap_or(&Value::Null));
            let prompt = used.given("message").map_or_else(items, str::to_owned);
            let first = fact::bounded(prompt.lines().next().unwrap_or_default(), NAME_MAX_BYTES);
            let name = used.given("task_name").map_or(first, fact::text);
            let prompt = fact::text(&prompt);
            Some(Fact::HelperCalled { call: used.call.to_owned(), name, kind, prompt })
        }
        CallStage::Answered(answer) => {
            let call = Some(used.call.to_owned());
            // An answer that is not JSON is the reason why nothing was started.
            let Some(answer) = structured(answer) else {
                let words = fact::text(&fields::words(answer));
                return Some(Fact::HelperEnded { call, helper: None, outcome: Outcome::Failed, words });
            };
            let given =
                ["agent_id", "agent_path", "task_name"].into_iter().find_map(|name| fields::text(&answer, name));
            Some(Fact::HelperRuns { call, helper: fact::text(given?), kind })
        }
        CallStage::Failed(words) => {
            let (call, words) = (Some(used.call.to_owned()), fact::text(words));
            Some(Fact::HelperEnded { call, helper: None, outcome: Outcome::Failed, words })
        }
    }
}

fn waited(used: &Use<'_>) -> Vec<Fact> {
    let CallStage::Answered(answer) = used.stage else {
        return Vec::new();
    };
    let answer = structured(answer).unwrap_or_default();
    let all = answer.get("status").and_then(Value::as_object);
    all.into_iter().flatten().filter_map(|(helper, status)| ended(helper, status)).collect()
}

fn closed(used: &Use<'_>) -> Option<Fact> {
    let CallStage::Answered(answer) = used.stage else {
        return None;
    };
    let helper = used.given("target").or_else(|| used.given("id"))?;
    let before = structured(answer)?.get("previous_status").cloned().unwrap_or_default();
    let stopped = || Fact::HelperEnded {
        call: None,
        helper: Some(fact::text(helper)),
        outcome: Outcome::Stopped,
        words: String::new(),
    };
    Some(ended(helper, &before).unwrap_or_else(stopped))
}

fn goes_on(used: &Use<'_>) -> Option<Fact> {
    let went = matches!(used.stage, CallStage::Answered(answer) if structured(answer).is_some());
    let helper = used.given("target").or_else(|| used.given("id")).filter(|_| went)?;
    Some(Fact::HelperRuns { call: None, helper: fact::text(helper), kind: String::new() })
}

fn command(used: &Use<'_>) -> Option<Fact> {
    let words = || {
        let list = fields::list(used.input, "command");
        list.iter().filter_map(Value::as_str).next_back().map(str::to_owned)
    };
    let line = used.given("command").or_else(|| used.given("cmd")).map(str::to_owned).or_else(words)?;
    match used.stage {
        CallStage::Called => None,
        CallStage::Failed(why) => Some(used.command(&line, Some(why), "")),
        CallStage::Answered(answer) => {
            let answer = fields::words(answer);
            let (code, printed) = outcome(&answer);
            match code {
                Some(code) if code != 0 => {
                    Some(used.command(&line, Some(&format!("exit code {code}\n{printed}")), printed))
                }
                _ => Some(used.command(&line, None, printed)),
            }
        }
    }
}

/// The exit code and the output in the text that the model receives about a command; a hook receives only the output.
fn outcome(answer: &str) -> (Option<i64>, &str) {
    let Some((head, printed)) = answer.split_once("\nOutput:\n") else {
        return (None, answer);
    };
    let code = |line: &str| {
        let number = line.strip_prefix("Process exited with code ").or_else(|| line.strip_prefix("Exit code: "))?;
        number.trim().parse().ok()
    };
    (head.lines().find_map(code), printed)
}

fn patched(used: &Use<'_>) -> Vec<Fact> {
    let CallStage::Answered(answer) = used.stage else {
        return Vec::new();
    };
    if outcome(&fields::words(answer)).0.is_some_and(|code| code != 0) {
        return Vec::new();
    }
    let whole = used.input.as_str();
    let patch = whole.or_else(|| used.given("command")).or_else(|| used.given("input")).unwrap_or_default();
    files_of_patch(patch).into_iter().flat_map(|path| used.changed(path)).collect()
}

fn todos(used: &Use<'_>) -> Option<Fact> {
    let item = |todo: &Value| {
        let text = fact::text(fields::text(todo, "step")?);
        Some(Todo { text, status: hook_events::status(fields::text(todo, "status")?)? })
    };
    let CallStage::Answered(answer) = used.stage else {
        return None;
    };
    let refused = fields::words(answer).starts_with("unsupported call");
    (!refused).then(|| Fact::Todos { items: fields::list(used.input, "plan").iter().filter_map(item).collect() })
}

fn question(used: &Use<'_>) -> Option<Fact> {
    let not = |words: &str| {
        let text = fact::bounded(&format!("not answered: {words}"), FOREIGN_INPUT_MAX_BYTES);
        Some(Fact::Answered { call: used.call.to_owned(), text })
    };
    match used.stage {
        CallStage::Called => hook_events::asked(used),
        CallStage::Answered(answer) => match structured(answer) {
            Some(answer) => Some(hook_events::answered(used, &answer)),
            None => not(&fields::words(answer)),
        },
        CallStage::Failed(words) => not(words),
    }
}

/// Third-party tools may change the world as a command does.
fn foreign(used: &Use<'_>) -> Option<Fact> {
    let CallStage::Answered(answer) = used.stage else {
        return None;
    };
    let line = format!("{} {}", used.tool, fact::bounded(&used.input.to_string(), FOREIGN_INPUT_MAX_BYTES));
    let printed = fields::words(answer.get("content").unwrap_or(answer));
    let failed = answer.get("isError").and_then(Value::as_bool).unwrap_or(false);
    Some(used.command(&line, failed.then_some(printed.as_str()), if failed { "" } else { &printed }))
}

/// An answer that is JSON, or a text that holds it.
fn structured(answer: &Value) -> Option<Value> {
    match answer {
        Value::Object(_) => Some(answer.clone()),
        Value::String(text) => serde_json::from_str(text).ok().filter(Value::is_object),
        _ => serde_json::from_str(&fields::words(answer)).ok().filter(Value::is_object),
    }
}
