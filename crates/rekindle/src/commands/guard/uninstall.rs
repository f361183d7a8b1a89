//! `rekindle guard uninstall`: removes everything of ours from the settings.

use clap::Args;
use rekindle_engine::agents::KINDS;
use rekindle_engine::agents::hook_installer::Scope;
use rekindle_engine::guard::install::{self, Removal};

use super::super::Context;
use super::{Chosen, Here, Whose, example, shown};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::ui::one_line;

/// Take rekindle's hooks out of your coding programs' settings
///
/// Without --project or --user: everything in this project. A file that has not been changed since is restored byte for
/// byte; from any other file only rekindle's own entries are removed.
#[derive(Debug, Args)]
#[command(
    after_help = format!("Examples:\n  rekindle guard uninstall\n  rekindle guard uninstall --user --cli {}", example())
)]
pub(super) struct UninstallArgs {
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    whose: Whose,
}

/// Removes what was chosen; a failure for one program does not stop the others.
pub(super) fn run(args: &UninstallArgs, context: &Context) -> Result<Exit> {
    let here = Here::find(context)?;
    let programs = args.chosen.named().unwrap_or_else(|| KINDS.hook_installers().collect());
    let scopes: &[Scope] = match &args.whose {
        Whose { project: true, .. } => &[Scope::Project],
        Whose { user: true, .. } => &[Scope::User],
        Whose { .. } => &[Scope::Local, Scope::Project],
    };
    let (mut exit, mut nothing) = (Exit::Success, true);
    for program in programs {
        for scope in scopes {
            match here.on_site(|site| install::uninstall(site, program, *scope)) {
                Ok(removed) => {
                    for one in removed {
                        nothing = false;
                        let file = one_line(&shown(&one.file, &here.root));
                        let how = match one.removal {
                            Removal::Restored => "is restored",
                            Removal::Deleted => "is removed: it did not exist before",
                            Removal::TakenOut | Removal::Nothing => {
                                "has been changed since: only rekindle's entries were removed"
                            }
                        };
                        context.ui.say(&format!("{}: {file} {how}", program.title()));
                    }
                }
                Err(error) => {
                    let error = CliError::from(error);
                    (exit, nothing) = (error.exit(), false);
                    context.ui.error(&error);
                }
            }
        }
    }
    if nothing {
        context.ui.say("nothing of rekindle was installed");
    }
    Ok(exit)
}
