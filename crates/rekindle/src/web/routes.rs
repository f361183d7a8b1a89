//! Every route, in one table: the server is built from it and the tests visit all of it, so none can be forgotten. The
//! checks before a route is reached are here too; what a route answers is in its handler's file.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{Query, RawPathParams, Request, State};
use axum::http::header::{ALLOW, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use axum::{Router, http};
use serde::Serialize;

use super::answer::{Problem, seal, typed};
use super::room::Checked;
use super::{Web, gate, orders, pages, reads, stream};

/// What a route is for, which decides what it demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Access {
    /// A page: its address may contain the token once.
    Page,
    Read,
    Act,
    /// A file that pages need.
    Asset,
}

pub(crate) type Answer = Result<Response, Problem>;

pub(crate) type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

#[derive(Serialize)]
pub(crate) struct Route {
    /// GET or POST.
    pub method: &'static str,
    /// Its path; names in braces match one segment.
    pub path: &'static str,
    pub access: Access,
    #[serde(skip)]
    handler: fn(Arc<Web>, Ask) -> Answering,
}

/// A request that was admitted.
pub(crate) struct Ask {
    /// The segments that matched a name in braces.
    pub path: BTreeMap<String, String>,
    /// The query string.
    pub query: BTreeMap<String, String>,
    pub headers: HeaderMap,
    pub body: Body,
}

impl Ask {
    pub(crate) fn segment(&self, name: &str) -> &str {
        self.path.get(name).map_or("", String::as_str)
    }

    /// A number in the query string.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Problem> {
        let given = self.query.get(name);
        given.map(|text| text.parse().map_err(|_| Problem::bad(format!("`{name}` is not a number")))).transpose()
    }

    /// Whether a switch in the query string is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.query.get(name).is_some_and(|value| !matches!(value.as_str(), "0" | "false"))
    }
}

macro_rules! route {
    ($method:literal, $path:literal, $access:ident, $handler:path) => {
        Route {
            method: $method,
            path: $path,
            access: Access::$access,
            handler: |web, ask| Box::pin($handler(web, ask)),
        }
    };
}

/// All routes.
pub(crate) const TABLE: &[Route] = &[
    route!("GET", "/", Page, pages::overview),
    route!("GET", "/tasks/{id}", Page, pages::task),
    route!("GET", "/logs/{attempt}", Page, pages::log),
    route!("GET", "/events", Page, pages::events),
    route!("GET", "/questions", Page, pages::questions),
    route!("GET", "/cost", Page, pages::cost),
    route!("GET", "/search", Page, pages::search),
    route!("GET", "/runs", Page, pages::runs),
    route!("GET", "/assets/{name}", Asset, pages::asset),
    route!("GET", "/api/status", Read, reads::status),
    route!("GET", "/api/events", Read, stream::events),
    route!("GET", "/api/events/download", Read, reads::events_file),
    route!("GET", "/api/logs/{attempt}", Read, reads::lines),
    route!("GET", "/api/logs/{attempt}/find", Read, reads::find),
    route!("GET", "/api/logs/{attempt}/raw", Read, reads::raw),
    route!("GET", "/api/search", Read, reads::search),
    route!("GET", "/api/acts", Read, orders::of_run),
    route!("GET", "/api/tasks/{id}/acts", Read, orders::of_task),
    route!("POST", "/api/questions/{id}/answer", Act, orders::answer),
    route!("POST", "/api/tasks/{id}/retry", Act, orders::retry),
    route!("POST", "/api/tasks/{id}/skip", Act, orders::skip),
    route!("POST", "/api/tasks/{id}/stop", Act, orders::stop),
    route!("POST", "/api/tasks/{id}/split", Act, orders::split),
    route!("POST", "/api/tasks", Act, orders::add),
    route!("POST", "/api/tasks/{id}/edit", Act, orders::edit),
    route!("POST", "/api/agents/{name}/recover", Act, orders::recover),
    route!("POST", "/api/retry-failed", Act, orders::retry_failed),
    route!("POST", "/api/pause", Act, orders::pause),
    route!("POST", "/api/resume", Act, orders::resume),
    route!("POST", "/api/tasks/{id}/tell", Act, orders::tell),
    route!("POST", "/api/tasks/{id}/done", Act, orders::complete),
    route!("POST", "/api/orders/{number}/undo", Act, orders::undo),
];

/// The segments that matched a name in braces; read only when the caller was admitted.
type Segments = Result<RawPathParams, RawPathParamsRejection>;

