//! An empty project with an environment in which nothing of this machine shows.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Longest that anything awaited may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// Looks again and again until something holds, for as long as patience lasts.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what} has not come");
        std::thread::park_timeout(LOOK);
    }
}

/// A project in a directory of its own.
pub struct Environment {
    base: TempDir,
    variables: Vec<(String, String)>,
}

impl Environment {
    /// An empty project.
    pub fn new() -> Self {
        let base = tempfile::Builder::new().prefix("rekindle-cli-").tempdir().expect("tempdir");
        Self { base, variables: Vec::new() }
    }

    /// The project's directory.
    pub fn root(&self) -> &Path {
        self.base.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// The text of a file of the project.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file of the project")
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: &str) -> &Self {
        std::fs::write(self.path(name), text).expect("written");
        self
    }

    /// Writes a program that can be found on `PATH`, once `bin` is put there by [`Self::find_programs`].
    pub fn program(&self, name: &str, script: &str) -> &Self {
        let dir = self.path("bin");
        std::fs::create_dir_all(&dir).expect("a directory");
        std::fs::write(dir.join(name), format!("#!/bin/sh\n{script}")).expect("written");
        std::fs::set_permissions(dir.join(name), std::fs::Permissions::from_mode(0o755)).expect("chmod");
        self
    }

    /// Puts `bin` before the directories of the system.
    pub fn find_programs(&mut self) -> &mut Self {
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        self.variable("PATH", path)
    }

    /// Sets a variable for all that follows.
    pub fn variable(&mut self, name: &str, value: impl AsRef<Path>) -> &mut Self {
        let value = value.as_ref().to_str().expect("text").to_owned();
        self.variables.push((name.to_owned(), value));
        self
    }

    /// The command, ready to run.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rekindle"));
        command
            .args(arguments)
            .current_dir(self.root())
            .env_clear()
            .envs([("PATH", "/usr/bin:/bin"), ("TZ", "UTC"), ("LC_ALL", "C.UTF-8")])
            .env("HOME", self.root())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// What a command printed and how it ended.
    pub fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the binary runs")
    }

    /// What a command printed and how it ended, for a snapshot; paths of this machine are replaced.
    pub fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let mut shown = String::new();
        for (name, bytes) in [("out", &output.stdout), ("err", &output.stderr)] {
            for line in String::from_utf8_lossy(bytes).lines() {
                let line = without_size(line);
                shown.push_str(&format!("{name}| {line}\n"));
            }
        }
        let code = output.status.code().expect("not killed");
        shown.push_str(&format!("exit {code}\n"));
        let root = self.root().canonicalize().expect("a path");
        shown.replace(root.to_str().expect("text"), "$ROOT")
    }

    /// Standard output as JSON, of a command that must succeed.
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Standard output as one JSON value a line.
    pub fn json_lines(&self, arguments: &[&str]) -> Vec<serde_json::Value> {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON value")).collect()
    }

    /// Runs a command whose output nobody reads to the end.
    pub fn run_with_impatient_reader(&self, arguments: &[&str]) -> Output {
        let mut child =
            self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        drop(child.stdout.take());
        let mut stderr = Vec::new();
        if let Some(mut pipe) = child.stderr.take() {
            std::io::copy(&mut pipe, &mut stderr).expect("standard error");
        }
        stderr.flush().expect("a vector");
        let status = child.wait().expect("its end");
        Output { status, stdout: Vec::new(), stderr }
    }
}

/// A line without the disk space that a state takes: it differs from one file system to the next.
fn without_size(line: &str) -> String {
    match line.split_once("the state takes ") {
        Some((before, _)) => format!("{before}the state takes $SIZE of disk"),
        None => line.to_owned(),
    }
}
