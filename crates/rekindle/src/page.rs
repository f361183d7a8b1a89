//! The dashboard's pages: which there are, and what each contains. They are made here, complete and readable without a
//! script; `web` owns the port, its security and the live stream.
//!
//! Everything that comes from agents goes through maud's escaping and through [`crate::ui::harmless`]: no text becomes
//! markup.

mod acting;
mod cost;
mod events;
mod frame;
mod log;
mod overview;
mod parts;
mod questions;
mod runs;
mod search;
mod table;
mod task;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use maud::{Markup, html};
use rekindle_core::ids::AttemptId;

use self::frame::Frame;
use self::parts::Ways;
use crate::error::{CliError, Result};
use crate::picture::Picture;
use crate::project::Project;
use crate::ui::one_line;
use crate::view::{RunView, View};

pub(crate) use self::acting::{other_checks, place};

/// What a page is made from.
pub(crate) struct Site {
    pub project: Project,
    /// The run; `None` before the first one.
    pub picture: Option<Arc<Picture>>,
    /// Whether orders are disabled.
    pub read_only: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// `/`: what needs a person first, then the timeline, the graph and the tasks.
    Overview,
    /// `/tasks/ID`: attempts, brief, checks, diff, why, log.
    Task(String),
    /// `/logs/ATTEMPT`: one attempt's log.
    Log(u64),
    /// `/events`: the event log.
    Events,
    /// `/questions`: the inbox.
    Questions,
    /// `/cost`: usage, by agent and by task.
    Cost,
    /// `/search`: lines of all logs that hold some words.
    Search,
    /// `/runs`: every run of the project.
    Runs,
}

/// A file that pages need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asset {
    /// Its name below `/assets/`.
    pub name: &'static str,
    pub mime: &'static str,
    pub bytes: &'static [u8],
}

const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

/// Every file that pages need; nothing comes from elsewhere.
pub(crate) const ASSETS: &[Asset] = &[
    Asset { name: "drawing.css", mime: CSS, bytes: crate::drawing::CSS.as_bytes() },
    Asset { name: "app.css", mime: CSS, bytes: include_bytes!("page/assets/app.css") },
    Asset { name: "app.js", mime: JS, bytes: include_bytes!("page/assets/app.js") },
    Asset { name: "acts.js", mime: JS, bytes: include_bytes!("page/assets/acts.js") },
    Asset { name: "keys.js", mime: JS, bytes: include_bytes!("page/assets/keys.js") },
    Asset { name: "live.js", mime: JS, bytes: include_bytes!("page/assets/live.js") },
    Asset { name: "log.js", mime: JS, bytes: include_bytes!("page/assets/log.js") },
    Asset { name: "page.js", mime: JS, bytes: include_bytes!("page/assets/page.js") },
    Asset { name: "palette.js", mime: JS, bytes: include_bytes!("page/assets/palette.js") },
    Asset { name: "icon.svg", mime: "image/svg+xml", bytes: include_bytes!("page/assets/icon.svg") },
];

/// One request for a page: the site, the run that is shown and the query string.
struct Visit<'a> {
    site: &'a Site,
    query: &'a BTreeMap<String, String>,
    ways: Ways,
}

impl Visit<'_> {
    /// A value of the query; `None` when it is empty.
    fn asked(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    fn picture(&self) -> Result<&Picture> {
        let none = || CliError::usage("there is no run yet").hint("start one: rekindle run plan.md");
        self.site.picture.as_deref().ok_or_else(none)
    }

    /// Reads the run that is shown.
    fn read<T>(&self, reading: impl FnOnce(&RunView<'_>) -> Result<T>) -> Result<T> {
        let view = View::open(&self.site.project)?;
        reading(&view.run_named(&self.picture()?.run.id)?)
    }
}

/// Makes a page. `query` is the query string; unknown names are ignored.
pub(crate) fn answer(site: &Site, page: &Page, query: &BTreeMap<String, String>) -> Result<Markup> {
    let ways = Ways::of(query.get("run").map(String::as_str));
    let visit = Visit { site, query, ways };
    let frame = match page {
        Page::Runs => runs::page(&visit)?,
        _ if site.picture.is_none() => nothing_yet(),
        Page::Overview => overview::page(&visit)?,
        Page::Task(id) => task::page(&visit, id)?,
        Page::Log(attempt) => log::page(&visit, AttemptId(*attempt))?,
        Page::Events => events::page(&visit)?,
        Page::Questions => questions::page(&visit)?,
        Page::Cost => cost::page(&visit)?,
        Page::Search => search::page(&visit)?,
    };
    Ok(frame.around(&visit, Some(page)))
}

/// The page for something that does not exist, with the same frame as other pages.
pub(crate) fn missing(site: &Site, query: &BTreeMap<String, String>, error: &str, hint: Option<&str>) -> Markup {
    let visit = Visit { site, query, ways: Ways::of(query.get("run").map(String::as_str)) };
    let body = html! {
        h1 { (one_line(error)) }
        @if let Some(hint) = hint { p.dim { (one_line(hint)) } }
        p { a.button href=(visit.ways.to("/")) { "To the overview" } }
    };
    // Nothing on this page changes on its own.
    Frame::new("Not found", body).at_most_every(60_000).around(&visit, None)
}

/// Before the first run.
fn nothing_yet() -> Frame {
    let body = html! {
        h1 { "No run yet" }
        p { "Start one in the project's directory; this page shows it as soon as it begins." }
        (parts::command("rekindle run plan.md"))
    };
    Frame::new("no run yet", body)
}
