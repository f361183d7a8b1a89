//! What counts as a signal, what does not, and that a restart in the middle changes nothing.

use proptest::prelude::*;

use super::*;
use crate::report::Checkpoint;
use crate::review::{Findings, Verdict};
use crate::role::Role;

fn task(id: &str) -> TaskId {
    TaskId::new(id).expect("valid")
}

fn scan(text: &str) -> Vec<Signal> {
    let mut signals = Signals::new();
    let mut found: Vec<_> = text.split_inclusive('\n').filter_map(|line| signals.line(line)).collect();
    found.extend(signals.finish());
    found
}

fn done(id: &str, result: Option<&str>) -> Signal {
    Signal::Report(Report::Done { task: task(id), result: result.map(str::to_owned) })
}

#[test]
fn a_claim_with_its_result() {
    let text = "working\nTASK_COMPLETE: T1\nResult: added the lexer\nmore talk\nTASK_COMPLETE: T2\n";
    assert_eq!(scan(text), [done("T1", Some("added the lexer")), done("T2", None)]);
    assert_eq!(scan("READY_FOR_REVIEW: a.b-c\r\nresult: x\r\n"), [done("a.b-c", Some("x"))]);
    assert_eq!(scan("TASK_COMPLETE:T1"), [done("T1", None)]);
}

#[test]
fn what_is_no_signal() {
    let texts = [
        " TASK_COMPLETE: T1",
        "\tTASK_COMPLETE: T1",
        "> TASK_COMPLETE: T1",
        ">TASK_COMPLETE: T1",
        "- TASK_COMPLETE: T1",
        "I print TASK_COMPLETE: T1",
        "`TASK_COMPLETE: T1`",
        "**TASK_COMPLETE: T1**",
        "\"TASK_COMPLETE: T1\"",
        "TASK_COMPLETE: T1 is what I will print",
        "TASK_COMPLETE",
        "TASK_COMPLETE:",
        "TASK_COMPLETE : T1",
        "task_complete: T1",
        "TASK_COMPLETE: ../T1",
        "TASK_COMPLETED: T1",
        "\u{1b}[32mTASK_COMPLETE: T1",
        "HEALTH_AUDIT: MAYBE",
        "Result: T1",
    ];
    for text in texts {
        assert_eq!(scan(text), [], "{text:?}");
    }
}

#[test]
fn fences_hide_signals() {
    let hidden = [
        "```\nTASK_COMPLETE: T1\n```\n",
        "~~~text\nTASK_COMPLETE: T1\n~~~\n",
        "````\n```\nTASK_COMPLETE: T1\n````\n",
        "```\n~~~\nTASK_COMPLETE: T1\n```\n",
        "   ```\nTASK_COMPLETE: T1\n",
        "```\n``` not the end\nTASK_COMPLETE: T1\n```\n",
    ];
    for text in hidden {
        assert_eq!(scan(text), [], "{text:?}");
        if text.trim_end().ends_with("```") || text.trim_end().ends_with("~~~") {
            assert_eq!(scan(&format!("{text}TASK_COMPLETE: T2")), [done("T2", None)], "{text:?}");
        }
    }
    // Neither of these opens one.
    for text in ["    ```\nTASK_COMPLETE: T1", "``` a ` b\nTASK_COMPLETE: T1", "``\nTASK_COMPLETE: T1"] {
        assert_eq!(scan(text), [done("T1", None)], "{text:?}");
    }
    // A fence ends the block above it.
    let text = "TASK_COMPLETE: T1\n```\nResult: not mine\n```\nResult: nor this\n";
    assert_eq!(scan(text), [done("T1", None)]);
}

