//! What a line of prose states: a decision, something done that must not be done again, what comes next. By its words, not by
//! a model: a line too many costs a few bytes, a line too few costs the thread.

use serde::{Deserialize, Serialize};

use super::fact::bounded;

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

/// Words that show a decision or a finding.
const DECISION: &[&str] = &[
    "decided",
    "decide to",
    "decision",
    "chose ",
    "chosen",
    "choosing",
    "choice:",
    "opted",
    "opting",
    "going with",
    "go with",
    "went with",
    "we'll use",
    "we will use",
    "i'll use",
    "i will use",
    "we use ",
    "we are using",
    "instead of",
    "rather than",
    "in favour of",
    "in favor of",
    "settled on",
    "agreed",
    "ruled out",
    "rejected",
    "won't use",
    "will not use",
    "not using",
    "stick with",
    "sticking with",
    "stays as",
    "stay on",
    "switch to",
    "switched to",
    "switching to",
    "trade-off",
    "tradeoff",
    "root cause",
    "the cause was",
    "the cause is",
    "turns out",
    "turned out",
    "found that",
    "the bug is",
    "the bug was",
    "the fix is",
    "convention:",
    "policy:",
    "approach:",
    "rationale",
    "because ",
    "so that ",
    "we keep ",
    "must stay",
    "from now on",
];

/// Words that show that something was done to the world.
const EFFECT: &[&str] = &[
    "pushed",
    "deployed",
    "published",
    "released",
    "merged",
    "committed",
    "tagged",
    "migrated",
    "migration ran",
    "applied",
    "rolled back",
    "rolled out",
    "opened a",
    "opened pr",
    "opened pull",
    "opened issue",
    "created pr",
    "created a pull",
    "created the",
    "created a",
    "created branch",
    "emailed",
    "e-mailed",
    "sent ",
    "posted",
    "deleted",
    "dropped",
    "purged",
    "rotated",
    "revoked",
    "granted",
    "restarted",
    "upgraded",
    "uploaded",
    "seeded",
    "provisioned",
    "registered",
    "charged",
    "refunded",
    "booked",
    "reserved",
    "do not redo",
    "don't redo",
    "not redo",
    "do not repeat",
    "don't repeat",
    "do not run it again",
    "don't run it again",
    "not run again",
    "never run again",
    "do not rerun",
    "don't rerun",
    "not be repeated",
    "not be run again",
    "only once",
    "must not run twice",
    "already ran",
    "already done",
    "already been",
    "already live",
    "is live",
    "is now live",
];

/// Words that show what comes next.
const NEXT: &[&str] = &[
    "next",
    "now i'll",
    "now i will",
    "i'll now",
    "i will now",
    "let me now",
    "now let me",
    "then i'll",
    "then i will",
    "afterwards",
    "after that",
    "remaining",
    "remains",
    "still need",
    "still to",
    "still have to",
    "left to do",
    "what is left",
    "what's left",
    "to do:",
    "todo",
    "up next",
    "follow-up",
    "continue with",
    "continuing with",
    "currently",
    "working on",
    "in the middle of",
    "halfway",
    "current step",
    "starting with",
    "starting on",
    "resume at",
    "resume with",
];

/// Words that show that the person is waited for.
const QUESTION: &[&str] = &[
    "waiting for your",
    "waiting on your",
    "need your",
    "needs your",
    "open question",
    "please confirm",
    "please decide",
    "let me know",
    "unclear whether",
    "should i ",
    "shall i ",
    "do you want",
    "would you like",
    "which do you",
    "your call",
    "blocked on",
];

/// Words by which a person says what has to be kept to.
const CONSTRAINT: &[&str] = &[
    "must",
    "never",
    "don't",
    "do not",
    "dont ",
    "always",
    "only ",
    "make sure",
    "ensure",
    "without ",
    "should not",
    "shouldn't",
    "avoid",
    "keep ",
    "required",
    "requirement",
    "no more than",
    "at most",
    "at least",
    "deadline",
    "under no circumstances",
    "important",
    "leave ",
    "not touch",
    "stay ",
    "remember",
    "prefer",
    "instead of",
    "has to",
    "have to",
    "cannot",
    "can't",
    "limit",
    "budget",
    "ask me",
    "ask before",
    "wait for",
];

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
        for sentence in sentences(line) {
            note(&mut found, sentence, heading);
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
    const WORDS: &[&str] = &[
        "compacted",
        "compaction",
        "context was lost",
        "lost context",
        "lost your context",
        "lost the context",
        "lost the thread",
        "you forgot",
        "have forgotten",
        "forgot everything",
        "where were we",
        "what were we doing",
        "what were you doing",
        "where did we stop",
        "where did we leave off",
        "where we left off",
        "where you left off",
        "messages were truncated",
        "was truncated",
        "was summarized",
        "was summarised",
        "recover the session",
        "recover your state",
    ];
    /// Longer prompts hold such words by chance.
    const PROMPT_MAX_BYTES: usize = 600;
    prompt.len() <= PROMPT_MAX_BYTES && has(&lower(prompt), WORDS)
}

