//! What agents that judge the work of others are told: critic, auditor, health auditor. Also what an agent that repairs the
//! plan's health is asked to do. Verdicts and results are the words of others and go behind the fence.

use std::fmt::Write;

use super::facts::Facts;
use super::rework::list;
use crate::review::{GivenVerdict, Verdict};
use crate::role::Role;
use crate::text::{counted, one_line};

/// Longest name of a kind of issue.
const CATEGORY_MAX_BYTES: usize = 80;

/// What the developer says it did.
pub(crate) fn result(facts: &Facts) -> String {
    facts.review.result.clone().filter(|_| facts.role.reviews()).unwrap_or_default()
}

/// What reviewers said before, newest last.
pub(crate) fn verdicts(facts: &Facts) -> String {
    let mut out = String::new();
    for given in &facts.review.verdicts {
        let _ = writeln!(out, "{}", signal(given));
        list(&mut out, "Issues", &given.findings.issues);
        list(&mut out, "Required Fixes", &given.findings.required);
        list(&mut out, "Passed", &given.findings.passed);
    }
    out
}

/// A verdict by the name of its signal.
fn signal(given: &GivenVerdict) -> &'static str {
    match (given.role, given.verdict) {
        (Role::Critic, Verdict::Pass) => "The critic: REVIEW_PASSED",
        (Role::Critic, _) => "The critic: REVIEW_FAILED",
        (Role::HealthAuditor, Verdict::Pass) => "The health auditor: HEALTHY",
        (Role::HealthAuditor, _) => "The health auditor: UNHEALTHY",
        (_, Verdict::Pass) => "The auditor: AUDIT_PASSED",
        (_, Verdict::Fail) => "The auditor: AUDIT_FAILED",
        (_, Verdict::Blocked) => "The auditor: AUDIT_BLOCKED",
    }
}

pub(crate) fn focus(facts: &Facts) -> String {
    let mut out = String::new();
    for area in &facts.review.focus {
        let _ = writeln!(
            out,
            "- {} (missed {})",
            one_line(&area.category, CATEGORY_MAX_BYTES),
            counted(area.misses, "time", "times")
        );
        for example in &area.examples {
            let _ = writeln!(out, "  for example: {example}");
        }
    }
    out
}

/// What a role is asked beyond what every agent is asked; nothing for a developer.
pub(super) fn steps(facts: &Facts) -> Vec<String> {
    let task = facts.current().map_or("the task", |task| task.id.as_str());
    match facts.role {
        Role::Developer => Vec::new(),
        Role::Remediation => vec![
            "Find the cause before you change anything: run the failing commands and read what they say.".to_owned(),
            "Repair the cause with the smallest change that is right. Do not weaken, skip or remove the commands or what they \
             test, and leave the tasks of the plan to others."
                .to_owned(),
        ],
        Role::Critic => critic(task),
        Role::Auditor => auditor(facts, task),
        Role::HealthAuditor => vec![
            "Run every `accept` command above yourself and read what it says: just run the checks, repair nothing.".to_owned(),
            "See that the cause was repaired, not hidden: no command weakened, no test removed or skipped.".to_owned(),
            NO_CHANGES.to_owned(),
            "Give your verdict: pass when all of them are sound, fail with what is not.".to_owned(),
        ],
    }
}

/// What every reviewer is told.
const NO_CHANGES: &str = "Change no files, commit nothing and leave nothing behind: you judge, others fix. Files that the \
    checks themselves create do not matter.";

fn critic(task: &str) -> Vec<String> {
    vec![
        format!("Read what {task} asks for, then the work itself: the changed files, `git diff` and `git log` where there is git."),
        "Judge whether it does what was asked, all of it and nothing else; whether it is correct, also for odd input and when \
         things fail; whether it is as simple as it can be, fits the code around it and is tested. Look for yourself: what the \
         developer says is a claim."
            .to_owned(),
        NO_CHANGES.to_owned(),
        "Fail it only for what has to be changed. Describe every issue so that it can be fixed without asking you: where, what, \
         why; under required what has to be done; under passed what is good and must stay. Taste is not an issue."
            .to_owned(),
        "Give one verdict, then end your turn: nothing else is expected of you.".to_owned(),
    ]
}

fn auditor(facts: &Facts, task: &str) -> Vec<String> {
    let places = match facts.review.environments.as_slice() {
        [] => String::new(),
        names => format!(" in every environment ({})", names.join(", ")),
    };
    vec![
        format!(
            "Prove independently that {task} is done: take every acceptance criterion, in its text and under `accept` and \
             `artifacts`, one by one, and see with your own eyes that it holds{places}. Run the commands yourself and read what \
             they say."
        ),
        "Do not trust claims, neither the developer's nor the critic's: what you have not seen is not proven. Try what the \
         checks do not: an empty input, a wrong one, the edges of what was asked."
            .to_owned(),
        NO_CHANGES.to_owned(),
        "A criterion that does not hold fails the task, however small. Name every issue: which criterion, what you did, what \
         you saw; under required what has to be done; under passed what you have proven."
            .to_owned(),
        "If something outside the work keeps you from judging it (a service is down, a tool is missing), the verdict is \
         blocked: a person is asked to fix it."
            .to_owned(),
        "Give one verdict, then end. rekindle runs the checks itself afterwards, whatever you say.".to_owned(),
    ]
}
