//! Moves a person's checkout forward to a commit. Git moves the branch only after it has written all files; if anything
//! stops it before that, the files are put back (`put_back`), at once or by the next landing.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::call::{self, records};
use super::put_back::{Change, Journal, Journaled};
use super::{Error, Ready, Repo, Result, Work};

/// How long git may take to write the files of a checkout.
pub(super) const CHECKOUT_MS: u64 = 1_800_000;

/// Files that an error names.
pub(super) const NAMED_MAX: usize = 20;

/// Disk usage of a file is counted in these blocks.
const BLOCK_BYTES: u64 = 4096;

/// Beyond the files themselves: folders, locks and git's own records.
const SPARE_BYTES: u64 = 256 * 1024;
const SPARE_FILES: u64 = 16;

impl Work {
    /// Repairs what an interrupted landing left: a branch that has moved gets its files, one that has not gets its old ones
    /// back. Returns whether there was one. Fails if another landing is in progress, or the disk fails again.
    pub fn settle_landing(&self) -> Result<bool> {
        if !self.repo.has_journal() {
            return Ok(false);
        }
        let _alone = self.repo.landing_lock()?;
        self.repo.settle()
    }

    /// Whether a landing is under way or was cut short.
    pub fn landing_is_open(&self) -> bool {
        self.repo.has_journal()
    }
}

impl Repo {
    /// Moves a checkout forward to a commit, with its files. Returns false if the checkout is at another commit.
    pub(super) fn forward(&self, at: &Path, ready: &Ready) -> Result<bool> {
        // Git holds the lock too, so that a git that outlives this process is waited for.
        let _alone = self.landing_lock()?;
        self.settle()?;
        let head = self.head_of(at)?;
        if head != ready.target {
            return Ok(false);
        }
        self.refuse_unclean(at)?;
        let changes = self.changes(&ready.target, &ready.commit)?;
        self.require_room(at, &changes)?;
        let journal = self.open_journal(Journal::new(at, &ready.target, &ready.commit, &changes))?;
        // The person asked for it, as for a `git merge` of their own, so the repository's filters apply to its files.
        let options =
            ["merge", "--ff-only", "--no-squash", "--no-verify-signatures", "--no-overwrite-ignore", "--quiet"];
        let merged = self.call_in(at).limit(CHECKOUT_MS).args(options).arg(&ready.commit).run();
        // The branch's position decides, not what git said about it.
        if self.head_of(at)? == ready.commit {
            self.finish(journal)?;
            return Ok(true);
        }
        let failed = merged.map_or_else(|error| error, |answer| answer.failed());
        self.put_back(journal, &failed)?;
        Err(failed)
    }

    /// The files are on disk before the means to put them back is deleted.
    fn finish(&self, journal: Journaled) -> Result<()> {
        // What is on the branch has landed, whatever the disk reports afterwards: the next landing checks the files again.
        if self.sync_to_disk().is_ok() {
            journal.close()?;
        }
        Ok(())
    }

    pub(super) fn head_of(&self, at: &Path) -> Result<String> {
        self.call_in(at).args(["rev-parse", "--verify", "HEAD^{commit}"]).id()
    }

    fn refuse_unclean(&self, at: &Path) -> Result<()> {
        // With the person's own filters, as their files were written.
        let call = self.call_in(at).limit(CHECKOUT_MS).args(["status", "--porcelain", "-z", "--untracked-files=no"]);
        let open = call.ok()?;
        let files: Vec<String> = records(&open)
            .take(NAMED_MAX)
            .filter_map(|entry| entry.get(3..))
            .map(|path| String::from_utf8_lossy(path).into_owned())
            .collect();
        if files.is_empty() { Ok(()) } else { Err(Error::Unclean { at: at.to_owned(), files }) }
    }

    /// The files in which two commits differ.
    pub(super) fn changes(&self, from: &str, to: &str) -> Result<Vec<Change>> {
        let options = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev"];
        let listed = self.call().args(options).args([from, to]).ok()?;
        let fields: Vec<&[u8]> = records(&listed).collect();
        Ok(fields.chunks_exact(2).filter_map(|pair| Change::read(pair[0], pair[1])).collect())
    }

    /// Fails before a file is touched if the disk has no room.
    fn require_room(&self, at: &Path, changes: &[Change]) -> Result<()> {
        let ids: BTreeSet<&str> =
            changes.iter().flat_map(|change| [change.before(), change.after()]).flatten().collect();
        let ids: Vec<&str> = ids.into_iter().collect();
        let format = "--batch-check=%(objectname) %(objectsize)";
        let listed = self.call().args(["cat-file", format]).input(ids.join("\n") + "\n").ok()?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let sizes: std::collections::BTreeMap<&str, u64> = listed
            .lines()
            .filter_map(|line| line.split_once(' ').map(|(id, size)| (id, size.parse().unwrap_or(0))))
            .collect();
        let blocks = |id: Option<&str>| {
            let bytes = id.and_then(|id| sizes.get(id)).copied().unwrap_or(0);
            bytes.div_ceil(BLOCK_BYTES) * BLOCK_BYTES
        };
        // A file's new content replaces the old one, so only growth is counted.
        let grows =
            changes.iter().map(|change| blocks(change.after()).saturating_sub(blocks(change.before()))).sum::<u64>();
        let index = self.call_in(at).args(["rev-parse", "--path-format=absolute", "--git-path", "index"]).line()?;
        let index = call::path(&index).metadata().map_or(0, |meta| meta.len());
        let needs = grows + index + SPARE_BYTES;
        let files = changes.iter().filter(|change| change.before().is_none()).count() as u64 + SPARE_FILES;
        let disk = rustix::fs::statvfs(at).map_err(|error| Error::io(at, error.into()))?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        // Some filesystems do not count files: they say that there are none at all.
        let few_files = disk.f_files > 0 && disk.f_favail < files;
        match free < needs || few_files {
            true => Err(Error::NoRoom { at: at.to_owned(), needs_kib: needs.div_ceil(1024), free_kib: free / 1024 }),
            false => Ok(()),
        }
    }
}

/// The bytes of a path.
pub(super) fn bytes_of(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}
