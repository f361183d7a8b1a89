//! A person's own Gemini CLI session: what its hooks and its transcript report, and how text gets into its context.
//!
//! The program has no hook after a compression, and the only hook before the first request after it is the one before every
//! request. The transcript shows the compression. Text put into a request is lost after that request; text put beside a
//! prompt or a tool's result stays. So the former bridges the time until the latter.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;

use rekindle_core::guard::fact::{self, Beginning, Fact, Outcome, TaskStatus, Todo};
use serde_json::{Value, json};

use super::{Gemini, SNAPSHOT, up_to_summary, with_words, without_mentions};
use crate::agents::fields::{list, text};
use crate::agents::guard_adapter::{GuardAdapter, Heard, Moment, Transcript};
use crate::agents::pieces::{looks_like_plan, questions, tail};

/// The marks that the program puts around hook output.
const HOOK_CONTEXT: (&str, &str) = ("<hook_context>", "</hook_context>");

/// The marks that it puts around tool output.
const UNTRUSTED: (&str, &str) = ("<untrusted_context>", "</untrusted_context>");

/// Begins what the program puts below a prompt that names files: their contents.
const REFERENCED: &str = "--- Content from referenced files ---";

/// Begins the message with which the program describes the project to the model.
const SESSION_CONTEXT: &str = "<session_context>";

/// Ends the summary that begins with [`SNAPSHOT`].
const SNAPSHOT_END: &str = "</state_snapshot>";

/// Bytes kept from the end of a command's output: a commit's id and an error's last line are there.
const PRINTED_MAX_BYTES: usize = 600;

/// Bytes of a command line that identify it, because hooks do not receive the call's id.
const NAME_MAX_BYTES: usize = 400;

/// Bytes read from the end of a transcript to find the model's last words.
const LAST_MAX_BYTES: u64 = 256 << 10;

/// Summaries remembered by their id, since a resumed session writes them again; a session has a handful.
const SUMMARIES_MAX: usize = 1024;

impl GuardAdapter for Gemini {
    fn read_hook(&self, asked: &Value, var: &dyn Fn(&str) -> Option<String>) -> Option<Heard> {
        let session = text(asked, "session_id").filter(|id| !id.is_empty())?;
        let event = text(asked, "hook_event_name")?;
        let set = |name: &str| var(name).filter(|value| !value.is_empty());
        let dir = set("GEMINI_PROJECT_DIR").or_else(|| text(asked, "cwd").map(str::to_owned))?;
        let (moment, facts) = match event {
            "SessionStart" => begun(asked),
            "SessionEnd" => (Moment::Ends, vec![ended(asked)]),
            "BeforeAgent" => (Moment::Prompt, prompt(asked).into_iter().collect()),
            // There is nothing to say in a request without a summary.
            "BeforeModel" => (Moment::Request(up_to_summary(asked)?.into()), Vec::new()),
            "BeforeTool" => (Moment::Other, tool_begins(asked)?),
            // The program drops text that is added to the result of a failed call.
            "AfterTool" if asked.pointer("/tool_response/error").is_some() => (Moment::Other, tool_ended(asked)),
            "AfterTool" => (Moment::Tool, tool_ended(asked)),
            "AfterAgent" => (Moment::Batch, turn_ended(asked)),
            _ => return None,
        };
        Some(Heard {
            session: session.to_owned(),
            dir: PathBuf::from(dir),
            event: event.to_owned(),
            moment,
            transcript: text(asked, "transcript_path").filter(|path| !path.is_empty()).map(PathBuf::from),
            helper: None,
            facts,
        })
    }

    fn transcript_reader(&self) -> Option<Box<dyn Transcript>> {
        Some(Box::new(Chat::default()))
    }

    fn compaction_only_in_transcript(&self) -> bool {
        true
    }

    fn answer(&self, heard: &Heard, words: &str) -> Option<String> {
        match &heard.moment {
            Moment::Request(kept) => with_words(kept.as_array()?.clone(), words),
            Moment::Begins(_) | Moment::Prompt | Moment::Tool => {
                let answer = json!({"hookEventName": heard.event, "additionalContext": words});
                Some(json!({ "hookSpecificOutput": answer }).to_string())
            }
            Moment::Batch | Moment::Ends | Moment::Other => None,
        }
    }

