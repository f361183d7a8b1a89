//! The layout of tasks in a drawing of their dependencies: in layers from left to right, the layers of a wave after those of
//! the wave before, and within a layer near the tasks they wait for. A dependency that spans layers has its own place in
//! each of them, so that its line passes between tasks and not through them. Places are counted, not measured: their size is
//! up to the drawing.

use std::collections::{BTreeMap, BTreeSet};

use rekindle_core::ids::TaskId;
use rekindle_core::view::TaskRow;

/// How often layers are ordered by their neighbours: more passes change nothing visible.
const SWEEPS: usize = 6;

/// Most places for lines that pass a layer: with more of them, only lines would be visible.
const BENDS_MAX: usize = 2_000;

/// What has a place in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// A task, by its number.
    Task(usize),
    /// The lines from a task to later layers, by the number of that task: they share one place.
    Bend(usize),
}

/// The layers of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaveSpan {
    pub wave: u32,
    pub first: usize,
    pub last: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Graph {
    /// The contents of each layer, from top to bottom; tasks by their number in the plan's order.
    pub layers: Vec<Vec<Place>>,
    pub layer_of: Vec<usize>,
    /// Dependencies: the first task has to end before the second may start.
    pub edges: Vec<(usize, usize)>,
    /// The waves in order, if there is more than one.
    pub waves: Vec<WaveSpan>,
    /// Dependencies that are left out because there are too many.
    pub left_out: usize,
}

impl Graph {
    /// Lines from one layer to the next, as places in the two.
    pub(crate) fn steps(&self) -> Vec<BTreeSet<(Place, Place)>> {
        let mut steps = vec![BTreeSet::new(); self.layers.len()];
        for (before, after) in &self.edges {
            let (first, last) = (self.layer_of[*before], self.layer_of[*after]);
            for (layer, step) in steps.iter_mut().enumerate().take(last).skip(first) {
                let from = self.place_in(layer, *before, *after);
                step.insert((from, self.place_in(layer + 1, *before, *after)));
            }
        }
        steps
    }

    /// Where a dependency passes a layer.
    pub(crate) fn place_in(&self, layer: usize, before: usize, after: usize) -> Place {
        match layer {
            layer if layer == self.layer_of[before] => Place::Task(before),
            layer if layer == self.layer_of[after] => Place::Task(after),
            _ => Place::Bend(before),
        }
    }
}

/// Lays out the tasks of a run. A part comes before the task that it belongs to, which waits for it.
pub(crate) fn layout(tasks: &[TaskRow]) -> Graph {
    let index: BTreeMap<&TaskId, usize> = tasks.iter().enumerate().map(|(at, task)| (&task.id, at)).collect();
    let mut edges = Vec::new();
    for (at, task) in tasks.iter().enumerate() {
        edges.extend(task.blocked_by.iter().filter_map(|before| Some((*index.get(before)?, at))));
        edges.extend(task.parts.iter().filter_map(|part| Some((*index.get(part)?, at))));
    }
    edges.sort_unstable();
    edges.dedup();
    let (layer_of, waves) = layers(tasks, &edges);
    // A cycle, which no plan has, has no first task; its lines are dropped.
    edges.retain(|(before, after)| layer_of[*before] < layer_of[*after]);
    let (edges, left_out) = within_bounds(edges, &layer_of);
    let mut order: Vec<Vec<Place>> = vec![Vec::new(); layer_of.iter().max().map_or(0, |last| last + 1)];
    for (at, layer) in layer_of.iter().enumerate() {
        order[*layer].push(Place::Task(at));
    }
    for bend in bends(&edges, &layer_of) {
        order[bend.1].push(Place::Bend(bend.0));
    }
    let mut graph = Graph { layers: order, layer_of, edges, waves, left_out };
    let steps = graph.steps();
    for sweep in 0..SWEEPS {
        order_layers(&mut graph.layers, &steps, sweep % 2 == 0);
    }
    graph
}

