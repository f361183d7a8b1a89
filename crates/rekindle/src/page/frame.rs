//! What surrounds every page: head, navigation, the live region, and the dialogs that the script opens.

use maud::{DOCTYPE, Markup, html};

use super::parts::{self, countdown};
use super::{Page, Visit};
use crate::picture::Picture;
use crate::picture::history::MarkKind;
use crate::ui::{Tone, one_line, zone_line};
use crate::view::REPAIR;

/// News that a page carries for the live region: nobody listens to more.
const SPOKEN: usize = 6;

/// The keys and what they do: the help is made from it, and the script reads it from there.
const KEYS: &[(&str, &str)] = &[
    ("Ctrl+K", "go to a page, task or agent, or do something"),
    ("?", "this help"),
    ("/", "filter or search on this page"),
    ("g o", "overview"),
    ("g e", "events"),
    ("g q", "questions"),
    ("g c", "cost"),
    ("g s", "search all logs"),
    ("g r", "runs"),
    ("j k", "next and previous row of a list, line of a log"),
    ("Enter", "open the row"),
    ("r", "retry the task of this page"),
    ("n N", "next and previous hit in a log"),
    ("f", "follow a log; End does the same"),
    ("w", "wrap lines of a log"),
    ("t", "times in a log"),
    ("y", "copy the address of this page"),
    ("Esc", "close, or leave a field"),
];

/// A page without its surroundings.
pub(super) struct Frame {
    title: String,
    body: Markup,
    every_ms: u32,
}

impl Frame {
    /// A page that is refreshed as soon as something happens.
    pub(super) fn new(title: &str, body: Markup) -> Self {
        Self { title: title.to_owned(), body, every_ms: 250 }
    }

    /// The shortest time between two refreshes, for pages that cost more to make.
    pub(super) fn at_most_every(self, every_ms: u32) -> Self {
        Self { every_ms, ..self }
    }

    /// The whole document.
    pub(super) fn around(self, visit: &Visit<'_>, page: Option<&Page>) -> Markup {
        let picture = visit.site.picture.as_deref();
        let asks = picture.map_or(0, |picture| picture.open_questions().count());
        let name = picture.map_or_else(|| "rekindle".to_owned(), |picture| one_line(&picture.run.title));
        let badge = if asks > 0 { format!("({asks}) ") } else { String::new() };
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="referrer" content="no-referrer";
                    title { (badge) (one_line(&self.title)) " · " (name) " · rekindle" }
                    link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
                    link rel="stylesheet" href="/assets/drawing.css";
                    link rel="stylesheet" href="/assets/app.css";
                    script type="module" src="/assets/app.js" {}
                }
                body data-run=[visit.ways.run()] data-read-only=[visit.site.read_only.then_some("")] {
                    a.skip href="#main" { "Skip to the content" }
                    (header(visit, page, asks))
                    main #main tabindex="-1" data-every=(self.every_ms) data-seq=(picture.map_or(0, |picture| picture.seq)) {
                        @if let Some(damage) = picture.and_then(|picture| picture.damage) {
                            p role="alert" { strong { (damage.to_string()) } ": " (REPAIR) }
                        }
                        (self.body)
                    }
                    footer.dim.small { (zone_line(rekindle_engine::clock::wall())) }
                    (gone())
                    (spoken(picture))
                    div #said .sr role="status" aria-live="polite" {}
                    (dialogs())
                }
            }
        }
    }
}

fn header(visit: &Visit<'_>, page: Option<&Page>, asks: usize) -> Markup {
    let ways = &visit.ways;
    let links: [(&str, &str, Page); 6] = [
        ("/", "Overview", Page::Overview),
        ("/questions", "Questions", Page::Questions),
        ("/events", "Events", Page::Events),
        ("/search", "Search", Page::Search),
        ("/cost", "Cost", Page::Cost),
        ("/runs", "Runs", Page::Runs),
    ];
    html! {
        header #top {
            button #open-pages type="button" popovertarget="pages" {
                span aria-hidden="true" { "☰" } span.sr { "Pages" }
                @if asks > 0 { " " span.badge { (asks) span.sr { " open" } } }
            }
            a.brand href=(ways.to("/")) { span aria-hidden="true" { "◆ " } "rekindle" }
            nav #pages popover aria-label="Pages" {
                ul {
                    @for (path, word, to) in links {
                        li { a href=(ways.to(path)) data-page=(path) aria-current=[(page == Some(&to)).then_some("page")] {
                            (word)
                            @if to == Page::Questions && asks > 0 { " " span.badge { (asks) span.sr { " open" } } }
                        } }
                    }
                }
            }
            div.right {
                @if let Some(picture) = visit.site.picture.as_deref() { (run_state(picture)) }
                @if visit.site.read_only { span.pill.t-dim { "read only" } }
                span #link .pill.t-warn hidden { "not live" }
                button #open-palette type="button" aria-haspopup="dialog" aria-label="Go to a page, task or agent" {
                    span.wide { "Go to… " kbd { "Ctrl K" } } span.narrow aria-hidden="true" { "Go to…" }
                }
                button #open-help type="button" aria-haspopup="dialog" aria-label="Keys and help" { kbd { "?" } }
            }
        }
    }
}

