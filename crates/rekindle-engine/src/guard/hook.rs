//! One call of `rekindle hook`: reads one event, appends one record, and gives the session its recovery text when it is
//! time.
//!
//! Most calls come after a tool and only append. A session's whole state is assembled only if the session may need the text,
//! or if a batch of work has ended and the state's file is written.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rekindle_core::guard::fact::{Beginning, Fact, Record};
use rekindle_core::guard::session::Session;
use rekindle_core::guard::state_file;
use rekindle_core::guard::when::{Chance, Telling, telling};
use rekindle_shim::identity::Process;
use rekindle_shim::{atomic, clock};

use super::journal::Journal;
use super::recover::{STATE_FILE, Whom, compose};
use super::sessions::{self, Known};
use super::transcript;
use super::{journal, place};
use crate::agents::KINDS;
use crate::agents::guard_adapter::{GuardAdapter, Heard, Moment};

/// Programs that only run between a session's program and the hook.
const BETWEEN: [&str; 9] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "env", "timeout"];

/// The state's file is written at least whenever the journal has grown by this much, even in a turn that lasts for hours.
const WRITE_EVERY_BYTES: u64 = 32 << 10;

/// Set by `guard recover --launch`: the session has its text as a prompt and only continues the one that is named.
pub const LAUNCHED_VARIABLE: &str = "REKINDLE_GUARD_LAUNCHED";

/// Where a session's files are.
#[derive(Clone, Debug)]
pub struct Places {
    pub guard_dir: PathBuf,
    /// The project's state directory, which may not exist.
    pub state_dir: PathBuf,
}

/// Handles `heard` and prints what the session needs. Fails if something could not be recorded; the text is printed all the
/// same.
pub fn run(
    program: &dyn GuardAdapter,
    heard: Heard,
    places: &Places,
    var: &dyn Fn(&str) -> Option<String>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let key = place::key(program.kind(), &heard.session);
    let dir = places.guard_dir.join(&key);
    let new = !dir.join(journal::FILE).exists();
    let mut hearing = Hearing { program, heard, places, var, key, dir, new };
    hearing.only_its_own();
    let record = hearing.record();
    match hearing.chance() {
        Some(chance) => hearing.tell(record, &chance, out),
        None => hearing.keep(record),
    }
}

/// One event being handled.
struct Hearing<'a> {
    program: &'a dyn GuardAdapter,
    heard: Heard,
    places: &'a Places,
    var: &'a dyn Fn(&str) -> Option<String>,
    key: String,
    dir: PathBuf,
    /// Whether this is the first event of this session.
    new: bool,
}

