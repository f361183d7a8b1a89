//! An agent's reports about its own attempt. No report is lost for want of a coordinator: one that cannot be delivered is
//! kept in the attempt's bundle and counts at the next start.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rekindle_core::ids::{QuestionId, TaskId};
use rekindle_core::report::Report;
use rekindle_engine::control::wire::{Request, Response, TaskLine};
use rekindle_engine::world::kept::{self, KeptReport};

use super::{AttemptVariables, Away, BUNDLE, ControlSocket, SOCKET, TASK, TOKEN, variable};
use crate::error::{CliError, Result};
use crate::project::{Project, STATE_DIR_VARIABLE};
use crate::ui;

/// How many times a coordinator that does not answer is called before a report is kept: it may be starting.
const CALLS: u32 = 5;

/// Pause between two such calls.
const CALL_PAUSE_MS: u32 = 100;

/// Longest wait for an ordinary answer: one commit, on a disk that is very busy.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);

/// Longest wait for the outcome of a claim: checks have their own limits, and this is longer than all of them.
const CLAIM_PATIENCE: Duration = Duration::from_secs(6 * 60 * 60);

/// How long to wait for a person before asking again, so that a dead connection is noticed.
const PERSON_PATIENCE: Duration = Duration::from_secs(10 * 60);

/// Shortest and longest pause before a missing coordinator is called again.
const BACKOFF_MS: (u32, u32) = (100, 5_000);

#[derive(Debug)]
pub(crate) enum Outcome {
    Answered(Response),
    /// No coordinator is running; the report is in this file.
    Kept(PathBuf),
}

/// An agent, known by its token.
#[derive(Clone)]
pub(crate) struct Agent {
    token: String,
    socket: ControlSocket,
    bundle: Option<PathBuf>,
    mcp: bool,
}

impl Agent {
    /// The agent that started this process, if any.
    pub(crate) fn from_environment(project: &Project) -> Option<Self> {
        Self::told(&AttemptVariables::default(), &project.state_dir)
    }

    /// The agent of an attempt, if its token is known. `state_dir` is the project's, used when the attempt names none.
    pub(crate) fn told(told: &AttemptVariables, state_dir: &Path) -> Option<Self> {
        let token = told.get(TOKEN)?;
        let named = told.path(STATE_DIR_VARIABLE);
        let socket = match told.path(SOCKET) {
            Some(path) => ControlSocket::new(path, Some(token.clone())),
            None => ControlSocket::of_state_dir(named.as_deref().unwrap_or(state_dir)).speaking_as(token.clone()),
        };
        Some(Self { token, socket, bundle: told.path(BUNDLE), mcp: false })
    }

    /// The same agent, reporting through its MCP tools.
    pub(crate) fn with_tools(mut self) -> Self {
        self.mcp = true;
        self
    }

    /// The notice for the agent after a compaction, requested once. Fails when no coordinator answers within `patience`.
    pub(crate) fn context(&self, patience: Duration) -> Result<String> {
        match self.socket.call(Request::Context, patience) {
            Ok(Response::Context { text }) => Ok(text),
            Ok(Response::Refused { reason }) => Err(CliError::refused(reason)),
            Ok(answer) => Err(unexpected(&answer)),
            Err(away) => Err(CliError::internal("the coordinator was not asked").because(&away)),
        }
    }

    /// Reports, and waits for the answer. Fails when the coordinator refuses, or when none is running and the report cannot
    /// be kept either.
    pub(crate) fn report(&self, report: &Report) -> Result<Outcome> {
        let patience = match report {
            Report::Done { .. } => CLAIM_PATIENCE,
            _ => ANSWER_PATIENCE,
        };
        let call = Request::Report { report: report.clone(), mcp: self.mcp };
        match self.ask(&call, patience) {
            Ok(Response::Refused { reason }) => Err(CliError::refused(reason)),
            Ok(answer) => Ok(Outcome::Answered(answer)),
            Err(Away::Garbled(error)) => {
                Err(CliError::internal("cannot read the coordinator's answer").because(&error))
            }
            // It is unknown whether a lost call was received; reporting twice does no harm, losing the report would.
            Err(away) => self.keep(report, &away).map(Outcome::Kept),
        }
    }

