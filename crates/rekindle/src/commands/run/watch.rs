//! What `run` shows: a line for everything that matters, below them on a terminal a table that lives, and a summary.
//!
//! It reads the store like every other view and drives nothing.

mod live;
mod summary;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rekindle_core::cause::Cause;
use rekindle_core::event::Body;
use rekindle_core::time::Time;
use rekindle_core::view::{RunRow, TaskRow};
use rekindle_engine::alert::Channels;
use rekindle_engine::clock;
use rekindle_engine::store::StoredEvent;

use self::live::Live;
use crate::commands::Context;
use crate::error::{CliError, Result};
use crate::project::Project;
use crate::story::blocks::{self, Names};
use crate::story::{self, Told};
use crate::ui::{StatusLine, Tone, Ui, clock_time, elapsed, harmless, one_line, pause};
use crate::view::{Counts, View};

pub use self::summary::{summary, summary_of};

/// Between two looks at the store.
const LOOK_MS: u32 = 100;

/// The event that calls for a person.
const ALERT: &str = "person_alerted";

/// What stands below a line of progress begins under its time.
const BELOW: &str = "             ";

/// Shows a run as it goes, on a thread of its own.
pub struct Watcher {
    thread: JoinHandle<()>,
    over: Arc<AtomicBool>,
    seen_end: Arc<AtomicBool>,
}

impl Watcher {
    /// Begins to show the run of a project. It stops showing, not running, when the terminal hangs up.
    pub fn start(context: &Context, alerts: Channels, hung_up: Arc<AtomicBool>) -> Result<Self> {
        let (ui, project) = (context.ui, context.project.clone());
        let over = Arc::new(AtomicBool::new(false));
        let seen_end = Arc::new(AtomicBool::new(false));
        let (over_there, seen_there) = (Arc::clone(&over), Arc::clone(&seen_end));
        let watch = move || {
            let mut screen = Screen::new(ui, project, alerts);
            loop {
                // Asked before the look: everything that was written before the end is then shown.
                let last = over_there.load(Ordering::Acquire);
                if hung_up.load(Ordering::Relaxed) || screen.look(last).is_err() || last {
                    break;
                }
                pause(LOOK_MS);
            }
            seen_there.store(true, Ordering::Release);
        };
        let thread = std::thread::Builder::new()
            .name("view".to_owned())
            .spawn(watch)
            .map_err(|error| CliError::internal("cannot start the view").because(&error))?;
        Ok(Self { thread, over, seen_end })
    }

    /// Lets the view show the end, but waits for a blocked terminal only so long.
    pub fn finish(self, patience_ms: u32, look_ms: u32) {
        self.over.store(true, Ordering::Release);
        for _ in 0..patience_ms / look_ms {
            if self.seen_end.load(Ordering::Acquire) {
                // The thread is past its last line: joining it takes no time.
                let _its_panic_aborts = self.thread.join();
                return;
            }
            pause(look_ms);
        }
    }
}

/// Shows a run that others coordinate until nobody is at it any more, and says how it stands then.
pub fn until_quiet(context: &Context) -> Result<String> {
    let mut screen = Screen::new(context.ui, context.project.clone(), Channels::default());
    loop {
        let quiet = View::open(&context.project)?.is_quiet()?;
        screen.look(quiet)?;
        if quiet {
            return Ok(View::open(&context.project)?.the_run()?.row.state);
        }
        pause(LOOK_MS);
    }
}

/// What has been shown so far.
struct Screen {
    ui: Ui,
    project: Project,
    /// Opened once there is a store: opening it at every look would cost more than all the rest.
    view: Option<View>,
    tasks: Vec<TaskRow>,
    seen: Option<u64>,
    /// The resume that was told of: once for each wait, a terminal counts it down besides.
    told_wait: Option<Time>,
    live: Live,
    alerts: Channels,
}

impl Screen {
    fn new(ui: Ui, project: Project, alerts: Channels) -> Self {
        let live = Live::new(&ui);
        Self { ui, project, view: None, tasks: Vec::new(), seen: None, told_wait: None, live, alerts }
    }

    /// Shows what is new. A coordinator that has just begun may have no run yet.
    fn look(&mut self, last: bool) -> Result<()> {
        if self.view.is_none() {
            self.view = Some(View::open(&self.project)?).filter(View::has_store);
        }
        let Some(view) = &self.view else { return Ok(()) };
        // Ten looks a second at ten thousand tasks would keep a processor busy: without news, rows are not read again.
        let news = self.seen != Some(view.last_event()?);
        if !news && !self.live.is_on() {
            self.complaints().iter().for_each(|line| self.ui.say(line));
            return Ok(());
        }
        let Some(run) = view.run()? else { return Ok(()) };
        if news {
            self.tasks = run.tasks()?;
        }
        let first_look = self.seen.is_none();
        // A view that attaches late begins with the newest coordinator, not with the whole history.
        let mut fresh: Vec<StoredEvent> = Vec::new();
        let seen = run.events(self.seen.unwrap_or(0), |event| {
            if first_look && event.kind == "coordinator_started" {
                fresh.clear();
            }
            fresh.push(event.clone());
            Ok(())
        })?;
        let waits = Some(&run.row).filter(|row| row.state == "waiting").and_then(|row| row.resumes_at);
        let wait = waits.filter(|until| self.told_wait != Some(*until));
        let shown = self.lines(&run.row, &fresh, wait);
        (self.seen, self.told_wait) = (Some(seen), waits);
        let tasks = &self.tasks;
        let table = if last { Vec::new() } else { self.live.table(&run, tasks, clock::wall())? };
        self.live.draw(&shown, &table);
        if self.alerts.bell && fresh.iter().any(|event| event.kind == ALERT) {
            self.ui.ring();
        }
        Ok(())
    }

