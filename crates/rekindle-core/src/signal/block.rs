//! One signal with the `Key: value` lines under it, and how they become a report.

use serde::{Deserialize, Serialize};

use super::{BLOCK_MAX_BYTES, KEY_LINES_MAX, Signal, task_of};
use crate::ids::TaskId;
use crate::report::{Checkpoint, Report};
use crate::review::{Findings, Verdict};
use crate::role::Role;
use crate::text;

/// Signals that name a task.
const ABOUT_A_TASK: [&str; 12] = [
    "TASK_COMPLETE",
    "READY_FOR_REVIEW",
    "TASK_INCOMPLETE",
    "REVIEW_PASSED",
    "REVIEW_FAILED",
    "AUDIT_PASSED",
    "AUDIT_FAILED",
    "AUDIT_BLOCKED",
    "INFRA_BLOCKED",
    "CHECKPOINT",
    "QUESTION",
    "SPLIT",
];

/// Longest key: the known ones are half as long, and a sentence with a colon in it is not a key.
const KEY_MAX_BYTES: usize = 24;

/// A signal that has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Block {
    name: String,
    subject: String,
    keys: Vec<(String, String)>,
    bytes: usize,
    lines: usize,
}

impl Block {
    /// The signal that a line is, if it is one: at column 0, with nothing else on the line.
    pub(super) fn begin(line: &str) -> Option<Self> {
        let (name, subject) = match line.split_once(':') {
            Some((name, subject)) => (name, subject.trim()),
            None => (line.trim_end(), ""),
        };
        let known = match name {
            "HEALTH_AUDIT" => matches!(subject, "HEALTHY" | "UNHEALTHY"),
            "REMEDIATION_COMPLETE" => subject.is_empty() || task_of(subject).is_some(),
            name => ABOUT_A_TASK.contains(&name) && task_of(subject).is_some(),
        };
        known.then(|| Self { name: name.to_owned(), subject: subject.to_owned(), keys: Vec::new(), bytes: 0, lines: 0 })
    }

    /// Takes a line if it belongs to the block.
    pub(super) fn take(&mut self, line: &str) -> bool {
        self.bytes = self.bytes.saturating_add(line.len());
        self.lines += 1;
        if self.bytes > BLOCK_MAX_BYTES || self.lines > KEY_LINES_MAX {
            return false;
        }
        if let Some((key, value)) = key_line(line) {
            self.keys.push((key, value.to_owned()));
            return true;
        }
        let item = line.trim_start();
        let item = item.strip_prefix("- ").or_else(|| item.strip_prefix("* "));
        match (self.keys.last_mut(), item) {
            (Some((key, value)), Some(item)) if is_list(key) => {
                if !value.is_empty() {
                    value.push('\n');
                }
                value.push_str(item.trim());
                true
            }
            _ => false,
        }
    }

    /// What the block says, now that it is over.
    pub(super) fn end(self) -> Signal {
        match (self.name.as_str(), self.subject.as_str()) {
            ("HEALTH_AUDIT", "HEALTHY") => return self.verdict(None, Role::HealthAuditor, Verdict::Pass),
            ("HEALTH_AUDIT", "UNHEALTHY") => return self.verdict(None, Role::HealthAuditor, Verdict::Fail),
            ("REMEDIATION_COMPLETE", subject) => {
                return self.verdict(task_of(subject), Role::Remediation, Verdict::Pass);
            }
            _ => {}
        }
        let Some(task) = task_of(&self.subject) else {
            return self.other();
        };
        match self.name.as_str() {
            "REVIEW_PASSED" => self.verdict(Some(task), Role::Critic, Verdict::Pass),
            "REVIEW_FAILED" => self.verdict(Some(task), Role::Critic, Verdict::Fail),
            "AUDIT_PASSED" => self.verdict(Some(task), Role::Auditor, Verdict::Pass),
            "AUDIT_FAILED" => self.verdict(Some(task), Role::Auditor, Verdict::Fail),
            "AUDIT_BLOCKED" => self.verdict(Some(task), Role::Auditor, Verdict::Blocked),
            "TASK_COMPLETE" | "READY_FOR_REVIEW" => {
                Signal::Report(Report::Done { task, result: self.first(&["result", "summary", "status"]) })
            }
            "TASK_INCOMPLETE" => Signal::Report(self.given_up(task)),
            "INFRA_BLOCKED" => Signal::Report(self.in_the_way(task)),
            "CHECKPOINT" => Signal::Report(Report::Checkpoint { task, checkpoint: self.checkpoint() }),
            "QUESTION" => self.question(task),
            "SPLIT" => self.split(task),
            _ => self.other(),
        }
    }

    fn given_up(&self, task: TaskId) -> Report {
        let reason = self.first(&["reason", "result", "status"]).unwrap_or_else(|| "it gave no reason".to_owned());
        Report::Fail { task, reason }
    }

