//! A project and a home of their own, and what can be asked about their files.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::super::{Error, Installed, Removed, Site, install, uninstall};
use crate::agents::KINDS;
use crate::agents::hook_installer::{Form, HookInstaller, Places, Scope};

/// Programs whose hooks stand among others' settings.
pub fn with_entries() -> impl Iterator<Item = &'static dyn HookInstaller> {
    KINDS.hook_installers().filter(|program| matches!(program.form(), Form::Entries(_)))
}

/// The program that has a status line.
pub fn with_line() -> &'static dyn HookInstaller {
    KINDS.hook_installers().find(|program| program.status_line().is_some()).expect("one of them")
}

/// The program whose hooks are a file of our own.
pub fn with_own_file() -> &'static dyn HookInstaller {
    KINDS.hook_installers().find(|program| matches!(program.form(), Form::Own(_))).expect("one of them")
}

/// A project and a home.
pub struct Bed {
    _dir: TempDir,
    base: PathBuf,
    pub root: PathBuf,
}

impl Bed {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let base = dir.path().canonicalize().expect("a path");
        let root = base.join("root");
        for dir in ["root", "home", "bin", "etc"] {
            std::fs::create_dir(base.join(dir)).expect("a directory");
        }
        let bed = Self { _dir: dir, base, root };
        bed.write(&bed.rekindle("one"), "");
        std::fs::set_permissions(bed.rekindle("one"), PermissionsExt::from_mode(0o755)).expect("chmod");
        bed
    }

    pub fn rekindle(&self, name: &str) -> PathBuf {
        self.base.join("bin").join(name)
    }

    pub fn on_site<T>(&self, rekindle: &str, work: impl FnOnce(&Site<'_>) -> T) -> T {
        self.site(&self.root, rekindle, work)
    }

    /// The same for another project with a state of its own.
    pub fn on_site_in<T>(&self, root: &Path, work: impl FnOnce(&Site<'_>) -> T) -> T {
        self.site(root, "one", work)
    }

    fn site<T>(&self, root: &Path, rekindle: &str, work: impl FnOnce(&Site<'_>) -> T) -> T {
        let home = self.base.join("home").to_str().expect("text").to_owned();
        let var = move |name: &str| (name == "HOME").then(|| home.clone());
        let (state, rekindle, system) = (root.join(".rekindle"), self.rekindle(rekindle), self.base.join("etc"));
        let places = Places { root, var: &var, system: &system };
        work(&Site { places, state: &state, rekindle: &rekindle })
    }

    pub fn file(&self, program: &dyn HookInstaller, scope: Scope) -> PathBuf {
        self.on_site("one", |site| program.file(scope, &site.places)).expect("a file")
    }

    pub fn install(&self, program: &dyn HookInstaller, scope: Scope) -> Result<Installed, Error> {
        self.install_as("one", program, scope, false)
    }

    pub fn install_as(
        &self,
        rekindle: &str,
        program: &dyn HookInstaller,
        scope: Scope,
        line: bool,
    ) -> Result<Installed, Error> {
        self.on_site(rekindle, |site| install(site, program, scope, line))
    }

    pub fn uninstall(&self, program: &dyn HookInstaller, scope: Scope) -> Result<Vec<Removed>, Error> {
        self.on_site("one", |site| uninstall(site, program, scope))
    }

    pub fn write(&self, path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, text).expect("written");
    }

    /// Every file and link below the project and the home with its content and mode, without the state's own.
    pub fn everything(&self) -> Vec<(PathBuf, u32, String)> {
        let mut found = Vec::new();
        let mut dirs = vec![self.root.clone(), self.base.join("home")];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).expect("listed").flatten() {
                let path = entry.path();
                let own =
                    [".rekindle", "rekindle"].iter().any(|name| path.file_name().is_some_and(|found| found == *name));
                if own || path.ends_with(".local") {
                    continue;
                }
                let known = path.symlink_metadata().expect("metadata");
                let text = match std::fs::read_link(&path) {
                    Ok(target) => format!("-> {}", target.display()),
                    Err(_) if known.is_dir() => "/".to_owned(),
                    Err(_) => String::from_utf8_lossy(&std::fs::read(&path).expect("read")).into_owned(),
                };
                if known.is_dir() {
                    dirs.push(path.clone());
                }
                found.push((path, known.permissions().mode(), text));
            }
        }
        found.sort();
        found
    }
}

/// What a file says.
pub fn text(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}

/// Whether every program that reads JSON with comments can read it, and what it says.
pub fn parsed(text: &str) -> serde_json::Value {
    let doc = super::super::splice::Doc::read(text.trim_start_matches('\u{feff}'));
    let doc = doc.unwrap_or_else(|broken| panic!("{broken:?} in {text}"));
    doc.root.map(serde_json::Value::from).unwrap_or_default()
}
