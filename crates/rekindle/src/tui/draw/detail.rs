//! The detail: its title, its tabs, and the log or the lines below.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use rekindle_core::text::counted;

use super::super::app::{App, Focus};
use super::super::asked;
use super::super::filter;
use super::super::layout::Areas;
use super::super::log::{Kind, LogLine};
use super::super::pane::{PaneRow, Tab};
use super::super::wide;
use super::{frame_of, has_keys, put};
use crate::ui::{Tone, one_line};

pub(super) fn draw(app: &App, frame: &mut Frame<'_>, areas: &Areas) {
    let area = areas.detail;
    if area.width == 0 || area.height == 0 {
        return;
    }
    let room = usize::from(area.width).saturating_sub(4);
    let title = format!(" {} ", wide::cut(&title(app), room));
    let place = Line::from(place(app, usize::from(areas.inside_detail().width))).right_aligned();
    let focused = has_keys(app, Focus::Detail);
    let block = frame_of(app.theme, focused).title(title).title_bottom(place);
    frame.render_widget(block, area);
    tabs(app, frame, areas.tabs());
    question(app, frame, areas.inside_question());
    let inside = areas.inside_detail();
    if inside.height == 0 || inside.width == 0 {
        return;
    }
    if app.tab == Tab::Log {
        log(app, frame, inside);
    } else {
        text(app, frame, inside);
    }
}

fn title(app: &App) -> String {
    let Some(picture) = &app.picture else { return String::new() };
    let Some(task) = app.task().and_then(|id| picture.task(id.as_str())) else {
        return format!("run of {}", one_line(&picture.run.plan));
    };
    let mut title = format!("{} {}", task.id, one_line(&task.title));
    if let Some(attempt) = app.attempt().and_then(|id| picture.attempt(id)) {
        let number = picture.attempts_of(&task.id).position(|other| other.attempt == attempt.attempt).unwrap_or(0) + 1;
        let all = picture.attempts_of(&task.id).count();
        title.push_str(&format!(" · {} ({}) · #{number} of {all}", attempt.name, one_line(&attempt.cli)));
    }
    title
}

/// The position in it.
fn place(app: &App, width: usize) -> String {
    if app.tab != Tab::Log {
        let rows = app.pane.rows(width.max(1), app.log.wrap, app.log.times).len();
        return match app.pane.filter.text() {
            "" => format!(" {} ", counted(rows, "line", "lines")),
            filter => format!(" /{} · {} ", one_line(filter), counted(rows, "line", "lines")),
        };
    }
    let Some(count) = app.log.count else { return String::new() };
    let found = if app.log.words.is_empty() { String::new() } else { format!("/{} · ", one_line(&app.log.words)) };
    match app.log.unseen() {
        0 if app.log.follow => format!(" {found}{}, following ", counted(count, "line", "lines")),
        0 => format!(" {found}line {} of {count} ", (app.log.top + 1).min(count)),
        new => format!(" {found}line {} of {count} · ↓ {new} new ", (app.log.top + 1).min(count)),
    }
}

/// The question of the chosen row, with a rule below it.
fn question(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let Some(asked) = asked::question(app).filter(|_| area.height > 1) else { return };
    let rows = asked::rows(asked, usize::from(area.width), usize::from(area.height - 1));
    for (at, (tone, text)) in (0..).zip(rows) {
        let style = tone.map(|tone| app.theme.tone(tone)).unwrap_or_default();
        put(frame, area, at, Line::styled(text, style), Style::new());
    }
    let rule = "─".repeat(usize::from(area.width));
    put(frame, area, area.height - 1, Line::styled(rule, app.theme.tone(Tone::Dim)), Style::new());
}

fn tabs(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let mut spans = Vec::new();
    for tab in Tab::ALL {
        let (text, style) = if tab == app.tab {
            (format!("[{}] ", tab.name()), app.theme.tone(Tone::Strong))
        } else {
            (format!(" {}  ", tab.name()), app.theme.tone(Tone::Dim))
        };
        spans.push(Span::styled(text, style));
    }
    put(frame, area, 0, Line::from(spans), Style::new());
}

