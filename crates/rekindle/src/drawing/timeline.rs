//! The timeline: a lane for every task, a bar for every attempt at it, a symbol for everything that happened to it.
//! Unfinished bars extend to the end of the picture, so the same drawing works during the run and afterwards.

use maud::{Markup, html};
use rekindle_core::ids::TaskId;
use rekindle_core::text::counted;
use rekindle_core::time::Time;
use rekindle_core::view::TaskRow;

use super::measure::Font;
use super::scale::{Scale, axis_label};
use super::symbols::{Cluster, ROOM, Symbol, clustered};
use super::{Links, class_of, px, tip};
use crate::picture::history::{MarkKind, Span};
use crate::picture::{Picture, standing};
use crate::ui::{date_time, elapsed};

/// Width of the whole, in units of the drawing.
const WIDTH: f64 = 1_180.0;

/// Where the time begins at the latest, and at the earliest: what stands before it are the tasks' names.
const LEFT: (f64, f64) = (132.0, 272.0);

/// Space on the right, for symbols at the end.
const RIGHT: f64 = 18.0;

/// Height of a lane.
const LANE: f64 = 24.0;

/// Height of the axis above the lanes.
const AXIS: f64 = 28.0;

/// Half the height of a bar.
const HALF: f64 = 6.0;

/// The shortest bar that can be seen.
const BAR_MIN: f64 = 2.0;

/// Height of the line that names a wave.
const WAVE: f64 = 24.0;

/// Where names begin, and what is left free behind them.
const NAMES: (f64, f64) = (6.0, 10.0);

/// The font of the names.
const NAME: Font = Font::plain(12.0);

/// Space for the word at the end of the axis of an unfinished run: no label of the axis is put there.
const NOW: f64 = 64.0;

/// Most lanes: more is a list, not a picture.
const LANES_MAX: usize = 400;

pub(crate) fn timeline(picture: &Picture, links: Links) -> Markup {
    if picture.tasks.is_empty() {
        return html! { p.empty { "There are no tasks to draw." } };
    }
    let tasks = &picture.tasks[..picture.tasks.len().min(LANES_MAX)];
    let more = picture.tasks.len() - tasks.len();
    let left = left(tasks);
    let scale = scale(picture, tasks, left);
    let (rows, height) = rows(tasks);
    let counts = picture.counts();
    let about = format!(
        "Timeline of {} over {}: {} complete, {} failed",
        counted(counts.all, "task", "tasks"),
        elapsed(picture.until().since_ms(picture.run.started_at)),
        counts.complete,
        counts.failed
    );
    html! {
        div.drawing tabindex="0" role="region" aria-label="Timeline" {
            svg.timeline viewBox={ "0 0 " (px(WIDTH)) " " (px(height)) } role="group" aria-label=(about) {
                @for row in &rows { @if let Row::Wave(number, top) = row { (wave(*number, *top)) } }
                (axis(picture, &scale, height))
                @for row in &rows { @if let Row::Task(task, top) = row { (lane(picture, task, (&scale, left), *top, links)) } }
            }
        }
        @if more > 0 { p.note { (more) " more tasks are not drawn." } }
        (legend(picture, tasks))
    }
}

/// A row of the timeline and its position.
enum Row<'a> {
    /// The name of a wave.
    Wave(u32, f64),
    Task(&'a TaskRow, f64),
}

/// The tasks, grouped by wave if there are several waves, and the height of the whole.
fn rows(tasks: &[TaskRow]) -> (Vec<Row<'_>>, f64) {
    let mut ordered: Vec<&TaskRow> = tasks.iter().collect();
    ordered.sort_by_key(|task| task.wave);
    let several = ordered.first().map(|task| task.wave) != ordered.last().map(|task| task.wave);
    let mut rows = Vec::new();
    let (mut top, mut last) = (AXIS, None);
    for task in ordered {
        if several && last != Some(task.wave) {
            last = Some(task.wave);
            rows.push(Row::Wave(task.wave, top));
            top += WAVE;
        }
        rows.push(Row::Task(task, top));
        top += LANE;
    }
    (rows, top + 6.0)
}

fn wave(number: u32, top: f64) -> Markup {
    html! {
        g.wave {
            rect x="0" y=(px(top)) width=(px(WIDTH)) height=(px(WAVE)) {}
            text x=(px(NAMES.0)) y=(px(top + 16.0)) { "Wave " (number) }
        }
    }
}

