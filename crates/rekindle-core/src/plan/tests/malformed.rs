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
        r##"
        2:7 error[bad-setting] `my plan` is not a valid `plan`: a name holds only letters, digits, `.`, `_` and `-`, not ' ' / write `my-plan`
        3:1 error[unknown-setting] unknown key `max_agent` in the front matter / did you mean `max_agents`?
        7:5 warning[unproven] `T1` has neither checks nor artifacts: its agent's word is enough / add `- accept: COMMAND` or `- artifacts: FILE`
        8:15 error[unknown-blocker] unknown blocker `T7`: no task has this id
        8:19 error[self-blocked] `T1` is blocked by itself
        9:12 error[bad-timeout] bad `timeout`: `20` has no unit / write `20s` for seconds or `20m` for minutes
        10:1 error[unknown-key] unknown key `acept` / did you mean `accept`?
        11:5 error[duplicate-id] the id `T1` is used twice, first on line 7 / give one of the two another id
        11:5 error[empty-task] task `T1` is empty / say below its heading what to do, or how to tell that it is done (`- accept: …`)
        12:5 error[bad-heading] `oops` is not a task: its heading has no `ID: title` / write `### ID: title`; a section that is not a task begins with `##`
    "##,
    );
}

#[test]
fn ids_and_headings() {
    reports(
        "# P\n### T1: a\nx\n### T1: b\ny\n### T 2: c\nz\n",
        r##"
        2:5 warning[unproven] `T1` has neither checks nor artifacts: its agent's word is enough / add `- accept: COMMAND` or `- artifacts: FILE`
        4:5 error[duplicate-id] the id `T1` is used twice, first on line 2 / give one of the two another id
        4:5 warning[unproven] `T1` has neither checks nor artifacts: its agent's word is enough / add `- accept: COMMAND` or `- artifacts: FILE`
        6:5 error[bad-id] `T 2` is not a task id: a name holds only letters, digits, `.`, `_` and `-`, not ' ' / write `### T-2: c`
    "##,
    );
    reports(
        "# P\n## Wave 1\n### Set up\nx\n### T2 - go\ny\n### T3:\nz\n### T4:x\nq\n",
        r##"
        3:5 error[bad-heading] `Set up` is not a task: its heading has no `ID: title` / write `### ID: title`; a section that is not a task begins with `##`
        5:5 error[bad-heading] `T2 - go` is not a task: its heading has no `ID: title` / write `### T2: go`
        7:5 error[bad-heading] the task `T3` has no title / write `### T3: TITLE`
        9:5 error[bad-heading] `T4:x` is not a task: its heading has no `ID: title` / write `### T4: x`
    "##,
    );
    reports(
        "# P\n### Task 1: a\n- accept: `x`\n### T2: b\n- accept: `x`\n- blocked by: Task 1\n",
        r##"
        2:5 error[bad-id] `Task 1` is not a task id: a name holds only letters, digits, `.`, `_` and `-`, not ' ' / write `### Task-1: a`
    "##,
    );
    reports(
        &format!("# P\n### {}: long\nx\n", "a".repeat(65)),
        r##"
        2:5 error[bad-id] `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…` is not a task id: a name has at most 64 characters, this one has 65 / write `### aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…`
    "##,
    );
    reports(
        "# P\n## Tasks\n### T1: a\n- accept: x\n### Forgot the id\nx\n",
        r##"
        5:5 error[bad-heading] `Forgot the id` is not a task: its heading has no `ID: title` / write `### ID: title`; a section that is not a task begins with `##`
    "##,
    );
    reports(
        "# P\n## T1: a\ntext\n#### T2: b\ntext\n",
        r##"
        1:3 error[no-tasks] the plan has no tasks / write each task as `### T1: title` with its text below, or as a checklist `- [ ] text`
        2:4 warning[heading-level] `T1: a` looks like a task but is a level-2 heading / tasks are level-3 headings: `### ID: title`
        4:6 warning[heading-level] `T2: b` looks like a task but is a level-4 heading / tasks are level-3 headings: `### ID: title`
    "##,
    );
}

#[test]
fn blockers() {
    reports(
        "# P\n### auth: a\n- accept: x\n### db: b\n- accept: x\n- blocked by: auht, zzzzz, auth db\n",
        r##"
        6:15 error[unknown-blocker] unknown blocker `auht`: no task has this id / did you mean `auth`?
        6:21 error[unknown-blocker] unknown blocker `zzzzz`: no task has this id
        6:28 error[unknown-blocker] unknown blocker `auth db`: no task has this id / list ids with commas between them
    "##,
    );
    reports(
        "# P\n### T1: a\n- accept: x\n- blocked by: T1\n",
        r##"
        4:15 error[self-blocked] `T1` is blocked by itself
    "##,
    );
    reports(
        "# P\n### T1: a\n- accept: x\n- blocked by: T3\n### T2: b\n- accept: x\n- blocked by: T1\n### T3: c\n- accept: x\n- blocked by: T2\n### T4: d\n- accept: x\n- blocked by: T3, T5\n### T5: e\n- accept: x\n- blocked by: T4\n",
        r##"
        4:15 error[cycle] tasks wait for each other in a cycle: T1 → T3 → T2 → T1 / each waits for the next; remove one `blocked by`
        13:19 error[cycle] tasks wait for each other in a cycle: T4 → T5 → T4 / each waits for the next; remove one `blocked by`
    "##,
    );
}

