//! What a sentence is made of, whatever its language: numbers, names as in programs (paths, flags, identifiers, versions,
//! addresses), quoted text, words. Scripts without blanks between words are split where the script changes.

use std::collections::BTreeMap;

/// What a term is, the least informative first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Word,
    Quoted,
    /// An identifier, a path, a flag, a version, an address, an abbreviation in capitals.
    Name,
    Number,
}

/// Terms of one text that are inspected: a sentence has a few dozen.
const TERMS_MAX: usize = 200;

/// Longest quotation that is one term: longer ones are a text of their own.
const QUOTED_MAX_CHARS: usize = 60;

/// Marks that hold a name together.
const JOINTS: [char; 14] = ['_', '-', '.', '/', ':', '@', '#', '=', '+', '~', '%', '$', '\\', ','];

/// Opening and closing quotation marks.
const QUOTES: [(char, char); 8] =
    [('`', '`'), ('"', '"'), ('„', '“'), ('„', '”'), ('“', '”'), ('«', '»'), ('「', '」'), ('『', '』')];

/// The distinct terms of a text, in lower case.
pub fn terms(text: &str) -> BTreeMap<String, Kind> {
    let mut found = BTreeMap::new();
    quoted(text, &mut found);
    let mut token = String::new();
    let mut script = Script::Other;
    for c in text.chars().chain(std::iter::once(' ')) {
        let next = Script::of(c);
        let joins = next == Script::Spaced
            || (!token.is_empty() || matches!(c, '-' | '/' | '.' | '~' | '$' | '#')) && JOINTS.contains(&c);
        let goes_on = match script {
            Script::Spaced => joins,
            Script::Other => token.is_empty(),
            Script::Han | Script::Katakana | Script::Hiragana => next == script,
        };
        if !goes_on || next == Script::Other && !joins {
            keep(&token, script, &mut found);
            token.clear();
        }
        if token.is_empty() {
            script = if joins { Script::Spaced } else { next };
        }
        if joins || !matches!(next, Script::Spaced | Script::Other) {
            token.push(c);
        }
        if found.len() >= TERMS_MAX {
            break;
        }
    }
    found
}

/// Scripts by how they are split into words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    /// Words are separated by blanks.
    Spaced,
    /// Ideographs.
    Han,
    /// Names and loan words of Japanese.
    Katakana,
    /// Japanese endings and small words.
    Hiragana,
    /// No letter and no digit.
    Other,
}

impl Script {
    fn of(c: char) -> Self {
        match c {
            '\u{3041}'..='\u{309f}' => Self::Hiragana,
            '\u{30a0}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9f}' => Self::Katakana,
            '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '々'
            | '\u{20000}'..='\u{2fa1f}' => Self::Han,
            c if c.is_alphanumeric() => Self::Spaced,
            _ => Self::Other,
        }
    }
}

fn keep(token: &str, script: Script, found: &mut BTreeMap<String, Kind>) {
    let kind = match script {
        Script::Spaced => {
            let bare = token.trim_end_matches(JOINTS).trim_start_matches([':', ',', '=', '+', '%', '\\', '@']);
            let Some(kind) = kind(bare) else { return };
            add(bare.to_lowercase(), kind, found);
            return;
        }
        // One character says little, and endings say nothing.
        Script::Han | Script::Katakana if token.chars().nth(1).is_some() => Kind::Word,
        Script::Han | Script::Katakana | Script::Hiragana | Script::Other => return,
    };
    add(token.to_owned(), kind, found);
}

fn add(term: String, kind: Kind, found: &mut BTreeMap<String, Kind>) {
    let known = found.entry(term).or_insert(kind);
    *known = (*known).max(kind);
}

/// What a token between blanks is.
fn kind(token: &str) -> Option<Kind> {
    if !token.chars().any(char::is_alphanumeric) {
        return None;
    }
    let digits = token.chars().filter(|c| c.is_numeric()).count();
    let letters = token.chars().filter(|c| c.is_alphabetic()).count();
    if digits > 0 && letters <= 2 {
        return Some(Kind::Number);
    }
    let flag = token.starts_with('-') && letters > 0;
    let inner = |c: char| matches!(c, '_' | '/' | '.' | ':' | '@' | '=' | '\\' | '#' | '$');
    let joined = token.char_indices().any(|(at, c)| inner(c) && (at > 0 || token.len() > 2));
    let mut before = 'A';
    let camel = token.chars().any(|c| {
        let hump = before.is_lowercase() && c.is_uppercase();
        before = c;
        hump
    });
    let capitals = letters >= 2 && !token.chars().any(char::is_lowercase) && token.chars().any(char::is_uppercase);
    Some(if flag || joined || camel || capitals || digits > 0 { Kind::Name } else { Kind::Word })
}

/// The text between quotation marks, as one term each; between backticks it is a name.
fn quoted(text: &str, found: &mut BTreeMap<String, Kind>) {
    for (open, close) in QUOTES {
        let mut rest = text;
        while let Some((_, inside)) = rest.split_once(open) {
            let Some((inner, after)) = inside.split_once(close) else { break };
            rest = after;
            let fits = !inner.trim().is_empty() && inner.chars().count() <= QUOTED_MAX_CHARS;
            if fits && found.len() < TERMS_MAX {
                add(inner.trim().to_lowercase(), if open == '`' { Kind::Name } else { Kind::Quoted }, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, terms};

    #[test]
    fn names_and_numbers_are_known_by_their_form() {
        let found = terms(
            "Use --erase-timeout 12 in src/lib.rs, not sealUntil or MAX_SIZE; it took 31,2 s (v2.1), \"as said\".",
        );
        let name = |term: &str| found.get(term).copied();
        for term in ["--erase-timeout", "src/lib.rs", "sealuntil", "max_size"] {
            assert_eq!(name(term), Some(Kind::Name), "{term}: {found:?}");
        }
        for term in ["12", "31,2", "v2.1"] {
            assert_eq!(name(term), Some(Kind::Number), "{term}: {found:?}");
        }
        assert_eq!((name("as said"), name("took")), (Some(Kind::Quoted), Some(Kind::Word)));
    }

    #[test]
    fn a_script_without_blanks_is_cut_where_it_changes() {
        let found = terms("本番のポートは8443番で、キャッシュを`flush_all`で消す");
        for (term, kind) in [
            ("本番", Kind::Word),
            ("ポート", Kind::Word),
            ("8443", Kind::Number),
            ("キャッシュ", Kind::Word),
            ("flush_all", Kind::Name),
        ] {
            assert_eq!(found.get(term), Some(&kind), "{term}: {found:?}");
        }
    }

    #[test]
    fn terms_are_bounded() {
        let many: String = (0..5_000).map(|n| format!("w{n} ")).collect();
        assert!(terms(&many).len() <= 200);
        assert!(terms("—…，。 \u{1f600} --").is_empty());
    }
}
