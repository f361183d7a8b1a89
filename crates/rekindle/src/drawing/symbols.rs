//! The positions of the symbols in a lane: each at its time, and those that would overlap as one cluster. A cluster shows
//! each kind once with its count, so that a crash and its recovery within one second are both visible in a run of hours.

use super::{TIP_COLUMNS, short};
use crate::picture::history::MarkKind;

/// Room that a symbol needs.
pub(super) const ROOM: f64 = 13.0;

/// Space for one character of a count beside a symbol.
const LETTER: f64 = 6.5;

/// Most kinds that a cluster shows; if there are more, the gravest stay, and the rest is a number.
const KINDS_MAX: usize = 3;

/// A symbol of a lane.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Symbol {
    /// Its kind, if it is one of the marks; graver ones are shown first.
    pub kind: Option<MarkKind>,
    pub symbol: &'static str,
    pub class: String,
    /// The position of its time.
    pub x: f64,
    /// What it means.
    pub text: String,
}

/// Symbols that share one position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cluster {
    /// Its middle.
    pub x: f64,
    wide: f64,
    /// What is drawn, from left to right.
    pub shown: Vec<Shown>,
    members: Vec<Symbol>,
}

/// One kind of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub symbol: &'static str,
    pub class: String,
    /// The count, if it is more than one.
    pub many: String,
}

impl Cluster {
    fn of(members: Vec<Symbol>, left: f64, right: f64) -> Self {
        let shown = shown(&members);
        let wide: f64 = shown.iter().map(Shown::wide).sum();
        let first = members.first().map_or(left, |symbol| symbol.x);
        let last = members.last().map_or(left, |symbol| symbol.x);
        let x = f64::midpoint(first, last).min(right - wide / 2.0).max(left + wide / 2.0);
        Self { x, wide, shown, members }
    }

    /// What it means, in order of time.
    pub(super) fn text(&self) -> String {
        let all: Vec<&str> = self.members.iter().map(|symbol| symbol.text.as_str()).collect();
        short(&all.join(" · "), TIP_COLUMNS)
    }

    pub(super) fn left(&self) -> f64 {
        self.x - self.wide / 2.0
    }

    pub(super) fn right(&self) -> f64 {
        self.x + self.wide / 2.0
    }
}

impl Shown {
    fn wide(&self) -> f64 {
        let room = if self.symbol.is_empty() { 0.0 } else { ROOM };
        room + LETTER * super::scale::as_float(self.many.chars().count())
    }
}

/// Clusters of symbols between two edges; none touches another as long as there is enough space.
pub(super) fn clustered(mut symbols: Vec<Symbol>, left: f64, right: f64) -> Vec<Cluster> {
    symbols.sort_by(|a, b| a.x.total_cmp(&b.x));
    let mut clusters: Vec<Cluster> = Vec::new();
    for symbol in symbols {
        let mut next = Cluster::of(vec![symbol], left, right);
        // Grown, it may touch the one before it.
        while let Some(mut last) = clusters.pop_if(|last| next.left() < last.right()) {
            last.members.append(&mut next.members);
            next = Cluster::of(last.members, left, right);
        }
        clusters.push(next);
    }
    clusters
}

