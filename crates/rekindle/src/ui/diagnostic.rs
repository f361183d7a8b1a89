//! An error in a file, shown with an excerpt of the file around it.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::{Paint, Tone, harmless};
use crate::diagnostic::{Diagnostic, SourceSpan, floor_boundary};

/// Longest line of an excerpt: a longer one would bury its own marker.
const EXCERPT_LINE_MAX: usize = 2_000;

impl Diagnostic {
    /// The message, the excerpt with the place marked, and the hint.
    pub(crate) fn render(&self, paint: Paint, width: usize) -> String {
        let Some(place) = &self.place else {
            return self.render_plain(paint);
        };
        let renderer = if paint.is_on() { Renderer::styled() } else { Renderer::plain() };
        let level = if self.warning { Level::WARNING } else { Level::ERROR };
        let (excerpt, first_line, span) = place.excerpt();
        let snippet = Snippet::source(excerpt)
            .line_start(first_line)
            .path(place.path.as_str())
            .annotation(AnnotationKind::Primary.span(span));
        let mut group = level.primary_title(harmless(&self.message)).element(snippet);
        if let Some(hint) = &self.hint {
            group = group.element(Level::HELP.with_name("hint").message(harmless(hint)));
        }
        renderer.term_width(width).render(&[group])
    }

    fn render_plain(&self, paint: Paint) -> String {
        let (tone, label) = if self.warning { (Tone::Warning, "warning:") } else { (Tone::Error, "error:") };
        let mut text = format!("{} {}", paint.tone(tone, label), harmless(&self.message));
        if let Some(hint) = &self.hint {
            let label = paint.tone(Tone::Hint, "hint:");
            text.push_str(&format!("\n{label} {}", harmless(hint)));
        }
        text
    }
}

impl SourceSpan {
    /// The line where the place starts, truncated and made harmless, with its number and the place in it.
    fn excerpt(&self) -> (String, usize, Range<usize>) {
        let text: &str = &self.source;
        let at = floor_boundary(text, self.span.start);
        let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
        let end = floor_boundary(text, self.span.end.clamp(at, line_end));
        let cut = floor_boundary(text, line_end.min(line_start + EXCERPT_LINE_MAX).max(at));
        let before = printable(&text[line_start..at]);
        let marked = printable(&text[at..end.min(cut)]);
        let after = printable(&text[end.min(cut)..cut]);
        let span = before.len()..before.len() + marked.len();
        (format!("{before}{marked}{after}"), self.line(), span)
    }
}

/// A part of a line in which every character takes its place and none steers the terminal.
fn printable(text: &str) -> String {
    let text = text.trim_end_matches('\r').trim_start_matches('\u{feff}');
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(source: &str, span: Range<usize>) -> Diagnostic {
        Diagnostic {
            warning: false,
            message: "unknown key `colour`".into(),
            hint: Some("did you mean `color`?".into()),
            place: Some(SourceSpan { path: "a.toml".into(), source: source.into(), span }),
        }
    }

    #[test]
    fn shows_the_line_and_marks_the_place() {
        let shown = diagnostic("[run]\ncolour = 1\n", 6..12).render(Paint::OFF, 100);
        insta::assert_snapshot!(shown, @r"
        error: unknown key `colour`
         --> a.toml:2:1
          |
        2 | colour = 1
          | ^^^^^^
          |
          = hint: did you mean `color`?
        ");
    }

    #[test]
    fn no_place_in_any_text_panics() {
        for source in ["", "\n", "ä", "a\r\nb", "\u{feff}x", "\x1b[31mred"] {
            for start in 0..=source.len() + 1 {
                for end in start..=source.len() + 2 {
                    let shown = diagnostic(source, start..end).render(Paint::OFF, 80);
                    assert!(!shown.contains('\x1b'), "{source:?}");
                }
            }
        }
    }
}
