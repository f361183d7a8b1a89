//! Where the log of a state directory is kept: in its own files, or in a space of a database that the directory names. It opens
//! either, so that nobody else has to know which it is.
//!
//! A state directory without a log of its own is also how another machine looks at a run: it names the database and holds nothing
//! else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rekindle_core::view::AttemptRow;
use rekindle_shim::atomic;
use serde::{Deserialize, Serialize};

use super::postgres::{Address, Lease};
use super::{Error, OpenReport, Options, PostgresReader, PostgresStore, Read, SqliteReader, SqliteStore, Store, Table};
use crate::state_dir::StateDir;

/// The file that names the database.
const FILE: &str = "store.json";

/// A space of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// `postgres://…`.
    pub url: String,
    /// Its name in the database.
    pub space: String,
    /// Whether a database on another machine may be reached without TLS.
    #[serde(default)]
    pub insecure: bool,
}

impl Space {
    pub fn address(&self) -> Result<Address, Error> {
        Address::parse(&self.url, self.insecure)
    }
}

/// The space that a state directory names; none where its log is in its own files.
pub fn space(dir: &Path) -> Result<Option<Space>, Error> {
    let path = dir.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::Io(format!("{}: {error}", path.display()))),
    };
    let read = serde_json::from_str(&text).map_err(|error| Error::Foreign { path, why: error.to_string() })?;
    Ok(Some(read))
}

/// Makes a state directory name a space. Refuses one that has a log already, its own or another.
pub fn set_space(dir: &StateDir, wanted: &Space) -> Result<(), Error> {
    let refuse = |why: String| Error::Address { address: wanted.url_shown(), why };
    match space(dir.path())? {
        Some(found) if found == *wanted => return Ok(()),
        Some(found) => {
            let known = format!("space {} of {}", found.space, found.url_shown());
            return Err(refuse(format!("{} belongs to {known}", dir.path().display())));
        }
        None if has_files(dir) => {
            return Err(refuse(format!("{} has a log in its own files", dir.path().display())));
        }
        None => {}
    }
    wanted.address()?;
    let text = serde_json::to_string_pretty(wanted).map_err(|error| Error::Database(error.to_string()))?;
    let unwritten = |error: io::Error| Error::Io(format!("{}: {error}", dir.path().join(FILE).display()));
    // Readable by the owner alone: it may hold a password.
    atomic::save(dir.path(), FILE, text.as_bytes()).map_err(unwritten)
}

impl Space {
    /// A short name for a directory of its own.
    pub fn mark(&self) -> String {
        blake3::hash(format!("{}\n{}", self.url, self.space).as_bytes()).to_hex()[..16].to_owned()
    }

    /// The address without a password, also where it is none.
    fn url_shown(&self) -> String {
        self.address().map_or_else(|_| super::postgres::shown(&self.url), |address| address.to_string())
    }
}

