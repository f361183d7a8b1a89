//! The tree's rows: what each shows at a width. Columns go by what matters least.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::super::app::{App, Focus};
use super::super::theme::Theme;
use super::super::tree::{Node, Row};
use super::super::wide;
use super::{frame_of, has_keys, put};
use crate::ui::{Tone, dollars, elapsed, one_line, short_count};

/// Columns on the right from the one that matters most: its width, and from which width of the tree on it is there.
const WORD: (usize, usize) = (12, 24);
const TIME: (usize, usize) = (6, 32);
const CONTEXT: (usize, usize) = (4, 42);
const COST: (usize, usize) = (6, 50);
const TOKENS: (usize, usize) = (6, 58);
/// From this width on the context is drawn as a bar too.
const GAUGE_FROM: usize = 76;
/// Cells of that bar.
const GAUGE: usize = 5;
/// Least width of a note that is worth showing.
const NOTE_MIN: usize = 8;

/// Draws the tree.
pub(super) fn draw(app: &App, frame: &mut Frame<'_>, area: Rect) {
    if area.width == 0 || area.height == 0 {
        return;
    }
    let filter = app.tree.filter.text();
    let title = if filter.is_empty() { " Tasks ".to_owned() } else { format!(" Tasks /{} ", one_line(filter)) };
    let place = format!(" {}/{} ", (app.tree.at + 1).min(app.tree.rows.len()), app.tree.rows.len());
    let focused = has_keys(app, Focus::Tree);
    let block = frame_of(app.theme, focused).title(title).title_bottom(Line::from(place).right_aligned());
    let inside = block.inner(area);
    frame.render_widget(block, area);
    if app.tree.rows.is_empty() {
        let words = if filter.is_empty() { "no tasks" } else { "nothing fits the filter; Esc drops it" };
        put(frame, inside, 0, Line::styled(words, app.theme.tone(Tone::Dim)), Style::new());
    }
    let rows = app.tree.rows.iter().enumerate().skip(app.tree.top).take(usize::from(inside.height));
    for (line, (at, row)) in (0..).zip(rows) {
        let style = match at == app.tree.at {
            true if app.focus == Focus::Tree => app.theme.chosen(),
            true => Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            false => Style::new(),
        };
        put(frame, inside, line, row_line(app.theme, row, usize::from(inside.width)), style);
    }
}

fn row_line(theme: Theme, row: &Row, width: usize) -> Line<'static> {
    let columns = columns(theme, row, width);
    let taken: usize = columns.iter().map(|(text, _)| wide::width(text) + 1).sum();
    let fold = match row.open {
        Some(true) => theme.symbol("▾", "v"),
        Some(false) => theme.symbol("▸", ">"),
        None => " ",
    };
    let lead = format!("{}{fold} ", " ".repeat(row.depth.saturating_sub(1) * 2));
    let symbol =
        if row.symbol.trim().is_empty() { String::new() } else { format!("{} ", theme.symbol(row.symbol, row.ascii)) };
    let room = width.saturating_sub(taken + wide::width(&lead) + wide::width(&symbol));
    let mut spans = vec![Span::raw(lead), Span::styled(symbol, theme.tone(row.tone))];
    let label = wide::cut(&row.label, room);
    let left = room - wide::width(&label);
    let label_style = match row.node {
        Node::Needs | Node::Wave(_) => theme.tone(Tone::Strong),
        Node::Call(..) => theme.tone(Tone::Dim),
        _ => Style::new(),
    };
    spans.push(Span::styled(label, label_style));
    if left > NOTE_MIN && !row.note.is_empty() {
        spans.push(Span::styled(wide::fill(&format!("  {}", row.note), left), theme.tone(Tone::Dim)));
    } else {
        spans.push(Span::raw(" ".repeat(left)));
    }
    for (text, style) in columns {
        spans.push(Span::raw(" "));
        spans.push(Span::styled(text, style));
    }
    Line::from(spans)
}

fn columns(theme: Theme, row: &Row, width: usize) -> Vec<(String, Style)> {
    let has = |column: (usize, usize)| width >= column.1;
    let dim = theme.tone(Tone::Dim);
    let mut columns = Vec::new();
    if has(WORD) {
        columns.push((wide::fill(&row.word, WORD.0), theme.tone(row.tone)));
    }
    if has(CONTEXT) {
        columns.push(context(theme, row.context, width));
    }
    if has(TOKENS) {
        let tokens = if row.spent.tokens > 0 { short_count(row.spent.tokens) } else { String::new() };
        columns.push((wide::right(&tokens, TOKENS.0), dim));
    }
    if has(COST) {
        columns.push((wide::right(&row.spent.cost_usd.map(dollars).unwrap_or_default(), COST.0), dim));
    }
    if has(TIME) {
        columns.push((wide::right(&row.took.map(elapsed).unwrap_or_default(), TIME.0), dim));
    }
    columns
}

/// How full a context is: a number, and where there is room a bar.
fn context(theme: Theme, full: Option<u8>, width: usize) -> (String, Style) {
    let bar_width = if width >= GAUGE_FROM { GAUGE + 1 } else { 0 };
    let Some(percent) = full else { return (" ".repeat(CONTEXT.0 + bar_width), Style::new()) };
    let tone = match percent {
        0..=69 => Tone::Good,
        70..=84 => Tone::Warning,
        _ => Tone::Error,
    };
    let mut text = wide::right(&format!("{percent}%"), CONTEXT.0);
    if bar_width > 0 {
        let cells = (usize::from(percent.min(100)) * GAUGE).div_ceil(100);
        text = format!("{}{} {text}", "█".repeat(cells), "░".repeat(GAUGE - cells));
    }
    (text, theme.tone(tone))
}
