//! What a task's work changes, for people to read. It only reads: nothing is written, no filter or driver of the repository
//! is run, and a worktree that an agent is working in stays as it is.

use super::call::{self, records};
use super::names;
use super::{Repo, Result, Work};

/// How long a view waits for git: longer, and a person thinks it hangs.
const LOOK_MS: u64 = 10_000;

/// Names of new files that are listed.
const NEW_FILES_MAX: usize = 500;

/// New files whose content is shown: each costs a call.
const NEW_FILES_SHOWN: usize = 50;

/// The format of changes, whatever the user's settings say.
const FORM: [&str; 8] = [
    "--patch",
    "--find-renames",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--no-relative",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangesIn {
    /// In the commit that was merged.
    Merged,
    /// In a worktree that still exists.
    Worktree,
    Snapshot,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    pub place: ChangesIn,
    /// A unified diff, or its beginning.
    pub patch: String,
    /// Whether it is only the beginning.
    pub cut: bool,
    /// New files that git does not track yet, if a worktree was inspected; the content of the first ones is in the patch.
    pub new_files: Vec<String>,
}

impl Work {
    /// What the work of a key changes: what was merged, else what is in its worktree, else its newest snapshot.
    pub fn changes(&self, key: &str, merged: Option<&str>, most: usize) -> Result<Option<Changes>> {
        if let Some(commit) = merged.filter(|commit| call::is_id(commit)) {
            let before = match self.repo.commit(&format!("{commit}^1"))? {
                Some(before) => before,
                None => self.repo.empty_tree()?,
            };
            let (patch, cut) = self.repo.patch(&before, commit, most)?;
            return Ok(Some(Changes { place: ChangesIn::Merged, patch, cut, new_files: Vec::new() }));
        }
        let standing = self.path(key);
        if let Some(base) = self.base(key).filter(|_| standing.join(".git").exists()) {
            let call = self.repo.call_in(&standing).files().limit(LOOK_MS).args(["diff"]).args(FORM);
            let (mut patch, mut cut) = bounded(call.arg(&base).arg("--"), most)?;
            let others = self.repo.call_in(&standing).limit(LOOK_MS);
            let others = others.args(["ls-files", "--others", "--exclude-standard", "-z"]).ok()?;
            let mut new_files = Vec::new();
            for name in records(&others).take(NEW_FILES_MAX) {
                // Nearly everything that agents make is new: it is shown as the change that it will be once git tracks it.
                let shown = new_files.len() < NEW_FILES_SHOWN && patch.len() < most;
                if shown {
                    let (text, more) = self.new_file(&standing, name, most - patch.len())?;
                    patch.push_str(&text);
                    cut |= more;
                }
                new_files.push(String::from_utf8_lossy(name).into_owned());
            }
            return Ok(Some(Changes { place: ChangesIn::Worktree, patch, cut, new_files }));
        }
        self.snapshot_changes(key, most)
    }

    /// A file that git does not track yet, as a change. Links are not followed: git shows their targets.
    fn new_file(&self, standing: &std::path::Path, name: &[u8], most: usize) -> Result<(String, bool)> {
        let call = self.repo.call_in(standing).files().limit(LOOK_MS).args(["diff", "--no-index"]).args(FORM);
        let call = call.args(["--", "/dev/null"]).arg(call::path(name));
        let answer = call.config("core.quotePath", "false").beginning(most).run()?;
        Ok(whole_lines(&answer.out, most))
    }

    /// From what the first attempt found to what the newest left.
    fn snapshot_changes(&self, key: &str, most: usize) -> Result<Option<Changes>> {
        let Some(last) = self.repo.commit(&names::last(&self.run, key))? else { return Ok(None) };
        let taken = self.repo.snapshots(Some(key))?;
        let mut own = taken.iter().filter(|found| found.run == self.run);
        let start = own.find(|found| found.label.starts_with("start")).map(|found| found.commit.clone());
        // A workspace of its own started from a known commit; in the user's checkout only what the first attempt found is
        // known.
        let before = match self.base(key).or(start).filter(|before| *before != last) {
            Some(before) => before,
            None => match self.repo.commit(&format!("{last}^1"))? {
                Some(before) => before,
                None => self.repo.empty_tree()?,
            },
        };
        let (patch, cut) = self.repo.patch(&before, &last, most)?;
        Ok(Some(Changes { place: ChangesIn::Snapshot, patch, cut, new_files: Vec::new() }))
    }
}

impl Repo {
    pub(super) fn patch(&self, before: &str, after: &str, most: usize) -> Result<(String, bool)> {
        let call = self.call().files().limit(LOOK_MS).args(["diff-tree", "-r"]).args(FORM);
        bounded(call.args([before, after]), most)
    }
}

/// The beginning of an output, cut between two lines.
fn bounded(call: call::Call, most: usize) -> Result<(String, bool)> {
    let out = call.config("core.quotePath", "false").beginning(most).ok()?;
    Ok(whole_lines(&out, most))
}

fn whole_lines(out: &[u8], most: usize) -> (String, bool) {
    let text = String::from_utf8_lossy(out);
    if out.len() < most {
        return (text.into_owned(), false);
    }
    let end = text.rfind('\n').map_or(0, |at| at + 1);
    (text[..end].to_owned(), true)
}
