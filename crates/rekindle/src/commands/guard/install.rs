//! `rekindle guard install`: puts the hooks into the settings of every installed program.

use clap::Args;
use rekindle_engine::agents::KINDS;
use rekindle_engine::agents::hook_installer::{HookInstaller, Scope};
use rekindle_engine::guard::install::{self, Change, Installed};

use super::super::Context;
use super::{Chosen, Here, Whose, example, installed, kinds, shown, whose};
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::ui::one_line;

/// Put rekindle's hooks into your coding programs' settings
///
/// Without --project or --user they go into your own settings for this project, in a file that git ignores. What a file
/// already contains stays as it is, comments included, and `rekindle guard uninstall` restores it byte for byte.
#[derive(Debug, Args)]
#[command(
    after_help = format!("Examples:\n  rekindle guard install\n  rekindle guard install --cli {} --status-line\n  rekindle guard install --user", example())
)]
pub(super) struct InstallArgs {
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    whose: Whose,
    #[arg(long, help = format!("Also show what is left of context and usage under the prompt, behind your own status line ({})", lined().map(|program| program.title()).collect::<Vec<_>>().join(", ")))]
    status_line: bool,
}

/// Installs what was chosen; a failure for one program does not stop the others.
pub(super) fn run(args: &InstallArgs, context: &Context) -> Result<Exit> {
    let here = Here::find(context)?;
    let programs = args.chosen.named().unwrap_or_else(|| installed(KINDS, &here.root));
    if programs.is_empty() {
        let known = format!("{} are looked for on PATH", kinds("and"));
        return Err(CliError::usage(format!("no coding program was found: {known}")).hint(format!(
            "install one, or name the one you will install: rekindle guard install --cli {}",
            example()
        )));
    }
    if args.status_line && !programs.iter().any(|program| program.status_line().is_some()) {
        return Err(CliError::usage("--status-line needs a program that has one")
            .hint(format!("add --cli {}", lined().map(|program| program.kind()).collect::<Vec<_>>().join(" or "))));
    }
    let scope = match &args.whose {
        Whose { project: true, .. } => Scope::Project,
        Whose { user: true, .. } => Scope::User,
        Whose { .. } => Scope::Local,
    };
    let mut exit = Exit::Success;
    for program in programs {
        let line = args.status_line && program.status_line().is_some();
        match here.on_site(|site| install::install(site, program, scope, line)) {
            Ok(done) => tell(program, scope, &done, &here, context),
            Err(error) => {
                let error = CliError::from(error);
                exit = error.exit();
                context.ui.error(&error);
            }
        }
    }
    if exit == Exit::Success {
        context.ui.hint("see whether everything works: rekindle guard status");
    }
    Ok(exit)
}

/// The programs that have a status line.
fn lined() -> impl Iterator<Item = &'static dyn HookInstaller> {
    KINDS.hook_installers().filter(|program| program.status_line().is_some())
}

fn tell(program: &dyn HookInstaller, scope: Scope, done: &Installed, here: &Here, context: &Context) {
    let file = one_line(&shown(&done.file, &here.root));
    let title = program.title();
    let count = match done.events.len() {
        0 => "a plugin".to_owned(),
        events => format!("hooks at {events} events"),
    };
    let told = match done.change {
        Change::Made => format!("{title}: wrote {file} ({}): {count}", whose(scope)),
        Change::Added => format!("{title}: added to {file} ({}): {count}", whose(scope)),
        Change::Renewed => format!("{title}: updated in {file}: {count}"),
        Change::Same => format!("{title}: {file} is up to date"),
    };
    context.ui.say(&told);
    if let Some(list) = &done.hidden_by {
        context.ui.say(&format!("  git ignores it: {}", one_line(&shown(list, &here.root))));
    }
    if done.status_line {
        let behind =
            done.chained.as_deref().map_or(String::new(), |own| format!(", behind your own: {}", one_line(own)));
        context.ui.say(&format!("  the status line shows what is left of context and usage{behind}"));
    }
    context.ui.hint(&format!("{title}: {}", program.next(scope)));
}
