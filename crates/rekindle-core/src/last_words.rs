//! What an agent said last: how it is shown wherever the end of an attempt is reported, and whether it is a question.

use crate::text;

/// Longest last words in a line about an end: a sentence or two.
const SHORT_BYTES: usize = 240;

/// Longest last words that the state keeps: a question with what is needed to answer it.
pub const KEPT_BYTES: usize = 2 * 1024;

/// The marks that end a question, in the scripts that have one of their own.
const QUESTION_MARKS: [char; 4] = ['?', '？', '؟', '⁇'];

/// Last words as one short line; `None` if nothing was said. The end of long ones is kept, because that is where they sum
/// up.
pub fn short(words: &str) -> Option<String> {
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let tail = text::tail_bytes(&line, SHORT_BYTES);
    match (tail.is_empty(), tail.len() == line.len()) {
        (true, _) => None,
        (false, true) => Some(line),
        (false, false) => Some(format!("…{}", tail.trim_start())),
    }
}

/// Separates an end from the last words.
const MARK: &str = "; its last words: ";

/// An end in words, with what its agent said last.
pub fn with(told: &str, words: Option<&str>) -> String {
    match words {
        Some(words) => format!("{told}{MARK}\"{words}\""),
        None => told.to_owned(),
    }
}

/// Splits an end made by [`with`] from the last words in it, for a place where a line is cut and they would be lost.
pub fn apart(told: &str) -> (&str, Option<&str>) {
    told.rsplit_once(MARK).map_or((told, None), |(end, words)| (end, Some(words)))
}

/// Whether a message ends in a question, whatever its language: one of its last two sentences ends with a question mark,
/// because a closing remark may follow. Lists of options after it, code and Markdown do not count.
pub fn ends_in_question(words: &str) -> bool {
    let prose: String = words.split('`').step_by(2).collect::<Vec<_>>().join(" x ");
    let lines = prose.lines().map(str::trim).filter(|line| !is_item(line));
    let text = lines.collect::<Vec<_>>().join(" ");
    let mut rest = text.trim_end_matches(BEHIND);
    for _ in 0..2 {
        if rest.ends_with(QUESTION_MARKS) || rest.ends_with(WRITTEN_QUESTION) {
            return true;
        }
        rest = before_last_sentence(rest);
    }
    false
}

/// What may follow the end of a sentence and does not belong to it.
const BEHIND: [char; 18] =
    [' ', '\t', '\n', '\r', '"', '\'', '*', '_', ')', ']', '}', '»', '”', '’', '」', '』', '）', '>'];

/// How a question ends in a script that may write it without a mark.
const WRITTEN_QUESTION: &str = "か。";

/// Whether a line is an item of a list.
fn is_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = number.len() < line.len() && (number.starts_with(". ") || number.starts_with(") "));
    line.is_empty() || numbered || ["- ", "* ", "• "].iter().any(|mark| line.starts_with(mark))
}

/// The text before the last sentence.
fn before_last_sentence(text: &str) -> &str {
    let own = text.trim_end_matches(|c: char| BEHIND.contains(&c) || ".!。！".contains(c));
    let mut end = 0;
    for (at, c) in own.char_indices() {
        let next = own[at + c.len_utf8()..].chars().next();
        let ends = "。？！".contains(c) || (".!?؟⁇".contains(c) && next.is_none_or(|next| BEHIND.contains(&next)));
        if ends {
            end = at + c.len_utf8();
        }
    }
    text[..end].trim_end_matches(BEHIND)
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
        for statement in ["", "Done.", "Why? It was broken. I mended it.", "The task is finished", "`x ? y : z`"] {
            assert!(!ends_in_question(statement), "{statement}");
        }
    }

    /// Endings that were written by somebody who did not know the rule. The rule was adapted to them afterwards.
    #[test]
    fn eighty_endings_in_six_languages_are_told_apart() {
        let cases = include_str!("../tests/fixtures/endings.json");
        let cases: Vec<serde_json::Value> = serde_json::from_str(cases).expect("cases");
        let wrong: Vec<_> = cases
            .iter()
            .filter(|case| ends_in_question(case["text"].as_str().unwrap_or_default()) != (case["is"] == "question"))
            .collect();
        assert_eq!(cases.len(), 80);
        assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), cases.len());
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
