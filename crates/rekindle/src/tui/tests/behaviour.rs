//! What keys do: each test is something that a person relies on.

use std::sync::Arc;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use rekindle_core::ids::{AttemptId, QuestionId};
use rekindle_core::input::TaskEdit;

use super::made::{self, app, feed, id};
use super::{press, text, write};
use crate::acts::Act;
use crate::tui::app::{App, Effect, Focus, News};
use crate::tui::log::{LogLine, calls};
use crate::tui::pane::Tab;
use crate::tui::popup::Popup;
use crate::tui::tree::Node;

const SIZE: (u16, u16) = (120, 40);

fn on(app: &mut App, name: &str) {
    app.tree.choose(&Node::Task(id(name)));
    app.rebuild();
}

fn chosen(app: &App) -> Node {
    app.tree.chosen().expect("a row").node.clone()
}

#[test]
fn what_needs_a_person_is_chosen_first_and_a_question_before_a_failure() {
    let app = app(made::fleet(), SIZE);
    assert_eq!(chosen(&app), Node::Need(id("T6"), Some(QuestionId(1))));
    let nodes: Vec<&Node> = app.tree.rows.iter().map(|row| &row.node).take(3).collect();
    assert_eq!(nodes, [&Node::Needs, &Node::Need(id("T6"), Some(QuestionId(1))), &Node::Need(id("T3"), None)]);
}

#[test]
fn a_chosen_question_is_read_beside_the_tree_without_opening_anything() {
    let mut app = app(made::fleet(), SIZE);
    feed(&mut app, 40);
    let shown = text(&app);
    assert!(shown.contains("Which database should the schema be written for?"), "{shown}");
    assert!(shown.contains("1. PostgreSQL") && shown.contains("a answers it"), "{shown}");
    assert!(shown.contains("following"), "its log stands below it: {shown}");
    // However long it is, the detail keeps half of its room and says what is hidden.
    let mut long = made::fleet();
    long.questions[0].text = (0..400).map(|at| format!("word{at} 漢字")).collect::<Vec<_>>().join(" ");
    let mut app = super::made::app(long, (80, 24));
    feed(&mut app, 40);
    let shown = text(&app);
    assert!(shown.contains("more lines: a shows them"), "{shown}");
    assert!(app.areas().inside_detail().height >= 8, "{:?}", app.areas());
    on(&mut app, "T4");
    assert_eq!(app.areas().question, 0, "another row has no question");
}

/// Every colour of a reversed row would be another background.
#[test]
fn what_is_chosen_has_one_background() {
    use ratatui::style::Modifier;
    let mut app = app(made::fleet(), SIZE);
    for keys in [&[][..], &["j"], &["j"], &["j"], &["Y"], &["Esc", "o"]] {
        press(&mut app, keys);
        let buffer = super::buffer(&app);
        let mut rows = std::collections::BTreeMap::new();
        for y in 0..buffer.area.height {
            for x in 0..buffer.area.width {
                let cell = &buffer[(x, y)];
                if cell.modifier.contains(Modifier::REVERSED) {
                    rows.entry(y).or_insert_with(Vec::new).push((cell.fg, cell.bg, cell.modifier));
                }
            }
        }
        for (y, looks) in rows {
            assert!(looks.iter().all(|look| *look == looks[0]), "row {y} after {keys:?}: {looks:?}");
            assert!(looks.len() > 20, "row {y} after {keys:?} is marked from edge to edge");
        }
    }
}

#[test]
fn no_word_of_the_help_is_cut() {
    for size in [(40, 20), (60, 18), (80, 24), (200, 60)] {
        let mut app = app(made::fleet(), size);
        press(&mut app, &["?"]);
        let mut seen = String::new();
        for _ in 0..400 {
            seen.push_str(&text(&app));
            seen.push('\n');
            press(&mut app, &["j"]);
        }
        let within: Vec<&str> = seen.lines().filter(|line| line.starts_with('│') || line.contains("│   ")).collect();
        let words: std::collections::BTreeSet<&str> = within.iter().flat_map(|line| line.split([' ', '│'])).collect();
        for line in crate::tui::keys::help(crate::tui::keys::Mode::Tree) {
            if let crate::tui::keys::HelpLine::Keys(_, said) = line {
                let missing: Vec<&str> = said.split(' ').filter(|word| !words.contains(word)).collect();
                assert!(missing.is_empty(), "{size:?}: {missing:?} of {said:?}");
            }
        }
    }
}

