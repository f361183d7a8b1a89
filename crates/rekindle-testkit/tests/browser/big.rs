//! Much of it: a log of a million lines, a log that grows while it is read, and a run of a hundred tasks with five attempts each.

use rekindle_engine::state_dir::StateDir;
use rekindle_engine::store::{Batch, LogLine, Options, Read, Row, SqliteStore, Store, Stream, Table};
use rekindle_testkit::browser::keys::{ENTER, PAGE_UP, SHIFT};
use serde_json::Value;

use crate::rig::Rig;
use crate::scene::{Scene, shoot};

const ONE: &str = "# One\n\n### T1: work\n- accept: `true`\n\nWork.\n";

/// Lines of the big log.
const LINES: u64 = 1_000_000;

/// Lines of one batch.
const BATCH: u64 = 50_000;

/// A finished run of one task, and its store.
fn finished() -> (Rig, SqliteStore) {
    let rig = Rig::new(ONE, "rekindle task done T1 > told 2>&1\n");
    rig.finish();
    let dir = StateDir::open(&rig.state()).expect("the state");
    let (store, _) = SqliteStore::open(&dir, Options::default()).expect("the store");
    (rig, store)
}

fn line(n: u64) -> LogLine {
    let text = match n {
        777_777 => "here is the needle".to_owned(),
        n => format!("line {n} of the big log, with some words in it"),
    };
    let stream = if n.is_multiple_of(1_000) { Stream::Err } else { Stream::Out };
    let (time_ms, offset) = (1_790_000_000_000 + i64::try_from(n).expect("small"), n * 60);
    LogLine { attempt: 1, agent: "developer-T1".into(), epoch: 1, stream, time_ms, offset, len: 60, text, torn: false }
}

#[test]
fn a_log_of_a_million_lines_is_read_searched_and_linked_to() {
    let (rig, store) = finished();
    for from in (0..LINES).step_by(usize::try_from(BATCH).expect("small")) {
        store.append(Batch { lines: (from..from + BATCH).map(line).collect(), ..Batch::default() }).expect("appended");
    }
    drop(store);
    let scene = Scene::of(rig, None);
    let browser = &scene.browser;
    scene.open("/logs/1#L777778");
    let text = browser.until("document.querySelector('.row.picked .text')?.textContent.includes('needle') && document.querySelector('.row.picked .text').textContent");
    assert_eq!(text, "here is the needle");
    let inside = "(() => { const row = document.querySelector('.row.picked').getBoundingClientRect(); \
        const view = document.querySelector('.view').getBoundingClientRect(); \
        return row.top >= view.top && row.bottom <= view.bottom; })()";
    browser.until(inside);
    shoot(browser, "log-line");
    // Only what is in sight is on the page, wherever one is.
    for place in ["0", "0.25", "0.5", "1"] {
        browser.value(&format!(
            "document.querySelector('.view').scrollTop = {place} * document.querySelector('.view').scrollHeight"
        ));
        browser.until(
            "(() => { const rows = [...document.querySelectorAll('.view .row .text')]; \
             return rows.length > 0 && rows.length < 400 && rows.every((text) => text.textContent !== '…'); })()",
        );
    }
    browser.until(&format!(
        "document.querySelector('.view .row:last-child .no')?.textContent === '{LINES}' \
         && document.querySelector('.view .row:last-child .text').textContent.startsWith('line 999999 ')"
    ));

    browser.press(&["/"]);
    browser.until("document.activeElement.closest('form.find')");
    browser.type_text("needle");
    browser.press(&[ENTER]);
    browser.until("document.querySelector('form.find output').textContent === '1 of 1'");
    browser.until(
        "location.hash === '#L777778' && document.querySelector('.row.picked .text')?.textContent.includes('needle')",
    );
    browser.press(&["w"]);
    browser.until("document.querySelector('.view.wraps') && document.querySelector('#L777778 .text')?.textContent.includes('needle')");
    browser.press(&["w"]);
    browser.until("!document.querySelector('.view.wraps') && document.querySelectorAll('.view .row').length < 400");
    browser.run("document.querySelector('form.find input').value = 'line 99999'; document.querySelector('form.find').requestSubmit()", &Value::Array(Vec::new()));
    browser.until("document.querySelector('form.find output').textContent.endsWith('of 11')");
    browser.press(&["n"]);
    browser.press(&[SHIFT, "N"]);
    browser.until("document.querySelector('.row.picked.hit')");
    scene.assert_quiet();
}

#[test]
fn following_stops_when_one_scrolls_up_and_says_how_much_is_new() {
    let scene = Scene::in_the_middle();
    let browser = &scene.browser;
    scene.open("/tasks/T4?tab=log");
    browser.until("document.querySelector('input[name=follow]').checked");
    browser.until("document.querySelectorAll('.view .row').length > 40");
    browser.click(".view");
    browser.press(&[PAGE_UP, PAGE_UP]);
    browser.until("!document.querySelector('input[name=follow]').checked");
    // Once it says so the scrolling is over; what comes then must not move the lines.
    let new = "Number(/↓ (\\d+) new/.exec(document.querySelector('button.new').textContent)?.[1])";
    let many = browser.until(&format!("!document.querySelector('button.new').hidden && {new}"));
    let before = browser.value("document.querySelector('.view').dataset.from");
    browser.until(&format!("{new} > {many}"));
    assert_eq!(browser.value("document.querySelector('.view').dataset.from"), before, "the lines moved away");
    shoot(browser, "log-new");
    browser.press(&[rekindle_testkit::browser::keys::END]);
    browser
        .until("document.querySelector('input[name=follow]').checked && document.querySelector('button.new').hidden");
    browser.until("document.querySelector('.view .row:last-child .no').textContent === document.querySelector('.view').dataset.total");
    scene.assert_quiet();
}

#[test]
fn a_hundred_tasks_with_five_attempts_each_are_drawn() {
    let (rig, store) = finished();
    let mut rows = Vec::new();
    for table in Table::ALL {
        rows.extend(store.rows(table, None).expect("rows"));
    }
    let first = |table: Table| rows.iter().find(|row| row.table == table).cloned().expect("one row");
    let (task, attempt) = (first(Table::Task), first(Table::Attempt));
    let like = |row: &Row, key: String, order: u64, set: &[(&str, Value)]| {
        let mut json: Value = serde_json::from_str(&row.json).expect("a row");
        set.iter().for_each(|(name, value)| json[*name] = value.clone());
        Row { key, order, json: json.to_string(), ..row.clone() }
    };
    for n in 2..=100_u64 {
        let id = format!("T{n}");
        rows.push(like(
            &task,
            id.clone(),
            n,
            &[("id", id.clone().into()), ("title", format!("task number {n}").into())],
        ));
        for a in 0..5 {
            let number = n * 5 + a;
            let set = [("attempt", number.into()), ("task", id.clone().into()), ("tasks", vec![id.clone()].into())];
            rows.push(like(&attempt, format!("{number:020}"), number, &set));
        }
    }
    store.replace_rows(rows).expect("rows replaced");
    drop(store);
    let scene = Scene::of(rig, None);
    let browser = &scene.browser;
    assert_eq!(browser.value("document.querySelectorAll('#tasks tbody tr').length"), 100);
    browser.press(&["/"]);
    browser.type_text("number 42");
    browser.until("document.querySelectorAll('#tasks tbody tr').length === 1");
    scene.open("/tasks/T42");
    assert_eq!(browser.value("document.querySelectorAll('table.side thead th').length"), 6);
    shoot(browser, "side-by-side");
    scene.assert_quiet();
}