/// Where the time begins: behind the longest name, so that little of a narrow screen goes to names.
fn left(tasks: &[TaskRow]) -> f64 {
    let widths = tasks.iter().map(|task| NAME.width("✔ ") + NAME.width(&format!("{} {}", task.id, task.title)));
    (widths.fold(0.0, f64::max).ceil() + NAMES.0 + NAMES.1).clamp(LEFT.0, LEFT.1)
}

fn scale(picture: &Picture, tasks: &[TaskRow], left: f64) -> Scale {
    let until = picture.until();
    let mut busy = Vec::new();
    for span in tasks.iter().flat_map(|task| picture.history.of(&task.id)) {
        busy.push((span.begun_at.0, span.ended_at.unwrap_or(until).0));
        busy.extend(span.marks.iter().map(|mark| (mark.time.0, mark.time.0)));
    }
    Scale::new(picture.run.started_at.0, until.0, left, WIDTH - left - RIGHT, busy)
}

fn axis(picture: &Picture, scale: &Scale, height: f64) -> Markup {
    let bottom = px(height - 4.0);
    let live = picture.run.ended_at.is_none() && picture.coordinator.is_some();
    let now = scale.x(picture.until().0);
    html! {
        g.axis {
            text x=(px(NAMES.0)) y="16" { title { (date_time(picture.run.started_at)) } "time since the start" }
            @for (after, x) in scale.ticks() {
                line.grid x1=(px(x)) y1=(px(AXIS - 6.0)) x2=(px(x)) y2=(bottom) {}
                @if !live || x < now - NOW { text x=(px(x)) y="16" text-anchor="middle" { (axis_label(after)) } }
            }
            @for gap in scale.squeezed() {
                rect.gap x=(px(gap.left)) y=(px(AXIS - 6.0)) width=(px(gap.right - gap.left)) height=(px(height - AXIS)) {
                    title { "no agent was running for " (elapsed(Time(gap.until).since_ms(Time(gap.from)))) " (drawn shorter)" }
                }
                text x=(px(f64::midpoint(gap.left, gap.right))) y=(px(AXIS + 4.0)) text-anchor="middle" {
                    "⋯ " (elapsed(Time(gap.until).since_ms(Time(gap.from))))
                }
            }
            @if live {
                line.now x1=(px(now)) y1=(px(AXIS - 8.0)) x2=(px(now)) y2=(bottom) {}
                text.now x=(px(now)) y="16" text-anchor="middle" { "now" }
            }
        }
    }
}

fn lane(picture: &Picture, task: &TaskRow, (scale, left): (&Scale, f64), top: f64, links: Links) -> Markup {
    let room = left - NAMES.0 - NAMES.1;
    let stands = standing::of(picture, task);
    let middle = top + LANE / 2.0;
    let spans = picture.history.of(&task.id);
    let lead = NAME.width(stands.symbol) + NAME.width(" ");
    let name = NAME.fit(&format!("{} {}", task.id, task.title), room - lead);
    let note = stands.note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
    let about = tip(&format!("{}: {} – {}{note}", task.id, task.title, stands.word));
    html! {
        g.lane {
            line.rule x1="0" y1=(px(top)) x2=(px(WIDTH)) y2=(px(top)) {}
            a href=(links.task(&task.id)) {
                title { (about) }
                // Whatever the font, no name reaches the bars.
                svg.clip x=(px(NAMES.0)) y=(px(top)) width=(px(room)) height=(px(LANE)) {
                    text x="0" y=(px(LANE / 2.0 + 4.0)) {
                        tspan class={ "symbol " (class_of(stands.tone)) } { (stands.symbol) } " " (name)
                    }
                }
            }
            @for (at, span) in spans.iter().enumerate() {
                @let free = if at == 0 { ready(picture, task, span.begun_at) } else { span.free_at };
                (bar(picture, &task.id, span, free, scale, middle, links))
            }
            (tail(picture, task, spans, scale, middle))
            @for cluster in clustered(symbols(picture, spans, scale), left, WIDTH) { (marks(&cluster, middle)) }
        }
    }
}

