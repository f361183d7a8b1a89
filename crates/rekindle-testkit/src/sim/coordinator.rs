//! The life of coordinators on the simulated stage: started over what is durable, woken, killed in the middle of things, replaced.
//!
//! The driver in here is the product's own; this file stands in for the process around it, as `coordinator.rs` of the engine
//! does on a real machine.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use rekindle_core::decide::{self, Standstill};
use rekindle_core::event::PauseReason;
use rekindle_core::ids::{AttemptId, RunId};
use rekindle_core::input::Input;
use rekindle_core::limits::Limits;
use rekindle_core::plan::Plan;
use rekindle_core::state::{AttemptPhase, RunPhase, State};
use rekindle_engine::driver::{self, Driver, Message, Settings};
use rekindle_engine::offline;
use rekindle_engine::redact::Redactor;
use rekindle_engine::store::{self, Store};

use super::checkers::Invariant;
use super::faults::Killed;
use super::plant::Plant;
use super::refusals::refusal;
use super::store::SimStore;
use super::story::{MINUTE, SECOND};
use super::world::{Happening, Sim, SimWorld};

/// Messages handled in one transaction, as the engine's coordinator does.
const MESSAGES_PER_COMMIT: usize = 256;

/// How long a coordinator waits before it tries again to commit.
const STORE_RETRY_MS: u64 = 500;

/// Steps between two looks at all rows: comparing every row after every step would cost more than the story.
const ROWS_EVERY: u64 = 16;

/// Shortest time between two looks for silent agents: a story that waits for days must not be made of looks.
const LOOK_MIN_MS: u64 = 5 * SECOND;

/// The stage: the coordinator that lives, if one does.
pub struct Stage {
    sim: Rc<RefCell<Sim>>,
    plant: Option<Plant>,
    driver: Option<Driver<SimWorld>>,
    store: Option<Arc<SimStore>>,
    /// The store is full: nothing is handled before a commit goes through.
    blocked: bool,
    ticks_at_ms: Option<u64>,
    steps: u64,
    reopened: bool,
    /// The story is told.
    pub over: bool,
}

impl Stage {
    /// An empty stage.
    pub fn new(sim: Rc<RefCell<Sim>>, plant: Option<Plant>) -> Self {
        Self {
            sim,
            plant,
            driver: None,
            store: None,
            blocked: false,
            ticks_at_ms: None,
            steps: 0,
            reopened: false,
            over: false,
        }
    }

    /// Takes what concerns the coordinator itself.
    pub fn take(&mut self, happening: Happening) {
        match happening {
            Happening::CoordinatorStarts => self.start(),
            Happening::Wakes(_) => self.wake(),
            Happening::Ticks(_) => self.tick(),
            Happening::LooksForSilence(_) => self.look_for_silence(),
            Happening::CommitsAgain(_) => {
                self.blocked = false;
                self.act(|driver| driver.handle([]));
            }
            _ => {}
        }
    }

    /// A new coordinator loads what is durable and takes it over.
    fn start(&mut self) {
        let mut sim = self.sim.borrow_mut();
        if sim.coordinator.up {
            return;
        }
        sim.sync_checkers();
        let loaded = match driver::load(&*sim.durable) {
            Ok(loaded) => loaded,
            Err(error) => return sim.checkers.broken(Invariant::Replay, error.to_string()),
        };
        if loaded.0 != sim.checkers.replayed {
            return sim.checkers.broken(Invariant::Replay, "what is loaded is not what the log gives".to_owned());
        }
        let now = sim.queue.now_ms();
        sim.machine.start_clock(&loaded.0, now);
        sim.coordinator.number += 1;
        sim.coordinator.up = true;
        sim.coordinator.since_ms = now;
        sim.coordinator.taking_over = true;
        let number = sim.coordinator.number;
        sim.say(format_args!("COORDINATOR {number} starts"));
        let store = Arc::new(SimStore::new(Arc::clone(&sim.durable), self.plant));
        let as_store: Arc<dyn Store> = store.clone();
        let tokens = sim.tokens.clone();
        let healthy = sim.healthy();
        let looks_every = sim.looks_every_ms();
        sim.queue.after_ms(looks_every, Happening::LooksForSilence(number));
        drop(sim);
        let world = SimWorld::new(Rc::clone(&self.sim));
        let settings = Settings {
            log_context_lines: 20,
            brief_budget_bytes: 16 * 1024,
            prompts: std::collections::BTreeMap::new(),
            workspace: "/project".to_owned(),
            build_status_path: "/project/build-status--story.md".to_owned(),
        };
        let fresh = loaded.0.run.is_none();
        let redactor = redactor();
        self.driver = Some(Driver::new(as_store, world, loaded, tokens, redactor, settings));
        self.store = Some(store);
        self.blocked = false;
        self.ticks_at_ms = None;
        if fresh {
            self.request_run();
        }
        let short = self.sim.borrow().short.then(refusal);
        let by_look = |state: &State| state.held.is_some() && state.hold.until.is_none();
        let held = |driver: &Driver<SimWorld>| driver.is_over() && by_look(driver.state());
        if short.is_some() || self.driver.as_ref().is_some_and(held) {
            self.act_or_die(|driver| driver.handle([Message::Pressure { short }]));
        }
        self.take_over();
        if self.driver.is_some() {
            self.sim.borrow_mut().check_kept(&healthy);
        }
    }

