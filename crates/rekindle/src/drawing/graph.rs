//! The graph: every task as a box in the layer where its dependencies put it, every dependency as a curve with a head. It
//! keeps its size and scrolls in its own box.

use maud::{Markup, html};
use rekindle_core::view::TaskRow;

use super::scale::as_float;
use super::{Links, class_of, px, short, tip};
use crate::picture::graph::{Graph, Node, layout};
use crate::picture::{Picture, standing};

/// Width of a box.
const BOX: f64 = 172.0;

/// Height of a box.
const HIGH: f64 = 42.0;

/// Room between two layers, for the curves.
const BETWEEN: f64 = 54.0;

/// Room between two boxes of a layer.
const APART: f64 = 14.0;

/// Room around everything.
const EDGE: f64 = 10.0;

/// Length of a curve's head.
const HEAD: f64 = 7.0;

/// Columns of text that fit into a box.
const COLUMNS: usize = 26;

/// Most boxes: more cannot be taken in, and the list of tasks is there.
const BOXES_MAX: usize = 400;

/// The dependencies of a run's tasks.
#[must_use]
pub(crate) fn graph(picture: &Picture, links: Links) -> Markup {
    if picture.tasks.is_empty() {
        return html! { p.empty { "There are no tasks to draw." } };
    }
    let tasks = &picture.tasks[..picture.tasks.len().min(BOXES_MAX)];
    let more = picture.tasks.len() - tasks.len();
    let plan = layout(tasks);
    let places = Places::of(&plan);
    let about =
        format!("Graph of {} tasks with {} dependencies in {} layers", tasks.len(), plan.edges.len(), plan.layers);
    html! {
        div.drawing tabindex="0" role="region" aria-label="Graph of dependencies" {
            svg.graph width=(px(places.width)) height=(px(places.height))
                viewBox={ "0 0 " (px(places.width)) " " (px(places.height)) } role="group" aria-label=(about) {
                @for (before, after) in &plan.edges {
                    @let state = tasks[*before].state.as_str();
                    (edge(places.at(&plan.nodes[*before]), places.at(&plan.nodes[*after]), state))
                }
                @for (task, node) in tasks.iter().zip(&plan.nodes) {
                    (node_box(picture, task, places.at(node), links))
                }
            }
        }
        @if more > 0 { p.note { (more) " more tasks are not drawn." } }
    }
}

/// Where boxes stand: layers from left to right, each in the middle of the height.
struct Places {
    width: f64,
    height: f64,
    in_layer: Vec<usize>,
}

impl Places {
    fn of(graph: &Graph) -> Self {
        let mut in_layer = vec![0; graph.layers];
        graph.nodes.iter().for_each(|node| in_layer[node.layer] += 1);
        Self {
            width: as_float(graph.layers) * (BOX + BETWEEN) - BETWEEN + 2.0 * EDGE,
            height: as_float(graph.rows) * (HIGH + APART) - APART + 2.0 * EDGE,
            in_layer,
        }
    }

    fn at(&self, node: &Node) -> (f64, f64) {
        let layer = as_float(self.in_layer[node.layer]) * (HIGH + APART) - APART;
        let top = (self.height - layer) / 2.0;
        (EDGE + as_float(node.layer) * (BOX + BETWEEN), top + as_float(node.row) * (HIGH + APART))
    }
}

fn edge(before: (f64, f64), after: (f64, f64), state: &str) -> Markup {
    let (from_x, from_y) = (before.0 + BOX, before.1 + HIGH / 2.0);
    let (to_x, to_y) = (after.0, after.1 + HIGH / 2.0);
    let bend = BETWEEN / 2.0;
    let stop = to_x - HEAD;
    let curve = format!(
        "M{} {}C{} {} {} {} {} {}",
        px(from_x),
        px(from_y),
        px(from_x + bend),
        px(from_y),
        px(stop - bend),
        px(to_y),
        px(stop),
        px(to_y)
    );
    let head = format!(
        "{},{} {},{} {},{}",
        px(to_x),
        px(to_y),
        px(stop),
        px(to_y - HEAD / 2.0),
        px(stop),
        px(to_y + HEAD / 2.0)
    );
    let class = if matches!(state, "complete" | "skipped") { "edge met" } else { "edge" };
    html! {
        g class=(class) { path d=(curve) {} polygon points=(head) {} }
    }
}

fn node_box(picture: &Picture, task: &TaskRow, (x, y): (f64, f64), links: Links) -> Markup {
    let stands = standing::of(picture, task);
    let note = stands.note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
    let first = short(&format!("{} · {}", task.id, stands.word), COLUMNS - 2);
    html! {
        a href=(links.task(&task.id)) {
            title { (tip(&format!("{}: {} – {}{note}", task.id, task.title, stands.word))) }
            rect class={ "box " (class_of(stands.tone)) } x=(px(x)) y=(px(y)) width=(px(BOX)) height=(px(HIGH)) rx="6" {}
            text.name x=(px(x + 10.0)) y=(px(y + 18.0)) {
                tspan class={ "symbol " (class_of(stands.tone)) } { (stands.symbol) } " " (first)
            }
            text.title x=(px(x + 10.0)) y=(px(y + 33.0)) { (short(&task.title, COLUMNS)) }
        }
    }
}
