//! The graph: every task as a box in the layer given by its wave and its dependencies, every dependency as a curve with an
//! arrowhead that crosses no box. It keeps its size and scrolls in its own box.

mod places;

use maud::{Markup, html};
use rekindle_core::text::counted;
use rekindle_core::view::TaskRow;

use self::places::{Band, Places};
use super::measure::Font;
use super::{Links, class_of, px, tip};
use crate::picture::graph::{Graph, Place, layout};
use crate::picture::{Picture, standing};

/// Width of a box.
const BOX: f64 = 184.0;

/// Height of a box.
const HIGH: f64 = 44.0;

/// Length of a curve's head.
const HEAD: f64 = 7.0;

/// Space between a box and its text.
const PAD: f64 = 10.0;

/// The font of a task's name and state.
const NAME: Font = Font::bold(12.0);

/// The font of its title.
const TITLE: Font = Font::plain(11.0);

/// Most boxes: more would be too much to take in, and there is the list of tasks.
const BOXES_MAX: usize = 400;

/// The dependencies of a run's tasks.
pub(crate) fn graph(picture: &Picture, links: Links) -> Markup {
    if picture.tasks.is_empty() {
        return html! { p.empty { "There are no tasks to draw." } };
    }
    let tasks = &picture.tasks[..picture.tasks.len().min(BOXES_MAX)];
    let more = picture.tasks.len() - tasks.len();
    let plan = layout(tasks);
    let places = Places::of(&plan);
    let about = format!(
        "Graph of {} with {} in {}",
        counted(tasks.len(), "task", "tasks"),
        counted(plan.edges.len(), "dependency", "dependencies"),
        counted(plan.layers.len(), "layer", "layers")
    );
    html! {
        div.drawing tabindex="0" role="region" aria-label="Graph of dependencies" {
            svg.graph width=(px(places.width)) height=(px(places.height))
                viewBox={ "0 0 " (px(places.width)) " " (px(places.height)) } role="group" aria-label=(about) {
                @for band in &places.bands { (wave(band, places.height)) }
                @for (before, after) in &plan.edges {
                    (edge(&plan, &places, *before, *after, tasks[*before].state.as_str()))
                }
                @for (at, task) in tasks.iter().enumerate() {
                    @let (left, middle) = places.at(plan.layer_of[at], Place::Task(at));
                    (node_box(picture, task, (left, middle - HIGH / 2.0), links))
                }
            }
        }
        @if plan.left_out > 0 { p.note { (plan.left_out) " dependencies that span several layers are not drawn." } }
        @if more > 0 { p.note { (more) " more tasks are not drawn." } }
    }
}

fn wave(band: &Band, height: f64) -> Markup {
    html! {
        g.wave {
            rect x=(px(band.left)) y="4" width=(px(band.wide)) height=(px(height - 8.0)) rx="8" {}
            text x=(px(band.left + 10.0)) y="22" { "Wave " (band.wave) }
        }
    }
}

/// A dependency: curves between layers, straight lines past the boxes of those it only passes.
fn edge(plan: &Graph, places: &Places, before: usize, after: usize, state: &str) -> Markup {
    let (first, last) = (plan.layer_of[before], plan.layer_of[after]);
    let (left, mut y) = places.at(first, Place::Task(before));
    let mut x = left + BOX;
    let mut path = format!("M{} {}", px(x), px(y));
    for layer in first + 1..=last {
        let (left, middle) = places.at(layer, plan.place_in(layer, before, after));
        let stop = if layer == last { left - HEAD } else { left };
        let bend = f64::midpoint(x, stop);
        path += &format!("C{} {} {} {} {} {}", px(bend), px(y), px(bend), px(middle), px(stop), px(middle));
        (x, y) = (stop, middle);
        if layer < last {
            x = left + BOX;
            path += &format!("H{}", px(x));
        }
    }
    let (tip_x, half) = (x + HEAD, HEAD / 2.0);
    let head = format!("{},{} {},{} {},{}", px(tip_x), px(y), px(x), px(y - half), px(x), px(y + half));
    let class = if matches!(state, "complete" | "skipped") { "edge met" } else { "edge" };
    html! {
        g class=(class) { path d=(path) {} polygon points=(head) {} }
    }
}

fn node_box(picture: &Picture, task: &TaskRow, (x, y): (f64, f64), links: Links) -> Markup {
    let stands = standing::of(picture, task);
    let note = stands.note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
    let room = BOX - 2.0 * PAD;
    let symbol = NAME.width(stands.symbol) + NAME.width(" ");
    let first = NAME.fit(&format!("{} · {}", task.id, stands.word), room - symbol);
    html! {
        a href=(links.task(&task.id)) {
            title { (tip(&format!("{}: {} – {}{note}", task.id, task.title, stands.word))) }
            rect class={ "box " (class_of(stands.tone)) } x=(px(x)) y=(px(y)) width=(px(BOX)) height=(px(HIGH)) rx="6" {}
            // Whatever the font, nothing leaves the box.
            svg.clip x=(px(x + PAD)) y=(px(y)) width=(px(room)) height=(px(HIGH)) {
                text.name x="0" y="19" {
                    tspan class={ "symbol " (class_of(stands.tone)) } { (stands.symbol) } " " (first)
                }
                text.title x="0" y="35" { (TITLE.fit(&task.title, room)) }
            }
        }
    }
}
