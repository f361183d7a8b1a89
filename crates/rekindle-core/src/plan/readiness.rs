//! How ready a plan is for unattended agents: which tasks have no proof, which checks cannot fail, which texts say too
//! little or too much, and which files two tasks touch without an order between them. Advice, never an error.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Graph, Plan, PlanTask};

/// Words below which a task's title and text together leave too much open.
const VAGUE_BELOW_WORDS: usize = 4;

/// Words above which a task is too much for one attempt: about four pages.
const LARGE_ABOVE_WORDS: usize = 1_200;

/// Items of lists above which a task is several.
const LARGE_ABOVE_ITEMS: usize = 30;

/// Artifacts above which a task is several.
const LARGE_ABOVE_ARTIFACTS: usize = 12;

/// Maximum number of pairs of tasks with a common file that are checked: each costs a walk over the plan.
const PAIRS_MAX: usize = 1_000;

/// Maximum number of findings of one sort that are kept: a person has to read them.
const FINDINGS_MAX: usize = 200;

/// Words that postpone a decision which an agent cannot ask about.
const OPEN_WORDS: [&str; 12] = [
    "tbd",
    "to be decided",
    "to be defined",
    "to be determined",
    "???",
    "somehow",
    "as needed",
    "if necessary",
    "and so on",
    "etc.",
    "something like",
    "figure out",
];

/// The findings, with what each costs of a task's hundred points.
const COSTS: [(&str, u32); 5] =
    [("no-check", 40), ("check-cannot-fail", 40), ("vague", 25), ("too-large", 20), ("shared-file", 15)];

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A stable name for the sort of finding.
    pub code: &'static str,
    /// The tasks that it is about.
    pub tasks: Vec<String>,
    /// The line of the first.
    pub line: u32,
    /// What was found: one lower-case line.
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Readiness {
    /// From 0 to 100: the mean of its open tasks.
    pub score: u32,
    /// Ordered by sort, then by plan.
    pub findings: Vec<Finding>,
}

/// Judges a plan. Tasks that are done already are left out.
pub fn readiness(plan: &Plan) -> Readiness {
    let open: Vec<&PlanTask> = plan.tasks.iter().filter(|task| !task.done).collect();
    let mut findings = Vec::new();
    for task in &open {
        if task.is_unproven() {
            findings.push(finding(
                "no-check",
                task,
                "nothing but its agent's word shows that it is complete".to_owned(),
            ));
        }
        let empty: Vec<String> =
            task.accept.iter().filter(|command| cannot_fail(command)).map(|c| format!("`{c}`")).collect();
        // Another check that can fail still proves the task, but this one was hardly intended.
        if !empty.is_empty() {
            findings.push(finding("check-cannot-fail", task, empty.join(", ")));
        }
        findings.extend(vague(task).map(|why| finding("vague", task, why)));
        findings.extend(large(task).map(|why| finding("too-large", task, why)));
    }
    findings.extend(shared_files(plan));
    let score = score(&open, &findings);
    let rank = |code: &str| COSTS.iter().position(|(of, _)| *of == code);
    findings.sort_by_key(|finding| (rank(finding.code), finding.line));
    Readiness { score, findings: bounded(findings) }
}

fn finding(code: &'static str, task: &PlanTask, message: String) -> Finding {
    Finding { code, tasks: vec![task.id.to_string()], line: task.line, message }
}

fn bounded(findings: Vec<Finding>) -> Vec<Finding> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut findings = findings;
    findings.retain(|finding| {
        let count = counts.entry(finding.code).or_default();
        *count += 1;
        *count <= FINDINGS_MAX
    });
    findings
}

fn score(open: &[&PlanTask], findings: &[Finding]) -> u32 {
    let mut lost: BTreeMap<&str, BTreeMap<&str, u32>> = BTreeMap::new();
    for finding in findings {
        let cost = COSTS.iter().find(|(code, _)| *code == finding.code).map_or(0, |(_, cost)| *cost);
        for task in &finding.tasks {
            // A sort counts once for a task, however often it was found.
            lost.entry(task).or_default().insert(finding.code, cost);
        }
    }
    let left =
        |task: &&PlanTask| 100 - lost.get(task.id.as_str()).map_or(0, |costs| costs.values().sum::<u32>()).min(100);
    let sum: u32 = open.iter().map(left).sum();
    match u32::try_from(open.len()) {
        Ok(count) if count > 0 => sum / count,
        _ => 100,
    }
}

/// Whether a command exits 0 whatever is there: `true`, `:`, `exit 0`, `echo …`, or anything that ends in `|| true`.
fn cannot_fail(command: &str) -> bool {
    let command = command.trim().trim_end_matches(';').trim();
    let last = command.rsplit("||").next().unwrap_or("").trim();
    if last.len() < command.len() && is_idle(last) {
        return true;
    }
    // Of several commands the last one decides, unless `&&` or `set -e` joins them.
    let joined = command.contains("&&") || command.contains("set -e") || command.contains("||");
    let last = if joined { command } else { command.rsplit([';', '\n']).next().unwrap_or("").trim() };
    is_idle(last) || joined && command.split("&&").all(|part| is_idle(part.trim()))
}

