//! What a heading means: a task, a wave, dispatch rules or prose. Decides from the heading's own text; its position and what
//! follows it are considered by the reader.

use super::problem::quote;
use crate::ids::{TaskId, name_from};

/// Words that people put before a task's number, where an id should be.
const TASK_WORDS: [&str; 6] = ["task", "step", "ticket", "issue", "story", "item"];

/// First words of something to do: a heading that begins with one was meant as a task.
const VERBS: &str = "add, adjust, allow, analyse, analyze, apply, audit, automate, benchmark, build, bump, change, check, choose, \
    clean, configure, connect, convert, copy, create, cut, define, delete, deploy, design, detect, develop, disable, document, draft, drop, \
    enable, ensure, expose, export, extend, extract, finish, fix, generate, handle, hook, implement, import, improve, init, initialise, \
    initialize, install, integrate, introduce, investigate, launch, make, merge, migrate, monitor, move, normalise, optimise, optimize, \
    parse, pick, polish, port, prepare, print, profile, prove, provide, provision, publish, read, record, reduce, refactor, release, remove, \
    rename, render, replace, research, restore, review, rewrite, roll, rotate, run, scaffold, schedule, seed, send, serve, set, setup, ship, \
    show, simplify, split, start, store, support, switch, tag, test, track, train, turn, update, upgrade, use, validate, verify, wire, wrap, write";

/// Whether a text begins like something to do: `Implement the parser`.
pub fn looks_like_order(text: &str) -> bool {
    let first = text.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or("").to_lowercase();
    VERBS.split(',').any(|verb| verb.trim() == first)
}

/// A level-3 heading, split.
pub(super) enum Split<'a> {
    /// `ID: title` with a valid id. The title may be empty.
    Task { id: TaskId, title: &'a str },
    /// `something: title` where the something is not an id.
    BadId { id: &'a str, title: &'a str, why: String },
    /// No colon, or none with a space after it.
    NoColon,
}

/// Splits `ID: title`. The id may be emphasised.
pub(super) fn split(text: &str) -> Split<'_> {
    let bare = text.trim_start_matches(['*', '_', '`']);
    let marks = &text[..text.len() - bare.len()];
    let Some((head, rest)) = bare.split_once(':') else {
        return Split::NoColon;
    };
    let rest = if marks.is_empty() { rest } else { rest.strip_prefix(marks).unwrap_or(rest) };
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return Split::NoColon;
    }
    let id = if marks.is_empty() { head } else { head.strip_suffix(marks).unwrap_or(head) };
    let (id, title) = (id.trim(), rest.trim());
    match TaskId::new(id) {
        Ok(id) => Split::Task { id, title },
        Err(why) => Split::BadId { id, title, why: why.to_string() },
    }
}

/// Whether a heading was meant as a task although it may not be one: `T3 do this`, `T3 - do this`, `Task 3: do this`.
pub(super) fn resembles_task(text: &str) -> bool {
    let mut words =
        text.split(|c: char| c.is_whitespace() || matches!(c, ':' | '*' | '`')).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or("");
    let numbered = |word: &str| word.trim_end_matches('.').parse::<u32>().is_ok();
    if TASK_WORDS.iter().any(|word| word.eq_ignore_ascii_case(first)) {
        return words.next().is_some_and(|second| numbered(second) || has_id_shape(second));
    }
    has_id_shape(first)
}

/// Letters and then a number: `T3`, `auth-12`, `B2.1`.
fn has_id_shape(word: &str) -> bool {
    let letters = word.chars().take_while(char::is_ascii_alphabetic).count();
    let rest = word[letters..].trim_start_matches(['-', '_']);
    (1..=8).contains(&letters) && rest.starts_with(|c: char| c.is_ascii_digit()) && TaskId::new(word).is_ok()
}

