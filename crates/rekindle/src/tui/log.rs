//! The log pane: a window of an attempt's lines, its position, and the current search. Lines are requested by number, so a
//! log of a million lines costs no more than one screen of it.

use rekindle_core::activity::{CALL_MARK, ERROR_MARK, RESULT_MARK};
use rekindle_core::ids::AttemptId;
use rekindle_core::time::Time;
use rekindle_engine::store::{StoredLine, Stream};

use super::filter;
use super::wide;
use crate::ui::{clock_time, harmless};

/// Lines kept around those on the screen, so that a step or a page needs no wait.
const AROUND: usize = 200;

/// Most calls of one attempt in the tree: only the newest are shown.
pub(super) const CALLS_MAX: usize = 50;

/// Most rows of one wrapped line; the rest is truncated.
const ROWS_MAX: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Said,
    Call,
    Result,
    /// An error, or a line of standard error.
    Error,
}

/// A line, made harmless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogLine {
    /// When it was read.
    pub time: Time,
    pub kind: Kind,
    /// Whether it came from standard error.
    pub err: bool,
    pub text: String,
}

impl LogLine {
    /// A line of the store, prepared for display.
    pub(super) fn of(stored: &StoredLine) -> Self {
        let text = wide::flat(&harmless(&stored.line.text).replace('\n', " "));
        let err = stored.line.stream == Stream::Err;
        let kind = match () {
            () if text.starts_with(CALL_MARK) => Kind::Call,
            () if text.starts_with(RESULT_MARK) => Kind::Result,
            () if err || text.starts_with(ERROR_MARK) => Kind::Error,
            () => Kind::Said,
        };
        Self { time: Time(stored.line.time_ms), kind, err, text }
    }
}

/// A call and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallLine {
    /// The number of its line.
    pub number: usize,
    /// The tool and its arguments.
    pub text: String,
    /// Whether it succeeded; `None` while it is running.
    pub ok: Option<bool>,
    /// Its result.
    pub result: String,
}

/// The newest calls among lines, the first of which has the number `first`.
pub(super) fn calls(first: usize, lines: &[LogLine]) -> Vec<CallLine> {
    let mut calls: Vec<CallLine> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some(text) = line.text.strip_prefix(CALL_MARK) {
            calls.push(CallLine { number: first + at, text: text.to_owned(), ok: None, result: String::new() });
            continue;
        }
        let back = line.text.strip_prefix(RESULT_MARK).map(|text| (true, text));
        let back = back.or(line.text.strip_prefix(ERROR_MARK).map(|text| (false, text)));
        // If several calls run at once, results come in the order of the calls.
        if let (Some((ok, text)), Some(call)) = (back, calls.iter_mut().find(|call| call.ok.is_none())) {
            (call.ok, call.result) = (Some(ok), text.to_owned());
        }
    }
    let old = calls.len().saturating_sub(CALLS_MAX);
    calls.drain(..old);
    calls
}

/// Lines that the pane needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub attempt: AttemptId,
    /// The first line's number; `None` means the last lines.
    pub from: Option<usize>,
    pub many: usize,
}

/// A line by its position in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogPosition {
    pub attempt: AttemptId,
    /// Its sequence number among all lines.
    pub seq: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Search {
    pub attempt: AttemptId,
    pub words: String,
    /// The first line to search.
    pub from: usize,
    /// Towards the end; otherwise towards the beginning. Both wrap around.
    pub forward: bool,
    /// Identifies the search.
    pub serial: u64,
}

impl Search {
    /// The next lines to search after `done` of them: the first line's number, and how many. A range ends where the log
    /// does.
    pub(super) fn stretch(&self, done: usize, count: usize, most: usize) -> (usize, usize) {
        if self.forward {
            let from = (self.from + done) % count;
            return (from, most.min(count - from).min(count - done));
        }
        let last = (self.from % count + count - done % count) % count;
        let many = most.min(last + 1).min(count - done);
        (last + 1 - many, many)
    }
}

