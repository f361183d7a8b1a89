//! Drawings of runs that were made by hand: what stands in them, and that nothing hostile or odd breaks them.

use maud::Markup;
use rekindle_core::event::{AttemptEvent, Body, TaskEvent};
use rekindle_core::ids::AttemptId;
use rekindle_core::time::Time;
use roxmltree::Document;

use super::{CSS, Links, graph, timeline};
use crate::picture::Picture;
use crate::picture::sample::{START, Script, question, run, task};

const HOSTILE: [&str; 6] = [
    "</title></svg><script>alert(1)</script>",
    "\" onload=\"alert(1)\" x=\"",
    "' style='x:y'><b>&amp;",
    "\u{1b}]0;pwned\u{7}\u{1b}[31m\u{202e}evil\u{0}",
    "{{7*7}} ]]> <!-- --> \r\n\t",
    "🦀漢字 e\u{301}",
];

/// The drawing as a tree; it is well-formed, so nobody's words became markup.
fn parsed(markup: &Markup) -> (String, usize) {
    let text = format!("<div>{}</div>", markup.0);
    let tree = Document::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    for node in tree.descendants().filter(roxmltree::Node::is_element) {
        let name = node.tag_name().name();
        assert!(!matches!(name, "script" | "b" | "style" | "img" | "foreignObject"), "<{name}> in {text}");
        for attribute in node.attributes() {
            let (key, value) = (attribute.name(), attribute.value());
            assert!(!key.starts_with("on") && !matches!(key, "style" | "src"), "{key} in <{name}>");
            assert!(!value.contains("url(") && !value.contains("NaN") && !value.contains("inf"), "{key}={value}");
            if key == "href" {
                assert!(value.starts_with("/tasks/") || value.starts_with("/logs/") || value.starts_with("#task-"));
            }
            if matches!(key, "width" | "height") {
                assert!(value.parse::<f64>().is_ok_and(|length| length >= 0.0), "{key}={value} in <{name}>");
            }
        }
    }
    let elements = tree.descendants().filter(roxmltree::Node::is_element).count();
    (text, elements)
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

fn story() -> Picture {
    let mut script = Script::default();
    script.dispatched(0, "dev-a", "a", 1, false).task_started(0, "dev-a", "a", 1, 1).runs(400, "dev-a", "a", 1);
    script.crashed(5_000, "dev-a", "a", 1);
    script
        .dispatched(7_000, "dev-a", "a", 2, true)
        .task_started(7_000, "dev-a", "a", 2, 2)
        .runs(7_300, "dev-a", "a", 2);
    script.done(12_000, "dev-a", "a", 2);
    script
        .dispatched(13_000, "dev-b", "b", 3, false)
        .task_started(13_000, "dev-b", "b", 3, 1)
        .runs(13_100, "dev-b", "b", 3);
    let tasks = vec![
        task("a", "The first", "complete", &[]),
        task("b", "The second", "in_progress", &["a"]),
        task("c", "The third", "blocked", &["b"]),
    ];
    script.picture(tasks, 20_000)
}

#[test]
fn a_lane_has_a_bar_for_every_attempt_and_a_symbol_for_what_befell_it() {
    let (text, _) = parsed(&timeline(&story(), Links::Pages));
    assert_eq!(count(&text, "class=\"lane\""), 3);
    assert_eq!((count(&text, "attempt bad"), count(&text, "attempt ok"), count(&text, "attempt active")), (1, 1, 1));
    assert_eq!(count(&text, "class=\"starting\""), 3);
    assert!(text.contains("mark bad crash") && text.contains("mark hint recovery"), "{text}");
    assert!(text.contains("attempt 1 by dev-a (demo): crashed; started in 400ms, worked 4s"), "{text}");
    assert!(text.contains("attempt 2 by dev-a (demo): complete; waited 2s; started in 300ms, worked 4s"), "{text}");
    assert!(text.contains("attempt 1 by dev-b (demo): running; waited 1s; started in 100ms, worked 6s"), "{text}");
    assert!(text.contains("href=\"/tasks/b\"") && text.contains("href=\"/logs/3\""), "{text}");
    assert!(text.contains(">now<") && text.contains("<ul class=\"legend\""));
    let (text, _) = parsed(&timeline(&story(), Links::Anchors));
    assert!(text.contains("href=\"#task-b\"") && !text.contains("/logs/"), "{text}");
}

/// The bar of an attempt that is not over grows with the time, and ends with the run.
#[test]
fn unfinished_bars_reach_to_where_the_picture_ends() {
    let width = |picture: &Picture| {
        let (text, _) = parsed(&timeline(picture, Links::Pages));
        let tree = Document::parse(&text).expect("checked above");
        let bar = tree.descendants().find(|node| node.attribute("class") == Some("attempt active")).expect("a bar");
        let length = |name: &str| bar.attribute(name).and_then(|text| text.parse::<f64>().ok()).expect("a number");
        (length("x"), length("x") + length("width"))
    };
    let mut picture = story();
    let (begun, end) = width(&picture);
    assert!((end - 1162.0).abs() < 0.2, "{end}");
    picture.now = Time(START + 40_000);
    let (earlier, end) = width(&picture);
    assert!(earlier < begun && (end - 1162.0).abs() < 0.2, "{earlier} {end}");
    picture.coordinator = None;
    let (text, _) = parsed(&timeline(&picture, Links::Pages));
    assert!(!text.contains(">now<"), "nobody is at it");
}

#[test]
fn the_graph_has_a_box_for_every_task_and_a_headed_curve_for_every_wait() {
    let (text, _) = parsed(&graph(&story(), Links::Pages));
    assert_eq!((count(&text, "<polygon"), count(&text, "<path")), (2, 2));
    assert_eq!((count(&text, "edge met"), count(&text, "class=\"edge\"")), (1, 1));
    assert_eq!(count(&text, "class=\"box"), 3);
    assert!(text.contains("✔</tspan> a · complete") && text.contains("The second</text>"), "{text}");
}

/// Twenty-two tasks in four waves, some of whose dependencies span several layers.
fn waves() -> Picture {
    let names: Vec<String> = (0..22).map(|at| format!("T{at}")).collect();
    let titles = [
        "short",
        "a title that goes on and on and on until nobody reads it",
        "🦀🚀🎉🔥💥✨ 漢字漢字漢字",
        "WWWWWWWWWWWWWWWWWWWWWWWW",
    ];
    let mut script = Script::default();
    let mut tasks = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let before: Vec<&str> =
            (0..at).filter(|other| (at * 5 + other * 3) % 13 == 0).map(|other| names[other].as_str()).collect();
        let mut made = task(name, titles[at % titles.len()], if at % 5 == 3 { "failed" } else { "complete" }, &before);
        made.wave = u32::try_from(at / 6 + 1).expect("small");
        tasks.push(made);
        for (number, begun) in [0, 50, 100, 9_000].into_iter().enumerate() {
            let attempt = u64::try_from(at * 4 + number).expect("small") + 1;
            script.dispatched(begun, "dev", name, attempt, number > 0).runs(begun + 10, "dev", name, attempt);
            script.crashed(begun + 40, "dev", name, attempt);
        }
    }
    script.picture(tasks, 20_000)
}

