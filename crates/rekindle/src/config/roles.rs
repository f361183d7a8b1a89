//! The `[roles.NAME]` tables: which agent takes a role, and the template of its prompt. What a template may say is decided
//! in the core; how prompts are made without one as well.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rekindle_core::plan::Plan;
use rekindle_core::role::Role;

use super::{Config, Origin};
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
    /// The agents of the roles that name one.
    ///
    /// # Errors
    /// When one of them is not configured.
    pub(super) fn role_agents(&self) -> Result<BTreeMap<Role, String>> {
        let named = Role::ALL.into_iter().filter(|role| !self.text(keys(*role).0).is_empty());
        named.map(|role| Ok((role, self.agent_of(role)?.to_owned()))).collect()
    }

    /// The agent that takes a role where its task names none: the role's own, else the default.
    ///
    /// # Errors
    /// When that agent is not configured.
    pub fn agent_of(&self, role: Role) -> Result<&str> {
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

    /// The files with the templates of the roles that have one: below the plan's directory where the plan names them, else below
    /// the project's.
    #[must_use]
    pub fn prompt_files(&self, project: &Path) -> Vec<(Role, PathBuf)> {
        let named =
            Role::ALL.into_iter().map(|role| (role, keys(role).1)).filter(|(_, key)| !self.text(key).is_empty());
        let place = |key| match &self.sourced(key).origin {
            Origin::Plan(plan) => Path::new(plan).parent().unwrap_or(project),
            _ => project,
        };
        named.map(|(role, key)| (role, place(key).join(self.text(key)))).collect()
    }
}