#[test]
fn waves() {
    reports(
        "# P\n## Wave 1\n### T1: a\n- accept: x\n- blocked by: T2\n## Wave 2\n### T2: b\n- accept: x\n",
        r##"
        5:15 error[later-wave] `T1` of wave 1 is blocked by `T2` of the later wave 2 / wave 2 begins when wave 1 has ended: move one of the two
    "##,
    );
    reports(
        "# P\n## Wave 1\n### T1: a\n- accept: x\n- wave: 2\n## Wave two\n### T2: b\n- accept: x\n- wave: x\n",
        r##"
        5:9 error[wave-conflict] `T1` says wave 2 but is under wave 1 / move it under `## Wave 2`, or remove the bullet
        6:4 error[bad-wave] `Wave two` has no number / write `## Wave 1`, with a title behind it if you like
        9:9 error[bad-wave] `wave` is a whole number, not `x`
    "##,
    );
    reports(
        "# P\n### T1: a\n- accept: x\n## Wave 2\n### T2: b\n- accept: x\n## Later\n### T3: c\n- accept: x\n- blocked by: T2\n",
        r##"
        2:5 warning[no-wave] `T1` is in no wave although others are: it is put into wave 2 / move it under `## Wave 2`, or give it `- wave: 2`
        8:5 warning[no-wave] `T3` is in no wave although others are: it is put into wave 2 / move it under `## Wave 2`, or give it `- wave: 2`
    "##,
    );
}

#[test]
fn keys() {
    reports(
        "# P\n### T1: a\n- agent: the backend\n- Artefacts: x\n- depends on: T2\n- colour: blue\n- do the thing\n- attempts: 0\n- priority: high\n- timeout: 0s\n- cli: a/b\n- role: auditer\n- environments: local, a b\n",
        r##"
        2:5 warning[unproven] `T1` has neither checks nor artifacts: its agent's word is enough / add `- accept: COMMAND` or `- artifacts: FILE`
        3:10 error[bad-name] `the backend` is not a valid agent name: a name holds only letters, digits, `.`, `_` and `-`, not ' ' / write `the-backend`
        4:1 error[unknown-key] unknown key `artefacts` / did you mean `artifacts`?
        5:1 error[unknown-key] unknown key `depends on` / did you mean `blocked by`?
        6:1 error[unknown-key] unknown key `colour` / the keys are agent, role, cli, blocked by, wave, artifacts, accept, environments, reading, timeout, attempts, priority, done; ordinary bullets need a line of text before them
        7:1 error[not-a-key] this bullet is among the task's keys but is not a `key: value` / put the task's text after the keys, with a blank line between
        8:13 error[bad-attempts] `attempts` must be at least 1: a task needs one to be done
        9:13 error[bad-priority] `priority` is a whole number, higher goes first, not `high`
        10:12 error[bad-timeout] `timeout` must be longer than zero
        11:8 error[bad-name] `a/b` is not a valid cli name: a name holds only letters, digits, `.`, `_` and `-`, not '/' / write `a-b`
        12:9 warning[unknown-role] unknown role `auditer` / did you mean `auditor`?
        13:24 error[bad-name] `a b` is not a valid environment name: a name holds only letters, digits, `.`, `_` and `-`, not ' ' / write `a-b`
    "##,
    );
    reports(
        "# P\n### T1: a\n- agent: x\n- agent: y\n- accept:\n- timeout: 5m, 6m\n- artifacts: /etc/passwd, ../x, ok\n",
        r##"
        4:1 error[duplicate-key] `agent` is given twice for this task / keep one of the two
        5:1 error[empty-value] `accept` has no value
        6:12 error[bad-timeout] bad `timeout`: `5m, 6m` is not a duration / write it like `90s`, `20m`, `1h30m` or `500ms`
        7:14 error[bad-path] the artifact `/etc/passwd` is absolute / name a file inside the workspace, relative to its root
        7:27 error[bad-path] the artifact `../x` leads out of the workspace with `..` / name a file inside the workspace, relative to its root
    "##,
    );
    reports(
        "# P\n### T1: a\n- accept: `cargo test` passes\n- accept: `open\n",
        r##"
        3:11 error[bad-accept] text beside the backticks: a check is one shell command that must exit 0 / put the whole command in one pair of backticks, or write it without any
        4:11 error[bad-accept] text beside the backticks: a check is one shell command that must exit 0 / put the whole command in one pair of backticks, or write it without any
    "##,
    );
    reports(
        "# P\n### T1: a\n- agent: x\nstray line\n- accept: y\n\n  indented text\n",
        r##"
        4:1 error[stray-text] this line is neither a key bullet nor part of one / indent it to continue the bullet, or put the text below the keys after a blank line
        7:3 error[stray-text] text below the key `accept` belongs to nothing / move it to the start of its line, after a blank line, to make it the task's text
    "##,
    );
    reports(
        "# P\n### T1: a\n- agent:\n  - x\n  - y\n- accept:\n  - `a`\n    - `b`\n",
        r##"
        3:1 error[too-many-values] `agent` takes one value, not 2
        7:3 error[stray-text] a value of `accept` holds more than one line of text
    "##,
    );
}

