//! Landing: brings the result of a run into a branch of the person's own. What will be landed is made first, as a commit
//! that no branch names; then one move names it. The person's checkout is touched only by that move, only if it is clean,
//! and only forward.

use std::path::{Path, PathBuf};

use rustix::process::{Pid, test_kill_process};

use super::call::{self, records};
use super::names::{HEADS, record};
use super::refs::{Move, Moved, there};
use super::{Checkout, Error, Repo, Result, Work};

/// The trailer by which a squashed result is recognised.
const TRAILER: &str = "Rekindle-Landed";

/// The name of a trial's checkout, followed by the id of the process that tries.
const TRIAL: &str = "landing-";

/// The form in which the commits of a run get into a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Unchanged if the branch has not moved, with a merge commit if it has.
    Plain,
    /// With a merge commit.
    Merge,
    /// As one commit.
    Squash,
    /// One by one, on top of the branch.
    Rebase,
}

/// What can be landed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// The branch already contains it.
    Already,
    /// The run has changed nothing.
    Nothing,
    /// The branch and the result conflict.
    Conflict {
        files: Vec<String>,
    },
    /// Its commits one by one do not give the whole result: a merge contains changes of its own.
    Incomplete,
    Ready(Ready),
}

/// A commit that holds the branch and the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The branch's commit that it is based on.
    pub target: String,
    /// The run's newest commit.
    pub tip: String,
    pub commit: String,
    /// The branch has something that the run's own checks have not seen.
    pub moved: bool,
}

/// The result of a run, counted from where it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub commits: u64,
    pub files: u64,
    pub insertions: u64,
    pub deletions: u64,
    /// Everything in it is in the person's HEAD.
    pub taken: bool,
    /// The newest commit.
    pub tip: String,
}

impl Work {
    /// The newest commit of the result. Where a later run has taken the branch's name, what is recorded of this one counts.
    fn result_tip(&self) -> Result<String> {
        let tip = self.tip(None, &mut Vec::new())?;
        let recorded = self.repo.commit(&record(&self.run))?;
        match self.is_another_runs(&tip, recorded.as_deref())? {
            true => there(recorded, &self.branch),
            false => Ok(tip),
        }
    }

    /// Counts the result from `base`, or from where it diverged from HEAD.
    pub fn counted(&self, base: Option<&str>) -> Result<Counted> {
        let tip = self.result_tip()?;
        let (base, head) = (self.base_of_run(base, &tip)?, self.repo.commit("HEAD")?);
        let taken = head.map(|head| self.repo.contains(&head, &tip)).transpose()?.unwrap_or(false);
        let range = base.as_ref().map_or_else(|| tip.clone(), |base| format!("{base}..{tip}"));
        let commits = number(&self.repo.call().args(["rev-list", "--count", &range]).line()?);
        let from = base.map_or_else(|| self.repo.empty_tree(), Ok)?;
        let call = self.repo.call().args(["diff-tree", "-r", "--no-renames", "--numstat", "-z", &from, &tip]);
        let listed = call.files().ok()?;
        let mut counted = Counted { commits, taken, tip: tip.clone(), ..Counted::default() };
        for file in records(&listed) {
            let mut fields = file.split(|byte| *byte == b'\t');
            counted.files += 1;
            counted.insertions += number(fields.next().unwrap_or_default());
            counted.deletions += number(fields.next().unwrap_or_default());
        }
        Ok(counted)
    }

    /// Everything that the run changed, as one patch.
    pub fn whole_patch(&self, base: Option<&str>, most: usize) -> Result<(String, bool)> {
        let tip = self.result_tip()?;
        let base = self.base_of_run(base, &tip)?.map_or_else(|| self.repo.empty_tree(), Ok)?;
        self.repo.patch(&base, &tip, most)
    }

    /// The commit that a run started from; if none was recorded, the last one that it shares with HEAD.
    pub(super) fn base_of_run(&self, base: Option<&str>, tip: &str) -> Result<Option<String>> {
        if let Some(base) = base.map(|base| self.repo.commit(base)).transpose()?.flatten() {
            return Ok(Some(base));
        }
        match self.repo.commit("HEAD")? {
            Some(head) => self.repo.call().args(["merge-base", &head, tip]).id_if_any(),
            None => Ok(None),
        }
    }

