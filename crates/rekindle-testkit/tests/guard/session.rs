//! A case as a real session: the transcript that the program writes and the hooks that it calls, in its order.

use std::io::Write;
use std::path::PathBuf;

use rekindle_core::guard::when::{Occasion, Telling};
use rekindle_engine::agents::KINDS;
use rekindle_engine::agents::guard_adapter::GuardAdapter;
use rekindle_engine::guard::hook::{self, Places};
use rekindle_engine::guard::journal;
use rekindle_engine::guard::recover::{Whom, compose};
use serde_json::{Value, json};

use crate::cases::{Case, Turn};

const ID: &str = "0f4e2c1a-5b6d-4c7e-8f90-a1b2c3d4e5f6";

/// The session while it runs.
pub struct Played {
    dir: tempfile::TempDir,
    program: &'static dyn GuardAdapter,
    calls: usize,
    /// The last words of the turn.
    words: Option<String>,
}

impl Played {
    /// The whole case, up to where its context is compacted.
    pub fn new(case: &Case) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let program = KINDS.of("claude").and_then(|kind| kind.about().guard_adapter).expect("guarded");
        let mut played = Self { dir, program, calls: 0, words: None };
        std::fs::create_dir_all(played.project()).expect("a project");
        assert_eq!(played.hook("SessionStart", json!({ "source": "startup" })), None);
        for turn in &case.turns {
            played.turn(turn);
        }
        played.stop();
        played
    }

    /// Compacts it to a summary that says nothing; what it is told, and what it is told at the next prompt.
    pub fn compact(&mut self) -> (String, Option<String>) {
        assert_eq!(self.hook("PreCompact", json!({ "trigger": "manual" })), None);
        let told = self.hook("SessionStart", json!({ "source": "compact" }));
        self.line(json!({ "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted" }));
        let summary = "This session is being continued from a previous conversation that ran out of context.\nSummary:\nWork was done.";
        let message = json!({ "role": "user", "content": summary });
        self.line(json!({ "type": "user", "isCompactSummary": true, "message": message }));
        self.hook("PostCompact", json!({ "trigger": "manual", "compact_summary": "Work was done." }));
        let again = self.hook("UserPromptSubmit", json!({ "prompt": "ok" }));
        (told.expect("told"), again)
    }

    /// What it would be told in another room.
    pub fn told_in(&self, room: usize) -> String {
        let key = format!("claude-{ID}");
        let places = self.places();
        let session_dir = places.guard_dir.join(&key);
        let session = journal::session(&session_dir).expect("a journal");
        let whom = Whom {
            program: self.program,
            session: &session,
            key: &key,
            session_dir: &session_dir,
            dir: &self.project(),
            state_dir: &places.state_dir,
            room,
        };
        compose(&whom, Telling { occasion: Occasion::Compacted, compaction: 1, full: false }, &|_| None)
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn places(&self) -> Places {
        Places { guard_dir: self.dir.path().join("guard"), state_dir: self.dir.path().join("state") }
    }

    fn transcript(&self) -> PathBuf {
        self.dir.path().join("transcript.jsonl")
    }

    fn turn(&mut self, turn: &Turn) {
        match turn {
            Turn::User { text } => {
                self.stop();
                assert_eq!(self.hook("UserPromptSubmit", json!({ "prompt": text })), None);
                self.line(json!({ "type": "user", "message": { "role": "user", "content": text } }));
            }
            Turn::Assistant { text } => {
                self.assistant(json!({ "type": "text", "text": text }));
                self.words = Some(text.clone());
            }
            Turn::Tool { name, input, output, exit } => self.tool(name, input, output, *exit),
        }
    }

    fn tool(&mut self, name: &str, input: &str, output: &str, exit: i64) {
        self.calls += 1;
        self.words = None;
        let call = format!("toolu_{}", self.calls);
        let input = match name {
            "Bash" => json!({ "command": input }),
            "Read" | "Write" | "Edit" => json!({ "file_path": input.lines().next().unwrap_or_default() }),
            _ => json!({ "pattern": input }),
        };
        self.assistant(json!({ "type": "tool_use", "id": call, "name": name, "input": input }));
        let written = input["file_path"].as_str().filter(|path| name != "Read" && !path.starts_with('/'));
        if let Some(path) = written.filter(|path| !path.contains("..")) {
            let path = self.project().join(path);
            std::fs::create_dir_all(path.parent().expect("a place")).expect("a directory");
            std::fs::write(path, "").expect("written");
        }
        let failed = exit != 0;
        let words = if failed { format!("Exit code {exit}\n{output}") } else { output.to_owned() };
        let mut told = json!({ "tool_name": name, "tool_use_id": call, "tool_input": input });
        let event = if failed { "PostToolUseFailure" } else { "PostToolUse" };
        told[if failed { "error" } else { "tool_response" }] =
            if failed || name != "Bash" { json!(words) } else { json!({ "stdout": output, "stderr": "" }) };
        assert_eq!(self.hook(event, told), None);
        let result = json!({ "type": "tool_result", "tool_use_id": call, "content": words, "is_error": failed });
        self.line(json!({ "type": "user", "message": { "role": "user", "content": [result] } }));
    }

    /// The end of a turn, if one is open.
    fn stop(&mut self) {
        if let Some(words) = self.words.take() {
            self.hook("Stop", json!({ "last_assistant_message": words }));
        }
    }

    fn assistant(&mut self, part: Value) {
        self.line(json!({ "type": "assistant", "message": { "role": "assistant", "model": "m", "content": [part] } }));
    }

    fn line(&mut self, mut line: Value) {
        line["sessionId"] = json!(ID);
        line["cwd"] = json!(self.project());
        let mut file =
            std::fs::OpenOptions::new().create(true).append(true).open(self.transcript()).expect("a transcript");
        writeln!(file, "{line}").expect("written");
    }

    fn hook(&self, event: &str, more: Value) -> Option<String> {
        let mut asked = json!({
            "session_id": ID, "transcript_path": self.transcript(), "cwd": self.project(), "hook_event_name": event,
        });
        for (name, value) in more.as_object().expect("fields") {
            asked[name.as_str()] = value.clone();
        }
        let heard = self.program.read_hook(&asked, &|_| None).expect("heard");
        let mut printed = Vec::new();
        hook::run(self.program, heard, &self.places(), &|_| None, &mut printed).expect("kept");
        let answer: Value = serde_json::from_slice(&printed).ok()?;
        Some(answer["hookSpecificOutput"]["additionalContext"].as_str().expect("a text").to_owned())
    }
}
