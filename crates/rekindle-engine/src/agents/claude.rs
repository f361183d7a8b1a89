//! Claude Code: its command line, where it keeps its sessions, how it is logged in. What its stream means is in
//! `claude/stream`.
//!
//! It runs headless with lines of JSON in both directions, so that it takes messages while it works. Rekindle's MCP server,
//! the hook and the permission for its own tools are passed by flags and by files in the bundle: nothing is written into the
//! user's repository or home, and the user's own settings, hooks and MCP servers stay as they are.

mod guard;
mod history;
mod settings;
mod stream;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use rekindle_core::activity::History;
use rekindle_core::limits::Traits;
use rekindle_shim::bundle::Stdin;
use serde_json::json;

use super::history::Record;
use super::interactive::Interactive;
use super::{About, Adapter, Launch, Permissions, Place, Program, Reader, Start, hook_events, quote};

/// The name in `kind = "…"`.
pub const KIND: &str = "claude";

/// The flag for settings. The program uses only the last one, so an operator's own flag overrides ours.
const SETTINGS_FLAG: &str = "--settings";

/// A tool call may last a day: `task_done` runs the checks of a task before it answers.
const TOOL_TIMEOUT_MS: u64 = 24 * 60 * 60 * 1000;

/// Seconds the hook may take: it reads one file and asks the coordinator.
const HOOK_TIMEOUT_S: u64 = 30;

/// Variables that tell the program that it was started from within itself; an agent is not part of the session in which
/// rekindle was started.
const NESTED: [&str; 4] = ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT"];

/// If set, the program itself waits for its allowance (2.1.234 on). Rekindle waits instead: it knows every agent on the
/// account, remembers the reset across a crash, and lets others work meanwhile. Empty, because any other value might count
/// as set.
const OWN_WAIT: &str = "CLAUDE_CODE_RETRY_WATCHDOG";

/// Variables that log it in, in the order in which they are shown.
const LOGIN_VARS: [&str; 6] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
];

/// Session directories that are searched for a session that is not in its usual place; a user has one per working directory.
const MAX_PROJECTS: usize = 10_000;

pub struct Claude;

static ABOUT: About = About {
    program: Some("claude"),
    install_hint: Some("npm install -g @anthropic-ai/claude-code"),
    tried_up_to: Some("2.1.325"),
    keeps_transcript: true,
    login_hint: "run `claude` and log in, or set ANTHROPIC_API_KEY",
    guard_adapter: Some(&Claude),
    hook_installer: Some(&Claude),
    ..About::new(KIND)
};

impl Adapter for Claude {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn traits(&self, program: &Program) -> Traits {
        Traits { takes_messages: true, reinjects: !has_own_settings(program), ..program.session_traits(KIND) }
    }

    fn start(&self, start: &Start<'_>) -> Result<Launch, String> {
        let mut argv = start.program_words(self)?;
        let fixed = "-p --output-format stream-json --verbose --input-format stream-json";
        argv.extend(fixed.split(' ').map(str::to_owned));
        match start.resume {
            Some(session) => argv.extend(["--resume".to_owned(), session.to_owned()]),
            None => argv.extend(["--session-id".to_owned(), start.new_session.to_owned()]),
        }
        if let Some(model) = &start.program.model {
            argv.extend(["--model".to_owned(), model.clone()]);
        }
        let full = start.program.permissions == Permissions::Full;
        if full {
            argv.push("--dangerously-skip-permissions".to_owned());
        }
        // Flags that take several values come last, and each starts with its own name, so that none can swallow what
        // follows.
        argv.extend(start.program.args.iter().cloned());
        let own = |name: &str| start.own_dir().join(name).to_string_lossy().into_owned();
        if !has_own_settings(start.program) {
            argv.extend([SETTINGS_FLAG.to_owned(), own(SETTINGS)]);
        }
        argv.extend(["--mcp-config".to_owned(), own(MCP)]);
        argv.extend(["--allowedTools".to_owned(), "mcp__rekindle".to_owned()]);

        let mut launch = Launch::new(argv, Stdin::Lines, user_line(start.prompt));
        launch.env_remove = NESTED.map(str::to_owned).into();
        launch.env.insert(OWN_WAIT.to_owned(), String::new());
        // As root the program refuses to skip permissions unless told that it is in a sandbox. The operator has asked for full
        // permissions and runs as root: without this nothing would start.
        if full && rustix::process::geteuid().is_root() {
            launch.env.insert("IS_SANDBOX".to_owned(), "1".to_owned());
        }
        launch.files.insert(MCP.to_owned(), mcp_config(start));
        if !has_own_settings(start.program) {
            launch.files.insert(SETTINGS.to_owned(), settings(start));
        }
        Ok(launch)
    }

