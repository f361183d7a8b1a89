//! What a person does from the page with a mouse: tells, adds, edits, takes back, resumes, retries and skips. Each is checked by what
//! the state says afterwards, not by the page alone.

use rekindle_testkit::browser::keys::ENTER;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::rig::Rig;
use crate::scene::{Scene, shoot};

const OPEN: &str = "document.getElementById('confirm').open";

/// Opens the question that a button asks first, and gives back what it says.
fn ask(scene: &Scene, button: &str) -> String {
    let browser = &scene.browser;
    browser.until(&format!("document.querySelector(`{button}`)"));
    browser.click(button);
    let told = browser.until(&format!("{OPEN} && document.getElementById('confirm-text').textContent"));
    told.as_str().unwrap_or_default().to_owned()
}

/// Says yes to what was asked.
fn yes(scene: &Scene) {
    scene.browser.click("#confirm-yes");
    scene.browser.until(&format!("!{OPEN}"));
}

/// Replaces what stands in the field of the question.
fn fill(scene: &Scene, text: &str) {
    let script = "document.querySelector('#confirm-parts textarea').value = arguments[0];";
    scene.browser.run(script, &json!([text]));
}

fn field(scene: &Scene) -> Value {
    scene.browser.value("document.querySelector('#confirm-parts textarea').value")
}

fn placed(rig: &Rig) -> usize {
    rig.status()["run"]["placed"].as_array().map_or(0, Vec::len)
}

fn kinds(rig: &Rig, kind: &str) -> usize {
    rig.events_of(kind).len()
}

#[test]
fn an_agent_is_told_something_from_its_tasks_page() {
    let scene = Scene::in_the_middle();
    let (browser, rig) = (&scene.browser, &scene.rig);
    scene.open("/tasks/T4");
    browser.click(".told button[type=submit]");
    browser.until("!document.querySelector('.told .error').hidden");
    assert_eq!(browser.value("document.querySelector('.told .error').textContent"), "type a message first");
    assert_eq!(kinds(rig, "told"), 0);
    for (at, words) in ["mind the <b>gap</b> & 'step' 🦀", "and the second"].iter().enumerate() {
        browser.click("#tell");
        browser.type_text(words);
        browser.press(&[ENTER]);
        browser.until(&format!("document.querySelectorAll('.told [data-key^=told-]').length === {}", at + 1));
        assert_eq!(browser.value("document.getElementById('tell').value"), "", "what was sent is no longer there");
        assert_eq!(rig.task("T4")["told"][at]["text"], *words, "{}", rig.story());
    }
    assert_eq!(kinds(rig, "told"), 2, "once each: {}", rig.story());
    let shown = browser.value("document.querySelector('[data-key=told-1]').innerText");
    assert!(shown.as_str().is_some_and(|shown| shown.contains("mind the <b>gap</b>")), "{shown}");
    // A task that has ended has nobody to be told.
    scene.open("/tasks/T1");
    assert_eq!(browser.value("document.getElementById('tell')"), json!(null));
    scene.assert_quiet();
}

#[test]
fn a_task_is_added_and_changed_from_the_page_and_the_file_is_not() {
    let scene = Scene::in_the_middle();
    let (browser, rig) = (&scene.browser, &scene.rig);
    let file = rig.lines("plan.md");
    ask(&scene, "button[data-act=add]");
    browser.click("#confirm-yes");
    browser.until("!document.getElementById('confirm-error').hidden");
    assert_eq!(kinds(rig, "task_added"), 0, "no task without a title");
    fill(&scene, "paint the sign\ntest -e made-T6\n\ntrue");
    shoot(browser, "add");
    yes(&scene);
    browser.until("document.querySelector('#tasks tr[data-key=T6]')");
    let added = rig.events_of("task_added");
    assert_eq!((added.len(), &added[0]["task"]), (1, &json!("T6")), "{}", rig.story());
    assert_eq!(rig.task("T6")["title"], "paint the sign");

    scene.open("/tasks/T5");
    // What is there can be changed without typing all of it again.
    ask(&scene, "button[data-act=edit]");
    assert_eq!(field(&scene), "Last.");
    fill(&scene, "Deliver it.\n\n    to the back door\n");
    yes(&scene);
    rig.until("the edit", || (kinds(rig, "task_edited") == 1).then_some(()));
    ask(&scene, "button[data-act=\"change checks\"]");
    assert_eq!(field(&scene), "test -e made-T5");
    fill(&scene, "test -e made-T5\ntest -e last");
    shoot(browser, "checks");
    yes(&scene);
    rig.until("the second edit", || (kinds(rig, "task_edited") == 2).then_some(()));
    let plan = rig.ok(&["plan", "export"]);
    assert!(plan.contains("Deliver it.\n\n    to the back door\n"), "paragraphs stay: {plan}");
    assert!(plan.contains("`test -e last`") && plan.contains("### T6: paint the sign"), "{plan}");
    assert_eq!(rig.lines("plan.md"), file, "the file is the person's");
    // A question that is left changes nothing.
    ask(&scene, "button[data-act=edit]");
    fill(&scene, "never");
    browser.click("#confirm-no");
    browser.until(&format!("!{OPEN}"));
    assert!(!rig.ok(&["plan", "export"]).contains("never"));
    scene.assert_quiet();
}

