//! The only place that prints. Standard output carries what was asked for, standard error everything else; colours carry
//! no meaning alone. Text that agents wrote is made harmless here before it reaches a terminal.

mod columns;
mod count;
mod diagnostic;
mod duration;
mod paint;
mod status_line;
mod table;
mod wait;

use std::io::{self, ErrorKind, IsTerminal, Write};

use serde::Serialize;

pub(crate) use columns::{cut, graphemes, width_of};
pub(crate) use count::{dollars, short_count};
pub(crate) use duration::{
    clock_time, date_time, date_time_zone, elapsed, near_time, stamp, use_utc, zone_line, zone_name,
};
pub(crate) use paint::{ColorChoice, Paint, Tone};
pub(crate) use status_line::StatusLine;
pub(crate) use table::{Align, Table};
pub(crate) use wait::pause;

use crate::diagnostic::Diagnostic;
use crate::error::{CliError, Kind, Result};

/// Width of lines where there is no terminal to ask: wide enough for a log file, narrow enough for a mail.
const WIDTH_WITHOUT_TERMINAL: usize = 120;

/// Rows where a terminal does not say how many it has: the classic screen.
const ROWS_WITHOUT_TERMINAL: usize = 24;

/// Narrowest width that tables are laid out for; on a narrower terminal lines wrap.
const WIDTH_MIN: usize = 40;

/// What an error says that was given no words: somebody who scripts this must not be left with a number alone.
const UNNAMED: &str = "it could not be done, and nothing says why: please report this";

/// Both output streams and how they may be used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ui {
    out: Paint,
    err: Paint,
    width: usize,
}

impl Ui {
    /// Inspects the terminal and the environment once.
    pub(crate) fn new(color: ColorChoice) -> Self {
        let width = terminal_size().map_or(WIDTH_WITHOUT_TERMINAL, |(columns, _)| columns);
        Self {
            out: Paint::for_stream(color, io::stdout().is_terminal()),
            err: Paint::for_stream(color, io::stderr().is_terminal()),
            width: width.max(WIDTH_MIN),
        }
    }

    /// Colours for standard output.
    pub(crate) fn paint(&self) -> Paint {
        self.out
    }

    /// Colours for standard error.
    pub(crate) fn err_paint(&self) -> Paint {
        self.err
    }

    /// The maximum number of columns in a line.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Prints a line of data. Fails when it cannot be written; a reader that has gone ends the program quietly.
    pub(crate) fn line(&self, text: &str) -> Result<()> {
        self.raw(format!("{text}\n").as_bytes())
    }

