//! A coordinator in this process, shown as it runs; or a view of one elsewhere.
//!
//! The view has its own thread and reads the store: a blocked terminal slows nothing down. Ctrl-C and SIGTERM pause the run;
//! a hang-up only ends the view.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};

use rekindle_core::event::PauseReason;
use rekindle_core::state::RunPhase;
use rekindle_core::text::counted;
use rekindle_engine::coordinator::{Coordinator, Error, Notice, Setup};
use rekindle_engine::driver::Message;
use rekindle_engine::store::OpenReport;
use rekindle_engine::urgent::Urgent;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::prepare::exit_of;
use super::watch::{self, Progress, Watcher};
use crate::commands::Context;
use crate::error::{CliError, Result};
use crate::exit_code::Exit;
use crate::lost;
use crate::ui::Ui;

/// How long the view may take to show the end before this process exits without it: its terminal may be blocked.
const LAST_LOOK_MS: u32 = 2_000;

/// Pause between two checks whether it has.
const LOOK_MS: u32 = 10;

/// Coordinates a run in this process until it is over or paused.
pub(super) fn coordinate(setup: Setup, progress: Progress, context: &Context) -> Result<Exit> {
    abort_on_panic();
    let alerts = setup.programs.alerts.clone();
    let coordinator = Coordinator::open(setup).map_err(coordinator_error)?;
    tell_repairs(context, coordinator.report());
    if let Some(made) = coordinator.branch_made() {
        made.notes.iter().for_each(|note| context.ui.warn(note));
        context.ui.hint(&format!("agents work in worktrees; accepted work goes to the branch {}", made.branch));
    }
    let first_signal = Arc::new(AtomicI32::new(0));
    let hung_up = Arc::new(AtomicBool::new(false));
    let signals = (coordinator.sender(), coordinator.urgent());
    listen_for_signals(signals, Arc::clone(&first_signal), Arc::clone(&hung_up))?;
    let watcher = Watcher::start(context, progress, alerts, Arc::clone(&hung_up))?;
    let ui = context.ui;
    let phase = match coordinator.telling(Box::new(move |notice| tell(ui, notice))).drive() {
        Err(Error::Unwritten(error)) => {
            ui.warn(&format!("leaving: the state cannot be written ({error}); agents keep working by themselves"));
            ui.hint("adopt them and continue when it can be written again: rekindle resume");
            let by_term = first_signal.load(Ordering::Relaxed) == SIGTERM;
            return Ok(if by_term { Exit::Terminated } else { Exit::Interrupted });
        }
        other => other.map_err(coordinator_error)?,
    };
    watcher.finish(LAST_LOOK_MS, LOOK_MS);
    if !hung_up.load(Ordering::Relaxed) {
        watch::summary(context)?;
    }
    Ok(match (phase, first_signal.load(Ordering::Relaxed)) {
        (RunPhase::Paused(_), SIGINT) => Exit::Interrupted,
        (RunPhase::Paused(_), SIGTERM) => Exit::Terminated,
        (phase, _) => exit_of(phase),
    })
}

/// Prints what the log cannot record.
fn tell(ui: Ui, notice: &Notice) {
    match notice {
        Notice::Unwritten(error) => ui.warn(&format!(
            "the state cannot be written, nothing is decided until it can be; agents keep working: {error}"
        )),
        Notice::CannotPause => {
            ui.warn("the run is paused as soon as the state can be written; press Ctrl-C again to leave now");
        }
        Notice::Polling(lack) => {
            ui.warn(&lack.reason);
            ui.hint(&lack.hint);
        }
        Notice::Watching => ui.say("the system has file watches again: agents are no longer polled"),
        Notice::Written => ui.say("the state can be written again"),
    }
}

/// Shows a run that another process coordinates. Leaving the view changes nothing.
pub(super) fn attach(progress: Progress, context: &Context) -> Result<Exit> {
    context.ui.say("another process coordinates this run: attached as a view (Ctrl-C leaves it running)");
    let phase = watch::until_quiet(context, progress)?;
    watch::summary(context)?;
    Ok(match phase.as_str() {
        "complete" => Exit::Success,
        "failed" => Exit::TasksFailed,
        "paused" => Exit::Paused,
        _ => {
            let message = "the coordinator ended before the run did; its agents keep working";
            return Err(CliError::internal(message).hint("adopt them and continue: rekindle resume"));
        }
    })
}

/// A coordinator's error, for people.
pub(crate) fn coordinator_error(error: rekindle_engine::coordinator::Error) -> CliError {
    match error {
        Error::StateDir(error) => error.into(),
        Error::Store(error) => error.into(),
        error @ Error::Deleted(_) => CliError::internal("the coordinator cannot continue")
            .because(&error)
            .hint("what the agents did is in the project's files; begin again: rekindle run"),
        Error::AttemptsLost(lost) => lost::refusal(&lost),
        other => CliError::internal("the coordinator cannot continue").because(&other),
    }
}

/// A panic anywhere ends the process at once: agents continue, and the next start recovers from what is durable.
fn abort_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        before(info);
        std::process::abort();
    }));
}

fn listen_for_signals(
    (messages, urgent): (SyncSender<Message>, Urgent),
    first_signal: Arc<AtomicI32>,
    hung_up: Arc<AtomicBool>,
) -> Result<()> {
    let failed = |error: std::io::Error| CliError::internal("cannot listen for signals").because(&error);
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
    let listen = move || {
        for signal in &mut signals {
            if signal == SIGHUP {
                hung_up.store(true, Ordering::Relaxed);
                continue;
            }
            let again = first_signal.swap(signal, Ordering::Relaxed) != 0;
            let reason = match signal {
                _ if again => PauseReason::Stop,
                SIGTERM => PauseReason::Terminate,
                _ => PauseReason::Interrupt,
            };
            urgent.pause(reason);
            // This only wakes the coordinator: if the queue is full, it is awake.
            if let Err(TrySendError::Disconnected(_)) = messages.try_send(Message::Pause(reason)) {
                return;
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(failed)?;
    Ok(())
}

fn tell_repairs(context: &Context, report: &OpenReport) {
    if let Some(repaired) = &report.repaired {
        let kept = repaired.kept_aside.display();
        context
            .ui
            .warn(&format!("the store was damaged ({}) and has been repaired; damaged files: {kept}", repaired.why));
    }
    if report.replayed > 0 {
        context.ui.warn(&format!(
            "{} from the shadow log",
            counted(
                report.replayed,
                "event that the database had lost was taken",
                "events that the database had lost were taken"
            )
        ));
    }
    if let Some(seq) = report.lost_after {
        context.ui.warn(&format!("events after {seq} are known to have existed and could not be brought back"));
    }
}
