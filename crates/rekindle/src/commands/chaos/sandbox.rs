//! The sandbox: a copy of the project in a temporary directory, with the plan in a form that stand-ins can run. The user's
//! checkout, state and agents are read and never touched.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rekindle_core::plan::{Isolation, Plan};
use rekindle_engine::git;
use rekindle_shim::atomic;

use super::agent;
use super::fault::Fault;
use crate::config::Config;
use crate::error::{CliError, Result};
use crate::project::Project;

/// Where stand-ins put their work in the sandbox's project.
pub(super) const WORK_DIR: &str = "chaos-work";

/// The plan's file in the sandbox.
pub(super) const PLAN: &str = "chaos-plan.md";

/// How long git may take to copy a repository.
const CLONE_MS: u64 = 120_000;

/// How much of git's output is read; it is not shown.
const ANSWER_BYTES: usize = 4_096;

/// Most files that are copied for real agents from a project without a repository: a larger tree is hardly a project, and
/// the copy has to end.
const FILES_MAX: usize = 20_000;

#[derive(Clone, Debug)]
pub(super) struct Sandbox {
    pub base: PathBuf,
    /// The first copy, which is copied again for each run.
    pristine: PathBuf,
    /// Path of the project within a copy.
    below: PathBuf,
    pub git: bool,
    /// The plan as the sandbox runs it.
    pub plan: String,
    /// Whether the configured agents do the work.
    pub real: bool,
}

impl Sandbox {
    pub(super) fn new(
        base: &Path,
        project: &Project,
        (text, plan): (&str, &Plan),
        config: &Config,
        real: bool,
    ) -> Result<Self> {
        let failed = |error: io::Error| CliError::internal("cannot make the sandbox").because(&error);
        let pristine = base.join("pristine");
        let repo = git::Repo::of(&project.root).ok();
        let below = repo.as_ref().and_then(|repo| project.root.strip_prefix(repo.top()).ok().map(Path::to_owned));
        let git = match (&repo, &below) {
            (Some(repo), Some(_)) => {
                let arguments = ["clone", "-q", "--", &repo.top().to_string_lossy(), &pristine.to_string_lossy()];
                git::ask_within(base, &arguments, ANSWER_BYTES, CLONE_MS)
                    .ok_or_else(|| CliError::internal("git cannot clone the project into the sandbox"))?;
                true
            }
            _ if real => {
                let mut left = FILES_MAX;
                copy(&project.root, &pristine, &mut left).map_err(failed)?;
                false
            }
            _ => false,
        };
        let sandbox = Self {
            base: base.to_owned(),
            below: below.unwrap_or_default(),
            git,
            plan: if real { text.to_owned() } else { stand_in_plan(plan, config) },
            real,
            pristine,
        };
        if rekindle_core::plan::parse("chaos", sandbox.plan.as_bytes()).plan.is_none() {
            return Err(CliError::internal("the plan cannot be rewritten for stand-ins"));
        }
        std::fs::create_dir_all(sandbox.pristine.join(&sandbox.below)).map_err(failed)?;
        Ok(sandbox)
    }

    /// A fresh copy of the project for one run, in a directory of its own. Returns the project's directory.
    pub(super) fn copy_for(&self, dir: &Path, fault: Fault, config: &Config) -> io::Result<PathBuf> {
        let copy_of = dir.join("project");
        std::fs::create_dir_all(dir)?;
        if self.git {
            let arguments = ["clone", "-q", "--", &self.pristine.to_string_lossy(), &copy_of.to_string_lossy()];
            git::ask_within(dir, &arguments, ANSWER_BYTES, CLONE_MS)
                .ok_or_else(|| io::Error::other("git cannot clone the sandbox"))?;
        } else {
            let mut left = FILES_MAX;
            copy(&self.pristine, &copy_of, &mut left)?;
        }
        let root = copy_of.join(&self.below);
        std::fs::create_dir_all(&root)?;
        atomic::save(&root, PLAN, self.plan.as_bytes())?;
        if self.real {
            if let Some(file) = config.file() {
                atomic::save(&root, crate::config::FILE_NAME, &std::fs::read(file)?)?;
            }
        } else {
            atomic::save(&root, crate::config::FILE_NAME, settings(dir, fault, config)?.as_bytes())?;
        }
        if self.git {
            let name = ["-c", "user.name=rekindle chaos", "-c", "user.email=chaos@localhost"];
            let add = ["add", "-f", "--", PLAN, crate::config::FILE_NAME];
            let commit = [&name[..], &["commit", "-q", "-m", "the sandbox's plan and settings"]].concat();
            for arguments in [&add[..], &commit] {
                git::ask(&root, arguments, ANSWER_BYTES)
                    .ok_or_else(|| io::Error::other("git cannot commit the plan in the sandbox"))?;
            }
        }
        Ok(root)
    }
}

