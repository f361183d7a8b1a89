//! Where tasks come to stand.

use super::*;
use crate::picture::sample::task;

fn places(graph: &Graph) -> Vec<(&str, usize, usize)> {
    graph.nodes.iter().map(|node| (node.task.as_str(), node.layer, node.row)).collect()
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
    assert_eq!(places(&graph), [("a", 0, 0), ("b", 1, 0), ("c", 1, 1), ("d", 2, 0)]);
    assert_eq!(graph.edges, [(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)]);
    assert_eq!((graph.layers, graph.rows), (3, 2));
}

#[test]
fn boxes_stand_near_those_they_wait_for() {
    let tasks = [
        task("a", "", "complete", &[]),
        task("b", "", "complete", &[]),
        task("of-b", "", "pending", &["b"]),
        task("of-a", "", "pending", &["a"]),
    ];
    assert_eq!(places(&layout(&tasks))[2..], [("of-b", 1, 1), ("of-a", 1, 0)]);
}

#[test]
fn a_part_stands_before_the_whole_and_strangers_are_no_edges() {
    let mut whole = task("whole", "", "pending", &["gone"]);
    whole.parts = vec![crate::picture::sample::id("part")];
    let graph = layout(&[whole, task("part", "", "pending", &[])]);
    assert_eq!(places(&graph), [("whole", 1, 0), ("part", 0, 0)]);
    assert_eq!(graph.edges, [(1, 0)]);
}

#[test]
fn nothing_and_circles_have_a_place_too() {
    assert_eq!(layout(&[]), Graph::default());
    let circle = [task("a", "", "pending", &["b"]), task("b", "", "pending", &["a"]), task("c", "", "pending", &["c"])];
    let graph = layout(&circle);
    assert_eq!(graph.nodes.len(), 3);
    assert!(graph.nodes.iter().all(|node| node.layer < graph.layers && node.row < graph.rows), "{graph:?}");
}

/// Every place is taken once, whatever the plan.
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
    let unique: std::collections::BTreeSet<_> = graph.nodes.iter().map(|node| (node.layer, node.row)).collect();
    assert_eq!(unique.len(), tasks.len());
    assert!(graph.edges.iter().all(|(before, after)| graph.nodes[*before].layer < graph.nodes[*after].layer));
}
