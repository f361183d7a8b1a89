//! `rekindle __context`: the notice for an agent after its context was compacted, in the form that its program's hooks
//! expect. Whatever goes wrong, it prints nothing and exits with 0 in time: a hook must never break an agent.

mod steady;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use rekindle_engine::agents::{self, Compaction, KINDS, Kind};

use crate::client::{Agent, AttemptVariables};
use crate::project::Project;

/// The hidden subcommand.
pub(crate) const COMMAND: &str = "__context";

/// The longest that an agent's program waits for a hook, as far as we configure it.
const BOUND: Duration = Duration::from_secs(12);

/// How long to wait for a coordinator before the text written at the launch is used.
const COORDINATOR_PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait for the hook's input; if there is any, it is there at once.
const INPUT_PATIENCE: Duration = Duration::from_millis(500);

/// Longest input of a hook: a tool's result may be part of it.
const INPUT_MAX_BYTES: u64 = 16 << 20;

/// Longest text of the launch; a longer file is not ours.
const FILE_MAX_BYTES: u64 = 64 << 10;

/// The directory of the adapter's files in a bundle; the text written at the launch is one of them.
const OWN_DIR: &str = agents::OWN_DIR;

/// The text written at the launch.
const FILE: &str = agents::CONTEXT_FILE;

/// The requested output form.
enum Format {
    /// What the hook of a kind of agent prints.
    Hook(Kind),
    /// The plain text, unchanged until the next compaction.
    Plain {
        /// Identifies the compaction.
        since: String,
    },
}

/// A text, by its source.
pub(crate) enum Text {
    /// From the coordinator.
    Asked(String),
    /// It was written at the launch.
    OfLaunch(String),
}

impl Text {
    fn into_words(self) -> String {
        match self {
            Self::Asked(text) | Self::OfLaunch(text) => text,
        }
    }
}

pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
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
    let (mut format, mut bundle, mut given) = (None, None, String::new());
    let mut arguments = arguments;
    while let Some(name) = arguments.next() {
        let value = arguments.next()?;
        match name.to_str()? {
            "--format" => {
                format = Some(match value.to_str()? {
                    "plain" => Format::Plain { since: String::new() },
                    kind => Format::Hook(KINDS.of(kind)?),
                });
            }
            "--bundle" => bundle = Some(PathBuf::from(value)),
            "--since" => given = value.into_string().ok()?,
            _ => return None,
        }
    }
    if let Some(Format::Plain { since }) = &mut format {
        *since = given;
    }
    Some((format?, bundle?))
}

fn output(format: Format, bundle: &Path) -> Option<String> {
    match format {
        Format::Plain { since } => {
            let since = Compaction { summary: since, messages: 0 };
            steady::of(bundle, &since, || text(bundle))
        }
        Format::Hook(adapter) => {
            let asked = hook_input().unwrap_or_default();
            // Do not bother the coordinator when there is nothing to say: some hooks fire before every request.
            adapter.hook_answer(&asked, "")?;
            let text = match adapter.hook_compaction(&asked) {
                Some(since) => steady::of(bundle, &since, || text(bundle))?,
                None => text(bundle)?.into_words(),
            };
            adapter.hook_answer(&asked, &text)
        }
    }
}

/// The coordinator's text; without a coordinator, the text written at the launch.
fn text(bundle: &Path) -> Option<Text> {
    let told = AttemptVariables::of(Some(bundle));
    let place = Project::find(None).map_or_else(|_| bundle.to_owned(), |project| project.state_dir);
    let some = |text: &String| !text.trim().is_empty();
    let asked = Agent::told(&told, &place).and_then(|agent| agent.context(COORDINATOR_PATIENCE).ok()).filter(some);
    let of_launch = || read_bounded(&bundle.join(OWN_DIR).join(FILE)).filter(some).map(Text::OfLaunch);
    asked.map(Text::Asked).or_else(of_launch)
}

fn read_bounded(path: &Path) -> Option<String> {
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(FILE_MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// What the program passes to its hook, if it arrives in time.
fn hook_input() -> Option<String> {
    let (give, take) = sync_channel(1);
    let work = move || {
        let mut bytes = Vec::new();
        let _whole = std::io::stdin().lock().take(INPUT_MAX_BYTES).read_to_end(&mut bytes);
        let _too_late = give.send(bytes);
    };
    std::thread::Builder::new().name("hook input".to_owned()).spawn(work).ok()?;
    match take.recv_timeout(INPUT_PATIENCE) {
        Ok(bytes) => String::from_utf8(bytes).ok(),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
    }
}
