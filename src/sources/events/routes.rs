//! `POST /api/v1/events`. Who may reach it is the listener's matter.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use super::item::{self, Item, Problem};
use super::{Batch, Intake, MAX_BODY, MAX_ITEMS, Posted};

/// Bodies that are taken in at the same time; further ones wait.
const TAKERS: usize = 4;

/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

/// Types of a body. A web page of another origin cannot send one of them
/// without asking, and nothing here gives it leave.
const TYPES: [&str; 5] = [
    "application/json",
    "application/jsonl",
    "application/json-lines",
    "application/x-ndjson",
    "application/ndjson",
];

/// The route, over whoever takes the events. It bounds its bodies itself.
pub fn routes(intake: Arc<dyn Intake>) -> Router {
    let shared = Shared { intake, takers: Arc::new(Semaphore::new(TAKERS)) };
    Router::new().route("/api/v1/events", post(events)).with_state(shared)
}

#[derive(Clone)]
struct Shared {
    intake: Arc<dyn Intake>,
    takers: Arc<Semaphore>,
}

/// What became of the items.
#[derive(Debug, Serialize)]
struct Answer {
    accepted: u64,
    duplicate: u64,
    unknown: u64,
    errors: Vec<ItemError>,
}

#[derive(Debug, Serialize)]
struct ItemError {
    index: usize,
    code: &'static str,
    message: String,
}

/// Why a body is not looked at, item by item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Type,
    Encoding,
    TooLarge,
    TooMany,
    TooSlow,
    Malformed,
    Empty,
    Unavailable,
}

async fn events(State(shared): State<Shared>, headers: HeaderMap, body: Body) -> Response {
    match take(&shared, &headers, body).await {
        Ok(answer) => {
            let status =
                if answer.errors.is_empty() { StatusCode::ACCEPTED } else { StatusCode::BAD_REQUEST };
            (status, axum::Json(answer)).into_response()
        }
        Err(refusal) => refusal.into_response(),
    }
}

async fn take(shared: &Shared, headers: &HeaderMap, body: Body) -> Result<Answer, Refusal> {
    check(headers)?;
    // A place first: bodies that wait for one would fill the memory.
    let takers = Arc::clone(&shared.takers).acquire_owned();
    let Ok(Ok(permit)) = tokio::time::timeout(PATIENCE, takers).await else {
        return Err(Refusal::Unavailable);
    };
    let bytes = tokio::time::timeout(PATIENCE, to_bytes(body, MAX_BODY));
    // A body that breaks off has nobody left to be told why.
    let bytes = bytes.await.map_err(|_| Refusal::TooSlow)?.map_err(|_| Refusal::TooLarge)?;
    let intake = Arc::clone(&shared.intake);
    let taken = tokio::task::spawn_blocking(move || {
        let (batch, errors) = read(&bytes)?;
        let unknown = batch.unknown;
        let Posted { accepted, duplicate } = intake.events(batch).map_err(|_| Refusal::Unavailable)?;
        drop(permit);
        Ok(Answer { accepted, duplicate, unknown, errors })
    });
    taken.await.unwrap_or(Err(Refusal::Unavailable))
}

fn check(headers: &HeaderMap) -> Result<(), Refusal> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let kind = text(CONTENT_TYPE).and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    if !TYPES.iter().any(|known| kind.eq_ignore_ascii_case(known)) {
        return Err(Refusal::Type);
    }
    if text(CONTENT_ENCODING).is_some_and(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
        return Err(Refusal::Encoding);
    }
    let length = text(CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    if length.is_some_and(|length| length > MAX_BODY as u64) { Err(Refusal::TooLarge) } else { Ok(()) }
}

/// The items of a body, each read for itself.
fn read(body: &[u8]) -> Result<(Batch, Vec<ItemError>), Refusal> {
    let items = items(body)?;
    if items.len() > MAX_ITEMS {
        return Err(Refusal::TooMany);
    }
    let (mut batch, mut errors) = (Batch::default(), Vec::new());
    for (index, item) in items.into_iter().enumerate() {
        let broken = || Problem { code: "malformed_json", message: "the line is no JSON".to_owned() };
        match item.ok_or_else(broken).and_then(item::read) {
            Ok(Item::Event(event)) => batch.events.push(*event),
            Ok(Item::Unknown) => batch.unknown += 1,
            Err(Problem { code, message }) => errors.push(ItemError { index, code, message }),
        }
    }
    batch.refused = errors.len() as u64;
    Ok((batch, errors))
}

/// An array, one object, or a line each; `None` for a line that is no JSON.
/// Blank lines are none, and have no index.
fn items(body: &[u8]) -> Result<Vec<Option<&RawValue>>, Refusal> {
    let body = body.trim_ascii();
    match body.first() {
        None => Err(Refusal::Empty),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_slice(body).map_err(|_| Refusal::Malformed)?;
            Ok(items.into_iter().map(Some).collect())
        }
        Some(_) => match serde_json::from_slice(body) {
            Ok(one) => Ok(vec![Some(one)]),
            Err(_) => {
                let lines = body.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
                Ok(lines.map(|line| serde_json::from_slice(line).ok()).collect())
            }
        },
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, code, message) = match self {
            Self::Type => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "send application/json or application/x-ndjson".to_owned(),
            ),
            Self::Encoding => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_encoding",
                "send the events uncompressed".to_owned(),
            ),
            Self::TooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", format!("a body may have {MAX_BODY} bytes"))
            }
            Self::TooMany => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_many_events",
                format!("a body may hold {MAX_ITEMS} events; none was taken"),
            ),
            Self::TooSlow => {
                (StatusCode::REQUEST_TIMEOUT, "body_too_slow", "the body did not arrive in time".to_owned())
            }
            Self::Malformed => {
                (StatusCode::BAD_REQUEST, "malformed_json", "the array is no JSON; none was taken".to_owned())
            }
            Self::Empty => (StatusCode::BAD_REQUEST, "no_events", "the body holds no event".to_owned()),
            Self::Unavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "ledger_unavailable",
                "the ledger takes nothing now; none was taken, send the same again".to_owned(),
            ),
        };
        let body = serde_json::json!({ "error": { "code": code, "message": message } });
        let answer = (status, axum::Json(body));
        match self {
            Self::Unavailable => ([(RETRY_AFTER, "1")], answer).into_response(),
            _ => answer.into_response(),
        }
    }
}

#[cfg(test)]
mod tests;
