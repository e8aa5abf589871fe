use std::collections::BTreeSet;
use std::sync::Mutex;

use axum::http::Request;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::super::Unavailable;
use super::*;

/// Takes each event once.
#[derive(Default)]
struct Books {
    seen: Mutex<BTreeSet<String>>,
    counts: Mutex<(u64, u64)>,
    closed: bool,
}

impl Intake for Books {
    fn events(&self, batch: Batch) -> Result<Posted, Unavailable> {
        if self.closed {
            return Err(Unavailable);
        }
        let mut posted = Posted::default();
        let mut seen = self.seen.lock().unwrap();
        for event in batch.events {
            match seen.insert(event.event_id) {
                true => posted.accepted += 1,
                false => posted.duplicate += 1,
            }
        }
        let mut counts = self.counts.lock().unwrap();
        *counts = (counts.0 + batch.unknown, counts.1 + batch.refused);
        Ok(posted)
    }
}

const JSON: &str = "application/json";

async fn post(books: &Arc<Books>, kind: &str, body: impl Into<Body>) -> (StatusCode, Value) {
    let request = Request::post("/api/v1/events").header(CONTENT_TYPE, kind).body(body.into()).unwrap();
    send(books, request).await
}

async fn send(books: &Arc<Books>, request: Request<Body>) -> (StatusCode, Value) {
    let answer = routes(Arc::<Books>::clone(books)).oneshot(request).await.unwrap();
    let status = answer.status();
    let body = to_bytes(answer.into_body(), 1 << 22).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

fn event(id: &str, kind: &str) -> Value {
    json!({"v": 1, "event_id": id, "at": 1_796_053_744_042_i64, "host": "w1", "kind": kind, "session_id": "s"})
}

fn answer(accepted: u64, duplicate: u64, unknown: u64) -> Value {
    json!({"accepted": accepted, "duplicate": duplicate, "unknown": unknown, "errors": []})
}

#[tokio::test]
async fn d4_an_array_an_object_and_lines_are_the_same() {
    let (a, b) = (event("a", "session_opened"), event("b", "session_ended"));
    for (kind, body, count) in [
        (JSON, json!([a, b]).to_string(), 2),
        (JSON, serde_json::to_string_pretty(&json!([a, b])).unwrap(), 2),
        ("application/x-ndjson", format!("{a}\n{b}\n"), 2),
        ("application/jsonl; charset=utf-8", format!("\n {a}\r\n\r\n{b}"), 2),
        ("APPLICATION/JSON", serde_json::to_string_pretty(&a).unwrap(), 1),
        (JSON, a.to_string(), 1),
    ] {
        let books = Arc::default();
        let got = post(&books, kind, body.clone()).await;
        assert_eq!(got, (StatusCode::ACCEPTED, answer(count, 0, 0)), "{body}");
    }
    assert_eq!(post(&Arc::default(), JSON, "[]").await, (StatusCode::ACCEPTED, answer(0, 0, 0)));
}

#[tokio::test]
async fn r71_the_same_event_again_changes_nothing() {
    let books = Arc::default();
    let body =
        json!([event("a", "session_opened"), event("a", "session_opened"), event("b", "session_ended")]);
    assert_eq!(post(&books, JSON, body.to_string()).await, (StatusCode::ACCEPTED, answer(2, 1, 0)));
    assert_eq!(post(&books, JSON, body.to_string()).await, (StatusCode::ACCEPTED, answer(0, 3, 0)));
}

#[tokio::test]
async fn d4_each_item_stands_for_itself() {
    let books = Arc::default();
    let mut text = event("t", "turn_ended");
    text["prompt"] = json!("sentinel");
    let mut late = event("l", "session_ended");
    late["at"] = json!("tomorrow");
    let lines =
        [event("a", "session_opened"), text, event("u", "eclipse"), late, event("b", "session_ended")];
    let mut body: String = lines.iter().map(|line| format!("{line}\n\n")).collect();
    body.push_str("not json\n[1]\n");
    let (status, got) = post(&books, "application/x-ndjson", body).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!((&got["accepted"], &got["duplicate"], &got["unknown"]), (&json!(2), &json!(0), &json!(1)));
    let errors: Vec<_> =
        got["errors"].as_array().unwrap().iter().map(|e| (&e["index"], &e["code"])).collect();
    let want = [
        (&json!(1), &json!("content_not_accepted")),
        (&json!(3), &json!("invalid_value")),
        (&json!(5), &json!("malformed_json")),
        (&json!(6), &json!("not_an_object")),
    ];
    assert_eq!(errors, want);
    assert!(got["errors"].as_array().unwrap().iter().all(|e| e["message"].is_string()));
    assert!(!got.to_string().contains("sentinel"));
    assert_eq!(*books.counts.lock().unwrap(), (1, 4));
    assert_eq!(books.seen.lock().unwrap().len(), 2, "the valid ones are kept");
}

#[tokio::test]
async fn d4_unknown_kinds_are_accepted() {
    let books = Arc::default();
    let body = json!([event("a", "eclipse"), event("b", "session_ended")]);
    assert_eq!(post(&books, JSON, body.to_string()).await, (StatusCode::ACCEPTED, answer(1, 0, 1)));
}

#[tokio::test]
async fn r72_bodies_are_bounded() {
    let code =
        |got: (StatusCode, Value)| (got.0.as_u16(), got.1["error"]["code"].as_str().unwrap().to_owned());
    let books = Arc::default();
    let large = format!("{}{}", event("a", "session_ended"), " ".repeat(MAX_BODY));
    assert_eq!(code(post(&books, JSON, large.clone()).await), (413, "body_too_large".into()));
    // One that says so is not read at all.
    let request = Request::post("/api/v1/events").header(CONTENT_TYPE, JSON);
    let request = request.header(CONTENT_LENGTH, MAX_BODY + 1).body(Body::from("[]")).unwrap();
    assert_eq!(code(send(&books, request).await), (413, "body_too_large".into()));
    let many = json!((0..=MAX_ITEMS).map(|n| event(&n.to_string(), "session_ended")).collect::<Vec<_>>());
    assert!(many.to_string().len() < MAX_BODY);
    assert_eq!(code(post(&books, JSON, many.to_string()).await), (413, "too_many_events".into()));
    let most = json!((0..MAX_ITEMS).map(|n| event(&n.to_string(), "session_ended")).collect::<Vec<_>>());
    assert_eq!(post(&books, JSON, most.to_string()).await.1["accepted"], MAX_ITEMS);
}

#[tokio::test]
async fn d4_what_is_no_batch_of_events_is_refused_whole() {
    let books: Arc<Books> = Arc::default();
    let valid = event("a", "session_ended").to_string();
    for (kind, body, status, code) in [
        ("text/plain", valid.as_str(), 415, "unsupported_media_type"),
        ("application/x-www-form-urlencoded", &valid, 415, "unsupported_media_type"),
        ("", &valid, 415, "unsupported_media_type"),
        (JSON, "", 400, "no_events"),
        (JSON, " \n\n", 400, "no_events"),
        (JSON, "[{}", 400, "malformed_json"),
        (JSON, "[]x", 400, "malformed_json"),
    ] {
        let (got, body) = post(&books, kind, body.to_owned()).await;
        assert_eq!((got.as_u16(), &body["error"]["code"]), (status, &json!(code)), "{kind}");
    }
    let request = Request::post("/api/v1/events")
        .header(CONTENT_TYPE, JSON)
        .header(CONTENT_ENCODING, "gzip")
        .body(Body::from(valid))
        .unwrap();
    assert_eq!(send(&books, request).await.1["error"]["code"], "unsupported_encoding");
    assert!(books.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn r74_a_ledger_that_takes_nothing_says_try_again() {
    let books = Arc::new(Books { closed: true, ..Books::default() });
    let request = Request::post("/api/v1/events").header(CONTENT_TYPE, JSON);
    let request = request.body(Body::from(event("a", "session_ended").to_string())).unwrap();
    let answer = routes(books).oneshot(request).await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()[RETRY_AFTER]), (503, &"1".parse().unwrap()));
}
