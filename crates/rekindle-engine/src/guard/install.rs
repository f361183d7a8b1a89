//! Installs rekindle's hooks in programs' settings and removes them again. Every byte that belongs to somebody else stays as
//! it is; a file that nobody has changed since is restored byte for byte, and from every other file only our own entries are
//! removed.
//!
//! Which files, forms and events a program has is defined in `agents::hook_installer`. No program is named here.

mod content;
mod edit;
mod file;
mod hidden;
mod look;
mod manifest;
mod splice;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use super::place;
use crate::agents::hook_installer::{Call, Form, HookInstaller, Places, Scope, Verb};
use crate::git;
use crate::state_dir::{self, StateDir};
use content::Content;
use edit::{Group, Unfit, Wanted};
use file::Seen;
use hidden::{Hidden, hide, show};
use manifest::{Ledger, ManifestEntry};

pub use edit::Existing;
pub use look::{Standing, State, chained_command, hooks_file, look};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no home to find the user's settings in.
    #[error("HOME is not set, so your settings cannot be found")]
    NoHome,
    /// The path of this program cannot be written into a settings file.
    #[error("{} is not text that a settings file can hold: move rekindle elsewhere", .0.display())]
    NotAPath(PathBuf),
    #[error("{} is not valid JSON (line {line}, column {column}: {why}), nothing was changed: correct it first", path.display())]
    Broken { path: PathBuf, line: usize, column: usize, why: String },
    /// Something in the file does not have the required type.
    #[error("{what} in {} is not {wanted}, nothing was changed: correct it first", path.display())]
    WrongType { path: PathBuf, what: String, wanted: &'static str },
    /// Git tracks the file, so a change would affect everybody.
    #[error("git tracks {}, so it is not yours alone: use --project to install for everybody, or --user for yourself", .0.display())]
    Tracked(PathBuf),
    /// A file of the same name that is not ours.
    #[error("{} is not rekindle's: move it away first", .0.display())]
    Foreign(PathBuf),
    #[error("{} is read-only, nothing was changed: chmod u+w it first", .0.display())]
    ReadOnly(PathBuf),
    #[error("{} is a symbolic link without a target: remove it or make its target first", .0.display())]
    DeadLink(PathBuf),
    #[error("{} is not a file", .0.display())]
    NotAFile(PathBuf),
    #[error("{} is not UTF-8 text", .0.display())]
    NotText(PathBuf),
    #[error("{} is longer than {most} bytes: this is not a settings file", path.display())]
    TooLong { path: PathBuf, most: u64 },
    #[error("{} was changed by another program just now: try again", .0.display())]
    Changed(PathBuf),
    #[error("another rekindle guard holds {}: try again when it has ended", .0.display())]
    Busy(PathBuf),
    /// A newer rekindle wrote the manifest.
    #[error("{} was written by a newer rekindle: use that one", .0.display())]
    Newer(PathBuf),
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] state_dir::Error),
    #[error(transparent)]
    Git(#[from] git::Error),
    #[error("cannot use {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl Error {
    fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    fn unfit(path: &Path, unfit: Unfit) -> Self {
        let path = path.to_owned();
        match unfit {
            Unfit::Broken(broken) => Self::Broken { path, line: broken.line, column: broken.column, why: broken.why },
            Unfit::WrongType { key, wanted } => {
                let what = if key.is_empty() { "the whole".to_owned() } else { format!("`{key}`") };
                Self::WrongType { path, what, wanted }
            }
        }
    }
}

/// Where rekindle is called, and which rekindle.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    pub places: Places<'a>,
    /// The project's state directory, made if need be.
    pub state: &'a Path,
    /// The program that hooks call, as an absolute path.
    pub rekindle: &'a Path,
}

impl Site<'_> {
    /// Where the manifest of a scope is, and the directory that its paths start from.
    fn ledger_dir(&self, scope: Scope) -> Result<(PathBuf, PathBuf), Error> {
        if scope != Scope::User {
            return Ok((self.state.join(place::DIR_NAME), self.places.root.to_owned()));
        }
        let dir = place::users(self.places.var).ok_or(Error::NoHome)?;
        Ok((dir, PathBuf::from("/")))
    }

    /// Takes the manifest of a scope for writing.
    fn ledger(&self, scope: Scope) -> Result<Ledger, Error> {
        let (dir, base) = self.ledger_dir(scope)?;
        match scope {
            Scope::User => file::make_dirs(&file::missing_dirs(&dir))?,
            _ => drop(StateDir::open_or_create(self.state)?),
        }
        Ledger::take(&dir, &base)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Made,
    Added,
    Renewed,
    /// It was as it should be.
    Same,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    pub file: PathBuf,
    pub change: Change,
    /// The events that call rekindle; empty if the file is ours alone.
    pub events: Vec<&'static str>,
    /// The list of patterns that now hides the file from git.
    pub hidden_by: Option<PathBuf>,
    /// Whether the status line is ours now.
    pub status_line: bool,
    /// The previous command of the status line.
    pub chained: Option<String>,
}

