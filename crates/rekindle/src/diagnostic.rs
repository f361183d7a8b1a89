//! An error in a file and its place. `ui` shows it.

use std::ops::Range;
use std::sync::Arc;

/// One error or warning in a file.
#[derive(Clone, Debug)]
pub(crate) struct Diagnostic {
    pub warning: bool,
    /// What is wrong: one lower-case line.
    pub message: String,
    pub hint: Option<String>,
    /// Its place, if it is in a file.
    pub place: Option<SourceSpan>,
}

#[derive(Clone, Debug)]
pub(crate) struct SourceSpan {
    /// The file, as the caller named it.
    pub path: String,
    /// Its whole text.
    pub source: Arc<str>,
    /// The place, in bytes of the text.
    pub span: Range<usize>,
}

impl Diagnostic {
    /// An error that has no place in a file.
    pub(crate) fn error(message: impl Into<String>, hint: Option<String>) -> Self {
        Self { warning: false, message: message.into(), hint, place: None }
    }

    /// Whether it keeps the file from being used.
    pub(crate) fn is_error(&self) -> bool {
        !self.warning
    }
}

impl SourceSpan {
    /// The line of the place, counted from 1.
    pub(crate) fn line(&self) -> usize {
        let at = floor_boundary(&self.source, self.span.start);
        self.source[..at].matches('\n').count() + 1
    }
}

/// The nearest place at or before `at` where a character begins.
pub(crate) fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
