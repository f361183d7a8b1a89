//! The state of a run when `run` ends: what failed first, then what needs a person, then what was recovered and the count.

use rekindle_core::text::counted;
use rekindle_core::view::Counts;
use rekindle_engine::clock;

use crate::commands::Context;
use crate::error::Result;
use crate::picture::history::{History, MarkKind};
use crate::picture::result::{self, RunResult};
use crate::ui::{dollars, elapsed, one_line, short_count};
use crate::view::{RunView, Spent, View};

/// Prints the summary on standard output.
pub(crate) fn summary(context: &Context) -> Result<()> {
    match View::open(&context.project)?.run()? {
        Some(run) => summary_of(context, &run),
        None => Ok(()),
    }
}

/// Prints the summary of one run on standard output.
pub(crate) fn summary_of(context: &Context, run: &RunView<'_>) -> Result<()> {
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
    for (task, (mark, words)) in tasks.iter().filter_map(|task| Some((task, task.doubt()?))) {
        ui.line(&format!("{mark} {} {}: {words}", task.id, one_line(&task.title)))?;
    }
    if let Some(line) = recovered(run)? {
        ui.line(&line)?;
    }
    let attempts = run.attempts()?;
    let lost =
        attempts.iter().filter(|attempt| attempt.cause.as_deref().is_some_and(|cause| cause != "completed")).count();
    let took = elapsed(run.until(clock::wall()).since_ms(run.row.started_at));
    let left = counts.open();
    let spent = Spent::by_all(&attempts);
    let tokens = if spent.tokens > 0 { format!("; {} tokens", short_count(spent.tokens)) } else { String::new() };
    let cost = spent.cost_usd.map(|cost| format!(", {}", dollars(cost))).unwrap_or_default();
    ui.line(&format!(
        "{} {}: {} of {} complete, {} failed, {} skipped, {left} open; {}, {lost} of them replaced or stopped{tokens}{cost}; {took}",
        run.row.plan,
        run.row.state,
        counts.complete,
        counted(counts.all, "task", "tasks"),
        counts.failed,
        counts.skipped,
        counted(attempts.len(), "attempt", "attempts"),
    ))?;
    for (nth, line) in result::of(&context.project, &run.row, &tasks).iter().flat_map(RunResult::lines).enumerate() {
        ui.line(&format!("{:<9}{line}", if nth == 0 { "result" } else { "" }))?;
    }
    if run.row.state == "paused" {
        ui.hint("continue it: rekindle resume");
    }
    Ok(())
}

/// The number of problems that the run recovered from, by kind.
fn recovered(run: &RunView<'_>) -> Result<Option<String>> {
    let mut history = History::default();
    run.events(0, |event| {
        history.take(event);
        Ok(())
    })?;
    Ok(told(&history))
}

fn told(history: &History) -> Option<String> {
    let kinds = [MarkKind::Crash, MarkKind::Hang, MarkKind::Limit, MarkKind::Compaction, MarkKind::Refused].into_iter();
    let happened = kinds.filter(|kind| history.count(*kind) > 0);
    let counted: Vec<String> = happened.map(|kind| kind.counted(history.count(kind))).collect();
    let times = match history.count(MarkKind::Recovery) {
        0 => return None,
        1 => "once".to_owned(),
        many => format!("{many} times"),
    };
    let from = if counted.is_empty() { String::new() } else { format!(", after {}", counted.join(", ")) };
    Some(format!("recovered {times}{from}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::sample::Script;

    #[test]
    fn what_was_got_over_is_counted() {
        let mut script = Script::default();
        assert_eq!(told(&script.history()), None);
        script.dispatched(0, "dev", "t1", 1, false).crashed(5, "dev", "t1", 1).dispatched(9, "dev", "t1", 2, true);
        assert_eq!(told(&script.history()).as_deref(), Some("recovered once, after 1 crash"));
        script.crashed(15, "dev", "t1", 2).dispatched(19, "dev", "t1", 3, true);
        assert_eq!(told(&script.history()).as_deref(), Some("recovered 2 times, after 2 crashes"));
    }
}
