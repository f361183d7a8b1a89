//! The run's branch at a remote: pushed only forward and only over what was seen there; what others have pushed there is
//! merged in.

use super::call::{self, Call};
use super::names::{self, HEADS};
use super::refs::Moved;
use super::{Repo, Result, Work};

/// How long a call over the network may take: a large first push over a slow line.
const NETWORK_MS: u64 = 900_000;

/// The trailer by which a commit names its task.
const TASK: &str = "Rekindle-Task";

/// Commits of a file whose task is looked up.
const COMMITS_ASKED: &str = "--max-count=200";

/// The outcome of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The remote has the commit.
    Yes,
    /// The remote's branch has this commit, which the run does not have: nothing was pushed.
    Foreign(String),
}

/// A commit of others that is being merged into the run's branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joined {
    /// The run's branch has it.
    Already,
    /// A commit with both, which no branch names yet.
    Ready {
        commit: String,
        /// The run's newest commit then.
        old: String,
    },
    Conflict {
        files: Vec<String>,
    },
}

impl Repo {
    /// The address that is pushed to; `None` if there is no such remote.
    pub fn remote_url(&self, remote: &str) -> Result<Option<String>> {
        let answer = self.call().args(["remote", "get-url", "--push", "--", remote]).run()?;
        let url = String::from_utf8_lossy(&answer.out).trim().to_owned();
        Ok(Some(url).filter(|url| answer.code == 0 && !url.is_empty()))
    }

    /// The remote's default branch; `None` if it does not name one.
    pub fn remote_default(&self, remote: &str) -> Result<Option<String>> {
        let out = self.network(["ls-remote", "--symref", "--", remote, "HEAD"]).ok()?;
        let out = String::from_utf8_lossy(&out).into_owned();
        let named = out.lines().find_map(|line| line.strip_prefix("ref: refs/heads/")?.split('\t').next());
        Ok(named.map(str::to_owned))
    }

    /// The commit of a remote's branch.
    pub fn remote_commit(&self, remote: &str, branch: &str) -> Result<Option<String>> {
        let name = format!("{HEADS}{branch}");
        let out = self.network(["ls-remote", "--refs", "--", remote, &name]).ok()?;
        let out = String::from_utf8_lossy(&out).into_owned();
        let line = out.lines().find_map(|line| line.split_once('\t').filter(|(_, found)| *found == name));
        Ok(line.map(|(id, _)| id.to_owned()).filter(|id| call::is_id(id)))
    }

    fn network<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Call {
        self.call().network().limit(NETWORK_MS).args(arguments)
    }
}

impl Work {
    /// The newest commit of the run's branch.
    pub fn newest(&self) -> Result<String> {
        self.tip(None, &mut Vec::new())
    }

    /// Whether the run's branch contains a commit. It does not if the commit is not even in the repository.
    pub fn has(&self, commit: &str) -> Result<bool> {
        match self.repo.commit(commit)? {
            Some(commit) => self.repo.contains(&self.newest()?, &commit),
            None => Ok(false),
        }
    }

    /// Pushes a commit of the run. Afterwards the position of the remote's branch decides, not what git said about it.
    pub fn push(&self, remote: &str, commit: &str) -> Result<Pushed> {
        let there = self.repo.remote_commit(remote, &self.branch)?;
        match &there {
            Some(there) if there == commit => return Ok(Pushed::Yes),
            Some(there) if !self.has(there)? || !self.repo.contains(commit, there)? => {
                return Ok(Pushed::Foreign(there.clone()));
            }
            _ => {}
        }
        let name = format!("{HEADS}{}", self.branch);
        let lease = format!("--force-with-lease={name}:{}", there.unwrap_or_default());
        let options = ["push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no", &lease];
        let call = self.repo.network(options).args(["--", remote, &format!("{commit}:{name}")]);
        let answer = call.run()?;
        match self.repo.remote_commit(remote, &self.branch)? {
            Some(now) if now == commit => Ok(Pushed::Yes),
            Some(now) if answer.code != 0 && !self.has(&now)? => Ok(Pushed::Foreign(now)),
            _ => Err(answer.failed()),
        }
    }

    /// Fetches a remote's branch into the repository, under a name of our own. `None` if the remote has no such branch.
    pub fn fetch(&self, remote: &str, branch: &str) -> Result<Option<String>> {
        if self.repo.remote_commit(remote, branch)?.is_none() {
            return Ok(None);
        }
        let kept = format!("refs/rekindle-remote/{}/{branch}", names::part(&self.run));
        let refspec = format!("+{HEADS}{branch}:{kept}");
        let options =
            ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--refmap="];
        self.repo.network(options).args(["--", remote, &refspec]).ok()?;
        self.repo.commit(&kept)
    }

    /// Makes a merge commit of the run's branch and a commit of others. No ref moves.
    pub fn join_commit(&self, commit: &str, message: &str) -> Result<Joined> {
        let old = self.newest()?;
        if self.repo.contains(&old, commit)? {
            return Ok(Joined::Already);
        }
        match self.repo.merged_tree(&old, commit, None)? {
            Ok(tree) => {
                let text = format!("{}\n\nRekindle-Run: {}\n", message.trim_end(), self.run);
                Ok(Joined::Ready { commit: self.repo.commit_tree(&tree, &[&old, commit], &text)?, old })
            }
            Err(files) => Ok(Joined::Conflict { files }),
        }
    }

    /// Moves the run's branch to such a commit. Returns false if it has moved meanwhile.
    pub fn advance_to(&self, new: &str, old: &str) -> Result<bool> {
        self.repo.sync_to_disk()?;
        Ok(self.advance(new, old)? == Moved::Yes)
    }

    /// The task whose commit made a line, or the only one that changed a file since the run started; `None` if it cannot be
    /// determined.
    pub fn task_of(&self, head: &str, base: Option<&str>, path: &str, line: Option<u32>) -> Option<String> {
        if !call::is_id(head) {
            return None;
        }
        if let Some(task) = line.and_then(|line| self.task_of_line(head, path, line)) {
            return Some(task);
        }
        let base = self.base_of_run(base, head).ok().flatten()?;
        let range = format!("{base}..{head}");
        let format = format!("--format=%(trailers:key={TASK},valueonly)");
        let words = ["log", "--no-show-signature", COMMITS_ASKED, &format, &range, "--", path];
        let out = self.repo.call().args(words).ok().ok()?;
        let mut tasks: Vec<String> = String::from_utf8_lossy(&out).split_whitespace().map(str::to_owned).collect();
        tasks.sort();
        tasks.dedup();
        if let [one] = &tasks[..] { Some(one.clone()) } else { None }
    }

    fn task_of_line(&self, head: &str, path: &str, line: u32) -> Option<String> {
        let place = format!("{line},{line}");
        let words = ["blame", "--porcelain", "-L", &place, head, "--", path];
        let out = self.repo.call().args(words).files().ok().ok()?;
        let commit = String::from_utf8_lossy(&out).split_whitespace().next().map(str::to_owned)?;
        let format = format!("--format=%(trailers:key={TASK},valueonly)");
        let words = ["log", "--no-show-signature", "--max-count=1", &format, &commit, "--"];
        let out = self.repo.call().args(words).ok().ok()?;
        String::from_utf8_lossy(&out).split_whitespace().next().map(str::to_owned)
    }
}
