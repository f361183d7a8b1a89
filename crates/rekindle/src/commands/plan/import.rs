//! `rekindle plan import`: a plan from another tool's files or issues. It finds and reads them and prints the result; the
//! core decides what each format means.

mod find;
mod gh;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rekindle_core::import::{self, Format, ImportError, Imported, Source};

use crate::commands::Context;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::output_file::{self, Existing};
use crate::plan_file::typed;
use crate::ui::one_line;

/// Make a plan from a document or another tool's tasks
///
/// Reads Markdown as people write it, spec-kit, Task Master, beads, Claude task files, OpenSpec and Kiro checklists, and GitHub
/// issues through `gh`. The plan goes to standard output or --out; what could not be carried over, and what was assumed, to
/// standard error. The source is never changed. Imported text is quoted. Only a Markdown document brings checks, from its
/// sections about verification: read them before you run the plan.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rekindle plan import --from markdown notes.md --out plan.md\n  rekindle plan import --out plan.md\n  rekindle plan import specs/001-albums/tasks.md\n  rekindle plan import ~/.claude/tasks/my-list --from claude-tasks\n  rekindle plan import owner/repo --from github --label ready"
)]
pub(super) struct ImportArgs {
    /// A file or folder, or OWNER/REPO for GitHub [default: what is found in this project]
    source: Option<String>,
    /// The format [default: recognised]
    #[arg(long, value_name = "FORMAT")]
    from: Option<From>,
    /// Write the plan here
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite --out if it exists
    #[arg(long, requires = "out")]
    force: bool,
    /// Task Master: the tag to import [default: its current one]
    #[arg(long, value_name = "NAME")]
    tag: Option<String>,
    /// GitHub: only issues with this label (repeatable)
    #[arg(long, value_name = "NAME")]
    label: Vec<String>,
    /// GitHub: closed issues too, as complete tasks
    #[arg(long)]
    closed: bool,
}

/// The formats as they are typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum From {
    /// specs/NAME/tasks.md
    SpecKit,
    /// .taskmaster/tasks/tasks.json
    TaskMaster,
    /// .beads/issues.jsonl
    Beads,
    /// ~/.claude/tasks/LIST, or any folder of such files
    ClaudeTasks,
    /// openspec/changes/NAME/tasks.md
    Openspec,
    /// .kiro/specs/NAME/tasks.md
    Kiro,
    /// Issues, through the `gh` program
    Github,
    /// Any Markdown document: headings, lists, checklists, tables
    Markdown,
}

impl From {
    fn format(self) -> Format {
        match self {
            From::SpecKit => Format::SpecKit,
            From::TaskMaster => Format::TaskMaster,
            From::Beads => Format::Beads,
            From::ClaudeTasks => Format::TaskFiles,
            From::Openspec => Format::OpenSpec,
            From::Kiro => Format::Kiro,
            From::Github => Format::GitHub,
            From::Markdown => Format::Markdown,
        }
    }
}

pub(super) fn run(args: &ImportArgs, context: &Context) -> Result<Exit> {
    let (format, source, place) = match args.from {
        Some(From::Github) if !args.source.as_deref().is_some_and(|path| std::path::Path::new(path).is_file()) => {
            let (source, place) = gh::issues(args.source.as_deref(), &args.label, args.closed, context)?;
            (Format::GitHub, source, place)
        }
        from => find::find(args.source.as_deref(), from.map(From::format), context)?,
    };
    let source = Source { tag: args.tag.clone().or(source.tag.clone()), ..source };
    let imported = import::convert(format, &source).map_err(|error| refused(&place, &error))?;
    match &args.out {
        Some(out) => {
            let existing = if args.force { Existing::Replaced } else { Existing::Kept };
            output_file::write(out, imported.text.as_bytes(), existing, &context.ui)?;
        }
        None => context.ui.raw(imported.text.as_bytes())?,
    }
    tell(format, &place, &imported, args, context);
    Ok(Exit::Success)
}

fn refused(place: &str, error: &ImportError) -> CliError {
    let refused = CliError::usage(format!("cannot import {}", one_line(place))).because(error);
    match error {
        ImportError::Malformed { .. } => refused.hint("name its format: --from FORMAT"),
        ImportError::WhichTag { .. } => refused.hint("name it: --tag NAME"),
        ImportError::TooMany { .. } | ImportError::Empty(_) | ImportError::Unusable(_) => refused,
    }
}

fn tell(format: Format, place: &str, imported: &Imported, args: &ImportArgs, context: &Context) {
    let Imported { tasks, done, checks, remarks, .. } = imported;
    let named = if *tasks == 1 { "task" } else { "tasks" };
    let complete = if *done == 0 { String::new() } else { format!(", {done} of them complete") };
    context.ui.say(&format!("{tasks} {named}{complete} from {} ({})", one_line(place), format.name()));
    for remark in remarks {
        context.ui.warn(&one_line(remark));
    }
    let out = args.out.as_ref().filter(|out| out.as_os_str() != output_file::STANDARD_OUTPUT);
    match checks {
        0 => context
            .ui
            .hint("nothing imported has checks: add `- accept: COMMAND` to tasks, so that rekindle can prove them"),
        1 => context.ui.hint("1 command of the document became a check, which a run will execute: read it"),
        many => {
            context
                .ui
                .hint(&format!("{many} commands of the document became checks, which a run will execute: read them"));
        }
    }
    if let Some(out) = out {
        if *checks > 0 {
            context.ui.hint(&format!("see the commands: rekindle plan show {} --commands", typed(out)));
        }
        context.ui.hint(&format!("check it: rekindle plan check {}", typed(out)));
    }
}
