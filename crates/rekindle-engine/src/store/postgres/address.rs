//! Where a database is and how it is reached: reads `postgres://…` addresses and decides about encryption. A password is never
//! printed; [`Address`] shows itself without one.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::passfile::{self, Wanted};
use crate::store::Error;

/// How long a connection may take to come up.
const CONNECT: Duration = Duration::from_secs(5);

/// How long data may stay unacknowledged before the system gives a connection up.
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);

/// What every session runs with. A commit is on disk when it is answered, whatever the server's default; a lock is given up
/// before the client's own deadline, so that the answer is known.
const SESSION: &str = "-c synchronous_commit=on -c lock_timeout=4000 -c idle_in_transaction_session_timeout=60000 \
                       -c client_min_messages=warning -c search_path=rekindle -c bytea_output=hex -c timezone=UTC";

/// The name under which sessions show up in `pg_stat_activity`.
const APPLICATION: &str = "rekindle";

/// The port of an address that names none.
const POSTGRES_PORT: u16 = 5432;

/// The prefixes of an address.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// The parameter that names a file with root certificates; ours to read, the library does not know it.
const ROOT_CERTIFICATES: &str = "sslrootcert";

/// A database and how to reach it.
#[derive(Clone)]
pub struct Address {
    config: Config,
    tls: Option<Arc<ClientConfig>>,
    shown: String,
    password_in_url: bool,
}

impl Address {
    /// Whether a text is an address of a database at all.
    pub fn is_one(text: &str) -> bool {
        SCHEMES.iter().any(|scheme| text.starts_with(scheme))
    }

    /// Reads an address. Without `insecure`, a database on another machine is reached with TLS and a verified name only.
    pub fn parse(text: &str, insecure: bool) -> Result<Self, Error> {
        let refuse = |why: String| Error::Address { address: shown(text), why };
        if !Self::is_one(text) {
            return Err(refuse("it must begin with postgres://".into()));
        }
        let (url, roots) = take_parameter(text, ROOT_CERTIFICATES);
        let mut config = Config::from_str(&url).map_err(|error| refuse(plain(&error)))?;
        if config.get_hosts().is_empty() {
            return Err(refuse("it names no host".into()));
        }
        if config.get_dbname().is_none() {
            return Err(refuse("it names no database; write postgres://host/DATABASE".into()));
        }
        let options = [SESSION, config.get_options().unwrap_or_default()].join(" ");
        config
            .application_name(APPLICATION)
            .options(options.trim_end())
            .connect_timeout(CONNECT)
            .tcp_user_timeout(UNACKNOWLEDGED)
            .keepalives_idle(Duration::from_secs(10))
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        let near = config.get_hosts().iter().all(is_near);
        let wants_tls = matches!(config.get_ssl_mode(), SslMode::Require);
        let tls = if wants_tls || (!near && !insecure) {
            config.ssl_mode(SslMode::Require);
            Some(Arc::new(client_config(roots.as_deref()).map_err(refuse)?))
        } else {
            config.ssl_mode(SslMode::Disable);
            None
        };
        let password_in_url = config.get_password().is_some();
        if let Some(password) = passwordless(&config).and_then(|wanted| passfile::password(&wanted)) {
            config.password(password);
        }
        Ok(Self { config, tls, shown: shown(text), password_in_url })
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn tls(&self) -> Option<&Arc<ClientConfig>> {
        self.tls.as_ref()
    }

    /// Whether the address carries a password, which every process list and shell history then shows.
    pub fn has_password(&self) -> bool {
        self.password_in_url
    }

    /// The same database for reading only, which a standby serves too.
    pub(super) fn for_reading(&self) -> Self {
        let mut reading = self.clone();
        reading.config.target_session_attrs(TargetSessionAttrs::Any);
        reading
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// What to look up a password for, where the address has none. A list of hosts shares the first one's.
fn passwordless(config: &Config) -> Option<Wanted<'_>> {
    let host = match config.get_hosts().first()? {
        Host::Tcp(name) => name.as_str(),
        #[cfg(unix)]
        Host::Unix(_) => "localhost",
    };
    let port = config.get_ports().first().copied().unwrap_or(POSTGRES_PORT);
    let (database, user) = (config.get_dbname()?, config.get_user()?);
    config.get_password().is_none().then_some(Wanted { host, port, database, user })
}

/// An address without its password and parameters.
pub(in crate::store) fn shown(text: &str) -> String {
    let bare = text.split('?').next().unwrap_or_default();
    match (bare.find("://"), bare.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => {
            let user = bare[scheme + 3..at].split(':').next().unwrap_or_default();
            format!("{}{user}{}", &bare[..scheme + 3], &bare[at..])
        }
        _ => bare.to_owned(),
    }
}

/// Takes one parameter out of an address.
fn take_parameter(text: &str, name: &str) -> (String, Option<PathBuf>) {
    let Some((before, parameters)) = text.split_once('?') else { return (text.to_owned(), None) };
    let (mut value, mut kept) = (None, Vec::new());
    for parameter in parameters.split('&') {
        match parameter.split_once('=') {
            Some((found, path)) if found == name => value = Some(PathBuf::from(path)),
            _ => kept.push(parameter),
        }
    }
    let url = if kept.is_empty() { before.to_owned() } else { format!("{before}?{}", kept.join("&")) };
    (url, value)
}

/// Whether nobody in between can read what is sent to a host.
fn is_near(host: &Host) -> bool {
    match host {
        #[cfg(unix)]
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback()),
    }
}

/// Verifies the server's certificate and name against the given roots, or the built-in ones.
fn client_config(roots: Option<&std::path::Path>) -> Result<ClientConfig, String> {
    let mut trusted = RootCertStore::empty();
    match roots {
        Some(path) => {
            let unreadable = |error: &dyn fmt::Display| format!("cannot read {}: {error}", path.display());
            let found = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))?;
            for certificate in found {
                trusted.add(certificate.map_err(|error| unreadable(&error))?).map_err(|error| unreadable(&error))?;
            }
            if trusted.is_empty() {
                return Err(format!("{} holds no certificate", path.display()));
            }
        }
        None => trusted.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = versions.map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(trusted).with_no_client_auth())
}

