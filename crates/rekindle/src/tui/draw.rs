//! Draws the screen from its state, and changes nothing.

mod bars;
mod boxes;
mod detail;
mod rows;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};

use super::app::{App, Focus};
use super::theme::Theme;
use crate::ui::Tone;

pub(super) fn draw(app: &App, frame: &mut Frame<'_>) {
    let screen = frame.area();
    let areas = app.areas_on((screen.width, screen.height));
    bars::header(app, frame, areas.header);
    if app.picture.is_some() {
        rows::draw(app, frame, areas.tree);
        detail::draw(app, frame, &areas);
    } else {
        let body = if areas.tree.width > 0 { areas.tree.union(areas.detail) } else { areas.detail };
        nothing(app, frame, body);
    }
    bars::footer(app, frame, &areas);
    boxes::draw(app, frame);
    app.theme.finish(frame.buffer_mut());
}

/// What is shown before there is a run.
fn nothing(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let words = match &app.wanted {
        _ if !app.looked => vec!["reading…"],
        Some(_) => vec!["this run does not exist: choose another with o"],
        None => vec![
            "there is no run here yet",
            "",
            "start one in another terminal: rekindle run plan.md",
            "it appears here by itself",
        ],
    };
    let block = frame_of(app.theme, true);
    let inside = block.inner(area);
    frame.render_widget(block, area);
    frame.render_widget(Paragraph::new(words.into_iter().map(Line::from).collect::<Vec<_>>()), inside);
}

/// A border, marked where keys go.
fn frame_of(theme: Theme, focused: bool) -> Block<'static> {
    let style = if focused { theme.tone(Tone::Active) } else { theme.tone(Tone::Dim) };
    Block::bordered().border_style(style)
}

/// Whether keys go to a half of the screen.
fn has_keys(app: &App, focus: Focus) -> bool {
    app.focus == focus && app.popup.is_none()
}

/// Puts a line into a place, truncated at its end.
fn put(frame: &mut Frame<'_>, area: Rect, row: u16, line: Line<'_>, style: Style) {
    if row < area.height && area.width > 0 {
        let place = Rect { y: area.y + row, height: 1, ..area };
        frame.buffer_mut().set_style(place, style);
        frame.render_widget(line, place);
        if style.add_modifier.contains(Modifier::REVERSED) {
            one_ground(frame.buffer_mut(), place, style);
        }
    }
}

/// The chosen row has one background from edge to edge: reversed, every colour of its words would change.
fn one_ground(buffer: &mut Buffer, place: Rect, style: Style) {
    for position in place.positions() {
        if let Some(cell) = buffer.cell_mut(position) {
            cell.set_style(Style::reset().patch(style));
        }
    }
}