#[test]
fn the_choice_stays_with_its_row_whatever_changes_around_it() {
    let mut app = app(made::fleet(), SIZE);
    on(&mut app, "T4");
    let mut later = made::fleet();
    later.questions[0].answer = Some("SQLite".to_owned());
    later.tasks[2].state = "pending".to_owned();
    app.take(News::Run(None, Some((Arc::new(later), true))));
    assert_eq!(chosen(&app), Node::Task(id("T4")), "rows above it have gone");
    // One that needs nobody any more is found as a task.
    let mut app = super::made::app(made::fleet(), SIZE);
    let mut later = made::fleet();
    later.questions[0].answer = Some("SQLite".to_owned());
    app.take(News::Run(None, Some((Arc::new(later), true))));
    assert_eq!(chosen(&app), Node::Task(id("T6")));
}

#[test]
fn nothing_is_ordered_before_yes_and_the_box_says_what_it_will_do() {
    for (key, act) in [("r", Act::Retry(id("T3"))), ("s", Act::Skip(id("T3"))), ("R", Act::RetryFailed(vec![id("T3")]))]
    {
        let mut app = app(made::fleet(), SIZE);
        on(&mut app, "T3");
        assert_eq!(press(&mut app, &[key]), [], "{key} alone does nothing");
        let says = act.consequence(app.picture.as_ref().expect("a run"));
        let Some(Popup::Confirm(confirm)) = &app.popup else { panic!("{key} asks first") };
        assert_eq!(confirm.says, says);
        assert_eq!(press(&mut app, &["Enter"]), [], "Enter alone does nothing: {key}");
        press(&mut app, &[key]);
        assert_eq!(press(&mut app, &["n"]), []);
        press(&mut app, &[key]);
        assert_eq!(press(&mut app, &["Tab", "Enter"]), [Effect::Do(act.clone())], "Tab and Enter");
        press(&mut app, &[key]);
        assert_eq!(press(&mut app, &["y"]), [Effect::Do(act)]);
        assert!(app.popup.is_none());
    }
}

#[test]
fn acts_on_what_works_name_it_and_its_agent() {
    let mut app = app(made::fleet(), SIZE);
    on(&mut app, "T4");
    press(&mut app, &["x"]);
    assert_eq!(press(&mut app, &["y"]), [Effect::Do(Act::Stop(id("T4")))]);
    press(&mut app, &["v"]);
    assert_eq!(press(&mut app, &["y"]), [Effect::Do(Act::Recover("developer-T4".to_owned()))]);
    press(&mut app, &["p"]);
    assert_eq!(press(&mut app, &["y"]), [Effect::Do(Act::Pause)]);
}

#[test]
fn what_makes_no_sense_is_refused_with_its_reason() {
    let mut app = app(made::fleet(), SIZE);
    on(&mut app, "T4");
    press(&mut app, &["r"]);
    assert!(app.popup.is_none());
    assert_eq!(app.message.as_ref().expect("said").1, "T4 has not ended: there is nothing to retry");
    on(&mut app, "T1");
    press(&mut app, &["v"]);
    assert!(app.message.as_ref().expect("said").1.contains("nothing to recover"));
}

#[test]
fn a_past_run_and_read_only_order_nothing() {
    let mut past = app(made::fleet(), SIZE);
    past.newest = false;
    let mut only = app(made::fleet(), SIZE);
    only.read_only = true;
    for app in [&mut past, &mut only] {
        for key in ["a", "r", "R", "s", "S", "x", "v", "p"] {
            on(app, "T3");
            assert_eq!(press(app, &[key]), [], "{key}");
            assert!(app.popup.is_none() && app.message.is_some(), "{key}");
        }
    }
}

#[test]
fn a_question_is_answered_by_an_option_or_in_own_words() {
    let mut app = app(made::fleet(), SIZE);
    press(&mut app, &["a"]);
    assert_eq!(press(&mut app, &["Down", "Enter"]), [Effect::Do(Act::Answer(QuestionId(1), "SQLite".to_owned()))]);
    press(&mut app, &["a"]);
    write(&mut app, "quite another");
    assert_eq!(press(&mut app, &["Enter"]), [Effect::Do(Act::Answer(QuestionId(1), "quite another".to_owned()))]);
    press(&mut app, &["a", "Up"]);
    assert_eq!(press(&mut app, &["Enter"]), [], "no words, no answer");
    assert!(matches!(app.popup, Some(Popup::Answer(_))), "the box stays");
    press(&mut app, &["Esc"]);
    assert!(app.popup.is_none());
    // From any other task the oldest question is meant.
    on(&mut app, "T1");
    press(&mut app, &["a"]);
    assert!(matches!(&app.popup, Some(Popup::Answer(answer)) if answer.task == id("T6")));
}

