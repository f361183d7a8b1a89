//! The home directory of one attempt's agent: the user's settings with rekindle's tools, hook and retention added, and links
//! to everything else, so that logins, trust and sessions stay where they are. The user's own files are only read.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::agents::foreign::json_object;
use crate::agents::{Launch, Place, Start, quote};

/// The variable that says where the program's home is.
const HOME: &str = "GEMINI_CLI_HOME";

/// The program's folder in a home.
const FOLDER: &str = ".gemini";

/// The file in that folder that is written instead of linked.
const SETTINGS: &str = "settings.json";

/// How long a call of rekindle's tools may take: a check may run as long as its task has time, so in effect no limit. A day fits
/// into the program's timers.
const CALL_MS: u64 = 24 * 60 * 60 * 1000;

/// How long the hook may take before the program continues without it; it is not worth stopping the agent for longer.
const HOOK_MS: u64 = 15_000;

/// Most entries of a home that are linked; a home has about twenty.
const ENTRIES_MAX: usize = 1024;

/// The user's own folder.
pub(super) fn of(place: &Place<'_>) -> Option<PathBuf> {
    base(place).map(|home| home.join(FOLDER))
}

fn base(place: &Place<'_>) -> Option<PathBuf> {
    place.set(HOME).or_else(|| place.set("HOME")).map(PathBuf::from)
}

/// Adds the home to a launch. Fails when the user's home or settings cannot be read.
pub(super) fn add(start: &Start<'_>, place: &Place<'_>, launch: &mut Launch) -> Result<(), String> {
    let base = base(place).ok_or("HOME is not set: the agent's own settings cannot be found")?;
    let folder = base.join(FOLDER);
    // The directory of sessions must exist before it can be linked; the program would create it at its first start.
    std::fs::create_dir_all(folder.join("tmp"))
        .map_err(|error| format!("cannot make {}: {error}", folder.join("tmp").display()))?;
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    for entry in entries.take(ENTRIES_MAX).flatten() {
        let name = entry.file_name();
        if let Some(name) = name.to_str().filter(|name| *name != SETTINGS) {
            launch.links.insert(format!("home/{FOLDER}/{name}"), entry.path());
        }
    }
    for name in [".agents", ".env"] {
        let path = base.join(name);
        if path.exists() {
            launch.links.insert(format!("home/{name}"), path);
        }
    }
    let file = folder.join(SETTINGS);
    let theirs = match std::fs::read_to_string(&file) {
        Ok(text) => json_object(&text).ok_or_else(|| format!("{} is not a JSON object: correct it", file.display()))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Map::new(),
        Err(error) => return Err(format!("cannot read {}: {error}", file.display())),
    };
    launch.files.insert(format!("home/{FOLDER}/{SETTINGS}"), Value::Object(with_ours(theirs, start)).to_string());
    launch.env.insert(HOME.into(), start.own_dir().join("home").to_string_lossy().into_owned());
    Ok(())
}

fn with_ours(mut settings: Map<String, Value>, start: &Start<'_>) -> Map<String, Value> {
    let mcp = start.mcp_command();
    let (command, args) = mcp.split_first().map_or((String::new(), &[][..]), |(first, rest)| (first.clone(), rest));
    let server = json!({"command": command, "args": args, "trust": true, "timeout": CALL_MS});
    within(&mut settings, "mcpServers", |servers| _ = servers.insert("rekindle".into(), server));
    // Its clean-up of old sessions also takes resumed ones that are in use.
    within(&mut settings, "general", |general| {
        within(general, "sessionRetention", |retention| _ = retention.insert("enabled".into(), false.into()));
    });
    let context = quote::shell(&start.context_command(super::KIND));
    let hook = json!({"name": "rekindle", "type": "command", "command": context, "timeout": HOOK_MS});
    let entry = json!({ "hooks": [hook] });
    within(&mut settings, "hooks", |hooks| match hooks.get_mut("BeforeModel") {
        Some(Value::Array(there)) => there.push(entry),
        _ => _ = hooks.insert("BeforeModel".into(), json!([entry])),
    });
    settings
}

/// Changes the object with this name; creates it if it is missing or not an object.
fn within(map: &mut Map<String, Value>, name: &str, change: impl FnOnce(&mut Map<String, Value>)) {
    let mut inner = match map.remove(name) {
        Some(Value::Object(inner)) => inner,
        _ => Map::new(),
    };
    change(&mut inner);
    map.insert(name.to_owned(), Value::Object(inner));
}
