//! Turns what was said about a pull request into points of rework: which comments count, and the id that identifies each.

use rekindle_core::forge::{COMMIT_IN_ID, Check, Comment};
use rekindle_core::ids::TaskId;
use rekindle_core::pull_request::{FIELD_MAX_BYTES, Point, PointKind};
use rekindle_core::text::{self, truncate_bytes};

/// Files that a conflict names.
const FILES_MAX: usize = 50;

pub(super) fn ci(id: String, check: &Check, log: &str) -> Point {
    let text = match log.trim() {
        "" => format!("no log is at hand; see {}", text::one_line(&check.url, FIELD_MAX_BYTES)),
        log => format!("the end of its log:\n{log}"),
    };
    Point { id, kind: PointKind::Ci, by: short(&check.name), place: String::new(), text, task: None }
}

pub(super) fn comment(comment: &Comment, task: Option<TaskId>) -> Point {
    let line = comment.line.map(|line| format!(":{line}")).unwrap_or_default();
    let place = comment.path.as_ref().map(|path| short(&format!("{path}{line}"))).unwrap_or_default();
    let (id, by) = (comment.id.clone(), short(&comment.by));
    Point { id, kind: PointKind::Comment, by, place, text: comment.body.clone(), task }
}

/// A point for a commit of others that conflicts with what the pull request shows.
pub(super) fn of_base(commit: &str, head: &str, text: String) -> Point {
    let id = format!("base-{}-{}", truncate_bytes(commit, COMMIT_IN_ID), truncate_bytes(head, COMMIT_IN_ID));
    Point { id, kind: PointKind::Conflict, by: String::new(), place: String::new(), text, task: None }
}

pub(super) fn conflict(remote: &str, branch: &str, commit: &str, files: &[String]) -> String {
    let files: Vec<String> = files.iter().take(FILES_MAX).map(|file| text::one_line(file, FIELD_MAX_BYTES)).collect();
    format!(
        "{remote}/{branch} has moved to {commit} and changes the same lines: {}. Run `git merge {commit}` in your worktree, bring both \
         together so that each keeps what it does, and commit the merge.",
        files.join(", ")
    )
}

pub(super) fn broken(remote: &str, branch: &str, commit: &str, command: &str, output: &str) -> String {
    format!(
        "{remote}/{branch} has moved to {commit}. Merged with it, this check fails: {command}\nIts output ends with:\n{output}\nRun \
         `git merge {commit}` in your worktree, make the check pass, and commit."
    )
}

fn short(text: &str) -> String {
    text::one_line(text, FIELD_MAX_BYTES)
}
