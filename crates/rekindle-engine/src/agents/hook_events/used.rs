//! One tool use, as a hook or a transcript reports it, and the facts that many tools have in common.

use std::path::Path;

use rekindle_core::guard::fact::{self, Fact, TaskStatus};
use serde_json::Value;

use super::super::fields;
use super::super::pieces::{looks_like_plan, tail};

/// How much of a command's output is kept: its end names the commit or the address.
const PRINTED_MAX_BYTES: usize = 300;

/// Longest command line that is kept: scripts are written into command lines, and their first lines show what they are.
const LINE_MAX_BYTES: usize = 1 << 10;

/// Longest failure text: its first line and its end.
const FAILURE_MAX_BYTES: usize = 400;

/// The stage of the tool use.
#[derive(Clone, Copy, Debug)]
pub enum CallStage<'a> {
    Called,
    /// It succeeded, with this answer: text, or the program's own structure.
    Answered(&'a Value),
    /// It failed, with this text.
    Failed(&'a str),
}

#[derive(Clone, Copy, Debug)]
pub struct Use<'a> {
    pub call: &'a str,
    pub tool: &'a str,
    pub input: &'a Value,
    pub stage: CallStage<'a>,
    /// The helper that used it; `None` means the session itself.
    pub by: Option<&'a str>,
    /// Where it was used; may be empty if that is not reported.
    pub dir: &'a Path,
}

impl Use<'_> {
    /// A field of its input.
    pub fn given(&self, name: &str) -> Option<&str> {
        fields::text(self.input, name).filter(|text| !text.is_empty())
    }

    pub fn command(&self, line: &str, failure: Option<&str>, printed: &str) -> Fact {
        Fact::Command {
            call: self.call.to_owned(),
            line: fact::bounded(line, LINE_MAX_BYTES),
            failure: failure.map(failed),
            printed: tail(printed, PRINTED_MAX_BYTES),
            by: self.by.map(str::to_owned),
        }
    }

    pub fn changed(&self, path: &str) -> Vec<Fact> {
        let path = self.absolute(path);
        let plan = self.plan(&path);
        let mut facts = vec![Fact::FileChanged { path, by: self.by.map(str::to_owned) }];
        facts.extend(plan);
        facts
    }

    /// The file was read or written: a plan, if it looks like one. Only the session's own uses count, not those of helpers.
    pub fn plan(&self, path: &str) -> Option<Fact> {
        (self.by.is_none() && looks_like_plan(path)).then(|| Fact::PlanFile { path: self.absolute(path) })
    }

    fn absolute(&self, path: &str) -> String {
        fact::text(&self.dir.join(path).to_string_lossy())
    }
}

/// An assistant's words.
pub fn said(text: &str, by: Option<&str>) -> Vec<Fact> {
    fact::said(text, by).into_iter().collect()
}

/// The task status for the program's word.
pub fn status(word: &str) -> Option<TaskStatus> {
    match word {
        "pending" => Some(TaskStatus::Pending),
        "in_progress" => Some(TaskStatus::InProgress),
        "completed" => Some(TaskStatus::Completed),
        "deleted" => Some(TaskStatus::Deleted),
        _ => None,
    }
}

/// The person was asked the questions of this input, each with its choices.
pub fn asked(used: &Use<'_>) -> Option<Fact> {
    let one = |question: &Value| {
        let text = fields::text(question, "question")?;
        let choices: Vec<&str> =
            fields::list(question, "options").iter().filter_map(|option| fields::text(option, "label")).collect();
        Some(if choices.is_empty() { text.to_owned() } else { format!("{text} ({})", choices.join(" | ")) })
    };
    let texts: Vec<String> = fields::list(used.input, "questions").iter().filter_map(one).collect();
    (!texts.is_empty()).then(|| Fact::Asked { call: used.call.to_owned(), text: fact::text(&texts.join("\n")) })
}

/// The person answered: `answers` is keyed by question or by a question's id. Without `answers`, the program's own text is
/// used.
pub fn answered(used: &Use<'_>, answer: &Value) -> Fact {
    let value = |value: &Value| match value {
        Value::String(text) => text.clone(),
        value => {
            let texts: Vec<&str> = fields::list(value, "answers").iter().filter_map(Value::as_str).collect();
            texts.join(", ")
        }
    };
    let answers = answer.get("answers").and_then(Value::as_object).filter(|answers| !answers.is_empty());
    let text = match answers {
        Some(answers) if answers.len() == 1 => answers.values().map(value).collect(),
        Some(answers) => {
            let pairs: Vec<String> = answers.iter().map(|(key, answer)| format!("{key}: {}", value(answer))).collect();
            pairs.join("; ")
        }
        None => fields::text(answer, "response").map_or_else(|| fields::words(answer), str::to_owned),
    };
    Fact::Answered { call: used.call.to_owned(), text: fact::text(&text) }
}

/// The text of a failure: all of it, or the first line, which has the exit code, and the end, which has the reason.
fn failed(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() {
        return "failed".to_owned();
    }
    if text.len() <= FAILURE_MAX_BYTES {
        return fact::text(text);
    }
    let first = fact::bounded(text.lines().next().unwrap_or_default(), FAILURE_MAX_BYTES / 4);
    format!("{first} … {}", tail(text, FAILURE_MAX_BYTES - FAILURE_MAX_BYTES / 4))
}
