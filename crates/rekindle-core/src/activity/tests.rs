//! What activities add up to.

use super::*;

fn call(id: &str, input: &str) -> Activity {
    Activity::CallStarted(Call { id: id.to_owned(), tool: "Bash".to_owned(), input: input.to_owned(), acts: true })
}

fn ended(id: &str, output: &str) -> Activity {
    Activity::CallEnded { id: id.to_owned(), ok: true, output: output.to_owned() }
}

#[test]
fn the_same_call_eight_times_is_a_stall_and_a_different_result_is_none() {
    let mut fold = Fold::default();
    let mut signs = Vec::new();
    for n in 0..8 {
        fold.take(&call(&n.to_string(), "ls"));
        signs.extend(fold.take(&ended(&n.to_string(), "nothing")));
    }
    let words = "`Bash: ls` ran 8 times in a row and printed the same each time: nothing";
    assert_eq!(signs, [Sign::Stalled { times: 8, words: words.to_owned() }]);
    let mut fold = Fold::default();
    for n in 0..100 {
        fold.take(&call(&n.to_string(), "ls"));
        let output = format!("something {}", "x".repeat(n / 4));
        assert!(fold.take(&ended(&n.to_string(), &output)).is_empty(), "call {n}");
    }
}

#[test]
fn the_call_that_was_cut_off_is_known() {
    let mut fold = Fold::default();
    fold.take(&call("a", "cargo build"));
    fold.take(&call("b", "cargo test"));
    fold.take(&ended("b", "ok"));
    assert_eq!(fold.open_call().map(|call| call.input.as_str()), Some("cargo build"));
    fold.take(&ended("a", "ok"));
    assert_eq!(fold.open_call(), None);
}

#[test]
fn totals_are_told_once_and_the_window_is_kept() {
    let mut fold = Fold::default();
    let used = Activity::Used(Usage { input_tokens: 5, ..Usage::default() });
    assert_eq!(fold.take(&used).len(), 1);
    assert!(fold.take(&used).is_empty(), "nothing new");
    fold.take(&Activity::Context { used: 90, window: Some(100) });
    fold.take(&Activity::Context { used: 95, window: None });
    assert_eq!(fold.measure().remaining_percent(), Some(5));
}

#[test]
fn calls_are_told_only_after_a_compaction() {
    let mut fold = Fold::default();
    assert!(fold.take(&call("a", "ls")).is_empty());
    let signs = fold.take(&Activity::Compacted { automatic: Some(true) });
    assert_eq!(signs, [Sign::Compacted { automatic: Some(true), turns: 0, calls: 1 }]);
    assert_eq!(fold.take(&call("b", "ls")), [Sign::Called { calls: 2 }, Sign::Acted]);
}

#[test]
fn a_line_of_the_log_tells_what_it_is() {
    let long = "x".repeat(1000);
    assert_eq!(call("a", "ls\n -l").shown().as_deref(), Some("→ Bash: ls ⏎ -l"));
    assert!(ended("a", &long).shown().is_some_and(|line| line.starts_with("← xxx") && line.chars().count() < 300));
    assert_eq!(Activity::Turn.shown(), None);
}
