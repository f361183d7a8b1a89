//! The screen, driven as a person drives it and looked at as a person sees it.

mod behaviour;
mod counts;
mod fuzz;
mod made;
mod people;
mod screens;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::{App, Effect};
use super::draw::draw;

/// Draws a screen.
fn buffer(app: &App) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(app.size.0, app.size.1)).expect("a terminal");
    terminal.draw(|frame| draw(app, frame)).expect("drawn");
    terminal.backend().buffer().clone()
}

/// A screen as text. Times of day depend on where the test runs and are masked.
fn text(app: &App) -> String {
    let buffer = buffer(app);
    let mut lines = Vec::new();
    for y in 0..buffer.area.height {
        let mut line = String::new();
        let mut x = 0;
        while x < buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += u16::try_from(super::wide::width(symbol).max(1)).expect("a narrow cell");
        }
        lines.push(masked(line.trim_end()));
    }
    lines.join("\n")
}

fn masked(line: &str) -> String {
    let letters: Vec<char> = line.chars().collect();
    let mut masked = letters.clone();
    for (at, window) in letters.windows(8).enumerate() {
        let is_time = window.iter().enumerate().all(|(place, c)| match place {
            2 | 5 => *c == ':',
            _ => c.is_ascii_digit(),
        });
        if is_time {
            masked[at..at + 8].copy_from_slice(&['h', 'h', ':', 'm', 'm', ':', 's', 's']);
        }
    }
    masked.into_iter().collect()
}

/// Presses keys by their names: letters for themselves, and `Enter`, `Esc`, `Tab`, `Up`, `Down`, `PgUp`, `PgDn`.
fn press(app: &mut App, keys: &[&str]) -> Vec<Effect> {
    let mut effects = Vec::new();
    for key in keys {
        let code = match *key {
            "Enter" => KeyCode::Enter,
            "Esc" => KeyCode::Esc,
            "Tab" => KeyCode::Tab,
            "Up" => KeyCode::Up,
            "Down" => KeyCode::Down,
            "Right" => KeyCode::Right,
            "PgUp" => KeyCode::PageUp,
            "PgDn" => KeyCode::PageDown,
            letter => KeyCode::Char(letter.chars().next().expect("a letter")),
        };
        effects.extend(app.key(KeyEvent::new(code, KeyModifiers::NONE)));
    }
    effects
}

/// Types a text.
fn write(app: &mut App, text: &str) {
    for c in text.chars() {
        app.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
    }
}
