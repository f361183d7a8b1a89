//! The hook protocol that two programs share: what its events mean for a session, and how text gets into the session's
//! context. What a program's tools mean is specific to the program and passed in as a [`Dialect`].

#[cfg(test)]
mod tests;
mod used;

use std::path::{Path, PathBuf};

use rekindle_core::guard::fact::{self, Beginning, Fact, Outcome, TaskStatus};
use serde_json::{Value, json};

use super::fields;
use super::guard_adapter::{Heard, Moment};

pub use used::{CallStage, Use, answered, asked, said, status};

/// What one program's tools mean, and its prompts that no person typed.
pub struct Dialect {
    /// What a tool use means.
    pub tool: fn(&Use<'_>) -> Vec<Fact>,
    /// What a prompt means: the person's words, or the program's own notice.
    pub prompt: fn(&str) -> Vec<Fact>,
    /// The tools whose end is a good time to write the state.
    pub ends_batch: fn(&str) -> bool,
}

/// Reasons for a session's end that the person intended; anything else may be a closed terminal or a signal.
const MEANT_ENDS: [&str; 4] = ["prompt_input_exit", "logout", "clear", "resume"];

/// Failures of a turn that are caused by the request and go away with a different request.
const OWN_FAILURES: [&str; 3] = ["invalid_request", "max_output_tokens", "model_not_found"];

/// Longest description of a task in a fact: the list is repeated often, and the program still has the full text.
pub const DESCRIPTION_MAX_BYTES: usize = 600;

pub fn read(asked: &Value, dir: PathBuf, dialect: &Dialect) -> Option<Heard> {
    let event = fields::text(asked, "hook_event_name")?;
    let session = fields::text(asked, "session_id").filter(|id| !id.is_empty())?;
    let agent = fields::text(asked, "agent_id").filter(|id| !id.is_empty());
    // The session reports a helper's start and end, and one program passes the helper's own transcript with the start.
    let about_helper = matches!(event, "SubagentStart" | "SubagentStop");
    let helper = agent.filter(|_| !about_helper);
    let (moment, facts) = match agent {
        Some(agent) => of_helper(event, asked, agent, dialect),
        None => of_lead(event, asked, dialect),
    };
    let transcript = fields::text(asked, "transcript_path").filter(|path| !path.is_empty());
    Some(Heard {
        session: session.to_owned(),
        dir,
        event: event.to_owned(),
        moment,
        transcript: transcript.filter(|_| helper.is_none() && event != "SubagentStart").map(PathBuf::from),
        helper: helper.map(str::to_owned),
        facts,
    })
}

/// What the hook prints so that the text gets into the session's context: only the session's own, and only where the program
/// reads it.
pub fn answer(heard: &Heard, text: &str) -> Option<String> {
    let listens = matches!(heard.event.as_str(), "SessionStart" | "UserPromptSubmit" | "PostToolUse");
    if !listens || heard.helper.is_some() {
        return None;
    }
    let answer = json!({"hookEventName": heard.event, "additionalContext": text});
    Some(json!({ "hookSpecificOutput": answer }).to_string())
}

/// What a session-start hook prints to put a text into the context after a compaction. If the program does not say why the
/// session started, the matcher has already selected the right ones.
pub fn session_start_answer(asked: &str, text: &str) -> Option<String> {
    let asked: Value = serde_json::from_str(asked).unwrap_or_default();
    if asked["source"].as_str().is_some_and(|source| source != "compact") {
        return None;
    }
    let answer = json!({"hookEventName": "SessionStart", "additionalContext": text});
    Some(json!({ "hookSpecificOutput": answer }).to_string())
}

/// A summary without the model's thoughts about it.
pub fn summary(text: &str) -> Option<String> {
    let after = text.split_once("</analysis>").map_or(text, |(_, rest)| rest);
    let inner = after.split_once("<summary>").map_or(after, |(_, rest)| rest);
    let inner = inner.rsplit_once("</summary>").map_or(inner, |(before, _)| before);
    let clean = fact::text(inner);
    (!clean.is_empty()).then_some(clean)
}

fn of_lead(event: &str, asked: &Value, dialect: &Dialect) -> (Moment, Vec<Fact>) {
    let words = || fields::text(asked, "last_assistant_message").unwrap_or_default();
    match event {
        "SessionStart" => {
            let how = beginning(fields::text(asked, "source").unwrap_or_default());
            (Moment::Begins(how), vec![Fact::Begun { how }])
        }
        "UserPromptSubmit" => (Moment::Prompt, (dialect.prompt)(fields::text(asked, "prompt").unwrap_or_default())),
        "PreCompact" => (Moment::Batch, vec![Fact::Compacting]),
        "PostCompact" => {
            let summary = fields::text(asked, "compact_summary").and_then(summary);
            (Moment::Batch, vec![Fact::Compacted { summary }])
        }
        "Stop" => {
            let mut facts = said(words(), None);
            facts.push(Fact::TurnEnded { words: fact::text(words()) });
            (Moment::Batch, facts)
        }
        "StopFailure" => {
            let about_asked = fields::text(asked, "error").is_some_and(|error| OWN_FAILURES.contains(&error));
            let text = fact::text(words());
            let ended = if about_asked { Fact::TurnEnded { words: text } } else { Fact::Limit { text } };
            (Moment::Batch, vec![ended])
        }
        "SessionEnd" => {
            let reason = fields::text(asked, "reason").unwrap_or_default();
            let ended = Fact::Ended { meant: MEANT_ENDS.contains(&reason), reason: fact::text(reason) };
            (Moment::Ends, vec![ended])
        }
        "TeammateIdle" => (Moment::Batch, idle(asked).into_iter().collect()),
        _ => common_event(event, asked, None, dialect),
    }
}

fn of_helper(event: &str, asked: &Value, agent: &str, dialect: &Dialect) -> (Moment, Vec<Fact>) {
    // The call that writes a compaction's summary looks like a helper without a kind.
    let kind = fields::text(asked, "agent_type");
    let is_summary = kind == Some("") && !event.ends_with("ToolUse");
    let kind = kind.unwrap_or_default().to_owned();
    let words = fields::text(asked, "last_assistant_message").unwrap_or_default();
    let ended =
        |outcome| Fact::HelperEnded { call: None, helper: Some(agent.to_owned()), outcome, words: fact::text(words) };
    match event {
        _ if is_summary => (Moment::Other, Vec::new()),
        "SubagentStart" => (Moment::Other, vec![Fact::HelperRuns { call: None, helper: agent.to_owned(), kind }]),
        "SubagentStop" => {
            let mut facts = said(words, Some(agent));
            facts.push(ended(outcome_of(words)));
            (Moment::Batch, facts)
        }
        "StopFailure" => (Moment::Batch, vec![ended(Outcome::Failed)]),
        _ => common_event(event, asked, Some(agent), dialect),
    }
}

/// How a helper's work ended, by its last words: a failed request of its model appears as if the helper had said it.
pub(super) fn outcome_of(words: &str) -> Outcome {
    if words.starts_with("API Error") { Outcome::Failed } else { Outcome::Finished }
}

/// Events that mean the same for the session and for a helper.
fn common_event(event: &str, asked: &Value, by: Option<&str>, dialect: &Dialect) -> (Moment, Vec<Fact>) {
    let tool = fields::text(asked, "tool_name").unwrap_or_default();
    let nothing = Value::Null;
    let used = |stage| {
        let used = Use {
            call: fields::text(asked, "tool_use_id").unwrap_or_default(),
            tool,
            input: asked.get("tool_input").unwrap_or(&nothing),
            stage,
            by,
            dir: Path::new(fields::text(asked, "cwd").unwrap_or_default()),
        };
        (dialect.tool)(&used)
    };
    let ended = if (dialect.ends_batch)(tool) { Moment::Batch } else { Moment::Tool };
    match event {
        "PreToolUse" => (Moment::Tool, used(CallStage::Called)),
        "PostToolUse" => (ended, used(CallStage::Answered(asked.get("tool_response").unwrap_or(&nothing)))),
        "PostToolUseFailure" => (ended, used(CallStage::Failed(fields::text(asked, "error").unwrap_or_default()))),
        "TaskCreated" => (Moment::Tool, task(asked, None).into_iter().collect()),
        "TaskCompleted" => (Moment::Batch, task(asked, Some(TaskStatus::Completed)).into_iter().collect()),
        _ => (Moment::Other, Vec::new()),
    }
}

fn beginning(source: &str) -> Beginning {
    match source {
        "resume" => Beginning::Resumed,
        "compact" => Beginning::Compacted,
        "clear" => Beginning::Cleared,
        _ => Beginning::New,
    }
}

fn task(asked: &Value, status: Option<TaskStatus>) -> Option<Fact> {
    Some(Fact::Task {
        id: fact::text(fields::text(asked, "task_id")?),
        subject: fields::text(asked, "task_subject").map(fact::text),
        description: fields::text(asked, "task_description").map(|text| fact::bounded(text, DESCRIPTION_MAX_BYTES)),
        status,
        owner: fields::text(asked, "teammate_name").map(fact::text),
        blocked_by: Vec::new(),
    })
}

/// A teammate that is idle; its id is made of its name and its team's.
fn idle(asked: &Value) -> Option<Fact> {
    let name = fields::text(asked, "teammate_name").filter(|name| !name.is_empty())?;
    let helper = match fields::text(asked, "team_name").filter(|team| !team.is_empty()) {
        Some(team) => format!("{name}@{team}"),
        None => name.to_owned(),
    };
    Some(Fact::HelperEnded { call: None, helper: Some(helper), outcome: Outcome::Idle, words: String::new() })
}
