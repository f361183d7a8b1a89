//! The loop of a coordinator without its waiting: a turn takes what has arrived, lets the driver handle it, does what is due
//! by the clock, and says what to wait for.
//!
//! Threads, channels and sleeping stay with the caller: the shipped program really waits (`coordinator`), the simulator
//! advances its own time. A store that refuses for a temporary reason ends a turn early; the next one continues where it
//! stopped.

use std::collections::BTreeSet;
use std::sync::Arc;

use rekindle_core::decide::Reply;
use rekindle_core::event::{Outcome, WorkBranch};
use rekindle_core::ids::AttemptId;
use rekindle_core::input::Input;
use rekindle_core::limits::Limits;
use rekindle_core::refusal::Refusal;
use rekindle_core::state::{RunPhase, State};
use rekindle_core::time::Time;

use super::Notice;
use crate::driver::{Driver, Error, Message, stored_head};
use crate::pulse::Pulse;
use crate::refusal;
use crate::store::{self, SpoolGap, Store};
use crate::world::World;

/// Messages handled in one transaction.
const MESSAGES_PER_COMMIT: usize = 256;

/// Longest wait between two turns: backups, the machine's room and the plan's file are checked this often.
const HOUSEKEEPING_MS: u64 = 5_000;

/// How long to wait before a retry when the store refused for a temporary reason (no space, a lock).
pub const STORE_RETRY_MS: u64 = 500;

/// What a coordinator looks after besides its agents.
pub trait House {
    /// What the machine lacks, if anything.
    fn short(&mut self) -> Option<Refusal>;
    /// The current hash of the plan's file; `None` if it cannot be read.
    fn plan_file(&mut self) -> Option<String>;
    /// When the files for people should be written next, if something has changed.
    fn files_due(&mut self, seq: u64, now: Time) -> Option<Time>;
    /// Writes them. Nothing depends on them: a failed write is retried with the next change.
    fn write_files(&mut self, state: &State, seq: u64, now: Time);
    /// Gives a person a notice that the log cannot hold.
    fn tell(&mut self, notice: &Notice);
}

/// What has arrived since the last turn.
#[derive(Default)]
pub struct Arrived {
    grew: BTreeSet<AttemptId>,
    others: Vec<Message>,
}

impl Arrived {
    /// Adds a message. Output that grew twice is read once.
    pub fn push(&mut self, message: Message) {
        match message {
            Message::Grew { attempt } => {
                self.grew.insert(attempt);
            }
            other => self.others.push(other),
        }
    }

    /// Whether this is the most that one turn takes.
    pub fn is_full(&self) -> bool {
        self.grew.len() + self.others.len() >= MESSAGES_PER_COMMIT
    }

    pub fn is_empty(&self) -> bool {
        self.grew.is_empty() && self.others.is_empty()
    }

    pub fn has_output(&self) -> bool {
        !self.grew.is_empty()
    }

    /// Whether there is output and nothing else: nobody waits for a decision on it.
    pub fn is_output_alone(&self) -> bool {
        self.has_output() && self.others.is_empty()
    }

    /// The messages in the order in which they are handled: what an agent printed before it reported or ended is decided
    /// first.
    fn in_order(self, unread: Vec<AttemptId>) -> impl Iterator<Item = Message> {
        let mut grew = self.grew;
        grew.extend(unread);
        grew.into_iter().map(|attempt| Message::Grew { attempt }).chain(self.others)
    }
}

/// What comes after a turn.
#[derive(Debug)]
pub enum Next {
    /// Another one, as soon as something arrives, and at this time at the latest.
    Wait(Time),
    /// The store refuses for a temporary reason: another turn after `STORE_RETRY_MS`. Decisions are kept, and none of them
    /// was acted on or answered.
    Unwritten(store::Error),
    /// None: the run is over or paused.
    Over(RunPhase),
}

/// What a coordinator needs to take over.
pub struct Start {
    pub pid: u32,
    pub limits: Limits,
    pub boot_id: String,
    /// How long ago that boot was.
    pub boottime_ms: u64,
    /// Parts of spools whose lines a repaired store has lost.
    pub gaps: Vec<SpoolGap>,
    /// The store was repaired or lost something, so every spool is inspected.
    pub repaired: bool,
}

/// The rest of a turn. A store that refuses ends a turn in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Limits,
    Pulse,
    Storms,
    House,
    PlanFile,
    End,
}

/// The loop over a world and a house.
pub struct Loop<W: World, H: House> {
    driver: Driver<W>,
    house: H,
    pulse: Pulse,
    store: Arc<dyn Store>,
    part: Part,
    /// Kept during the wait: a start that has become due is no longer ahead when the wait is over.
    deadline: Option<Time>,
    /// A limit is due, and the messages that had arrived by then have been requested.
    last_words: bool,
    housekeeping_at: Time,
    /// A person was told that the system has no file watch left.
    polls: bool,
}

impl<W: World, H: House> Loop<W, H> {
    /// A loop over a driver that has not taken over yet.
    pub fn new(mut driver: Driver<W>, store: Arc<dyn Store>, house: H) -> Self {
        let housekeeping_at = driver.world().now();
        Self {
            driver,
            house,
            pulse: Pulse::new(),
            store,
            part: Part::Limits,
            deadline: None,
            last_words: false,
            housekeeping_at,
            polls: false,
        }
    }

    pub fn driver(&self) -> &Driver<W> {
        &self.driver
    }

    /// What is looked after besides.
    pub fn house(&mut self) -> &mut H {
        &mut self.house
    }

