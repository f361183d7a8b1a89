//! The effective configuration: defaults, overridden by `rekindle.toml`, the plan's front matter, `REKINDLE_…` variables and
//! flags, in this order; every value knows its origin. The settings are listed in `config/keys.rs`; what they do is decided
//! where they are used.

mod agents;
mod environment;
mod file;
mod keys;
mod landing;
mod money;
mod phone;
mod places;
mod plan_layer;
mod program;
mod retention;
mod roles;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rekindle_core::budget::Price;
use rekindle_core::limits::{CompactionLimits, Limits, UsageLimits};
use rekindle_core::plan::{FrontMatter, Isolation, Plan, PlanTask};
use rekindle_core::role::Role;
use rekindle_engine::agents::Kinds;
use rekindle_engine::alert::{Channels, Complaints, Finished, PausedFromPhone, Phone};
use rekindle_engine::caps::Defaults;
use rekindle_engine::world::real::{Programs, Worktree};

pub(crate) use agents::Agent;
pub(crate) use keys::{KEYS, Key, Value};
pub(crate) use landing::Landing;
pub(crate) use program::find as find_program;
pub(crate) use rekindle_core::plan::nearest::nearest;

use crate::diagnostic::Diagnostic;
use crate::error::{CliError, Result};

/// The configuration's file name.
pub(crate) const FILE_NAME: &str = "rekindle.toml";

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sourced<T> {
    pub value: T,
    pub origin: Origin,
}

/// Where a value came from, weakest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It was not set.
    Default,
    /// `rekindle.toml`.
    File {
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// The front matter of a plan, by its path.
    Plan(String),
    /// A variable, by its name.
    Variable(String),
    /// A flag, by its name.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Plan(path) => write!(f, "front matter of {path}"),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// The values of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layer {
    values: BTreeMap<&'static str, Sourced<Value>>,
}

impl Layer {
    /// Sets a value, replacing an earlier one.
    pub(crate) fn set(&mut self, key: &'static Key, value: Value, origin: Origin) {
        self.values.insert(key.name, Sourced { value, origin });
    }

    fn over(&mut self, stronger: Layer) {
        self.values.extend(stronger.values);
    }
}

/// A flag of the command line that sets a value.
#[derive(Clone, Debug)]
pub(crate) struct Flag {
    /// The setting, as `section.key`.
    pub key: &'static str,
    /// The flag, as it is typed.
    pub name: &'static str,
    /// The value, as it was typed.
    pub value: String,
}

/// All sources of configuration.
#[derive(Debug, Default)]
pub(crate) struct Sources<'a> {
    /// `rekindle.toml`, if there is one.
    pub file: Option<&'a Path>,
    /// A plan's path and front matter.
    pub plan: Option<(&'a str, &'a FrontMatter)>,
    pub variables: Vec<(OsString, OsString)>,
    pub flags: Vec<Flag>,
    /// The kinds of agents that may be named.
    pub kinds: Kinds,
}

impl Sources<'_> {
    /// These sources with the environment of this process.
    pub(crate) fn with_environment(mut self) -> Self {
        self.variables = std::env::vars_os().collect();
        self
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub agents: BTreeMap<String, Agent>,
    /// Environments by name, each with the words before every check there.
    pub environments: BTreeMap<String, Vec<String>>,
    prices: BTreeMap<String, Price>,
    phones: Vec<Phone>,
    pub warnings: Vec<Diagnostic>,
    file: Option<PathBuf>,
    layer: Layer,
}

impl Config {
    /// Reads and layers everything. Fails with all problems of all sources at once.
    pub(crate) fn load(sources: &Sources<'_>) -> Result<Self> {
        let mut layer = Layer::default();
        for key in KEYS {
            layer.set(key, key.default_value(), Origin::Default);
        }
        let mut problems = Vec::new();
        let (mut agents, mut prices) = (BTreeMap::new(), BTreeMap::new());
        let mut environments = BTreeMap::from([(places::LOCAL.to_owned(), Vec::new())]);
        if let Some(path) = sources.file {
            let file = file::read(&shown(path), &read_text(path)?, sources.kinds);
            layer.over(file.layer);
            (agents, prices) = (file.agents, file.prices);
            environments.extend(file.environments);
            problems.extend(file.problems);
        }
        if let Some((path, settings)) = sources.plan {
            let (plan, found) = plan_layer::read(path, settings);
            layer.over(plan);
            problems.extend(found);
        }
        let (variables, found) = environment::read(sources.variables.iter().cloned());
        layer.over(variables);
        problems.extend(found);
        for flag in &sources.flags {
            match read_flag(flag) {
                Ok((key, value)) => layer.set(key, value, Origin::Flag(flag.name)),
                Err(problem) => problems.push(problem),
            }
        }
        let (phones, problems) = phone::read(&layer, &sources.variables, problems);
        if problems.iter().any(Diagnostic::is_error) {
            return Err(CliError::diagnosed("the configuration", problems));
        }
        Ok(Self {
            agents,
            environments,
            phones,
            prices,
            warnings: problems,
            file: sources.file.map(Path::to_owned),
            layer,
        })
    }

