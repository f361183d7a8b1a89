//! The popups over the screen.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Clear;

use super::super::app::App;
use super::super::edit::LineEdit;
use super::super::hits::HitList;
use super::super::keys::HelpLine;
use super::super::layout::{self, BOX_WIDTH as WIDE, centred, inside, top_for};
use super::super::lines_box::LinesBox;
use super::super::popup::{Confirm, CopyMenu, Help, Popup, RunList, TellBox};
use super::super::question::AnswerBox;
use super::super::wide;
use super::frame_of;
use crate::acts::Act;
use crate::ui::{Tone, graphemes};

/// Width of the label before a text that can be copied.
const WHAT_WIDTH: usize = 10;

/// Rows for the number of hits of each agent.
const AGENTS_ROWS: usize = 3;

/// A box: its title, its lines, and the line that must be seen.
struct Boxed {
    title: String,
    lines: Vec<Line<'static>>,
    at: usize,
    wide: u16,
}

/// Draws the popup over the screen.
pub(super) fn draw(app: &App, frame: &mut Frame<'_>) {
    let Some(popup) = &app.popup else { return };
    let screen = frame.area();
    let room = layout::box_room(screen.width);
    let boxed = match popup {
        Popup::Confirm(confirm) => confirmation(app, confirm, room),
        Popup::Answer(answer) => answering(app, answer, (screen.width, screen.height)),
        Popup::Tell(tell) => telling(app, tell, room),
        Popup::Lines(lines) => typing_lines(app, lines, room),
        Popup::Copy(menu) => copying(app, menu, room),
        Popup::Runs(list) => runs(app, list, room),
        Popup::Hits(list) => hits(app, list, room),
        Popup::Help(help) => helping(app, help, room),
    };
    let rows = u16::try_from(boxed.lines.len() + 2).unwrap_or(u16::MAX).min(screen.height.saturating_sub(2).max(1));
    let area = centred((screen.width, screen.height), boxed.wide, rows);
    frame.render_widget(Clear, area);
    let title = format!(" {} ", wide::cut(&boxed.title, usize::from(area.width).saturating_sub(4)));
    let within = inside(area);
    let within = Rect { x: within.x.saturating_add(1), width: within.width.saturating_sub(2), ..within };
    let height = usize::from(within.height);
    let top = top_for(boxed.at, boxed.at.saturating_sub(height / 2), height, boxed.lines.len());
    let top = if let Popup::Help(help) = popup { help.rows_above(room) } else { top };
    let below = match boxed.lines.len().saturating_sub(top + height) {
        0 => Line::default(),
        more => Line::from(format!(" ↓ {more} more ")).right_aligned(),
    };
    frame.render_widget(frame_of(app.theme, true).title(title).title_bottom(below), area);
    for (row, line) in (0..).zip(boxed.lines.into_iter().skip(top).take(height)) {
        let style = line.style;
        super::put(frame, within, row, line, style);
    }
}

fn confirmation(app: &App, confirm: &Confirm, room: usize) -> Boxed {
    let mut lines: Vec<Line<'static>> = wide::wrap(&confirm.says, room, 0).into_iter().map(Line::from).collect();
    lines.push(Line::default());
    let button = |text: &str, marked: bool| {
        let style = if marked { app.theme.chosen() } else { Style::new() };
        Span::styled(format!(" {text} "), style)
    };
    let verb = confirm.act.verb();
    lines.push(Line::from(vec![
        button(&format!("y: {verb}"), confirm.yes),
        Span::raw("  "),
        button("n: leave it", !confirm.yes),
    ]));
    let at = lines.len() - 1;
    Boxed { title: format!("{verb}?"), lines, at, wide: WIDE }
}

