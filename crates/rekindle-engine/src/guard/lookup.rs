//! What rekindle can establish itself before it gives a session its recovery text, so that the session need not find out:
//! which files exist, which team, which processes are alive, the state of the repository, which plan is followed.

use std::path::Path;

use rekindle_core::guard::recovery::{Plan, Team};
use rekindle_core::guard::session::Session;
use rekindle_core::text::counted;
use rekindle_core::view::RunRow;
use serde_json::Value;

use super::recover::Whom;
use super::sessions;
use crate::agents::guard_adapter::GuardAdapter;
use crate::git;
use crate::state_dir::StateDir;
use crate::store::{self, Table};

/// Largest plan that is read; what the session gets is truncated further.
const PLAN_MAX_BYTES: u64 = 256 << 10;

/// Largest file of a team.
const TEAM_MAX_BYTES: u64 = 1 << 20;

/// Members of a team that are named.
const MEMBERS_MAX: usize = 20;

/// Files that are checked, newest first.
const FILES_MAX: usize = 200;

/// How much of git's output is read.
const GIT_BYTES: usize = 64 << 10;

/// How long to wait for git: a session waits for the hook, and the output of a late hook is lost.
const GIT_MS: u64 = 1_500;

/// Files that are named when they are missing.
const NAMED_MAX: usize = 5;

#[derive(Debug, Default)]
pub struct Found {
    pub sentences: Vec<String>,
    /// The team, if the plan has a name after which one would be named.
    pub team: Option<Team>,
    pub plan: Option<Plan>,
}

pub fn look(whom: &Whom<'_>, var: &dyn Fn(&str) -> Option<String>) -> Found {
    let Whom { program, session, key, dir, state_dir, .. } = *whom;
    let run = run(state_dir);
    let mut sentences = Vec::new();
    sentences.extend(files(session, dir));
    sentences.extend(repository(dir));
    sentences.extend(helpers(session));
    sentences.extend(run.as_ref().map(|run| {
        format!("There is a rekindle run of the plan \"{}\" here, {}: `rekindle status` shows it", run.title, run.state)
    }));
    let plan = plan(session, dir, run.as_ref());
    let slug = run.as_ref().map(|run| run.plan.clone()).or_else(|| {
        let path = plan.as_ref()?.path.as_ref()?;
        Some(Path::new(path).file_stem()?.to_string_lossy().into_owned())
    });
    // A name with other characters is not used.
    let plain = |slug: &String| slug.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    let named = slug.filter(plain).map(|slug| format!("exec-{slug}"));
    let team = team(program, named.as_deref(), key, session, var);
    Found { sentences, team, plan }
}

/// Whether the files that were written exist.
fn files(session: &Session, dir: &Path) -> Option<String> {
    let newest: Vec<&str> = session.files.iter().rev().take(FILES_MAX).map(|file| file.path.as_str()).collect();
    if newest.is_empty() {
        return None;
    }
    let missing: Vec<&str> = newest.iter().copied().filter(|path| dir.join(path).symlink_metadata().is_err()).collect();
    Some(match missing.len() {
        0 => format!("Of the files changed, all {} are there", newest.len()),
        n => {
            let named = missing[..n.min(NAMED_MAX)].join(", ");
            let are = if n == 1 { "is" } else { "are" };
            format!("Of {} changed, {n} {are} not there: {named}", counted(newest.len(), "file", "files"))
        }
    })
}

fn repository(dir: &Path) -> Option<String> {
    let ask = |arguments: &[&str]| git::ask_within(dir, arguments, GIT_BYTES, GIT_MS);
    let last = ask(&["log", "-1", "--format=%h %s"])?;
    let branch = ask(&["rev-parse", "--abbrev-ref", "HEAD"])?;
    let changed = ask(&["status", "--porcelain", "--untracked-files=normal"]);
    let changed = changed.map(|paths| format!(", {} uncommitted paths", paths.lines().count())).unwrap_or_default();
    Some(format!("Git: on {}, last commit {}{changed}", branch.trim(), last.trim()))
}

/// What is known of helpers that had not ended: they live inside the program's own process.
fn helpers(session: &Session) -> Option<String> {
    let open = session.helpers.iter().filter(|helper| helper.outcome.is_none()).count();
    let lives = sessions::process_lives(session);
    (open > 0 && lives)
        .then(|| format!("The process with the {open} helpers that had not ended is alive: they may still run"))
}

/// The newest run of the directory, if it can be read.
fn run(state_dir: &Path) -> Option<RunRow> {
    let dir = StateDir::open(state_dir).ok()?;
    // A hook answers within milliseconds: a database elsewhere is not asked.
    if store::locate::space(state_dir).ok()?.is_some() {
        return None;
    }
    let reader = store::reader(&dir).ok()??;
    let rows = reader.rows(Table::Run, None).ok()?;
    let rows: Vec<RunRow> = rows.into_iter().filter_map(|row| serde_json::from_str(&row.json).ok()).collect();
    rows.into_iter().next_back()
}

/// The plan that the session follows: the run's, else the file it last read or wrote.
fn plan(session: &Session, dir: &Path, run: Option<&RunRow>) -> Option<Plan> {
    let own =
        run.map(|run| run.plan_path.clone()).or_else(|| project_plan(dir)).or_else(|| session.plan_file.clone())?;
    let path = dir.join(&own);
    let text = read_bounded(&path, PLAN_MAX_BYTES)?;
    Some(Plan { path: Some(path.display().to_string()), text })
}

/// A plan file of the project that reads as a plan.
fn project_plan(dir: &Path) -> Option<String> {
    let name = "plan.md";
    let text = read_bounded(&dir.join(name), PLAN_MAX_BYTES)?;
    rekindle_core::plan::parse("plan", text.as_bytes()).plan.map(|_| name.to_owned())
}

/// The team that a session of this plan would have made; some programs name it by the session's id instead.
fn team(
    program: &dyn GuardAdapter,
    named: Option<&str>,
    key: &str,
    session: &Session,
    var: &dyn Fn(&str) -> Option<String>,
) -> Option<Team> {
    let own = key.strip_prefix(program.kind()).and_then(|id| id.strip_prefix('-'));
    for name in named.into_iter().chain(own) {
        let file = program.team_files(name, var)?.join("config.json");
        if let Some(text) = read_bounded(&file, TEAM_MAX_BYTES) {
            let file = Some(file.display().to_string());
            return Some(Team { name: name.to_owned(), file, members: members(&text) });
        }
    }
    // A team that nobody made is not mentioned, unless there are helpers that may have been one.
    let name = named.filter(|_| !session.helpers.is_empty())?.to_owned();
    Some(Team { name, file: None, members: Vec::new() })
}

/// The members that a team's file names.
fn members(text: &str) -> Vec<String> {
    let config: Value = serde_json::from_str(text).unwrap_or_default();
    let all = config["members"].as_array().cloned().unwrap_or_default();
    let line = |member: &Value| {
        let name = member["name"].as_str()?;
        let kind = member["agentType"].as_str().map(|kind| format!(" ({kind})")).unwrap_or_default();
        Some(format!("{name}{kind}"))
    };
    all.iter().filter_map(line).take(MEMBERS_MAX).collect()
}

fn read_bounded(path: &Path, max: u64) -> Option<String> {
    use std::io::Read as _;
    let file = std::fs::File::open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
