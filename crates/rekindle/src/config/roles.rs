//! The `[roles.NAME]` tables: which agent takes a role, and the template of its prompt. The core decides what a template may
//! contain, and how prompts are made without one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rekindle_core::brief::template;
use rekindle_core::plan::Plan;
use rekindle_core::role::Role;

use super::{Config, Origin, read_text, shown};
use crate::error::{CliError, Result};

/// The settings of a role: its agent, its prompt.
fn keys(role: Role) -> (&'static str, &'static str) {
    match role {
        Role::Developer => ("roles.developer.agent", "roles.developer.prompt"),
        Role::Critic => ("roles.critic.agent", "roles.critic.prompt"),
        Role::Auditor => ("roles.auditor.agent", "roles.auditor.prompt"),
        Role::Remediation => ("roles.remediation.agent", "roles.remediation.prompt"),
        Role::HealthAuditor => ("roles.health_auditor.agent", "roles.health_auditor.prompt"),
    }
}

/// The roles that a plan needs besides its developers.
pub(super) fn needed(plan: &Plan) -> Vec<Role> {
    let reviewers = plan.settings.review.iter().flatten().filter_map(|name| Role::of(name));
    let health = [Role::Remediation, Role::HealthAuditor].into_iter().filter(|_| !plan.settings.health.is_empty());
    reviewers.chain(health).collect()
}

impl Config {
    /// The agents of the roles that name one. Fails when one of them is not configured.
    pub(super) fn role_agents(&self) -> Result<BTreeMap<Role, String>> {
        let named = Role::ALL.into_iter().filter(|role| !self.text(keys(*role).0).is_empty());
        named.map(|role| Ok((role, self.agent_of(role)?.to_owned()))).collect()
    }

    /// The agent that takes a role where its task names none: the role's own, else the default. Fails when that agent
    /// is not configured.
    pub(crate) fn agent_of(&self, role: Role) -> Result<&str> {
        let (key, _) = keys(role);
        let name = self.text(key);
        if name.is_empty() {
            return self.default_agent();
        }
        let Some((known, _)) = self.agents.get_key_value(name) else {
            let message = format!("unknown agent `{name}` in {key} ({})", self.sourced(key).origin);
            return Err(CliError::usage(message).hint(self.agent_hint(name)));
        };
        Ok(known)
    }

    /// The prompts of the roles that have their own, read and checked. Fails when one cannot be read, contains an unknown
    /// placeholder, or leaves no room for what is inserted.
    pub(crate) fn prompts(&self, project: &Path) -> Result<BTreeMap<Role, String>> {
        let files = self.prompt_files(project);
        files.into_iter().map(|(role, path)| Ok((role, self.read_prompt(role, &path)?))).collect()
    }

    fn read_prompt(&self, role: Role, path: &Path) -> Result<String> {
        let (_, key) = keys(role);
        let place = format!("{} ({key}, {})", shown(path).display(), self.sourced(key).origin);
        let text = read_text(path).map_err(|error| error.hint(format!("it is named by {key}")))?;
        template::check(&text).map_err(|unknown| {
            CliError::usage(format!("the prompt in {place} cannot be used: {unknown}")).hint(unknown.hint())
        })?;
        let most = self.brief_budget_bytes() / template::SHARE;
        if text.len() > most {
            let message = format!("the prompt in {place} has {} bytes, more than half of a brief", text.len());
            return Err(CliError::usage(message).hint("shorten it, or raise brief.budget_bytes"));
        }
        Ok(text)
    }

