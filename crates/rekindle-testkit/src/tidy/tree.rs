//! The repository as a tree: names of files, their opening comments, what no tracked file may mention, links that lead
//! somewhere, how many packages we depend on.

use std::collections::BTreeMap;

use super::source::{Source, words};
use super::{Finding, Repo};

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["utils", "util", "helpers", "helper", "manager", "managers", "common", "misc"];
/// Words an opening needs before it can say what a file owns.
const OPENING_WORDS: usize = 4;
/// Packages in Cargo.lock, ours and every dependency of tests and benches included. A coordinator that must never fail
/// should fit in a reviewer's head. The client of PostgreSQL and its TLS brought 44 of them, a third of which only Windows builds.
const LOCKED_PACKAGES: usize = 345;
/// Traces of a machine the repository was built on. Written in halves, or this file would hold them.
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("../sha", "red")];

pub(super) fn check(repo: &Repo, findings: &mut Vec<Finding>) {
    for source in &repo.rust {
        names(source, findings);
        opening(source, findings);
    }
    for (path, text) in &repo.texts {
        machine_paths(path, text, findings);
        if path.ends_with(".md") && (!path.contains('/') || path.starts_with("docs/")) {
            links(path, text, &repo.texts, findings);
        }
    }
    if let Some(lock) = repo.texts.get("Cargo.lock") {
        let packages = lock.lines().filter(|line| *line == "[[package]]").count();
        if packages > LOCKED_PACKAGES {
            let what = format!("{packages} packages, at most {LOCKED_PACKAGES}");
            findings.push(Finding::new("Cargo.lock", 0, what, "a dependency is kept few: drop one"));
        }
    }
}

fn names(source: &Source, findings: &mut Vec<Finding>) {
    let why = "a name says what is inside";
    for part in source.path.trim_end_matches(".rs").split('/') {
        if EMPTY_NAMES.contains(&part) {
            findings.push(Finding::new(&source.path, 0, format!("the name `{part}`"), why));
        }
    }
    if source.path.ends_with("/mod.rs") {
        let why = "`foo.rs` beside `foo/`, so that every tab has its own name";
        findings.push(Finding::new(&source.path, 0, "a file called `mod.rs`", why));
    }
    let mut previous = "";
    for (at, word) in words(&source.code) {
        if previous == "mod" && EMPTY_NAMES.contains(&word) {
            findings.push(Finding::new(&source.path, source.line(at), format!("the module `{word}`"), why));
        }
        previous = word;
    }
}

fn opening(source: &Source, findings: &mut Vec<Finding>) {
    let said: usize = source
        .text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| line.split_whitespace().count())
        .sum();
    if said < OPENING_WORDS {
        let why = "a file opens with `//!`: what it decides or owns, and what it leaves to others";
        findings.push(Finding::new(&source.path, 1, "no opening", why));
    }
}

fn machine_paths(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (index, line) in text.lines().enumerate() {
        for needle in MACHINE_PATHS {
            // `network/…` and `{root}/…` are relative; a path that starts here is the machine's.
            let starts_here =
                |at: usize| !line[..at].ends_with(|before: char| before.is_alphanumeric() || "._-})*".contains(before));
            if line.match_indices(needle).any(|(at, _)| starts_here(at)) {
                let why = "the repository stands alone, on any machine";
                findings.push(Finding::new(path, index + 1, format!("`{needle}`"), why));
            }
        }
    }
}

fn links(path: &str, text: &str, files: &BTreeMap<String, String>, findings: &mut Vec<Finding>) {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for target in targets(line) {
            let Some(file) = resolve(folder, &target) else {
                continue;
            };
            let inside = format!("{file}/");
            let exists = file.is_empty()
                || files.contains_key(&file)
                || files.range(inside.clone()..).next().is_some_and(|(name, _)| name.starts_with(&inside));
            if !exists {
                let what = format!("a link to `{target}`");
                findings.push(Finding::new(path, index + 1, what, "no tracked file is there"));
            }
        }
    }
}

/// What a line of Markdown links to: inline links, definitions, and HTML's `src` and `href`.
fn targets(line: &str) -> Vec<String> {
    // Odd parts are between backticks: they are shown, not linked.
    let prose: Vec<&str> =
        line.split('`').enumerate().map(|(part, text)| if part % 2 == 0 { text } else { "code" }).collect();
    let prose = prose.concat();
    let mut found = Vec::new();
    for (open, close) in [("](", &[')', ' '][..]), ("src=\"", &['"']), ("href=\"", &['"'])] {
        for (at, _) in prose.match_indices(open) {
            let rest = &prose[at + open.len()..];
            found.extend(rest.find(close).map(|end| rest[..end].to_owned()));
        }
    }
    if let Some((_, target)) = prose.split_once("]: ").filter(|_| prose.starts_with('[')) {
        found.extend(target.split_whitespace().next().map(str::to_owned));
    }
    found
}

/// The tracked path that a target means; `None` when it leads out of the repository or to a heading of the same page.
fn resolve(folder: &str, target: &str) -> Option<String> {
    let file = target.split(['#', '?']).next().unwrap_or_default();
    if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
        return None;
    }
    let mut parts: Vec<&str> = if file.starts_with('/') { Vec::new() } else { folder.split('/').collect() };
    for part in file.split('/') {
        match part {
            ".." => {
                // Above the root: kept, so that it is found missing.
                if parts.pop().is_none_or(str::is_empty) {
                    parts.push("..");
                }
            }
            "" | "." => {}
            name => parts.push(name),
        }
    }
    parts.retain(|part| !part.is_empty());
    Some(parts.join("/"))
}
