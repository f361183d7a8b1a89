//! The real coding agents, installed from their npm packages at the versions of `agents/package-lock.json`, or the newest
//! ones that the registry has, in their own folder. This file decides where they are and whether they have to be installed
//! again; the tests run them.
//!
//! Install scripts are off, so the wrappers that such a script would complete are left alone: callers get the program that
//! ends up running. Tests run as separate processes, so a file lock keeps all but the first of them waiting.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

/// The packages to install.
const PACKAGE: &str = include_str!("../agents/package.json");

/// At which versions, with the checksum of each.
const LOCK: &str = include_str!("../agents/package-lock.json");

/// Holds the lock file's text of a finished installation. Written last: a broken installation is made again.
const STAMP: &str = "installed.json";

/// Set to anything, it makes tests run the newest programs instead, as installed by `cargo xtask agents --latest`.
pub const LATEST_VARIABLE: &str = "REKINDLE_AGENTS_LATEST";

/// Directory of the newest programs, beside the pinned ones.
pub const LATEST_DIR: &str = "agents-latest";

/// What npm needs to find in a folder that it installs into.
const LATEST_PACKAGE: &str = "{\"name\": \"rekindle-agents-latest\", \"private\": true}\n";

/// One of the four programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cli {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    Opencode,
}

impl Cli {
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode];

    /// Its name, as in `kind = "…"`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
        }
    }

    #[must_use]
    pub fn package(self) -> &'static str {
        match self {
            Self::Claude => "@anthropic-ai/claude-code",
            Self::Codex => "@openai/codex",
            Self::Gemini => "@google/gemini-cli",
            Self::Opencode => "opencode-ai",
        }
    }

    /// The version that the lock file names.
    #[must_use]
    pub fn version(self) -> String {
        let lock: serde_json::Value = serde_json::from_str(LOCK).unwrap_or_default();
        let entry = &lock["packages"][format!("node_modules/{}", self.package())];
        entry["version"].as_str().unwrap_or_default().to_owned()
    }

    /// The program, below `node_modules`.
    fn program(self, machine: &Machine) -> String {
        let Machine { cpu, triple, modern } = machine;
        match self {
            Self::Claude => format!("@anthropic-ai/claude-code-linux-{cpu}/claude"),
            Self::Codex => format!("@openai/codex-linux-{cpu}/vendor/{triple}/bin/codex"),
            Self::Gemini => ".bin/gemini".to_owned(),
            Self::Opencode if *modern => format!("opencode-linux-{cpu}/bin/opencode"),
            Self::Opencode => format!("opencode-linux-{cpu}-baseline/bin/opencode"),
        }
    }
}

/// What the native packages are named after.
struct Machine {
    cpu: &'static str,
    triple: &'static str,
    /// Whether the processor can run builds for current ones; there is a second package for those that cannot.
    modern: bool,
}

impl Machine {
    fn this() -> Self {
        #[cfg(target_arch = "x86_64")]
        let modern = std::is_x86_feature_detected!("avx2");
        #[cfg(not(target_arch = "x86_64"))]
        let modern = true;
        match std::env::consts::ARCH {
            "aarch64" => Self { cpu: "arm64", triple: "aarch64-unknown-linux-musl", modern },
            _ => Self { cpu: "x64", triple: "x86_64-unknown-linux-musl", modern },
        }
    }
}

