//! `rekindle guard status`: which programs are guarded, and what silently keeps a guard from working.

use clap::Args;
use rekindle_core::time::Time;
use rekindle_engine::agents::KINDS;
use rekindle_engine::guard::install::{Standing, State, look};
use rekindle_engine::guard::recover::STATE_FILE;
use rekindle_engine::guard::sessions::{self, Known};
use serde::Serialize;

use super::super::{Context, hook};
use super::{Here, shown};
use crate::error::Result;
use crate::exit_code::Exit;
use crate::ui::{Align, Table, Tone, one_line, stamp};

/// Show which programs are guarded, and what keeps the hooks from running
///
/// Exits with 1 when installed hooks cannot run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rekindle guard status\n  rekindle guard status --json")]
pub(super) struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Everything, for programs.
#[derive(Serialize)]
struct StatusJson<'a> {
    schema_version: u32,
    ok: bool,
    programs: Vec<ProgramJson<'a>>,
    sessions: Vec<SessionJson>,
}

/// A session that is known here.
#[derive(Serialize)]
struct SessionJson {
    name: String,
    cli: String,
    alive: bool,
    ended: bool,
    last_heard: String,
    compactions: u32,
    tasks: usize,
    tasks_completed: usize,
    open_work: bool,
    records: u64,
    state_file: String,
}

#[derive(Serialize)]
struct ProgramJson<'a> {
    cli: &'a str,
    scope: &'a str,
    file: String,
    installed: bool,
    rekindle: Option<String>,
    rekindle_exists: bool,
    status_line: bool,
    problems: Vec<&'a str>,
}

/// Checks every program in every scope.
pub(super) fn run(args: &StatusArgs, context: &Context) -> Result<Exit> {
    let here = Here::find(context)?;
    let standings: Vec<Standing> =
        here.on_site(|site| KINDS.hook_installers().flat_map(|program| look(site, program)).collect());
    let programs: Vec<ProgramJson<'_>> = standings.iter().map(json).collect();
    let ok = programs.iter().all(|program| !program.installed || program.problems.is_empty());
    if args.json {
        context.ui.json(&StatusJson { schema_version: 1, ok, programs, sessions: sessions(&here) })?;
    } else {
        table(&programs, &here, context)?;
        session_table(&sessions(&here), context)?;
    }
    Ok(if ok { Exit::Success } else { Exit::Failure })
}

fn json(standing: &Standing) -> ProgramJson<'_> {
    let mut program = ProgramJson {
        cli: standing.kind,
        scope: standing.scope.name(),
        file: standing.file.display().to_string(),
        installed: false,
        rekindle: None,
        rekindle_exists: false,
        status_line: false,
        problems: Vec::new(),
    };
    match &standing.state {
        State::Absent => {}
        State::Unreadable(why) => program.problems.push(why),
        State::Installed { rekindle, status_line, troubles } => {
            program.installed = true;
            program.rekindle = Some(rekindle.display().to_string());
            program.rekindle_exists = rekindle.is_file();
            program.status_line = *status_line;
            program.problems = troubles.iter().map(String::as_str).collect();
        }
    }
    program
}

/// The sessions of this directory, the one last heard of first.
fn sessions(here: &Here) -> Vec<SessionJson> {
    let var = |name: &str| std::env::var(name).ok();
    let places = hook::places(&here.root, &var);
    let known = places.map(|places| sessions::all(&places.guard_dir)).unwrap_or_default();
    known.into_iter().map(session).collect()
}

fn session(known: Known) -> SessionJson {
    let (alive, cli) = (known.lives(), known.program().to_owned());
    let session = known.session;
    let (tasks_completed, tasks) = session.progress();
    SessionJson {
        cli,
        alive,
        ended: session.ended.is_some(),
        last_heard: stamp(Time(i64::try_from(session.last_at).unwrap_or(i64::MAX))),
        compactions: session.compactions(),
        tasks,
        tasks_completed,
        open_work: session.has_open_work(),
        records: session.records,
        state_file: known.dir.join(STATE_FILE).display().to_string(),
        name: known.key,
    }
}

fn session_table(sessions: &[SessionJson], context: &Context) -> Result<()> {
    /// Only the newest sessions matter; all of them are in the JSON.
    const SHOWN: usize = 10;
    if sessions.is_empty() {
        return Ok(());
    }
    let columns = ["SESSION", "LAST HEARD", "TASKS", "COMPACTIONS", "IS"].map(|name| (name, Align::Left));
    let mut table = Table::new(&columns);
    for session in sessions.iter().take(SHOWN) {
        let (text, tone) = match (session.alive, session.open_work) {
            (true, _) => ("alive", Tone::Good),
            (false, true) => ("gone, with work open", Tone::Warning),
            (false, false) => ("over", Tone::Dim),
        };
        let tasks = format!("{}/{}", session.tasks_completed, session.tasks);
        let plain = |text: &str| (text.to_owned(), None);
        let compactions = session.compactions.to_string();
        table.row([
            plain(&one_line(&session.name)),
            plain(&session.last_heard),
            plain(&tasks),
            plain(&compactions),
            (text.to_owned(), Some(tone)),
        ]);
    }
    context.ui.line("")?;
    context.ui.line(&table.render(context.ui.paint(), context.ui.width()))
}

fn table(programs: &[ProgramJson<'_>], here: &Here, context: &Context) -> Result<()> {
    let ui = context.ui;
    let mut table = Table::new(&["PROGRAM", "SCOPE", "GUARD", "FILE"].map(|name| (name, Align::Left)));
    let told = programs.iter().filter(|program| program.installed || !program.problems.is_empty());
    for program in told.clone() {
        let (text, tone) = match (program.installed, program.problems.is_empty()) {
            (true, true) if program.status_line => ("installed, with status line", Tone::Good),
            (true, true) => ("installed", Tone::Good),
            (true, false) => ("does not work", Tone::Error),
            (false, _) => ("cannot be read", Tone::Warning),
        };
        let file = one_line(&shown(std::path::Path::new(&program.file), &here.root));
        let plain = |text: &str| (text.to_owned(), None);
        table.row([plain(program.cli), plain(program.scope), (text.to_owned(), Some(tone)), plain(&file)]);
    }
    if told.clone().next().is_none() {
        ui.say("no program is guarded here");
        ui.hint("rekindle guard install");
        return Ok(());
    }
    ui.line(&table.render(ui.paint(), ui.width()))?;
    for program in told {
        for problem in &program.problems {
            ui.warn(&format!("{}: {}", program.cli, one_line(problem)));
        }
    }
    Ok(())
}