    /// Every setting with its value and origin, in the table's order.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static Key, &Sourced<Value>)> {
        KEYS.iter().map(|key| (key, self.sourced(key.name)))
    }

    /// The file it was read from.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    fn sourced(&self, name: &'static str) -> &Sourced<Value> {
        let found = self.layer.values.get(name);
        found.expect("every key has a default, and only keys of the table are asked for")
    }

    fn count(&self, name: &'static str) -> u64 {
        self.sourced(name).value.count().unwrap_or(0)
    }

    fn duration_ms(&self, name: &'static str) -> u64 {
        match self.sourced(name).value {
            Value::DurationMs(ms) => ms,
            _ => 0,
        }
    }

    fn text(&self, name: &'static str) -> &str {
        match &self.sourced(name).value {
            Value::Text(text) => text,
            _ => "",
        }
    }

    /// How many lines of its predecessor's log a replacement is shown.
    pub(crate) fn log_context_lines(&self) -> usize {
        usize::try_from(self.count("run.log_context_lines")).unwrap_or(usize::MAX)
    }

    pub(crate) fn brief_budget_bytes(&self) -> usize {
        usize::try_from(self.count("brief.budget_bytes")).unwrap_or(usize::MAX)
    }

    /// How long an acceptance command may take.
    pub(crate) fn check_timeout_ms(&self) -> u64 {
        self.duration_ms("timeouts.check")
    }

    /// Grace period for each step of the stop ladder.
    pub(crate) fn stop_grace_ms(&self) -> u64 {
        self.duration_ms("stop.grace")
    }

    /// Where the files for people go, if not into the state directory.
    pub(crate) fn files_dir(&self) -> Option<&Path> {
        Some(self.text("files.dir")).filter(|dir| !dir.is_empty()).map(Path::new)
    }

    /// The command that is run when a person is needed.
    pub(crate) fn notify_command(&self) -> Option<&[String]> {
        match &self.sourced("notify.command").value {
            Value::Command(words) if !words.is_empty() => Some(words),
            _ => None,
        }
    }

    /// The shell command that reports the remaining allowance; empty means none.
    pub(crate) fn usage_command(&self) -> &str {
        self.text("usage.command").trim()
    }

    pub(crate) fn isolation(&self) -> Isolation {
        match self.text("run.isolation") {
            "worktree" => Isolation::Worktree,
            "shared" => Isolation::Shared,
            _ => Isolation::Auto,
        }
    }

    /// The agents that the usage command speaks for; none means all. Fails when one of them is not configured.
    pub(crate) fn usage_agents(&self) -> Result<Vec<String>> {
        let named = self.sourced("usage.agents");
        let Value::Names(names) = &named.value else { return Ok(Vec::new()) };
        if let Some(name) = names.iter().find(|name| !self.agents.contains_key(*name)) {
            let message = format!("unknown agent `{name}` in usage.agents ({})", named.origin);
            return Err(CliError::usage(message).hint(self.agent_hint(name)));
        }
        Ok(names.clone())
    }

    /// The URL that alerts are posted to.
    pub(crate) fn notify_webhook(&self) -> Option<&str> {
        Some(self.text("notify.webhook")).filter(|url| !url.is_empty())
    }

    fn is_on(&self, name: &'static str) -> bool {
        self.sourced(name).value == Value::Switch(true)
    }

    /// The limits for decisions. Fails when no agent is configured, or the named one is not.
    pub(crate) fn limits(&self, no_wait: bool) -> Result<Limits> {
        self.quiet_hours()?;
        let small = |name| u32::try_from(self.count(name)).unwrap_or(u32::MAX);
        let roles = [Role::Developer, Role::Critic, Role::Auditor, Role::Remediation, Role::HealthAuditor];
        let timeout = |role| match role {
            Role::Developer => "timeouts.developer",
            Role::Critic => "timeouts.critic",
            Role::Auditor => "timeouts.auditor",
            Role::Remediation => "timeouts.remediation",
            Role::HealthAuditor => "timeouts.health_auditor",
        };
        Ok(Limits {
            max_agents: small("run.max_agents"),
            attempts: small("run.attempts"),
            backoff_ms: self.duration_ms("run.backoff"),
            recover: self.is_on("run.recover"),
            timeout_ms: roles.into_iter().map(|role| (role, self.duration_ms(timeout(role)))).collect(),
            after_result_ms: self.duration_ms("hang.after_result"),
            silence_ms: self.duration_ms("hang.silence"),
            first_event_ms: self.duration_ms("hang.first_event"),
            default_cli: self.default_agent()?.to_owned(),
            clis: self.agents.keys().cloned().collect(),
            stop_grace_ms: self.stop_grace_ms(),
            no_wait,
            preflight: self.is_on("run.preflight"),
            traits: self.agents.iter().map(|(name, agent)| (name.clone(), agent.traits())).collect(),
            usage: UsageLimits {
                default_wait_ms: self.duration_ms("usage.default_wait"),
                grace_ms: self.duration_ms("usage.grace"),
                asks: !self.usage_command().is_empty(),
                threshold_percent: u8::try_from(self.count("usage.threshold_percent")).unwrap_or(u8::MAX),
                agents: self.usage_agents()?,
            },
            compaction: CompactionLimits {
                threshold_percent: u8::try_from(self.count("compaction.threshold_percent")).unwrap_or(u8::MAX),
                hand_over_after: small("compaction.hand_over_after"),
            },
            roles: self.role_agents()?,
            worktrees: false,
            validation_window_ms: self.duration_ms("validation.window"),
            ended_kept: Limits::default().ended_kept,
            budget: self.budgets(),
            prices: self.prices.clone(),
        })
    }

    fn names(&self, key: &'static str) -> Vec<String> {
        match &self.sourced(key).value {
            Value::Names(names) => names.clone(),
            _ => Vec::new(),
        }
    }

    /// What the engine starts for each agent, and what else it runs.
    pub(crate) fn programs(&self) -> Programs {
        Programs {
            agents: self.agents.iter().map(|(name, agent)| (name.clone(), agent.program.clone())).collect(),
            check_timeout_ms: self.check_timeout_ms(),
            alerts: Channels {
                command: self.notify_command().unwrap_or_default().to_vec(),
                webhook: self.notify_webhook().map(str::to_owned),
                phones: self.phones.clone(),
                control: self.is_on("notify.control"),
                poll_ms: self.duration_ms("notify.poll"),
                paused: PausedFromPhone::default(),
                desktop: self.is_on("notify.desktop"),
                bell: self.is_on("notify.bell"),
                needs_you: self.is_on("notify.needs_you"),
                finished: Finished::named(self.text("notify.finished")),
                complaints: Complaints::default(),
            },
            environments: self.environments.clone(),
            usage: self.usage_command().to_owned(),
            caps: Defaults {
                memory_max: self.sourced("caps.memory_max").value.memory().unwrap_or_default(),
                processes_max: self.count("caps.processes_max"),
            },
            worktree: Worktree {
                setup: self.text("worktree.setup").to_owned(),
                teardown: self.text("worktree.teardown").to_owned(),
                copy: self.names("worktree.copy"),
                link: self.names("worktree.link"),
                ports: u16::try_from(self.count("worktree.ports")).unwrap_or(0),
            },
            quiet: self.quiet_hours().ok().flatten(),
        }
    }

    /// The agent for tasks that name none: `run.agent`, else the first in the file. Fails when there is none, or the
    /// one named is not configured.
    pub(crate) fn default_agent(&self) -> Result<&str> {
        let named = self.sourced("run.agent");
        let name = self.text("run.agent");
        if !name.is_empty() {
            let Some((known, _)) = self.agents.get_key_value(name) else {
                let message = format!("unknown agent `{name}` in run.agent ({})", named.origin);
                return Err(CliError::usage(message).hint(self.agent_hint(name)));
            };
            return Ok(known);
        }
        let first = self.agents.iter().min_by_key(|(_, agent)| agent.line);
        let Some((name, _)) = first else {
            let message = match &self.file {
                Some(path) => format!("{} names no agent", shown(path).display()),
                None => format!("no agent is configured: there is no {FILE_NAME} here"),
            };
            return Err(CliError::usage(message).hint("write one to start from: rekindle init"));
        };
        Ok(name)
    }

    /// The agent that does a task: its `cli`, otherwise one with the name of its agent, otherwise the default. Fails when
    /// that agent is not configured.
    pub(crate) fn agent_for(&self, task: &PlanTask) -> Result<&str> {
        if let Some(cli) = &task.cli {
            let Some((known, _)) = self.agents.get_key_value(cli) else {
                let message =
                    format!("task {} names the unknown agent `{cli}` (line {} of the plan)", task.id, task.line);
                return Err(CliError::usage(message).hint(self.agent_hint(cli)));
            };
            return Ok(known);
        }
        let worker = task.agent.as_ref().and_then(|worker| self.agents.get_key_value(worker.as_str()));
        match worker {
            Some((known, _)) => Ok(known),
            None => self.agent_of(Role::Developer),
        }
    }

    /// Checks that every environment that a plan names is configured. Fails with the first that is not, and the nearest
    /// name.
    pub(crate) fn check_environments(&self, plan: &Plan) -> Result<()> {
        let of_plan = plan.settings.environments.iter().flatten().map(|name| (name, "the front matter".to_owned()));
        let of_tasks = plan.tasks.iter().flat_map(|task| {
            task.environments.iter().map(|name| (name, format!("task {} (line {} of the plan)", task.id, task.line)))
        });
        for (name, who) in of_plan.chain(of_tasks) {
            if self.environments.contains_key(name) {
                continue;
            }
            let hint = match nearest(name, self.environments.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add [environments.{name}] with prefix = [\"…\"] to {FILE_NAME}"),
            };
            return Err(CliError::usage(format!("{who} names the unknown environment `{name}`")).hint(hint));
        }
        Ok(())
    }

    /// Checks that everything a plan needs exists: its agents are configured, and their programs can be found. Fails with
    /// the first agent for which that is not so, and says what to do.
    pub(crate) fn check_plan(&self, plan: &Plan, path: Option<&OsStr>, workspace: &Path) -> Result<()> {
        self.check_environments(plan)?;
        let mut used = std::collections::BTreeSet::new();
        let tasks = plan.tasks.iter().filter(|task| !task.done).map(|task| self.agent_for(task));
        let roles = roles::needed(plan).into_iter().map(|role| self.agent_of(role));
        for name in tasks.chain(roles) {
            let mut next = Some(name?);
            // Fallbacks, which take over while an account waits, are needed as well; two agents may be each other's
            // fallback.
            while let Some(name) = next.filter(|name| used.insert(*name)) {
                next = self.agents.get(name).and_then(|agent| agent.program.fallback.as_deref());
            }
        }
        for name in used {
            let Some(agent) = self.agents.get(name) else { continue };
            agent.find(path, workspace).map_err(|missing| {
                let message = format!("agent `{name}` cannot be started");
                CliError::usage(message).because(&missing).hint(agent.missing_hint(&missing))
            })?;
        }
        Ok(())
    }

    fn agent_hint(&self, name: &str) -> String {
        let known: Vec<&str> = self.agents.keys().map(String::as_str).collect();
        match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => format!("add [agents.{name}] to {FILE_NAME}, or write one: rekindle init"),
            None => format!("configured are {}; add [agents.{name}] to {FILE_NAME}", known.join(", ")),
        }
    }
}

