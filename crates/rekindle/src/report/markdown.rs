//! The report on a run in Markdown, for people and for the summary of a CI step. Everything that an agent or a plan said is
//! escaped: it is shown, but cannot format anything.

use rekindle_core::report::Evidence;
use rekindle_core::text::{counted, folded, one_line, sanitize, tail_bytes, truncate_bytes};

use super::{Entry, List, Report, TaskReport};
use crate::picture::result::RunResult;
use crate::ui::{date_time, dollars, elapsed, short_count, zone_line};
use crate::view::Costs;

/// Longest report: a CI drops a step's summary of more than a megabyte entirely.
const MAX_BYTES: usize = 1_000_000;

/// Longest text in a table.
const CELL_MAX_BYTES: usize = 200;

/// Longest text in a list.
const WORDS_MAX_BYTES: usize = 1_000;

/// How much of a failing check's output is shown.
const OUTPUT_MAX_BYTES: usize = 4_000;

pub(crate) fn render(report: &Report) -> String {
    let mut out = head(report);
    failed(&mut out, report);
    not_proven(&mut out, report);
    tasks(&mut out, report);
    costs(&mut out, &report.costs);
    entries(&mut out, "Recovered", &report.recoveries);
    questions(&mut out, report);
    entries(&mut out, "Disagreements", &report.disagreements);
    entries(&mut out, "Decisions", &report.decisions);
    entries(&mut out, "Alerts", &report.alerts);
    files(&mut out, report);
    within_bounds(out)
}

fn head(report: &Report) -> String {
    let (run, counts) = (&report.run, &report.counts);
    let mark = match run.state.as_str() {
        "complete" => "✅",
        "failed" => "❌",
        _ => "⏳",
    };
    let mut out = format!("# {mark} {}: {}\n\n", text(&run.title, CELL_MAX_BYTES), text(&run.state, CELL_MAX_BYTES));
    let open = counts.open();
    out += &format!(
        "**{} of {} complete**, {} failed, {} skipped, {open} open; {} in {}.",
        counts.complete,
        counted(counts.all, "task", "tasks"),
        counts.failed,
        counts.skipped,
        counted(report.attempts, "attempt", "attempts"),
        elapsed(report.until.since_ms(run.started_at)),
    );
    if let Some(spent) = spent(report.spent.tokens, report.spent.cost_usd) {
        out += &format!(" Used: {spent}.");
    }
    if report.spent.own_tokens > 0 {
        out += &format!(" rekindle's own words: {} tokens.", short_count(report.spent.own_tokens));
    }
    out += &format!(
        "\n\n- Run: {} of plan {}\n- Begun: {} ({})\n",
        text(&run.id, CELL_MAX_BYTES),
        text(&run.plan, CELL_MAX_BYTES),
        date_time(run.started_at),
        zone_line(run.started_at),
    );
    if let Some(ended) = run.ended_at {
        out += &format!("- Ended: {}\n", date_time(ended));
    }
    if run.resumes > 0 {
        out += &format!("- Resumed: {}\n", counted(run.resumes as usize, "time", "times"));
    }
    for line in report.result.iter().flat_map(RunResult::lines) {
        out += &format!("- Result: {}\n", text(&line, WORDS_MAX_BYTES));
    }
    for line in &report.budgets {
        out += &format!("- Budget: {}\n", text(line, WORDS_MAX_BYTES));
    }
    if run.plan_changed {
        out += "- The plan's file differs from the plan of this run.\n";
    }
    out
}

/// What failed, and why, before anything else.
fn failed(out: &mut String, report: &Report) {
    let failed: Vec<&TaskReport> = report.tasks.iter().filter(|task| task.row.state == "failed").collect();
    if failed.is_empty() {
        return;
    }
    out.push_str("\n## Failed\n\n");
    for task in failed {
        let row = &task.row;
        out.push_str(&format!(
            "- **{}** {}: {} (`rekindle why {}`)\n",
            text(row.id.as_str(), CELL_MAX_BYTES),
            text(&row.title, CELL_MAX_BYTES),
            text(row.reason.as_deref().unwrap_or("it failed"), WORDS_MAX_BYTES),
            row.id
        ));
        if let Some(output) = &task.output {
            out.push_str(&format!("\n  {}:\n\n", text(&output.heading(), CELL_MAX_BYTES)));
            // One line each without anything that ends a block: indented, it is code whatever it says.
            output.shown().for_each(|line| out.push_str(&format!("      {}\n", one_line(line, WORDS_MAX_BYTES))));
            out.push('\n');
        }
    }
}

