//! `--store`: a run whose log is in a database. The process that runs the plan keeps its state directory in the project and names
//! the database there; from then on every command in the project finds it. On another machine a view gets a state directory of
//! its own that holds nothing but the name of the database.

use std::path::PathBuf;

use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{self, Space};

use crate::error::{CliError, Result};
use crate::project::Project;
use crate::ui::Ui;

/// The variable that names a database.
const VARIABLE: &str = "REKINDLE_STORE";

/// The variable that names a space in it.
const SPACE_VARIABLE: &str = "REKINDLE_SPACE";

/// Most characters of a space's name.
const NAME_MAX: usize = 100;

/// What was given on the command line.
#[derive(Debug, Default)]
pub(crate) struct StoreFlag<'a> {
    pub url: Option<&'a str>,
    pub space: Option<&'a str>,
    /// Whether the command may start a run: then the project's own state directory names the database.
    pub starts: bool,
}

impl StoreFlag<'_> {
    /// The project with the state directory that names the database, if one was given.
    pub(crate) fn applied_to(&self, project: Project, ui: Ui) -> Result<Project> {
        let Some(wanted) = self.wanted(&project)? else { return Ok(project) };
        let address = wanted.address()?;
        if address.has_password() {
            ui.warn("the password in the address shows up in process lists; put it into ~/.pgpass instead");
        }
        if project.state_dir.is_dir() && store::locate::space(&project.state_dir)?.as_ref() == Some(&wanted) {
            return Ok(project);
        }
        // A wrong address is not written down.
        store::locate::probe(&wanted)?;
        if self.starts {
            let dir = StateDir::open_or_create(&project.state_dir)?;
            store::locate::set_space(&dir, &wanted).map_err(|error| in_the_way(error, &project))?;
            return Ok(project);
        }
        let state_dir = elsewhere(&wanted)?;
        let dir = StateDir::open_or_create(&state_dir)?;
        store::locate::set_space(&dir, &wanted)?;
        Ok(Project { state_dir, ..project })
    }

    /// The space that was named, if one was.
    fn wanted(&self, project: &Project) -> Result<Option<Space>> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let space = self.space.map(str::to_owned).or_else(|| variable(SPACE_VARIABLE));
        let Some(url) = self.url.map(str::to_owned).or_else(|| variable(VARIABLE)) else {
            return match self.space {
                Some(_) => {
                    Err(CliError::usage("--space needs a database").hint("name it: --store postgres://HOST/DATABASE"))
                }
                None => Ok(None),
            };
        };
        let space = space.unwrap_or_else(|| space_of(project));
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if space.len() > NAME_MAX || !space.starts_with(|c: char| c.is_ascii_alphanumeric()) || !space.chars().all(fits)
        {
            let message = format!("`{space}` cannot name a space");
            return Err(CliError::usage(message).hint("use letters, digits, dots, dashes and underscores, at most 100"));
        }
        Ok(Some(Space { url, space, insecure: false }))
    }
}

/// The usual name of a project's space: that of its directory.
fn space_of(project: &Project) -> String {
    let name = project.root.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let fits = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String =
        name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()).chars().map(fits).take(NAME_MAX).collect();
    if name.is_empty() { "project".to_owned() } else { name }
}

/// Where a machine without the project looks at a space from.
fn elsewhere(wanted: &Space) -> Result<PathBuf> {
    let home = || Some(std::env::home_dir()?.join(".local/state"));
    let base = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute()).or_else(home);
    let base = base.ok_or_else(|| CliError::usage("HOME is not set").hint("name a directory: --state-dir DIR"))?;
    let dir = base.join("rekindle/spaces");
    std::fs::create_dir_all(&dir)
        .map_err(|error| CliError::internal(format!("cannot make {}", dir.display())).because(&error))?;
    Ok(dir.join(wanted.mark()))
}

/// A state directory that has a log already keeps it.
fn in_the_way(error: store::Error, project: &Project) -> CliError {
    let other = project.root.join(".rekindle-shared");
    CliError::usage(error.to_string())
        .hint("run without --store to continue what is there")
        .hint(format!("or keep it and begin anew beside it: --state-dir {}", other.display()))
}
