//! What an agent is told again after a compaction: its bound, its order, and that its fences hold.

use proptest::prelude::*;

use super::{NONCE, corpus, first, hostile, outside, second};
use crate::brief::{REINJECT_BYTES, ReportChannels, Standing, reinject};

#[test]
fn what_stands_in_it() {
    insta::assert_snapshot!(reinject(&second("(agent's words)")));
}

#[test]
fn two_of_them_differ_by_their_nonce_even_without_any_data() {
    let mut facts = first();
    let one = reinject(&facts);
    assert!(one.contains(NONCE), "{one}");
    facts.nonce = NONCE.replace('0', "e");
    assert_ne!(reinject(&facts), one);
}

#[test]
fn the_checks_stand_there_word_for_word_however_much_there_is_to_say() {
    let mut facts = second("x");
    facts.tasks[1].body = "long text ".repeat(20_000);
    facts.tasks[1].accept = vec!["cargo test --package 'a b' -- --nocapture".to_owned()];
    facts.split = (0..500).map(|part| format!("part {part} {}", "y".repeat(300))).collect();
    let text = reinject(&facts);
    assert!(text.len() <= REINJECT_BYTES, "{}", text.len());
    assert!(text.contains("- accept: `cargo test --package 'a b' -- --nocapture`"), "{text}");
    assert!(text.contains("1. lexer") || text.contains("part 0 "), "{text}");
    assert!(text.contains("Continue with T2") && text.ends_with("counts as a failed attempt.\n\n"), "{text}");
}

#[test]
fn it_names_the_channels_that_are_open() {
    let mut facts = first();
    facts.channels = ReportChannels { program: None, signals: true, mcp: true };
    let text = reinject(&facts);
    assert!(text.contains("task_done {task: \"T1\", result}") && !text.contains("rekindle task done"), "{text}");
    facts.channels = ReportChannels { program: None, signals: true, mcp: false };
    assert!(reinject(&facts).contains("TASK_COMPLETE: T1"));
}

#[test]
fn an_agent_with_nothing_left_is_told_to_end() {
    let mut facts = first();
    for task in &mut facts.tasks {
        task.standing = Standing::Completed;
    }
    assert!(reinject(&facts).contains("All your tasks are complete"));
}

#[test]
fn injected_text_changes_nothing_outside_its_fence() {
    let (template, _) = outside(&reinject(&second("harmless")));
    for words in corpus::strings() {
        let (plain, inside) = outside(&reinject(&second(&words)));
        assert_eq!(plain, template, "{words:?}");
        assert!(inside.iter().all(|line| line.starts_with("| ")), "{words:?}");
    }
}

proptest! {
    #[test]
    fn it_is_bounded_whatever_it_is_made_of(words in hostile(), plan in hostile()) {
        let mut facts = second(&words);
        facts.workspace.clone_from(&plan);
        facts.plan_path.clone_from(&plan);
        facts.tasks[1].title.clone_from(&plan);
        facts.tasks[1].accept = vec![plan; 3];
        let text = reinject(&facts);
        prop_assert!(text.len() <= REINJECT_BYTES, "{}", text.len());
        prop_assert!(!text.chars().any(crate::text::is_harmful));
    }
}
