//! opencode: how it is started, resumed and examined. What its lines mean is in `reader`; what its output does not show is
//! reported by a plugin of ours, `rekindle.js`, which also puts the task's state back into its context after a compaction.
//!
//! Tools and plugin are passed in a variable, so neither the user's files nor the user's configuration directory is touched.

mod failure;
mod guard;
mod reader;
mod settings;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use rekindle_core::activity::History;
use rekindle_core::limits::Traits;
use rekindle_shim::bundle::Stdin;
use serde_json::{Map, Value, json};

use super::foreign::json_object;
use super::history::Record;
use super::interactive::Interactive;
use super::{About, Adapter, Launch, Permissions, Place, Program, Reader, Start};

/// The name in `kind = "…"`.
pub const KIND: &str = "opencode";

/// The variable with configuration that overrides every file.
const CONTENT: &str = "OPENCODE_CONFIG_CONTENT";

/// The plugin, with a placeholder for the command that prints the task's state.
const PLUGIN: &str = include_str!("opencode/rekindle.js");

/// The placeholder for the command in the plugin.
const PLUGIN_COMMAND: &str = "[\"__CONTEXT__\"]";

/// The plugin's file under `agent/`.
const PLUGIN_FILE: &str = "rekindle.js";

/// How long a call of rekindle's tools may take: a check may run as long as its task has time, so in effect no limit. A day fits
/// into the program's timers; its own limit is a minute.
const CALL_MS: u64 = 24 * 60 * 60 * 1000;

/// Variables with a provider's key that make the program usable without a login; there are more, and a file may name others.
const KEYS: [&str; 8] = [
    "OPENCODE_API_KEY",
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "GROQ_API_KEY",
    "GITHUB_TOKEN",
];

pub struct Opencode;

static ABOUT: About = About {
    program: Some("opencode"),
    install_hint: Some("npm install -g opencode-ai"),
    tried_up_to: Some("1.18.33"),
    login_hint: "run `opencode auth login`, or set the key of a provider, such as ANTHROPIC_API_KEY",
    guard_adapter: Some(&Opencode),
    hook_installer: Some(&Opencode),
    ..About::new(KIND)
};

impl Adapter for Opencode {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn traits(&self, program: &Program) -> Traits {
        program.session_traits(KIND)
    }

    fn start(&self, start: &Start<'_>) -> Result<Launch, String> {
        let place = Place { program: start.program, workspace: start.workspace, bundle: start.bundle };
        let special = |word: &String| word.contains("{file:") || word.contains("{env:");
        if start.mcp_command().iter().any(special) {
            let place = start.bundle.display();
            return Err(format!(
                "opencode replaces `{{file:…}}` and `{{env:…}}` in paths: move the project out of {place}"
            ));
        }
        let mut argv = start.program_words(self)?;
        argv.extend(["run", "--format", "json"].map(str::to_owned));
        if let Some(model) = &start.program.model {
            argv.extend(["--model".to_owned(), model.clone()]);
        }
        if let Some(session) = start.resume {
            argv.extend(["--session".to_owned(), session.to_owned()]);
        }
        if start.program.permissions == Permissions::Full {
            argv.push("--auto".into());
        }
        argv.extend(start.program.args.iter().cloned());
        let mut launch = Launch::new(argv, Stdin::File, start.prompt);
        let theirs = place.var(CONTENT).unwrap_or_default();
        let theirs =
            json_object(&theirs).ok_or_else(|| format!("{CONTENT} is not a JSON object: correct or unset it"))?;
        launch.env.insert(CONTENT.into(), Value::Object(with_ours(theirs, start)).to_string());
        let command = Value::from(start.context_command("plain")).to_string();
        launch.files.insert(PLUGIN_FILE.into(), PLUGIN.replace(PLUGIN_COMMAND, &command));
        Ok(launch)
    }

    fn open(&self, place: &Place<'_>, session: &str) -> Option<Result<Interactive, String>> {
        let opened = Interactive::of(self, place, &["--session", session]);
        Some(opened.map(|open| open.and(place.program.args.iter().map(String::as_str))))
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(reader::OpencodeReader::default())
    }

    fn history(&self, _record: &Record<'_>) -> History {
        // Its database records a call before it runs and a result before it is printed; a call without a result is shown as
        // interrupted.
        History::ShowsAll
    }