    fn session_variable(&self) -> Option<&'static str> {
        Some("GEMINI_SESSION_ID")
    }

    fn launch(&self, prompt: &str) -> Vec<String> {
        // As a single argument: a prompt may start with a dash.
        vec!["gemini".to_owned(), format!("--prompt-interactive={}", without_mentions(prompt))]
    }
}

fn begun(asked: &Value) -> (Moment, Vec<Fact>) {
    let how = match text(asked, "source") {
        Some("resume") => Beginning::Resumed,
        Some("clear") => Beginning::Cleared,
        _ => Beginning::New,
    };
    (Moment::Begins(how), vec![Fact::Begun { how }])
}

/// The program reports the same for a person who leaves and for a terminal that is closed: only a cleared context is
/// certainly intended.
fn ended(asked: &Value) -> Fact {
    let reason = text(asked, "reason").unwrap_or_default();
    Fact::Ended { meant: matches!(reason, "clear" | "logout"), reason: fact::text(reason) }
}

fn prompt(asked: &Value) -> Option<Fact> {
    typed(text(asked, "prompt")?)
}

/// The part of a message in the person's name that the person typed, without the program's own words to the model.
fn typed(words: &str) -> Option<Fact> {
    let words = without(words, HOOK_CONTEXT);
    let words = words.split_once(REFERENCED).map_or(words.as_str(), |(before, _)| before);
    let words = fact::text(words);
    let own = words.starts_with(SESSION_CONTEXT) || words.contains(SNAPSHOT) || words.is_empty();
    (!own).then_some(Fact::Prompt { text: words })
}

/// The transcript has the model's last words unchanged; the hook receives them with repetitions.
fn turn_ended(asked: &Value) -> Vec<Fact> {
    let words = text(asked, "transcript_path").and_then(last_words);
    let words = words.unwrap_or_else(|| text(asked, "prompt_response").unwrap_or_default().trim().to_owned());
    let mut facts = said(&words);
    facts.push(Fact::TurnEnded { words: fact::text(&words) });
    facts
}

fn last_words(transcript: &str) -> Option<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = std::fs::File::open(transcript).ok()?;
    let from = file.metadata().ok()?.len().saturating_sub(LAST_MAX_BYTES);
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut end = Vec::new();
    file.take(LAST_MAX_BYTES).read_to_end(&mut end).ok()?;
    let end = String::from_utf8_lossy(&end);
    let of_model = |line: &str| {
        let entry: Value = serde_json::from_str(line).ok()?;
        let words = content(entry.get("content").filter(|_| entry["type"] == "gemini")?);
        Some(words).filter(|words| !words.trim().is_empty())
    };
    end.lines().rev().find_map(of_model)
}

fn said(words: &str) -> Vec<Fact> {
    fact::said(words, None).into_iter().collect()
}

/// Only what is worth knowing while it runs.
fn tool_begins(asked: &Value) -> Option<Vec<Fact>> {
    let input = &asked["tool_input"];
    match text(asked, "tool_name")? {
        "invoke_agent" => Some(vec![helper_called(input)]),
        "ask_user" => Some(vec![asked_person(input)]),
        "run_shell_command" => {
            let line = text(input, "command").unwrap_or_default();
            Some(vec![fact::called(&shell_call(line), line)])
        }
        _ => None,
    }
}

fn tool_ended(asked: &Value) -> Vec<Fact> {
    let response = &asked["tool_response"];
    let words = content(&response["llmContent"]);
    let error = response.pointer("/error/message").and_then(Value::as_str);
    tool(text(asked, "tool_name").unwrap_or_default(), &asked["tool_input"], &words, error)
}

