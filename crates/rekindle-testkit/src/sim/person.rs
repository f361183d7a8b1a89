//! The simulated person who steers: messages to agents, tasks taken over and given back by whatever ends their program,
//! orders that can be undone. It has its own random numbers, so that stories without a person stay as they are.

use std::collections::{BTreeMap, BTreeSet};

use rekindle_core::ids::{AttemptId, TaskId};
use rekindle_core::input::Order;
use rekindle_core::steering::{PersonProcess, Undoable};
use rekindle_engine::driver::Message;
use rekindle_engine::world::LaunchOrder;

use super::checkers::Invariant;
use super::plant::Plant;
use super::rng::Rng;
use super::story::{MINUTE, SECOND};
use super::world::{Happening, Sim};

/// Mixed with the story's seed for the person's random numbers.
const OWN: u64 = 0x7e11_a77a_c4ed_0001;

/// The first process id of a person's program; agents have others.
const FIRST_PID: u32 = 5_000_000;

/// Time within which a coordinator must learn of the end of a person's program: longer than any store refuses or any machine
/// sleeps.
const HEARD_WITHIN: u64 = 240 * MINUTE;

/// The person.
#[derive(Debug)]
pub struct Person {
    rng: Rng,
    /// Whether this story has a person who steers.
    steers: bool,
    made: u32,
    /// Running programs, with the task that each is for.
    alive: BTreeMap<u32, TaskId>,
    /// Programs that really hold their task, according to the log.
    held: BTreeMap<u32, TaskId>,
    /// Programs whose end the coordinator waits for.
    watched: BTreeMap<u32, (TaskId, PersonProcess)>,
    /// Messages that were in the prompt of an attempt.
    prompted: BTreeSet<(AttemptId, u64)>,
    /// Messages that were really given, by their keys.
    told: BTreeSet<String>,
}

impl Person {
    /// The person of a seed, if it has one.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ OWN);
        let steers = rng.chance(50);
        let (alive, held, watched) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { rng, steers, made: 0, alive, held, watched, prompted: BTreeSet::new(), told: BTreeSet::new() }
    }

    /// Whether a message was in an attempt's prompt.
    pub fn was_prompted(&self, attempt: AttemptId, number: u64) -> bool {
        self.prompted.contains(&(attempt, number))
    }

    /// Whether a message was given.
    pub fn said(&self, key: &str) -> bool {
        self.told.contains(key)
    }

    /// The log gave a task to a person.
    pub fn has(&mut self, pid: u32, task: &TaskId) {
        self.held.insert(pid, task.clone());
    }

    /// Another run: tasks held in the last one are released.
    pub fn forget_held(&mut self) {
        self.held.clear();
    }

    /// A coordinator is gone: no program is watched any more.
    pub fn unwatched(&mut self) {
        self.watched.clear();
    }

    /// The machine is gone, and every program with it.
    pub fn rebooted(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.alive).into_keys().collect()
    }
}

impl Sim {
    /// The person checks the run, and again later, until the faults are over.
    pub fn person_steers(&mut self) {
        if !self.person.steers || self.quiet {
            return;
        }
        let next = self.person.rng.between(3 * SECOND, 40 * SECOND);
        self.queue.after_ms(next, Happening::PersonSteers);
        let tasks: Vec<TaskId> = self.checkers.all_tasks();
        // Tasks in progress get more messages than others.
        let state = &self.checkers.replayed;
        let busy = |task: &&TaskId| state.tasks.get(*task).is_some_and(|found| found.holder.is_some());
        let busy: Vec<TaskId> = tasks.iter().filter(busy).cloned().collect();
        let tasks = if busy.is_empty() || self.person.rng.chance(40) { tasks } else { busy };
        let Some(task) = self.person.rng.pick(&tasks).cloned() else { return };
        if !self.coordinator.up {
            return;
        }
        let order = match self.person.rng.weighted(&[55, 25, 8, 12]) {
            0 => self.tell(task),
            1 => {
                // Mostly the person takes over a task in progress; other orders are refused.
                let at_work = self.checkers.tasks_at_work();
                let wanted = self.person.rng.pick(&at_work).cloned().filter(|_| self.person.rng.chance(80));
                self.attach(wanted.unwrap_or(task))
            }
            2 => {
                if self.person.rng.chance(50) {
                    let slip = self.person.rng.between(SECOND, 12 * SECOND);
                    self.queue.after_ms(slip, Happening::PersonUndoes);
                }
                Order::WithUndo { order: self.undoable(task) }
            }
            _ => match self.checkers.replayed.steering.placed.keys().next_back() {
                Some(number) => Order::Undo { number: *number },
                None => self.tell(task),
            },
        };
        if let Order::WithUndo { order } = &order {
            self.checkers.truth.operator(&order.clone().into(), &self.checkers.replayed);
        }
        self.order_by_call(order);
    }