#[derive(Clone, Debug)]
pub(super) struct LogPane {
    pub attempt: Option<AttemptId>,
    /// How many lines it has; `None` before it was read.
    pub count: Option<usize>,
    /// The number of the first loaded line.
    pub from: usize,
    /// The loaded lines.
    pub lines: Vec<LogLine>,
    /// The first line on the screen, unless the end is followed.
    pub top: usize,
    /// Rows of that line above the screen.
    pub skip: usize,
    pub follow: bool,
    /// Lines that were there when following stopped.
    pub seen: usize,
    pub wrap: bool,
    pub times: bool,
    pub words: String,
    pub hit: Option<usize>,
    pub search: Option<Search>,
    /// A line to go to as soon as its number is known.
    pub place: Option<LogPosition>,
    serial: u64,
}

impl Default for LogPane {
    fn default() -> Self {
        Self {
            attempt: None,
            count: None,
            from: 0,
            lines: Vec::new(),
            top: 0,
            skip: 0,
            follow: true,
            seen: 0,
            wrap: true,
            times: true,
            words: String::new(),
            hit: None,
            search: None,
            place: None,
            serial: 0,
        }
    }
}

impl LogPane {
    /// Switches to another attempt and follows its end.
    pub(super) fn turn_to(&mut self, attempt: Option<AttemptId>) {
        if self.attempt != attempt {
            let (wrap, times, words, serial) = (self.wrap, self.times, self.words.clone(), self.serial);
            *self = Self { attempt, wrap, times, words, serial, ..Self::default() };
        }
    }

    /// Takes the requested lines.
    pub(super) fn take(&mut self, attempt: AttemptId, count: usize, from: usize, lines: Vec<LogLine>) {
        if self.attempt == Some(attempt) {
            (self.count, self.from, self.lines) = (Some(count), from, lines);
            self.top = self.top.min(count.saturating_sub(1));
        }
    }

    /// The lines that a screen with this many rows needs.
    pub(super) fn window(&self, rows: usize) -> Option<Window> {
        let many = (rows + 2 * AROUND).min(crate::picture::lines::WINDOW_MAX);
        let from = (!self.follow).then(|| self.top.saturating_sub(AROUND));
        self.attempt.map(|attempt| Window { attempt, from, many })
    }

    /// A line by its number, if it is loaded.
    pub(super) fn line(&self, number: usize) -> Option<&LogLine> {
        self.lines.get(number.checked_sub(self.from)?)
    }

    /// A line as it is shown.
    pub(super) fn shown(&self, line: &LogLine) -> String {
        format!("{}{}", self.lead(line), line.text)
    }

    /// The text before a line.
    fn lead(&self, line: &LogLine) -> String {
        let mark = if line.err { "! " } else { "" };
        let time = if self.times { format!("{} ", clock_time(line.time)) } else { String::new() };
        format!("{time}{mark}")
    }

    /// Where the later rows of a line start: indented like its text.
    fn indent(&self, line: &LogLine) -> usize {
        wide::width(&self.lead(line)) + wide::leading(&line.text)
    }

    /// Its rows at a width.
    pub(super) fn rows_of(&self, line: &LogLine, width: usize) -> Vec<String> {
        let text = self.shown(line);
        if !self.wrap {
            return vec![wide::cut(&text, width)];
        }
        let mut rows = wide::wrap(&text, width, self.indent(line));
        rows.truncate(ROWS_MAX);
        rows
    }

    fn height_of(&self, number: usize, width: usize) -> usize {
        let line = self.line(number).filter(|_| self.wrap);
        line.map_or(1, |line| wide::rows(&self.shown(line), width, self.indent(line), ROWS_MAX))
    }

    /// The first line on a screen of this size, and how many of its rows are above the screen.
    pub(super) fn first(&self, width: usize, height: usize) -> (usize, usize) {
        if self.follow { self.end(width, height) } else { (self.top, self.skip) }
    }

    /// Where a screen starts whose last row is the end of the log.
    fn end(&self, width: usize, height: usize) -> (usize, usize) {
        let (mut top, mut rows) = (self.count.unwrap_or(0), 0);
        while rows < height && top > 0 {
            top -= 1;
            rows += self.height_of(top, width);
        }
        (top, rows.saturating_sub(height))
    }

