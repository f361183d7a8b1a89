//! What a fresh worktree lacks: files that git ignores and checks need, installed packages, its own ports. They are provided
//! before the first agent or check starts there, once for the same inputs. A set-up that fails is the project's problem, not
//! the task's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rekindle_core::ids::{Epoch, TaskId};
use rekindle_core::input::SetupSeen;
use rekindle_core::refusal::Refusal;
use rekindle_core::text;
use rekindle_shim::atomic;

use super::{Shared, checks};
use crate::git;
use crate::pressure;
use crate::refusal::{self, Trouble};
use crate::world::Message;

/// File beside the worktree's git directory: the hash of the inputs of its last set-up.
const MARK: &str = "rekindle-setup";

/// The mark of a worktree that a person left without its set-up. It is not a hash.
const LEFT_OUT: &[u8] = b"left out";

/// Limit on changed files that a warning names.
const NAMED_MAX: usize = 5;

/// File in the state directory: the ports of each workspace.
const PORTS: &str = "ports.json";

/// The ports that blocks are taken from: above those that services use, below those that the system assigns.
const FIRST_PORT: u16 = 20_000;
const LAST_PORT: u16 = 32_000;

/// The file of a project that lists ignored files for worktrees, one gitignore pattern a line.
const INCLUDE_FILE: &str = ".worktreeinclude";

/// Files that `copy`, `link` and the include file may bring into one worktree: more means a folder that should be linked.
const FILES_MAX: usize = 20_000;

/// Files that say what to install. The set-up is run again when one of them changes.
const INPUTS: &[&str] = &[
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
    "requirements.txt",
    "requirements-dev.txt",
    "pyproject.toml",
    "poetry.lock",
    "uv.lock",
    "Pipfile.lock",
    "Cargo.lock",
    "go.sum",
    "Gemfile.lock",
    "composer.lock",
];

/// Most of one input file that is read.
const INPUT_BYTES: u64 = 16 << 20;

/// Bytes of a failed command's output in a reason.
const SAID_BYTES: usize = 300;

/// What a project's worktrees need besides the files that git has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worktree {
    /// A shell line; empty if there is none.
    pub setup: String,
    /// A shell line before a worktree is removed.
    pub teardown: String,
    /// Paths that are copied from the project.
    pub copy: Vec<String>,
    /// Paths that are linked to the project's own.
    pub link: Vec<String>,
    /// How many ports each worktree has.
    pub ports: u16,
}

/// What a worktree is set up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// An agent: no work was done there since the last one.
    Launch,
    /// Checks, of work that must stay as it is.
    Checks,
}

impl Shared {
    /// Provides what a worktree lacks. The error distinguishes what the machine refuses from what is wrong with the project;
    /// nothing was started either way.
    pub(super) fn set_up(&self, key: Option<&str>, dir: &Path, task: &TaskId, moment: Moment) -> Result<(), Trouble> {
        let (Some(key), Some(work)) = (key, &self.work) else { return Ok(()) };
        let wanted = &self.programs.worktree;
        let include = include_of(&self.workspace).map_err(|trouble| self.by_want(dir, trouble))?;
        if *wanted == Worktree::default() && include.trim().is_empty() {
            return Ok(());
        }
        let hash = inputs_of(wanted, &include, dir);
        match work.beside(key, MARK) {
            Some(known) if known == hash.as_bytes() => return Ok(()),
            // If an agent has changed the inputs, that is its work: it is considered when the next agent starts.
            Some(known) if moment == Moment::Checks && !known.is_empty() => return Ok(()),
            _ => {}
        }
        // Files that a set-up brings are not an agent's work, whether it succeeds or not.
        let before = work.untracked(key).ok();
        let changed = git::modified(dir).unwrap_or_default();
        if !wanted.setup.is_empty() {
            self.tell_setup(task, SetupSeen::Started { command: wanted.setup.clone() });
        }
        let done = self.bring_all(key, dir, task, None);
        if let Some(before) = before {
            let _merged_with_the_rest = work.made_by_checks(key, &before, git::Beside::Nobody);
        }
        let took_ms = done.map_err(|trouble| self.by_want(dir, trouble))?;
        if !wanted.setup.is_empty() {
            self.tell_setup(task, SetupSeen::Finished { took_ms });
        }
        self.warn_of_changes(dir, task, &changed);
        work.put_beside(key, MARK, hash.as_bytes()).map_err(|error| self.by_want(dir, error.to_string().into()))
    }

