//! What a person changed in a workspace while they held its task.

use super::call::records;
use super::names;
use super::refs::Move;
use super::snapshot::Place;
use super::{Repo, Result, Work};
use rekindle_core::text::counted;

/// Files that are named: more than a person reads.
const FILES_MAX: usize = 60;

/// Commits that are named.
const COMMITS_MAX: usize = 20;

impl Work {
    /// Keeps what is in a workspace before a person works in it: their changes are counted from here, however often they are
    /// asked for.
    pub fn keep_for_person(&self, place: Place, key: &str, attempt: u64) -> Result<()> {
        if let Some(commit) = self.snapshot(place, key, attempt, "attach")?.commit {
            self.repo.transact(&[Move::Set(&names::person(&self.run, key), &commit)])?;
        }
        Ok(())
    }

    /// Names what differs from what the person found: files, then commits. What is there now is kept as well.
    pub fn changed_by_person(&self, place: Place, key: &str, attempt: u64) -> Result<Vec<String>> {
        let found = self.repo.commit(&names::person(&self.run, key))?;
        let last = if found.is_some() { found } else { self.repo.commit(&names::last(&self.run, key))? };
        let before = match last {
            // A snapshot's parent is the commit that was checked out then.
            Some(last) => Some((self.repo.commit(&format!("{last}^1"))?, last)),
            None => None,
        };
        let now = self.snapshot(place, key, attempt, "person")?.commit;
        let Some(now) = now else { return Ok(Vec::new()) };
        let (head, before) = match before {
            Some(before) => before,
            // Nothing differed from what was committed then; later commits cannot be distinguished from it.
            None => {
                let base = self.base(key).or(self.repo.commit(&format!("{now}^1"))?);
                let Some(base) = base else { return Ok(Vec::new()) };
                (Some(base.clone()), base)
            }
        };
        if before == now {
            return Ok(Vec::new());
        }
        let mut lines = self.repo.files_between(&before, &now)?;
        if let Some(head) = head {
            lines.extend(self.repo.commits_between(&head, &format!("{now}^1"))?);
        }
        Ok(lines)
    }
}

impl Repo {
    fn files_between(&self, before: &str, after: &str) -> Result<Vec<String>> {
        let listed =
            self.call().args(["diff-tree", "-r", "--no-renames", "--name-status", "-z", before, after]).ok()?;
        let fields: Vec<String> = records(&listed).map(|field| String::from_utf8_lossy(field).into_owned()).collect();
        let word = |status: &str| match status {
            "A" => "new",
            "D" => "deleted",
            _ => "changed",
        };
        let pairs = fields.chunks_exact(2);
        let more = pairs.len().saturating_sub(FILES_MAX);
        let mut lines: Vec<String> =
            pairs.take(FILES_MAX).map(|pair| format!("{}: {}", word(&pair[0]), pair[1])).collect();
        if more > 0 {
            lines.push(format!("and {}", counted(more, "more file", "more files")));
        }
        Ok(lines)
    }

    fn commits_between(&self, before: &str, after: &str) -> Result<Vec<String>> {
        let most = format!("--max-count={COMMITS_MAX}");
        let call = self.call().args(["log", "--no-show-signature", "--format=%h %s", &most]);
        let listed = call.arg(format!("{before}..{after}")).arg("--").ok()?;
        Ok(String::from_utf8_lossy(&listed).lines().map(|line| format!("commit {line}")).collect())
    }
}
