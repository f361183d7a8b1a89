//! `plan check` and `plan show`.

use crate::environment::Environment;

#[test]
fn all_problems_of_a_plan_are_told_at_once() {
    let environment = Environment::new();
    environment.write(
        "plan.md",
        "# Broken\n\n### T1: one\n- acept: `true`\n- blocked by: T2, T9\n\n### T2: two\n- blocked by: T1\n- timeout: 20\n\n### T1: again\n",
    );
    insta::assert_snapshot!(environment.run(&["plan", "check", "plan.md"]), @r"
    err| warning: `T1` has neither checks nor artifacts: its agent's word is enough; 1 more like it, on line 7
    err|  --> plan.md:3:5
    err|   |
    err| 3 | ### T1: one
    err|   |     ^^^^^^^
    err|   |
    err|   = hint: add `- accept: COMMAND` or `- artifacts: FILE`
    err| error: unknown key `acept`
    err|  --> plan.md:4:1
    err|   |
    err| 4 | - acept: `true`
    err|   | ^^^^^^^^^^^^^^^
    err|   |
    err|   = hint: did you mean `accept`?
    err| error: tasks wait for each other in a cycle: T1 → T2 → T1
    err|  --> plan.md:5:15
    err|   |
    err| 5 | - blocked by: T2, T9
    err|   |               ^^
    err|   |
    err|   = hint: each waits for the next; remove one `blocked by`
    err| error: unknown blocker `T9`: no task has this id
    err|  --> plan.md:5:19
    err|   |
    err| 5 | - blocked by: T2, T9
    err|   |                   ^^
    err|   |
    err|   = hint: did you mean `T2`?
    err| error: bad `timeout`: `20` has no unit
    err|  --> plan.md:9:12
    err|   |
    err| 9 | - timeout: 20
    err|   |            ^^
    err|   |
    err|   = hint: write `20s` for seconds or `20m` for minutes
    err| error: the id `T1` is used twice, first on line 3
    err|   --> plan.md:11:5
    err|    |
    err| 11 | ### T1: again
    err|    |     ^^^^^^^^^
    err|    |
    err|    = hint: give one of the two another id
    err| error: task `T1` is empty
    err|   --> plan.md:11:5
    err|    |
    err| 11 | ### T1: again
    err|    |     ^^^^^^^^^
    err|    |
    err|    = hint: say below its heading what to do, or how to tell that it is done (`- accept: …`)
    err| error: plan.md has 6 errors
    exit 2
    ");
    let output = environment.output(&["plan", "check", "plan.md", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["schema_version"], 1);
    assert_eq!(json["plan"], serde_json::Value::Null);
    let problems = json["problems"].as_array().expect("a list");
    assert!(problems.len() >= 5, "{json}");
    for problem in problems {
        assert!(problem["line"].is_u64() && problem["column"].is_u64() && problem["message"].is_string());
    }
}

#[test]
fn a_plan_that_is_none_is_refused() {
    let environment = Environment::new();
    insta::assert_snapshot!(environment.run(&["plan", "check", "none.md"]), @r"
    err| error: cannot read the plan none.md
    err| caused by: No such file or directory (os error 2)
    err| hint: write one to start from: rekindle init
    exit 2
    ");
    environment.write("empty.md", "");
    insta::assert_snapshot!(environment.run(&["plan", "check", "empty.md"]), @r"
    err| error: the plan has no tasks
    err|  --> empty.md:1:1
    err|   |
    err| 1 |
    err|   | ^
    err|   |
    err|   = hint: write each task as `### T1: title` with its text below, or as a checklist `- [ ] text`
    exit 2
    ");
    std::fs::write(environment.path("bytes.md"), b"# P\n### T1: \xff\xfe\n").expect("written");
    insta::assert_snapshot!(environment.run(&["plan", "check", "bytes.md"]), @r"
    err| error: the plan is not text: byte 12 is not UTF-8
    err|  --> bytes.md:2:9
    err|   |
    err| 2 | ### T1: ��
    err|   |         ^
    err|   |
    err|   = hint: save the file as UTF-8
    exit 2
    ");
}

#[test]
fn warnings_do_not_keep_a_plan_from_running() {
    let environment = Environment::new();
    environment.write("plan.md", "# Trusting\n\n### T1: on its word\n\nDo it.\n");
    insta::assert_snapshot!(environment.run(&["plan", "check"]), @r"
    out| plan.md: plan plan with 1 task can be run, 1 warning
    out| readiness: 60 of 100
    out|   nothing proves: T1
    err| warning: `T1` has neither checks nor artifacts: its agent's word is enough
    err|  --> plan.md:3:5
    err|   |
    err| 3 | ### T1: on its word
    err|   |     ^^^^^^^^^^^^^^^
    err|   |
    err|   = hint: add `- accept: COMMAND` or `- artifacts: FILE`
    exit 0
    ");
}

#[test]
fn a_plan_is_shown_in_waves() {
    let environment = Environment::new();
    environment.write(
        "plan.md",
        "# Build\n\n## Wave 1\n\n### T1: parse\n- accept: `true`\n\n## Wave 2\n\n### T2: print\n- blocked by: T1\n- artifacts: out.txt\n- agent: writer\n",
    );
    insta::assert_snapshot!(environment.run(&["plan", "show"]), @r"
    out| Build
    out| 2 tasks, 2 waves, plan plan, hash f106cfd5a290
    out| 
    out| Wave 1
    out|   T1  parse
    out|       accept true
    out| 
    out| Wave 2
    out|   T2  print
    out|       blocked by T1
    out|       agent writer
    out|       artifacts out.txt
    exit 0
    ");
    let json = environment.json(&["plan", "show", "--json"]);
    assert_eq!(json["plan"]["tasks"][1]["blocked_by"][0], "T1");
}

#[test]
fn a_plans_agents_are_checked_where_there_is_a_configuration() {
    let environment = Environment::new();
    environment.write("plan.md", "# P\n\n### T1: one\n- cli: revewer\n- accept: `true`\n");
    environment.write("rekindle.toml", "[agents.reviewer]\nkind = \"command\"\ncommand = [\"no-such-program\"]\n");
    insta::assert_snapshot!(environment.run(&["plan", "check"]), @r"
    err| error: task T1 names the unknown agent `revewer` (line 3 of the plan)
    err| hint: did you mean `reviewer`?
    exit 2
    ");
    environment.write("plan.md", "# P\n\n### T1: one\n- cli: reviewer\n- accept: `true`\n");
    insta::assert_snapshot!(environment.run(&["plan", "check"]), @r"
    out| plan.md: plan plan with 1 task can be run
    out| readiness: 35 of 100
    out|   checks that cannot fail: T1 (`true`)
    out|   vague: T1 (its text hardly says what to do)
    err| warning: agent `reviewer` cannot be started: `no-such-program` was not found on PATH
    err| hint: install `no-such-program`, or write its whole path into rekindle.toml
    exit 0
    ");
    environment.write("plan.md", "---\nhang.silense: 3m\n---\n# P\n\n### T1: one\n- accept: `true`\n");
    insta::assert_snapshot!(environment.run(&["plan", "check"]), @r"
    err| error: unknown key `hang.silense` in the front matter
    err|  --> plan.md:2:1
    err|   |
    err| 2 | hang.silense: 3m
    err|   | ^^^^^^^^^^^^
    err|   |
    err|   = hint: did you mean `hang.silence`?
    exit 2
    ");
}

#[test]
fn an_artifact_that_git_ignores_is_named_where_it_stands() {
    let environment = Environment::new();
    environment.write("plan.md", "# Build\n\n### T1: one dist/app.js\n- artifacts: src/a, dist/app.js\n\nBuild.\n");
    environment.write(".gitignore", "dist/\n");
    let git = std::process::Command::new("git").args(["init", "-q"]).current_dir(environment.root()).status();
    assert!(git.expect("git").success());
    insta::assert_snapshot!(environment.run(&["plan", "check", "plan.md"]), @r"
    out| plan.md: plan plan with 1 task can be run, 1 warning
    out| readiness: 100 of 100
    err| warning: git ignores the artifact `dist/app.js`: rekindle adds it to the run's branch all the same
    err|  --> plan.md:4:21
    err|   |
    err| 4 | - artifacts: src/a, dist/app.js
    err|   |                     ^^^^^^^^^^^
    err|   |
    err|   = hint: take it out of .gitignore, or declare something that is committed
    exit 0
    ");
    let output = environment.output(&["plan", "check", "plan.md", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((json["warnings"].as_u64(), json["errors"].as_u64()), (Some(1), Some(0)), "{json}");
    assert_eq!(json["problems"][0]["code"], "artifact_ignored");
    assert_eq!((json["problems"][0]["line"].as_u64(), json["problems"][0]["column"].as_u64()), (Some(4), Some(21)));
}

#[test]
fn readiness_names_what_an_agent_alone_would_stumble_over() {
    let environment = Environment::new();
    environment.write(
        "plan.md",
        "# P\n\n### T1: Write the parser\n- accept: `cargo test parser`\n\nIn `src/parse.rs`.\n\n### T2: Speed the parser up\n- accept: `echo ok`\n\nAlso in `src/parse.rs`, as needed.\n\n### T3: Docs\n\nSoon.\n",
    );
    insta::assert_snapshot!(environment.run(&["plan", "check"]), @r"
    out| plan.md: plan plan with 3 tasks can be run, 1 warning
    out| readiness: 46 of 100
    out|   nothing proves: T3
    out|   checks that cannot fail: T2 (`echo ok`)
    out|   vague: T2 (`as needed` leaves open what is meant); T3 (its text hardly says what to do)
    out|   no order between: T1 and T2 (both touch `src/parse.rs` and neither waits for the other)
    err| warning: `T3` has neither checks nor artifacts: its agent's word is enough
    err|   --> plan.md:13:5
    err|    |
    err| 13 | ### T3: Docs
    err|    |     ^^^^^^^^
    err|    |
    err|    = hint: add `- accept: COMMAND` or `- artifacts: FILE`
    exit 0
    ");
    let output = environment.output(&["plan", "check", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["readiness"]["score"], 46);
    let codes: Vec<&str> =
        json["readiness"]["findings"].as_array().expect("a list").iter().filter_map(|f| f["code"].as_str()).collect();
    assert_eq!(codes, ["no-check", "check-cannot-fail", "vague", "vague", "shared-file"]);
    assert_eq!(json["readiness"]["findings"][4]["tasks"], serde_json::json!(["T1", "T2"]));
}

#[test]
fn a_heading_that_looks_like_a_task_is_an_error_with_its_line() {
    let environment = Environment::new();
    environment.write(
        "plan.md",
        "# P\n\n### Implement the parser\n\nx\n\n### T1: Print\n- accept: `make test`\n\n## Task 2: Ship\n\ny\n",
    );
    insta::assert_snapshot!(environment.run(&["plan", "check"]), @r"
    err| error: `Implement the parser` is not a task: its heading has no `ID: title`
    err|  --> plan.md:3:5
    err|   |
    err| 3 | ### Implement the parser
    err|   |     ^^^^^^^^^^^^^^^^^^^^
    err|   |
    err|   = hint: write `### ID: title`; a section that is not a task begins with `##`
    err| error: `Task 2: Ship` looks like a task but is a level-2 heading
    err|   --> plan.md:10:4
    err|    |
    err| 10 | ## Task 2: Ship
    err|    |    ^^^^^^^^^^^^
    err|    |
    err|    = hint: tasks are level-3 headings: `### ID: title`
    err| error: plan.md has 2 errors
    exit 2
    ");
}