    /// Prepares what will be landed in a branch. Nothing of the person's changes. Fails if there is no such branch, or git
    /// fails. `base` is where the run started, `since` the part of it that was landed before.
    pub fn prepare_landing(
        &self,
        into: &str,
        form: Form,
        (base, since): (Option<&str>, Option<&str>),
        message: &str,
    ) -> Result<Prepared> {
        let name = format!("{HEADS}{into}");
        let target = self.repo.commit(&name)?.ok_or_else(|| Error::NoBranch(into.to_owned()))?;
        let tip = self.tip(None, &mut Vec::new())?;
        if base == Some(tip.as_str()) {
            return Ok(Prepared::Nothing);
        }
        if self.repo.contains(&target, &tip)? {
            return Ok(Prepared::Already);
        }
        if self.is_squashed_in(&target, &tip)? {
            return Ok(Prepared::Already);
        }
        // What was landed as other commits is not a difference: it is merged from where it was landed.
        let merged = self.repo.merged_tree(&target, &tip, since)?;
        if merged.as_ref().is_ok_and(|tree| self.repo.tree(&target).is_ok_and(|own| own == *tree)) {
            return Ok(Prepared::Already);
        }
        let moved = !self.repo.contains(&tip, &target)?;
        let ready = |commit| Prepared::Ready(Ready { target: target.clone(), tip: tip.clone(), commit, moved });
        if form == Form::Plain && !moved {
            return Ok(ready(tip.clone()));
        }
        let tree = match merged {
            Ok(tree) => tree,
            Err(files) => return Ok(Prepared::Conflict { files }),
        };
        if form == Form::Rebase {
            return Ok(match self.rebased(&target, &tip, since)? {
                // Changes made in a merge belong to no commit of their own, and a rebase leaves them out.
                Ok(commit) if self.repo.tree(&commit)? != tree => Prepared::Incomplete,
                Ok(commit) => ready(commit),
                Err(files) => Prepared::Conflict { files },
            });
        }
        let text = format!("{}\n\n{TRAILER}: {tip}\nRekindle-Run: {}\n", message.trim_end(), self.run);
        let parents: &[&str] = if form == Form::Squash { &[&target] } else { &[&target, &tip] };
        Ok(ready(self.repo.commit_tree(&tree, parents, &text)?))
    }

    /// Whether a branch has a result as one commit. The branch may have moved on since.
    fn is_squashed_in(&self, target: &str, tip: &str) -> Result<bool> {
        let wanted = format!("{TRAILER}: {tip}");
        let range = format!("{tip}..{target}");
        let call = self.repo.call().args(["log", "--no-show-signature", "--format=%H", "--max-count=1"]);
        Ok(!call.args(["--fixed-strings", "--grep", &wanted, &range, "--"]).ok()?.is_empty())
    }

    /// The commits of a result one after the other on top of a branch, or the files that conflict with it.
    fn rebased(
        &self,
        target: &str,
        tip: &str,
        since: Option<&str>,
    ) -> Result<std::result::Result<String, Vec<String>>> {
        let trial = self.trial(tip)?;
        let at = &trial.at;
        let options = ["rebase", "--quiet", "--empty=drop", "--no-autosquash", "--no-update-refs", "--onto", target];
        let call = self.repo.call_at(at).args(options).arg(since.unwrap_or(target));
        let answer = self.repo.authored(call).run()?;
        if answer.code == 0 {
            return self.repo.look_at(at).args(["rev-parse", "--verify", "HEAD^{commit}"]).id().map(Ok);
        }
        let listed = self.repo.call_at(at).args(["diff", "--name-only", "--diff-filter=U", "-z"]).ok()?;
        let files: Vec<String> = records(&listed).map(|path| String::from_utf8_lossy(path).into_owned()).collect();
        if files.is_empty() { Err(answer.failed()) } else { Ok(Err(files)) }
    }

    /// A checkout of a commit, to try something in; it is removed when dropped.
    pub fn trial(&self, commit: &str) -> Result<Trial<'_>> {
        self.sweep_trials();
        self.repo.trial(&self.state.join(format!("{TRIAL}{}", std::process::id())), commit)
    }

    /// A checkout of the run's branch as it is now.
    pub fn fresh(&self) -> Result<Trial<'_>> {
        let tip = self.tip(None, &mut Vec::new())?;
        self.trial(&tip)
    }

    /// Removes what killed processes left.
    fn sweep_trials(&self) {
        let entries = std::fs::read_dir(&self.state).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.strip_prefix(TRIAL)).and_then(|pid| pid.parse::<i32>().ok());
            let is_gone = |pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH);
            if pid.and_then(Pid::from_raw).is_some_and(is_gone) {
                let _next_time = self.repo.forget_worktree(&entry.path());
            }
        }
    }

    /// Moves the branch to what was prepared. Returns false if the branch has moved meanwhile: then it has to be prepared
    /// again. Fails if the branch is checked out somewhere with changes, or git or the disk fails; then nothing has changed,
    /// or the error names the files that the next landing puts back.
    pub fn land(&self, into: &str, ready: &Ready) -> Result<bool> {
        self.repo.sync_to_disk()?;
        let name = format!("{HEADS}{into}");
        let landed = match self.repo.checked_out(&name, None)? {
            None => self.repo.transact(&[Move::From(&name, &ready.commit, &ready.target)])? == Moved::Yes,
            Some(at) => self.repo.forward(&at, ready)?,
        };
        // What is on the branch has landed, whatever the disk reports afterwards: repeating the order finds it there.
        let _said_by_the_disk = self.repo.sync_to_disk();
        Ok(landed)
    }
}

