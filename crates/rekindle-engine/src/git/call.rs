//! One call of the git program: a clean environment, limits of time and output, patience with locks that others hold. How a
//! program is run within its limits is left to `process`; what git is asked is left to the callers.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use rekindle_shim::clock;

use super::{Error, Repo, Result, guard, stale};
use crate::process::{self, Limits};

/// For calls that read or move a few refs and objects; only a hanging disk makes them longer.
const QUICK_MS: u64 = 120_000;

/// For calls that read or write every file of a checkout: slow disks and large repositories are not errors.
const LONG_MS: u64 = 1_800_000;

/// Largest output that is held in memory: the listing of a very large repository fits.
const MOST_BYTES: usize = 256 * 1024 * 1024;

/// How much of git's error output is kept.
const SAID_BYTES: usize = 16 * 1024;

/// How much of an error output goes into an error text.
const TOLD_BYTES: usize = 600;

/// Between two attempts to get a lock that another process holds.
const LOCK_PAUSE_MS: u64 = 50;

/// Stale locks that are removed for one call: it needs no more than these.
const STALE_MAX: usize = 8;

/// How long git itself waits for the lock of a ref, in one call.
const REF_WAIT_MS: u64 = 5_000;

/// Git's own variables that are the operator's choice and stay; every other one could point git elsewhere.
const KEPT: &[&str] = &[
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_CEILING_DIRECTORIES",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
];

/// The same for calls over the network: how the operator reaches a remote.
const KEPT_FOR_NETWORK: &[&str] = &["GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_PROXY_COMMAND"];

/// The setting that keeps git off the network, and the protocols that it may use when it is asked to.
const NO_SSH: &str = "core.sshCommand";
const PROTOCOLS: &str = "file:git:http:https:ssh";

/// The name under which rekindle commits, and the author's name if the user has configured none.
pub(super) const NAME: &str = "rekindle";
/// Its address, which nobody can own.
pub(super) const EMAIL: &str = "rekindle@localhost";

