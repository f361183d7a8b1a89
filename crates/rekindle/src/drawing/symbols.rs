//! Where the symbols of a lane stand: at their time where there is room, else beside each other in order. What befell an attempt of
//! a second in a run of hours is then seen too.

use crate::picture::history::MarkKind;

/// Room that a symbol needs.
pub(super) const ROOM: f64 = 11.0;

/// Symbols of one lane that stand beside each other; with more of them the graver ones stand for their neighbours.
const BESIDE_MAX: usize = 24;

/// A symbol of a lane.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Symbol {
    /// What it is, where it is one of the marks; the graver one stays where two become one.
    pub kind: Option<MarkKind>,
    /// What is drawn.
    pub symbol: &'static str,
    /// Its classes.
    pub class: String,
    /// Where its time is, then where it stands.
    pub x: f64,
    /// What it means.
    pub text: String,
}

/// Places symbols that are in order of time between two edges.
#[must_use]
pub(super) fn placed(mut symbols: Vec<Symbol>, left: f64, right: f64) -> Vec<Symbol> {
    symbols.sort_by(|a, b| a.x.total_cmp(&b.x));
    let mut kept = folded(symbols, |last, next| last.symbol == next.symbol);
    if kept.len() > BESIDE_MAX {
        kept = folded(kept, |_, _| true);
    }
    let mut free = left;
    for symbol in &mut kept {
        symbol.x = symbol.x.max(free);
        free = symbol.x + ROOM;
    }
    let mut free = right;
    for symbol in kept.iter_mut().rev() {
        symbol.x = symbol.x.min(free);
        free = symbol.x - ROOM;
    }
    kept
}

/// Symbols nearer to each other than the room of one become one, where they may.
fn folded(symbols: Vec<Symbol>, may: impl Fn(&Symbol, &Symbol) -> bool) -> Vec<Symbol> {
    let mut kept: Vec<Symbol> = Vec::new();
    for symbol in symbols {
        match kept.last_mut().filter(|last| symbol.x - last.x < ROOM && may(last, &symbol)) {
            Some(last) => {
                let text = super::short(&format!("{} · {}", last.text, symbol.text), super::TIP_COLUMNS);
                if weight(&symbol) > weight(last) {
                    *last = Symbol { x: last.x, ..symbol };
                }
                last.text = text;
            }
            None => kept.push(symbol),
        }
    }
    kept
}

/// Which of two symbols matters more: what went wrong, then what mended it.
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
        Symbol { kind: Some(kind), symbol: kind.symbol(), class: String::new(), x, text }
    }

    #[test]
    fn a_crash_and_its_recovery_in_one_moment_are_both_seen() {
        let given = vec![symbol(MarkKind::Crash, 10.0), symbol(MarkKind::Recovery, 10.1), symbol(MarkKind::Done, 10.2)];
        let placed = placed(given, 0.0, 100.0);
        let seen: Vec<(&str, f64)> = placed.iter().map(|symbol| (symbol.text.as_str(), symbol.x)).collect();
        assert_eq!(seen, [("crash", 10.0), ("recovery", 10.0 + ROOM), ("done", 10.0 + ROOM * 2.0)]);
    }

    #[test]
    fn symbols_at_the_end_stay_inside_and_many_become_few() {
        let given = vec![symbol(MarkKind::Crash, 99.0), symbol(MarkKind::Done, 100.0)];
        let at_the_end: Vec<f64> = placed(given, 0.0, 100.0).iter().map(|symbol| symbol.x).collect();
        assert_eq!(at_the_end, [100.0 - ROOM, 100.0]);
        let kinds = [MarkKind::Crash, MarkKind::Recovery];
        let many = (0..400).map(|at| symbol(kinds[at % 2], f64::from(u32::try_from(at).expect("small")) / 4.0));
        let few = placed(many.collect(), 0.0, 100.0);
        assert!(few.len() < 12 && few.iter().all(|symbol| symbol.kind == Some(MarkKind::Crash)), "{few:?}");
        let same = placed(vec![symbol(MarkKind::Compaction, 1.0), symbol(MarkKind::Compaction, 2.0)], 0.0, 100.0);
        assert_eq!((same.len(), same[0].text.as_str()), (1, "compaction · compaction"));
    }
}