/// What a finished call did: its tool, its arguments, what it returned and why it failed.
fn tool(name: &str, input: &Value, words: &str, error: Option<&str>) -> Vec<Fact> {
    let words = without_marks(words, UNTRUSTED);
    match name {
        "run_shell_command" => vec![command(input, &words, error)],
        "ask_user" => vec![asked_person(input), answered(input, &words)],
        "invoke_agent" => {
            let outcome = if error.is_some() { Outcome::Failed } else { Outcome::Finished };
            let words = fact::text(error.unwrap_or(&words));
            let ended = Fact::HelperEnded { call: Some(helper_name(input)), helper: None, outcome, words };
            vec![helper_called(input), ended]
        }
        _ if error.is_some() => Vec::new(),
        "write_file" | "replace" => {
            let Some(path) = file(input) else { return Vec::new() };
            let changed = Fact::FileChanged { path: path.clone(), by: None };
            let plan = looks_like_plan(&path).then_some(Fact::PlanFile { path });
            std::iter::once(changed).chain(plan).collect()
        }
        "read_file" => {
            file(input).filter(|path| looks_like_plan(path)).map(|path| Fact::PlanFile { path }).into_iter().collect()
        }
        "write_todos" => vec![Fact::Todos { items: todos(input) }],
        "tracker_create_task" | "tracker_update_task" => tracked(input, &words).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn file(input: &Value) -> Option<String> {
    text(input, "file_path").map(|path| fact::bounded(path, NAME_MAX_BYTES)).filter(|path| !path.is_empty())
}

fn command(input: &Value, words: &str, error: Option<&str>) -> Fact {
    let line = text(input, "command").unwrap_or_default();
    let own = words.lines().rev().find_map(own_failure);
    let output = printed(words);
    let failure = error.map(str::to_owned).or(own).map(|why| {
        let told = if output.is_empty() { why.clone() } else { format!("{why}: {output}") };
        fact::bounded(&told, PRINTED_MAX_BYTES)
    });
    Fact::Command { call: shell_call(line), line: fact::text(line), failure, printed: output, by: None }
}

/// A call to which the program gives no id is identified by its input.
fn shell_call(line: &str) -> String {
    format!("shell {}", fact::bounded(line, NAME_MAX_BYTES))
}

/// How the program says below the output that a command failed.
fn own_failure(line: &str) -> Option<String> {
    let code = line.strip_prefix("Exit Code: ").map(|code| format!("exit code {code}"));
    let signal = || line.strip_prefix("Signal: ").map(|signal| format!("signal {signal}"));
    let cut = || line.starts_with("Command was cancelled").then(|| "cancelled".to_owned());
    let late = || line.starts_with("Command was automatically cancelled").then(|| "it took too long".to_owned());
    code.or_else(signal).or_else(cut).or_else(late)
}

/// The end of the command's own output.
fn printed(words: &str) -> String {
    let own = |line: &&str| {
        let marks = ["Exit Code: ", "Signal: ", "Error: ", "Background PIDs: ", "Process Group PGID: "];
        !marks.iter().any(|mark| line.starts_with(mark))
    };
    let lines: Vec<&str> = words.lines().filter(own).collect();
    let all = lines.join("\n");
    let all = all.trim().strip_prefix("Output: ").unwrap_or(all.trim());
    if all == "(empty)" { String::new() } else { tail(all, PRINTED_MAX_BYTES) }
}

fn todos(input: &Value) -> Vec<Todo> {
    let one = |todo: &Value| {
        let status = match text(todo, "status") {
            Some("in_progress") => TaskStatus::InProgress,
            Some("completed") => TaskStatus::Completed,
            Some("cancelled") => TaskStatus::Deleted,
            _ => TaskStatus::Pending,
        };
        Some(Todo { text: fact::text(text(todo, "description")?), status })
    };
    list(input, "todos").iter().filter_map(one).collect()
}

/// A task of the program's own tracker; a new task is named only in the text that was returned.
fn tracked(input: &Value, words: &str) -> Option<Fact> {
    let made = || words.strip_prefix("Created task ")?.split_once(':').map(|(id, _)| id.trim());
    let id = text(input, "id").or_else(made)?;
    let status = text(input, "status").or_else(|| made().map(|_| "open"));
    let status = status.map(|status| match status {
        "in_progress" => TaskStatus::InProgress,
        "closed" => TaskStatus::Completed,
        _ => TaskStatus::Pending,
    });
    Some(Fact::Task {
        id: fact::text(id),
        subject: text(input, "title").map(fact::text),
        description: text(input, "description").map(fact::text),
        status,
        owner: None,
        blocked_by: list(input, "dependencies").iter().filter_map(Value::as_str).map(fact::text).collect(),
    })
}

fn helper_name(input: &Value) -> String {
    let prompt = text(input, "prompt").unwrap_or_default();
    format!("{}: {}", text(input, "agent_name").unwrap_or("agent"), fact::bounded(prompt, NAME_MAX_BYTES))
}

fn helper_called(input: &Value) -> Fact {
    let kind = fact::text(text(input, "agent_name").unwrap_or_default());
    let prompt = fact::text(text(input, "prompt").unwrap_or_default());
    Fact::HelperCalled { call: helper_name(input), name: kind.clone(), kind, prompt }
}

fn asked_person(input: &Value) -> Fact {
    let text = questions(input);
    Fact::Asked { call: fact::bounded(&text, NAME_MAX_BYTES), text }
}

fn answered(input: &Value, words: &str) -> Fact {
    let given = serde_json::from_str::<Value>(words).ok();
    let answers = given.as_ref().and_then(|given| given.get("answers")?.as_object());
    let answers = answers.map(|answers| answers.values().filter_map(Value::as_str).collect::<Vec<_>>().join("; "));
    let answer = answers.unwrap_or_else(|| words.to_owned());
    Fact::Answered { call: fact::bounded(&questions(input), NAME_MAX_BYTES), text: fact::text(&answer) }
}

/// The text of a message or of a tool's result: a string, a part, or a list of both.
fn content(value: &Value) -> String {
    match value {
        Value::String(words) => words.clone(),
        Value::Array(parts) => {
            parts.iter().map(content).filter(|words| !words.is_empty()).collect::<Vec<_>>().join("\n")
        }
        Value::Object(part) => part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
        _ => String::new(),
    }
}

/// Text without what is between two marks.
fn without(words: &str, (open, close): (&str, &str)) -> String {
    let mut left = String::new();
    let mut rest = words;
    while let Some((before, inside)) = rest.split_once(open) {
        left.push_str(before);
        rest = inside.split_once(close).map_or("", |(_, after)| after);
    }
    left.push_str(rest);
    left
}

/// Text without the marks themselves.
fn without_marks(words: &str, (open, close): (&str, &str)) -> String {
    words.replace(open, "").replace(close, "").trim().to_owned()
}

/// Reads a transcript. A message is written again when its calls have ended, and all of them when a session is resumed.
#[derive(Default)]
struct Chat {
    summaries: BTreeSet<String>,
}

impl Transcript for Chat {
    fn line(&mut self, line: &str) -> Vec<Fact> {
        let Ok(entry) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        if let Some(set) = entry.get("$set") {
            return list(set, "messages").iter().filter_map(|message| self.summary(message)).collect();
        }
        match text(&entry, "type") {
            // It is displayed as something else: the program wrote it in the person's name.
            Some("user") if entry.get("displayContent").is_some() => Vec::new(),
            Some("user") => typed(&content(&entry["content"])).into_iter().collect(),
            Some("gemini") => answer(&entry),
            _ => Vec::new(),
        }
    }
}

impl Chat {
    fn summary(&mut self, message: &Value) -> Option<Fact> {
        let words = content(message.get("content").filter(|_| message["type"] == "user")?);
        let (_, summary) = words.split_once(SNAPSHOT)?;
        let id = text(message, "id").unwrap_or(&words).to_owned();
        if self.summaries.len() >= SUMMARIES_MAX || !self.summaries.insert(id) {
            return None;
        }
        let summary = summary.split_once(SNAPSHOT_END).map_or(summary, |(summary, _)| summary);
        Some(Fact::Compacted { summary: Some(fact::text(summary)) })
    }
}

/// What the model said and which files its calls wrote. Hooks report the rest, and earlier: repeated from here, an older
/// list of tasks would replace a newer one.
fn answer(entry: &Value) -> Vec<Fact> {
    let mut facts = said(&content(&entry["content"]));
    let wrote = |call: &&Value| {
        let name = text(call, "name").unwrap_or_default();
        matches!(name, "write_file" | "replace") && text(call, "status") == Some("success")
    };
    let paths = list(entry, "toolCalls").iter().filter(wrote).filter_map(|call| file(&call["args"]));
    facts.extend(paths.map(|path| Fact::FileChanged { path, by: None }));
    facts.extend(list(entry, "toolCalls").iter().flat_map(ended_call));
    facts
}

/// Records that a call came after the words and has ended: how much a sentence counts depends on it.
fn ended_call(call: &Value) -> Vec<Fact> {
    let (Some(id), Some(status)) = (text(call, "id"), text(call, "status")) else {
        return Vec::new();
    };
    let failed = match status {
        "success" => false,
        "error" | "cancelled" => true,
        _ => return Vec::new(),
    };
    let args = &call["args"];
    let given = ["command", "file_path", "pattern"].into_iter().find_map(|name| text(args, name));
    let line = given.map_or_else(|| args.to_string(), str::to_owned);
    let line = format!("{} {line}", text(call, "name").unwrap_or_default());
    vec![fact::called(id, &line), Fact::Returned { call: fact::bounded(id, fact::CALL_MAX_BYTES), failed }]
}