#[test]
fn a_checkpoint_with_lists() {
    let text = "CHECKPOINT: T1\nStatus: half way\nCompleted: lexer; parser (with recovery; and tests)\n\
                Remaining:\n- printer, pretty\n- docs\nFiles: src/a.rs, src/b.rs\nProgress: 40 %\n\nafter";
    let checkpoint = Checkpoint {
        status: "half way".into(),
        completed: vec!["lexer".into(), "parser (with recovery; and tests)".into()],
        remaining: vec!["printer".into(), "pretty".into(), "docs".into()],
        files: vec!["src/a.rs".into(), "src/b.rs".into()],
        progress: Some(40),
    };
    assert_eq!(scan(text), [Signal::Report(Report::Checkpoint { task: task("T1"), checkpoint })]);
    let Some(Signal::Report(Report::Checkpoint { checkpoint, .. })) = scan("CHECKPOINT: T1\nProgress: 400").pop()
    else {
        panic!("a checkpoint");
    };
    assert_eq!(checkpoint, Checkpoint::default());
}

#[test]
fn questions_and_giving_up() {
    let text = "QUESTION: T1\nQuestion: Which one?\nOptions: a, b\nContext: see docs: https://x\nTASK_INCOMPLETE: T2\n\
                Reason: no network\n\nINFRA_BLOCKED: T3\nReason: disk is full\n";
    let asked = Report::Ask {
        task: task("T1"),
        text: "Which one?".into(),
        options: vec!["a".into(), "b".into()],
        context: "see docs: https://x".into(),
    };
    let failed = |id: &str, reason: &str| Signal::Report(Report::Fail { task: task(id), reason: reason.into() });
    assert_eq!(
        scan(text),
        [
            Signal::Report(asked),
            failed("T2", "no network"),
            // A broken machine is for a person to mend; giving up would cost an attempt.
            Signal::Report(Report::Ask {
                task: task("T3"),
                text: "the infrastructure is in the way: disk is full. See to it, then answer `done`".into(),
                options: Vec::new(),
                context: String::new(),
            }),
        ]
    );
    assert_eq!(scan("TASK_INCOMPLETE: T1"), [failed("T1", "it gave no reason")]);
}

#[test]
fn a_split_lists_its_parts() {
    let text =
        "SPLIT: T1\nSubtasks:\n- read the grammar\n- write the parser (with tests, all)\n\nSPLIT: T2\nSubtasks: a; b\n";
    let split = |id: &str, parts: [&str; 2]| {
        Signal::Report(Report::Split { task: task(id), subtasks: parts.map(String::from).to_vec() })
    };
    let parts = ["read the grammar", "write the parser (with tests, all)"];
    assert_eq!(scan(text), [split("T1", parts), split("T2", ["a", "b"])]);
}

#[test]
fn verdicts_with_what_is_wrong_required_and_good() {
    let text = "REVIEW_FAILED: T1\nIssues:\n- no test for an empty line, or for two\n- `a; b` is wrong\nRequired fixes: add the \
                test; mend it\nPassed: names; layout\n\nAUDIT_FAILED: T2\nIssues: two\u{1b}[31m tests\nRequired:\n* mend them\n\
                AUDIT_BLOCKED: T3\nReason: no database\n";
    let given = |id: &str, role, verdict, [issues, required, passed]: [&[&str]; 3]| {
        let all = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let (issues, required, passed) = (all(issues), all(required), all(passed));
        Signal::Report(Report::Verdict {
            task: Some(task(id)),
            role,
            verdict,
            findings: Findings { issues, required, passed },
        })
    };
    let issues: &[&str] = &["no test for an empty line, or for two", "`a; b` is wrong"];
    assert_eq!(
        scan(text),
        [
            given("T1", Role::Critic, Verdict::Fail, [issues, &["add the test", "mend it"], &["names", "layout"]]),
            given("T2", Role::Auditor, Verdict::Fail, [&["two tests"], &["mend them"], &[]]),
            given("T3", Role::Auditor, Verdict::Blocked, [&["no database"], &[], &[]]),
        ]
    );
    let passed = given("T1", Role::Critic, Verdict::Pass, [&[]; 3]);
    assert_eq!(scan("REVIEW_PASSED: T1\nIssues: none\n"), [passed]);
    assert_eq!(scan("AUDIT_PASSED: T1"), [given("T1", Role::Auditor, Verdict::Pass, [&[]; 3])]);
}

