//! Whether an agent makes progress, judged by what is new in its calls, not by their bytes.
//!
//! A call is news when it says something that no call of the session has said before, or changes something that was not
//! changed that way before. Times, numbers, hashes and temporary paths are masked, so that a clock is not news. Three
//! patterns count as going round in circles: the same call with the same result, failures that stay the same whatever is
//! tried, and a long series of calls without any news.

use std::collections::VecDeque;

use super::Call;
use crate::text;

/// The same call with the same result, byte for byte, this often in a row.
pub const STALL_REPEATS: u32 = 8;

/// Failures in a row that say nothing new.
const SAME_FAILURES: u32 = 8;

/// How far a new kind of failure lowers that count: a retry with a backtrace does not end a circle.
const NEW_FAILURE_BACK: u32 = 3;

/// Calls that may succeed between two failures of the same series: reading a few files and an edit.
const TRY_GAP: u32 = 6;

/// The same for failures that print nothing, such as a search without a match: those say little.
const SILENT_TRY_GAP: u32 = 2;

/// Calls in a row without any news. People run a test ten or twelve times to see whether it is flaky, rarely more.
const STALE_CALLS: u32 = 14;

/// One in this many lines of an output must be new for the output to be news: a duration line or a warning is not enough.
const NEW_LINES_ONE_IN: usize = 5;

/// Commands that are remembered from a series of failures.
const FAILED_COMMANDS_MAX: usize = 32;

/// Part of the names of our own tools: a report shows neither progress nor the lack of it.
const OWN_TOOLS: &str = "rekindle";

/// Fingerprints that are remembered: more calls than fit into a context.
const FINGERPRINTS_MAX: usize = 4_096;

/// Bytes of an output that are inspected, from its end, where a failing command says what failed.
const OUTPUT_SEEN_BYTES: usize = 64 * 1024;

/// Longest command and longest line of output in the words about a loop.
const QUOTED_BYTES: usize = 200;

type Print = [u8; 32];

/// What is known of an agent's progress.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Calls, word for word.
    inputs: Prints,
    /// Calls with everything that varies masked.
    commands: Prints,
    /// Masked lines of all outputs.
    lines: Prints,
    /// A masked call with its masked output.
    outcomes: Prints,
    last: Option<Print>,
    repeats: u32,
    /// Calls in a row that were no news.
    stale: u32,
    /// Failures in a row that said nothing new.
    failures: u32,
    failed: Vec<Print>,
    /// Calls that succeeded since the last failure.
    gap: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Brought {
    News,
    /// Different from last time, but made of known lines; or a change whose effect cannot be seen.
    Movement,
    Nothing,
}

/// How an agent loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Circle {
    pub(super) times: u32,
    /// In words that the agent can use.
    pub(super) words: String,
    /// The end of what the last call printed.
    pub(super) printed: String,
}

impl Progress {
    /// Takes a call that has ended; returns the circle if it shows that the agent loops.
    pub(super) fn ended(&mut self, call: &Call, ok: bool, output: &str) -> Option<Circle> {
        let output = text::tail_bytes(output, OUTPUT_SEEN_BYTES);
        let exact = print([call.tool.as_bytes(), call.input.as_bytes(), &[u8::from(ok)], output.as_bytes()]);
        self.repeats = if self.last == Some(exact) { self.repeats + 1 } else { 1 };
        self.last = Some(exact);
        if call.tool.contains(OWN_TOOLS) {
            let circle = self.repeated(call, ok, output);
            self.repeats = if circle.is_some() { 0 } else { self.repeats };
            return circle;
        }
        let command = print([call.tool.as_bytes(), mask(&call.input).as_bytes()]);
        let lines = mask_lines(output);
        let brought = self.brought(call, ok, command, &lines);
        match brought {
            Brought::News if call.acts => self.stale = 0,
            Brought::News => self.stale /= 2,
            Brought::Movement => {}
            Brought::Nothing => self.stale += 1,
        }
        let failing = self.note_failure(ok, command, brought, lines.is_empty());
        let stale = brought == Brought::Nothing && self.stale >= STALE_CALLS;
        let circle = match (failing, stale) {
            (true, _) => Some(self.failing(call, output)),
            (false, true) => self.repeated(call, ok, output).or_else(|| Some(self.nothing_new(call, output))),
            (false, false) => self.repeated(call, ok, output),
        };
        if circle.is_some() {
            // Another alarm needs another whole round.
            (self.stale, self.failures, self.repeats) = (0, 0, 0);
        }
        circle
    }

    /// Starts again after a compaction: looking things up again is not a circle.
    pub(super) fn begin_anew(&mut self) {
        *self = Self::default();
    }

