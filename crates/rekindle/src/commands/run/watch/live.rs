//! The table below the lines on a terminal, redrawn in place; a log file never gets it. `table` decides its contents.

mod table;

use rekindle_core::ids::AgentName;

use super::Progress;
use crate::error::Result;
use crate::picture::Picture;
use crate::ui::{Paint, Ui, cut, harmless, one_line, width_of};
use crate::view::RunView;

use self::table::{Row, Said};

/// How many agents' last words are read: no more fit.
const AGENTS_MAX: usize = 12;

/// The part of the terminal that is redrawn.
pub(super) struct Live {
    ui: Ui,
    on: bool,
    /// Widths of the rows that are on the terminal now.
    drawn: Vec<usize>,
    title: String,
}

impl Live {
    /// A table if standard error is a terminal and it was not asked for only lines; otherwise none.
    pub(super) fn new(ui: &Ui, progress: Progress) -> Self {
        let on = match progress {
            Progress::Auto => ui.draws_live(),
            Progress::Live => ui.is_watched(),
            Progress::Lines | Progress::None => false,
        };
        Self { ui: *ui, on, drawn: Vec::new(), title: String::new() }
    }

    /// Whether there is a table: it shows the time, so it changes without news.
    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    pub(super) fn table(&self, run: &RunView<'_>, picture: &Picture) -> Result<Vec<Row>> {
        if !self.on {
            return Ok(Vec::new());
        }
        let mut said = Said::new();
        let running = picture.attempts.iter().filter(|attempt| attempt.ended_at.is_none());
        for agent in running.take(AGENTS_MAX) {
            said.insert(agent.name.clone(), last_words(run, &agent.name)?);
        }
        let (columns, rows) = self.ui.terminal_size();
        Ok(table::rows(picture, &said, columns, rows.saturating_sub(1)))
    }

    /// Sets the terminal's window title to the state of the run, if it has changed.
    pub(super) fn entitle(&mut self, picture: &Picture) {
        let title = table::title(picture);
        if self.on && title != self.title {
            self.ui.title(&title);
            self.title = title;
        }
    }

    /// Puts new lines where the table was, and the table below them.
    pub(super) fn draw(&mut self, lines: &[String], table: &[Row]) {
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
        // A table taller than the terminal could not be erased: its upper rows would scroll away.
        for row in table.iter().take(rows.saturating_sub(1)) {
            let (shown, width) = painted(row, columns, self.ui.err_paint());
            self.drawn.push(width);
            out.push_str(&shown);
            out.push('\n');
        }
        self.ui.draw(&out);
    }
}

/// A row in its colours, no wider than the terminal, and how wide it is.
fn painted(row: &Row, columns: usize, paint: Paint) -> (String, usize) {
    let head = cut(&harmless(&row.head), columns);
    let rest = cut(&harmless(&row.rest), columns.saturating_sub(width_of(&head)));
    let width = width_of(&head) + width_of(&rest);
    (format!("{}{rest}", paint.tone(row.tone, &head)), width)
}

fn last_words(run: &RunView<'_>, agent: &AgentName) -> Result<String> {
    let last = run.tail(Some(agent.as_str()), 1)?;
    Ok(last.first().map(|line| one_line(&line.line.text)).unwrap_or_default())
}

/// Erases what was drawn. On a terminal that has become narrower, a row is wrapped into several.
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
