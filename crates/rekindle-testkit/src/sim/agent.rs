//! Simulated agents: a script drawn at the start, carried out step by step. Some work, some lie, some crash.
//!
//! This file owns what an agent does; how its reports reach the coordinator and how it reacts to the answers is in `calls`.

use std::collections::VecDeque;

use rekindle_core::ids::{AttemptId, Epoch, TaskId};
use rekindle_core::plan::PlanTask;
use rekindle_core::report::{Checkpoint, Exit, Report};
use rekindle_engine::control::wire::Request;
use rekindle_engine::store::Stream;
use rekindle_shim::tree::Activity;

use super::changes::STRICT;
use super::script;
use super::story::{SECOND, mark_of, strict_mark_of};
use super::world::{Happening, Sim};

/// The system's unit of processor time.
const TICK_MS: u64 = 10;

/// The channel an agent reports through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The socket.
    Command,
    /// Its output.
    Signal,
    /// Its bundle, as if no coordinator were listening.
    Kept,
}

/// One step of a script.
#[derive(Clone, Debug)]
pub enum Act {
    /// Works for a while.
    Pause(u64),
    Print(Stream, Vec<u8>),
    /// Makes what a task asks for, or only a part of it.
    Make(TaskId, bool),
    Say(Report, Way),
    /// Asks, and waits for the answer if the flag is set.
    Ask(TaskId, Way, bool),
    /// Another request through the control socket.
    Request(Request),
    /// Starts processes of its own that do not exit unless they are killed.
    Fork(u32),
    /// Uses a token that is not its own.
    Forge(String, Report),
    /// Sends a request without a token, as if it were the operator.
    Pretend(Request),
    /// Exits.
    Leave(Exit),
    /// Prints something in its stream, on its own line.
    Tell(String),
    /// Waits for a message.
    Listen,
    /// Does nothing from now on.
    Hang,
}

/// A process with a script.
#[derive(Debug)]
pub struct Agent {
    /// Its kind of behaviour, for the trace.
    pub mood: &'static str,
    pub token: String,
    /// Its remaining steps.
    pub script: VecDeque<Act>,
    /// The number of its planned step; older ones do not count.
    pub step: u32,
    /// The call whose answer it waits for.
    pub waits_for: Option<u64>,
    /// Whether it exits on the first request, and on a stronger one.
    pub heeds: [bool; 2],
    /// Continues although it was told that its time is over.
    pub stubborn: bool,
    /// How many unproven claims it will still fix.
    pub mends: u32,
    pub hung: bool,
    /// Whether it is waiting for a message.
    pub listening: bool,
    /// Messages that it was given and has not read.
    pub unheard: u32,
    pub alive: bool,
}

impl Agent {
    /// Draws an agent for an attempt.
    pub fn draw(sim: &mut Sim, attempt: AttemptId, epoch: Epoch, tasks: &[TaskId]) -> Self {
        let (mood, script) = script::draw(sim, attempt, tasks);
        let (quiet, rng) = (sim.quiet, &mut sim.rng);
        Self {
            mood,
            token: sim.tokens.token(attempt, epoch),
            script,
            step: 0,
            waits_for: None,
            heeds: [quiet || rng.chance(75), quiet || rng.chance(80)],
            stubborn: !quiet && rng.chance(30),
            mends: u32::try_from(rng.between(u64::from(quiet), 2)).unwrap_or(1),
            hung: false,
            listening: false,
            unheard: 0,
            alive: true,
        }
    }

    /// Handles the end of its process.
    pub fn dies(&mut self) {
        self.alive = false;
        self.listening = false;
        self.script.clear();
        self.waits_for = None;
        self.step += 1;
    }
}

impl Sim {
    /// Plans an agent's next step.
    pub fn plan_step(&mut self, attempt: AttemptId, delay_ms: u64) {
        if let Some(agent) = self.agents.get_mut(&attempt).filter(|agent| agent.alive) {
            agent.step += 1;
            let step = agent.step;
            self.queue.after_ms(delay_ms, Happening::Step(attempt, step));
        }
    }

