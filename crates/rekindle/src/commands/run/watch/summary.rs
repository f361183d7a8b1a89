//! How a run stands when `run` ends: what failed first, then what needs a person, then the count.

use rekindle_engine::clock;
use rekindle_engine::git::{Repo, Work};

use crate::commands::Context;
use crate::error::Result;
use crate::ui::{dollars, elapsed, one_line, short_count};
use crate::view::{Counts, RunView, Spent, View};

/// Prints the summary on standard output.
///
/// # Errors
/// When the store cannot be read, or nobody reads standard output.
pub fn summary(context: &Context) -> Result<()> {
    match View::open(&context.project)?.run()? {
        Some(run) => summary_of(context, &run),
        None => Ok(()),
    }
}

/// Prints the summary of one run on standard output.
///
/// # Errors
/// As [`summary`].
pub fn summary_of(context: &Context, run: &RunView<'_>) -> Result<()> {
    let tasks = run.tasks()?;
    let counts = Counts::of(&tasks);
    let ui = &context.ui;
    for task in tasks.iter().filter(|task| task.state == "failed") {
        let reason = task.reason.as_deref().map(one_line).unwrap_or_default();
        ui.line(&format!("failed   {} {}: {reason}", task.id, one_line(&task.title)))?;
        ui.line(&format!("         rekindle why {0} · rekindle task retry {0} · rekindle task skip {0}", task.id))?;
    }
    for task in tasks.iter().filter(|task| task.state == "blocked") {
        let reason = task.reason.as_deref().map(one_line).unwrap_or_default();
        ui.line(&format!("blocked  {} {}: {reason}", task.id, one_line(&task.title)))?;
    }
    for task in tasks.iter().filter(|task| task.unproven) {
        ui.line(&format!("unproven {} {}: complete on its agent's word alone", task.id, one_line(&task.title)))?;
    }
    let attempts = run.attempts()?;
    let lost =
        attempts.iter().filter(|attempt| attempt.cause.as_deref().is_some_and(|cause| cause != "completed")).count();
    let took = elapsed(run.until(clock::wall()).since_ms(run.row.started_at));
    let left = counts.all - counts.complete - counts.failed - counts.skipped;
    let spent = Spent::by_all(&attempts);
    let tokens = if spent.tokens > 0 { format!("; {} tokens", short_count(spent.tokens)) } else { String::new() };
    let cost = spent.cost_usd.map(|cost| format!(", {}", dollars(cost))).unwrap_or_default();
    ui.line(&format!(
        "{} {}: {} of {} tasks complete, {} failed, {} skipped, {left} open; {} attempts, {lost} of them replaced or stopped{tokens}{cost}; {took}",
        run.row.plan, run.row.state, counts.complete, counts.all, counts.failed, counts.skipped, attempts.len(),
    ))?;
    if let Some(branch) = &run.row.work_branch {
        ui.line(&result_line(context, &run.row.id, branch))?;
    }
    if run.row.state == "paused" {
        ui.hint("go on with it: rekindle resume");
    }
    Ok(())
}

/// Where the accepted work is, and what to type to take it.
fn result_line(context: &Context, run: &str, branch: &str) -> String {
    let project = &context.project;
    let work = Repo::of(&project.root).and_then(|repo| Work::new(repo, &project.state_dir, run, branch));
    match work.and_then(|work| work.summary()) {
        Ok(found) if found.ahead == 0 => format!("result   nothing on {branch} that your checkout does not have"),
        Ok(found) => {
            let commits = if found.ahead == 1 { "commit" } else { "commits" };
            format!(
                "result   {} {commits} on {branch}, your checkout is as it was; take it: {}",
                found.ahead, found.take
            )
        }
        Err(error) => format!("result   on {branch}, your checkout is as it was ({error})"),
    }
}