    fn brought(&mut self, call: &Call, ok: bool, command: Print, lines: &[String]) -> Brought {
        let new_input = self.inputs.insert(print([call.tool.as_bytes(), call.input.as_bytes()]));
        let new_command = self.commands.insert(command);
        let all = lines.join("\n");
        let new_outcome = self.outcomes.insert(print([&command[..], &[u8::from(ok)], all.as_bytes()]));
        let new_lines = lines.iter().filter(|line| self.lines.insert(print([line.as_bytes()]))).count();
        let fresh = new_lines > 0 && new_lines * NEW_LINES_ONE_IN >= lines.len();
        let changes = ok && call.acts;
        if fresh || (changes && new_command) {
            return Brought::News;
        }
        let moved = !new_command && new_outcome && !lines.is_empty();
        // The same change again with no output may be a different change: some programs do not say what was written.
        if moved || (changes && (new_input || lines.is_empty())) {
            return Brought::Movement;
        }
        Brought::Nothing
    }

    /// Tracks failures that stay the same whatever is tried; returns whether there were enough of them.
    fn note_failure(&mut self, ok: bool, command: Print, brought: Brought, silent: bool) -> bool {
        if ok && self.failed.contains(&command) {
            self.failures = 0;
            self.failed.clear();
        }
        if ok {
            self.gap += 1;
            return false;
        }
        if self.gap > if silent { SILENT_TRY_GAP } else { TRY_GAP } {
            self.failures = 0;
            self.failed.clear();
        }
        self.gap = 0;
        let new_command = !self.failed.contains(&command);
        if new_command && self.failed.len() < FAILED_COMMANDS_MAX {
            self.failed.push(command);
        }
        // Another search without a match is an answer, too.
        if silent && new_command {
            return false;
        }
        match brought {
            Brought::News => self.failures = self.failures.saturating_sub(NEW_FAILURE_BACK).max(1),
            Brought::Movement => {}
            Brought::Nothing => self.failures += 1,
        }
        brought == Brought::Nothing && self.failures >= SAME_FAILURES
    }

    fn repeated(&self, call: &Call, ok: bool, output: &str) -> Option<Circle> {
        let times = Some(self.repeats).filter(|times| *times >= STALL_REPEATS)?;
        let (command, printed) = quoted(call, output);
        let how = if ok { "printed" } else { "failed and printed" };
        let words = format!("`{command}` ran {times} times in a row and {how} the same each time");
        Some(Circle { times, words, printed })
    }

    fn failing(&self, call: &Call, output: &str) -> Circle {
        let (times, (command, printed)) = (self.failures, quoted(call, output));
        let words = format!("{times} tries failed in ways that were known before; the last was `{command}`");
        Circle { times, words, printed }
    }

    fn nothing_new(&self, call: &Call, output: &str) -> Circle {
        let (times, (command, printed)) = (self.stale, quoted(call, output));
        let words = format!("the last {times} calls brought nothing new; the last was `{command}`");
        Circle { times, words, printed }
    }
}

/// A call and the end of what it printed, each on a line.
fn quoted(call: &Call, output: &str) -> (String, String) {
    let command = text::one_line(&format!("{}: {}", call.tool, call.input), QUOTED_BYTES);
    let last = output.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("nothing");
    (command, text::one_line(last, QUOTED_BYTES))
}

/// Fingerprints seen, the oldest forgotten first.
#[derive(Clone, Debug, Default)]
struct Prints {
    set: std::collections::BTreeSet<Print>,
    order: VecDeque<Print>,
}

impl Prints {
    /// Whether it was not there yet.
    fn insert(&mut self, print: Print) -> bool {
        if !self.set.insert(print) {
            return false;
        }
        self.order.push_back(print);
        if self.order.len() > FINGERPRINTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.set.remove(&oldest);
        }
        true
    }
}