    /// Carries out an agent's next step.
    pub fn step(&mut self, attempt: AttemptId, step: u32) {
        let now = self.queue.now_ms();
        let Some(agent) = self.agents.get_mut(&attempt).filter(|agent| agent.alive && agent.step == step) else {
            return;
        };
        let act = agent.script.pop_front().unwrap_or(Act::Leave(Exit { code: Some(0), ..Exit::default() }));
        if let Some(bundle) = self.bundles.get_mut(&attempt) {
            bundle.active_ms = now;
        }
        let next = self.rng.between(1, 50);
        match act {
            Act::Pause(ms) => return self.plan_step(attempt, ms),
            Act::Print(stream, bytes) => self.write(attempt, stream, &bytes),
            Act::Make(task, whole) => self.make(&task, whole),
            Act::Say(report, way) => return self.report(attempt, report, way),
            Act::Ask(task, way, wait) => return self.ask(attempt, task, way, wait),
            Act::Request(call) => return self.plain_call(attempt, call),
            Act::Fork(count) => {
                if let Some(bundle) = self.bundles.get_mut(&attempt) {
                    bundle.children += count;
                }
            }
            Act::Forge(token, report) => self.forge(&token, report),
            Act::Pretend(call) => self.pretend(attempt, call),
            Act::Leave(exit) => {
                self.say(format_args!("attempt {attempt} leaves: {:?} {:?}", exit.code, exit.signal));
                return self.leader_ends(attempt, exit);
            }
            Act::Tell(line) => self.tell_of_itself(attempt, &line),
            Act::Listen => return self.listen(attempt),
            Act::Hang => {
                if let Some(agent) = self.agents.get_mut(&attempt) {
                    agent.hung = true;
                }
                return self.say(format_args!("attempt {attempt} hangs"));
            }
        }
        self.plan_step(attempt, next);
    }

    /// The work itself: what a task asks for appears on the disk. It may break or fix the plan's health.
    fn make(&mut self, task: &TaskId, whole: bool) {
        self.say(format_args!("{task} is made, whole: {whole}"));
        let present = self.checkers.replayed.plan_task(task).cloned();
        if let Some(PlanTask { artifacts, .. }) = present.clone() {
            let count = if whole { artifacts.len() } else { artifacts.len().saturating_sub(1) };
            self.disk.extend(artifacts.into_iter().take(count));
        }
        if !whole {
            return;
        }
        self.disk.insert(mark_of(task));
        if present.is_some_and(|planned| planned.accept.iter().any(|command| command.starts_with(STRICT))) {
            self.disk.insert(strict_mark_of(task));
        }
        let way = self.checkers.replayed.tasks.get(task).map(|known| known.workflow.clone()).unwrap_or_default();
        if self.quiet || way.health || self.rng.chance(30) {
            self.sick.clear();
        } else if self.rng.chance(8) {
            let health = self.rng.pick(&self.setting.plan.settings.health).cloned();
            self.sick.extend(health);
        }
        // A whole is made when all its parts are.
        let parts =
            way.parent.as_ref().and_then(|whole| self.checkers.replayed.tasks.get(whole)).map(|t| &t.workflow.parts);
        let all = parts.is_some_and(|parts| parts.iter().all(|part| self.disk.contains(&mark_of(part))));
        if let (true, Some(whole)) = (all, way.parent) {
            self.make(&whole, true);
        }
    }

    /// A shim asks the agent to exit.
    pub fn asked_to_leave(&mut self, attempt: AttemptId, rung: u32) {
        let say_more = self.rng.chance(40);
        let delay = self.rng.between(1, 2 * SECOND);
        let Some(agent) = self.agents.get_mut(&attempt).filter(|agent| agent.alive) else { return };
        if !agent.heeds[rung.min(1) as usize] {
            return;
        }
        agent.script.clear();
        agent.waits_for = None;
        let tasks = self.bundles.get(&attempt).map(|bundle| bundle.tasks.clone()).unwrap_or_default();
        if let (true, Some(task)) = (say_more, tasks.first()) {
            let checkpoint = Checkpoint { status: "asked to leave".to_owned(), ..Checkpoint::default() };
            let report = Report::Checkpoint { task: task.clone(), checkpoint };
            agent.script.push_back(Act::Say(report, Way::Command));
        }
        agent.script.push_back(Act::Leave(Exit { code: Some(130), ..Exit::default() }));
        agent.hung = false;
        agent.listening = false;
        self.plan_step(attempt, delay);
    }

    /// Whether an agent is working, visibly or not.
    pub fn is_busy(&self, attempt: AttemptId) -> bool {
        let busy = |agent: &Agent| agent.alive && !agent.hung && !agent.listening && agent.waits_for.is_none();
        self.agents.get(&attempt).is_some_and(busy)
    }

    /// What the processes of an agent have used so far: a working agent uses all the time there is.
    pub fn activity(&self, attempt: AttemptId) -> Option<Activity> {
        let bundle = self.bundles.get(&attempt)?;
        let used_ms = if self.is_busy(attempt) { self.queue.now_ms() } else { bundle.active_ms };
        let processes = u32::from(bundle.leader_alive) + bundle.children;
        Some(Activity { cpu_ticks: used_ms / TICK_MS, io_bytes: 0, processes })
    }
}
