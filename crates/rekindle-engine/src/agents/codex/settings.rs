//! Where Codex's hooks are configured, at which events it calls rekindle, and what keeps hooks from running: above all
//! missing trust, which the program itself never reports.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toml::{Table, Value as Toml};

use super::super::hook_installer::{Entry, Event, Form, HookInstaller, Places, Scope, read};
use super::{Codex, hook};

/// Seconds for a hook that writes one record; it takes milliseconds, but a slow disk must not lose it.
const RECORD_S: u64 = 10;

/// Seconds for a hook that reads the session's records and assembles the recovery text.
const RECOVERY_S: u64 = 30;

/// Seconds for the last hook of a session: the program allows no more, and includes the value that it allows in the hook's
/// hash.
const END_S: u64 = 3;

/// The hook events. All tools are reported, because their names differ from version to version.
const EVENTS: &[Event] = &[
    Event::every(BEGINS, RECOVERY_S),
    Event::every("UserPromptSubmit", RECOVERY_S),
    PRE,
    Event::every("PostToolUse", RECORD_S),
    Event::every("Stop", RECORD_S),
    Event::every("SubagentStart", RECORD_S),
    Event::every("SubagentStop", RECORD_S),
    Event::every("PreCompact", RECORD_S),
    Event::every("PostCompact", RECORD_S),
    Event::every("SessionEnd", END_S),
];

/// Tools that start a helper or ask a person: what is recorded before they end survives a crash in between. A group's name
/// may precede theirs.
const PRE: Event = Event { name: "PreToolUse", matcher: Some(".*(spawn_agent|request_user_input)"), timeout: RECORD_S };

/// The event at which text may be put into the context.
const BEGINS: &str = "SessionStart";

impl HookInstaller for Codex {
    fn title(&self) -> &'static str {
        "Codex"
    }

    fn file(&self, scope: Scope, places: &Places<'_>) -> Option<PathBuf> {
        match scope {
            Scope::Local | Scope::Project => Some(places.root.join(".codex/hooks.json")),
            Scope::User => Some(home(places)?.join("hooks.json")),
        }
    }

    fn form(&self) -> Form {
        Form::Entries(EVENTS)
    }

    fn handler(&self, event: &Event, command: &str) -> Vec<(&'static str, Value)> {
        let mut fields =
            vec![("type", "command".into()), ("command", command.into()), ("timeout", event.timeout.into())];
        if [BEGINS, "UserPromptSubmit"].contains(&event.name) {
            // Without the limit of zero, a longer text is moved to a file, and the model sees only its beginning.
            fields.push(("additionalContextLimit", 0.into()));
        }
        fields
    }

    fn next(&self, _scope: Scope) -> &'static str {
        "start codex here, type /hooks and trust the hooks: until then it skips them silently"
    }

    fn troubles(&self, scope: Scope, file: &Path, entries: &[Entry], places: &Places<'_>) -> Vec<String> {
        let config = home(places).map(|home| home.join("config.toml"));
        let user = config.as_deref().map(table).unwrap_or_default();
        let project_file = places.root.join(".codex/config.toml");
        let mut troubles = Vec::new();
        let managed = places.system.join("codex/requirements.toml");
        if table(&managed).get("allow_managed_hooks_only").and_then(Toml::as_bool) == Some(true) {
            troubles.push(format!("allow_managed_hooks_only in {} lets only managed hooks run", managed.display()));
        }
        let off = [(config.as_deref(), &user), (Some(project_file.as_path()), &table(&project_file))];
        for (file, _) in off.iter().filter(|(_, table)| switched_off(table)) {
            let file = file.unwrap_or(Path::new("config.toml")).display();
            troubles.push(format!("hooks = false under [features] in {file} switches every hook off: remove it"));
        }
        if scope != Scope::User && !project_is_trusted(&user, places.root) {
            let root = places.root.display();
            troubles.push(format!("{root} is not trusted by Codex, so its hooks do not count: start codex there once"));
        }
        troubles.extend(trust(&user, file, entries));
        troubles
    }
}

/// The program's own directory.
fn home(places: &Places<'_>) -> Option<PathBuf> {
    places.set("CODEX_HOME").map(PathBuf::from).or_else(|| Some(places.home()?.join(".codex")))
}

