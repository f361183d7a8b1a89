//! What would be removed and what was removed, for people and for programs.

use rekindle_core::retention::{Kept, Part};
use rekindle_core::size;
use rekindle_core::text::counted;
use rekindle_engine::clean::{self, Done, Item, Place, Plan, Refused, Report, Survey};
use serde::Serialize;

use super::super::Context;
use crate::error::Result;
use crate::ui::{Align, Table, Tone, date_time, one_line, short_commit};

/// What was or would be removed, for programs.
#[derive(Serialize)]
struct CleanJson<'a> {
    schema_version: u32,
    dry_run: bool,
    /// Bytes that were or would be freed in the state directory.
    freed_bytes: u64,
    /// Of that, copies that belong to no run.
    copies_bytes: u64,
    /// The size of the state directory now.
    disk_bytes: u64,
    runs: Vec<RunJson<'a>>,
    refused: &'a [Refused],
    /// Everything that may be removed has been removed.
    complete: bool,
}

#[derive(Serialize)]
struct RunJson<'a> {
    run: &'a str,
    removed: &'a [Part],
    bytes: u64,
    lines: u64,
    refs: usize,
    worktrees: usize,
    /// The branch that was deleted with the rest.
    branch: Option<&'a str>,
    /// Why its output stays.
    output_kept: Option<Kept>,
    /// Why its snapshots, worktrees and refs stay.
    work_kept: Option<Kept>,
}

pub(super) fn planned(json: bool, context: &Context, survey: &Survey, plan: &Plan) -> Result<()> {
    if json {
        let runs = plan.items.iter().map(|item| RunJson {
            run: &item.run,
            removed: &item.parts,
            bytes: item.bytes,
            lines: 0,
            refs: 0,
            worktrees: 0,
            branch: None,
            output_kept: item.output,
            work_kept: item.work,
        });
        return context.ui.json(&CleanJson {
            schema_version: 1,
            dry_run: true,
            freed_bytes: plan.bytes(),
            copies_bytes: plan.copies.iter().map(|copy| copy.bytes).sum(),
            disk_bytes: survey.bytes,
            runs: runs.collect(),
            refused: &[],
            complete: plan.is_empty(),
        });
    }
    let columns = [
        ("RUN", Align::Left),
        ("OVER SINCE", Align::Left),
        ("GOES", Align::Left),
        ("FREES", Align::Right),
        ("STAYS", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for (item, left) in plan.items.iter().zip(&survey.runs) {
        let goes: Vec<&str> = item.parts.iter().map(|part| part.words()).collect();
        table.row([
            (item.run.clone(), Some(Tone::Strong)),
            (left.found.over_at.map(date_time).unwrap_or_default(), None),
            (goes.join(", "), None),
            (if item.bytes > 0 { size::format(item.bytes) } else { String::new() }, None),
            (stays(item, left), None),
        ]);
    }
    if !table.is_empty() {
        context.ui.line(&table.render(context.ui.paint(), context.ui.width()))?;
    }
    for copy in &plan.copies {
        context.ui.line(&format!("copy  {}  {}", copy.path.display(), size::format(copy.bytes)))?;
    }
    let words = match plan.is_empty() {
        true => "nothing would be removed".to_owned(),
        false => format!("{} would be freed, log lines not counted", size::format(plan.bytes())),
    };
    context.ui.say(&format!("{words}; the state takes {} of disk", size::format(survey.bytes)));
    advise(plan, context);
    Ok(())
}

/// Why something of a run stays.
fn stays(item: &Item, left: &clean::Left) -> String {
    match (item.output.filter(|_| left.has_output()), item.work.filter(|_| left.has_work())) {
        (Some(Kept::InFlight), _) | (_, Some(Kept::InFlight)) => Kept::InFlight.words().to_owned(),
        (Some(output), Some(work)) if output == work => output.words().to_owned(),
        (Some(output), Some(work)) => format!("output: {}; snapshots: {}", output.words(), work.words()),
        (Some(kept), None) => kept.words().to_owned(),
        (None, Some(kept)) => format!("snapshots: {}", kept.words()),
        (None, None) => String::new(),
    }
}

pub(super) fn done(json: bool, context: &Context, place: &Place, plan: &Plan, report: &Report) -> Result<()> {
    let disk_bytes = clean::used_in_all(&place.state_dir).bytes;
    if json {
        let nothing = Done::default();
        let runs = plan.items.iter().map(|item| {
            let done = report.done.iter().find(|done| done.run == item.run).unwrap_or(&nothing);
            RunJson {
                run: &item.run,
                removed: &done.parts,
                bytes: done.bytes,
                lines: done.lines,
                refs: done.retired.refs,
                worktrees: done.retired.worktrees,
                branch: done.retired.branch.as_ref().map(|(name, _)| name.as_str()),
                output_kept: item.output,
                work_kept: item.work,
            }
        });
        return context.ui.json(&CleanJson {
            schema_version: 1,
            dry_run: false,
            freed_bytes: report.bytes(),
            copies_bytes: report.copies,
            disk_bytes,
            runs: runs.collect(),
            refused: &report.refused,
            complete: report.refused.is_empty(),
        });
    }
    for done in &report.done {
        context.ui.line(&one_run(done))?;
        if let Some((branch, commit)) = &done.retired.branch {
            context.ui.line(&format!("      deleted branch {branch} (was {})", short_commit(commit)))?;
        }
    }
    if report.copies > 0 {
        context.ui.line(&format!("{}: {}", Part::Copies.words(), size::format(report.copies)))?;
    }
    let words = match report.bytes() {
        0 if report.done.is_empty() => "there was nothing to remove".to_owned(),
        bytes => format!("{} freed", size::format(bytes)),
    };
    context.ui.say(&format!("{words}; the state takes {} of disk", size::format(disk_bytes)));
    for refused in &report.refused {
        let path = refused.path.display().to_string();
        let at = if path.is_empty() { String::new() } else { format!("{path}: ") };
        context.ui.warn(&one_line(&format!("not removed: {at}{}", refused.why)));
    }
    if report.done.iter().any(|done| done.retired.refs > 0) {
        context.ui.hint("git drops the objects of removed snapshots by itself; at once: git gc --prune=now");
    }
    advise(plan, context);
    Ok(())
}

fn one_run(done: &Done) -> String {
    let mut parts: Vec<String> = Vec::new();
    if done.bytes > 0 {
        parts.push(size::format(done.bytes));
    }
    let mut add = |many: usize, one: &str, more: &str| {
        if many > 0 {
            parts.push(counted(many, one, more));
        }
    };
    add(usize::try_from(done.lines).unwrap_or(usize::MAX), "log line", "log lines");
    add(done.retired.refs, "ref", "refs");
    add(done.retired.worktrees, "worktree", "worktrees");
    let what: Vec<&str> = done.parts.iter().map(|part| part.words()).collect();
    let what = if what.is_empty() { "leftovers".to_owned() } else { what.join(", ") };
    let counts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    format!("run {}: removed {what}{counts}", done.run)
}

/// Suggests what to type about work that is kept although it is old.
fn advise(plan: &Plan, context: &Context) {
    for item in plan.items.iter().filter(|item| item.output.is_none()) {
        let hint = match item.work {
            Some(Kept::NotLanded) => "take it: rekindle land, or git merge its branch; give it up",
            Some(Kept::NotComplete) => "its files: rekindle salvage; give them up",
            _ => continue,
        };
        let kept = item.work.map(Kept::words).unwrap_or_default();
        context.ui.hint(&format!("run {} keeps its snapshots: {kept}; {hint}: rekindle clean --discard {0}", item.run));
    }
}
