//! How a heading, an item or a cell starts and ends: the word and number that mark it as a task or a group, a tick, and what
//! is said in brackets. Decides from the text alone; whether the mark makes it a task is decided in `choose`.

use super::words::{self, Rank};

/// A parsed text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Mark {
    pub(super) rank: Option<Rank>,
    /// `1`, `2.3`, `A`, or an id such as `US-001`; empty when there is none.
    pub(super) label: String,
    /// The rest, as a title.
    pub(super) title: String,
    /// Ticked off or struck out.
    pub(super) done: bool,
    pub(super) struck: bool,
    /// Its state is said in brackets or by a box: only tasks have one.
    pub(super) told: bool,
    pub(super) parallel: bool,
    pub(super) optional: bool,
}

/// Marks before and after a title that show that something is done.
const TICKS: [char; 5] = ['✅', '☑', '✔', '🗹', '🎉'];

/// Longest text after a struck-out title that is still only a remark about it.
const STRUCK_REST_MAX_CHARS: usize = 40;

/// What may come between a mark and its title.
const SEPARATORS: [char; 8] = [':', '.', ')', '-', '–', '—', '|', '·'];

/// Parses a text. `bold` is how many of its bytes are bold at its start: a bold beginning is the title.
pub(super) fn read(text: &str, bold: usize) -> Mark {
    let mark = Mark::default();
    let first = text.split("\n").next().unwrap_or("");
    let joined;
    // A bold beginning is a title; what follows it explains.
    let text = match text.get(..bold).filter(|head| !head.trim().is_empty()) {
        Some(head) => {
            let rest = text.get(bold..).unwrap_or("").trim_start();
            let tag = rest.split(|c: char| c.is_whitespace()).next().unwrap_or("");
            let bare = head.trim().trim_end_matches(SEPARATORS);
            let only_mark = take_mark(bare).is_some_and(|(_, _, rest)| rest.is_empty()) || words::rank(bare).is_some();
            // `**T1** do this`, `**Task 1:** do this`; but `**Set up CI** with caching` is one title only up to there.
            if only_mark || tag.starts_with('[') && tag.ends_with(']') {
                let sentence = rest.trim_start_matches(SEPARATORS);
                joined = format!("{bare}: {}", sentence.lines().next().unwrap_or(""));
                joined.as_str()
            } else if head.split_whitespace().count() < 2
                && !rest.is_empty()
                && !rest.starts_with(SEPARATORS)
                && !head.trim_end().ends_with(['.', ':'])
            {
                first
            } else {
                joined = format!("{} {}", head.trim(), trailing_brackets(rest));
                joined.as_str()
            }
        }
        None => first,
    };
    finish(text, mark)
}

/// A text that starts with any word and a number: the word, and the text after both, parsed.
pub(super) fn counted(text: &str) -> Option<(String, Mark)> {
    let mut mark = Mark::default();
    let text = leading(text.lines().next()?.trim(), &mut mark);
    let (word, rest) = text.split_once(' ')?;
    let (number, title) = take_number(rest.trim_start())?;
    let title = title.trim_start().strip_prefix(SEPARATORS)?.trim_start_matches(SEPARATORS).trim();
    let plain = word.chars().all(char::is_alphabetic) && !title.is_empty();
    (mark.rank, mark.label) = (Some(Rank::Task), number.to_owned());
    plain.then(|| {
        mark.title = trailing(title, &mut mark);
        (word.to_lowercase(), mark)
    })
}

fn finish(text: &str, mut mark: Mark) -> Mark {
    let mut rest = leading(text.trim(), &mut mark);
    if let Some((inner, after)) = rest.strip_prefix("~~").and_then(|inner| inner.split_once("~~"))
        && after.trim().chars().count() <= STRUCK_REST_MAX_CHARS
    {
        mark.struck = true;
        rest = inner.trim();
    }
    if let Some((rank, label, title)) = take_mark(rest) {
        mark.rank = Some(rank);
        mark.label = label;
        if !title.is_empty() {
            rest = leading(title, &mut mark);
        }
    }
    mark.title = trailing(rest, &mut mark);
    // `#### [open] Do this`
    if mark.told && mark.rank.is_none() {
        mark.rank = Some(Rank::Task);
    }
    mark
}

