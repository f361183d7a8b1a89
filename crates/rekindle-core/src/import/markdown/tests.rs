//! Documents as people write them, each asserted task by task.

use crate::import::{Format, Imported, Source, SourceFile, convert};

pub(super) fn import(text: &str) -> Result<Imported, crate::import::ImportError> {
    let files = vec![SourceFile { path: "notes.md".to_owned(), text: text.to_owned() }];
    convert(Format::Markdown, &Source { title: "notes".to_owned(), files, ..Source::default() })
}

#[test]
fn scratch() {
    let Ok(path) = std::env::var("CORPUS") else { return };
    let mut names: Vec<_> = std::fs::read_dir(&path)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "md") && !p.ends_with("README.md"))
        .collect();
    names.sort();
    let only = std::env::var("ONLY").unwrap_or_default();
    let (mut good, mut all) = (0, 0);
    for path in names {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if !name.contains(&only) {
            continue;
        }
        all += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        let expected: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path.with_extension("expected.json")).unwrap()).unwrap();
        let problems = judge(&text, &expected);
        if problems.is_empty() {
            good += 1;
        } else {
            eprintln!("== {name}");
            for p in problems {
                eprintln!("   {p}");
            }
        }
        if !only.is_empty() {
            match import(&text) {
                Ok(i) => eprintln!("{}\n{:#?}", i.text, i.remarks),
                Err(e) => eprintln!("{e}"),
            }
        }
    }
    eprintln!("{good} of {all}");
}

fn plain(text: &str) -> String {
    text.replace(['`', '*', '_'], "").replace(['“', '”'], "\"").trim().to_lowercase()
}

/// Where a document is read in another way than expected.
fn judge(text: &str, expected: &serde_json::Value) -> Vec<String> {
    let mut problems = Vec::new();
    let empty = Vec::new();
    let wanted = expected["tasks"].as_array().unwrap_or(&empty);
    let imported = match import(text) {
        Ok(imported) => imported,
        Err(error) => {
            if !wanted.is_empty() {
                problems.push(error.to_string());
            }
            return problems;
        }
    };
    let plan = crate::plan::parse("x", imported.text.as_bytes()).plan.expect("a plan");
    let titles: Vec<String> = plan.tasks.iter().map(|t| plain(&t.title)).collect();
    let wanted_titles: Vec<String> = wanted.iter().map(|t| plain(t["title"].as_str().unwrap_or(""))).collect();
    let alternatives: Vec<Vec<String>> = wanted
        .iter()
        .map(|t| {
            let more = t["title_alternatives"].as_array().cloned().unwrap_or_default();
            std::iter::once(plain(t["title"].as_str().unwrap_or("")))
                .chain(more.iter().filter_map(|m| m.as_str()).map(plain))
                .collect()
        })
        .collect();
    let same =
        titles.len() == alternatives.len() && titles.iter().zip(&alternatives).all(|(title, any)| any.contains(title));
    if !same {
        for t in &titles {
            if !wanted_titles.contains(t) {
                problems.push(format!("extra task: {t}"));
            }
        }
        for t in &wanted_titles {
            if !titles.contains(t) {
                problems.push(format!("missing task: {t}"));
            }
        }
        if problems.is_empty() {
            problems.push(format!("order: {titles:?}"));
        }
        return problems;
    }
    for (at, (task, want)) in plan.tasks.iter().zip(wanted).enumerate() {
        let after: Vec<usize> =
            task.blocked_by.iter().map(|id| plan.tasks.iter().position(|t| t.id == *id).unwrap()).collect();
        let read = |value: &serde_json::Value| -> Vec<usize> {
            value
                .as_array()
                .map(|a| a.iter().filter_map(|n| n.as_u64()).map(|n| n as usize).collect())
                .unwrap_or_default()
        };
        let mut allowed = vec![read(&want["after"])];
        if let Some(more) = want["after_alternatives"].as_array() {
            allowed.extend(more.iter().map(read));
        }
        let mut sorted = after.clone();
        sorted.sort();
        if !allowed.iter().any(|a| {
            let mut a = a.clone();
            a.sort();
            a == sorted
        }) {
            problems.push(format!("{at} {}: after {after:?}, expected {allowed:?}", task.title));
        }
        let done = want["done"].as_bool().unwrap_or(false);
        if task.done != done {
            problems.push(format!("{at} {}: done {}", task.title, task.done));
        }
        let strings = |value: &serde_json::Value| -> Vec<String> {
            value
                .as_array()
                .map(|a| a.iter().filter_map(|n| n.as_str()).map(str::to_owned).collect())
                .unwrap_or_default()
        };
        let mut checks = vec![strings(&want["checks"])];
        if let Some(more) = want["checks_alternatives"].as_array() {
            checks.extend(more.iter().map(strings));
        }
        if !checks.contains(&task.accept) {
            problems.push(format!("{at} {}: checks {:?}, expected {:?}", task.title, task.accept, checks));
        }
    }
    problems
}
