//! The plugins under `integrations/`: what is made of the product's own tables is as they say, and their script finds rekindle or
//! does no harm. Whether the programs take them is proven with the programs, in `agents`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rekindle_engine::agents::KINDS;
use rekindle_engine::agents::hook_installer::{Event, Form, HookInstaller};
use rekindle_engine::guard::install::hooks_file;

/// One line for people who look into a plugin.
const DESCRIPTION: &str =
    "Tells rekindle what happens in a session, and the session where it stands after a compaction or a crash";

/// How the plugin that two programs share calls rekindle. Only one of them sets the first variable to the same folder.
const SHARED: &str = r#"test "$PLUGIN_ROOT" = "${CLAUDE_PLUGIN_ROOT}" && cli=codex || cli=claude; "${CLAUDE_PLUGIN_ROOT}/bin/rekindle" hook "$cli""#;

/// How the extension calls it; the program puts the path in.
const EXTENSION: &str = r#""${extensionPath}/bin/rekindle" hook gemini"#;

/// The tools that only one of the two programs of the shared plugin has: what it is told of them.
const MORE: [Event; 2] = [
    Event { name: "PreToolUse", matcher: Some(".*(spawn_agent|request_user_input)"), timeout: 10 },
    Event {
        name: "PostToolUse",
        matcher: Some(
            ".*(spawn|wait|close|interrupt|resume)_agent|.*(send_input|followup_task)|apply_patch|update_plan|\
             request_user_input|exec_command|shell_command|shell",
        ),
        timeout: 10,
    },
];

/// Set to write the files instead of comparing them.
const WRITE: &str = "REKINDLE_WRITE_INTEGRATIONS";

/// The script, as the first of the plugins has it.
const SCRIPT: &str = "claude-codex/plugins/rekindle/bin/rekindle";

fn integrations() -> PathBuf {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo and nextest say where the package is");
    Path::new(&manifest).join("../../integrations").canonicalize().expect("the folder")
}

fn program(kind: &str) -> &'static dyn HookInstaller {
    KINDS.of(kind).and_then(|kind| kind.about().hook_installer).expect("it takes hooks")
}

/// The files of the plugins that are made of what an installation writes, by their place in the folder.
fn plugins() -> Vec<(&'static str, String)> {
    let events = |kind: &str| match program(kind).form() {
        Form::Entries(events) => events.to_vec(),
        Form::Own(_) => panic!("{kind} has a file of our own"),
    };
    let hooks = |kind: &str, events: &[Event], command: &str| {
        hooks_file(program(kind), events, DESCRIPTION, command).expect("hooks")
    };
    let plugin = match program("opencode").form() {
        Form::Own(own) => own.text.replace(own.mark, "\"rekindle\""),
        Form::Entries(_) => panic!("opencode has entries"),
    };
    let shared = [events("claude"), MORE.to_vec()].concat();
    vec![
        ("claude-codex/plugins/rekindle/hooks/hooks.json", hooks("codex", &shared, SHARED)),
        ("gemini/hooks/hooks.json", hooks("gemini", &events("gemini"), EXTENSION)),
        ("opencode/rekindle.js", plugin),
    ]
}

fn text(name: &str) -> String {
    std::fs::read_to_string(integrations().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn hooks_are_those_that_an_installation_writes() {
    let made = plugins();
    assert_eq!(made.len(), 3);
    for (name, expected) in made {
        assert!(expected.contains("rekindle"), "{name}");
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(integrations().join(name), &expected).expect("written");
        }
        let found = std::fs::read_to_string(integrations().join(name)).unwrap_or_default();
        assert_eq!(
            found, expected,
            "{name} is out of date: {WRITE}=1 cargo test -p rekindle-testkit --test integrations"
        );
    }
}

#[test]
fn plugins_share_their_words_and_have_the_products_version() {
    assert_eq!(text(SCRIPT), text("gemini/bin/rekindle"));
    assert_eq!(text("claude-codex/plugins/rekindle/skills/recover/SKILL.md"), text("gemini/skills/recover/SKILL.md"));
    for name in ["claude-codex/plugins/rekindle/.claude-plugin/plugin.json", "gemini/gemini-extension.json"] {
        let manifest: serde_json::Value = serde_json::from_str(&text(name)).expect("JSON");
        assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"), "{name}");
    }
}

/// Runs the script by a path, with this search path and home.
fn run(script: &Path, path: &str, home: &Path, data: Option<&Path>) -> Output {
    let mut command = Command::new(script);
    command.args(["hook", "a b"]).env_clear().env("PATH", path).env("HOME", home).stdin(Stdio::null());
    if let Some(data) = data {
        command.env("CLAUDE_PLUGIN_DATA", data);
    }
    command.output().expect("the script runs")
}

#[test]
fn the_script_finds_rekindle_and_does_no_harm_without_one() {
    let script = integrations().join(SCRIPT);
    assert_eq!(script.metadata().expect("there").permissions().mode() & 0o111, 0o111, "it can be run");
    let dir = tempfile::tempdir().expect("a directory");
    let place = |name: &str| {
        let file = dir.path().join(name).join("rekindle");
        std::fs::create_dir_all(file.parent().expect("a parent")).expect("directories");
        std::fs::write(&file, format!("#!/bin/sh\necho {name} \"$#\" \"$2\"\nexit 7\n")).expect("written");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("chmod");
    };
    let home = dir.path().join("home");
    // Its own folder is on the search path, as a plugin's is.
    let own = script.parent().expect("a folder").display();
    let path = format!("{own}:/usr/bin:/bin");
    let none = run(&script, &path, &home, Some(&dir.path().join("data")));
    assert_eq!((none.status.code(), none.stdout.len()), (Some(0), 0), "{none:?}");
    let told = String::from_utf8(none.stderr).expect("text");
    assert!(told.lines().count() == 1 && told.contains("not installed"), "{told}");
    let says = |path: &str| {
        let output = run(&script, path, &home, Some(&dir.path().join("data")));
        assert_eq!(output.status.code(), Some(7), "it becomes what it finds: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    place("data/bin");
    assert_eq!(says(&path), "data/bin 2 a b\n");
    place("home/.cargo/bin");
    assert_eq!(says(&path), "home/.cargo/bin 2 a b\n");
    place("on path");
    assert_eq!(says(&format!("{path}:{}/on path", dir.path().display())), "on path 2 a b\n");
}