    /// Prints bytes of data as they are.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes).map_err(|e| unwritten(&e))
    }

    /// Flushes standard output.
    pub(crate) fn flush(&self) -> Result<()> {
        io::stdout().lock().flush().map_err(|e| unwritten(&e))
    }

    /// Prints data as one line of JSON.
    pub(crate) fn json_line<T: Serialize>(&self, value: &T) -> Result<()> {
        let text = serde_json::to_string(value);
        self.line(&text.map_err(|e| CliError::internal("cannot write JSON").because(&e))?)
    }

    /// Prints data as indented JSON.
    pub(crate) fn json<T: Serialize>(&self, value: &T) -> Result<()> {
        let text = serde_json::to_string_pretty(value);
        self.line(&text.map_err(|e| CliError::internal("cannot write JSON").because(&e))?)
    }

    /// Prints a message that is not data. A missing reader is no reason to fail.
    pub(crate) fn say(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Warns that something may be wrong.
    pub(crate) fn warn(&self, text: &str) {
        self.labelled("warning", Tone::Warning, text);
    }

    /// Prints what to type next.
    pub(crate) fn hint(&self, text: &str) {
        self.labelled("hint", Tone::Hint, text);
    }

    /// A line of a run's progress, as it would be printed.
    pub(crate) fn rendered(&self, line: &StatusLine<'_>) -> String {
        line.render(self.err, self.width)
    }

    /// Whether a table may be redrawn in place: only if standard error is a terminal that supports it.
    pub(crate) fn draws_live(&self) -> bool {
        self.is_watched() && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
    }

    /// Whether standard output is a terminal.
    pub(crate) fn prints_to_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Whether standard error is a terminal.
    pub(crate) fn is_watched(&self) -> bool {
        io::stderr().is_terminal()
    }

    /// Sets the title of the terminal's window, if standard error is a terminal that can have one.
    pub(crate) fn title(&self, text: &str) {
        // A console without windows would print the sequence.
        let console = std::env::var_os("TERM").is_none_or(|term| term == "linux" || term == "dumb");
        if io::stderr().is_terminal() && !console {
            self.draw(&format!("\x1b]2;{}\x07", one_line(text)));
        }
    }

    /// Asks a person a yes-or-no question; `None` if nobody is at a terminal.
    pub(crate) fn agrees(&self, question: &str) -> Option<bool> {
        if !(io::stderr().is_terminal() && io::stdin().is_terminal()) {
            return None;
        }
        self.draw(&format!("{question} [y/N] "));
        let mut answer = String::new();
        // The end of input means no.
        let _no = io::stdin().read_line(&mut answer);
        Some(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }

    /// Rings the bell, where standard error is a terminal.
    pub(crate) fn ring(&self) {
        if io::stderr().is_terminal() {
            self.draw("\x07");
        }
    }

    /// Draws on the terminal. A missing reader is no reason to fail.
    pub(crate) fn draw(&self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Columns and rows of the terminal as it is now: it may have been resized since the start.
    pub(crate) fn terminal_size(&self) -> (usize, usize) {
        terminal_size().unwrap_or((self.width, ROWS_WITHOUT_TERMINAL))
    }

    /// Shows errors and warnings in files.
    pub(crate) fn diagnose(&self, diagnostics: &[Diagnostic]) {
        for diagnostic in diagnostics {
            self.say(&diagnostic.render(self.err, self.width));
        }
    }

    /// Shows an error with its causes and hints.
    pub(crate) fn error(&self, error: &CliError) {
        if error.kind == Kind::ReaderGone {
            return;
        }
        self.diagnose(&error.diagnostics);
        self.labelled_error(error);
        for cause in &error.causes {
            self.labelled("caused by", Tone::Dim, cause);
        }
        for hint in &error.hints {
            self.hint(hint);
        }
    }

    /// The line that says what is wrong. An error is never silent: one without words of its own, and without places that say it, says that.
    fn labelled_error(&self, error: &CliError) {
        match error.message.trim() {
            "" if error.diagnostics.is_empty() => self.labelled("error", Tone::Error, UNNAMED),
            "" => {}
            message => self.labelled("error", Tone::Error, message),
        }
    }

    fn labelled(&self, label: &str, tone: Tone, text: &str) {
        let label = self.err.tone(tone, &format!("{label}:"));
        self.say(&format!("{label} {}", harmless(text)));
    }

    /// Waits before something is polled again. Returns whether the reader of standard output is still there.
    pub(crate) fn reader_stays_for(&self, ms: u32) -> bool {
        wait::reader_stays_for(ms)
    }
}

/// A commit's short name.
pub(crate) fn short_commit(commit: &str) -> &str {
    commit.get(..9).unwrap_or(commit)
}

/// Text from outside, without anything that a terminal would interpret, on one line.
pub(crate) fn one_line(text: &str) -> String {
    harmless(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text from outside, without anything that a terminal would interpret; its lines are kept.
pub(crate) fn harmless(text: &str) -> String {
    rekindle_core::text::sanitize(text).into_owned()
}

fn unwritten(error: &io::Error) -> CliError {
    if error.kind() == ErrorKind::BrokenPipe {
        return CliError::new(Kind::ReaderGone, "");
    }
    CliError::internal("cannot write to standard output").because(error)
}

fn terminal_size() -> Option<(usize, usize)> {
    let size =
        rustix::termios::tcgetwinsize(io::stdout()).or_else(|_| rustix::termios::tcgetwinsize(io::stderr())).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| (usize::from(size.ws_col), usize::from(size.ws_row)))
}
