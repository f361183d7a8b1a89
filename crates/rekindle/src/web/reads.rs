//! The routes that programs read: the state of the run, logs by line number, and a search over all of them. Agents' text is
//! sent without anything that a terminal would interpret.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_DISPOSITION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use rekindle_core::ids::AttemptId;
use rekindle_core::time::Time;
use rekindle_engine::store::{StoredLine, Stream};
use serde::Serialize;
use tokio::sync::mpsc;

use super::Web;
use super::answer::{Problem, json, lean, typed};
use super::flow::Flow;
use super::pages::attempt_of;
use super::routes::{Answer, Ask};
use crate::contract::event::EventJson;
use crate::contract::status;
use crate::picture::lines::WINDOW_MAX;
use crate::ui::{clock_time, harmless, stamp};
use crate::view::RunView;

/// Lines sent when a request does not say how many.
const LINES: usize = 200;

/// Lines that one request searches for a word: well under a second, and the next request continues.
const LOOKED_THROUGH: usize = 100_000;

/// Most matching lines that one response names.
const FOUND: usize = 1_000;

/// Most hits of a search over all logs, the newest; a person refines the words rather than read more.
const HITS: usize = 500;

/// Longest word or phrase that can be searched for.
const QUERY_MAX: usize = 1_000;

/// `GET /api/status`: the same text as `status --json`.
pub(super) async fn status(web: Arc<Web>, ask: Ask) -> Answer {
    web.reading(move |web| {
        let view = web.cache.view()?;
        let run = match (&view, web.cache.asked(ask.query.get("run").map(String::as_str))) {
            (Some(view), Some(name)) => Some(view.run_named(name)?),
            (Some(view), None) => view.run()?,
            (None, _) => None,
        };
        Ok(json(
            StatusCode::OK,
            &status::for_programs(&web.cache.project, view.as_deref(), run.as_ref(), ask.is_on("all"))?,
        ))
    })
    .await
}

/// A line of a log, for programs.
#[derive(Serialize)]
struct LineJson {
    number: usize,
    time: String,
    /// The same for people, in the server's time zone, as on every page.
    at: String,
    stream: &'static str,
    text: String,
    torn: bool,
}

impl LineJson {
    fn of(number: usize, stored: &StoredLine) -> Self {
        let line = &stored.line;
        Self {
            number,
            time: stamp(Time(line.time_ms)),
            at: clock_time(Time(line.time_ms)),
            stream: match line.stream {
                Stream::Out => "stdout",
                Stream::Err => "stderr",
                Stream::Transcript => "transcript",
            },
            text: harmless(&line.text),
            torn: line.torn,
        }
    }
}

#[derive(Serialize)]
struct LinesJson {
    attempt: u64,
    total: usize,
    from: usize,
    lines: Vec<LineJson>,
}

/// `GET /api/logs/{attempt}?from=N&many=M`: lines by number, from 0; without `from` the last ones.
pub(super) async fn lines(web: Arc<Web>, ask: Ask) -> Answer {
    let (attempt, from, many) = (attempt_of(&ask)?, ask.number("from")?, ask.number("many")?);
    let many = many.unwrap_or(LINES).min(WINDOW_MAX);
    web.reading(move |web| {
        let named = ask.query.get("run").map(String::as_str);
        let found = web.cache.with_log(named, attempt, |run, index| {
            let total = index.count();
            let from = from.unwrap_or(total.saturating_sub(many));
            let lines = index.window(run, from, many)?;
            let lines = lines.iter().enumerate().map(|(at, line)| LineJson::of(from + at, line)).collect();
            Ok(LinesJson { attempt, total, from, lines })
        })?;
        Ok(lean(&found))
    })
    .await
}

#[derive(Serialize)]
struct FoundJson {
    attempt: u64,
    total: usize,
    /// Where the next request continues; null when everything was searched.
    next: Option<usize>,
    lines: Vec<usize>,
}

/// `GET /api/logs/{attempt}/find?q=TEXT&from=N`: the numbers of lines that contain a text, ignoring case.
pub(super) async fn find(web: Arc<Web>, ask: Ask) -> Answer {
    let (attempt, from) = (attempt_of(&ask)?, ask.number::<usize>("from")?.unwrap_or(0));
    let wanted = query(&ask)?.to_lowercase();
    web.reading(move |web| {
        let named = ask.query.get("run").map(String::as_str);
        let found = web.cache.with_log(named, attempt, |run, index| {
            let (total, mut at, mut lines) = (index.count(), from, Vec::new());
            let last = from.saturating_add(LOOKED_THROUGH).min(total);
            while at < last && lines.len() < FOUND {
                let window = index.window(run, at, WINDOW_MAX.min(last - at))?;
                if window.is_empty() {
                    break;
                }
                let holds = |line: &StoredLine| harmless(&line.line.text).to_lowercase().contains(&wanted);
                lines.extend((at..).zip(&window).filter(|(_, line)| holds(line)).map(|(number, _)| number));
                at += window.len();
            }
            Ok(FoundJson { attempt, total, next: (at < total).then_some(at), lines })
        })?;
        Ok(lean(&found))
    })
    .await
}

