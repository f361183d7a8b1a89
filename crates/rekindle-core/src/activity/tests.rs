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
    let words = "`Bash: ls` ran 8 times in a row and printed the same each time".to_owned();
    assert_eq!(signs, [StreamEvent::Stalled { times: 8, words, printed: "nothing".to_owned() }]);
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
    assert_eq!(signs, [StreamEvent::Compacted { automatic: Some(true), turns: 0, calls: 1 }]);
    assert_eq!(fold.take(&call("b", "ls")), [StreamEvent::Called { calls: 2 }, StreamEvent::Acted]);
}

#[test]
fn a_line_of_the_log_tells_what_it_is() {
    let long = "x".repeat(1000);
    assert_eq!(call("a", "ls\n -l").shown().as_deref(), Some("→ Bash: ls ⏎ -l"));
    assert!(ended("a", &long).shown().is_some_and(|line| line.starts_with("← xxx") && line.chars().count() < 300));
    assert_eq!(Activity::Turn.shown(), None);
}

mod under_way {
    use proptest::prelude::*;

    use super::super::under_way::{BYTES_MAX, CALLS_MAX};
    use super::super::*;
    use super::{call, ended};

    fn ledger(calls: &[(u8, bool)]) -> Ledger {
        let mut ledger = Ledger::default();
        for (at, (_, over)) in calls.iter().enumerate() {
            ledger.take(&call(&at.to_string(), &format!("make {at}")));
            if *over {
                ledger.take(&ended(&at.to_string(), &format!("made {at}")));
            }
        }
        ledger
    }

    /// 0 is not in the record, 1 without a result, 2 with one.
    fn held(calls: &[(u8, bool)]) -> Vec<Held> {
        let held = |(at, (how, _)): (usize, &(u8, bool))| Held {
            id: at.to_string(),
            tool: "Bash".to_owned(),
            input: format!("make {at}"),
            answered: *how == 2,
        };
        calls.iter().enumerate().filter(|(_, (how, _))| *how > 0).map(held).collect()
    }

    fn names(under_way: &UnderWay, at: usize) -> bool {
        under_way.calls.iter().any(|lost| lost.input == format!("make {at}"))
    }

    proptest! {
        #[test]
        fn each_call_is_known_or_told(calls in proptest::collection::vec((0u8..3, any::<bool>()), 0..40)) {
            let history = History::Read { held: held(&calls), prompted: true, whole: true };
            let found = super::super::under_way(&ledger(&calls), &history);
            prop_assert_eq!(&found, &super::super::under_way(&ledger(&calls), &history));
            prop_assert!(found.calls.len() <= CALLS_MAX);
            let lost = calls.iter().filter(|(how, _)| *how < 2).count();
            prop_assert_eq!(found.calls.len() as u64 + found.left_out, lost as u64);
            let open = calls.iter().filter(|(how, over)| *how < 2 && !over).count();
            for (at, (how, over)) in calls.iter().enumerate() {
                prop_assert!(*how < 2 || !names(&found, at), "call {} is known", at);
                prop_assert!(*how == 2 || *over || open > CALLS_MAX || names(&found, at), "call {} is open", at);
            }
            let order: Vec<usize> = found.calls.iter().filter_map(|lost| lost.input[5..].parse().ok()).collect();
            prop_assert!(order.is_sorted());
        }

        #[test]
        fn long_calls_stay_within_their_bytes(sizes in proptest::collection::vec(0usize..5000, 0..60)) {
            let mut ledger = Ledger::default();
            for (at, size) in sizes.iter().enumerate() {
                ledger.take(&call(&at.to_string(), &"x".repeat(*size)));
                ledger.take(&ended(&at.to_string(), &"y".repeat(*size)));
            }
            let found = super::super::under_way(&ledger, &History::Unknown);
            let bytes: usize = found.calls.iter().map(|lost| lost.input.len()).sum();
            prop_assert!(bytes <= BYTES_MAX);
            prop_assert_eq!(found.calls.len() as u64 + found.left_out, sizes.len() as u64);
        }
    }

    #[test]
    fn a_call_that_only_the_record_has_is_named_last() {
        let calls = [(2, true), (0, true), (1, false)];
        let mut held = held(&calls);
        held.push(Held { id: "z".into(), tool: "Bash".into(), input: "rm it".into(), answered: false });
        let history = History::Read { held, prompted: true, whole: true };
        let found = super::super::under_way(&ledger(&calls), &history);
        let told: Vec<(&str, bool)> =
            found.calls.iter().map(|lost| (lost.input.as_str(), lost.ending == Ending::Open)).collect();
        assert_eq!(told, [("make 1", false), ("make 2", true), ("rm it", true)]);
    }

    #[test]
    fn without_a_record_what_finished_since_the_last_turn_may_be_unknown() {
        let mut ledger = ledger(&[(0, true)]);
        ledger.take(&Activity::Result { ok: true, text: None });
        ledger.take(&call("b", "make b"));
        ledger.take(&ended("b", "made b"));
        ledger.take(&call("c", "make c"));
        let found = super::super::under_way(&ledger, &History::Unknown);
        let ending = Ending::MayBeKnown { ok: true, output: "made b".into() };
        assert_eq!(found.calls.iter().map(|lost| &lost.ending).collect::<Vec<_>>(), [&ending, &Ending::Open]);
        let shown = super::super::under_way(&ledger, &History::ShowsAll);
        assert_eq!(shown.calls.iter().map(|lost| lost.input.as_str()).collect::<Vec<_>>(), ["make c"]);
    }

    #[test]
    fn of_a_record_whose_beginning_was_not_read_old_calls_are_not_told() {
        let calls = [(0, true), (0, true), (2, true), (0, true)];
        let history = History::Read { held: held(&calls), prompted: false, whole: false };
        let found = super::super::under_way(&ledger(&calls), &history);
        assert_eq!(found.calls.iter().map(|lost| lost.input.as_str()).collect::<Vec<_>>(), ["make 3"]);
        assert!(!found.unheard, "the prompt is in the part that was not read");
    }
}

#[test]
fn a_turn_that_ends_while_agents_work_in_the_background_is_no_end() {
    let mut fold = Fold::default();
    let result = Activity::Result { ok: true, text: None };
    assert_eq!(fold.take(&Activity::Background { open: 1 }), []);
    assert_eq!(fold.take(&result), [], "another turn follows when the agent is through");
    fold.take(&Activity::Background { open: 0 });
    assert_eq!(fold.take(&result), [StreamEvent::Result { ok: true }]);
}

#[test]
fn a_question_by_the_programs_own_tool_is_what_the_agent_said_last() {
    let tool = |tool: &str, input: &str, acts| {
        Activity::CallStarted(Call { id: "q".to_owned(), tool: tool.to_owned(), input: input.to_owned(), acts })
    };
    let asks = r#"{"questions":[{"question":"Which port?","options":[{"label":"80"},{"label":"443"}]}]}"#;
    let mut fold = Fold::default();
    fold.take(&tool("AskUserQuestion", asks, true));
    fold.take(&Activity::Said { text: "I will wait.".to_owned() });
    assert!(fold.asks());
    assert_eq!(fold.last_words(), "Which port? (80 / 443)");
    fold.take(&tool("Bash", "ls", true));
    assert!(!fold.asks(), "it went on");
    fold.take(&tool("mcp__rekindle__ask", r#"{"question":"Mine?"}"#, false));
    assert!(!fold.asks(), "rekindle has that question already");
}