#[test]
fn an_answer_a_skip_and_a_completion_can_be_taken_back_for_ten_seconds() {
    let scene = Scene::in_the_middle();
    let (browser, rig) = (&scene.browser, &scene.rig);
    // An answer, on the overview.
    browser.click(".asks button[value=USD]");
    browser.until("document.querySelector('.asks button.undo')");
    assert_eq!(browser.value("document.querySelector('.asks form')"), json!(null), "nobody answers twice");
    assert_eq!((placed(rig), kinds(rig, "question_answered")), (1, 0), "{}", rig.story());
    shoot(browser, "undo");
    browser.click(".asks button.undo");
    browser.until("document.querySelector('.asks form') && !document.querySelector('button.undo')");
    assert_eq!((placed(rig), kinds(rig, "order_undone")), (0, 1), "{}", rig.story());
    // A skip, on the card of what failed.
    ask(&scene, "#failed .card[data-key=T3] button[data-act=skip]");
    yes(&scene);
    browser.until("document.querySelector('p.placed button.undo')");
    assert_eq!(scene.state("T3"), "failed", "not before its moment is over");
    browser.click("p.placed button.undo");
    browser.until("!document.querySelector('button.undo')");
    assert_eq!((placed(rig), kinds(rig, "order_undone")), (0, 2), "{}", rig.story());
    // A completion, on the task's own page; this one is let go.
    scene.open("/tasks/T4");
    ask(&scene, "button[data-act=complete]");
    yes(&scene);
    browser.until("document.querySelector('p.placed button.undo')");
    assert_ne!(scene.state("T4"), "complete");
    browser.until("document.querySelector('#task-title[data-state=complete]')");
    browser.until("!document.querySelector('button.undo')");
    assert_eq!((scene.state("T4"), kinds(rig, "operator_completed")), ("complete".to_owned(), 1), "{}", rig.story());
    assert_eq!(scene.state("T3"), "failed", "what was taken back never happened");
    assert_eq!(kinds(rig, "question_answered"), 0, "{}", rig.story());
    assert!(rig.lines("answer").is_empty());
    scene.assert_quiet();
}

#[test]
fn what_failed_shows_its_log_and_is_skipped_from_its_card() {
    let scene = Scene::in_the_middle();
    let (browser, rig) = (&scene.browser, &scene.rig);
    let card = "#failed .card[data-key=T3]";
    let text = browser.value(&format!("document.querySelector('{card}').innerText"));
    let text = text.as_str().unwrap_or_default();
    for words in ["broken mill", "the mill is broken", "hello from T3", "this is wrong", "Retry", "Skip"] {
        assert!(text.contains(words), "no `{words}` on the card: {text}");
    }
    let attempt = rig.events_of("agent_started").into_iter().find(|event| event["task"] == "T3").expect("it ran");
    browser.click(&format!("{card} .tail a"));
    browser.until("location.pathname.startsWith('/logs/') && document.documentElement.dataset.ready");
    assert!(
        browser.address().ends_with(&format!("/logs/{}", attempt["details"]["attempt"])),
        "{}: {attempt}",
        browser.address()
    );
    browser.until(
        "[...document.querySelectorAll('.view .row .text')].some((text) => text.textContent === 'hello from T3')",
    );
    scene.open("/");
    let told = ask(&scene, &format!("{card} button[data-act=skip]"));
    assert!(told.contains("T3 is skipped"), "{told}");
    yes(&scene);
    browser.until("document.querySelector('tr[data-key=T3][data-state=skipped]')");
    browser.until("!document.getElementById('failed')");
    assert_eq!(scene.state("T3"), "skipped");
    let skipped = rig.events_of("task_skipped");
    assert_eq!((skipped.len(), &skipped[0]["task"]), (1, &json!("T3")), "{}", rig.story());
    scene.assert_quiet();
}