fn tasks(out: &mut String, report: &Report) {
    let costs = report.tasks.iter().any(|task| task.spent.tokens > 0 || task.spent.cost_usd.is_some());
    out.push_str("\n## Tasks\n\n| Task | Title | State | Attempts | Time | Agent | Proof |");
    out.push_str(if costs { " Used |\n" } else { "\n" });
    out.push_str("|---|---|---|--:|--:|---|---|");
    out.push_str(if costs { "--:|\n" } else { "\n" });
    for task in &report.tasks {
        let row = &task.row;
        let agent = row.agent.as_ref().map_or(String::new(), ToString::to_string);
        let agent = task.cli.as_ref().map_or(agent.clone(), |cli| format!("{agent} ({cli})"));
        let cells = [
            row.id.to_string(),
            row.title.clone(),
            row.state.replace('_', " "),
            format!("{}/{}", row.attempts, row.attempt_limit),
            if task.worked_ms > 0 { elapsed(task.worked_ms) } else { String::new() },
            agent,
            proof(task),
        ];
        out.push('|');
        cells.iter().for_each(|cell| out.push_str(&format!(" {} |", text(cell, CELL_MAX_BYTES))));
        if costs {
            let own = Some(task.spent.own_tokens).filter(|own| *own > 0);
            let own = own.map(|own| format!("{} by rekindle", short_count(own)));
            let used = spent(task.spent.tokens, task.spent.cost_usd).into_iter().chain(own).collect::<Vec<_>>();
            out.push_str(&format!(" {} |", used.join(", ")));
        }
        out.push('\n');
    }
}

/// Where the money went.
fn costs(out: &mut String, costs: &Costs) {
    if !costs.is_known() {
        return;
    }
    out.push_str("\n## Cost\n\n");
    if let Some(each) = spent(costs.tokens_per_proven_task.unwrap_or(0), costs.usd_per_proven_task) {
        let tasks = counted(costs.proven_tasks, "proven task", "proven tasks");
        out.push_str(&format!("{each} for each of {tasks}.\n\n"));
    }
    let tables = [("Model", &costs.by_model), ("Attempts that did not complete, by cause", &costs.by_retry_cause)];
    for (head, groups) in tables.into_iter().filter(|(_, groups)| !groups.is_empty()) {
        out.push_str(&format!("| {head} | Attempts | Tokens | Cost |\n|---|--:|--:|--:|\n"));
        for (name, group) in groups {
            let cost = group.cost_usd.map(dollars).unwrap_or_default();
            let name = text(&name.replace('_', " "), CELL_MAX_BYTES);
            out.push_str(&format!("| {name} | {} | {} | {cost} |\n", group.attempts, short_count(group.tokens)));
        }
        out.push('\n');
    }
}

/// What shows that a task is complete, or why it is not.
fn proof(task: &TaskReport) -> String {
    let row = &task.row;
    let refused = match task.refused_claims {
        0 => String::new(),
        1 => "; 1 claim refused".to_owned(),
        many => format!("; {many} claims refused"),
    };
    let shown = match (row.state.as_str(), &row.evidence) {
        ("complete", _) if row.by_operator => "the operator's word".to_owned(),
        ("failed" | "skipped", _) if row.by_operator => {
            let reason = row.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("{}{reason}", row.decided().unwrap_or_default())
        }
        ("complete", Some(evidence)) if row.unreported && !row.unproven => format!("{}; unreported", passed(evidence)),
        ("complete", _) if row.unreported => "a person's word; unreported".to_owned(),
        ("complete", _) if row.unproven => "its agent's word alone".to_owned(),
        ("complete", Some(evidence)) => passed(evidence),
        ("complete", None) => "an operator's word".to_owned(),
        ("failed" | "skipped" | "blocked", _) => row.reason.clone().unwrap_or_default(),
        (_, Some(evidence)) if !evidence.passed() => evidence.complaint(),
        _ => String::new(),
    };
    format!("{shown}{refused}").trim_start_matches("; ").to_owned()
}

fn passed(evidence: &Evidence) -> String {
    match evidence.checks.len() {
        0 => "artifacts are there".to_owned(),
        1 => "1 check passed".to_owned(),
        many => format!("{many} checks passed"),
    }
}

