//! Logs by number, found, searched and taken away whole, with text that would move a terminal or a page.

use rustix::process::Signal;
use serde_json::Value;

use super::{ONE, Served};
use crate::rig::Rig;

/// Lines that the agent prints.
const LINES: usize = 3_000;

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().expect("a list").iter().map(|number| number.as_u64().expect("a number")).collect()
}

#[test]
fn lines_are_read_by_number_found_searched_and_downloaded() {
    let agent = "i=0\nwhile [ $i -lt 3000 ]; do echo \"line $i\"; i=$((i+1)); done\n\
        printf '\\033]52;c;aGFjaw==\\a<script>alert(1)</script> NEEDLE\\033[2J\\n'\n\
        touch made\nrekindle task done T1 > done.txt\n";
    let rig = Rig::new(ONE, agent);
    rig.finish();
    let served = Served::start(&rig, &[]);
    let window = served.json("/api/logs/1?from=1234&many=3");
    assert_eq!(window["total"], LINES + 1, "{window}");
    for (at, line) in window["lines"].as_array().expect("lines").iter().enumerate() {
        assert_eq!((&line["number"], &line["text"]), (&(1234 + at).into(), &format!("line {}", 1234 + at).into()));
        assert!(line["stream"] == "stdout" && line["torn"] == false && line["time"].is_string(), "{line}");
    }
    assert_eq!(window["lines"].as_array().map(Vec::len), Some(3));
    let last = served.json("/api/logs/1?many=2");
    assert_eq!(last["from"], LINES - 1, "{last}");
    let capped = served.json("/api/logs/1?from=0&many=1000000");
    assert_eq!(capped["lines"].as_array().map(Vec::len), Some(2_000), "a window has a bound");
    assert_eq!(served.json("/api/logs/1?from=999999")["lines"], Value::Array(Vec::new()));
    let found = served.json("/api/logs/1/find?q=LINE%20299");
    assert_eq!(numbers(&found["lines"]), [vec![299], (2990..3000).collect()].concat(), "{found}");
    assert!(found["next"].is_null());
    let found = served.json("/api/logs/1/find?q=LINE%20299&from=300");
    assert_eq!(numbers(&found["lines"]), (2990..3000).collect::<Vec<u64>>());
    let many = served.json("/api/logs/1/find?q=line");
    let next = many["next"].as_u64().expect("there are more than one answer holds");
    let rest = served.json(&format!("/api/logs/1/find?q=line&from={next}"));
    let all = [numbers(&many["lines"]), numbers(&rest["lines"])].concat();
    assert_eq!(all, (0..LINES as u64).collect::<Vec<u64>>());
    let hits = served.json("/api/search?q=needle");
    assert_eq!((&hits["hits"], &hits["agents"][0]["agent"]), (&1.into(), &"developer-T1".into()), "{hits}");
    let hit = &hits["agents"][0]["lines"][0];
    assert_eq!((&hit["attempt"], &hit["number"]), (&1.into(), &LINES.into()), "{hit}");
    let raw = served.get("/api/logs/1/raw");
    assert_eq!(raw.body.lines().count(), LINES + 1);
    assert_eq!(raw.header("content-disposition"), Some("attachment; filename=\"attempt-1.log\""));
    assert_eq!(raw.header("content-type"), Some("text/plain; charset=utf-8"));
    for text in [raw.body, hits.to_string(), served.get("/api/logs/1").body] {
        assert!(!text.contains('\u{1b}') && !text.contains("\\u001b"), "an escape came through");
        assert!(text.contains("NEEDLE"));
    }
    for (path, status) in [
        ("/api/logs/2", 404),
        ("/api/logs/x", 404),
        ("/api/logs/2/raw", 404),
        ("/logs/2", 404),
        ("/logs/1", 200),
        ("/api/logs/1?from=x", 400),
        ("/api/logs/1?from=-1", 400),
        ("/api/logs/1/find", 400),
        ("/api/search?q=", 400),
        ("/assets/nope", 404),
        ("/assets/..%2f..%2fCargo.toml", 404),
        ("/tasks/..%2f..%2fetc", 404),
        ("/tasks/%ff", 400),
    ] {
        assert_eq!(served.get(path).status, status, "{path}");
    }
    served.end(Signal::INT);
}

#[test]
fn a_search_in_a_past_run_is_not_drowned_by_the_newest() {
    let agent = "echo 'needle of the first'\n[ -e many ] && { i=0; while [ $i -lt 800 ]; do echo \"needle $i\"; i=$((i+1)); done; }\n\
        touch made\nrekindle task done T1\n";
    let rig = Rig::new(ONE, agent);
    rig.finish();
    let first = rig.status()["run"]["id"].as_str().expect("an id").to_owned();
    rig.touch("many");
    rig.write("other.md", "# Other\n\n### T1: other\n\nWork.\n");
    assert_eq!(rig.rekindle(&["run", "other.md"]).code, Some(0), "{}", rig.story());
    let served = Served::start(&rig, &[]);
    let past = served.json(&format!("/api/search?q=needle&run={first}"));
    assert_eq!(past["hits"], 1, "{past}");
    assert!(past["agents"][0]["lines"][0]["text"] == "needle of the first", "{past}");
    let own = crate::rig::objects(&served.get(&format!("/api/events/download?run={first}")).body);
    assert!(!own.is_empty() && own.iter().all(|event| event["run"] == first.as_str()), "{own:?}");
    assert_eq!(served.get("/api/events/download?run=nope").status, 404);
    // An attempt of another run stays unknown there, also after its lines were counted.
    assert_eq!(served.get("/api/logs/2").status, 200);
    assert_eq!(served.get(&format!("/api/logs/2?run={first}")).status, 404);
    served.end(Signal::INT);
}
