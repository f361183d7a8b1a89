//! `rekindle plan diff`, `reload` and `export`: compare a changed file with the run's plan, apply it, and write the current
//! plan to a file. The person's own file is never written here unless it is named.

use std::path::{Path, PathBuf};

use clap::Args;
use rekindle_core::event::{ChangedTask, Follow};
use rekindle_core::ids::TaskId;
use rekindle_core::input::Order;
use rekindle_core::plan::{self, Plan};
use rekindle_core::reload::{self, Difference};
use rekindle_core::state::{RunPhase, State, TaskState};
use rekindle_engine::control::wire::LINE_LIMIT;
use rekindle_engine::state_dir::StateDir;
use serde::Serialize;

use super::Context;
use crate::client::orders::{self, Taken};
use crate::config::{Config, Sources};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::output_file::{self, Existing};
use crate::pinned::state_of;
use crate::plan_file::PlanFile;
use crate::ui::one_line;

/// Show what a changed file would change in the run
///
/// Lists added, changed and removed tasks, and what follows for the work of each. Nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle plan diff\n  rekindle plan diff plan.md --json")]
pub(super) struct DiffArgs {
    /// The changed plan [default: the file that the run was started with]
    plan: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Apply a changed plan file to the run
///
/// Complete tasks that did not change stay complete. Where only checks or artifacts changed, rekindle proves the existing work
/// again without an agent. A task whose text changed is reopened. A removed task is skipped, and its work is kept. A file with
/// an error changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle plan reload\n  rekindle plan reload plan.md --yes")]
pub(super) struct ReloadArgs {
    /// The changed plan [default: the file that the run was started with]
    plan: Option<PathBuf>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Write the plan of the run, with everything added and edited since
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle plan export --out plan.md --force")]
pub(super) struct ExportArgs {
    /// Where to write it [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// A difference, for programs.
#[derive(Serialize)]
struct DiffJson<'a> {
    schema_version: u32,
    plan: &'a str,
    file: String,
    added: Vec<EntryJson>,
    changed: Vec<EntryJson>,
    removed: Vec<EntryJson>,
    /// Tasks that a person added and that the file does not have: they stay.
    kept: &'a [TaskId],
    /// Differences besides the tasks.
    about_plan: &'a [&'static str],
}

#[derive(Serialize)]
struct EntryJson {
    id: TaskId,
    title: String,
    changed: Vec<&'static str>,
    /// `starts`, `stays`, `reopened`, `proven`, `complete` or `skipped`.
    then: &'static str,
    text: String,
    /// Complete tasks that depend on it and are proven again.
    dependants: Vec<TaskId>,
}

/// The file to read: the named one, otherwise the one that the run was started with.
fn file_of(state: &State, named: Option<&Path>) -> Result<PlanFile> {
    let of_run = || PathBuf::from(state.run.as_ref().map(|run| run.plan_path.clone()).unwrap_or_default());
    PlanFile::read(&named.map_or_else(of_run, Path::to_owned))
}

fn compared(state: &State, plan: &Plan) -> Result<Difference> {
    reload::compare(state, plan).map_err(CliError::refused)
}

pub(super) fn diff(args: &DiffArgs, context: &Context) -> Result<Exit> {
    let state = state_of(&context.project)?;
    let file = file_of(&state, args.plan.as_deref())?;
    let plan = file.plan()?;
    let difference = compared(&state, plan)?;
    if args.json {
        let entries = entries(&state, &difference);
        context.ui.json(&DiffJson {
            schema_version: 1,
            plan: &plan.name,
            file: file.path.display().to_string(),
            added: entries.added,
            changed: entries.changed,
            removed: entries.removed,
            kept: &difference.kept,
            about_plan: &difference.about_plan,
        })?;
        return Ok(Exit::Success);
    }
    for line in lines(&state, &difference) {
        context.ui.line(&line)?;
    }
    if !difference.is_empty() {
        context.ui.hint(&format!("apply it: rekindle plan reload {}", file.path.display()));
    }
    Ok(Exit::Success)
}

pub(super) fn reload(args: &ReloadArgs, context: &Context) -> Result<Exit> {
    let state = state_of(&context.project)?;
    let file = file_of(&state, args.plan.as_deref())?;
    let plan = file.plan()?;
    check(&file, plan, context)?;
    let difference = compared(&state, plan)?;
    lines(&state, &difference).iter().for_each(|line| context.ui.say(line));
    if difference.is_empty() && !difference.other_file {
        return Ok(Exit::Success);
    }
    if !args.yes && !difference.is_empty() {
        match context.ui.agrees("Apply these changes?") {
            Some(true) => {}
            Some(false) => {
                context.ui.say("nothing was changed");
                return Ok(Exit::Success);
            }
            None => {
                let message = "nobody can confirm this: not a terminal";
                let command = format!("rekindle plan reload {} --yes", file.path.display());
                return Err(CliError::usage(message).hint(format!("apply it without asking: {command}")));
            }
        }
    }
    take(plan, context)?;
    tell_how_to_go_on(context, &file.path)?;
    Ok(Exit::Success)
}

/// Says how to continue a run that has no coordinator.
fn tell_how_to_go_on(context: &Context, path: &Path) -> Result<()> {
    let state = state_of(&context.project)?;
    let over = state.run.as_ref().is_some_and(|run| matches!(run.phase, RunPhase::Finished(_)));
    if !over && StateDir::open(&context.project.state_dir)?.owner()?.is_none() {
        context.ui.hint(&format!("continue: rekindle run {}", path.display()));
    }
    Ok(())
}

/// Checks that the plan's agents and environments are known here before it is applied.
fn check(file: &PlanFile, plan: &Plan, context: &Context) -> Result<()> {
    let shown = file.path.display().to_string();
    let sources =
        Sources { file: context.project.config.as_deref(), plan: Some((&shown, &plan.settings)), ..Sources::default() };
    let config = Config::load(&sources.with_environment())?;
    config.check_plan(plan, std::env::var_os("PATH").as_deref(), &context.project.root)
}

fn take(plan: &Plan, context: &Context) -> Result<()> {
    let order = Order::Reload { plan: Box::new(plan.clone()) };
    let long = serde_json::to_vec(&order).map_or(0, |text| text.len()) + 1024 > LINE_LIMIT;
    if long && StateDir::open(&context.project.state_dir)?.owner()?.is_some() {
        let message = "the plan is too large to be handed to a running coordinator";
        return Err(CliError::refused(message).hint("pause the run first: rekindle pause; reload; rekindle resume"));
    }
    match orders::give(&context.project, &order)? {
        Taken::Now | Taken::Placed(_) => context.ui.say("the plan is reloaded"),
        Taken::Already | Taken::NobodyThere => context.ui.say("the run has this plan already"),
    }
    Ok(())
}

/// Says that a plan's file has changed and offers to apply it: at a terminal by asking, otherwise by naming the command.
/// Returns whether it was applied.
pub(crate) fn offer(file: &PlanFile, plan: &Plan, context: &Context) -> Result<bool> {
    let Ok(state) = state_of(&context.project) else { return Ok(false) };
    let finished = state.run.as_ref().is_some_and(|run| matches!(run.phase, RunPhase::Finished(_)));
    let goes_on = if finished {
        "the plan's file has changed since this run, which is finished"
    } else {
        "the plan's file has changed since the run began; the run continues with the plan it began with"
    };
    let difference = match reload::compare(&state, plan) {
        Ok(difference) if difference.is_empty() => return Ok(false),
        Ok(difference) => difference,
        Err(reason) => {
            context.ui.warn(&format!("{goes_on}: {reason}"));
            return Ok(false);
        }
    };
    context.ui.warn("the plan's file has changed since the run began");
    lines(&state, &difference).iter().for_each(|line| context.ui.say(&format!("  {line}")));
    match context.ui.agrees("Apply these changes?") {
        Some(true) => {
            check(file, plan, context)?;
            take(plan, context)?;
            return Ok(true);
        }
        Some(false) if finished => {}
        Some(false) => context.ui.say("the run continues with the plan it began with"),
        None => {
            context.ui.warn(goes_on);
            context.ui.hint(&format!("apply the changes: rekindle plan reload {} --yes", file.path.display()));
        }
    }
    if finished {
        context.ui.hint("or run everything again, on a new branch: rekindle run PLAN --again");
    }
    Ok(false)
}

pub(super) fn export(args: &ExportArgs, context: &Context) -> Result<Exit> {
    let state = state_of(&context.project)?;
    let Some(plan) = state.present_plan() else { return Err(CliError::usage("there is no run here")) };
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let out = args.out.as_deref().filter(|out| *out != Path::new(output_file::STANDARD_OUTPUT));
    let named = out.is_none_or(|out| stem(out) != plan.name);
    let written =
        plan::write(&plan, named).map_err(|what| CliError::internal(format!("a plan cannot express {what}")))?;
    match &args.out {
        Some(out) => {
            let existing = if args.force { Existing::Replaced } else { Existing::Kept };
            output_file::write(out, written.text.as_bytes(), existing, &context.ui)?;
        }
        None => context.ui.raw(written.text.as_bytes())?,
    }
    for what in &written.quoted {
        context.ui.warn(&format!("the text of {what} would read as something else in a plan: it is quoted"));
    }
    Ok(Exit::Success)
}

struct Entries {
    added: Vec<EntryJson>,
    changed: Vec<EntryJson>,
    removed: Vec<EntryJson>,
}

fn entries(state: &State, difference: &Difference) -> Entries {
    let reload = &difference.reload;
    let added = reload.added.iter().map(|task| EntryJson {
        id: task.id.clone(),
        title: task.title.clone(),
        changed: Vec::new(),
        then: if task.done { "complete" } else { "starts" },
        text: if task.done { "complete: it is ticked off".to_owned() } else { after(&task.blocked_by) },
        dependants: Vec::new(),
    });
    let changed = reload.changed.iter().map(|changed| {
        let (then, text) = follows(state, changed);
        EntryJson {
            id: changed.task.id.clone(),
            title: changed.task.title.clone(),
            changed: changed.parts.iter().map(|part| part.words()).collect(),
            then,
            text,
            dependants: changed.validate.clone(),
        }
    });
    let removed = reload.removed.iter().map(|id| {
        let (then, text) = left(state, id);
        let title = state.plan_task(id).map(|task| task.title.clone()).unwrap_or_default();
        EntryJson { id: id.clone(), title, changed: Vec::new(), then, text, dependants: Vec::new() }
    });
    Entries { added: added.collect(), changed: changed.collect(), removed: removed.collect() }
}

fn after(blockers: &[TaskId]) -> String {
    let names: Vec<&str> = blockers.iter().map(TaskId::as_str).collect();
    if names.is_empty() {
        "starts when its turn comes".to_owned()
    } else {
        format!("starts after {}", names.join(", "))
    }
}

/// What follows for a changed task, in a word and in a sentence.
fn follows(state: &State, changed: &ChangedTask) -> (&'static str, String) {
    let id = &changed.task.id;
    let Some(known) = state.tasks.get(id) else { return ("starts", after(&changed.task.blocked_by)) };
    let working = known.holder.is_some_and(|holder| state.attempts.get(&holder).is_some_and(|found| found.is_live()));
    match changed.follow {
        Some(Follow::Redo) => {
            let stopped = if working { "its agent is stopped, and " } else { "" };
            let behind: Vec<&str> = changed.validate.iter().map(TaskId::as_str).collect();
            let proven = if behind.is_empty() {
                String::new()
            } else {
                format!("; complete tasks that depend on it are proven again after it: {}", behind.join(", "))
            };
            ("reopened", format!("{stopped}an agent works on its new text{proven}"))
        }
        Some(Follow::Prove) => ("proven", "its existing work is proven again, without an agent".to_owned()),
        Some(Follow::Complete) => ("complete", "complete on your word: it is ticked off".to_owned()),
        Some(Follow::Leave) => ("skipped", "skipped".to_owned()),
        None => match known.state {
            TaskState::Complete if known.workflow.word.is_some() => {
                ("stays", format!("stays complete on your word; reopen it: rekindle task retry {id}"))
            }
            TaskState::Complete => ("stays", "stays complete".to_owned()),
            TaskState::Skipped => ("stays", format!("stays skipped; reopen it: rekindle task retry {id}")),
            TaskState::Failed => ("stays", format!("stays failed; reopen it: rekindle task retry {id}")),
            TaskState::InProgress if working => {
                ("stays", "its agent continues; the change applies from now on".to_owned())
            }
            TaskState::Pending | TaskState::InProgress | TaskState::Blocked => {
                ("stays", "the change applies from now on".to_owned())
            }
        },
    }
}

/// What follows for a removed task.
fn left(state: &State, id: &TaskId) -> (&'static str, String) {
    let Some(known) = state.tasks.get(id) else { return ("skipped", String::new()) };
    match known.state {
        TaskState::Complete => ("stays", "stays complete on record, and its work is kept".to_owned()),
        TaskState::Skipped => ("stays", "stays skipped".to_owned()),
        TaskState::InProgress => ("skipped", "its agent is stopped, it is skipped, and its work is kept".to_owned()),
        TaskState::Pending | TaskState::Blocked | TaskState::Failed => {
            ("skipped", "it is skipped, and its work is kept".to_owned())
        }
    }
}

/// A difference, one line per change.
fn lines(state: &State, difference: &Difference) -> Vec<String> {
    let Entries { added, changed, removed } = entries(state, difference);
    let named = |mark: &str, entry: &EntryJson| format!("{mark} {} {}", entry.id, one_line(&entry.title));
    let mut lines: Vec<String> = Vec::new();
    lines.extend(added.iter().map(|entry| format!("{}: {}", named("+", entry), entry.text)));
    for entry in &changed {
        lines.push(format!("{} ({}): {}", named("~", entry), entry.changed.join(", "), entry.text));
    }
    lines.extend(removed.iter().map(|entry| format!("{}: {}", named("-", entry), entry.text)));
    if !difference.about_plan.is_empty() {
        let settings = if difference.about_plan.contains(&"settings") {
            "; settings apply from the next start of the run"
        } else {
            ""
        };
        lines.push(format!("~ the plan's {}{settings}", difference.about_plan.join(", ")));
    }
    if !difference.kept.is_empty() {
        let names: Vec<&str> = difference.kept.iter().map(TaskId::as_str).collect();
        lines
            .push(format!("  kept although the file does not have them, because you added them: {}", names.join(", ")));
    }
    if difference.is_empty() {
        lines.push("no task differs".to_owned());
    }
    lines
}
