//! How the dashboard looks, measured: a plan of 22 tasks in 4 waves with failures, long, wide and odd titles. On a phone nothing is
//! wider than the screen, the header is one line and tables are cards; labels stay in their boxes; lines of the graph pass no box.

use serde_json::{Value, json};

use crate::rig::Rig;
use crate::scene::{Scene, shoot};

/// Titles that do not fit anywhere.
const TITLES: [&str; 8] = [
    "catalogue",
    "A title that says far more than anybody wants to read in a list, and then goes on for another line or two",
    "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW",
    "🦀🚀🎉🔥💥✨🧪🛠️ emoji 👩‍👩‍👧‍👦 🇩🇪 🦀🚀🎉🔥💥✨🧪🛠️",
    "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字",
    "prices",
    "src/very/long/path/without/any/space/in/it/at/all/that/goes/on/and/on/until/it/ends.rs",
    "e\u{301}a\u{308} комбинированные знаки",
];

/// Four waves; three tasks fail, one crashes once, one asks.
fn plan() -> String {
    let mut plan =
        "# Shop 🦀 with a name that is long enough to need more than one line on a phone\n\nBuild it.\n".to_owned();
    let waves: [&[usize]; 4] =
        [&[1, 2, 3, 4, 5, 6], &[7, 8, 9, 10, 11, 12, 13], &[14, 15, 16, 17, 18], &[19, 20, 21, 22]];
    for (wave, tasks) in (1..).zip(waves) {
        plan += &format!("\n## Wave {wave}\n\n");
        for task in tasks {
            let title = TITLES[task % TITLES.len()];
            let before = match task {
                3 => "- blocked by: T1\n",
                6 => "- blocked by: T1, T3\n",
                9 => "- blocked by: T1, T2\n",
                12 => "- blocked by: T3, T9\n",
                17 => "- blocked by: T1, T9, T7\n",
                20 => "- blocked by: T2, T12, T14\n",
                22 => "- blocked by: T1, T17, T19\n",
                _ => "",
            };
            let tries = if matches!(task, 4 | 8) { "- attempts: 1\n" } else { "" };
            plan += &format!(
                "### T{task}: {title}\n{before}{tries}- accept: `echo checking T{task}; test -e made-T{task}`\n\nDo it.\n\n"
            );
        }
    }
    plan
}

const AGENT: &str = "echo \"hello from $REKINDLE_TASK\"\n\
    for i in 1 2 3 4 5 6 7 8 9; do echo \"line $i of $REKINDLE_TASK, which is long enough that a phone has to wrap it somewhere in the middle of it\"; done\n\
    case $REKINDLE_TASK in\n\
      T2) [ -e crashed ] || { touch crashed; echo 'Error: the connection was reset by the peer' >&2; kill -9 $$; } ;;\n\
      T4) echo 'Error: there is no mill 🦀 漢字' >&2; rekindle task done T4; exit 0 ;;\n\
      T5) rekindle ask 'Which currency should the catalogue have, and who decides about the rounding of prices that are split?' --option EUR --option 'USD, rounded to the next whole dollar, which is a longer option' --context 'The catalogue has prices without one.' --wait > answer ;;\n\
      T8) echo 'thread main panicked at src/lib.rs:12:5' >&2; rekindle task fail T8 --reason 'the tests of the price list fail on this machine and I cannot see why'; exit 0 ;;\n\
    esac\n\
    touch made-$REKINDLE_TASK\nrekindle task done $REKINDLE_TASK --result \"made it\"\n";

/// The run when nothing moves any more: one asks, one failed, later waves wait.
fn scene() -> Scene {
    let rig = Rig::new(&plan(), AGENT);
    let run = rig.run();
    rig.await_event("question_asked");
    rig.until("five tasks that ended", || {
        let tasks = rig.status()["tasks"].as_array().cloned().unwrap_or_default();
        let ended = tasks.iter().filter(|task| matches!(task["state"].as_str(), Some("complete" | "failed")));
        (ended.count() >= 5).then_some(())
    });
    Scene::of(rig, Some(run))
}

/// The same answered and gone on, to its end.
fn finish(scene: &Scene) {
    scene.rig.ok(&["answer", "1", "EUR"]);
    scene.rig.until("the end of the run", || {
        let state = scene.rig.status()["run"]["state"].as_str().unwrap_or_default().to_owned();
        (state == "failed" || state == "complete").then_some(())
    });
}

const PAGES: [&str; 17] = [
    "/",
    "/tasks/T2",
    "/tasks/T2?tab=why",
    "/tasks/T4?tab=checks",
    "/tasks/T2?tab=diff",
    "/tasks/T2?tab=brief",
    "/tasks/T4?tab=log",
    "/tasks/T5",
    "/logs/1",
    "/events",
    "/events?view=full&category=trouble",
    "/events?view=json&q=crashed&order=old",
    "/questions",
    "/cost",
    "/search?q=hello",
    "/runs",
    "/nowhere",
];

