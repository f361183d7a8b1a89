//! Warnings of one sort as one: the first with its place, how many there are and on which lines. Programs get all of them.

use super::problem::{Problem, Severity};

/// Maximum number of lines that a folded warning names.
const LINES_MAX: usize = 12;

/// Problems as shown to a person: each error on its own, warnings of one sort together.
pub fn folded(problems: &[Problem]) -> Vec<Problem> {
    let mut shown: Vec<Problem> = Vec::new();
    for problem in problems {
        let is_repeated = |earlier: &Problem| earlier.severity == Severity::Warning && earlier.code == problem.code;
        if problem.severity == Severity::Error || !shown.iter().any(is_repeated) {
            shown.push(problem.clone());
        }
    }
    for first in shown.iter_mut().filter(|problem| problem.severity == Severity::Warning) {
        let alike =
            problems.iter().filter(|problem| problem.severity == Severity::Warning && problem.code == first.code);
        let mut lines: Vec<String> = alike.map(|problem| problem.line.to_string()).skip(1).collect();
        let more = lines.len();
        if more == 0 {
            continue;
        }
        lines.truncate(LINES_MAX);
        let rest = if more > LINES_MAX { ", …" } else { "" };
        let on = if more == 1 { "line" } else { "lines" };
        first.message = format!("{}; {more} more like it, on {on} {}{rest}", first.message, lines.join(", "));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::parse;

    #[test]
    fn warnings_of_one_sort_are_one_with_their_lines() {
        let text = "# P\n### T1: one\nx\n### T2: two\ny\n### T3: three\nz\n- role: x\n";
        let parsed = parse("p", text.as_bytes());
        let shown: Vec<(u32, String)> = folded(&parsed.problems).into_iter().map(|p| (p.line, p.message)).collect();
        let expected =
            "`T1` has neither checks nor artifacts: its agent's word is enough; 2 more like it, on lines 4, 6"
                .to_owned();
        assert_eq!(shown, [(2, expected)]);
        let many: String = (1..=40).map(|n| format!("### T{n}: task\nx\n")).collect();
        let parsed = parse("p", many.as_bytes());
        let shown = folded(&parsed.problems);
        assert_eq!(shown.len(), 1);
        assert!(
            shown[0].message.ends_with("39 more like it, on lines 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, …"),
            "{}",
            shown[0].message
        );
    }

    #[test]
    fn errors_stay_each() {
        let parsed = parse("p", b"# P\n### T1: one\n- acept: x\n### T2: two\n- acept: y\n");
        assert_eq!(folded(&parsed.problems).iter().filter(|p| p.severity == Severity::Error).count(), 2);
    }
}
