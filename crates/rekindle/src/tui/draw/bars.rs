//! The lines above and below: the state of the run, the outcome of the last action, and the keys that matter now.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use rekindle_core::view::Counts;

use super::super::app::App;
use super::super::facts;
use super::super::keys::{self, Mode};
use super::super::layout::Areas;
use super::super::tree::Node;
use super::super::wide;
use super::put;
use crate::picture::Picture;
use crate::picture::history::MarkKind;
use crate::picture::standing::{self, Urgency};
use crate::story::person::order_words;
use crate::ui::{Tone, dollars, elapsed, graphemes, one_line, short_count};

/// Most keys in the footer: nobody reads more.
const KEYS_MAX: usize = 8;

/// A part of a line, and its weight: the lightest is left out first if there is not enough room.
struct Piece {
    weight: u8,
    text: String,
    style: Style,
}

fn piece(weight: u8, text: impl Into<String>, style: Style) -> Piece {
    Piece { weight, text: text.into(), style }
}

/// Pieces that fit into a width with a gap between them, in their order.
fn fit(mut pieces: Vec<Piece>, gap: usize, width: usize) -> Vec<Piece> {
    pieces.retain(|piece| !piece.text.is_empty());
    let taken = |pieces: &[Piece]| -> usize { pieces.iter().map(|piece| wide::width(&piece.text) + gap).sum() };
    while pieces.len() > 1 && taken(&pieces) > width + gap {
        let least = pieces.iter().enumerate().min_by_key(|(_, piece)| piece.weight).map_or(0, |(at, _)| at);
        pieces.remove(least);
    }
    if let [only] = &mut pieces[..] {
        only.text = wide::cut(&only.text, width);
    }
    pieces
}

fn line_of(pieces: Vec<Piece>, gap: &'static str) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    for piece in pieces {
        if !spans.is_empty() {
            spans.push(Span::raw(gap));
        }
        spans.push(Span::styled(piece.text, piece.style));
    }
    Line::from(spans)
}

pub(super) fn header(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let width = usize::from(area.width).saturating_sub(2);
    let Some(picture) = &app.picture else {
        let line = format!(" {}", wide::cut("rekindle top", width));
        put(frame, area, 0, Line::styled(line, app.theme.tone(Tone::Strong)), Style::new());
        return;
    };
    let tone = |tone| app.theme.tone(tone);
    let spent = picture.spent();
    let (state_tone, state) = facts::state_of(picture);
    let took = elapsed(picture.until().since_ms(picture.run.started_at));
    let id: String = one_line(&picture.run.id).chars().take(8).collect();
    let past = if app.newest { "" } else { "past run" };
    let tokens = if spent.tokens > 0 { format!("{} tokens", short_count(spent.tokens)) } else { String::new() };
    let name = vec![
        piece(10, "rekindle", tone(Tone::Dim)),
        piece(60, one_line(&picture.run.plan), tone(Tone::Strong)),
        piece(40, format!("run {id}"), tone(Tone::Dim)),
        piece(70, past, tone(Tone::Warning)),
        piece(100, picture.damage.map(|lag| lag.to_string()).unwrap_or_default(), tone(Tone::Error)),
        piece(90, state, tone(state_tone)),
        piece(50, took, tone(Tone::Strong)),
        piece(30, tokens, Style::new()),
        piece(45, spent.cost_usd.map(dollars).unwrap_or_default(), Style::new()),
    ];
    let counts = counts(app, picture);
    if area.height >= 2 {
        put(frame, area, 0, padded(line_of(fit(name, 3, width), " · ")), Style::new());
        put(frame, area, 1, padded(line_of(fit(counts, 2, width), "  ")), Style::new());
    } else {
        let both = name.into_iter().chain(counts).collect();
        put(frame, area, 0, padded(line_of(fit(both, 2, width), "  ")), Style::new());
    }
}

