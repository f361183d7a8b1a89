//! Adapters: everything that is specific to one agent's program, behind one trait, and [`KINDS`], the one table of them. No
//! other file knows a program by name: a new kind is a file beside the others (and a folder if it gets long), and two lines
//! here.
//!
//! An adapter says how a program is started and resumed, what its output means, how it receives messages while it runs, how
//! it is stopped without leaving anything behind, and what it can do. It decides nothing: decisions are left to the core.

pub mod acp;
pub mod claude;
pub mod codex;
pub mod command;
mod fields;
pub(crate) mod foreign;
pub mod gemini;
pub mod guard_adapter;
pub mod history;
mod hook_events;
pub mod hook_installer;
pub mod interactive;
pub mod opencode;
mod pieces;
mod quote;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use guard_adapter::GuardAdapter;
use history::Record;
use hook_installer::HookInstaller;
use interactive::Interactive;
use rekindle_core::activity::{Activity, History};
use rekindle_core::limits::Traits;
use rekindle_shim::bundle::Stdin;
use rekindle_shim::ladder::{Rung, StopSignal};

use crate::caps::Memory;

/// Every kind of agent, in the order in which their programs are searched for.
pub static KINDS: Kinds = Kinds(&[
    Kind(&claude::Claude),
    Kind(&codex::Codex),
    Kind(&gemini::Gemini),
    Kind(&opencode::Opencode),
    Kind(&acp::Acp),
    Kind(&command::Command),
]);

/// A table of kinds: [`KINDS`], or a test's own.
#[derive(Clone, Copy, Debug)]
pub struct Kinds(pub &'static [Kind]);

impl Default for Kinds {
    fn default() -> Self {
        KINDS
    }
}

impl Kinds {
    pub fn iter(self) -> impl Iterator<Item = Kind> {
        self.0.iter().copied()
    }

    pub fn of(self, name: &str) -> Option<Kind> {
        self.iter().find(|kind| kind.kind() == name)
    }

    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.iter().map(|kind| kind.kind())
    }

    /// The kinds whose own sessions can be guarded.
    pub fn guard_adapters(self) -> impl Iterator<Item = &'static dyn GuardAdapter> {
        self.iter().filter_map(|kind| kind.about().guard_adapter)
    }

    /// The kinds that support hooks.
    pub fn hook_installers(self) -> impl Iterator<Item = &'static dyn HookInstaller> {
        self.iter().filter_map(|kind| kind.about().hook_installer)
    }
}

/// One kind of agent, known by its name. The default is a plain command.
#[derive(Clone, Copy)]
pub struct Kind(pub &'static dyn Adapter);

impl Default for Kind {
    fn default() -> Self {
        Self(&command::Command)
    }
}

impl Deref for Kind {
    type Target = dyn Adapter;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.kind() == other.kind()
    }
}

impl Eq for Kind {}

/// What an agent may do without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permissions {
    /// What the program's own settings allow.
    #[default]
    Default,
    Full,
}

/// The settings of `[agents.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    pub kind: Kind,
    /// The program and its first arguments; empty means the kind's own program, found on `PATH`.
    pub command: Vec<String>,
    /// Arguments added by the operator.
    pub args: Vec<String>,
    /// Variables added to its environment.
    pub env: BTreeMap<String, String>,
    /// The model it is asked to use.
    pub model: Option<String>,
    /// What it may do without asking.
    pub permissions: Permissions,
    /// The account whose allowance it uses; agents with the same account wait for the same reset. `None` means the kind's
    /// account.
    pub account: Option<String>,
    /// Which `[agents.NAME]` takes over while this one's account has to wait.
    pub fallback: Option<String>,
    /// The memory it may use; if unset, the global limit.
    pub memory_max: Option<Memory>,
    /// The processes and threads it may have; if unset, the global limit.
    pub processes_max: Option<u64>,
}

