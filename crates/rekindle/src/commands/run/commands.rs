//! Shows which commands the configuration and the front matter run, before they run for the first time and whenever they
//! have changed.

use std::path::Path;

use rekindle_core::plan::Plan;
use rekindle_engine::state_dir::{StateDir, save_atomically};

use crate::brought;
use crate::commands::Context;
use crate::config::Config;
use crate::error::Result;

/// The file in the state directory with a hash of the commands that were shown.
const TOLD: &str = "commands.told";

/// Shows the commands if they are new or changed since they were last shown.
pub(super) fn tell_new(context: &Context, dir: &StateDir, config: &Config, path: &Path, plan: &Plan) -> Result<()> {
    let brought = brought::by_settings(config, path, plan);
    let lines: Vec<String> = brought.iter().map(brought::Brought::line).collect();
    let hash = rekindle_core::plan::hash(lines.join("\n").as_bytes());
    let told = std::fs::read_to_string(dir.path().join(TOLD)).unwrap_or_default();
    if lines.is_empty() || told == hash {
        return Ok(());
    }
    context.ui.say("this project's configuration and front matter run, besides the plan's checks:");
    lines.iter().for_each(|line| context.ui.say(&format!("  {line}")));
    context.ui.hint("all commands, checks included: rekindle plan show --commands");
    // A full disk only means that they are shown once more.
    let _told_again = save_atomically(dir.path(), TOLD, hash.as_bytes());
    Ok(())
}
