//! Artifacts that a plan declares and git ignores: they are kept and merged nevertheless, and their author should know.

use std::path::Path;

use rekindle_engine::git::Repo;

use crate::plan_file::PlanFile;

/// Artifacts that git is asked about: each takes a call of a few milliseconds, and one warning is as good as hundreds.
const ASKED_MAX: usize = 200;

/// Adds a warning for each of them. Without a repository, nothing is ignored.
pub(super) fn warn(file: &mut PlanFile, project: &Path) {
    let (Some(plan), Ok(repo)) = (&file.parsed.plan, Repo::of(project)) else { return };
    let declared = plan.tasks.iter().flat_map(|task| task.artifacts.iter().map(move |path| (task.line, path.clone())));
    let ignored = declared.take(ASKED_MAX).filter(|(_, path)| repo.ignores_artifact(path).unwrap_or(false));
    let ignored: Vec<(u32, String)> = ignored.collect();
    for (line, path) in ignored {
        let message = format!("git ignores the artifact `{path}`: rekindle adds it to the run's branch all the same");
        let hint = "take it out of .gitignore, or declare something that is committed";
        file.warn(line, ("artifacts", &path), "artifact_ignored", message, hint);
    }
}
