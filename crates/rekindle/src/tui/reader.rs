//! Reads the store for the screen, on its own thread: a busy disk delays news but never blocks a key. It reads what is
//! requested and what is new, and keeps no log in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use rekindle_core::ids::AttemptId;
use rekindle_core::time::Time;
use rekindle_engine::store::StoredEvent;

use super::app::{News, Want};
use super::facts;
use super::hits::{HITS_MAX, Hit, Seek};
use super::log::{self, LogLine, LogPosition, Search, Window};
use super::pane::{About, Tab, TextLine};
use crate::error::{CliError, Result};
use crate::picture::lines::{LineIndex, WINDOW_MAX};
use crate::picture::{Picture, RunReader, diff};
use crate::project::Project;
use crate::story::chapters;
use crate::ui::one_line;
use crate::view::RunView;

/// Pause between two reads of the store when nothing is requested.
const LOOK: Duration = Duration::from_millis(120);

/// An unchanged run is shown again after this time: clocks and countdowns continue.
const TICK_MS: u64 = 1_000;

/// Shortest time before a story or a diff is made again: both cost more than a row.
const AGAIN_MS: u64 = 1_500;

/// Most events that can be scrolled through, the newest; all of them are in `rekindle events`.
const EVENTS_MAX: usize = 5_000;

/// Lines searched before news is checked again.
const SEARCH_SLICE: usize = 20_000;

/// Most log indexes that are kept: for the logs that a person switches between.
const INDEXES_MAX: usize = 32;

pub(super) struct Reader {
    news: SyncSender<News>,
    want: Want,
    fresh: bool,
    picture: Option<Arc<Picture>>,
    told_at: Option<Time>,
    indexes: BTreeMap<AttemptId, LineIndex>,
    log_told: Option<(Window, usize)>,
    calls_told: BTreeMap<AttemptId, usize>,
    text_told: Option<(About, u64, Time)>,
    events: Events,
    searching: Option<(Search, usize)>,
    seeking: Option<Seek>,
    placing: Option<LogPosition>,
    trouble: bool,
}

/// The newest events of a run in words.
#[derive(Default)]
struct Events {
    seq: u64,
    lines: VecDeque<(Option<String>, TextLine)>,
}

impl Reader {
    /// A reader of a run, the newest if none is named, that sends its news through a channel.
    pub(super) fn new(run: Option<String>, news: SyncSender<News>) -> Self {
        Self {
            news,
            want: Want { run, ..Want::default() },
            fresh: true,
            picture: None,
            told_at: None,
            indexes: BTreeMap::new(),
            log_told: None,
            calls_told: BTreeMap::new(),
            text_told: None,
            events: Events::default(),
            searching: None,
            seeking: None,
            placing: None,
            trouble: false,
        }
    }

