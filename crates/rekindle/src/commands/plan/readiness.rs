//! A plan's readiness in lines for a person: the score, then one line for each sort of finding.

use rekindle_core::plan::{Finding, Readiness};

/// Most tasks that one line names.
const NAMED_MAX: usize = 8;

/// The name of each sort, and whether its messages say more than the name.
const SORTS: [(&str, &str, bool); 5] = [
    ("no-check", "nothing proves", false),
    ("check-cannot-fail", "checks that cannot fail", true),
    ("vague", "vague", true),
    ("too-large", "too large", true),
    ("shared-file", "no order between", true),
];

pub(super) fn lines(readiness: &Readiness) -> Vec<String> {
    let mut lines = vec![format!("readiness: {} of 100", readiness.score)];
    for (code, name, told) in SORTS {
        let found: Vec<&Finding> = readiness.findings.iter().filter(|finding| finding.code == code).collect();
        if found.is_empty() {
            continue;
        }
        let mut named: Vec<String> = found.iter().take(NAMED_MAX).map(|finding| one(finding, told)).collect();
        if found.len() > NAMED_MAX {
            named.push(format!("{} more", found.len() - NAMED_MAX));
        }
        lines.push(format!("  {name}: {}", named.join(if told { "; " } else { ", " })));
    }
    lines
}

fn one(finding: &Finding, told: bool) -> String {
    let tasks = finding.tasks.join(" and ");
    if told { format!("{tasks} ({})", finding.message) } else { tasks }
}
