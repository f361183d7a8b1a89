//! `REKINDLE_SECTION_KEY` variables as a layer.

use std::ffi::OsString;

use super::keys::{KEYS, Key, Wrong, sections};
use super::{Layer, Origin};
use crate::diagnostic::Diagnostic;
use rekindle_core::plan::nearest::nearest;

/// The prefix of all our variables.
const PREFIX: &str = "REKINDLE_";

/// Reads the variables that name a known section. Others are not configuration: the variables that tell an agent about
/// itself (`REKINDLE_TASK`, …) have names of the same form.
pub(super) fn read(variables: impl IntoIterator<Item = (OsString, OsString)>) -> (Layer, Vec<Diagnostic>) {
    let mut layer = Layer::default();
    let mut problems = Vec::new();
    for (name, value) in variables {
        let Some(name) = name.to_str() else { continue };
        let Some(rest) = name.strip_prefix(PREFIX) else {
            continue;
        };
        let rest = rest.to_ascii_lowercase();
        if rest.starts_with("agents_") {
            let hint = "write it into [agents.NAME] of rekindle.toml".to_owned();
            problems.push(Diagnostic::error(format!("agents cannot be set by the variable {name}"), Some(hint)));
            continue;
        }
        if rest.starts_with("prices_") {
            let hint = "write it into [prices.MODEL] of rekindle.toml".to_owned();
            problems.push(Diagnostic::error(format!("prices cannot be set by the variable {name}"), Some(hint)));
            continue;
        }
        // A variable's name has no dots: the dots of a section become underscores.
        let begins =
            |section: &&str| rest.strip_prefix(&section.replace('.', "_")).is_some_and(|leaf| leaf.starts_with('_'));
        // The longest: `notify.slack` is a section within `notify`.
        let section = sections().filter(begins).max_by_key(|section| section.len());
        let Some(section) = section else { continue };
        match read_one(section, &rest[section.len() + 1..], name, &value) {
            Ok((key, value)) => layer.set(key, value, Origin::Variable(name.to_owned())),
            Err(problem) => problems.push(problem),
        }
    }
    problems.sort_by(|a, b| a.message.cmp(&b.message));
    (layer, problems)
}

fn read_one(
    section: &str,
    leaf: &str,
    name: &str,
    value: &OsString,
) -> Result<(&'static Key, super::Value), Diagnostic> {
    let Some(key) = Key::find(&format!("{section}.{leaf}")) else {
        let known: Vec<&str> = KEYS.iter().filter(|key| key.section() == section).map(Key::leaf).collect();
        let shown: Vec<String> = known.iter().map(|leaf| variable(section, leaf)).collect();
        let hint = match nearest(leaf, known.iter().copied()) {
            Some(near) => format!("did you mean {}?", variable(section, near)),
            None => format!("known are {}", shown.join(", ")),
        };
        return Err(Diagnostic::error(format!("unknown variable {name}"), Some(hint)));
    };
    let Some(text) = value.to_str() else {
        return Err(Diagnostic::error(format!("the variable {name} is not text"), None));
    };
    let value = key.from_text(text).map_err(|Wrong { message, hint }| {
        Diagnostic::error(format!("the variable {name} is wrong: {message}"), Some(hint))
    })?;
    Ok((key, value))
}

fn variable(section: &str, leaf: &str) -> String {
    format!("{PREFIX}{section}_{leaf}").replace('.', "_").to_ascii_uppercase()
}
