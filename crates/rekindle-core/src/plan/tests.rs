//! Tests of the plan language as a whole: whole plans in, whole plans or whole lists of problems out.

mod graphs;
mod malformed;
mod properties;
mod readiness;
mod shapes;
mod written;

use super::{Parsed, Plan, Severity, parse};

/// A plan that must be usable.
fn plan(text: &str) -> Plan {
    let parsed = parse("file", text.as_bytes());
    let found = problems(&parsed);
    parsed.plan.unwrap_or_else(|| panic!("usable, but:\n{found}"))
}

/// All problems, one a line: place, severity, code, message, and the hint after a slash.
fn problems(parsed: &Parsed) -> String {
    let lines = parsed.problems.iter().map(|p| {
        let severity = match p.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let hint = p.hint.as_ref().map_or(String::new(), |hint| format!(" / {hint}"));
        format!("{}:{} {severity}[{}] {}{hint}", p.line, p.column, p.code, p.message)
    });
    lines.collect::<Vec<_>>().join("\n")
}
