//! What an agent said last: how it is shown wherever the end of an attempt is told, and whether it is a question.

use crate::text;

/// Longest last words in a line about an end: a sentence or two.
const SHORT_BYTES: usize = 240;

/// Longest last words that the state keeps: a question with what one must know to answer it.
pub const KEPT_BYTES: usize = 2 * 1024;

/// The marks that end a question, in the scripts that have one of their own.
const QUESTION_MARKS: [char; 4] = ['?', '？', '؟', '⁇'];

/// Last words as one short line; nothing where nothing was said. Of long ones the end is kept: that is where they say how things
/// stand.
#[must_use]
pub fn short(words: &str) -> Option<String> {
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let tail = text::tail_bytes(&line, SHORT_BYTES);
    match (tail.is_empty(), tail.len() == line.len()) {
        (true, _) => None,
        (false, true) => Some(line),
        (false, false) => Some(format!("…{}", tail.trim_start())),
    }
}

/// Stands between an end and the last words.
const MARK: &str = "; its last words: ";

/// An end in words, with what its agent said last.
#[must_use]
pub fn with(told: &str, words: Option<&str>) -> String {
    match words {
        Some(words) => format!("{told}{MARK}\"{words}\""),
        None => told.to_owned(),
    }
}

/// An end told by [`with`] apart from the last words in it, for a place where a line is cut and they would be lost.
#[must_use]
pub fn apart(told: &str) -> (&str, Option<&str>) {
    told.rsplit_once(MARK).map_or((told, None), |(end, words)| (end, Some(words)))
}

/// Whether a message ends in a question, whatever its language: its last sentence ends with a question mark. Quotes, brackets and
/// Markdown behind the mark do not count.
#[must_use]
pub fn ends_in_question(words: &str) -> bool {
    let behind = |c: char| c.is_whitespace() || "\"'`*_)]}»”’」』）".contains(c);
    words.trim_end_matches(behind).ends_with(QUESTION_MARKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_known_by_its_mark_in_every_language() {
        for question in [
            "Which port?",
            "**Soll ich 5432 nehmen?**",
            "どちらにしますか？",
            "ما هو المنفذ؟",
            "I looked.\n\n(May I go on?)\n",
        ] {
            assert!(ends_in_question(question), "{question}");
        }
        for statement in ["", "Done.", "Why? Because it was broken.", "The task is finished", "`x ? y : z`"] {
            assert!(!ends_in_question(statement), "{statement}");
        }
    }

    #[test]
    fn last_words_are_one_short_line() {
        assert_eq!(short(" \n "), None);
        assert_eq!(short("The task\n is finished. ").as_deref(), Some("The task is finished."));
        let long = short(&"é ".repeat(1_000)).expect("words");
        assert!(long.len() <= SHORT_BYTES + '…'.len_utf8() && long.starts_with('…'), "{long}");
        let told = with("it ended", Some("Done."));
        assert_eq!(told, "it ended; its last words: \"Done.\"");
        assert_eq!(apart(&told), ("it ended", Some("\"Done.\"")));
        assert_eq!(apart("it ended"), ("it ended", None));
    }
}
