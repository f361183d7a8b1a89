//! What a line of prose states: a decision, something done that must not be done again, what comes next. By its words, not by
//! a model: a decision too many costs a few bytes, one too few costs the thread. An effect or a next step that is none misleads,
//! so these need more than a word. The words themselves are in `words`, `ahead` and `acts`.

mod acts;
mod ahead;
mod effect;
mod lost;
#[cfg(test)]
mod tests;
mod words;

use serde::{Deserialize, Serialize};

use super::fact::bounded;
use ahead::{AT_WORK, NEXT, NEXT_STARTS, OFFER, QUESTION};
use effect::is_effect;
use words::{CHOICE, CONSTRAINT, DECISION, LOOKING};

/// Longest statement: a decision with its reason fits, a paragraph does not.
const STATEMENT_MAX_BYTES: usize = 360;

/// Shortest: fewer letters state nothing that could be understood later.
const STATEMENT_MIN_BYTES: usize = 8;

/// Most statements taken from one text.
const STATEMENTS_MAX: usize = 60;

/// What a line states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statement {
    /// A choice was made or something was found out, with its reason where it is given.
    Decision,
    /// Something outside the conversation was changed: not to be done twice.
    Effect,
    /// What comes next, or is left.
    Next,
    /// Something the person wants kept to.
    Constraint,
    /// Something is not known or waits for the person.
    Question,
}

/// The statements in an assistant's text, in order.
#[must_use]
pub fn in_assistant_text(text: &str) -> Vec<(Statement, String)> {
    let mut found: Vec<(Statement, String)> = Vec::new();
    let (mut heading, mut in_code) = (None, false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            continue;
        }
        if in_code || line.trim().is_empty() {
            continue;
        }
        let (marked, line) = without_marks(line);
        if let Some(kind) = heading_of(line, marked) {
            heading = kind;
            continue;
        }
        if !marked.is_item && !marked.is_heading {
            heading = None;
        }
        match marked.ticked {
            Some(true) => keep(&mut found, Statement::Effect, line),
            Some(false) => keep(&mut found, Statement::Next, line),
            None => sentences(line).for_each(|sentence| note(&mut found, sentence, heading)),
        }
        if found.len() >= STATEMENTS_MAX {
            break;
        }
    }
    found
}

/// What a person's text wants kept to, sentence by sentence.
#[must_use]
pub fn constraints(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| without_marks(line).1);
    let all = lines.flat_map(sentences).filter(|sentence| has(&lower(sentence), CONSTRAINT));
    all.map(|sentence| bounded(sentence, STATEMENT_MAX_BYTES)).take(STATEMENTS_MAX).collect()
}

/// Whether a person says that the context was lost.
#[must_use]
pub fn says_compacted(prompt: &str) -> bool {
    lost::says_compacted(prompt)
}

#[derive(Clone, Copy)]
struct Marked {
    is_item: bool,
    /// The item has a box: whether it is ticked.
    ticked: Option<bool>,
    is_heading: bool,
}

/// A line without the marks of a list or a heading.
fn without_marks(line: &str) -> (Marked, &str) {
    let line = line.trim();
    let is_heading = line.starts_with('#') || (line.starts_with("**") && line.ends_with("**"));
    let bare = line.trim_start_matches('#').trim_start();
    let digits = bare.len() - bare.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let numbered = bare[digits..].strip_prefix(['.', ')']).filter(|_| digits > 0 && digits < 4);
    let item = numbered.or_else(|| bare.strip_prefix(['-', '*', '•', '+']).filter(|rest| rest.starts_with(' ')));
    let is_item = item.is_some();
    let rest = item.unwrap_or(bare).trim_start();
    let boxes = [("[ ] ", false), ("[x] ", true), ("[X] ", true), ("☐ ", false), ("☑ ", true), ("✅ ", true)];
    let boxed = boxes.iter().find_map(|(mark, ticked)| Some((rest.strip_prefix(mark)?, *ticked)));
    let (rest, ticked) = boxed.filter(|_| is_item).map_or((rest, None), |(rest, ticked)| (rest, Some(ticked)));
    (Marked { is_item, ticked, is_heading }, rest.trim_matches('*').trim())
}

