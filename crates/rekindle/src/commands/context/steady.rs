//! A text that is part of every request stays the same, byte for byte, until the context is compacted again: later events
//! are in the conversation anyway, and a provider caches a conversation only up to the first difference.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use rekindle_engine::agents::{Compaction, PROMPTED_FILE};
use rekindle_shim::atomic;

use super::{OWN_DIR, Text, read_bounded};

/// The file in the adapter's directory that holds the last text, after a line that identifies its compaction.
const MEMORY: &str = "told.md";

/// How many messages the last request had.
const MESSAGES: &str = "messages";

/// The text given since this compaction; if there is none, a new one, which is stored. The first compaction that a resumed
/// session shows may be one that its prompt has already made up for: then there is nothing to say.
pub(super) fn of(bundle: &Path, since: &Compaction, make: impl FnOnce() -> Option<Text>) -> Option<String> {
    let dir = bundle.join(OWN_DIR);
    let before = read_bounded(&dir.join(MESSAGES)).and_then(|count| count.trim().parse().ok()).unwrap_or(0);
    if since.messages != before {
        // Losing the count only hides that the same summary was written twice.
        let _told_as_before = atomic::save(&dir, MESSAGES, since.messages.to_string().as_bytes());
    }
    let mark = mark(&since.summary);
    let told = read_bounded(&dir.join(MEMORY));
    let known = told.as_deref().and_then(|told| told.split_once('\n'));
    if let Some((_, text)) = known.filter(|(known, _)| *known == mark && since.messages >= before) {
        return Some(text.to_owned()).filter(|text| !text.is_empty());
    }
    // Failing to store it costs tokens, nothing else.
    let keep = |text: &str| {
        let _dearer = atomic::save(&dir, MEMORY, format!("{mark}\n{text}").as_bytes());
    };
    if told.is_none() && dir.join(PROMPTED_FILE).exists() {
        keep("");
        return None;
    }
    match make()? {
        Text::Asked(text) => {
            keep(&text);
            Some(text)
        }
        // The coordinator may be back for the next request.
        Text::OfLaunch(text) => Some(text),
    }
}

fn mark(summary: &str) -> String {
    let mut hasher = DefaultHasher::new();
    summary.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use rekindle_engine::agents::Compaction;

    use super::super::Text;
    use super::of;

    #[test]
    fn a_text_is_told_as_it_was_until_the_next_compaction() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("agent")).expect("made");
        let asked = |text: &str| Some(Text::Asked(text.to_owned()));
        let since = |summary: &str, messages| Compaction { summary: summary.to_owned(), messages };
        let told = |summary: &str, text| of(dir.path(), &since(summary, 0), || text);
        let launched = Some(Text::OfLaunch("as at the launch".to_owned()));
        assert_eq!(told("first", launched).as_deref(), Some("as at the launch"));
        assert_eq!(told("first", asked("one\ntwo")).as_deref(), Some("one\ntwo"), "not kept: nobody was there to ask");
        assert_eq!(told("first", asked("three")).as_deref(), Some("one\ntwo"));
        assert_eq!(told("second", asked("three")).as_deref(), Some("three"));
        assert_eq!(told("third", None), None);
        let counted = |messages, text| of(dir.path(), &since("same", messages), || asked(text));
        assert_eq!(counted(5, "seven").as_deref(), Some("seven"));
        assert_eq!(counted(40, "eight").as_deref(), Some("seven"), "the conversation grew");
        assert_eq!(counted(12, "nine").as_deref(), Some("nine"), "it was compacted again, into the same summary");
        assert_eq!(counted(14, "ten").as_deref(), Some("nine"));
        std::fs::remove_file(dir.path().join("agent").join(super::MEMORY)).expect("removed");
        std::fs::write(dir.path().join("agent").join(super::PROMPTED_FILE), "").expect("written");
        assert_eq!(told("third", asked("five")), None, "the prompt of the resumed session said it");
        assert_eq!(told("third", asked("five")), None);
        assert_eq!(told("fourth", asked("six")).as_deref(), Some("six"));
        assert_eq!(of(std::path::Path::new("/nowhere"), &since("first", 0), || asked("four")).as_deref(), Some("four"));
    }
}
