//! Gemini CLI: how it is started, resumed and stopped, and where its transcript is. What its lines mean is in `reader`, the
//! settings it gets are in `home`.
//!
//! It runs once for one prompt. It reads its system settings only from files owned by root, so an ordinary user's agent gets
//! a home of its own instead: the user's settings with rekindle's added, and links to everything else.

mod guard;
mod history;
mod home;
mod reader;
mod report;
mod settings;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use rekindle_core::activity::History;
use rekindle_core::limits::Traits;
use rekindle_shim::bundle::Stdin;
use rekindle_shim::ladder::{Rung, StopSignal};
use serde_json::{Value, json};

use super::history::Record;
use super::interactive::Interactive;
use super::{About, Adapter, Compaction, Launch, Permissions, Place, Program, Reader, Start};

/// The name in `kind = "…"`.
pub const KIND: &str = "gemini";

/// Marks the summary that replaces the history when it is compressed.
const SNAPSHOT: &str = "<state_snapshot>";

/// Longest directory listing that is searched for a transcript: projects are hundreds at most.
const PROJECTS_MAX: usize = 4096;

/// A transcript's first line is short; no more than this is read of any.
const HEADER_BYTES: usize = 4096;

/// Variables that log it in, in the order in which they are shown.
const LOGIN_VARS: [&str; 3] = ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"];

/// Files in its home that log it in.
const LOGIN_FILES: [&str; 2] = ["oauth_creds.json", "gemini-credentials.json"];

pub struct Gemini;

static ABOUT: About = About {
    program: Some("gemini"),
    install_hint: Some("npm install -g @google/gemini-cli"),
    tried_up_to: Some("0.61.0"),
    keeps_transcript: true,
    login_hint: "run `gemini` once and log in, or set GEMINI_API_KEY; with permissions = \"default\" it works only in folders that it was \
         told to trust, without a shell and without writing files",
    guard_adapter: Some(&Gemini),
    hook_installer: Some(&Gemini),
    ..About::new(KIND)
};

impl Adapter for Gemini {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn traits(&self, program: &Program) -> Traits {
        program.session_traits(KIND)
    }

    fn start(&self, start: &Start<'_>) -> Result<Launch, String> {
        let place = Place { program: start.program, workspace: start.workspace, bundle: start.bundle };
        if start.mcp_command().iter().any(|word| word.contains('$')) {
            let place = start.bundle.display();
            return Err(format!(
                "gemini takes `$` in a path of its settings for a variable: move the project out of {place}"
            ));
        }
        let mut argv = start.program_words(self)?;
        argv.extend(["--output-format", "stream-json"].map(str::to_owned));
        if let Some(model) = &start.program.model {
            argv.extend(["--model".to_owned(), model.clone()]);
        }
        match start.resume {
            Some(session) => argv.extend(["--resume".to_owned(), session.to_owned()]),
            None => argv.extend(["--session-id".to_owned(), start.new_session.to_owned()]),
        }
        let mut launch = Launch::new(argv, Stdin::File, without_mentions(start.prompt));
        // One process instead of two: the outer one swallows signals.
        launch.env.insert("GEMINI_CLI_NO_RELAUNCH".into(), "true".into());
        if start.program.permissions == Permissions::Full {
            launch.argv.push("--yolo".into());
            launch.env.insert("GEMINI_CLI_TRUST_WORKSPACE".into(), "true".into());
        }
        launch.argv.extend(start.program.args.iter().cloned());
        home::add(start, &place, &mut launch)?;
        Ok(launch)
    }

    fn open(&self, place: &Place<'_>, session: &str) -> Option<Result<Interactive, String>> {
        let full = place.program.permissions == Permissions::Full;
        Some(Interactive::of(self, place, &["--resume", session]).map(|mut open| {
            if full {
                // The same as for its agent: otherwise it asks whether the folder is trusted, and loads the session twice.
                open.env.insert("GEMINI_CLI_TRUST_WORKSPACE".into(), "true".into());
            }
            open.and(full.then_some("--yolo")).and(place.program.args.iter().map(String::as_str))
        }))
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(reader::GeminiReader::default())
    }

