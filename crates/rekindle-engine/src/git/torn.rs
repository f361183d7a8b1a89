//! What a power cut leaves of commits that an agent's own git made: that git syncs neither objects nor refs, so files of
//! both may exist and be empty. This is detected before anything is built on them; acknowledged work is never affected,
//! because it is synced before it is acknowledged.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::call::records;
use super::{Checkout, Error, Repo, Result, Work, names};
use crate::save::move_if_there;

/// Object files that are checked when a run continues; a repository with more is packed by its user's git.
const LOOSE_MAX: usize = 500_000;

/// Length of the name of an object folder.
const FOLDER_LETTERS: usize = 2;

impl Repo {
    /// Deletes empty object files: git takes such a file for the object, never writes it again, and cannot read it either. A
    /// live git gives an object its name only when it is written.
    pub(super) fn sweep_objects(&self) {
        let objects = self.common.join("objects");
        let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
        let folders = entries(&objects).filter(|folder| folder.file_name().len() == FOLDER_LETTERS);
        for file in folders.flat_map(|folder| entries(&folder.path())).take(LOOSE_MAX) {
            let named = !file.file_name().to_string_lossy().starts_with("tmp_");
            let empty = file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == 0);
            if named && empty {
                // A file that stays is found again at the next start.
                drop(std::fs::remove_file(file.path()));
                self.locks.torn.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Whether a commit exists with everything that it has and `known` has not.
    pub(super) fn is_whole(&self, commit: &str, known: Option<&str>) -> Result<bool> {
        let call = self.call().args(["rev-list", "--objects", "--quiet", "--end-of-options", commit]);
        let call = match known {
            Some(known) => call.arg(format!("^{known}")),
            None => call,
        };
        Ok(call.run()?.code == 0)
    }

    /// Whether an index names only existing objects. Checked only if some were found empty.
    pub(super) fn is_index_whole(&self, at: &Checkout) -> Result<bool> {
        if !self.locks.torn.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let listed = self.look_at(at).args(["ls-files", "--stage", "-z"]).ok()?;
        // A submodule's commit is not an object of this repository.
        let own = records(&listed).filter(|entry| !entry.starts_with(b"160000 "));
        let ids: Vec<&[u8]> = own.filter_map(|entry| entry.split(|b| *b == b' ').nth(1)).collect();
        let answer =
            self.look_at(at).args(["cat-file", "--batch-check"]).input([ids.join(&b'\n'), vec![b'\n']].concat());
        Ok(!String::from_utf8_lossy(&answer.ok()?).lines().any(|line| line.ends_with(" missing")))
    }

    /// Moves away the file of a ref whose value cannot be read, so that the ref can be written again.
    pub(super) fn clear_torn(&self, name: &str) -> Result<()> {
        let file = self.common.join(name);
        move_if_there(&file, &self.private("torn-ref")?).map_err(|e| Error::io(&file, e))
    }
}

impl Work {
    /// The commit that a worktree is at, if it is complete.
    pub(super) fn whole_head(&self, key: &str, at: &Checkout) -> Result<Option<String>> {
        let answer = self.repo.look_at(at).args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).run()?;
        let head = String::from_utf8_lossy(&answer.out).trim_end().to_owned();
        if answer.code != 0 || !super::call::is_id(&head) {
            return Ok(None);
        }
        let base = self.repo.commit(&names::base(&self.run, key)).ok().flatten();
        Ok(self.repo.is_whole(&head, base.as_deref())?.then_some(head))
    }
}
