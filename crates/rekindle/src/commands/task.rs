//! `rekindle task`: an agent's reports on its tasks, and an operator's orders about them. The token in the environment tells
//! who is calling.

mod change;
mod show;

use clap::{Args, Subcommand};
use rekindle_core::input::Order;
use rekindle_core::report::{Evidence, Report};
use rekindle_engine::control::wire::Response;

use super::Context;
use crate::client::Agent;
use crate::client::agent::{Outcome, task_or_own, unexpected};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::story;
use crate::ui::harmless;
use crate::view::task_id;

/// List, report on and change tasks
#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    #[command(subcommand)]
    command: TaskCommand,
}

#[derive(Debug, Subcommand)]
enum TaskCommand {
    /// List the run's tasks; for an agent: its own
    List(show::ListArgs),
    /// Show everything known about a task
    Show(show::ShowArgs),
    /// Report that you start a task (for agents)
    Start(StartArgs),
    Done(DoneArgs),
    Fail(FailArgs),
    Add(change::AddArgs),
    Edit(change::EditArgs),
    Split(SplitArgs),
    /// Skip a task; tasks that wait for it can start
    Skip(SkipArgs),
    /// Stop a task's agent and give the task up until you retry it
    Stop(RetryArgs),
    /// Reopen a task that has ended, with all its attempts
    Retry(RetryArgs),
}

#[derive(Debug, Args)]
struct StartArgs {
    /// The task [default: your first task]
    task: Option<String>,
}

/// Report that a task is done
///
/// For an agent: rekindle runs the task's checks and answers. The exit code is 0 when the task is complete or
/// handed to its reviewers; otherwise it is 1, and the output of the failing check is printed. For the operator:
/// the task is complete on your word, without checks.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle task done T1 --result \"parser with 12 tests\"")]
struct DoneArgs {
    /// The task [default for an agent: its first task]
    task: Option<String>,
    /// The outcome in a few words
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    result: Option<String>,
}

/// Give up a task
///
/// For an agent: it is handed out again while it has attempts left. For the operator: it has failed on your word, whatever its
/// agent says, until you retry it.
#[derive(Debug, Args)]
struct FailArgs {
    /// The task [default for an agent: its first task]
    task: Option<String>,
    /// Why it cannot be done
    #[arg(long, value_name = "TEXT", default_value = "no reason given", allow_hyphen_values = true)]
    reason: String,
}

/// Split a task into parts, which become tasks of their own and are done in order
///
/// For an agent: the parts become its next tasks, named T1.1, T1.2 and so on. For the operator: splits any task that is not
/// complete and stops its agent. When all parts are complete, the task's own checks prove it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle task split T1 \"read the grammar\" \"write the parser\" \"test it\"")]
struct SplitArgs {
    /// The task
    task: String,
    /// The parts, in order
    #[arg(required = true, value_name = "PART")]
    parts: Vec<String>,
}

#[derive(Debug, Args)]
struct SkipArgs {
    /// The task
    task: String,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "skipped by the operator", allow_hyphen_values = true)]
    reason: String,
}

#[derive(Debug, Args)]
struct RetryArgs {
    /// The task
    task: String,
}

/// Runs the subcommand.
pub(crate) fn run(args: &TaskArgs, context: &Context) -> Result<Exit> {
    match &args.command {
        TaskCommand::List(args) => show::list(args, context),
        TaskCommand::Show(args) => show::show(args, context),
        TaskCommand::Start(args) => {
            let report = Report::Start { task: task_or_own(args.task.as_deref())? };
            report_only(&as_agent(context, "start tasks")?, &report, context)
        }
        TaskCommand::Done(args) => done(args, context),
        TaskCommand::Fail(args) => fail(args, context),
        TaskCommand::Add(args) => change::add(args, context),
        TaskCommand::Edit(args) => change::edit(args, context),
        TaskCommand::Split(args) => split(args, context),
        TaskCommand::Skip(args) => {
            let order = Order::Skip { task: task_id(&args.task)?, reason: args.reason.clone() };
            context.order(&order, &format!("task {} is skipped", args.task))
        }
        TaskCommand::Stop(args) => {
            let order = Order::Stop { task: task_id(&args.task)? };
            context
                .order(&order, &format!("task {} is given up; reopen it: rekindle task retry {}", args.task, args.task))
        }
        TaskCommand::Retry(args) => {
            let order = Order::Retry { task: task_id(&args.task)? };
            context.order(&order, &format!("task {} is reopened", args.task))
        }
    }
}

