//! Control groups: where on this machine a group can be made for an agent, in version 2 and in version 1.
//!
//! Two layouts of the same files. Version 2 has one hierarchy in which controllers have to be passed down; version 1 has one
//! hierarchy for each controller. A host may have both. A group is named after the attempt's nonce, which nobody else knows:
//! every process in a group of that name is proven ours.

mod group;
mod room;
pub(crate) mod scope;

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::fs::Access;

use crate::caps::By;
pub use group::{Dir, Group, Oom};
pub use room::{Room, room};

/// Prefix of the names of all our groups.
pub const PREFIX: &str = "rekindle-";

/// The group that a coordinator moves itself into, so that the one it was started in can pass its controllers down.
const LEAF: &str = "rekindle-supervisor";

/// Characters of the nonce's hash in a name: no two attempts on a machine share them, and they reveal nothing about the
/// nonce.
const HASH_LETTERS: usize = 16;

/// Characters of an attempt's name in a group's name.
const ATTEMPT_LETTERS: usize = 32;

/// The name of an attempt's group.
pub fn name(attempt: &str, nonce: &str) -> String {
    let plain = attempt.chars().filter(char::is_ascii_alphanumeric).take(ATTEMPT_LETTERS);
    let hash = blake3::derive_key("rekindle cgroup name 1", nonce.as_bytes());
    let letters = blake3::Hash::from(hash).to_hex();
    format!("{PREFIX}{}-{}", plain.collect::<String>(), &letters[..HASH_LETTERS])
}

/// The attempt that a group is named after.
pub fn attempt_in(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX)?.rsplit_once('-').map(|(attempt, _)| attempt)
}

/// Directories below which groups can be made: this process's own groups in each hierarchy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// Version 2.
    pub unified: Option<PathBuf>,
    /// Version 1, memory.
    pub memory: Option<PathBuf>,
    /// Version 1, processes.
    pub processes: Option<PathBuf>,
}

impl Layout {
    /// The layout of this process.
    pub fn here() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self::read(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
    }

    fn read(mounts: &str, own: &str) -> Self {
        let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::read).collect();
        let find = |controller: &str| {
            let path = own_path(own, controller)?;
            let fitting = mounts.iter().filter(|mount| mount.holds(controller));
            fitting.filter_map(|mount| mount.dir_of(path)).find(|dir| dir.is_dir())
        };
        let above = |dir: PathBuf| match dir.file_name().is_some_and(|name| name == LEAF) {
            true => dir.parent().map_or_else(|| dir.clone(), Path::to_owned),
            false => dir,
        };
        Self { unified: find("").map(above), memory: find("memory"), processes: find("pids") }
    }

    pub fn dirs(&self) -> impl Iterator<Item = &Path> {
        [&self.unified, &self.memory, &self.processes].into_iter().flatten().map(PathBuf::as_path)
    }

    /// What would cap memory and processes here. Changes nothing.
    pub fn controllers(&self) -> (By, By) {
        let second = self.unified.as_deref().map_or((false, false), |dir| {
            let passes = passed_down(dir);
            let can = |word: &str| may_write(dir) && (passes.has(word) || offered(dir).has(word) && can_pass_down(dir));
            (can("memory"), can("pids"))
        });
        let first = |dir: &Option<PathBuf>| dir.as_deref().is_some_and(may_write);
        let by = |second: bool, first: bool| match (second, first) {
            (true, _) => By::Cgroup2,
            (_, true) => By::Cgroup1,
            _ => By::Nothing,
        };
        (by(second.0, first(&self.memory)), by(second.1, first(&self.processes)))
    }

    /// Makes the group of this process pass memory and processes down to the groups of its agents. For a coordinator, before
    /// it starts anything: version 2 demands that a group which passes controllers down holds no process itself, so this
    /// process moves into a group below. Other processes are never moved: if there are others in the group, nothing is done.
    pub fn prepare(&self) {
        let Some(dir) = self.unified.as_deref() else { return };
        let (offered, passes) = (offered(dir), passed_down(dir));
        let missing: Vec<&str> =
            ["memory", "pids"].into_iter().filter(|word| offered.has(word) && !passes.has(word)).collect();
        if missing.is_empty() || !may_write(dir) || !can_pass_down(dir) {
            return;
        }
        let order: Vec<String> = missing.iter().map(|word| format!("+{word}")).collect();
        let pass = || write(&dir.join("cgroup.subtree_control"), &order.join(" "));
        if is_root(dir) {
            let _not_passed = pass();
            return;
        }
        let (leaf, own) = (dir.join(LEAF), std::process::id().to_string());
        let _there = fs::create_dir(&leaf);
        if write(&leaf.join("cgroup.procs"), &own).is_ok() && pass().is_err() {
            let _stays = write(&dir.join("cgroup.procs"), &own);
            let _in_use = fs::remove_dir(&leaf);
        }
    }
}

