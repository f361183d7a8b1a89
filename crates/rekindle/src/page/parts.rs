//! Pieces that several pages show: links that stay in the run, states, spans, copy buttons, gauges. Every text from outside is
//! made harmless here.

use maud::{Markup, html};
use rekindle_core::activity::Measure;
use rekindle_core::ids::AttemptId;
use rekindle_core::time::Time;
use rekindle_core::view::{AttemptRow, TaskRow};

use crate::picture::Picture;
use crate::picture::history::MarkKind;
use crate::picture::standing::{self, Standing};
use crate::ui::{Tone, clock_time, date_time, dollars, elapsed, harmless, one_line, short_count, stamp};
use crate::view::Spent;

/// Context usage above this is worth attention, in percent: agents compact soon after.
const CONTEXT_HIGH: u64 = 80;

/// Addresses of pages that stay in the run that is shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Ways {
    run: Option<String>,
}

impl Ways {
    /// For a named run, or for the newest.
    pub(super) fn of(run: Option<&str>) -> Self {
        Self { run: run.filter(|run| !run.is_empty()).map(str::to_owned) }
    }

    pub(super) fn run(&self) -> Option<&str> {
        self.run.as_deref()
    }

    pub(super) fn to(&self, path: &str) -> String {
        self.with(path, &[])
    }

    /// The address of a page with a query; empty values are left out.
    pub(super) fn with(&self, path: &str, query: &[(&str, &str)]) -> String {
        let run = self.run.as_deref().map(|run| ("run", run));
        let pairs = run.into_iter().chain(query.iter().copied()).filter(|(_, value)| !value.is_empty());
        let query: Vec<String> = pairs.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
    }

    pub(super) fn task(&self, id: &str) -> String {
        self.to(&format!("/tasks/{}", encoded(id)))
    }

    pub(super) fn log(&self, attempt: AttemptId) -> String {
        self.to(&format!("/logs/{}", attempt.0))
    }
}

/// A piece of an address, with everything but letters, digits and a few marks encoded.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

pub(super) fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Error => "t-error",
        Tone::Warning => "t-warn",
        Tone::Hint => "t-hint",
        Tone::Good => "t-good",
        Tone::Active => "t-active",
        Tone::Dim => "t-dim",
        Tone::Strong => "t-strong",
    }
}

/// A symbol and a word in a tone.
pub(super) fn pill(symbol: &str, word: &str, tone: Tone) -> Markup {
    html! { span class=(format!("pill {}", class(tone))) { span.sym aria-hidden="true" { (symbol) } " " (one_line(word)) } }
}

pub(super) fn stands(standing: &Standing) -> Markup {
    pill(standing.symbol, standing.word, standing.tone)
}

/// What happened, as a symbol and a word.
pub(super) fn mark(kind: MarkKind) -> Markup {
    pill(kind.symbol(), kind.name(), kind.tone())
}

/// The line that says what a task waits for; the script updates its countdown.
pub(super) fn note(picture: &Picture, task: &TaskRow, standing: &Standing) -> Markup {
    let Some(note) = &standing.note else { return html! {} };
    let gates = picture.run.waits.iter().filter_map(|wait| wait.until);
    let ends = task.not_before.into_iter().chain(picture.run.resumes_at).chain(gates);
    for until in ends.filter(|until| *until > picture.now) {
        let span = elapsed(until.since_ms(picture.now));
        if let Some((before, after)) = note.split_once(&format!("in {span}")) {
            return html! { (before) "in " (countdown(until, picture.now)) (after) };
        }
    }
    html! { (note) }
}

/// Time that is left, counted down by the script.
pub(super) fn countdown(until: Time, now: Time) -> Markup {
    html! { time.count data-until=(until.0) datetime=(stamp(until)) title=(date_time(until)) { (elapsed(until.since_ms(now))) } }
}

/// A duration; the script counts up an open one.
pub(super) fn span(from: Time, to: Option<Time>, now: Time) -> Markup {
    match to {
        Some(to) => html! { span.num { (elapsed(to.since_ms(from))) } },
        None => html! { time.num.count data-since=(from.0) datetime=(stamp(from)) { (elapsed(now.since_ms(from))) } },
    }
}

/// A time of day; pointing at it shows the exact time.
pub(super) fn moment(time: Time) -> Markup {
    html! { time.num datetime=(stamp(time)) title=(date_time(time)) { (clock_time(time)) } }
}

/// A button that copies a text.
pub(super) fn copy(text: &str) -> Markup {
    let text = harmless(text);
    html! { button.copy type="button" data-copy=(text) aria-label=(format!("copy {}", one_line(&text))) title="copy" { (icon()) } }
}

