//! An operator's orders: sent through the control socket when a coordinator is running, otherwise decided and written here.

use std::path::Path;
use std::time::Duration;

use rekindle_core::decide::Reply;
use rekindle_core::input::Order;
use rekindle_engine::control::wire::{Request, Response};
use rekindle_engine::state_dir::StateDir;
use rekindle_engine::{offline, store};

use super::agent::unexpected;
use super::stall::Stall;
use super::{Away, ControlSocket, SOCKET, TOKEN, variable};
use crate::error::{CliError, Result};
use crate::lost;
use crate::patience;
use crate::project::Project;
use crate::ui;

/// How often a coordinator that holds its lock but does not listen is called: it may be starting or ending.
const CALLS: u32 = 50;

/// Pause between two such calls.
const CALL_PAUSE_MS: u32 = 100;

/// Longest wait for an answer: one commit, on a disk that is very busy. A person waits for it.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);

/// What an order changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Now,
    /// Nothing changed: it was already done.
    Already,
    /// It is acted on after a short delay; until then it can be undone by this number.
    Placed(u64),
    /// A pause, and no coordinator is running to stop agents: the caller has to do it.
    NobodyThere,
}

/// Gives an order and waits until it is durable. Fails when it is refused, or there is no run.
pub(crate) fn give(project: &Project, order: &Order) -> Result<Taken> {
    if variable(TOKEN).is_some() {
        return Err(for_operator());
    }
    let (state_dir, waiting) = (project.state_dir.clone(), project.state_dir.clone());
    let dir = patience::within(&waiting, move || StateDir::open(&state_dir))??;
    if let Order::Answer { id: lost::QUESTION, text } = order {
        return lost::answer(&dir, text).map(|()| Taken::Now);
    }
    let socket = ControlSocket::of_state_dir(dir.path());
    // Whether an earlier call, whose answer was lost, may have been taken.
    let mut unsure = false;
    for _ in 0..CALLS {
        let Some(owner) = dir.owner()? else {
            if let Some(leader) = store::locate::led_elsewhere(&dir)? {
                return Err(store::Error::Led(format!("it is at {leader}")).into());
            }
            return match order {
                Order::Pause(_) => Ok(Taken::NobodyThere),
                order => offline(&dir, order.clone()).map_err(|error| if unsure { doubtful(error) } else { error }),
            };
        };
        match socket.call(Request::Order(order.clone()), ANSWER_PATIENCE) {
            Ok(Response::Accepted | Response::Complete { .. }) => return Ok(Taken::Now),
            Ok(Response::Placed { number }) => return Ok(Taken::Placed(number)),
            Ok(Response::Already) => return Ok(Taken::Already),
            Ok(Response::Refused { reason }) if unsure => return Err(doubtful(CliError::refused(reason))),
            Ok(Response::Refused { reason }) => return Err(CliError::refused(reason)),
            Ok(answer) => return Err(unexpected(&answer)),
            Err(away @ Away::Garbled(_)) => {
                return Err(CliError::internal("the order may not have been accepted").because(&away));
            }
            Err(Away::Stalled { stall }) => return Err(stalled(&stall.or_of(owner.map(|owner| owner.pid)))),
            Err(away @ (Away::Nobody { .. } | Away::Lost(_))) => {
                unsure |= matches!(away, Away::Lost(_));
                ui::pause(CALL_PAUSE_MS);
            }
        }
    }
    let message = "the coordinator holds its lock but does not answer";
    let error = CliError::internal(message).hint("look at it: rekindle doctor");
    Err(if unsure { doubtful(error) } else { error })
}

/// The error when the first answer was lost and the repeated order was refused: perhaps because the first one was taken.
fn doubtful(error: CliError) -> CliError {
    let message =
        format!("the order may have been accepted: its first answer was lost, and sending it again failed: {error}");
    CliError { message, ..error }.hint("check the run: rekindle status")
}

/// The error when a coordinator received the order and does not answer. It may still take the order; giving it again does no
/// harm.
fn stalled(stall: &Stall) -> CliError {
    CliError::internal(format!("{}; the order was not confirmed", stall.words())).hint(stall.hint())
}

/// Refuses an agent of a run that wants to coordinate or watch that run: it would wait for itself, or become its own
/// supervisor. Fails when the caller is an agent of this state directory.
pub(crate) fn refuse_own_agent(project: &Project) -> Result<()> {
    let own = variable(TOKEN).and(variable(SOCKET)).is_some_and(|socket| {
        let dir = Path::new(&socket).parent().map(Path::to_owned);
        dir.is_some() && dir == project.state_dir.canonicalize().ok()
    });
    if own { Err(for_operator()) } else { Ok(()) }
}

fn for_operator() -> CliError {
    CliError::refused("that is for the operator, not for an agent").hint("ask the operator: rekindle ask TEXT")
}

/// The one place where an order is decided without a coordinator.
fn offline(dir: &StateDir, order: Order) -> Result<Taken> {
    let reply = offline::order(dir, order).map_err(|error| match error {
        offline::Error::Store(error @ (store::Error::Led(_) | store::Error::AgentsElsewhere { .. })) => error.into(),
        error => CliError::internal("the order could not be written").because(&error),
    })?;
    match reply {
        Reply::Refused { reason } => Err(CliError::refused(reason)),
        Reply::Already => Ok(Taken::Already),
        Reply::Placed(number) => Ok(Taken::Placed(number)),
        Reply::Accepted | Reply::Verifying { .. } | Reply::Asked(_) => Ok(Taken::Now),
    }
}
