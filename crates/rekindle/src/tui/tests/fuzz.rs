//! Whatever is pressed, whatever size the terminal gets and whatever agents wrote: no panic, nothing that a terminal would obey,
//! and always a way out.

use std::sync::Arc;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use rekindle_core::ids::AttemptId;
use rekindle_engine::store::Stream;

use super::made;
use super::{buffer, press};
use crate::picture::Picture;
use crate::tui::app::{App, Effect, News};
use crate::tui::facts;
use crate::tui::hits::Hit;
use crate::tui::log::LogPosition;
use crate::tui::theme::{Theme, ThemeChoice};

/// Screens, and steps on each.
const SCREENS: u64 = 48;
const STEPS: usize = 50;

/// What agents might write.
const HOSTILE: [&str; 12] = [
    "\u{1b}[2J\u{1b}]52;c;ZXZpbA==\u{7}",
    "a\u{0}b\u{8}\u{8}\rc\u{9b}31m",
    "\u{202e}evil\u{2066}",
    "日本語のとても長いテキスト",
    "👩‍👩‍👧‍👦👩‍👩‍👧‍👦 e\u{301}e\u{301} \u{200b}\u{200d}",
    "\t\ttabs\nand\r\nlines\u{2028}",
    "",
    " ",
    "ﷺ﷽ ꧁ wide",
    "\u{e0041}\u{e0042} tags",
    "<script>alert(1)</script>",
    "x",
];

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(0) % below.max(1)
    }

    fn text(&mut self) -> String {
        let mut text = HOSTILE[self.roll(HOSTILE.len())].to_owned();
        if self.roll(4) == 0 {
            text = text.repeat(self.roll(40));
        }
        text
    }

    fn picture(&mut self) -> Picture {
        let mut picture = if self.roll(2) == 0 { made::fleet() } else { made::limited() };
        (picture.run.plan, picture.run.title, picture.run.id) = (self.text(), self.text(), self.text());
        for task in &mut picture.tasks {
            (task.title, task.reason, task.result) = (self.text(), Some(self.text()), Some(self.text()));
            task.workspace = Some(self.text());
            let states = ["pending", "in_progress", "blocked", "complete", "failed", "skipped", "awaiting_review"];
            task.state = states[self.roll(states.len())].to_owned();
        }
        for attempt in &mut picture.attempts {
            (attempt.cli, attempt.model, attempt.cause) = (self.text(), Some(self.text()), Some(self.text()));
        }
        for question in &mut picture.questions {
            (question.text, question.context) = (self.text(), self.text());
            question.options = (0..self.roll(5)).map(|_| self.text()).collect();
        }
        let tasks = self.roll(picture.tasks.len() + 1);
        picture.tasks.truncate(tasks);
        if self.roll(3) == 0 {
            picture.coordinator = None;
        }
        picture
    }

    fn key(&mut self) -> KeyEvent {
        let codes = [
            KeyCode::Enter,
            KeyCode::Esc,
            KeyCode::Tab,
            KeyCode::BackTab,
            KeyCode::Up,
            KeyCode::Down,
            KeyCode::Left,
            KeyCode::Right,
            KeyCode::PageUp,
            KeyCode::PageDown,
            KeyCode::Home,
            KeyCode::End,
            KeyCode::Backspace,
            KeyCode::Delete,
            KeyCode::F(1),
        ];
        let letters = "aceghjklnoprstwxyfdvGLNRSY/?{}[]=-+12345 ~é日\u{301}";
        let code = if self.roll(3) == 0 {
            codes[self.roll(codes.len())]
        } else {
            KeyCode::Char(letters.chars().nth(self.roll(letters.chars().count())).expect("a letter"))
        };
        let ctrl = self.roll(12) == 0 && code != KeyCode::Char('c');
        KeyEvent::new(code, if ctrl { KeyModifiers::CONTROL } else { KeyModifiers::NONE })
    }

    fn mouse(&mut self, size: (u16, u16)) -> MouseEvent {
        let kinds = [
            MouseEventKind::ScrollUp,
            MouseEventKind::ScrollDown,
            MouseEventKind::Down(MouseButton::Left),
            MouseEventKind::Moved,
        ];
        // Now and then beyond the edge: a click may be older than a resize.
        let place = |roll: usize| u16::try_from(roll).unwrap_or(0);
        MouseEvent {
            kind: kinds[self.roll(kinds.len())],
            column: place(self.roll(usize::from(size.0) + 3)),
            row: place(self.roll(usize::from(size.1) + 3)),
            modifiers: KeyModifiers::NONE,
        }
    }

    fn size(&mut self) -> (u16, u16) {
        // A large screen costs as much as a hundred small ones: it comes now and then.
        let most = [(300, 100), (120, 40), (80, 24), (60, 18), (30, 12), (30, 12), (3, 3)][self.roll(7)];
        let side = |roll: usize| u16::try_from(roll).unwrap_or(0) + 1;
        (side(self.roll(most.0)), side(self.roll(most.1)))
    }

    /// Gives a screen something of what it wants.
    fn feed(&mut self, app: &mut App) {
        let want = app.want();
        if let Some(window) = want.log {
            let count = self.roll(5_000);
            let from = window.from.unwrap_or_else(|| count.saturating_sub(window.many)).min(count);
            let many = window.many.min(count - from).min(60);
            let lines =
                (0..many).map(|at| made::line(&self.text(), if at % 5 == 0 { Stream::Err } else { Stream::Out }, at));
            let lines = lines.collect();
            app.take(News::Log(window.attempt, count, from, lines));
        }
        for attempt in want.calls {
            app.take(News::Calls(attempt, crate::tui::log::calls(0, &made::lines(0, self.roll(40)))));
        }
        if let (Some(about), Some(picture)) = (want.about, app.picture.clone()) {
            let mut lines = facts::of_run(&picture);
            lines.extend(picture.tasks.iter().flat_map(|task| facts::of_task(&picture, task)));
            app.take(News::Text(about, lines));
        }
        if let Some(search) = want.search {
            let hit = (self.roll(2) == 0).then(|| self.roll(5_000));
            app.take(News::Found(search.serial, hit));
        }
        if let Some(seek) = want.seek {
            let hit = |at: usize, text: String| Hit {
                place: LogPosition { attempt: AttemptId(at as u64 % 9), seq: at as u64 },
                ..made::hit(5, 1, &text)
            };
            let hits = (0..self.roll(30)).map(|at| hit(at, self.text())).collect();
            app.take(News::Hits(seek.serial, hits));
        }
        if let Some(place) = want.place {
            let number = (self.roll(3) != 0).then(|| self.roll(5_000));
            app.take(News::Placed(place, number));
        }
        if want.runs {
            let runs =
                (0..self.roll(6)).map(|_| rekindle_core::view::RunRow { id: self.text(), ..made::run("complete") });
            app.take(News::Runs(runs.collect(), None));
        }
        match self.roll(6) {
            0 => app.take(News::Done(Err(self.text()))),
            1 => app.take(News::Trouble(Some(crate::ui::one_line(&self.text())))),
            2 => app.take(News::Log(AttemptId(9_999), 3, 0, Vec::new())),
            _ => {}
        }
    }
}

