//! The appearance: the tones in the sixteen colours that every terminal has, or in none; symbols, or ASCII characters in
//! their place. No meaning is expressed by colour alone.

use clap::ValueEnum;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use crate::ui::Tone;

/// Which colours to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThemeChoice {
    /// As the terminal says (OSC 11, else COLORFGBG), else dark
    #[default]
    Auto,
    /// For a dark background
    Dark,
    /// For a light background
    Light,
    /// Only the eight basic colours, without dim or bright ones
    #[value(name = "16")]
    Sixteen,
    /// No colours, only bold, dim and reversed text
    None,
}

/// The appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Theme {
    choice: ThemeChoice,
    /// ASCII characters in place of symbols and lines.
    pub ascii: bool,
}

impl Theme {
    /// A theme for a terminal. `colors` says whether colours are allowed; `background` is the value of COLORFGBG.
    pub(crate) fn new(choice: ThemeChoice, colors: bool, background: Option<&str>, ascii: bool) -> Self {
        let choice = match choice {
            _ if !colors => ThemeChoice::None,
            ThemeChoice::Auto if background.is_some_and(is_light) => ThemeChoice::Light,
            ThemeChoice::Auto => ThemeChoice::Dark,
            chosen => chosen,
        };
        Self { choice, ascii }
    }

    /// The same on a background that turned out to be light or dark.
    #[must_use]
    pub(crate) fn on(self, light: bool) -> Self {
        Self { choice: if light { ThemeChoice::Light } else { ThemeChoice::Dark }, ..self }
    }

    pub(crate) fn tone(self, tone: Tone) -> Style {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        match (self.choice, tone) {
            (_, Tone::Strong) | (ThemeChoice::None, Tone::Error | Tone::Warning) => bold,
            (ThemeChoice::None, Tone::Hint) => plain.add_modifier(Modifier::UNDERLINED),
            (ThemeChoice::None, Tone::Good | Tone::Active) => plain,
            (ThemeChoice::Sixteen, Tone::Dim) => plain,
            (_, Tone::Dim) => plain.add_modifier(Modifier::DIM),
            (ThemeChoice::Sixteen, Tone::Error) => plain.fg(Color::Red),
            (_, Tone::Error) => bold.fg(Color::Red),
            (_, Tone::Good) => plain.fg(Color::Green),
            // Yellow cannot be read on white.
            (ThemeChoice::Light, Tone::Warning) => bold.fg(Color::Magenta),
            (ThemeChoice::Sixteen, Tone::Warning) => plain.fg(Color::Yellow),
            (_, Tone::Warning) => bold.fg(Color::Yellow),
            // Nor can cyan; blue in turn is hard to see on black.
            (ThemeChoice::Light, Tone::Active | Tone::Hint) => plain.fg(Color::Blue),
            (_, Tone::Active | Tone::Hint) => plain.fg(Color::Cyan),
        }
    }

    /// The style of what is chosen.
    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The style of search hits.
    pub(crate) fn found(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }

    /// The symbol or its ASCII form.
    pub(crate) fn symbol(self, symbol: &'static str, ascii: &'static str) -> &'static str {
        if self.ascii { ascii } else { symbol }
    }

    /// Replaces everything but ASCII in a drawing, if that was asked for.
    pub(crate) fn finish(self, buffer: &mut Buffer) {
        if !self.ascii {
            return;
        }
        for cell in &mut buffer.content {
            if !cell.symbol().is_ascii() {
                let letter = cell.symbol().chars().next().map_or(' ', in_ascii);
                cell.set_char(letter);
            }
        }
    }
}

/// Whether COLORFGBG (`foreground;background`, by their numbers) names a light background.
fn is_light(colors: &str) -> bool {
    let background = colors.rsplit(';').next().and_then(|number| number.parse::<u8>().ok());
    background.is_some_and(|number| number == 7 || (9..=15).contains(&number))
}

/// The ASCII character for a symbol.
fn in_ascii(symbol: char) -> char {
    match symbol {
        '│' | '┃' | '║' | '‖' => '|',
        '─' | '━' | '–' | '—' => '-',
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '✔' => '+',
        '✖' | '×' => 'x',
        '▶' | '▸' | '→' => '>',
        '←' => '<',
        '▾' | '↓' => 'v',
        '↑' => '^',
        '·' | '░' => '.',
        '…' | '↻' => '~',
        '█' | '▌' => '#',
        '◌' => 'o',
        '⏎' => '/',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_says_whether_it_is_light() {
        let choice = |background| Theme::new(ThemeChoice::Auto, true, background, false).choice;
        assert_eq!(choice(Some("0;15")), ThemeChoice::Light);
        assert_eq!(choice(Some("0;default;7")), ThemeChoice::Light);
        assert_eq!(choice(Some("15;0")), ThemeChoice::Dark);
        assert_eq!(choice(Some("nonsense")), ThemeChoice::Dark);
        assert_eq!(choice(None), ThemeChoice::Dark);
        assert_eq!(Theme::new(ThemeChoice::Light, false, None, false).choice, ThemeChoice::None);
    }

    #[test]
    fn without_colours_there_are_none_and_nowhere_more_than_sixteen() {
        let tones = [Tone::Error, Tone::Warning, Tone::Hint, Tone::Good, Tone::Active, Tone::Dim, Tone::Strong];
        let choices = [ThemeChoice::Dark, ThemeChoice::Light, ThemeChoice::Sixteen, ThemeChoice::None];
        for (choice, tone) in choices.into_iter().flat_map(|choice| tones.map(|tone| (choice, tone))) {
            let style = Theme::new(choice, true, None, false).tone(tone);
            assert!(!matches!(style.fg, Some(Color::Rgb(..) | Color::Indexed(_))), "{choice:?} {tone:?}");
            assert!(choice != ThemeChoice::None || style.fg.is_none(), "{tone:?}");
            assert!(choice != ThemeChoice::Light || style.fg != Some(Color::Yellow), "{tone:?}");
        }
    }
}
