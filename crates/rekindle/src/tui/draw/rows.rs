//! The tree's rows: what each shows at a width. The least important columns are left out first.

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

/// Smallest width for names, unless that is more than half: columns that would leave less are left out.
const LABEL_MIN: usize = 24;
/// From this width on the context is drawn as a bar too.
const GAUGE_FROM: usize = 76;
/// Cells of that bar.
const GAUGE: usize = 5;
/// What that column is called where there is room.
const CONTEXT: &str = "context";
/// Least width of a note that is worth showing.
const NOTE_MIN: usize = 8;

/// A column on the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Word,
    Time,
    Context,
    Cost,
    Tokens,
}

impl Column {
    /// The most important first.
    const BY_WEIGHT: [Self; 5] = [Self::Word, Self::Time, Self::Context, Self::Cost, Self::Tokens];
    /// From left to right.
    const IN_ORDER: [Self; 5] = [Self::Word, Self::Context, Self::Tokens, Self::Cost, Self::Time];

    /// What it shows, in the border above it.
    fn head(self, width: usize) -> &'static str {
        match self {
            Self::Word => "state",
            Self::Time => "time",
            Self::Context if width < CONTEXT.len() => "ctx",
            Self::Context => CONTEXT,
            Self::Cost => "cost",
            Self::Tokens => "tokens",
        }
    }

    fn text(self, row: &Row, width: usize) -> String {
        match self {
            Self::Word => row.word.clone(),
            Self::Time => row.took.map(elapsed).unwrap_or_default(),
            Self::Context => row.context.map(|full| gauge(full, width)).unwrap_or_default(),
            Self::Cost => row.spent.cost_usd.map(dollars).unwrap_or_default(),
            Self::Tokens if row.spent.tokens > 0 => short_count(row.spent.tokens),
            Self::Tokens => String::new(),
        }
    }
}

/// The columns that have something to show and leave room for names, each with its width.
fn columns(rows: &[Row], width: usize) -> Vec<(Column, usize)> {
    let mut kept = Vec::new();
    let mut taken = 0;
    for column in Column::BY_WEIGHT {
        let most = rows
            .iter()
            .filter(|row| has_columns(row))
            .map(|row| wide::width(&column.text(row, width)))
            .max()
            .unwrap_or(0);
        let most = if most > 0 { most.max(column.head(most).len()) } else { 0 };
        if most > 0 && taken + most + 1 + LABEL_MIN.min(width / 2) <= width {
            taken += most + 1;
            kept.push((column, most));
        }
    }
    let order = |column: Column| Column::IN_ORDER.iter().position(|other| *other == column);
    kept.sort_by_key(|(column, _)| order(*column));
    kept
}

pub(super) fn draw(app: &App, frame: &mut Frame<'_>, area: Rect) {
    if area.width == 0 || area.height == 0 {
        return;
    }
    let filter = app.tree.filter.text();
    let title = if filter.is_empty() { " Tasks ".to_owned() } else { format!(" Tasks /{} ", one_line(filter)) };
    let place = format!(" {}/{} ", (app.tree.at + 1).min(app.tree.rows.len()), app.tree.rows.len());
    let focused = has_keys(app, Focus::Tree);
    let title_width = wide::width(&title);
    let block = frame_of(app.theme, focused).title(title).title_bottom(Line::from(place).right_aligned());
    let inside = block.inner(area);
    frame.render_widget(block, area);
    if app.tree.rows.is_empty() {
        let words = if filter.is_empty() { "no tasks" } else { "nothing matches the filter; Esc clears it" };
        put(frame, inside, 0, Line::styled(words, app.theme.tone(Tone::Dim)), Style::new());
    }
    let width = usize::from(inside.width);
    let columns = columns(&app.tree.rows, width);
    heads(app.theme, frame, area, title_width, &columns);
    let rows = app.tree.rows.iter().enumerate().skip(app.tree.top).take(usize::from(inside.height));
    for (line, (at, row)) in (0..).zip(rows) {
        let style = match at == app.tree.at {
            true if app.focus == Focus::Tree => app.theme.chosen(),
            true => Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            false => Style::new(),
        };
        put(frame, inside, line, row_line(app.theme, row, &columns, width), style);
    }
}

