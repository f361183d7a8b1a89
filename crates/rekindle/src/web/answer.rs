//! Responses: the headers that all of them carry, JSON, pages, and errors in words. It decides the form; its callers decide
//! the content.

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use maud::{DOCTYPE, Markup, html};
use serde::Serialize;

use super::routes::Access;
use crate::error::{CliError, Kind};

/// What our pages may do: use their own scripts and styles, talk to us, and nothing else.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types rekindle";

/// Headers that protect a response from other sites' pages, from frames and from guesses about its type.
const FIXED: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (X_FRAME_OPTIONS, "DENY"),
];

/// Adds the headers that every response carries.
pub(super) fn seal(headers: &mut HeaderMap) {
    for (name, value) in FIXED {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Assets set their own caching.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// The same headers as text, for the one answer that is given before HTTP is spoken.
pub(super) fn sealed_text() -> String {
    let lines = FIXED.into_iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    lines.chain(["cache-control: no-store\r\n".to_owned()]).collect()
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct Problem {
    /// The HTTP status.
    pub status: StatusCode,
    pub error: String,
    pub hint: Option<String>,
    /// One of our pages to continue with.
    pub link: Option<String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: error.into(), hint: None, link: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The requested thing does not exist.
    pub(crate) fn absent(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    /// The request cannot be understood.
    pub(crate) fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// The request was understood and refused.
    pub(crate) fn refused(error: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, error)
    }

    /// The problem as a response: a small page for a page, JSON for everything else.
    pub(crate) fn answer(&self, access: Access) -> Response {
        if access == Access::Page {
            return page(self.status, &self.as_page());
        }
        let hint = self.hint.as_deref();
        json(self.status, &ProblemJson { error: &self.error, hint })
    }

    fn as_page(&self) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.status.as_u16()) " · rekindle" }
                    // Keeps browsers from requesting an icon, since strangers get nothing.
                    link rel="icon" href="data:,";
                    // Used only if the run cannot be read: otherwise the page has the same frame as the others.
                    @if self.status == StatusCode::NOT_FOUND {
                        link rel="stylesheet" href="/assets/drawing.css";
                        link rel="stylesheet" href="/assets/app.css";
                    }
                }
                body { main {
                    h1 { (self.error) }
                    @if let Some(hint) = &self.hint { p { (hint) } }
                    @if self.status == StatusCode::NOT_FOUND { p { a href="/" { "To the overview" } } }
                    @if let Some(link) = &self.link { p { a href=(link) { "Continue" } " if you have just done that." } }
                } }
            }
        }
    }
}

impl From<CliError> for Problem {
    fn from(error: CliError) -> Self {
        let status = match error.kind {
            Kind::Usage => StatusCode::NOT_FOUND,
            Kind::Refused => StatusCode::CONFLICT,
            Kind::Internal | Kind::ReaderGone => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let words: Vec<String> = std::iter::once(error.message).chain(error.causes).collect();
        Self { status, error: words.join(": "), hint: error.hints.into_iter().next(), link: None }
    }
}

#[derive(Serialize)]
struct ProblemJson<'a> {
    error: &'a str,
    hint: Option<&'a str>,
}

pub(super) fn typed(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

pub(super) fn page(status: StatusCode, markup: &Markup) -> Response {
    typed(status, "text/html; charset=utf-8", markup.0.clone())
}

/// JSON, laid out as the commands print it.
pub(super) fn json<T: Serialize>(status: StatusCode, value: &T) -> Response {
    as_json(status, serde_json::to_string_pretty(value))
}

/// JSON on one line, for large data.
pub(super) fn lean<T: Serialize>(value: &T) -> Response {
    as_json(StatusCode::OK, serde_json::to_string(value))
}

fn as_json(status: StatusCode, text: serde_json::Result<String>) -> Response {
    match text {
        Ok(text) => typed(status, "application/json", format!("{text}\n")),
        Err(_) => typed(StatusCode::INTERNAL_SERVER_ERROR, "application/json", "{\"error\":\"cannot write JSON\"}\n"),
    }
}
