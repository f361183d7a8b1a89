//! Checks the demonstration's promises against the log that it left.

use std::collections::BTreeMap;

use crate::commands::Context;
use crate::error::Result;
use crate::project::Project;
use crate::view::View;
use rekindle_core::text::counted;

/// Events that must be in the log, and what each shows.
const PROMISES: &[(&str, &str)] = &[
    ("agent_crashed", "an agent was killed in the middle of its work, and replaced"),
    ("developer_timeout", "an agent hung, was stopped with its whole tree, and replaced"),
    ("checks_finished", "claims were proven by running the checks; a lie was refused"),
    ("coordinator_recovered", "the coordinator was killed with SIGKILL; the next one continued"),
    ("agent_adopted", "the agent that was running meanwhile was adopted, not restarted"),
];

/// Prints the proof and returns whether it is complete.
pub(super) fn show(context: &Context, project: &Project) -> Result<bool> {
    let view = View::open(project)?;
    let run = view.the_run()?;
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let mut refused = 0;
    run.events(0, |event| {
        *counts.entry(event.kind.clone()).or_default() += 1;
        if event.kind == "checks_finished" && event.details.contains("\"passed\":false") {
            refused += 1;
        }
        Ok(())
    })?;
    context.ui.line("")?;
    context.ui.line("What the event log holds:")?;
    let mut all = refused > 0;
    for (kind, meaning) in PROMISES {
        let count = counts.get(*kind).copied().unwrap_or(0);
        all &= count > 0;
        let mark = if count > 0 { "ok" } else { "MISSING" };
        context.ui.line(&format!("  {mark:<7} {kind:<22} ×{count}  {meaning}"))?;
    }
    let attempts = run.attempts()?;
    let long = attempts.iter().filter(|attempt| attempt.name.as_str() == "developer-long").count();
    all &= long == 1 && run.row.state == "complete";
    context.ui.line(&format!(
        "  {} complete with {}; the slow one needed {long}.",
        counted(run.tasks()?.len(), "task", "tasks"),
        counted(attempts.len(), "attempt", "attempts")
    ))?;
    Ok(all)
}