#[test]
fn a_task_is_split_by_parts_typed_line_by_line() {
    let mut app = app(made::fleet(), SIZE);
    on(&mut app, "T4");
    press(&mut app, &["S"]);
    write(&mut app, "count");
    press(&mut app, &["Enter", "Enter"]);
    assert!(app.message.as_ref().expect("said").1.contains("two parts"));
    write(&mut app, "limit");
    press(&mut app, &["Enter", "Enter"]);
    let parts = vec!["count".to_owned(), "limit".to_owned()];
    assert_eq!(press(&mut app, &["y"]), [Effect::Do(Act::Split(id("T4"), parts))]);
}

#[test]
fn an_edit_starts_with_what_it_replaces() {
    let mut app = app(made::fleet(), SIZE);
    on(&mut app, "T4");
    let checks = Act::Edit(id("T4"), Box::new(TaskEdit { accept: Some(Vec::new()), ..TaskEdit::default() }));
    assert_eq!(press(&mut app, &["E"]), [Effect::Read(checks.clone())]);
    write(&mut app, "too early");
    app.take(News::Present(checks, Ok("cargo test\nmake lint".to_owned())));
    assert!(text(&app).contains("1. cargo test") && !text(&app).contains("too early"), "{}", text(&app));
    // The first line is changed, the second stays.
    press(&mut app, &["Up"]);
    write(&mut app, " --all");
    press(&mut app, &["Down", "Enter", "Enter"]);
    let told = vec!["cargo test --all".to_owned(), "make lint".to_owned()];
    let edit = TaskEdit { accept: Some(told), ..TaskEdit::default() };
    assert_eq!(press(&mut app, &["y"]), [Effect::Do(Act::Edit(id("T4"), Box::new(edit)))]);
}

#[test]
fn a_text_keeps_its_empty_lines_and_a_late_answer_changes_nothing() {
    let mut app = app(made::fleet(), SIZE);
    on(&mut app, "T4");
    let [Effect::Read(act)] = &press(&mut app, &["e"])[..] else { panic!("its text is read") };
    app.take(News::Present(act.clone(), Ok("Limit it.\n\n  by address".to_owned())));
    write(&mut app, "es");
    app.take(News::Present(act.clone(), Ok("late".to_owned())));
    press(&mut app, &["Enter", "Enter"]);
    let edit = TaskEdit { text: Some("Limit it.\n\n  by addresses".to_owned()), ..TaskEdit::default() };
    assert_eq!(press(&mut app, &["y"]), [Effect::Do(Act::Edit(id("T4"), Box::new(edit)))]);
    press(&mut app, &["e"]);
    app.take(News::Present(act.clone(), Err("the store is gone".to_owned())));
    assert!(app.popup.is_none() && text(&app).contains("the store is gone"), "{}", text(&app));
}

#[test]
fn following_stops_on_the_way_up_counts_what_is_new_and_begins_again_at_the_end() {
    let mut app = app(made::fleet(), SIZE);
    on(&mut app, "T4");
    press(&mut app, &["Enter"]);
    feed(&mut app, 1_000_000);
    assert!(app.log.follow);
    assert!(app.log.lines.len() <= crate::picture::lines::WINDOW_MAX, "a window, not the log");
    press(&mut app, &["k"]);
    assert!(!app.log.follow);
    feed(&mut app, 1_000_132);
    assert_eq!(app.log.unseen(), 132);
    assert!(text(&app).contains("↓ 132 new"));
    let top = app.log.top;
    feed(&mut app, 1_000_140);
    assert_eq!(app.log.top, top, "what comes does not move what is read");
    press(&mut app, &["G"]);
    feed(&mut app, 1_000_140);
    assert!(app.log.follow && app.log.unseen() == 0);
    press(&mut app, &["g"]);
    feed(&mut app, 1_000_140);
    assert!(text(&app).contains("(0)"), "the first line");
}

#[test]
fn scrolling_down_to_the_end_follows_again() {
    let mut app = app(made::fleet(), SIZE);
    on(&mut app, "T4");
    press(&mut app, &["Enter"]);
    feed(&mut app, 500);
    press(&mut app, &["PgUp"]);
    assert!(!app.log.follow);
    for _ in 0..200 {
        press(&mut app, &["j"]);
    }
    assert!(app.log.follow);
}

