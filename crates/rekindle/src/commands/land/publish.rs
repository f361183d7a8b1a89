//! Publishing: the run's branch is pushed and has one pull request. Nothing is done twice at the forge: what may have been
//! done already is looked for first, and the forge's own list decides, never the answer to a request.

use rekindle_core::forge::{self as core_forge, Found, LOOKS, Standing, Wanted};
use rekindle_core::input::Order;
use rekindle_core::pull_request::{KnownPullRequest, PullRequest, PullRequestAction, PullRequestChange};
use rekindle_core::state::State;
use rekindle_engine::forge::{self, Forge, Lock, New};
use rekindle_engine::git::{self, Pushed, Repo, Work};
use rekindle_engine::redact::Redactor;

use super::body;
use crate::client::orders;
use crate::commands::Context;
use crate::config::{Config, Landing, Sources};
use crate::error::{CliError, Result};
use crate::pinned;
use crate::ui::{self, one_line};

/// Between two looks at the forge, at most.
const LOOK_MS: u64 = 1_000;

/// What stops a round.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It may work later.
    Passing(String),
    /// The remote's branch has somebody else's commit.
    Foreign(String),
    Fatal(CliError),
}

impl From<CliError> for Trouble {
    fn from(error: CliError) -> Self {
        Self::Fatal(error)
    }
}

impl From<forge::Error> for Trouble {
    fn from(error: forge::Error) -> Self {
        let words = one_line(&error.to_string());
        if error.may_pass() {
            return Self::Passing(words);
        }
        let fatal = CliError::refused(words);
        Self::Fatal(match error {
            forge::Error::NoProgram { .. } => {
                fatal.hint("install gh or glab, or name a program of your own: land.command in rekindle.toml")
            }
            _ => fatal,
        })
    }
}

impl From<forge::LockError> for Trouble {
    fn from(error: forge::LockError) -> Self {
        Self::Fatal(CliError::refused(error.to_string()).hint("wait for it, then try again: rekindle land --pr"))
    }
}

/// Messages of git for errors that waiting does not fix.
const REFUSALS: &[&str] = &[
    "remote rejected",
    "denied",
    "Authentication failed",
    "could not read Username",
    "does not appear to be a git repository",
    "Repository not found",
    "not allowed",
];

impl From<git::Error> for Trouble {
    fn from(error: git::Error) -> Self {
        let passes = match &error {
            git::Error::TimedOut { .. } => true,
            git::Error::Failed { what, said } => {
                ["push", "fetch", "ls-remote"].contains(&what.as_str()) && !REFUSALS.iter().any(|w| said.contains(w))
            }
            _ => false,
        };
        if passes { Self::Passing(error.to_string()) } else { Self::Fatal(error.into()) }
    }
}

/// Everything needed to publish a run, and the lock for it.
pub(super) struct Publisher<'a> {
    pub context: &'a Context,
    pub landing: Landing,
    pub forge: Box<dyn Forge>,
    pub work: Work,
    pub base: String,
    pub redactor: Redactor,
    lock: Lock,
}

impl<'a> Publisher<'a> {
    /// Finds remote, base and forge, and waits for the lock.
    pub(super) fn open(context: &'a Context, into: Option<&str>) -> std::result::Result<Self, Trouble> {
        let sources = Sources { file: context.project.config.as_deref(), ..Sources::default() };
        let landing = Config::load(&sources.with_environment())?.landing();
        let lock = Lock::take(&context.project.state_dir)?;
        let state = pinned::state_of(&context.project)?;
        let (run, branch) = run_of(&state)?;
        let repo = Repo::of(&context.project.root)?;
        let remote = &landing.remote;
        let Some(url) = repo.remote_url(remote)? else {
            let error = CliError::usage(format!("there is no remote {remote}"));
            let error = error.hint(format!("add it: git remote add {remote} URL"));
            return Err(error.hint("or name another: land.remote in rekindle.toml").into());
        };
        let forge = forge::of(&landing.forge, &landing.command, &url, &context.project.root).map_err(|why| {
            let error = CliError::usage(one_line(&why));
            error.hint("say it in rekindle.toml: [land] forge = \"gh\" or \"glab\", or command = …")
        })?;
        let known = state.run.as_ref().and_then(|run| run.pull_request.as_ref());
        let base = match into.map(str::to_owned).or(landing.base.clone()).or(known.map(|known| known.at.base.clone())) {
            Some(base) => base,
            None => repo.remote_default(remote)?.ok_or_else(|| {
                CliError::usage(format!("{remote} does not say which branch is its own"))
                    .hint("name the branch that it goes into: rekindle land --pr --into main")
            })?,
        };
        let work = Work::new(repo, &context.project.state_dir, &run, &branch)?;
        let environment = std::env::vars_os();
        let text = |word: std::ffi::OsString| word.to_string_lossy().into_owned();
        let redactor = Redactor::new(environment.map(|(name, value)| (text(name), text(value))));
        Ok(Self { context, landing, forge, work, base, redactor, lock })
    }

