//! The one place for each dangerous call, and the attributes that silence a check. Works on names as written; clippy's
//! `disallowed_methods` catches the same calls behind a rename.

use super::paths::has;
use super::source::{Source, words};
use super::{Finding, Repo, place};

/// The one file that reads the clock.
const CLOCK: &str = "crates/rekindle-engine/src/clock.rs";
/// The shim is blocking and small: it reads the clock where it talks to the operating system.
const SHIM_OS: &str = "crates/rekindle-shim/src/os/";
/// One file in here opens a database.
const STORE: &str = "crates/rekindle-engine/src/store/";
/// All output of the program goes through here (`ui.rs`, `ui/`).
const UI: &str = "crates/rekindle/src/ui";

/// Functions that read a clock.
const CLOCK_READS: &[&str] =
    &["SystemTime::now", "Instant::now", "Timestamp::now", "Zoned::now", "clock_gettime", "clock_gettime_dynamic"];
/// Channels whose names say that they are unbounded.
const UNBOUNDED: &[&str] = &["unbounded_channel", "UnboundedSender", "UnboundedReceiver", "mpsc::unbounded"];
/// Macros that write to the terminal.
const PRINTS: &[&str] = &["print", "println", "eprint", "eprintln"];

pub(super) fn check(repo: &Repo, findings: &mut Vec<Finding>) {
    for source in &repo.rust {
        clock(source, findings);
        sleeping(source, findings);
        channels(source, findings);
        unsafe_code(source, findings);
        prints(source, findings);
        silencers(source, findings);
    }
    databases(repo, findings);
}

fn clock(source: &Source, findings: &mut Vec<Finding>) {
    if source.path == CLOCK || source.path.starts_with(SHIM_OS) {
        return;
    }
    for (at, path) in product_paths(source) {
        if CLOCK_READS.iter().any(|name| has(&path, name)) {
            let why = "time is an argument: only engine/src/clock.rs and the shim's os/ read it";
            findings.push(Finding::new(&source.path, source.line(at), format!("`{path}`"), why));
        }
    }
}

fn sleeping(source: &Source, findings: &mut Vec<Finding>) {
    for (at, path) in product_paths(source) {
        if has(&path, "thread::sleep") {
            let why = "nothing sleeps: wait for a fact with a deadline";
            findings.push(Finding::new(&source.path, source.line(at), format!("`{path}`"), why));
        }
    }
}

fn channels(source: &Source, findings: &mut Vec<Finding>) {
    let testkit = place::package(&source.path) == Some("rekindle-testkit");
    if !place::is_product(&source.path) && !testkit {
        return;
    }
    for (at, path) in source.paths() {
        // Tokio's `mpsc::channel` takes its bound as an argument; the standard library's takes none.
        let unbounded = UNBOUNDED.iter().any(|name| has(&path, name))
            || (has(&path, "mpsc::channel") && !has_argument(&source.code[at..]));
        if unbounded && !source.is_test(at) {
            let why = "every queue has a bound: use a bounded channel and say why its number";
            findings.push(Finding::new(&source.path, source.line(at), format!("`{path}`"), why));
        }
    }
}

/// Whether the call that starts here is given at least one argument.
fn has_argument(code: &str) -> bool {
    let head = code.find([';', '(']).unwrap_or(code.len());
    code[head..].strip_prefix('(').is_some_and(|rest| !rest.trim_start().starts_with(')'))
}

fn unsafe_code(source: &Source, findings: &mut Vec<Finding>) {
    if source.path.starts_with(SHIM_OS) {
        return;
    }
    for (at, _) in words(&source.code).filter(|(_, word)| *word == "unsafe") {
        let why = "only crates/rekindle-shim/src/os/ may hold it";
        findings.push(Finding::new(&source.path, source.line(at), "`unsafe`", why));
    }
}

fn prints(source: &Source, findings: &mut Vec<Finding>) {
    let testkit_library = source.path.starts_with("crates/rekindle-testkit/src/")
        && !source.path.starts_with("crates/rekindle-testkit/src/bin/");
    let held = (place::is_product(&source.path) && !source.path.starts_with(UI)) || testkit_library;
    if !held {
        return;
    }
    for (at, word) in words(&source.code) {
        let is_macro = source.code[at + word.len()..].starts_with('!');
        if PRINTS.contains(&word) && is_macro && !source.is_test(at) {
            let why = "the program speaks through crates/rekindle/src/ui";
            findings.push(Finding::new(&source.path, source.line(at), format!("`{word}!`"), why));
        }
    }
}

fn silencers(source: &Source, findings: &mut Vec<Finding>) {
    for attribute in source.attributes() {
        let inside: Vec<&str> = words(&source.code[attribute.range.clone()]).map(|(_, word)| word).collect();
        let conditional = inside.first() == Some(&"cfg_attr");
        let is = |name: &str| inside.first() == Some(&name) || (conditional && inside.contains(&name));
        let line = source.line(attribute.range.start);
        for name in ["allow", "expect"] {
            if is(name) && !inside.contains(&"reason") {
                let what = format!("`#[{name}(…)]` without a reason");
                findings.push(Finding::new(&source.path, line, what, "say why: `reason = \"…\"`"));
            }
        }
        if is("ignore") {
            let why = "a test that does not run proves nothing: fix it or delete it";
            findings.push(Finding::new(&source.path, line, "`#[ignore]`", why));
        }
    }
}

fn databases(repo: &Repo, findings: &mut Vec<Finding>) {
    let mut door: Option<&str> = None;
    for source in &repo.rust {
        for (at, path) in product_paths(source) {
            if !format!("::{path}").contains("::Connection::open") {
                continue;
            }
            let first = *door.get_or_insert(&source.path);
            if !source.path.starts_with(STORE) || first != source.path {
                let why = "one file under crates/rekindle-engine/src/store/ opens databases";
                findings.push(Finding::new(&source.path, source.line(at), format!("`{path}`"), why));
            }
        }
    }
}

/// Paths in shipped code.
fn product_paths(source: &Source) -> impl Iterator<Item = (usize, String)> {
    let paths = if place::is_product(&source.path) { source.paths() } else { Vec::new() };
    paths.into_iter().filter(|(at, _)| !source.is_test(*at))
}
