//! Hiding one person's settings from git: lines in the clone's own list of patterns, which are added and removed with the
//! files that they are for.

use std::path::{Path, PathBuf};

use super::content::Content;
use super::manifest::Ledger;
use super::{Error, file, left, next};
use crate::git::{self, Repo};

/// What git needs so that it does not see a file.
pub struct Hidden {
    list: PathBuf,
    pattern: String,
    ignored: bool,
}

impl Hidden {
    /// `None` if there is no repository.
    pub fn find(root: &Path, path: &Path) -> Result<Option<Self>, Error> {
        let repo = match Repo::of(root) {
            Ok(repo) => repo,
            Err(git::Error::NotARepository(_) | git::Error::Bare(_) | git::Error::NoGit) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let file = path.strip_prefix(root).unwrap_or(path);
        if repo.tracks(file)? {
            return Err(Error::Tracked(path.to_owned()));
        }
        let ignored = repo.ignores(file)?;
        let pattern = repo.pattern(file).ok_or_else(|| Error::NotText(path.to_owned()))?;
        Ok(Some(Self { list: repo.exclude_file(), pattern, ignored }))
    }
}

/// Hides a file from git if that is wanted, and otherwise shows it again. Returns the list that hides it.
pub fn hide(ledger: &mut Ledger, path: &Path, hidden: Option<Hidden>) -> Result<Option<PathBuf>, Error> {
    let Some(hidden) = hidden else {
        show(ledger, path, None)?;
        return Ok(None);
    };
    let mut lines = ledger.get(&hidden.list).map(|record| record.lines.clone()).unwrap_or_default();
    let ours = lines.contains(&hidden.pattern);
    if ours || hidden.ignored {
        return Ok(ours.then_some(hidden.list));
    }
    lines.push(hidden.pattern);
    set_lines(ledger, &hidden.list, lines, Vec::new())?;
    Ok(Some(hidden.list))
}

/// Removes the pattern of a file from whichever list it was added to; `hidden` says where it would be if nothing is
/// recorded.
pub fn show(ledger: &mut Ledger, path: &Path, hidden: Option<Hidden>) -> Result<(), Error> {
    let known = ledger.all().filter(|(_, record)| !record.lines.is_empty());
    let mut lists: Vec<(PathBuf, Vec<String>)> = known.map(|(list, record)| (list, record.lines.clone())).collect();
    if let Some(hidden) = hidden
        && !lists.iter().any(|(list, _)| *list == hidden.list)
    {
        lists.push((hidden.list, vec![hidden.pattern]));
    }
    for (list, lines) in lists {
        let (gone, kept): (Vec<String>, Vec<String>) = lines.into_iter().partition(|line| names(line, path));
        if !gone.is_empty() {
            set_lines(ledger, &list, kept, gone)?;
        }
    }
    Ok(())
}

/// Whether a pattern belongs to a file: the file's path ends with it, as it was written.
fn names(pattern: &str, path: &Path) -> bool {
    let mut plain = String::new();
    let mut letters = pattern.trim_start_matches('/').chars();
    while let Some(letter) = letters.next() {
        plain.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    path.ends_with(&plain)
}

/// Sets the patterns that are ours in a list.
fn set_lines(ledger: &mut Ledger, list: &Path, lines: Vec<String>, gone: Vec<String>) -> Result<(), Error> {
    let seen = file::look(list)?;
    file::check_writable(list, seen.as_ref())?;
    let record = ledger.get(list).cloned();
    let content = Content::Lines { wanted: lines.clone(), ours: lines.iter().cloned().chain(gone).collect() };
    if lines.is_empty() {
        let (text, _) = left(list, &content, record.as_ref(), seen.as_ref())?;
        match (&seen, text) {
            (Some(seen), None) => file::remove(list, seen)?,
            (Some(seen), Some(text)) if text != seen.text => file::put(list, Some(seen), &text)?,
            _ => {}
        }
        if let Some(record) = record {
            file::remove_dirs(&ledger.dirs(&record));
        }
        ledger.forget(list);
        return ledger.save();
    }
    let new = next(list, &content, record.as_ref(), seen.as_ref())?;
    let dirs = file::missing_dirs(list);
    let mut kept = new.record;
    kept.dirs = record.as_ref().map(|record| ledger.dirs(record)).unwrap_or_default();
    kept.dirs.extend(dirs.iter().cloned());
    kept.lines = lines;
    ledger.keep(list, kept);
    ledger.save()?;
    match new.text.filter(|text| seen.as_ref().is_none_or(|seen| seen.text != *text)) {
        Some(text) => {
            file::make_dirs(&dirs)?;
            file::put(list, seen.as_ref(), &text)
        }
        None => Ok(()),
    }
}
