//! What a log search means: a line matches when it contains every word of the query, ignoring the case of ASCII letters.
//! This file owns the meaning and the terms to look up in an index; the index itself belongs to the engine, and whatever it
//! proposes is checked here again, so that indexed and not yet indexed lines give the same results.

/// Words looked for at once; the rest of an absurdly long query is ignored rather than refused.
const MAX_WORDS: usize = 32;

/// Letters of an indexed term: the length of the trigram tokenizer's tokens.
const TERM_LETTERS: usize = 3;

/// A parsed query. The text comes from a user: only white space has a special meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    words: Vec<String>,
}

impl Query {
    pub fn new(text: &str) -> Query {
        Query { words: text.split_whitespace().take(MAX_WORDS).map(str::to_ascii_lowercase).collect() }
    }

    /// Whether the query has no words; then nothing matches.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The words that are looked for, in lower case.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Whether a line's text contains every word.
    pub fn matches(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        !self.words.is_empty() && self.words.iter().all(|word| text.contains(word.as_str()))
    }

    /// An FTS5 expression that every matching line satisfies, or `None` when the words are too short for the index. Each
    /// term is a quoted string of three letters without NUL, so no text can be a syntax error.
    pub fn index_expression(&self) -> Option<String> {
        let mut terms: Vec<String> = Vec::new();
        for word in &self.words {
            let letters: Vec<char> = word.chars().collect();
            for window in letters.windows(TERM_LETTERS) {
                let term: String = window.iter().collect();
                if !term.contains('\0') && !terms.contains(&term) && terms.len() < MAX_WORDS {
                    terms.push(term);
                }
            }
        }
        let quoted: Vec<String> = terms.iter().map(|term| format!("\"{}\"", term.replace('"', "\"\""))).collect();
        (!quoted.is_empty()).then(|| quoted.join(" AND "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_must_occur_in_any_case() {
        let query = Query::new("  Error src/MAIN.rs ");
        assert!(query.matches("SRC/main.rs: error E0308"));
        assert!(!query.matches("src/main.rs: warning"));
        assert!(!Query::new(" \t ").matches("anything"));
    }

    #[test]
    fn an_expression_is_made_of_quoted_terms_only() {
        assert_eq!(Query::new("abcd").index_expression().as_deref(), Some("\"abc\" AND \"bcd\""));
        assert_eq!(Query::new("a\"b*").index_expression().as_deref(), Some("\"a\"\"b\" AND \"\"\"b*\""));
        assert_eq!(Query::new("ab OR x").index_expression(), None, "all words are too short to be indexed");
        assert_eq!(Query::new("ab\0cd").index_expression(), None, "a NUL would end the expression early");
    }
}
