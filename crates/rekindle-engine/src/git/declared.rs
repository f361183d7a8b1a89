//! Declared artifacts that git ignores. A task promised them and its checks have seen them, so they are included in
//! snapshots and merges all the same; a worktree is not removed while it contains one that could not be included.
//!
//! What is declared for a workspace is also kept beside its git directory: a later coordinator, or another run that finds
//! the worktree, must not lose what it cannot know about.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rekindle_shim::atomic;

use super::call::{self, records};
use super::salvage::plain;
use super::{Checkout, Error, Left, Repo, Result, Work, held};

/// Ignored files that are included as declared artifacts of one workspace. A build's results fit; a folder of downloaded
/// packages does not, and a repository would never get rid of it again.
const FILES_MAX: usize = 10_000;

/// The same in bytes: git keeps and compresses every one of them.
const BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Links followed from one declared path to its file, the same number as in the system itself.
const LINKS_MAX: usize = 40;

/// Files of declared artifacts that are named one by one if they could not be included.
const NAMED_MAX: usize = 20;

/// What is declared for a worktree, in its git directory: paths that end with a zero byte.
const LIST: &str = "rekindle-artifacts";

/// Where files are staged.
#[derive(Clone, Copy)]
pub(super) struct Staging<'a> {
    pub at: &'a Checkout,
    /// An index of our own; `None` means the checkout's.
    pub index: Option<&'a Path>,
    /// Bytes as they are on disk, without filters.
    pub raw: bool,
}

impl Work {
    /// Sets which paths, as in the plan, the tasks of a workspace promise. It counts from now on. Fails if the name is not
    /// valid for a workspace.
    pub fn declare(&self, key: &str, artifacts: &[String]) -> Result<()> {
        super::names::check(key)?;
        let paths: BTreeSet<PathBuf> = artifacts.iter().filter_map(|path| self.repo.declared_path(path)).collect();
        let (mut known, name) = (held(&self.repo.locks.declared), format!("{}/{key}", self.run));
        // One entry for every task of the plan that promises something, until its workspace is removed.
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
    /// A path of the plan from the top of the checkout; `None` if it leads out, or is the whole project.
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
        // A pattern such as `dist/` matches only what is named as a folder.
        let ask =
            |name: &OsStr| self.call().args(["--no-literal-pathspecs", "check-ignore", "-q", "--"]).arg(name).yes();
        // Git cannot answer for paths behind a link or in a submodule; that is found out when they are staged.
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
            // Whole or not at all: half a folder would look like the complete one.
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

    /// Declared artifacts that are on disk and, in whole or in part, neither in an index nor in a nested repository.
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

    /// What declared paths finally resolve to, and the ignored files below them, as far as they are not in an index. The
    /// path of a nested repository ends with a slash.
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

/// The links on the way to a path and what it finally resolves to, as far as they are inside `top`: removing the worktree
/// removes all of these.
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
