//! Where rekindle was called: the project's directory, its configuration, its state.

use std::path::{Path, PathBuf};

use crate::config::FILE_NAME;
use crate::error::{CliError, Result};

/// The state directory's name in a project.
pub(crate) const STATE_DIR_NAME: &str = ".rekindle";

/// The variable that names another state directory.
pub(crate) const STATE_DIR_VARIABLE: &str = "REKINDLE_STATE_DIR";

/// The places that belong to one project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Project {
    /// Where agents work.
    pub root: PathBuf,
    /// `rekindle.toml`, if there is one.
    pub config: Option<PathBuf>,
    /// Where the state is, or will be.
    pub state_dir: PathBuf,
}

impl Project {
    /// Finds the project of the working directory. `state_dir` is the value of the flag. Fails when the working directory is
    /// gone.
    pub(crate) fn find(state_dir: Option<&Path>) -> Result<Self> {
        let here =
            std::env::current_dir().map_err(|e| CliError::usage("the working directory cannot be read").because(&e))?;
        let variable = std::env::var_os(STATE_DIR_VARIABLE).filter(|dir| !dir.is_empty());
        let given = state_dir.map(Path::to_owned).or(variable.map(PathBuf::from));
        Ok(Self::from(&here, given.as_deref()))
    }

    /// The state's file as it is shown: relative to the project if it is inside.
    pub(crate) fn state_file(&self) -> String {
        let file = self.state_dir.join("state.db");
        file.strip_prefix(&self.root).unwrap_or(&file).display().to_string()
    }

    pub(crate) fn from(here: &Path, state_dir: Option<&Path>) -> Self {
        let root = root_of(here);
        let config = root.join(FILE_NAME);
        Self {
            config: config.is_file().then_some(config),
            state_dir: match state_dir {
                Some(dir) => here.join(dir),
                None => root.join(STATE_DIR_NAME),
            },
            root,
        }
    }
}

/// The nearest directory upwards that holds our files, but never beyond the repository: a file that somebody else put
/// into a directory above, such as /tmp, must not decide which programs are run here.
fn root_of(here: &Path) -> PathBuf {
    let Some(repository) = here.ancestors().find(|dir| dir.join(".git").exists()) else {
        return here.to_owned();
    };
    here.ancestors()
        .take_while(|dir| dir.starts_with(repository))
        .find(|dir| dir.join(FILE_NAME).is_file() || dir.join(STATE_DIR_NAME).is_dir())
        .unwrap_or(here)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_found_upwards_but_not_beyond_the_repository() {
        let base = tempfile::tempdir().expect("tempdir");
        let base = base.path();
        let deep = base.join("repo/a/b");
        std::fs::create_dir_all(&deep).expect("directories");
        std::fs::write(base.join(FILE_NAME), "").expect("planted file");
        assert_eq!(Project::from(&deep, None).root, deep, "no repository: only here");
        std::fs::create_dir(base.join("repo/.git")).expect("repository");
        assert_eq!(Project::from(&deep, None).root, deep, "nothing of ours in the repository");
        std::fs::write(base.join("repo").join(FILE_NAME), "").expect("config");
        let project = Project::from(&deep, None);
        assert_eq!(project.root, base.join("repo"));
        assert_eq!(project.config, Some(base.join("repo").join(FILE_NAME)));
        assert_eq!(project.state_dir, base.join("repo").join(STATE_DIR_NAME));
        assert_eq!(Project::from(&deep, Some(Path::new("x"))).state_dir, deep.join("x"));
    }
}
