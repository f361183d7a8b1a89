//! Declared artifacts that git ignores. A task promised them and its checks have seen them, so they are taken into snapshots
//! and merges all the same; a worktree is not removed while it holds one that could not be taken.
//!
//! What is declared for a workspace is kept beside its git directory too: a later coordinator, or another run that finds the
//! worktree, must not lose what it cannot know of.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rekindle_shim::atomic;

use super::call::{self, records};
use super::salvage::plain;
use super::{Checkout, Error, Left, Repo, Result, Work, held};

/// Ignored files that are taken for the declared artifacts of one workspace. A build's results fit; a folder of downloaded
/// packages does not, and a repository never gets rid of it again.
const FILES_MAX: usize = 10_000;

/// The same in bytes: git keeps and compresses every one of them.
const BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Links followed from one declared path to its file, as the system itself does.
const LINKS_MAX: usize = 40;

/// Files of declared artifacts that are named one by one when they could not be taken.
const NAMED_MAX: usize = 20;

/// What is declared for a worktree, in its git directory: paths that end with a zero byte.
const LIST: &str = "rekindle-artifacts";

/// Where files are staged.
#[derive(Clone, Copy)]
pub(super) struct Staging<'a> {
    pub at: &'a Checkout,
    /// An index of our own; none means the checkout's.
    pub index: Option<&'a Path>,
    /// Bytes as they are on disk, without filters.
    pub raw: bool,
}

impl Work {
    /// Says which paths, as in the plan, the tasks of a workspace promise. It counts from now on. Fails when the name
    /// cannot be a workspace's.
    pub fn declare(&self, key: &str, artifacts: &[String]) -> Result<()> {
        super::names::check(key)?;
        let paths: BTreeSet<PathBuf> = artifacts.iter().filter_map(|path| self.repo.declared_path(path)).collect();
        let (mut known, name) = (held(&self.repo.locks.declared), format!("{}/{key}", self.run));
        // One for every task of the plan that promises something, until its workspace goes.
        match paths.is_empty() {
            true => known.remove(&name),
            false => known.insert(name, paths),
        };
        Ok(())
    }

    /// The declared paths of a workspace, from the top of its checkout.
    pub(super) fn declared(&self, key: &str, at: &Checkout) -> Result<BTreeSet<PathBuf>> {
        let known = held(&self.repo.locks.declared).get(&format!("{}/{key}", self.run)).cloned();
        if at.dir == self.repo.top || self.repo.is_lost(at) {
            return Ok(known.unwrap_or_default());
        }
        let listed = std::fs::read(at.git_dir.join(LIST)).unwrap_or_default();
        let mut all: BTreeSet<PathBuf> = records(&listed).map(call::path).collect();
        let before = all.len();
        all.extend(known.unwrap_or_default());
        if all.len() > before {
            let bytes: Vec<u8> = all.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
            atomic::save(&at.git_dir, LIST, &bytes).map_err(|e| Error::io(&at.git_dir, e))?;
        }
        Ok(all)
    }
}

impl Repo {
    /// A path of the plan from the top of the checkout; none for one that leads out, or that is the whole project.
    fn declared_path(&self, path: &str) -> Option<PathBuf> {
        let inside = plain(&self.prefix.join(path))?;
        (inside != self.prefix.as_os_str()).then(|| PathBuf::from(inside))
    }

    /// Whether git ignores a declared artifact, which may not be there yet and may be a folder.
    pub fn ignores_artifact(&self, path: &str) -> Result<bool> {
        let Some(inside) = self.declared_path(path) else {
            return Ok(false);
        };
        let mut folder = inside.clone().into_os_string();
        folder.push("/");
        let asked = [inside.as_os_str(), &folder];
        // A pattern such as `dist/` matches what is named as a folder only.
        let ask =
            |name: &OsStr| self.call().args(["--no-literal-pathspecs", "check-ignore", "-q", "--"]).arg(name).yes();
        // What lies behind a link or in a submodule cannot be asked about; it is found out when it is taken.
        Ok(asked.iter().any(|name| ask(name).unwrap_or(false)))
    }

