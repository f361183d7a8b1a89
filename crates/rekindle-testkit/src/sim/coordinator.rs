//! The life of coordinators on the simulated stage: started over what is durable, woken, killed in the middle of things, replaced.
//!
//! The loop in here is the product's own, pulse and housekeeping included. This file stands in for the process around it: it lets
//! time pass where the real one waits, and kills it.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use rekindle_core::budget::Budgets;
use rekindle_core::decide::{Reply, Standstill};
use rekindle_core::event::PauseReason;
use rekindle_core::ids::RunId;
use rekindle_core::input::{Input, Order};
use rekindle_core::limits::Limits;
use rekindle_core::plan::Plan;
use rekindle_core::state::{RunPhase, State};
use rekindle_core::time::Time;
use rekindle_engine::coordinator::{Arrived, Loop, Next, STORE_RETRY_MS, Start};
use rekindle_engine::driver::{self, Driver, Settings};
use rekindle_engine::offline;
use rekindle_engine::redact::Redactor;
use rekindle_engine::store::Store;

use super::checkers::Invariant;
use super::faults::Killed;
use super::house::SimHouse;
use super::plant::Plant;
use super::seam::SimWorld;
use super::store::SimStore;
use super::story::{MINUTE, SECOND};
use super::world::{Happening, Sim};

/// Steps between two checks of all rows: comparing every row after every step would cost more than the story.
const ROWS_EVERY: u64 = 64;

/// Steps between two comparisons of the whole state with the log's: a difference stays.
const STATE_EVERY: u64 = 4;

/// Starts between two that replay a log without a stored state themselves.
const LOAD_EVERY: u32 = 4;

/// The stage: the running coordinator, if any.
pub struct Stage {
    sim: Rc<RefCell<Sim>>,
    plant: Option<Plant>,
    turns: Option<Loop<SimWorld, SimHouse>>,
    store: Option<Arc<SimStore>>,
    /// The store refuses: nothing is handled before a commit goes through.
    blocked: bool,
    /// The number of the turn that is planned; older plans do not count.
    planned: u64,
    /// What was durable when the checkers last ran.
    looked_at: (usize, usize),
    /// Steps that changed something.
    steps: u64,
    reopened: bool,
    /// The story has ended.
    pub over: bool,
}

impl Stage {
    /// An empty stage.
    pub fn new(sim: Rc<RefCell<Sim>>, plant: Option<Plant>) -> Self {
        Self {
            sim,
            plant,
            turns: None,
            store: None,
            blocked: false,
            planned: 0,
            looked_at: (0, 0),
            steps: 0,
            reopened: false,
            over: false,
        }
    }

