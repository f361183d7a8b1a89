//! `rekindle top`: the live terminal of a run.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};

use super::Context;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::tui::{self, Left, Options, Theme, ThemeChoice};
use crate::ui::one_line;
use crate::view::View;

/// The variable with the theme, if the option names none.
const THEME: &str = "REKINDLE_THEME";

/// Watch a run live, answer its questions and act on its tasks
///
/// The tree of waves, tasks, attempts and calls beside logs, diffs and history. `?` shows every key. Leaving it never stops the
/// run.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle top\n  rekindle top --run 7f3a --read-only\n  rekindle top --ascii --theme light"
)]
pub(crate) struct TopArgs {
    /// A past run, by its id or the beginning of it [default: the newest]
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Use ASCII instead of symbols and lines [default: as LANG says]
    #[arg(long)]
    ascii: bool,
    /// Colours: auto, dark, light, 16 or none [env: `REKINDLE_THEME`]
    #[arg(long, value_name = "THEME", default_value = "auto", hide_possible_values = true)]
    theme: ThemeChoice,
    /// Show everything, change nothing
    #[arg(long)]
    read_only: bool,
}

pub(crate) fn run(args: &TopArgs, context: &Context) -> Result<Exit> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(CliError::usage("top needs a terminal to draw on").hint("for scripts: rekindle status --json"));
    }
    if let Some(name) = &args.run {
        View::open(&context.project)?.run_named(name)?;
    }
    let background = std::env::var("COLORFGBG").ok();
    let (choice, colors) = (choice(args.theme)?, context.ui.paint().is_on());
    let theme = Theme::new(choice, colors, background.as_deref(), args.ascii || !speaks_unicode());
    let asks_terminal = choice == ThemeChoice::Auto && colors && answers();
    let options = Options { theme, asks_terminal, read_only: args.read_only, run: args.run.clone() };
    match tui::show(&context.project, options)? {
        Left::BySignal => Ok(Exit::Terminated),
        Left::ByKey { goes_on } => {
            if goes_on {
                context.ui.say("the run continues: watch it with rekindle top, stop it with rekindle pause");
            }
            Ok(Exit::Success)
        }
    }
}

/// The requested theme: from the option, otherwise from the environment.
fn choice(given: ThemeChoice) -> Result<ThemeChoice> {
    match std::env::var(THEME).ok().filter(|text| given == ThemeChoice::Auto && !text.is_empty()) {
        Some(text) => ThemeChoice::from_str(&text, true).map_err(|_| {
            let message = format!("{THEME} is `{}`, which is not a theme", one_line(&text));
            CliError::usage(message).hint("themes are auto, dark, light, 16 and none")
        }),
        None => Ok(given),
    }
}

/// Whether the terminal may be asked for its colours: these are known not to answer.
fn answers() -> bool {
    std::env::var("TERM").is_ok_and(|term| !matches!(term.as_str(), "" | "dumb" | "linux"))
}

/// Whether the locale that is set has more than ASCII; where none is set the terminal is trusted.
fn speaks_unicode() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
    let first = set.into_iter().find(|value| !value.is_empty());
    first.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}
