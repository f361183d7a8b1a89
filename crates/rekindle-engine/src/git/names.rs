//! How runs, workspaces, attempts and labels are spelled in refs, and which names are allowed.

use super::{Error, Result};

/// Where branches are.
pub(super) const HEADS: &str = "refs/heads/";

/// Where all hidden refs are.
pub(super) const HIDDEN: &str = "refs/rekindle/";

/// The commit that a workspace was made from.
const BASE: &str = "base";

/// The newest snapshot of a workspace.
const LAST: &str = "last";

/// Whether a name keeps the rule for every name in rekindle.
pub(super) fn check(name: &str) -> Result<()> {
    rekindle_core::ids::check_name(name).map_err(|_| Error::BadName(name.to_owned()))
}

/// A name as one part of a ref. Names may hold what refs may not (`a..b`, `x.lock`, a dot at the end): the dot is then
/// written in a way that no name contains, so two names never share a ref.
pub(super) fn part(name: &str) -> String {
    let mut part = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        if c == '.' && (after.is_empty() || after.starts_with('.') || after == "lock") {
            part.push_str("%2E");
        } else {
            part.push(c);
        }
        rest = after;
    }
    part
}

/// The name that a part of a ref stands for.
pub(super) fn name_of(part: &str) -> String {
    part.replace("%2E", ".")
}

/// The branch of a workspace, as a ref.
pub(super) fn work_branch(run: &str, key: &str) -> String {
    format!("{HEADS}rekindle-work/{}/{}", part(run), part(key))
}

/// The commit that a workspace was made from.
pub(super) fn base(run: &str, key: &str) -> String {
    hidden(run, key, BASE)
}

/// Where the newest commit of a run's branch is recorded a second time.
pub(super) fn record(run: &str) -> String {
    format!("{RECORDS}{}", part(run))
}

/// Where the newest commit of each run is recorded.
pub(super) const RECORDS: &str = "refs/rekindle-run/";

/// What a person found in a workspace when they took it over.
pub(super) fn person(run: &str, key: &str) -> String {
    format!("refs/rekindle-person/{}/{}", part(run), part(key))
}

/// The newest snapshot of a workspace.
pub(super) fn last(run: &str, key: &str) -> String {
    hidden(run, key, LAST)
}

pub(super) fn snapshot(run: &str, key: &str, attempt: u64, label: &str) -> String {
    hidden(run, key, &format!("{attempt}-{}", part(label)))
}

fn hidden(run: &str, key: &str, leaf: &str) -> String {
    format!("{HIDDEN}{}/{}/{leaf}", part(run), part(key))
}

/// The contents of a snapshot's ref name: run, key, attempt, label. `None` for refs that are not snapshots.
pub(super) fn parse_snapshot(name: &str) -> Option<(String, String, u64, String)> {
    let mut parts = name.strip_prefix(HIDDEN)?.split('/');
    let (run, key, leaf) = (parts.next()?, parts.next()?, parts.next()?);
    let (attempt, label) = leaf.split_once('-')?;
    Some((name_of(run), name_of(key), attempt.parse().ok()?, name_of(label)))
}