/// A piece of code, a command or an output, with a button that copies it.
pub(super) fn code(text: &str, what: &str) -> Markup {
    html! {
        div.code {
            button.copy type="button" data-copy-next="" aria-label=(format!("copy {what}")) title="copy" { (icon()) }
            pre tabindex="0" role="region" aria-label=(what) { (harmless(text)) }
        }
    }
}

/// The last output of a failing task's agent.
pub(super) fn output(picture: &Picture, task: &TaskRow) -> Markup {
    let Some(output) = picture.outputs.get(&task.id) else { return html! {} };
    let text = output.shown().collect::<Vec<_>>().join("\n");
    html! { p.dim { (output.heading()) ":" } (code(&text, &output.heading())) }
}

pub(super) fn command(text: &str) -> Markup {
    html! { span.command { code { (one_line(text)) } (copy(text)) } }
}

fn icon() -> Markup {
    html! {
        svg.icon viewBox="0 0 16 16" width="12" height="12" aria-hidden="true" {
            path d="M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z" fill="none" stroke="currentColor" stroke-width="1.5" {}
        }
    }
}

pub(super) fn task_link(ways: &Ways, id: &str) -> Markup {
    html! { a.id href=(ways.task(id)) { (one_line(id)) } }
}

pub(super) fn context(measure: Option<Measure>) -> Markup {
    let filled = measure.and_then(|measure| measure.remaining_percent()).map(|left| 100 - u64::from(left.min(100)));
    match filled {
        Some(percent) => html! {
            span.gauge {
                meter min="0" max="100" high=(CONTEXT_HIGH) value=(percent) aria-label="context used" { (percent) "%" }
                " " span.num { (percent) "%" }
            }
        },
        None => html! { span.dim { "–" } },
    }
}

/// Tokens, or a dash if they are unknown.
pub(super) fn tokens(spent: Option<&Spent>) -> Markup {
    match spent.map_or(0, |spent| spent.tokens) {
        0 => html! { span.dim { "–" } },
        tokens => html! { span.num title=(format!("{tokens} tokens")) { (short_count(tokens)) } },
    }
}

/// Dollars, or a dash if they are unknown.
pub(super) fn cost(spent: Option<&Spent>) -> Markup {
    match spent.and_then(|spent| spent.cost_usd) {
        None => html! { span.dim { "–" } },
        Some(amount) => html! { span.num { (dollars(amount)) } },
    }
}

/// The same for a cell: `None` if they are unknown.
pub(super) fn tokens_cell(spent: Option<&Spent>) -> Option<Markup> {
    spent.is_some_and(|spent| spent.tokens > 0).then(|| tokens(spent))
}

pub(super) fn cost_cell(spent: Option<&Spent>) -> Option<Markup> {
    spent.is_some_and(|spent| spent.cost_usd.is_some()).then(|| cost(spent))
}

pub(super) fn context_cell(measure: Option<Measure>) -> Option<Markup> {
    measure.and_then(|measure| measure.remaining_percent()).map(|_| context(measure))
}

/// A title on one line; pointing at it shows all of it.
pub(super) fn title(text: &str) -> Markup {
    let text = one_line(text);
    html! { span.line title=(text) { (text) } }
}

pub(super) fn spent(attempt: &AttemptRow) -> Spent {
    Spent::by_all(std::slice::from_ref(attempt))
}

/// Whether all words of a filter are in a text; the letters of each may have others between them.
pub(super) fn fits(filter: &str, text: &str) -> bool {
    let text = text.to_lowercase();
    filter.to_lowercase().split_whitespace().all(|word| {
        let (word, wanted) = word.strip_prefix('!').map_or((word, true), |word| (word, false));
        text.contains(word) == wanted || (wanted && loosely(word, &text))
    })
}

/// Whether the letters of a word occur in a text in order, close together.
fn loosely(word: &str, text: &str) -> bool {
    let mut letters = text.char_indices();
    let (mut first, mut last) = (None, 0);
    for wanted in word.chars() {
        let Some((at, _)) = letters.by_ref().find(|(_, letter)| *letter == wanted) else { return false };
        (first, last) = (first.or(Some(at)), at);
    }
    last - first.unwrap_or(0) <= word.len() * 2
}

/// A task's state and the markup of its note, for lists.
pub(super) fn standing_of(picture: &Picture, task: &TaskRow) -> (Standing, Markup) {
    let standing = standing::of(picture, task);
    let note = note(picture, task, &standing);
    (standing, note)
}
