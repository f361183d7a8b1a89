//! Every page loads, in light and dark and on a phone, with a quiet console and no request to anybody else.

use crate::scene::{Scene, shoot};

/// Pages of the scene in the middle; attempts are numbered in the order of their start.
const PAGES: [&str; 18] = [
    "/",
    "/?q=mill&sort=need",
    "/tasks/T1",
    "/tasks/T1?tab=why",
    "/tasks/T3?tab=checks",
    "/tasks/T1?tab=diff",
    "/tasks/T1?tab=brief",
    "/tasks/T4?tab=log",
    "/tasks/T2",
    "/logs/1",
    "/events",
    "/events?view=full&category=trouble",
    "/events?view=json&q=crashed&order=old",
    "/questions",
    "/cost",
    "/search?q=hello",
    "/search",
    "/runs",
];

#[test]
fn every_page_loads_quietly_and_fits_a_phone() {
    let scene = Scene::in_the_middle();
    let browser = &scene.browser;
    for (at, page) in PAGES.iter().enumerate() {
        for (width, scheme) in [(1280, "light"), (1280, "dark"), (360, "light")] {
            browser.resize(width, 800);
            browser.prefer(scheme);
            scene.open(page);
            let wide = browser.value("document.documentElement.scrollWidth");
            assert!(wide.as_u64() <= Some(width.into()), "{page} is {wide} wide on a screen of {width}");
            shoot(browser, &format!("{at:02}-{width}-{scheme}"));
        }
        assert_structure(&scene, page);
        scene.assert_quiet();
    }
}

/// What a screen reader and a keyboard need on every page.
fn assert_structure(scene: &Scene, page: &str) {
    let wrong = scene.browser.run(include_str!("structure.js"), &serde_json::json!([]));
    assert_eq!(wrong, serde_json::json!([]), "on {page}");
}