    fn open(&self, place: &Place<'_>, session: &str) -> Option<Result<Interactive, String>> {
        Some(Interactive::of(self, place, &["--resume", session]).map(|mut open| {
            open.env_remove = NESTED.map(str::to_owned).into();
            let full = place.program.permissions == Permissions::Full;
            if full && rustix::process::geteuid().is_root() {
                open.env.insert("IS_SANDBOX".to_owned(), "1".to_owned());
            }
            open.and(full.then_some("--dangerously-skip-permissions"))
                .and(place.program.args.iter().map(String::as_str))
        }))
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<stream::Stream>::default()
    }

    fn transcript(&self, place: &Place<'_>, session: &str) -> Option<PathBuf> {
        if session.is_empty() || session.contains('/') {
            return None;
        }
        let projects = config_dir(place)?.join("projects");
        let name = format!("{session}.jsonl");
        let workspace = place.workspace.canonicalize().unwrap_or_else(|_| place.workspace.to_path_buf());
        let usual = projects.join(slug(&workspace)).join(&name);
        if usual.is_file() {
            return Some(usual);
        }
        // The program shortens the directory name of a long path; the session's file name is unique.
        let dirs = std::fs::read_dir(&projects).ok()?;
        dirs.take(MAX_PROJECTS).flatten().map(|dir| dir.path().join(&name)).find(|path| path.is_file())
    }

    fn history(&self, record: &Record<'_>) -> History {
        history::history(record)
    }

    fn hook_answer(&self, asked: &str, text: &str) -> Option<String> {
        hook_events::session_start_answer(asked, text)
    }

    fn message(&self, text: &str) -> Option<String> {
        Some(user_line(text))
    }

    fn login(&self, place: &Place<'_>) -> Option<String> {
        place.login_by(&LOGIN_VARS).or_else(|| login_by_file(place))
    }
}

/// The configuration of the MCP server, in the bundle.
const MCP: &str = "mcp.json";

/// The settings with the hook, in the bundle.
const SETTINGS: &str = "settings.json";

fn has_own_settings(program: &Program) -> bool {
    let given = |word: &String| word == SETTINGS_FLAG || word.starts_with("--settings=");
    program.args.iter().chain(&program.command).any(given)
}

/// A message as one line of JSON, in the program's input format.
fn user_line(text: &str) -> String {
    json!({"type": "user", "message": {"role": "user", "content": text}}).to_string()
}

fn mcp_config(start: &Start<'_>) -> String {
    let command = start.mcp_command();
    let server = json!({
        "command": command[0],
        "args": command[1..],
        "timeout": TOOL_TIMEOUT_MS,
        // Never hidden behind a tool search, however many other tools there are.
        "alwaysLoad": true,
    });
    json!({"mcpServers": {"rekindle": server}}).to_string()
}

fn settings(start: &Start<'_>) -> String {
    let command = quote::shell(&start.context_command(KIND));
    let hook = json!({"type": "command", "command": command, "timeout": HOOK_TIMEOUT_S});
    // Overrides the user's own settings, which may set it as well.
    let env = json!({OWN_WAIT: ""});
    json!({"env": env, "hooks": {"SessionStart": [{"matcher": "compact", "hooks": [hook]}]}}).to_string()
}

fn config_dir(place: &Place<'_>) -> Option<PathBuf> {
    let own = place.set("CLAUDE_CONFIG_DIR").map(|dir| place.workspace.join(dir));
    own.or_else(|| Some(PathBuf::from(place.var("HOME")?).join(".claude")))
}

/// The directory of a workspace's sessions: its path with every character except letters and digits replaced.
fn slug(workspace: &Path) -> String {
    let keep = |char: char| if char.is_ascii_alphanumeric() { char } else { '-' };
    workspace.to_string_lossy().chars().map(keep).collect()
}

fn login_by_file(place: &Place<'_>) -> Option<String> {
    let dir = config_dir(place)?;
    let credentials = dir.join(".credentials.json");
    if credentials.is_file() {
        return Some(format!("by {}", credentials.display()));
    }
    let settings = dir.join("settings.json");
    let text = std::fs::read_to_string(&settings).ok()?;
    let value: serde_json::Value = serde_json::from_str(&text).ok()?;
    value.get("apiKeyHelper")?.as_str().map(|_| format!("by apiKeyHelper of {}", settings.display()))
}