#[test]
fn waves_have_a_name_in_both_drawings() {
    for (markup, each) in [(timeline(&waves(), Links::Pages), 1), (graph(&waves(), Links::Pages), 1)] {
        let (text, _) = parsed(&markup);
        for wave in 1..=4 {
            assert_eq!(count(&text, &format!(">Wave {wave}<")), each, "{text}");
        }
    }
    let (text, _) = parsed(&timeline(&story(), Links::Pages));
    assert!(!text.contains("Wave"), "one wave is none: {text}");
}

#[test]
fn no_line_of_the_graph_passes_through_a_box() {
    let (text, _) = parsed(&graph(&waves(), Links::Pages));
    let tree = Document::parse(&text).expect("checked above");
    let number = |node: &roxmltree::Node<'_, '_>, name: &str| -> f64 {
        node.attribute(name).and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{name}"))
    };
    let boxes: Vec<[f64; 4]> = tree
        .descendants()
        .filter(|node| node.attribute("class").is_some_and(|class| class.starts_with("box ")))
        .map(|node| ["x", "y", "width", "height"].map(|name| number(&node, name)))
        .collect();
    let inside = |x: f64, y: f64| {
        boxes.iter().any(|[left, top, wide, high]| {
            x > left + 0.5 && x < left + wide - 0.5 && y > top + 0.5 && y < top + high - 0.5
        })
    };
    let paths: Vec<&str> = tree.descendants().filter_map(|node| node.attribute("d")).collect();
    assert!(boxes.len() == 22 && paths.len() >= 15, "{} boxes, {} lines", boxes.len(), paths.len());
    for path in paths {
        for (x, y) in points(path) {
            assert!(!inside(x, y), "{path} passes a box at {x} {y}");
        }
    }
    for (at, one) in boxes.iter().enumerate() {
        for other in &boxes[..at] {
            let apart = one[0] >= other[0] + other[2]
                || other[0] >= one[0] + one[2]
                || one[1] >= other[1] + other[3]
                || other[1] >= one[1] + one[3];
            assert!(apart, "{one:?} lies on {other:?}");
        }
    }
}

