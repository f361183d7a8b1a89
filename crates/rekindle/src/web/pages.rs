//! The routes that people open: pages, and the files they need. `page` makes the contents of a page.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use rekindle_core::ids::AttemptId;

use super::Web;
use super::answer::{self, Problem, typed};
use super::routes::{Access, Answer, Ask};
use crate::page::{self, Page, Site};

/// `/`.
pub(super) async fn overview(web: Arc<Web>, ask: Ask) -> Answer {
    show(web, ask, Page::Overview).await
}

/// `/tasks/{id}`.
pub(super) async fn task(web: Arc<Web>, ask: Ask) -> Answer {
    let task = ask.segment("id").to_owned();
    show(web, ask, Page::Task(task)).await
}

/// `/logs/{attempt}`.
pub(super) async fn log(web: Arc<Web>, ask: Ask) -> Answer {
    let attempt = attempt_of(&ask)?;
    show(web, ask, Page::Log(attempt)).await
}

pub(super) async fn events(web: Arc<Web>, ask: Ask) -> Answer {
    show(web, ask, Page::Events).await
}

pub(super) async fn questions(web: Arc<Web>, ask: Ask) -> Answer {
    show(web, ask, Page::Questions).await
}

pub(super) async fn cost(web: Arc<Web>, ask: Ask) -> Answer {
    show(web, ask, Page::Cost).await
}

pub(super) async fn search(web: Arc<Web>, ask: Ask) -> Answer {
    show(web, ask, Page::Search).await
}

pub(super) async fn runs(web: Arc<Web>, ask: Ask) -> Answer {
    show(web, ask, Page::Runs).await
}

/// The attempt that a path names. Fails when it is not a number.
pub(super) fn attempt_of(ask: &Ask) -> Result<u64, Problem> {
    let text = ask.segment("attempt");
    text.parse().map_err(|_| Problem::absent(format!("there is no attempt `{text}`")))
}

async fn show(web: Arc<Web>, ask: Ask, page: Page) -> Answer {
    web.reading(move |web| {
        let picture = web.cache.picture(ask.query.get("run").map(String::as_str), false)?;
        let missing = match (&page, &picture) {
            (Page::Task(id), Some(picture)) if picture.task(id).is_some() => None,
            (Page::Log(id), Some(picture)) if picture.attempt(AttemptId(*id)).is_some() => None,
            (Page::Task(id), _) => Some(format!("there is no task {id} in this run")),
            (Page::Log(id), _) => Some(format!("there is no attempt {id} in this run")),
            _ => None,
        };
        if let Some(missing) = missing {
            return Err(Problem::absent(missing));
        }
        let site = Site { project: web.cache.project.clone(), picture, read_only: web.read_only };
        Ok(answer::page(StatusCode::OK, &page::answer(&site, &page, &ask.query)?))
    })
    .await
}

/// The page for something that does not exist.
pub(super) async fn nowhere(web: Arc<Web>, query: BTreeMap<String, String>, problem: Problem) -> Response {
    let told = problem.answer(Access::Page);
    let shown = web.reading(move |web| {
        let picture = web.cache.picture(query.get("run").map(String::as_str), false)?;
        let site = Site { project: web.cache.project.clone(), picture, read_only: web.read_only };
        let markup = page::missing(&site, &query, &problem.error, problem.hint.as_deref());
        Ok(answer::page(StatusCode::NOT_FOUND, &markup))
    });
    // If the run cannot be read, the page has no frame.
    shown.await.unwrap_or(told)
}

/// `/assets/{name}`: cached by the browser, which asks each time whether it has changed.
pub(super) async fn asset(_web: Arc<Web>, ask: Ask) -> Answer {
    let name = ask.segment("name");
    let asset = page::ASSETS.iter().find(|asset| asset.name == name);
    let asset = asset.ok_or_else(|| Problem::absent("there is no such file"))?;
    let mut hasher = DefaultHasher::new();
    asset.bytes.hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    let known = ask.headers.get_all(IF_NONE_MATCH).iter().any(|value| value.as_bytes() == tag.as_bytes());
    let mut response = match known {
        true => typed(StatusCode::NOT_MODIFIED, asset.mime, Body::empty()),
        false => typed(StatusCode::OK, asset.mime, Bytes::from_static(asset.bytes)),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    Ok(response)
}