fn is_idle(command: &str) -> bool {
    if command.contains(['$', '`', '|', '<', '>', '&', ';']) {
        return false;
    }
    let mut words = command.split_whitespace();
    match words.next() {
        Some("true" | ":" | "/bin/true") => true,
        Some("echo" | "printf") => true,
        Some("exit") => words.next().is_none_or(|code| code == "0"),
        Some("test" | "[") => {
            words.next().is_some_and(|word| matches!(word, "1" | "true")) && words.next().is_none_or(|word| word == "]")
        }
        _ => false,
    }
}

/// Imported text is in quotes; a title may be repeated below itself.
fn said(task: &PlanTask) -> String {
    let lines = task.body.lines().map(|line| line.trim_start_matches(['>', ' ']));
    let body = lines.collect::<Vec<_>>().join("\n");
    if body.trim() == task.title.trim() { String::new() } else { body }
}

fn vague(task: &PlanTask) -> Option<String> {
    let body = said(task);
    let words = |text: &str| text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count();
    let both = words(&task.title) + words(&body);
    let proven = !task.artifacts.is_empty() || task.accept.iter().any(|command| !cannot_fail(command));
    if both < VAGUE_BELOW_WORDS && task.reading.is_empty() && !proven {
        return Some("its text hardly says what to do".to_owned());
    }
    let low = format!("{} {}", task.title, body).to_lowercase();
    let open = OPEN_WORDS.iter().find(|word| low.contains(**word))?;
    Some(format!("`{open}` leaves open what is meant"))
}

fn large(task: &PlanTask) -> Option<String> {
    let body = said(task);
    let words = body.split_whitespace().count();
    let is_item = |line: &&str| {
        let line = line.trim_start();
        let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
        line.starts_with("- ") || line.starts_with("* ") || digits.len() < line.len() && digits.starts_with(". ")
    };
    let items = body.lines().filter(is_item).count();
    match () {
        () if words > LARGE_ABOVE_WORDS => Some(format!("its text has {words} words: split it")),
        () if items > LARGE_ABOVE_ITEMS => Some(format!("its text lists {items} items: split it")),
        () if task.artifacts.len() > LARGE_ABOVE_ARTIFACTS => {
            Some(format!("it makes {} artifacts: split it", task.artifacts.len()))
        }
        () => None,
    }
}

/// The files that a task is said to touch: its artifacts, and paths in backticks in its text. Files that it only reads, or
/// that occur in a check, do not count.
fn files(task: &PlanTask) -> BTreeSet<String> {
    let mut files: BTreeSet<String> = task.artifacts.iter().cloned().collect();
    for line in said(task).lines() {
        for span in line.split('`').skip(1).step_by(2) {
            let path = span.trim().split(':').next().unwrap_or("").trim_start_matches("./");
            if is_file(path) {
                files.insert(path.to_owned());
            }
        }
    }
    files
}

/// A relative path with a folder and an extension, and no part of a command or a pattern.
fn is_file(path: &str) -> bool {
    let plain = path.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '@' | '+'));
    let name = path.rsplit('/').next().unwrap_or("");
    let ending = name.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty() && (1..=5).contains(&ending.len()) && ending.chars().all(|c| c.is_ascii_alphanumeric())
    });
    plain && ending && path.contains('/') && !path.starts_with(['/', '.', '-']) && !path.contains("..")
}

fn shared_files(plan: &Plan) -> Vec<Finding> {
    let graph = plan.graph();
    let place: BTreeMap<usize, usize> =
        graph.order().into_iter().enumerate().map(|(place, task)| (task, place)).collect();
    let mut touched: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, task) in plan.tasks.iter().enumerate().filter(|(_, task)| !task.done) {
        for file in files(task) {
            touched.entry(file).or_default().push(index);
        }
    }
    let mut findings = Vec::new();
    let mut looked = 0;
    for (file, mut tasks) in touched {
        // In an order that keeps all blockers first, it is enough to compare neighbours.
        tasks.sort_by_key(|task| place.get(task).copied());
        for pair in tasks.windows(2) {
            looked += 1;
            if looked > PAIRS_MAX {
                return findings;
            }
            let (before, after) = (&plan.tasks[pair[0]], &plan.tasks[pair[1]]);
            let waves = plan.explicit_waves && before.wave != after.wave;
            if !waves && !waits_for(&graph, pair[1], pair[0]) {
                let (first, second) = if pair[0] < pair[1] { (before, after) } else { (after, before) };
                findings.push(Finding {
                    code: "shared-file",
                    tasks: vec![first.id.to_string(), second.id.to_string()],
                    line: first.line,
                    message: format!("both touch `{file}` and neither waits for the other"),
                });
            }
        }
    }
    findings
}

/// Whether a task waits for another, directly or not.
fn waits_for(graph: &Graph, task: usize, blocker: usize) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![task];
    while let Some(next) = open.pop() {
        if next == blocker {
            return true;
        }
        open.extend(graph.blockers(next).iter().copied().filter(|before| seen.insert(*before)));
    }
    false
}