    /// Handles what concerns the coordinator itself.
    pub fn take(&mut self, happening: Happening) {
        match happening {
            Happening::CoordinatorStarts => self.start(),
            Happening::Wakes(_) if !self.blocked => self.turn(),
            Happening::Ticks(_, planned) if !self.blocked && planned == self.planned => self.turn(),
            Happening::CommitsAgain(_) => {
                self.blocked = false;
                self.act(|turns| turns.turn(Arrived::default()));
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
        let Some(loaded) = sim.load() else { return };
        let now = sim.queue.now_ms();
        sim.machine.start_clock(&loaded.0, now);
        sim.coordinator.number += 1;
        sim.coordinator.up = true;
        sim.coordinator.taking_over = true;
        let number = sim.coordinator.number;
        sim.say(format_args!("COORDINATOR {number} starts"));
        let store = Arc::new(SimStore::new(Arc::clone(&sim.durable), self.plant, Arc::clone(&sim.reads_refused)));
        let as_store: Arc<dyn Store> = store.clone();
        let tokens = sim.tokens.clone();
        let healthy = sim.healthy();
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
        let driver = Driver::new(Arc::clone(&as_store), world, loaded, tokens, redactor(), settings);
        self.turns = Some(Loop::new(driver, as_store, SimHouse::new(Rc::clone(&self.sim))));
        self.store = Some(store);
        self.blocked = false;
        self.take_over(fresh);
        if self.turns.is_some() {
            self.sim.borrow_mut().check_kept(&healthy);
        }
    }

    /// Starts as the shipped coordinator does; there is no retry before it has taken over.
    fn take_over(&mut self, fresh: bool) {
        let (new_run, start) = {
            let sim = self.sim.borrow();
            let new_run = fresh.then(|| Input::RunRequested {
                run: RunId::new("story").expect("a valid name"),
                plan: Box::new(sim.plan_for_driver()),
                plan_path: "story.md".to_owned(),
                branch: None,
            });
            let start = Start {
                pid: 100 + sim.coordinator.number,
                limits: sim.limits_for_driver(),
                boot_id: sim.machine.boot_id(),
                boottime_ms: sim.machine.boottime_ms(sim.queue.now_ms()),
                gaps: Vec::new(),
                repaired: false,
            };
            (new_run, start)
        };
        self.act(|turns| {
            turns.begin(new_run, None, None)?;
            turns.start(start)
        });
        self.sim.borrow_mut().coordinator.taking_over = false;
    }

    /// Runs a turn with what has arrived; what is too much for one turn waits for the next.
    fn turn(&mut self) {
        let mut arrived = Arrived::default();
        {
            let inbox = &mut self.sim.borrow_mut().inbox;
            while let Some(message) = inbox.pop_front() {
                arrived.push(message);
                if arrived.is_full() {
                    break;
                }
            }
        }
        self.act(|turns| turns.turn(arrived));
    }

    /// Lets the coordinator do something; an error that it cannot continue after is its death.
    fn act(&mut self, what: impl FnOnce(&mut Loop<SimWorld, SimHouse>) -> Result<Next, driver::Error>) {
        let Some(turns) = self.turns.as_mut() else { return };
        match catch_unwind(AssertUnwindSafe(|| what(turns))) {
            Ok(Ok(Next::Wait(until))) => {
                self.after_turn();
                self.plan(until);
            }
            Ok(Ok(Next::Unwritten(_))) => self.block(),
            Ok(Ok(Next::Over(_))) => self.after_turn(),
            Ok(Err(driver::Error::Store(error))) => {
                self.sim.borrow_mut().say(format_args!("the store refuses: {error}"));
                self.coordinator_dies("its store is gone");
            }
            Err(unwound) if unwound.is::<Killed>() => self.coordinator_dies("killed in the middle"),
            Err(panic) => resume_unwind(panic),
        }
    }

    fn block(&mut self) {
        self.blocked = true;
        let mut sim = self.sim.borrow_mut();
        sim.hand_out_answers();
        sim.say(format_args!("the store refuses for now"));
        sim.check_world();
        let number = sim.coordinator.number;
        sim.queue.after_ms(STORE_RETRY_MS, Happening::CommitsAgain(number));
    }

    /// After a turn: answers reach their callers and must be durable by then, and the checkers run if something has changed.
    fn after_turn(&mut self) {
        self.sim.borrow_mut().hand_out_answers();
        let Some(driver) = self.turns.as_ref().map(Loop::driver) else { return };
        let mut sim = self.sim.borrow_mut();
        sim.check_answers();
        let durable = sim.durable.lengths();
        if std::mem::replace(&mut self.looked_at, durable) != durable {
            self.steps += 1;
            let most_lines = self.store.as_ref().map_or(0, |store| store.most_lines());
            sim.check_step(driver.last_seq(), most_lines);
            sim.check_growth(driver.entries());
            if driver.is_over() || self.steps.is_multiple_of(STATE_EVERY) {
                sim.check_state(driver.state());
            }
            if self.steps.is_multiple_of(ROWS_EVERY) {
                sim.check_rows();
            }
        }
        drop(sim);
        self.leave_if_over();
    }

    /// Plans the next turn: at once if messages are left, else when the coordinator wants it.
    fn plan(&mut self, until: Time) {
        let mut sim = self.sim.borrow_mut();
        let delay = until.since_ms(sim.machine.now(sim.queue.now_ms()));
        let delay = if sim.inbox.is_empty() { delay } else { 0 };
        self.planned += 1;
        let number = sim.coordinator.number;
        sim.queue.after_ms(delay, Happening::Ticks(number, self.planned));
    }

    /// The coordinator is gone, with everything that was only in its memory.
    pub fn coordinator_dies(&mut self, how: &str) {
        self.sim.borrow_mut().hand_out_answers();
        self.turns = None;
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

    /// The run is over or paused: the coordinator exits. A paused run is continued later.
    pub fn leave_if_over(&mut self) {
        // While the store is full, the driver's state is ahead of what is durable.
        let Some(driver) = self.turns.as_ref().filter(|_| !self.blocked).map(Loop::driver) else { return };
        let phase = driver.state().run.as_ref().map(|run| run.phase);
        let mut sim = self.sim.borrow_mut();
        let waits_for_nobody = sim.setting.mute && sim.quiet;
        let person = waits_for_nobody && driver.standstill() == Standstill::Person;
        match phase {
            Some(RunPhase::Finished(_)) => {
                let again = if self.reopened { None } else { sim.second_thoughts() };
                sim.check_rows();
                sim.say(format_args!("the run is over, second thoughts: {again:?}"));
                sim.coordinator_gone();
                drop(sim);
                self.turns = None;
                match again {
                    Some(order) => {
                        self.reopened = true;
                        self.put_down(vec![order]);
                    }
                    None => self.over = self.sim.borrow().lander.over,
                }
            }
            Some(RunPhase::Paused(reason)) => {
                sim.say(format_args!("the run is paused: {reason:?}"));
                sim.check_rows();
                sim.coordinator_gone();
                let end = waits_for_nobody && reason == PauseReason::NoWait;
                let orders = sim.offline_orders();
                drop(sim);
                self.turns = None;
                self.over = end;
                if !end {
                    self.put_down(orders);
                }
            }
            _ => self.over = person,
        }
    }

    /// Orders given while no coordinator runs; then one is started again.
    fn put_down(&mut self, orders: Vec<Order>) {
        let mut sim = self.sim.borrow_mut();
        for order in orders {
            sim.put_down_offline(order);
        }
        let state = &sim.checkers.replayed;
        let gated = !state.gates.is_empty() || state.budget.quiet_until.is_some();
        let delay = match (sim.quiet, gated) {
            (true, false) => SECOND,
            (true, true) => MINUTE,
            (false, _) => sim.rng.between(100, MINUTE),
        };
        sim.queue.after_ms(delay, Happening::CoordinatorStarts);
    }
}

/// One redactor for all stories, because it is costly to make. It knows no secrets: only bytes and offsets are compared
/// here.
fn redactor() -> Redactor {
    static MADE: OnceLock<Redactor> = OnceLock::new();
    MADE.get_or_init(|| Redactor::new(std::iter::empty::<(String, String)>())).clone()
}

impl Sim {
    /// Puts an order down while no coordinator runs. Says whether it was decided on.
    pub fn put_down_offline(&mut self, order: Order) -> bool {
        self.say(format_args!("with nobody there: {order:?}"));
        let store = Arc::clone(&self.durable);
        let now_ms = self.queue.now_ms();
        let machine = &mut self.machine;
        let put = offline::put_down(&*store, order, |state| {
            machine.start_clock(state, now_ms);
            machine.now(now_ms)
        });
        if let Err(error) = &put {
            self.say(format_args!("not put down: {error}"));
        }
        if self.durable.crashed() {
            self.durable.restart();
        }
        self.check_world();
        put.is_ok_and(|reply| !matches!(reply, Reply::Refused { .. }))
    }

    /// What a new coordinator loads. Without a stored state that means decoding and applying every event, which is how the
    /// checkers got their state: it is repeated only now and then.
    fn load(&mut self) -> Option<(State, u64)> {
        let replayed = &self.checkers.replayed;
        if !self.durable.has_snapshot() && !(self.coordinator.number + 1).is_multiple_of(LOAD_EVERY) {
            return Some((replayed.clone(), self.checkers.seq()));
        }
        let error = match driver::load(&*self.durable) {
            Ok(loaded) if loaded.0 == *replayed => return Some(loaded),
            Ok(_) => "what is loaded is not what the log gives".to_owned(),
            Err(error) => error.to_string(),
        };
        self.checkers.broken(Invariant::Replay, error);
        None
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
            Some(Plant::ForgetBudget) => limits.budget = Budgets::default(),
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
        self.person.unwatched();
        self.coordinator.told.clear();
        self.coordinator.polled.clear();
        self.coordinator.under_way.clear();
        self.coordinator.taking_over = false;
        self.coordinator.asked.clear();
        self.merges.clear();
        self.inbox.clear();
        self.durable.restart();
        self.disconnect();
    }
}
