//! `rekindle diff`: what the run, or one of its tasks, changes.

use clap::Args;
use rekindle_engine::git::{Repo, Work};

use super::Context;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::picture::result;
use crate::ui::{Tone, harmless};

/// Longest patch that is printed: what a pager can still hold.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Show what the run changed, or what one task changed
///
/// A task's changes are shown from its merge; before that, from its worktree or its last snapshot. Prints a patch that `git apply`
/// takes when the output is not a terminal.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle diff\n  rekindle diff T3\n  rekindle diff --stat\n  rekindle diff > all.patch"
)]
pub(crate) struct DiffArgs {
    /// Only this task's changes [default: everything on the run's branch]
    task: Option<String>,
    /// List the files with the lines added and removed
    #[arg(long)]
    stat: bool,
    /// The run: its id or the beginning of it [default: the newest]
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

pub(crate) fn run(args: &DiffArgs, context: &Context) -> Result<Exit> {
    let view = context.view()?;
    let run = view.chosen(args.run.as_deref())?;
    let repo = Repo::of(&context.project.root)?;
    let branch = run.row.work_branch.clone().unwrap_or_default();
    let work = Work::new(repo, &context.project.state_dir, &run.row.id, &branch)?;
    let (patch, cut) = match &args.task {
        Some(name) => {
            let task = run.task(name)?;
            let key = task.workspace.as_deref().unwrap_or(task.id.as_str());
            match work.changes(key, task.merged.as_deref(), MOST_BYTES)? {
                Some(changes) => (changes.patch, changes.cut),
                None => (String::new(), false),
            }
        }
        None if branch.is_empty() => {
            let message = "this run shares your checkout: its changes are there, beside yours";
            return Err(CliError::usage(message).hint("see them: git diff").hint("one task: rekindle diff T1"));
        }
        None => work
            .whole_patch(run.row.work_base.as_deref(), MOST_BYTES)
            .map_err(|error| result::gone(&context.project, &run.row.id, error))?,
    };
    if patch.is_empty() {
        context.ui.say("nothing has changed");
        return Ok(Exit::Success);
    }
    if args.stat {
        stat(context, &patch)?
    } else {
        print(context, &patch)?
    }
    if cut {
        context.ui.warn("there is more: this is the beginning");
    }
    Ok(Exit::Success)
}

/// Prints the patch unchanged for a program, and made harmless for a terminal.
fn print(context: &Context, patch: &str) -> Result<()> {
    let (ui, paint) = (&context.ui, context.ui.paint());
    if !ui.prints_to_terminal() {
        ui.raw(patch.as_bytes())?;
        return ui.flush();
    }
    for line in patch.split_terminator('\n') {
        let tone = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Some(Tone::Strong),
            [b'd', b'i', b'f', b'f', b' ', ..] => Some(Tone::Strong),
            [b'+', ..] => Some(Tone::Good),
            [b'-', ..] => Some(Tone::Error),
            [b'@', b'@', ..] => Some(Tone::Active),
            _ => None,
        };
        let line = harmless(line);
        ui.line(&tone.map_or_else(|| line.clone(), |tone| paint.tone(tone, &line)))?;
    }
    ui.flush()
}

fn stat(context: &Context, patch: &str) -> Result<()> {
    for file in crate::picture::diff::parse(patch) {
        let note = file.note.map(|note| format!(" ({note})")).unwrap_or_default();
        context.ui.line(&format!(
            "{:>6} {:>6}  {}{note}",
            format!("+{}", file.added),
            format!("−{}", file.removed),
            file.path
        ))?;
    }
    Ok(())
}