/// Symbols that share one position. Most are alone and need no element but their own.
fn marks(cluster: &Cluster, middle: f64) -> Markup {
    let alone = cluster.shown.first().filter(|shown| cluster.shown.len() == 1 && shown.many.is_empty());
    let class = alone.map_or_else(|| "marks".to_owned(), |shown| format!("marks mark {}", shown.class));
    html! {
        text class=(class) x=(px(cluster.x)) y=(px(middle + 4.5)) text-anchor="middle" role="img" {
            title { (tip(&cluster.text())) }
            @if let Some(shown) = alone { (shown.symbol) } @else {
                @for shown in &cluster.shown {
                    @if !shown.symbol.is_empty() { tspan class={ "mark " (shown.class) } { (shown.symbol) } }
                    @if !shown.many.is_empty() { tspan.many { (shown.many) } }
                }
            }
        }
    }
}

/// What happened to the attempts of a lane and how each of them ended, in order.
fn symbols(picture: &Picture, spans: &[Span], scale: &Scale) -> Vec<Symbol> {
    let mut symbols = Vec::new();
    for span in spans {
        let end = scale.x(span.ended_at.unwrap_or(picture.until()).max(span.begun_at).0);
        let first = symbols.len();
        symbols.extend(span.marks.iter().map(|mark| Symbol {
            kind: Some(mark.kind),
            symbol: mark.kind.symbol(),
            class: format!("{} {}", class_of(mark.kind.tone()), mark.kind.name()),
            x: scale.x(mark.time.0),
            text: format!("{} ({}): {}", mark.kind.name(), date_time(mark.time), mark.text),
        }));
        let fate = Fate::of(span);
        let told = symbols[first..].iter().any(|symbol: &Symbol| (symbol.x - end).abs() < ROOM);
        if let Some(symbol) = fate.symbol.filter(|_| !told) {
            let text = format!("attempt {} ended: {}", span.number, fate.word);
            symbols.push(Symbol { kind: None, symbol, class: fate.class.to_owned(), x: end, text });
        }
    }
    symbols
}

/// The earliest time at which a task could have started: when the last task that it waited for had ended, including tasks of
/// earlier waves.
fn ready(picture: &Picture, task: &TaskRow, begun: Time) -> Option<Time> {
    let earlier = picture.tasks.iter().filter(|other| other.wave < task.wave).map(|other| &other.id);
    let awaited = task.blocked_by.iter().chain(earlier);
    let ends = awaited.flat_map(|before| picture.history.of(before)).filter_map(|span| span.ended_at);
    // A later attempt worked on its task again: this task did not wait for it.
    let last = ends.filter(|end| *end <= begun).max();
    Some(last.unwrap_or(picture.run.started_at).max(picture.run.started_at))
}

fn bar(
    picture: &Picture,
    task: &TaskId,
    span: &Span,
    free: Option<Time>,
    scale: &Scale,
    middle: f64,
    links: Links,
) -> Markup {
    let end = span.ended_at.unwrap_or(picture.until()).max(span.begun_at);
    let runs = span.runs_at.unwrap_or(end).clamp(span.begun_at, end);
    let (begun_x, runs_x, end_x) = (scale.x(span.begun_at.0), scale.x(runs.0), scale.x(end.0));
    let free = free.filter(|free| *free < span.begun_at);
    let fate = Fate::of(span);
    html! {
        @if let Some(free) = free {
            rect.waiting x=(px(scale.x(free.0))) y=(px(middle - 1.5)) width=(px(begun_x - scale.x(free.0))) height="3" {
                title { "waited " (elapsed(span.begun_at.since_ms(free))) }
            }
        }
        a href=(links.attempt(span.attempt, task)) tabindex="-1" {
            g role="img" {
                title { (tip(&words(span, free, runs, end, &fate))) }
                @if runs_x > begun_x {
                    rect.starting x=(px(begun_x)) y=(px(middle - HALF)) width=(px(runs_x - begun_x)) height=(px(HALF * 2.0)) {}
                }
                rect class={ "attempt " (fate.class) } x=(px(runs_x)) y=(px(middle - HALF)) rx="2"
                    width=(px((end_x - runs_x).max(BAR_MIN))) height=(px(HALF * 2.0)) {}
            }
        }
    }
}