/// What a cluster shows: each kind once, in order of time.
fn shown(members: &[Symbol]) -> Vec<Shown> {
    let mut kinds: Vec<(&Symbol, usize)> = Vec::new();
    for symbol in members {
        match kinds.iter_mut().find(|(known, _)| known.symbol == symbol.symbol && known.class == symbol.class) {
            Some((_, many)) => *many += 1,
            None => kinds.push((symbol, 1)),
        }
    }
    let mut weights: Vec<u8> = kinds.iter().map(|(symbol, _)| weight(symbol)).collect();
    weights.sort_unstable_by(|a, b| b.cmp(a));
    let least = weights.get(KINDS_MAX - 1).copied().unwrap_or(0);
    let (mut shown, mut rest) = (Vec::new(), 0);
    let mut free = KINDS_MAX;
    let graver = kinds.iter().filter(|(symbol, _)| weight(symbol) > least).count();
    let mut equal = KINDS_MAX.saturating_sub(graver);
    for (symbol, many) in kinds {
        let taken = weight(symbol) > least || (weight(symbol) == least && equal > 0);
        if !taken || free == 0 {
            rest += many;
            continue;
        }
        free -= 1;
        equal -= usize::from(weight(symbol) == least);
        let times = if many > 1 { format!("×{many}") } else { String::new() };
        shown.push(Shown { symbol: symbol.symbol, class: symbol.class.clone(), many: times });
    }
    if rest > 0 {
        shown.push(Shown { symbol: "", class: String::new(), many: format!("+{rest}") });
    }
    shown
}

/// The importance of a symbol: what went wrong first, then what repaired it.
fn weight(symbol: &Symbol) -> u8 {
    match symbol.kind {
        Some(MarkKind::Failed | MarkKind::Crash) => 4,
        Some(MarkKind::Recovery) => 3,
        Some(MarkKind::Done) | None => 1,
        Some(_) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(kind: MarkKind, x: f64) -> Symbol {
        let text = kind.name().to_owned();
        Symbol { kind: Some(kind), symbol: kind.symbol(), class: kind.name().to_owned(), x, text }
    }

    fn drawn(cluster: &Cluster) -> String {
        cluster.shown.iter().map(|shown| format!("{}{}", shown.symbol, shown.many)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_crash_and_its_recovery_in_one_moment_are_both_seen() {
        let given = vec![symbol(MarkKind::Crash, 50.0), symbol(MarkKind::Recovery, 50.1), symbol(MarkKind::Done, 50.2)];
        let clusters = clustered(given, 0.0, 100.0);
        assert_eq!(clusters.len(), 1);
        assert_eq!(
            (drawn(&clusters[0]).as_str(), clusters[0].text().as_str()),
            ("✖ ↻ ✔", "crash · recovery · complete")
        );
        let apart = vec![symbol(MarkKind::Crash, 10.0), symbol(MarkKind::Recovery, 60.0)];
        let places: Vec<f64> = clustered(apart, 0.0, 100.0).iter().map(|cluster| cluster.x).collect();
        assert_eq!(places, [10.0, 60.0], "where there is room each stands at its time");
    }

    #[test]
    fn many_become_one_with_a_number() {
        let many = (0..9).map(|at| symbol(MarkKind::Recovery, 40.0 + f64::from(at)));
        let clusters = clustered(many.collect(), 0.0, 200.0);
        assert_eq!(clusters.iter().map(drawn).collect::<Vec<_>>(), ["↻×9"]);
        let all: Vec<Symbol> = MarkKind::ALL.into_iter().map(|kind| symbol(kind, 40.0)).collect();
        let clusters = clustered(all, 0.0, 200.0);
        let seen = drawn(&clusters[0]);
        assert!(clusters.len() == 1 && seen.contains('✖') && seen.contains('↻') && seen.ends_with("+6"), "{seen}");
    }

    #[test]
    fn clusters_stay_inside_and_touch_nobody() {
        let kinds = MarkKind::ALL;
        for many in [1_u32, 3, 20, 400] {
            let step = 300.0 / f64::from(many);
            let given = (0..many).map(|at| symbol(kinds[at as usize % kinds.len()], f64::from(at) * step));
            let clusters = clustered(given.collect(), 0.0, 300.0);
            assert!(clusters.windows(2).all(|pair| pair[0].right() <= pair[1].left()), "{many}");
            assert!(clusters.iter().all(|cluster| cluster.left() >= -0.01 && cluster.right() <= 300.01), "{many}");
            let members: usize = clusters.iter().map(|cluster| cluster.members.len()).sum();
            assert_eq!(members, many as usize, "nothing is lost");
        }
    }
}