    fn request_run(&mut self) {
        let input = Input::RunRequested {
            run: RunId::new("story").expect("a valid name"),
            plan: Box::new(self.sim.borrow().plan_for_driver()),
            plan_path: "story.md".to_owned(),
            branch: None,
        };
        self.act(|driver| driver.request_run(input).map(|_| ()));
    }

    fn take_over(&mut self) {
        let (pid, limits, boot_id, boottime_ms) = {
            let sim = self.sim.borrow();
            let boottime_ms = sim.machine.boottime_ms(sim.queue.now_ms());
            (100 + sim.coordinator.number, sim.limits_for_driver(), sim.machine.boot_id(), boottime_ms)
        };
        let retry = |driver: &mut Driver<SimWorld>| driver.start(pid, limits, boot_id, boottime_ms);
        self.act_or_die(retry);
        self.sim.borrow_mut().coordinator.taking_over = false;
    }

    /// Handles what has arrived: output first, as the engine's coordinator does.
    fn wake(&mut self) {
        if self.blocked {
            return;
        }
        let Some(driver) = &mut self.driver else { return };
        let unread: Vec<AttemptId> = driver.unread();
        let mut inbox = std::mem::take(&mut self.sim.borrow_mut().inbox);
        let later = inbox.split_off(inbox.len().min(MESSAGES_PER_COMMIT));
        let mut grew: BTreeSet<AttemptId> = unread.into_iter().collect();
        let mut others = Vec::new();
        for message in inbox {
            match message {
                Message::Grew { attempt } => {
                    grew.insert(attempt);
                }
                other => others.push(other),
            }
        }
        let messages: Vec<Message> = grew.into_iter().map(|attempt| Message::Grew { attempt }).chain(others).collect();
        for message in later {
            self.sim.borrow_mut().deliver(message);
        }
        self.act(|driver| driver.handle(messages));
    }

    fn tick(&mut self) {
        self.ticks_at_ms = None;
        if self.blocked {
            return;
        }
        if self.driver.as_mut().is_some_and(|driver| !driver.unread().is_empty()) {
            // Output that could not be read before is tried again before anything else is due.
            self.wake();
        }
        let due = self.driver.as_ref().and_then(Driver::next_deadline);
        let now = {
            let sim = self.sim.borrow();
            sim.machine.now(sim.queue.now_ms())
        };
        if due.is_some_and(|due| due <= now) {
            self.act(Driver::pass_time);
        } else {
            self.plan_tick();
        }
    }

    fn look_for_silence(&mut self) {
        let Some(driver) = &self.driver else { return };
        let state = driver.state();
        let running: Vec<(AttemptId, u64)> = state
            .live_attempts()
            .filter(|(_, found)| found.phase == AttemptPhase::Running && found.stop.is_none())
            .map(|(id, found)| (id, decide::silence_limit_ms(state, found)))
            .collect();
        let held = state.held.is_some() && state.hold.until.is_none();
        let mut sim = self.sim.borrow_mut();
        sim.look_at_machine(held);
        for (attempt, limit_ms) in running {
            let quiet_ms = sim.quiet_ms(attempt);
            if quiet_ms >= limit_ms {
                sim.deliver(Message::Silent { attempt, quiet_ms, evidence: "simulated".to_owned() });
            }
        }
        let (number, every) = (sim.coordinator.number, sim.looks_every_ms());
        sim.queue.after_ms(every, Happening::LooksForSilence(number));
        drop(sim);
        if !self.blocked {
            self.act(Driver::break_storms);
        }
    }