    fn native(&self, found: PathBuf) -> PathBuf {
        native(&found).unwrap_or(found)
    }

    fn login(&self, place: &Place<'_>) -> Option<String> {
        login(place)
    }
}

/// The operator's own configuration with rekindle's tools and plugin added.
fn with_ours(mut content: Map<String, Value>, start: &Start<'_>) -> Map<String, Value> {
    let mut servers = match content.remove("mcp") {
        Some(Value::Object(servers)) => servers,
        _ => Map::new(),
    };
    let server = json!({"type": "local", "command": start.mcp_command(), "enabled": true, "timeout": CALL_MS});
    servers.insert("rekindle".into(), server);
    content.insert("mcp".into(), servers.into());

    let mut rules = match content.remove("permission") {
        Some(Value::Object(rules)) => rules,
        Some(Value::String(all)) => Map::from_iter([("*".to_owned(), Value::from(all))]),
        _ => Map::new(),
    };
    // Its own tools are always allowed: without them it could not even report that something was not allowed.
    rules.insert("rekindle_*".into(), "allow".into());
    content.insert("permission".into(), rules.into());

    let mut plugins = match content.remove("plugin") {
        Some(Value::Array(plugins)) => plugins,
        _ => Vec::new(),
    };
    plugins.push(file_url(&start.own_dir().join(PLUGIN_FILE)).into());
    content.insert("plugin".into(), plugins.into());
    content
}

/// A path as a `file:` address.
fn file_url(path: &Path) -> String {
    use std::fmt::Write;
    use std::os::unix::ffi::OsStrExt;
    let mut url = String::from("file://");
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(byte) {
            url.push(char::from(*byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
    }
    url
}

/// The program itself, if a script of its npm package would start it: one process less that could be orphaned.
fn native(found: &Path) -> Option<PathBuf> {
    use std::io::Read;
    let real = found.canonicalize().ok()?;
    let mut head = [0; 2];
    std::fs::File::open(&real).and_then(|mut file| file.read_exact(&mut head)).ok()?;
    if &head != b"#!" {
        return None;
    }
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let folders: Vec<PathBuf> = real.ancestors().skip(1).map(|dir| dir.join("node_modules")).collect();
    // The builds with the lowest requirements on the processor and the system's library come last.
    ["", "-baseline", "-musl", "-baseline-musl"]
        .iter()
        .filter(|flavour| runs(flavour))
        .flat_map(|flavour| {
            folders.iter().map(move |dir| dir.join(format!("opencode-{system}-{machine}{flavour}/bin/opencode")))
        })
        .find(|path| super::is_executable(path))
}

/// Whether this processor can run a flavour of the program; the plain one needs AVX2.
fn runs(flavour: &str) -> bool {
    #[cfg(target_arch = "x86_64")]
    return flavour.contains("baseline") || std::arch::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    return !flavour.contains("baseline");
}

/// How it is logged in, in words.
fn login(place: &Place<'_>) -> Option<String> {
    let folder = |variable: &str, usual: &str| {
        let home = || Some(Path::new(&place.set("HOME")?).join(usual));
        Some(place.set(variable).map(PathBuf::from).or_else(home)?.join("opencode"))
    };
    let file = folder("XDG_DATA_HOME", ".local/share")?.join("auth.json");
    let names = std::fs::read_to_string(&file).ok().and_then(|text| json_object(&text)).unwrap_or_default();
    if !names.is_empty() {
        let names: Vec<&str> = names.keys().map(String::as_str).collect();
        return Some(format!("for {} by {}", names.join(", "), file.display()));
    }
    if let Some(login) = place.login_by(&KEYS) {
        return Some(login);
    }
    let files = [place.workspace.to_owned(), folder("XDG_CONFIG_HOME", ".config")?];
    let files = files.iter().flat_map(|dir| [dir.join("opencode.json"), dir.join("opencode.jsonc")]);
    let names_provider = |file: &PathBuf| {
        let settings = std::fs::read_to_string(file).ok().and_then(|text| json_object(&text));
        settings.is_some_and(|settings| settings.get("provider").is_some_and(Value::is_object))
    };
    files.into_iter().find(names_provider).map(|file| format!("by the provider in {}", file.display()))
}
