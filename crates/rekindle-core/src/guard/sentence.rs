//! Prose in sentences, in any language: by line, by list entry, by the marks that end a sentence with or without a blank after
//! them. What a sentence is worth is decided in `worth`.

/// Longest sentence: a finding with its reason fits. A longer one is cut where a clause ends.
const SENTENCE_MAX_BYTES: usize = 420;

/// Shortest clause that a long sentence is cut into.
const CLAUSE_MIN_BYTES: usize = 120;

/// Shortest sentence: fewer bytes say nothing that could be understood later.
const SENTENCE_MIN_BYTES: usize = 6;

/// Most sentences taken from one text; a longer one is a listing.
const SENTENCES_MAX: usize = 80;

/// Marks that end a sentence where a blank follows.
const ENDS: [char; 4] = ['.', '!', '?', '…'];

/// Marks that end a sentence whatever follows.
const WIDE_ENDS: [char; 5] = ['。', '！', '？', '｡', '．'];

/// Marks that may come between the end of a sentence and the blank after it.
const CLOSING: [char; 12] = ['"', '\'', ')', ']', '*', '_', '”', '“', '’', '»', '」', '』'];

/// Marks after which a long sentence can be cut.
const CLAUSE_ENDS: [char; 5] = [';', '；', '—', '–', '、'];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    pub text: &'a str,
    /// The paragraph that it belongs to, from 0; the entries of a list are one paragraph.
    pub paragraph: usize,
    pub opens: bool,
}

/// The sentences of a text, in order.
pub fn split(text: &str) -> Vec<&str> {
    parts(text).into_iter().map(|part| part.text).collect()
}

/// The sentences of a text with their positions.
pub fn parts(text: &str) -> Vec<Part<'_>> {
    let mut found: Vec<Part<'_>> = Vec::new();
    let (mut in_code, mut blank, mut listed) = (false, false, false);
    let mut paragraph = 0;
    for whole in text.lines() {
        if whole.trim_start().starts_with("```") {
            in_code = !in_code;
            continue;
        }
        if whole.trim().is_empty() {
            blank = true;
            continue;
        }
        let line = without_marks(whole);
        let entry = line.len() < whole.trim().len();
        // A list continues across blank lines, and what follows it is a new paragraph.
        let goes_on = (listed && entry) || (!blank && listed == entry);
        if !goes_on && !found.is_empty() {
            paragraph += 1;
        }
        (blank, listed) = (false, entry);
        let mut sentences_of_line = Vec::new();
        if in_code {
            sentences_of_line.push(line);
        } else {
            sentences(line, &mut sentences_of_line);
        }
        for text in sentences_of_line {
            if text.len() >= SENTENCE_MIN_BYTES && text.chars().any(char::is_alphanumeric) {
                let opens = found.last().is_none_or(|last| last.paragraph != paragraph);
                found.push(Part { text, paragraph, opens });
            }
        }
    }
    found.truncate(SENTENCES_MAX);
    found
}

pub fn asks(sentence: &str) -> bool {
    sentence.trim_end_matches(CLOSING).ends_with(['?', '？', '؟'])
}

/// A line without the mark of a list, a heading or a quotation.
fn without_marks(line: &str) -> &str {
    let line = line.trim().trim_start_matches(['#', '>', '|']).trim_start();
    let bare = line
        .strip_prefix(['-', '*', '+', '•', '・'])
        .filter(|rest| rest.starts_with(' ') || line.starts_with(['•', '・']));
    let line = bare.unwrap_or(line).trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = (digits > 0 && digits <= 2)
        .then(|| line[digits..].strip_prefix(['.', ')']).filter(|rest| rest.starts_with(' ')))
        .flatten();
    numbered.unwrap_or(line).trim()
}

