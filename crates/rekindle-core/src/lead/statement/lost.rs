//! Whether a person says that the session has lost its context. What is said of the person's own data, code or output is none.

use super::{has, lower, sentences};

/// Longer prompts hold such words by chance.
const PROMPT_MAX_BYTES: usize = 600;

/// Words that are said to nobody but a session that has forgotten.
const SAID: &[&str] = &[
    "where were we",
    "what were we doing",
    "what were you doing",
    "what were we working on",
    "what were you working on",
    "where did we stop",
    "where did we leave off",
    "where did you stop",
    "where we left off",
    "where you left off",
    "lost the thread",
    "lost your context",
    "lost the context",
    "lost our context",
    "lost track",
    "lost your memory",
    "you lost context",
    "you've lost context",
    "you have lost context",
    "forgot everything",
    "forgotten everything",
    "forgot it all",
    "forgot what we",
    "forgot what you",
    "forgot where",
    "forgot the plan",
    "forgot the task",
    "forgot our",
    "forgotten what",
    "forgotten where",
    "lost everything we",
    "recover your state",
    "recover the state",
    "recover the session",
    "recover your context",
    "restore your context",
    "after the context compaction",
    "there was a compaction",
    "a compaction happened",
    // German
    "wo waren wir",
    "was haben wir gemacht",
    "woran haben wir gearbeitet",
    "wo sind wir stehen geblieben",
    "wo waren wir stehen geblieben",
    "du hast alles vergessen",
    "alles vergessen",
    "den faden verloren",
    "du wurdest kompaktiert",
    "du wurdest komprimiert",
    "kontext verloren",
    "kontext ging verloren",
    "kontext wurde komprimiert",
    "kontext wurde kompaktiert",
    // French and Spanish
    "où en étions-nous",
    "où en étais-tu",
    "tu as tout oublié",
    "perdu le fil",
    "perdu le contexte",
    "dónde estábamos",
    "por dónde íbamos",
    "olvidaste todo",
    "perdiste el hilo",
    "perdiste el contexto",
];

/// What has happened to a context.
const HAPPENED: &[&str] =
    &["compacted", "truncated", "summarized", "summarised", "compressed", "auto-compacted", "reset", "wiped"];

/// Who it happens to when it is the session itself.
const YOU: &[&str] =
    &["you were", "you've been", "you have been", "you got", "you just got", "you had been", "you are being"];

/// What it happens to when it is the session's.
const YOURS: &[&str] = &[
    "your context",
    "your conversation",
    "your memory",
    "your history",
    "your session",
    "your messages",
    "the context",
    "the conversation",
    "our conversation",
    "our session",
    "context window",
    "this conversation",
    "this session",
    "messages",
];

/// So many letters later it is still said of the same thing.
const NEAR: usize = 24;

/// So many letters fit between "you were" and what happened: an adverb.
const NEXT_TO: usize = 10;

/// Whether a person says that the context was lost.
pub(super) fn says_compacted(prompt: &str) -> bool {
    if prompt.len() > PROMPT_MAX_BYTES {
        return false;
    }
    let words = lower(prompt);
    has(&words, SAID)
        || words.lines().flat_map(sentences).any(|sentence| {
            near(sentence, YOU, HAPPENED, NEXT_TO)
                || near(sentence, YOURS, HAPPENED, NEAR)
                || near(sentence, YOURS, &["lost", "gone", "cleared"], NEAR)
        })
}

/// Whether one of the words follows on one of the others after at most so many letters.
fn near(sentence: &str, first: &[&str], then: &[&str], most: usize) -> bool {
    first.iter().any(|first| {
        sentence.match_indices(first).any(|(at, _)| {
            let rest = &sentence[at + first.len()..];
            let clause = rest.split([',', ';']).next().unwrap_or_default();
            let starts = !sentence[..at].chars().next_back().is_some_and(char::is_alphanumeric);
            starts && then.iter().any(|word| clause.find(word).is_some_and(|at| at <= most) && has(clause, &[word]))
        })
    })
}
