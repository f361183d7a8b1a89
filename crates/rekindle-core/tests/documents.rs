//! Documents as people write them, read as plans: a kept corpus asserted task by task, and a property over generated ones.

#[path = "documents/corpus.rs"]
mod corpus;
#[path = "documents/styles.rs"]
mod styles;

use rekindle_core::import::{Format, ImportError, Imported, Source, SourceFile, convert};

/// Reads a document.
fn import(text: &str) -> Result<Imported, ImportError> {
    let files = vec![SourceFile { path: "notes.md".to_owned(), text: text.to_owned() }];
    convert(Format::Markdown, &Source { title: "notes".to_owned(), files, ..Source::default() })
}