/// Installs one program's hooks. The error says why that is not possible; nothing was changed then.
pub fn install(
    site: &Site<'_>,
    program: &dyn HookInstaller,
    scope: Scope,
    status_line: bool,
) -> Result<Installed, Error> {
    let path = program.file(scope, &site.places).ok_or(Error::NoHome)?;
    let hidden = if scope == Scope::Local { Hidden::find(site.places.root, &path)? } else { None };
    let seen = file::look(&path)?;
    file::check_writable(&path, seen.as_ref())?;
    let chained = chained_command(site, program, scope);
    let key = program.status_line();
    let found = match (&seen, program.form()) {
        (Some(seen), Form::Entries(_)) => {
            edit::find(&seen.text, program.kind(), key).map_err(|unfit| Error::unfit(&path, unfit))?
        }
        _ => Existing::default(),
    };
    let line = key.filter(|_| status_line || found.status_line.is_some()).map(|key| (key, chained.as_deref()));
    let content = content(site.rekindle, program, line)?;
    // Refused before anything is created, including the state directory.
    next(&path, &content, None, seen.as_ref())?;
    let mut ledger = site.ledger(scope)?;
    let new = next(&path, &content, ledger.get(&path), seen.as_ref())?;
    let mut record = new.record;
    (record.kind, record.scope) = (program.kind().to_owned(), scope.name().to_owned());
    let dirs = file::missing_dirs(&path);
    record.dirs = ledger.get(&path).map(|known| ledger.dirs(known)).unwrap_or_default();
    record.dirs.extend(dirs.iter().cloned());
    ledger.keep(&path, record);
    ledger.save()?;
    let hidden_by = hide(&mut ledger, &path, hidden)?;
    let change = match (&seen, &new.text) {
        (Some(seen), Some(text)) if seen.text == *text => Change::Same,
        (Some(_), _) if !found.is_empty() => Change::Renewed,
        (Some(_), _) => Change::Added,
        (None, _) => Change::Made,
    };
    if let Some(text) = new.text.filter(|_| change != Change::Same) {
        file::make_dirs(&dirs)?;
        file::put(&path, seen.as_ref(), &text)?;
    }
    let events = match program.form() {
        Form::Entries(events) => events.iter().map(|event| event.name).collect(),
        Form::Own(_) => Vec::new(),
    };
    Ok(Installed { file: path, change, events, hidden_by, status_line: line.is_some(), chained })
}

/// How our hooks were removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It is as it was before, byte for byte.
    Restored,
    /// It did not exist before and is deleted.
    Deleted,
    /// Others have changed it since: only our entries were removed.
    TakenOut,
    /// Nothing of ours was in it.
    Nothing,
}

/// A file that no longer contains anything of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    pub file: PathBuf,
    pub removal: Removal,
}

/// Removes one program's hooks from the settings of a scope, and from whichever other files the manifest names for it. The
/// error says why a file cannot be changed; it is unchanged then.
pub fn uninstall(site: &Site<'_>, program: &dyn HookInstaller, scope: Scope) -> Result<Vec<Removed>, Error> {
    let (dir, base) = site.ledger_dir(scope)?;
    let mut ledger = Ledger::take_if_there(&dir, &base)?;
    let mut paths: Vec<PathBuf> = program.file(scope, &site.places).into_iter().collect();
    for (path, record) in ledger.all() {
        if record.kind == program.kind() && record.scope == scope.name() && !paths.contains(&path) {
            paths.push(path);
        }
    }
    let mut removed = Vec::new();
    for path in paths {
        let hidden =
            if scope == Scope::Local { Hidden::find(site.places.root, &path).unwrap_or_default() } else { None };
        let removal = take_out(&mut ledger, program, &path, hidden)?;
        if removal != Removal::Nothing {
            removed.push(Removed { file: path, removal });
        }
    }
    Ok(removed)
}

fn take_out(
    ledger: &mut Ledger,
    program: &dyn HookInstaller,
    path: &Path,
    hidden: Option<Hidden>,
) -> Result<Removal, Error> {
    let key = program.status_line();
    let content = match program.form() {
        Form::Entries(_) => Content::Entries { kind: program.kind(), status_line: key, wanted: Wanted::default() },
        Form::Own(file) => Content::Own { file, text: String::new() },
    };
    let record = ledger.get(path).cloned();
    let seen = file::look(path)?;
    let guessed = seen.as_ref().filter(|_| record.is_none()).and_then(|seen| all_ours(program, &seen.text));
    let (left, removal) = left(path, &content, record.as_ref().or(guessed.as_ref()), seen.as_ref())?;
    match (&seen, left) {
        (Some(seen), None) => file::remove(path, seen)?,
        (Some(seen), Some(text)) if text != seen.text => file::put(path, Some(seen), &text)?,
        _ => {}
    }
    show(ledger, path, hidden)?;
    if let Some(record) = record {
        file::remove_dirs(&ledger.dirs(&record));
        ledger.forget(path);
        ledger.save()?;
    }
    Ok(removal)
}

