//! The loop that carries out decisions: gather what happened, decide, make it durable, act, answer.
//!
//! It only routes. What to do is decided in the core; how it is done is left to the world; what must be kept is left to the
//! store. Nothing acts before its events are durable, and after a crash everything outstanding is derived from the state.

mod act;
mod answer;
mod commit;
mod gather;
mod load;
mod phones;
mod recall;
mod rows;
mod spools;
#[cfg(test)]
mod tests;
mod understand;
mod words;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use rekindle_core::budget::Calendar;
use rekindle_core::decide::{self, Reply, Standstill, Step};
use rekindle_core::effect::Effect;
use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_core::input::{Input, MergeOutcome, Noted, Order, PreflightTried, Refused};
use rekindle_core::limits::Limits;
use rekindle_core::role::Role;
use rekindle_core::state::{RunPhase, State};
use rekindle_core::time::Time;
use rekindle_core::view;

use crate::control::Answerer;
use crate::control::wire::Response;
use crate::redact::Redactor;
use crate::refusal;
use crate::store::{self, Store};
use crate::token::Tokens;
use crate::world::World;

pub use crate::world::Message;
pub use answer::HIDDEN_TOKEN;
pub use commit::encode;
pub use load::{LoadError, decode, load, stored_head};
pub use phones::open_questions;
pub use rows::{all_rows, rows_from_log, touched_rows};

/// A suspension or a wall clock step that is worth an event: two readings of one clock differ by more than a millisecond.
const CLOCK_STEP_MS: u64 = 1_000;

/// What the driver needs to know besides the plan and the limits.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Lines of the previous agent's output in a brief.
    pub log_context_lines: usize,
    /// Largest prompt.
    pub brief_budget_bytes: usize,
    pub workspace: String,
    /// Where `build-status--{slug}.md` is.
    pub build_status_path: String,
    /// The user's own prompts, by role.
    pub prompts: BTreeMap<Role, String>,
}

/// Why the driver cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store refused; nothing that was not durable has been acted on.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Decided and not yet durable.
#[derive(Default)]
struct Pending {
    batch: store::Batch,
    effects: Vec<Effect>,
    answers: Vec<(Answerer, Response)>,
    touched: rekindle_core::view::Touched,
    kept: Vec<AttemptId>,
}

impl Pending {
    fn is_empty(&self) -> bool {
        let batch = &self.batch;
        batch.is_empty() && self.effects.is_empty() && self.answers.is_empty() && self.kept.is_empty()
    }
}

/// The next time at which anything changes, and what it was derived from besides the state.
struct Timers {
    decisions: u64,
    ending: BTreeSet<AttemptId>,
    next: Option<Time>,
}

/// A caller that waits for more than durability.
enum Waiter {
    Claim { task: TaskId, epoch: Epoch, reply: Answerer },
    Answer { question: rekindle_core::ids::QuestionId, reply: Answerer },
}

pub struct Driver<W: World> {
    store: Arc<dyn Store>,
    world: W,
    state: State,
    last_seq: u64,
    /// The time of the last decision: what was due then has been handled.
    decided_at: Time,
    /// The number of decisions so far: anything derived from the state alone stays valid while this is unchanged.
    decisions: u64,
    timers: Option<Timers>,
    pending: Pending,
    /// Messages that were not yet handled, because the store refused in the middle.
    waiting: VecDeque<Message>,
    spools: BTreeMap<AttemptId, spools::Spools>,
    waiters: Vec<Waiter>,
    more_to_read: BTreeSet<AttemptId>,
    /// Attempts whose process is gone and whose output is not yet read to its end.
    ending: BTreeSet<AttemptId>,
    /// Attempts that an earlier coordinator may have started, and when they are checked again: they are not started until
    /// that is known.
    unknown: BTreeMap<AttemptId, gather::NextLook>,
    /// Attempts whose output could not be read, and when that is retried.
    unreadable: BTreeMap<AttemptId, spools::Unreadable>,
    /// Merges in progress: none is started twice at a time.
    merging: BTreeSet<(TaskId, Epoch)>,
    /// Claims that the machine has no room to prove, and since when.
    unprovable: BTreeMap<(TaskId, Epoch), Time>,
    heard_from: BTreeMap<AttemptId, Time>,
    /// Bytes that rekindle itself adds to the prompts of attempts that are being started.
    own_bytes: BTreeMap<AttemptId, u64>,
    reminders: i64,
    /// The number of compactions of an attempt that notices were given for.
    noticed: BTreeMap<AttemptId, u32>,
    /// Effects are not performed now; they are derived as outstanding after the state is taken over.
    taking_over: bool,
    events_since_snapshot: usize,
    /// Bytes of the newest state that this driver stored.
    snapshot_bytes: usize,
    redactor: Redactor,
    tokens: Tokens,
    settings: Settings,
}

