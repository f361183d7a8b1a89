//! `GET /api/events`: events as they come, over one connection. An event is encoded once however many clients listen; a
//! client that falls behind reads pages of the store from its own position. Nothing is buffered for any client: a listener
//! that stalls costs a socket.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use serde_json::json;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::Web;
use super::answer::{Problem, typed};
use super::cache::{RunCache, lock};
use super::flow::Flow;
use super::routes::{Answer, Ask};
use crate::contract::event::EventJson;
use crate::error::Result;

/// Listeners at once: more than any team opens, few enough to serve.
pub(super) const LISTENERS: usize = 256;

/// Pause between two reads of the log while somebody listens, and between two messages to one listener.
const LOOK: Duration = Duration::from_millis(100);

/// Pause between two keep-alive messages on a quiet connection: less than proxies allow.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Pause after a failed read.
const TROUBLE: Duration = Duration::from_secs(1);

/// Events encoded together.
const PAGE: usize = 512;

/// Bytes of encoded events that are kept for listeners that are nearly up to date.
const KEPT_BYTES: usize = 4 * 1024 * 1024;

/// The first message to a listener: that the connection is open, and how soon to reconnect when it breaks.
const HELLO: &str = "retry: 1000\n: rekindle\n\n";

/// Encoded events after a sequence number.
#[derive(Clone)]
struct Chunk {
    /// The sequence number before its first event.
    after: u64,
    /// The sequence number of its last event.
    last: u64,
    bytes: Bytes,
}

/// What all listeners share.
pub(super) struct Feed {
    head: watch::Sender<u64>,
    places: Arc<Semaphore>,
    wake: Notify,
    ring: Mutex<VecDeque<Chunk>>,
    /// Held while a chunk is made for the ring, so that all others wait for it instead of making it too.
    making: Mutex<()>,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            head: watch::Sender::new(0),
            places: Arc::new(Semaphore::new(LISTENERS)),
            wake: Notify::new(),
            ring: Mutex::default(),
            making: Mutex::default(),
        }
    }
}

impl Feed {
    /// Polls the log as long as the server runs; while nobody listens it waits.
    pub(super) async fn watch(web: Arc<Web>) {
        loop {
            if web.feed.places.available_permits() == LISTENERS {
                web.feed.wake.notified().await;
            }
            let pause = if web.feed.look(&web).await.is_ok() { LOOK } else { TROUBLE };
            tokio::time::sleep(pause).await;
        }
    }

    async fn look(&self, web: &Arc<Web>) -> Result<u64, Problem> {
        let newest = web.reading(|web| Ok(web.cache.head()?)).await?;
        self.head.send_if_modified(|head| {
            let moved = *head != newest;
            *head = newest;
            moved
        });
        Ok(newest)
    }

    fn kept(&self, after: u64) -> Option<Chunk> {
        let ring = lock(&self.ring);
        let at = ring.partition_point(|chunk| chunk.after < after);
        ring.get(at).filter(|chunk| chunk.after == after).cloned()
    }

    /// The events of the server's own run after a sequence number, made once for all listeners at that position.
    fn shared(&self, cache: &RunCache, after: u64) -> Result<Option<Chunk>> {
        let _alone = lock(&self.making);
        if let Some(chunk) = self.kept(after) {
            return Ok(Some(chunk));
        }
        let Some(chunk) = encode(cache, None, after)? else { return Ok(None) };
        let mut ring = lock(&self.ring);
        let newest = ring.back().map_or(0, |chunk| chunk.last);
        if after > newest {
            ring.clear();
        }
        if ring.back().is_none_or(|chunk| chunk.last == after) {
            ring.push_back(chunk.clone());
            while ring.iter().map(|chunk| chunk.bytes.len()).sum::<usize>() > KEPT_BYTES {
                ring.pop_front();
            }
        }
        Ok(Some(chunk))
    }

    async fn next(&self, web: &Arc<Web>, run: Option<&str>, after: u64) -> Result<Option<Chunk>, Problem> {
        if let Some(chunk) = self.kept(after).filter(|_| run.is_none()) {
            return Ok(Some(chunk));
        }
        let run = run.map(str::to_owned);
        web.reading(move |web| match &run {
            Some(run) => Ok(encode(&web.cache, Some(run), after)?),
            None => Ok(web.feed.shared(&web.cache, after)?),
        })
        .await
    }
}

