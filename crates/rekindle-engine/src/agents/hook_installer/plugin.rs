//! The same hooks as plugins: files that programs install by themselves. Made of the tables that an installation is made of, so
//! that both always say the same.

use super::super::{claude, codex, gemini, opencode};
use super::{Event, Form, Installable};
use crate::guard::install::hooks_file;

/// One line for people who look into a plugin.
const DESCRIPTION: &str =
    "Tells rekindle what happens in a session, and the session where it stands after a compaction or a crash";

/// How the plugin that two programs share calls rekindle. Only one of them sets the first variable to the same folder.
const SHARED: &str = r#"test "$PLUGIN_ROOT" = "${CLAUDE_PLUGIN_ROOT}" && cli=codex || cli=claude; "${CLAUDE_PLUGIN_ROOT}/bin/rekindle" hook "$cli""#;

/// How the extension calls it; the program puts the path in.
const EXTENSION: &str = r#""${extensionPath}/bin/rekindle" hook gemini"#;

/// The files of the plugins that are made of our tables, by their place in the folder of integrations.
#[must_use]
pub fn plugins() -> Vec<(&'static str, String)> {
    let shared: Vec<Event> = claude::EVENTS.iter().chain(codex::MORE).copied().collect();
    let hooks = |program: &dyn Installable, events: &[Event], command| {
        hooks_file(program, events, DESCRIPTION, command).unwrap_or_default()
    };
    let plugin = match opencode::Settings.form() {
        Form::Own(own) => own.text.replace(own.mark, "\"rekindle\""),
        Form::Entries(_) => String::new(),
    };
    vec![
        ("claude-codex/plugins/rekindle/hooks/hooks.json", hooks(&codex::Settings, &shared, SHARED)),
        ("gemini/hooks/hooks.json", hooks(&gemini::Settings, gemini::EVENTS, EXTENSION)),
        ("opencode/rekindle.js", plugin),
    ]
}
