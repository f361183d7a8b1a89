//! Which files git does not see, for files of ours that belong to one person: whether git already tracks or ignores one, and
//! where a line that makes it ignore one belongs. Writing the line is left to the caller.

use std::path::{Path, PathBuf};

use super::call::Call;
use super::{Repo, Result};

impl Repo {
    /// The file of patterns that belongs to this clone alone and is never committed; all worktrees share it.
    pub fn exclude_file(&self) -> PathBuf {
        self.common.join("info/exclude")
    }

    /// Whether a file of the project, named from its directory, is in the index.
    pub fn tracks(&self, file: &Path) -> Result<bool> {
        let dir = self.project_in(&self.top);
        let out = Call::new(&dir).args(["ls-files", "-z", "--"]).arg(file).ok()?;
        Ok(!out.is_empty())
    }

    /// Whether git ignores a file of the project, named from its directory, that it does not track.
    pub fn ignores(&self, file: &Path) -> Result<bool> {
        let dir = self.project_in(&self.top);
        // This command does not support literal pathspecs, and the names that are asked about contain no magic.
        Call::new(&dir).args(["--no-literal-pathspecs", "check-ignore", "-q", "--"]).arg(file).yes()
    }

    /// The pattern that matches one file of the project and no other; `None` if its name is not UTF-8.
    pub fn pattern(&self, file: &Path) -> Option<String> {
        let path = self.prefix.join(file);
        let mut pattern = "/".to_owned();
        for letter in path.to_str()?.chars() {
            if "\\*?[ ".contains(letter) {
                pattern.push('\\');
            }
            pattern.push(letter);
        }
        (!pattern.contains('\n')).then_some(pattern)
    }
}
