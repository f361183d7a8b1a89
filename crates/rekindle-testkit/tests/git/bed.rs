//! A repository in a temporary directory, files with every oddity in them, and the question whether bytes are still
//! somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rekindle_engine::git::{Accepted, Base, Repo, Start, Work};
use tempfile::TempDir;

/// The run that tests are about.
pub const RUN: &str = "run-1";

/// Files by their paths in a checkout: a link's content is where it leads.
pub type Files = BTreeMap<Vec<u8>, Vec<u8>>;

/// A repository and a state directory in it.
pub struct Bed {
    pub dir: TempDir,
}

impl Bed {
    /// A repository without commits.
    pub fn unborn() -> Self {
        // In memory where there is one: what is tested is kills, not power cuts, and git syncs all it writes.
        let memory = Path::new("/dev/shm");
        let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let bed = Self { dir: made.expect("a temporary directory") };
        std::fs::create_dir(bed.repo()).expect("a directory");
        bed.git(&["init", "-q", "-b", "main"]);
        let state = bed.state();
        std::fs::create_dir(&state).expect("a state directory");
        std::fs::write(state.join(".gitignore"), "*\n").expect("written");
        bed
    }

    /// A repository with a commit.
    pub fn new() -> Self {
        let bed = Self::unborn();
        bed.write("README.md", b"hello\n");
        bed.write("src/lib.rs", b"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n");
        bed.write("tool.sh", b"#!/bin/sh\n");
        bed.write(".gitignore", b"/target\n*.o\n");
        bed.commit("the beginning");
        bed
    }

    pub fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub fn state(&self) -> PathBuf {
        self.repo().join(".rekindle")
    }

    pub fn write(&self, path: &str, bytes: &[u8]) {
        write(&self.repo(), path, bytes);
    }

    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Git as the user types it, in the user's checkout.
    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.repo(), arguments)
    }

    /// The same with nothing of the repository's own configuration run.
    pub fn quiet(&self, arguments: &[&str]) -> String {
        let quiet = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];
        let output = command(&self.repo(), &[&quiet, arguments].concat()).output().expect("git runs");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Begins the run of a plan called `plan`.
    pub fn begin(&self) -> Base {
        self.open().begin("plan", RUN, Start::New).expect("begun")
    }

    pub fn open(&self) -> Repo {
        Repo::of(&self.repo()).expect("a repository")
    }

    /// The run's share, begun.
    pub fn work(&self) -> Work {
        let base = self.begin();
        self.again(&base.branch)
    }

    /// The same after a restart.
    pub fn again(&self, branch: &str) -> Work {
        Work::new(self.open(), &self.state(), RUN, branch).expect("names")
    }

    /// What the user would notice: where HEAD is, what is staged and what is on disk.
    pub fn users(&self) -> (String, Vec<u8>, String, Files) {
        let head = std::fs::read_to_string(self.repo().join(".git/HEAD")).expect("HEAD");
        let index = std::fs::read(self.repo().join(".git/index")).unwrap_or_default();
        let at = git_any(&self.repo(), &["rev-parse", "-q", "--verify", "HEAD"]).1;
        (head, index, at, files(&self.repo()))
    }

    /// Whether every one of these files is, byte for byte, in the worktree, in a branch or in a snapshot.
    #[track_caller]
    pub fn assert_kept(&self, worktree: &Path, wanted: &Files, what: &str) {
        let mut somewhere: BTreeSet<(Vec<u8>, String)> = BTreeSet::new();
        let refs = self.git(&["for-each-ref", "--format=%(objectname)", "refs/heads/", "refs/rekindle/"]);
        for commit in refs.lines().collect::<BTreeSet<_>>() {
            somewhere.extend(self.tree(commit));
        }
        let here = if worktree.is_dir() { files(worktree) } else { Files::new() };
        let missing: Files = wanted.iter().filter(|(path, bytes)| here.get(*path) != Some(bytes)).map(own).collect();
        for entry in self.ids(&missing) {
            assert!(somewhere.contains(&entry), "{what}: {:?} is lost", String::from_utf8_lossy(&entry.0));
        }
    }

    /// Paths and ids of a commit.
    pub fn tree(&self, commit: &str) -> Vec<(Vec<u8>, String)> {
        let output = command(&self.repo(), &["ls-tree", "-r", "-z", "--full-tree", commit]).output().expect("git");
        assert!(output.status.success(), "ls-tree {commit}");
        let entries = output.stdout.split(|b| *b == 0).filter(|entry| !entry.is_empty());
        let parsed = entries.map(|entry| {
            let tab = entry.iter().position(|b| *b == b'\t').expect("a tab");
            let id = String::from_utf8_lossy(&entry[..tab]).split(' ').nth(2).expect("an id").to_owned();
            (entry[tab + 1..].to_vec(), id)
        });
        parsed.collect()
    }

    /// Whether a commit holds exactly these files.
    #[track_caller]
    pub fn assert_holds(&self, commit: &str, wanted: &Files) {
        let tree: BTreeMap<_, _> = self.tree(commit).into_iter().collect();
        let wanted: BTreeMap<_, _> = self.ids(wanted).into_iter().collect();
        assert_eq!(tree, wanted);
    }

    /// The ids of bytes as files, written where no attribute can reach them.
    fn ids(&self, files: &Files) -> Vec<(Vec<u8>, String)> {
        if files.is_empty() {
            return Vec::new();
        }
        let plain = tempfile::tempdir_in(self.dir.path()).expect("a directory");
        let mut names = String::new();
        for (n, bytes) in files.values().enumerate() {
            let file = plain.path().join(n.to_string());
            std::fs::write(&file, bytes).expect("written");
            names.push_str(&format!("{}\n", file.display()));
        }
        let list = plain.path().join("names");
        std::fs::write(&list, names).expect("written");
        let mut command = command(&self.repo(), &["hash-object", "--no-filters", "--stdin-paths"]);
        let output = command.stdin(std::fs::File::open(list).expect("a list")).output().expect("git");
        let ids: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
        assert_eq!(ids.len(), files.len(), "{}", String::from_utf8_lossy(&output.stderr));
        files.keys().cloned().zip(ids).collect()
    }

    /// Those refs that begin so.
    pub fn refs(&self, prefix: &str) -> Vec<String> {
        let listed = self.git(&["for-each-ref", "--format=%(refname)", prefix]);
        listed.lines().map(str::to_owned).collect()
    }

    /// A file of the run's branch.
    pub fn in_branch(&self, path: &str) -> Option<String> {
        let (code, out) = git_any(&self.repo(), &["show", &format!("rekindle/plan:{path}")]);
        (code == 0).then_some(out)
    }
}