impl Hearing<'_> {
    /// Drops facts about a helper's contexts and turns: they are not the session's.
    fn only_its_own(&mut self) {
        if self.heard.helper.is_none() {
            return;
        }
        self.heard.facts.retain(|fact| {
            !matches!(
                fact,
                Fact::Begun { .. }
                    | Fact::Prompt { .. }
                    | Fact::Compacting
                    | Fact::Compacted { .. }
                    | Fact::TurnEnded { .. }
                    | Fact::Ended { .. }
                    | Fact::Limit { .. }
            )
        });
        if matches!(self.heard.moment, Moment::Begins(_) | Moment::Prompt | Moment::Ends) {
            self.heard.moment = Moment::Other;
        }
    }

    fn record(&self) -> Record {
        let mut facts = self.heard.facts.clone();
        self.shorten(&mut facts);
        if self.new || matches!(self.heard.moment, Moment::Begins(_)) {
            if let Some(process) = Process::caller(&BETWEEN)
                && let Ok(id) = serde_json::to_value(process.id())
            {
                facts.insert(0, Fact::Process { id });
            }
            if let Some(path) = &self.heard.transcript {
                facts.push(Fact::Transcript { path: path.display().to_string() });
            }
        }
        Record { at: clock::wall_ms(), event: self.heard.event.clone(), facts, read: Vec::new() }
    }

    /// Paths inside the project are recorded relative to it, because the space to show them is bounded.
    fn shorten(&self, facts: &mut [Fact]) {
        for fact in facts {
            if let Fact::FileChanged { path, .. } | Fact::PlanFile { path } = fact
                && let Ok(inside) = Path::new(path.as_str()).strip_prefix(&self.heard.dir)
            {
                *path = inside.display().to_string();
            }
        }
    }

    /// Whether this event allows giving the session a text.
    fn chance(&self) -> Option<Chance<'_>> {
        match &self.heard.moment {
            Moment::Begins(how) => Some(Chance::Begins(*how)),
            Moment::Prompt => {
                let prompt = self.heard.facts.iter().find_map(|fact| match fact {
                    Fact::Prompt { text } => Some(text.as_str()),
                    _ => None,
                });
                Some(Chance::Prompt(prompt.unwrap_or_default()))
            }
            Moment::Tool if self.program.compaction_only_in_transcript() => Some(Chance::Tool),
            Moment::Request(_) => Some(Chance::Tool),
            Moment::Tool | Moment::Batch | Moment::Ends | Moment::Other => None,
        }
    }

    /// Records an event at which the session can get no text; at the end of a batch the state's file is written.
    fn keep(&self, mut record: Record) -> io::Result<()> {
        let batch = matches!(self.heard.moment, Moment::Batch | Moment::Ends);
        if record.facts.is_empty() && !batch {
            return Ok(());
        }
        let mut journal = Journal::open(&self.dir)?;
        if batch {
            // Only one process at a time reads the transcript, so that its contents are counted once.
            journal.lock();
            let session = journal.session()?;
            record.facts.retain(|fact| session.is_news(fact));
            record.read = self.read_on(&session).facts;
        }
        let (before, after) = journal.append(&record)?;
        if batch || before / WRITE_EVERY_BYTES != after / WRITE_EVERY_BYTES {
            self.write_state(&journal)?;
        }
        Ok(())
    }

    /// Gives the session its recovery text if it is time, then writes the record. In this order: a text that arrives twice
    /// costs little, one that is recorded and never arrived costs the thread.
    fn tell(&self, mut record: Record, chance: &Chance<'_>, out: &mut dyn Write) -> io::Result<()> {
        let journal = Journal::open(&self.dir);
        let mut session = Session::default();
        if let Ok(journal) = &journal {
            journal.lock();
            session = journal.session().unwrap_or_default();
        }
        let died = self.inherited(&session, chance);
        let mut missing = false;
        if let Some(died) = &died {
            record.facts.push(Fact::Inherits { session: died.key.clone() });
            record.read = self.rest_of(died);
            session.inherit(&died.session);
        } else {
            let reading = self.read_on(&session);
            missing = reading.missing;
            record.facts.retain(|fact| session.is_news(fact));
            record.read = reading.facts;
        }
        let said = match self.when(&session, &record, chance, died.is_some(), missing) {
            Some(telling) => self.say(&session, &mut record, telling, died.as_ref(), out),
            None => Ok(()),
        };
        self.put_down(journal?, &record)?;
        said
    }

    /// Records an event at which the session could have got a text.
    fn put_down(&self, mut journal: Journal, record: &Record) -> io::Result<()> {
        let often = matches!(self.heard.moment, Moment::Tool | Moment::Request(_));
        if often && record.facts.is_empty() && record.read.is_empty() {
            return Ok(());
        }
        let (before, after) = journal.append(record)?;
        if often && before / WRITE_EVERY_BYTES == after / WRITE_EVERY_BYTES {
            return Ok(());
        }
        self.write_state(&journal)
    }

    fn when(
        &self,
        before: &Session,
        record: &Record,
        chance: &Chance<'_>,
        inherits: bool,
        missing: bool,
    ) -> Option<Telling> {
        let mut after = before.clone();
        after.add(record);
        telling(&after, chance, inherits, missing)
    }

    fn say(
        &self,
        before: &Session,
        record: &mut Record,
        telling: Telling,
        died: Option<&Known>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut session = before.clone();
        session.add(record);
        let launched = died.is_some_and(|died| (self.var)(LAUNCHED_VARIABLE).as_deref() == Some(died.key.as_str()));
        let whom = Whom {
            program: self.program,
            session: &session,
            key: died.map_or(self.key.as_str(), |died| died.key.as_str()),
            session_dir: died.map_or(self.dir.as_path(), |died| died.dir.as_path()),
            dir: &self.heard.dir,
            state_dir: &self.places.state_dir,
            room: self.program.room(),
        };
        let answer = (!launched).then(|| compose(&whom, telling, self.var));
        if let Some(answer) = answer.and_then(|text| self.program.answer(&self.heard, &text)) {
            out.write_all(answer.as_bytes())?;
            out.flush()?;
        } else if !launched {
            return Ok(());
        }
        // Text that is part of a single request does not stay.
        if matches!(self.heard.moment, Moment::Request(_)) {
            return Ok(());
        }
        record.facts.push(Fact::ToldAgain { compaction: telling.compaction, full: telling.full });
        Ok(())
    }

    /// The session that a new one continues: the one that it was launched for, else the last that died with work open.
    fn inherited(&self, session: &Session, chance: &Chance<'_>) -> Option<Known> {
        let begins = matches!(chance, Chance::Begins(Beginning::New)) && session.records == 0;
        if !begins {
            return None;
        }
        let launched = (self.var)(LAUNCHED_VARIABLE).and_then(|key| sessions::launched(&self.places.guard_dir, &key));
        launched.or_else(|| sessions::died(&self.places.guard_dir, &self.key, clock::wall_ms()))
    }

    /// The part of a dead session's transcript that has not been read yet.
    fn rest_of(&self, died: &Known) -> Vec<Fact> {
        let program = KINDS.of(died.program()).and_then(|kind| kind.about().guard_adapter);
        let path = died.session.transcript.as_ref();
        let (Some(program), Some(path)) = (program, path) else {
            return Vec::new();
        };
        let mut facts = transcript::read_on(program, Path::new(path), died.session.read_to).facts;
        self.shorten(&mut facts);
        // Its compactions and its offsets are not ours.
        let own = |fact: &Fact| !matches!(fact, Fact::Compacted { .. } | Fact::ReadTo { .. });
        facts.into_iter().filter(own).collect()
    }

    fn read_on(&self, session: &Session) -> transcript::Reading {
        let known = session.transcript.as_ref().map(PathBuf::from);
        let Some(path) = self.heard.transcript.clone().or(known) else {
            return transcript::Reading::default();
        };
        let mut reading = transcript::read_on(self.program, &path, session.read_to);
        self.shorten(&mut reading.facts);
        reading
    }

    fn write_state(&self, journal: &Journal) -> io::Result<()> {
        let session = journal.keep_sum()?;
        let text = state_file::render(&session, &self.key, &self.heard.dir.display().to_string());
        atomic::save(&self.dir, STATE_FILE, text.as_bytes())
    }
}
