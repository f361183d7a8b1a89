//! What `run` shows: a line for everything that matters, below them a live table on a terminal, and a summary.
//!
//! It reads the store like every other view and drives nothing.

mod ends;
mod live;
mod summary;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use clap::ValueEnum;
use rekindle_core::event::{
    AttemptEvent, Body, GateEvent, MachineEvent, PersonEvent, ReviewEvent, RunEvent, SessionEvent, TaskEvent,
};
use rekindle_core::ids::AttemptId;
use rekindle_core::last_words;
use rekindle_core::time::Time;
use rekindle_engine::alert::{Channels, Kind};
use rekindle_engine::clock;
use rekindle_engine::store::StoredEvent;

use self::ends::{End, Ends, Shown};
use self::live::Live;
use crate::commands::Context;
use crate::error::{CliError, Result};
use crate::picture::output::TaskOutput;
use crate::picture::{Picture, RunReader};
use crate::project::Project;
use crate::story::blocks::{self, Names};
use crate::story::{self, Told};
use crate::ui::{StatusLine, Tone, Ui, elapsed, harmless, near_time, one_line, pause, zone_line};
use crate::view::View;

pub(crate) use self::summary::{summary, summary_of};

/// Pause between two reads of the store.
const LOOK_MS: u32 = 100;

/// The event that calls for a person.
const ALERT: &str = "person_alerted";

/// The event that ends a run.
const END: &str = "run_finished";

/// Longest time without output if there is no table: a CI ends a job that is silent for longer.
const SILENCE_MS: u64 = 5 * 60 * 1000;

/// How many agents the line that shows a live run names.
const NAMED_AT_WORK: usize = 4;

/// How often a table is drawn without news: it counts seconds.
const REDRAW_MS: u64 = 500;

/// How a run's progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Progress {
    /// A live table on a terminal, lines elsewhere
    #[default]
    Auto,
    /// A live table on any terminal
    Live,
    /// A line for every change
    Lines,
    /// Only the summary at the end
    None,
}

/// Indentation of text below a line of progress: it starts under the line's time.
const BELOW: &str = "             ";

/// Shows a run as it progresses, on its own thread.
pub(crate) struct Watcher {
    thread: JoinHandle<()>,
    over: Arc<AtomicBool>,
    seen_end: Arc<AtomicBool>,
}