fn as_agent(context: &Context, what: &str) -> Result<Agent> {
    context.agent().ok_or_else(|| CliError::usage(format!("only an agent can {what}: REKINDLE_TOKEN is not set")))
}

fn report_only(agent: &Agent, report: &Report, context: &Context) -> Result<Exit> {
    let outcome = agent.report(report)?;
    context.say_kept(&outcome);
    Ok(Exit::Success)
}

fn fail(args: &FailArgs, context: &Context) -> Result<Exit> {
    let Some(agent) = context.agent() else {
        let Some(task) = &args.task else {
            return Err(CliError::usage("no task was named").hint("name it: rekindle task fail T1"));
        };
        let order = Order::Fail { task: task_id(task)?, reason: args.reason.clone() };
        return context
            .order(&order, &format!("task {task} has failed on your word; reopen it: rekindle task retry {task}"));
    };
    let report = Report::Fail { task: task_or_own(args.task.as_deref())?, reason: args.reason.clone() };
    report_only(&agent, &report, context)
}

fn split(args: &SplitArgs, context: &Context) -> Result<Exit> {
    let (task, subtasks) = (task_id(&args.task)?, args.parts.clone());
    let named: Vec<String> = (1..=subtasks.len()).map(|number| format!("{task}.{number}")).collect();
    let said = format!("task {task} is split into {}", named.join(", "));
    let Some(agent) = context.agent() else {
        return context.order(&Order::Split { task, subtasks }, &said);
    };
    let outcome = agent.report(&Report::Split { task, subtasks })?;
    context.say_kept(&outcome);
    if let Outcome::Answered(_) = outcome {
        context.ui.line(&format!("{said}: work through them in order and report each of them"))?;
    }
    Ok(Exit::Success)
}

fn done(args: &DoneArgs, context: &Context) -> Result<Exit> {
    let Some(agent) = context.agent() else {
        let Some(task) = &args.task else {
            return Err(CliError::usage("no task was named").hint("name it: rekindle task done T1"));
        };
        let order = Order::Complete { task: task_id(task)?, result: args.result.clone() };
        return context.order(&order, &format!("task {task} is complete on your word"));
    };
    let task = task_or_own(args.task.as_deref())?;
    let report = Report::Done { task: task.clone(), result: args.result.clone() };
    let outcome = agent.report(&report)?;
    context.say_kept(&outcome);
    match outcome {
        Outcome::Kept(_) => Ok(Exit::Success),
        Outcome::Answered(Response::Complete { .. } | Response::Already | Response::Accepted) => {
            context.ui.line(&format!("task {task} is complete"))?;
            Ok(Exit::Success)
        }
        Outcome::Answered(Response::HandedOn { to, .. }) => {
            context.ui.line(&format!("the checks of task {task} passed; its {to} reviews it next"))?;
            Ok(Exit::Success)
        }
        Outcome::Answered(Response::Held { reason, hint, .. }) => {
            context.ui.line(&harmless(&format!("task {task} is claimed and not proven yet: {reason}; {hint}")))?;
            context.ui.line("its checks are run as soon as there is room: do not report it again")?;
            Ok(Exit::Success)
        }
        Outcome::Answered(Response::NotProven { evidence, .. }) => {
            not_proven(&evidence, context)?;
            let message = format!("task {task} is not complete: {}", evidence.complaint());
            Err(CliError::refused(message).hint(format!("fix it and report it again: rekindle task done {task}")))
        }
        Outcome::Answered(answer) => Err(unexpected(&answer)),
    }
}

fn not_proven(evidence: &Evidence, context: &Context) -> Result<()> {
    for line in story::of_checks(evidence) {
        context.ui.line(&harmless(&line))?;
    }
    Ok(())
}