/// A line with a cursor in it; the end of the text before the cursor is always visible.
fn typed(app: &App, line: &LineEdit, room: usize, active: bool) -> Line<'static> {
    let (before, after) = line.halves();
    let mut shown = before;
    while wide::width(&shown) + 2 > room && !shown.is_empty() {
        shown.remove(0);
    }
    let pieces = graphemes(&after);
    let cursor = pieces.first().copied().unwrap_or(" ").to_owned();
    let style = if active { app.theme.chosen() } else { Style::new() };
    let rest: String = pieces.into_iter().skip(1).collect();
    Line::from(vec![
        Span::styled("> ", app.theme.tone(Tone::Hint)),
        Span::raw(shown),
        Span::styled(cursor, style),
        Span::raw(rest),
    ])
}

fn answering(app: &App, answer: &AnswerBox, screen: (u16, u16)) -> Boxed {
    let room = layout::box_room(screen.0);
    let rows = answer.rows(room);
    let share = answer.share(rows.len(), screen);
    let mut lines: Vec<Line<'static>> = Vec::new();
    for (first, row) in rows.into_iter().skip(answer.top).take(share.text) {
        lines.push(Line::styled(row, if first { app.theme.tone(Tone::Strong) } else { Style::new() }));
    }
    let tone = if answer.is_whole() { Tone::Dim } else { Tone::Warning };
    let hidden = answer.hidden(screen).unwrap_or_default();
    lines.push(Line::styled(wide::cut(&hidden, room), app.theme.tone(tone)));
    let all = answer.options.len();
    let first = top_for(answer.at.min(all.saturating_sub(1)), 0, share.options, all);
    for (number, option) in answer.options.iter().enumerate().skip(first).take(share.options) {
        let chosen = number == answer.at;
        let style = if chosen { app.theme.chosen() } else { Style::new() };
        let mark = if chosen { "(x)" } else { "( )" };
        lines.push(Line::styled(wide::cut(&format!("{mark} {}. {option}", number + 1), room), style));
    }
    if all > 0 {
        let mark = if answer.is_writing() { "(x)" } else { "( )" };
        lines.push(Line::styled(format!("{mark} your own words:"), app.theme.tone(Tone::Dim)));
    }
    lines.push(typed(app, &answer.line, room, answer.is_writing()));
    let mut title = format!("question {} of {}", answer.id, answer.task);
    if share.options < all {
        title.push_str(&format!(" · {all} options, {} to {}", first + 1, first + share.options));
    }
    let at = lines.len() - 1;
    Boxed { title, lines, at, wide: WIDE }
}

fn telling(app: &App, tell: &TellBox, room: usize) -> Boxed {
    let dim = app.theme.tone(Tone::Dim);
    let mut lines: Vec<Line<'static>> =
        wide::wrap(&tell.says, room, 0).into_iter().map(|row| Line::styled(row, dim)).collect();
    lines.push(typed(app, &tell.line, room, true));
    let at = lines.len() - 1;
    Boxed { title: format!("tell {}", tell.task), lines, at, wide: WIDE }
}

fn typing_lines(app: &App, typing: &LinesBox, room: usize) -> Boxed {
    let asks = match &typing.act {
        _ if typing.reading => "reading what it replaces…",
        Act::Split(..) => "type the parts, one per line, in order",
        other => other.asks_for().map_or("", |(what, _)| what),
    };
    let mut lines = vec![Line::styled(asks, app.theme.tone(Tone::Dim))];
    // Parts and checks are a list; a text is shown as it is.
    let numbered = !matches!(&typing.act, Act::Edit(_, edit) if edit.accept.is_none());
    let shown = |number: usize, text: &str| {
        let text = if numbered { format!("{}. {text}", number + 1) } else { text.to_owned() };
        Line::from(wide::cut(&text, room))
    };
    lines.extend(typing.above.iter().enumerate().map(|(at, text)| shown(at, text)));
    let at = lines.len();
    lines.push(typed(app, &typing.line, room, !typing.reading));
    lines.extend((typing.above.len() + 1..).zip(&typing.below).map(|(at, text)| shown(at, text)));
    let title = match &typing.act {
        Act::Split(task, _) | Act::Edit(task, _) => format!("{} {task}", typing.act.verb()),
        other => format!("{} a task", other.verb()),
    };
    Boxed { title, lines, at, wide: WIDE }
}