/// What the script shows when the server does not answer any more: what that means, and how to continue.
fn gone() -> Markup {
    html! {
        aside #gone role="alert" hidden {
            p #gone-away hidden {
                strong { "The server is gone." } " What you see is how things stood " time #gone-since .num.count {} " ago; the run itself does not need the server. Start it again in the project's directory and open the address that it prints: "
                (parts::command("rekindle serve"))
            }
            p #gone-other hidden {
                strong { "The server was started again." } " Its address has another token: open the one that "
                (parts::command("rekindle serve")) " printed last."
            }
        }
    }
}

pub(super) fn run_state(picture: &Picture) -> Markup {
    let nobody = picture.coordinator.is_none();
    let (symbol, word, tone) = match picture.run.state.as_str() {
        "complete" => ("✔", "complete", Tone::Good),
        "failed" => ("✖", "failed", Tone::Error),
        "paused" => ("‖", "paused", Tone::Warning),
        // A wait that ends on its own needs a coordinator that waits.
        _ if nobody => ("‖", "no coordinator", Tone::Warning),
        "waiting" => ("‖", "waits for a limit", Tone::Warning),
        "pausing" => ("‖", "pausing", Tone::Warning),
        "created" => ("·", "begins", Tone::Dim),
        _ => ("▶", "running", Tone::Active),
    };
    let waits = picture.run.state == "waiting" && !nobody;
    let until = picture.run.resumes_at.filter(|until| waits && *until > picture.now);
    html! {
        span.run-state data-state=(picture.run.state) { (parts::pill(symbol, word, tone)) }
        @if let Some(until) = until { " " span.note { "resumes in " (countdown(until, picture.now)) } }
    }
}

/// What the live region may announce, newest last; the script announces what is new in it.
fn spoken(picture: Option<&Picture>) -> Markup {
    let Some(picture) = picture else { return html! { ol #news hidden {} } };
    let counts = picture.counts();
    let loud = |kind: &MarkKind| {
        matches!(kind, MarkKind::Failed | MarkKind::Question | MarkKind::Limit | MarkKind::Crash | MarkKind::Recovery)
    };
    let mut news: Vec<_> = picture.history.news.iter().rev().filter(|news| loud(&news.kind)).take(SPOKEN).collect();
    news.reverse();
    html! {
        ol #news hidden data-done=(counts.complete) data-all=(counts.all) data-state=(picture.run.state) {
            @for news in news {
                @let whom = news.task.as_deref().or(news.agent.as_deref()).unwrap_or("the run");
                li data-seq=(news.seq) { (one_line(whom)) ": " (news.kind.name()) ", " (one_line(&news.text)) }
            }
        }
    }
}

fn dialogs() -> Markup {
    html! {
        dialog #help aria-labelledby="help-title" {
            h2 #help-title { "Keys" }
            table.keys {
                caption.sr { "Keys and what they do" }
                thead.sr { tr { th scope="col" { "Key" } th scope="col" { "What it does" } } }
                tbody { @for (key, what) in KEYS { tr { th scope="row" { kbd { (key) } } td { (what) } } } }
            }
            form method="dialog" { button { "Close" } }
        }
        dialog #palette aria-label="Go to, or do" {
            input #palette-input type="text" role="combobox" aria-expanded="true" aria-controls="palette-list"
                aria-label="Page, task, agent or action" placeholder="Page, task, agent or action…" autocomplete="off" spellcheck="false";
            ul #palette-list role="listbox" aria-label="Found" {}
        }
        dialog #confirm aria-labelledby="confirm-title" aria-describedby="confirm-text" {
            form method="dialog" {
                h2 #confirm-title {}
                p #confirm-text {}
                label #confirm-parts hidden { span {} textarea rows="4" spellcheck="false" {} }
                p #confirm-error .t-error role="alert" hidden {}
                div.buttons { button #confirm-no type="button" { "Cancel" } button #confirm-yes .primary type="submit" {} }
            }
        }
    }
}