#[test]
fn a_line_longer_than_the_screen_can_be_read_to_its_end() {
    let mut app = app(made::fleet(), (80, 24));
    on(&mut app, "T4");
    press(&mut app, &["Enter"]);
    let words: Vec<String> = (0..1_000).map(|at| format!("word{at}")).collect();
    let long = LogLine { text: words.join(" "), ..made::lines(5, 1).remove(0) };
    app.take(News::Log(AttemptId(5), 1, 0, vec![long]));
    press(&mut app, &["g"]);
    let mut seen = text(&app);
    for _ in 0..400 {
        press(&mut app, &["j"]);
        seen.push_str(&text(&app));
    }
    for word in [&words[0], &words[500], &words[999]] {
        assert!(seen.contains(word.as_str()), "{word}");
    }
}

#[test]
fn a_search_goes_from_place_to_place_and_says_when_there_is_none() {
    let mut app = app(made::fleet(), SIZE);
    on(&mut app, "T4");
    press(&mut app, &["Enter"]);
    feed(&mut app, 100);
    press(&mut app, &["/"]);
    write(&mut app, "failed");
    press(&mut app, &["Enter"]);
    let search = app.want().search.expect("a search");
    assert!(search.forward && search.words == "failed");
    app.take(News::Found(search.serial, Some(9)));
    assert!(app.want().search.is_none());
    feed(&mut app, 100);
    assert_eq!(app.log.hit, Some(9));
    assert!(text(&app).contains("3 tests failed"));
    press(&mut app, &["n"]);
    assert_eq!(app.want().search.expect("a search").from, 10);
    press(&mut app, &["N"]);
    let back = app.want().search.expect("a search");
    assert_eq!((back.from, back.forward), (8, false));
    app.take(News::Found(search.serial, Some(50)));
    assert_eq!(app.log.hit, Some(9), "an old search says nothing");
    app.take(News::Found(back.serial, None));
    assert!(text(&app).contains("`failed` is not in this log"));
}

#[test]
fn a_filter_keeps_what_fits_as_one_types_and_esc_drops_it() {
    let mut app = app(made::fleet(), SIZE);
    let all = app.tree.rows.len();
    press(&mut app, &["/"]);
    write(&mut app, "limiter");
    let tasks = |app: &App| app.tree.rows.iter().filter(|row| matches!(row.node, Node::Task(_))).count();
    assert_eq!(tasks(&app), 1);
    press(&mut app, &["Enter", "Esc"]);
    assert_eq!(app.tree.rows.len(), all);
    press(&mut app, &["/"]);
    write(&mut app, "!complete");
    assert_eq!(tasks(&app), 5, "all but the two that are complete");
    press(&mut app, &["Esc"]);
    assert_eq!(app.tree.rows.len(), all, "Esc while typing brings back what was there");
}

#[test]
fn esc_and_a_key_in_one_breath_are_both_taken() {
    let mut app = app(made::fleet(), SIZE);
    press(&mut app, &["?"]);
    assert_eq!(app.key(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT)), [Effect::Quit]);
    press(&mut app, &["a"]);
    write(&mut app, "words");
    app.key(KeyEvent::new(KeyCode::Char('b'), KeyModifiers::ALT));
    assert!(matches!(app.popup, Some(Popup::Answer(_))), "what is being typed is not lost");
}

#[test]
fn help_is_searched() {
    let mut app = app(made::fleet(), SIZE);
    press(&mut app, &["?", "/"]);
    write(&mut app, "copyaname");
    press(&mut app, &["Enter"]);
    let shown = text(&app);
    assert!(shown.contains("copy a name, a path or a command"), "{shown}");
    assert!(!shown.contains("half a page"), "{shown}");
}

#[test]
fn branches_open_down_to_calls_and_a_call_leads_to_its_line() {
    let mut app = app(made::fleet(), SIZE);
    on(&mut app, "T4");
    press(&mut app, &["="]);
    app.tree.choose(&Node::Attempt(id("T4"), AttemptId(5)));
    press(&mut app, &["Right"]);
    assert!(app.want().calls.contains(&AttemptId(5)));
    app.take(News::Calls(AttemptId(5), calls(600, &made::lines(600, 60))));
    let shown = text(&app);
    assert!(shown.contains("Bash: cargo test -p limit") && shown.contains("error"), "{shown}");
    press(&mut app, &["j", "Enter"]);
    assert_eq!((app.focus, app.tab), (Focus::Detail, Tab::Log));
    feed(&mut app, 700);
    assert!(!app.log.follow);
    assert!(text(&app).contains("(600)"));
    press(&mut app, &["Esc", "-", "h", "-"]);
    assert!(app.want().calls.is_empty(), "closed branches cost nothing");
}

