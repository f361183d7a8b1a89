//! The simulated world as the driver sees it: `rekindle_engine::world::World` over one shared [`Sim`].
//!
//! A coordinator may die at any call. The checkers decide whether what it asks for is allowed.

use std::cell::RefCell;
use std::rc::Rc;

use rekindle_core::activity::Transcript;
use rekindle_core::brief::{self, Facts};
use rekindle_core::budget::Calendar;
use rekindle_core::event::ClockSeen;
use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_core::input::Found;
use rekindle_core::preflight::TryCheck;
use rekindle_core::steering::PersonProcess;
use rekindle_core::time::Time;
use rekindle_engine::agents::Reader;
use rekindle_engine::alert::Alert;
use rekindle_engine::person::WorkedOn;
use rekindle_engine::store::Stream;
use rekindle_engine::world::{Admission, CheckOrder, KeptReport, LaunchOrder, MergeOrder, World};
use rekindle_shim::tree::Activity;

use super::checkers::Checkers;
use super::faults::Killed;
use super::plant::Plant;
use super::stream::TellReader;
use super::told::Line;
use super::world::Sim;

/// Attempts between two whose prompt is written: no agent of a story reads it, but writing it must succeed.
const RENDER_EVERY: u64 = 8;

/// The prompt size reported for the others.
const SOME_BYTES: u64 = 1_000;

/// The world of one coordinator.
pub struct SimWorld {
    sim: Rc<RefCell<Sim>>,
}

impl SimWorld {
    /// A world over the story.
    pub fn new(sim: Rc<RefCell<Sim>>) -> Self {
        Self { sim }
    }

    /// Does something the driver asks for; the coordinator may die before or after it.
    fn ask<T>(&mut self, what: impl FnOnce(&mut Sim) -> T) -> T {
        let mut sim = self.sim.borrow_mut();
        let struck = sim.struck();
        if struck && sim.rng.chance(50) {
            drop(sim);
            // Not a panic: no hook prints anything, and the runner catches it.
            std::panic::resume_unwind(Box::new(Killed));
        }
        let done = what(&mut sim);
        drop(sim);
        if struck {
            std::panic::resume_unwind(Box::new(Killed));
        }
        done
    }
}

impl World for SimWorld {
    fn now(&mut self) -> Time {
        let sim = self.sim.borrow();
        sim.machine.now(sim.queue.now_ms())
    }

    fn clocks(&mut self) -> Option<ClockSeen> {
        let sim = self.sim.borrow();
        let mut seen = sim.machine.seen(sim.queue.now_ms());
        if sim.plant == Some(Plant::SleepAsAwake) {
            seen.slept_ms = 0;
        }
        Some(seen)
    }

    fn calendar(&mut self) -> Option<Calendar> {
        self.sim.borrow_mut().calendar()
    }

    fn keep_output(&mut self, _output: &str) -> Option<String> {
        self.ask(|sim| (!sim.refuses("output to keep refused")).then(|| "kept".to_owned()))
    }

    fn own_bytes(&mut self, attempt: AttemptId, facts: &Facts, resumed: bool) -> u64 {
        if attempt.0.is_multiple_of(RENDER_EVERY) { brief::own_bytes(facts, resumed) } else { SOME_BYTES }
    }

    fn launch(&mut self, mut order: LaunchOrder) -> Admission {
        self.ask(|sim| {
            let (role, tasks, place) = (order.role, &order.tasks, order.workspace.as_deref().unwrap_or("the project"));
            sim.say(format_args!("launch attempt {} epoch {} {role} {tasks:?} in {place}", order.attempt, order.epoch));
            sim.check_effect(|checkers| checkers.allows_launch(order.attempt));
            sim.check_alone(&order);
            sim.check_person(&mut order);
            let taken = sim.launch_taken(order.attempt);
            if taken == Admission::Yes {
                sim.launch(&order);
            }
            taken
        })
    }

    fn stop(&mut self, attempt: AttemptId, at_once: bool) {
        self.ask(|sim| {
            sim.say(format_args!("stop attempt {attempt} at once: {at_once}"));
            sim.check_effect(|checkers| checkers.allows_stop(attempt, at_once));
            sim.order_stop(attempt, at_once);
        });
    }

    fn run_checks(&mut self, order: CheckOrder) -> Admission {
        self.ask(|sim| {
            sim.say(format_args!("check {} epoch {}", order.task, order.epoch));
            sim.check_effect(|checkers| checkers.allows_checks(&order.task, order.epoch));
            let taken = sim.checks_taken(&order);
            if taken == Admission::Yes && !sim.forgets() {
                sim.begin_checks(order);
            }
            taken
        })
    }

    fn read_spool(
        &mut self,
        attempt: AttemptId,
        stream: Stream,
        offset: u64,
        limit: usize,
        into: &mut Vec<u8>,
    ) -> std::io::Result<()> {
        let mut sim = self.sim.borrow_mut();
        sim.coordinator.told.remove(&attempt);
        if let Some(refused) = sim.read_refused(attempt) {
            return refused;
        }
        let Some(bundle) = sim.bundles.get(&attempt) else { return Ok(()) };
        let spool = bundle.spool(stream);
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(spool.len());
        let to = from.saturating_add(limit).min(spool.len());
        into.extend_from_slice(&spool[from..to]);
        Ok(())
    }

