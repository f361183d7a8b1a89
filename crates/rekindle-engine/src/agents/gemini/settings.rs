//! Where Gemini CLI's hooks are configured, at which events it calls rekindle, and what disables hooks.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::super::hook_installer::{Entry, Event, Form, HookInstaller, Places, Scope, settings};
use super::Gemini;

/// Milliseconds for a hook that writes one record; it takes a few, but a slow disk must not lose it.
const RECORD_MS: u64 = 10_000;

/// Milliseconds for a hook that assembles the recovery text.
const RECOVERY_MS: u64 = 30_000;

/// The name by which the program lists our hooks and lets people switch them off.
const NAME: &str = "rekindle";

/// Tools that start a helper or ask a person: what is recorded before they end survives a crash in between.
const BEGINS: &str = "invoke_agent|ask_user|run_shell_command";

/// The hook events. The one before compression is left out: it fires before every request, compressed or not. The one before
/// a request is the only one between a compression and the first request after it.
pub(super) const EVENTS: &[Event] = &[
    Event::every("SessionStart", RECOVERY_MS),
    Event::every("BeforeAgent", RECOVERY_MS),
    Event::every("BeforeModel", RECOVERY_MS),
    Event { name: "BeforeTool", matcher: Some(BEGINS), timeout: RECORD_MS },
    Event::every("AfterTool", RECOVERY_MS),
    Event::every("AfterAgent", RECORD_MS),
    Event::every("SessionEnd", RECORD_MS),
];

impl HookInstaller for Gemini {
    fn title(&self) -> &'static str {
        "Gemini CLI"
    }

    fn file(&self, scope: Scope, places: &Places<'_>) -> Option<PathBuf> {
        match scope {
            Scope::Local | Scope::Project => Some(places.root.join(".gemini/settings.json")),
            Scope::User => Some(home(places)?.join("settings.json")),
        }
    }

    fn form(&self) -> Form {
        Form::Entries(EVENTS)
    }

    fn handler(&self, event: &Event, command: &str) -> Vec<(&'static str, Value)> {
        let fields = [("type", "command"), ("name", NAME), ("command", command)];
        fields.map(|(key, text)| (key, text.into())).into_iter().chain([("timeout", event.timeout.into())]).collect()
    }

    fn next(&self, _scope: Scope) -> &'static str {
        "restart Gemini CLI; its hooks run only in folders that it was told to trust"
    }

    fn troubles(&self, _scope: Scope, _file: &Path, entries: &[Entry], places: &Places<'_>) -> Vec<String> {
        let layers = layers(places);
        let mut troubles = Vec::new();
        let mut enabled =
            layers.iter().filter_map(|(file, layer)| Some((file, layer.get("hooksConfig")?.get("enabled")?)));
        if let Some((file, Value::Bool(false))) = enabled.next_back() {
            troubles.push(format!("hooksConfig.enabled in {} switches every hook off: remove it", file.display()));
        }
        let ours =
            |name: &Value| name == NAME || entries.iter().any(|entry| entry.handler.get("command") == Some(name));
        let disabled = |layer: &Map<String, Value>| {
            let list = layer.get("hooksConfig").and_then(|config| config.get("disabled")).and_then(Value::as_array);
            list.is_some_and(|names| names.iter().any(ours))
        };
        for (file, _) in layers.iter().filter(|(_, layer)| disabled(layer)) {
            let file = file.display();
            troubles.push(format!("hooksConfig.disabled in {file} names rekindle: type /hooks enable {NAME}"));
        }
        troubles.extend(distrust(places, &layers));
        troubles
    }
}

/// The program's directory in the user's home.
fn home(places: &Places<'_>) -> Option<PathBuf> {
    let home = places.set("GEMINI_CLI_HOME").map(PathBuf::from).or_else(|| places.home())?;
    Some(home.join(".gemini"))
}