#[test]
fn calls_are_paired_with_their_results_and_the_newest_are_kept() {
    let found = calls(0, &made::lines(0, 600));
    assert_eq!(found.len(), crate::tui::log::CALLS_MAX);
    assert_eq!(found.last().map(|call| (call.number, call.ok)), Some((596, Some(false))));
    let running = calls(0, &made::lines(0, 1));
    assert_eq!(running[0].ok, None);
}

#[test]
fn names_and_commands_are_copied() {
    let mut app = app(made::fleet(), SIZE);
    on(&mut app, "T4");
    assert_eq!(press(&mut app, &["y"]), [Effect::Copy("T4".to_owned())]);
    press(&mut app, &["Y"]);
    let Some(Popup::Copy(menu)) = &app.popup else { panic!("a menu") };
    let at = menu.items.iter().position(|(_, text)| text == "rekindle why T4").expect("the command");
    for _ in 0..at {
        press(&mut app, &["j"]);
    }
    assert_eq!(press(&mut app, &["Enter"]), [Effect::Copy("rekindle why T4".to_owned())]);
}

#[test]
fn a_past_run_is_chosen_from_the_list_and_late_news_of_the_other_is_dropped() {
    let mut app = app(made::fleet(), SIZE);
    press(&mut app, &["o"]);
    assert!(app.want().runs);
    let mut old = made::run("complete");
    old.id = "r0000".to_owned();
    app.take(News::Runs(vec![old, made::run("running")], Some("r7f3a9c02b".to_owned())));
    assert!(text(&app).contains("live"));
    press(&mut app, &["j", "Enter"]);
    assert_eq!(app.want().run.as_deref(), Some("r0000"));
    app.take(News::Run(None, Some((Arc::new(made::fleet()), true))));
    assert!(app.picture.is_none());
    app.take(News::Run(Some("r0000".to_owned()), Some((Arc::new(made::fleet()), false))));
    assert!(text(&app).contains("past run"));
    press(&mut app, &["o"]);
    let mut old = made::run("complete");
    old.id = "r0000".to_owned();
    app.take(News::Runs(vec![old, made::run("running")], None));
    press(&mut app, &["Enter"]);
    assert_eq!(app.want().run, None, "the newest is followed into the next");
}

#[test]
fn one_column_switches_by_enter_and_esc() {
    let mut app = app(made::fleet(), (60, 18));
    assert!(app.areas().detail.width == 0);
    on(&mut app, "T4");
    press(&mut app, &["Enter"]);
    assert!(app.areas().tree.width == 0 && text(&app).contains("[log]"));
    press(&mut app, &["Esc"]);
    assert!(text(&app).contains("Tasks"));
}

#[test]
fn the_wheel_scrolls_what_is_under_it_and_a_click_chooses() {
    let mut app = app(made::fleet(), SIZE);
    on(&mut app, "T4");
    feed(&mut app, 500);
    let mouse = |kind, column, row| MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
    app.mouse(mouse(MouseEventKind::ScrollUp, 100, 20));
    assert!(!app.log.follow, "over the log");
    assert_eq!(chosen(&app), Node::Task(id("T4")));
    app.mouse(mouse(MouseEventKind::ScrollDown, 5, 20));
    assert_ne!(chosen(&app), Node::Task(id("T4")), "over the tree");
    app.mouse(mouse(MouseEventKind::Down(MouseButton::Left), 5, 3));
    assert_eq!(chosen(&app), Node::Needs);
    let tabs = app.areas().tabs();
    app.mouse(mouse(MouseEventKind::Down(MouseButton::Left), tabs.x + 14, tabs.y));
    assert_eq!((app.tab, app.focus), (Tab::Task, Focus::Detail));
}

#[test]
fn what_became_of_an_act_is_said_and_trouble_with_the_store_kills_nothing() {
    let mut app = app(made::fleet(), SIZE);
    app.take(News::Done(Err("it was\nrefused\u{1b}[31m".to_owned())));
    assert!(text(&app).contains("it was refused"));
    press(&mut app, &["j"]);
    app.take(News::Trouble(Some("the store is locked".to_owned())));
    assert!(text(&app).contains("the store is locked; trying again") && text(&app).contains("rate limiter"));
    app.take(News::Trouble(None));
    assert!(!text(&app).contains("trying again"));
}