#[test]
fn a_run_without_a_coordinator_is_resumed_from_the_page() {
    let plan = "# One\n\n### T1: work\n- accept: `test -e made`\n\nWork.\n";
    let rig = Rig::new(plan, "touch here\n$FAKE wait go\ntouch made\nrekindle task done T1\n");
    let run = rig.run();
    rig.await_file("here");
    let scene = Scene::of(rig, None);
    let (browser, rig) = (&scene.browser, &scene.rig);
    assert_eq!(browser.value("document.querySelector('button[data-act=resume]')"), json!(null), "somebody drives it");
    run.kill();
    browser.until("document.querySelector('#top .run-state')?.textContent.includes('no coordinator')");
    shoot(browser, "resume");
    let told = ask(&scene, "button[data-act=resume]");
    assert!(told.contains("in the background"), "{told}");
    assert_eq!(kinds(rig, "coordinator_recovered"), 0, "nothing before yes");
    yes(&scene);
    browser.until("!document.querySelector('button[data-act=resume]')");
    rig.await_event("coordinator_recovered");
    assert!(rig.status()["coordinator"]["pid"].is_u64(), "{}", rig.status());
    rig.touch("go");
    browser.until("document.querySelector('tr[data-key=T1][data-state=complete]')");
    rig.until("the end of the run", || (rig.status()["run"]["state"] == "complete").then_some(()));
    assert_eq!(kinds(rig, "agent_started"), 1, "its agent lived on: {}", rig.story());
    scene.assert_quiet();
    scene.stop_server();
    rig.assert_nothing_left();
}

#[test]
fn a_server_that_was_started_again_says_that_its_address_has_changed() {
    let scene = Scene::in_the_middle();
    let browser = &scene.browser;
    let port = scene.origin.rsplit_once(':').expect("a port").1.to_owned();
    scene.stop_server();
    browser.until("!document.getElementById('gone').hidden");
    let again = scene.rig.start(&["serve", "--listen", &format!("127.0.0.1:{port}")]);
    let told =
        browser.until("!document.getElementById('gone-other').hidden && document.getElementById('gone').innerText");
    assert!(told.as_str().is_some_and(|told| told.contains("was started again")), "{told}");
    again.signal(Signal::TERM);
    again.end();
}

/// Lines of a log that are cut off or wider than the screen.
const CUT: &str = "return [...document.querySelectorAll('.view .row .text')].filter((text) => { \
    const box = text.getBoundingClientRect(); \
    return box.right > innerWidth + 1 || text.scrollWidth > text.clientWidth + 1; }).map((text) => text.textContent);";

#[test]
fn on_a_phone_long_lines_of_a_log_wrap() {
    let long = "a line of a log that is far longer than any phone is wide, with_one_word_that_has_no_place_to_break_at_all_and_goes_on_and_on";
    let rig = Rig::new(
        "# One\n\n### T1: work\n- accept: `true`\n\nWork.\n",
        &format!("for i in 1 2 3 4 5 6 7 8 9; do echo \"$i {long}\"; done\nrekindle task done T1\n"),
    );
    rig.finish();
    let scene = Scene::of(rig, None);
    let browser = &scene.browser;
    browser.resize(360, 740);
    for page in ["/logs/1", "/tasks/T1?tab=log"] {
        scene.open(page);
        browser.until("document.querySelector('.view.wraps') && document.querySelectorAll('.view .row').length >= 9");
        let high = "document.querySelector('.view .row').getBoundingClientRect().height";
        browser.until(&format!("{high} > 40"));
        assert_eq!(browser.run(CUT, &json!([])), json!([]), "{page}");
        assert_eq!(browser.value("document.documentElement.scrollWidth <= 360"), true, "{page}");
        shoot(browser, "log-360");
    }
    scene.assert_quiet();
}
