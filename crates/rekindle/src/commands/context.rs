//! `rekindle __context`: what an agent has to be told after its context was compacted, in the form that its program's
//! hooks take. Whatever goes wrong, it prints nothing, ends with 0 and in time: a hook must never break an agent.

mod compressions;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Agent, Told};
use crate::project::Project;

/// The hidden subcommand.
pub const COMMAND: &str = "__context";

/// What an agent's program waits for a hook at most, as far as we ask for it.
const BOUND: Duration = Duration::from_secs(5);

/// How long a coordinator is waited for before the text of the launch is taken.
const COORDINATOR_PATIENCE: Duration = Duration::from_secs(2);

/// How long the hook's input is waited for; it is there at once where there is one.
const INPUT_PATIENCE: Duration = Duration::from_millis(500);

/// Longest input of a hook: a tool's result may be part of it.
const INPUT_MAX_BYTES: u64 = 16 << 20;

/// Longest text of the launch; a longer file is not ours.
const FILE_MAX_BYTES: u64 = 64 << 10;

/// Where the adapter's files lie in a bundle, and the text written at the launch among them.
const OWN_DIR: &str = rekindle_engine::agents::OWN_DIR;

/// The text written at the launch.
const FILE: &str = rekindle_engine::agents::CONTEXT_FILE;

/// The form that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// A hook that fires after a compaction.
    AfterCompaction,
    /// A hook that fires at other times too, so that it must be found out whether there was one.
    Compressions,
    /// Just the text.
    Plain,
}

/// Prints it.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Some((format, bundle)) = read(arguments) else { return ExitCode::SUCCESS };
    let (give, take) = sync_channel(1);
    let work = move || {
        let _too_late = give.send(output(format, &bundle));
    };
    if std::thread::Builder::new().name("context".to_owned()).spawn(work).is_ok()
        && let Ok(Some(text)) = take.recv_timeout(BOUND)
    {
        let mut out = std::io::stdout().lock();
        let _unheard = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
    ExitCode::SUCCESS
}

fn read(arguments: impl Iterator<Item = OsString>) -> Option<(Format, PathBuf)> {
    let (mut format, mut bundle) = (None, None);
    let mut arguments = arguments;
    while let Some(name) = arguments.next() {
        let value = arguments.next()?;
        match name.to_str()? {
            "--format" => {
                format = Some(match value.to_str()? {
                    "claude" | "codex" => Format::AfterCompaction,
                    "gemini" => Format::Compressions,
                    "plain" => Format::Plain,
                    _ => return None,
                });
            }
            "--bundle" => bundle = Some(PathBuf::from(value)),
            _ => return None,
        }
    }
    Some((format?, bundle?))
}

fn output(format: Format, bundle: &Path) -> Option<String> {
    match format {
        Format::Plain => text(bundle),
        Format::AfterCompaction => {
            // Only where the hook says that something else happened is there nothing to tell.
            let source = hook_input().and_then(|input| input["source"].as_str().map(str::to_owned));
            if source.is_some_and(|source| source != "compact") {
                return None;
            }
            text(bundle).map(|text| as_hook("SessionStart", &text))
        }
        Format::Compressions => {
            let input = hook_input()?;
            let event = input["hook_event_name"].as_str()?;
            let seen = compressions::since_last(&bundle.join(OWN_DIR), Path::new(input["transcript_path"].as_str()?))?;
            // A session that begins has its prompt: what was compressed before it is not news.
            let text = if event == "SessionStart" { None } else { text(bundle).filter(|_| seen.is_new()) };
            if event == "SessionStart" || text.is_some() {
                seen.remember();
            }
            text.map(|text| as_hook(event, &text))
        }
    }
}

fn as_hook(event: &str, text: &str) -> String {
    let output = json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } });
    format!("{output}\n")
}

/// What the coordinator says; without one, what was written at the launch.
fn text(bundle: &Path) -> Option<String> {
    let told = Told::of(Some(bundle));
    let place = Project::find(None).map_or_else(|_| bundle.to_owned(), |project| project.state_dir);
    let asked = Agent::told(&told, &place).and_then(|agent| agent.context(COORDINATOR_PATIENCE).ok());
    asked.or_else(|| read_bounded(&bundle.join(OWN_DIR).join(FILE))).filter(|text| !text.trim().is_empty())
}

fn read_bounded(path: &Path) -> Option<String> {
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(FILE_MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// What the program says about its hook, if it says it in time.
fn hook_input() -> Option<Value> {
    let (give, take) = sync_channel(1);
    let work = move || {
        let mut bytes = Vec::new();
        let _whole = std::io::stdin().lock().take(INPUT_MAX_BYTES).read_to_end(&mut bytes);
        let _too_late = give.send(bytes);
    };
    std::thread::Builder::new().name("hook input".to_owned()).spawn(work).ok()?;
    match take.recv_timeout(INPUT_PATIENCE) {
        Ok(bytes) => serde_json::from_slice(&bytes).ok(),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
    }
}
