//! What `/` keeps of a list: lines that match every typed word separately. A line matches a word if it has the word's
//! letters in that order; with `!` before the word, if it does not contain it.

/// A filter that a person typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    text: String,
}

impl Filter {
    /// A filter with this text; an empty one keeps everything.
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.to_owned() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it keeps everything.
    pub(super) fn is_empty(&self) -> bool {
        self.text.split_whitespace().all(|word| word == "!")
    }

    /// Whether a line is kept. Lower-case letters also match upper-case ones; upper-case letters match only themselves.
    pub(super) fn keeps(&self, line: &str) -> bool {
        self.text.split_whitespace().all(|word| match word.strip_prefix('!') {
            // Without the word itself, not without its letters in order: otherwise hardly any line would be kept.
            Some(word) => word.is_empty() || !holds(line, word),
            None => in_order(line, word),
        })
    }
}

fn same(letter: char, typed: char) -> bool {
    letter == typed || (!typed.is_uppercase() && letter.to_lowercase().eq(typed.to_lowercase()))
}

/// Whether a text has the letters of a word, in their order.
fn in_order(text: &str, word: &str) -> bool {
    let mut letters = text.chars();
    word.chars().all(|typed| letters.any(|letter| same(letter, typed)))
}

/// Whether a text contains a word literally. Used for searching too.
pub(super) fn holds(text: &str, word: &str) -> bool {
    find(text, word, 0).is_some()
}

/// Where a word starts and ends in a text, searched from a byte offset on.
pub(super) fn find(text: &str, word: &str, from: usize) -> Option<(usize, usize)> {
    let rest = text.get(from..)?;
    rest.char_indices().find_map(|(at, _)| {
        let mut end = from + at;
        let mut letters = rest[at..].chars();
        let fits = word.chars().all(|typed| {
            letters.next().is_some_and(|letter| {
                end += letter.len_utf8();
                same(letter, typed)
            })
        });
        (fits && !word.is_empty()).then_some((from + at, end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_holds_the_letters_in_order() {
        let keeps = |filter: &str, line: &str| Filter::new(filter).keeps(line);
        assert!(keeps("", "anything"));
        assert!(keeps("rtl", "T4 Rate limiter"));
        assert!(!keeps("ltr x", "T4 Rate limiter"));
        assert!(keeps("t4 lim", "T4 Rate limiter"), "every word for itself");
        assert!(!keeps("lR", "T4 Rate limiter"), "a large letter means itself");
        assert!(keeps("!fail", "T4 done"));
        assert!(!keeps("!fail", "T4 failed"));
        assert!(keeps("!", "anything"));
        assert!(keeps("t4 !fail", "T4 done") && !keeps("t4 !fail", "T4 failed") && !keeps("t4 !fail", "T5 done"));
        assert!(keeps("!fail T4", "T4 done") && !keeps("!fail T4", "T5 done"), "only the word after the mark is meant");
        assert!(!keeps("!fail !done", "T4 done"));
        assert!(keeps("ÄÖ", "xÄyÖ"));
    }

    #[test]
    fn finds_words_by_bytes() {
        assert_eq!(find("日本 Error: x", "error", 0), Some((7, 12)));
        assert_eq!(find("aaa", "aa", 1), Some((1, 3)));
        assert_eq!(find("aaa", "", 0), None);
        assert_eq!(find("aaa", "b", 9), None);
    }
}