    /// Scrolls by rows. Scrolling up stops following; reaching the end resumes it.
    pub(super) fn scroll(&mut self, by: isize, width: usize, height: usize) {
        (self.top, self.skip) = self.first(width, height);
        if self.follow && by < 0 {
            self.seen = self.count.unwrap_or(0);
            self.follow = false;
        }
        for _ in 0..by.unsigned_abs() {
            if by < 0 {
                self.row_up(width);
            } else {
                self.row_down(width);
            }
        }
        let (last, skip) = self.end(width, height);
        if (self.top, self.skip) >= (last, skip) && by > 0 {
            self.follow = true;
        }
        self.see(height);
    }

    fn row_up(&mut self, width: usize) {
        if self.skip > 0 {
            self.skip -= 1;
        } else if self.top > 0 {
            self.top -= 1;
            self.skip = self.height_of(self.top, width) - 1;
        }
    }

    fn row_down(&mut self, width: usize) {
        if self.skip + 1 < self.height_of(self.top, width) {
            self.skip += 1;
        } else if self.top + 1 < self.count.unwrap_or(0) {
            (self.top, self.skip) = (self.top + 1, 0);
        }
    }

    /// Goes to a line and stops following.
    pub(super) fn go_to(&mut self, number: usize, height: usize) {
        if self.follow {
            self.seen = self.count.unwrap_or(0);
        }
        self.follow = false;
        // Some lines above it tell what led to it.
        (self.top, self.skip) = (number.saturating_sub(height / 3), 0);
        self.see(height);
    }

    /// Marks the lines on the screen as seen.
    fn see(&mut self, height: usize) {
        self.seen = self.seen.max((self.top + height).min(self.count.unwrap_or(0)));
    }

    /// Lines that came since following stopped and have not been on the screen.
    pub(super) fn unseen(&self) -> usize {
        if self.follow { 0 } else { self.count.unwrap_or(0).saturating_sub(self.seen) }
    }

    /// Starts a search from the last hit, or from the first line on the screen.
    pub(super) fn find(&mut self, forward: bool, width: usize, height: usize) {
        let (Some(attempt), false) = (self.attempt, self.words.is_empty()) else { return };
        let count = self.count.unwrap_or(0).max(1);
        let from = match (self.hit, forward) {
            (Some(hit), true) => (hit + 1) % count,
            (Some(hit), false) => (hit + count - 1) % count,
            (None, true) => self.first(width, height).0,
            (None, false) => count - 1,
        };
        self.serial += 1;
        self.search = Some(Search { attempt, words: self.words.clone(), from, forward, serial: self.serial });
    }

    /// Takes the number of a requested line; returns whether it was requested.
    pub(super) fn placed(&mut self, place: LogPosition, number: Option<usize>, height: usize) -> bool {
        if self.place != Some(place) || self.attempt != Some(place.attempt) {
            return false;
        }
        self.place = None;
        if let Some(number) = number {
            self.hit = Some(number);
            self.go_to(number, height);
        }
        true
    }

    /// Takes the result of a search; returns whether it was the current one.
    pub(super) fn found(&mut self, serial: u64, hit: Option<usize>, height: usize) -> bool {
        if self.search.as_ref().is_none_or(|search| search.serial != serial) {
            return false;
        }
        self.search = None;
        self.hit = hit;
        if let Some(number) = hit {
            self.go_to(number, height);
        }
        true
    }
}

/// Whether a line matches a search.
pub(super) fn fits(line: &LogLine, words: &str) -> bool {
    filter::holds(&line.text, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_looks_at_every_line_once_and_in_its_direction() {
        for (count, from, most) in [(1, 0, 5), (10, 0, 3), (10, 9, 3), (10, 4, 3), (7, 3, 7), (7, 6, 1)] {
            for forward in [true, false] {
                let search = Search { attempt: AttemptId(1), words: String::new(), from, forward, serial: 1 };
                let (mut seen, mut done) = (Vec::new(), 0);
                while done < count {
                    let (begin, many) = search.stretch(done, count, most);
                    assert!(many > 0 && many <= most && begin + many <= count, "{search:?} after {done}");
                    let lines = begin..begin + many;
                    seen.extend(if forward { lines.collect::<Vec<_>>() } else { lines.rev().collect() });
                    done += many;
                }
                let step = if forward { 1 } else { count - 1 };
                let expected: Vec<usize> = (0..count).map(|at| (from + at * step) % count).collect();
                assert_eq!(seen, expected, "{search:?} of {count}");
            }
        }
    }
}
