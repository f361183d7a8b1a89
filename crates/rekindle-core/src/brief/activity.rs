//! Recent activity of the previous agent: which lines are kept when not all fit. Calls and errors first, then the newest.

use super::facts::{Activity, Facts, LineKind, Stream};
use super::fence;
use super::past::section as headed;
use crate::text;

/// Longest line: enough for a call with its arguments; a result of megabytes is folded to this.
const LINE_MAX_BYTES: usize = 800;

/// Room for one line that counts what is left out.
const GAP_BYTES: usize = 48;

/// The section, at most `room` bytes.
pub(super) fn section(facts: &Facts, room: usize) -> String {
    headed("## Recent Activity from Previous Agent\n\n", room, |room| {
        fence::wrap("output of the previous agent", room, |room| lines(&facts.activity, room))
    })
}

fn lines(activity: &[Activity], room: usize) -> String {
    let quoted: Vec<String> = activity.iter().map(quoted).collect();
    let kept = choose(activity, &quoted, room.saturating_sub(GAP_BYTES));
    let mut out = String::new();
    let mut gap = 0;
    for (line, kept) in quoted.iter().zip(&kept) {
        if !kept {
            gap += 1;
            continue;
        }
        out += &left_out(gap);
        gap = 0;
        out += line;
    }
    if !out.is_empty() {
        out += &left_out(gap);
    }
    out
}

fn quoted(line: &Activity) -> String {
    let label = match (line.kind, line.stream) {
        (LineKind::Tool, _) => "[tool] ",
        (LineKind::Error, _) => "[error] ",
        (LineKind::Plain, Stream::Err) => "[stderr] ",
        (LineKind::Plain, Stream::Out) => "",
    };
    fence::quote_line(label, text::sanitize(&line.text).trim_end(), LINE_MAX_BYTES)
}

fn left_out(lines: usize) -> String {
    match lines {
        0 => String::new(),
        1 => "| … 1 line left out …\n".to_owned(),
        lines => format!("| … {} lines left out …\n", text::grouped(lines)),
    }
}

/// Three quarters of the room for calls and errors, the rest for whatever was said last; both from the newest back. Every
/// line is charged for the gap that may stand before it.
fn choose(activity: &[Activity], quoted: &[String], room: usize) -> Vec<bool> {
    let mut kept = vec![false; quoted.len()];
    let mut used = 0;
    let weighty = |line: &Activity| line.kind != LineKind::Plain;
    for (only_weighty, limit) in [(true, room / 4 * 3), (false, room)] {
        for index in (0..quoted.len()).rev() {
            if kept[index] || (only_weighty && !weighty(&activity[index])) {
                continue;
            }
            let cost = quoted[index].len() + gap_cost(&kept, index);
            if used + cost > limit {
                break;
            }
            used += cost;
            kept[index] = true;
        }
    }
    kept
}

/// A gap stands before a kept line unless the line before it is kept too; a line that closes one costs nothing for it.
fn gap_cost(kept: &[bool], index: usize) -> usize {
    let closes = kept.get(index + 1).copied().unwrap_or(false);
    if closes { 0 } else { GAP_BYTES }
}
