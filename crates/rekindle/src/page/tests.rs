//! What holds for pages without a browser: contrast of the colours, weight of a large run, texts that stay texts.

use std::collections::BTreeMap;
use std::sync::Arc;

use rekindle_core::text::is_harmful;

use super::*;
use crate::picture::sample::{Script, attempt, question, task};

fn site(picture: Picture) -> Site {
    let project = Project { root: "/nowhere".into(), config: None, state_dir: "/nowhere/.rekindle".into() };
    Site { project, picture: Some(Arc::new(picture)), read_only: false }
}

fn page(site: &Site, page: &Page) -> String {
    answer(site, page, &BTreeMap::new()).expect("a page").0
}

/// The value of a colour variable in one of the two schemes: the second block of each file is the dark one.
fn colours(dark: bool) -> BTreeMap<String, [f64; 3]> {
    let mut found = BTreeMap::new();
    for css in [crate::drawing::CSS, include_str!("assets/app.css")] {
        for (at, block) in css.split(":root {").skip(1).take(2).enumerate() {
            let block = block.split('}').next().unwrap_or_default();
            for pair in block.split(';').filter_map(|pair| pair.trim().strip_prefix("--")?.split_once(": #")) {
                let channel = |at: usize| f64::from(u8::from_str_radix(&pair.1[at..at + 2], 16).expect("hex"));
                if at == usize::from(dark) {
                    found.insert(pair.0.to_owned(), [channel(0), channel(2), channel(4)]);
                }
            }
        }
    }
    found
}

