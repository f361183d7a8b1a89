//! A reviewer's verdict, as `rekindle review` and `rekindle audit` give it. The coordinator decides whether it counts: it
//! must come from the role that may give it.

use clap::Args;
use rekindle_core::report::Report;
use rekindle_core::review::{Findings, Verdict};
use rekindle_core::role::Role;

use super::Context;
use crate::client::AttemptVariables;
use crate::client::agent::{Outcome, task_or_own};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;

/// What a verdict says.
#[derive(Debug, Args)]
pub(crate) struct VerdictArgs {
    /// The task [default: your own]
    task: Option<String>,
    /// A problem (repeatable)
    #[arg(long, value_name = "TEXT", alias = "issue", allow_hyphen_values = true)]
    issues: Vec<String>,
    /// What must be done about it (repeatable)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    required: Vec<String>,
    /// What is good as it is (repeatable)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    passed: Vec<String>,
}

/// Gives a verdict for the agent that called.
pub(crate) fn give(args: &VerdictArgs, verb: Role, verdict: Verdict, context: &Context) -> Result<Exit> {
    let Some(agent) = context.agent() else {
        let message = format!("only the {verb} that rekindle started gives verdicts: REKINDLE_TOKEN is not set");
        return Err(CliError::usage(message).hint("to complete a task on your own word: rekindle task done TASK"));
    };
    let said = |texts: &[String]| -> Vec<String> {
        texts.iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect()
    };
    let findings = Findings { issues: said(&args.issues), required: said(&args.required), passed: said(&args.passed) };
    if verdict != Verdict::Pass && findings.issues.is_empty() && findings.required.is_empty() {
        return Err(
            CliError::usage("the verdict does not say what is wrong").hint("say it: --issues \"what is wrong\"")
        );
    }
    let task = task_or_own(args.task.as_deref())?;
    // The auditor of a repair of the plan's health uses the same commands.
    let role = match AttemptVariables::default().role() {
        Role::HealthAuditor if verb == Role::Auditor => Role::HealthAuditor,
        _ => verb,
    };
    let report = Report::Verdict { task: Some(task.clone()), role, verdict, findings };
    let outcome = agent.report(&report)?;
    context.say_kept(&outcome);
    if let Outcome::Answered(_) = outcome {
        context.ui.line(&format!("the verdict on task {task} is recorded; you are done"))?;
    }
    Ok(Exit::Success)
}
