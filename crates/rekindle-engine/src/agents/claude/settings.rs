//! Where Claude Code's hooks are configured, at which events it calls rekindle, and what disables hooks.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::super::hook_installer::{Entry, Event, Form, Gauged, HookInstaller, Left, Places, Scope, settings};
use super::Claude;

/// Seconds for a hook that writes one record; it takes milliseconds, but a slow disk must not lose it.
const RECORD_S: u64 = 10;

/// Seconds for a hook that reads the session's records and assembles the recovery text.
const RECOVERY_S: u64 = 30;

/// Seconds for the last hook of a session: a person who closes a program does not want to wait.
const END_S: u64 = 3;

/// Tools that start a helper or ask a person: what is recorded before they end survives a crash in between.
const BEGINS: &str = "Agent|Task|AskUserQuestion";

/// Tools with an outcome worth keeping. Reading and searching are not among them: the transcript has those.
const MATTERS: &str = "Write|Edit|MultiEdit|NotebookEdit|Bash|PowerShell|Agent|Task|TaskCreate|TaskUpdate|TaskList|TaskStop|\
    KillShell|TodoWrite|AskUserQuestion|ExitPlanMode|SendMessage|TeamCreate|TeamDelete";

/// The hook events.
const EVENTS: &[Event] = &[
    Event::every("SessionStart", RECOVERY_S),
    Event::every("UserPromptSubmit", RECOVERY_S),
    Event { name: "PreToolUse", matcher: Some(BEGINS), timeout: RECORD_S },
    Event { name: "PostToolUse", matcher: Some(MATTERS), timeout: RECORD_S },
    Event { name: "PostToolUseFailure", matcher: Some(MATTERS), timeout: RECORD_S },
    Event::every("Stop", RECORD_S),
    Event::every("StopFailure", RECORD_S),
    Event::every("SubagentStart", RECORD_S),
    Event::every("SubagentStop", RECORD_S),
    Event::every("PreCompact", RECORD_S),
    Event::every("PostCompact", RECORD_S),
    Event::every("SessionEnd", END_S),
    Event::every("TaskCreated", RECORD_S),
    Event::every("TaskCompleted", RECORD_S),
    Event::every("TeammateIdle", RECORD_S),
];

/// The key of the status line.
const STATUS_LINE: &str = "statusLine";

impl HookInstaller for Claude {
    fn title(&self) -> &'static str {
        "Claude Code"
    }

    fn file(&self, scope: Scope, places: &Places<'_>) -> Option<PathBuf> {
        Some(match scope {
            Scope::Local => places.root.join(".claude/settings.local.json"),
            Scope::Project => places.root.join(".claude/settings.json"),
            Scope::User => match places.set("CLAUDE_CONFIG_DIR") {
                Some(dir) => PathBuf::from(dir).join("settings.json"),
                None => places.home()?.join(".claude/settings.json"),
            },
        })
    }

    fn form(&self) -> Form {
        Form::Entries(EVENTS)
    }

    fn next(&self, _scope: Scope) -> &'static str {
        "sessions of Claude Code that start from now on are guarded; running ones may have to be restarted"
    }

    fn troubles(&self, _scope: Scope, _file: &Path, _entries: &[Entry], places: &Places<'_>) -> Vec<String> {
        let managed = managed(places);
        let mut troubles = Vec::new();
        let managed_says =
            |key: &str| managed.iter().find(|(_, layer)| layer.get(key).is_some_and(restricts)).map(|(file, _)| file);
        for key in ["allowManagedHooksOnly", "strictPluginOnlyCustomization"] {
            if let Some(file) = managed_says(key) {
                troubles.push(format!(
                    "{key} in {} lets only managed hooks run: ask the administrator of this machine",
                    file.display()
                ));
            }
        }
        let own = Scope::ALL.iter().filter_map(|scope| {
            let file = self.file(*scope, places)?;
            Some((file.clone(), settings(&file)?))
        });
        let layers = managed.iter().rev().cloned().chain(own);
        let switched = layers.filter_map(|(file, layer)| Some((file, layer.get("disableAllHooks")?.as_bool()?))).next();
        if let Some((file, true)) = switched {
            troubles.push(format!("disableAllHooks in {} switches every hook off: remove it", file.display()));
        }
        troubles
    }

    fn status_line(&self) -> Option<&'static str> {
        Some(STATUS_LINE)
    }

    fn gauged(&self, asked: &Value) -> Gauged {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let dir = text(&asked["workspace"]["project_dir"]).or_else(|| text(&asked["cwd"]));
        let used = |window: &str| percent(&asked["rate_limits"][window]["used_percentage"]).map(|used| 100 - used);
        let context = percent(&asked["context_window"]["remaining_percentage"]);
        Gauged {
            session: text(&asked["session_id"]),
            dir: dir.map(PathBuf::from),
            left: Left { context, five_hours: used("five_hour"), seven_days: used("seven_day") },
        }
    }
}

