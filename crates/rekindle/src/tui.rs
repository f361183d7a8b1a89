//! `rekindle top`: the live terminal. State (`app`) and drawing (`draw`) are pure; this file moves news, keys and orders between
//! them, the reader's thread and the terminal, and nothing it waits for can freeze the screen.

mod app;
mod asked;
mod draw;
mod edit;
mod facts;
mod filter;
mod ground;
mod hits;
mod keys;
mod layout;
mod lines_box;
mod log;
mod order;
mod pane;
mod popup;
mod press;
mod question;
mod reader;
mod screen;
#[cfg(test)]
mod tests;
mod theme;
mod tree;
mod wide;

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};

use self::app::{App, Effect, News, Want};
use self::ground::{Ground, Heard};
use self::reader::Reader;
use self::screen::{Ending, Screen};
pub(crate) use self::theme::{Theme, ThemeChoice};
use crate::error::{CliError, Result};
use crate::picture::RunReader;
use crate::pinned;
use crate::project::Project;

/// Longest wait for a key before news is checked.
const BEAT: Duration = Duration::from_millis(40);

/// How many beats the first picture waits for the terminal's answer: a person does not notice, and most terminals answer
/// within the first.
const GROUND_BEATS: usize = 3;

/// Most terminal events processed before the next redraw: a paste or a fast wheel sends many.
const BURST: usize = 256;

/// News waiting to be processed: a sender with more blocks until the screen has caught up.
const NEWS_MAX: usize = 64;

/// Requests waiting to be read: only the last one counts.
const WANTS_MAX: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// By a key; and whether a coordinator is running.
    ByKey {
        goes_on: bool,
    },
    BySignal,
}

/// What the view was started with.
pub(crate) struct Options {
    pub theme: Theme,
    /// Whether the terminal is asked if it is light.
    pub asks_terminal: bool,
    pub read_only: bool,
    /// The run; `None` means the newest.
    pub run: Option<String>,
}

/// Shows runs until the person leaves.
pub(crate) fn show(project: &Project, options: Options) -> Result<Left> {
    let mut screen = Screen::take()?;
    let ending = Ending::watch()?;
    let (tell, news) = sync_channel(NEWS_MAX);
    let (ask, wants) = sync_channel(WANTS_MAX);
    let run_reader = RunReader::new(project, options.run.as_deref());
    let reader = Reader::new(options.run.clone(), tell.clone());
    let reading = thread::spawn(move || reader.run(run_reader, &wants));
    let app = App::new(project.clone(), options.theme, options.read_only, options.run, screen.size());
    let mut live = Live { app, project: project.clone(), tell, news, ask, asked: None, ground: Ground::default() };
    if options.asks_terminal {
        live.ask_terminal(&mut screen)?;
    }
    let outcome = live.until_left(&mut screen, &ending, || reading.is_finished());
    drop(screen);
    outcome
}

struct Live {
    app: App,
    project: Project,
    tell: SyncSender<News>,
    news: Receiver<News>,
    ask: SyncSender<Want>,
    asked: Option<Want>,
    ground: Ground,
}

impl Live {
    /// Asks the terminal whether it is light, and waits a little, so that the first picture is already right. A later answer
    /// is used when it comes.
    fn ask_terminal(&mut self, screen: &mut Screen) -> Result<()> {
        let before = self.app.theme;
        screen.ask_ground();
        for _ in 0..GROUND_BEATS {
            if event::poll(BEAT).map_err(|error| lost(&error))? {
                self.take_events(screen)?;
            }
            if self.app.theme != before {
                break;
            }
        }
        Ok(())
    }

    fn until_left(&mut self, screen: &mut Screen, ending: &Ending, reader_gone: impl Fn() -> bool) -> Result<Left> {
        let mut changed = true;
        loop {
            for news in self.news.try_iter() {
                self.app.take(news);
                changed = true;
            }
            if changed {
                screen.draw(&self.app)?;
            }
            let want = self.app.want();
            if self.asked.as_ref() != Some(&want) {
                // A busy reader is asked again at the next beat, and a missing one is reported below.
                if self.ask.try_send(want.clone()).is_ok() {
                    self.asked = Some(want);
                }
            }
            changed = event::poll(BEAT).map_err(|error| lost(&error))?;
            let left = if changed { self.take_events(screen)? } else { self.release_keys(screen)? };
            if left {
                let goes_on = self.app.picture.as_ref().is_some_and(|picture| picture.coordinator.is_some());
                return Ok(Left::ByKey { goes_on });
            }
            if ending.is_asked() {
                return Ok(Left::BySignal);
            }
            if reader_gone() {
                return Err(CliError::internal("the store is no longer read").hint("start it again: rekindle top"));
            }
        }
    }

    /// Processes what the terminal sent; returns whether the person leaves.
    fn take_events(&mut self, screen: &mut Screen) -> Result<bool> {
        for _ in 0..BURST {
            match event::read().map_err(|error| lost(&error))? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match self.ground.hear(key) {
                    Heard::Part | Heard::Ground(None) => {}
                    Heard::Ground(Some(light)) => self.app.theme = self.app.theme.on(light),
                    Heard::Keys(keys) => {
                        if self.take_keys(keys, screen)? {
                            return Ok(true);
                        }
                    }
                },
                Event::Mouse(mouse) => self.app.mouse(mouse),
                Event::Resize(columns, rows) => self.app.resize(columns, rows),
                Event::Paste(text) => self.app.paste(&text),
                _ => {}
            }
            if !event::poll(Duration::ZERO).map_err(|error| lost(&error))? {
                break;
            }
        }
        Ok(false)
    }

    /// Handles keys that looked like the beginning of an answer when nothing more came.
    fn release_keys(&mut self, screen: &mut Screen) -> Result<bool> {
        let keys = self.ground.release();
        self.take_keys(keys, screen)
    }

    fn take_keys(&mut self, keys: Vec<KeyEvent>, screen: &mut Screen) -> Result<bool> {
        for effect in keys.into_iter().flat_map(|key| self.app.key(key)).collect::<Vec<_>>() {
            if self.carry_out(effect, screen)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn carry_out(&mut self, effect: Effect, screen: &mut Screen) -> Result<bool> {
        match effect {
            Effect::Quit => return Ok(true),
            Effect::Suspend => {
                screen.suspend()?;
                let (columns, rows) = screen.size();
                self.app.resize(columns, rows);
            }
            Effect::Copy(text) => screen.copy(&text),
            Effect::Read(act) => {
                let (project, tell) = (self.project.clone(), self.tell.clone());
                thread::spawn(move || {
                    let pinned = pinned::state_of(&project).map_err(|error| reader::words(&error));
                    let present = pinned.map(|pinned| act.present(&pinned).unwrap_or_default());
                    // The person may have left.
                    let _ = tell.send(News::Present(act, present));
                });
            }
            Effect::Do(act) => {
                let (project, tell) = (self.project.clone(), self.tell.clone());
                thread::spawn(move || {
                    let done = act.perform(&project).map_err(|error| reader::words(&error));
                    // The person may have left; the order was given nevertheless.
                    let _ = tell.send(News::Done(done));
                });
            }
        }
        Ok(false)
    }
}

fn lost(error: &std::io::Error) -> CliError {
    CliError::internal("the terminal cannot be read").because(error)
}