    fn reader(&mut self, cli: &str) -> Option<Box<dyn Reader>> {
        let sim = self.sim.borrow();
        let tells = sim.setting.limits.traits_of(cli).structured_output;
        tells.then(|| Box::new(TellReader::new(sim.plant)) as Box<dyn Reader>)
    }

    fn transcript_state(&mut self, _attempt: AttemptId, _cli: &str, _session: &str) -> Transcript {
        self.ask(|sim| match sim.rng.weighted(&[88, 8, 4]) {
            1 if !sim.quiet => {
                sim.count("transcript missing");
                Transcript::Missing
            }
            2 if !sim.quiet => {
                sim.count("transcript unreadable");
                Transcript::Unknown
            }
            _ => Transcript::Whole,
        })
    }

    fn tell(&mut self, attempt: AttemptId, _cli: &str, number: u32, _text: &str) {
        self.ask(|sim| {
            sim.check_effect(|checkers| checkers.allows_message(attempt, number));
            sim.carry(attempt, Line::Message(number));
        });
    }

    fn watch_person(&mut self, task: &TaskId, by: &PersonProcess, _place: WorkedOn) {
        self.ask(|sim| {
            if !sim.forgets() {
                sim.watch_person(task, by);
            }
        });
    }

    fn close_input(&mut self, attempt: AttemptId) {
        self.ask(|sim| {
            sim.check_effect(|checkers| checkers.allows_close(attempt));
            sim.carry(attempt, Line::Close);
        });
    }

    fn probe(&mut self, attempts: &[(AttemptId, Epoch)]) -> Vec<Found> {
        self.ask(|sim| attempts.iter().map(|(attempt, _)| sim.probe(*attempt)).collect())
    }

    fn kept_reports(&mut self, attempt: AttemptId) -> std::io::Result<Vec<KeptReport>> {
        self.ask(|sim| {
            if let Some(Err(refused)) = sim.read_refused(attempt) {
                return Err(refused);
            }
            let Some(bundle) = sim.bundles.get_mut(&attempt) else { return Ok(Vec::new()) };
            bundle.handed_out = bundle.kept.len();
            Ok(bundle.kept.clone())
        })
    }

    fn drop_kept_reports(&mut self, attempt: AttemptId) {
        self.ask(|sim| {
            if let Some(bundle) = sim.bundles.get_mut(&attempt) {
                bundle.kept.drain(..std::mem::take(&mut bundle.handed_out));
            }
        });
    }

    fn missing(&mut self, paths: &[String], _merged: Option<&str>) -> Vec<String> {
        self.ask(|sim| {
            // What cannot be checked is not missing.
            let gone: Vec<String> = paths.iter().filter(|path| !sim.disk.contains(*path)).cloned().collect();
            sim.checkers.truth.gone.extend(gone.iter().cloned());
            match (sim.refuses_or(Plant::UnseenAsMissing, "look at artifacts refused"), sim.plant) {
                (true, Some(Plant::UnseenAsMissing)) => paths.to_vec(),
                (true, _) => Vec::new(),
                (false, _) => gone,
            }
        })
    }

    fn merge(&mut self, order: MergeOrder) {
        self.ask(|sim| {
            sim.say(format_args!("merge {} epoch {} of {}", order.task, order.epoch, order.workspace));
            sim.check_effect(|checkers| checkers.allows_merge(&order.task, order.epoch));
            if !sim.forgets() {
                sim.begin_merge(order);
            }
        });
    }

    fn check_health(&mut self, commands: &[String]) -> Admission {
        self.ask(|sim| {
            sim.check_effect(Checkers::allows_health);
            let taken = sim.health_taken();
            if taken == Admission::Yes && !sim.forgets() {
                sim.begin_health(commands);
            }
            taken
        })
    }

    fn preflight(&mut self, tries: Vec<TryCheck>) -> Admission {
        self.ask(|sim| {
            sim.check_effect(Checkers::allows_preflight);
            if !sim.forgets() {
                sim.begin_preflight(tries);
            }
            Admission::Yes
        })
    }

    fn ask_usage(&mut self) {
        self.ask(|sim| {
            sim.check_effect(Checkers::allows_usage);
            if !sim.forgets() {
                sim.begin_usage();
            }
        });
    }

    fn alert(&mut self, alert: &Alert) {
        self.ask(|sim| sim.say(format_args!("alert: {}", alert.text)));
    }

    fn written(&mut self, attempt: AttemptId) -> u64 {
        self.ask(|sim| sim.bundles.get(&attempt).map_or(0, |bundle| (bundle.out.len() + bundle.err.len()) as u64))
    }

    fn activity(&mut self, attempt: AttemptId) -> std::io::Result<Option<Activity>> {
        self.ask(|sim| match sim.blind_until_ms > sim.queue.now_ms() {
            true if sim.plant == Some(Plant::BlindAsSilent) => Ok(None),
            true => {
                sim.count("look at processes refused");
                Err(std::io::Error::other("no descriptor (simulated)"))
            }
            false => Ok(sim.activity(attempt)),
        })
    }

    fn polls(&mut self) -> bool {
        !self.sim.borrow().coordinator.polled.is_empty()
    }

    fn watch(&mut self, attempt: AttemptId) {
        self.ask(|sim| sim.watch(attempt));
    }

    fn forget(&mut self, attempt: AttemptId) {
        self.ask(|sim| {
            if sim.plant == Some(Plant::NeverForget) {
                return;
            }
            sim.coordinator.watched.remove(&attempt);
            sim.coordinator.polled.remove(&attempt);
            sim.coordinator.told.remove(&attempt);
        });
    }
}
