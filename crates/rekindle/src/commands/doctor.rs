//! `rekindle doctor`: whether everything rekindle needs is there, and which configuration is in force.

mod agents;
mod alerts;
mod checks;
mod mcp;
mod money;
mod usage;

use clap::Args;
use rekindle_engine::alert::webhook;
use serde::Serialize;

use super::Context;
use crate::config::{Config, Sources, Value};
use crate::error::Result;
use crate::exit_code::Exit;
use crate::ui::{Align, Table, Tone, one_line};

/// Check the setup and show the effective configuration
///
/// Checks every configured agent: program, version, login, and a dry run of its start. Sends no request to a model and
/// starts nothing that belongs to the project: no command from its configuration, no program inside it. Exits with 1 when
/// something keeps rekindle from working.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Start the project's own programs and commands too, and say which
    #[arg(long = "try")]
    tries: bool,
    /// Send a test alert through every configured channel
    #[arg(long)]
    alerts: bool,
}

/// The result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Ok,
    /// It works, with something to know.
    Warning,
    /// It keeps rekindle from working.
    Problem,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// One thing that was checked.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub name: String,
    pub verdict: Verdict,
    pub text: String,
    pub hint: Option<String>,
}

#[derive(Serialize)]
struct DoctorJson<'a> {
    schema_version: u32,
    version: &'a str,
    findings: &'a [Finding],
    agents: Vec<agents::AgentJson>,
    config: Vec<SettingJson>,
}

#[derive(Serialize)]
struct SettingJson {
    key: &'static str,
    value: String,
    origin: String,
}

pub(crate) fn run(args: &DoctorArgs, context: &Context) -> Result<Exit> {
    let sources = Sources { file: context.project.config.as_deref(), ..Sources::default() };
    let config = Config::load(&sources.with_environment());
    let mut findings = checks::machine(&context.project);
    findings.extend(checks::state(&context.project));
    findings.extend(checks::configuration(config.as_ref(), &context.project));
    findings.extend(config.as_ref().ok().and_then(checks::webhook));
    findings.extend(config.iter().flat_map(alerts::look_at_phones));
    let mut agents = Vec::new();
    if let Ok(config) = &config {
        let (found, more) = look_at_agents(config, context, args.tries);
        agents = found;
        findings.extend(more);
        findings.extend(usage::look(config, context, args.tries));
        findings.extend(money::look(config));
        findings.extend(checks::environments(config));
        if args.alerts {
            findings.extend(alerts::try_all(config, &context.ui));
        }
    }
    let settings = match &config {
        Ok(config) => settings(config),
        Err(_) => Vec::new(),
    };
    if args.json {
        context.ui.json(&DoctorJson {
            schema_version: 1,
            version: env!("CARGO_PKG_VERSION"),
            findings: &findings,
            agents,
            config: settings,
        })?;
    } else {
        show(&findings, &settings, context)?;
        if let Err(error) = &config {
            context.ui.error(error);
        }
    }
    let trouble = findings.iter().any(|finding| finding.verdict == Verdict::Problem);
    Ok(if trouble { Exit::Failure } else { Exit::Success })
}

/// Checks all agents, and the MCP server if one of them gets it.
fn look_at_agents(config: &Config, context: &Context, tries: bool) -> (Vec<agents::AgentJson>, Vec<Finding>) {
    if config.agents.is_empty() {
        return (Vec::new(), Vec::new());
    }
    // Private to its owner, as an attempt's bundle is.
    let bundle = match tempfile::tempdir() {
        Ok(bundle) => bundle,
        Err(error) => {
            let text = format!("cannot make a temporary directory: {error}");
            return (Vec::new(), vec![checks::finding("agents", Verdict::Problem, &text)]);
        }
    };
    let looked = config.agents.iter().map(|(name, agent)| agents::look(name, agent, context, (bundle.path(), tries)));
    let (reports, findings): (Vec<_>, Vec<_>) = looked.unzip();
    let mut findings: Vec<Finding> = findings.into_iter().flatten().collect();
    if config.agents.values().any(|agent| agent.traits().mcp) {
        findings.push(mcp::look(bundle.path()));
    }
    (reports, findings)
}

/// Says what is about to be started.
fn tell_start(context: &Context, command: &str) {
    context.ui.say(&format!("starts {}", one_line(command)));
}

fn settings(config: &Config) -> Vec<SettingJson> {
    let settings = config.all().map(|(key, sourced)| SettingJson {
        key: key.name,
        value: shown_value(key.name, &sourced.value),
        origin: sourced.origin.to_string(),
    });
    settings.collect()
}

/// A setting's value as it is shown. A webhook's path is as good as a password, so only its host is shown.
fn shown_value(name: &str, value: &Value) -> String {
    match value {
        Value::Text(url) if name == "notify.webhook" && !url.is_empty() => match webhook::check(url) {
            Ok(target) => format!("{:?}", format!("{}/…", target.host)),
            Err(_) => "\"…\"".to_owned(),
        },
        value => value.to_string(),
    }
}

fn show(findings: &[Finding], settings: &[SettingJson], context: &Context) -> Result<()> {
    let (ui, paint) = (&context.ui, context.ui.paint());
    for finding in findings {
        let verdict = finding.verdict.name();
        let tone = Tone::of_state(verdict);
        let verdict = paint.tone(tone, &format!("{verdict:>8}"));
        ui.line(&format!("{verdict}  {}: {}", finding.name, one_line(&finding.text)))?;
        if let Some(hint) = &finding.hint {
            ui.line(&format!("{:10}{} {}", "", paint.tone(Tone::Hint, "hint:"), one_line(hint)))?;
        }
    }
    if settings.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&[("SETTING", Align::Left), ("VALUE", Align::Left), ("FROM", Align::Left)]);
    for setting in settings {
        table.row([
            (setting.key.to_owned(), None),
            (setting.value.clone(), None),
            (setting.origin.clone(), Some(Tone::Dim)),
        ]);
    }
    ui.line("")?;
    ui.line(&table.render(paint, ui.width()))
}
