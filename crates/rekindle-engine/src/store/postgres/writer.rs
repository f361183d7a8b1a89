//! The one writer of a space: it leads, appends, and finds out what became of a write whose answer was lost.
//!
//! A lost answer leaves two possible ends of the log, and both are known: the hash chain gives the end after the batch before it
//! is sent. The database's row of the space is the judge. It is locked to be read, so a transaction of the lost connection that
//! is still under way is over by then.

use tokio_postgres::types::Type;

use super::Lease;
use super::address::Address;
use super::link::{Fault, Link};
use super::read;
use super::removed;
use super::schema;
use super::write::{self, Lead, Place};
use crate::store::{Batch, Error, Hash, Head, Receipt, RemovedLines, Row};

/// How often one append is sent: once, and once more after its first outcome was found to be that nothing was written.
const SENDS: usize = 2;

/// A batch that was sent and not answered.
struct Unsettled {
    batch: Batch,
    before: Place,
    after: Place,
}

pub(super) struct Writer {
    address: Address,
    lease: Lease,
    link: Option<Link>,
    lead: Lead,
    /// Where the log ends, as far as this writer knows.
    at: Place,
    unsettled: Option<Unsettled>,
}

/// What opening a space for writing found.
pub(super) struct Opened {
    pub(super) writer: Writer,
    pub(super) created: bool,
    /// From which version of the schema to which it was moved.
    pub(super) migrated: Option<(i64, i64)>,
}

impl Writer {
    /// Connects, migrates the schema, makes the space where there is none, and takes its lead.
    pub(super) fn open(address: &Address, space: &str, lease: Lease) -> Result<Opened, Error> {
        let mut link = Link::connect(address)?;
        schema::check_server(&mut link)?;
        let migrated = schema::migrate(&mut link, address)?;
        if migrated.is_some() {
            schema::make_text_index(&mut link);
        }
        let known = schema::space(&mut link, space)?;
        let id = known.map_or_else(|| schema::make_space(&mut link, space), Ok)?;
        let (lead, at) = lead(&mut link, id, &lease)?;
        let writer = Writer { address: address.clone(), lease, link: Some(link), lead, at, unsettled: None };
        Ok(Opened { writer, created: known.is_none(), migrated: migrated.filter(|(from, _)| *from > 0) })
    }

    pub(super) fn lead(&self) -> Lead {
        self.lead
    }

    pub(super) fn head(&self) -> Head {
        self.at.head
    }

    /// Appends a batch. When the answer is lost, says [`Error::Unreachable`] and remembers the batch: the next append first
    /// finds out whether it was written, and then writes only what is missing of its own.
    pub(super) fn append(&mut self, mut batch: Batch) -> Result<Receipt, Error> {
        if let Some(written) = self.settle()? {
            batch = rest_of(batch, &written, self.at)?;
        }
        let found = self.at.head.last_seq;
        if let Some(expected) = batch.expect_last_seq.filter(|expected| *expected != found) {
            return Err(Error::Conflict { expected, found });
        }
        if batch.is_empty() && batch.rows.is_empty() && batch.snapshot.is_none() {
            return Ok(self.at.head);
        }
        let events = write::linked(self.at.head, &batch);
        let head = events.last().map_or(self.at.head, |last| Head { last_seq: last.seq, last_hash: last.hash });
        let after = Place { head, last_line: self.at.last_line + batch.lines.len() as u64 };
        for _ in 0..SENDS {
            let (lead, at) = (self.lead, self.at);
            match self.call(|link| write::append(link, lead, at, &events, &batch)) {
                Ok(()) => {
                    self.at = after;
                    return Ok(head);
                }
                Err(Fault::Lost(_)) => {
                    self.unsettled = Some(Unsettled { batch: batch.clone(), before: at, after });
                    if self.settle()?.is_some() {
                        return Ok(head);
                    }
                }
                Err(Fault::LeaseOver) => self.renew()?,
                Err(Fault::Elsewhere) => return Err(self.rewound()),
                Err(Fault::Refused(error)) => return Err(error),
            }
        }
        Err(Error::Unreachable(format!("{} does not keep a connection long enough for a write", self.address)))
    }