/// What the items below a heading state; nothing where the line is no heading.
fn heading_of(line: &str, marked: Marked) -> Option<Option<Statement>> {
    let bare = line.trim_end_matches([':', '*']).trim();
    let short = bare.split_whitespace().count() <= 5;
    if !short || !(marked.is_heading || line.trim_end_matches('*').ends_with(':')) || marked.is_item {
        return None;
    }
    let words = lower(bare);
    let kinds: [(Statement, &[&str]); 4] = [
        (Statement::Decision, &["decision*", "decided", "chose*", "finding*", "rationale", "trade*", "entscheidung*"]),
        (
            Statement::Next,
            &[
                "next",
                "remaining",
                "todo*",
                "to do",
                "left",
                "open work",
                "in progress",
                "plan",
                "nächste*",
                "offen*",
                "étapes",
            ],
        ),
        (Statement::Question, &["question*", "waiting", "need from you", "frage*", "blocked", "blocker*"]),
        (Statement::Effect, &["done", "effects", "completed", "shipped", "do not", "erledigt"]),
    ];
    let kind = kinds.into_iter().find(|(_, cues)| has(&words, cues)).map(|(kind, _)| kind);
    Some(kind)
}

/// Takes a sentence in, where it states something; a reason that stands alone belongs to what was said before.
fn note(found: &mut Vec<(Statement, String)>, sentence: &str, heading: Option<Statement>) {
    let words = lower(sentence);
    if sentence.len() < STATEMENT_MIN_BYTES {
        return;
    }
    let reason = ["because", "reason:", "the reason", "why:", "this is because", "since "];
    if reason.iter().any(|start| words.starts_with(start))
        && let Some((Statement::Decision, last)) = found.last_mut()
        && last.len() + sentence.len() < STATEMENT_MAX_BYTES
    {
        *last = format!("{last} {sentence}");
        return;
    }
    let Some(kind) = kind_of(&words, sentence).or(heading) else {
        return;
    };
    keep(found, kind, sentence);
}

fn keep(found: &mut Vec<(Statement, String)>, kind: Statement, sentence: &str) {
    let text = bounded(sentence, STATEMENT_MAX_BYTES);
    if !found.iter().any(|(_, known)| *known == text) {
        found.push((kind, text));
    }
}

fn kind_of(lower: &str, sentence: &str) -> Option<Statement> {
    let words = &without_code(lower);
    let asks = has(words, QUESTION) && !has(words, OFFER);
    if asks || (sentence.ends_with('?') && sentence.len() < STATEMENT_MAX_BYTES) {
        return Some(Statement::Question);
    }
    // What somebody says they will do now is no decision, unless they say so.
    if starts_next(words) {
        return Some(Statement::Next);
    }
    if has(words, CHOICE) || intends(words) {
        return Some(Statement::Decision);
    }
    if is_effect(words, lower) {
        return Some(Statement::Effect);
    }
    if comes_next(words) {
        return Some(Statement::Next);
    }
    (has(words, DECISION) || is_set(words)).then_some(Statement::Decision)
}

/// Code in a sentence is quoted, not said.
fn without_code(words: &str) -> String {
    words.split('`').enumerate().map(|(n, part)| if n % 2 == 0 { part } else { "`" }).collect()
}

fn starts_next(words: &str) -> bool {
    /// What "next" describes in code.
    const THINGS: &[&str] = &[
        "page", "pages", "token", "tokens", "request", "requests", "element", "node", "line", "frame", "auth", "item",
    ];
    let start = NEXT_STARTS.iter().find(|start| words.starts_with(*start) && has(words, &[start]));
    start.and_then(|start| words.strip_prefix(start)).is_some_and(|rest| {
        let second = rest.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or_default();
        !THINGS.contains(&second)
    })
}

