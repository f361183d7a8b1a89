//! A task as it is first assembled, on its own, and the cutting of verbatim text out of the plan. Blockers and waves follow
//! from the whole plan and are settled in `check`.

use std::{collections::BTreeSet, ops::Range};

use super::{
    PlanTask,
    keys::Keys,
    problem::{Location, Problems, Span, quote},
    values::Piece,
};
use crate::ids::TaskId;

/// A task as read, with what is needed to check it against the others.
#[derive(Debug)]
pub(super) struct Draft {
    /// Without blockers and wave, which follow from the whole plan.
    pub(super) task: PlanTask,
    pub(super) id_span: Span,
    pub(super) blockers: Vec<Piece>,
    pub(super) wave: Option<u32>,
    /// Its checks or artifacts could not be read, which has been reported.
    pub(super) proof_broken: bool,
}

/// Puts a task together from its heading and keys.
pub(super) fn draft(id: TaskId, title: String, body: String, id_span: Span, keys: Keys, wave: Option<u32>) -> Draft {
    let task = PlanTask {
        id,
        title,
        body,
        agent: keys.agent,
        role: keys.role,
        cli: keys.cli,
        blocked_by: Vec::new(),
        wave: 0,
        artifacts: unique(keys.artifacts),
        accept: keys.accept,
        environments: unique(keys.environments),
        reading: keys.reading,
        timeout_ms: keys.timeout_ms,
        attempts: keys.attempts,
        priority: keys.priority.unwrap_or(0),
        done: keys.done,
        line: 0,
    };
    Draft { task, id_span, blockers: keys.blocked_by, wave, proof_broken: keys.proof_broken }
}

/// Warns that only an agent's word will show that a task is complete.
pub(super) fn warn_if_unproven(draft: &Draft, problems: &mut Problems) {
    if draft.task.is_unproven() && !draft.proof_broken && !draft.task.done {
        let message =
            format!("{} has neither checks nor artifacts: its agent's word is enough", quote(draft.task.id.as_str()));
        problems.warning("unproven", draft.id_span, message).hint("add `- accept: COMMAND` or `- artifacts: FILE`");
    }
}

/// Each value once, in order of first occurrence.
fn unique(values: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut values = values;
    values.retain(|value| seen.insert(value.clone()));
    values
}

/// The drafts are in text order, so one pass finds all their lines.
pub(super) fn number_lines(text: &str, drafts: &mut [Draft]) {
    let mut place = Location::new(text);
    for draft in drafts {
        draft.task.line = place.advance_to(draft.id_span.start).0;
    }
}

/// Text of the plan that is kept as it was written.
#[derive(Debug)]
pub(super) struct Passage {
    pub(super) range: Range<usize>,
    /// Where its heading ends, if the heading is kept only together with text below it.
    pub(super) heading_end: Option<usize>,
}

impl From<Range<usize>> for Passage {
    fn from(range: Range<usize>) -> Passage {
        let heading_end = None;
        Passage { range, heading_end }
    }
}

/// Passages as one text: as written, without what is cut out and without blank lines at either end. Line ends are
/// `\n` whatever the file has.
pub(super) fn prose(text: &str, passages: &[Passage], cuts: &[Range<usize>]) -> String {
    let mut parts = Vec::new();
    let mut cuts = cuts.iter().peekable();
    for Passage { range, heading_end } in passages {
        let mut kept: Vec<Range<usize>> = Vec::new();
        let mut from = range.start;
        while let Some(cut) = cuts.next_if(|cut| cut.start < range.end) {
            if cut.start >= from {
                kept.push(from..cut.start);
                from = cut.end.min(range.end);
            }
        }
        kept.push(from..range.end);
        let says = |piece: &Range<usize>| {
            let from = heading_end.unwrap_or(0).clamp(piece.start, piece.end);
            !text[from..piece.end].trim().is_empty()
        };
        if kept.iter().any(says) {
            let part: String = kept.into_iter().map(|piece| &text[piece]).collect();
            parts.push(without_blank_ends(&part.replace("\r\n", "\n")).to_owned());
        }
    }
    parts.join("\n\n")
}

/// Leading indentation is kept: it means something in Markdown.
fn without_blank_ends(text: &str) -> &str {
    let text = text.trim_end();
    let content = text.len() - text.trim_start().len();
    let line = text[..content].rfind('\n').map_or(0, |found| found + 1);
    &text[line..]
}
