//! What an agent said last, taken at the end of its turn and at its own end: the end of its final message, or the last
//! paragraph that it printed if its stream cannot be parsed.

use std::collections::VecDeque;

use rekindle_core::event::AgentSaid;
use rekindle_core::ids::AttemptId;
use rekindle_core::input::Input;
use rekindle_core::last_words::KEPT_BYTES;
use rekindle_core::text;

use super::Driver;
use crate::world::World;

/// Lines of a last paragraph that are kept: output without a blank line is a log, and its end is enough.
const LINES_KEPT: usize = 8;

/// The last paragraph of an output.
#[derive(Debug, Default)]
pub(super) struct Printed {
    lines: VecDeque<String>,
    over: bool,
}

impl Printed {
    pub(super) fn line(&mut self, line: &str) {
        let line = line.trim();
        if line.is_empty() {
            self.over = true;
            return;
        }
        if std::mem::take(&mut self.over) {
            self.lines.clear();
        }
        // The buffer of the oldest line is reused: an agent may print millions of lines.
        let full = self.lines.len() == LINES_KEPT;
        let mut kept = if full { self.lines.pop_front().unwrap_or_default() } else { String::new() };
        kept.clear();
        kept.push_str(text::tail_bytes(line, KEPT_BYTES));
        self.lines.push_back(kept);
    }

    fn paragraph(&self) -> String {
        self.lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

impl<W: World> Driver<W> {
    /// Decides on what an agent said last.
    pub(super) fn take_words(&mut self, attempt: AttemptId) {
        let Some(spools) = self.spools.get(&attempt) else { return };
        let (words, asks) = match &spools.understood {
            Some(understood) => (understood.fold.last_words().to_owned(), understood.fold.asks()),
            None => (spools.printed.paragraph(), false),
        };
        let text = self.clean(&words);
        self.take(Input::AgentSaid(AgentSaid { attempt, text, asks }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_paragraph_is_what_was_said_last() {
        let mut printed = Printed::default();
        for line in ["building", "", "The task", "is finished.", "", " "] {
            printed.line(line);
        }
        assert_eq!(printed.paragraph(), "The task\nis finished.");
        (0..100).for_each(|number| printed.line(&number.to_string()));
        assert_eq!(printed.paragraph(), "92\n93\n94\n95\n96\n97\n98\n99");
    }
}