    pub(super) fn replace_rows(&mut self, rows: &[Row]) -> Result<(), Error> {
        self.again(|link, lead| write::replace_rows(link, lead, rows))
    }

    /// Removes some lines of an attempt. Sent again after a lost answer it removes the next ones: nothing is counted twice that
    /// matters, and what is removed is on record either way.
    pub(super) fn remove_lines(&mut self, attempt: u64) -> Result<RemovedLines, Error> {
        self.again(|link, lead| removed::step(link, lead, attempt))
    }

    pub(super) fn renew(&mut self) -> Result<(), Error> {
        let lease_ms = self.lease.millis();
        self.again(|link, lead| renew(link, lead, lease_ms))
    }

    /// Gives leadership up. Failing to only makes the next one wait for the end of the lease.
    pub(super) fn resign(&mut self) {
        let lead = self.lead;
        if let Some(link) = &mut self.link {
            let arguments = [(&lead.space as _, Type::INT8), (&lead.epoch as _, Type::INT8)];
            drop(link.query("SELECT rekindle.resign($1, $2)", &arguments, 0));
        }
    }

    /// A write that may be made twice.
    fn again<T>(&mut self, mut ask: impl FnMut(&mut Link, Lead) -> Result<T, Fault>) -> Result<T, Error> {
        let lead = self.lead;
        let first = self.call(|link| ask(link, lead));
        let second = match first {
            Err(Fault::Lost(_)) => self.call(|link| ask(link, lead)),
            Err(Fault::LeaseOver) => {
                let lease_ms = self.lease.millis();
                self.call(|link| renew(link, lead, lease_ms)).map_err(Fault::error)?;
                self.call(|link| ask(link, lead))
            }
            other => other,
        };
        second.map_err(Fault::error)
    }

    /// Asks over the standing connection, or a new one; a connection that gave no answer is closed.
    fn call<T>(&mut self, ask: impl FnOnce(&mut Link) -> Result<T, Fault>) -> Result<T, Fault> {
        let link = match self.link.take().filter(|link| !link.is_closed()) {
            Some(link) => self.link.insert(link),
            // Nothing was sent yet, so nothing is unknown.
            None => self.link.insert(Link::connect(&self.address).map_err(Fault::Refused)?),
        };
        let answer = ask(link);
        if matches!(answer, Err(Fault::Lost(_))) {
            self.link = None;
        }
        answer
    }

    /// Finds out what became of a batch without an answer. Returns it if it was written.
    fn settle(&mut self) -> Result<Option<Batch>, Error> {
        let Some(Unsettled { before, after, .. }) = &self.unsettled else { return Ok(None) };
        let (before, after) = (*before, *after);
        let lead = self.lead;
        let found = match self.call(|link| place(link, lead)) {
            Err(Fault::LeaseOver) => {
                self.renew()?;
                self.call(|link| place(link, lead)).map_err(Fault::error)?
            }
            other => other.map_err(Fault::error)?,
        };
        let batch = self.unsettled.take().map(|unsettled| unsettled.batch);
        match found {
            // A batch of rows alone moves nothing: it is sent again, which changes nothing if it was written.
            _ if found == before => {
                self.at = before;
                Ok(None)
            }
            _ if found == after => {
                self.at = after;
                Ok(batch)
            }
            _ => Err(Error::Rewound { known: before.head.last_seq, found: found.head.last_seq }),
        }
    }

    /// The log ends elsewhere although nobody but this writer may have moved it.
    fn rewound(&mut self) -> Error {
        let (lead, known) = (self.lead, self.at.head.last_seq);
        match self.call(|link| place(link, lead)) {
            Ok(found) => Error::Rewound { known, found: found.head.last_seq },
            Err(fault) => fault.error(),
        }
    }
}