    /// An order that the person may undo.
    fn undoable(&mut self, task: TaskId) -> Undoable {
        if self.person.rng.chance(25) {
            return Undoable::Complete { task, result: None };
        }
        Undoable::Skip { task, reason: "perhaps not needed".to_owned() }
    }

    /// The person saw a slip, in time or too late.
    pub fn person_undoes(&mut self) {
        let newest = self.checkers.replayed.steering.last_placed;
        if self.coordinator.up && newest > 0 {
            self.order_by_call(Order::Undo { number: newest });
        }
    }

    fn tell(&mut self, task: TaskId) -> Order {
        self.person.made += 1;
        let key = format!("k{}", self.person.made);
        self.person.told.insert(key.clone());
        Order::Tell { task, text: format!("mind this ({key})"), key }
    }

    fn attach(&mut self, task: TaskId) -> Order {
        self.person.made += 1;
        let pid = FIRST_PID + self.person.made;
        let boot_id = self.machine.boot_id();
        self.person.alive.insert(pid, task.clone());
        let stays = self.person.rng.between(SECOND, 3 * MINUTE);
        self.queue.after_ms(stays, Happening::PersonLeaves(pid));
        let by = PersonProcess { boot_id, pid, pidfd_inode: Some(u64::from(pid)), start_ticks: 1, pid_ns_inode: 1 };
        Order::Attach { task, by }
    }

    /// A person's program ends, on its own or because it was killed: the two cannot be told apart.
    pub fn person_leaves(&mut self, pid: u32) {
        if self.person.alive.remove(&pid).is_none() {
            return;
        }
        self.say(format_args!("the person's program {pid} ends"));
        self.must_be_heard_of(pid);
        if let Some((task, by)) = self.person.watched.remove(&pid) {
            self.deliver(Message::PersonLeft { task, by, changed: vec!["changed: by/hand".to_owned()] });
        }
    }

    /// From here on a coordinator has its time to learn that a program ended.
    pub fn must_be_heard_of(&mut self, pid: u32) {
        self.queue.after_ms(HEARD_WITHIN, Happening::PersonMissed(pid, self.coordinator.number));
    }

    /// If a task is still held by a program that ended long ago, nobody really holds it. A coordinator that was started
    /// later has its own time.
    pub fn person_missed(&mut self, pid: u32, coordinator: u32) {
        let held = self.checkers.replayed.steering.attached.iter().find(|(_, held)| held.by.pid == pid);
        let Some(task) = held.map(|(task, _)| task.clone()) else { return };
        if self.coordinator.up && self.coordinator.number == coordinator {
            let what = format!("{task} is held for the person's program {pid}, which is gone");
            self.checkers.broken(Invariant::GivenBack, what);
        }
        self.must_be_heard_of(pid);
    }

    /// The coordinator waits for the end of a person's program.
    pub fn watch_person(&mut self, task: &TaskId, by: &PersonProcess) {
        self.say(format_args!("watch the person's program {} at {task}", by.pid));
        let lives = self.person.alive.contains_key(&by.pid) && by.boot_id == self.machine.boot_id();
        match self.plant {
            Some(Plant::ForgetPerson) => {}
            Some(Plant::PersonGoneEarly) => self.person_is_gone(task, by),
            _ if lives => {
                self.person.watched.insert(by.pid, (task.clone(), by.clone()));
            }
            _ => self.person_is_gone(task, by),
        }
    }

    fn person_is_gone(&mut self, task: &TaskId, by: &PersonProcess) {
        self.deliver(Message::PersonLeft { task: task.clone(), by: by.clone(), changed: Vec::new() });
    }

    /// An attempt is about to start: messages for it are in its prompt, and no person holds what it is to work on.
    pub fn check_person(&mut self, order: &mut LaunchOrder) {
        if self.plant == Some(Plant::DropTells) {
            order.facts.tells.clear();
        }
        let told = order.facts.tells.iter().filter(|told| !told.known).map(|told| (order.attempt, told.number));
        self.person.prompted.extend(told);
        let state = &self.checkers.replayed;
        let held = self.person.held.iter().filter(|(pid, _)| self.person.alive.contains_key(pid));
        let clash = held.filter(|(_, task)| {
            order.tasks.iter().any(|other| {
                let workspace = state.workspace_of(task);
                state.root_of(other) == state.root_of(task)
                    || (workspace.is_some() && workspace == state.workspace_of(other))
            })
        });
        let clash: Vec<String> = clash.map(|(pid, task)| format!("{task} is held by {pid}")).collect();
        // An attempt that was decided before the person came is stopped, and its process may still be starting.
        let stopped = state.attempts.get(&order.attempt).is_some_and(|found| found.stop.is_some());
        if let Some(clash) = clash.first().filter(|_| !stopped) {
            let what = format!("attempt {} is started although {clash}", order.attempt);
            self.checkers.broken(Invariant::Alone, what);
        }
    }
}
