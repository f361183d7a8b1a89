//! The table below the lines on a terminal: progress, who works, who waits. It is redrawn in place; a log file never sees it.

use rekindle_core::time::Time;
use rekindle_core::view::TaskRow;

use crate::error::Result;
use crate::ui::{Ui, elapsed, one_line, width_of};
use crate::view::{Counts, RunView};

/// Rows of agents shown at most, so that the table fits below some lines on a small terminal.
const AGENTS_SHOWN: usize = 8;

/// Cells of the progress bar.
const BAR_CELLS: usize = 24;

/// The part of the terminal that is redrawn.
pub struct Live {
    ui: Ui,
    on: bool,
    /// Columns of each row of the table that stands there now.
    drawn: Vec<usize>,
}

impl Live {
    /// A table where standard error is a terminal, nothing elsewhere.
    pub fn new(ui: &Ui) -> Self {
        Self { ui: *ui, on: ui.draws_live(), drawn: Vec::new() }
    }

    /// Whether there is a table: it shows the time, so it changes without news.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// The rows of the table.
    pub fn table(&self, run: &RunView<'_>, tasks: &[TaskRow], now: Time) -> Result<Vec<String>> {
        if !self.on {
            return Ok(Vec::new());
        }
        let counts = Counts::of(tasks);
        let ended = counts.complete + counts.failed + counts.skipped;
        let filled = (ended * BAR_CELLS).checked_div(counts.all).unwrap_or(0);
        let bar = format!("{}{}", "█".repeat(filled), "░".repeat(BAR_CELLS - filled));
        let since = elapsed(now.since_ms(run.row.started_at));
        let failed = if counts.failed > 0 { format!(", {} failed", counts.failed) } else { String::new() };
        let mut rows = vec![format!("  {bar} {ended}/{} tasks{failed} · {} · {since}", counts.all, run.row.state)];
        let agents = run.agents()?;
        let running: Vec<_> = agents.iter().filter(|agent| agent.state != "ended").collect();
        for agent in running.iter().take(AGENTS_SHOWN) {
            let task = agent.task.as_ref().map(ToString::to_string).unwrap_or_default();
            let took = elapsed(now.since_ms(agent.started_at));
            let last = run.tail(Some(agent.name.as_str()), 1)?;
            let said = last.first().map(|line| one_line(&line.line.text)).unwrap_or_default();
            let context = agent
                .measure
                .and_then(|measure| measure.remaining_percent())
                .map(|left| format!("{}%", 100 - left))
                .unwrap_or_default();
            rows.push(format!("  {:<10} {:<20} {task:<12} {took:>8} {context:>4}  {said}", agent.state, agent.name));
        }
        if running.len() > AGENTS_SHOWN {
            rows.push(format!("  … and {} more", running.len() - AGENTS_SHOWN));
        }
        let asking = run.questions()?.into_iter().filter(|question| question.answer.is_none());
        rows.extend(asking.map(|question| {
            format!("  ? {} {}: rekindle answer {} TEXT", question.task, one_line(&question.text), question.id)
        }));
        rows.extend(run.resumes(now).map(|line| format!("  {line}")));
        rows.extend(run.waits(now).map(|line| format!("  {line}")));
        let waiting = tasks.iter().filter_map(|task| task.not_before.filter(|time| *time > now)).min();
        rows.extend(waiting.map(|time| format!("  next attempt in {}", elapsed(time.since_ms(now)))));
        Ok(rows)
    }

    /// Puts new lines where the table was, and the table below them.
    pub fn draw(&mut self, lines: &[String], table: &[String]) {
        if !self.on {
            for line in lines {
                self.ui.say(line);
            }
            return;
        }
        let (columns, rows) = self.ui.terminal_size();
        let mut out = erase(&self.drawn, columns, rows);
        for line in lines {
            out.push_str(line);
            out.push('\n');
        }
        self.drawn.clear();
        // A table higher than the terminal could not be erased any more: its upper rows would scroll away.
        for row in table.iter().take(rows.saturating_sub(1)) {
            let row = self.ui.cut_to(row, columns);
            self.drawn.push(width_of(&row));
            out.push_str(&row);
            out.push('\n');
        }
        self.ui.draw(&out);
    }
}

/// Takes back what was drawn. On a terminal that has become narrower, a row has been broken into several.
fn erase(drawn: &[usize], columns: usize, rows: usize) -> String {
    let height: usize = drawn.iter().map(|width| width.div_ceil(columns).max(1)).sum();
    match height.min(rows.saturating_sub(1)) {
        0 => String::new(),
        up => format!("\x1b[{up}A\x1b[J"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_drawn_is_taken_back_also_after_the_terminal_was_resized() {
        assert_eq!(erase(&[], 80, 24), "");
        assert_eq!(erase(&[80, 10, 0], 80, 24), "\x1b[3A\x1b[J");
        assert_eq!(erase(&[80, 10, 0], 30, 24), "\x1b[5A\x1b[J", "three rows for the first now");
        assert_eq!(erase(&[80, 80, 80], 20, 6), "\x1b[5A\x1b[J", "never beyond the top");
    }
}
