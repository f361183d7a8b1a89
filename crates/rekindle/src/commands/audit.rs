//! `rekindle audit`: the verdict of the agent that proves a task's work.

use clap::{Args, Subcommand};
use rekindle_core::review::Verdict;
use rekindle_core::role::Role;

use super::Context;
use super::verdict::{VerdictArgs, give};
use crate::error::Result;
use crate::exit_code::Exit;

/// Report the verdict of an audit (for auditors)
///
/// Exits with 0 when the verdict is accepted, with 1 and the reason when it is refused.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle audit pass T1 --passed \"all five criteria, in both environments\"\n  rekindle audit fail T1 --issues \"an empty file crashes it\" --required \"handle an empty file\"\n  rekindle audit blocked T1 --issues \"the test database is down\""
)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// Confirm that every criterion is proven
    Pass(VerdictArgs),
    /// Report criteria that do not hold
    Fail(VerdictArgs),
    /// Report that a person must fix something before the work can be judged
    Blocked(VerdictArgs),
}

pub(crate) fn run(args: &AuditArgs, context: &Context) -> Result<Exit> {
    let (given, verdict) = match &args.command {
        AuditCommand::Pass(given) => (given, Verdict::Pass),
        AuditCommand::Fail(given) => (given, Verdict::Fail),
        AuditCommand::Blocked(given) => (given, Verdict::Blocked),
    };
    give(given, Role::Auditor, verdict, context)
}