    /// Adds what is declared and ignored to an index in which everything else is staged.
    pub(super) fn force(&self, stage: &Staging<'_>, declared: &BTreeSet<PathBuf>) -> Result<Vec<Left>> {
        let at = stage.at;
        let (real, ignored) = self.ignored(stage, declared)?;
        let (mut files, mut bytes, mut names, mut left) = (0, 0, Vec::new(), Vec::new());
        for artifact in &real {
            let own = || ignored.iter().filter(|file| file.starts_with(artifact));
            let size = |file: &PathBuf| at.dir.join(file).symlink_metadata().map_or(0, |meta| meta.len());
            let (count, size) = (own().count(), own().map(size).sum::<u64>());
            // Whole or not at all: half a folder would look like all of it.
            if files + count > FILES_MAX || bytes + size > BYTES_MAX {
                left.push(Left::of(artifact, "is a declared artifact that git ignores, and too large to keep there"));
                continue;
            }
            (files, bytes) = (files + count, bytes + size);
            for file in own().filter(|file| !file.as_os_str().as_bytes().ends_with(b"/")) {
                names.extend([file.as_os_str().as_bytes(), b"\0"].concat());
            }
        }
        if !names.is_empty() {
            let arguments = ["add", "--force", "--sparse", "--ignore-errors", "--pathspec-from-file=-"];
            let call =
                self.staging(at, stage.index, stage.raw)?.args(arguments).arg("--pathspec-file-nul").input(names);
            let answer = call.run()?;
            if answer.code != 0 && answer.code != 1 {
                return Err(answer.failed());
            }
        }
        Ok(left)
    }

    /// Declared artifacts that are on disk and, in whole or in part, neither in an index nor in a repository inside.
    pub(super) fn untaken(&self, stage: &Staging<'_>, declared: &BTreeSet<PathBuf>) -> Result<Vec<Left>> {
        let at = stage.at;
        let (real, mut untaken) = self.ignored(stage, declared)?;
        for artifact in &real {
            let inside = repository_around(&at.dir, artifact);
            if let Some((repository, rest)) = inside {
                let arguments = ["ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--"];
                let asked = call::Call::new(&at.dir.join(&repository)).args(arguments).arg(&rest).ok();
                let lost = asked.map_or(true, |listed| !listed.is_empty());
                untaken.extend(lost.then(|| artifact.clone()));
            }
        }
        let why = "is a declared artifact that git could not take";
        Ok(untaken.iter().take(NAMED_MAX).map(|path| Left::of(path, why)).collect())
    }

    /// What declared paths are in the end, and the ignored files below them, as far as they are not in an index. A repository
    /// inside ends with a slash.
    fn ignored(&self, stage: &Staging<'_>, declared: &BTreeSet<PathBuf>) -> Result<(BTreeSet<PathBuf>, Vec<PathBuf>)> {
        let Staging { at, index, raw } = *stage;
        let real: BTreeSet<PathBuf> = declared.iter().flat_map(|path| behind_links(&at.dir, path)).collect();
        if real.is_empty() {
            return Ok((real, Vec::new()));
        }
        let arguments = ["ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--"];
        let listed = self.staging(at, index, raw)?.args(arguments).args(&real).ok()?;
        let ignored = records(&listed).map(call::path).collect();
        Ok((real, ignored))
    }
}

/// The links on the way to a path and what it is in the end, as far as they are inside of `top`: a worktree that goes takes
/// all of these with it.
fn behind_links(top: &Path, path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let mut parts = path.components();
        let mut at = PathBuf::new();
        let link = loop {
            let Some(part) = parts.next() else { break None };
            at.push(part);
            if let Ok(target) = top.join(&at).read_link() {
                break Some(target);
            }
        };
        let Some(target) = link else {
            if top.join(&path).symlink_metadata().is_ok() {
                found.push(path);
            }
            return found;
        };
        let from = at.parent().unwrap_or(Path::new("")).to_owned();
        let rest = parts.as_path().to_owned();
        found.push(at);
        let next = match target.strip_prefix(top) {
            Ok(inside) => inside.join(rest),
            Err(_) => from.join(target).join(rest),
        };
        match plain(&next) {
            Some(next) => path = PathBuf::from(next),
            None => return found,
        }
    }
    found
}

/// The innermost repository inside a checkout that holds a path, and the path in it.
fn repository_around(top: &Path, path: &Path) -> Option<(PathBuf, PathBuf)> {
    let around =
        path.ancestors().skip(1).filter(|dir| dir.components().any(|part| matches!(part, Component::Normal(_))));
    let mut inside = around.filter(|dir| top.join(dir).join(".git").symlink_metadata().is_ok());
    let repository = inside.next()?;
    Some((repository.to_owned(), path.strip_prefix(repository).ok()?.to_owned()))
}
