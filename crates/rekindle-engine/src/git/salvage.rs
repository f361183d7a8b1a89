//! Finding snapshots again and restoring them. Needs no coordinator and no store; overwrites nothing without consent.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use super::call::{self, records};
use super::refs::{Move, Moved, there};
use super::{Checkout, Error, Repo, Result, names};

/// A snapshot that can be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub reference: String,
    pub run: String,
    /// Its workspace: a task's or an agent's name.
    pub key: String,
    pub attempt: u64,
    /// The boundary of the attempt at which it was taken.
    pub label: String,
    /// When it was taken, in seconds since 1970.
    pub time: i64,
    pub commit: String,
    /// What differs from the workspace's start, by path.
    pub files: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    pub files: usize,
    pub written: usize,
}

impl Repo {
    /// All snapshots, oldest first; of one workspace or of all.
    pub fn snapshots(&self, key: Option<&str>) -> Result<Vec<Leftover>> {
        let format =
            "%(refname)%00%(objectname)%00%(committerdate:unix)%00%(trailers:key=Rekindle-Base,valueonly,separator=)";
        let call = self.call().args(["for-each-ref", &format!("--format={format}"), "refs/rekindle/"]);
        let listed = call.ok()?;
        let mut found = Vec::new();
        for line in String::from_utf8_lossy(&listed).lines() {
            let mut fields = line.split('\0');
            let (Some(reference), Some(commit), Some(time)) = (fields.next(), fields.next(), fields.next()) else {
                continue;
            };
            let Some((run, of, attempt, label)) = names::parse_snapshot(reference) else {
                continue;
            };
            if key.is_some_and(|key| key != of) {
                continue;
            }
            found.push(Leftover {
                reference: reference.to_owned(),
                run,
                key: of,
                attempt,
                label,
                time: time.parse().unwrap_or(0),
                files: self.changed(fields.next().unwrap_or_default().trim(), commit)?,
                commit: commit.to_owned(),
            });
        }
        // Oldest first; within a second by attempt, and the start of one before its end.
        found.sort_by(|a, b| (a.time, a.attempt).cmp(&(b.time, b.attempt)).then_with(|| b.label.cmp(&a.label)));
        Ok(found)
    }

    /// What differs between a beginning and a snapshot.
    fn changed(&self, base: &str, commit: &str) -> Result<Vec<String>> {
        let base = if call::is_id(base) { self.commit(base)? } else { None };
        let base = match base {
            Some(base) => base,
            None => self.empty_tree()?,
        };
        let listed = self.call().args(["diff-tree", "-r", "--name-only", "-z", &base, commit]).ok()?;
        Ok(records(&listed).map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// Writes the files of a snapshot into a directory. Existing files with other content are overwritten only with `force`;
    /// files that the snapshot does not have stay. Fails if files would be overwritten, or git or the disk fails.
    pub fn restore(&self, commit: &str, dir: &Path, force: bool) -> Result<Restored> {
        std::fs::create_dir_all(dir).map_err(|e| Error::io(dir, e))?;
        let dir = dir.canonicalize().map_err(|e| Error::io(dir, e))?;
        let at = Checkout { dir, git_dir: self.git_dir.clone() };
        let index = self.private("restore")?;
        let done = self.restore_with(&index, commit, &at, force);
        drop(std::fs::remove_file(&index));
        done
    }

    fn restore_with(&self, index: &Path, commit: &str, at: &Checkout, force: bool) -> Result<Restored> {
        let call = || Ok(self.raw(self.call_at(at))?.plain_files().index(index));
        call()?.args(["read-tree", commit]).ok()?;
        let files = records(&call()?.args(["ls-files", "-z"]).ok()?).count();
        // Exits with 1 for files that differ or are missing, which is queried next.
        call()?.args(["update-index", "-q", "--refresh"]).run()?;
        let listed = call()?.args(["diff-files", "--name-status", "-z", "--ignore-submodules=all"]).ok()?;
        let mut parts = records(&listed);
        let (mut absent, mut differing) = (0, Vec::new());
        while let (Some(status), Some(path)) = (parts.next(), parts.next()) {
            match status {
                b"D" => absent += 1,
                _ => differing.push(String::from_utf8_lossy(path).into_owned()),
            }
        }
        if !force && !differing.is_empty() {
            return Err(Error::WouldOverwrite { dir: at.dir.clone(), files: differing });
        }
        let write = call()?.args(["checkout-index", "--all", "--quiet"]);
        let write = if force { write.arg("--force") } else { write };
        write.ok()?;
        Ok(Restored { files, written: absent + differing.len() })
    }

    /// Makes a branch of a snapshot; the name must be free. Fails if the name is taken or not valid for a branch, or git
    /// fails.
    pub fn restore_as_branch(&self, commit: &str, branch: &str) -> Result<()> {
        let commit = there(self.commit(commit)?, commit)?;
        self.call().args(["check-ref-format", "--branch", branch]).ok()?;
        let name = format!("{}{branch}", names::HEADS);
        match self.transact(&[Move::Create(&name, &commit)])? {
            Moved::Yes => Ok(()),
            Moved::Lost => {
                let said = format!("a branch called {branch} already exists: choose another name");
                Err(Error::Failed { what: "branch".to_owned(), said })
            }
        }
    }
}

/// A path without `.` and `..`; `None` if it leads out.
pub(super) fn plain(path: &Path) -> Option<OsString> {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => parts.push(name),
            Component::ParentDir if parts.pop() => {}
            _ => return None,
        }
    }
    (!parts.as_os_str().is_empty()).then(|| parts.into_os_string())
}
