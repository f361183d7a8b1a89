//! What a person decides by: a question is read whole or said not to be, all that needs them is listed and counted alike, what
//! they copy is real, and what they look for in all logs is found.

use std::sync::Arc;

use ratatui::crossterm::event::{KeyModifiers, MouseEvent, MouseEventKind};
use rekindle_core::ids::{AttemptId, QuestionId};

use super::made::{self, app, feed, id};
use super::{press, text, write};
use crate::acts::Act;
use crate::picture::Picture;
use crate::tui::app::{App, Effect, Focus, News};
use crate::tui::log::LogPosition;
use crate::tui::pane::Tab;
use crate::tui::popup::Popup;
use crate::tui::tree::Node;

const SIZE: (u16, u16) = (120, 40);

/// A fleet whose question is as long as an agent likes it.
fn asked(words: usize) -> Picture {
    let mut picture = made::fleet();
    let words: Vec<String> = (0..words).map(|at| format!("word{at:03}")).collect();
    picture.questions[0].text = words.join(" ");
    picture
}

#[test]
fn a_long_question_begins_at_its_beginning_and_every_word_of_it_can_be_read() {
    for size in [(60, 18), (80, 24), SIZE, (40, 10)] {
        let mut app = app(asked(375), size);
        press(&mut app, &["a"]);
        let first = text(&app);
        assert!(first.contains("word000") && !first.contains("word374"), "{first}");
        let Some(Popup::Answer(answer)) = &app.popup else { panic!("a box") };
        let hidden = answer.hidden(size).expect("some of it");
        assert!(hidden.starts_with("↓ ") && hidden.contains("more lines · not all seen yet"), "{hidden}");
        let mut seen = first;
        for _ in 0..200 {
            if !text(&app).contains("more line") {
                break;
            }
            press(&mut app, &["PgDn"]);
            seen.push_str(&text(&app));
        }
        let missing: Vec<String> =
            (0..375).map(|at| format!("word{at:03}")).filter(|word| !seen.contains(word.as_str())).collect();
        assert!(missing.is_empty(), "{size:?}: {missing:?}");
        assert!(seen.contains("The plan names both"), "its context too: {size:?}");
        assert!(!text(&app).contains("not all seen"), "{}", text(&app));
        for _ in 0..200 {
            if !text(&app).contains(" above") {
                break;
            }
            press(&mut app, &["PgUp"]);
        }
        let again = text(&app);
        assert!(again.contains("word000") && !again.contains("not all seen"), "{again}");
    }
}

#[test]
fn an_answer_can_be_sent_before_all_was_seen_and_the_box_says_so() {
    let mut app = app(asked(375), (60, 18));
    press(&mut app, &["a"]);
    assert!(text(&app).contains("not all seen yet"), "{}", text(&app));
    assert!(text(&app).contains("(x) 1. PostgreSQL"), "options stay on the screen");
    write(&mut app, "no");
    assert!(text(&app).contains("> no") && text(&app).contains("not all seen yet"));
    assert_eq!(press(&mut app, &["Enter"]), [Effect::Do(Act::Answer(QuestionId(1), "no".to_owned()))]);
}

#[test]
fn the_wheel_scrolls_the_question_and_leaves_the_option_alone() {
    let mut app = app(asked(375), (60, 18));
    press(&mut app, &["a"]);
    app.mouse(MouseEvent { kind: MouseEventKind::ScrollDown, column: 30, row: 9, modifiers: KeyModifiers::NONE });
    let Some(Popup::Answer(answer)) = &app.popup else { panic!("a box") };
    assert_eq!((answer.top, answer.at), (3, 0));
    assert!(!text(&app).contains("word000") && text(&app).contains("↑ 3 above"), "{}", text(&app));
}

#[test]
fn a_resize_forgets_nothing_that_was_not_seen() {
    let mut app = app(asked(375), (60, 18));
    press(&mut app, &["a", "PgDn", "PgDn"]);
    app.resize(76, 18);
    assert!(text(&app).contains("word000") && text(&app).contains("not all seen yet"), "{}", text(&app));
}

#[test]
fn a_long_option_is_shown_whole_with_the_question() {
    let mut picture = made::fleet();
    picture.questions[0].options = vec!["yes".to_owned(), format!("no {}and delete everything", "really ".repeat(20))];
    let mut app = app(picture, (60, 18));
    press(&mut app, &["a"]);
    let mut seen = text(&app);
    press(&mut app, &["PgDn"]);
    seen.push_str(&text(&app));
    assert!(seen.contains("option 2: no really") && seen.contains("everything"), "{seen}");
}

#[test]
fn a_short_question_needs_no_words_about_itself() {
    let mut app = app(made::fleet(), (60, 18));
    press(&mut app, &["a"]);
    let shown = text(&app);
    assert!(!shown.contains("more line") && !shown.contains("seen") && !shown.contains("PgDn"), "{shown}");
}

/// The texts of the copy menu by what they are.
fn copies(app: &mut App, what: &str) -> Vec<String> {
    press(app, &["Y"]);
    let Some(Popup::Copy(menu)) = app.popup.take() else { panic!("a menu") };
    menu.items.into_iter().filter(|(name, _)| *name == what).map(|(_, text)| text).collect()
}

#[test]
fn the_workspace_that_is_copied_is_a_place_one_can_go_to() {
    let mut picture = made::fleet();
    picture.tasks[3].workspace = Some("T4".to_owned());
    let mut app = app(picture, SIZE);
    app.tree.choose(&Node::Task(id("T4")));
    assert_eq!(copies(&mut app, "workspace"), ["/home/me/shop/.rekindle/worktrees/T4"]);
    let commands = copies(&mut app, "command");
    for command in ["rekindle why T4", "rekindle logs developer-T4"] {
        assert!(commands.iter().any(|text| text == command), "{command} in {commands:?}");
    }
    app.tree.choose(&Node::Task(id("T7")));
    assert_eq!(copies(&mut app, "workspace"), ["/home/me/shop"], "work without worktrees is done in the project");
}