/// What is left of a batch to write when its beginning was written already. The driver adds to what it could not write, so the
/// written batch must be how the new one begins.
fn rest_of(mut batch: Batch, written: &Batch, at: Place) -> Result<Batch, Error> {
    let begins = batch.events.starts_with(&written.events) && batch.lines.starts_with(&written.lines);
    if !begins {
        let expected = batch.expect_last_seq.unwrap_or_default();
        return Err(Error::Conflict { expected, found: at.head.last_seq });
    }
    batch.events.drain(..written.events.len());
    batch.lines.drain(..written.lines.len());
    batch.expect_last_seq = batch.expect_last_seq.map(|_| at.head.last_seq);
    Ok(batch)
}

/// Takes leadership of a space.
fn lead(link: &mut Link, space: i64, lease: &Lease) -> Result<(Lead, Place), Error> {
    let lease_ms = lease.millis();
    let arguments = [(&space as _, Type::INT8), (&lease.holder as _, Type::TEXT), (&lease_ms as _, Type::INT8)];
    let sql = "SELECT epoch, head_seq, head_hash, last_line FROM rekindle.lead($1, $2, $3)";
    let rows = link.query(sql, &arguments, 0).map_err(Fault::error)?;
    let row = rows.first().ok_or_else(|| Error::Database("leadership was not answered".into()))?;
    let place = Place { head: read::head_of(row.get(1), row.get(2))?, last_line: row.get::<_, i64>(3).cast_unsigned() };
    Ok((Lead { space, epoch: row.get(0) }, place))
}

/// Extends a lease.
pub(super) fn renew(link: &mut Link, lead: Lead, lease_ms: i64) -> Result<(), Fault> {
    let arguments = [(&lead.space as _, Type::INT8), (&lead.epoch as _, Type::INT8), (&lease_ms as _, Type::INT8)];
    link.query("SELECT rekindle.renew($1, $2, $3)", &arguments, 0).map(drop)
}

/// Where the log ends, once no other transaction writes to it.
fn place(link: &mut Link, lead: Lead) -> Result<Place, Fault> {
    let arguments = [(&lead.space as _, Type::INT8), (&lead.epoch as _, Type::INT8)];
    let sql = "SELECT head_seq, head_hash, last_line FROM rekindle.fence($1, $2)";
    let rows = link.query(sql, &arguments, 0)?;
    let row = rows.first().ok_or_else(|| Fault::Lost("no place was answered".into()))?;
    let hash: Vec<u8> = row.get(1);
    let last_hash = Hash::from_slice(&hash).ok_or_else(|| Fault::Lost("a hash of another length".into()))?;
    let head = Head { last_seq: row.get::<_, i64>(0).cast_unsigned(), last_hash };
    Ok(Place { head, last_line: row.get::<_, i64>(2).cast_unsigned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::NewEvent;

    fn event(kind: &str) -> NewEvent {
        NewEvent {
            time_ms: 0,
            run: "r".into(),
            kind: kind.into(),
            agent: None,
            task: None,
            epoch: None,
            details: "{}".into(),
        }
    }

    #[test]
    fn what_was_written_is_not_written_again() {
        let at = Place { head: Head { last_seq: 5, ..Head::default() }, last_line: 0 };
        let written = Batch { events: vec![event("a")], ..Batch::default() };
        let grown = Batch { expect_last_seq: Some(4), events: vec![event("a"), event("b")], ..Batch::default() };
        let rest = rest_of(grown, &written, at).expect("it begins with what was written");
        assert_eq!((rest.events, rest.expect_last_seq), (vec![event("b")], Some(5)));
        let other = Batch { expect_last_seq: Some(4), events: vec![event("c")], ..Batch::default() };
        assert_eq!(rest_of(other, &written, at), Err(Error::Conflict { expected: 4, found: 5 }));
    }
}