fn luminance(colour: [f64; 3]) -> f64 {
    let [r, g, b] = colour.map(|channel| {
        let part = channel / 255.0;
        if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
    (one / other).max(other / one)
}

#[test]
fn every_text_has_enough_contrast_on_every_ground_in_light_and_dark() {
    for dark in [false, true] {
        let colours = colours(dark);
        let colour = |name: &str| *colours.get(name).unwrap_or_else(|| panic!("no --{name}, dark: {dark}"));
        let mut pairs = vec![("on-primary", "primary"), ("bg", "warn"), ("fg", "add"), ("fg", "del"), ("fg", "hit")];
        pairs.extend([("bad", "hit"), ("dim", "hit")]);
        for text in ["fg", "dim", "ok", "bad", "warn", "active", "hint"] {
            pairs.extend(["bg", "panel", "raised"].map(|ground| (text, ground)));
        }
        for (text, ground) in pairs {
            let ratio = contrast(colour(text), colour(ground));
            assert!(ratio >= 4.5, "--{text} on --{ground} has {ratio:.2}:1, dark: {dark}");
        }
        let edge = contrast(colour("active"), colour("bg"));
        assert!(edge >= 3.0, "the ring of the focus has {edge:.2}:1");
    }
}

#[test]
fn a_run_of_100_tasks_with_5_attempts_each_is_a_light_page() {
    let mut script = Script::default();
    let (mut tasks, mut attempts) = (Vec::new(), Vec::new());
    for n in 0..100_u64 {
        let (name, agent) = (format!("T{n}"), format!("dev-T{n}"));
        let before = if n == 0 { Vec::new() } else { vec![format!("T{}", n / 2)] };
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        tasks.push(task(&name, "A title of some length, as plans have them", "in_progress", &before));
        for a in 0..5 {
            let (id, at) = (n * 5 + a + 1, i64::try_from(n * 1_000 + a * 100).expect("small"));
            script.dispatched(at, &agent, &name, id, a > 0).runs(at + 10, &agent, &name, id);
            script.crashed(at + 50, &agent, &name, id);
            attempts.push(attempt(id, &agent, &[&name], "ended"));
        }
    }
    let picture = Picture { attempts, ..script.picture(tasks, 200_000) };
    let site = site(picture);
    for (name, page) in [("overview", page(&site, &Page::Overview)), ("task", page(&site, &Page::Task("T7".into())))] {
        assert!(page.len() < 1_000_000, "the {name} page has {} bytes", page.len());
    }
}

#[test]
fn texts_of_others_stay_texts() {
    let hostile = "</title><script>alert(1)</script>\" onclick=\"x' \u{1b}]0;t\u{7}\u{202e}\u{0}&amp;";
    let mut row = task("T1", hostile, "failed", &[]);
    (row.reason, row.result) = (Some(hostile.to_owned()), Some(hostile.to_owned()));
    let mut picture = Script::default().picture(vec![row], 1_000);
    picture.run.title = hostile.to_owned();
    picture.questions = vec![question(1, "T1", hostile, &[hostile])];
    let site = site(picture);
    for shown in [Page::Overview, Page::Task("T1".into()), Page::Questions, Page::Cost] {
        let text = page(&site, &shown);
        assert!(!text.contains("<script>alert"), "{shown:?}");
        assert!(!text.contains("onclick=\"x"), "{shown:?}");
        assert!(!text.chars().any(is_harmful), "{shown:?} has control characters");
        let head = text.split("</head>").next().unwrap_or_default();
        assert_eq!((head.matches("<title>").count(), head.matches("</title>").count()), (1, 1));
    }
}

#[test]
fn links_stay_in_the_run_and_nothing_breaks_out_of_an_address() {
    let ways = Ways::of(Some("r 1&x"));
    assert_eq!(ways.task("a/b?c#d\"e"), "/tasks/a%2Fb%3Fc%23d%22e?run=r%201%26x");
    assert_eq!(Ways::of(None).with("/events", &[("q", ""), ("task", "T1")]), "/events?task=T1");
}

#[test]
fn a_filter_takes_words_in_any_order_loose_letters_and_negation() {
    for (filter, fits) in
        [("mill", true), ("BROKEN mill", true), ("brkn", true), ("!mill", false), ("mill !done", true), ("xyz", false)]
    {
        assert_eq!(parts::fits(filter, "T3 broken mill failed"), fits, "{filter}");
    }
}

#[test]
fn a_site_that_only_shows_offers_no_button() {
    let mut site = site(Script::default().picture(vec![task("T1", "x", "failed", &[])], 1_000));
    assert!(page(&site, &Page::Task("T1".into())).contains("data-act=\"retry\""));
    site.read_only = true;
    assert!(!page(&site, &Page::Task("T1".into())).contains("data-act"));
}

#[test]
fn a_wait_that_nobody_waits_out_is_not_shown_as_one() {
    let mut picture = Script::default().picture(vec![task("T1", "x", "pending", &[])], 1_000);
    picture.run.state = "waiting".to_owned();
    picture.run.resumes_at = Some(rekindle_core::time::Time(picture.now.0 + 60_000));
    picture.coordinator = Some(7);
    let waits = page(&site(picture.clone()), &Page::Overview);
    assert!(waits.contains("waits for a limit") && waits.contains("resumes in"), "{waits}");
    picture.coordinator = None;
    let alone = page(&site(picture), &Page::Overview);
    assert!(alone.contains("no coordinator") && !alone.contains("resumes in"), "{alone}");
}

#[test]
fn every_part_of_the_script_finds_what_it_imports() {
    let text = |name: &str| {
        let asset = ASSETS.iter().find(|asset| asset.name == name).unwrap_or_else(|| panic!("no asset {name}"));
        std::str::from_utf8(asset.bytes).expect("text")
    };
    let mut imports = 0;
    for asset in ASSETS.iter().filter(|asset| asset.mime == JS) {
        for import in text(asset.name).lines().filter_map(|line| line.strip_prefix("import { ")) {
            let (names, from) = import.split_once(" } from \"./").expect("an import");
            let from = text(from.trim_end_matches("\";"));
            for name in names.split(", ") {
                let given =
                    ["function", "async function"].iter().any(|kind| from.contains(&format!("export {kind} {name}(")));
                assert!(given, "{} imports {name}, which nobody exports", asset.name);
                imports += 1;
            }
        }
    }
    assert!(imports > 10, "{imports} imports were found");
}