/// A page of events as messages; those of other runs are skipped.
fn encode(cache: &RunCache, named: Option<&str>, after: u64) -> Result<Option<Chunk>> {
    let Some(view) = cache.view()? else { return Ok(None) };
    let events = view.events_page(after, PAGE)?;
    let Some(last) = events.last().map(|event| event.seq) else { return Ok(None) };
    let run = match cache.asked(named) {
        Some(name) => Some(view.run_named(name)?),
        None => view.run()?,
    };
    let run = run.map(|run| run.row.id).unwrap_or_default();
    let mut text = String::new();
    for event in events.iter().filter(|event| event.run == run) {
        let json = serde_json::to_string(&EventJson::of(event)).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = write!(text, "id: {}\ndata: {json}\n\n", event.seq);
    }
    Ok(Some(Chunk { after, last, bytes: Bytes::from(text) }))
}

struct Listener {
    web: Arc<Web>,
    run: Option<String>,
    /// Whether it is told only that something happened, not what.
    folded: bool,
    /// The last event it knows.
    place: u64,
    give: mpsc::Sender<Bytes>,
    _place: OwnedSemaphorePermit,
}

impl Listener {
    /// Sends until the listener is gone.
    async fn serve(mut self) {
        let mut head = self.web.feed.head.subscribe();
        if self.give.send(Bytes::from_static(HELLO.as_bytes())).await.is_err() {
            return;
        }
        loop {
            let newest = *head.borrow_and_update();
            if newest <= self.place {
                tokio::select! {
                    changed = head.changed() => if changed.is_err() { return },
                    () = self.give.closed() => return,
                    () = tokio::time::sleep(KEEP_ALIVE) => {
                        if self.give.send(Bytes::from_static(b": still here\n\n")).await.is_err() {
                            return;
                        }
                    }
                }
                continue;
            }
            let bytes = if self.folded { self.folded_to(newest) } else { self.next().await };
            if !bytes.is_empty() && self.give.send(bytes).await.is_err() {
                return;
            }
            if self.folded || self.place >= newest {
                tokio::time::sleep(LOOK).await;
            }
        }
    }

    fn folded_to(&mut self, newest: u64) -> Bytes {
        let data = json!({ "seq": newest, "events": newest - self.place });
        self.place = newest;
        Bytes::from(format!("id: {newest}\ndata: {data}\n\n"))
    }

    async fn next(&mut self) -> Bytes {
        match self.web.feed.next(&self.web, self.run.as_deref(), self.place).await {
            Ok(Some(chunk)) => {
                self.place = chunk.last;
                chunk.bytes
            }
            Ok(None) | Err(_) => {
                tokio::time::sleep(TROUBLE).await;
                Bytes::new()
            }
        }
    }
}

/// `GET /api/events?after=N&fold=1`: events after the one that `Last-Event-ID` or `after` names, otherwise from now on.
pub(super) async fn events(web: Arc<Web>, ask: Ask) -> Answer {
    let resumed =
        ask.headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.trim().parse().ok());
    let asked = ask.number::<u64>("after")?;
    let Ok(place) = Arc::clone(&web.feed.places).try_acquire_owned() else {
        let hint = "close a page that listens, or read once: GET /api/status";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many listeners").hint(hint));
    };
    let run = ask.query.get("run").filter(|run| !run.is_empty()).cloned();
    if let Some(run) = run.clone() {
        web.reading(move |web| web.cache.with_run(Some(&run), |_| Ok(()))).await?;
    }
    let newest = web.feed.look(&web).await?;
    let (give, take) = mpsc::channel(1);
    let start = resumed.or(asked).unwrap_or(newest).min(newest);
    web.feed.wake.notify_one();
    let folded = ask.is_on("fold");
    tokio::task::spawn(Listener { web, run, folded, place: start, give, _place: place }.serve());
    Ok(typed(StatusCode::OK, "text/event-stream", Body::new(Flow(take))))
}
