//! What the tasks of a plan say about each other: duplicate ids, blockers that do not exist, cycles, waves that contradict
//! blockers. Settles the wave of every task. What one task says on its own has been parsed before.
//!
//! Tasks of one agent that come before their blockers in the document are not a problem here: an agent is given the tasks
//! whose blockers are complete or earlier in its list, so the order adapts and nothing waits for ever.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    PlanTask,
    draft::Draft,
    graph::Graph,
    nearest::nearest,
    problem::{Problems, Span, quote},
    read::Misnamed,
};

/// Unknown blockers for which the nearest task is searched: the search goes through every task of the plan.
const SEARCHED_MAX: usize = 100;

/// Blockers of each task by position, with where each is named.
type Edges = Vec<Vec<(usize, Span)>>;

/// Checks the tasks against each other. Returns the complete tasks, and whether the plan names waves.
pub(super) fn check(mut drafts: Vec<Draft>, misnamed: &Misnamed, problems: &mut Problems) -> (Vec<PlanTask>, bool) {
    let positions = positions(&drafts, problems);
    let edges = resolve(&drafts, &positions, misnamed, problems);
    let graph = Graph::from_blockers(edges.iter().map(|of_task| of_task.iter().map(|(b, _)| *b).collect()).collect());
    report_cycles(&drafts, &graph, &edges, problems);
    let explicit = drafts.iter().any(|draft| draft.wave.is_some());
    let waves = if explicit { given_waves(&drafts, &graph, problems) } else { graph.levels() };
    if explicit {
        report_later_waves(&drafts, &waves, &edges, problems);
    }
    let ids: Vec<_> = drafts.iter().map(|draft| draft.task.id.clone()).collect();
    for ((draft, wave), blockers) in drafts.iter_mut().zip(waves).zip(edges) {
        draft.task.wave = wave;
        draft.task.blocked_by = blockers.into_iter().map(|(blocker, _)| ids[blocker].clone()).collect();
    }
    (drafts.into_iter().map(|draft| draft.task).collect(), explicit)
}

fn id(draft: &Draft) -> &str {
    draft.task.id.as_str()
}

/// The first position of each id; a second one is an error.
fn positions(drafts: &[Draft], problems: &mut Problems) -> BTreeMap<String, usize> {
    let mut positions: BTreeMap<String, usize> = BTreeMap::new();
    for (position, draft) in drafts.iter().enumerate() {
        let first = *positions.entry(id(draft).to_owned()).or_insert(position);
        if first != position {
            let message =
                format!("the id {} is used twice, first on line {}", quote(id(draft)), drafts[first].task.line);
            problems.error("duplicate-id", draft.id_span, message).hint("give one of the two another id");
        }
    }
    positions
}

fn resolve(
    drafts: &[Draft],
    positions: &BTreeMap<String, usize>,
    misnamed: &Misnamed,
    problems: &mut Problems,
) -> Edges {
    let mut searched = 0;
    let mut edges = Vec::with_capacity(drafts.len());
    for (position, draft) in drafts.iter().enumerate() {
        let mut seen = BTreeSet::new();
        let mut blockers = Vec::new();
        for piece in &draft.blockers {
            match positions.get(&piece.text) {
                Some(blocker) if id(&drafts[*blocker]) == id(draft) => {
                    let message = format!("{} is blocked by itself", quote(id(&drafts[position])));
                    problems.error("self-blocked", piece.span, message);
                }
                Some(blocker) if seen.insert(*blocker) => blockers.push((*blocker, piece.span)),
                Some(_) => {}
                None if misnamed.contains(&piece.text) => {}
                None => {
                    let near = if searched < SEARCHED_MAX {
                        let others = drafts.iter().map(id).filter(|other| *other != id(draft));
                        nearest(&piece.text, others)
                    } else {
                        None
                    };
                    searched += 1;
                    report_unknown(&piece.text, piece.span, near, problems);
                }
            }
        }
        edges.push(blockers);
    }
    edges
}

fn report_unknown(text: &str, span: Span, near: Option<&str>, problems: &mut Problems) {
    let message = format!("unknown blocker {}: no task has this id", quote(text));
    let hint = match near {
        Some(near) => Some(format!("did you mean `{near}`?")),
        None if text.contains(char::is_whitespace) => Some("list ids with commas between them".to_owned()),
        None => None,
    };
    problems.error("unknown-blocker", span, message).maybe_hint(hint);
}

fn report_cycles(drafts: &[Draft], graph: &Graph, edges: &Edges, problems: &mut Problems) {
    for cycle in graph.cycles() {
        let (Some(first), Some(second)) = (cycle.first(), cycle.get(1)) else {
            continue;
        };
        let named = edges[*first].iter().find(|(blocker, _)| blocker == second);
        let span = named.map_or(drafts[*first].id_span, |(_, span)| *span);
        let path: Vec<&str> = cycle.iter().chain([first]).map(|task| id(&drafts[*task])).collect();
        let message = format!("tasks wait for each other in a cycle: {}", path.join(" → "));
        problems.error("cycle", span, message).hint("each waits for the next; remove one `blocked by`");
    }
}

/// The waves as given. A task without one takes the highest of its blockers, else the first one.
fn given_waves(drafts: &[Draft], graph: &Graph, problems: &mut Problems) -> Vec<u32> {
    let first = drafts.iter().filter_map(|draft| draft.wave).min().unwrap_or(1);
    let mut waves: Vec<u32> = drafts.iter().map(|draft| draft.wave.unwrap_or(first)).collect();
    for task in graph.order() {
        if drafts[task].wave.is_none() {
            let blockers = graph.blockers(task).iter().map(|blocker| waves[*blocker]);
            waves[task] = blockers.max().unwrap_or(first);
        }
    }
    if !problems.has("bad-wave") {
        for (draft, wave) in drafts.iter().zip(&waves).filter(|(draft, _)| draft.wave.is_none()) {
            let message = format!("{} is in no wave although others are: it is put into wave {wave}", quote(id(draft)));
            problems
                .warning("no-wave", draft.id_span, message)
                .hint(format!("move it under `## Wave {wave}`, or give it `- wave: {wave}`"));
        }
    }
    waves
}

fn report_later_waves(drafts: &[Draft], waves: &[u32], edges: &Edges, problems: &mut Problems) {
    for (task, blockers) in edges.iter().enumerate() {
        for (blocker, span) in blockers.iter().filter(|(blocker, _)| waves[*blocker] > waves[task]) {
            let (id, later) = (quote(id(&drafts[task])), quote(id(&drafts[*blocker])));
            let (wave, later_wave) = (waves[task], waves[*blocker]);
            let message = format!("{id} of wave {wave} is blocked by {later} of the later wave {later_wave}");
            problems
                .error("later-wave", *span, message)
                .hint(format!("wave {later_wave} begins when wave {wave} has ended: move one of the two"));
        }
    }
}