/// The server's router, made from the table.
pub(crate) fn router(web: &Arc<Web>) -> Router {
    let mut router = Router::new();
    for route in TABLE {
        let filter = if route.access == Access::Act { MethodFilter::POST } else { MethodFilter::GET };
        let serve = move |State(web): State<Arc<Web>>, path: Segments, request: Request| async move {
            let query = query_of(request.uri());
            match reach(route, Arc::clone(&web), path, request).await {
                Ok(response) => response,
                // Only admitted callers are told that something is missing.
                Err(problem) if route.access == Access::Page && problem.status == StatusCode::NOT_FOUND => {
                    pages::nowhere(web, query, problem).await
                }
                Err(problem) => problem.answer(route.access),
            }
        };
        router = router.route(route.path, on(filter, serve));
    }
    router
        .fallback(nowhere)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(Arc::clone(web), at_the_gate))
        .with_state(Arc::clone(web))
}

/// What comes before everything else: the check of names, then the headers that every response carries.
async fn at_the_gate(State(web): State<Arc<Web>>, request: Request, next: Next) -> Response {
    let known = matches!(*request.method(), Method::GET | Method::HEAD | Method::POST);
    let mut response = match web.names.refusal(request.uri(), request.headers()) {
        Some(why) => {
            let hint = "open the address that rekindle serve printed; other names need --allow-host NAME";
            Problem::new(StatusCode::FORBIDDEN, why).hint(hint).answer(form_of(request.uri()))
        }
        None if !known => not_allowed(request.uri()),
        None => next.run(request).await,
    };
    seal(response.headers_mut());
    response
}

/// Passes a request on to its handler, or says why not.
async fn reach(route: &Route, web: Arc<Web>, path: Segments, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    if route.access == Access::Page
        && let Some((given, without)) = gate::token_in(&parts.uri)
    {
        return trade(&web, &given, &without);
    }
    let elsewhere = gate::from_elsewhere(&parts.headers);
    admit(&web, &parts).map_err(|stranger| {
        // Browsers withhold the cookie when coming from another site, including during the trade; from one of our pages they
        // send it.
        let link = (route.access == Access::Page && elsewhere).then(|| parts.uri.path().to_owned());
        Problem { link, ..stranger }
    })?;
    if route.access != Access::Page && elsewhere {
        return Err(Problem::new(StatusCode::FORBIDDEN, "this server does not answer requests from other sites"));
    }
    if route.access == Access::Act && web.read_only {
        let hint = "start it without --read-only, or use the command line";
        return Err(Problem::new(StatusCode::FORBIDDEN, "this server is read-only").hint(hint));
    }
    let path = path.map_err(|_| Problem::bad("the path cannot be read"))?;
    let path = path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let query = Query::try_from_uri(&parts.uri).map_err(|_| Problem::bad("the query cannot be read"))?;
    (route.handler)(web, Ask { path, query: query.0, headers: parts.headers, body }).await
}

fn admit(web: &Web, parts: &http::request::Parts) -> Result<(), Problem> {
    if !gate::shows_token(&web.token, web.port, &parts.headers) {
        return Err(stranger());
    }
    if let Some(known) = parts.extensions.get::<Checked>() {
        known.admit();
    }
    Ok(())
}

fn stranger() -> Problem {
    let hint =
        "open the address that `rekindle serve` printed, token included; programs send Authorization: Bearer TOKEN";
    Problem::new(StatusCode::UNAUTHORIZED, "the token is missing or wrong").hint(hint)
}

/// Trades the token in an address for a cookie, so that it appears in no history and no link.
fn trade(web: &Web, given: &str, without: &str) -> Answer {
    if !web.token.is(given) {
        return Err(stranger());
    }
    let cookie = format!("{}={}; HttpOnly; SameSite=Strict; Path=/", gate::cookie_name(web.port), web.token.text());
    let mut response = typed(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
    let value = |text: &str| HeaderValue::from_str(text).map_err(|_| Problem::bad("the address cannot be read"));
    response.headers_mut().insert(LOCATION, value(without)?);
    response.headers_mut().insert(SET_COOKIE, value(&cookie)?);
    Ok(response)
}

async fn nowhere(State(web): State<Arc<Web>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let form = form_of(&parts.uri);
    match admit(&web, &parts) {
        Ok(()) if form == Access::Page => {
            let problem = Problem::absent("there is no such page");
            pages::nowhere(web, query_of(&parts.uri), problem).await
        }
        Ok(()) => Problem::absent("there is nothing here").hint("the API begins at /api/status").answer(form),
        Err(stranger) => stranger.answer(form),
    }
}

async fn no_method(request: Request) -> Response {
    not_allowed(request.uri())
}

fn not_allowed(uri: &Uri) -> Response {
    let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this method is not allowed here");
    let mut response = problem.hint("read with GET, act with POST").answer(form_of(uri));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
    response
}

/// The query string; empty if it cannot be read.
fn query_of(uri: &Uri) -> BTreeMap<String, String> {
    Query::try_from_uri(uri).map(|query| query.0).unwrap_or_default()
}

/// The form of an error: JSON for programs, a page for people.
fn form_of(uri: &Uri) -> Access {
    let path = uri.path();
    if path.starts_with("/api/") || path.starts_with("/assets/") { Access::Read } else { Access::Page }
}
