//! A recording's meaning as text for a snapshot: one line per activity, after the line of the stream that it came from.

use std::fmt::Write;

use rekindle_engine::agents::LineSource;

use super::recordings::Recording;

/// Longest line of a snapshot; what is cut has its length at its end.
const SHOWN_CHARS: usize = 260;

/// Everything that a recording means.
pub fn snapshot(recording: &Recording) -> String {
    let mut reader = recording.reader();
    let mut text = String::new();
    let mut counts = [0; 3];
    for step in recording.steps() {
        let (place, name) = match step.source {
            LineSource::Out => (0, "out"),
            LineSource::Err => (1, "err"),
            LineSource::Transcript => (2, "transcript"),
        };
        counts[place] += 1;
        for activity in reader.line(step.source, &step.line, step.whole) {
            let shown = brief(&format!("{activity:?}"));
            let _ = writeln!(text, "{name} {}: {shown}", counts[place]);
        }
    }
    if let Some(code) = recording.exit {
        for activity in reader.end(code) {
            let _ = writeln!(text, "end: {}", brief(&format!("{activity:?}")));
        }
    }
    if text.is_empty() { "nothing\n".to_owned() } else { text }
}

fn brief(text: &str) -> String {
    let count = text.chars().count();
    if count <= SHOWN_CHARS {
        return text.to_owned();
    }
    let head: String = text.chars().take(SHOWN_CHARS).collect();
    format!("{head}… ({count} chars)")
}