#[test]
fn on_a_phone_everything_fits_and_lists_are_cards() {
    let scene = scene();
    let browser = &scene.browser;
    for (at, page) in PAGES.iter().enumerate() {
        for (width, scheme) in [(360, "light"), (360, "dark"), (1280, "light"), (1280, "dark")] {
            browser.resize(width, if width == 360 { 740 } else { 900 });
            browser.prefer(scheme);
            scene.open(page);
            let wide = browser.value("document.documentElement.scrollWidth");
            assert!(wide.as_u64() <= Some(width.into()), "{page} is {wide} wide on a screen of {width}");
            let header = browser.value("document.getElementById('top').getBoundingClientRect().height").as_f64();
            assert!(header.is_some_and(|high| (30.0..=56.0).contains(&high)), "{page}: header {header:?} at {width}");
            let outside = browser.run(OUTSIDE, &json!([]));
            assert_eq!(outside, json!([]), "{page} at {width}: nothing of the header is cut off");
            shoot_whole(&scene, &format!("{at:02}-{width}-{scheme}"));
        }
    }
    cards(&scene);
    menu(&scene);
}

/// What of the header lies outside the screen or above another part of it.
const OUTSIDE: &str = "const wrong = []; \
    const parts = [...document.querySelectorAll('#top > *:not(nav), #top .right > *, #top nav:not([hidden]) a')]; \
    for (const part of parts) { const box = part.getBoundingClientRect(); \
      if (box.width && (box.left < -1 || box.right > innerWidth + 1)) wrong.push(part.outerHTML.slice(0, 80)); } \
    return wrong;";

/// Rows of lists are cards: no wider than the screen, one below the other, with the names of their columns.
fn cards(scene: &Scene) {
    let browser = &scene.browser;
    browser.resize(360, 740);
    scene.open("/");
    assert_eq!(browser.value("getComputedStyle(document.querySelector('#tasks tr[data-key=T2]')).display"), "flex");
    assert_eq!(browser.value("document.querySelector('#tasks .listing').scrollWidth <= 360"), true);
    let label =
        browser.value("getComputedStyle(document.querySelector('#tasks td[data-label=Attempts]'), '::before').content");
    assert!(label.as_str().is_some_and(|label| label.contains("Attempts")), "{label}");
    browser.resize(1280, 900);
    assert_eq!(
        browser.value("getComputedStyle(document.querySelector('#tasks tr[data-key=T2]')).display"),
        "table-row"
    );
    let heads = browser.value("[...document.querySelectorAll('#tasks thead th')].map((head) => head.textContent)");
    let heads: Vec<&str> = heads.as_array().expect("heads").iter().filter_map(Value::as_str).collect();
    assert!(heads.contains(&"Attempts") && !heads.contains(&"Cost") && !heads.contains(&"Context"), "{heads:?}");
    // A failed task says why, shows the end of its log and what can be done.
    let card = browser.value("document.querySelector('#failed .card[data-key=T4]').innerText");
    let card = card.as_str().unwrap_or_default();
    assert!(card.contains("Retry") && card.contains("Skip"), "{card}");
    let log = browser.value("document.querySelector('#failed .card[data-key=T4] .tail').textContent");
    assert!(log.as_str().is_some_and(|log| log.contains("there is no mill")), "{log}");
}

/// The pages are behind a button on a phone, and in the header elsewhere.
fn menu(scene: &Scene) {
    let browser = &scene.browser;
    let seen = "document.querySelector('#pages a').getClientRects().length > 0";
    browser.resize(1280, 900);
    assert_eq!(browser.value(seen), true);
    browser.resize(360, 740);
    scene.open("/");
    assert_eq!(browser.value(seen), false);
    browser.click("#open-pages");
    browser.until(seen);
    shoot(browser, "menu-360");
    browser.click("#pages a[data-page='/events']");
    browser.until("location.pathname === '/events'");
}

/// A picture of the whole page, not only of what is in sight.
fn shoot_whole(scene: &Scene, name: &str) {
    if std::env::var_os("REKINDLE_SHOTS").is_none() {
        return;
    }
    let browser = &scene.browser;
    let size = browser.value("[innerWidth, Math.min(6000, document.documentElement.scrollHeight)]");
    let number = |at: usize| u32::try_from(size[at].as_u64().unwrap_or(800)).unwrap_or(800);
    let (width, height) = (number(0), number(1));
    browser.resize(width, height.max(740));
    shoot(browser, name);
}