#[test]
fn empty_and_unproven() {
    reports(
        "",
        r##"
        1:1 error[no-tasks] the plan has no tasks / write each task as `### T1: title` with its text below, or as a checklist `- [ ] text`
    "##,
    );
    reports(
        "# Only a title\n\nAnd text.\n",
        r##"
        1:3 error[no-tasks] the plan has no tasks / write each task as `### T1: title` with its text below, or as a checklist `- [ ] text`
    "##,
    );
    reports(
        "# P\n### T1: a\n### T2: b\n\n\n### T3: c\n- agent: x\n### T4: d\nWords.\n",
        r##"
        2:5 error[empty-task] task `T1` is empty / say below its heading what to do, or how to tell that it is done (`- accept: …`)
        3:5 error[empty-task] task `T2` is empty / say below its heading what to do, or how to tell that it is done (`- accept: …`)
        6:5 warning[unproven] `T3` has neither checks nor artifacts: its agent's word is enough / add `- accept: COMMAND` or `- artifacts: FILE`
        8:5 warning[unproven] `T4` has neither checks nor artifacts: its agent's word is enough / add `- accept: COMMAND` or `- artifacts: FILE`
    "##,
    );
    reports(
        "# P\n- [ ]\n- [ ] do it\n",
        r##"
        2:1 error[empty-task] this item of the checklist is empty / say what to do behind the box
        3:7 warning[unproven] `T2` has neither checks nor artifacts: its agent's word is enough / add `- accept: COMMAND` or `- artifacts: FILE`
    "##,
    );
}

#[test]
fn front_matter() {
    reports(
        "---\nplan: x\n# P\n### T1: a\n- accept: x\n",
        r##"
        1:1 error[front-matter-open] the front matter that begins here never ends / close it with a line `---`
    "##,
    );
    reports(
        "---\nmax_agents: 0\nattempts: many\nplan: a b\nplan: c\nreviw: [critic]\nreview: [critic, boss]\nagent: [a]\nhealth: [a, \"b\ntimeout: 5\nsilence: 0s\nisolation: vm\nnonsense\nbackoff:\n  - - x\nhang:\n  silense: 5m\n---\n# P\n### T1: a\n- accept: x\n",
        r##"
        2:13 error[bad-setting] `max_agents` is a whole number from 1 on, not `0`
        3:11 error[bad-setting] `attempts` is a whole number from 1 on, not `many`
        4:7 error[bad-setting] `a b` is not a valid `plan`: a name holds only letters, digits, `.`, `_` and `-`, not ' ' / write `a-b`
        5:1 error[duplicate-setting] `plan` is set twice in the front matter / keep one of the two
        6:1 error[unknown-setting] unknown key `reviw` in the front matter / did you mean `review`?
        7:18 error[bad-setting] `boss` does not review / the reviewing roles are `critic` and `auditor`
        8:1 error[bad-setting] `agent` takes one value, not a list
        9:13 error[front-matter-value] the opening quote is never closed
        10:10 error[bad-setting] bad `timeout`: `5` has no unit / write `5s` for seconds or `5m` for minutes
        11:1 error[bad-setting] `silence` must be longer than zero
        12:12 error[bad-setting] unknown isolation `vm` / write `auto`, `worktree` or `shared`
        13:1 error[front-matter-line] this line of the front matter is not a `key: value` / write one `key: value` on each line, lists as `[a, b]`
        14:1 error[bad-setting] `backoff` takes one value, not a list
        17:3 error[unknown-setting] unknown key `hang.silense` in the front matter / did you mean `hang.silence`?
    "##,
    );
    reports(
        "---\nagent: \"a\" b\nplan: \"\\q\"\nreview: [critic] x\n- y\n---\n### T1: a\n- accept: x\n",
        r##"
        2:8 error[front-matter-value] text follows the closing quote
        3:1 error[bad-setting] `plan` has no value
        3:7 error[front-matter-value] unknown escape: within double quotes only \n, \t, \" and \\ have a meaning
        4:9 error[front-matter-value] text follows the closing bracket
        5:3 error[bad-setting] `y` does not review / the reviewing roles are `critic` and `auditor`
    "##,
    );
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
