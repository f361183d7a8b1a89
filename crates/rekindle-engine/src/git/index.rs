//! Private indexes, and adding everything on disk to one: the bytes as they are, whatever attributes, filters and marks in
//! the real index say.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::call::{self, Call, records};
use super::{Checkout, Error, Left, Repo, Result};

/// Attempts to read a file that changes while it is read.
const TRIES: u32 = 3;

/// What staging could not complete.
#[derive(Debug, Default)]
pub(super) struct Staged {
    /// Files that could not be read.
    pub left: Vec<Left>,
    /// Repositories inside this one, which git does not enter.
    pub nested: Vec<PathBuf>,
}

impl Repo {
    /// An index of our own with the contents of the checkout's index, or of its HEAD if the index cannot be read.
    pub(super) fn private_index(&self, at: &Checkout, head: Option<&str>, name: &str) -> Result<PathBuf> {
        let index = self.private(name)?;
        let real = at.git_dir.join("index");
        let copied = !self.is_lost(at) && copy_with_time(&real, &index).map_err(|e| Error::io(&real, e))?;
        if copied && self.clear_marks(at, &index).is_ok() {
            return Ok(index);
        }
        // No index, or one that git cannot read: everything is then compared by its bytes.
        let index = self.private(name)?;
        if let Some(head) = head {
            self.call_at(at).index(&index).args(["read-tree", head]).ok()?;
        }
        Ok(index)
    }

    /// Whether a worktree has lost its git directory, so that the repository's own is used instead.
    pub(super) fn is_lost(&self, at: &Checkout) -> bool {
        at.git_dir == self.common && at.dir != self.top
    }

    /// Removes the marks that tell git not to check an entry's file.
    fn clear_marks(&self, at: &Checkout, index: &Path) -> Result<()> {
        let listed = self.look_at(at).index(index).args(["ls-files", "-v", "-z"]).ok()?;
        let (mut assumed, mut skipped) = (Vec::new(), Vec::new());
        for entry in records(&listed) {
            let Some((tag, [b' ', path @ ..])) = entry.split_first() else {
                continue;
            };
            if tag.is_ascii_lowercase() {
                assumed.extend([path, b"\0"].concat());
            }
            let outside_sparse = matches!(tag, b'S' | b's');
            if outside_sparse && at.dir.join(call::path(path)).symlink_metadata().is_ok() {
                skipped.extend([path, b"\0"].concat());
            }
        }
        for (mark, paths) in [("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)] {
            if !paths.is_empty() {
                let call = self.call_at(at).index(index).args(["update-index", "-z", mark, "--stdin"]);
                call.input(paths).ok()?;
            }
        }
        Ok(())
    }

    /// Adds everything on disk that is not ignored to an index; `raw` takes bytes as they are.
    pub(super) fn stage(&self, at: &Checkout, index: Option<&Path>, raw: bool) -> Result<Staged> {
        let mut staged = Staged::default();
        let mut complete = false;
        for _ in 0..TRIES {
            let call = self.staging(at, index, raw)?.args(["add", "--all", "--sparse", "--ignore-errors"]);
            let answer = call.run()?;
            if answer.code != 0 && answer.code != 1 {
                return Err(answer.failed());
            }
            staged.left = unopened(&answer.err);
            complete = answer.code == 0;
            if complete {
                break;
            }
        }
        let others = self.staging(at, index, raw)?.args(["ls-files", "--others", "--exclude-standard", "-z"]).ok()?;
        for path in records(&others) {
            match path.strip_suffix(b"/") {
                Some(nested) => staged.nested.push(call::path(nested)),
                None => staged.left.push(Left::unread(path)),
            }
        }
        if !complete {
            let arguments = ["diff-files", "--name-only", "-z", "--ignore-submodules=all"];
            let changed = self.staging(at, index, raw)?.args(arguments).ok()?;
            staged.left.extend(records(&changed).map(Left::unread));
        }
        Ok(staged)
    }

    pub(super) fn staging(&self, at: &Checkout, index: Option<&Path>, raw: bool) -> Result<Call> {
        let call = self.call_at(at);
        let call = if raw { self.raw(call)?.plain_files() } else { call };
        Ok(match index {
            Some(index) => call.index(index),
            None => call,
        })
    }

    /// A call that does not convert line endings, encodings or keywords between files and objects.
    pub(super) fn raw(&self, call: Call) -> Result<Call> {
        let nothing = self.empty_tree()?;
        let call = call.config("core.autocrlf", "false").config("core.attributesFile", "/dev/null");
        Ok(call.env("GIT_ATTR_SOURCE", nothing))
    }

    pub(super) fn write_tree(&self, at: &Checkout, index: Option<&Path>) -> Result<String> {
        let call = self.call_at(at).arg("write-tree");
        match index {
            Some(index) => call.index(index).id(),
            None => call.id(),
        }
    }
}

/// Copies an index together with its modification time, from which git knows which files may have changed in the instant
/// that it was written. Returns false if there is none.
fn copy_with_time(from: &Path, to: &Path) -> io::Result<bool> {
    let source = match File::open(from) {
        Ok(source) => source,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let written = source.metadata()?.modified()?;
    let mut target = File::create_new(to)?;
    io::copy(&mut &source, &mut target)?;
    target.set_modified(written)?;
    Ok(true)
}

/// Directories that git says it could not open: it treats them as empty.
pub(super) fn unopened(said: &str) -> Vec<Left> {
    let named = said.lines().filter_map(|line| line.split_once("could not open directory '")?.1.split_once("':"));
    named.map(|(path, _)| Left::unread(path.as_bytes())).collect()
}