    /// Records what a coordinator starts with: a new run, the highest attempt that the log has lost, the branch that was
    /// created.
    pub fn begin(
        &mut self,
        new_run: Option<Input>,
        lost: Option<AttemptId>,
        made: Option<WorkBranch>,
    ) -> Result<Reply, Error> {
        if let Some(input) = new_run {
            let reply = self.driver.request_run(input)?;
            if matches!(reply, Reply::Refused { .. }) {
                return Ok(reply);
            }
        }
        if let Some(highest) = lost {
            self.driver.request_run(Input::AttemptsLost { highest })?;
        }
        if let Some(made) = made {
            self.driver.request_run(Input::BranchMade(made))?;
        }
        Ok(Reply::Accepted)
    }

    /// Takes over the state, after checking the machine and the spools of attempts that have ended.
    pub fn start(&mut self, start: Start) -> Result<Next, Error> {
        let short = self.house.short();
        // A run that was paused for lack of room and does not wait would be paused again before the next check.
        if short.is_some() || self.driver.is_over() && self.held_by_look() {
            self.driver.request_run(Input::PressureSeen { short })?;
        }
        self.driver.reindex(&start.gaps)?;
        self.driver.index_ended(start.repaired)?;
        self.driver.start(start.pid, start.limits, start.boot_id, start.boottime_ms)?;
        Ok(self.next())
    }

    /// Handles what has arrived, then what is due. After the store refused, it continues with what is left. Fails if the
    /// store refuses for a permanent reason. Agents continue; the next coordinator adopts them.
    pub fn turn(&mut self, arrived: Arrived) -> Result<Next, Error> {
        let unread = self.driver.unread();
        let mut outcome = self.driver.handle(arrived.in_order(unread));
        loop {
            match outcome {
                Err(Error::Store(error)) if error.may_pass() => {
                    return Ok(Next::Unwritten(error));
                }
                other => other?,
            }
            let now = self.driver.world().now();
            outcome = match self.part {
                Part::Limits if self.limits_are_due(now) => {
                    // A report that waited behind a long commit was in time: it is handled before a limit takes effect.
                    if !std::mem::replace(&mut self.last_words, true) {
                        return Ok(Next::Wait(now));
                    }
                    self.part = Part::Pulse;
                    self.driver.pass_time()
                }
                Part::Limits => {
                    self.part = Part::Pulse;
                    Ok(())
                }
                Part::Pulse => self.take_pulse(now),
                Part::Storms => {
                    self.part = Part::House;
                    self.driver.break_storms()
                }
                Part::House => self.keep_house(now),
                Part::PlanFile => self.look_at_plan(),
                Part::End => {
                    self.part = Part::Limits;
                    self.last_words = false;
                    return Ok(self.next());
                }
            };
        }
    }

    /// Ends what was started, and writes the files for people a last time.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.driver.world().finish();
        if self.driver.state().run.as_ref().is_some_and(|run| run.phase == RunPhase::Finished(Outcome::Complete)) {
            self.driver.world().tidy();
        }
        let now = self.driver.world().now();
        let seq = stored_head(&*self.store)?;
        self.house.write_files(self.driver.state(), seq, now);
        Ok(())
    }

    fn next(&mut self) -> Next {
        if self.driver.is_over() {
            return Next::Over(self.driver.state().run.as_ref().map_or(RunPhase::Created, |run| run.phase));
        }
        let now = self.driver.world().now();
        self.deadline = self.driver.next_deadline();
        if !self.driver.unread().is_empty() {
            return Next::Wait(now);
        }
        let files = self.house.files_due(self.driver.last_seq(), now);
        let due = [self.deadline, files, self.pulse.due(self.driver.state())];
        Next::Wait(due.into_iter().flatten().fold(self.housekeeping_at, Time::min))
    }

    fn limits_are_due(&self, now: Time) -> bool {
        self.deadline.is_some_and(|due| due <= now) && !self.driver.is_catching_up()
    }

    /// Whether starts are held because of a check of the machine. A hold that a refusal caused is ended by a retry, not by a
    /// check.
    fn held_by_look(&self) -> bool {
        let state = self.driver.state();
        state.held.is_some() && state.hold.until.is_none()
    }

    fn take_pulse(&mut self, now: Time) -> Result<(), Error> {
        if self.pulse.due(self.driver.state()).is_none_or(|due| due > now) {
            self.part = Part::House;
            return Ok(());
        }
        self.part = Part::Storms;
        let silent = self.pulse.take(now, &mut self.driver);
        self.driver.handle(silent)
    }

    fn keep_house(&mut self, now: Time) -> Result<(), Error> {
        let seq = self.driver.last_seq();
        if self.house.files_due(seq, now).is_some_and(|due| due <= now) {
            self.house.write_files(self.driver.state(), seq, now);
        }
        if now < self.housekeeping_at {
            self.part = Part::End;
            return Ok(());
        }
        self.part = Part::PlanFile;
        self.housekeeping_at = now.plus_ms(HOUSEKEEPING_MS);
        // A backup that fails (no space) must not stop the run; the log itself still refuses to lie.
        let _no_backup = self.store.backup_if_due(now.0);
        let polls = self.driver.world().polls();
        if std::mem::replace(&mut self.polls, polls) != polls {
            self.house.tell(&if polls { Notice::Polling(refusal::no_watch()) } else { Notice::Watching });
        }
        let short = self.house.short();
        if short.is_some() == self.held_by_look() {
            return Ok(());
        }
        self.driver.handle([Message::Pressure { short }])
    }

    fn look_at_plan(&mut self) -> Result<(), Error> {
        self.part = Part::End;
        let pinned = self.driver.state().run.as_ref().map(|run| &run.plan.hash);
        match (pinned, self.house.plan_file()) {
            (Some(pinned), Some(hash)) if hash != *pinned => self.driver.handle([Message::PlanFileChanged { hash }]),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
