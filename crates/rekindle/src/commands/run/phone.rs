//! A run that was paused from a phone waits to be resumed from there: no coordinator, no agent, only a poll for replies.
//! Questions can be answered meanwhile; each order is recorded as if it came from the command line.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rekindle_core::input::Order;
use rekindle_core::phone::{PhoneMessage, PhoneOrder};
use rekindle_core::state::{RunPhase, State};
use rekindle_core::view;
use rekindle_engine::alert::Channels;
use rekindle_engine::alert::phone::{Asking, Line, Phones, Said, Shared, tell_nobody_hears};
use rekindle_engine::driver;
use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store;
use rekindle_engine::token::Tokens;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::{RunOptions, continue_run};
use crate::client::orders::{self, Taken};
use crate::commands::Context;
use crate::error::{CliError, Kind, Result};
use crate::exit_code::Exit;
use crate::project::Project;
use crate::ui;

/// Pause between two checks for a signal, a reply or another coordinator.
const LOOK_MS: u32 = 200;

/// Waits for `resume`, then continues the run. A signal leaves it paused.
pub(super) fn wait_for_resume(alerts: &Channels, options: &RunOptions, context: &Context) -> Result<Exit> {
    let dir = StateDir::open(&context.project.state_dir)?;
    let failed = |error: std::io::Error| CliError::internal("cannot listen for signals").because(&error);
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
    let Some(state) = paused(&dir) else { return Ok(Exit::Paused) };
    let run = state.run.as_ref().map(|run| (run.id.to_string(), run.plan.name.clone())).unwrap_or_default();
    let line = Arc::new(PausedLine { project: context.project.clone(), resumed: AtomicBool::new(false) });
    let codes = Tokens::new(*dir.secret()?.bytes()).of_run(&run.0);
    let shared = Shared { dir: dir.path().to_owned(), codes, line: Arc::<PausedLine>::clone(&line) };
    let phones = Phones::start(alerts, &shared);
    phones.ask(Asking { plan: run.1, open: driver::open_questions(&state) });
    context.ui.say("paused from a phone: waiting there for `resume` (Ctrl-C leaves the run paused)");
    loop {
        for signal in signals.pending() {
            match signal {
                SIGINT | SIGTERM => {
                    drop(phones);
                    tell_if_left_paused(alerts, context);
                    return Ok(if signal == SIGINT { Exit::Interrupted } else { Exit::Terminated });
                }
                _ => {}
            }
        }
        if line.resumed.load(Ordering::Relaxed) {
            // The message is left unread: the coordinator records it as taken.
            drop(phones);
            return continue_run(options, context);
        }
        if paused(&dir).is_none() {
            context.ui.say("another process has continued the run");
            return Ok(Exit::Paused);
        }
        ui::pause(LOOK_MS);
    }
}

/// This process ends and leaves the run paused: a phone that may resume it is told that nobody would hear that.
pub(super) fn tell_if_left_paused(alerts: &Channels, context: &Context) {
    if !alerts.control || alerts.phones.is_empty() {
        return;
    }
    let state = StateDir::open(&context.project.state_dir).ok().and_then(|dir| paused(&dir));
    if let Some(run) = state.and_then(|state| state.run) {
        tell_nobody_hears(alerts, &run.plan.name);
    }
}

/// The state of a paused run; `None` once it has been continued.
fn paused(dir: &StateDir) -> Option<State> {
    let (state, _) = store::reader(dir).ok()?.and_then(|reader| driver::load(reader.as_ref()).ok())?;
    let paused = state.run.as_ref().is_some_and(|run| matches!(run.phase, RunPhase::Paused(_)));
    paused.then_some(state)
}

struct PausedLine {
    project: Project,
    resumed: AtomicBool,
}

impl Line for PausedLine {
    fn order(&self, from: PhoneMessage, order: PhoneOrder) -> Option<Said> {
        if order == PhoneOrder::Resume {
            self.resumed.store(true, Ordering::Relaxed);
            return None;
        }
        match orders::give(&self.project, &Order::FromPhone { from, order }) {
            Ok(Taken::Now | Taken::Placed(_)) => Some(Said::Taken),
            Ok(Taken::Already) => Some(Said::Already),
            Ok(Taken::NobodyThere) => None,
            Err(error) if error.kind == Kind::Refused => Some(Said::Refused(error.message)),
            Err(_) => None,
        }
    }

    fn status(&self) -> Option<String> {
        let dir = StateDir::open(&self.project.state_dir).ok()?;
        let (state, _) = driver::load(store::reader(&dir).ok()??.as_ref()).ok()?;
        Some(view::status_line(&state))
    }
}
