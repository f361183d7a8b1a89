//! The command line: what can be typed, and which command gets it. It routes; every command has a file of its own.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::acp;
use crate::commands::{self, Context};
use crate::error::Result;
use crate::exit_code::Exit;
use crate::project::Project;
use crate::store_flag::StoreFlag;
use crate::ui::{ColorChoice, Ui, use_utc};

/// Exit codes and conventions that apply to every command, printed below its help.
const AFTER_HELP: &str = "\
Exit codes:
  0    done; for `run`: every task is complete or skipped
  1    failure: an internal error, a refused order, an unproven claim
  2    bad usage, configuration or plan
  3    `run` ended with failed tasks
  4    `run` was paused with `rekindle pause`, or had --no-wait and waits for a person or a reset
  130  Ctrl-C (the run is paused)
  143  SIGTERM (the run is paused)

Start here:
  rekindle init             write rekindle.toml and an example plan
  rekindle run plan.md      run it";

/// Runs a plan with a fleet of AI coding agents and finishes it, whatever crashes
#[derive(Debug, Parser)]
#[command(name = "rekindle", version, after_help = AFTER_HELP, max_term_width = 100, infer_subcommands = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
struct Global {
    /// Keep the state in this directory instead of the project's .rekindle [env: REKINDLE_STATE_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Keep the log in this PostgreSQL database, or look at a run there from any machine [env: REKINDLE_STORE]
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,
    /// The run's name in that database; the name of the project's directory if none is given [env: REKINDLE_SPACE]
    #[arg(long, global = true, value_name = "NAME")]
    space: Option<String>,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    color: ColorChoice,
    /// Show times in UTC instead of local time
    #[arg(long, global = true)]
    utc: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(commands::demo::DemoArgs),
    Init(commands::init::InitArgs),
    Plan(commands::plan::PlanArgs),
    Run(commands::run::RunArgs),
    Status(commands::status::StatusArgs),
    Runs(commands::runs::RunsArgs),
    Diff(commands::diff::DiffArgs),
    Land(commands::land::LandArgs),
    Top(commands::top::TopArgs),
    Serve(commands::serve::ServeArgs),
    Logs(commands::logs::LogsArgs),
    Events(commands::events::EventsArgs),
    Why(commands::why::WhyArgs),
    Pause(commands::pause::PauseArgs),
    Stop(commands::pause::StopArgs),
    Resume(commands::resume::ResumeArgs),
    Recover(commands::recover::RecoverArgs),
    Salvage(commands::salvage::SalvageArgs),
    Clean(commands::clean::CleanArgs),
    Task(commands::task::TaskArgs),
    Tell(commands::tell::TellArgs),
    Attach(commands::attach::AttachArgs),
    Review(commands::review::ReviewArgs),
    Audit(commands::audit::AuditArgs),
    Checkpoint(commands::checkpoint::CheckpointArgs),
    Ask(commands::ask::AskArgs),
    Questions(commands::questions::QuestionsArgs),
    Answer(commands::answer::AnswerArgs),
    Note(commands::note::NoteArgs),
    Report(commands::report::ReportArgs),
    Heartbeat(commands::heartbeat::HeartbeatArgs),
    Guard(commands::guard::GuardArgs),
    Hook(commands::hook::HookArgs),
    Mcp(commands::mcp::McpArgs),
    Doctor(commands::doctor::DoctorArgs),
    Chaos(commands::chaos::ChaosArgs),
    Completions(commands::completions::CompletionsArgs),
    Man(commands::man::ManArgs),
}

/// The hidden subcommands under which rekindle starts itself, routed before anything else happens in this process.
pub(crate) fn hidden() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let command = arguments.next()?;
    let first = arguments.next();
    // A hook exits with 0 whatever its arguments, except for help: an older version may be called in a newer way.
    if command == commands::hook::COMMAND {
        let cli = first.as_deref().map(|cli| cli.to_str().unwrap_or_default());
        return (!matches!(cli, Some("--help" | "-h"))).then(|| commands::hook::main(cli));
    }
    match (command.to_str()?, first.map(PathBuf::from)) {
        (rekindle_shim::SHIM_COMMAND, Some(dir)) => Some(rekindle_shim::shim_main(&dir)),
        (rekindle_shim::STUB_COMMAND, Some(dir)) => Some(rekindle_shim::stub_main(&dir)),
        (commands::attach::COMMAND, Some(dir)) => {
            let task = arguments.next()?;
            Some(commands::attach::inner_main(&dir, task.to_str()?))
        }
        (acp::COMMAND, Some(setup)) => Some(acp::main(&setup)),
        (commands::context::COMMAND, _) => Some(commands::context::main(std::env::args_os().skip(2))),
        (commands::guard::status_line::COMMAND, kind) => {
            Some(commands::guard::status_line::main(kind.as_deref().and_then(std::path::Path::to_str)))
        }
        (commands::serve::ROUTES_COMMAND, _) => Some(commands::serve::print_routes()),
        (commands::demo::agent::COMMAND, _) => Some(commands::demo::agent::main()),
        (commands::chaos::agent::COMMAND, Some(dir)) => Some(commands::chaos::agent::main(&dir)),
        (commands::chaos::ROUND_COMMAND, Some(dir)) => Some(commands::chaos::round_main(&dir)),
        _ => None,
    }
}

