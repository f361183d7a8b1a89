//! The dashboard's pages: which there are, and what stands in each. They are made here, whole and readable without a script; the
//! port, its security and the live stream are `web`'s.
//!
//! Everything that comes from agents goes through maud's escaping and through [`crate::ui::harmless`]: no text becomes markup.

use std::collections::BTreeMap;
use std::sync::Arc;

use maud::{DOCTYPE, Markup, html};

use crate::error::Result;
use crate::picture::{Picture, standing};
use crate::project::Project;
use crate::ui::one_line;

/// What a page is made from.
pub struct Site {
    /// The project.
    pub project: Project,
    /// The run; nothing before the first one.
    pub picture: Option<Arc<Picture>>,
    /// Whether nothing can be ordered from here.
    pub read_only: bool,
}

/// Which page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page {
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
    /// `/cost`: what was used, by agent and by task.
    Cost,
    /// `/runs`: every run of the project.
    Runs,
}

/// Makes a page. `query` is what stands after the question mark; unknown names are ignored.
///
/// # Errors
/// When the store cannot be read, or what was asked for is not there.
pub fn answer(site: &Site, page: &Page, _query: &BTreeMap<String, String>) -> Result<Markup> {
    let title = match &site.picture {
        Some(picture) => one_line(&picture.run.title),
        None => "no run yet".to_owned(),
    };
    let tasks = site.picture.iter().flat_map(|picture| {
        picture.tasks.iter().map(|task| (task.id.to_string(), standing::of(picture, task), one_line(&task.title)))
    });
    Ok(html! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; title { (title) " · rekindle" } }
            body data-page=(format!("{page:?}")) data-read-only=(site.read_only) {
                main { h1 { (title) } ul { @for (id, standing, title) in tasks {
                    li { (standing.symbol) " " (id) " " (standing.word) " " (title) }
                } } }
            }
        }
    })
}

/// A file that pages are drawn with.
pub struct Asset {
    /// Its name below `/assets/`.
    pub name: &'static str,
    /// Its type.
    pub mime: &'static str,
    /// What is in it.
    pub bytes: &'static [u8],
}

/// All of them.
pub const ASSETS: &[Asset] = &[];