/// The longest path to each task, within its wave and after the waves before it.
fn layers(tasks: &[TaskRow], edges: &[(usize, usize)]) -> (Vec<usize>, Vec<WaveSpan>) {
    let mut layer = vec![0; tasks.len()];
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); tasks.len()];
    edges.iter().for_each(|(first, then)| before[*then].push(*first));
    let mut spans: Vec<WaveSpan> = Vec::new();
    let waves: BTreeSet<u32> = tasks.iter().map(|task| task.wave).collect();
    for wave in waves {
        let first = spans.last().map_or(0, |span: &WaveSpan| span.last + 1);
        let members: Vec<usize> = (0..tasks.len()).filter(|at| tasks[*at].wave == wave).collect();
        members.iter().for_each(|at| layer[*at] = first);
        // With a cycle, this ends after as many rounds as there are tasks.
        for _ in 0..members.len() {
            let mut moved = false;
            for at in &members {
                let earlier = before[*at].iter().filter(|other| tasks[**other].wave <= wave);
                let wanted = earlier.map(|other| layer[*other] + 1).max().unwrap_or(first);
                if wanted > layer[*at] && wanted < first + members.len() {
                    (layer[*at], moved) = (wanted, true);
                }
            }
            if !moved {
                break;
            }
        }
        let last = members.iter().map(|at| layer[*at]).max().unwrap_or(first);
        spans.push(WaveSpan { wave, first, last });
    }
    if spans.len() < 2 {
        spans.clear();
    }
    (layer, spans)
}

/// Where lines pass a layer: the task they come from, and the layer.
fn bends(edges: &[(usize, usize)], layer_of: &[usize]) -> BTreeSet<(usize, usize)> {
    let mut bends = BTreeSet::new();
    for (before, after) in edges {
        bends.extend((layer_of[*before] + 1..layer_of[*after]).map(|layer| (*before, layer)));
    }
    bends
}

/// As many dependencies as can be drawn, short ones first, and how many are left out.
fn within_bounds(edges: Vec<(usize, usize)>, layer_of: &[usize]) -> (Vec<(usize, usize)>, usize) {
    if bends(&edges, layer_of).len() <= BENDS_MAX {
        return (edges, 0);
    }
    let all = edges.len();
    let near = |(before, after): &(usize, usize)| layer_of[*after] - layer_of[*before] == 1;
    let edges: Vec<_> = edges.into_iter().filter(near).collect();
    let left_out = all - edges.len();
    (edges, left_out)
}

/// Orders every layer by the mean place of its neighbours in the layer before (or after, on the way back).
fn order_layers(order: &mut [Vec<Place>], steps: &[BTreeSet<(Place, Place)>], forward: bool) {
    let count = order.len();
    for turn in 1..count {
        let (layer, fixed) = if forward { (turn, turn - 1) } else { (count - 1 - turn, count - turn) };
        let rows: BTreeMap<Place, usize> = order[fixed].iter().enumerate().map(|(row, place)| (*place, row)).collect();
        let mut sums: BTreeMap<Place, (usize, usize)> = BTreeMap::new();
        for (before, after) in &steps[layer.min(fixed)] {
            let (mine, other) = if forward { (*after, *before) } else { (*before, *after) };
            let sum = sums.entry(mine).or_default();
            *sum = (sum.0 + rows.get(&other).copied().unwrap_or(0), sum.1 + 1);
        }
        // Places without neighbours keep their relative height.
        let scale = |row: usize| row * 1_000 * order[fixed].len().max(1) / order[layer].len().max(1);
        let mean = |place: &Place, row: usize| sums.get(place).map_or(scale(row), |(sum, many)| sum * 1_000 / many);
        let mut ranked: Vec<(usize, usize, Place)> =
            order[layer].iter().enumerate().map(|(row, place)| (mean(place, row), row, *place)).collect();
        ranked.sort_unstable();
        order[layer] = ranked.into_iter().map(|(_, _, place)| place).collect();
    }
}

#[cfg(test)]
mod tests;