impl Command {
    /// Whether it is about a run of the project, whose log may be in a database.
    fn has_run(&self) -> bool {
        !matches!(
            self,
            Self::Demo(_)
                | Self::Init(_)
                | Self::Guard(_)
                | Self::Hook(_)
                | Self::Chaos(_)
                | Self::Completions(_)
                | Self::Man(_)
        )
    }
}

/// Parses the command line and runs the command.
pub(crate) fn main() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // The reader of the help or of the error may be gone; a failed print changes nothing.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Success };
        }
    };
    let ui = Ui::new(cli.global.color);
    if cli.global.utc {
        use_utc();
    }
    let outcome = run(&cli, ui).and_then(|exit| ui.flush().map(|()| exit));
    outcome.unwrap_or_else(|error| {
        ui.error(&error);
        error.exit()
    })
}

fn run(cli: &Cli, ui: Ui) -> Result<Exit> {
    let project = Project::find(cli.global.state_dir.as_deref())?;
    let starts = matches!(cli.command, Command::Run(_) | Command::Resume(_));
    let store = StoreFlag { url: cli.global.store.as_deref(), space: cli.global.space.as_deref(), starts };
    let project = if cli.command.has_run() { store.applied_to(project, ui)? } else { project };
    let context = &Context { ui, project };
    match &cli.command {
        Command::Demo(args) => commands::demo::run(args, context),
        Command::Init(args) => commands::init::run(args, context),
        Command::Plan(args) => commands::plan::run(args, context),
        Command::Run(args) => commands::run::run(args, context),
        Command::Status(args) => commands::status::run(args, context),
        Command::Runs(args) => commands::runs::run(args, context),
        Command::Diff(args) => commands::diff::run(args, context),
        Command::Land(args) => commands::land::run(args, context),
        Command::Top(args) => commands::top::run(args, context),
        Command::Serve(args) => commands::serve::run(args, context),
        Command::Logs(args) => commands::logs::run(args, context),
        Command::Events(args) => commands::events::run(args, context),
        Command::Why(args) => commands::why::run(args, context),
        Command::Pause(args) => commands::pause::run(args, context),
        Command::Stop(args) => commands::pause::stop(args, context),
        Command::Resume(args) => commands::resume::run(args, context),
        Command::Recover(args) => commands::recover::run(args, context),
        Command::Salvage(args) => commands::salvage::run(args, context),
        Command::Clean(args) => commands::clean::run(args, context),
        Command::Task(args) => commands::task::run(args, context),
        Command::Tell(args) => commands::tell::run(args, context),
        Command::Attach(args) => commands::attach::run(args, context),
        Command::Review(args) => commands::review::run(args, context),
        Command::Audit(args) => commands::audit::run(args, context),
        Command::Checkpoint(args) => commands::checkpoint::run(args, context),
        Command::Ask(args) => commands::ask::run(args, context),
        Command::Questions(args) => commands::questions::run(args, context),
        Command::Answer(args) => commands::answer::run(args, context),
        Command::Note(args) => commands::note::run(args, context),
        Command::Report(args) => commands::report::run(args, context),
        Command::Heartbeat(args) => commands::heartbeat::run(args, context),
        Command::Guard(args) => commands::guard::run(args, context),
        Command::Hook(args) => commands::hook::run(args, context),
        Command::Mcp(args) => commands::mcp::run(args, context),
        Command::Doctor(args) => commands::doctor::run(args, context),
        Command::Chaos(args) => commands::chaos::run(args, context),
        Command::Completions(args) => commands::completions::run(args, Cli::command(), context),
        Command::Man(args) => commands::man::run(args, Cli::command(), context),
    }
}