/// Configuration that every call of git gets, overriding whatever a repository sets.
const CONFIG: &[(&str, &str)] = &[
    // No program that a repository names is run.
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.editor", ":"),
    ("core.pager", "cat"),
    (NO_SSH, "false"),
    ("protocol.ext.allow", "never"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("rerere.enabled", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    // What counts as a changed file must not depend on a setting.
    ("core.trustctime", "true"),
    ("core.checkStat", "default"),
    ("core.ignoreStat", "false"),
    ("core.untrackedCache", "false"),
    ("core.splitIndex", "false"),
    ("index.sparse", "false"),
    ("sparse.expectFilesOutsideOfPatterns", "false"),
    ("core.safecrlf", "false"),
    ("status.showUntrackedFiles", "all"),
    ("i18n.commitEncoding", "utf-8"),
    ("worktree.guessRemote", "false"),
    ("worktree.useRelativePaths", "false"),
    // The objects that a ref names are on disk before the ref is.
    ("core.fsync", "objects,reference"),
    ("core.fsyncMethod", "batch"),
];

/// A call that is being built.
#[derive(Debug)]
pub(super) struct Call {
    dir: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    config: Vec<(String, String)>,
    input: Vec<u8>,
    limit_ms: u64,
    most: usize,
    cut: bool,
    guarded: Option<guard::Run>,
    patience_ms: u64,
    network: bool,
    /// The repository whose stale locks may be removed.
    repo: Option<Repo>,
}

#[derive(Debug)]
pub(super) struct Answer {
    /// Its exit code; -1 when it was killed.
    pub code: i32,
    pub out: Vec<u8>,
    /// Its error output.
    pub err: String,
    what: String,
}

impl Call {
    pub fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            config: Vec::new(),
            input: Vec::new(),
            limit_ms: QUICK_MS,
            most: MOST_BYTES,
            cut: false,
            guarded: None,
            patience_ms: 0,
            network: false,
            repo: None,
        }
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub fn args<T: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.into(), value.as_ref().to_owned()));
        self
    }

    pub fn config(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.config.push((key.into(), value.into()));
        self
    }

    /// Sets git's standard input.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = bytes.into();
        self
    }

    /// For a call that reads or writes files of a checkout: it gets more time, and programs that the repository itself names
    /// for that (filters, merge drivers) are not run.
    pub fn files(mut self) -> Self {
        self.limit_ms = LONG_MS;
        self.guarded = Some(guard::Run::Operators);
        self
    }

    /// The same, and filters that the operator has set up are not run either.
    pub fn plain_files(mut self) -> Self {
        self.limit_ms = LONG_MS;
        self.guarded = Some(guard::Run::Nothing);
        self
    }

    /// Uses another index than the checkout's own.
    pub fn index(self, index: &Path) -> Self {
        self.env("GIT_INDEX_FILE", index)
    }

    pub fn limit(mut self, ms: u64) -> Self {
        self.limit_ms = ms;
        self
    }

    /// Sets another limit for its output.
    #[cfg(test)]
    pub fn most(mut self, bytes: usize) -> Self {
        self.most = bytes;
        self
    }

    /// Only the beginning of the output is wanted.
    pub fn beginning(mut self, bytes: usize) -> Self {
        self.most = bytes;
        self.cut = true;
        self
    }

    /// The operator asked for a push or a fetch: git may use the network, as the operator has configured it.
    pub fn network(mut self) -> Self {
        self.network = true;
        self
    }

    /// How long to wait for the locks of others.
    pub fn patience(mut self, ms: u64) -> Self {
        self.patience_ms = ms;
        self
    }

    /// If a lock of this repository is still there after all patience, it is inspected: a stale one is removed.
    pub fn judging(mut self, repo: &Repo) -> Self {
        self.repo = Some(repo.clone());
        self
    }

    /// Runs it and accepts any exit code. Waits for a lock that others hold.
    pub fn run(mut self) -> Result<Answer> {
        if let Some(may_run) = self.guarded {
            let guards = guard::overrides(&self.dir, &self.environment, may_run)?;
            self.config.extend(guards);
        }
        let mut give_up = clock::monotonic_ms() + self.patience_ms;
        let (mut first, mut taken) = (None, 0);
        loop {
            let answer = self.once()?;
            let Some(path) = answer.lock(&self.dir).filter(|_| answer.code != 0) else {
                return Ok(answer);
            };
            let seen = stale::stamp(&path).map(|stamp| (path.clone(), stamp));
            let unchanged = first.get_or_insert_with(|| seen.clone()) == &seen;
            if clock::monotonic_ms() >= give_up {
                let judged = self.repo.as_ref().zip(seen).filter(|_| unchanged && taken < STALE_MAX);
                if judged.map(|(repo, (path, stamp))| repo.take_away(&path, stamp)).transpose()? != Some(true) {
                    let seconds = age_of(&path);
                    return Err(Error::Locked { path: path.to_string_lossy().into_owned(), seconds });
                }
                // A killed process may have left several; each is watched for as long.
                (first, taken, give_up) = (None, taken + 1, clock::monotonic_ms() + self.patience_ms);
                continue;
            }
            clock::pause(LOCK_PAUSE_MS);
        }
    }

    /// Runs it; anything but success is an error.
    pub fn ok(self) -> Result<Vec<u8>> {
        let answer = self.run()?;
        if answer.code == 0 { Ok(answer.out) } else { Err(answer.failed()) }
    }

    /// Its output of one line, without the newline.
    pub fn line(self) -> Result<Vec<u8>> {
        let mut out = self.ok()?;
        while out.last() == Some(&b'\n') {
            out.pop();
        }
        Ok(out)
    }

    /// The one object id that it prints.
    pub fn id(self) -> Result<String> {
        let what = self.what();
        let line = String::from_utf8_lossy(&self.line()?).into_owned();
        if is_id(&line) { Ok(line) } else { Err(Error::Failed { what, said: format!("it answered {line:?}") }) }
    }

    /// The one object id that it prints, or `None` if it says that there is none. A git that failed or was killed says
    /// neither: treating that as "there is none" would recreate things that exist.
    pub fn id_if_any(self) -> Result<Option<String>> {
        let answer = self.run()?;
        let line = String::from_utf8_lossy(&answer.out).trim_end().to_owned();
        match answer.code {
            0 if is_id(&line) => Ok(Some(line)),
            1 => Ok(None),
            _ => Err(answer.failed()),
        }
    }

    /// Whether it answers yes; an exit code other than 0 and 1 is an error.
    pub fn yes(self) -> Result<bool> {
        let answer = self.run()?;
        match answer.code {
            0 => Ok(true),
            1 => Ok(false),
            _ => Err(answer.failed()),
        }
    }

    fn what(&self) -> String {
        self.arguments.first().map(|a| a.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn command(&self) -> Command {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            let kept = KEPT.iter().chain(KEPT_FOR_NETWORK.iter().filter(|_| self.network));
            let gits = name.as_bytes().starts_with(b"GIT_") && !kept.into_iter().any(|kept| name == *kept);
            if gits || name == "SSH_ASKPASS" {
                command.env_remove(&name);
            }
        }
        let config = CONFIG.iter().filter(|(key, _)| !self.network || *key != NO_SSH);
        let config = config.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        // Git itself waits for the locks of refs.
        let waits = ["core.filesRefLockTimeout", "core.packedRefsTimeout"];
        let waits = waits.map(|key| (key.to_owned(), self.patience_ms.min(REF_WAIT_MS).to_string()));
        let config: Vec<(String, String)> = config.chain(waits).chain(self.config.iter().cloned()).collect();
        for (at, (key, value)) in config.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{at}"), key).env(format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        command
            .args(["--no-pager", "--literal-pathspecs", "-c", "core.hooksPath=/dev/null"])
            .args(&self.arguments)
            .current_dir(&self.dir)
            .env("GIT_CONFIG_COUNT", config.len().to_string())
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "")
            .env("GIT_EDITOR", ":")
            .env("GIT_OPTIONAL_LOCKS", "0")
            // Neither submodules nor objects that a partial clone left out are ever fetched over a network.
            .env("GIT_ALLOW_PROTOCOL", if self.network { PROTOCOLS } else { "file" })
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ADVICE", "0")
            .env("GIT_COMMITTER_NAME", NAME)
            .env("GIT_COMMITTER_EMAIL", EMAIL)
            .env("LC_ALL", "C")
            .env_remove("LANGUAGE")
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn once(&self) -> Result<Answer> {
        let (within_ms, out_max) = (self.limit_ms, self.most);
        // What git itself leaves running is the operator's choice, such as a daemon that watches files.
        let limits = Limits { within_ms, out_max, err_max: Some(SAID_BYTES), ends_leftovers: false };
        let (code, out, err) = match process::run(&mut self.command(), &self.input, &limits) {
            Ok(done) => (done.status.code().unwrap_or(-1), done.out, done.err),
            Err(process::Error::TooMuch { out }) if self.cut => (0, out, Vec::new()),
            Err(process::Error::TooMuch { .. }) => return Err(Error::TooMuch { what: self.what(), most: self.most }),
            Err(process::Error::TimedOut { .. }) => {
                return Err(Error::TimedOut { what: self.what(), seconds: self.limit_ms / 1000 });
            }
            Err(process::Error::Start(error)) => {
                let no_git = error.kind() == std::io::ErrorKind::NotFound && self.dir.is_dir();
                return Err(if no_git { Error::NoGit } else { Error::io(&self.dir, error) });
            }
            Err(process::Error::Read(error)) => return Err(Error::io(&self.dir, error)),
        };
        Ok(Answer { code, out, err: String::from_utf8_lossy(&err).into_owned(), what: self.what() })
    }
}