/// Settings of the machine's administrator, lowest precedence first.
fn managed(places: &Places<'_>) -> Vec<(PathBuf, Map<String, Value>)> {
    let dir = places.system.join("claude-code");
    let mut files = vec![dir.join("managed-settings.json")];
    let more = std::fs::read_dir(dir.join("managed-settings.d")).into_iter().flatten().flatten();
    let mut more: Vec<PathBuf> = more.map(|entry| entry.path()).collect();
    more.retain(|path| {
        let hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        !hidden && path.extension().is_some_and(|end| end == "json")
    });
    more.sort();
    files.extend(more);
    files.into_iter().filter_map(|file| Some((file.clone(), settings(&file)?))).collect()
}

/// Whether a managed key disables hooks: a boolean, or a list of what is restricted.
fn restricts(value: &Value) -> bool {
    value.as_bool().unwrap_or_else(|| value.as_array().is_some_and(|list| list.iter().any(|one| one == "hooks")))
}

/// A percentage rounded down to a whole number.
fn percent(value: &Value) -> Option<u8> {
    let number = value.as_f64().filter(|number| number.is_finite())?.clamp(0.0, 100.0).floor();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 100")]
    Some(number as u8)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_left_is_read_from_what_the_status_line_is_told() {
        let asked = json!({
            "session_id": "s", "cwd": "/a/b", "workspace": {"project_dir": "/a"},
            "context_window": {"remaining_percentage": 8.9, "used_percentage": 91.1},
            "rate_limits": {"five_hour": {"used_percentage": 95.2}, "seven_day": {"used_percentage": 12}},
        });
        let gauged = Claude.gauged(&asked);
        assert_eq!(gauged.session.as_deref(), Some("s"));
        assert_eq!(gauged.dir, Some(PathBuf::from("/a")));
        assert_eq!(gauged.left, Left { context: Some(8), five_hours: Some(5), seven_days: Some(88) });
        assert_eq!(gauged.left.usage(), Some(5));
        assert_eq!(Claude.gauged(&json!([1])), Gauged::default());
        assert_eq!(Claude.gauged(&json!({"context_window": {"remaining_percentage": "x"}})), Gauged::default());
    }

    #[test]
    fn what_switches_hooks_off_is_found_in_every_layer() {
        let base = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            let file = base.path().join(name);
            std::fs::create_dir_all(file.parent().expect("a parent")).expect("directories");
            std::fs::write(file, text).expect("written");
        };
        let home = base.path().join("home").to_str().expect("text").to_owned();
        let var = |name: &str| (name == "HOME").then(|| home.clone());
        let (root, system) = (base.path().join("root"), base.path().join("etc"));
        let places = Places { root: &root, var: &var, system: &system };
        let found = || Claude.troubles(Scope::Local, &root, &[], &places).join("\n");
        assert_eq!(found(), "");
        write("home/.claude/settings.json", "{ // mine\n \"disableAllHooks\": true }");
        assert!(found().contains("home/.claude/settings.json switches every hook off"), "{}", found());
        write("root/.claude/settings.json", "{\"disableAllHooks\": false}");
        assert_eq!(found(), "", "the nearer layer wins");
        write("etc/claude-code/managed-settings.d/10.json", "{\"disableAllHooks\": true}");
        assert!(found().contains("managed-settings.d/10.json switches"), "{}", found());
        write("etc/claude-code/managed-settings.json", "{\"allowManagedHooksOnly\": true}");
        assert!(found().contains("managed-settings.json lets only managed hooks run"), "{}", found());
        write("etc/claude-code/managed-settings.json", "{\"strictPluginOnlyCustomization\": [\"skills\", \"hooks\"]}");
        assert!(found().contains("strictPluginOnlyCustomization"), "{}", found());
    }
}
