//! Imports between two top-level modules of a crate go one way. What both need belongs in the lower one or in a separate
//! module. Test code may import anything.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Repo, place};

/// The crates that this rule applies to.
const HELD: &[&str] = &["rekindle", "rekindle-core", "rekindle-engine"];

/// A line that names another module of the same crate.
struct Use<'a> {
    file: &'a str,
    line: usize,
    path: String,
}

/// The uses of one module by another: `(user, used)`.
type Uses<'a> = BTreeMap<(&'a str, &'a str), Vec<Use<'a>>>;

pub(super) fn check(repo: &Repo, findings: &mut Vec<Finding>) {
    for package in HELD {
        let uses = uses(repo, package);
        let back = |one: &str, other: &str| one < other && uses.contains_key(&(other, one));
        for (one, other) in uses.keys().filter(|(one, other)| back(one, other)) {
            findings.push(two_way(&uses, one, other));
        }
    }
}

/// Reports the direction with fewer uses, which is usually the one to turn round.
fn two_way(uses: &Uses<'_>, one: &str, other: &str) -> Finding {
    let (there, back) = (&uses[&(one, other)], &uses[&(other, one)]);
    let (few, many) = if there.len() <= back.len() { (there, back) } else { (back, there) };
    let (here, against) = (&few[0], &many[0]);
    let what = format!(
        "`{}` against `{}` in {}:{}: `{one}` and `{other}` import each other",
        here.path, against.path, against.file, against.line
    );
    let why = "modules import one way: move what both need into the lower one or into a module of its own";
    Finding::new(here.file, here.line, what, why)
}

fn uses<'a>(repo: &'a Repo, package: &str) -> Uses<'a> {
    let root = format!("crates/{package}/src/");
    let inside = repo.rust.iter().filter_map(|source| Some((source, source.path.strip_prefix(&root)?)));
    let files: Vec<_> = inside.filter(|(_, file)| !matches!(*file, "lib.rs" | "main.rs")).collect();
    let top = |file: &'a str| file.split('/').next().unwrap_or(file).trim_end_matches(".rs");
    let modules: BTreeSet<&str> = files.iter().map(|(_, file)| top(file)).collect();
    let mut uses = Uses::new();
    for (source, file) in files.iter().filter(|(source, _)| !place::is_test(&source.path)) {
        let (from, depth) = (top(file), file.split('/').count());
        for (at, path) in source.paths() {
            let Some(to) = from_root(&path, depth).and_then(|name| modules.get(name)) else { continue };
            if *to != from && !source.is_test(at) {
                let line = source.line(at);
                uses.entry((from, *to)).or_default().push(Use { file: &source.path, line, path });
            }
        }
    }
    uses
}

/// The first name after the crate's root, for a path in a file of that depth; `None` for a path that does not start there.
fn from_root(path: &str, depth: usize) -> Option<&str> {
    if let Some(rest) = path.strip_prefix("crate::") {
        return rest.split("::").next();
    }
    let mut names = path.split("::");
    (0..depth).all(|_| names.next() == Some("super")).then(|| names.next()).flatten()
}
