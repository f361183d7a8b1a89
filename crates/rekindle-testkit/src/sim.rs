//! The simulator: one seed, one story. It drives the product's own driver, core, ingest and store trait, on the in-memory
//! engine, against simulated processes, clocks and disks that break; the checkers run after every step.
//!
//! This file plays a story: it takes what happens next and passes it to the part concerned. What agents, shims, operators
//! and faults do is in the files named after them; what must hold, in `checkers`.

mod agent;
mod calls;
mod changes;
mod checkers;
mod clock;
mod control;
mod coordinator;
mod days;
mod faults;
mod forge;
mod house;
mod judge;
mod lander;
mod operator;
mod outside;
mod person;
mod phone;
mod plant;
mod refusals;
mod rng;
mod script;
mod seam;
mod shim;
mod store;
mod story;
mod stream;
mod teller;
mod told;
mod trace;
mod world;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rekindle_engine::store::MemoryStore;
use rekindle_engine::token::Tokens;

use checkers::Checkers;
pub use checkers::{Invariant, Violation};
use clock::{Machine, Queue};
use coordinator::Stage;
pub use plant::Plant;
use rng::Rng;
use story::{MINUTE, Setting};
use trace::Trace;
use world::{Coordinator, Happening, Sim};

/// Limit on happenings in one story: far more than any story needs, so that one that goes in circles is noticed.
const HAPPENINGS_MAX: u64 = 150_000;

/// Simulated time after the last fault within which a run must be over: every task may use up every attempt one after the other.
const PATIENCE_MS: u64 = 48 * 60 * MINUTE;

/// Which story to play, and how.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub seed: u64,
    /// A bug to plant.
    pub plant: Option<Plant>,
    /// Keep every line of the trace.
    pub aloud: bool,
}

/// How a story went.
#[derive(Debug)]
pub struct Outcome {
    /// The invariant that was broken, if any.
    pub violation: Option<Violation>,
    /// The hash over the whole trace.
    pub hash: u64,
    /// The last lines of the trace, or all of it.
    pub lines: Vec<String>,
    /// Number of things that happened.
    pub happenings: u64,
    /// Events in the log at the end.
    pub events: u64,
    /// Number of coordinators.
    pub coordinators: u32,
    /// Stream events of agents with structured output that were recorded, and messages that the agents were given.
    pub signs: u64,
    /// How often each kind of event was recorded.
    pub told: BTreeMap<String, u64>,
    /// How often each kind of refusal and fault was drawn.
    pub drawn: BTreeMap<&'static str, u64>,
}

/// Plays the story of a seed.
#[must_use]
pub fn play(options: Options) -> Outcome {
    let sim = Rc::new(RefCell::new(set_out(options)));
    let mut stage = Stage::new(Rc::clone(&sim), options.plant);
    let mut happenings = 0;
    loop {
        let next = sim.borrow_mut().queue.next();
        let Some(next) = next else { break };
        happenings += 1;
        take(&sim, &mut stage, next);
        give_up_if_stuck(&mut sim.borrow_mut(), happenings);
        if stage.over || sim.borrow().checkers.violation.is_some() {
            break;
        }
    }
    let coordinators = sim.borrow().coordinator.number;
    // The driver holds the other handle on the simulation.
    drop(stage);
    let sim = Rc::into_inner(sim).expect("the stage is gone").into_inner();
    Outcome {
        violation: sim.checkers.violation.clone(),
        hash: sim.trace.hash(),
        events: sim.checkers.seq(),
        signs: sim.checkers.signs_taken(),
        told: sim.checkers.told.clone(),
        drawn: sim.drawn.clone(),
        lines: sim.trace.into_lines(),
        happenings,
        coordinators,
    }
}

fn set_out(options: Options) -> Sim {
    let mut rng = Rng::new(options.seed);
    let setting = Setting::draw(&mut rng);
    // Some of the plan's health commands may fail before any agent starts.
    let sick = setting.plan.settings.health.iter().filter(|_| rng.chance(35)).cloned().collect();
    // On some machines processes cannot be inspected before the faults are over.
    let blind_until_ms = if rng.chance(35) { setting.quiet_at_ms } else { 0 };
    let mut sim = Sim {
        rng,
        queue: Queue::default(),
        machine: Machine::default(),
        plant: options.plant,
        quiet: false,
        quiet_since_ms: 0,
        bundles: BTreeMap::new(),
        agents: BTreeMap::new(),
        disk: BTreeSet::new(),
        sick,
        short: false,
        blind_until_ms,
        plan_file: Some(setting.plan.hash.clone()),
        person: person::Person::of(options.seed),
        phone: phone::Phone::of(options.seed),
        days: days::Days::of(options.seed),
        lander: lander::Lander::of(options.seed),
        merges: Vec::new(),
        coordinator: Coordinator::default(),
        inbox: VecDeque::new(),
        calls: control::Calls::default(),
        reads_refused: Arc::default(),
        tokens: Tokens::new([7; 32]),
        durable: Arc::new(MemoryStore::new()),
        checkers: Checkers::default(),
        trace: Trace::new(options.aloud),
        drawn: BTreeMap::new(),
        setting,
    };
    sim.queue.after_ms(0, Happening::CoordinatorStarts);
    sim.queue.after_ms(500, Happening::OperatorLooks);
    sim.queue.after_ms(900, Happening::PersonSteers);
    sim.queue.after_ms(1_300, Happening::PhoneRings);
    sim.queue.after_ms(1_700, Happening::LanderLooks);
    sim.queue.after_ms(2_100, Happening::ForgeMoves);
    sim.queue.after_ms(sim.setting.fault_every_ms, Happening::FaultDue);
    sim.queue.after_ms(sim.setting.quiet_at_ms, Happening::Quiet);
    sim
}