    /// Reads until the channel of requests is closed.
    pub(super) fn run(mut self, mut run_reader: RunReader, wants: &Receiver<Want>) {
        loop {
            match wants.recv_timeout(if self.searching.is_some() { Duration::ZERO } else { LOOK }) {
                Ok(want) => {
                    let newest = wants.try_iter().last().unwrap_or(want);
                    self.turn_to(&mut run_reader, newest);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let trouble = self.round(&mut run_reader).err().map(|error| words(&error));
            if trouble.is_some() || self.trouble {
                self.trouble = trouble.is_some();
                self.tell(News::Trouble(trouble));
            }
        }
    }

    fn tell(&self, news: News) {
        // The receiver may be gone; then the next read of the channel ends this thread.
        let _ = self.news.send(news);
    }

    fn turn_to(&mut self, run_reader: &mut RunReader, want: Want) {
        if want.run != self.want.run {
            run_reader.turn_to(want.run.as_deref());
            self.indexes.clear();
            self.events = Events::default();
            (self.picture, self.told_at) = (None, None);
        }
        if want.search != self.want.search {
            self.searching = want.search.clone().map(|search| (search, 0));
        }
        if want.seek != self.want.seek {
            self.seeking.clone_from(&want.seek);
        }
        if want.place != self.want.place {
            self.placing = want.place;
        }
        self.want = want;
        self.fresh = true;
    }

    fn round(&mut self, run_reader: &mut RunReader) -> Result<()> {
        self.look(run_reader)?;
        let Some(picture) = self.picture.clone() else { return Ok(()) };
        let fresh = std::mem::take(&mut self.fresh);
        let project = run_reader.project().clone();
        let Some(view) = run_reader.view()? else { return Ok(()) };
        if self.want.runs && fresh {
            let live = view.coordinator()?.is_some();
            let runs = view.runs()?;
            let live = runs.last().filter(|_| live).map(|run| run.id.clone());
            self.tell(News::Runs(runs, live));
        }
        let run = view.run_named(&picture.run.id)?;
        self.read_log(&run, fresh)?;
        self.read_calls(&run)?;
        self.search(&run)?;
        self.seek(&run)?;
        self.read_text(&run, &picture, &project)
    }

    /// Reads the run itself.
    fn look(&mut self, run_reader: &mut RunReader) -> Result<()> {
        // Before the first run there is not even a state directory to read.
        let seen = if run_reader.project().state_dir.is_dir() { run_reader.look()? } else { None };
        let Some(picture) = seen else {
            if self.told_at.is_none() || self.picture.take().is_some() {
                self.told_at = Some(Time(0));
                self.tell(News::Run(self.want.run.clone(), None));
            }
            return Ok(());
        };
        let newest = match &self.want.run {
            None => true,
            Some(_) => {
                let view = run_reader.view()?;
                let newest = view.map(|view| view.run()).transpose()?.flatten();
                newest.is_none_or(|newest| newest.row.id == picture.run.id)
            }
        };
        // A coordinator always runs the newest run.
        let picture =
            if newest { picture } else { Arc::new(Picture { coordinator: None, ..Picture::clone(&picture) }) };
        let same = self.picture.as_ref().is_some_and(|last| {
            last.seq == picture.seq && last.coordinator == picture.coordinator && last.run.id == picture.run.id
        });
        let waited = self.told_at.is_none_or(|told| picture.now.since_ms(told) >= TICK_MS || picture.now < told);
        self.picture = Some(Arc::clone(&picture));
        if !same || waited {
            self.told_at = Some(picture.now);
            self.tell(News::Run(self.want.run.clone(), Some((picture, newest))));
        }
        Ok(())
    }

    /// The index of a log, up to date.
    fn index(&mut self, run: &RunView<'_>, attempt: AttemptId) -> Result<&LineIndex> {
        if self.indexes.len() > INDEXES_MAX && !self.indexes.contains_key(&attempt) {
            self.indexes.clear();
        }
        let index = self.indexes.entry(attempt).or_insert_with(|| LineIndex::new(attempt));
        index.grow(run)?;
        Ok(index)
    }

    fn read_log(&mut self, run: &RunView<'_>, fresh: bool) -> Result<()> {
        let Some(window) = self.want.log else { return Ok(()) };
        let told = self.log_told;
        let index = self.index(run, window.attempt)?;
        let count = index.count();
        if told == Some((window, count)) && !fresh {
            return Ok(());
        }
        let from = window.from.unwrap_or_else(|| count.saturating_sub(window.many));
        let lines: Vec<LogLine> = index.window(run, from, window.many)?.iter().map(LogLine::of).collect();
        self.log_told = Some((window, count));
        self.tell(News::Log(window.attempt, count, from, lines));
        Ok(())
    }

    fn read_calls(&mut self, run: &RunView<'_>) -> Result<()> {
        let wanted = self.want.calls.clone();
        self.calls_told.retain(|attempt, _| wanted.contains(attempt));
        for attempt in wanted {
            let count = self.index(run, attempt)?.count();
            if self.calls_told.get(&attempt) == Some(&count) {
                continue;
            }
            let from = count.saturating_sub(WINDOW_MAX);
            let lines = self.index(run, attempt)?.window(run, from, WINDOW_MAX)?;
            let lines: Vec<LogLine> = lines.iter().map(LogLine::of).collect();
            self.calls_told.insert(attempt, count);
            self.tell(News::Calls(attempt, log::calls(from, &lines)));
        }
        Ok(())
    }

    /// Continues a search for a while.
    fn search(&mut self, run: &RunView<'_>) -> Result<()> {
        let Some((search, mut done)) = self.searching.take() else { return Ok(()) };
        let count = self.index(run, search.attempt)?.count();
        let index = self.index(run, search.attempt)?.clone();
        let mut looked = 0;
        while done < count && looked < SEARCH_SLICE {
            let (from, many) = search.stretch(done, count, WINDOW_MAX);
            let lines = index.window(run, from, many)?;
            let mut fits = lines.iter().enumerate().filter(|(_, line)| log::fits(&LogLine::of(line), &search.words));
            let hit = if search.forward { fits.next() } else { fits.next_back() };
            if let Some((at, _)) = hit {
                self.tell(News::Found(search.serial, Some(from + at)));
                return Ok(());
            }
            done += many;
            looked += many;
        }
        if done >= count {
            self.tell(News::Found(search.serial, None));
        } else {
            self.searching = Some((search, done));
        }
        Ok(())
    }

    /// Searches all logs for words, or finds the number of a line that was found like this.
    fn seek(&mut self, run: &RunView<'_>) -> Result<()> {
        if let Some(seek) = self.seeking.clone() {
            let found = run.search(&seek.words, None, HITS_MAX)?;
            self.tell(News::Hits(seek.serial, found.iter().map(Hit::of).collect()));
            self.seeking = None;
        }
        if let Some(place) = self.placing {
            let number = self.index(run, place.attempt)?.number_of(run, place.seq)?;
            self.tell(News::Placed(place, number));
            self.placing = None;
        }
        Ok(())
    }

    fn read_text(&mut self, run: &RunView<'_>, picture: &Arc<Picture>, project: &Project) -> Result<()> {
        let Some(about) = self.want.about.clone() else {
            self.text_told = None;
            return Ok(());
        };
        if let Some((_, seq, at)) = self.text_told.as_ref().filter(|(told, ..)| *told == about) {
            let soon = picture.now >= *at && picture.now.since_ms(*at) < AGAIN_MS;
            if *seq == picture.seq || (soon && about.tab != Tab::Events) {
                return Ok(());
            }
        }
        self.text_told = Some((about.clone(), picture.seq, picture.now));
        let lines = match (about.tab, &about.task) {
            (Tab::Events, task) => self.events.lines(run, task.as_ref().map(|task| task.as_str()))?,
            (Tab::Why, Some(task)) => facts::of_why(&chapters::of(run, task.as_str())?),
            (Tab::Diff, Some(task)) => {
                self.read_diff(picture, project, about.clone(), task.as_str());
                return Ok(());
            }
            _ => vec![TextLine::plain("choose a task")],
        };
        self.tell(News::Text(about, lines));
        Ok(())
    }

    /// Calls git on a separate thread: a large repository takes time.
    fn read_diff(&self, picture: &Arc<Picture>, project: &Project, about: About, task: &str) {
        let Some(task) = picture.task(task).cloned() else { return };
        let (picture, project, news) = (Arc::clone(picture), project.clone(), self.news.clone());
        thread::spawn(move || {
            let lines = match diff::of(&project, &picture, &task) {
                Ok(diff) => facts::of_diff(diff.as_ref()),
                Err(error) => vec![TextLine::toned(crate::ui::Tone::Error, words(&error))],
            };
            // The receiver may be gone.
            let _ = news.send(News::Text(about, lines));
        });
    }
}

impl Events {
    /// The newest events in words, newest first, of a task or of all.
    fn lines(&mut self, run: &RunView<'_>, task: Option<&str>) -> Result<Vec<TextLine>> {
        let mut new: VecDeque<StoredEvent> = VecDeque::new();
        self.seq = run.events(self.seq, |event| {
            if new.len() == EVENTS_MAX {
                new.pop_front();
            }
            new.push_back(event.clone());
            Ok(())
        })?;
        for event in &new {
            self.lines.push_back((event.task.clone(), facts::of_event(event)));
        }
        while self.lines.len() > EVENTS_MAX {
            self.lines.pop_front();
        }
        let fits = |of: &Option<String>| task.is_none() || of.as_deref() == task;
        Ok(self.lines.iter().rev().filter(|(of, _)| fits(of)).map(|(_, line)| line.clone()).collect())
    }
}

/// An error on one line.
pub(super) fn words(error: &CliError) -> String {
    let parts = std::iter::once(&error.message).chain(&error.causes).chain(&error.hints);
    one_line(&parts.filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(": "))
}