/// A fleet with questions of tasks that have ended, two of them of one task.
fn asked_and_ended() -> Picture {
    let mut picture = made::fleet();
    for (number, task) in [(2, "T1"), (3, "T3"), (4, "T6")] {
        picture.questions.push(made::question(number, task));
    }
    picture
}

#[test]
fn questions_of_ended_tasks_need_a_person_too_and_say_that_they_are_questions() {
    let mut app = app(asked_and_ended(), SIZE);
    let label = |app: &App, node: Node| {
        let row = app.tree.rows.iter().find(|row| row.node == node).expect("a row");
        (row.symbol, row.label.clone())
    };
    let which = "Which database should the schema be written for?";
    let need = |task: &str, number| Node::Need(id(task), Some(QuestionId(number)));
    assert_eq!(label(&app, need("T1", 2)), ("?", format!("T1 (complete) asks you: {which}")));
    assert_eq!(label(&app, need("T3", 3)), ("?", format!("T3 (failed) asks you: {which}")));
    assert_eq!(label(&app, Node::Need(id("T3"), None)).0, "✖", "that it failed is another matter");
    app.tree.choose(&need("T6", 4));
    press(&mut app, &["a"]);
    assert!(matches!(&app.popup, Some(Popup::Answer(answer)) if answer.id == QuestionId(4)), "the chosen one is meant");
}

#[test]
fn the_header_and_the_group_count_alike() {
    let app = app(asked_and_ended(), SIZE);
    let shown = text(&app);
    assert!(shown.contains("? 4 ask you") && shown.contains("✖ 1 failed"), "{shown}");
    let group = app.tree.rows.iter().find(|row| row.node == Node::Needs).expect("the group");
    let listed = app.tree.rows.iter().filter(|row| matches!(row.node, Node::Need(..))).count();
    assert_eq!((group.word.as_str(), listed), ("5", 5));
}

fn find_all(app: &mut App, words: &str) -> u64 {
    press(app, &["L"]);
    write(app, words);
    assert!(app.want().seek.is_none(), "nothing is read for half a word");
    press(app, &["Enter"]);
    let seek = app.want().seek.expect("a search");
    assert_eq!(seek.words, words);
    seek.serial
}

#[test]
fn all_logs_are_searched_and_enter_goes_to_the_line() {
    let mut app = app(made::fleet(), SIZE);
    app.tree.choose(&Node::Task(id("T1")));
    let serial = find_all(&mut app, "bucket");
    let hits =
        vec![made::hit(5, 10, "a bucket"), made::hit(7, 20, "bucket \u{1b}[31m"), made::hit(5, 30, "newest bucket")];
    app.take(News::Hits(serial, hits));
    assert!(app.want().seek.is_none(), "it is read once");
    let shown = text(&app);
    assert!(shown.contains("3 found: developer-T4 2, developer-T6 1"), "{shown}");
    assert!(shown.contains("hh:mm:ss developer-T4 #2 newest bucket"), "{shown}");
    press(&mut app, &["j", "j", "Enter"]);
    assert_eq!((app.focus, app.tab, app.log.attempt), (Focus::Detail, Tab::Log, Some(AttemptId(5))));
    assert_eq!(app.tree.chosen().expect("a row").node, Node::Attempt(id("T4"), AttemptId(5)));
    let place = app.want().place.expect("its number is asked for");
    assert_eq!(place, LogPosition { attempt: AttemptId(5), seq: 11 });
    app.take(News::Placed(place, Some(600)));
    feed(&mut app, 1_000);
    assert!(app.want().place.is_none() && !app.log.follow && app.log.hit == Some(600));
    assert!(text(&app).contains("(600)"), "{}", text(&app));
    press(&mut app, &["n"]);
    assert_eq!(app.want().search.expect("it goes on").words, "bucket");
}

#[test]
fn a_search_over_all_logs_says_when_nothing_is_found_and_can_be_left_and_made_anew() {
    let mut app = app(made::fleet(), (60, 18));
    press(&mut app, &["L", "Esc"]);
    assert!(app.popup.is_none(), "one step out of what was never asked");
    let old = find_all(&mut app, "nowhere");
    app.take(News::Hits(old, Vec::new()));
    assert!(text(&app).contains("no line contains all of these words"));
    assert_eq!(press(&mut app, &["Enter"]), []);
    press(&mut app, &["/"]);
    write(&mut app, "else");
    press(&mut app, &["Enter"]);
    assert!(text(&app).contains("searching…"));
    app.take(News::Hits(old, vec![made::hit(5, 1, "late")]));
    assert!(!text(&app).contains("late"), "an old search says nothing");
    press(&mut app, &["Esc"]);
    assert!(app.popup.is_none());
}

#[test]
fn a_line_that_was_found_is_reached_through_closed_branches_and_filters() {
    let mut app = app(made::fleet(), SIZE);
    app.tree.choose(&Node::Wave(2));
    press(&mut app, &["-", "/"]);
    write(&mut app, "auth");
    press(&mut app, &["Enter"]);
    let serial = find_all(&mut app, "bucket");
    app.take(News::Hits(serial, vec![made::hit(4, 3, "bucket")]));
    press(&mut app, &["Enter"]);
    assert_eq!(app.log.attempt, Some(AttemptId(4)), "an older attempt, not the newest");
    app.take(News::Run(None, Some((Arc::new(made::fleet()), true))));
    assert!(app.want().place.is_some(), "news of the run does not lose it");
}