fn own((path, bytes): (&Vec<u8>, &Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
    (path.clone(), bytes.clone())
}

/// Git as a user types it: no configuration but the repository's and a name.
pub fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(["-c", "user.name=User", "-c", "user.email=user@example.org", "-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

/// The exit code and what was said.
pub fn git_any(dir: &Path, arguments: &[&str]) -> (i32, String) {
    let output = command(dir, arguments).output().expect("git runs");
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

#[track_caller]
pub fn git(dir: &Path, arguments: &[&str]) -> String {
    let output = command(dir, arguments).output().expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

pub fn write(dir: &Path, path: &str, bytes: &[u8]) {
    write_raw(dir, path.as_bytes(), bytes);
}

pub fn write_raw(dir: &Path, path: &[u8], bytes: &[u8]) {
    let path = dir.join(OsStr::from_bytes(path));
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
    std::fs::write(&path, bytes).expect("written");
}

/// All files of a checkout that are not git's, rekindle's or ignored by the bed's rules.
pub fn files(dir: &Path) -> Files {
    let mut found = Files::new();
    walk(dir, dir, &mut found);
    found
}

fn walk(top: &Path, dir: &Path, found: &mut Files) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let entry = entry.expect("an entry");
        let (path, name) = (entry.path(), entry.file_name());
        let at_top = dir == top;
        if name == ".git" || (at_top && (name == ".rekindle" || name == "target")) || name.as_bytes().ends_with(b".o") {
            continue;
        }
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            walk(top, &path, found);
            continue;
        }
        let bytes = if kind.is_symlink() {
            std::fs::read_link(&path).expect("a link").as_os_str().as_bytes().to_vec()
        } else {
            std::fs::read(&path).expect("readable")
        };
        let inside = path.strip_prefix(top).expect("inside").as_os_str().as_bytes().to_vec();
        found.insert(inside, bytes);
    }
}

/// Work as agents leave it: changed, staged and changed again, new, deleted, linked, odd in every way.
pub fn odd_work(dir: &Path) {
    write(dir, "README.md", b"changed\r\nwith other line ends\r\n");
    write(dir, "src/staged.rs", b"staged\n");
    git(dir, &["add", "src/staged.rs"]);
    write(dir, "src/staged.rs", b"and changed after\n");
    write(dir, "new/deep/er/file.txt", b"new\n");
    write(dir, "empty", b"");
    write(dir, "-n", b"begins with a dash\n");
    write(dir, "with space and \"quotes\"", b"q\n");
    write(dir, "glob*[a]?", b"g\n");
    write(dir, ":(top)magic", b"m\n");
    write_raw(dir, b"two\nlines", b"a newline in its name\n");
    write_raw(dir, b"not\xff\xfeutf8", b"bytes\n");
    write(dir, "binary", &(0..=255_u8).cycle().take(70_000).collect::<Vec<u8>>());
    std::os::unix::fs::symlink("nowhere/at all", dir.join("link")).expect("a link");
    std::os::unix::fs::symlink("src", dir.join("dir-link")).expect("a link");
    write(dir, "read-only", b"r\n");
    std::fs::set_permissions(dir.join("read-only"), PermissionsExt::from_mode(0o444)).expect("mode");
    std::fs::set_permissions(dir.join("tool.sh"), PermissionsExt::from_mode(0o755)).expect("mode");
    std::fs::remove_file(dir.join(".gitignore")).expect("deleted");
    write(dir, ".gitignore", b"/target\n*.o\n# more\n");
    write(dir, "target/ignored", b"ignored\n");
    write(dir, "x.o", b"ignored\n");
}

/// The commit of a merge that went through.
#[track_caller]
pub fn merged(accepted: Accepted) -> String {
    match accepted {
        Accepted::Merged { commit, .. } => commit,
        other => panic!("not merged: {other:?}"),
    }
}
