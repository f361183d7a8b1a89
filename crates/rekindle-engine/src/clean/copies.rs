//! Copies that belong to no run: damaged databases and bundles that were set aside, backups beyond the newest ones,
//! half-deleted worktrees. They are removed by age.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rekindle_core::time::Time;

use super::tree::{self, Gone};
use crate::lost;

/// Backups that are always kept, so that one damaged file does not take the last chance.
const BACKUPS_KEPT: usize = 2;

/// A copy that may be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spare {
    pub path: PathBuf,
    pub bytes: u64,
}

/// The copies in a state directory that are older than a time. `ended` are the attempts of runs that are over.
pub fn find(state_dir: &Path, before: Time, ended: &BTreeSet<u64>) -> Vec<Spare> {
    let mut found: Vec<PathBuf> = Vec::new();
    found.extend(named(state_dir, |name| numbered(name, "damaged-")).filter(|path| is_dir(path)));
    let forgotten = lost::forgotten(state_dir);
    let aside = named(&state_dir.join("attempts"), |name| name.starts_with("bad-")).filter(|path| {
        // A bundle of an attempt that the log has lost is the subject of a question to a person.
        let attempt = attempt_aside(path);
        is_dir(path) && attempt.is_some_and(|attempt| ended.contains(&attempt) || attempt <= forgotten)
    });
    found.extend(aside);
    found.extend(named(&state_dir.join("worktrees"), |name| name.starts_with(".removed-")).filter(|path| is_dir(path)));
    // A directory that was set aside may hold somebody's work; an index that could not be read holds nothing.
    let index =
        |name: &str| name.rsplit_once('.').is_some_and(|(name, nth)| name.ends_with(".index") && is_number(nth));
    found.extend(named(&state_dir.join("aside"), index).filter(|path| is_file(path)));
    let mut backups: Vec<PathBuf> =
        named(&state_dir.join("backups"), |name| name.ends_with(".db")).filter(|path| is_file(path)).collect();
    // Their names start with an increasing number.
    backups.sort();
    backups.truncate(backups.len().saturating_sub(BACKUPS_KEPT));
    found.extend(backups);
    found.retain(|path| changed_at(path).is_some_and(|at| at <= before));
    let spare = |path: PathBuf| Spare { bytes: tree::measure(&path, &mut |_| true).bytes, path };
    found.into_iter().map(spare).collect()
}

pub fn remove(copies: &[Spare]) -> Gone {
    let mut gone = Gone::default();
    copies.iter().for_each(|copy| gone.add(tree::remove(&copy.path, None)));
    gone
}

fn named(dir: &Path, wanted: impl Fn(&str) -> bool) -> std::vec::IntoIter<PathBuf> {
    let entries = if is_dir(dir) { std::fs::read_dir(dir).ok() } else { None };
    let names = entries.into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        names.filter(|entry| entry.file_name().to_str().is_some_and(&wanted)).map(|entry| entry.path()).collect();
    found.sort();
    found.into_iter()
}

fn numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn attempt_aside(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix("bad-")?.split('-').next()?.parse().ok()
}

fn is_dir(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| about.is_dir())
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| about.is_file())
}

fn changed_at(path: &Path) -> Option<Time> {
    use std::os::unix::fs::MetadataExt;
    path.symlink_metadata().ok().map(|about| Time(about.mtime().saturating_mul(1000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_as_ours_and_old_is_found() {
        let base = tempfile::tempdir().expect("a directory");
        let at = |name: &str| base.path().join(name);
        for dir in
            ["damaged-1", "damaged-notes", "attempts/bad-00000001", "attempts/bad-00000009-2", "aside/T1.1", "foreign"]
        {
            std::fs::create_dir_all(at(dir)).expect("made");
        }
        std::fs::create_dir(at("backups")).expect("made");
        for file in [
            "aside/T1.index.1",
            "damaged-7",
            "backups/00000001-5-1.db",
            "backups/00000002-6-2.db",
            "backups/00000003-7-3.db",
        ] {
            std::fs::write(at(file), "x").expect("written");
        }
        std::os::unix::fs::symlink(at("foreign"), at("damaged-2")).expect("linked");
        let ended = BTreeSet::from([1]);
        let names = |before| -> Vec<String> {
            let found = find(base.path(), before, &ended).into_iter();
            found.map(|copy| copy.path.strip_prefix(base.path()).expect("inside").display().to_string()).collect()
        };
        let all = ["damaged-1", "attempts/bad-00000001", "aside/T1.index.1", "backups/00000001-5-1.db"];
        assert_eq!(names(Time(i64::MAX)), all);
        assert_eq!(names(Time(0)), Vec::<String>::new(), "nothing is that old");
        lost::forget(base.path(), 9).expect("put down");
        assert_eq!(names(Time(i64::MAX)).len(), 5, "a person continued without it");
        assert_eq!(remove(&find(base.path(), Time(i64::MAX), &ended)).refused, []);
        assert!(at("foreign").exists() && at("damaged-7").exists() && at("aside/T1.1").exists());
    }
}
