//! The table at widths and heights that people have.

use rekindle_core::activity::{Measure, Usage};
use rekindle_core::time::Time;
use rekindle_core::view::WaitRow;

use super::*;
use crate::picture::sample::{START, Script, attempt, question, task};

fn measured(used: u64) -> Option<Measure> {
    let usage = Usage { input_tokens: 10, output_tokens: 2, cached_tokens: 0, cost_usd: Some(1.5) };
    Some(Measure { usage, context_used: Some(used), context_window: Some(100) })
}

fn busy() -> (Picture, Said) {
    let mut script = Script::default();
    script
        .dispatched(0, "dev-a", "a", 1, false)
        .crashed(1_000, "dev-a", "a", 1)
        .dispatched(2_000, "dev-a", "a", 2, true);
    let mut tasks = vec![
        task("a", "The first", "in_progress", &[]),
        task("b", "The second", "in_progress", &[]),
        task("c", "The third", "failed", &[]),
        task("d", "The fourth", "pending", &[]),
        task("e", "The fifth", "complete", &[]),
    ];
    tasks[2].reason = Some("it crashed; 3 of 3 attempts used".to_owned());
    tasks[3].not_before = Some(Time(START + 102_000));
    tasks[3].cause = Some("timed_out".to_owned());
    let mut picture = script.picture(tasks, 60_000);
    picture.attempts = vec![attempt(2, "dev-a", &["a"], "running"), attempt(3, "dev-b", &["b"], "starting")];
    picture.attempts[0].measure = measured(62);
    picture.questions.push(question(7, "b", "Which of the two schemas is the right one?", &["old", "new"]));
    let said = Said::from([(picture.attempts[0].name.clone(), "running the tests of the parser".to_owned())]);
    (picture, said)
}

fn drawn(picture: &Picture, said: &Said, columns: usize, most: usize) -> String {
    let rows = rows(picture, said, columns, most);
    rows.iter().map(|row| format!("{}{}\n", row.head, row.rest)).collect()
}

#[test]
fn a_wide_terminal_shows_everything() {
    let (picture, said) = busy();
    insta::assert_snapshot!(drawn(&picture, &said, 120, 40), @r"
    ████░░░░░░░░░░░░░░░░░░░░ 1/5 complete · 1 failed · 1 asks you · 2 running · 1 recovered · running · 1m00s · $1.50
    ? b asks: Which of the two schemas is the right one? (old / new) · rekindle answer 7 TEXT
    ✖ c failed · rekindle why c · it crashed; 3 of 3 attempts used
    ↻ d next attempt in 42s · 1 of 3 used · last: timed out
    ▶ a in progress   1m00s ▓▓▓▓░  62% dev-a running the tests of the parser
    ▶ b starting      1m00s            dev-b
    ");
}

#[test]
fn a_small_terminal_leaves_out_what_matters_least() {
    let (picture, said) = busy();
    insta::assert_snapshot!(drawn(&picture, &said, 60, 17), @r"
    ███░░░░░░░░░░░░ 1/5 complete · 1 failed · 1 asks you
    ? b asks: Which of the two schemas is the right one? (old / new)
      rekindle answer 7 TEXT
    ✖ c failed · rekindle why c · it crashed; 3 of 3 attempts used
    ↻ d next attempt in 42s · 1 of 3 used · last: timed out
    ▶ a in progress   1m00s  62% dev-a running the tests of t…
    ▶ b starting      1m00s      dev-b
    ");
}

/// What a person has to type is never cut, and nothing is wider than it may be once it is drawn.
#[test]
fn what_to_type_can_be_read_at_every_width() {
    let (picture, said) = busy();
    for columns in 30..200 {
        let rows = rows(&picture, &said, columns, 40);
        let typed = rows.iter().find(|row| format!("{}{}", row.head, row.rest).contains("rekindle answer 7 TEXT"));
        let typed = typed.expect("what to type");
        assert!(width_of(&typed.head) + width_of(&typed.rest) <= columns, "{columns}: {typed:?}");
        assert!(width_of(&rows[0].head) + width_of(&rows[0].rest) <= columns, "{columns}: {:?}", rows[0]);
        let agents = rows.iter().filter(|row| row.head.starts_with("  ▶"));
        for row in agents.filter(|_| columns >= 40) {
            assert!(width_of(&row.head) + width_of(&row.rest) <= columns, "{columns}: {row:?}");
        }
    }
}

#[test]
fn a_low_terminal_keeps_what_needs_a_person() {
    let (picture, said) = busy();
    for most in 0..12 {
        assert!(rows(&picture, &said, 80, most).len() <= most);
    }
    let text = drawn(&picture, &said, 80, 5);
    assert!(text.contains("rekindle answer 7 TEXT") && text.contains("c failed"), "{text}");
}

#[test]
fn many_agents_and_questions_are_a_number() {
    let (mut picture, said) = busy();
    for at in 0..50 {
        picture.attempts.push(attempt(10 + at, "dev-b", &["b"], "running"));
        picture.questions.push(question(10 + at, "b", "Really?", &[]));
    }
    let text = drawn(&picture, &said, 80, 20);
    assert!(text.contains("? 48 more: rekindle questions") && text.contains("more running"), "{text}");
    assert_eq!(text.lines().count(), 20, "{text}");
}

#[test]
fn waits_are_counted_down() {
    let (mut picture, said) = busy();
    picture.run.state = "waiting".to_owned();
    picture.run.resumes_at = Some(picture.now.plus_ms(90_000));
    picture.run.waits = vec![WaitRow {
        account: "work".to_owned(),
        cause: "usage_limit".to_owned(),
        until: picture.run.resumes_at,
        reset: None,
        probe: 1,
    }];
    let text = drawn(&picture, &said, 120, 40);
    assert!(text.contains("‖ resumes in 1m30s (") && text.contains("work waits for its usage limit until "), "{text}");
    picture.now = Time(START + 200_000);
    let text = drawn(&picture, &said, 120, 40);
    assert!(!text.contains("resumes in") && !text.contains("next attempt in"), "what is over is gone: {text}");
}

#[test]
fn the_title_says_what_needs_a_person_first() {
    let (mut picture, _) = busy();
    picture.run.title = "Plan\u{1b}]2;x\u{7}\n of mine".to_owned();
    assert_eq!(title(&picture), "1 asks you · 1 failed · 1/5 Plan of mine · rekindle");
}

#[test]
fn nothing_to_show_breaks_nothing() {
    let picture = Script::default().picture(Vec::new(), 0);
    assert_eq!(drawn(&picture, &Said::new(), 0, 10).lines().count(), 1);
}