    /// A person said to continue without the set-up: neither agents nor checks wait for it there.
    pub(super) fn leave_set_up(&self, key: Option<&str>) {
        if let (Some(key), Some(work)) = (key, &self.work) {
            // Without the mark the checks run the set-up: they report it if that fails.
            let _tried_by_checks = work.put_beside(key, MARK, LEFT_OUT);
        }
    }

    /// A set-up that fails on a machine that lacks resources shows nothing about the project.
    fn by_want(&self, dir: &Path, trouble: Trouble) -> Trouble {
        let Trouble::Wrong(reason) = trouble else { return trouble };
        let said = refusal::in_text(&reason, dir);
        let want = said.or_else(|| pressure::look(dir)).or_else(|| pressure::look(&self.state_dir));
        match want {
            // What failed is told with what was lacking: the person sees that it is not the project's fault.
            Some(Refusal { reason: lack, hint }) => {
                Trouble::Refused(Refusal { reason: format!("{lack}: {reason}"), hint })
            }
            None => Trouble::Wrong(reason),
        }
    }

    /// Reports which files tracked by git a set-up has changed: they become part of the task's commit.
    fn warn_of_changes(&self, dir: &Path, task: &TaskId, before: &BTreeSet<PathBuf>) {
        let after = git::modified(dir).unwrap_or_default();
        let new: Vec<String> =
            after.difference(before).take(NAMED_MAX).map(|path| path.display().to_string()).collect();
        if !new.is_empty() {
            self.note(Some(task), "setup_changed_files", changed_words(&new));
        }
    }

    /// Copies, links, takes ports and runs the command. Returns how long the command took.
    pub(super) fn bring_all(
        &self,
        key: &str,
        dir: &Path,
        task: &TaskId,
        limit_ms: Option<u64>,
    ) -> Result<u64, Trouble> {
        let wanted = &self.programs.worktree;
        bring(&self.workspace, &self.state_dir, dir, wanted)?;
        self.take_ports(key).map_err(|error| match Trouble::of(&error, &self.state_dir) {
            Trouble::Wrong(reason) => Trouble::Wrong(format!("no ports: {reason}")),
            refused => refused,
        })?;
        if wanted.setup.is_empty() {
            return Ok(0);
        }
        match self.run_setup(key, (dir, limit_ms), task, &wanted.setup) {
            Ok(ran) => ran.map_err(Trouble::Wrong),
            Err(refusal) => Err(Trouble::Refused(refusal)),
        }
    }

    /// Undoes what a set-up started in a checkout that is to be removed.
    pub(super) fn clear_away(&self, key: &str, dir: &Path) {
        let command = &self.programs.worktree.teardown;
        if let (false, Ok(task)) = (command.is_empty(), TaskId::new("preflight")) {
            // The checkout is removed whatever the command reports.
            let _said = self.run_setup(key, (dir, None), &task, command);
        }
        self.give_ports_back(key);
    }

    /// Runs the teardown of a worktree that is about to be removed. A failure is recorded, and the worktree is removed all the same.
    pub(super) fn tear_down(&self, key: &str, dir: &Path, task: &TaskId) {
        let command = &self.programs.worktree.teardown;
        if !command.is_empty() {
            // If the worktree is needed after all, it is set up again.
            let _mark_goes = self.work.as_ref().map(|work| work.put_beside(key, MARK, b""));
            let ran = self.run_setup(key, (dir, None), task, command);
            if let Ok(Err(reason)) = ran {
                self.note(Some(task), "teardown_failed", reason);
            }
        }
        self.give_ports_back(key);
    }

    /// The directory where the set-up of a workspace runs and its output is kept.
    pub(super) fn setup_place(&self, key: &str) -> PathBuf {
        self.state_dir.join("checks").join(format!("setup-{key}"))
    }

    fn tell_setup(&self, task: &TaskId, seen: SetupSeen) {
        let _leaving = self.messages.send(Message::SetUp { task: task.clone(), seen });
    }

    /// Runs a command of the set-up under a shim, like a check. Returns how long it took, or what it printed.
    fn run_setup(
        &self,
        key: &str,
        at: (&Path, Option<u64>),
        task: &TaskId,
        command: &str,
    ) -> Result<Result<u64, String>, Refusal> {
        let place = self.setup_place(key);
        let result = checks::run_in(self, &place, &format!("setup-{key}"), (task, Epoch(0)), at, command)?;
        if result.passed {
            return Ok(Ok(result.took_ms));
        }
        let how = match (result.timed_out, result.code) {
            (true, _) => "took too long".to_owned(),
            (false, Some(code)) => format!("exited with {code}"),
            (false, None) => "was killed".to_owned(),
        };
        let last = result.output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let said = if last.is_empty() { String::new() } else { format!(": {}", text::one_line(last, SAID_BYTES)) };
        Ok(Err(format!("`{}` {how}{said}; its output is in {}", text::one_line(command, SAID_BYTES), place.display())))
    }

