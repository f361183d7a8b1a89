//! Plans that people write, and what is read from each.

use std::collections::BTreeMap;

use super::{plan, problems};
use crate::plan::{FrontMatter, Isolation, Plan, PlanTask, Setting, parse, show};

/// The example of the manual, with a little more text.
const AUTH: &str = "\
---
plan: auth-rewrite
max_agents: 4
review: [critic, auditor]
environments: [local, minimal]
---
# Auth rewrite
Goal and context: every agent receives this text.

## Dispatch rules
One file, one owner.

## Wave 1

### T1: Implement the auth module
- agent: backend
- artifacts: src/auth.rs, tests/auth.rs
- accept: `cargo test -p auth`
- reading: docs/auth.md
- timeout: 20m

What to do, in as many words as it takes.

- an ordinary bullet
- note: another one

### T2: Document the API
- blocked by: T1
- accept: `test -s docs/api.md`
";

fn ids(plan: &Plan) -> Vec<&str> {
    plan.tasks.iter().map(|task| task.id.as_str()).collect()
}

fn blockers(task: &PlanTask) -> Vec<&str> {
    task.blocked_by.iter().map(|id| id.as_str()).collect()
}

#[test]
fn the_plan_of_the_manual() {
    let parsed = parse("file", AUTH.as_bytes());
    assert_eq!(problems(&parsed), "");
    let plan = parsed.plan.expect("usable");
    assert_eq!(plan.name, "auth-rewrite");
    assert_eq!(plan.title, "Auth rewrite");
    assert_eq!(plan.goal, "Goal and context: every agent receives this text.");
    assert_eq!(plan.dispatch_rules.as_deref(), Some("One file, one owner."));
    assert_eq!(plan.hash, blake3::hash(AUTH.as_bytes()).to_hex().as_str());
    assert!(plan.explicit_waves);
    let settings = FrontMatter {
        plan: Some("auth-rewrite".into()),
        max_agents: Some(4),
        review: Some(vec!["critic".into(), "auditor".into()]),
        environments: Some(vec!["local".into(), "minimal".into()]),
        ..FrontMatter::default()
    };
    assert_eq!(plan.settings, settings);
    let expected = PlanTask {
        id: "T1".parse().expect("valid"),
        title: "Implement the auth module".into(),
        body: "What to do, in as many words as it takes.\n\n- an ordinary bullet\n- note: another one".into(),
        agent: Some("backend".parse().expect("valid")),
        role: None,
        cli: None,
        blocked_by: vec![],
        wave: 1,
        artifacts: vec!["src/auth.rs".into(), "tests/auth.rs".into()],
        accept: vec!["cargo test -p auth".into()],
        environments: vec![],
        reading: vec!["docs/auth.md".into()],
        timeout_ms: Some(1_200_000),
        attempts: None,
        priority: 0,
        done: false,
        line: 15,
    };
    assert_eq!(plan.tasks[0], expected);
    assert_eq!(blockers(&plan.tasks[1]), ["T1"]);
    assert_eq!((plan.tasks[1].wave, plan.tasks[1].line, plan.tasks[1].body.as_str()), (1, 27, ""));
}

#[test]
fn a_plan_survives_the_event_log() {
    let plan = plan(AUTH);
    let json = serde_json::to_string(&plan).expect("json");
    assert_eq!(serde_json::from_str::<Plan>(&json).expect("plan"), plan);
}

#[test]
fn line_ends_and_a_byte_order_mark_change_only_the_hash() {
    let other = format!("\u{feff}{}", AUTH.replace('\n', "\r\n"));
    let other = Plan { hash: plan(AUTH).hash, ..plan(&other) };
    assert_eq!(other, plan(AUTH));
}

#[test]
fn what_is_quoted_or_fenced_is_no_task() {
    let plan = plan(
        "# P\n### T1: real\n- accept: x\n\n```markdown\n### T9: fenced\n- blocked by: T1\n```\n\n    ### T8: indented\n\n> ### T7: quoted\n\n- ### T6: in a bullet\n\n<!--\n### T5: commented out\n-->\n",
    );
    assert_eq!(ids(&plan), ["T1"]);
    assert!(plan.tasks[0].body.contains("### T9: fenced"));
    assert!(plan.tasks[0].body.ends_with("-->"));
}

