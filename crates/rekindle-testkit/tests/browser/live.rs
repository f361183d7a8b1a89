//! The page follows the run: how soon, and that a person can answer and retry from it with a mouse.

use serde_json::json;

use crate::rig::Rig;
use crate::scene::{Scene, shoot};

/// Notes when each task's row says that it is complete.
const WATCH: &str = "window.seen = {}; \
    new MutationObserver(() => { \
        for (const row of document.querySelectorAll('#tasks tr[data-state=complete]')) { \
            window.seen[row.dataset.key] ??= Date.now(); \
        } \
    }).observe(document.getElementById('main'), { subtree: true, childList: true, attributes: true });";

/// Tasks that end one after the other.
const MANY: usize = 12;

#[test]
fn a_change_is_on_the_page_soon_after_its_event() {
    let tasks: String = (1..=MANY).map(|n| format!("### T{n}: step\n- accept: `true`\n\nGo.\n\n")).collect();
    let rig =
        Rig::new(&format!("# Steps\n\n{tasks}"), "$FAKE wait go-$REKINDLE_TASK\nrekindle task done $REKINDLE_TASK\n");
    let run = rig.run();
    rig.await_event("agent_started");
    let scene = Scene::of(rig, Some(run));
    scene.browser.run(WATCH, &json!([]));
    for n in 1..=MANY {
        scene.rig.touch(&format!("go-T{n}"));
        scene.browser.until(&format!("window.seen['T{n}']"));
    }
    let seen = scene.browser.value("window.seen");
    let done = scene.rig.events_of("task_completed");
    let mut late: Vec<i64> = done
        .iter()
        .map(|event| {
            let task = event["task"].as_str().expect("a task");
            let time: jiff::Timestamp = event["time"].as_str().expect("a time").parse().expect("RFC 3339");
            seen[task].as_i64().expect("a moment") - time.as_millisecond()
        })
        .collect();
    late.sort_unstable();
    assert_eq!(late.len(), MANY);
    println!("from an event to the page: median {} ms, worst {} ms of {MANY}", late[MANY / 2], late[MANY - 1]);
    scene.assert_quiet();
}

#[test]
fn a_question_is_answered_and_a_task_retried_from_the_page() {
    let scene = Scene::in_the_middle();
    let browser = &scene.browser;
    browser.until("document.title.startsWith('(1) ')");
    assert_eq!(browser.value("document.querySelector('#top .badge').textContent"), "1 open");
    // What is being typed outlives updates of the page.
    browser.click("#answer-1");
    browser.type_text("CH");
    scene.rig.ok(&["note", "something happens"]);
    let seq = browser.value("Number(document.getElementById('main').dataset.seq)");
    scene.rig.ok(&["note", "and again"]);
    browser.until(&format!("Number(document.getElementById('main').dataset.seq) > {seq}"));
    assert_eq!(browser.value("document.activeElement.id"), "answer-1");
    browser.type_text("F");
    assert_eq!(browser.value("document.getElementById('answer-1').value"), "CHF");
    browser.click(".asks button[value=USD]");
    browser.until("!document.querySelector('article.asks')");
    browser.until("document.getElementById('said').textContent.length");
    assert_eq!(browser.value("document.querySelector('#top .badge')"), json!(null));
    scene.rig.until("the answer", || (scene.rig.lines("answer") == ["USD"]).then_some(()));
    browser.until("document.querySelector('tr[data-key=T2][data-state=complete]')");

    scene.rig.touch("mended");
    browser.click("#failed button.act");
    let told =
        browser.until("document.getElementById('confirm').open && document.getElementById('confirm-text').textContent");
    assert!(told.as_str().is_some_and(|told| told.contains("T3")), "{told}");
    shoot(browser, "confirm");
    assert_eq!(scene.state("T3"), "failed", "nothing happens before the yes");
    browser.click("#confirm-no");
    browser.until("!document.getElementById('confirm').open");
    browser.click("#failed button.act");
    browser.click("#confirm-yes");
    browser.until("!document.getElementById('confirm').open");
    browser.until("document.querySelector('tr[data-key=T3][data-state=complete]')");
    browser.until("!document.getElementById('failed')");
    assert_eq!(scene.state("T3"), "complete");
    scene.assert_quiet();
}
