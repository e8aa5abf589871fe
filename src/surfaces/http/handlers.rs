//! One handler a route. What may read the ledger runs on a blocking thread.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::Semaphore;

use super::{ApiError, Live, Query, Views, query};
use crate::surfaces::metrics::Format;

/// Requests that read the ledger at the same time; further ones wait.
const READERS: usize = 8;

/// The largest body that is taken, in bytes (accounting R72).
pub(super) const MAX_BODY: usize = 1 << 20;

/// What the handlers share.
#[derive(Clone)]
pub(super) struct Shared {
    views: Arc<dyn Views>,
    readers: Arc<Semaphore>,
    live: Live,
}

impl Shared {
    pub(super) fn new(views: Arc<dyn Views>, live: Live) -> Self {
        Self { views, readers: Arc::new(Semaphore::new(READERS)), live }
    }

    /// Runs `f` on a blocking thread. It goes on to its end even if the client has gone.
    async fn read<T: Send + 'static>(
        &self,
        f: impl FnOnce(&dyn Views) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let readers = Arc::clone(&self.readers);
        let permit = readers.acquire_owned().await.map_err(|_| ApiError::internal())?;
        let views = Arc::clone(&self.views);
        let answer = tokio::task::spawn_blocking(move || {
            let answer = f(&*views);
            drop(permit);
            answer
        });
        answer.await.map_err(|_| ApiError::internal())
    }
}

pub(super) async fn metrics(
    State(shared): State<Shared>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let accept: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let format = Format::negotiate(&accept.join(","));
    let scrape = shared.read(move |views| views.scrape(format)).await?;
    // If the client had gone, this would not be reached: its scrape has seen nothing.
    if method != Method::HEAD {
        shared.views.scraped(scrape.receipt);
    }
    let headers = [(CONTENT_TYPE, format.content_type()), (VARY, "accept")];
    Ok((headers, scrape.body).into_response())
}

pub(super) async fn healthy() -> &'static str {
    "healthy\n"
}

pub(super) async fn ready(State(shared): State<Shared>) -> Response {
    match shared.read(|views| views.ready()).await {
        Ok(readiness) => {
            let status = if readiness.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            (status, readiness.text()).into_response()
        }
        Err(error) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {}\n", error.message)).into_response()
        }
    }
}

pub(super) async fn state(State(shared): State<Shared>, uri: Uri) -> Result<Response, ApiError> {
    Query::parse(&uri, &[])?;
    document(shared.read(|views| views.state()).await?)
}

pub(super) async fn report(
    State(shared): State<Shared>,
    kind: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let kind = segment(kind)?;
    let query = Query::parse(&uri, &query::REPORT)?;
    document(shared.read(move |views| views.report(&kind, &query)).await?)
}

pub(super) async fn session(
    State(shared): State<Shared>,
    id: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let id = segment(id)?;
    Query::parse(&uri, &[])?;
    document(shared.read(move |views| views.session(&id)).await?)
}

pub(super) async fn live(State(shared): State<Shared>, uri: Uri) -> Result<Response, ApiError> {
    Query::parse(&uri, &[])?;
    Ok(shared.live.answer())
}

pub(super) async fn quota(State(shared): State<Shared>, uri: Uri) -> Result<Response, ApiError> {
    Query::parse(&uri, &[])?;
    document(shared.read(|views| views.quota()).await?)
}

pub(super) async fn not_found(uri: Uri) -> ApiError {
    ApiError::not_found("not_found", format!("there is nothing at {}", uri.path()))
}

pub(super) async fn method_not_allowed(method: Method, uri: Uri) -> ApiError {
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        format!("{} does not take {method}", uri.path()),
    )
}

fn segment(path: Result<Path<String>, PathRejection>) -> Result<String, ApiError> {
    path.map(|Path(segment)| segment).map_err(|error| ApiError::bad_request("bad_path", error.body_text()))
}

fn document(json: Result<String, ApiError>) -> Result<Response, ApiError> {
    json.map(|json| ([(CONTENT_TYPE, "application/json")], json).into_response())
}

/// Refuses a body that says it is too large, in the API's own words; one that
/// does not say so is cut where it is read.
pub(super) async fn bounded_body(request: Request, next: Next) -> Response {
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    match length.and_then(|length| length.parse::<u64>().ok()) {
        Some(length) if length > MAX_BODY as u64 => ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!("a body may have {MAX_BODY} bytes, this one has {length}"),
        )
        .into_response(),
        _ => next.run(request).await,
    }
}

/// Headers of every answer, errors included: never to be guessed at or framed.
/// What says nothing else is data that runs nothing and is not kept.
pub(super) async fn guarded_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer")] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let runs_nothing = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(runs_nothing));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