fn copying(app: &App, menu: &CopyMenu, room: usize) -> Boxed {
    let line = |(at, (what, text)): (usize, &(&'static str, String))| {
        let style = if at == menu.at { app.theme.chosen() } else { Style::new() };
        Line::styled(wide::cut(&format!("{} {text}", wide::fill(what, WHAT_WIDTH)), room), style)
    };
    let lines = menu.items.iter().enumerate().map(line).collect();
    Boxed { title: "copy".to_owned(), lines, at: menu.at, wide: WIDE }
}

fn runs(app: &App, list: &RunList, room: usize) -> Boxed {
    let kept = list.kept();
    let mut lines: Vec<Line<'static>> = Vec::new();
    for (at, (_, text)) in kept.iter().enumerate() {
        let style = if at == list.at { app.theme.chosen() } else { Style::new() };
        lines.push(Line::styled(wide::cut(text, room), style));
    }
    if lines.is_empty() {
        let words = if list.runs.is_none() { "reading…" } else { "no run matches" };
        lines.push(Line::styled(words, app.theme.tone(Tone::Dim)));
    }
    let title = match list.filter.text() {
        "" => "runs, newest first".to_owned(),
        filter => format!("runs /{filter}"),
    };
    Boxed { title, lines, at: list.at, wide: WIDE }
}

fn hits(app: &App, list: &HitList, room: usize) -> Boxed {
    let dim = app.theme.tone(Tone::Dim);
    let mut lines: Vec<Line<'static>> = Vec::new();
    let words = match (&list.hits, list.asked) {
        (None, true) => "searching…".to_owned(),
        (None, false) => "type words: lines of any agent's log that contain all of them are found".to_owned(),
        (Some(hits), _) if hits.is_empty() => "no line contains all of these words".to_owned(),
        (Some(_), _) => list.by_agent(),
    };
    lines.extend(wide::wrap(&words, room, 0).into_iter().take(AGENTS_ROWS).map(|row| Line::styled(row, dim)));
    let above = lines.len();
    for (at, hit) in list.hits.iter().flatten().enumerate() {
        let style = if at == list.at { app.theme.chosen() } else { Style::new() };
        let number = app.picture.as_deref().and_then(|picture| {
            let row = picture.attempt(hit.place.attempt)?;
            Some(picture.number_of(row.task.as_ref()?, row.attempt))
        });
        lines.push(Line::styled(wide::cut(&hit.shown(number), room), style));
    }
    let title = if list.words.is_empty() { "all logs".to_owned() } else { format!("all logs /{}", list.words) };
    let at = if list.at == 0 { 0 } else { above + list.at };
    Boxed { title, lines, at, wide: WIDE }
}

fn helping(app: &App, help: &Help, room: usize) -> Boxed {
    let mut lines: Vec<Line<'static>> = Vec::new();
    for line in help.kept() {
        let style = if matches!(line, HelpLine::Title(_)) { app.theme.tone(Tone::Strong) } else { Style::new() };
        let rows = Help::rows(&line, room).into_iter();
        lines.extend(rows.map(|(keys, words)| {
            Line::from(vec![Span::styled(keys, app.theme.tone(Tone::Hint)), Span::styled(words, style)])
        }));
    }
    if lines.is_empty() {
        lines.push(Line::styled("no key matches the filter", app.theme.tone(Tone::Dim)));
    }
    let title = match help.filter.text() {
        "" => "keys (/ filters)".to_owned(),
        filter => format!("keys /{filter}"),
    };
    Boxed { title, lines, at: 0, wide: WIDE }
}