#[test]
fn tasks_need_no_wave_and_their_levels_are_shown() {
    let plan = plan(
        "# P\nGoal.\n## Dispatch rules\nBe kind.\n### On order\nIn order.\n### A: a\n- blocked by: B, C\n- accept: x\n### B: b\n- accept: x\n- blocked by: C\n### C: c\n- accept: x\n- blocked by: none\n",
    );
    assert_eq!(ids(&plan), ["A", "B", "C"]);
    assert!(!plan.explicit_waves);
    assert_eq!(plan.tasks.iter().map(|t| t.wave).collect::<Vec<_>>(), [3, 2, 1]);
    assert_eq!(plan.dispatch_rules.as_deref(), Some("Be kind.\n\n### On order\nIn order."));
    assert_eq!(plan.goal, "Goal.");
}

#[test]
fn sections_that_are_no_tasks_are_told_to_everybody() {
    let plan = plan(
        "Before.\n\n# P\nGoal.\n\n### Background\nWhy.\n\n## Wave 1: base\nWhat the wave is for.\n\n### T1: a\nBody.\n#### Detail\nMore.\n\n## Notes\nBe quick.\n### Style\nTabs.\n\n# Appendix\nEnd.\n",
    );
    assert_eq!(
        plan.goal,
        "Before.\n\nGoal.\n\n### Background\nWhy.\n\n## Wave 1: base\nWhat the wave is for.\n\n## Notes\nBe quick.\n\n### Style\nTabs.\n\n# Appendix\nEnd."
    );
    assert_eq!(plan.tasks[0].body, "Body.\n#### Detail\nMore.");
}

#[test]
fn keys_in_every_dress() {
    let plan = plan(
        "# P\n### T0: z\n- accept: x\n\n### **T1**: `a` b\n\n* **Agent:** `backend`\n* BLOCKED_BY: [T0]\n* __Role__: Health-Auditor\n* cli:claude\n* accept:\n  - `a`\n  - ``b `c` ``\n* Accept: `d`, `e`\n* accept:\n  ```sh\n  set -e\n  make\n  ```\n* artifacts: `./a b.txt`, \"c,d\", docs/,\n  e.rs, docs\n* attempts: 2\n* priority: -5\n* environments: local\n* reading: none\n\nText.\n",
    );
    let task = &plan.tasks[1];
    assert_eq!((task.id.as_str(), task.title.as_str()), ("T1", "`a` b"));
    assert_eq!(task.agent.as_ref().map(|a| a.as_str()), Some("backend"));
    assert_eq!(blockers(task), ["T0"]);
    assert_eq!(task.role.as_deref(), Some("health_auditor"));
    assert_eq!(task.cli.as_deref(), Some("claude"));
    assert_eq!(task.accept, ["a", "b `c`", "d", "e", "set -e\nmake"]);
    assert_eq!(task.artifacts, ["a b.txt", "c,d", "docs", "e.rs"]);
    assert_eq!((task.attempts, task.priority), (Some(2), -5));
    assert_eq!(task.environments, ["local"]);
    assert!(task.reading.is_empty());
    assert_eq!(task.body, "Text.");
}

#[test]
fn where_the_keys_end_the_text_begins() {
    let cases = [
        ("- accept: x\nText at once.\nMore.\n", "Text at once.\nMore."),
        ("- accept: x\n\n- do this\n- and: that\n", "- do this\n- and: that"),
        ("- accept: x\n\n* do this\n", "* do this"),
        ("- do this\n- do that\n", "- do this\n- do that"),
        ("- Add tests: unit and e2e\n- Fix the bug\n", "- Add tests: unit and e2e\n- Fix the bug"),
        ("1. agent: x\n", "1. agent: x"),
        ("- [ ] agent: x\n", "- [ ] agent: x"),
        ("Text.\n\n- colour: blue\n", "Text.\n\n- colour: blue"),
        ("\n- accept: x\n\n<b>x</b>\n\n    code\n", "<b>x</b>\n\n    code"),
        ("- see http://localhost:80\n", "- see http://localhost:80"),
    ];
    for (below, body) in cases {
        let plan = plan(&format!("# P\n### T1: a\n{below}"));
        assert_eq!(plan.tasks[0].body, body, "for {below:?}");
    }
}

