//! One connection to the database, used from ordinary threads. Every call has a deadline of its own.
//!
//! At the deadline the socket is closed and the call is never cancelled: a server that is cancelled while it waits for its
//! standby answers that it committed. What became of a write whose answer did not arrive is then unknown, and the caller asks the
//! database after it has connected again.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{Address, plain};
use crate::store::Error;

/// Longest wait for an answer of ordinary size.
const DEADLINE: Duration = Duration::from_secs(5);

/// Bytes sent or read within one more second: a slow line must not fail a large state for ever.
const BYTES_PER_SECOND: usize = 4 * 1024 * 1024;

/// Another coordinator has leadership: the epoch is over.
const FENCED: &str = "RK001";
/// Another coordinator has leadership, and its lease is not over.
const LED: &str = "RK002";
/// The lease is over, and nobody else has leadership yet.
const LEASE_OVER: &str = "RK003";
/// The log does not end where the caller believed.
const ELSEWHERE: &str = "RK004";

/// A value with its type, as one argument of a statement.
pub(super) type Argument<'a> = (&'a (dyn ToSql + Sync), Type);

/// Why a call came to nothing.
#[derive(Debug)]
pub(super) enum Fault {
    /// No answer: whether a write was made is unknown.
    Lost(String),
    /// Refused; nothing was written.
    Refused(Error),
    /// Refused: the log ends elsewhere.
    Elsewhere,
    /// Refused: the lease is over. It can be renewed as long as nobody else has taken leadership.
    LeaseOver,
}

impl Fault {
    /// As an error, where nothing was written.
    pub(super) fn error(self) -> Error {
        match self {
            Fault::Lost(why) => Error::Unreachable(why),
            Fault::Refused(error) => error,
            Fault::Elsewhere => Error::Database("the log ends elsewhere".into()),
            Fault::LeaseOver => Error::Fenced("the lease is over".into()),
        }
    }
}

pub(super) struct Link {
    client: Client,
    /// Drives the connection while a call is made, and ends it when dropped.
    runtime: Runtime,
}

impl Link {
    pub(super) fn connect(address: &Address) -> Result<Link, Error> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::Unreachable(format!("cannot start a connection: {error}")))?;
        let client = runtime.block_on(async {
            let up = async {
                match address.tls() {
                    Some(tls) => {
                        let tls = MakeRustlsConnect::new(tls.as_ref().clone());
                        let (client, connection) = address.config().connect(tls).await?;
                        // Its error reaches every call that waits for it.
                        tokio::spawn(async { drop(connection.await) });
                        Ok(client)
                    }
                    None => {
                        let (client, connection) = address.config().connect(NoTls).await?;
                        tokio::spawn(async { drop(connection.await) });
                        Ok(client)
                    }
                }
            };
            match tokio::time::timeout(DEADLINE, up).await {
                Ok(connected) => connected.map_err(|error| connecting(address, &error)),
                Err(_) => Err(Error::Unreachable(format!("{address} does not answer"))),
            }
        })?;
        Ok(Link { client, runtime })
    }

    /// Whether the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Runs one statement and returns its rows. `bytes` is the size of what is sent or expected, for the deadline.
    pub(super) fn query(&mut self, sql: &str, arguments: &[Argument<'_>], bytes: usize) -> Result<Vec<Row>, Fault> {
        let typed: Vec<(&(dyn ToSql + Sync), Type)> = arguments.to_vec();
        self.wait(bytes, |client| async move { client.query_typed(sql, &typed).await })
    }

    /// Runs statements that take no argument, in one transaction.
    pub(super) fn batch(&mut self, sql: &str) -> Result<(), Fault> {
        self.wait(0, |client| async move { client.batch_execute(sql).await })
    }

    fn wait<'a, T, F>(&'a mut self, bytes: usize, call: impl FnOnce(&'a Client) -> F) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        let deadline = DEADLINE + Duration::from_secs((bytes / BYTES_PER_SECOND) as u64);
        let answer = call(&self.client);
        match self.runtime.block_on(async { tokio::time::timeout(deadline, answer).await }) {
            Ok(answer) => answer.map_err(|error| fault(&error)),
            Err(_) => Err(Fault::Lost(format!("no answer within {} seconds", deadline.as_secs()))),
        }
    }
}

/// Why no connection came up.
fn connecting(address: &Address, error: &tokio_postgres::Error) -> Error {
    let why = format!("{address}: {}", plain(error));
    match error.code() {
        Some(&SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => Error::Denied(why),
        Some(&SqlState::INVALID_CATALOG_NAME | &SqlState::UNDEFINED_OBJECT) => Error::Denied(why),
        _ if why.contains("read-write") || why.contains("target_session_attrs") => {
            Error::Unreachable(format!("{address} has no server that takes writes (a standby, or read-only)"))
        }
        _ => Error::Unreachable(why),
    }
}

/// What the database's answer means. Without a code the connection failed, and nobody knows how far the call came.
fn fault(error: &tokio_postgres::Error) -> Fault {
    let Some(found) = error.as_db_error() else {
        // An argument that cannot be sent never left this process; everything else is the connection.
        return Fault::Lost(plain(error));
    };
    let why = found.message().to_owned();
    let code = found.code();
    match code.code() {
        FENCED => return Fault::Refused(Error::Fenced(why)),
        LED => return Fault::Refused(Error::Led(why)),
        LEASE_OVER => return Fault::LeaseOver,
        ELSEWHERE => return Fault::Elsewhere,
        _ => {}
    }
    let class = &code.code()[..2];
    match class {
        // Connections that the server ends, for an operator or a crash, may end after the commit.
        "08" | "57" => Fault::Lost(why),
        "53" if *code == SqlState::DISK_FULL => Fault::Refused(Error::Full(why)),
        // No memory, no connection, no lock in time, a deadlock, a conflict with recovery: trying again may help.
        "53" | "55" | "40" => Fault::Refused(Error::Busy(why)),
        "58" => Fault::Refused(Error::Io(why)),
        "28" | "42" if *code == SqlState::INSUFFICIENT_PRIVILEGE => Fault::Refused(Error::Denied(why)),
        "25" => Fault::Refused(Error::Denied(why)),
        "XX" => Fault::Refused(Error::Corrupt(why)),
        _ => Fault::Refused(Error::Database(format!("{why} ({})", code.code()))),
    }
}
