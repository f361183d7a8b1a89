//! A person's own opencode session: what the guard's plugin reports about it, and how text gets into its context.
//!
//! The program has no hooks that run commands: a plugin, `plugin.js`, passes on what happens as JSON in our own format:
//! `event`, `session`, `dir`, in a subagent's session `helper`, and the fields of the event. What the hook prints is put
//! unchanged into the system prompt of every later request, until it prints something else.

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use rekindle_core::activity::Problem;
use rekindle_core::guard::fact::{self, Beginning, Fact, Outcome, TaskStatus, Todo};
use serde_json::Value;

use super::{Opencode, failure};
use crate::agents::fields::{list, number, text};
use crate::agents::guard_adapter::{GuardAdapter, Heard, Moment, Transcript};
use crate::agents::pieces::{looks_like_plan, questions, tail};

/// The variable in which the plugin passes the session's id to processes that its shell starts.
const SESSION: &str = "REKINDLE_GUARD_SESSION";

/// Bytes kept from the end of a command's output: a commit's id and an error's last line are there.
const PRINTED_MAX_BYTES: usize = 600;

/// Marks before the paths in a patch.
const PATCHED: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];

impl GuardAdapter for Opencode {
    fn read_hook(&self, asked: &Value, _var: &dyn Fn(&str) -> Option<String>) -> Option<Heard> {
        let session = text(asked, "session").filter(|id| !id.is_empty())?;
        let dir = text(asked, "dir").filter(|dir| !dir.is_empty())?;
        let event = text(asked, "event")?;
        let helper = text(asked, "helper").map(str::to_owned);
        let (moment, facts) = match event {
            "session.begins" => begun(asked),
            "chat.message" => (Moment::Prompt, prompt(asked).into_iter().collect()),
            "text" => (Moment::Other, said(asked, helper.as_deref())),
            "tool" => (Moment::Tool, tool(asked, helper.as_deref())),
            "todo.updated" => (Moment::Tool, vec![Fact::Todos { items: todos(asked) }]),
            "session.compacting" => (Moment::Batch, vec![Fact::Compacting]),
            "session.compacted" => (Moment::Begins(Beginning::Compacted), vec![compacted(asked)]),
            "session.idle" => (Moment::Batch, vec![Fact::TurnEnded { words: words(asked, "words") }]),
            "session.error" => (Moment::Batch, limit(asked)?),
            "session.deleted" => (Moment::Ends, vec![Fact::Ended { meant: true, reason: "deleted".into() }]),
            // The same for a person who leaves and for a terminal that is closed.
            "exit" => (Moment::Ends, vec![Fact::Ended { meant: false, reason: "exit".into() }]),
            _ => return None,
        };
        Some(Heard {
            session: session.to_owned(),
            dir: PathBuf::from(dir),
            event: event.to_owned(),
            moment,
            transcript: None,
            helper,
            facts,
        })
    }

    fn transcript_reader(&self) -> Option<Box<dyn Transcript>> {
        None
    }

    fn answer(&self, heard: &Heard, text: &str) -> Option<String> {
        let good = matches!(heard.moment, Moment::Begins(_) | Moment::Prompt | Moment::Tool);
        (good && heard.helper.is_none()).then(|| text.to_owned())
    }

    fn session_variable(&self) -> Option<&'static str> {
        Some(SESSION)
    }

    fn launch(&self, prompt: &str) -> Vec<String> {
        // As a single argument: a prompt may start with a dash.
        vec!["opencode".to_owned(), format!("--prompt={prompt}")]
    }
}

fn words(asked: &Value, name: &str) -> String {
    fact::text(text(asked, name).unwrap_or_default())
}

fn begun(asked: &Value) -> (Moment, Vec<Fact>) {
    let how = if text(asked, "how") == Some("resumed") { Beginning::Resumed } else { Beginning::New };
    (Moment::Begins(how), vec![Fact::Begun { how }])
}

fn prompt(asked: &Value) -> Option<Fact> {
    let text = words(asked, "text");
    (!text.is_empty()).then_some(Fact::Prompt { text })
}

fn said(asked: &Value, by: Option<&str>) -> Vec<Fact> {
    fact::said(text(asked, "text").unwrap_or_default(), by).into_iter().collect()
}

fn compacted(asked: &Value) -> Fact {
    Fact::Compacted { summary: Some(words(asked, "summary")).filter(|summary| !summary.is_empty()) }
}