/// The file that a stand-in writes for a task.
pub(super) fn task_file(task: &str) -> String {
    format!("{task}.txt")
}

/// The artifacts that a task declares, as recorded for its stand-in.
pub(super) fn artifacts(dir: &Path, task: &str) -> io::Result<Vec<String>> {
    let text = std::fs::read_to_string(dir.join("artifacts.json"))?;
    let all: BTreeMap<String, Vec<String>> = serde_json::from_str(&text)?;
    Ok(all.get(task).cloned().unwrap_or_default())
}

/// The user's plan with its order of work, agents, artifacts and reviewers; its checks are replaced by one that a stand-in
/// can pass.
fn stand_in_plan(plan: &Plan, config: &Config) -> String {
    let isolation = match config.isolation() {
        Isolation::Auto => "auto",
        Isolation::Shared => "shared",
        Isolation::Worktree => "worktree",
    };
    let mut text = format!("---\nplan: {}\nisolation: {isolation}\n", plan.name);
    if let Some(max_agents) = plan.settings.max_agents {
        text += &format!("max_agents: {max_agents}\n");
    }
    if let Some(review) = &plan.settings.review {
        text += &format!("review: [{}]\n", review.join(", "));
    }
    text += "---\n# Chaos\n\nA sandbox: stand-ins do the work.\n";
    for task in &plan.tasks {
        let title = crate::ui::one_line(&task.title);
        text += &format!("\n### {}: {}\n", task.id, if title.is_empty() { "a task" } else { &title });
        if plan.explicit_waves {
            text += &format!("- wave: {}\n", task.wave);
        }
        if !task.blocked_by.is_empty() {
            let ids: Vec<&str> = task.blocked_by.iter().map(rekindle_core::ids::TaskId::as_str).collect();
            text += &format!("- blocked by: {}\n", ids.join(", "));
        }
        if let Some(agent) = &task.agent {
            text += &format!("- agent: {agent}\n");
        }
        if task.priority != 0 {
            text += &format!("- priority: {}\n", task.priority);
        }
        if task.done {
            text += "- done: yes\n";
        } else {
            let file = format!("{WORK_DIR}/{}", task_file(task.id.as_str()));
            // Declared, so that it is kept even if the project's ignore rules match it.
            let artifacts: Vec<&str> = task.artifacts.iter().chain([&file]).map(String::as_str).collect();
            text += &format!("- artifacts: {}\n- accept: `grep -qx done {file}`\n", artifacts.join(", "));
        }
        text += "\nA stand-in does it.\n";
    }
    text
}

/// Settings of the sandbox: stand-ins, short waits, no alerts.
fn settings(dir: &Path, fault: Fault, config: &Config) -> io::Result<String> {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let program = std::env::current_exe()?;
    let (program, place) = (quoted(&program.to_string_lossy()), quoted(&dir.to_string_lossy()));
    let max_agents = config.limits(false).map_or(4, |limits| limits.max_agents);
    let mut text = format!(
        "[agents.stand-in]\nkind = \"command\"\ncommand = [{program}, \"{}\", {place}]\n\n\
         [run]\nagent = \"stand-in\"\nmax_agents = {max_agents}\nbackoff = \"100ms\"\n\n[stop]\ngrace = \"500ms\"\n\n\
         [notify]\ndesktop = false\nneeds_you = false\nfinished = \"off\"\n",
        agent::COMMAND
    );
    if fault == Fault::AgentHang {
        text += "\n[hang]\nsilence = \"6s\"\n";
    }
    if fault == Fault::UsageLimit {
        let command = format!("cat {}", dir.join("allowance").display());
        text += &format!("\n[usage]\ncommand = {}\ngrace = \"1s\"\n", quoted(&command));
    }
    Ok(text)
}

/// Copies files and directories, without state directories and links.
fn copy(from: &Path, to: &Path, left: &mut usize) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    let Ok(entries) = std::fs::read_dir(from) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        if entry.file_name() == crate::project::STATE_DIR_NAME {
            continue;
        }
        *left = left.checked_sub(1).ok_or_else(|| io::Error::other(format!("it has more than {FILES_MAX} files")))?;
        let kind = entry.file_type()?;
        let target = to.join(entry.file_name());
        if kind.is_dir() {
            copy(&entry.path(), &target, left)?;
        } else if kind.is_file() {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
