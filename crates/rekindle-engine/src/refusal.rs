//! Texts for when the machine has no room: what it lacks, and what to type. The one place that decides the wording.

use std::io;
use std::path::Path;

use rekindle_core::refusal::Refusal;
use rekindle_shim::EXIT_REFUSED;
use rekindle_shim::bundle::{ExitRecord, SHIM_LOG};
use rekindle_shim::refusal::{is_refusal, is_refused};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::git;

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The machine had no room: nothing was started, and a retry makes sense.
    Refused(Refusal),
    /// Something is wrong with what was asked for.
    Wrong(String),
}

impl Trouble {
    /// Classifies an error at a path.
    pub fn of(error: &io::Error, at: &Path) -> Self {
        of(error, at).map_or_else(|| Self::Wrong(error.to_string()), Self::Refused)
    }
}

impl From<String> for Trouble {
    fn from(reason: String) -> Self {
        Self::Wrong(reason)
    }
}

/// The refusal in an error, if it is one; `at` is where something should have been written.
pub fn of(error: &io::Error, at: &Path) -> Option<Refusal> {
    is_refused(error).then(|| words(error.raw_os_error().unwrap_or_default(), at))
}

/// The error number of a failure to create a thread or a process.
pub fn errno_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::AGAIN.raw_os_error())
}

/// What git lacked and may get later: a lock that another process holds, or something that the machine refused.
pub fn of_git(error: &git::Error, at: &Path) -> Refusal {
    let said = error.to_string();
    let other = || Refusal { reason: said.clone(), hint: String::new() };
    in_text(&said, at).unwrap_or_else(other)
}

/// The git lock that a propagated error names, with its advice.
fn locked(text: &str) -> Option<Refusal> {
    let (_, lock) = text.split_once(git::LOCKED)?;
    let (lock, advice) = lock.split_once(": ")?;
    let hint = advice.split("; ").next().unwrap_or(advice);
    Some(Refusal { reason: format!("{}{lock}", git::LOCKED), hint: hint.to_owned() })
}

/// The refusal in the message of another program or of a propagated error, if it is one: programs report it only as text.
pub fn in_text(text: &str, at: &Path) -> Option<Refusal> {
    const SAID: [(&str, Errno); 12] = [
        ("No space left on device", Errno::NOSPC),
        ("Disk quota exceeded", Errno::DQUOT),
        ("Too many open files in system", Errno::NFILE),
        ("Too many open files", Errno::MFILE),
        ("Cannot allocate memory", Errno::NOMEM),
        ("Out of memory", Errno::NOMEM),
        ("Resource temporarily unavailable", Errno::AGAIN),
        ("Read-only file system", Errno::ROFS),
        ("Input/output error", Errno::IO),
        // Git's message when a write to an open file fails: it does not say why, and only a disk causes it.
        ("unable to write file", Errno::NOSPC),
        ("unable to write new index file", Errno::NOSPC),
        ("Could not write new index file", Errno::NOSPC),
    ];
    if let Some(refusal) = locked(text) {
        return Some(refusal);
    }
    let (_, errno) = SAID.iter().find(|(words, _)| text.contains(words))?;
    let found = words(errno.raw_os_error(), at);
    // Its limit may be another than this process's.
    let theirs = "a program that was started has no file descriptor left".to_owned();
    Some(if *errno == Errno::MFILE { Refusal { reason: theirs, ..found } } else { found })
}

/// What a shim lacked that exited without starting its agent, by its message and its exit code. A shim that had no room and
/// could not even record that lacked space.
pub fn of_shim(bundle: &Path, at: &Path, code: Option<i32>) -> Refusal {
    let log = bundle.join(SHIM_LOG);
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    if let Some(refusal) = in_text(&said, at) {
        return refusal;
    }
    if code == Some(i32::from(EXIT_REFUSED)) {
        return words(Errno::NOSPC.raw_os_error(), at);
    }
    let how = code.map_or_else(|| "it was killed".to_owned(), |code| format!("exit code {code}"));
    let last = said.lines().rfind(|line| !line.trim().is_empty()).map(|line| format!(": {}", line.trim()));
    let reason = format!("{SHIM_ENDED} ({how}){}", last.unwrap_or_default());
    Refusal { reason, hint: format!("see why: cat {}; dmesg | tail", log.display()) }
}

/// The text for a shim that ended before its agent ran.
const SHIM_ENDED: &str = "an agent's supervisor ended before it could start the agent";

/// The supervisor of a check was killed, so that nobody knows how the check would have ended.
pub fn killed_check() -> Refusal {
    Refusal {
        reason: "the supervisor of a check was killed before the check ended".to_owned(),
        hint: "see by whom: dmesg | tail".to_owned(),
    }
}

/// What was refused to a process that ended before it ran its program, by its exit record.
pub fn of_exit(record: &ExitRecord, at: &Path) -> Option<Refusal> {
    let error = record.start_error.as_ref()?;
    if is_refusal(error.errno) {
        return Some(words(error.errno, at));
    }
    let hint = || "see whether memory or processes ran out: dmesg | tail; free -m; ulimit -u".to_owned();
    record.never_began.then(|| Refusal { reason: error.text.clone(), hint: hint() })
}