impl Program {
    /// The traits of a kind without special abilities, with this program's account and fallback.
    pub fn traits(&self, kind: &str) -> Traits {
        let account = self.account.clone().unwrap_or_else(|| kind.to_owned());
        Traits { account, fallback: self.fallback.clone(), ..Traits::new(kind) }
    }

    /// The traits of a CLI that keeps sessions and supports MCP tools, but takes no messages while it runs.
    pub fn session_traits(&self, kind: &str) -> Traits {
        Traits {
            structured_output: true,
            shows_calls: true,
            resumes: true,
            compacts: true,
            reinjects: true,
            mcp: true,
            ..self.traits(kind)
        }
    }

    /// Arguments that make it print its version: those of `command`, then the usual one.
    pub fn version_args(&self) -> Vec<String> {
        self.command.iter().skip(1).cloned().chain(["--version".to_owned()]).collect()
    }
}

/// What an adapter needs to start an agent.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The settings of `[agents.NAME]`.
    pub program: &'a Program,
    pub prompt: &'a str,
    /// The CLI session to resume; `None` starts a new one.
    pub resume: Option<&'a str>,
    /// An id for a new session, for programs that accept one: a UUID used by this attempt only.
    pub new_session: &'a str,
    /// The attempt's bundle: private to its owner, absolute, and present when the files are written. The adapter puts its
    /// files under `agent/`.
    pub bundle: &'a Path,
    /// Where the agent works; absolute.
    pub workspace: &'a Path,
    /// The rekindle executable, which a hook or an MCP configuration calls.
    pub rekindle: &'a Path,
}

impl Start<'_> {
    /// The program and its first arguments: those of `command`, else the kind's own program, found on `PATH`. The native
    /// program replaces the script that would start it, because a script that is killed leaves the program running. Fails if
    /// no program is named and the kind's own program is not installed.
    pub fn program_words(&self, adapter: &dyn Adapter) -> Result<Vec<String>, String> {
        let place = Place { program: self.program, workspace: self.workspace, bundle: self.bundle };
        let mut words = self.program.command.clone();
        let own = adapter.about().program.unwrap_or_default();
        match find_program(&place, words.first().map_or(own, String::as_str)) {
            Some(found) => {
                let native = adapter.native(found).to_string_lossy().into_owned();
                words.splice(..words.len().min(1), [native]);
            }
            // A program that is named is started as it is; if something is wrong with it, the start itself reports that.
            None if !words.is_empty() => {}
            None => {
                let install = adapter.about().install_hint.unwrap_or_default();
                return Err(format!(
                    "cannot find `{own}` on PATH: install it ({install}), or set `command` in its [agents.NAME]"
                ));
            }
        }
        Ok(words)
    }

    /// The directory in the bundle that holds the adapter's own files.
    pub fn own_dir(&self) -> PathBuf {
        self.bundle.join(OWN_DIR)
    }

    /// The command that serves rekindle's MCP tools for this attempt. It reads the token from the bundle; no argument
    /// contains it.
    pub fn mcp_command(&self) -> Vec<String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        vec![text(self.rekindle), "mcp".to_owned(), "--bundle".to_owned(), text(self.bundle)]
    }

    /// The command that prints the notice for an agent after a compaction, for a hook.
    pub fn context_command(&self, format: &str) -> Vec<String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let words = ["__context", "--format", format, "--bundle"].map(str::to_owned);
        let mut command = vec![text(self.rekindle)];
        command.extend(words);
        command.push(text(self.bundle));
        command
    }
}

/// The directory of an adapter's own files in a bundle.
pub const OWN_DIR: &str = "agent";

/// The notice for an agent after a compaction, as of its start: a file in that directory.
pub const CONTEXT_FILE: &str = "context.md";

/// Exists if the prompt of a resumed session already says what an earlier compaction lost, so its hooks need not repeat it.
pub const PROMPTED_FILE: &str = "prompted";

/// What a request shows of the compaction before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// The summary, together with the messages before it.
    pub summary: String,
    /// Messages in the request. Only a compaction reduces their number, and it may produce the same summary as the previous
    /// one.
    pub messages: usize,
}

