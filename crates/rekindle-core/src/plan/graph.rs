//! Which task waits for which, by position in the plan: what is ready, what can never be, levels, cycles, and how much a
//! task unblocks. Made for plans of ten thousand tasks: linear, except for counting what each task unblocks. Which ready
//! task goes first is decided elsewhere.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
};

use super::PlanTask;

/// Maximum number of reported cycles, which is enough for any reader: each costs a pass over the tasks that are caught in
/// them.
const CYCLES_MAX: usize = 100;

/// Tasks counted in one pass of [`Graph::unblocks`]: bounds its memory to half a kilobyte per task.
const COUNTED_AT_ONCE: usize = 4096;

/// The blockers of every task. Positions are those of the plan's tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    blockers: Vec<Vec<usize>>,
    dependants: Vec<Vec<usize>>,
}

impl Graph {
    /// The graph of a plan's tasks. A blocker that is not among them is left out; a checked plan has none.
    pub fn of(tasks: &[PlanTask]) -> Graph {
        let positions: BTreeMap<&str, usize> =
            tasks.iter().enumerate().map(|(i, task)| (task.id.as_str(), i)).collect();
        let blockers = tasks
            .iter()
            .map(|task| task.blocked_by.iter().filter_map(|id| positions.get(id.as_str()).copied()).collect());
        Graph::from_blockers(blockers.collect())
    }

    /// A graph from the blockers of each position; positions outside of it are left out.
    pub fn from_blockers(mut blockers: Vec<Vec<usize>>) -> Graph {
        let mut dependants = vec![Vec::new(); blockers.len()];
        let count = blockers.len();
        for (task, of_task) in blockers.iter_mut().enumerate() {
            of_task.retain(|blocker| *blocker < count);
            for blocker in of_task {
                dependants[*blocker].push(task);
            }
        }
        Graph { blockers, dependants }
    }

    pub fn len(&self) -> usize {
        self.blockers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.blockers.is_empty()
    }

    pub fn blockers(&self, task: usize) -> &[usize] {
        self.blockers.get(task).map_or(&[], Vec::as_slice)
    }

    /// The tasks that wait directly for a task.
    pub fn dependants(&self, task: usize) -> &[usize] {
        self.dependants.get(task).map_or(&[], Vec::as_slice)
    }

    /// Whether all blockers of a task are complete.
    pub fn is_unblocked(&self, task: usize, complete: impl Fn(usize) -> bool) -> bool {
        self.blockers(task).iter().all(|blocker| complete(*blocker))
    }

    /// The tasks that are not complete while all their blockers are, in order.
    pub fn ready(&self, complete: impl Fn(usize) -> bool) -> Vec<usize> {
        (0..self.len()).filter(|task| !complete(*task) && self.is_unblocked(*task, &complete)).collect()
    }

    /// Which tasks wait, directly or not, for one that will not complete on its own (failed, skipped, waiting for a person).
    /// The lost ones themselves are not marked unless they wait for another.
    pub fn waiting_for(&self, lost: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut waiting = vec![false; self.len()];
        let mut queue: VecDeque<usize> = (0..self.len()).filter(|task| lost(*task)).collect();
        while let Some(task) = queue.pop_front() {
            for dependant in &self.dependants[task] {
                if !std::mem::replace(&mut waiting[*dependant], true) {
                    queue.push_back(*dependant);
                }
            }
        }
        waiting
    }

    /// Blockers before what they block, else in plan order. Tasks in or behind a cycle are missing.
    pub fn order(&self) -> Vec<usize> {
        let mut open: Vec<usize> = self.blockers.iter().map(Vec::len).collect();
        let free = (0..self.len()).filter(|task| open[*task] == 0);
        let mut heap: BinaryHeap<Reverse<usize>> = free.map(Reverse).collect();
        let mut order = Vec::with_capacity(self.len());
        while let Some(Reverse(task)) = heap.pop() {
            order.push(task);
            for dependant in &self.dependants[task] {
                open[*dependant] -= 1;
                if open[*dependant] == 0 {
                    heap.push(Reverse(*dependant));
                }
            }
        }
        order
    }

    /// The level of each task: 1 without blockers, else one more than its highest blocker; 0 in or behind a cycle.
    pub fn levels(&self) -> Vec<u32> {
        let mut levels = vec![0u32; self.len()];
        for task in self.order() {
            let below = self.blockers[task].iter().map(|blocker| levels[*blocker]).max();
            levels[task] = below.unwrap_or(0).saturating_add(1);
        }
        levels
    }

    /// How many tasks wait for each task, directly or not, each counted once. Tasks in or behind a cycle count nothing.
    pub fn unblocks(&self) -> Vec<u32> {
        let order = self.order();
        let mut counts = vec![0u32; self.len()];
        let words = COUNTED_AT_ONCE.min(self.len().max(1)).div_ceil(64);
        let mut reach = vec![0u64; words * self.len()];
        for first in (0..self.len()).step_by(words * 64) {
            reach.fill(0);
            for task in order.iter().rev() {
                for dependant in &self.dependants[*task] {
                    merge(&mut reach, *task, *dependant, words);
                    if let Some(bit) = dependant.checked_sub(first).filter(|bit| *bit < words * 64) {
                        reach[task * words + bit / 64] |= 1 << (bit % 64);
                    }
                }
                let row = &reach[task * words..(task + 1) * words];
                counts[*task] += row.iter().map(|word| word.count_ones()).sum::<u32>();
            }
        }
        counts
    }