    /// The files of these prompts: relative to the plan's directory if the plan names them, otherwise to the project's.
    fn prompt_files(&self, project: &Path) -> Vec<(Role, PathBuf)> {
        let named = Role::ALL.into_iter().map(|role| (role, keys(role).1));
        let named = named.filter(|(_, key)| !self.text(key).is_empty());
        let place = |key| match &self.sourced(key).origin {
            Origin::Plan(plan) => Path::new(plan).parent().unwrap_or(project),
            _ => project,
        };
        named.map(|(role, key)| (role, place(key).join(self.text(key)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use rekindle_core::plan;

    use super::*;
    use crate::config::Sources;

    const AGENTS: &str = "[agents.a]\ncommand = [\"/bin/sh\"]\n[agents.b]\ncommand = [\"/bin/sh\"]\n";

    fn load(dir: &Path, toml: &str, front: &str) -> Result<Config> {
        let file = dir.join("rekindle.toml");
        std::fs::write(&file, format!("{AGENTS}{toml}")).expect("written");
        let text = format!("---\n{front}---\n# P\n### T1: one\n- accept: `true`\n");
        let plan = plan::parse("p", text.as_bytes()).plan.expect("a plan");
        let shown = dir.join("plans/plan.md").display().to_string();
        let sources = Sources { file: Some(&file), plan: Some((&shown, &plan.settings)), ..Sources::default() };
        let config = Config::load(&sources)?;
        config.limits(false)?;
        config.check_plan(&plan, None, dir)?;
        Ok(config)
    }

    #[test]
    fn a_role_has_its_own_agent() {
        let dir = tempfile::tempdir().expect("tempdir");
        let toml = "[roles.critic]\nagent = \"b\"\n[roles.developer]\nagent = \"b\"\n";
        let config = load(dir.path(), toml, "roles.auditor.agent: a\n").expect("loaded");
        let limits = config.limits(false).expect("limits");
        let roles = [(Role::Critic, "b"), (Role::Developer, "b"), (Role::Auditor, "a")];
        assert_eq!(limits.roles, roles.map(|(role, name)| (role, name.to_owned())).into());
        assert_eq!(limits.default_cli, "a");
    }

    #[test]
    fn an_agent_or_role_that_is_not_there_is_named() {
        let dir = tempfile::tempdir().expect("tempdir");
        let error = load(dir.path(), "[roles.critic]\nagent = \"c\"\n", "").expect_err("unknown");
        assert!(error.message.starts_with("unknown agent `c` in roles.critic.agent ("), "{}", error.message);
        let error = load(dir.path(), "", "review: critic\nroles.critic.agent: c\n").expect_err("unknown");
        assert!(error.message.contains("front matter of"), "{}", error.message);
        let error = load(dir.path(), "[roles.crtic]\nagent = \"a\"\n", "").expect_err("unknown");
        let first = &error.diagnostics[0];
        assert_eq!(first.message, "unknown role `crtic` in [roles]");
        assert_eq!(first.hint.as_deref(), Some("did you mean `critic`?"));
    }

    #[test]
    fn prompts_are_read_from_beside_who_names_them() {
        let dir = tempfile::tempdir().expect("tempdir");
        std::fs::create_dir(dir.path().join("plans")).expect("plans");
        std::fs::write(dir.path().join("critic.md"), "project {{task}}").expect("written");
        std::fs::write(dir.path().join("plans/critic.md"), "plan {{task}}").expect("written");
        std::fs::write(dir.path().join("bad.md"), "one\n{{tsk}}").expect("written");
        let toml = "[roles.critic]\nprompt = \"critic.md\"\n";
        let read = |front: &str| load(dir.path(), toml, front).expect("loaded").prompts(dir.path());
        assert_eq!(read("").expect("read")[&Role::Critic], "project {{task}}");
        assert_eq!(read("roles.critic.prompt: critic.md\n").expect("read")[&Role::Critic], "plan {{task}}");
        let missing = read("roles.auditor.prompt: gone.md\n").expect_err("missing");
        assert_eq!(missing.hints, ["it is named by roles.auditor.prompt"]);
        let bad = load(dir.path(), "[roles.critic]\nprompt = \"bad.md\"\n", "").expect("loaded").prompts(dir.path());
        let bad = bad.expect_err("unknown placeholder");
        assert!(bad.message.ends_with("cannot be used: unknown placeholder `{{tsk}}` in line 2"), "{}", bad.message);
        assert_eq!(bad.hints, ["did you mean `{{task}}`?"]);
    }
}