/// A settings file; a missing or broken one counts as empty.
fn table(file: &Path) -> Table {
    read(file).and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn switched_off(config: &Table) -> bool {
    config.get("features").and_then(|features| features.get("hooks")).and_then(Toml::as_bool) == Some(false)
}

/// Whether the project, or the repository that contains it, is trusted: the nearest entry counts.
fn project_is_trusted(config: &Table, root: &Path) -> bool {
    let Some(projects) = config.get("projects").and_then(Toml::as_table) else { return false };
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let repository = real.ancestors().find(|dir| dir.join(".git").exists());
    let above = real.ancestors().take_while(|dir| repository.is_some_and(|top| dir.starts_with(top)));
    let main = repository.and_then(main_checkout);
    let candidates = [root.to_owned(), real.clone()].into_iter().chain(above.map(Path::to_owned)).chain(main);
    let level = candidates.filter_map(|dir| projects.get(dir.to_str()?)?.get("trust_level")?.as_str()).next();
    level == Some("trusted")
}

/// The checkout that a worktree belongs to: the program's trust in it covers both.
fn main_checkout(top: &Path) -> Option<PathBuf> {
    let link = read(&top.join(".git"))?;
    let git_dir = top.join(link.strip_prefix("gitdir:")?.trim());
    let common = git_dir.parent()?.parent()?;
    (common.file_name()? == ".git").then(|| common.parent().map(Path::to_owned))?
}

/// What is wrong with the trust in our hooks, one line per problem.
fn trust(config: &Table, file: &Path, entries: &[Entry]) -> Vec<String> {
    let state = config.get("hooks").and_then(|hooks| hooks.get("state")).and_then(Toml::as_table);
    let files = [Some(file.to_owned()), file.canonicalize().ok()];
    let (mut untrusted, mut changed, mut disabled) = (0, 0, 0);
    for entry in entries {
        let event = snake(&entry.event);
        let known = files
            .iter()
            .flatten()
            .find_map(|file| state?.get(&format!("{}:{event}:{}:{}", file.display(), entry.group, entry.position)));
        let trusted = known.and_then(|known| known.get("trusted_hash")).and_then(Toml::as_str);
        match trusted {
            None => untrusted += 1,
            Some(hash) if hash != hook::hash_of(&event, entry.matcher.as_deref(), &entry.handler) => changed += 1,
            Some(_) => {}
        }
        disabled += u32::from(known.and_then(|known| known.get("enabled")).and_then(Toml::as_bool) == Some(false));
    }
    let of = entries.len();
    let told = [
        (untrusted, "not trusted, so Codex skips them silently: type /hooks in Codex and trust them"),
        (changed, "changed since they were trusted: type /hooks in Codex and trust them again"),
        (disabled, "switched off: type /hooks in Codex and switch them on"),
    ];
    told.into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} of {of} hooks are {what}"))
        .collect()
}

/// The name of an event in a key.
fn snake(event: &str) -> String {
    let mut name = String::new();
    for letter in event.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::hook_installer::{Call, Verb};
    use super::*;

    #[test]
    fn trust_is_looked_up_where_the_program_keeps_it() {
        let base = tempfile::tempdir().expect("a directory");
        let base = base.path().canonicalize().expect("a path");
        let root = base.join("root");
        std::fs::create_dir_all(root.join(".git")).expect("directories");
        std::fs::create_dir_all(base.join("home/.codex")).expect("directories");
        let home = base.join("home").to_str().expect("text").to_owned();
        let var = |name: &str| (name == "HOME").then(|| home.clone());
        let system = base.join("etc");
        let places = Places { root: &root, var: &var, system: &system };
        let file = Codex.file(Scope::Local, &places).expect("a file");
        let entry = Entry {
            event: "SessionStart".to_owned(),
            group: 1,
            matcher: None,
            position: 0,
            handler: json!({"type": "command", "command": "x", "timeout": 30}),
            call: Call { rekindle: PathBuf::from("/r"), verb: Verb::Hook, kind: "codex".to_owned() },
        };
        let hash = hook::hash_of("session_start", None, &entry.handler);
        let config = |text: &str| {
            std::fs::write(base.join("home/.codex/config.toml"), text).expect("written");
            Codex.troubles(Scope::Local, &file, std::slice::from_ref(&entry), &places).join("\n")
        };
        let found = config("");
        assert!(found.contains("is not trusted by Codex") && found.contains("1 of 1 hooks are not trusted"), "{found}");
        let project = format!("[projects.\"{}\"]\ntrust_level = \"trusted\"\n", root.display());
        let state = format!("[hooks.state.\"{}:session_start:1:0\"]\ntrusted_hash = ", file.display());
        assert_eq!(config(&format!("{project}{state}\"{hash}\"\n")), "");
        assert!(config(&format!("{project}{state}\"sha256:0\"\n")).contains("changed since"));
        assert!(config(&format!("{project}{state}\"{hash}\"\nenabled = false\n")).contains("switched off"));
        let off = config(&format!("[features]\nhooks = false\n{project}{state}\"{hash}\"\n"));
        assert!(off.contains("[features]"), "{off}");
        assert_eq!(snake("PostToolUse"), "post_tool_use");
    }
}