    /// Pushes the run's newest commit and makes sure that it has exactly one pull request. Returns the state of that pull
    /// request.
    pub(super) fn publish(&self, state: &State) -> std::result::Result<KnownPullRequest, Trouble> {
        let (run, branch) = run_of(state)?;
        let (tip, at_run) = (self.work.newest()?, state.run.as_ref());
        if at_run.and_then(|run| run.work_base.as_deref()) == Some(tip.as_str()) {
            return Err(CliError::refused(format!("there is nothing on {branch} to publish")).into());
        }
        let known = at_run.and_then(|run| run.pull_request.clone());
        let beginning = match (core_forge::begin(known.as_ref(), &tip), &known) {
            (Some(beginning), _) => beginning,
            (None, Some(merged)) => return Ok(merged.clone()),
            (None, None) => return Err(CliError::internal("a pull request that is not on record is merged").into()),
        };
        let at = PullRequest {
            forge: self.forge.name().to_owned(),
            remote: self.landing.remote.clone(),
            branch: branch.clone(),
            base: self.base.clone(),
            head: tip.clone(),
            ..PullRequest::default()
        };
        if beginning.records_opening {
            // From here on it may exist, whatever is killed.
            self.record(PullRequestAction::Opening, at.clone(), Vec::new())?;
        }
        if let Pushed::Foreign(commit) = self.work.push(&self.landing.remote, &tip)? {
            if beginning.open.is_some() {
                return Err(Trouble::Foreign(commit));
            }
            let message = format!("{} has a branch {branch} with commits of others", self.landing.remote);
            let error = CliError::refused(message).hint("nothing was pushed; look at it: git fetch");
            return Err(error.hint(format!("if nobody needs it: git push {} --delete {branch}", at.remote)).into());
        }
        let wanted = Wanted { id: beginning.open.as_deref(), marker: &core_forge::marker(&run), tip: &tip };
        let found = match self.chosen(&branch, &wanted, beginning.looks)? {
            Some(found) => found,
            None => self.create(state, &branch, &wanted)?,
        };
        self.settle(state, at, &found, known.as_ref(), wanted.marker)
    }

    /// The run's pull request at the forge; queries up to `looks` times.
    fn chosen(&self, branch: &str, wanted: &Wanted<'_>, looks: u32) -> std::result::Result<Option<Found>, Trouble> {
        for look in 0..looks {
            if look > 0 {
                ui::pause(u32::try_from(LOOK_MS.min(self.landing.poll_ms)).unwrap_or(u32::MAX));
            }
            if let Some(found) = core_forge::choose(self.forge.find(branch)?, wanted, &self.base) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn create(&self, state: &State, branch: &str, wanted: &Wanted<'_>) -> std::result::Result<Found, Trouble> {
        let (title, body) = self.words(state)?;
        let new = New { branch, base: &self.base, title: &title, body: &body };
        let said = self.lock.held_by_programs(|| self.forge.create(&new))?;
        let looks = if said.as_ref().is_err_and(|error| !error.may_be_done()) { 0 } else { LOOKS };
        match (self.chosen(branch, wanted, looks)?, said) {
            (Some(found), _) => Ok(found),
            (None, Err(error)) => Err(error.into()),
            (None, Ok(())) => Err(Trouble::Passing(format!("{} does not show it yet", self.forge.name()))),
        }
    }

    /// Brings words and record in line with what the forge has.
    fn settle(
        &self,
        state: &State,
        at: PullRequest,
        found: &Found,
        known: Option<&KnownPullRequest>,
        marker: &str,
    ) -> std::result::Result<KnownPullRequest, Trouble> {
        let head = if found.state == Standing::Open { at.head } else { found.head.clone() };
        let at = PullRequest { id: found.id.clone(), url: one_line(&found.url), base: found.base.clone(), head, ..at };
        let action = core_forge::became(found, known);
        // What a person wrote themselves is left alone.
        if found.state == Standing::Open && found.body.contains(marker) {
            let (title, body) = self.words(state)?;
            if found.body.replace('\r', "").trim() != body.trim() {
                self.lock.held_by_programs(|| self.forge.update(&found.id, &title, &body))??;
            }
        }
        self.record(action, at, Vec::new())?;
        let state = pinned::state_of(&self.context.project)?;
        let known = state.run.and_then(|run| run.pull_request);
        known.ok_or_else(|| CliError::internal("the pull request is not on record").into())
    }

    fn words(&self, state: &State) -> std::result::Result<(String, String), Trouble> {
        let base = state.run.as_ref().and_then(|run| run.work_base.as_deref());
        let counted = self.work.counted(base)?;
        Ok((body::title(state, &self.redactor), body::body(state, counted, &self.redactor)))
    }

    /// Records what became of the pull request.
    pub(super) fn record(&self, action: PullRequestAction, at: PullRequest, points: Vec<String>) -> Result<()> {
        let change = PullRequestChange { action, at, points };
        orders::give(&self.context.project, &Order::PullRequest(Box::new(change))).map(|_| ())
    }

    /// Makes a request that must not be made twice; its program holds the lock meanwhile.
    pub(super) fn order<T>(
        &self,
        order: impl FnOnce(&dyn Forge) -> forge::Result<T>,
    ) -> std::result::Result<T, Trouble> {
        Ok(self.lock.held_by_programs(|| order(&*self.forge))??)
    }
}

/// The run's name and branch.
pub(super) fn run_of(state: &State) -> Result<(String, String)> {
    let run = state.run.as_ref().ok_or_else(|| CliError::usage("there is no run here"))?;
    let branch = run.work_branch.clone().ok_or_else(|| {
        let message = "this run shares your checkout: it has no branch of its own to publish";
        CliError::usage(message).hint("publish your branch yourself: git push")
    })?;
    Ok((run.id.to_string(), branch))
}
