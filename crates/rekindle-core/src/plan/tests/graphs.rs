//! Graphs of blockers, against plain definitions on small ones and for time on large ones.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::plan::Graph;

fn reachable(graph: &Graph, from: usize) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(task) = open.pop() {
        for next in graph.dependants(task) {
            if seen.insert(*next) {
                open.push(*next);
            }
        }
    }
    seen
}

#[test]
fn a_diamond() {
    let graph = Graph::from_blockers(vec![vec![], vec![0], vec![0], vec![1, 2], vec![]]);
    assert_eq!(graph.levels(), [1, 2, 2, 3, 1]);
    assert_eq!(graph.unblocks(), [3, 1, 1, 0, 0]);
    assert_eq!(graph.order(), [0, 1, 2, 3, 4]);
    assert_eq!(graph.ready(|task| task == 0), [1, 2, 4]);
    assert_eq!(graph.waiting_for(|task| task == 1), [false, false, false, true, false]);
    assert!(graph.cycles().is_empty());
}

#[test]
fn circles() {
    let graph = Graph::from_blockers(vec![vec![1, 0], vec![2], vec![0], vec![4], vec![3], vec![3]]);
    assert_eq!(graph.cycles(), [vec![0, 1, 2], vec![3, 4]]);
    assert_eq!(graph.levels(), [0; 6]);
    assert_eq!(Graph::from_blockers(vec![vec![1], vec![0, 2], vec![1]]).cycles(), [[0, 1], [1, 2]]);
    assert!(Graph::from_blockers(vec![vec![0], vec![9]]).cycles().is_empty());
}

#[test]
fn ten_thousand_tasks() {
    /// As many as a plan must be able to have.
    const TASKS: usize = 10_000;
    let chain = (0..TASKS).map(|i| if i == 0 { vec![] } else { vec![i - 1] });
    let layers = (0..TASKS).map(|i| (1..=5).filter_map(|d| i.checked_sub(d * 37)).collect());
    let ring = (0..TASKS).map(|i| vec![(i + 1) % TASKS]);
    let chain = Graph::from_blockers(chain.collect());
    assert_eq!(chain.unblocks()[0] as usize, TASKS - 1);
    assert_eq!(chain.levels()[TASKS - 1] as usize, TASKS);
    assert!(Graph::from_blockers(layers.collect()).unblocks()[0] > 200);
    assert_eq!(Graph::from_blockers(ring.collect()).cycles()[0].len(), TASKS);
}

proptest! {
    #[test]
    fn counts_levels_and_order_keep_their_definitions(edges in prop::collection::vec((0usize..30, 0usize..30), 0..90)) {
        let mut blockers = vec![Vec::new(); 30];
        for (a, b) in edges.into_iter().filter(|(a, b)| a != b) {
            blockers[a.max(b)].push(a.min(b));
        }
        let graph = Graph::from_blockers(blockers);
        let levels = graph.levels();
        let counts = graph.unblocks();
        for task in 0..graph.len() {
            prop_assert_eq!(counts[task] as usize, reachable(&graph, task).len());
            let below = graph.blockers(task).iter().map(|b| levels[*b]).max().unwrap_or(0);
            prop_assert_eq!(levels[task], below + 1);
        }
        prop_assert_eq!(graph.order().len(), graph.len());
        prop_assert!(graph.cycles().is_empty());
    }

    #[test]
    fn reported_circles_are_real_and_breaking_them_frees_all(edges in prop::collection::vec((0usize..12, 0usize..12), 0..40)) {
        let mut blockers = vec![Vec::new(); 12];
        for (a, b) in edges.into_iter().filter(|(a, b)| a != b) {
            blockers[a].push(b);
        }
        let graph = Graph::from_blockers(blockers.clone());
        let cycles = graph.cycles();
        for cycle in &cycles {
            prop_assert_eq!(cycle.iter().collect::<BTreeSet<_>>().len(), cycle.len());
            for (i, task) in cycle.iter().enumerate() {
                let next = cycle[(i + 1) % cycle.len()];
                prop_assert!(graph.blockers(*task).contains(&next));
                // Break it where it closes.
                if i + 1 == cycle.len() {
                    blockers[*task].retain(|b| *b != next);
                }
            }
        }
        prop_assert_eq!(cycles.is_empty(), graph.order().len() == graph.len());
        let broken = Graph::from_blockers(blockers);
        prop_assert_eq!(broken.order().len(), broken.len());
    }
}
