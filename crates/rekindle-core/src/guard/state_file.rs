//! A guarded session's `session-state.md`: the whole session to date in at most [`MAX_BYTES`], rewritten as a whole.

use std::fmt::Write;

use super::lists;
use super::session::Session;
use crate::text::{one_line, truncate_bytes};

/// Longest file: 10 KB in the smaller of the two readings.
pub const MAX_BYTES: usize = 10_000;

/// The file's text. `key` names the session, `dir` is where it works.
pub fn render(session: &Session, key: &str, dir: &str) -> String {
    let mut out = format!("# Session State: {}\n\n- Directory: {}\n", one_line(key, 120), one_line(dir, 300));
    let (done, all) = session.progress();
    if all > 0 {
        let _ = writeln!(out, "- Progress: {done}/{all} tasks completed");
    }
    let _ = writeln!(out, "- Compactions: {}", session.compactions());
    if let Some(plan) = &session.plan_file {
        let _ = writeln!(out, "- Plan: {}", one_line(plan, 300));
    }
    let gauges = [("context", session.context_left), ("usage", session.usage_left)];
    for (what, left) in gauges.iter().filter_map(|(what, left)| Some((what, (*left)?))) {
        let _ = writeln!(out, "- Left of the {what}: {left} %");
    }
    match &session.ended {
        Some((true, reason)) => {
            let _ = writeln!(out, "- Ended: {}", one_line(reason, 80));
        }
        Some((false, reason)) => {
            let _ = writeln!(out, "- Ended unexpectedly: {}", one_line(reason, 80));
        }
        None => {}
    }
    for earlier in &session.inherits {
        let _ = writeln!(out, "- Continues: {}", one_line(earlier, 120));
    }
    let room = MAX_BYTES.saturating_sub(out.len());
    out += &lists::texts(session, room);
    truncate_bytes(&out, MAX_BYTES).to_owned()
}