#[test]
fn the_front_matter_in_full() {
    let plan = plan(
        "---\n# a comment\nagent: claude  # the usual\nbackoff: 0s\nattempts: 5\nreview: none\nisolation: worktree\nhealth:\n  - cargo test --workspace\n  - 'it''s fine'\n  - \"a \\\"b\\\"\"\ntimeout: 30m\ncritic_timeout: 5m\nhang:\n  silence: 10m\nfirst-event: 1m\nusage.command: usage --json\nbrief:\n  tags: [a, 'b, c']\n---\n### T1: a\n- accept: x\n",
    );
    let text = |t: &str| t.to_owned();
    let expected = FrontMatter {
        agent: Some(text("claude")),
        backoff_ms: Some(0),
        attempts: Some(5),
        review: Some(vec![]),
        isolation: Some(Isolation::Worktree),
        health: vec![text("cargo test --workspace"), text("it's fine"), text("a \"b\"")],
        timeouts_ms: BTreeMap::from([(text("critic"), 300_000), (text("developer"), 1_800_000)]),
        hang_ms: BTreeMap::from([(text("first_event"), 60_000), (text("silence"), 600_000)]),
        overrides: BTreeMap::from([
            (text("brief.tags"), Setting::List(vec![text("a"), text("b, c")])),
            (text("usage.command"), Setting::Text(text("usage --json"))),
        ]),
        ..FrontMatter::default()
    };
    assert_eq!(plan.settings, expected);
    assert_eq!((plan.name.as_str(), plan.title.as_str()), ("file", "file"));
}

#[test]
fn a_name_is_made_from_any_file_name() {
    let text = b"### T1: a\n- accept: x\n";
    for (file, name) in [("My Plan", "My-Plan"), ("../..", "plan"), ("", "plan"), ("plän", "pl-n")] {
        assert_eq!(parse(file, text).plan.expect("usable").name, name);
    }
}

#[test]
fn a_title_may_be_underlined_and_long() {
    assert_eq!(plan("A long\r\ntitle\r\n===\r\n### T1: a\r\n- accept: x\r\n").title, "A long title");
}

#[test]
fn a_rule_at_the_top_is_no_front_matter() {
    let plan = plan("---\n\n# P\n### T1: a\n- accept: x\n");
    assert_eq!((plan.title.as_str(), plan.goal.as_str()), ("P", ""));
}

#[test]
fn a_checklist_is_a_plan() {
    let plan = plan(
        "# List\nWhy.\n\n- [x] Set up\n- [ ] B7: Build it\n  with care\n\n  More about it.\n  - [ ] the lexer\n  - plain\n    - [X] the parser\n  - plain too\n- not a task\n\n## Wave 1\n- [ ] Try\n\n## Wave 2\n1. [ ] Ship: now\n2. [ ] Ship: later\n   - accept: `ship`\n   - blocked by: B7\n\n> - [ ] quoted\n",
    );
    let seen: Vec<_> =
        plan.tasks.iter().map(|t| (t.id.as_str(), t.title.as_str(), blockers(t).join(","), t.done, t.line)).collect();
    assert_eq!(
        seen,
        [
            ("T1", "Set up", String::new(), true, 4),
            ("B7", "Build it with care", "T3,T4".into(), false, 5),
            ("T3", "the lexer", String::new(), false, 9),
            ("T4", "the parser", String::new(), true, 11),
            ("T5", "Try", String::new(), false, 16),
            ("T6", "Ship: now", String::new(), false, 19),
            ("T7", "Ship: later", "B7".into(), false, 20),
        ]
    );
    assert_eq!(plan.tasks[1].body, "More about it.\n- plain\n- plain too");
    assert_eq!(plan.tasks[6].accept, ["ship"]);
    assert_eq!(plan.goal, "Why.\n\n- not a task\n\n## Wave 2\n\n> - [ ] quoted");
    let waves: Vec<_> = plan.tasks.iter().map(|t| t.wave).collect();
    assert_eq!(waves, [1, 1, 1, 1, 1, 2, 2]);
}

