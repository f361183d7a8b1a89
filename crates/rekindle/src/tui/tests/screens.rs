//! What a person sees, at four sizes.

use super::made::{self, app, feed};
use super::{press, text, write};
use crate::tui::app::App;

/// Small, classic, usual and large.
const SIZES: [(u16, u16); 4] = [(60, 18), (80, 24), (120, 40), (200, 60)];

fn at_every_size(name: &str, make: impl Fn((u16, u16)) -> App) {
    for size in SIZES {
        let app = make(size);
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), text(&app));
    }
}

#[test]
fn a_running_fleet_with_a_question() {
    at_every_size("fleet", |size| {
        let mut app = app(made::fleet(), size);
        feed(&mut app, 40);
        app
    });
}

#[test]
fn a_failed_task() {
    at_every_size("failed", |size| {
        let mut app = app(made::fleet(), size);
        press(&mut app, &["j", "3", "Enter"]);
        app
    });
}

#[test]
fn a_run_that_waits_for_a_limit() {
    at_every_size("limit", |size| {
        let mut app = app(made::limited(), size);
        press(&mut app, &["g", "3"]);
        app
    });
}

#[test]
fn a_log_that_was_scrolled_up() {
    at_every_size("log", |size| {
        let mut app = app(made::fleet(), size);
        app.tree.choose(&crate::tui::tree::Node::Task(made::id("T4")));
        press(&mut app, &["Right", "Enter"]);
        feed(&mut app, 868);
        press(&mut app, &["k", "k", "k"]);
        feed(&mut app, 1_000);
        app
    });
}

#[test]
fn the_help() {
    at_every_size("help", |size| {
        let mut app = app(made::fleet(), size);
        press(&mut app, &["?"]);
        app
    });
}

#[test]
fn a_confirmation() {
    at_every_size("confirm", |size| {
        let mut app = app(made::fleet(), size);
        app.tree.choose(&crate::tui::tree::Node::Task(made::id("T4")));
        press(&mut app, &["x"]);
        app
    });
}

#[test]
fn an_answer() {
    at_every_size("answer", |size| {
        let mut app = app(made::fleet(), size);
        press(&mut app, &["a"]);
        write(&mut app, "MariaDB, 日本");
        app
    });
}

#[test]
fn a_question_longer_than_its_box() {
    let mut picture = made::fleet();
    let words = (0..420).map(|at| format!("word{at}")).collect::<Vec<_>>();
    picture.questions[0].text = words.join(" ");
    let mut app = app(picture, (60, 18));
    press(&mut app, &["a", "PgDn"]);
    insta::assert_snapshot!(text(&app));
}

#[test]
fn what_was_found_in_all_logs() {
    let mut app = app(made::fleet(), (60, 18));
    press(&mut app, &["L"]);
    write(&mut app, "bucket");
    press(&mut app, &["Enter"]);
    let hits =
        (0..30).map(|at| made::hit(if at % 3 == 0 { 7 } else { 5 }, at, "the bucket is refilled before it is read"));
    let serial = app.want().seek.expect("a search").serial;
    app.take(crate::tui::app::News::Hits(serial, hits.collect()));
    insta::assert_snapshot!(text(&app));
}

#[test]
fn ascii_alone_without_colours() {
    let mut app = app(made::fleet(), (120, 40));
    app.theme = crate::tui::Theme::new(crate::tui::ThemeChoice::Auto, false, None, true);
    feed(&mut app, 40);
    let shown = text(&app);
    assert!(shown.is_ascii(), "{shown}");
    insta::assert_snapshot!(shown);
}

#[test]
fn before_the_first_run() {
    let mut app = App::new(
        made::project(),
        crate::tui::Theme::new(crate::tui::ThemeChoice::Auto, true, None, false),
        false,
        None,
        (80, 24),
    );
    app.take(crate::tui::app::News::Run(None, None));
    insta::assert_snapshot!(text(&app));
}
