//! A text that is part of every request stays the same, letter for letter, until it says something else: a provider keeps what it
//! has read of a conversation only up to the first difference, and reads the rest at full price.

use std::path::Path;

use rekindle_shim::atomic;

use super::{OWN_DIR, read_bounded};

/// Where the last text is remembered, in the adapter's directory.
const MEMORY: &str = "told.md";

/// Stands before the mark that no two texts share, and behind it.
const MARK: (&str, &str) = ("(notice ", ")");

/// The text that was told last where it says the same, else this one, which is remembered.
pub fn of(bundle: &Path, text: String) -> String {
    let dir = bundle.join(OWN_DIR);
    match read_bounded(&dir.join(MEMORY)) {
        Some(told) if without_mark(&told) == without_mark(&text) => told,
        _ => {
            // One that cannot be kept costs tokens, nothing else.
            let _dearer = atomic::save(&dir, MEMORY, text.as_bytes());
            text
        }
    }
}

fn without_mark(text: &str) -> String {
    let mark = text.split_once(MARK.0).and_then(|(_, rest)| rest.split_once(MARK.1)).map(|(mark, _)| mark);
    match mark.filter(|mark| !mark.is_empty()) {
        Some(mark) => text.replace(mark, ""),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn a_text_is_told_again_as_it_was_until_it_says_something_else() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("agent")).expect("made");
        let text = |mark: &str, task: &str| format!("# Here (notice {mark})\n<{mark}>{task}</{mark}>\n");
        assert_eq!(of(dir.path(), text("a1", "T1")), text("a1", "T1"));
        assert_eq!(of(dir.path(), text("b2", "T1")), text("a1", "T1"));
        assert_eq!(of(dir.path(), text("c3", "T2")), text("c3", "T2"));
        assert_eq!(of(dir.path(), text("d4", "T2")), text("c3", "T2"));
        assert_eq!(of(std::path::Path::new("/nowhere"), text("e5", "T2")), text("e5", "T2"));
    }
}
