//! A run's account as JUnit XML, which every CI shows: a wave is a test suite, a task a test case. Attempts that came to
//! nothing are told as surefire tells reruns: `flakyFailure` where the task is complete in the end, `rerunFailure` where not.

use std::collections::BTreeMap;
use std::fmt::Write;

use rekindle_core::report::Evidence;
use rekindle_core::text::{one_line, sanitize, tail_bytes};

use super::{Failure, Report, TaskReport};
use crate::ui::{elapsed, stamp};

/// Longest text in an attribute.
const ATTRIBUTE_MAX_BYTES: usize = 500;

/// How much of a check's output is kept.
const OUTPUT_MAX_BYTES: usize = 64 * 1024;

/// Counts of one suite or of all.
#[derive(Clone, Copy, Default)]
struct Sums {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    ms: u64,
}

/// How a task is told.
enum Verdict<'a> {
    Passed,
    Failed(Option<&'a Failure>),
    Skipped(String),
}

/// The account as XML.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut waves: BTreeMap<u32, Vec<&TaskReport>> = BTreeMap::new();
    for task in &report.tasks {
        waves.entry(task.row.wave).or_default().push(task);
    }
    let mut all = Sums::default();
    let mut suites = String::new();
    for (wave, tasks) in waves {
        let mut sums = Sums::default();
        let mut cases = String::new();
        for task in tasks {
            case(&mut cases, &report.run.plan, task, &mut sums);
        }
        let name = format!("wave {wave}");
        let stamp = stamp(report.run.started_at);
        let _ = writeln!(
            suites,
            "  <testsuite name={}{} timestamp={}>",
            attribute(&name),
            sums.attributes(),
            attribute(stamp.trim_end_matches('Z'))
        );
        suites += &cases;
        suites += "  </testsuite>\n";
        all.add(sums);
    }
    let name = attribute(&report.run.title);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name={name}{}>\n{suites}</testsuites>\n",
        all.attributes()
    )
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.tests += other.tests;
        self.failures += other.failures;
        self.errors += other.errors;
        self.skipped += other.skipped;
        self.ms = self.ms.saturating_add(other.ms);
    }

    fn attributes(self) -> String {
        format!(
            " tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\"",
            self.tests,
            self.failures,
            self.errors,
            self.skipped,
            seconds(self.ms)
        )
    }
}

fn case(out: &mut String, plan: &str, task: &TaskReport, sums: &mut Sums) {
    let row = &task.row;
    sums.tests += 1;
    sums.ms = sums.ms.saturating_add(task.worked_ms);
    let name = format!("{}: {}", row.id, row.title);
    let _ = writeln!(
        out,
        "    <testcase name={} classname={} time=\"{}\">",
        attribute(&name),
        attribute(plan),
        seconds(task.worked_ms)
    );
    let verdict = verdict(task);
    let earlier = match &verdict {
        Verdict::Failed(Some(_)) => &task.failures[..task.failures.len() - 1],
        _ => &task.failures[..],
    };
    match &verdict {
        Verdict::Passed => {}
        Verdict::Failed(last) => {
            // The last attempt that ended tells whether the work or the machine was at fault.
            let infrastructure = earlier.last().is_some_and(|failure| failure.infrastructure);
            let element = if infrastructure { "error" } else { "failure" };
            *(if infrastructure { &mut sums.errors } else { &mut sums.failures }) += 1;
            let reason = row.reason.as_deref().unwrap_or("it failed");
            let kind = row.cause.as_deref().or(last.map(|failure| failure.cause.as_str())).unwrap_or("failed");
            let body = row.evidence.as_ref().filter(|evidence| !evidence.passed()).map(Evidence::complaint);
            let _ = writeln!(
                out,
                "      <{element} message={} type={}>{}</{element}>",
                attribute(reason),
                attribute(kind),
                content(&body.unwrap_or_else(|| last.map_or(reason.to_owned(), |failure| failure.text.clone())))
            );
        }
        Verdict::Skipped(why) => {
            sums.skipped += 1;
            let _ = writeln!(out, "      <skipped message={}/>", attribute(why));
        }
    }
    reruns(out, &verdict, earlier);
    let told = output(task);
    if !told.is_empty() {
        let _ = writeln!(out, "      <system-out>{}</system-out>", content(&told));
    }
    out.push_str("    </testcase>\n");
}

fn reruns(out: &mut String, verdict: &Verdict<'_>, earlier: &[Failure]) {
    // An open task is neither: what became of its attempts is not decided.
    let prefix = match verdict {
        Verdict::Passed => Some("flaky"),
        Verdict::Failed(_) => Some("rerun"),
        Verdict::Skipped(_) => None,
    };
    for (prefix, failure) in prefix.iter().flat_map(|prefix| earlier.iter().map(move |failure| (prefix, failure))) {
        let element = format!("{prefix}{}", if failure.infrastructure { "Error" } else { "Failure" });
        let _ = writeln!(
            out,
            "      <{element} message={} type={}><stackTrace>{}</stackTrace></{element}>",
            attribute(&failure.text),
            attribute(&failure.cause),
            content(&failure.text)
        );
    }
}

fn verdict(task: &TaskReport) -> Verdict<'_> {
    let row = &task.row;
    let why = || row.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    match row.state.as_str() {
        "complete" => Verdict::Passed,
        "failed" => Verdict::Failed(task.failures.last()),
        "skipped" => Verdict::Skipped(format!("skipped{}", why())),
        state => Verdict::Skipped(format!("not finished, {}{}", state.replace('_', " "), why())),
    }
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

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// A quoted attribute value.
fn attribute(text: &str) -> String {
    format!("\"{}\"", content(&one_line(text, ATTRIBUTE_MAX_BYTES)))
}

/// Text between tags, without what XML 1.0 has no place for.
fn content(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in sanitize(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_xml_has_a_place_for_is_left() {
        let hostile = "]]>\u{0}\u{b}\u{1b}[31m\u{fffe}\u{ffff}\u{85}<a b='\"'>&\u{7f}é\u{10ffff}\n\tx";
        assert_eq!(content(hostile), "]]&gt;&lt;a b=&apos;&quot;&apos;&gt;&amp;é\u{10ffff}\n\tx");
        assert_eq!(attribute("a\n\tb\""), "\"a b&quot;\"");
        assert_eq!((seconds(0).as_str(), seconds(61_005).as_str()), ("0.000", "61.005"));
    }
}
