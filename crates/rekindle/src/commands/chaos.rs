//! `rekindle chaos`: injects faults on purpose, in a sandbox copy of the project, and gives a verdict on every promise. This
//! file decides which faults, how long, and what is kept. `round` does a run, `verdict` judges it.

pub(crate) mod agent;
mod fault;
mod inject;
mod parties;
mod random;
mod round;
mod sandbox;
mod show;
mod verdict;
mod witness;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, ValueEnum};
use rekindle_core::duration;
use rekindle_core::plan::Plan;
use rekindle_engine::clock;
use rekindle_shim::atomic;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::Context;
use crate::config::{Config, Sources};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::plan_file::{DEFAULT_PLAN, PlanFile};
use fault::Fault;
use random::Random;
use round::{Outcome, Spec};
use sandbox::Sandbox;

/// The hidden subcommand of a run in a namespace of its own.
pub(crate) const ROUND_COMMAND: &str = "__chaos-round";

/// The files in its directory that say what such a run is to be, and what became of it.
const SPEC: &str = "spec.json";
const OUTCOME: &str = "outcome.json";

/// Time reserved for cleaning up the last run.
const CLEAN_UP_MS: u64 = 1_000;

/// Inject faults into sandboxed runs of your plan and check every promise that rekindle makes
///
/// Runs the plan in a copy of the project, in a temporary directory, once per fault. Stand-ins do the work: they need no account, and
/// the plan's own checks are replaced by one that a stand-in can pass. rekindle is judged by what the stand-ins recorded themselves.
/// Exits with 0 when every promise held. Your checkout, your state and your agents are not touched.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle chaos plan.md\n  rekindle chaos --list\n  rekindle chaos --fault kill-coordinator --fault full-disk --rounds 5\n  rekindle chaos --fault kill-all --seed 7 --keep"
)]
pub(crate) struct ChaosArgs {
    /// The plan
    #[arg(value_name = "PLAN", default_value = DEFAULT_PLAN)]
    plan: PathBuf,
    /// List the faults
    #[arg(long)]
    list: bool,
    /// Inject this fault (repeatable) [default: all]
    #[arg(long, value_name = "NAME", value_enum, hide_possible_values = true)]
    fault: Vec<Fault>,
    /// Run each fault this many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Choose victims and moments from this seed [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Start no new run after this time, and abandon the current one
    #[arg(long = "for", value_name = "TIME", default_value = "10m")]
    time: String,
    /// Let the configured agents do the work, at their usual cost and with the plan's own checks
    #[arg(long)]
    real_agents: bool,
    /// Keep the sandbox and say where it is; a sandbox with a broken promise is always kept
    #[arg(long)]
    keep: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Kill a healthy agent in secret, to show that the verdict catches it
    #[arg(long, hide = true)]
    plant: bool,
}

/// The settings and outcomes of all runs.
struct Summary<'a> {
    plan: &'a str,
    tasks: usize,
    seed: u64,
    real: bool,
    outcomes: Vec<Outcome>,
}

/// Runs the faults. Fails when the plan, the configuration or the sandbox do not allow it.
pub(crate) fn run(args: &ChaosArgs, context: &Context) -> Result<Exit> {
    if args.list {
        return show::list(context);
    }
    let budget_ms =
        duration::parse(&args.time).map_err(|error| CliError::usage(format!("--for: {error}")).hint(error.hint()))?;
    let file = PlanFile::read(&args.plan)?;
    let plan = file.plan()?;
    let config = configuration(args, context, plan)?;
    let failed = |error: std::io::Error| CliError::internal("cannot make the sandbox").because(&error);
    let holder = tempfile::Builder::new().prefix("rekindle-chaos-").tempdir().map_err(failed)?;
    let base = holder.path().canonicalize().map_err(failed)?;
    let text = std::fs::read_to_string(&args.plan).map_err(failed)?;
    let sandbox = Sandbox::new(&base, &context.project, (&text, plan), &config, args.real_agents)?;
    let seed = args.seed.unwrap_or_else(clock::boottime_ms);
    let tasks: Vec<String> = plan.tasks.iter().filter(|task| !task.done).map(|task| task.id.to_string()).collect();
    let mut told = Summary { plan: &plan.name, tasks: tasks.len(), seed, real: args.real_agents, outcomes: Vec::new() };
    show::begin(context, &told, &sandbox, args.json);
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(failed)?;
    }
    let until_ms = clock::boottime_ms().saturating_add(budget_ms);
    let mut random = Random::new(seed);
    for spec in specs(args, &base, &tasks, &mut random) {
        let left_ms = until_ms.saturating_sub(clock::boottime_ms());
        let outcome = one(&Spec { budget_ms: left_ms, ..spec }, &sandbox, &config, plan, &stop)?;
        show::outcome(context, &outcome, args.json);
        if !args.keep && !outcome.is_broken() {
            // What cannot be removed now is removed with the sandbox.
            let _ = std::fs::remove_dir_all(&outcome.dir);
        }
        told.outcomes.push(outcome);
    }
    let kept = (args.keep || told.outcomes.iter().any(Outcome::is_broken)).then(|| holder.keep());
    let held = show::verdicts(context, &told, &args.fault, kept.as_deref(), args.json)?;
    match (stop.load(Ordering::Relaxed), held) {
        (true, _) => Ok(Exit::Interrupted),
        (false, true) => Ok(Exit::Success),
        (false, false) => Ok(Exit::Failure),
    }
}

