//! A line of a run's progress: the verb first and aligned, readable in a log file.

use super::columns::{cut, width_of};
use super::{Paint, Tone, one_line};

/// Columns of the verb; the longest in use has eleven letters.
const VERB_WIDTH: usize = 12;

/// Columns of the task's name and title.
const TASK_WIDTH: usize = 24;

#[derive(Clone, Debug)]
pub(crate) struct StatusLine<'a> {
    /// What happened, in capitals.
    pub verb: &'a str,
    /// How that is to be taken.
    pub tone: Tone,
    /// Time since the start of the run.
    pub elapsed_ms: u64,
    /// The number of complete tasks, and of all.
    pub progress: (usize, usize),
    /// The task's id and title; empty when it is about the run.
    pub task: &'a str,
    pub text: &'a str,
    /// What follows; if the line is too long, the text before it is truncated.
    pub tail: &'a str,
}

impl StatusLine<'_> {
    /// The line, no wider than the terminal if possible.
    pub(crate) fn render(&self, paint: Paint, width: usize) -> String {
        let verb = paint.tone(self.tone, &format!("{:>VERB_WIDTH$}", self.verb));
        #[expect(clippy::cast_precision_loss, reason = "shown with one digit after the point")]
        let seconds = self.elapsed_ms as f64 / 1000.0;
        let (done, all) = self.progress;
        let digits = all.to_string().len();
        let place = format!("[{seconds:>7.1}s] ({done:>digits$}/{all})");
        let used = VERB_WIDTH + width_of(&place) + 2;
        let task = cut(&one_line(self.task), TASK_WIDTH);
        let pad = " ".repeat(TASK_WIDTH.saturating_sub(width_of(&task)));
        let room = width.saturating_sub(used);
        let rest = format!("{task}{pad} {}", one_line(self.text));
        let tail = one_line(self.tail);
        // A tail that would leave less than half of the text's room is cut with it.
        let whole = width_of(&tail) * 2 <= room.saturating_sub(TASK_WIDTH);
        let kept = if whole { room.saturating_sub(width_of(&tail)) } else { room };
        let rest = cut(&format!("{}{tail}", cut(rest.trim_end(), kept)), room);
        format!("{verb} {place} {rest}").trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_aligned_and_cut_to_the_terminal() {
        let line = StatusLine {
            verb: "STARTED",
            tone: Tone::Active,
            elapsed_ms: 412_840,
            progress: (3, 12),
            task: "T3 lexer",
            text: "attempt 1\x1b[2J",
            tail: "",
        };
        assert_eq!(line.render(Paint::OFF, 100), "     STARTED [  412.8s] ( 3/12) T3 lexer                 attempt 1");
        assert_eq!(line.render(Paint::OFF, 40), "     STARTED [  412.8s] ( 3/12) T3 lexe…");
        let line = StatusLine { text: "attempt 1: ended by signal 9", tail: "; attempt 2 at once", ..line };
        let whole =
            "     STARTED [  412.8s] ( 3/12) T3 lexer                 attempt 1: ended by signal 9; attempt 2 at once";
        assert_eq!(line.render(Paint::OFF, 120), whole);
        let cut = "     STARTED [  412.8s] ( 3/12) T3 lexer                 attempt 1: ended by…; attempt 2 at once";
        assert_eq!(line.render(Paint::OFF, 96), cut, "what follows is kept");
    }
}