    /// A line or a block for every event that matters, and one for a wait that has begun.
    fn lines(&self, run: &RunRow, fresh: &[StoredEvent], wait: Option<Time>) -> Vec<String> {
        let counts = Counts::of(&self.tasks);
        let ended = counts.complete + counts.failed + counts.skipped;
        let state_file = self.project.state_file();
        let names = Names { state_file: &state_file, plan_file: &run.plan_path };
        let line = |told: &Told, time: Time, task: &str| {
            let (elapsed_ms, progress) = (time.since_ms(run.started_at), (ended, counts.all));
            let Told { verb, tone, text } = told;
            self.ui.rendered(&StatusLine { verb, tone: *tone, elapsed_ms, progress, task, text })
        };
        let mut shown = self.complaints();
        for (place, event) in fresh.iter().enumerate().filter(|(_, event)| matters(event)) {
            let before = place.checked_sub(1).and_then(|place| fresh.get(place));
            if let Some(block) = story::body(event).and_then(|body| blocks::block(&body, names)) {
                // Who paused it, and what a second Ctrl-C does, stands only in the line.
                if event.kind == "session_pause" {
                    shown.push(line(&story::tell(event), Time(event.time_ms), ""));
                }
                shown.push(format!("\n{}\n", harmless(&block)));
                continue;
            }
            let title = event.task.as_deref().and_then(|id| self.tasks.iter().find(|task| task.id.as_str() == id));
            let task = title.map_or_else(String::new, |task| format!("{} {}", task.id, task.title));
            if !repeats(before, event) {
                shown.push(line(&story::tell(event), Time(event.time_ms), &task));
            }
            shown.extend(choices(event));
        }
        if let Some(until) = wait {
            let (now, verb, tone) = (clock::wall(), "WAITING", Tone::Warning);
            let text = format!("resumes in {} ({})", elapsed(until.since_ms(now)), clock_time(until));
            shown.push(line(&Told { verb, tone, text }, now, ""));
        }
        shown
    }

    /// Channels that do not reach anybody, told once each.
    fn complaints(&self) -> Vec<String> {
        self.alerts.complaints.take().iter().map(|text| format!("{BELOW}{}", one_line(text))).collect()
    }
}

/// What a person can do about an alert, a line each and never cut: they are to be typed.
fn choices(event: &StoredEvent) -> Vec<String> {
    if event.kind != ALERT {
        return Vec::new();
    }
    let choices = story::body(event).map(|body| story::evidence(&body)).unwrap_or_default();
    choices.iter().map(|choice| format!("{BELOW}{}", one_line(choice))).collect()
}

/// Whether an alert says once more what the line before it has just said.
fn repeats(before: Option<&StoredEvent>, event: &StoredEvent) -> bool {
    let said = |before: &StoredEvent| {
        before.task == event.task
            && matches!(before.kind.as_str(), "workflow_failed" | "question_asked" | "split_suggested")
    };
    event.kind == ALERT && before.is_some_and(said)
}

/// Whether an event is shown by `run`; `events` and `why` show all of them.
fn matters(event: &StoredEvent) -> bool {
    let Some(body) = story::body(event) else { return false };
    match body {
        Body::Dispatched { resumed, .. } => !resumed,
        Body::AttemptEnded { cause, .. } => {
            matches!(cause, Cause::ExitedIncomplete | Cause::ShimLost | Cause::HostLost | Cause::StartFailed { .. })
        }
        Body::ChecksFinished { passed, .. } => !passed,
        Body::TeamChecked(team) => team.working + team.idle + team.unresponsive > 0,
        Body::HealthChecked(seen) => seen.results.iter().any(|check| !check.passed),
        Body::Redispatched { .. }
        | Body::TaskCompleted { .. }
        | Body::TaskFailReported { .. }
        | Body::TaskSkipped { .. }
        | Body::TaskReopened { .. }
        | Body::RoleTimeout { .. }
        | Body::AgentHung { .. }
        | Body::AgentCrashed { .. }
        | Body::WorkflowFailed { .. }
        | Body::AgentAdopted { .. }
        | Body::OrphanAgentDetected { .. }
        | Body::CoordinatorRecovered(_)
        | Body::QuestionAsked { .. }
        | Body::QuestionAnswered { .. }
        | Body::NoteRecorded { .. }
        | Body::SessionPause(_)
        | Body::SessionResume(_)
        | Body::PlanChanged { .. }
        | Body::StartsHeld { .. }
        | Body::StartsReleased {}
        | Body::BreakerOpened { .. }
        | Body::AgentCompacted(_)
        | Body::CompactionStart { .. }
        | Body::CompactionComplete(_)
        | Body::AgentFailed { .. }
        | Body::GateClosed(_)
        | Body::GateWidened { .. }
        | Body::GateOpened { .. }
        | Body::TaskHandedOn(_)
        | Body::VerdictGiven(_)
        | Body::TaskRework(_)
        | Body::CriticBypassed {}
        | Body::ReviewAuditDisagreement(_)
        | Body::EnvironmentDisagreement(_)
        | Body::TaskAdded(_)
        | Body::SplitSuggested { .. }
        | Body::MergeConflicted { .. }
        | Body::BranchMade(_)
        | Body::StatusAsked { .. }
        | Body::StatusAnswered { .. }
        | Body::TaskAssigned { .. }
        | Body::PersonAlerted { .. }
        | Body::WaveStarted { .. } => true,
        _ => false,
    }
}
