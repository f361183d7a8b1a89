//! What `plan check` says about how ready a plan is, at the border of every threshold: the last text that is fine and the first
//! that is not.

use super::parse;
use crate::plan::readiness;

/// What is found about a plan of one task.
fn found(title: &str, keys: &str, text: &str) -> Vec<(&'static str, String)> {
    let plan = format!("# P\n\n### T1: {title}\n{keys}\n{text}\n");
    let parsed = parse("p", plan.as_bytes());
    let plan = parsed.plan.unwrap_or_else(|| panic!("no plan: {:?}", parsed.problems));
    readiness(&plan).findings.into_iter().map(|finding| (finding.code, finding.message)).collect()
}

fn is_found(code: &str, (title, keys, text): (&str, &str, &str)) -> bool {
    found(title, keys, text).iter().any(|(of, _)| *of == code)
}

const CHECK: &str = "- accept: `cargo test`\n";

#[test]
fn three_words_are_vague_and_four_are_not() {
    assert!(is_found("vague", ("fix", "", "the mill")));
    assert!(!is_found("vague", ("fix", "", "the old mill")));
    // Marks are no words; a title that stands once more below itself says nothing new.
    assert!(is_found("vague", ("fix it", "", "… now : !!")));
    assert!(is_found("vague", ("mend mill", "", "mend mill")));
    // A check that can fail, an artifact or something to read says what is meant; a check that cannot fail does not.
    assert!(!is_found("vague", ("mill", CHECK, "")));
    assert!(!is_found("vague", ("mill", "- artifacts: src/mill.rs\n", "")));
    assert!(!is_found("vague", ("mill", "- reading: docs/mill.md\n", "")));
    assert!(is_found("vague", ("mill", "- accept: `true`\n", "")));
}

#[test]
fn words_that_put_a_decision_off_are_vague_however_long_the_text() {
    let text = "Rewrite the parser of the price list and keep its public names as they are now";
    assert!(!is_found("vague", ("parser", CHECK, text)));
    for open in ["TBD", "to be decided", "???", "somehow", "as needed", "etc.", "figure out"] {
        assert!(is_found("vague", ("parser", CHECK, &format!("{text}, {open}"))), "{open}");
    }
}

#[test]
fn a_text_of_1200_words_is_one_task_and_one_more_is_too_large() {
    let words = |many: usize| vec!["word"; many].join(" ");
    assert!(!is_found("too-large", ("parser", CHECK, &words(1_200))));
    assert!(is_found("too-large", ("parser", CHECK, &words(1_201))));
}

#[test]
fn thirty_items_are_one_task_and_one_more_is_too_large() {
    for mark in ["-", "*", "1."] {
        let items = |many: usize| vec![format!("{mark} one of the things to be done"); many].join("\n");
        let text = |many: usize| format!("Do all of these in turn:\n\n{}", items(many));
        assert!(!is_found("too-large", ("parser", CHECK, &text(30))), "{mark}");
        assert!(is_found("too-large", ("parser", CHECK, &text(31))), "{mark}");
    }
}

#[test]
fn twelve_artifacts_are_one_task_and_one_more_is_too_large() {
    let artifacts = |many: usize| {
        let names: Vec<String> = (0..many).map(|at| format!("src/made{at}.rs")).collect();
        format!("- artifacts: {}\n", names.join(", "))
    };
    let text = "Make every one of these modules";
    assert!(!is_found("too-large", ("modules", &artifacts(12), text)));
    assert!(is_found("too-large", ("modules", &artifacts(13), text)));
}

#[test]
fn a_score_is_what_its_findings_leave_of_a_hundred() {
    let score = |plan: &str| readiness(&parse("p", plan.as_bytes()).plan.expect("a plan")).score;
    let fine = "### T1: parser\n- accept: `cargo test`\n\nRewrite the parser of the price list\n\n";
    assert_eq!(score(&format!("# P\n\n{fine}")), 100);
    // Nothing proves the second: 60 of it are left.
    let unproven = "### T2: printer\n\nRewrite the printer of the price list\n\n";
    assert_eq!(score(&format!("# P\n\n{fine}{unproven}")), 80);
    assert_eq!(score(&format!("# P\n\n{unproven}")), 60);
    // Nothing proves it and hardly a word says what to do.
    assert_eq!(score("# P\n\n### T1: fix\n\nthe mill\n"), 35);
    // What is done is not judged.
    assert_eq!(score(&format!("# P\n\n{fine}### T2: fix\n- done: yes\n\nthe mill\n")), 100);
}
