//! Whether a sentence says that something outside the conversation was done. It has to be somebody's act in the past, done to
//! something outside of the code, and not denied; or the sentence asks that it be done only once.

use super::acts::{
    ACTS, BETWEEN, CODE, DENIES, EDITS, FAR, FOREIGN_ACTS, FOREIGN_HAVE, FOREIGN_WEAK, OUTSIDE, OUTSIDE_ACTS, PHRASES,
    RUNS,
};
use super::has;
use crate::lead::command::has_effect;

/// Whether the sentence, in small letters and with its code as it stands, tells of an effect. `words` has no code in it.
pub(super) fn is_effect(words: &str, lower: &str) -> bool {
    if has(words, PHRASES) || asks_for_once(words) || is_open_request(words, lower) || runs_somewhere(words) {
        return true;
    }
    let outside = has(words, OUTSIDE) || lower.contains("://") || words.contains(" #");
    let mut parts = words.split([',', ';', '(', ')', '—', '–']).flat_map(|part| part.split(" but ")).map(str::trim);
    parts.any(|part| !has(part, DENIES) && (acted(part, outside) || foreign(part, outside))) || ran_code(words, lower)
}

/// "don't seed again": something was done, and once is enough.
fn asks_for_once(words: &str) -> bool {
    /// So many letters between the no and the again still belong together.
    const BETWEEN_MAX: usize = 40;
    let asks = ["don't ", "do not ", "must not ", "no need to ", "needn't ", "never "];
    asks.iter().any(|ask| {
        words.match_indices(ask).any(|(at, _)| {
            let rest: String = words[at + ask.len()..].chars().take(BETWEEN_MAX).collect();
            let clause = rest.split([',', ';', '.']).next().unwrap_or_default();
            has(clause, &["again", "a second time"])
        })
    })
}

/// "PR is up: URL".
fn is_open_request(words: &str, lower: &str) -> bool {
    let starts = ["pr ", "pr:", "the pr ", "pull request", "draft pr", "der pr ", "mr ", "mr:", "opened "];
    (lower.contains("/pull/") || lower.contains("/merge_requests/"))
        && starts.iter().any(|start| words.starts_with(start))
}

/// "dev server on port 5173 (pid 40211)".
fn runs_somewhere(words: &str) -> bool {
    let number = |cue: &str| {
        words
            .split(cue)
            .skip(1)
            .any(|rest| rest.trim_start_matches([' ', ':', '#']).starts_with(|c: char| c.is_ascii_digit()))
    };
    has(words, &["pid"]) && number("pid")
}

/// Somebody did it: "I pushed", "Pushed", "was pushed", "the script inserted".
fn acted(part: &str, outside: bool) -> bool {
    let tokens: Vec<&str> =
        part.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric())).collect();
    let is_act = |at: usize| {
        let rest = tokens.get(at..).unwrap_or_default().join(" ");
        let starts = |acts: &[&str]| {
            let follows =
                |act: &&str| rest.strip_prefix(*act).is_some_and(|after| after.is_empty() || after.starts_with(' '));
            acts.iter().any(follows)
        };
        let object = rest.split_whitespace().skip(1).take(4).collect::<Vec<&str>>().join(" ");
        let far = outside && has(part, FAR);
        (starts(OUTSIDE_ACTS) || (outside && starts(ACTS)) || (far && starts(EDITS)))
            && !has(&object, CODE)
            && !rest.starts_with("ran into")
    };
    let skip = |mut at: usize| {
        while tokens.get(at).is_some_and(|word| BETWEEN.contains(word) || word.is_empty() || *word == "done") {
            at += 1;
        }
        at
    };
    // Without a subject it starts the sentence, and no verb follows that would make it a describing word.
    let first = skip(0);
    let describes = tokens
        .iter()
        .skip(first + 1)
        .take(4)
        .any(|word| ["is", "are", "get", "gets", "must", "can", "was", "were", "have", "has"].contains(word));
    if is_act(first) && !describes {
        return true;
    }
    tokens.iter().enumerate().any(|(at, word)| {
        let next = skip(at + 1);
        match *word {
            "i" | "we" | "i've" | "we've" | "and"
                if *word != "and" || tokens[..at].iter().any(|w| matches!(*w, "i" | "we" | "i've")) =>
            {
                is_act(next)
            }
            "was" | "were" | "been" | "got" => outside && is_act(next) && !has(part, &["by"]),
            word if RUNS.contains(&word) => outside && is_act(next),
            _ => false,
        }
    })
}

fn foreign(part: &str, outside: bool) -> bool {
    let have = has(part, FOREIGN_HAVE) || FOREIGN_ACTS.iter().any(|act| part.starts_with(act.trim_end_matches('*')));
    have && (has(part, FOREIGN_ACTS) || (outside && has(part, FOREIGN_WEAK)))
}

/// "I ran `X`", where X changes something.
fn ran_code(words: &str, lower: &str) -> bool {
    let verbs = [
        "i ran ",
        "i've run ",
        "i've now run ",
        "i have run ",
        "i've just run ",
        "i've already run ",
        "we ran ",
        "i executed ",
    ];
    let started = ["ran ", "executed "].iter().find(|verb| words.starts_with(*verb));
    let verb = verbs.iter().find(|verb| words.contains(*verb)).or(started);
    let Some(after) = verb.and_then(|verb| lower.split_once(*verb)).map(|(_, after)| after) else {
        return false;
    };
    let line = match after.split_once('`') {
        Some((before, code)) if before.len() <= 20 => code.split('`').next().unwrap_or_default(),
        _ => after.split([',', ';']).next().unwrap_or_default(),
    };
    has_effect(line)
}