/// Why the agents are not installed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// npm could not be run or failed.
    #[error(
        "cannot install the coding agents: {why}\nhint: the tests need node 20 or newer, npm, and a registry to reach"
    )]
    Npm {
        /// What npm said.
        why: String,
    },
    /// npm succeeded, but a program is still missing.
    #[error("npm installed everything, but {0} is missing")]
    Missing(PathBuf),
    /// A file could not be read or written.
    #[error("cannot keep the coding agents in {path}: {source}")]
    File {
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

/// The installed agents.
#[derive(Clone, Debug)]
pub struct Installed {
    modules: PathBuf,
}

impl Installed {
    /// Installs the agents into a directory unless they are already there, and returns them; or the newest ones beside it,
    /// if those are requested.
    ///
    /// # Errors
    ///
    /// npm fails, or the directory cannot be written.
    pub fn below(dir: &Path) -> Result<Self, Error> {
        if std::env::var_os(LATEST_VARIABLE).is_some() {
            return Self::at(&dir.with_file_name(LATEST_DIR));
        }
        Self::pinned(dir)
    }

    /// Installs the newest agents that the registry has under their names.
    ///
    /// # Errors
    ///
    /// npm fails, or the directory cannot be written.
    pub fn latest(dir: &Path) -> Result<Self, Error> {
        let failed = |source| Error::File { path: dir.to_owned(), source };
        fs::create_dir_all(dir).map_err(failed)?;
        fs::write(dir.join("package.json"), LATEST_PACKAGE).map_err(failed)?;
        let newest = Cli::ALL.map(|cli| format!("{}@latest", cli.package()));
        npm(dir, "install", &newest)?;
        Self::at(dir)
    }

    /// The installed version, according to its package.
    #[must_use]
    pub fn version(&self, cli: Cli) -> String {
        let package = self.modules.join(cli.package()).join("package.json");
        let package: serde_json::Value =
            fs::read_to_string(package).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        package["version"].as_str().unwrap_or_default().to_owned()
    }

    fn pinned(dir: &Path) -> Result<Self, Error> {
        let failed = |source| Error::File { path: dir.to_owned(), source };
        fs::create_dir_all(dir).map_err(failed)?;
        let lock = File::create(dir.join("lock")).map_err(failed)?;
        // Released when the file is closed, even if the test is killed meanwhile.
        lock.lock().map_err(failed)?;
        let stamp = dir.join(STAMP);
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == LOCK) {
            return Self::at(dir);
        }
        match fs::remove_file(&stamp) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        fs::write(dir.join("package.json"), PACKAGE).map_err(failed)?;
        fs::write(dir.join("package-lock.json"), LOCK).map_err(failed)?;
        npm(dir, "ci", &[])?;
        let installed = Self::at(dir)?;
        fs::write(&stamp, LOCK).map_err(failed)?;
        Ok(installed)
    }

    fn at(dir: &Path) -> Result<Self, Error> {
        let installed = Self { modules: dir.join("node_modules") };
        match Cli::ALL.map(|cli| installed.program(cli)).into_iter().find(|program| !program.is_file()) {
            Some(missing) => Err(Error::Missing(missing)),
            None => Ok(installed),
        }
    }

    #[must_use]
    pub fn program(&self, cli: Cli) -> PathBuf {
        self.modules.join(cli.program(&Machine::this()))
    }
}

fn npm(dir: &Path, order: &str, packages: &[String]) -> Result<(), Error> {
    let mut npm = Command::new("npm");
    npm.args([order, "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"]);
    npm.args(packages).current_dir(dir);
    let output = npm.stdin(Stdio::null()).output().map_err(|error| Error::Npm { why: format!("npm: {error}") })?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(Error::Npm { why: format!("npm {order} ended with {}:\n{}", output.status, String::from_utf8_lossy(&said)) })
}

#[cfg(test)]
mod tests {
    use super::{Cli, LOCK};

    #[test]
    fn versions_are_those_that_were_recorded() {
        assert_eq!(Cli::ALL.map(Cli::version), ["2.1.197", "0.166.0", "0.61.0", "1.18.33"]);
    }

    #[test]
    fn lock_file_names_no_registry() {
        assert!(!LOCK.contains("\"resolved\"") && !LOCK.contains("://"));
    }

    #[test]
    fn every_package_for_this_machine_has_a_checksum() {
        let lock: serde_json::Value = serde_json::from_str(LOCK).expect("JSON");
        let packages = lock["packages"].as_object().expect("packages").iter().filter(|(name, _)| !name.is_empty());
        let fits = |entry: &serde_json::Value, key: &str, here: &str| {
            entry[key].as_array().is_none_or(|list| list.iter().any(|one| one == here))
        };
        for (name, entry) in packages {
            let ours = fits(entry, "os", "linux") && fits(entry, "cpu", "x64") && fits(entry, "libc", "glibc");
            assert!(!ours || entry["integrity"].is_string(), "{name} has no checksum");
        }
    }
}
