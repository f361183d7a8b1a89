//! The dashboard's server: one port, the pages and an API over HTTP. It reads the store and gives orders through `acts`; it
//! keeps nothing that is not in the store, and ending it ends nothing else.
//!
//! `gate` decides who is admitted, `routes` which routes there are, `cache` what is remembered of the store, `stream` how
//! events are sent, `port` how connections are held, `room` how many. Blocking work runs on separate threads; everything
//! else is one thread.

mod answer;
mod cache;
mod flow;
mod gate;
mod orders;
mod pages;
mod port;
mod reads;
mod room;
pub(crate) mod routes;
mod stream;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::oneshot;

use self::answer::Problem;
use self::cache::RunCache;
use self::gate::{Names, Token};
use self::stream::Feed;
use crate::error::{CliError, Result};
use crate::project::Project;

/// Threads for blocking work: reads are short, and an order may wait for a coordinator for a minute.
const THREADS: usize = 32;

/// How long an order in progress may take to finish once the server is told to end.
const LAST_ORDERS: Duration = Duration::from_secs(2);

/// The settings of a server.
pub(crate) struct Wish {
    pub project: Project,
    /// The run that it shows; the newest where none is named.
    pub run: Option<String>,
    pub read_only: bool,
    /// Names besides its address under which it may be reached.
    pub allowed: Vec<String>,
}

/// A server that has its port.
pub(crate) struct Server {
    listener: TcpListener,
    web: Arc<Web>,
}

/// What every request has access to.
pub(crate) struct Web {
    cache: RunCache,
    names: Names,
    token: Token,
    port: u16,
    read_only: bool,
    feed: Feed,
}

impl Server {
    /// Binds a port. Fails when the port is in use, or a name is invalid.
    pub(crate) fn bind(address: SocketAddr, wish: &Wish) -> Result<Self> {
        let listener = TcpListener::bind(address).map_err(|error| unbound(address, &error))?;
        let bound = listener.local_addr().and_then(|bound| listener.set_nonblocking(true).map(|()| bound));
        let bound = bound.map_err(|error| unbound(address, &error))?;
        let web = Web {
            cache: RunCache::new(&wish.project, wish.run.clone()),
            names: Names::new(bound, &wish.allowed)?,
            token: Token::new()?,
            port: bound.port(),
            read_only: wish.read_only,
            feed: Feed::default(),
        };
        Ok(Self { listener, web: Arc::new(web) })
    }

    /// The address to open, including the token. `name` is the server's name, for when its address cannot be opened.
    pub(crate) fn address(&self, bound: SocketAddr, name: Option<&str>) -> String {
        let port = self.web.port;
        let host = match name.filter(|_| bound.ip().is_unspecified()) {
            Some(name) if name.rsplit_once(':').is_some() && !name.ends_with(']') => name.to_owned(),
            Some(name) => format!("{name}:{port}"),
            None => SocketAddr::new(bound.ip(), port).to_string(),
        };
        format!("http://{host}/?token={}", self.web.token.text())
    }

    /// Serves until Ctrl-C or SIGTERM.
    pub(crate) fn serve(self) -> Result<()> {
        let trouble = |error: &std::io::Error| CliError::internal("the dashboard cannot be served").because(error);
        let ended = listen_for_signals().map_err(|error| trouble(&error))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(THREADS)
            .build()
            .map_err(|error| trouble(&error))?;
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            tokio::task::spawn(Feed::watch(Arc::clone(&self.web)));
            tokio::select! {
                () = port::serve(listener, routes::router(&self.web)) => {}
                _ = ended => {}
            }
            Ok(())
        });
        runtime.shutdown_timeout(LAST_ORDERS);
        served.map_err(|error| trouble(&error))
    }
}

impl Web {
    /// Runs blocking work on a thread that may block.
    async fn reading<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<Self>) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let web = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&web)).await;
        done.unwrap_or_else(|_| {
            let problem = Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error in rekindle");
            Err(problem.hint("the command line shows the same: rekindle status"))
        })
    }
}

fn listen_for_signals() -> std::io::Result<oneshot::Receiver<()>> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let (give, take) = oneshot::channel();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        signals.forever().next();
        // The receiver may be gone; then the server has already ended.
        let _ = give.send(());
    })?;
    Ok(take)
}

fn unbound(address: SocketAddr, error: &std::io::Error) -> CliError {
    let hint = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "another program has this port; name another one, or leave --listen out for a free one"
        }
        std::io::ErrorKind::PermissionDenied => "ports below 1024 are for the system: name a higher one",
        std::io::ErrorKind::AddrNotAvailable => "this machine does not have that address: see `ip address`",
        _ => "leave --listen out for a free port on this machine",
    };
    CliError::usage(format!("cannot listen on {address}")).because(error).hint(hint)
}