fn padded(mut line: Line<'static>) -> Line<'static> {
    line.spans.insert(0, Span::raw(" "));
    line
}

fn counts(app: &App, picture: &Picture) -> Vec<Piece> {
    let tone = |tone| app.theme.tone(tone);
    let counts = picture.counts();
    let working = picture.tasks.iter().filter(|task| standing::urgency(picture, task) == Urgency::Working).count();
    let asks = picture.open_questions().count();
    let recovered = picture.history.count(MarkKind::Recovery);
    let some = |many: u64, text: String| if many > 0 { text } else { String::new() };
    vec![
        piece(80, bar(counts), tone(Tone::Good)),
        piece(95, format!("{} complete", counts.progress()), tone(Tone::Good)),
        piece(85, format!("{working} in progress"), tone(Tone::Active)),
        piece(
            94,
            some(asks as u64, format!("? {asks} {} you", if asks == 1 { "asks" } else { "ask" })),
            tone(Tone::Warning),
        ),
        piece(93, some(counts.failed as u64, format!("✖ {} failed", counts.failed)), tone(Tone::Error)),
        piece(35, some(counts.skipped as u64, format!("{} skipped", counts.skipped)), tone(Tone::Dim)),
        piece(55, some(recovered, format!("↻ {recovered} recovered")), tone(Tone::Hint)),
    ]
}

/// A bar of ten cells.
fn bar(counts: Counts) -> String {
    let full = counts.filled(10);
    format!("{}{}", "█".repeat(full), "░".repeat(10 - full))
}

/// The outcome of the last action, and the keys.
pub(super) fn footer(app: &App, frame: &mut Frame<'_>, areas: &Areas) {
    let news = news(app);
    let room = usize::from(areas.message.width).saturating_sub(1);
    if areas.message.height > 0 {
        if let Some(line) = news.or_else(|| chosen(app)) {
            put(frame, areas.message, 0, padded(cut_line(line, room)), Style::new());
        }
    } else if let Some(line) = news {
        let room = usize::from(areas.footer.width).saturating_sub(1);
        put(frame, areas.footer, 0, padded(cut_line(line, room)), Style::new());
        return;
    }
    put(frame, areas.footer, 0, padded(key_line(app, usize::from(areas.footer.width))), Style::new());
}

fn cut_line(line: Line<'static>, room: usize) -> Line<'static> {
    match &line.spans[..] {
        [only] => Line::styled(wide::cut(&only.content, room), only.style),
        _ => line,
    }
}

/// A filter being typed, an error, or a message: the most urgent of them.
fn news(app: &App) -> Option<Line<'static>> {
    let tone = |tone| app.theme.tone(tone);
    if let Some(typing) = &app.typing {
        let (before, after) = typing.line.halves();
        let after = if after.is_empty() { " ".to_owned() } else { after };
        let pieces = graphemes(&after);
        let cursor = pieces.first().copied().unwrap_or(" ").to_owned();
        let rest: String = pieces.into_iter().skip(1).collect();
        let spans = vec![
            Span::styled("/", tone(Tone::Hint)),
            Span::raw(before),
            Span::styled(cursor, app.theme.chosen()),
            Span::raw(rest),
        ];
        return Some(Line::from(spans));
    }
    // A warning about the key just pressed comes first; the good news that it was accepted does not.
    let warned = app.message.as_ref().is_some_and(|(kind, _)| *kind != Tone::Good);
    let placed = app.picture.as_ref().and_then(|picture| picture.run.placed.last());
    if let Some(placed) = placed.filter(|_| !warned) {
        let left = app.picture.as_ref().map_or(0, |picture| placed.due.since_ms(picture.now)).div_ceil(1_000);
        let text = format!("{} in {left} s · u undoes it", one_line(&order_words(&placed.order)));
        return Some(Line::styled(text, tone(Tone::Warning)));
    }
    if let Some((kind, text)) = &app.message {
        return Some(Line::styled(text.clone(), tone(*kind)));
    }
    if let Some(trouble) = &app.trouble {
        return Some(Line::styled(format!("! {trouble}; trying again"), tone(Tone::Error)));
    }
    if app.log.search.is_some() {
        return Some(Line::styled("searching…", tone(Tone::Dim)));
    }
    if app.acting > 0 {
        return Some(Line::styled("ordered, waiting for the answer…", tone(Tone::Dim)));
    }
    None
}

/// The state of the chosen row, in full: it may be truncated in the tree.
fn chosen(app: &App) -> Option<Line<'static>> {
    let row = app.tree.chosen()?;
    let picture = app.picture.as_ref()?;
    let mut text = format!("{} {}", row.label, row.word);
    if matches!(row.node, Node::Need(..)) {
        text.clone_from(&row.label);
    } else if let Some(task) = row.node.task().filter(|_| row.node.attempt().is_none()) {
        let stands = standing::of(picture, picture.task(task.as_str())?);
        let note = stands.note.map(|note| format!(": {note}")).unwrap_or_default();
        text = format!("{task} {}{note}", stands.word);
    } else if !row.note.is_empty() {
        text = format!("{text}: {}", row.note);
    }
    Some(Line::styled(text, app.theme.tone(Tone::Dim)))
}

/// The keys that matter now, each with its word.
fn key_line(app: &App, width: usize) -> Line<'static> {
    let mode = app.mode();
    let (key_style, word_style) = (app.theme.tone(Tone::Hint), app.theme.tone(Tone::Dim));
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut used = 1;
    let mut shown = 0;
    for row in keys::footer(mode, |action| app.matters(action)) {
        let key = row.keys.split(' ').next().unwrap_or_default();
        let wide = wide::width(key) + 1 + wide::width(row.short) + 2;
        if shown == KEYS_MAX || used + wide > width + 2 {
            continue;
        }
        used += wide;
        shown += 1;
        spans.push(Span::styled(key, key_style));
        spans.push(Span::styled(format!(" {}  ", row.short), word_style));
    }
    if spans.is_empty() && mode != Mode::Tree {
        spans.push(Span::styled(wide::cut("Esc", width), key_style));
    }
    Line::from(spans)
}