/// Brackets directly after a bold title: `**Set up CI** (parallel)`.
fn trailing_brackets(rest: &str) -> &str {
    let line = rest.lines().next().unwrap_or("").trim();
    if line.starts_with('(') && line.ends_with(')')
        || line.starts_with('[') && line.ends_with(']')
        || line.starts_with(TICKS)
    {
        line
    } else {
        ""
    }
}

/// Takes boxes, ticks and pictures off the front.
fn leading<'a>(text: &'a str, mark: &mut Mark) -> &'a str {
    let mut text = text.trim_start();
    loop {
        if let Some(rest) = text.strip_prefix("[x]").or_else(|| text.strip_prefix("[X]")) {
            mark.done = true;
            text = rest.trim_start();
        } else if let Some(rest) = ["[ ]", "[]", "[-]", "[~]"].iter().find_map(|b| text.strip_prefix(b)) {
            text = rest.trim_start_matches('*').trim_start();
        } else if let Some((said, rest)) = text.strip_prefix('[').and_then(|inner| inner.split_once(']'))
            && let Some(tag) = tag(said, mark)
        {
            match tag {
                Tag::Parallel => mark.parallel = true,
                Tag::Done => mark.done = true,
                Tag::Open | Tag::Other => {}
            }
            mark.told |= matches!(tag, Tag::Done | Tag::Open);
            text = rest.trim_start().trim_start_matches('*').trim_start();
        } else if let Some(c) = text.chars().next().filter(|c| is_picture(*c)) {
            mark.done |= TICKS.contains(&c);
            text = text[c.len_utf8()..].trim_start();
        } else {
            return text;
        }
    }
}

/// What brackets before or after a title say.
enum Tag {
    Parallel,
    Done,
    Open,
    /// Another number, such as the story that a task belongs to.
    Other,
}

fn tag(said: &str, mark: &Mark) -> Option<Tag> {
    let low = said.trim().to_lowercase();
    match () {
        () if low == "p" => Some(Tag::Parallel),
        () if low == "x" || words::is_done(&low) && !low.contains(' ') => Some(Tag::Done),
        () if words::is_open(&low) => Some(Tag::Open),
        // After an id: `T003 [US1] do this`.
        () if !mark.label.is_empty() && has_id_shape(said) => Some(Tag::Other),
        () => None,
    }
}

/// Characters that are drawn for decoration, not read.
fn is_picture(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2bff}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}' | '\u{200d}')
}

/// Takes what is said after a title off its end.
fn trailing(text: &str, mark: &mut Mark) -> String {
    let mut text = text.trim().trim_end_matches(['#', ' ']).trim_end_matches(':').trim();
    if text.ends_with(").") || text.ends_with("].") {
        text = &text[..text.len() - 1];
    }
    if let Some((inner, _)) = text
        .strip_prefix("~~")
        .and_then(|inner| inner.split_once("~~"))
        .filter(|(_, rest)| rest.trim().chars().count() <= STRUCK_REST_MAX_CHARS)
    {
        mark.struck = true;
        text = inner.trim();
    }
    loop {
        let before = text;
        if let Some(c) = text.chars().next_back().filter(|c| is_picture(*c)) {
            mark.done |= TICKS.contains(&c);
            text = text[..text.len() - c.len_utf8()].trim_end();
        }
        for (open, close) in [('(', ')'), ('[', ']')] {
            let Some(inner) = text.strip_suffix(close) else {
                continue;
            };
            let Some(at) = inner.rfind(open) else {
                continue;
            };
            let said = &inner[at + 1..];
            let low = said.to_lowercase();
            let tagged = said.eq_ignore_ascii_case("p") && close == ']';
            if tagged || words::is_parallel(said) {
                mark.parallel = true;
            } else if low == "x" || words::is_done(&low) && !low.contains(' ') {
                mark.done = true;
            } else if words::is_open(&low) {
                mark.told = true;
            } else if low == "optional" {
                mark.optional = true;
            } else if !is_about_order(&low) {
                continue;
            }
            text = text[..at].trim_end();
        }
        for word in ["DONE", "Done", "COMPLETE", "Complete", "COMPLETED", "Completed"] {
            if let Some(rest) =
                text.strip_suffix(word).map(str::trim_end).filter(|rest| rest.ends_with(['-', '–', '—', ':', '|']))
            {
                mark.done = true;
                text = rest.trim_end_matches(['-', '–', '—', ':', '|']).trim_end();
            }
        }
        if text == before || text.is_empty() {
            break;
        }
    }
    let text = without_order(without_names(text));
    let text = text.trim_end_matches([' ', '–', '—', '-', ':', ',', '!', ';']);
    let text = if text.ends_with("...") { text } else { text.trim_end_matches('.') };
    text.to_owned()
}

