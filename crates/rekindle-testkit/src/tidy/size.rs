//! How long a file and a function may be. When a file reaches the limit, split off a subject.

use super::{Finding, Repo, place};

/// Lines of a file without its tests: what a reader holds in mind at one sitting.
const FILE_LINES: usize = 500;
/// Lines of a function: one screen.
const FUNCTION_LINES: usize = 70;

pub(super) fn check(repo: &Repo, findings: &mut Vec<Finding>) {
    for source in &repo.rust {
        let lines = source.lines_without_tests();
        if lines > FILE_LINES && !place::is_test(&source.path) {
            let what = format!("{lines} lines without tests");
            findings.push(Finding::new(&source.path, 0, what, "at most 500: split a subject off"));
        }
        for function in source.functions() {
            let lines = source.function_lines(&function);
            if lines > FUNCTION_LINES {
                let what = format!("function `{}` has {lines} lines", function.name);
                let line = source.line(function.range.start);
                findings.push(Finding::new(&source.path, line, what, "at most 70: name its parts"));
            }
        }
    }
}