/// Points along a path of moves, curves and level lines.
fn points(path: &str) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let starts: Vec<usize> = path.match_indices(|c: char| c.is_ascii_uppercase()).map(|(at, _)| at).collect();
    for (at, start) in starts.iter().enumerate() {
        let piece = &path[*start..starts.get(at + 1).copied().unwrap_or(path.len())];
        let numbers: Vec<f64> = piece[1..].split_whitespace().map(|text| text.parse().expect("a number")).collect();
        let from = points.last().copied().unwrap_or((0.0, 0.0));
        match (&piece[..1], &numbers[..]) {
            ("M", [x, y]) => points.push((*x, *y)),
            ("H", [x]) => points.extend((1..=64).map(|step| (from.0 + (x - from.0) * f64::from(step) / 64.0, from.1))),
            ("C", [ax, ay, bx, by, x, y]) => points.extend((1..=64).map(|step| {
                let (t, u) = (f64::from(step) / 64.0, 1.0 - f64::from(step) / 64.0);
                let at = |p: f64, a: f64, b: f64, q: f64| {
                    u * u * u * p + 3.0 * u * u * t * a + 3.0 * u * t * t * b + t * t * t * q
                };
                (at(from.0, *ax, *bx, *x), at(from.1, *ay, *by, *y))
            })),
            other => panic!("{other:?}"),
        }
    }
    points
}

#[test]
fn nobodys_words_become_markup() {
    for words in HOSTILE {
        let mut picture = story();
        picture.run.title = words.to_owned();
        for task in &mut picture.tasks {
            task.title = words.to_owned();
            task.reason = Some(words.to_owned());
            task.result = Some(words.to_owned());
        }
        picture.questions.push(question(1, "b", words, &[words]));
        let mut script = Script::default();
        script.dispatched(0, words, "a", 1, false);
        script.at(
            9,
            words,
            "a",
            &Body::Task(TaskEvent::WorkflowFailed { reason: words.to_owned(), detail: words.to_owned() }),
        );
        picture.history = std::sync::Arc::new(script.history());
        for links in [Links::Pages, Links::Anchors] {
            for markup in [timeline(&picture, links), graph(&picture, links)] {
                let (text, _) = parsed(&markup);
                assert!(!text.contains('\u{1b}') && !text.contains('\u{0}') && !text.contains('\u{202e}'), "{text:?}");
            }
        }
    }
}

#[test]
fn odd_times_break_nothing() {
    let times = [0, 1, -1, 200, -5_000, i64::MAX, i64::MIN, 259_200_000];
    for begun in times {
        for end in times {
            let mut script = Script::default();
            script.dispatched(begun, "dev", "a", 1, false).runs(end, "dev", "a", 1);
            script.at(
                end,
                "dev",
                "a",
                &Body::Attempt(AttemptEvent::AgentHung { attempt: AttemptId(1), quiet_ms: 1, evidence: String::new() }),
            );
            script.crashed(end, "dev", "a", 1);
            let mut picture = script.picture(vec![task("a", "", "pending", &["a", "gone"])], end);
            parsed(&timeline(&picture, Links::Pages));
            picture.run.ended_at = Some(Time(begun));
            parsed(&timeline(&picture, Links::Anchors));
        }
    }
}