/// Whether the database answers; that it has no such space yet is fine.
pub fn probe(wanted: &Space) -> Result<(), Error> {
    match PostgresReader::open(&wanted.address()?, &wanted.space) {
        Ok(_) | Err(Error::NoSpace { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a state directory has a log, or what is left of one, in its own files.
fn has_files(dir: &StateDir) -> bool {
    [dir.database(), dir.shadow(), dir.backups()].iter().any(|path| path.try_exists().unwrap_or(true))
}

/// Whether there can be anything to read: nothing is asked of a database, which may be away.
pub fn may_have_log(dir: &StateDir) -> bool {
    !matches!(space(dir.path()), Ok(None)) || has_files(dir)
}

/// Opens the log for its one writer, making, repairing or migrating it as needed. The caller holds the coordinator's lock.
pub fn open(dir: &StateDir, options: Options) -> Result<(Arc<dyn Store>, OpenReport), Error> {
    match space(dir.path())? {
        None => {
            let (store, report) = SqliteStore::open(dir, options)?;
            Ok((Arc::new(store), report))
        }
        Some(space) => {
            let (address, holder) = (space.address()?, holder(dir));
            refuse_others_agents(&address, &space.space, &holder)?;
            let lease = Lease { holder, length: Lease::USUAL };
            let (store, report) = PostgresStore::open(&address, &space.space, lease)?;
            Ok((Arc::new(store), report))
        }
    }
}

/// Refuses to take over a run whose agents another machine holds: from here they would seem to be gone, and be replaced while
/// they work.
fn refuse_others_agents(address: &Address, space: &str, holder: &str) -> Result<(), Error> {
    let reader = match PostgresReader::open(address, space) {
        Ok(reader) => reader,
        Err(Error::NoSpace { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    let Some(other) = reader.last_leader()?.filter(|last| last != holder) else { return Ok(()) };
    let rows = reader.rows(Table::Attempt, None)?;
    let held = rows
        .iter()
        .filter(|row| serde_json::from_str(&row.json).map_or(true, |row: AttemptRow| row.ended_at.is_none()));
    match held.count() as u64 {
        0 => Ok(()),
        agents => Err(Error::AgentsElsewhere { holder: other, agents }),
    }
}

/// The coordinator on another machine that drives the run of this directory now, if one does.
pub fn led_elsewhere(dir: &StateDir) -> Result<Option<String>, Error> {
    if space(dir.path())?.is_none() {
        return Ok(None);
    }
    let leader = reader(dir)?.map_or(Ok(None), |reader| reader.leader())?;
    Ok(leader.filter(|leader| *leader != holder(dir)))
}

/// Opens the log for reading; `None` where there is none yet. Changes nothing, repairs nothing.
pub fn reader(dir: &StateDir) -> Result<Option<Box<dyn Read>>, Error> {
    match space(dir.path())? {
        Some(space) => match PostgresReader::open(&space.address()?, &space.space) {
            Ok(reader) => Ok(Some(Box::new(reader))),
            Err(Error::NoSpace { .. }) => Ok(None),
            Err(error) => Err(error),
        },
        // The database is created after the directory: until then there is no log.
        None => match dir.database().try_exists() {
            Ok(false) => Ok(None),
            _ => Ok(Some(Box::new(SqliteReader::open(dir)?))),
        },
    }
}

/// Names the holder of a lease: this host and this state directory, whose lock the caller holds. The directory's secret tells it
/// from one of the same path on another host of the same name, such as a container.
fn holder(dir: &StateDir) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mark =
        dir.secret().map_or_else(|_| "?".to_owned(), |secret| blake3::hash(secret.bytes()).to_hex()[..8].to_owned());
    format!("{host}:{} ({mark})", shown_path(dir.path()).display())
}

fn shown_path(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> (tempfile::TempDir, StateDir) {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let dir = StateDir::open_or_create(&parent.path().join("state")).expect("a state directory");
        (parent, dir)
    }

    fn wanted(space: &str) -> Space {
        Space { url: "postgres://me:s3cr3t@127.0.0.1:1/x".into(), space: space.into(), insecure: false }
    }

    #[test]
    fn a_directory_names_one_space_for_good() {
        let (_parent, dir) = state();
        assert_eq!(space(dir.path()), Ok(None));
        set_space(&dir, &wanted("one")).expect("it has no log yet");
        set_space(&dir, &wanted("one")).expect("the same again");
        assert_eq!(space(dir.path()), Ok(Some(wanted("one"))));
        let error = set_space(&dir, &wanted("two")).expect_err("another one").to_string();
        assert!(error.contains("space one of postgres://me@127.0.0.1:1/x") && !error.contains("s3cr3t"), "{error}");
        assert!(matches!(reader(&dir).map(drop), Err(Error::Unreachable(_))), "what is away is not empty");
    }

    #[test]
    fn a_log_in_files_is_not_left_for_a_database() {
        let (_parent, dir) = state();
        drop(open(&dir, Options::default()).expect("a store"));
        let refused = set_space(&dir, &wanted("one"));
        assert!(matches!(&refused, Err(Error::Address { why, .. }) if why.contains("its own files")), "{refused:?}");
        assert!(reader(&dir).expect("reader").is_some());
    }
}
