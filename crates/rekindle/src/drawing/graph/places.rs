//! The positions of a graph's boxes and lines, in pixels: layers from left to right with space between waves, and in each
//! layer everything as near to its neighbours as the others allow, so that most lines are straight.

use std::collections::{BTreeMap, BTreeSet};

use super::super::scale::as_float;
use super::{BOX, HIGH};
use crate::picture::graph::{Graph, Place};

/// Room between two layers, for the curves.
const BETWEEN: f64 = 52.0;

/// Room between two boxes of a layer.
const APART: f64 = 14.0;

/// Space between a line and its neighbours.
const BESIDE: f64 = 12.0;

/// Margin around everything.
const EDGE: f64 = 12.0;

/// What the frame of a wave adds on its left and right.
const WAVE_PAD: f64 = 10.0;

/// Room for the names of waves above the boxes.
const WAVE_NAME: f64 = 26.0;

/// How often boxes are moved nearer to their neighbours.
const PULLS: usize = 6;

/// The frame of a wave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Band {
    pub wave: u32,
    pub left: f64,
    pub wide: f64,
}

/// The positions of everything.
pub(super) struct Places {
    pub width: f64,
    pub height: f64,
    pub bands: Vec<Band>,
    /// The left edge of every layer.
    lefts: Vec<f64>,
    /// The middle of every place, by layer.
    middles: Vec<BTreeMap<Place, f64>>,
}

impl Places {
    pub(super) fn of(graph: &Graph) -> Self {
        let lefts = lefts(graph);
        let bands: Vec<Band> = graph
            .waves
            .iter()
            .map(|span| {
                let left = lefts[span.first] - WAVE_PAD;
                Band { wave: span.wave, left, wide: lefts[span.last] + BOX + WAVE_PAD - left }
            })
            .collect();
        let rows = pulled(graph);
        let top = EDGE + if bands.is_empty() { 0.0 } else { WAVE_NAME };
        let half = |place: &Place| high(*place) / 2.0;
        let all = || rows.iter().flatten();
        let highest = all().map(|(place, y)| y - half(place)).fold(f64::INFINITY, f64::min);
        let lowest = all().map(|(place, y)| y + half(place)).fold(f64::NEG_INFINITY, f64::max);
        let shift = if highest.is_finite() { top - highest } else { top };
        let middles = rows.iter().map(|row| row.iter().map(|(place, y)| (*place, y + shift)).collect()).collect();
        let pad = if bands.is_empty() { 0.0 } else { WAVE_PAD };
        let width = lefts.last().map_or(0.0, |left| left + BOX) + EDGE + pad;
        Self { width, height: lowest + shift + EDGE, bands, lefts, middles }
    }

    /// The left edge of a layer, and the middle of a place in it.
    pub(super) fn at(&self, layer: usize, place: Place) -> (f64, f64) {
        let left = self.lefts.get(layer).copied().unwrap_or(EDGE);
        (left, self.middles.get(layer).and_then(|middles| middles.get(&place)).copied().unwrap_or(EDGE))
    }
}

fn lefts(graph: &Graph) -> Vec<f64> {
    let waves = !graph.waves.is_empty();
    let mut left = EDGE + if waves { WAVE_PAD } else { 0.0 };
    let mut lefts = Vec::new();
    for layer in 0..graph.layers.len() {
        lefts.push(left);
        let ends = graph.waves.iter().any(|span| span.last == layer);
        left += BOX + BETWEEN + if ends { WAVE_PAD } else { 0.0 };
    }
    lefts
}

fn high(place: Place) -> f64 {
    match place {
        Place::Task(_) => HIGH,
        Place::Bend(_) => 0.0,
    }
}

/// The smallest distance between the middles of two neighbours.
fn apart(one: Place, other: Place) -> f64 {
    let gap = match (one, other) {
        (Place::Task(_), Place::Task(_)) => APART,
        _ => BESIDE,
    };
    high(one) / 2.0 + gap + high(other) / 2.0
}

/// The middle of every place in every layer, somewhere around zero.
fn pulled(graph: &Graph) -> Vec<Vec<(Place, f64)>> {
    let mut rows: Vec<Vec<(Place, f64)>> = graph
        .layers
        .iter()
        .map(|layer| {
            let wanted: Vec<(Place, f64)> = layer.iter().map(|place| (*place, 0.0)).collect();
            fitted(&wanted)
        })
        .collect();
    let steps = graph.steps();
    for pull in 0..PULLS {
        let forward = pull % 2 == 0;
        for turn in 1..rows.len() {
            let (layer, fixed) = if forward { (turn, turn - 1) } else { (rows.len() - 1 - turn, rows.len() - turn) };
            let known: BTreeMap<Place, f64> = rows[fixed].iter().copied().collect();
            let wanted: Vec<(Place, f64)> = rows[layer]
                .iter()
                .map(|(place, y)| (*place, mean(&steps[layer.min(fixed)], *place, forward, &known).unwrap_or(*y)))
                .collect();
            rows[layer] = fitted(&wanted);
        }
    }
    rows
}

/// The mean height of the places that a place is connected with.
fn mean(steps: &BTreeSet<(Place, Place)>, place: Place, forward: bool, known: &BTreeMap<Place, f64>) -> Option<f64> {
    let others = steps.iter().filter_map(|(before, after)| match forward {
        true if *after == place => known.get(before),
        false if *before == place => known.get(after),
        _ => None,
    });
    let (sum, many) = others.fold((0.0, 0_usize), |(sum, many), y| (sum + y, many + 1));
    (many > 0).then(|| sum / as_float(many))
}

/// Heights as near to the wanted ones as their order and spacing allow (least squares).
fn fitted(wanted: &[(Place, f64)]) -> Vec<(Place, f64)> {
    let mut offset = 0.0;
    let mut offsets = Vec::new();
    // Blocks that move together: the sum of the members' wanted heights, and the number of members.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    let middle = |block: &(f64, usize)| block.0 / as_float(block.1);
    for (at, (place, y)) in wanted.iter().enumerate() {
        offset += at.checked_sub(1).map_or(0.0, |before| apart(wanted[before].0, *place));
        offsets.push(offset);
        let mut block = (y - offset, 1);
        while let Some(last) = blocks.pop_if(|last| middle(last) > middle(&block)) {
            block = (block.0 + last.0, block.1 + last.1);
        }
        blocks.push(block);
    }
    let heights = blocks.iter().flat_map(|block| std::iter::repeat_n(middle(block), block.1));
    heights.zip(offsets).zip(wanted).map(|((y, offset), (place, _))| (*place, y + offset)).collect()
}