#[test]
fn no_tasks_many_tasks_short_and_long_runs() {
    let nothing = Script::default().picture(Vec::new(), 0);
    assert!(parsed(&timeline(&nothing, Links::Pages)).0.contains("no tasks"));
    assert!(parsed(&graph(&nothing, Links::Pages)).0.contains("no tasks"));
    for length in [200_i64, 3 * 86_400_000] {
        let names: Vec<String> = (0..100).map(|at| format!("t{at}")).collect();
        let mut script = Script::default();
        let mut tasks = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let before: Vec<&str> = at.checked_sub(10).map(|at| names[at].as_str()).into_iter().collect();
            tasks.push(task(name, "A title that is longer than there is room for it", "complete", &before));
            for number in 1..=5_u32 {
                let attempt = u64::try_from(at).expect("small") * 5 + u64::from(number);
                let begun = length / 5 * i64::from(number - 1);
                script.dispatched(begun, "dev", name, attempt, number > 1).runs(
                    begun + length / 50,
                    "dev",
                    name,
                    attempt,
                );
                script.crashed(begun + length / 6, "dev", name, attempt);
            }
        }
        let picture = script.picture(tasks, length);
        let (text, elements) = parsed(&timeline(&picture, Links::Pages));
        assert_eq!(count(&text, "class=\"attempt"), 500);
        assert!(text.len() < 1_000_000 && elements < 6_000, "{} bytes, {elements} elements", text.len());
        parsed(&graph(&picture, Links::Pages));
    }
}

#[test]
fn a_pause_of_days_is_drawn_shorter_and_says_so() {
    let mut script = Script::default();
    script.dispatched(0, "dev", "a", 1, false).runs(1_000, "dev", "a", 1).crashed(600_000, "dev", "a", 1);
    script.dispatched(259_200_000, "dev", "a", 2, true).done(259_800_000, "dev", "a", 2);
    let mut picture = script.picture(vec![task("a", "", "complete", &[])], 259_800_000);
    picture.run = run("complete");
    let (text, _) = parsed(&timeline(&picture, Links::Pages));
    assert!(text.contains("no agent was running for 2d23h") && text.contains("⋯ 2d23h"), "{text}");
}

/// Text and symbols keep 4.5:1 on both backgrounds, fills 3:1 for what has to be told apart from it.
#[test]
fn colours_can_be_told_apart() {
    let themes: Vec<&str> = CSS.split("@media (prefers-color-scheme: dark)").collect();
    let [light, dark] = themes[..] else { panic!("two themes") };
    for (theme, css) in [("light", light), ("dark", dark)] {
        for ground in ["bg", "panel"] {
            let ground = colour(css, ground);
            for (name, least) in
                [("fg", 4.5), ("dim", 4.5), ("ok", 4.5), ("bad", 4.5), ("warn", 4.5), ("active", 4.5), ("hint", 4.5)]
            {
                assert!(contrast(colour(css, name), ground) >= least, "{theme} --{name}");
            }
        }
        let ground = colour(css, "bg");
        for name in ["ok-fill", "bad-fill", "warn-fill", "active-fill", "dim-fill"] {
            let seen = contrast(colour(css, name), ground);
            assert!(seen >= if name == "ok-fill" { 2.5 } else { 3.0 }, "{theme} --{name}: {seen}");
        }
    }
}

fn colour(css: &str, name: &str) -> [f64; 3] {
    let start = css.find(&format!("--{name}: #")).unwrap_or_else(|| panic!("--{name}")) + name.len() + 5;
    let part = |at: usize| f64::from(u8::from_str_radix(&css[start + at..start + at + 2], 16).expect("hex")) / 255.0;
    [part(0), part(2), part(4)]
}

fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let linear = |part: f64| if part <= 0.039_28 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) };
    let light = |colour: [f64; 3]| 0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2]);
    let (one, other) = (light(one) + 0.05, light(other) + 0.05);
    one.max(other) / one.min(other)
}
