//! Where tasks stand in a drawing of their dependencies: a layer per wave, and within a layer near those they wait for.
//! Places are counted, not measured: how large a place is, is left to whoever draws.

use std::collections::BTreeMap;

use rekindle_core::ids::TaskId;
use rekindle_core::view::TaskRow;

/// How often layers are ordered by their neighbours: more changes nothing that a person would see.
const SWEEPS: usize = 4;

/// A task's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub task: TaskId,
    /// Its layer, from 0.
    pub layer: usize,
    /// Its place in the layer, from 0.
    pub row: usize,
}

/// The drawing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Graph {
    /// Every task's place, in the plan's order.
    pub nodes: Vec<Node>,
    /// Who waits for whom, as places in `nodes`: the first has to end before the second may begin.
    pub edges: Vec<(usize, usize)>,
    /// How many layers there are.
    pub layers: usize,
    /// The most places in one layer.
    pub rows: usize,
}

/// Places the tasks of a run. A part comes before the whole that waits for it.
#[must_use]
pub(crate) fn layout(tasks: &[TaskRow]) -> Graph {
    let index: BTreeMap<&TaskId, usize> = tasks.iter().enumerate().map(|(at, task)| (&task.id, at)).collect();
    let mut edges = Vec::new();
    for (at, task) in tasks.iter().enumerate() {
        edges.extend(task.blocked_by.iter().filter_map(|before| Some((*index.get(before)?, at))));
        edges.extend(task.parts.iter().filter_map(|part| Some((*index.get(part)?, at))));
    }
    edges.sort_unstable();
    edges.dedup();
    let layer_of = layers(tasks.len(), &edges);
    let layers = layer_of.iter().max().map_or(0, |last| last + 1);
    let mut order: Vec<Vec<usize>> = vec![Vec::new(); layers];
    for (at, layer) in layer_of.iter().enumerate() {
        order[*layer].push(at);
    }
    for sweep in 0..SWEEPS {
        order_layers(&mut order, &edges, sweep % 2 == 0);
    }
    let mut rows = vec![0; tasks.len()];
    for layer in &order {
        for (row, at) in layer.iter().enumerate() {
            rows[*at] = row;
        }
    }
    let nodes =
        tasks.iter().enumerate().map(|(at, task)| Node { task: task.id.clone(), layer: layer_of[at], row: rows[at] });
    Graph { nodes: nodes.collect(), layers, rows: order.iter().map(Vec::len).max().unwrap_or(0), edges }
}

/// The longest way to each task. A circle, which no plan has, ends after as many rounds as there are tasks.
fn layers(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut layer = vec![0; count];
    for _ in 0..count {
        let mut moved = false;
        for (before, after) in edges {
            if layer[*after] <= layer[*before] && layer[*before] + 1 < count {
                layer[*after] = layer[*before] + 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    layer
}

/// Orders every layer by the mean place of its neighbours in the layer before (or after, on the way back).
fn order_layers(order: &mut [Vec<usize>], edges: &[(usize, usize)], forward: bool) {
    let mut place: BTreeMap<usize, usize> = BTreeMap::new();
    let layers: Vec<usize> = if forward { (0..order.len()).collect() } else { (0..order.len()).rev().collect() };
    for layer in layers {
        let mean = |at: usize| {
            let neighbours = edges.iter().filter_map(|(before, after)| match (forward, *before, *after) {
                (true, before, after) if after == at => place.get(&before),
                (false, before, after) if before == at => place.get(&after),
                _ => None,
            });
            let (sum, many) = neighbours.fold((0, 0), |(sum, many), place| (sum + place, many + 1));
            (sum * 1_000_usize).checked_div(many)
        };
        let mut ranked: Vec<(usize, usize, usize)> = Vec::new();
        for (row, at) in order[layer].iter().enumerate() {
            ranked.push((mean(*at).unwrap_or(row * 1_000), row, *at));
        }
        ranked.sort_unstable();
        order[layer] = ranked.into_iter().map(|(_, _, at)| at).collect();
        for (row, at) in order[layer].iter().enumerate() {
            place.insert(*at, row);
        }
    }
}

#[cfg(test)]
mod tests;
