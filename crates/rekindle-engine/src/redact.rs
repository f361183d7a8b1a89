//! Removes secrets from text before it is stored or shown anywhere but in the raw spool.
//!
//! Two kinds are found: values that are known from the environment, in every spelling they are likely to take, and texts
//! that have the form of a credential. One automaton searches for both at once, so that a line without either costs a single
//! scan. What counts as text that leaves the spool is decided by the callers.

mod encode;
mod form;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde::{Deserialize, Serialize};

/// Shortest value that is searched for: shorter ones occur by chance, and removing them would garble every text.
pub const VALUE_MIN_BYTES: usize = 8;

/// Most spellings searched for: beyond this the automaton costs memory, and nobody has so many secrets.
const SPELLINGS_MAX: usize = 4_096;

/// Lines after which a private key that was never closed counts as over: the longest RSA keys in use have about 200.
const KEY_LINES_MAX: u16 = 256;

/// Finds and replaces secrets. Made once per run; holds the secrets themselves and never shows them.
#[derive(Clone)]
pub struct Redactor {
    automaton: AhoCorasick,
    /// What each pattern of the automaton stands for.
    patterns: Vec<Pattern>,
    secrets: usize,
}

/// What a pattern of the automaton stands for.
#[derive(Clone)]
enum Pattern {
    /// A spelling of a known value, and whether it is base64, whose last characters may belong to what follows.
    KnownSecret {
        name: String,
        is_base64: bool,
    },
    Form(form::Form),
}

/// State from line to line: whether a private key is open. Stored with the spool's offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// Lines of a private key seen so far; `None` means that no key is open.
    key_lines: Option<u16>,
}

impl Redactor {
    /// Takes the environment: searches for values whose names look secret, and for all known forms.
    pub fn new<N, V>(environment: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: AsRef<str>,
        V: AsRef<str>,
    {
        Self::with_secrets(environment, std::iter::empty::<(&str, &str)>())
    }

    /// The same with further values that are secret whatever they are called, such as agents' tokens.
    pub fn with_secrets<N, V, M, W>(
        environment: impl IntoIterator<Item = (N, V)>,
        secrets: impl IntoIterator<Item = (M, W)>,
    ) -> Self
    where
        N: AsRef<str>,
        V: AsRef<str>,
        M: AsRef<str>,
        W: AsRef<str>,
    {
        let mut known = KnownSecret::default();
        for (name, value) in secrets {
            known.add(name.as_ref(), value.as_ref());
        }
        for (name, value) in environment {
            if looks_secret(name.as_ref(), value.as_ref()) {
                known.add(name.as_ref(), value.as_ref());
            }
        }
        known.build()
    }

    /// How many values are searched for.
    pub fn secrets(&self) -> usize {
        self.secrets
    }

    /// The text with every secret replaced by `[redacted:NAME]`.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.automaton.is_match(text) {
            return Cow::Borrowed(text);
        }
        let found = self.find(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut clean = String::with_capacity(text.len());
        let mut from = 0;
        for (range, name) in found {
            clean.push_str(&text[from..range.start]);
            clean.push_str("[redacted:");
            clean.push_str(name);
            clean.push(']');
            from = range.end;
        }
        clean.push_str(&text[from..]);
        Cow::Owned(clean)
    }

    /// The same for the lines of one stream in order, so that a private key printed over many lines is taken out whole.
    #[must_use]
    pub fn redact_line<'a>(&self, lines: &mut Lines, line: &'a str) -> Cow<'a, str> {
        if let Some(seen) = lines.key_lines {
            let ends = form::ends_private_key(line);
            lines.key_lines = (!ends && seen < KEY_LINES_MAX).then_some(seen + 1);
            return Cow::Borrowed("[redacted:private-key]");
        }
        if form::leaves_private_key_open(line) {
            lines.key_lines = Some(1);
        }
        self.redact(line)
    }

    /// Where secrets are, in order and without overlap. Overlapping matches become one, named after the first.
    fn find(&self, text: &str) -> Vec<(Range<usize>, &str)> {
        let mut found: Vec<(Range<usize>, &str)> = Vec::new();
        // A form found once covers all later triggers inside it, which keeps hostile text from being scanned over and over.
        let mut form_end = 0;
        for hit in self.automaton.find_overlapping_iter(text) {
            match &self.patterns[hit.pattern().as_usize()] {
                Pattern::KnownSecret { name, is_base64 } => {
                    let end = if *is_base64 { encode::end_of_base64(text, hit.end()) } else { hit.end() };
                    found.push((hit.start()..end, name));
                }
                Pattern::Form(form) if hit.start() >= form_end => {
                    if let Some(range) = form.secret(text, hit.start(), hit.end()) {
                        form_end = range.end;
                        found.push((range, form.name()));
                    }
                }
                Pattern::Form(_) => {}
            }
        }
        merged(found)
    }
}

fn merged(mut found: Vec<(Range<usize>, &str)>) -> Vec<(Range<usize>, &str)> {
    found.sort_by(|(a, _), (b, _)| a.start.cmp(&b.start).then(b.end.cmp(&a.end)));
    let mut merged: Vec<(Range<usize>, &str)> = Vec::new();
    for (range, name) in found {
        match merged.last_mut() {
            Some((last, _)) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push((range, name)),
        }
    }
    merged
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("secrets", &self.secrets).finish_non_exhaustive()
    }
}

/// Spellings collected so far.
#[derive(Default)]
struct KnownSecret {
    texts: Vec<String>,
    patterns: Vec<Pattern>,
    secrets: usize,
}

impl KnownSecret {
    fn add(&mut self, name: &str, value: &str) {
        let value = value.trim();
        if value.len() < VALUE_MIN_BYTES {
            return;
        }
        self.secrets += 1;
        for (spelling, is_base64) in encode::spellings(value) {
            let short = spelling.len() < VALUE_MIN_BYTES || self.texts.len() >= SPELLINGS_MAX;
            if short || self.texts.contains(&spelling) {
                continue;
            }
            self.texts.push(spelling);
            self.patterns.push(Pattern::KnownSecret { name: name.to_owned(), is_base64 });
        }
    }

    fn build(mut self) -> Redactor {
        for (trigger, form) in form::TRIGGERS {
            self.texts.push((*trigger).to_owned());
            self.patterns.push(Pattern::Form(*form));
        }
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::Standard);
        // A DFA reads a byte in one step; with very many spellings its table would not be worth its memory.
        if self.texts.len() < 512 {
            builder.kind(Some(AhoCorasickKind::DFA));
        }
        let automaton =
            builder.build(&self.texts).expect("at most a few thousand patterns of bounded length fit an automaton");
        Redactor { automaton, patterns: self.patterns, secrets: self.secrets }
    }
}

/// Whether a variable holds a secret, judging by its name. A path or a number under such a name is not a secret.
fn looks_secret(name: &str, value: &str) -> bool {
    /// Words that mean a secret wherever they stand in a name.
    const ANYWHERE: [&str; 7] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY"];
    /// Words too short for that: they count only as a separate part, or `MONKEY` would be a secret.
    const PARTS: [&str; 5] = ["KEY", "KEYS", "PAT", "PASS", "JWT"];
    let upper = name.to_ascii_uppercase();
    let points_elsewhere = ["_FILE", "_PATH", "_DIR", "_SOCK", "_URL"].iter().any(|end| upper.ends_with(end));
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit()) && upper.ends_with("TOKENS");
    let named = ANYWHERE.iter().any(|part| upper.contains(part))
        || upper.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| PARTS.contains(&part));
    named && !points_elsewhere && !is_number
}

#[cfg(test)]
mod tests;