/// The first sentence of an item, up to a dash that explains it.
pub(super) fn short(title: &str) -> &str {
    let words = |text: &str| text.split_whitespace().count();
    for (at, _) in title.match_indices([' ']) {
        let (head, rest) = (&title[..at], &title[at + 1..]);
        if head.matches('`').count() % 2 == 1 {
            continue;
        }
        let sentence =
            head.ends_with('.') && rest.starts_with(|c: char| c.is_uppercase() || c == '`') && words(head) > 1;
        let dash = rest.starts_with("— ") || rest.starts_with("– ");
        if sentence || dash && words(head) > 1 {
            return head.trim_end_matches(['.', ' ']);
        }
    }
    title
}

/// A title without the people it is given to: `Title screen @kim`.
fn without_names(text: &str) -> &str {
    let mut text = text.trim_end();
    while let Some((before, name)) = text.rsplit_once(' ') {
        let named = name.len() > 1
            && name.starts_with('@')
            && name[1..].chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if !named {
            break;
        }
        text = before.trim_end_matches([' ', ',', '–', '—', '-']);
    }
    text
}

/// A title without the order stated at its end: `Water pickup, after #1`.
fn without_order(text: &str) -> &str {
    for (at, separator) in text.match_indices([',', '–', '—', ';', '-', '.', '→', '[']) {
        let rest = text[at + separator.len()..].trim_start();
        let spaced = separator == "," || separator == ";" || separator == "." || text[..at].ends_with(' ');
        let digit = rest.chars().any(|c| c.is_ascii_digit());
        if spaced && digit && at > 0 && is_about_order(&rest.to_lowercase()) {
            return text[..at].trim_end();
        }
    }
    text
}

/// Whether brackets say what comes before: `(depends on 2)`, `(after Task 1)`.
pub(super) fn is_about_order(low: &str) -> bool {
    ["depends", "after ", "blocked by", "needs ", "requires ", "once ", "follows ", "deps:", "dep:"]
        .iter()
        .any(|word| low.starts_with(word))
}

/// Takes the word and number, the id, or the number off the front of a text: rank, label, the rest.
pub(super) fn take_mark(text: &str) -> Option<(Rank, String, &str)> {
    by_word(text).or_else(|| by_id(text)).or_else(|| by_number(text))
}

fn by_word(text: &str) -> Option<(Rank, String, &str)> {
    let end = text.find(|c: char| !(c.is_alphabetic() || c == '-')).unwrap_or(text.len());
    let (mut word, mut rest) = (&text[..end], &text[end..]);
    let mut rank = words::rank(word);
    // `User story 3`, `Work item 2`.
    let second = rest.trim_start();
    let second_end = second.find(|c: char| !c.is_alphabetic()).unwrap_or(second.len());
    let both = format!("{word} {}", &second[..second_end]);
    if second_end > 0
        && let Some(found) = words::rank(&both)
    {
        (rank, rest, word) = (Some(found), &second[second_end..], &second[..second_end]);
    }
    let rank = rank?;
    let capital = word.starts_with(char::is_uppercase);
    let behind = rest.trim_start_matches([' ', '#', '-']);
    if let Some((number, after)) = take_number(behind).or_else(|| take_letter(behind)) {
        return Some((rank, number.to_owned(), after.trim_start().trim_start_matches(SEPARATORS).trim_start()));
    }
    // `Task: do this`. Without a number, the word has to be meant as a mark.
    let title = rest.strip_prefix(':').or_else(|| rest.strip_prefix(" -")).or_else(|| rest.strip_prefix(" –"))?;
    (capital && !title.trim().is_empty() && title.starts_with(' ')).then(|| (rank, String::new(), title.trim()))
}

/// `1`, `2.3`, `2b`, with the rest after it.
fn take_number(text: &str) -> Option<(&str, &str)> {
    let mut end = 0;
    for (at, c) in text.char_indices() {
        let goes_on = c.is_ascii_digit() || (c == '.' && text[at + 1..].starts_with(|c: char| c.is_ascii_digit()));
        if !goes_on {
            break;
        }
        end = at + 1;
    }
    if end == 0 || !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let rest = &text[end..];
    let mut letters = rest.chars();
    if let Some(letter) = letters.next().filter(char::is_ascii_lowercase)
        && !letters.clone().next().is_some_and(char::is_alphanumeric)
    {
        end += letter.len_utf8();
    } else if rest.starts_with(char::is_alphanumeric) {
        return None;
    }
    Some((&text[..end], &text[end..]))
}