fn log(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let (width, height) = (usize::from(area.width), area.height);
    let words = match (app.log.attempt, app.log.count) {
        (None, _) if app.task().is_some() => "no agent has worked on it yet",
        (None, _) => "choose a task to see its log",
        (_, None) => "reading…",
        (_, Some(0)) => {
            app.picture.as_ref().and_then(|picture| picture.removed.as_deref()).unwrap_or("it has said nothing yet")
        }
        _ => "",
    };
    if !words.is_empty() {
        put(frame, area, 0, Line::styled(words, app.theme.tone(Tone::Dim)), Style::new());
        return;
    }
    let (first, mut skip) = app.log.first(width, usize::from(height));
    let (mut row, mut number) = (0, first);
    while row < height && number < app.log.count.unwrap_or(0) {
        match app.log.line(number) {
            Some(line) => {
                let style = if app.log.hit == Some(number) {
                    Style::new().add_modifier(Modifier::UNDERLINED)
                } else {
                    Style::new()
                };
                for text in app.log.rows_of(line, width).into_iter().skip(skip) {
                    put(frame, area, row, log_row(app, line, text), style);
                    row = row.saturating_add(1);
                }
            }
            None => {
                put(frame, area, row, Line::styled("…", app.theme.tone(Tone::Dim)), Style::new());
                row += 1;
            }
        }
        (skip, number) = (0, number + 1);
    }
}

fn log_row(app: &App, line: &LogLine, text: String) -> Line<'static> {
    let base = match line.kind {
        Kind::Said => Style::new(),
        Kind::Call => app.theme.tone(Tone::Active),
        Kind::Result => app.theme.tone(Tone::Dim),
        Kind::Error => app.theme.tone(Tone::Error),
    };
    lit(app, text, base, &app.log.words)
}

/// A text with the search hits highlighted.
fn lit(app: &App, text: String, base: Style, words: &str) -> Line<'static> {
    let mut spans = Vec::new();
    let mut from = 0;
    while let Some((begin, end)) = filter::find(&text, words, from) {
        spans.push(Span::styled(text[from..begin].to_owned(), base));
        spans.push(Span::styled(text[begin..end].to_owned(), base.patch(app.theme.found())));
        from = end;
    }
    spans.push(Span::styled(text[from..].to_owned(), base));
    Line::from(spans)
}

fn text(app: &App, frame: &mut Frame<'_>, area: Rect) {
    if app.pane.about != app.about() {
        put(frame, area, 0, Line::styled("reading…", app.theme.tone(Tone::Dim)), Style::new());
        return;
    }
    let rows = app.pane.rows(usize::from(area.width), app.log.wrap, app.log.times);
    if rows.is_empty() {
        let words =
            if app.pane.filter.is_empty() { "nothing yet" } else { "nothing matches the filter; Esc clears it" };
        put(frame, area, 0, Line::styled(words, app.theme.tone(Tone::Dim)), Style::new());
    }
    let last = rows.len().saturating_sub(usize::from(area.height));
    let shown = rows.into_iter().skip(app.pane.top.min(last)).take(usize::from(area.height));
    for (at, row) in (0..).zip(shown) {
        put(frame, area, at, text_row(app, row), Style::new());
    }
}

fn text_row(app: &App, row: PaneRow<'_>) -> Line<'static> {
    let tone = row.line.tone.map(|tone| app.theme.tone(tone)).unwrap_or_default();
    if row.line.mark.is_empty() {
        return Line::from(vec![Span::styled(row.lead, app.theme.tone(Tone::Dim)), Span::styled(row.text, tone)]);
    }
    Line::from(vec![Span::styled(row.lead, tone), Span::raw(row.text)])
}