fn spent(tokens: u64, cost: Option<f64>) -> Option<String> {
    let tokens = (tokens > 0).then(|| format!("{} tokens", short_count(tokens)));
    let parts: Vec<String> = tokens.into_iter().chain(cost.map(dollars)).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn entries(out: &mut String, heading: &str, list: &List<Entry>) {
    if list.kept.is_empty() {
        return;
    }
    out.push_str(&format!("\n## {heading}\n\n"));
    for entry in &list.kept {
        let whom: Vec<&str> = entry.task.as_deref().into_iter().chain(entry.agent.as_deref()).collect();
        let whom = if whom.is_empty() { "run".to_owned() } else { text(&whom.join(", "), CELL_MAX_BYTES) };
        out.push_str(&format!("- {} **{whom}**: {}\n", date_time(entry.time), text(&entry.text, WORDS_MAX_BYTES)));
    }
    more(out, list.more);
}

fn more(out: &mut String, count: usize) {
    if count > 0 {
        out.push_str(&format!("- … and {count} more\n"));
    }
}

fn questions(out: &mut String, report: &Report) {
    if report.questions.is_empty() {
        return;
    }
    out.push_str("\n## Questions\n\n");
    for question in &report.questions {
        out.push_str(&format!(
            "- **{}**, {} asked: {}\n",
            text(question.task.as_str(), CELL_MAX_BYTES),
            text(question.agent.as_str(), CELL_MAX_BYTES),
            text(&question.text, WORDS_MAX_BYTES),
        ));
        match &question.answer {
            Some(answer) => out.push_str(&format!("  - answered: {}\n", text(answer, WORDS_MAX_BYTES))),
            None => out.push_str(&format!("  - **open**: `rekindle answer {} TEXT`\n", question.id)),
        }
    }
}

fn files(out: &mut String, report: &Report) {
    if report.files.kept.is_empty() {
        return;
    }
    out.push_str("\n## Files\n\n");
    for file in &report.files.kept {
        out.push_str(&format!("- {}\n", text(file, WORDS_MAX_BYTES)));
    }
    more(out, report.files.more);
}

/// What the last checks of tasks that are not complete printed.
fn not_proven(out: &mut String, report: &Report) {
    let open = report.tasks.iter().filter(|task| task.row.state != "complete");
    let failing: Vec<_> = open
        .flat_map(|task| {
            let checks = task.row.evidence.iter().flat_map(|evidence| &evidence.checks);
            checks.filter(|check| !check.passed).map(move |check| (task, check))
        })
        .collect();
    if failing.is_empty() {
        return;
    }
    out.push_str("\n## Failing checks\n");
    for (task, check) in failing {
        out.push_str(&format!(
            "\n**{}**: {}\n\n",
            text(task.row.id.as_str(), CELL_MAX_BYTES),
            text(&check.command, WORDS_MAX_BYTES)
        ));
        let clean = sanitize(&check.output);
        let shown = tail_bytes(clean.trim_end(), OUTPUT_MAX_BYTES);
        // Indented and not fenced: nothing in it can end the block.
        let lines = if shown.trim().is_empty() { "(no output)" } else { shown };
        lines.lines().for_each(|line| out.push_str(&format!("    {line}\n")));
    }
}

/// Untrusted text on one line, with everything escaped that Markdown or HTML would interpret.
fn text(words: &str, max_bytes: usize) -> String {
    let mut out = String::new();
    for c in one_line(words, max_bytes).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // A mention would notify somebody.
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '$' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn within_bounds(out: String) -> String {
    if out.len() <= MAX_BYTES {
        return out;
    }
    // Leaves room for the line that says so.
    let kept = truncate_bytes(&out, MAX_BYTES - 200);
    let kept = &kept[..kept.rfind('\n').map_or(0, |end| end + 1)];
    format!("{kept}\n{}\n", folded(out.len() - kept.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_strangers_do_not_format() {
        let hostile = "a|b\n# head <b>x</b> `c` [l](u) *e* _f_ $m$ @who &amp; \\ ![i](u)\u{1b}[31m";
        assert_eq!(
            text(hostile, 500),
            "a\\|b \\# head &lt;b&gt;x&lt;/b&gt; \\`c\\` \\[l\\](u) \\*e\\* \\_f\\_ \\$m\\$ &#64;who &amp;amp; \\\\ \\!\\[i\\](u)"
        );
    }

    #[test]
    fn a_report_that_is_too_long_is_cut_at_a_line_and_says_so() {
        let cut = within_bounds("line of a report\n".repeat(100_000));
        assert!(cut.len() <= MAX_BYTES);
        assert!(cut.ends_with(" bytes folded …\n") && cut.contains("report\n\n… "), "{}", &cut[cut.len() - 80..]);
        assert_eq!(within_bounds("short\n".to_owned()), "short\n");
    }
}
