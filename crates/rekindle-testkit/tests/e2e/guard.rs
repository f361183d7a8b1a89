//! Guard, by the events that a program's hooks would tell: what is kept, what a session is told and when, and that no hook breaks
//! anything. The real programs have their own tests.

mod many;
mod never_breaks;
mod told;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::rig::program;

/// A project of somebody whose sessions are guarded.
pub struct GuardedSession {
    dir: tempfile::TempDir,
}

impl GuardedSession {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let lead = Self { dir };
        std::fs::create_dir_all(lead.home()).expect("home");
        std::fs::create_dir_all(lead.project().join(".rekindle")).expect("state");
        lead
    }

    pub fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub fn transcript(&self, session: &str) -> PathBuf {
        self.dir.path().join(format!("{session}.jsonl"))
    }

    /// Where a session's things are.
    pub fn kept(&self, session: &str) -> PathBuf {
        self.project().join(".rekindle/guard").join(format!("claude-{session}"))
    }

    pub fn log(&self) -> String {
        let of_project = std::fs::read_to_string(self.project().join(".rekindle/guard/hook.log"));
        let of_user = std::fs::read_to_string(self.home().join(".local/state/rekindle/guard/hook.log"));
        of_project.unwrap_or_default() + &of_user.unwrap_or_default()
    }

    /// rekindle, as somebody in the project calls it.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.project()).env_clear();
        command.env("HOME", self.home()).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    /// What one hook prints. It always ends with 0 and says nothing on standard error.
    pub fn hook(&self, session: &str, event: &str, more: Value) -> String {
        let mut asked = json!({
            "session_id": session, "transcript_path": self.transcript(session), "cwd": self.project(), "hook_event_name": event,
        });
        for (name, value) in more.as_object().expect("fields") {
            asked[name.as_str()] = value.clone();
        }
        self.raw(&["hook", "claude"], asked.to_string().as_bytes())
    }

    pub fn raw(&self, arguments: &[&str], input: &[u8]) -> String {
        let ended = feed(self.command(arguments), input);
        assert_eq!(ended.status.code(), Some(0), "{arguments:?}: {ended:?}");
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "", "{arguments:?}");
        String::from_utf8(ended.stdout).expect("text")
    }

    /// The text in what a hook printed; nothing for nothing.
    pub fn text(printed: &str) -> Option<String> {
        if printed.is_empty() {
            return None;
        }
        let answer: Value = serde_json::from_str(printed).expect("one JSON and nothing else");
        Some(answer["hookSpecificOutput"]["additionalContext"].as_str().expect("a text").to_owned())
    }

    pub fn begins(&self, session: &str, source: &str) -> Option<String> {
        Self::text(&self.hook(session, "SessionStart", json!({ "source": source })))
    }

    pub fn prompt(&self, session: &str, prompt: &str) -> Option<String> {
        Self::text(&self.hook(session, "UserPromptSubmit", json!({ "prompt": prompt })))
    }

    /// A session with something of everything, in the middle of a turn.
    pub fn works(&self, session: &str) {
        assert_eq!(self.prompt(session, "Build the wombat importer. Never touch legacy/."), None);
        let task = json!({ "task_id": "1", "task_subject": "parse the quokka file", "task_description": "all of it" });
        self.hook(session, "TaskCreated", task);
        self.tool(session, "c1", "Write", json!({ "file_path": self.project().join("importer.rs"), "content": "" }));
        let says = json!({ "stop_hook_active": false, "last_assistant_message":
            "We decided to use SQLite instead of Postgres because one file is enough." });
        self.hook(session, "Stop", says);
        assert_eq!(self.prompt(session, "go on"), None);
    }

    pub fn tool(&self, session: &str, call: &str, tool: &str, input: Value) {
        let told = json!({ "tool_name": tool, "tool_use_id": call, "tool_input": input, "tool_response": {} });
        assert_eq!(self.hook(session, "PostToolUse", told), "");
    }

    pub fn compact(&self, session: &str) -> Option<String> {
        assert_eq!(self.hook(session, "PreCompact", json!({ "trigger": "auto" })), "");
        let told = self.begins(session, "compact");
        assert_eq!(self.hook(session, "PostCompact", json!({ "trigger": "auto", "compact_summary": "nothing" })), "");
        told
    }

    /// The records of a session's journal.
    pub fn records(&self, session: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.kept(session).join("journal.jsonl")).expect("a journal");
        text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).expect("whole")).collect()
    }
}

/// Runs a command with this as its input.
pub fn feed(mut command: Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("started");
    // It may end without reading.
    drop(child.stdin.take().map(|mut pipe| pipe.write_all(input)));
    child.wait_with_output().expect("ended")
}

/// What a session that worked has to be told.
pub const KEPT: [&str; 5] = [
    "Build the wombat importer. Never touch legacy/.",
    "parse the quokka file",
    "importer.rs",
    "SQLite instead of Postgres because one file is enough",
    "the person waits for an answer",
];

/// All files below a directory with what they hold.
pub fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push((path.clone(), std::fs::read(&path).expect("read"))),
        }
    }
    found.sort();
    found
}