fn read_flag(flag: &Flag) -> Result<(&'static Key, Value), Diagnostic> {
    let key = Key::find(flag.key).ok_or_else(|| Diagnostic::error(format!("{} sets nothing", flag.name), None))?;
    let value = key
        .from_text(&flag.value)
        .map_err(|wrong| Diagnostic::error(format!("{} is wrong: {}", flag.name, wrong.message), Some(wrong.hint)))?;
    Ok((key, value))
}

/// A path as people would write it: relative if it is below the working directory.
fn shown(path: &Path) -> PathBuf {
    let here = std::env::current_dir().ok();
    let below = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    below.unwrap_or_else(|| path.to_owned())
}

fn read_text(path: &Path) -> Result<String> {
    let unread = |error: &dyn std::error::Error| {
        CliError::usage(format!("cannot read {}", shown(path).display())).because(error)
    };
    let file = std::fs::File::open(path).map_err(|e| unread(&e))?;
    let mut bytes = Vec::new();
    file.take(file::FILE_MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|e| unread(&e))?;
    if bytes.len() as u64 > file::FILE_MAX_BYTES {
        let message = format!("{} has more than {} bytes", path.display(), file::FILE_MAX_BYTES);
        return Err(CliError::usage(message).hint("is this the right file?"));
    }
    String::from_utf8(bytes).map_err(|e| unread(&e.utf8_error()))
}
