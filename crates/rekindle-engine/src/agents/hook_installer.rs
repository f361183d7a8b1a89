//! Programs whose settings accept rekindle's hooks: in which file, in which form, at which events, and what silently keeps
//! hooks from running. How a file is changed and restored is left to `guard::install`, what a hook reports to
//! `guard_adapter`.

mod call;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

pub use call::{Call, Verb};

use super::Adapter;
use super::foreign::json_object;

/// The longest settings file that is read; the largest seen have a few hundred kilobytes.
pub const FILE_MAX_BYTES: u64 = 16 << 20;

/// Who the settings apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// One person's in one project; git does not see them.
    Local,
    /// Everybody who works in the project.
    Project,
    /// One person's everywhere.
    User,
}

impl Scope {
    /// All, the nearest first.
    pub const ALL: [Self; 3] = [Self::Local, Self::Project, Self::User];

    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

#[derive(Clone, Copy)]
pub struct Places<'a> {
    pub root: &'a Path,
    /// Reads the user's environment.
    pub var: &'a dyn Fn(&str) -> Option<String>,
    /// Where the machine's administrator keeps settings: `/etc`.
    pub system: &'a Path,
}

impl Places<'_> {
    /// A variable that is set and not empty.
    pub fn set(&self, name: &str) -> Option<String> {
        (self.var)(name).filter(|value| !value.is_empty())
    }

    pub fn home(&self) -> Option<PathBuf> {
        self.set("HOME").map(PathBuf::from)
    }
}

/// An event at which a program calls rekindle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub name: &'static str,
    /// Which tools or sources it applies to; `None` means all.
    pub matcher: Option<&'static str>,
    /// How long the program waits for the hook, in the program's own unit.
    pub timeout: u64,
}

impl Event {
    /// An event without a matcher.
    pub(super) const fn every(name: &'static str, timeout: u64) -> Self {
        Self { name, matcher: None, timeout }
    }
}

/// How hooks get into a program.
#[derive(Clone, Copy)]
pub enum Form {
    /// Entries among others in a JSON file that may hold comments, below `hooks`.
    Entries(&'static [Event]),
    /// A file of our own with this text, in which a mark is replaced by the program's path.
    Own(&'static OwnFile),
}

/// A file that is ours alone.
pub struct OwnFile {
    pub text: &'static str,
    /// The placeholder in the text that is replaced by the path of rekindle as a JSON string.
    pub mark: &'static str,
    /// The text's prefix, whatever version wrote it: a file with another prefix is not ours.
    pub head: &'static str,
}

/// One of our entries as it is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub event: String,
    /// The position of its group among those of the event.
    pub group: usize,
    pub matcher: Option<String>,
    pub position: usize,
    pub handler: Value,
    pub call: Call,
}

/// How much is left, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    pub context: Option<u8>,
    /// Of the allowance of five hours.
    pub five_hours: Option<u8>,
    /// Of the allowance of seven days.
    pub seven_days: Option<u8>,
}

impl Left {
    /// Of the allowance that will be used up first.
    pub fn usage(&self) -> Option<u8> {
        self.five_hours.into_iter().chain(self.seven_days).min()
    }
}

/// What a program passes to its status line command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gauged {
    pub session: Option<String>,
    /// Where it works.
    pub dir: Option<PathBuf>,
    pub left: Left,
}

/// One program that supports hooks.
pub trait HookInstaller: Adapter {
    /// Its name for people.
    fn title(&self) -> &'static str;

    /// The file for a scope; `None` if the user has no home.
    fn file(&self, scope: Scope, places: &Places<'_>) -> Option<PathBuf>;

    fn form(&self) -> Form;

    /// One entry, as ordered fields.
    fn handler(&self, event: &Event, command: &str) -> Vec<(&'static str, Value)> {
        vec![("type", "command".into()), ("command", command.into()), ("timeout", event.timeout.into())]
    }

    /// What to do after an installation before the hooks work.
    fn next(&self, scope: Scope) -> &'static str;

    /// What keeps the hooks of this file from running, one line each: what, where, what to do.
    fn troubles(&self, scope: Scope, file: &Path, entries: &[Entry], places: &Places<'_>) -> Vec<String>;

    /// The key of a command that draws a line under the prompt, if the program has one.
    fn status_line(&self) -> Option<&'static str> {
        None
    }

    /// What the program passes to that command.
    fn gauged(&self, _asked: &Value) -> Gauged {
        Gauged::default()
    }
}

/// The settings in a file; `None` if there is no file or it cannot be parsed.
pub(super) fn settings(file: &Path) -> Option<Map<String, Value>> {
    json_object(&read(file)?)
}

/// A file's text, unless it is too long to be a settings file.
pub(super) fn read(file: &Path) -> Option<String> {
    let known = file.metadata().ok()?;
    if !known.is_file() || known.len() > FILE_MAX_BYTES {
        return None;
    }
    std::fs::read_to_string(file).ok()
}