impl Watcher {
    /// Starts to show the run of a project. When the terminal hangs up, only the display stops, not the run.
    pub(crate) fn start(
        context: &Context,
        progress: Progress,
        alerts: Channels,
        hung_up: Arc<AtomicBool>,
    ) -> Result<Self> {
        let (ui, project) = (context.ui, context.project.clone());
        let over = Arc::new(AtomicBool::new(false));
        let seen_end = Arc::new(AtomicBool::new(false));
        let (over_there, seen_there) = (Arc::clone(&over), Arc::clone(&seen_end));
        let watch = move || {
            let mut screen = Screen::new(ui, &project, progress, alerts);
            loop {
                // Read before the store is: everything that was written before the end is then shown.
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

    /// Lets the view show the end, but waits for a blocked terminal only for a limited time.
    pub(crate) fn finish(self, patience_ms: u32, look_ms: u32) {
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

/// Shows a run that another process coordinates until no coordinator is left, and returns the run's state then.
pub(crate) fn until_quiet(context: &Context, progress: Progress) -> Result<String> {
    let mut screen = Screen::new(context.ui, &context.project, progress, Channels::default());
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
    progress: Progress,
    reader: RunReader,
    seen: Option<u64>,
    /// The resume time that was last announced: once per wait; a terminal counts it down as well.
    told_wait: Option<Time>,
    /// Whether the time zone was named: once is enough.
    told_zone: bool,
    ends: Ends,
    /// When something was last printed or drawn.
    spoke: Time,
    live: Live,
    alerts: Channels,
}

impl Screen {
    fn new(ui: Ui, project: &Project, progress: Progress, alerts: Channels) -> Self {
        let (live, reader) = (Live::new(&ui, progress), RunReader::new(project, None));
        let (spoke, ends) = (clock::wall(), Ends::new(live.is_on()));
        Self { ui, progress, reader, seen: None, told_wait: None, told_zone: false, ends, spoke, live, alerts }
    }

    /// Shows what is new. A coordinator that has just started may have no run yet.
    fn look(&mut self, last: bool) -> Result<()> {
        let now = clock::wall();
        let Some(newest) = self.reader.view()?.map(View::last_event).transpose()? else { return Ok(()) };
        // Reading ten thousand tasks ten times a second would keep a processor busy: without news, rows are not read again.
        if self.seen == Some(newest) && !last && now.since_ms(self.spoke) < self.patience_ms() {
            self.complaints().iter().for_each(|line| self.ui.say(line));
            return Ok(());
        }
        // Events first: a picture that is older than they are would count what they tell as open.
        let fresh = self.fresh()?;
        let Some(picture) = self.reader.look()? else { return Ok(()) };
        let waits = Some(&picture.run).filter(|row| row.state == "waiting").and_then(|row| row.resumes_at);
        let wait = waits.filter(|until| self.told_wait != Some(*until));
        let ends = fresh.iter().enumerate().map(|(at, event)| self.ends.shown(event, &fresh[at + 1..]));
        let ends: Vec<Shown> = ends.collect();
        let mut shown = self.lines(&picture, &fresh, wait, &ends);
        if !self.told_zone && (wait.is_some() || fresh.iter().any(|event| event.kind == "gate_closed")) {
            self.told_zone = true;
            shown.push(format!("{BELOW}{}", zone_line(now)));
        }
        self.told_wait = waits;
        if self.progress == Progress::None {
            shown.clear();
        } else if shown.is_empty() && !last && !self.live.is_on() && now.since_ms(self.spoke) >= SILENCE_MS {
            shown.push(self.sign_of_life(&picture));
        }
        let table = match (self.reader.view()?.map(View::run).transpose()?.flatten(), last) {
            (Some(run), false) => self.live.table(&run, &picture)?,
            _ => Vec::new(),
        };
        if !shown.is_empty() || self.live.is_on() {
            self.spoke = now;
        }
        self.live.draw(&shown, &table);
        self.live.entitle(&picture);
        if fresh.iter().any(|event| rings(&self.alerts, &event.kind)) {
            self.ui.ring();
        }
        Ok(())
    }

    /// How long nothing has to be read when there is no news.
    fn patience_ms(&self) -> u64 {
        match (self.live.is_on(), self.progress) {
            (true, _) => REDRAW_MS,
            (false, Progress::None) => u64::MAX,
            (false, _) => SILENCE_MS,
        }
    }

    /// Events that were not seen yet.
    fn fresh(&mut self) -> Result<Vec<StoredEvent>> {
        let (seen, first_look) = (self.seen.unwrap_or(0), self.seen.is_none());
        let Some(run) = self.reader.view()?.map(View::run).transpose()?.flatten() else { return Ok(Vec::new()) };
        // A view that attaches late starts with the newest coordinator, not with the whole history; but a hold on starts
        // that a check of the machine began a moment before is news.
        let (mut fresh, mut held): (Vec<StoredEvent>, Option<u64>) = (Vec::new(), None);
        let seen = run.events(seen, |event| {
            match event.kind.as_str() {
                "starts_held" => held = Some(event.seq),
                "starts_released" => held = None,
                "coordinator_started" if first_look => fresh.retain(|event| Some(event.seq) == held),
                _ => {}
            }
            fresh.push(event.clone());
            Ok(())
        })?;
        self.seen = Some(seen);
        Ok(fresh)
    }

    /// A line that says that the run continues, so that silence is not taken for its end.
    fn sign_of_life(&self, picture: &Picture) -> String {
        let text = at_work(picture);
        let told = Told { verb: "RUNNING", tone: Tone::Dim, text };
        self.line(picture, &told, picture.now, "")
    }

    fn line(&self, picture: &Picture, told: &Told, time: Time, task: &str) -> String {
        self.line_with(picture, told, "", time, task)
    }

    /// A line with a tail, which is truncated last.
    fn line_with(&self, picture: &Picture, told: &Told, tail: &str, time: Time, task: &str) -> String {
        let counts = picture.counts();
        let (elapsed_ms, progress) = (time.since_ms(picture.run.started_at), (counts.complete, counts.all));
        let Told { verb, tone, text } = told;
        self.ui.rendered(&StatusLine { verb, tone: *tone, elapsed_ms, progress, task, text, tail })
    }

    /// A line or a block for every event that matters, and one for a wait that has begun.
    fn lines(&self, picture: &Picture, fresh: &[StoredEvent], wait: Option<Time>, ends: &[Shown]) -> Vec<String> {
        let state_file = self.reader.project().state_file();
        let names = Names { state_file: &state_file, plan_file: &picture.run.plan_path };
        let line = |told: &Told, time: Time, task: &str| self.line(picture, told, time, task);
        let mut shown = self.complaints();
        for (place, (event, how)) in fresh.iter().zip(ends).enumerate() {
            match how {
                Shown::Folded => continue,
                Shown::End(end) => {
                    shown.extend(self.end(picture, event, end));
                    continue;
                }
                Shown::Itself if !matters(event) => continue,
                Shown::Itself => {}
            }
            let before = place.checked_sub(1).and_then(|place| fresh.get(place));
            if let Some(block) = story::body(event).and_then(|body| blocks::block(&body, names)) {
                // Only the line says who paused it and what a second Ctrl-C does.
                if event.kind == "session_pause" {
                    shown.push(line(&story::tell(event), Time(event.time_ms), ""));
                }
                shown.push(format!("\n{}\n", harmless(&block)));
                continue;
            }
            if !repeats(before, event) {
                let mut told = story::tell(event);
                let (end, words) = last_words::apart(&told.text);
                let words = words.map(words_line);
                told.text = end.to_owned();
                if let Some(number) = replacement_number(picture, event) {
                    told.text = format!("attempt {number}: {}", told.text);
                }
                shown.push(line(&told, Time(event.time_ms), &task_of(picture, event)));
                shown.extend(words);
            }
            shown.extend(choices(event));
        }
        if let Some(until) = wait {
            let (now, verb, tone) = (clock::wall(), "WAITING", Tone::Warning);
            let text = format!("resumes in {} ({})", elapsed(until.since_ms(now)), near_time(until, now));
            shown.push(line(&Told { verb, tone, text }, now, ""));
        }
        shown
    }

    /// The end of an attempt and what follows it, with what its agent printed last below.
    fn end(&self, picture: &Picture, event: &StoredEvent, end: &End) -> Vec<String> {
        let task = event.task.as_deref().and_then(|id| picture.task(id));
        let number = task.map_or(0, |task| picture.number_of(&task.id, end.attempt));
        let (told, inner_words) = last_words::apart(&end.told.text);
        let (head, next) = match number {
            0 => (String::new(), "next attempt".to_owned()),
            number => (format!("attempt {number}: "), format!("attempt {}", number + 1)),
        };
        let next = end.next.as_ref().map(|when| format!("; {next} {when}")).unwrap_or_default();
        let told = Told { text: format!("{head}{told}"), ..end.told };
        let line = self.line_with(picture, &told, &next, Time(event.time_ms), &task_of(picture, event));
        let mut lines = vec![line];
        let output: Vec<&str> = output_of(picture, end.attempt);
        let own_words = end.last_words.as_ref().map(|words| format!("\"{words}\""));
        // If an agent prints plain text, its last words are in its output already.
        let printed = output.join(" ");
        let words = own_words.as_deref().or(inner_words).filter(|words| !printed.contains(words.trim_matches('"')));
        lines.extend(words.map(words_line));
        lines.extend(output.iter().map(|line| format!("{BELOW}| {line}")));
        lines
    }

    /// Channels that reach nobody, each reported once.
    fn complaints(&self) -> Vec<String> {
        self.alerts.complaints.take().iter().map(|text| format!("{BELOW}{}", one_line(text))).collect()
    }
}

fn words_line(words: &str) -> String {
    format!("{BELOW}its last words: {}", one_line(words))
}

/// The id and title of the task that an event is about.
fn task_of(picture: &Picture, event: &StoredEvent) -> String {
    let task = event.task.as_deref().and_then(|id| picture.task(id));
    task.map_or_else(String::new, |task| format!("{} {}", task.id, task.title))
}

/// Which attempt at its task a replacement is.
fn replacement_number(picture: &Picture, event: &StoredEvent) -> Option<u32> {
    let Body::Attempt(AttemptEvent::Redispatched { .. }) = story::body(event)? else { return None };
    let (task, epoch) = (&picture.task(event.task.as_deref()?)?.id, event.epoch?);
    let attempt = picture.attempts_of(task).find(|row| row.epoch.0 == epoch)?.attempt;
    Some(picture.number_of(task, attempt)).filter(|number| *number > 0)
}

/// What the agent of an attempt printed before it failed.
fn output_of(picture: &Picture, attempt: AttemptId) -> Vec<&str> {
    let output = picture.outputs.values().find(|output| output.attempt == attempt);
    output.into_iter().flat_map(TaskOutput::shown).collect()
}

/// Whether an event rings the bell.
fn rings(alerts: &Channels, kind: &str) -> bool {
    alerts.bell
        && match kind {
            ALERT => alerts.tells_here(Kind::NeedsYou),
            END => alerts.tells_here(Kind::Finished),
            _ => false,
        }
}

/// Which agents run, for how long, and what is waited for.
fn at_work(picture: &Picture) -> String {
    let running: Vec<_> = picture.attempts.iter().filter(|attempt| attempt.ended_at.is_none()).collect();
    let named = running.iter().take(NAMED_AT_WORK).map(|attempt| {
        let task = attempt.task.as_ref().map_or(attempt.name.as_str(), |task| task.as_str());
        format!("{task} for {}", elapsed(picture.now.since_ms(attempt.started_at)))
    });
    let mut words: Vec<String> = named.collect();
    if running.len() > NAMED_AT_WORK {
        words.push(format!("{} more", running.len() - NAMED_AT_WORK));
    }
    let work = if words.is_empty() { "no agent running".to_owned() } else { format!("running: {}", words.join(", ")) };
    let asks = match picture.open_questions().count() {
        0 => String::new(),
        many => format!("; {many} waiting for an answer: rekindle questions"),
    };
    let wait = picture.run.waits.first().map(|wait| format!("; {}", crate::waits::waiting(wait, picture.now)));
    format!("{work}{asks}{}", wait.unwrap_or_default())
}

/// What a person can do about an alert, one line each and never truncated, because they are to be typed.
fn choices(event: &StoredEvent) -> Vec<String> {
    if event.kind != ALERT {
        return Vec::new();
    }
    let choices = story::body(event).map(|body| story::evidence(&body)).unwrap_or_default();
    choices.iter().map(|choice| format!("{BELOW}{}", one_line(choice))).collect()
}

/// Whether an alert repeats what the line before it has just said.
fn repeats(before: Option<&StoredEvent>, event: &StoredEvent) -> bool {
    let said = |before: &StoredEvent| {
        before.task == event.task
            && matches!(before.kind.as_str(), "workflow_failed" | "question_asked" | "split_suggested")
    };
    event.kind == ALERT && before.is_some_and(said)
}

/// Whether something between the run and a person is shown.
fn by_person(fact: &PersonEvent) -> bool {
    matches!(
        fact,
        PersonEvent::QuestionAsked { .. }
            | PersonEvent::QuestionAnswered { .. }
            | PersonEvent::PhoneOrder { .. }
            | PersonEvent::NoteRecorded { .. }
            | PersonEvent::PersonAlerted { .. }
            | PersonEvent::Told { given_back: false, .. }
            | PersonEvent::TellDelivered { .. }
            | PersonEvent::Attached { .. }
            | PersonEvent::Detached { .. }
    )
}

/// The same for events of the machine, the allowance and budgets.
fn of_machine(fact: &MachineEvent) -> bool {
    use MachineEvent as M;
    match fact {
        M::Preflight(seen) => seen.is_notable(),
        M::HealthChecked(seen) => seen.results.iter().any(|check| !check.passed),
        M::SetupFailed { .. } | M::StartsHeld(_) | M::StartsReleased {} | M::BreakerOpened { .. } => true,
        M::BudgetNotice(_) | M::BudgetReached(_) | M::BudgetAnswered(_) => true,
        M::QuietBegan { .. } | M::QuietEnded {} => true,
        _ => false,
    }
}

/// Whether an event has a line of its own in `run`; `events` and `why` show all of them. The ends of attempts are in `ends`.
fn matters(event: &StoredEvent) -> bool {
    let Some(body) = story::body(event) else { return false };
    match body {
        Body::Attempt(AttemptEvent::Dispatched { resumed, .. }) => !resumed,
        Body::Person(fact) => by_person(&fact),
        Body::Task(TaskEvent::ChecksFinished { passed, .. }) => !passed,
        Body::Run(RunEvent::TeamChecked(team)) => team.working + team.idle + team.unresponsive > 0,
        Body::Machine(fact) => of_machine(&fact),
        Body::Attempt(AttemptEvent::Redispatched { .. })
        | Body::Task(
            TaskEvent::TaskCompleted { .. }
            | TaskEvent::TaskEdited(_)
            | TaskEvent::TaskFailReported { .. }
            | TaskEvent::TaskSkipped { .. }
            | TaskEvent::TaskReopened { .. },
        )
        | Body::Task(TaskEvent::WorkflowFailed { .. })
        | Body::Attempt(AttemptEvent::AgentAdopted { .. })
        | Body::Run(RunEvent::CoordinatorRecovered(_))
        | Body::Run(
            RunEvent::SessionPause(_)
            | RunEvent::SessionResume(_)
            | RunEvent::PlanChanged { .. }
            | RunEvent::PlanReloaded(_),
        )
        | Body::Session(
            SessionEvent::AgentCompacted(_)
            | SessionEvent::AgentStalled(_)
            | SessionEvent::CompactionStart { .. }
            | SessionEvent::CompactionComplete(_)
            | SessionEvent::AgentFailed { .. },
        )
        | Body::Gate(GateEvent::GateClosed(_) | GateEvent::GateWidened { .. } | GateEvent::GateOpened { .. })
        | Body::Review(
            ReviewEvent::TaskHandedOn(_)
            | ReviewEvent::VerdictGiven(_)
            | ReviewEvent::TaskRework(_)
            | ReviewEvent::CriticBypassed {}
            | ReviewEvent::ReviewAuditDisagreement(_)
            | ReviewEvent::EnvironmentDisagreement(_),
        )
        | Body::Task(TaskEvent::TaskAdded(_) | TaskEvent::SplitSuggested { .. })
        | Body::Review(ReviewEvent::MergeConflicted { .. })
        | Body::Run(RunEvent::BranchMade(_))
        | Body::Session(SessionEvent::StatusAsked { .. } | SessionEvent::StatusAnswered { .. })
        | Body::Task(TaskEvent::TaskAssigned { .. })
        | Body::Run(RunEvent::WaveStarted { .. }) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rekindle_engine::alert::Finished;

    use super::*;
    use crate::picture::sample::{Script, attempt, question, task};

    #[test]
    fn the_bell_rings_for_what_was_chosen() {
        let bell = Channels { bell: true, ..Channels::default() };
        assert!(rings(&bell, ALERT) && rings(&bell, END) && !rings(&bell, "task_completed"));
        assert!(!rings(&Channels { finished: Finished::Off, ..bell.clone() }, END));
        assert!(!rings(&Channels { needs_you: false, ..bell.clone() }, ALERT));
        assert!(!rings(&Channels { bell: false, ..bell }, ALERT));
    }

    #[test]
    fn a_sign_of_life_says_who_is_at_work_and_what_is_waited_for() {
        let mut picture = Script::default().picture(vec![task("a", "", "in_progress", &[])], 600_000);
        assert_eq!(at_work(&picture), "no agent running");
        picture.attempts = (0..6).map(|at| attempt(at, "dev-a", &["a"], "running")).collect();
        picture.questions.push(question(1, "a", "Which?", &[]));
        let words = "running: a for 10m00s, a for 10m00s, a for 10m00s, a for 10m00s, 2 more; 1 waiting for an answer: rekindle questions";
        assert_eq!(at_work(&picture), words);
    }
}
