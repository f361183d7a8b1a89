//! The report that Gemini CLI prints to standard error about a request that failed for good: the kind of the error, its
//! status and the wait that the provider asked for are fields of this report, and appear nowhere else.

use rekindle_core::activity::Problem;
use rekindle_core::time::Time;

use super::reader::by_status;
use crate::agents::foreign::plain;

/// Prefix of the report.
const BEGIN: &str = "Error when talking to Gemini API";

/// The error's class for an allowance that is used up.
const TERMINAL: &str = "TerminalQuotaError:";

/// A report, line by line.
#[derive(Default)]
pub(super) struct Report {
    /// When it was written, according to the name of the file in its first line.
    at: Option<Time>,
    inside: bool,
    terminal: bool,
    delay_ms: Option<u64>,
    status: Option<u64>,
    last: String,
}

impl Report {
    /// Takes one line of standard error.
    pub(super) fn line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix(BEGIN) {
            *self = Self { inside: true, terminal: rest.contains(TERMINAL), at: written_at(rest), ..Self::default() };
        }
        if self.inside {
            // Fields are indented by two spaces; deeper ones belong to the underlying cause.
            if let Some(number) = line.strip_prefix("  retryDelayMs: ") {
                self.delay_ms = number.trim_end_matches(',').parse().ok();
            } else if let Some(number) = line.strip_prefix("  status: ") {
                self.status = number.trim_end_matches(',').parse().ok();
            } else if line == "}" {
                self.inside = false;
            }
        }
        let words = plain(line);
        if !words.is_empty() {
            self.last = words;
        }
    }

    /// What went wrong and until when, once the report is whole.
    pub(super) fn verdict(&self) -> Option<(Problem, Option<Time>)> {
        let problem = by_status(self.status?)?;
        if !self.terminal {
            return Some((problem, None));
        }
        let resets_at = self.at.zip(self.delay_ms).map(|(at, delay)| at.plus_ms(delay));
        Some((Problem::UsageLimit, resets_at))
    }

    /// The last line that is not empty.
    pub(super) fn last_words(&self) -> String {
        self.last.clone()
    }
}

/// A line that reports a failed attempt.
pub(super) struct Attempt {
    pub(super) text: String,
    /// The HTTP status, if the line has one.
    pub(super) status: Option<u64>,
}

/// Reads `Attempt N failed…`.
pub(super) fn attempt(line: &str) -> Option<Attempt> {
    let rest = line.strip_prefix("Attempt ")?;
    let (number, rest) = rest.split_once(" failed")?;
    number.parse::<u32>().ok()?;
    let status = rest.strip_prefix(" with status ").and_then(|rest| rest.split('.').next()?.parse().ok());
    Some(Attempt { text: plain(line), status })
}

/// The time in `…-2026-11-15T07-07-22-736Z.json`.
fn written_at(line: &str) -> Option<Time> {
    let (name, _) = line.split_once("Z.json")?;
    let mut parts = name.get(name.len().checked_sub(23)?..)?.split(['-', 'T']).map(|part| part.parse::<i64>().ok());
    let mut next = || parts.next().flatten();
    let (year, month, day) = (next()?, next()?, next()?);
    let (hour, minute, second, milli) = (next()?, next()?, next()?, next()?);
    let known = (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !known {
        return None;
    }
    // Days since 1970 by years that begin in March, so that the leap day comes last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    Some(Time((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + milli))
}
