//! What became of a run's pull request, as a sentence.

use rekindle_core::pull_request::{PullRequestAction, PullRequestChange};
use rekindle_core::text::counted;

use super::Parts;
use crate::ui::{Tone, short_commit};

pub(super) fn told(change: &PullRequestChange) -> Parts {
    let PullRequestChange { action, at, points } = change;
    let (id, head) = (&at.id, short_commit(&at.head));
    let (tone, text) = match action {
        PullRequestAction::Opening => {
            (Tone::Dim, format!("of {} into {} is being opened ({})", at.branch, at.base, at.forge))
        }
        PullRequestAction::Opened => (Tone::Good, format!("{id} is open at {head}: {}", at.url)),
        PullRequestAction::Updated => (Tone::Active, format!("{id} shows {head}")),
        PullRequestAction::Reworked => {
            (Tone::Warning, format!("{id}: {} at {head} became rework", counted(points.len(), "point", "points")))
        }
        PullRequestAction::Answered => {
            (Tone::Dim, format!("{id}: {} answered", counted(points.len(), "comment", "comments")))
        }
        PullRequestAction::Merged => (Tone::Good, format!("{id} is merged at {head}: {}", at.url)),
        PullRequestAction::Closed => (Tone::Warning, format!("{id} was closed without a merge: {}", at.url)),
    };
    ("PR", tone, text)
}