    /// The variables that tell agents, checks and set-up of a workspace its ports.
    pub(super) fn port_variables(&self, key: Option<&str>) -> Option<(String, String)> {
        self.port_of(key).map(|base| ("REKINDLE_PORT_BASE".to_owned(), base.to_string()))
    }

    pub(super) fn port_of(&self, key: Option<&str>) -> Option<u16> {
        self.ports().ok()?.get(key?).copied()
    }

    /// The ports of every workspace. A file that cannot be read now is no file that is empty: a block would be given twice.
    fn ports(&self) -> io::Result<BTreeMap<String, u16>> {
        match std::fs::read(self.state_dir.join(PORTS)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error),
        }
    }

    /// Reserves a free block for a workspace, which keeps it until the workspace is removed.
    fn take_ports(&self, key: &str) -> io::Result<()> {
        let many = self.programs.worktree.ports;
        if many == 0 {
            return Ok(());
        }
        let _alone = self.port_lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut taken = self.ports()?;
        if taken.contains_key(key) {
            return Ok(());
        }
        let used: BTreeSet<u16> = taken.values().flat_map(|base| *base..base.saturating_add(many)).collect();
        let base = free_ports(many, &self.state_dir, &used)?;
        taken.insert(key.to_owned(), base);
        atomic::save(&self.state_dir, PORTS, &serde_json::to_vec(&taken)?)
    }

    fn give_ports_back(&self, key: &str) {
        let _alone = self.port_lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // If this fails, the block stays reserved, which costs nothing.
        let Ok(mut taken) = self.ports() else { return };
        if taken.remove(key).is_some() {
            let _kept = serde_json::to_vec(&taken).map(|bytes| atomic::save(&self.state_dir, PORTS, &bytes));
        }
    }
}

/// The first of `many` free ports in a row. Every state directory starts the search elsewhere, so that two projects seldom
/// collide.
pub fn free_ports(many: u16, state: &Path, used: &BTreeSet<u16>) -> io::Result<u16> {
    let many = many.max(1);
    let blocks = usize::from((LAST_PORT - FIRST_PORT) / many);
    let hash = blake3::hash(state.as_os_str().as_bytes());
    let first = usize::from(u16::from_le_bytes([hash.as_bytes()[0], hash.as_bytes()[1]])) % blocks.max(1);
    let is_free = |port: u16| !used.contains(&port) && TcpListener::bind(("127.0.0.1", port)).is_ok();
    (0..blocks)
        .filter_map(|nth| u16::try_from((first + nth) % blocks).ok())
        .map(|block| FIRST_PORT + block * many)
        .find(|base| (*base..base + many).all(is_free))
        .ok_or_else(|| io::Error::other(format!("no {many} ports in a row are free from {FIRST_PORT} on")))
}

/// Copies and links what a worktree lacks from the project. The project's state directory is not brought, nor are files that
/// git has: a file that an agent changed or deleted is its work. Fails with what could not be brought, or with what the
/// machine lacked for it.
pub fn bring(project: &Path, state: &Path, dir: &Path, wanted: &Worktree) -> Result<(), Trouble> {
    let include = include_of(project)?;
    let included = git::ignored_matching(project, &include).map_err(|error| error.to_string())?;
    let tracked = git::tracked(project).map_err(|error| error.to_string())?;
    let state = state.canonicalize().unwrap_or_else(|_| state.to_owned());
    let mut bringing = Bringing { project, state, tracked, left: FILES_MAX };
    let failed = |what: &str, path: &Path, error: &io::Error| match Trouble::of(error, dir) {
        Trouble::Wrong(reason) => Trouble::Wrong(format!("cannot {what} {}: {reason}", path.display())),
        Trouble::Refused(Refusal { reason, hint }) => {
            let reason = format!("cannot {what} {} into a worktree: {reason}", path.display());
            Trouble::Refused(Refusal { reason, hint })
        }
    };
    for path in wanted.copy.iter().map(PathBuf::from).chain(included) {
        let path = inside(&path)?;
        bringing.copy(&path, &dir.join(&path)).map_err(|error| failed("copy", &path, &error))?;
    }
    for path in &wanted.link {
        let path = inside(Path::new(path))?;
        link(&project.join(&path), &dir.join(&path)).map_err(|error| failed("link", &path, &error))?;
    }
    Ok(())
}