/// Passes what happens to the part concerned. What belongs to a dead coordinator is lost with it.
fn take(shared: &Rc<RefCell<Sim>>, stage: &mut Stage, next: Happening) {
    let mut sim = shared.borrow_mut();
    match next {
        Happening::Wakes(number)
        | Happening::Ticks(number, _)
        | Happening::CommitsAgain(number)
        | Happening::Arrives(number, _)
        | Happening::BundleMade(number, _)
        | Happening::ShimSpawned(number, _)
        | Happening::OrderGiven(number, ..)
        | Happening::Carried(number, ..)
        | Happening::Checked(number, _)
        | Happening::Merged(number, _)
        | Happening::HealthSeen(number, _)
        | Happening::Flown(number, _)
        | Happening::UsageTold(number, _)
            if !sim.is_up(number) => {}
        Happening::Arrives(_, bell) => sim.bell_arrives(bell),
        Happening::BundleMade(_, attempt) => sim.bundle_made(attempt),
        Happening::ShimSpawned(_, attempt) => sim.shim_spawned(attempt),
        Happening::Recorded(attempt) => sim.recorded(attempt),
        Happening::OrderGiven(number, attempt, at_once, tries) => sim.give_order(number, attempt, at_once, tries),
        Happening::Carried(number, attempt, line, tries) => sim.carried(number, attempt, line, tries),
        Happening::Rung(attempt, rung) => sim.rung(attempt, rung),
        Happening::Step(attempt, step) => sim.step(attempt, step),
        Happening::ShimLeaves(attempt) => sim.shim_leaves(attempt),
        Happening::Checked(_, order) => sim.checked(order),
        Happening::Merged(_, order) => sim.merged(&order),
        Happening::HealthSeen(_, commands) => sim.health_seen(&commands),
        Happening::Flown(_, tries) => sim.flown(&tries),
        Happening::UsageTold(_, refused) => sim.usage_told(refused),
        Happening::Kept(attempt, report) => sim.kept(attempt, report),
        Happening::LateReport(attempt) => sim.late_report(attempt),
        Happening::OperatorLooks => {
            sim.operator_looks();
            drop(sim);
            stage.leave_if_over();
        }
        Happening::PersonSteers => sim.person_steers(),
        Happening::PhoneRings => sim.phone_rings(),
        Happening::ForgeMoves => sim.forge_moves(),
        Happening::LanderLooks => {
            let ended = sim.lander_looks();
            let over = ended && sim.is_finished() && !sim.coordinator.up;
            drop(sim);
            stage.over |= over;
        }
        Happening::PersonLeaves(pid) => sim.person_leaves(pid),
        Happening::PersonUndoes => sim.person_undoes(),
        Happening::PersonMissed(pid, coordinator) => sim.person_missed(pid, coordinator),
        Happening::HangsUp(id) => sim.hangs_up(id),
        Happening::FaultDue => sim.draw_fault(),
        Happening::Quiet => sim.become_quiet(),
        Happening::Breaks(fault) => {
            if sim.breaks(fault) {
                drop(sim);
                stage.coordinator_dies("killed");
            }
        }
        other => {
            drop(sim);
            stage.take(other);
        }
    }
}

impl Sim {
    /// Faults are over: from here on everything must come to an end.
    fn become_quiet(&mut self) {
        self.quiet = true;
        self.quiet_since_ms = self.queue.now_ms();
        self.coordinator.kill = None;
        self.short = false;
        self.blind_until_ms = 0;
        self.reads_refused.store(0, Ordering::Relaxed);
        self.say(format_args!("QUIET"));
        let now = self.queue.now_ms();
        for bundle in self.bundles.values_mut() {
            bundle.deaf_until_ms = bundle.deaf_until_ms.min(now);
        }
    }
}

fn give_up_if_stuck(sim: &mut Sim, happenings: u64) {
    let waited = sim.queue.now_ms().saturating_sub(sim.quiet_since_ms);
    if happenings > HAPPENINGS_MAX {
        sim.checkers.broken(Invariant::Bounds, format!("{happenings} things happened and it is not over"));
    } else if sim.quiet && waited > PATIENCE_MS {
        let what = format!("not over {waited} ms after the last fault: {}", sim.checkers.unfinished());
        sim.checkers.broken(Invariant::Progress, what);
    }
}