fn print<const N: usize>(parts: [&[u8]; N]) -> Print {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

/// The lines of an output without what varies from run to run, each once, in a fixed order: tests run in any order.
fn mask_lines(output: &str) -> Vec<String> {
    let mut lines: Vec<String> = output.lines().map(mask).filter(|line| !line.is_empty()).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// Words without times, numbers, hashes and temporary names.
fn mask(line: &str) -> String {
    let words: Vec<String> = line.split_whitespace().map(mask_word).collect();
    words.join(" ")
}

fn mask_word(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(c) = rest.chars().next() {
        if out.ends_with("/tmp/") {
            let end = rest.find('/').unwrap_or(rest.len());
            push(&mut out, "#");
            rest = &rest[end..];
            continue;
        }
        let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len()).max(c.len_utf8());
        let piece = &rest[..end];
        push(&mut out, if varies(piece) { "#" } else { piece });
        rest = &rest[end..];
    }
    out
}

/// Adds a piece: a mark is not repeated (a row of dots grows with every test), and two numbers with a mark between them
/// become one.
fn push(out: &mut String, piece: &str) {
    let mark = |text: &str| text.chars().count() == 1 && !text.starts_with(char::is_alphanumeric);
    if piece != "#" && mark(piece) && out.ends_with(piece) {
        return;
    }
    if piece == "#" {
        let mut back = out.chars().rev();
        match (back.next(), back.next()) {
            (Some('#'), _) => return,
            (Some(joint), Some('#')) if ".:-_,/+".contains(joint) => {
                out.truncate(out.len() - joint.len_utf8());
                return;
            }
            _ => {}
        }
    }
    out.push_str(piece);
}

/// Whether a piece of a word is a number, with or without units (`12`, `31ms`, `2m28s`), or a hash.
fn varies(piece: &str) -> bool {
    /// Shortest hash: git's.
    const HASH_MIN: usize = 7;
    /// Longest unit after a number: `ms`, `MiB`.
    const UNIT_MAX: usize = 3;
    /// Digits that make a name with letters in it a made-up one.
    const ID_DIGITS_MIN: usize = 4;
    if !piece.is_ascii() {
        return false;
    }
    let digits = piece.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 {
        return false;
    }
    let units = piece.starts_with(|c: char| c.is_ascii_digit())
        && piece.split(|c: char| c.is_ascii_digit()).all(|unit| unit.len() <= UNIT_MAX);
    let hash = piece.len() >= HASH_MIN && piece.bytes().all(|byte| byte.is_ascii_hexdigit());
    units || hash || (digits >= ID_DIGITS_MIN && piece.len() - digits <= digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(input: &str, acts: bool) -> Call {
        Call { id: "1".to_owned(), tool: "Bash".to_owned(), input: input.to_owned(), acts }
    }

    /// The call at which a circle was noticed first.
    fn noticed(calls: impl IntoIterator<Item = (String, bool, bool, String)>) -> Option<usize> {
        let mut progress = Progress::default();
        let mut found = None;
        for (index, (input, acts, ok, output)) in calls.into_iter().enumerate() {
            if progress.ended(&call(&input, acts), ok, &output).is_some() {
                found = found.or(Some(index + 1));
            }
        }
        found
    }

    #[test]
    fn what_changes_from_run_to_run_is_masked() {
        assert_eq!(mask("test result: FAILED. 3 passed in 0.31s"), "test result: FAILED. # passed in #");
        assert_eq!(
            mask("2026-11-16T10:12:13.551Z pid=4711 at /tmp/tmpab12/x"),
            mask("2026-11-17T23:00:01.002Z pid=9 at /tmp/q9z/x")
        );
        assert_eq!(mask("commit 9fceb02d0ae598e95dc970b74767f19372d61af8"), "commit #");
        assert_ne!(mask("test parse::dates ... FAILED"), mask("test parse::times ... FAILED"));
        assert_eq!(mask("sha256 and utf8 stay"), "sha256 and utf8 stay");
    }

    #[test]
    fn a_failure_that_stays_the_same_is_noticed_although_its_times_differ() {
        let run = |n: usize| ("cargo test".to_owned(), true, false, format!("test a ... FAILED\nfinished in 0.{n}s"));
        assert_eq!(noticed((0..20).map(run)), Some(8));
    }

    #[test]
    fn failing_tests_that_become_fewer_are_progress() {
        let run = |n: usize| {
            let failed: String = (n..40).map(|test| format!("test t{} ... FAILED\n", "x".repeat(test))).collect();
            ("cargo test".to_owned(), true, false, failed)
        };
        assert_eq!(noticed((0..40).map(run)), None);
    }

    #[test]
    fn an_edit_back_and_forth_is_noticed() {
        let cycle = |n: usize| {
            let (from, to) = if n.is_multiple_of(2) { ("a", "b") } else { ("b", "a") };
            let fails = format!("expected {from}, got {to}, after {n} ms");
            [
                (format!("edit x.rs {from} to {to}"), true, true, "ok".to_owned()),
                ("make test".to_owned(), true, false, fails),
            ]
        };
        let found = noticed((0..40).flat_map(cycle)).expect("noticed");
        assert!(found <= 24, "{found}");
    }

    #[test]
    fn batches_and_new_files_are_progress() {
        let batch = |n: usize| (format!("./migrate --batch {n}"), true, true, "500 rows".to_owned());
        assert_eq!(noticed((0..100).map(batch)), None);
        let read = |n: usize| (format!("src/f{n}.rs"), false, true, format!("fn {}() {{}}", "f".repeat(n + 1)));
        assert_eq!(noticed((0..100).map(read)), None);
    }

    #[test]
    fn a_search_that_finds_nothing_again_and_again_is_noticed() {
        let search = |n: usize| (format!("grep -rn {} .", "word".repeat(n + 1)), true, false, String::new());
        assert_eq!(noticed((0..20).map(search)), Some(14));
    }
}