impl Repo {
    /// A checkout of a commit at a given path. Anything that a killed process left there is removed.
    pub fn trial(&self, place: &Path, commit: &str) -> Result<Trial<'_>> {
        self.forget_worktree(place)?;
        let add = ["worktree", "add", "--quiet", "--force", "--detach"];
        let added = self.call().files().args(add).arg(place).arg(commit).ok();
        let git_dir = added.and_then(|_| self.call_in(place).args(["rev-parse", "--absolute-git-dir"]).line());
        match git_dir {
            Ok(git_dir) => {
                let at = Checkout { git_dir: call::path(&git_dir), dir: place.to_owned() };
                Ok(Trial { project: self.project_in(place), at, repo: self })
            }
            Err(error) => {
                let _ = self.forget_worktree(place);
                Err(error)
            }
        }
    }

    /// The tree that contains two commits, or the files in which they conflict. They are merged from `since`, if one of them
    /// contains that as other commits.
    pub(super) fn merged_tree(
        &self,
        ours: &str,
        theirs: &str,
        since: Option<&str>,
    ) -> Result<std::result::Result<String, Vec<String>>> {
        let options = ["merge-tree", "--write-tree", "--no-messages", "--name-only", "-z"];
        let from =
            since.map_or_else(|| "--allow-unrelated-histories".to_owned(), |since| format!("--merge-base={since}"));
        let answer = self.call().args(options).args([&from, ours, theirs]).files().run()?;
        let mut parts = records(&answer.out).map(|part| String::from_utf8_lossy(part).into_owned());
        let Some(tree) = parts.next().filter(|tree| call::is_id(tree)) else {
            // A git before 2.40 takes no merge base: it merges from the last commit that both have.
            return if since.is_some() { self.merged_tree(ours, theirs, None) } else { Err(answer.failed()) };
        };
        match answer.code {
            0 => Ok(Ok(tree)),
            1 => {
                let mut files: Vec<String> = parts.collect();
                files.dedup();
                Ok(Err(files))
            }
            _ => Err(answer.failed()),
        }
    }

    /// Removes a worktree of ours with its contents. Worktrees of others are not pruned: one on a disk that is not mounted
    /// is not gone.
    fn forget_worktree(&self, dir: &Path) -> Result<()> {
        // Fails if there is none, which is the desired state.
        let _was_none = self.call().args(["worktree", "remove", "--force", "--force"]).arg(dir).run()?;
        match std::fs::remove_dir_all(dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io(dir, error)),
            _ => Ok(()),
        }
    }

    /// Whether the checked-out branch has any commit.
    pub fn has_commits(&self) -> Result<bool> {
        Ok(self.commit("HEAD")?.is_some())
    }

    /// The branch that is checked out where the repository was found.
    pub fn current_branch(&self) -> Result<Option<String>> {
        let answer = self.call().args(["symbolic-ref", "--quiet", "--short", "HEAD"]).run()?;
        let name = String::from_utf8_lossy(&answer.out).trim().to_owned();
        Ok(Some(name).filter(|name| answer.code == 0 && !name.is_empty()))
    }

    /// The commit of a branch.
    pub fn branch_commit(&self, branch: &str) -> Result<String> {
        let found = self.commit(&format!("{HEADS}{branch}"))?;
        there(found, branch)
    }
}

/// A checkout to try something in.
#[derive(Debug)]
pub struct Trial<'a> {
    /// The project's directory in it.
    pub project: PathBuf,
    at: Checkout,
    repo: &'a Repo,
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        // What is left is removed by the next trial.
        let _ = self.repo.forget_worktree(&self.at.dir);
    }
}

fn number(bytes: &[u8]) -> u64 {
    std::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