    /// Sends a heartbeat. Returns whether a coordinator took it. Fails when the coordinator refuses.
    pub(crate) fn heartbeat(&self) -> Result<bool> {
        match self.ask(&Request::Heartbeat, ANSWER_PATIENCE) {
            Ok(Response::Refused { reason }) => Err(CliError::refused(reason)),
            Ok(_) => Ok(true),
            Err(_) => Ok(false),
        }
    }

    /// The agent's own tasks. Fails when the coordinator refuses or is not running.
    pub(crate) fn tasks(&self) -> Result<Vec<TaskLine>> {
        match self.ask(&Request::MyTasks, ANSWER_PATIENCE) {
            Ok(Response::Tasks { tasks }) => Ok(tasks),
            Ok(Response::Refused { reason }) => Err(CliError::refused(reason)),
            Ok(answer) => Err(unexpected(&answer)),
            Err(away) => Err(CliError::internal("your tasks cannot be listed").because(&away)),
        }
    }

    /// Asks and waits for a person's answer, across any number of coordinators. Fails when the coordinator refuses, or the
    /// reader of the answer is gone.
    pub(crate) fn ask_and_wait(&self, question: &Report) -> Result<String> {
        let asked = self.insist(|| {
            let report = question.clone();
            self.socket.call(Request::report(report), ANSWER_PATIENCE)
        })?;
        match asked {
            Response::Asked { question } => self.wait_for(question),
            Response::Answered { text, .. } => Ok(text),
            answer => Err(unexpected(&answer)),
        }
    }

    fn wait_for(&self, question: QuestionId) -> Result<String> {
        match self.insist(|| self.socket.call(Request::WaitForAnswer { question }, PERSON_PATIENCE))? {
            Response::Answered { text, .. } => Ok(text),
            answer => Err(unexpected(&answer)),
        }
    }

    /// Calls until a coordinator answers. The wait ends with the agent: the agent's limits bound it.
    fn insist(&self, call: impl Fn() -> Result<Response, Away>) -> Result<Response> {
        let (mut pause_ms, longest_ms) = BACKOFF_MS;
        loop {
            match call() {
                Ok(Response::Refused { reason }) => return Err(CliError::refused(reason)),
                Ok(answer) => return Ok(answer),
                Err(Away::Garbled(error)) => {
                    return Err(CliError::internal("cannot read the coordinator's answer").because(&error));
                }
                // No coordinator, or silent for so long that the connection may be dead: ask again.
                Err(Away::Nobody { .. } | Away::Lost(_) | Away::Stalled { .. }) => {}
            }
            ui::pause(pause_ms);
            pause_ms = (pause_ms * 2).min(longest_ms);
        }
    }

    fn ask(&self, call: &Request, patience: Duration) -> Result<Response, Away> {
        let mut calls = 1;
        loop {
            match self.socket.call(call.clone(), patience) {
                Err(Away::Nobody { .. } | Away::Lost(_)) if calls < CALLS => ui::pause(CALL_PAUSE_MS),
                outcome => return outcome,
            }
            calls += 1;
        }
    }

    fn keep(&self, report: &Report, away: &Away) -> Result<PathBuf> {
        let Some(bundle) = &self.bundle else {
            let message = format!("no coordinator took the report, and {BUNDLE} does not say where to keep it");
            return Err(CliError::internal(message).because(away));
        };
        let report = KeptReport { token: self.token.clone(), report: report.clone() };
        kept::save(bundle, &report)
            .map_err(|e| CliError::internal("no coordinator took the report, and it cannot be kept").because(&e))
    }
}

/// The task that an agent means: the one it named, otherwise its first. Fails when there is neither, or the name is not a
/// task id.
pub(crate) fn task_or_own(named: Option<&str>) -> Result<TaskId> {
    let name = named.map(str::to_owned).or_else(|| variable(TASK));
    let Some(name) = name else {
        return Err(CliError::usage("no task was named").hint("name it: rekindle task done T1"));
    };
    TaskId::new(name.as_str()).map_err(|e| CliError::usage(format!("`{name}` is not a task id: {e}")))
}

/// The error for an answer that does not fit the question.
pub(crate) fn unexpected(answer: &Response) -> CliError {
    CliError::internal(format!("unexpected answer from the coordinator: {answer:?}"))
}
