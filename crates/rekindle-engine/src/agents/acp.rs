//! Any agent that speaks the Agent Client Protocol: how it is started. A bridge of ours runs in the agent's place, talks to
//! the agent's program and writes what the protocol says, one message per line; `reader` parses those lines.
//!
//! Nothing is known about the program behind the protocol, so it is assumed to do only what the protocol promises.

mod reader;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use rekindle_core::limits::Traits;
use rekindle_shim::bundle::Stdin;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{About, Adapter, Examination, Launch, Permissions, Place, Program, Reader, Start, find_program};

/// The name in `kind = "…"`.
pub const KIND: &str = "acp";

/// The hidden command that runs the bridge; its one argument is the file with its [`Setup`].
pub const BRIDGE: &str = "__acp";

/// The name of that file, under `agent/`.
const SETUP: &str = "acp.json";

/// The bridge's configuration. It contains no secret: those are in the environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The agent's program and its arguments.
    pub command: Vec<String>,
    pub cwd: PathBuf,
    /// The command that serves rekindle's tools.
    pub mcp: Vec<String>,
    /// The session to load; `None` starts a new one.
    pub resume: Option<String>,
    pub model: Option<String>,
    /// Whether every permission request is granted.
    pub full: bool,
}

pub struct Acp;

static ABOUT: About = About::new(KIND);

impl Adapter for Acp {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn traits(&self, program: &Program) -> Traits {
        // Agents of this kind may come from any number of vendors, so their accounts are distinguished by the program.
        let own = program.command.first().map_or(KIND, String::as_str).rsplit('/').next().unwrap_or(KIND);
        Traits {
            account: program.account.clone().unwrap_or_else(|| format!("{KIND}:{own}")),
            fallback: program.fallback.clone(),
            structured_output: true,
            resumes: true,
            takes_messages: true,
            mcp: true,
            ..Traits::new(KIND)
        }
    }

    fn start(&self, start: &Start<'_>) -> Result<Launch, String> {
        if start.program.command.is_empty() {
            return Err(
                "its [agents.NAME] has no `command`: write the program that speaks ACP, with its arguments".to_owned()
            );
        }
        let setup = Setup {
            command: start.program.command.iter().chain(&start.program.args).cloned().collect(),
            cwd: start.workspace.to_owned(),
            mcp: start.mcp_command(),
            resume: start.resume.map(str::to_owned),
            model: start.program.model.clone(),
            full: start.program.permissions == Permissions::Full,
        };
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let argv = vec![text(start.rekindle.to_owned()), BRIDGE.to_owned(), text(start.own_dir().join(SETUP))];
        let mut launch = Launch::new(argv, Stdin::Lines, prompt_line(start.prompt));
        let setup = serde_json::to_string(&setup).map_err(|error| format!("its setup cannot be written: {error}"))?;
        launch.files.insert(SETUP.to_owned(), setup);
        Ok(launch)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<reader::Lines>::default()
    }

    fn message(&self, text: &str) -> Option<String> {
        Some(prompt_line(text))
    }

    fn examine(&self, place: &Place<'_>) -> Examination {
        let program = place.program.command.first().and_then(|name| find_program(place, name));
        Examination {
            program,
            version_args: vec!["--version".to_owned()],
            login: None,
            login_hint: "log in with the program itself; the protocol does not tell whether that is needed".to_owned(),
        }
    }
}

/// A prompt as a line of the bridge's input.
fn prompt_line(text: &str) -> String {
    json!({ "prompt": text }).to_string()
}