    /// Lets the driver do something; a store that refuses for a while blocks it, everything else that goes wrong is its death.
    fn act(&mut self, what: impl FnOnce(&mut Driver<SimWorld>) -> Result<(), driver::Error>) {
        match self.attempt(what) {
            None => {}
            Some(Err(driver::Error::Store(store::Error::Full(_) | store::Error::Busy(_) | store::Error::Io(_)))) => {
                self.block()
            }
            Some(result) => self.acted(result),
        }
    }

    /// As `act`, where the engine's coordinator does not try again.
    fn act_or_die(&mut self, what: impl FnOnce(&mut Driver<SimWorld>) -> Result<(), driver::Error>) {
        if let Some(result) = self.attempt(what) {
            self.acted(result);
        }
    }

    fn attempt(
        &mut self,
        what: impl FnOnce(&mut Driver<SimWorld>) -> Result<(), driver::Error>,
    ) -> Option<Result<(), driver::Error>> {
        let driver = self.driver.as_mut()?;
        match catch_unwind(AssertUnwindSafe(|| what(driver))) {
            Ok(result) => Some(result),
            Err(unwound) if unwound.is::<Killed>() => {
                self.coordinator_dies("killed in the middle");
                None
            }
            Err(panic) => resume_unwind(panic),
        }
    }

    fn block(&mut self) {
        self.blocked = true;
        self.hand_out_answers();
        let mut sim = self.sim.borrow_mut();
        sim.say(format_args!("the store refuses for now"));
        sim.check_world();
        let number = sim.coordinator.number;
        sim.queue.after_ms(STORE_RETRY_MS, Happening::CommitsAgain(number));
    }

    fn acted(&mut self, result: Result<(), driver::Error>) {
        match result {
            Ok(()) => self.settle(),
            Err(driver::Error::Store(error)) => {
                self.sim.borrow_mut().say(format_args!("the store refuses: {error}"));
                self.coordinator_dies("its store is gone");
            }
        }
    }

    /// After a step: answers reach their callers and must be durable by then, the checkers look, the next deadline is planned.
    fn settle(&mut self) {
        self.steps += 1;
        self.hand_out_answers();
        self.sim.borrow_mut().check_world();
        let Some(driver) = &self.driver else { return };
        {
            let mut sim = self.sim.borrow_mut();
            let most_lines = self.store.as_ref().map_or(0, |store| store.most_lines());
            sim.check_step(driver.state(), driver.last_seq(), most_lines);
            if self.steps.is_multiple_of(ROWS_EVERY) {
                sim.check_rows();
            }
        }
        self.plan_tick();
        self.wake_for_more();
        self.leave_if_over();
    }

    fn hand_out_answers(&mut self) {
        let mut sim = self.sim.borrow_mut();
        for (id, answer) in sim.take_answers() {
            sim.answered(id, answer);
        }
    }

    fn plan_tick(&mut self) {
        let Some(due) = self.driver.as_ref().and_then(Driver::next_deadline) else { return };
        let mut sim = self.sim.borrow_mut();
        let now_ms = sim.queue.now_ms();
        let delay = due.since_ms(sim.machine.now(now_ms));
        let at = now_ms + delay;
        if self.ticks_at_ms.is_none_or(|planned| planned > at || planned < now_ms) {
            self.ticks_at_ms = Some(at);
            let number = sim.coordinator.number;
            sim.queue.after_ms(delay, Happening::Ticks(number));
        }
    }

    /// Output that one turn was not enough for, and messages that came while the store was full.
    fn wake_for_more(&mut self) {
        let unread = self.driver.as_mut().is_some_and(|driver| !driver.unread().is_empty());
        let mut sim = self.sim.borrow_mut();
        if unread || !sim.inbox.is_empty() {
            let number = sim.coordinator.number;
            sim.queue.after_ms(1, Happening::Wakes(number));
        }
    }

    /// The coordinator is gone, with everything that was only in its memory.
    pub fn coordinator_dies(&mut self, how: &str) {
        self.hand_out_answers();
        self.driver = None;
        self.store = None;
        let mut sim = self.sim.borrow_mut();
        let number = sim.coordinator.number;
        sim.say(format_args!("COORDINATOR {number} dies: {how}"));
        sim.coordinator_gone();
        sim.check_world();
        let delay = if sim.quiet || sim.rng.chance(60) {
            sim.rng.between(5, 2 * SECOND)
        } else {
            sim.rng.between(SECOND, 3 * MINUTE)
        };
        sim.queue.after_ms(delay, Happening::CoordinatorStarts);
    }