#[test]
fn a_checklist_indented_with_tabs() {
    let plan = plan("Ünï:\n- plain ä\n\t- [ ] one\n\t- [ ] two\n\t\t- [ ] three\nend\n");
    assert_eq!(ids(&plan), ["T1", "T2", "T3"]);
    assert_eq!(blockers(&plan.tasks[1]), ["T3"]);
    assert_eq!(plan.tasks[1].body, "");
    assert_eq!(plan.goal, "Ünï:\n- plain ä");
}

#[test]
fn numbers_of_a_checklist_avoid_ids_that_are_given() {
    let plan = plan("- [ ] one\n- [ ] T1: two\n- [ ] three\n- [ ] T4: four\n- [ ] five\n");
    assert_eq!(ids(&plan), ["T2", "T1", "T3", "T4", "T5"]);
}

#[test]
fn a_checklist_under_a_task_is_its_text() {
    let plan = plan("# P\n### T1: a\n- accept: x\n\n- [ ] step\n");
    assert_eq!(ids(&plan), ["T1"]);
    assert_eq!(plan.tasks[0].body, "- [ ] step");
}

#[test]
fn shown_for_people() {
    let shown = show(&plan(AUTH));
    let hash = &plan(AUTH).hash[..12];
    let expected = format!(
        "\
Auth rewrite
2 tasks, 1 wave, plan auth-rewrite, hash {hash}
front matter sets max_agents 4
front matter sets review critic, auditor
front matter sets environments local, minimal

Wave 1
  T1  Implement the auth module
      agent backend
      timeout 20m
      reading docs/auth.md
      artifacts src/auth.rs, tests/auth.rs
      accept cargo test -p auth
  T2  Document the API
      blocked by T1
      accept test -s docs/api.md
"
    );
    assert_eq!(shown, expected);
    let shown = show(&plan("- [x] a \u{1b}[31m\n- [ ] b\n"));
    let lines: Vec<_> = shown.lines().skip(2).collect();
    assert_eq!(lines, ["", "Level 1", "  T1  a \\u{1b}[31m (done)", "  T2  b", "      unproven"]);
}

#[test]
fn another_bullet_marker_does_not_end_the_keys() {
    let text = "# P\n\n### T1: a\n- accept: `true`\n* artifacts: a.txt\n- timeout: 5m\n\nText.\n\n* ordinary: bullet\n";
    let parsed = crate::plan::parse("p", text.as_bytes());
    let plan = parsed.plan.expect("a plan");
    let task = &plan.tasks[0];
    assert_eq!((task.artifacts.as_slice(), task.timeout_ms), (&["a.txt".to_owned()][..], Some(300_000)));
    assert_eq!(task.body, "Text.\n\n* ordinary: bullet");
}

#[test]
fn a_task_with_a_heading_may_be_finished_already() {
    let text = "### T1: a\n- done: yes\n\n### T2: b\n- done: no\n- artifacts: x\n\n### T3: c\n- done: maybe\n";
    let parsed = parse("file", text.as_bytes());
    let found: Vec<_> = parsed.problems.iter().map(|p| (p.line, p.code)).collect();
    assert_eq!(found, [(8, "unproven"), (9, "bad-done")], "a finished task is not told to be unproven");
    let plan = plan(&text.replace("maybe", "TRUE"));
    let done: Vec<_> = plan.tasks.iter().map(|task| task.done).collect();
    assert_eq!(done, [true, false, true]);
}