fn sentences<'a>(line: &'a str, found: &mut Vec<&'a str>) {
    let mut from = 0;
    let mut in_code = false;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '`' {
            in_code = !in_code;
        }
        if in_code || !(ENDS.contains(&c) || WIDE_ENDS.contains(&c)) {
            continue;
        }
        let mut end = at + c.len_utf8();
        while let Some((next, mark)) = chars.peek().copied() {
            if !(CLOSING.contains(&mark) || ENDS.contains(&mark) || WIDE_ENDS.contains(&mark)) {
                break;
            }
            end = next + mark.len_utf8();
            chars.next();
        }
        if WIDE_ENDS.contains(&c) || is_end(&line[from..at], &line[end..]) {
            push(&line[from..end], found);
            from = end;
        }
    }
    push(&line[from..], found);
}

/// Whether a mark between these ends a sentence: a blank follows and no lower-case letter, and what precedes it is neither a
/// one-letter abbreviation nor a number.
fn is_end(before: &str, after: &str) -> bool {
    if after.is_empty() {
        return true;
    }
    let next =
        after.trim_start().trim_start_matches(['"', '\'', '(', '*', '_', '`', '„', '“', '«', '»']).chars().next();
    let blank = after.starts_with(char::is_whitespace);
    let word = before.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    let short = word.chars().count() <= 1 && word.chars().all(char::is_alphanumeric);
    let number = !word.is_empty() && word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit());
    blank && !short && !number && next.is_none_or(|next| !next.is_lowercase())
}

/// Keeps a sentence; splits a very long one into clauses.
fn push<'a>(sentence: &'a str, found: &mut Vec<&'a str>) {
    let mut rest = sentence.trim();
    while rest.len() > SENTENCE_MAX_BYTES {
        let Some(cut) = clause(rest) else { break };
        found.push(rest[..cut].trim());
        rest = rest[cut..].trim();
    }
    found.push(crate::text::truncate_bytes(rest, SENTENCE_MAX_BYTES));
}

/// Where the last clause that fits ends.
fn clause(text: &str) -> Option<usize> {
    let fits = |(at, c): (usize, char)| {
        let end = at + c.len_utf8();
        let breaks = CLAUSE_ENDS.contains(&c) || (c == ',' && text[end..].starts_with(' '));
        (breaks && (CLAUSE_MIN_BYTES..=SENTENCE_MAX_BYTES).contains(&end)).then_some(end)
    };
    text.char_indices().filter_map(fits).next_back()
}

#[cfg(test)]
mod tests {
    use super::{asks, parts, split};

    #[test]
    fn sentences_end_where_a_reader_ends_them() {
        let text = "It answers on 5438, e.g. for tests. See `a.b. C` there! Version 2. Next one?\n- a point\n2. another (z. B. this).";
        assert_eq!(
            split(text),
            [
                "It answers on 5438, e.g. for tests.",
                "See `a.b. C` there!",
                "Version 2. Next one?",
                "a point",
                "another (z. B. this)."
            ]
        );
    }

    #[test]
    fn a_list_is_one_paragraph_and_what_follows_it_another() {
        let found = parts("Why not? Three ways:\n\n1. one thing\n\n2. two things\nSo we stay. It is enough.");
        let places: Vec<(usize, bool)> = found.iter().map(|part| (part.paragraph, part.opens)).collect();
        assert_eq!(places, [(0, true), (0, false), (1, true), (1, false), (2, true), (2, false)]);
    }

    #[test]
    fn a_language_without_blanks_is_split_as_well() {
        assert_eq!(
            split("ポートは8443です。これは危険！次は`x.y`を直す。"),
            ["ポートは8443です。", "これは危険！", "次は`x.y`を直す。"]
        );
        assert!(asks("どうしますか？") && asks("why?\"") && !asks("no."));
    }

    #[test]
    fn a_long_sentence_is_cut_between_clauses_and_nothing_is_without_a_bound() {
        let long = "one clause that goes on for a while, ".repeat(40);
        let parts = split(&long);
        assert!(parts.len() > 2 && parts.iter().all(|part| part.len() <= 420), "{parts:?}");
        assert!(split(&"a b. C d.\n".repeat(500)).len() <= 80);
        assert!(split(&"ö".repeat(5_000)).iter().all(|part| part.len() <= 420));
        assert!(split("...\n---\n***\n``` \n|---|---|").is_empty());
    }
}