fn check(app: &App, dice: &Dice) {
    let drawn = buffer(app);
    for cell in &drawn.content {
        let bad = cell.symbol().chars().any(|c| c.is_control() || rekindle_core::text::is_harmful(c));
        assert!(!bad, "{:?} is drawn at {:?} (dice {})", cell.symbol(), app.size, dice.0);
        assert!(!app.theme.ascii || cell.symbol().is_ascii(), "{:?} is no ASCII (dice {})", cell.symbol(), dice.0);
    }
}

#[test]
fn no_key_no_size_and_no_text_breaks_it_and_there_is_always_a_way_out() {
    for seed in 1..=SCREENS {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let theme = Theme::new(ThemeChoice::Auto, dice.roll(2) == 0, None, dice.roll(3) == 0);
        let mut app = App::new(made::project(), theme, dice.roll(4) == 0, None, dice.size());
        let mut left = false;
        for _ in 0..STEPS {
            match dice.roll(14) {
                0 => {
                    let size = dice.size();
                    app.resize(size.0, size.1);
                }
                1 => {
                    let newest = dice.roll(4) != 0;
                    let run = (dice.roll(12) != 0).then(|| (Arc::new(dice.picture()), newest));
                    app.take(News::Run(app.wanted.clone(), run));
                }
                2 => dice.feed(&mut app),
                3 => {
                    let mouse = dice.mouse(app.size);
                    app.mouse(mouse);
                }
                4 => {
                    let text = dice.text();
                    app.paste(&text);
                }
                _ => {
                    let key = dice.key();
                    left |= app.key(key).contains(&Effect::Quit);
                }
            }
            check(&app, &dice);
        }
        assert!(!left, "no key but q and Ctrl-C leaves");
        press(&mut app, &["Esc"; 5]);
        assert_eq!(press(&mut app, &["q"]), [Effect::Quit], "stuck in {:?} (seed {seed})", app.mode());
    }
}
