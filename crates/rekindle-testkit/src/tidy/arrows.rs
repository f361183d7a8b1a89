//! Which code may use which: between our crates, and from a crate to external ones. Checked in the manifests and again in
//! the code, because the manifest only permits a use and the code makes it.

use rekindle_engine::agents::KINDS;

use super::paths::has;
use super::source::Source;
use super::{Finding, Repo, place};

/// Our crates, and which of ours each may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("rekindle-core", &[]),
    ("rekindle-shim", &[]),
    ("rekindle-engine", &["rekindle-core", "rekindle-shim"]),
    ("rekindle", &["rekindle-core", "rekindle-engine", "rekindle-shim"]),
    ("rekindle-testkit", &["rekindle", "rekindle-core", "rekindle-engine", "rekindle-shim"]),
    ("xtask", &[]),
];

/// All that the core may be linked with: data, errors, the plan's syntax, a hash.
const CORE_MAY_USE: &[&str] = &["blake3", "pulldown-cmark", "serde", "serde_json", "thiserror"];

/// Outside crates that would break another crate's promise.
const BANNED: &[(&str, &[&str], &str)] = &[
    (
        "rekindle-shim",
        &["tokio", "rusqlite", "tokio-postgres", "axum", "clap", "ratatui"],
        "the shim is small and blocking, and holds no database",
    ),
    (
        "rekindle-engine",
        &["clap", "ratatui", "crossterm", "axum", "rmcp", "annotate-snippets"],
        "the engine has no terminal and no server",
    ),
];

/// Paths that make a decision depend on more than its arguments.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::os",
    "std::thread",
    "std::process",
    "std::env",
    "std::time::SystemTime",
    "std::time::Instant",
    "SystemTime",
    "HashMap",
    "HashSet",
    "RandomState",
    "async",
];

/// Where adapters live: the table in `agents.rs`, and beside it a file and a folder for each kind.
const ADAPTERS: &str = "crates/rekindle-engine/src/agents";
/// Words that contain the name of a kind of agent but mean something else.
const OTHER_MEANINGS: &[(&str, &str)] = &[
    // A format of task files that plans are imported from.
    ("crates/rekindle/src/commands/plan/import", "claude"),
    // The variable with the key of a provider.
    ("crates/rekindle-engine/src/agents/opencode.rs", "gemini"),
];

pub(super) fn check(repo: &Repo, findings: &mut Vec<Finding>) {
    for source in &repo.rust {
        imports(source, findings);
        purity(source, findings);
        agent_names(source, findings);
    }
    for (path, text) in &repo.texts {
        if path.ends_with("/Cargo.toml") {
            manifest(path, text, findings);
        }
    }
}

fn imports(source: &Source, findings: &mut Vec<Finding>) {
    let Some((package, may_use)) = arrows(&source.path) else {
        return;
    };
    let ours: Vec<(String, bool)> = ARROWS
        .iter()
        // The binary has no library to import; its name is an ordinary word.
        .filter(|(name, _)| name.starts_with("rekindle-") && *name != package)
        .map(|(name, _)| (name.replace('-', "_"), may_use.contains(name)))
        .collect();
    for (at, path) in source.paths() {
        let root = path.split("::").next().unwrap_or_default();
        if ours.iter().any(|(name, allowed)| name == root && !allowed) {
            let why = "imports go rekindle → engine → core, engine → shim, testkit → all";
            findings.push(Finding::new(&source.path, source.line(at), format!("`{path}` in {package}"), why));
        }
        for (_, names, why) in BANNED.iter().filter(|(name, ..)| *name == package) {
            if path.contains("::") && names.contains(&root.replace('_', "-").as_str()) {
                findings.push(Finding::new(&source.path, source.line(at), format!("`{path}`"), why));
            }
        }
    }
}

fn purity(source: &Source, findings: &mut Vec<Finding>) {
    if place::package(&source.path) != Some("rekindle-core") || !place::is_product(&source.path) {
        return;
    }
    for (at, path) in source.paths() {
        if IMPURE.iter().any(|name| has(&path, name)) && !source.is_test(at) {
            let why = "core is pure: no clock, files, threads, or maps without an order";
            findings.push(Finding::new(&source.path, source.line(at), format!("`{path}`"), why));
        }
    }
}

fn agent_names(source: &Source, findings: &mut Vec<Finding>) {
    if !place::is_product(&source.path) || source.path == format!("{ADAPTERS}.rs") {
        return;
    }
    // Comments count too: many of them are help that people read.
    let text = source.text.to_ascii_lowercase();
    for name in KINDS.iter().filter(|kind| kind.about().program.is_some()).map(|kind| kind.kind()) {
        let own = [format!("{ADAPTERS}/{name}.rs"), format!("{ADAPTERS}/{name}/")];
        let other = OTHER_MEANINGS.iter().any(|(path, word)| source.path.starts_with(path) && *word == name);
        if other || own.iter().any(|own| source.path.starts_with(own.as_str())) {
            continue;
        }
        for (at, _) in text.match_indices(name).filter(|(at, _)| !source.is_test(*at)) {
            let why = "a kind's name occurs only in its folder, engine/src/agents/NAME, and in the table, agents.rs";
            findings.push(Finding::new(&source.path, source.line(at), format!("the name `{name}`"), why));
        }
    }
}

fn manifest(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let Some((package, may_use)) = arrows(path) else {
        return;
    };
    let mut section = "";
    let mut inherits_lints = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').trim();
        }
        inherits_lints |= section == "lints" && line.replace(' ', "") == "workspace=true";
        for name in dependencies(section, line) {
            let ours = ARROWS.iter().any(|(other, _)| *other == name);
            let mut report = |why| {
                findings.push(Finding::new(path, index + 1, format!("{package} depends on `{name}`"), why));
            };
            if ours && !may_use.contains(&name) {
                report("dependencies go rekindle → engine → core, engine → shim, testkit → all");
            }
            if section.contains("dev-dependencies") || ours {
                continue;
            }
            if package == "rekindle-core" && !CORE_MAY_USE.contains(&name) {
                report("core uses serde, thiserror, pulldown-cmark and a hash, nothing else");
            }
            for (_, names, why) in BANNED.iter().filter(|(other, ..)| *other == package) {
                if names.contains(&name) {
                    report(why);
                }
            }
        }
    }
    if !inherits_lints {
        let why = "every package takes the workspace's lints";
        findings.push(Finding::new(path, 0, "no `[lints] workspace = true`", why));
    }
}

/// The packages that one line of a manifest requires, including a rename's real name.
fn dependencies<'a>(section: &'a str, line: &'a str) -> Vec<&'a str> {
    let Some((_, named)) = section.rsplit_once("dependencies") else {
        return Vec::new();
    };
    let mut names = Vec::new();
    if line.starts_with('[') {
        // `[dependencies.name]`
        names.extend(named.strip_prefix('.'));
    } else if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
        let renamed = if named.is_empty() {
            names.extend(key.split('.').next().map(str::trim));
            value.split_once("package").map(|(_, rest)| rest)
        } else {
            (key.trim() == "package").then_some(value)
        };
        names.extend(renamed.and_then(|rest| rest.split('"').nth(1)));
    }
    names
}

fn arrows(path: &str) -> Option<(&'static str, &'static [&'static str])> {
    let package = place::package(path)?;
    ARROWS.iter().find(|(name, _)| *name == package).map(|(name, may_use)| (*name, *may_use))
}