/// The user's configuration, as far as it concerns the order of work; agents' programs are checked only when real agents are
/// to work.
fn configuration(args: &ChaosArgs, context: &Context, plan: &Plan) -> Result<Config> {
    let shown = args.plan.display().to_string();
    let file = context.project.config.as_deref();
    let sources = Sources { file, plan: Some((&shown, &plan.settings)), ..Sources::default() };
    let config = Config::load(&sources.with_environment())?;
    if args.real_agents {
        config.check_plan(plan, std::env::var_os("PATH").as_deref(), &context.project.root)?;
    }
    Ok(config)
}

/// Every run that is asked for, in order.
fn specs(args: &ChaosArgs, base: &Path, tasks: &[String], random: &mut Random) -> Vec<Spec> {
    let faults = if args.fault.is_empty() { Fault::value_variants().to_vec() } else { args.fault.clone() };
    let mut specs = Vec::new();
    for round in 1..=args.rounds {
        for fault in &faults {
            let dir = base.join(format!("{}-{round}", fault.name()));
            specs.push(Spec {
                root: dir.join("project"),
                dir,
                fault: *fault,
                round,
                seed: random.seed(),
                budget_ms: 0,
                tasks: tasks.to_vec(),
                real: args.real_agents,
                plant: args.plant,
            });
        }
    }
    specs
}

/// Does one run, in this process or in one that has its own namespace.
fn one(spec: &Spec, sandbox: &Sandbox, config: &Config, plan: &Plan, stop: &AtomicBool) -> Result<Outcome> {
    let failed = |error: std::io::Error| CliError::internal("cannot make the sandbox").because(&error);
    if spec.budget_ms <= CLEAN_UP_MS || stop.load(Ordering::Relaxed) {
        return Ok(Outcome::without(spec, "the time limit was reached"));
    }
    if spec.tasks.is_empty() {
        return Ok(Outcome::without(spec, "the plan has no open task"));
    }
    if spec.real && spec.fault.needs_stand_in() {
        return Ok(Outcome::without(spec, "only a stand-in does that on request"));
    }
    let root = sandbox.copy_for(&spec.dir, spec.fault, config).map_err(failed)?;
    let declared: std::collections::BTreeMap<&str, &[String]> =
        plan.tasks.iter().map(|task| (task.id.as_str(), &task.artifacts[..])).collect();
    let declared = serde_json::to_vec(&declared).map_err(|error| failed(error.into()))?;
    atomic::save(&spec.dir, "artifacts.json", &declared).map_err(failed)?;
    let spec = Spec { root, budget_ms: spec.budget_ms - CLEAN_UP_MS, ..spec.clone() };
    if !spec.fault.needs_namespace() {
        return round::play(&spec, stop);
    }
    let written = serde_json::to_vec(&spec).map_err(|error| failed(error.into()))?;
    atomic::save(&spec.dir, SPEC, &written).map_err(failed)?;
    apart(&spec)
}

/// Does a run in a namespace of its own, where limits and disks can be changed without affecting anything else.
fn apart(spec: &Spec) -> Result<Outcome> {
    let failed = |error: std::io::Error| CliError::internal("cannot start a run of the sandbox").because(&error);
    let own = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "--"]).arg(own).arg(ROUND_COMMAND).arg(&spec.dir);
    let output = command.output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return Ok(Outcome::without(spec, format!("unshare cannot be started: {error}"))),
    };
    match std::fs::read(spec.dir.join(OUTCOME)) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed(error.into())),
        Err(_) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().next().unwrap_or("it gave no reason");
            Ok(Outcome::without(spec, format!("this machine allows no namespace: {said}")))
        }
    }
}

/// Does the run of a directory, in this process's namespace.
pub(crate) fn round_main(dir: &Path) -> ExitCode {
    let played = || -> Result<()> {
        let failed = |error: std::io::Error| CliError::internal("the sandbox failed").because(&error);
        let spec: Spec = serde_json::from_slice(&std::fs::read(dir.join(SPEC)).map_err(failed)?)
            .map_err(|error| failed(error.into()))?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(failed)?;
        }
        let outcome = round::play(&spec, &stop)?;
        let bytes = serde_json::to_vec(&outcome).map_err(|error| failed(error.into()))?;
        atomic::save(dir, OUTCOME, &bytes).map_err(failed)
    };
    match played() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::ui::Ui::new(crate::ui::ColorChoice::Never).error(&error);
            ExitCode::FAILURE
        }
    }
}