impl Answer {
    pub fn failed(&self) -> Error {
        let said = self.err.trim();
        let said = if said.is_empty() { format!("exit code {}", self.code) } else { said.replace('\n', "; ") };
        let said = rekindle_core::text::truncate_bytes(&said, TOLD_BYTES).to_owned();
        Error::Failed { what: self.what.clone(), said }
    }

    /// The lock file that was in its way.
    fn lock(&self, dir: &Path) -> Option<PathBuf> {
        let quoted = self.err.split_once(".lock': File exists").and_then(|(before, _)| before.rsplit_once('\''));
        let config = || self.err.split_once("could not lock config file ")?.1.split_once(": File exists");
        if let Some(path) = quoted.map(|(_, path)| path).or_else(|| config().map(|(path, _)| path)) {
            return Some(dir.join(format!("{path}.lock")));
        }
        // Messages differ from one git to the next: if one names an existing lock file, that lock caused the refusal.
        let words = self.err.split(['\'', '"', ' ', '\n']).map(|word| word.trim_end_matches(['.', ':', ',', ';']));
        let there = |word: &str| Some(dir.join(word)).filter(|path| word.ends_with(".lock") && path.exists());
        words.filter(|_| !self.err.contains("No such file")).find_map(there)
    }
}

/// Seconds since a file was written.
pub(super) fn age_of(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let written = u64::try_from(path.symlink_metadata().ok()?.mtime()).ok()?;
    Some((clock::wall_ms() / 1000).saturating_sub(written))
}

/// Whether a text is a full object id, of either hash algorithm that git has.
pub(super) fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

pub(super) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

/// The parts of an output that are separated by zero bytes.
pub(super) fn records(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|b| *b == 0).filter(|record| !record.is_empty())
}

/// Asks git something about a directory, for people to read: the beginning of the output, or `None` if git has none.
pub fn ask(dir: &Path, arguments: &[&str], bytes: usize) -> Option<String> {
    ask_within(dir, arguments, bytes, LONG_MS)
}

/// The same for somebody who cannot wait long.
pub fn ask_within(dir: &Path, arguments: &[&str], bytes: usize, ms: u64) -> Option<String> {
    let answer = Call::new(dir).args(arguments).files().limit(ms).beginning(bytes).run().ok()?;
    let said = String::from_utf8_lossy(&answer.out);
    (answer.code == 0).then(|| rekindle_core::text::truncate_bytes(&said, bytes).to_owned())
}