/// Prefix of everything that a plugin of ours writes to a program's output.
pub const PLUGIN_MARK: &str = "@rekindle ";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program and its arguments. They must not contain a secret: every user can read arguments.
    pub argv: Vec<String>,
    /// Variables added to the environment; they override those of `[agents.NAME]`.
    pub env: BTreeMap<String, String>,
    pub env_remove: BTreeSet<String>,
    /// The kind of standard input: with `Lines` the input's text is its first line, and more may follow.
    pub stdin: Stdin,
    /// The text of its standard input.
    pub input: String,
    /// Files written before the start, by their path under `agent/` in the bundle.
    pub files: BTreeMap<String, String>,
    /// Symbolic links made before the start, by their path under `agent/`, with their targets.
    pub links: BTreeMap<String, PathBuf>,
}

impl Launch {
    /// A program that reads its prompt from standard input.
    pub fn new(argv: Vec<String>, stdin: Stdin, input: impl Into<String>) -> Self {
        Self {
            argv,
            env: BTreeMap::new(),
            env_remove: BTreeSet::new(),
            stdin,
            input: input.into(),
            files: BTreeMap::new(),
            links: BTreeMap::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineSource {
    Out,
    Err,
    /// The transcript that the program keeps beside its output.
    Transcript,
}

/// Reads one attempt's lines in order. It keeps whatever the meaning of a line depends on; a new reader that starts again
/// from the beginning returns the same activities.
pub trait Reader: Send {
    /// What one line means. A line may be anything: cut off, not JSON, megabytes long. `whole` says whether the line is
    /// complete.
    fn line(&mut self, source: LineSource, line: &str, whole: bool) -> Vec<Activity>;

    /// What follows from the end of the process, after all its output was read: some programs report the outcome only by
    /// their exit code, or do not mark their last message as such. `code` is `None` after a signal.
    fn end(&mut self, _code: Option<i32>) -> Vec<Activity> {
        Vec::new()
    }
}

/// Where a program keeps its own files.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The settings of `[agents.NAME]`.
    pub program: &'a Program,
    pub workspace: &'a Path,
    pub bundle: &'a Path,
}

impl Place<'_> {
    /// A variable as the agent sees it: `[agents.NAME]` first, then the operator's environment.
    pub fn var(&self, name: &str) -> Option<String> {
        self.program.env.get(name).cloned().or_else(|| std::env::var(name).ok())
    }

    /// A variable that is not empty.
    pub fn set(&self, name: &str) -> Option<String> {
        self.var(name).filter(|value| !value.is_empty())
    }

    /// The login by the first of these variables that is set, in words.
    pub fn login_by(&self, names: &[&str]) -> Option<String> {
        names.iter().find(|name| self.set(name).is_some()).map(|name| format!("by {name}"))
    }
}

/// What an examination of an installed program found, for `rekindle doctor`. It must not contain a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examination {
    /// The program that would be started.
    pub program: Option<PathBuf>,
    /// All arguments that make it print its version, including those in `command`.
    pub version_args: Vec<String>,
    /// How it is logged in, in words: by which variable or file; `None` means that no login was found.
    pub login: Option<String>,
    /// What to do without a login.
    pub login_hint: String,
}

/// The fixed facts of a kind. The defaults mean that there is none: no program of its own, no tests with it, no hooks.
pub struct About {
    /// The name in `kind = "…"`.
    pub kind: &'static str,
    /// The program's name on `PATH`; `None` if the operator has to name it.
    pub program: Option<&'static str>,
    /// How the program is installed, as a command or an address.
    pub install_hint: Option<&'static str>,
    /// The newest version that `cargo xtask agents` was run with.
    pub tried_up_to: Option<&'static str>,
    /// Whether the program keeps a transcript in a file, so that a session without one cannot be resumed.
    pub keeps_transcript: bool,
    /// What to do without a login.
    pub login_hint: &'static str,
    /// What the hooks and transcripts of a person's own session mean, if such sessions can be guarded.
    pub guard_adapter: Option<&'static dyn GuardAdapter>,
    /// How hooks are added to its settings, if it supports hooks.
    pub hook_installer: Option<&'static dyn HookInstaller>,
}