/// What the project's include file lists. One that is there and cannot be read lists something: a worktree without it would be wrong.
fn include_of(project: &Path) -> Result<String, Trouble> {
    let path = project.join(INCLUDE_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(match Trouble::of(&error, project) {
            Trouble::Wrong(reason) => Trouble::Wrong(format!("cannot read {}: {reason}", path.display())),
            refused => refused,
        }),
    }
}

/// The warning about a set-up that changed files which git has.
pub fn changed_words(files: &[String]) -> String {
    format!(
        "the set-up changed files that git has ({}): they become part of the task's commit; use one that changes none, such as \
         `npm ci` instead of `npm install`",
        files.join(", ")
    )
}

/// A hash of everything that a set-up depends on.
fn inputs_of(wanted: &Worktree, include: &str, dir: &Path) -> String {
    let mut hash = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    add(format!("{wanted:?}").as_bytes());
    add(include.as_bytes());
    for name in INPUTS {
        let path = dir.join(name);
        let small = path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= INPUT_BYTES);
        if let (true, Ok(bytes)) = (small, std::fs::read(&path)) {
            add(name.as_bytes());
            add(&bytes);
        }
    }
    hash.finalize().to_hex().to_string()
}

/// Accepts only a path below the project.
fn inside(path: &Path) -> Result<PathBuf, String> {
    let plain = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    match plain && path.components().any(|part| matches!(part, Component::Normal(_))) {
        true => Ok(path.to_owned()),
        false => Err(format!("{} is not a path inside the project", path.display())),
    }
}

/// Copies in progress.
struct Bringing<'a> {
    project: &'a Path,
    state: PathBuf,
    /// Files that git has.
    tracked: BTreeSet<PathBuf>,
    left: usize,
}

impl Bringing<'_> {
    /// Copies a file or folder that does not exist yet. A path that the project does not have is no error: not everybody has
    /// a `.env`. Pipes, sockets and devices are not copied.
    fn copy(&mut self, path: &Path, to: &Path) -> io::Result<()> {
        let from = self.project.join(path);
        let Some(meta) = there(from.symlink_metadata())? else { return Ok(()) };
        if self.tracked.contains(path) || from.canonicalize().is_ok_and(|real| real.starts_with(&self.state)) {
            return Ok(());
        }
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            io::Error::other(format!("it has more than {FILES_MAX} files: name it under `link` instead"))
        })?;
        if meta.is_dir() {
            std::fs::create_dir_all(to)?;
            for entry in std::fs::read_dir(&from)? {
                let name = entry?.file_name();
                self.copy(&path.join(&name), &to.join(&name))?;
            }
            return Ok(());
        }
        if to.symlink_metadata().is_ok() || !(meta.is_file() || meta.is_symlink()) {
            return Ok(());
        }
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        if meta.is_symlink() {
            return std::os::unix::fs::symlink(std::fs::read_link(&from)?, to);
        }
        // The next run would mistake half a file for the whole.
        std::fs::copy(&from, to).map(|_| ()).inspect_err(|_| drop(std::fs::remove_file(to)))
    }
}

/// What is there, if anything is. What cannot be looked at is not missing.
fn there(meta: io::Result<Metadata>) -> io::Result<Option<Metadata>> {
    match meta {
        Ok(meta) => Ok(Some(meta)),
        Err(error) if refusal::of(&error, Path::new("")).is_none() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Links to a path of the project, unless something exists there.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    if there(from.metadata())?.is_none() || to.symlink_metadata().is_ok() {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::os::unix::fs::symlink(from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_inside_are_taken() {
        for bad in ["", "/etc/passwd", "../x", "a/../../x", "."] {
            assert!(inside(Path::new(bad)).is_err(), "{bad}");
        }
        assert_eq!(inside(Path::new("a/.env")), Ok(PathBuf::from("a/.env")));
    }

    #[test]
    fn a_lock_file_that_changes_is_another_input() {
        let dir = tempfile::tempdir().expect("a directory");
        let wanted = Worktree { setup: "npm ci".to_owned(), ..Worktree::default() };
        let first = inputs_of(&wanted, "", dir.path());
        assert_eq!(first, inputs_of(&wanted, "", dir.path()));
        std::fs::write(dir.path().join("package-lock.json"), "{}").expect("written");
        let second = inputs_of(&wanted, "", dir.path());
        assert_ne!(first, second);
        assert_ne!(second, inputs_of(&Worktree { setup: "npm install".to_owned(), ..wanted }, "", dir.path()));
    }
}