fn comes_next(words: &str) -> bool {
    let currently = has(words, &["currently"]) && has(words, AT_WORK);
    // "first … then …", where somebody says it of the own steps.
    let first = ["i'll first ", "i will first ", "let me first ", ": first ", "zuerst ", "d'abord ", "primero "];
    let order = first.iter().find_map(|first| words.split_once(first)).map(|(_, rest)| rest);
    let order = order.or_else(|| words.strip_prefix("first"));
    let ordered = order.is_some_and(|rest| has(rest, &["then", "dann", "puis", "ensuite", "luego", "después"]));
    // "After the review comes back, I'll merge."
    let waits = ["after ", "once ", "when ", "as soon as "].iter().any(|start| words.starts_with(start));
    let then = waits && has(words, &["i'll", "i will", "we'll"]);
    has(words, NEXT) || currently || ordered || then
}

/// "I'm going to normalise to UTC" is a choice, "I'm going to look at the tests" is none.
fn intends(words: &str) -> bool {
    let plans = ["i'm going to ", "i am going to ", "we're going to ", "we are going to "];
    let verb = plans.iter().find_map(|plan| words.split_once(plan)).map(|(_, rest)| rest);
    verb.and_then(|rest| rest.split_whitespace().next()).is_some_and(|verb| !LOOKING.contains(&verb))
}

/// "IDs will be ULIDs."
fn is_set(words: &str) -> bool {
    /// A rule is said in few words.
    const WORDS_MAX: usize = 14;
    let able = ["able", "happy", "glad", "back", "done", "ready"];
    let set = words.split_once(" will be ").map(|(_, rest)| rest);
    let after = set.and_then(|rest| rest.split_whitespace().next());
    after.is_some_and(|after| !able.contains(&after)) && words.split_whitespace().count() <= WORDS_MAX
}

/// Sentences of one line. A dot inside a word, a number or a path ends none.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line.trim();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest
            .char_indices()
            .filter(|(_, c)| matches!(c, '.' | '!' | '?'))
            .map(|(at, c)| at + c.len_utf8())
            .find(|end| rest[*end..].starts_with([' ', '\t']) && !ends_in_short_form(&rest[..*end]))
            .unwrap_or(rest.len());
        let (sentence, after) = rest.split_at(end);
        rest = after.trim_start();
        Some(sentence.trim())
    })
}

/// Words that end in a dot and no sentence.
fn ends_in_short_form(text: &str) -> bool {
    const FORMS: &[&str] =
        &["e.g.", "i.e.", "etc.", "vs.", "cf.", "no.", "approx.", "z.B.", "d.h.", "bzw.", "ca.", "usw."];
    FORMS.iter().any(|form| {
        let before = text.strip_suffix(form);
        before.is_some_and(|before| !before.ends_with(char::is_alphanumeric))
    })
}

/// Small letters, and one kind of apostrophe.
fn lower(text: &str) -> String {
    text.to_lowercase().replace('\u{2019}', "'")
}

/// Whether one of the cues occurs as whole words; one that ends in `*` may go on. A dot inside a name ends no word.
fn has(words: &str, cues: &[&str]) -> bool {
    let mut inside = false;
    let mut starts = words.char_indices().filter(|(_, c)| {
        let was = std::mem::replace(&mut inside, c.is_alphanumeric() || *c == '_');
        inside && !was
    });
    starts.any(|(at, _)| cues.iter().any(|cue| starts_with_cue(&words[at..], cue)))
}

fn starts_with_cue(words: &str, cue: &str) -> bool {
    let (stem, open) = cue.strip_suffix('*').map_or((cue, false), |stem| (stem, true));
    words.strip_prefix(stem).is_some_and(|after| {
        let mut after = after.chars();
        let (next, second) = (after.next(), after.next());
        let joined = next.is_some_and(|c| matches!(c, '.' | '/' | '-')) && second.is_some_and(char::is_alphanumeric);
        let goes_on = next.is_some_and(|c| c.is_alphanumeric() || c == '_') || joined;
        open || !goes_on || !stem.ends_with(char::is_alphanumeric)
    })
}