/// Words that leave the box they are in, by more than a pixel. A label is clipped by an inner `svg`; it has to fit even without that.
const LABELS: &str = "const wrong = []; \
    for (const clip of document.querySelectorAll('svg.clip')) { \
      const room = clip.viewportElement ? Number(clip.getAttribute('width')) : 0; \
      for (const text of clip.querySelectorAll('text')) { const box = text.getBBox(); \
        if (box.x < -1 || box.x + box.width > room + 1) wrong.push([text.textContent, box.x + box.width, room]); } } \
    return [document.querySelectorAll('svg.clip').length, wrong];";

/// Lines that pass through a box, and marks that overlap.
const CROSSINGS: &str = "const wrong = []; \
    const boxes = [...document.querySelectorAll('.graph rect.box')].map((box) => box.getBBox()); \
    for (const path of document.querySelectorAll('.graph .edge path')) { \
      const length = path.getTotalLength(); \
      for (let at = 0; at <= length; at += 2) { const point = path.getPointAtLength(at); \
        const hit = boxes.find((box) => point.x > box.x + 1 && point.x < box.x + box.width - 1 && point.y > box.y + 1 && point.y < box.y + box.height - 1); \
        if (hit) { wrong.push([path.getAttribute('d'), point.x, point.y]); break; } } } \
    for (const one of boxes) for (const other of boxes) \
      if (one !== other && one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height) wrong.push(['boxes', one.x, one.y]); \
    return [boxes.length, document.querySelectorAll('.graph .edge path').length, wrong];";

const MARKS: &str = "const wrong = []; \
    for (const lane of document.querySelectorAll('.timeline .lane')) { \
      const marks = [...lane.querySelectorAll('text.marks')].map((mark) => mark.getBBox()); \
      for (let at = 1; at < marks.length; at++) if (marks[at].x < marks[at - 1].x + marks[at - 1].width - 1) wrong.push(lane.textContent); } \
    return wrong;";

#[test]
fn labels_stay_in_their_boxes_and_lines_pass_none() {
    let scene = scene();
    finish(&scene);
    let browser = &scene.browser;
    browser.resize(1280, 900);
    scene.open("/");
    let labels = browser.run(LABELS, &json!([]));
    assert_eq!(labels, json!([44, []]), "a label for each task in the timeline and in the graph");
    let crossings = browser.run(CROSSINGS, &json!([]));
    assert_eq!((&crossings[0], &crossings[2]), (&json!(22), &json!([])), "{crossings}");
    assert!(crossings[1].as_u64() >= Some(14), "{crossings}");
    assert_eq!(browser.run(MARKS, &json!([])), json!([]), "marks that overlap");
    let waves =
        "[...document.querySelectorAll('.timeline .wave text, .graph .wave text')].map((text) => text.textContent)";
    let twice = ["Wave 1", "Wave 2", "Wave 3", "Wave 4"].repeat(2);
    assert_eq!(browser.value(waves), json!(twice));
    for (width, scheme) in [(360, "light"), (360, "dark"), (1280, "light"), (1280, "dark")] {
        browser.resize(width, 900);
        browser.prefer(scheme);
        scene.open("/");
        shoot_whole(&scene, &format!("end-{width}-{scheme}"));
    }
    scene.assert_quiet();
}

#[test]
fn a_page_that_is_not_there_has_the_header_too() {
    let scene = Scene::in_the_middle();
    let browser = &scene.browser;
    for page in ["/nowhere", "/tasks/T99", "/logs/99", "/logs/x"] {
        scene.open(page);
        assert_eq!(browser.value("document.querySelectorAll('#top nav a').length"), 6, "{page}");
        let text = browser.text();
        assert!(text.to_lowercase().contains("there is no"), "{page}: {text}");
        browser.click("main a.button");
        browser.until("location.pathname === '/'");
    }
    // Asking for what is not there is told to the console as well.
    let loud: Vec<String> = browser.console().into_iter().filter(|line| !line.contains("404")).collect();
    assert!(loud.iter().all(|line| line.starts_with("INFO")), "{loud:?}");
}

#[test]
fn a_server_that_is_gone_says_so_and_how_to_start_it() {
    let scene = Scene::in_the_middle();
    let browser = &scene.browser;
    scene.open("/");
    assert_eq!(browser.value("document.getElementById('gone').hidden"), true);
    scene.stop_server();
    let told = browser.until("!document.getElementById('gone').hidden && document.getElementById('gone').innerText");
    let told = told.as_str().unwrap_or_default().to_owned();
    assert!(told.contains("The server is gone.") && told.contains("rekindle serve"), "{told}");
    assert!(!told.contains("NaN") && told.contains(" ago"), "{told}");
    browser.resize(360, 740);
    assert_eq!(browser.value("document.documentElement.scrollWidth <= 360"), true);
    shoot(browser, "gone-360");
    browser.resize(1280, 900);
    shoot(browser, "gone-1280");
}
