//! Codex: its command line, where it keeps its sessions, how it is logged in. What its lines mean is in `codex/stream` (its
//! output) and `codex/rollout` (the transcript, the only source for compactions, context and the class of a failure).
//!
//! The whole command line is passed again when a session is resumed: the program remembers neither sandbox nor approvals, so
//! the options of the first start must be repeated, no more and no less; where rekindle passes nothing, both follow the
//! user's own configuration. Only the hook itself is trusted, by its hash: the flag that trusts hooks would also run
//! whatever hooks a repository brings.

mod guard;
mod history;
mod hook;
mod rollout;
mod settings;
mod stream;
#[cfg(test)]
mod tests;
mod vendor;

use std::path::PathBuf;

use rekindle_core::activity::History;
use rekindle_core::limits::Traits;
use rekindle_shim::bundle::Stdin;

use super::history::Record;
use super::interactive::Interactive;
use super::{About, Adapter, Launch, Permissions, Place, Program, Reader, Start, hook_events, quote};

/// The name in `kind = "…"`.
pub const KIND: &str = "codex";

/// Seconds a tool call may last, a day: `task_done` runs the checks of a task before it answers.
const TOOL_TIMEOUT_S: u64 = 24 * 60 * 60;

/// Seconds the MCP server may take to start on a machine that is busy with other agents.
const MCP_START_S: u64 = 60;

/// Variables that log it in, in the order in which they are shown.
const LOGIN_VARS: [&str; 2] = ["CODEX_API_KEY", "CODEX_ACCESS_TOKEN"];

pub struct Codex;

static ABOUT: About = About {
    program: Some("codex"),
    install_hint: Some("npm install -g @openai/codex"),
    tried_up_to: Some("0.166.0"),
    keeps_transcript: true,
    login_hint: "run `codex login`, or set CODEX_API_KEY",
    guard_adapter: Some(&Codex),
    hook_installer: Some(&Codex),
    ..About::new(KIND)
};

impl Adapter for Codex {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn traits(&self, program: &Program) -> Traits {
        program.session_traits(KIND)
    }

    fn start(&self, start: &Start<'_>) -> Result<Launch, String> {
        let mut argv = start.program_words(self)?;
        argv.push("exec".to_owned());
        // The operator's arguments come first: some of the program's flags take several values, ours do not.
        argv.extend(start.program.args.iter().cloned());
        argv.extend(["--json", "--skip-git-repo-check"].map(str::to_owned));
        if let Some(model) = &start.program.model {
            argv.extend(["--model".to_owned(), model.clone()]);
        }
        if start.program.permissions == Permissions::Full {
            argv.push("--dangerously-bypass-approvals-and-sandbox".to_owned());
        }
        for setting in mcp_settings(start).into_iter().chain(hook::settings(&start.context_command(KIND))) {
            argv.extend(["--config".to_owned(), setting]);
        }
        if let Some(session) = start.resume {
            argv.extend(["resume".to_owned(), session.to_owned()]);
        }
        argv.push("-".to_owned());
        Ok(Launch::new(argv, Stdin::File, start.prompt))
    }

    fn open(&self, place: &Place<'_>, session: &str) -> Option<Result<Interactive, String>> {
        let full = place.program.permissions == Permissions::Full;
        Some(Interactive::of(self, place, &["resume"]).map(|open| {
            let open = open.and(full.then_some("--dangerously-bypass-approvals-and-sandbox"));
            open.and(place.program.args.iter().map(String::as_str)).and([session])
        }))
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<stream::Stream>::default()
    }

    fn transcript(&self, place: &Place<'_>, session: &str) -> Option<PathBuf> {
        rollout::find(&home(place)?.join("sessions"), session)
    }

    fn history(&self, record: &Record<'_>) -> History {
        history::history(record)
    }

    fn hook_answer(&self, asked: &str, text: &str) -> Option<String> {
        hook_events::session_start_answer(asked, text)
    }

    fn native(&self, found: PathBuf) -> PathBuf {
        vendor::native(found)
    }

    fn login(&self, place: &Place<'_>) -> Option<String> {
        place.login_by(&LOGIN_VARS).or_else(|| login_by_file(place))
    }
}

/// The MCP server. Its one tool is approved, and offered directly instead of behind a tool search. Only one, because the
/// program adds three tools of its own for the resources of servers, whether a server has resources or not.
fn mcp_settings(start: &Start<'_>) -> Vec<String> {
    let mut command = start.mcp_command();
    command.push("--one-tool".to_owned());
    let server = "mcp_servers.rekindle";
    vec![
        format!("{server}.command={}", quote::toml(&command[0])),
        format!("{server}.args={}", quote::toml_list(&command[1..])),
        format!("{server}.default_tools_approval_mode=\"approve\""),
        format!("{server}.tool_timeout_sec={TOOL_TIMEOUT_S}"),
        format!("{server}.startup_timeout_sec={MCP_START_S}"),
        "features.code_mode.direct_only_tool_namespaces=[\"mcp__rekindle\"]".to_owned(),
    ]
}

/// Where the program keeps its configuration and its sessions.
fn home(place: &Place<'_>) -> Option<PathBuf> {
    let own = place.set("CODEX_HOME").map(|dir| place.workspace.join(dir));
    own.or_else(|| Some(PathBuf::from(place.var("HOME")?).join(".codex")))
}

fn login_by_file(place: &Place<'_>) -> Option<String> {
    let home = home(place)?;
    let auth = home.join("auth.json");
    if auth.is_file() {
        return Some(format!("by {}", auth.display()));
    }
    // A custom provider of the user names the variable that holds its key.
    let config = home.join("config.toml");
    let text = std::fs::read_to_string(&config).ok()?;
    let named = |line: &str| {
        let value = line.trim().strip_prefix("env_key")?.trim_start().strip_prefix('=')?.trim();
        Some(value.trim_matches(['"', '\'']).to_owned())
    };
    let name = text.lines().filter_map(named).find(|name| place.set(name).is_some())?;
    Some(format!("by {name} of {}", config.display()))
}
