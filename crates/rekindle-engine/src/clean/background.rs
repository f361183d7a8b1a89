//! Cleaning beside a run: a thread of the coordinator removes the log lines of what is on record as removed, and, with
//! `retention.auto`, what has become old. The driver only writes the record, as it does with a person's order.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rekindle_core::event::Cleaned;
use rekindle_core::input::Order;
use rekindle_core::retention::{self, Part, Rules};

use super::survey::{self, CLEANED, Survey};
use super::{Hand, Place, carry_out, plan, reserve};
use crate::clock;
use crate::control::Called;
use crate::control::wire::{Request, Response};
use crate::store::{self, RemovedLines, Store, Table};
use crate::world::Message;

/// Between two checks for what a person has removed meanwhile.
const LOOK: Duration = Duration::from_secs(5);

/// Longest wait for a record: the driver answers after its next commit, and a full disk may delay that.
const RECORD: Duration = Duration::from_secs(30);

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub struct Background {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts the thread; with `rules` it also removes what they allow. Without a thread the next coordinator does it.
    pub fn start(store: &Arc<dyn Store>, place: Place, rules: Option<Rules>, messages: SyncSender<Message>) -> Self {
        let (stop, stopped) = sync_channel(1);
        let worker = Worker { store: Arc::clone(store), place, rules, messages, stopped, seen: 0, stops: false };
        let thread = std::thread::Builder::new().name("clean".to_owned()).spawn(move || worker.work());
        Self { stop: Some(stop), thread: thread.ok() }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // An error can only mean a panic, and nothing depends on the thread's work.
            drop(thread.join());
        }
    }
}

struct Worker {
    store: Arc<dyn Store>,
    place: Place,
    rules: Option<Rules>,
    messages: SyncSender<Message>,
    stopped: Receiver<()>,
    /// The last record whose lines have been removed.
    seen: u64,
    stops: bool,
}

impl Worker {
    fn work(mut self) {
        // What the store refuses now is left to the next coordinator: nothing here is urgent.
        let _next_time = self.remove_recorded();
        let _next_time = self.remove_old();
        reserve::give_back(&self.place.state_dir);
        while !self.stops && self.stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            let _next_time = self.remove_recorded();
        }
    }

    /// Removes the lines of every run whose output is on record as removed.
    fn remove_recorded(&mut self) -> Result<(), store::Error> {
        let events = self.store.events_of(&[CLEANED], self.seen, usize::MAX)?;
        let Some(last) = events.last().map(|event| event.seq) else { return Ok(()) };
        let runs: BTreeSet<String> = survey::cleaned(&events)
            .filter(|cleaned| cleaned.parts.contains(&Part::Output))
            .filter_map(|cleaned| Some(cleaned.run?.to_string()))
            .collect();
        for run in runs {
            for row in self.store.rows(Table::Attempt, Some(&run))? {
                let Ok(attempt) = row.key.parse() else { continue };
                while self.store.remove_lines(attempt)?.lines > 0 {
                    if !self.goes_on() {
                        return Ok(());
                    }
                }
            }
        }
        self.seen = last;
        Ok(())
    }

    fn remove_old(&mut self) -> Result<(), store::Error> {
        let Some(rules) = self.rules else { return Ok(()) };
        let now = clock::wall();
        if !self.may_be_due(&rules)? {
            return Ok(());
        }
        let survey = Survey::of(&self.place, &*self.store, true, &BTreeSet::new())?;
        let plan = plan(&survey, &rules, now);
        carry_out(&survey, &plan, self);
        Ok(())
    }

    /// Whether the rows alone show that something might be removed; most coordinators check no further.
    fn may_be_due(&self, rules: &Rules) -> Result<bool, store::Error> {
        let runs = survey::runs(&*self.store)?;
        let found: Vec<retention::Found> = (0..runs.len()).map(|nth| survey::found(&runs, nth, true)).collect();
        let by_age = retention::decide(rules, clock::wall(), &found, 0).iter().any(|verdict| verdict.output.is_none());
        // Earlier runs may be too large, or have left worktrees.
        let others = found.iter().filter(|found| found.over_at.is_some()).count();
        let left = std::fs::read_dir(self.place.state_dir.join("worktrees")).is_ok_and(|mut all| all.next().is_some());
        // The run in flight is the newest of those that keep everything.
        let too_many = found.len() > rules.keep_runs && rules.max_bytes.is_some();
        Ok(by_age || others > 0 && (too_many || left))
    }
}

impl Hand for Worker {
    fn record(&mut self, cleaned: Cleaned) -> Result<(), String> {
        let (answer, answered) = sync_channel(1);
        let reply = Box::new(move |response| drop(answer.try_send(response)));
        let call = Request::Order(Order::Clean(cleaned));
        let called = Called { token: None, ancestors: Vec::new(), call, reply };
        self.messages.send(Message::Called(called)).map_err(|_| "the coordinator is leaving".to_owned())?;
        match answered.recv_timeout(RECORD) {
            Ok(Response::Accepted | Response::Already) => Ok(()),
            Ok(Response::Refused { reason }) => Err(reason),
            Ok(_) => Err("the answer was not understood".to_owned()),
            Err(_) => Err("the coordinator did not answer".to_owned()),
        }
    }

    fn remove_lines(&mut self, attempt: u64) -> Result<RemovedLines, String> {
        self.store.remove_lines(attempt).map_err(|error| error.to_string())
    }

    fn goes_on(&mut self) -> bool {
        self.stops |= self.stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Disconnected);
        !self.stops
    }
}