/// An error of the library with its cause, on one line.
pub(super) fn plain(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    let cause = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    format!("{error}{}", if cause.contains(&error.to_string()) { String::new() } else { cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let shown = |text: &str| Address::parse(text, true).expect("an address").to_string();
        assert_eq!(
            shown("postgres://me:s3cr3t@db.example/rekindle?connect_timeout=3"),
            "postgres://me@db.example/rekindle"
        );
        assert_eq!(shown("postgresql://db/rekindle"), "postgresql://db/rekindle");
        let debug = format!("{:?}", Address::parse("postgres://me:s3cr3t@db/x", true));
        assert!(!debug.contains("s3cr3t"), "{debug}");
    }

    #[test]
    fn another_machine_is_reached_with_tls_only() {
        let tls = |text: &str, insecure| Address::parse(text, insecure).expect("an address").tls().is_some();
        assert!(tls("postgres://db.example/rekindle", false));
        assert!(tls("postgres://db.example/rekindle?sslmode=disable", false), "an address alone cannot turn it off");
        assert!(!tls("postgres://db.example/rekindle", true));
        assert!(!tls("postgres://127.0.0.1/rekindle", false));
        assert!(!tls("postgres://localhost/rekindle", false));
        assert!(tls("postgres://localhost/rekindle?sslmode=require", false));
        assert!(tls("postgres://localhost,db.example/rekindle", false), "one host elsewhere is enough");
    }

    #[test]
    fn what_is_no_address_is_refused_with_a_reason() {
        let why = |text: &str| match Address::parse(text, false) {
            Err(Error::Address { why, .. }) => why,
            other => panic!("{other:?}"),
        };
        assert!(why("mysql://db/x").contains("postgres://"));
        assert!(why("postgres:///x").contains("no host"));
        assert!(why("postgres://db").contains("no database"));
        assert!(why("postgres://db/x?unknown=1").contains("unknown"));
        assert!(why("postgres://db/x?sslrootcert=/does/not/exist").contains("/does/not/exist"));
    }
}
