//! Submodules of a new worktree: filled from what the user's own checkout has on disk, never from a network.

use super::call::records;
use super::{Checkout, Repo, Result, Work};

impl Work {
    /// Fills the submodules that the user has; the others stay empty, which is noted.
    pub(super) fn fill_submodules(&self, at: &Checkout, notes: &mut Vec<String>) -> Result<()> {
        if !at.dir.join(".gitmodules").is_file() {
            return Ok(());
        }
        for (name, path) in self.repo.submodules(at)? {
            if at.dir.join(&path).join(".git").exists() {
                continue;
            }
            let there = self.repo.common.join("modules").join(&name);
            let filled = there.join("HEAD").is_file() && self.fill_one(at, &name, &path)?;
            if !filled {
                notes.push(format!("the submodule {path} is empty: its commit is not on this disk"));
            }
        }
        Ok(())
    }

    fn fill_one(&self, at: &Checkout, name: &str, path: &str) -> Result<bool> {
        let there = self.repo.common.join("modules").join(name);
        let url = format!("submodule.{name}.url");
        let real = self.repo.call_in(&at.dir).args(["config", "--get", &url]).run()?;
        let answer = self
            .repo
            .call_in(&at.dir)
            .config(url, there.to_string_lossy())
            .config(format!("submodule.{name}.active"), "true")
            .config("protocol.file.allow", "always")
            .args(["submodule", "--quiet", "update", "--checkout", "--", path])
            .files()
            .run()?;
        if answer.code == 0 && real.code == 0 {
            // The agent's fetches and pushes there use the same remote as the user's.
            let real = String::from_utf8_lossy(&real.out).trim_end().to_owned();
            let call = self.repo.call_in(&at.dir.join(path));
            let _best_effort = call.args(["config", "remote.origin.url", &real]).run()?;
        }
        Ok(answer.code == 0)
    }
}

impl Repo {
    /// Names and paths of the submodules listed in `.gitmodules`.
    fn submodules(&self, at: &Checkout) -> Result<Vec<(String, String)>> {
        let call = self.look_at(at).args(["config", "--file", ".gitmodules", "-z", "--get-regexp"]);
        let answer = call.arg(r"^submodule\..*\.path$").run()?;
        let entries = records(&answer.out).filter_map(|entry| std::str::from_utf8(entry).ok()?.split_once('\n'));
        let named = entries.filter_map(|(key, path)| {
            let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?;
            // A name that leads out of the submodule folder is not accepted.
            (!name.split('/').any(|part| part == "..")).then(|| (name.to_owned(), path.to_owned()))
        });
        Ok(named.collect())
    }
}
