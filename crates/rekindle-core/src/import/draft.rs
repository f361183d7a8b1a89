//! What every format is first turned into: items with keys of the source, groups of several items, and remarks. Owns the sum
//! of the remarks; which ids the items get and how they are written is decided later.

use std::collections::{BTreeMap, BTreeSet};

use crate::text::one_line;

/// Longest word of the source that a remark repeats.
const QUOTED_MAX_BYTES: usize = 60;

/// A part of an item's text, with what it is.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// A line above it; empty for none.
    pub(super) label: &'static str,
    /// The source's own words.
    pub(super) text: String,
}

/// A future task.
#[derive(Debug, Clone, Default)]
pub(super) struct Item {
    /// The key by which others in the source refer to it.
    pub(super) key: String,
    /// The id that it would like to have; made valid and unique later.
    pub(super) id: String,
    pub(super) title: String,
    pub(super) parts: Vec<Part>,
    /// Keys of what comes before it, groups included.
    pub(super) after: Vec<String>,
    pub(super) done: bool,
    /// The stage it belongs to, in formats that have stages.
    pub(super) wave: Option<u32>,
    pub(super) priority: i64,
    pub(super) artifacts: Vec<String>,
    pub(super) reading: Vec<String>,
    pub(super) timeout_ms: Option<u64>,
    /// Commands that prove it; only of a document that the person wrote for this purpose.
    pub(super) accept: Vec<String>,
}

impl Item {
    /// Adds a part unless it is empty.
    pub(super) fn say(&mut self, label: &'static str, text: impl Into<String>) {
        let text = text.into();
        if !text.trim().is_empty() {
            self.parts.push(Part { label, text });
        }
    }
}

/// A future plan.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) title: String,
    /// What every agent is told.
    pub(super) goal: Vec<Part>,
    pub(super) items: Vec<Item>,
    /// Keys that represent several items: what comes after one comes after all of its members.
    pub(super) groups: BTreeMap<String, Vec<String>>,
    /// Keys of what was left out, so that an item that waits for one gets a remark and is not treated as an error.
    pub(super) left_out: BTreeSet<String>,
    /// One line each.
    pub(super) remarks: Vec<String>,
}

impl Draft {
    pub(super) fn new(title: impl Into<String>) -> Self {
        Draft { title: title.into(), ..Draft::default() }
    }

    pub(super) fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(text.into());
    }

    /// Leaves something out and says why.
    pub(super) fn leave_out(&mut self, key: &str, title: &str, why: &str) {
        self.left_out.insert(key.to_owned());
        self.remark(format!("left out: {} {}: {why}", shown(key), shown(title)));
    }
}

/// A word of the source, formatted for a remark.
pub(super) fn shown(text: &str) -> String {
    format!("`{}`", one_line(text, QUOTED_MAX_BYTES).replace('`', "'"))
}
