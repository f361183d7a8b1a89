//! Where opencode finds rekindle's plugin: a file of our own that it loads automatically.

use std::path::{Path, PathBuf};

use super::super::hook_installer::{Entry, Form, HookInstaller, OwnFile, Places, Scope};
use super::Opencode;

static PLUGIN: OwnFile =
    OwnFile { text: include_str!("plugin.js"), mark: "\"__REKINDLE__\"", head: "// rekindle guard" };

/// The plugin's file in the plugin folder.
const FILE: &str = "plugins/rekindle.js";

impl HookInstaller for Opencode {
    fn title(&self) -> &'static str {
        "opencode"
    }

    fn file(&self, scope: Scope, places: &Places<'_>) -> Option<PathBuf> {
        match scope {
            Scope::Local | Scope::Project => Some(places.root.join(".opencode").join(FILE)),
            Scope::User => {
                let config = places.set("XDG_CONFIG_HOME").map(PathBuf::from);
                let config = config.or_else(|| Some(places.home()?.join(".config")))?;
                Some(config.join("opencode").join(FILE))
            }
        }
    }

    fn form(&self) -> Form {
        Form::Own(&PLUGIN)
    }

    fn next(&self, _scope: Scope) -> &'static str {
        "restart opencode"
    }

    fn troubles(&self, _scope: Scope, _file: &Path, _entries: &[Entry], places: &Places<'_>) -> Vec<String> {
        let pure = places.set("OPENCODE_PURE").filter(|value| value == "1" || value.eq_ignore_ascii_case("true"));
        pure.map(|value| format!("OPENCODE_PURE={value} keeps plugins out: unset it")).into_iter().collect()
    }
}