/// Reconstructs a lost record if the text itself shows that we made the file: an installation would produce exactly that.
fn all_ours(program: &dyn HookInstaller, text: &str) -> Option<ManifestEntry> {
    let found = edit::find(text, program.kind(), None).ok()?;
    let content = content(&found.entries.first()?.call.rekindle, program, None).ok()?;
    let made = content.build(None).ok()??;
    let mut record = ManifestEntry::default();
    record.remember(&made);
    record.made(text).then_some(record)
}

/// What is left of a file without our part; `None` if the file is deleted.
fn left(
    path: &Path,
    content: &Content,
    record: Option<&ManifestEntry>,
    seen: Option<&Seen>,
) -> Result<(Option<String>, Removal), Error> {
    let Some(seen) = seen else { return Ok((None, Removal::Nothing)) };
    let (text, removal) = match record {
        Some(record) if record.made(&seen.text) => (record.before.clone(), Removal::Restored),
        Some(record) if record.before.as_ref() == Some(&seen.text) => (record.before.clone(), Removal::Nothing),
        _ => {
            let before = record.and_then(|record| record.before.as_deref());
            let text = content.strip(&seen.text, before).map_err(|unfit| Error::unfit(path, unfit))?;
            let made = record.is_some_and(|record| record.before.is_none());
            let text = text.filter(|text| !(made && edit::says_nothing(text)));
            let removal = if text.as_ref() == Some(&seen.text) { Removal::Nothing } else { Removal::TakenOut };
            (text, removal)
        }
    };
    match text {
        // Somebody has moved the file elsewhere and left a link: it stays, without content.
        None if seen.linked => Ok((Some("{}\n".to_owned()), Removal::TakenOut)),
        None => Ok((None, Removal::Deleted)),
        Some(text) => Ok((Some(text), removal)),
    }
}

/// What a file will contain.
struct Next {
    record: ManifestEntry,
    text: Option<String>,
}

fn next(path: &Path, content: &Content, record: Option<&ManifestEntry>, seen: Option<&Seen>) -> Result<Next, Error> {
    let unfit = |unfit| Error::unfit(path, unfit);
    let mut new = match (record, seen) {
        (_, None) => ManifestEntry::default(),
        (Some(record), Some(seen)) if record.knows(&seen.text) => record.clone(),
        (record, Some(seen)) => {
            let old = record.and_then(|record| record.before.as_deref());
            let before = content.strip(&seen.text, old).map_err(unfit)?;
            let made = record.is_some_and(|record| record.before.is_none());
            let before = before.filter(|text| !(made && edit::says_nothing(text)));
            let mut new = ManifestEntry { before, ..ManifestEntry::default() };
            if new.before.as_ref() != Some(&seen.text) {
                new.remember(&seen.text);
            }
            new
        }
    };
    let current = seen.filter(|seen| content.is(&seen.text)).map(|seen| seen.text.clone());
    let text = match current {
        Some(text) => text,
        None => content.build(new.before.as_deref()).map_err(unfit)?.ok_or_else(|| Error::Foreign(path.to_owned()))?,
    };
    new.remember(&text);
    Ok(Next { record: new, text: Some(text) })
}

/// What a program's file must contain.
fn content(
    rekindle: &Path,
    program: &dyn HookInstaller,
    line: Option<(&'static str, Option<&str>)>,
) -> Result<Content, Error> {
    let not_a_path = || Error::NotAPath(rekindle.to_owned());
    let events = match program.form() {
        Form::Entries(events) => events,
        Form::Own(file) => {
            let path = serde_json::Value::from(rekindle.to_str().ok_or_else(not_a_path)?).to_string();
            return Ok(Content::Own { file, text: file.text.replace(file.mark, &path) });
        }
    };
    let kind = program.kind();
    let command = Call::line(rekindle, Verb::Hook, kind, None).ok_or_else(not_a_path)?;
    let status_line = line.map(|(key, chained)| {
        Call::line(rekindle, Verb::StatusLine, kind, chained).map(|command| (key, command)).ok_or_else(not_a_path)
    });
    let groups = events.iter().map(|event| Group {
        event: event.name,
        matcher: event.matcher,
        handler: program.handler(event, &command),
    });
    let wanted = Wanted { groups: groups.collect(), status_line: status_line.transpose()? };
    Ok(Content::Entries { kind, status_line: program.status_line(), wanted })
}
