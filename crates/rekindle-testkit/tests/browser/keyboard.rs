//! Everything with keys alone: skipping, the palette, filter, help, rows, an answer, a retry with its question.

use rekindle_testkit::browser::keys::{CONTROL, ENTER, ESCAPE, SHIFT, TAB};

use crate::scene::{Scene, shoot};

/// Presses Tab until an element has the focus; every stop on the way shows a ring.
fn tab_to(scene: &Scene, selector: &str) {
    for _ in 0..200 {
        if scene.browser.value(&format!("document.activeElement.matches('{selector}')")) == true {
            let ring = scene.browser.value("getComputedStyle(document.activeElement).outlineStyle");
            assert_ne!(ring, "none", "no ring around {selector}");
            return;
        }
        scene.browser.press(&[TAB]);
    }
    panic!("{selector} is not reached with Tab");
}

#[test]
fn everything_goes_without_a_mouse() {
    let scene = Scene::in_the_middle();
    let browser = &scene.browser;
    browser.press(&[TAB]);
    assert_eq!(browser.value("document.activeElement.className"), "skip");
    browser.press(&[ENTER]);
    browser.until("document.activeElement.id === 'main'");

    browser.press(&[SHIFT, "?"]);
    browser.until("document.getElementById('help').open");
    shoot(browser, "help");
    browser.press(&[ESCAPE]);
    browser.until("!document.getElementById('help').open");

    browser.press(&["/"]);
    browser.until("document.activeElement.name === 'q'");
    browser.type_text("mill");
    browser.until("document.querySelectorAll('#tasks tbody tr').length === 1");
    assert!(browser.address().contains("q=mill"), "{}", browser.address());
    browser.press(&[ESCAPE]);
    browser.until("document.activeElement.id === 'main'");
    browser.press(&["j"]);
    browser.until("document.activeElement.closest('tr')?.dataset.key === 'T3'");
    browser.press(&[ENTER]);
    browser.until("location.pathname === '/tasks/T3' && document.documentElement.dataset.ready");

    scene.rig.touch("mended");
    browser.press(&["r"]);
    browser.until("document.getElementById('confirm').open && document.activeElement.id === 'confirm-no'");
    tab_to(&scene, "#confirm-yes");
    browser.press(&[ENTER]);
    browser.until("!document.getElementById('confirm').open");
    browser.until("document.querySelector('#task-title[data-state=complete]')");

    browser.press(&[CONTROL, "k"]);
    browser.until("document.activeElement.id === 'palette-input'");
    browser.type_text("march");
    browser.until("document.querySelector('#palette-list [aria-selected=true]')?.textContent.includes('T4')");
    shoot(browser, "palette");
    browser.press(&[ENTER]);
    browser.until("location.pathname === '/tasks/T4' && document.documentElement.dataset.ready");

    browser.press(&["g", "q"]);
    browser.until("location.pathname === '/questions' && document.documentElement.dataset.ready");
    tab_to(&scene, "#answer-1");
    browser.type_text("CHF");
    browser.press(&[ENTER]);
    browser.until("document.querySelector('#answered .asks')");
    scene.rig.until("the answer", || (scene.rig.lines("answer") == ["CHF"]).then_some(()));
    scene.assert_quiet();
}