/// How a malformed task heading could be written instead.
pub(super) fn suggestion(text: &str) -> String {
    let separates = |c: char| c.is_whitespace() || matches!(c, '-' | '–' | '—' | '.' | ')');
    let (id, title) = match split(text) {
        Split::Task { id, .. } => return format!("write `### {id}: TITLE`"),
        Split::BadId { id, title, .. } => (id, title),
        Split::NoColon if !resembles_task(text) => ("", ""),
        Split::NoColon => {
            let end = text.find(|c: char| c.is_whitespace() || c == ':').unwrap_or(text.len());
            (&text[..end], text[end..].trim_start_matches(':'))
        }
    };
    let title = title.trim_start_matches(separates);
    match name_from(id).filter(|_| !title.is_empty()) {
        Some(id) => format!("write {}", quote(&format!("### {id}: {title}"))),
        None => "write `### ID: title`; a section that is not a task begins with `##`".to_owned(),
    }
}

/// What a level-2 heading says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Section {
    /// `Wave 2`, with or without a title after it.
    Wave(u32),
    /// `Wave` without a readable number.
    BadWave,
    DispatchRules,
    /// Anything else.
    Prose,
}

pub(super) fn section(text: &str) -> Section {
    let plain = text.trim().trim_matches(['*', '_']).trim_end_matches(':').trim();
    if plain.eq_ignore_ascii_case("dispatch rules") {
        return Section::DispatchRules;
    }
    let (word, rest) = plain.split_once(char::is_whitespace).unwrap_or((plain, ""));
    if !word.trim_end_matches(':').eq_ignore_ascii_case("wave") {
        return Section::Prose;
    }
    let rest = rest.trim_start().trim_start_matches('#');
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number = rest[..digits].parse().ok();
    match number {
        Some(wave) if !rest[digits..].starts_with(char::is_alphanumeric) => Section::Wave(wave),
        _ => Section::BadWave,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_and_rules() {
        let cases = [
            ("Wave 1", Section::Wave(1)),
            ("wave 12: the parser", Section::Wave(12)),
            ("Wave 3 — cleanup", Section::Wave(3)),
            ("**Wave 2**", Section::Wave(2)),
            ("Wave", Section::BadWave),
            ("Wave two", Section::BadWave),
            ("Wave 2b", Section::BadWave),
            ("Wave 99999999999", Section::BadWave),
            ("Waves", Section::Prose),
            ("Dispatch Rules:", Section::DispatchRules),
            ("Notes", Section::Prose),
        ];
        for (text, expected) in cases {
            assert_eq!(section(text), expected, "{text}");
        }
    }

    #[test]
    fn task_headings() {
        for (text, id, title) in [
            ("T1: Do it", "T1", "Do it"),
            ("**T1**: Do it", "T1", "Do it"),
            ("**T1:** Do it", "T1", "Do it"),
            ("`a.b-c`: x: y", "a.b-c", "x: y"),
            ("T1:", "T1", ""),
        ] {
            let Split::Task { id: got, title: rest } = split(text) else {
                panic!("{text} is a task");
            };
            assert_eq!((got.as_str(), rest), (id, title));
        }
        assert!(matches!(split("T 1: x"), Split::BadId { id: "T 1", .. }));
        assert!(matches!(split("std::fmt"), Split::NoColon));
        assert!(matches!(split("T1 do it"), Split::NoColon));
    }

    #[test]
    fn hints_are_what_one_would_type() {
        for (text, hint) in [
            ("Task 1: Do it", "write `### Task-1: Do it`"),
            ("T3 - Do it", "write `### T3: Do it`"),
            ("T3 Do it", "write `### T3: Do it`"),
            ("T3:x", "write `### T3: x`"),
            ("T3:", "write `### T3: TITLE`"),
            ("Do it", "write `### ID: title`; a section that is not a task begins with `##`"),
        ] {
            assert_eq!(suggestion(text), hint);
        }
        for text in ["T3 x", "auth-12 x", "Task 4", "step 2: x", "**T1** x"] {
            assert!(resembles_task(text), "{text}");
        }
        for text in ["Background", "The 3 reasons", "Task list", "3 reasons", "v"] {
            assert!(!resembles_task(text), "{text}");
        }
    }
}
