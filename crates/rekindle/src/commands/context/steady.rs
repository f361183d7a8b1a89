//! A text that is part of every request stays the same, letter for letter, until the context is compacted again: what happened
//! since then stands in the conversation, and a provider keeps what it has read of one only up to the first difference.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use rekindle_shim::atomic;

use super::{OWN_DIR, Text, read_bounded};

/// Where the last text is remembered, in the adapter's directory, behind a line that says for which compaction.
const MEMORY: &str = "told.md";

/// The text that was told since this compaction; where there is none, the one that is made now, which is remembered.
pub fn of(bundle: &Path, compaction: &str, make: impl FnOnce() -> Option<Text>) -> Option<String> {
    let mut hasher = DefaultHasher::new();
    compaction.hash(&mut hasher);
    let mark = format!("{:016x}", hasher.finish());
    let dir = bundle.join(OWN_DIR);
    let told = read_bounded(&dir.join(MEMORY));
    if let Some((_, text)) = told.as_deref().and_then(|told| told.split_once('\n')).filter(|(known, _)| *known == mark)
    {
        return Some(text.to_owned());
    }
    match make()? {
        Text::Asked(text) => {
            // One that cannot be kept costs tokens, nothing else.
            let _dearer = atomic::save(&dir, MEMORY, format!("{mark}\n{text}").as_bytes());
            Some(text)
        }
        // The coordinator may be back for the next request.
        Text::OfLaunch(text) => Some(text),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Text;
    use super::of;

    #[test]
    fn a_text_is_told_as_it_was_until_the_next_compaction() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("agent")).expect("made");
        let asked = |text: &str| Some(Text::Asked(text.to_owned()));
        let told = |compaction: &str, text| of(dir.path(), compaction, || text);
        let launched = Some(Text::OfLaunch("as at the launch".to_owned()));
        assert_eq!(told("first", launched).as_deref(), Some("as at the launch"));
        assert_eq!(told("first", asked("one\ntwo")).as_deref(), Some("one\ntwo"), "not kept: nobody was there to ask");
        assert_eq!(told("first", asked("three")).as_deref(), Some("one\ntwo"));
        assert_eq!(told("second", asked("three")).as_deref(), Some("three"));
        assert_eq!(told("third", None), None);
        assert_eq!(of(std::path::Path::new("/nowhere"), "first", || asked("four")).as_deref(), Some("four"));
    }
}
