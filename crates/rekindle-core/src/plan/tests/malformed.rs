//! Plans with mistakes, and every problem that each must report.

use super::problems;
use crate::plan::{PLAN_MAX_BYTES, Span, parse};

#[track_caller]
fn reports(text: &str, expected: &str) {
    let parsed = parse("file", text.as_bytes());
    let found = problems(&parsed);
    let expected = expected.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n");
    assert_eq!(found, expected, "\n--- found:\n{found}\n--- for:\n{text}");
    let usable = !expected.contains(" error[");
    assert_eq!(parsed.plan.is_some(), usable, "a plan exactly when there is no error");
}

#[test]
fn everything_at_once() {
    reports(
        "---\nplan: my plan\nmax_agent: 3\n---\n# P\n## Wave 1\n### T1: a\n- blocked by: T7, T1\n- timeout: 20\n- acept: `x`\n### T1: again\n### oops\n",
        "",
    );
}

#[test]
fn ids_and_headings() {
    reports("# P\n### T1: a\nx\n### T1: b\ny\n### T 2: c\nz\n", "");
    reports("# P\n## Wave 1\n### Set up\nx\n### T2 - go\ny\n### T3:\nz\n### T4:x\nq\n", "");
    reports("# P\n### Task 1: a\n- accept: `x`\n### T2: b\n- accept: `x`\n- blocked by: Task 1\n", "");
    reports(&format!("# P\n### {}: long\nx\n", "a".repeat(65)), "");
    reports("# P\n## Tasks\n### T1: a\n- accept: x\n### Forgot the id\nx\n", "");
    reports("# P\n## T1: a\ntext\n#### T2: b\ntext\n", "");
}

#[test]
fn blockers() {
    reports("# P\n### auth: a\n- accept: x\n### db: b\n- accept: x\n- blocked by: auht, zzzzz, auth db\n", "");
    reports("# P\n### T1: a\n- accept: x\n- blocked by: T1\n", "");
    reports(
        "# P\n### T1: a\n- accept: x\n- blocked by: T3\n### T2: b\n- accept: x\n- blocked by: T1\n### T3: c\n- accept: x\n- blocked by: T2\n### T4: d\n- accept: x\n- blocked by: T3, T5\n### T5: e\n- accept: x\n- blocked by: T4\n",
        "",
    );
}

#[test]
fn waves() {
    reports("# P\n## Wave 1\n### T1: a\n- accept: x\n- blocked by: T2\n## Wave 2\n### T2: b\n- accept: x\n", "");
    reports("# P\n## Wave 1\n### T1: a\n- accept: x\n- wave: 2\n## Wave two\n### T2: b\n- accept: x\n- wave: x\n", "");
    reports(
        "# P\n### T1: a\n- accept: x\n## Wave 2\n### T2: b\n- accept: x\n## Later\n### T3: c\n- accept: x\n- blocked by: T2\n",
        "",
    );
}

#[test]
fn keys() {
    reports(
        "# P\n### T1: a\n- agent: the backend\n- Artefacts: x\n- depends on: T2\n- colour: blue\n- do the thing\n- attempts: 0\n- priority: high\n- timeout: 0s\n- cli: a/b\n- role: auditer\n- environments: local, a b\n",
        "",
    );
    reports(
        "# P\n### T1: a\n- agent: x\n- agent: y\n- accept:\n- timeout: 5m, 6m\n- artifacts: /etc/passwd, ../x, ok\n",
        "",
    );
    reports("# P\n### T1: a\n- accept: `cargo test` passes\n- accept: `open\n", "");
    reports("# P\n### T1: a\n- agent: x\nstray line\n- accept: y\n\n  indented text\n", "");
    reports("# P\n### T1: a\n- agent:\n  - x\n  - y\n- accept:\n  - `a`\n    - `b`\n", "");
}

#[test]
fn empty_and_unproven() {
    reports("", "");
    reports("# Only a title\n\nAnd text.\n", "");
    reports("# P\n### T1: a\n### T2: b\n\n\n### T3: c\n- agent: x\n### T4: d\nWords.\n", "");
    reports("# P\n- [ ]\n- [ ] do it\n", "");
}

#[test]
fn front_matter() {
    reports("---\nplan: x\n# P\n### T1: a\n- accept: x\n", "");
    reports(
        "---\nmax_agents: 0\nattempts: many\nplan: a b\nplan: c\nreviw: [critic]\nreview: [critic, boss]\nagent: [a]\nhealth: [a, \"b\ntimeout: 5\nsilence: 0s\nisolation: vm\nnonsense\nbackoff:\n  - - x\nhang:\n  silense: 5m\n---\n# P\n### T1: a\n- accept: x\n",
        "",
    );
    reports("---\nagent: \"a\" b\nplan: \"\\q\"\nreview: [critic] x\n- y\n---\n### T1: a\n- accept: x\n", "");
}

#[test]
fn a_file_that_is_not_text_is_refused_with_the_place() {
    let cases: [(&[u8], &str); 4] = [
        (b"# P\n\xff\xfe", "2:1 error[not-text] the plan is not text: byte 4 is not UTF-8 / save the file as UTF-8"),
        (b"# P\nab\0c", "2:3 error[not-text] the plan is not text: byte 6 is a NUL"),
        (b"\xff\xfe#\0", "1:1 error[not-text] the plan is not text: byte 0 is not UTF-8 / save the file as UTF-8"),
        (
            "# ä".as_bytes().split_last().expect("bytes").1,
            "1:3 error[not-text] the plan is not text: byte 2 is not UTF-8 / save the file as UTF-8",
        ),
    ];
    for (bytes, expected) in cases {
        let parsed = parse("file", bytes);
        assert_eq!(problems(&parsed), expected);
        assert!(parsed.plan.is_none());
    }
    let large = vec![b'a'; PLAN_MAX_BYTES + 1];
    assert_eq!(parse("file", &large).problems[0].code, "too-large");
}

#[test]
fn places_are_exact_behind_other_alphabets_and_line_ends() {
    let text = "\u{feff}# Größe\r\n### T1: a\r\n- accept: x\r\n- blocked by: `ä`, T9\r\n";
    let parsed = parse("file", text.as_bytes());
    let places: Vec<_> = parsed.problems.iter().map(|p| (p.line, p.column, p.span.of(text))).collect();
    assert_eq!(places, [(4, 15, "`ä`"), (4, 20, "T9")]);
}

#[test]
fn messages_cannot_steer_a_terminal() {
    let parsed = parse("file", "# P\n### T1: a\n- accept: x\n- blocked by: \u{1b}[2J\u{202e}x\n".as_bytes());
    assert_eq!(
        problems(&parsed),
        "4:15 error[unknown-blocker] unknown blocker `\\u{1b}[2J\\u{202e}x`: no task has this id"
    );
    assert_eq!(parsed.problems[0].span, Span { start: 40, end: 48 });
}
