//! What is on disk: artifacts, and git's view of the workspace. It is only read, never changed.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rekindle_core::brief::{self, Disk, Facts};

use super::Shared;
use crate::control::Answerer;
use crate::control::wire::Response;
use crate::git;
use crate::world::Notice;

/// Longest time for a git command for a brief, in milliseconds: a launch waits for it, and a repository may be large.
const BRIEF_MS: u64 = 30_000;

/// The same for a notice: a hook waits for all three commands, and gives up on the coordinator after ten seconds.
const NOTICE_MS: u64 = 400;

/// Most of git's output that a brief can use.
const GIT_BYTES: usize = 8 * 1024;

/// Files named in a brief that git does not know yet.
const UNTRACKED: usize = 50;

/// Commits named in a brief.
const COMMITS: &str = "20";

/// Those of `paths` that do not exist in the workspace.
pub(super) fn missing(workspace: &Path, paths: &[String]) -> Vec<String> {
    paths.iter().filter(|path| std::fs::symlink_metadata(workspace.join(path)).is_err()).cloned().collect()
}

/// What is on disk, for the brief of an attempt. A first prompt has no past and needs nothing. `base` is the commit that the
/// work started from, if known.
pub(super) fn facts(workspace: &Path, base: Option<&str>, known: &Facts) -> Disk {
    if known.is_first() { known.disk.clone() } else { seen(workspace, base, known, BRIEF_MS) }
}

fn seen(workspace: &Path, base: Option<&str>, known: &Facts, git_ms: u64) -> Disk {
    let mut disk = known.disk.clone();
    if let Some(task) = known.current() {
        disk.artifacts_missing = missing(workspace, &task.artifacts);
        let present = |path: &&String| !disk.artifacts_missing.contains(path);
        disk.artifacts_present = task.artifacts.iter().filter(present).cloned().collect();
    }
    if workspace.ancestors().any(|dir| dir.join(".git").exists()) {
        let ask = |arguments: &[&str]| git::ask_within(workspace, arguments, GIT_BYTES, git_ms).unwrap_or_default();
        disk.diff_stat = ask(&["diff", "--no-ext-diff", "--no-textconv", "--stat", base.unwrap_or("HEAD")]);
        let untracked = ask(&["ls-files", "--others", "--exclude-standard"]);
        for path in untracked.lines().take(UNTRACKED) {
            disk.diff_stat.push_str(&format!(" {path} | new, not committed\n"));
        }
        // Where all agents share one directory, the commit that the work started from is not kept: then the start time is
        // used.
        let since = match (base, known.began_at) {
            (Some(base), _) => Some(format!("{base}..HEAD")),
            (None, began) => began.map(|began| format!("--since=@{}", began.0.div_euclid(1000))),
        };
        let log = since.map(|since| ask(&["log", "--oneline", "--no-decorate", "-n", COMMITS, &since]));
        disk.commits = log.unwrap_or_default().lines().map(str::to_owned).collect();
    }
    disk
}

/// Answers, in the background, with a notice that says where its agent works and what is on disk there.
pub(super) fn answer_in_background(shared: &Arc<Shared>, notice: Notice, reply: Answerer) {
    let answer = |facts: &Facts, reply: Answerer| reply(Response::Context { text: brief::reinject(facts) });
    // Without a thread the notice goes out as it is.
    let reply = Arc::new(Mutex::new(Some(reply)));
    let take = |reply: &Mutex<Option<Answerer>>| reply.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (worker, theirs, mut facts) = (Arc::clone(shared), Arc::clone(&reply), notice.facts.clone());
    let spawned = std::thread::Builder::new().name("notice".to_owned()).spawn(move || {
        let key = notice.workspace.as_deref();
        if let Ok(workspace) = worker.standing_place(key) {
            let base = key.zip(worker.work.as_ref()).and_then(|(key, work)| work.base(key));
            facts.disk = seen(&workspace, base.as_deref(), &facts, NOTICE_MS);
            facts.workspace = workspace.to_string_lossy().into_owned();
        }
        if let Some(reply) = take(&theirs) {
            answer(&facts, reply);
        }
    });
    if spawned.is_err()
        && let Some(reply) = take(&reply)
    {
        answer(&notice.facts, reply);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rekindle_core::brief::Facts;
    use rekindle_core::ids::AgentName;
    use rekindle_core::time::Time;

    use super::seen;

    #[test]
    fn commits_from_before_the_work_are_not_its_commits() {
        let dir = tempfile::tempdir().expect("a directory");
        let git = |arguments: &[&str], at: &str| {
            let mut command = Command::new("git");
            command.current_dir(dir.path()).env("GIT_COMMITTER_DATE", at).env("GIT_AUTHOR_DATE", at);
            command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(arguments);
            assert!(command.output().expect("git").status.success(), "git {arguments:?}");
        };
        git(&["init", "-q"], "@0 +0000");
        git(&["commit", "-q", "--allow-empty", "-m", "long ago"], "@1700000000 +0000");
        git(&["commit", "-q", "--allow-empty", "-m", "of the work"], "@1700000100 +0000");
        let mut facts = Facts::new(AgentName::new("solo").expect("a name"));
        let commits = |facts: &Facts, base| seen(dir.path(), base, facts, 30_000).commits.join("\n");
        assert_eq!(commits(&facts, None), "", "nobody knows when it began");
        facts.began_at = Some(Time(1_700_000_050_000));
        let own = commits(&facts, None);
        assert!(own.contains("of the work") && !own.contains("long ago"), "{own}");
        assert!(commits(&facts, Some("HEAD~1")).contains("of the work"));
    }
}
