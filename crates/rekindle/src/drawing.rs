//! Pictures of a run as SVG, for both the dashboard and the report: the timeline of attempts, and the graph of dependencies.
//! Made on the server from a [`crate::picture::Picture`]; without scripts and inline styles, so any content policy accepts
//! them, and without references to anything outside.
//!
//! Colours are classes of [`CSS`]; everything that a colour says, a symbol and a word say too.

mod graph;
mod measure;
mod scale;
mod symbols;
mod timeline;

#[cfg(test)]
mod tests;

pub(crate) use graph::graph;
pub(crate) use timeline::timeline;

use rekindle_core::ids::{AttemptId, TaskId};

use crate::ui::{Tone, cut, one_line};

/// The style of the drawings, in light and in dark. The colours are variables: a page may override them.
pub(crate) const CSS: &str = include_str!("drawing/drawing.css");

/// Longest text of a tooltip, in columns: the task's page shows more.
const TIP_COLUMNS: usize = 300;

/// Where the links in a drawing lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// To the dashboard's pages: `/tasks/ID`, `/logs/ATTEMPT`.
    Pages,
    /// To places in the same file: `#task-ID`.
    Anchors,
}

impl Links {
    fn task(self, id: &TaskId) -> String {
        match self {
            Self::Pages => format!("/tasks/{id}"),
            Self::Anchors => format!("#task-{id}"),
        }
    }

    fn attempt(self, id: AttemptId, task: &TaskId) -> String {
        match self {
            Self::Pages => format!("/logs/{id}"),
            Self::Anchors => self.task(task),
        }
    }
}

pub(crate) fn class_of(tone: Tone) -> &'static str {
    match tone {
        Tone::Error => "bad",
        Tone::Warning => "warn",
        Tone::Hint => "hint",
        Tone::Good => "ok",
        Tone::Active => "active",
        Tone::Dim => "dim",
        Tone::Strong => "strong",
    }
}

/// Untrusted text, made harmless, on one line and short.
fn short(text: &str, columns: usize) -> String {
    cut(&one_line(text), columns)
}

/// Words for a tooltip.
fn tip(text: &str) -> String {
    short(text, TIP_COLUMNS)
}

/// A length for an attribute: a tenth of a pixel is finer than anybody can see.
fn px(length: f64) -> String {
    let tenths = if length.is_finite() { (length * 10.0).round() / 10.0 } else { 0.0 };
    // Avoids a negative zero.
    format!("{}", tenths + 0.0)
}