/// Whether a group may start to pass controllers down: the root group always may, another one only when this process is
/// alone in it.
fn can_pass_down(dir: &Path) -> bool {
    let alone = || {
        let members = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
        members.split_ascii_whitespace().eq([std::process::id().to_string()])
    };
    may_write(&dir.join("cgroup.subtree_control")) && (is_root(dir) || alone())
}

/// The root group of a machine has no type.
fn is_root(dir: &Path) -> bool {
    !dir.join("cgroup.type").exists()
}

/// Names of controllers.
struct Words(String);

impl Words {
    fn has(&self, word: &str) -> bool {
        self.0.split_ascii_whitespace().any(|found| found == word)
    }
}

fn offered(dir: &Path) -> Words {
    Words(fs::read_to_string(dir.join("cgroup.controllers")).unwrap_or_default())
}

fn passed_down(dir: &Path) -> Words {
    Words(fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap_or_default())
}

fn may_write(path: &Path) -> bool {
    rustix::fs::access(path, Access::WRITE_OK).is_ok()
}

/// Writes a control file, which takes a value in one call.
fn write(path: &Path, value: &str) -> io::Result<()> {
    use std::io::Write;
    fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// One mounted hierarchy.
struct Mount {
    /// The group that is mounted.
    root: PathBuf,
    at: PathBuf,
    /// The controllers of version 1; `None` for version 2.
    controllers: Option<Vec<String>>,
}

impl Mount {
    /// Parses one line of `mountinfo`, if it describes a hierarchy.
    fn read(line: &str) -> Option<Self> {
        let (front, back) = line.split_once(" - ")?;
        let mut front = front.split(' ').skip(3);
        let (root, at) = (unescape(front.next()?), unescape(front.next()?));
        let mut back = back.split(' ');
        let controllers = match back.next()? {
            "cgroup2" => None,
            "cgroup" => Some(back.nth(1)?.split(',').map(str::to_owned).collect()),
            _ => return None,
        };
        Some(Self { root, at, controllers })
    }

    fn holds(&self, controller: &str) -> bool {
        match &self.controllers {
            None => controller.is_empty(),
            Some(all) => !controller.is_empty() && all.iter().any(|one| one == controller),
        }
    }

    /// The directory of a group, if it is below the mounted group.
    fn dir_of(&self, group: &str) -> Option<PathBuf> {
        let below = Path::new(group).strip_prefix(&self.root).ok()?;
        let plain = below.components().all(|part| matches!(part, Component::Normal(_)));
        plain.then(|| self.at.join(below)).map(|dir| dir.components().collect())
    }
}

/// The group of this process in the hierarchy of a controller; an empty controller means version 2.
fn own_path<'a>(table: &'a str, controller: &str) -> Option<&'a str> {
    table.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        controllers.split(',').any(|one| one == controller).then_some(path)
    })
}

/// `mountinfo` writes spaces and similar characters as octal numbers.
fn unescape(text: &str) -> PathBuf {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    PathBuf::from(escapes.iter().fold(text.to_owned(), |text, (code, letter)| text.replace(code, letter)))
}

#[cfg(test)]
mod tests;
