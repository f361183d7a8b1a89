//! The state of a program's hooks: what is installed where, whether it can work, and what the status line was before. It
//! only reads.

use std::path::{Path, PathBuf};

use super::edit::{self, Existing, Group, Wanted};
use super::manifest::{Ledger, ManifestEntry};
use super::{Content, Error, Site, content, file};
use crate::agents::hook_installer::{Event, Form, HookInstaller, Scope};

/// The state of one file of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub kind: &'static str,
    pub scope: Scope,
    pub file: PathBuf,
    /// What it contains of ours.
    pub state: State,
}

/// What a file contains of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Absent,
    /// The file cannot be parsed, so its program cannot parse it either.
    Unreadable(String),
    /// Our hooks.
    Installed {
        /// The program that they call.
        rekindle: PathBuf,
        /// Whether the status line is ours too.
        status_line: bool,
        /// What keeps them from working, one line each.
        troubles: Vec<String>,
    },
}

/// Inspects one program's files in every scope; a file that serves two scopes is reported once.
pub fn look(site: &Site<'_>, program: &dyn HookInstaller) -> Vec<Standing> {
    let mut standings: Vec<Standing> = Vec::new();
    for scope in Scope::ALL {
        let Some(path) = program.file(scope, &site.places) else { continue };
        if standings.iter().any(|standing| standing.file == path) {
            continue;
        }
        let record = record(site, scope, &path);
        let scope = record.and_then(|record| Scope::named(&record.scope)).unwrap_or(scope);
        let state = state(site, program, scope, &path);
        standings.push(Standing { kind: program.kind(), scope, file: path, state });
    }
    standings
}

fn state(site: &Site<'_>, program: &dyn HookInstaller, scope: Scope, path: &Path) -> State {
    let seen = match file::look(path) {
        Ok(Some(seen)) => seen,
        Ok(None) => return State::Absent,
        Err(error) => return State::Unreadable(error.to_string()),
    };
    match program.form() {
        Form::Own(own) if seen.text.starts_with(own.head) => own_file(site, program, scope, path, &seen.text),
        Form::Own(_) => State::Absent,
        Form::Entries(_) => match edit::find(&seen.text, program.kind(), program.status_line()) {
            Ok(found) => entries(site, program, scope, path, &found),
            Err(unfit) => State::Unreadable(Error::unfit(path, unfit).to_string()),
        },
    }
}

fn entries(site: &Site<'_>, program: &dyn HookInstaller, scope: Scope, path: &Path, found: &Existing) -> State {
    let called = found.entries.first().map(|entry| &entry.call);
    let Some(call) = called.or(found.status_line.as_ref().map(|(_, call)| call)) else { return State::Absent };
    let mut troubles = gone(&call.rekindle);
    let line = found.status_line.as_ref().map(|(line, _)| line.clone());
    if let Ok(Content::Entries { wanted, .. }) = content(&call.rekindle, program, None) {
        let wanted = Wanted {
            status_line: line.as_ref().and_then(|line| Some((program.status_line()?, line.clone()))),
            ..wanted
        };
        if !found.is(&wanted) {
            let again = "some of its hooks are missing or were changed: type rekindle guard install again";
            troubles.push(again.to_owned());
        }
    }
    troubles.extend(program.troubles(scope, path, &found.entries, &site.places));
    State::Installed { rekindle: call.rekindle.clone(), status_line: line.is_some(), troubles }
}

fn own_file(site: &Site<'_>, program: &dyn HookInstaller, scope: Scope, path: &Path, text: &str) -> State {
    let Form::Own(own) = program.form() else { return State::Absent };
    let (before, after) = own.text.split_once(own.mark).unwrap_or((own.text, ""));
    let written = text.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    let rekindle: Option<PathBuf> = written.and_then(|path| serde_json::from_str(path).ok());
    let mut troubles = match &rekindle {
        Some(rekindle) => gone(rekindle),
        None => vec!["it was written by another rekindle or changed: type rekindle guard install again".to_owned()],
    };
    troubles.extend(program.troubles(scope, path, &[], &site.places));
    State::Installed { rekindle: rekindle.unwrap_or_default(), status_line: false, troubles }
}

fn gone(rekindle: &Path) -> Vec<String> {
    let there = rustix::fs::access(rekindle, rustix::fs::Access::EXEC_OK).is_ok() && rekindle.is_file();
    let told = || format!("{} is gone: type rekindle guard install again", rekindle.display());
    (!there).then(told).into_iter().collect()
}

fn record(site: &Site<'_>, scope: Scope, path: &Path) -> Option<ManifestEntry> {
    let (dir, base) = site.ledger_dir(scope).ok()?;
    Ledger::look(&dir, &base).ok()?.get(path).cloned()
}

/// The status line's command that applies without ours: of this scope or one of lower precedence, and where ours has
/// replaced it, the previous command.
pub fn chained_command(site: &Site<'_>, program: &dyn HookInstaller, strongest: Scope) -> Option<String> {
    let key = program.status_line()?;
    let command = |text: &str| edit::value(text, key)?.get("command")?.as_str().map(str::to_owned);
    for scope in Scope::ALL.into_iter().filter(|scope| *scope >= strongest) {
        let Some(path) = program.file(scope, &site.places) else { continue };
        let Ok(Some(seen)) = file::look(&path) else { continue };
        let ours = edit::find(&seen.text, program.kind(), Some(key)).is_ok_and(|found| found.status_line.is_some());
        let found = match ours {
            true => record(site, scope, &path).and_then(|record| command(&record.before?)),
            false => command(&seen.text),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Hooks as a file of their own, for a plugin: entries as a program has them, with another command.
pub fn hooks_file(program: &dyn HookInstaller, events: &[Event], description: &str, command: &str) -> Option<String> {
    let groups = events.iter().map(|event| Group {
        event: event.name,
        matcher: event.matcher,
        handler: program.handler(event, command),
    });
    let head = format!("{{\n  \"description\": {}\n}}\n", serde_json::Value::from(description));
    edit::add(&head, &Wanted { groups: groups.collect(), status_line: None }).ok()
}