/// What a task has been waiting for since its last attempt, while no agent works on it.
fn tail(picture: &Picture, task: &TaskRow, spans: &[Span], scale: &Scale, middle: f64) -> Markup {
    // What waits for its wave waits for others, and is not late.
    let ended = |state: &str| matches!(state, "complete" | "failed" | "skipped");
    let early = picture.tasks.iter().any(|other| other.wave < task.wave && !ended(&other.state));
    let open = !early && !ended(&task.state) && task.state != "blocked";
    let since = match spans.last() {
        Some(last) => last.ended_at,
        None => ready(picture, task, picture.until()),
    };
    let Some(since) = since.filter(|since| open && *since < picture.until()) else { return html! {} };
    let stands = standing::of(picture, task);
    let note = stands.note.map(|note| format!(": {note}")).unwrap_or_default();
    let (from, until) = (scale.x(since.0), scale.x(picture.until().0));
    html! {
        rect.waiting.open x=(px(from)) y=(px(middle - 1.5)) width=(px(until - from)) height="3" {
            title { (tip(&format!("{} since {}{note}", stands.word, elapsed(picture.until().since_ms(since))))) }
        }
    }
}

/// How an attempt ended, for its colour and its symbol.
struct Fate {
    class: &'static str,
    symbol: Option<&'static str>,
    word: String,
}

impl Fate {
    fn of(span: &Span) -> Self {
        let Some(outcome) = &span.outcome else {
            let word = if span.runs_at.is_some() { "running" } else { "starting" };
            return Self { class: "active", symbol: None, word: word.to_owned() };
        };
        let (class, symbol) = match outcome.as_str() {
            "complete" | "completed" => ("ok", "✔"),
            "handed_on" => ("ok", "→"),
            "skipped" | "stopped_by_operator" => ("dim", "■"),
            "parked" | "waiting_for_input" => ("warn", MarkKind::Question.symbol()),
            "usage_limit" | "overloaded" => ("warn", MarkKind::Limit.symbol()),
            "compacted" | "compaction_loop" | "context_exhausted" => ("warn", MarkKind::Compaction.symbol()),
            "sent_back" | "exited_incomplete" => ("warn", MarkKind::Refused.symbol()),
            "timed_out" | "stalled_no_progress" => ("warn", MarkKind::Hang.symbol()),
            other if other.starts_with("hung") => ("warn", MarkKind::Hang.symbol()),
            "replaced" => ("dim", MarkKind::Recovery.symbol()),
            _ => ("bad", MarkKind::Crash.symbol()),
        };
        Self { class, symbol: Some(symbol), word: outcome.replace('_', " ") }
    }
}

/// A bar in words.
fn words(span: &Span, free: Option<Time>, runs: Time, end: Time, fate: &Fate) -> String {
    let mut words = format!("attempt {} by {} ({}): {}", span.number, span.agent, span.cli, fate.word);
    if let Some(free) = free {
        words += &format!("; waited {}", elapsed(span.begun_at.since_ms(free)));
    }
    if span.runs_at.is_some() {
        words +=
            &format!("; started in {}, worked {}", elapsed(runs.since_ms(span.begun_at)), elapsed(end.since_ms(runs)));
    } else {
        words += &format!("; {} without a process", elapsed(end.since_ms(span.begun_at)));
    }
    words += &format!("; from {}", date_time(span.begun_at));
    if span.more_marks > 0 {
        words += &format!("; {}", counted(span.more_marks, "more mark", "more marks"));
    }
    words
}

/// What the bars and symbols of a drawing mean: those that are in it.
fn legend(picture: &Picture, tasks: &[TaskRow]) -> Markup {
    let spans = || tasks.iter().flat_map(|task| picture.history.of(&task.id));
    let happened = |kind: MarkKind| spans().any(|span| span.marks.iter().any(|mark| mark.kind == kind));
    let drawn = |class: &str| match class {
        "waiting" | "starting" => spans().next().is_some(),
        class => spans().any(|span| Fate::of(span).class == class),
    };
    let bars = [
        ("waiting", "waits"),
        ("starting", "starts"),
        ("active", "running"),
        ("ok", "complete"),
        ("warn", "recovered"),
        ("bad", "crashed or failed"),
    ];
    html! {
        ul.legend aria-label="Legend" {
            @for (class, word) in bars.into_iter().filter(|(class, _)| drawn(class)) { li { span class={ "key " (class) } {} (word) } }
            @for kind in MarkKind::ALL.into_iter().filter(|kind| happened(*kind)) {
                li { span class={ "symbol " (class_of(kind.tone())) } { (kind.symbol()) } " " (kind.name()) }
            }
        }
    }
}