/// A supervisor was killed from outside before it had started its agent.
pub fn no_supervisor() -> Refusal {
    Refusal {
        reason: SHIM_ENDED.to_owned(),
        hint: "see what ends processes on this machine: journalctl -k --since=-10min".to_owned(),
    }
}

/// The user has no file watch left: editors and other tools share them.
pub fn no_watch() -> Refusal {
    Refusal {
        reason: "the system has no file watch left for you: agents are polled every quarter of a second instead"
            .to_owned(),
        hint: "sudo sysctl fs.inotify.max_user_watches=1048576 fs.inotify.max_user_instances=1024".to_owned(),
    }
}

/// What a refused call lacked, by the system's error number.
pub fn words(errno: i32, at: &Path) -> Refusal {
    let place = at.display();
    let (reason, hint) = match Errno::from_raw_os_error(errno) {
        Errno::MFILE => {
            let limit = getrlimit(Resource::Nofile).current.map_or("unlimited".to_owned(), |many| many.to_string());
            let reason = format!("this process has no file descriptor left (its limit is {limit})");
            (reason, "raise the limit in the shell that starts rekindle: ulimit -n 65536".to_owned())
        }
        Errno::NFILE => (
            "the machine has no file descriptor left".to_owned(),
            "raise it: sudo sysctl fs.file-max=2097152".to_owned(),
        ),
        Errno::NOSPC | Errno::DQUOT => {
            let reason = format!("no space, or no room for another file, is left on the disk of {place}");
            (reason, format!("free space there: df -h {place}; df -i {place}"))
        }
        Errno::AGAIN => (
            "the machine starts no more processes".to_owned(),
            "raise the limit: ulimit -u; sysctl kernel.pid_max; cat /sys/fs/cgroup/pids.max".to_owned(),
        ),
        Errno::NOMEM => {
            ("no memory is left".to_owned(), "see who has it: free -m; ps aux --sort=-rss | head".to_owned())
        }
        Errno::ROFS => {
            (format!("the disk of {place} is read-only"), format!("see why: findmnt -T {place}; dmesg | tail"))
        }
        _ => (format!("the disk of {place} gives errors"), format!("see which: dmesg | tail; findmnt -T {place}")),
    };
    Refusal { reason, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shim_that_said_nothing_is_named_by_how_it_ended() {
        let bundle = tempfile::tempdir().expect("tempdir");
        let of = |code| of_shim(bundle.path(), Path::new("/p"), code).reason;
        assert!(of(None).contains("it was killed"), "{}", of(None));
        assert!(of(Some(i32::from(EXIT_REFUSED))).contains("no space"), "it had no room to write that down");
        let said = "rekindle: error while loading shared libraries: libc.so.6: cannot open shared object file\n";
        std::fs::write(bundle.path().join(SHIM_LOG), said).expect("written");
        assert!(of(Some(127)).contains("exit code 127") && of(Some(127)).contains("libc.so.6"), "{}", of(Some(127)));
        std::fs::write(bundle.path().join(SHIM_LOG), "shim: socket: Too many open files\n").expect("written");
        assert!(of(Some(6)).contains("no file descriptor left"), "{}", of(Some(6)));
    }

    #[test]
    fn a_refusal_names_what_is_missing_and_what_to_type() {
        let of = |errno: Errno| of(&errno.into(), Path::new("/p/.rekindle"));
        let full = of(Errno::NOSPC).expect("a refusal");
        assert!(full.reason.contains("/p/.rekindle") && full.hint.contains("df -h /p/.rekindle"), "{full:?}");
        assert!(of(Errno::MFILE).is_some_and(|refusal| refusal.hint.contains("ulimit -n")));
        assert_eq!(of(Errno::NOENT), None, "nothing is short of that");
        let said = "fatal: sha1 file '/p/.git/x' write error. Out of diskspace: No space left on device";
        assert!(in_text(said, Path::new("/p")).is_some_and(|refusal| refusal.reason.contains("space")));
        let reset =
            "git reset failed: error: unable to write file plan.md; fatal: Could not reset index file to revision";
        assert!(in_text(reset, Path::new("/p")).is_some(), "git does not always say why it could not write");
        assert_eq!(in_text("fatal: not a git repository", Path::new("/p")), None);
    }

    #[test]
    fn a_git_lock_is_named_with_what_to_type() {
        let locked = git::Error::Locked { path: "/p/.git/HEAD.lock".to_owned(), seconds: Some(3) };
        let refusal = of_git(&locked, Path::new("/p"));
        assert!(refusal.reason.starts_with("git is locked by /p/.git/HEAD.lock"), "{refusal:?}");
        assert!(refusal.hint.contains("rm '/p/.git/HEAD.lock'"), "{refusal:?}");
        // The same in a propagated error, as the code that starts an agent sees it.
        let told = format!("the workspace of T1 could not be kept: {locked}");
        assert_eq!(in_text(&told, Path::new("/p")), Some(refusal));
    }
}