impl About {
    pub const fn new(kind: &'static str) -> Self {
        Self {
            kind,
            program: None,
            install_hint: None,
            tried_up_to: None,
            keeps_transcript: false,
            login_hint: "",
            guard_adapter: None,
            hook_installer: None,
        }
    }
}

/// One kind of agent: its fixed facts, how it is started, what its lines mean.
pub trait Adapter: Send + Sync {
    /// What is the same for every agent of this kind.
    fn about(&self) -> &'static About;

    /// The name in `kind = "…"`.
    fn kind(&self) -> &'static str {
        self.about().kind
    }

    /// What it can do. Everything defaults to no.
    fn traits(&self, program: &Program) -> Traits;

    /// How it is started. The error says what is missing, and what to do.
    fn start(&self, start: &Start<'_>) -> Result<Launch, String>;

    /// How a person opens a session in a terminal; `None` if this kind has no sessions of its own. The error says why the
    /// session cannot be opened.
    fn open(&self, _place: &Place<'_>, _session: &str) -> Option<Result<Interactive, String>> {
        None
    }

    fn reader(&self) -> Box<dyn Reader>;

    /// The transcript of a session, if the program keeps one that can be read while it runs. `None` while it does not exist.
    fn transcript(&self, _place: &Place<'_>, _session: &str) -> Option<PathBuf> {
        None
    }

    /// What the conversation will contain of an attempt when its session is resumed, judging by the part of the record that
    /// the attempt added; empty if there is no transcript.
    fn history(&self, _record: &Record<'_>) -> History {
        History::Unknown
    }

    /// What this kind's hook prints so that `text` gets into the agent's context; `asked` is what the program wrote to the
    /// hook's standard input. `None` if this is not the time for it.
    fn hook_answer(&self, _asked: &str, text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    /// For a hook whose output is put into every request and should stay identical until the next compaction: what the
    /// request shows of the last one. `None` for hooks that run once per compaction.
    fn hook_compaction(&self, _asked: &str) -> Option<Compaction> {
        None
    }

    /// A message as a line of standard input, for programs that take them.
    fn message(&self, _text: &str) -> Option<String> {
        None
    }

    /// The steps that stop it and leave nothing behind.
    fn ladder(&self, grace_ms: u64) -> Vec<Rung> {
        ladder(grace_ms)
    }

    /// The program that `found` would start, if `found` is a script.
    fn native(&self, found: PathBuf) -> PathBuf {
        found
    }

    /// How it is logged in, in words, without a secret; `None` if no login was found.
    fn login(&self, _place: &Place<'_>) -> Option<String> {
        None
    }

    /// What is installed, without starting anything.
    fn examine(&self, place: &Place<'_>) -> Examination {
        let name = place.program.command.first().map(String::as_str).or(self.about().program);
        Examination {
            program: name.and_then(|name| find_program(place, name)).map(|found| self.native(found)),
            version_args: place.program.version_args(),
            login: self.login(place),
            login_hint: self.about().login_hint.to_owned(),
        }
    }
}

/// The stop steps for any program: interrupted, terminated, then killed with its whole process tree.
pub fn ladder(grace_ms: u64) -> Vec<Rung> {
    vec![Rung { signal: StopSignal::Int, grace_ms }, Rung { signal: StopSignal::Term, grace_ms }]
}

/// Finds a program: a path is used as it is, a bare name is searched on the `PATH` that the agent will have.
pub fn find_program(place: &Place<'_>, name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        let path = place.workspace.join(name);
        return is_executable(&path).then_some(path);
    }
    let path = place.var("PATH")?;
    std::env::split_paths(&path).map(|dir| place.workspace.join(dir).join(name)).find(|found| is_executable(found))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