    /// The run is over or paused: the coordinator leaves. A paused run goes on later.
    pub fn leave_if_over(&mut self) {
        // While the store is full, the driver's state is ahead of what is durable.
        let Some(driver) = self.driver.as_ref().filter(|_| !self.blocked) else { return };
        let phase = driver.state().run.as_ref().map(|run| run.phase);
        let person = driver.standstill() == Standstill::Person;
        let mut sim = self.sim.borrow_mut();
        let waits_for_nobody = sim.setting.mute && sim.quiet;
        match phase {
            Some(RunPhase::Finished(_)) => {
                let again = if self.reopened { None } else { sim.second_thoughts() };
                sim.check_rows();
                sim.say(format_args!("the run is over, second thoughts: {again:?}"));
                sim.coordinator_gone();
                drop(sim);
                self.driver = None;
                match again {
                    Some(order) => {
                        self.reopened = true;
                        self.put_down(vec![order]);
                    }
                    None => self.over = true,
                }
            }
            Some(RunPhase::Paused(reason)) => {
                sim.say(format_args!("the run is paused: {reason:?}"));
                sim.check_rows();
                sim.coordinator_gone();
                let end = waits_for_nobody && reason == PauseReason::NoWait;
                let orders = sim.offline_orders();
                drop(sim);
                self.driver = None;
                self.over = end;
                if !end {
                    self.put_down(orders);
                }
            }
            _ => self.over = waits_for_nobody && person,
        }
    }

    /// Orders given while no coordinator runs; then one is started again.
    fn put_down(&mut self, orders: Vec<rekindle_core::input::Order>) {
        let mut sim = self.sim.borrow_mut();
        for order in orders {
            sim.say(format_args!("operator, with nobody there: {order:?}"));
            let store = Arc::clone(&sim.durable);
            let now_ms = sim.queue.now_ms();
            let machine = &mut sim.machine;
            let put = offline::put_down(&*store, order, |state| {
                machine.start_clock(state, now_ms);
                machine.now(now_ms)
            });
            if let Err(error) = put {
                sim.say(format_args!("not put down: {error}"));
            }
        }
        if sim.durable.crashed() {
            sim.durable = Arc::new(sim.durable.restarted());
        }
        sim.check_world();
        let gated = !sim.checkers.replayed.gates.is_empty();
        let delay = match (sim.quiet, gated) {
            (true, false) => SECOND,
            (true, true) => MINUTE,
            (false, _) => sim.rng.between(100, MINUTE),
        };
        sim.queue.after_ms(delay, Happening::CoordinatorStarts);
    }
}

/// One for all stories, because it is costly to make. It knows no secrets: what is told apart here is bytes and offsets.
fn redactor() -> Redactor {
    static MADE: OnceLock<Redactor> = OnceLock::new();
    MADE.get_or_init(|| Redactor::new(std::iter::empty::<(String, String)>())).clone()
}

impl Sim {
    /// How often a coordinator looks for silent agents.
    fn looks_every_ms(&self) -> u64 {
        let limits = &self.setting.limits;
        if limits.traits.is_empty() {
            return (limits.silence_ms / 4).max(LOOK_MIN_MS);
        }
        let shortest = limits.silence_ms.min(limits.first_event_ms).min(limits.after_result_ms);
        (shortest / 4).max(LOOK_MIN_MS)
    }

    /// The plan as the coordinator is given it: the user's, unless a bug is planted.
    fn plan_for_driver(&self) -> Plan {
        let mut plan = self.setting.plan.clone();
        match self.plant {
            Some(Plant::ForgetReview) => plan.settings.review = None,
            Some(Plant::NoBaseline) => plan.settings.health.clear(),
            _ => {}
        }
        plan
    }

    fn limits_for_driver(&self) -> Limits {
        let mut limits = self.setting.limits.clone();
        match self.plant {
            Some(Plant::MoreTries) => limits.attempts += 2,
            Some(Plant::NoValidation) => limits.validation_window_ms = 0,
            Some(Plant::StaleUsage) => limits.usage.asks = false,
            _ => {}
        }
        limits
    }

    /// Everything that was only in the coordinator's memory is gone; what is durable stays.
    fn coordinator_gone(&mut self) {
        self.coordinator.up = false;
        self.coordinator.kill = None;
        self.coordinator.launching.clear();
        self.coordinator.watched.clear();
        self.coordinator.told.clear();
        self.coordinator.polled.clear();
        self.coordinator.under_way.clear();
        self.coordinator.taking_over = false;
        self.coordinator.asked.clear();
        self.merges.clear();
        self.inbox.clear();
        self.durable = Arc::new(self.durable.restarted());
        self.disconnect();
    }
}
