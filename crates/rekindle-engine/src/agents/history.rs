//! What a session's own record contains after its process has ended: the calls that the resumed conversation will know. Each
//! adapter reads its program's record; comparing it with the stream is left to the core.

use rekindle_core::activity::{Held, Ledger};
use rekindle_core::text;
use serde_json::Value;

/// Calls of one record that are inspected; a session of a day has fewer.
const CALLS_MAX: usize = 20_000;

/// Longest call input that is kept. It is shortened further after secrets are removed: half a secret is not recognised as
/// one.
const INPUT_BYTES: usize = 64 * 1024;

/// The part of a session's record that one attempt added.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub lines: &'a str,
    /// Whether that is the whole part; if not, it is the end of it.
    pub whole: bool,
    /// What the stream reported.
    pub ledger: &'a Ledger,
}

impl Record<'_> {
    /// Its complete lines; the last one may be cut off in the middle.
    pub fn values(&self) -> impl Iterator<Item = Value> {
        self.lines.lines().filter_map(|line| serde_json::from_str(line).ok())
    }
}

/// The calls of a record, in order.
#[derive(Debug, Default)]
pub struct Calls(Vec<Held>);

impl Calls {
    pub fn begun(&mut self, id: &str, tool: &str, input: &str) {
        if self.0.iter().rev().any(|held| held.id == id) || self.0.len() == CALLS_MAX {
            return;
        }
        let input = whole_words(input).to_owned();
        self.0.push(Held { id: id.to_owned(), tool: tool.to_owned(), input, answered: false });
    }

    pub fn answered(&mut self, id: &str) {
        if let Some(held) = self.0.iter_mut().rev().find(|held| held.id == id) {
            held.answered = true;
        }
    }

    pub fn into_held(self) -> Vec<Held> {
        self.0
    }
}

/// The beginning of a text, up to the last word that fits whole.
fn whole_words(input: &str) -> &str {
    if input.len() <= INPUT_BYTES {
        return input;
    }
    let fits = text::truncate_bytes(input, INPUT_BYTES);
    fits.rfind(char::is_whitespace).map_or("", |end| &fits[..end])
}

#[cfg(test)]
mod tests {
    use super::{Calls, INPUT_BYTES};

    #[test]
    fn a_word_is_kept_whole_or_not_at_all() {
        let secret = "sk-made-up-0123456789abcdef";
        for before in [10, INPUT_BYTES - 40, INPUT_BYTES - 10, INPUT_BYTES + 5] {
            let mut calls = Calls::default();
            calls.begun("1", "Bash", &format!("{} {secret} {}", "x".repeat(before), "y".repeat(INPUT_BYTES)));
            let held = calls.into_held();
            let input = &held[0].input;
            assert!(input.len() <= INPUT_BYTES);
            assert_eq!(input.contains("sk-"), input.contains(secret), "{before}: {}", &input[input.len() - 40..]);
        }
    }
}