impl<W: World> Driver<W> {
    /// A driver over a loaded state. Nothing has happened yet: `start` takes the state over.
    pub fn new(
        store: Arc<dyn Store>,
        world: W,
        (state, last_seq): (State, u64),
        tokens: Tokens,
        redactor: Redactor,
        settings: Settings,
    ) -> Self {
        Self {
            store,
            world,
            state,
            last_seq,
            decided_at: Time::default(),
            decisions: 0,
            timers: None,
            pending: Pending::default(),
            waiting: VecDeque::new(),
            spools: BTreeMap::new(),
            waiters: Vec::new(),
            more_to_read: BTreeSet::new(),
            ending: BTreeSet::new(),
            unknown: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            merging: BTreeSet::new(),
            unprovable: BTreeMap::new(),
            heard_from: BTreeMap::new(),
            own_bytes: BTreeMap::new(),
            reminders: 0,
            noticed: BTreeMap::new(),
            taking_over: false,
            events_since_snapshot: 0,
            snapshot_bytes: 0,
            redactor,
            tokens,
            settings,
        }
    }

    /// The state as decided so far.
    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn world(&mut self) -> &mut W {
        &mut self.world
    }

    /// Records what must come before the state is taken over: above all a new run.
    ///
    /// `start` reads the clocks: an agent that becomes due because of a changed clock must not be started before the fate of
    /// every other agent is known.
    pub fn request_run(&mut self, input: Input) -> Result<Reply, Error> {
        let reply = self.take(input);
        self.commit()?;
        Ok(reply)
    }

    /// Takes over the state: finds out what happened to every attempt, settles it, and does what is outstanding.
    pub fn start(&mut self, pid: u32, limits: Limits, boot_id: String, boottime_ms: u64) -> Result<(), Error> {
        // Events of earlier coordinators count: otherwise many short-lived coordinators would never store a state, and every
        // start would replay all of the events.
        let stored = load::stored_state(&*self.store)?;
        self.events_since_snapshot = usize::try_from(self.last_seq.saturating_sub(stored)).unwrap_or(usize::MAX);
        self.rebuild_rows()?;
        let found = self.probe_all();
        self.noticed = self
            .state
            .attempts
            .iter()
            .filter(|(_, known)| known.is_live())
            .map(|(id, known)| (*id, known.cli_session.compactions))
            .collect();
        let counts_days = !limits.budget.day.is_none();
        let input = Input::CoordinatorStarted {
            pid,
            limits: Box::new(limits),
            boot_id,
            boottime_ms,
            found: found.clone(),
            missing: self.missing_artifacts(),
        };
        // Nothing is started for another day, or in quiet hours, before it is known what became of every attempt.
        if let Some(seen) = self.calendar(counts_days) {
            let step = decide::record(&mut self.state, self.world.now(), Input::CalendarSeen(seen));
            self.put_down(step);
        }
        // What is decided meanwhile is outstanding as well: it is derived from the state with everything else, and done once.
        self.taking_over = true;
        self.take(input);
        self.look_at_clocks();
        self.commit()?;
        for (attempt, what) in found {
            self.settle_found(attempt, &what)?;
        }
        self.commit()?;
        self.taking_over = false;
        for effect in decide::outstanding(&self.state) {
            self.act(effect);
        }
        self.ask_phones();
        self.commit()
    }