/// `GET /api/logs/{attempt}/raw`: the whole log as a file, made as it is sent.
pub(super) async fn raw(web: Arc<Web>, ask: Ask) -> Answer {
    let attempt = attempt_of(&ask)?;
    let named = ask.query.get("run").cloned();
    let run = named.clone();
    // Checked once before the response starts.
    web.reading(move |web| web.cache.with_log(run.as_deref(), attempt, |_, _| Ok(()))).await?;
    let read = move |web: &Web, after| {
        let lines = |run: &RunView<'_>| run.lines_of(AttemptId(attempt), after, WINDOW_MAX);
        let page = web.cache.with_run(named.as_deref(), lines)?;
        let text = page.iter().map(|line| format!("{}\n", harmless(&line.line.text))).collect();
        Ok(page.last().map(|line| (line.seq, text)))
    };
    Ok(as_file(web, "text/plain; charset=utf-8", &format!("attempt-{attempt}.log"), read))
}

/// `GET /api/events/download`: every event of the run as a file, one JSON object a line, made as it is sent.
pub(super) async fn events_file(web: Arc<Web>, ask: Ask) -> Answer {
    let named = ask.query.get("run").cloned();
    let run = web.reading(move |web| web.cache.with_run(named.as_deref(), |run| Ok(run.row.id.clone()))).await?;
    let read = move |web: &Web, after| {
        let Some(view) = web.cache.view()? else { return Ok(None) };
        let page = view.events_page(after, WINDOW_MAX)?;
        let own = page.iter().filter(|event| event.run == run);
        let text = own.map(|event| format!("{}\n", serde_json::to_string(&EventJson::of(event)).unwrap_or_default()));
        Ok(page.last().map(|event| (event.seq, text.collect())))
    };
    Ok(as_file(web, "application/x-ndjson", "events.jsonl", read))
}

/// A file that is made page by page while it is sent: `read` returns what comes after a position, and the position of its
/// end.
fn as_file(
    web: Arc<Web>,
    kind: &'static str,
    name: &str,
    read: impl Fn(&Web, u64) -> Result<Option<(u64, String)>, Problem> + Send + Sync + 'static,
) -> Response {
    let (give, take) = mpsc::channel(1);
    let read = Arc::new(read);
    tokio::task::spawn(async move {
        let mut after = 0;
        loop {
            let read = Arc::clone(&read);
            let Ok(Some((last, text))) = web.reading(move |web| read(web, after)).await else { return };
            after = last;
            if !text.is_empty() && give.send(Bytes::from(text)).await.is_err() {
                return;
            }
        }
    });
    let mut response = typed(StatusCode::OK, kind, Body::new(Flow(take)));
    if let Ok(name) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    response
}

#[derive(Serialize)]
struct SearchJson {
    query: String,
    hits: usize,
    /// Whether older hits were left out.
    more: bool,
    agents: Vec<AgentHitsJson>,
}

#[derive(Serialize)]
struct AgentHitsJson {
    agent: String,
    lines: Vec<HitJson>,
}

#[derive(Serialize)]
struct HitJson {
    attempt: u64,
    #[serde(flatten)]
    line: LineJson,
}

/// `GET /api/search?q=WORDS`: lines of all logs of the run that hold every word, by agent.
pub(super) async fn search(web: Arc<Web>, ask: Ask) -> Answer {
    let wanted = query(&ask)?.to_owned();
    web.reading(move |web| {
        let named = ask.query.get("run").map(String::as_str);
        let found = web.cache.with_run(named, |run| run.search(&wanted, None, HITS))?;
        let more = found.len() == HITS;
        let mut agents: BTreeMap<String, Vec<HitJson>> = BTreeMap::new();
        for stored in &found {
            let attempt = stored.line.attempt;
            let number = web.cache.with_log(named, attempt, |run, index| index.number_of(run, stored.seq))?;
            let hit = number.map(|number| HitJson { attempt, line: LineJson::of(number, stored) });
            agents.entry(stored.line.agent.clone()).or_default().extend(hit);
        }
        let hits = agents.values().map(Vec::len).sum();
        let agents = agents.into_iter().map(|(agent, lines)| AgentHitsJson { agent, lines }).collect();
        Ok(lean(&SearchJson { query: wanted, hits, more, agents }))
    })
    .await
}

fn query(ask: &Ask) -> Result<&str, Problem> {
    let wanted = ask.query.get("q").map_or("", |text| text.trim());
    if wanted.is_empty() || wanted.len() > QUERY_MAX {
        return Err(Problem::bad(format!("say what to look for: ?q=TEXT, at most {QUERY_MAX} bytes")));
    }
    Ok(wanted)
}