    /// The cycles, each as its tasks in the order of waiting, the earliest task of the plan first. Tasks that block
    /// themselves are left out. Several cycles through the same tasks are reported until breaking the reported ones would
    /// free all, at most a hundred.
    pub fn cycles(&self) -> Vec<Vec<usize>> {
        let mut edges = self.blockers.clone();
        for (task, blockers) in edges.iter_mut().enumerate() {
            blockers.retain(|blocker| *blocker != task);
        }
        let mut cycles = Vec::new();
        let mut knots: VecDeque<Vec<usize>> = knots(&edges, (0..self.len()).collect()).into();
        while let Some(knot) = knots.pop_front() {
            if cycles.len() == CYCLES_MAX {
                break;
            }
            let Some(cycle) = shortest_cycle(&edges, &knot) else {
                continue;
            };
            if let (Some(first), Some(last)) = (cycle.first(), cycle.last()) {
                edges[*last].retain(|blocker| blocker != first);
            }
            cycles.push(cycle);
            knots.extend(self::knots(&edges, knot));
        }
        cycles.sort();
        cycles
    }
}

/// Adds what a dependant reaches to what a task reaches.
fn merge(reach: &mut [u64], task: usize, dependant: usize, words: usize) {
    if task == dependant {
        return;
    }
    let (low, high) = (task.min(dependant), task.max(dependant));
    let (before, after) = reach.split_at_mut(high * words);
    let (low, high) = (&mut before[low * words..(low + 1) * words], &mut after[..words]);
    let (into, from) = if task < dependant { (low, high) } else { (high, low) };
    for (into, from) in into.iter_mut().zip(from) {
        *into |= *from;
    }
}

/// The shortest path from the first task of a strongly connected component back to itself.
fn shortest_cycle(edges: &[Vec<usize>], knot: &[usize]) -> Option<Vec<usize>> {
    let start = *knot.iter().min()?;
    let mut came_from: BTreeMap<usize, usize> = knot.iter().map(|task| (*task, usize::MAX)).collect();
    let mut queue = VecDeque::from([start]);
    while let Some(task) = queue.pop_front() {
        for next in &edges[task] {
            if *next == start {
                let mut path = vec![task];
                while let Some(last) = path.last().filter(|last| **last != start) {
                    path.push(came_from[last]);
                }
                path.reverse();
                return Some(path);
            }
            if let Some(from) = came_from.get_mut(next).filter(|from| **from == usize::MAX) {
                *from = task;
                queue.push_back(*next);
            }
        }
    }
    None
}

/// Tarjan's strongly connected components among some tasks, without those of a single task. Not recursive, because a chain
/// of ten thousand blockers would be that deep.
fn knots(edges: &[Vec<usize>], among: Vec<usize>) -> Vec<Vec<usize>> {
    let mut search = Search {
        seen: among.iter().map(|task| (*task, Visit::default())).collect(),
        path: Vec::new(),
        count: 0,
        knots: Vec::new(),
    };
    for task in among {
        search.from(edges, task);
    }
    search.knots.sort();
    search.knots
}

#[derive(Default, Clone, Copy)]
struct Visit {
    /// The order in which it was found, from 1; 0 means not yet.
    found: usize,
    /// The earliest found that it leads back to.
    low: usize,
    on_path: bool,
}

struct Search {
    seen: BTreeMap<usize, Visit>,
    path: Vec<usize>,
    count: usize,
    knots: Vec<Vec<usize>>,
}

impl Search {
    fn from(&mut self, edges: &[Vec<usize>], root: usize) {
        if self.seen[&root].found != 0 {
            return;
        }
        let mut calls = vec![(root, 0)];
        self.find(root);
        while let Some((task, next)) = calls.last_mut() {
            let task = *task;
            let Some(blocker) = edges[task].get(*next).copied() else {
                calls.pop();
                self.leave(task, calls.last().map(|(caller, _)| *caller));
                continue;
            };
            *next += 1;
            match self.seen.get(&blocker).copied() {
                Some(visit) if visit.found == 0 => {
                    self.find(blocker);
                    calls.push((blocker, 0));
                }
                Some(visit) if visit.on_path => self.lower(task, visit.found),
                _ => {}
            }
        }
    }

    fn find(&mut self, task: usize) {
        self.count += 1;
        let visit = Visit { found: self.count, low: self.count, on_path: true };
        self.seen.insert(task, visit);
        self.path.push(task);
    }

    fn lower(&mut self, task: usize, low: usize) {
        if let Some(visit) = self.seen.get_mut(&task) {
            visit.low = visit.low.min(low);
        }
    }

    fn leave(&mut self, task: usize, caller: Option<usize>) {
        let visit = self.seen[&task];
        if let Some(caller) = caller {
            self.lower(caller, visit.low);
        }
        if visit.low != visit.found {
            return;
        }
        let start = self.path.iter().rposition(|other| *other == task).unwrap_or(0);
        let mut knot = self.path.split_off(start);
        for member in &knot {
            if let Some(visit) = self.seen.get_mut(member) {
                visit.on_path = false;
            }
        }
        if knot.len() > 1 {
            knot.sort_unstable();
            self.knots.push(knot);
        }
    }
}