    /// Handles what happened, in order, and makes it durable in one transaction. Fails if the store refuses. Nothing is lost
    /// by that: if a retry makes sense, the same driver continues with what is left when it is called again, with more
    /// messages or with none.
    pub fn handle(&mut self, messages: impl IntoIterator<Item = Message>) -> Result<(), Error> {
        self.look_at_clocks();
        self.waiting.extend(messages);
        while let Some(message) = self.waiting.pop_front() {
            let looks_again = message.looks_again();
            if let Err(error) = self.receive(message) {
                if let Some(message) = looks_again {
                    self.waiting.push_front(message);
                }
                return Err(error);
            }
        }
        self.commit()
    }

    /// Tells the core when the machine was suspended or its wall clock was set, before any limit takes effect because of it.
    fn look_at_clocks(&mut self) {
        let Some(seen) = self.world.clocks().filter(|_| self.state.run.is_some()) else { return };
        let known = &self.state.clocks;
        let slept_ms = seen.slept_since(known);
        let wall_ms = seen.wall_ahead_ms.abs_diff(known.wall_ahead_ms);
        let moved = seen.boot_id != known.boot_id || slept_ms >= CLOCK_STEP_MS || wall_ms >= CLOCK_STEP_MS;
        let counts_days = !self.state.limits.budget.day.is_none();
        match (moved, self.calendar(counts_days)) {
            (true, None) => self.take(Input::ClockSeen(seen)),
            // Whoever slept over midnight, or into the next quiet hours, starts nothing by the old day.
            (true, Some(calendar)) => self.take(Input::MomentSeen { clock: seen, calendar }),
            (false, Some(calendar)) => self.take(Input::CalendarSeen(calendar)),
            (false, None) => return,
        };
    }

    /// Tells the core of another day and of quiet hours. Days are counted from the first coordinator on that has a budget for them.
    fn calendar(&mut self, counts_days: bool) -> Option<Calendar> {
        self.state.run.as_ref()?;
        let mut seen = self.world.calendar()?;
        let known = &self.state.budget;
        if !counts_days && known.date.is_empty() {
            seen.date.clear();
        }
        (seen.date != known.date || seen.quiet_until != known.quiet_until).then_some(seen)
    }

    /// Fires due timers, except limits of an attempt that has ended and whose output is still being read.
    pub fn pass_time(&mut self) -> Result<(), Error> {
        self.look_at_clocks();
        self.take(Input::TimePassedBut(self.ending.clone()));
        self.commit()
    }

    /// The earliest time at which `pass_time` would change anything; it may be in the past.
    pub fn next_deadline(&mut self) -> Option<Time> {
        let same = |known: &&Timers| known.decisions == self.decisions && known.ending == self.ending;
        let next = match self.timers.as_ref().filter(same) {
            Some(known) => known.next,
            None => {
                let next = decide::next_deadline_but(&self.state, self.decided_at, &self.ending);
                self.timers = Some(Timers { decisions: self.decisions, ending: self.ending.clone(), next });
                next
            }
        };
        next.into_iter().chain(self.reads_again_at()).chain(self.looks_again_at()).min()
    }

    /// Whether the run is over or paused, so that the coordinator can leave.
    pub fn is_over(&self) -> bool {
        self.state.run.as_ref().is_none_or(|run| matches!(run.phase, RunPhase::Finished(_) | RunPhase::Paused(_)))
    }

    /// The sequence number of the newest durable event.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// When each agent last spoke through the control socket.
    pub fn heard_from(&self) -> &BTreeMap<AttemptId, Time> {
        &self.heard_from
    }

    pub fn standstill(&self) -> Standstill {
        decide::standstill(&self.state)
    }

