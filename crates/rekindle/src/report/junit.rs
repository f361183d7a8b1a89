//! The report on a run as JUnit XML, which every CI shows: a wave is a test suite, a task a test case. Failed attempts are
//! written as surefire writes reruns: `flakyFailure` if the task is complete in the end, `rerunFailure` if not.

use std::collections::BTreeMap;
use std::time::Duration;

use quick_junit::{NonSuccessKind, SerializeError, TestCase, TestCaseStatus, TestRerun, TestSuite, XmlString};
use rekindle_core::report::Evidence;
use rekindle_core::text::{one_line, sanitize, tail_bytes};

use super::{Failure, Report, TaskReport};
use crate::ui::{elapsed, stamp};

/// Longest text in an attribute.
const ATTRIBUTE_MAX_BYTES: usize = 500;

/// How much of a check's output is kept.
const OUTPUT_MAX_BYTES: usize = 64 * 1024;

/// Replaces a tab.
const TAB: &str = "    ";

pub(crate) fn render(report: &Report) -> Result<String, SerializeError> {
    let mut waves: BTreeMap<u32, Vec<&TaskReport>> = BTreeMap::new();
    for task in &report.tasks {
        waves.entry(task.row.wave).or_default().push(task);
    }
    let mut all = quick_junit::Report::new(attribute(&report.run.title));
    all.set_time(worked(&report.tasks));
    for (wave, tasks) in waves {
        let mut suite = TestSuite::new(format!("wave {wave}"));
        suite.set_time(worked(tasks.iter().copied()));
        let began = stamp(report.run.started_at);
        suite.extra.insert("timestamp".into(), began.trim_end_matches('Z').into());
        suite.add_test_cases(tasks.iter().map(|task| case(&report.run.plan, task)));
        all.add_test_suite(suite);
    }
    all.to_string()
}

fn worked<'a>(tasks: impl IntoIterator<Item = &'a TaskReport>) -> Duration {
    Duration::from_millis(tasks.into_iter().fold(0, |sum, task| sum.saturating_add(task.worked_ms)))
}

fn case(plan: &str, task: &TaskReport) -> TestCase {
    let name = format!("{}: {}", task.row.id, task.row.title);
    let mut case = TestCase::new(attribute(&name), status(task));
    case.set_classname(attribute(plan)).set_time(Duration::from_millis(task.worked_ms));
    let told = output(task);
    if !told.is_empty() {
        case.set_system_out(content(&told));
    }
    case
}

fn status(task: &TaskReport) -> TestCaseStatus {
    let row = &task.row;
    let skipped = |how: &str| {
        let why = row.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        // The outcome of an open task's attempts is undecided: they are left out.
        let mut status = TestCaseStatus::skipped();
        status.set_message(attribute(&format!("{how}{why}")));
        status
    };
    match row.state.as_str() {
        "complete" => {
            let mut status = TestCaseStatus::success();
            status.add_reruns(task.failures.iter().map(rerun));
            status
        }
        "failed" => failed(task),
        "skipped" => skipped("skipped"),
        state => skipped(&format!("not finished, {}", state.replace('_', " "))),
    }
}

fn failed(task: &TaskReport) -> TestCaseStatus {
    let (row, last) = (&task.row, task.failures.last());
    let earlier = &task.failures[..task.failures.len().saturating_sub(1)];
    // The last attempt that ended decides whether the work or the machine was at fault.
    let mut status = TestCaseStatus::non_success(earlier.last().map_or(NonSuccessKind::Failure, kind));
    let reason = row.reason.as_deref().unwrap_or("it failed");
    let cause = row.cause.as_deref().or(last.map(|failure| failure.cause.as_str())).unwrap_or("failed");
    let proof = row.evidence.as_ref().filter(|evidence| !evidence.passed()).map(Evidence::complaint);
    let body = proof.unwrap_or_else(|| last.map_or(reason.to_owned(), |failure| failure.text.clone()));
    status.set_message(attribute(reason)).set_type(attribute(cause)).set_description(content(&body));
    status.add_reruns(earlier.iter().map(rerun));
    status
}

fn rerun(failure: &Failure) -> TestRerun {
    let mut rerun = TestRerun::new(kind(failure));
    rerun.set_message(attribute(&failure.text)).set_type(attribute(&failure.cause));
    rerun.set_stack_trace(content(&failure.text));
    rerun
}

fn kind(failure: &Failure) -> NonSuccessKind {
    if failure.infrastructure { NonSuccessKind::Error } else { NonSuccessKind::Failure }
}

/// The result in the agent's words, and what the last checks printed.
fn output(task: &TaskReport) -> String {
    let mut out = String::new();
    if let Some(result) = &task.row.result {
        out += &format!("{result}\n");
    }
    if let Some((_, words)) = task.row.doubt() {
        out += &format!("{words}\n");
    }
    let evidence = task.row.evidence.iter();
    for check in evidence.clone().flat_map(|evidence| &evidence.checks) {
        let how = match (check.timed_out, check.code) {
            (true, _) => "timed out".to_owned(),
            (false, Some(code)) => format!("exited with {code}"),
            (false, None) => "was killed".to_owned(),
        };
        out += &format!("$ {}\n{how} after {}\n", check.command, elapsed(check.took_ms));
        let printed = tail_bytes(check.output.trim_end(), OUTPUT_MAX_BYTES);
        if !printed.is_empty() {
            out += &format!("{printed}\n");
        }
    }
    for file in evidence.flat_map(|evidence| &evidence.missing_artifacts) {
        out += &format!("missing artifact: {file}\n");
    }
    out
}

/// An attribute's value: one line of bounded length.
fn attribute(text: &str) -> XmlString {
    content(&one_line(text, ATTRIBUTE_MAX_BYTES))
}

/// Text between tags, without characters that XML 1.0 does not allow. The library drops tabs: spaces keep columns apart.
fn content(text: &str) -> XmlString {
    XmlString::new(sanitize(text).replace(['\u{fffe}', '\u{ffff}'], "").replace('\t', TAB))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_xml_has_a_place_for_is_left() {
        let hostile = "]]>\u{0}\u{b}\u{1b}[31m\u{fffe}\u{ffff}\u{85}<a b='\"'>&\u{7f}é\u{10ffff}\n\tx";
        let mut suite = TestSuite::new(attribute("a\n\tb\""));
        suite.set_system_out(content(hostile)).set_time(Duration::from_millis(61_005));
        let mut report = quick_junit::Report::new("");
        report.add_test_suite(suite);
        let xml = report.to_string().expect("XML");
        assert!(xml.contains("name=\"a b&quot;\"") && xml.contains("time=\"61.005\""), "{xml}");
        let told = xml.split("<system-out>").nth(1).and_then(|rest| rest.split("</system-out>").next());
        assert_eq!(told, Some("]]&gt;&lt;a b=&apos;&quot;&apos;&gt;&amp;é\u{10ffff}\n    x"), "{xml}");
    }
}