#[test]
fn words_on_health_name_no_task() {
    let given = |named: Option<&str>, role, verdict| {
        Signal::Report(Report::Verdict { task: named.map(task), role, verdict, findings: Findings::default() })
    };
    let cases = [
        ("REMEDIATION_COMPLETE", given(None, Role::Remediation, Verdict::Pass)),
        ("REMEDIATION_COMPLETE: health", given(Some("health"), Role::Remediation, Verdict::Pass)),
        ("HEALTH_AUDIT: HEALTHY", given(None, Role::HealthAuditor, Verdict::Pass)),
        ("HEALTH_AUDIT: UNHEALTHY", given(None, Role::HealthAuditor, Verdict::Fail)),
    ];
    for (text, signal) in cases {
        assert_eq!(scan(text), [signal], "{text:?}");
    }
}

#[test]
fn a_signal_that_says_nothing_reports_nothing() {
    for name in ["SPLIT", "QUESTION"] {
        let other = Signal::Other { name: name.into(), subject: "T1".into(), keys: Vec::new() };
        assert_eq!(scan(&format!("{name}: T1")), [other], "{name}");
    }
    let keys = vec![("context".to_owned(), "two tests".to_owned())];
    let found = scan("QUESTION: T1\nContext: two\u{1b}[31m tests\n");
    assert_eq!(found, [Signal::Other { name: "QUESTION".into(), subject: "T1".into(), keys }]);
}

#[test]
fn values_are_made_harmless() {
    let found = scan("TASK_COMPLETE: T1\nResult: ok\u{1b}]52;c;eA==\u{7}\u{202e} done\n");
    assert_eq!(found, [done("T1", Some("ok done"))]);
}

#[test]
fn a_block_is_bounded() {
    let mut signals = Signals::new();
    assert_eq!(signals.line("TASK_COMPLETE: T1"), None);
    let mut found = Vec::new();
    for _ in 0..1_000 {
        found.extend(signals.line("Result: x"));
    }
    assert_eq!(found.len(), 1);
    assert!(!signals.is_open());
    assert_eq!(signals.line("TASK_COMPLETE: T1"), None);
    let long = format!("Result: {}", "x".repeat(BLOCK_MAX_BYTES));
    assert_eq!(signals.line(&long), Some(done("T1", None)));
    assert!(serde_json::to_string(&signals).expect("json").len() < 100);
}

/// Lines as an agent that signals might print them.
fn lines() -> impl Strategy<Value = Vec<String>> {
    let line = prop_oneof![
        prop::sample::select(vec![
            "TASK_COMPLETE: T1",
            "CHECKPOINT: T2",
            "QUESTION: T3",
            "Result: fine",
            "Completed: a; b",
            "- item",
            "Question: why?",
            "",
            "```",
            "~~~",
            "> TASK_COMPLETE: T1",
            "plain words",
            "Progress: 7%\r",
        ])
        .prop_map(String::from),
        any::<String>(),
    ];
    prop::collection::vec(line, 0..40)
}

proptest! {
    #[test]
    fn a_restart_between_any_two_lines_changes_nothing(lines in lines(), at in 0usize..40) {
        let mut whole = Signals::new();
        let mut expected: Vec<_> = lines.iter().filter_map(|line| whole.line(line)).collect();
        expected.extend(whole.finish());

        let mut scanner = Signals::new();
        let mut found = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            if index == at {
                let stored = serde_json::to_string(&scanner).expect("json");
                scanner = serde_json::from_str(&stored).expect("reads back");
            }
            found.extend(scanner.line(line));
        }
        found.extend(scanner.finish());
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn any_text_is_survived(text in any::<String>()) {
        let _ = scan(&text);
        let _ = scan(&format!("CHECKPOINT: T1\n{text}"));
    }
}