    fn receive(&mut self, message: Message) -> Result<(), Error> {
        match message {
            Message::Started { attempt, pid, shim_pid } => {
                let own_bytes = self.own_bytes.remove(&attempt).unwrap_or(0);
                self.take(Input::AttemptStarted { attempt, pid, shim_pid, own_bytes });
            }
            Message::NotStarted { attempt, reason } => {
                self.take(Input::AttemptNotStarted { attempt, reason });
                self.forget(attempt);
            }
            Message::Refused { what, refusal } => self.refused(what, refusal),
            Message::Grew { attempt } => self.read_on(attempt)?,
            Message::Ended { attempt } => self.attempt_ended(attempt)?,
            Message::ChecksDone { task, epoch, evidence } => {
                let mut evidence = self.redact_evidence(evidence);
                self.keep_outputs(evidence.all_mut());
                self.take(Input::ChecksFinished { task, epoch, evidence });
            }
            Message::BaselineSeen { attempt, task, baseline } => {
                self.take(Input::BaselineSeen { attempt, task, baseline });
            }
            Message::Merged { task, epoch, outcome } => self.merged(task, epoch, outcome),
            Message::SetUp { task, seen } => {
                let seen = seen.with_text(|text| self.clean(text));
                self.take(Input::SetUp { task, seen });
            }
            Message::SetupFailed { attempt, task, reason } => self.set_up_failed(attempt, task, &reason),
            Message::ChecksNotSetUp { task, epoch, reason } => self.checks_not_set_up(task, epoch, &reason),
            Message::Preflight(tried) => {
                let results = self.redact_checks(tried.results);
                self.take(Input::Preflight(PreflightTried { results, ..tried }));
            }
            Message::Noted(noted) => {
                let detail = self.clean(&noted.detail);
                self.take(Input::Noted(Noted { detail, ..noted }));
            }
            Message::HealthChecked { results } => {
                let mut results = self.redact_checks(results);
                self.keep_outputs(results.iter_mut());
                self.take(Input::HealthChecked { results });
            }
            Message::UsageSeen(left) => {
                self.take(Input::UsageSeen(left));
            }
            Message::Silent { attempt, quiet_ms, evidence } => {
                self.take(Input::AttemptSilent { attempt, quiet_ms, evidence });
            }
            Message::MessageTaken { attempt, number } => {
                self.take(Input::MessageTaken { attempt, number });
            }
            Message::PersonLeft { task, by, changed } => {
                let changed = changed.iter().map(|line| self.clean(line)).collect();
                self.take(Input::PersonLeft { task, by, changed });
            }
            Message::Called(called) => self.called(called),
            Message::Pause(reason) => {
                self.take(Input::Ordered(Order::Pause(reason)));
            }
            Message::Pressure { short } => {
                self.take(Input::PressureSeen { short });
            }
            // Nothing more is decided on this store: agents continue, and the next coordinator repairs it first.
            Message::StoreDamaged { problem } => return Err(store::Error::Corrupt(problem).into()),
            Message::StatusAsked { reply } => reply(view::status_line(&self.state)),
            Message::PlanFileChanged { hash } => {
                self.take(Input::PlanFileChanged { hash });
            }
        }
        Ok(())
    }

    fn set_up_failed(&mut self, attempt: AttemptId, task: TaskId, reason: &str) {
        self.forget(attempt);
        let reason = self.clean(reason);
        self.take(Input::SetupFailed { attempt, task, reason });
    }

    fn checks_not_set_up(&mut self, task: TaskId, epoch: Epoch, reason: &str) {
        let now = self.world.now();
        self.unprovable.entry((task.clone(), epoch)).or_insert(now);
        // It is quoted with what the set-up printed.
        let reason = self.clean(reason);
        self.take(Input::ChecksNotSetUp { task, epoch, reason });
    }

    fn merged(&mut self, task: TaskId, epoch: Epoch, outcome: MergeOutcome) {
        self.merging.remove(&(task.clone(), epoch));
        if let MergeOutcome::Failed { reason } = &outcome
            && let Some(refusal) = refusal::in_text(reason, Path::new(&self.settings.workspace))
        {
            return self.refused(Refused::Merge(task, epoch), refusal);
        }
        self.take(Input::WorkMerged { task, epoch, outcome });
    }

    /// Decides on an input and keeps what follows until it is durable.
    fn take(&mut self, input: Input) -> Reply {
        let now = self.world.now();
        self.decided_at = now;
        self.decisions += 1;
        let step = decide::decide(&mut self.state, now, input);
        self.put_down(step)
    }

    fn put_down(&mut self, step: Step) -> Reply {
        for event in &step.events {
            self.pending.touched.add(&self.state, event);
            self.pending.batch.events.push(commit::encode(event));
        }
        self.put_rows_before_they_go();
        self.pending.effects.extend(step.effects);
        step.reply
    }
}