/// Names the columns in the border above them, as far as the title leaves room.
fn heads(theme: Theme, frame: &mut Frame<'_>, area: Rect, title_width: usize, columns: &[(Column, usize)]) {
    let mut end = usize::from(area.width).saturating_sub(1);
    for (column, wide) in columns.iter().rev() {
        let (head, start) = (column.head(*wide), end.saturating_sub(*wide));
        let at = if *column == Column::Word { start } else { end.saturating_sub(head.len()) };
        end = start.saturating_sub(1);
        if at < title_width + 3 {
            continue;
        }
        let last = usize::from(area.width).saturating_sub(1) == at + head.len();
        let text = if last { format!(" {head}") } else { format!(" {head} ") };
        let x = area.x.saturating_add(u16::try_from(at - 1).unwrap_or(u16::MAX));
        frame.buffer_mut().set_string(x, area.y, text, theme.tone(Tone::Dim));
    }
}

/// Whether a row has columns: questions, failures and calls are sentences and take the whole width.
fn has_columns(row: &Row) -> bool {
    !matches!(row.node, Node::Need(..) | Node::Call(..))
}

fn row_line(theme: Theme, row: &Row, columns: &[(Column, usize)], width: usize) -> Line<'static> {
    let columns = if has_columns(row) { columns } else { &[] };
    let taken: usize = columns.iter().map(|(_, wide)| wide + 1).sum();
    let fold = match row.open {
        Some(true) => theme.symbol("▾", "v"),
        Some(false) => theme.symbol("▸", ">"),
        None => " ",
    };
    let lead = format!("{}{fold} ", " ".repeat((row.depth * 2).saturating_sub(1)));
    let symbol = match row.symbol {
        " " => String::new(),
        symbol => format!("{} ", theme.symbol(symbol, row.ascii)),
    };
    let room = width.saturating_sub(taken + wide::width(&lead) + wide::width(&symbol));
    let label = wide::cut(&row.label, room);
    let left = room - wide::width(&label);
    let label_style = match row.node {
        Node::Needs | Node::Wave(_) => theme.tone(Tone::Strong),
        Node::Call(..) => theme.tone(Tone::Dim),
        _ => Style::new(),
    };
    let note = if left > NOTE_MIN && !row.note.is_empty() { format!("  {}", row.note) } else { String::new() };
    let mut spans = vec![
        Span::raw(lead),
        Span::styled(symbol, theme.tone(row.tone)),
        Span::styled(label, label_style),
        Span::styled(wide::fill(&note, left), theme.tone(Tone::Dim)),
    ];
    for (column, wide) in columns {
        let text = column.text(row, width);
        let (text, style) = match column {
            Column::Word => (wide::fill(&text, *wide), theme.tone(row.tone)),
            Column::Context => (wide::right(&text, *wide), theme.tone(fullness(row.context))),
            _ => (wide::right(&text, *wide), theme.tone(Tone::Dim)),
        };
        spans.push(Span::raw(" "));
        spans.push(Span::styled(text, style));
    }
    Line::from(spans)
}

/// How full a context is: a number, and a bar if there is room.
fn gauge(percent: u8, width: usize) -> String {
    if width < GAUGE_FROM {
        return format!("{percent}%");
    }
    let cells = (usize::from(percent.min(100)) * GAUGE).div_ceil(100);
    format!("{}{} {percent:>3}%", "█".repeat(cells), "░".repeat(GAUGE - cells))
}

fn fullness(percent: Option<u8>) -> Tone {
    match percent.unwrap_or(0) {
        0..=69 => Tone::Good,
        70..=84 => Tone::Warning,
        _ => Tone::Error,
    }
}
