//! Where tasks come to stand.

use super::*;
use crate::picture::sample::task;

/// Every task with its layer and its place among the tasks of it.
fn places(graph: &Graph, tasks: &[TaskRow]) -> Vec<(String, usize, usize)> {
    let among = |at: usize| {
        let layer = &graph.layers[graph.layer_of[at]];
        let mut row = 0;
        for place in layer.iter().take_while(|place| **place != Place::Task(at)) {
            row += usize::from(matches!(place, Place::Task(_)));
        }
        row
    };
    (0..tasks.len()).map(|at| (tasks[at].id.to_string(), graph.layer_of[at], among(at))).collect()
}

fn named(places: &[(&str, usize, usize)]) -> Vec<(String, usize, usize)> {
    places.iter().map(|(name, layer, row)| ((*name).to_owned(), *layer, *row)).collect()
}

#[test]
fn a_task_stands_right_of_everything_that_it_waits_for() {
    let tasks = [
        task("a", "", "complete", &[]),
        task("b", "", "complete", &["a"]),
        task("c", "", "pending", &["a"]),
        task("d", "", "pending", &["a", "b", "c"]),
    ];
    let graph = layout(&tasks);
    assert_eq!(places(&graph, &tasks), named(&[("a", 0, 0), ("b", 1, 0), ("c", 1, 1), ("d", 2, 0)]));
    assert_eq!(graph.edges, [(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)]);
    assert!(graph.layers[1].contains(&Place::Bend(0)), "the line from a to d has a place of its own: {graph:?}");
    assert!(graph.waves.is_empty(), "one wave is none");
}

#[test]
fn boxes_stand_near_those_they_wait_for() {
    let tasks = [
        task("a", "", "complete", &[]),
        task("b", "", "complete", &[]),
        task("of-b", "", "pending", &["b"]),
        task("of-a", "", "pending", &["a"]),
    ];
    assert_eq!(places(&layout(&tasks), &tasks)[2..], named(&[("of-b", 1, 1), ("of-a", 1, 0)]));
}

#[test]
fn a_part_stands_before_the_whole_and_strangers_are_no_edges() {
    let mut whole = task("whole", "", "pending", &["gone"]);
    whole.parts = vec![crate::picture::sample::id("part")];
    let tasks = [whole, task("part", "", "pending", &[])];
    let graph = layout(&tasks);
    assert_eq!(places(&graph, &tasks), named(&[("whole", 1, 0), ("part", 0, 0)]));
    assert_eq!(graph.edges, [(1, 0)]);
}

#[test]
fn a_wave_stands_right_of_the_waves_before_it() {
    let mut tasks = [
        task("a", "", "complete", &[]),
        task("b", "", "complete", &["a"]),
        task("c", "", "pending", &[]),
        task("d", "", "pending", &["c", "a"]),
    ];
    tasks[2].wave = 2;
    tasks[3].wave = 3;
    let graph = layout(&tasks);
    assert_eq!(graph.layer_of, [0, 1, 2, 3], "c waits for its wave, not for a task");
    let spans: Vec<(u32, usize, usize)> = graph.waves.iter().map(|span| (span.wave, span.first, span.last)).collect();
    assert_eq!(spans, [(1, 0, 1), (2, 2, 2), (3, 3, 3)]);
    assert_eq!(graph.layers[2].len(), 2, "the line from a to d passes c: {graph:?}");
}

#[test]
fn nothing_and_circles_have_a_place_too() {
    assert_eq!(layout(&[]), Graph::default());
    let circle = [task("a", "", "pending", &["b"]), task("b", "", "pending", &["a"]), task("c", "", "pending", &["c"])];
    let graph = layout(&circle);
    assert_eq!(graph.layer_of.len(), 3);
    assert!(graph.layer_of.iter().all(|layer| *layer < graph.layers.len()), "{graph:?}");
}

/// Every place is taken once, whatever the plan, and every line has a place in every layer that it passes.
#[test]
fn no_two_tasks_share_a_place() {
    let names: Vec<String> = (0..60).map(|at| format!("t{at}")).collect();
    let tasks: Vec<TaskRow> = (0..60)
        .map(|at| {
            let before: Vec<&str> =
                (0..at).filter(|other| (at * 7 + other * 3) % 11 == 0).map(|at| names[at].as_str()).collect();
            task(&names[at], "", "pending", &before)
        })
        .collect();
    let graph = layout(&tasks);
    let all: Vec<Place> = graph.layers.iter().flatten().copied().collect();
    assert_eq!(all.iter().filter(|place| matches!(place, Place::Task(_))).count(), tasks.len());
    for (before, after) in &graph.edges {
        assert!(graph.layer_of[*before] < graph.layer_of[*after]);
        for layer in graph.layer_of[*before]..=graph.layer_of[*after] {
            assert!(graph.layers[layer].contains(&graph.place_in(layer, *before, *after)));
        }
    }
}

#[test]
fn a_thicket_of_dependencies_is_thinned_and_says_so() {
    let names: Vec<String> = (0..200).map(|at| format!("t{at}")).collect();
    let tasks: Vec<TaskRow> = (0..200)
        .map(|at| {
            let before: Vec<&str> = names[..at].iter().map(String::as_str).collect();
            task(&names[at], "", "pending", &before)
        })
        .collect();
    let graph = layout(&tasks);
    assert_eq!((graph.edges.len(), graph.left_out), (199, 199 * 200 / 2 - 199));
}