/// A limit that stopped the session from outside; the person's own interruption and the program's mistakes do not count.
fn limit(asked: &Value) -> Option<Vec<Fact>> {
    let failure = failure::of(asked);
    let stopped = matches!(failure.problem, Problem::UsageLimit | Problem::Overloaded | Problem::Network);
    stopped.then(|| vec![Fact::Limit { text: fact::text(&failure.text) }])
}

fn todos(asked: &Value) -> Vec<Todo> {
    let one =
        |todo: &Value| Some(Todo { text: fact::text(text(todo, "content")?), status: status(text(todo, "status")) });
    list(asked, "todos").iter().filter_map(one).collect()
}

fn status(word: Option<&str>) -> TaskStatus {
    match word {
        Some("in_progress") => TaskStatus::InProgress,
        Some("completed") => TaskStatus::Completed,
        Some("cancelled") => TaskStatus::Deleted,
        _ => TaskStatus::Pending,
    }
}

/// What a call did; long calls are also reported when they start.
fn tool(asked: &Value, by: Option<&str>) -> Vec<Fact> {
    let input = &asked["input"];
    let call = words(asked, "call");
    let error = text(asked, "error").filter(|_| text(asked, "status") == Some("error"));
    let over = text(asked, "status") != Some("running");
    match text(asked, "tool").unwrap_or_default() {
        "bash" if !over && by.is_none() => vec![fact::called(&call, &words(input, "command"))],
        "bash" if !over => Vec::new(),
        "bash" => vec![command(asked, call, error, by)],
        "task" => helper(asked, call, error, over),
        "question" => {
            let ask = Fact::Asked { call: call.clone(), text: questions(input) };
            let answer = Fact::Answered { call, text: error.map_or_else(|| words(asked, "output"), fact::text) };
            if over { vec![ask, answer] } else { vec![ask] }
        }
        _ if error.is_some() || !over => Vec::new(),
        "write" | "edit" | "multiedit" => changed(text(input, "filePath"), by),
        "patch" | "apply_patch" => {
            let lines = text(input, "patch").unwrap_or_default().lines();
            let paths = lines.filter_map(|line| PATCHED.iter().find_map(|mark| line.strip_prefix(mark)));
            paths.flat_map(|path| changed(Some(path), by)).collect()
        }
        "read" => text(input, "filePath").filter(|path| looks_like_plan(path)).map(plan).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn plan(path: &str) -> Fact {
    Fact::PlanFile { path: fact::text(path) }
}

fn changed(path: Option<&str>, by: Option<&str>) -> Vec<Fact> {
    let Some(path) = path.map(str::trim).filter(|path| !path.is_empty()) else { return Vec::new() };
    let file = Fact::FileChanged { path: fact::text(path), by: by.map(str::to_owned) };
    let plan = (looks_like_plan(path) && by.is_none()).then(|| plan(path));
    std::iter::once(file).chain(plan).collect()
}

fn command(asked: &Value, call: String, error: Option<&str>, by: Option<&str>) -> Fact {
    let line = words(&asked["input"], "command");
    let printed = tail(text(asked, "output").unwrap_or_default(), PRINTED_MAX_BYTES);
    let code = number(asked, "exit").filter(|code| *code != 0);
    let failure = error.map(str::to_owned).or_else(|| {
        let why = format!("exit code {}", code?);
        Some(if printed.is_empty() { why } else { format!("{why}: {printed}") })
    });
    let failure = failure.map(|failure| fact::bounded(&failure, PRINTED_MAX_BYTES));
    Fact::Command { call, line, failure, printed, by: by.map(str::to_owned) }
}

/// A subagent: called, running once its session is known, ended.
fn helper(asked: &Value, call: String, error: Option<&str>, over: bool) -> Vec<Fact> {
    let input = &asked["input"];
    let kind = words(input, "subagent_type");
    let child = text(asked, "child").map(fact::text);
    let name = words(input, "description");
    let mut facts =
        vec![Fact::HelperCalled { call: call.clone(), name, kind: kind.clone(), prompt: words(input, "prompt") }];
    if let Some(helper) = child.clone() {
        facts.push(Fact::HelperRuns { call: Some(call.clone()), helper, kind });
    }
    if over {
        let outcome = if error.is_some() { Outcome::Failed } else { Outcome::Finished };
        let words = error.map_or_else(|| result(text(asked, "output").unwrap_or_default()), fact::text);
        facts.push(Fact::HelperEnded { call: Some(call), helper: child, outcome, words });
    }
    facts
}

/// A subagent's own words in the result of its call.
fn result(output: &str) -> String {
    let inside = output.split_once("<task_result>").map_or(output, |(_, inside)| inside);
    fact::text(inside.split_once("</task_result>").map_or(inside, |(inside, _)| inside))
}
