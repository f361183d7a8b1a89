//! One word for one thing: the last column of the glossary in CONTRIBUTING.md lists words that prose must not use any more.
//! Prose is a comment, a text with more than one word, or a page. Names in backquotes are quoted, not used.

use super::source::Source;
use super::{Finding, Repo, place};

/// Where the glossary is.
const GLOSSARY: &str = "CONTRIBUTING.md";
/// The most words a glossary may have: nobody learns more.
const WORDS_MAX: usize = 40;
/// The same letters with another meaning.
const OTHER_MEANINGS: &[&str] = &["look at work", "looks at work", "looked at work", "a sign of life"];
/// Pages that quote other people's words: the changelog, and the protocol as its author wrote it.
const QUOTING_PAGES: &[&str] = &["CHANGELOG.md", "docs/protocol.md"];
/// Shown with every finding.
const WHY: &str = "the glossary in CONTRIBUTING.md has another word for it";

pub(super) fn check(repo: &Repo, findings: &mut Vec<Finding>) {
    let Some(page) = repo.texts.get(GLOSSARY) else { return };
    let rows = rows(page);
    if rows.len() > WORDS_MAX {
        let what = format!("{} words, at most {WORDS_MAX}", rows.len());
        findings.push(Finding::new(GLOSSARY, 0, what, "drop or join a row"));
    }
    let banned: Vec<&str> = rows.into_iter().flatten().collect();
    for source in repo.rust.iter().filter(|source| place::is_product(&source.path)) {
        for (at, text) in prose(source) {
            report(&source.path, text, &banned, |offset| source.line(at + offset), findings);
        }
    }
    for (path, text) in &repo.texts {
        let is_page = path.ends_with(".md") && (!path.contains('/') || path.starts_with("docs/"));
        if is_page && path != GLOSSARY && !QUOTING_PAGES.contains(&path.as_str()) {
            let line = |offset: usize| text[..offset].matches('\n').count() + 1;
            report(path, text, &banned, line, findings);
        }
    }
}

/// The banned words of each row of the glossary.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let table = page.lines().skip_while(|line| *line != "| word | meaning | not |").skip(2);
    table
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let column = line.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
            column.split(',').map(str::trim).filter(|word| !word.is_empty()).collect()
        })
        .collect()
}

/// The text in a file that a person reads, with its offset.
fn prose(source: &Source) -> Vec<(usize, &str)> {
    let texts = source.comments().iter().chain(source.literals()).filter(|range| !source.is_test(range.start));
    let texts = texts.map(|range| (range.start, &source.text[range.clone()]));
    // One word alone is a key, a wire name or a command.
    texts.filter(|(_, text)| text.trim().contains(' ')).collect()
}

fn report(path: &str, text: &str, banned: &[&str], line: impl Fn(usize) -> usize, findings: &mut Vec<Finding>) {
    let text = without_quotes(text);
    for word in banned {
        for (at, _) in text.match_indices(word) {
            let whole =
                !text[..at].ends_with(is_part_of_a_word) && !text[at + word.len()..].starts_with(is_part_of_a_word);
            let other = OTHER_MEANINGS.iter().any(|phrase| {
                let within = phrase.find(word);
                within.is_some_and(|within| at >= within && text[at - within..].starts_with(phrase))
            });
            if whole && !other {
                findings.push(Finding::new(path, line(at), format!("the words \"{word}\""), WHY));
            }
        }
    }
}

fn is_part_of_a_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '\'')
}

/// The text with what is in backquotes blanked, byte for byte.
fn without_quotes(text: &str) -> String {
    let mut quoted = false;
    text.bytes()
        .map(|byte| {
            quoted = match byte {
                b'`' => !quoted,
                b'\n' => false,
                _ => quoted,
            };
            if quoted || !byte.is_ascii() { ' ' } else { char::from(byte) }
        })
        .collect()
}