    fn transcript(&self, place: &Place<'_>, session: &str) -> Option<PathBuf> {
        let short = session.get(..8)?;
        let projects = std::fs::read_dir(home::of(place)?.join("tmp")).ok()?;
        let chats = projects.take(PROJECTS_MAX).flatten().map(|project| project.path().join("chats"));
        let files =
            chats.filter_map(|dir| std::fs::read_dir(dir).ok()).flat_map(|dir| dir.take(PROJECTS_MAX).flatten());
        let suffix = format!("-{short}.jsonl");
        files
            .filter(|file| file.file_name().to_string_lossy().ends_with(&suffix))
            .filter(|file| header_names(&file.path(), session))
            // A session that was resumed in a different minute leaves a second file that contains only a header.
            .max_by_key(|file| file.metadata().map_or(0, |found| found.len()))
            .map(|file| file.path())
    }

    fn history(&self, record: &Record<'_>) -> History {
        history::history(record)
    }

    fn hook_answer(&self, asked: &str, text: &str) -> Option<String> {
        let asked: Value = serde_json::from_str(asked).ok()?;
        with_words(up_to_summary(&asked)?, text)
    }

    fn hook_compaction(&self, asked: &str) -> Option<Compaction> {
        let asked: Value = serde_json::from_str(asked).ok()?;
        let messages = asked.pointer("/llm_request/messages")?.as_array()?.len();
        Some(Compaction { summary: Value::Array(up_to_summary(&asked)?).to_string(), messages })
    }

    fn ladder(&self, grace_ms: u64) -> Vec<Rung> {
        // Either signal ends it at once with code 0 and without a last line; its shell tools survive and are left to the
        // shim.
        vec![Rung { signal: StopSignal::Term, grace_ms }, Rung { signal: StopSignal::Int, grace_ms }]
    }

    fn login(&self, place: &Place<'_>) -> Option<String> {
        place.login_by(&LOGIN_VARS).or_else(|| {
            let home = home::of(place)?;
            let file = LOGIN_FILES.iter().map(|name| home.join(name)).find(|file| file.is_file())?;
            Some(format!("by {}", file.display()))
        })
    }
}

/// The messages of a request up to the summary that replaced the history; `None` if there is no summary.
fn up_to_summary(asked: &Value) -> Option<Vec<Value>> {
    let messages = asked.pointer("/llm_request/messages")?.as_array()?;
    let holds = |message: &&Value| message["content"].as_str().is_some_and(|content| content.contains(SNAPSHOT));
    let at = messages.iter().rposition(|message| message["role"] == "user" && holds(&message))?;
    Some(messages.get(..=at)?.to_vec())
}

/// What a hook prints so that the words appear below that summary. Only the messages up to the summary are returned: the
/// program keeps the rest of the request as it is.
fn with_words(mut kept: Vec<Value>, words: &str) -> Option<String> {
    let content = kept.last()?["content"].as_str()?;
    let content = format!("{content}\n\n{words}");
    kept.last_mut()?["content"] = Value::String(content);
    let answer = json!({"hookEventName": "BeforeModel", "llm_request": {"messages": kept}});
    Some(json!({ "hookSpecificOutput": answer }).to_string())
}

/// Whether a transcript's first line says that it belongs to a session.
fn header_names(path: &Path, session: &str) -> bool {
    use std::io::Read;
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(HEADER_BYTES as u64).read_to_end(&mut head));
    let text = String::from_utf8_lossy(&head);
    let header = text.lines().next().and_then(|line| serde_json::from_str::<Value>(line).ok());
    read.is_ok() && header.is_some_and(|header| header["sessionId"] == session)
}

/// Escapes at signs: the program reads `@name` in a prompt as a file to include, even in the middle of a log.
fn without_mentions(prompt: &str) -> String {
    if !prompt.contains('@') {
        return prompt.to_owned();
    }
    let mut text = String::with_capacity(prompt.len() + 128);
    let mut before = ' ';
    for letter in prompt.chars() {
        if letter == '@' && before != '\\' {
            text.push('\\');
        }
        text.push(letter);
        before = letter;
    }
    text.push_str(MENTIONS_NOTE);
    text
}

/// Added below a prompt whose at signs were escaped.
const MENTIONS_NOTE: &str = "\n\n(In this message \\@ stands for a plain at sign.)\n";
