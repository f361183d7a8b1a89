//! The kept corpus: every document under `fixtures/documents` with what is expected of it. `own` was written beside the
//! code; `tuned` and `heldout` by an author who had not seen it. Of the thirty held out, 14 were read exactly as expected
//! when they were first run, 28 after what was wrong in general was mended. Documents that are read otherwise than expected
//! are listed with the reason; the list can only shrink.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rekindle_core::plan::{Plan, PlanTask, parse};
use serde_json::Value;

use crate::import;

/// Documents that are read otherwise, with why.
const OTHERWISE: &[(&str, &str)] = &[
    ("tuned/inventory-service-phases", "`./gradlew bootRun` never ends, so it is no check, which its author allows"),
    ("heldout/open-source-roadmap", "plain bullets keep the document's order; its author reads them as having none"),
    (
        "heldout/release-blockers",
        "one task of four names another: the rest keep the document's order, its author would drop it",
    ),
];

fn documents(of: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/documents").join(of);
    let entries = std::fs::read_dir(&folder).expect("the corpus is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    paths.sort();
    paths
}

/// Reads all documents of a folder and holds each against what is expected.
fn holds(of: &str, at_least: usize) {
    let paths = documents(of);
    assert!(paths.len() >= at_least, "{} documents in {of}", paths.len());
    let (mut wrong, mut right) = (Vec::new(), BTreeSet::new());
    for path in paths {
        let name = format!("{of}/{}", path.file_stem().expect("a name").to_string_lossy());
        let text = std::fs::read_to_string(&path).expect("readable");
        let expected = std::fs::read_to_string(path.with_extension("expected.json")).expect("an expectation");
        let expected: Value = serde_json::from_str(&expected).expect("JSON");
        let differences = differences(&text, &expected);
        let listed = OTHERWISE.iter().any(|(listed, _)| *listed == name);
        match (differences.is_empty(), listed) {
            (true, true) => {
                right.insert(name);
            }
            (false, false) => wrong.push(format!("{name}\n    {}", differences.join("\n    "))),
            (true, false) | (false, true) => {}
        }
    }
    assert!(wrong.is_empty(), "read otherwise than expected:\n{}", wrong.join("\n"));
    assert!(right.is_empty(), "read as expected now, take them off the list: {right:?}");
}

#[test]
fn documents_written_beside_the_code() {
    holds("own", 30);
}

#[test]
fn documents_of_another_author_that_were_seen() {
    holds("tuned", 30);
}

#[test]
fn documents_of_another_author_that_were_held_out() {
    holds("heldout", 30);
}

/// Titles are compared by their letters and digits.
fn plain(text: &str) -> String {
    let words = text.to_lowercase();
    let words = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn positions(value: &Value) -> BTreeSet<usize> {
    let numbers = value.as_array().into_iter().flatten().filter_map(Value::as_u64);
    numbers.map(|number| usize::try_from(number).expect("small")).collect()
}

/// A value with its alternatives.
fn any_of<T>(task: &Value, key: &str, read: impl Fn(&Value) -> T) -> Vec<T> {
    let more = task[format!("{key}_alternatives")].as_array().cloned().unwrap_or_default();
    std::iter::once(read(&task[key])).chain(more.iter().map(&read)).collect()
}

/// Where a document is read otherwise than expected.
fn differences(text: &str, expected: &Value) -> Vec<String> {
    let wanted = expected["tasks"].as_array().cloned().unwrap_or_default();
    let imported = match import(text) {
        Ok(imported) => imported,
        Err(_) if wanted.is_empty() => return Vec::new(),
        Err(error) => return vec![error.to_string()],
    };
    let parsed = parse("plan", imported.text.as_bytes());
    assert!(parsed.errors().next().is_none(), "`plan check` takes it: {:?}", parsed.problems);
    let plan = parsed.plan.expect("a plan");
    let titles: Vec<String> = plan.tasks.iter().map(|task| plain(&task.title)).collect();
    let allowed: Vec<Vec<String>> =
        wanted.iter().map(|task| any_of(task, "title", |title| plain(title.as_str().unwrap_or("")))).collect();
    let same = titles.len() == allowed.len() && titles.iter().zip(&allowed).all(|(title, any)| any.contains(title));
    if !same {
        let extra = titles.iter().filter(|title| !allowed.iter().any(|any| any.contains(title)));
        let missing = allowed.iter().filter(|any| !any.iter().any(|title| titles.contains(title)));
        let extra = extra.map(|title| format!("no task: {title}"));
        return extra
            .chain(missing.map(|any| format!("missing: {}", any[0])))
            .chain([format!("{} tasks", titles.len())])
            .collect();
    }
    let mut differences: Vec<String> =
        plan.tasks.iter().zip(&wanted).flat_map(|(task, wanted)| of_task(&plan, task, wanted)).collect();
    let forbidden =
        strings(&expected["not_tasks"]).into_iter().map(|text| plain(&text)).filter(|text| titles.contains(text));
    differences.extend(forbidden.map(|title| format!("no task: {title}")));
    differences
}

fn of_task(plan: &Plan, task: &PlanTask, wanted: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    let place = |id| plan.tasks.iter().position(|task| task.id == id).expect("in the plan");
    let after: BTreeSet<usize> = task.blocked_by.iter().cloned().map(place).collect();
    let allowed = any_of(wanted, "after", positions);
    if !allowed.contains(&after) {
        differences.push(format!("{}: after {after:?}, not one of {allowed:?}", task.title));
    }
    if Some(task.done) != wanted["done"].as_bool() {
        differences.push(format!("{}: done {}", task.title, task.done));
    }
    let allowed = any_of(wanted, "checks", strings);
    if !allowed.contains(&task.accept) {
        differences.push(format!("{}: checks {:?}, not one of {allowed:?}", task.title, task.accept));
    }
    differences
}
