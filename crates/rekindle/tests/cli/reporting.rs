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
fn what_rekindle_itself_says_is_counted_for_each_task() {
    let environment = Environment::new();
    eventful(&environment);
    let status = environment.json(&["status", "--json"]);
    let tasks = status["tasks"].as_array().expect("tasks").iter();
    let said: Vec<u64> = tasks.map(|task| task["rekindle_tokens"].as_u64().expect("a number")).collect();
    assert_eq!(said, [474, 237], "237 tokens with each of two attempts and one: {status}");
    assert!(stdout(&environment, &["report"]).contains("rekindle's own words: 711 tokens"));
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
    insta::assert_snapshot!(environment.run(&["report", "--html", "-", "--trace", "-"]), @r"
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
            "## Failing checks",
            "## Tasks",
            "## Recovered",
            "## Questions",
            "## Decisions",
            "## Alerts",
            "## Files"
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

/// The part of the file that a browser shows, as a tree: it is written so that it is well-formed.
fn shown(page: &str) -> String {
    let from = page.find("<body>").expect("a body");
    let until = page.find("</body>").expect("its end") + "</body>".len();
    // XML has no place for these; HTML has.
    page[from..until].replace(['\u{fffe}', '\u{ffff}'], "").replace("<details open>", "<details>")
}

#[test]
fn the_html_stands_alone_and_tells_what_failed_first() {
    let environment = Environment::new();
    eventful(&environment);
    let page = stdout(&environment, &["report", "--html", "-"]);
    assert!(page.starts_with("<!DOCTYPE html>"));
    let body = shown(&page);
    let tree = roxmltree::Document::parse(&body).unwrap_or_else(|error| panic!("{error}\n{body}"));
    let headings: Vec<&str> =
        tree.descendants().filter(|node| node.has_tag_name("h2")).filter_map(|node| node.text()).collect();
    assert_eq!(headings[..4], ["What failed", "Timeline", "Dependencies", "Tasks"], "{headings:?}");
    assert!(headings.contains(&"Every task's story") && headings.contains(&"Recovered") && headings.contains(&"Cost"));
    let place = |text: &str| body.find(text).unwrap_or_else(|| panic!("no {text} in {body}"));
    assert!(place("it ended by itself before its work was complete") < place("class=\"timeline\""));
    assert!(body.contains("<b>1</b> of 2 complete"), "{body}");
    assert!(body.contains("NOT PROVEN") && body.contains("exited with 1"), "the story has its decisions: {body}");
    let ids: Vec<&str> = tree.descendants().filter_map(|node| node.attribute("id")).collect();
    for link in tree.descendants().filter_map(|node| node.attribute("href")) {
        assert!(link.strip_prefix('#').is_some_and(|id| ids.contains(&id)), "{link} leads nowhere: {ids:?}");
    }
}

#[test]
fn the_html_allows_its_own_style_and_nothing_else() {
    use sha2::{Digest, Sha256};
    let environment = Environment::new();
    hostile(&environment);
    let page = stdout(&environment, &["report", "--html", "-"]);
    let style = page.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next()).expect("one style");
    assert_eq!(page.matches("<style").count(), 1);
    for reference in ["url(", "@import", "http", "//"] {
        assert!(!style.contains(reference), "{reference} in the style");
    }
    let policy = page.split("Content-Security-Policy\" content=\"").nth(1).and_then(|rest| rest.split('"').next());
    let policy = policy.expect("a policy").replace("&#39;", "'");
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    let told = policy.split("sha256-").nth(1).and_then(|rest| rest.split('\'').next()).expect("a hash");
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: String =
        told.trim_end_matches('=').chars().map(|c| format!("{:06b}", letters.find(c).expect("base64"))).collect();
    let hash: String = Sha256::digest(style.as_bytes()).iter().map(|byte| format!("{byte:08b}")).collect();
    assert_eq!(bits[..256], hash, "the style is the one that the policy names");
    let body = shown(&page);
    let tree = roxmltree::Document::parse(&body).unwrap_or_else(|error| panic!("{error}\n{body}"));
    let known = [
        "body", "header", "main", "footer", "section", "h1", "h2", "h3", "h4", "p", "span", "b", "a", "ul", "ol", "li",
        "div", "table", "thead", "tbody", "tr", "th", "td", "time", "code", "pre", "details", "summary", "svg", "g",
        "text", "tspan", "title", "line", "rect", "path", "polygon",
    ];
    for node in tree.descendants().filter(roxmltree::Node::is_element) {
        assert!(known.contains(&node.tag_name().name()), "<{}> was made by somebody's words", node.tag_name().name());
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(!name.starts_with("on") && !["style", "src", "srcset", "action"].contains(&name), "{name}={value}");
            assert!(name != "href" || value.starts_with('#'), "{name}={value}");
        }
    }
    assert!(!page.chars().any(|c| c.is_control() && c != '\n') && !page.contains('\u{202e}'));
    assert!(page.contains("What waits for you") && page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[test]
fn the_trace_is_one_that_perfetto_opens() {
    let environment = Environment::new();
    eventful(&environment);
    let trace: serde_json::Value =
        serde_json::from_str(&stdout(&environment, &["report", "--trace", "-"])).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    let lane = |event: &serde_json::Value| (event["pid"].as_u64().expect("pid"), event["tid"].as_u64().expect("tid"));
    let named: Vec<_> = of("M").into_iter().filter(|event| event["name"] == "thread_name").map(lane).collect();
    let groups: Vec<_> =
        of("M").into_iter().filter(|event| event["name"] == "process_name").map(|event| lane(event).0).collect();
    assert_eq!((of("X").iter().filter(|event| event["cat"] == "attempt").count(), groups.len()), (6, 2), "{trace}");
    for event in of("X") {
        assert!(
            event["dur"].as_i64().is_some_and(|dur| dur >= 0) && event["ts"].as_i64().is_some_and(|ts| ts >= 0),
            "{event}"
        );
        assert!(named.contains(&lane(event)) && groups.contains(&lane(event).0), "no name for {event}");
    }
    // In one lane slices lie within each other or apart: otherwise a viewer drops some.
    for one in of("X") {
        let (from, end) =
            (one["ts"].as_i64().expect("ts"), one["ts"].as_i64().expect("ts") + one["dur"].as_i64().expect("dur"));
        for other in of("X").into_iter().filter(|other| lane(other) == lane(one)) {
            let (start, stop) = (
                other["ts"].as_i64().expect("ts"),
                other["ts"].as_i64().expect("ts") + other["dur"].as_i64().expect("dur"),
            );
            let apart = stop <= from || end <= start;
            let within = (start <= from && end <= stop) || (from <= start && stop <= end);
            assert!(apart || within, "{one} and {other}");
        }
    }
    let marks = of("i");
    assert!(
        marks.iter().any(|mark| mark["name"] == "crash")
            && marks.iter().all(|mark| mark["s"] == "t" && named.contains(&lane(mark)))
    );
    let last = of("C").last().map(|event| event["args"]["running"].as_i64());
    assert_eq!(last, Some(Some(0)), "nobody runs at the end");
}

#[test]
fn a_report_is_of_the_run_that_was_asked_for() {
    let environment = Environment::new();
    eventful(&environment);
    assert!(stdout(&environment, &["report", "--run", "r-1"]).starts_with("# ❌ Calculator"));
    insta::assert_snapshot!(environment.run(&["report", "--run", "nope"]), @r"
    err| error: there is no run `nope`
    err| hint: newest first: r-1
    exit 2
    ");
}