#[derive(Clone, Copy)]
struct Marked {
    is_item: bool,
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
    let rest = ["[ ] ", "[x] ", "[X] "].iter().find_map(|mark| rest.strip_prefix(mark)).unwrap_or(rest);
    (Marked { is_item, is_heading }, rest.trim_matches('*').trim())
}

/// What the items below a heading state; nothing where the line is no heading.
fn heading_of(line: &str, marked: Marked) -> Option<Option<Statement>> {
    let bare = line.trim_end_matches([':', '*']).trim();
    let short = bare.split_whitespace().count() <= 5;
    if !short || !(marked.is_heading || line.trim_end_matches('*').ends_with(':')) || marked.is_item {
        return None;
    }
    let words = lower(bare);
    let kind = if has(&words, &["decision", "decided", "chose", "finding", "rationale", "trade"]) {
        Some(Statement::Decision)
    } else if has(&words, &["next", "remaining", "todo", "to do", "left", "open work"]) {
        Some(Statement::Next)
    } else if has(&words, &["question", "waiting", "need from you"]) {
        Some(Statement::Question)
    } else if has(&words, &["done", "effects", "completed", "shipped", "do not"]) {
        Some(Statement::Effect)
    } else {
        None
    };
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
    let text = bounded(sentence, STATEMENT_MAX_BYTES);
    if !found.iter().any(|(_, known)| *known == text) {
        found.push((kind, text));
    }
}

fn kind_of(words: &str, sentence: &str) -> Option<Statement> {
    if has(words, QUESTION) || (sentence.ends_with('?') && sentence.len() < STATEMENT_MAX_BYTES) {
        return Some(Statement::Question);
    }
    // What somebody says they will do now is no decision, unless they say so.
    let first = ["next", "now i", "then i", "todo", "remaining", "current step"];
    if first.iter().any(|start| words.starts_with(start)) {
        return Some(Statement::Next);
    }
    let strong = ["decided", "decision", "root cause", "instead of", "rather than", "going with"];
    let kinds = [
        (Statement::Decision, &strong[..]),
        (Statement::Effect, EFFECT),
        (Statement::Decision, DECISION),
        (Statement::Next, NEXT),
    ];
    kinds.into_iter().find(|(_, cues)| has(words, cues)).map(|(kind, _)| kind)
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
    ["e.g.", "i.e.", "etc.", "vs.", "cf.", "no.", "approx."].iter().any(|form| text.ends_with(form))
}

/// Small letters, and one kind of apostrophe.
fn lower(text: &str) -> String {
    text.to_lowercase().replace('\u{2019}', "'")
}

/// Whether one of the cues occurs at the beginning of a word.
fn has(words: &str, cues: &[&str]) -> bool {
    cues.iter().any(|cue| {
        words.match_indices(cue).any(|(at, _)| {
            let before = words[..at].chars().next_back();
            !before.is_some_and(char::is_alphanumeric)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Statement> {
        in_assistant_text(text).into_iter().map(|(kind, _)| kind).collect()
    }

    #[test]
    fn prose_states_decisions_effects_and_next_steps() {
        let text = "I looked at both. We will use Postgres instead of SQLite because two writers are needed. \
                    The schema was migrated on staging, do not run it again. Next I will write the importer.";
        let found = in_assistant_text(text);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0].0, Statement::Decision);
        assert!(found[0].1.ends_with("two writers are needed."), "{found:?}");
        assert_eq!((found[1].0, found[2].0), (Statement::Effect, Statement::Next));
    }

    #[test]
    fn a_reason_stays_with_its_decision() {
        let found = in_assistant_text("Decision: tokens are opaque. Reason: they must be revocable.");
        assert_eq!(
            found,
            [(Statement::Decision, "Decision: tokens are opaque. Reason: they must be revocable.".into())]
        );
    }

    #[test]
    fn items_below_a_heading_state_what_it_says() {
        let text =
            "## Next steps\n- wire the cache\n- measure it\n\nSome prose here.\n\n**Decisions**\n1. ids are ULIDs\n";
        let found = in_assistant_text(text);
        let next = |words: &str| (Statement::Next, words.to_owned());
        assert_eq!(found, [next("wire the cache"), next("measure it"), (Statement::Decision, "ids are ULIDs".into())]);
    }

    #[test]
    fn code_and_small_talk_state_nothing() {
        assert_eq!(kinds("```\nnext decided because\n```\nSure, I can do that. The file has 30 lines."), []);
        assert_eq!(kinds("It is in src/v1.2/context.rs and the text is fine."), [], "inside a word there is no cue");
    }

    #[test]
    fn questions_are_kept() {
        assert_eq!(kinds("Should the old endpoint keep working?"), [Statement::Question]);
    }

    #[test]
    fn a_person_says_what_to_keep_to() {
        let text = "Please build it.\n- never touch legacy/\n- the API must stay compatible. Have fun.";
        assert_eq!(constraints(text), ["never touch legacy/", "the API must stay compatible."]);
    }

    #[test]
    fn a_person_says_that_the_context_was_lost() {
        assert!(says_compacted("you were compacted, go on"));
        assert!(says_compacted("Where were we?"));
        assert!(!says_compacted("make the compact view smaller"));
    }
}