    /// A broken machine is for a person to fix: asking costs no attempt, giving up would.
    fn in_the_way(&self, task: TaskId) -> Report {
        let reason = self.first(&["reason", "issues", "question", "result", "status"]);
        let reason = reason.unwrap_or_else(|| "it did not say how".to_owned());
        Report::Ask {
            task,
            text: format!("the infrastructure is in the way: {reason}. See to it, then answer `done`"),
            options: self.list("options"),
            context: self.first(&["context", "required", "required fixes"]).unwrap_or_default(),
        }
    }

    fn verdict(&self, task: Option<TaskId>, role: Role, verdict: Verdict) -> Signal {
        let issues = self.points(&["issues", "issue", "reason"]);
        let required = self.points(&["required", "required fixes", "required_fixes", "fixes"]);
        let passed = self.points(&["passed"]);
        Signal::Report(Report::Verdict { task, role, verdict, findings: Findings { issues, required, passed } })
    }

    /// Points of a verdict: one per line, or separated by `;`. They are sentences, so a comma does not separate them.
    fn points(&self, names: &[&str]) -> Vec<String> {
        let lines = names.iter().flat_map(|name| self.values(name)).flat_map(str::lines);
        let clean = lines.map(|line| text::sanitize(line).into_owned());
        let points = clean.flat_map(|line| split(&line, ';').into_iter().map(str::to_owned).collect::<Vec<_>>());
        points.map(|point| point.trim().to_owned()).filter(|point| !is_nothing(point)).collect()
    }

    fn checkpoint(&self) -> Checkpoint {
        let progress = self.first(&["progress"]).and_then(|text| {
            let digits = text.trim_end_matches('%').trim();
            digits.parse::<u8>().ok().filter(|percent| *percent <= 100)
        });
        Checkpoint {
            status: self.first(&["status", "result"]).unwrap_or_default(),
            completed: self.list("completed"),
            remaining: self.list("remaining"),
            files: self.list("files"),
            progress,
        }
    }

    /// A question without a text asks nothing, so it is not passed to a person.
    fn question(self, task: TaskId) -> Signal {
        let Some(text) = self.first(&["question", "reason", "status"]) else {
            return self.other();
        };
        Signal::Report(Report::Ask {
            task,
            text,
            options: self.list("options"),
            context: self.first(&["context"]).unwrap_or_default(),
        })
    }

    fn split(self, task: TaskId) -> Signal {
        let subtasks = self.list("subtasks");
        if subtasks.is_empty() {
            return self.other();
        }
        Signal::Report(Report::Split { task, subtasks })
    }

    fn other(self) -> Signal {
        let keys = self.keys.into_iter().map(|(key, value)| (key, text::sanitize(&value).into_owned())).collect();
        Signal::Other { name: self.name, subject: self.subject, keys }
    }

    /// The first of these keys that has a value; a key given twice has it on two lines.
    fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| {
            let values: Vec<_> = self
                .values(name)
                .map(|value| text::sanitize(value).trim().to_owned())
                .filter(|value| !value.is_empty())
                .collect();
            (!values.is_empty()).then(|| values.join("\n"))
        })
    }

    fn list(&self, name: &str) -> Vec<String> {
        self.values(name).flat_map(str::lines).flat_map(items).collect()
    }

    fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.keys.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

fn is_list(key: &str) -> bool {
    matches!(
        key,
        "completed"
            | "remaining"
            | "files"
            | "options"
            | "subtasks"
            | "issues"
            | "issue"
            | "required"
            | "required fixes"
            | "required_fixes"
            | "fixes"
            | "passed"
    )
}

/// Whether a point says that there is none.
fn is_nothing(point: &str) -> bool {
    matches!(point.trim_end_matches('.').to_ascii_lowercase().as_str(), "" | "none" | "-" | "n/a" | "nothing")
}

/// `Key: value` at column 0, with a key of letters and blanks. `https://…` is not one: the colon is followed by a blank or
/// by nothing.
fn key_line(line: &str) -> Option<(String, &str)> {
    let (key, value) = line.split_once(':')?;
    let letters = key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, ' ' | '_' | '-'));
    let spaced = value.is_empty() || value.starts_with([' ', '\t']);
    (letters && spaced && key.len() <= KEY_MAX_BYTES).then(|| (key.trim().to_ascii_lowercase(), value.trim()))
}

/// The items of one line: separated by `;` if there is one, else by `,`, never inside brackets, quotes or backticks.
fn items(line: &str) -> Vec<String> {
    let clean = text::sanitize(line);
    let found = split(&clean, ';');
    let found = if found.len() > 1 { found } else { split(&clean, ',') };
    found.into_iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

fn split(line: &str, mark: char) -> Vec<&str> {
    let (mut depth, mut quote, mut from) = (0_usize, None, 0);
    let mut parts = Vec::new();
    for (at, c) in line.char_indices() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '`', None) => quote = Some(c),
            ('(' | '[' | '{', None) => depth += 1,
            (')' | ']' | '}', None) => depth = depth.saturating_sub(1),
            (c, None) if c == mark && depth == 0 => {
                parts.push(&line[from..at]);
                from = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&line[from..]);
    parts
}