/// Every layer of settings, lowest precedence first.
fn layers(places: &Places<'_>) -> Vec<(PathBuf, Map<String, Value>)> {
    let system = places.system.join("gemini-cli");
    let variable = |name: &str, file: &str| places.set(name).map_or_else(|| system.join(file), PathBuf::from);
    let files = [
        Some(variable("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", "system-defaults.json")),
        Gemini.file(Scope::User, places),
        Gemini.file(Scope::Project, places),
        Some(variable("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "settings.json")),
    ];
    files.into_iter().flatten().filter_map(|file| Some((file.clone(), settings(&file)?))).collect()
}

/// Whether the program distrusts the project's folder: it then silently runs no hooks at all.
fn distrust(places: &Places<'_>, layers: &[(PathBuf, Map<String, Value>)]) -> Option<String> {
    match places.set("GEMINI_CLI_TRUST_WORKSPACE").as_deref() {
        Some("true") => return None,
        Some("false") => return Some("GEMINI_CLI_TRUST_WORKSPACE=false switches hooks off: unset it".to_owned()),
        _ => {}
    }
    let workspace = Gemini.file(Scope::Project, places);
    // A project's own word about its trust does not count.
    let asked = layers.iter().filter(|(file, _)| Some(file) != workspace.as_ref());
    let mut asked = asked.filter_map(|(_, layer)| layer.get("security")?.get("folderTrust")?.get("enabled")?.as_bool());
    if asked.next_back() == Some(false) {
        return None;
    }
    let file = places.set("GEMINI_CLI_TRUSTED_FOLDERS_PATH").map(PathBuf::from);
    let file = file.or_else(|| Some(home(places)?.join("trustedFolders.json")))?;
    let rules = settings(&file).unwrap_or_default();
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let root = real(places.root);
    let matching = rules.iter().filter(|(path, level)| {
        let path = Path::new(path.as_str());
        let path = if *level == "TRUST_PARENT" { path.parent().unwrap_or(path) } else { path };
        root.starts_with(real(path))
    });
    let shown = places.root.display();
    match matching.max_by_key(|(path, _)| path.len()).map(|(_, level)| level.as_str().unwrap_or_default()) {
        Some("TRUST_FOLDER" | "TRUST_PARENT") => None,
        Some(_) => Some(format!("{shown} is marked as not trusted, so no hook runs: type /permissions in Gemini CLI")),
        None => Some(format!("{shown} is not trusted yet, so no hook runs: start gemini there once and trust it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_switches_hooks_off_is_found() {
        let base = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            let file = base.path().join(name);
            std::fs::create_dir_all(file.parent().expect("a parent")).expect("directories");
            std::fs::write(file, text).expect("written");
        };
        let home = base.path().join("home").to_str().expect("text").to_owned();
        let var = |name: &str| (name == "HOME").then(|| home.clone());
        let (root, system) = (base.path().join("root"), base.path().join("etc"));
        std::fs::create_dir(&root).expect("a directory");
        let places = Places { root: &root, var: &var, system: &system };
        let found = || Gemini.troubles(Scope::Local, &root, &[], &places).join("\n");
        assert!(found().contains("not trusted yet"), "{}", found());
        let trust = |folder: &Path, level: &str| serde_json::json!({folder.to_str().expect("text"): level}).to_string();
        write("home/.gemini/trustedFolders.json", &trust(base.path(), "DO_NOT_TRUST"));
        assert!(found().contains("marked as not trusted"), "{}", found());
        write("home/.gemini/trustedFolders.json", &trust(&root.join("x"), "TRUST_PARENT"));
        assert_eq!(found(), "");
        write("home/.gemini/settings.json", "{ /* off */ \"hooksConfig\": {\"enabled\": false},}");
        assert!(found().contains("hooksConfig.enabled"), "{}", found());
        write("root/.gemini/settings.json", "{\"hooksConfig\": {\"enabled\": true, \"disabled\": [\"rekindle\"]}}");
        assert!(found().contains("hooksConfig.disabled") && !found().contains("enabled in"), "{}", found());
        write("root/.gemini/settings.json", "{\"security\": {\"folderTrust\": {\"enabled\": false}}}");
        write("home/.gemini/settings.json", "{}");
        write("home/.gemini/trustedFolders.json", "{}");
        assert!(found().contains("not trusted yet"), "a project cannot trust itself: {}", found());
        write("home/.gemini/settings.json", "{\"security\": {\"folderTrust\": {\"enabled\": false}}}");
        assert_eq!(found(), "");
    }
}
