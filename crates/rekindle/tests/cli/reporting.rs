//! `report`: what stands in it, and that nothing an agent says breaks it.

use rekindle_core::ids::TaskId;
use rekindle_core::report::{Checkpoint, Report};

use crate::environment::Environment;
use crate::history::{History, eventful};

fn stdout(environment: &Environment, arguments: &[&str]) -> String {
    let output = environment.output(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_account_of_a_run_for_people() {
    let environment = Environment::new();
    eventful(&environment);
    insta::assert_snapshot!(stdout(&environment, &["report"]));
}

#[test]
fn the_account_of_a_run_for_a_ci() {
    let environment = Environment::new();
    eventful(&environment);
    let xml = stdout(&environment, &["report", "--junit", "-"]);
    roxmltree::Document::parse(&xml).expect("XML");
    insta::assert_snapshot!(xml);
}

#[test]
fn reports_go_where_they_are_named() {
    let environment = Environment::new();
    insta::assert_snapshot!(environment.run(&["report"]), @r"
    err| error: there is no run here: $ROOT/.rekindle does not exist
    err| hint: start one: rekindle run plan.md
    exit 2
    ");
    eventful(&environment);
    insta::assert_snapshot!(environment.run(&["report", "--markdown", "r.md", "--junit", "r.xml"]), @r"
    err| wrote r.md
    err| wrote r.xml
    exit 0
    ");
    let written = |name: &str| std::fs::read_to_string(environment.path(name)).expect("a report");
    assert_eq!(written("r.md"), stdout(&environment, &["report", "--markdown", "-"]));
    assert_eq!(written("r.xml"), stdout(&environment, &["report", "--junit", "-"]));
    insta::assert_snapshot!(environment.run(&["report", "--markdown", "-", "--junit", "-"]), @r"
    err| error: only one report can go to standard output
    err| hint: name a file for the other
    exit 2
    ");
    insta::assert_snapshot!(environment.run(&["report", "--markdown", "no/where.md"]), @r"
    err| error: cannot write no/where.md
    err| caused by: No such file or directory (os error 2)
    err| hint: make its directory first
    exit 2
    ");
}

/// What an agent or a plan could say to break a report.
const HOSTILE: &str = "a|b ]]> <script>alert(1)</script> </testcase> &amp; \"q\" 'r' `code` [x](y) **b** \u{0}\u{b}\u{fffe}\u{ffff}\u{1b}[31m\u{202e}\n\n# head\n| x |\n```\n<!--";

fn hostile(environment: &Environment) {
    let plan = "# Title | <b>&\n\n### T1: a | b <i> ]]> `x`\n- accept: `make test`\n\n### T2: open\n- blocked by: T1\n- accept: `x`\n\n### T3: asks\n- accept: `x`\n";
    let mut history = History::of(plan);
    history.started("T1");
    let holder = history.holder("T1");
    history.exited(holder, 3);
    history.wait(400_000);
    history.started("T1");
    let id = |name: &str| TaskId::new(name).expect("a name");
    let files = vec![HOSTILE.to_owned()];
    let checkpoint = Checkpoint { status: HOSTILE.to_owned(), files, ..Checkpoint::default() };
    history.reported("T1", Report::Checkpoint { task: id("T1"), checkpoint });
    history.reported("T1", Report::Note { text: HOSTILE.to_owned() });
    history.claimed("T1", HOSTILE, 1, HOSTILE);
    history.started("T3");
    history.reported(
        "T3",
        Report::Ask {
            task: id("T3"),
            text: HOSTILE.to_owned(),
            options: vec![HOSTILE.to_owned()],
            context: HOSTILE.to_owned(),
        },
    );
    history.save(environment);
}

#[test]
fn nothing_that_is_said_breaks_the_xml() {
    let environment = Environment::new();
    hostile(&environment);
    let xml = stdout(&environment, &["report", "--junit", "-"]);
    let document = roxmltree::Document::parse(&xml).expect("XML");
    let cases: Vec<_> = document.descendants().filter(|node| node.has_tag_name("testcase")).collect();
    let names: Vec<_> = cases.iter().map(|case| case.attribute("name").expect("a name")).collect();
    assert_eq!(names, ["T1: a | b <i> ]]> `x`", "T3: asks", "T2: open"]);
    let out = cases[0].children().find(|node| node.has_tag_name("system-out")).expect("its output");
    let said = out.text().expect("text");
    assert!(said.contains("$ make test\nexited with 1") && said.contains("</testcase> &amp; \"q\""), "{said}");
    assert!(!said.chars().any(|c| c.is_control() && c != '\n') && !said.contains(['\u{fffe}', '\u{ffff}']));
    let suites: Vec<_> = document.descendants().filter(|node| node.has_tag_name("testsuite")).collect();
    for suite in suites.iter().chain([&document.root_element()]) {
        let count = |name: &str| suite.descendants().filter(|node| node.has_tag_name(name)).count().to_string();
        assert_eq!(suite.attribute("tests"), Some(count("testcase").as_str()));
        assert_eq!(suite.attribute("skipped"), Some(count("skipped").as_str()));
        assert_eq!(suite.attribute("failures"), Some(count("failure").as_str()));
    }
}

#[test]
fn nothing_that_is_said_breaks_the_markdown() {
    let environment = Environment::new();
    hostile(&environment);
    let text = stdout(&environment, &["report"]);
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        headings,
        [
            "# ⏳ Title \\| &lt;b&gt;&amp;: running",
            "## Tasks",
            "## Recovered",
            "## Questions",
            "## Decisions",
            "## Alerts",
            "## Files",
            "## Failing checks"
        ]
    );
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 5, "{rows:?}");
    for row in rows {
        let bars = row.replace("\\|", "").matches('|').count();
        assert_eq!(bars, 8, "{row}");
    }
    let said: Vec<&str> = text.lines().filter(|line| !line.starts_with("    ")).collect();
    assert!(said.iter().all(|line| !line.contains("<script") && !line.starts_with("```")), "{text}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
}

#[test]
fn attempts_that_came_to_nothing_are_told_as_reruns() {
    let environment = Environment::new();
    let mut history = History::of(
        "### T1: once more\n- accept: `make test`\n\n### T2: never\n- accept: `make test`\n- attempts: 2\n",
    );
    for task in ["T1", "T2"] {
        history.started(task);
        let holder = history.holder(task);
        history.exited(holder, 7);
    }
    history.wait(400_000);
    history.started("T1");
    history.claimed("T1", "done", 0, "ok\n");
    history.started("T2");
    let holder = history.holder("T2");
    history.exited(holder, 8);
    history.save(&environment);
    let xml = stdout(&environment, &["report", "--junit", "-"]);
    let document = roxmltree::Document::parse(&xml).expect("XML");
    let elements = |case: &str| -> Vec<String> {
        let case =
            document.descendants().find(|node| node.attribute("name").is_some_and(|name| name.starts_with(case)));
        let children = case.expect("a case").children().filter(|node| node.is_element());
        children.map(|node| node.tag_name().name().to_owned()).collect()
    };
    assert_eq!(elements("T1"), ["flakyFailure", "system-out"]);
    assert_eq!(elements("T2"), ["failure", "rerunFailure"]);
}