/// `A`, `B`, or a Roman number.
fn take_letter(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    let word = &text[..end];
    let letter = word.len() == 1 && word.starts_with(|c: char| c.is_ascii_uppercase());
    let roman = !word.is_empty() && word.len() <= 4 && word.chars().all(|c| matches!(c, 'I' | 'V' | 'X'));
    let coded = word.len() <= 3
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word[1.min(word.len())..].chars().all(|c| c.is_ascii_digit())
        && word.len() > 1;
    let ended = text[end..].trim_start().is_empty() || text[end..].trim_start().starts_with(SEPARATORS);
    ((letter || roman || coded) && ended).then(|| (word, &text[end..]))
}

/// `T3: do this`, `US-001 do this`, `[T3] do this`.
fn by_id(text: &str) -> Option<(Rank, String, &str)> {
    if let Some((inner, rest)) = text.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        let known = has_id_shape(inner) || take_number(inner).is_some_and(|(_, rest)| rest.is_empty());
        return (known && !rest.starts_with('('))
            .then(|| (Rank::Id, inner.to_owned(), rest.trim_start().trim_start_matches(SEPARATORS).trim_start()));
    }
    let bare = text.trim_start_matches('`');
    let end = bare.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))).unwrap_or(bare.len());
    let id = bare[..end].trim_end_matches(['.', '-']);
    if !has_id_shape(id) {
        return None;
    }
    let rest = bare[id.len()..].trim_start_matches('`');
    let letters = id.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(0);
    let rank = words::id_rank(&id[..letters])?;
    let separated = rest.trim_start().starts_with([':', '–', '—', '|'])
        || rest.starts_with(" - ")
        || rest.starts_with(". ")
        || rest.starts_with(") ");
    let known = words::is_id_prefix(&id[..letters]) && id.starts_with(|c: char| c.is_ascii_uppercase());
    let dashed = id[letters..].starts_with('-')
        && id[..letters].chars().all(|c| c.is_ascii_uppercase())
        && id.len() - letters > 2;
    if !separated && !known && !dashed && !rest.is_empty() {
        return None;
    }
    let title = rest.trim_start().trim_start_matches(SEPARATORS).trim_start();
    Some((rank, id.to_owned(), title))
}

/// Letters and then a number: `T3`, `US-001`, `B2.1`.
fn has_id_shape(word: &str) -> bool {
    let letters = word.chars().take_while(char::is_ascii_alphabetic).count();
    let rest = word.get(letters..).unwrap_or("").trim_start_matches(['-', '_']);
    let digits = !rest.is_empty()
        && rest.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-')
        && rest.starts_with(|c: char| c.is_ascii_digit());
    let suffixed = rest.len() > 1
        && rest[..rest.len() - 1].chars().all(|c| c.is_ascii_digit())
        && rest.ends_with(|c: char| c.is_ascii_lowercase());
    (1..=8).contains(&letters) && (digits || suffixed)
}

/// `1. do this`, `2.3 do this`, `(4) do this`, `5) do this`, `6: do this`.
fn by_number(text: &str) -> Option<(Rank, String, &str)> {
    if let Some((number, rest)) = text.strip_prefix('(').and_then(take_number) {
        let title = rest.strip_prefix(')')?;
        return Some((Rank::Number, number.to_owned(), title.trim_start()));
    }
    let hashed = text.strip_prefix('#').unwrap_or(text);
    let (number, rest) = take_number(hashed)?;
    let dotted = number.contains('.');
    let marked = rest.starts_with(['.', ')', ':'])
        || rest.trim_start().starts_with(['–', '—', '|', ':'])
        || rest.starts_with(" - ")
        || hashed.len() < text.len();
    let after = rest.trim_start_matches(SEPARATORS);
    if !(marked || dotted) || !(after.is_empty() || after.starts_with(' ') || rest.starts_with(' ')) {
        return None;
    }
    let title = rest.trim_start().trim_start_matches(SEPARATORS).trim_start();
    // `0.4 (March)` is a version.
    if title.starts_with('(') && title.ends_with(')') {
        return None;
    }
    Some((Rank::Number, number.to_owned(), title))
}
