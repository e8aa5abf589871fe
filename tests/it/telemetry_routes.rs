//! The receiver's routes: what is taken, what is refused, and how that is said.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, Response, StatusCode};
use gemgauge::sources::otlp::http::routes;
use gemgauge::sources::otlp::{MAX_BODY, Refusal};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::ServiceExt;

use crate::support::otlp::{Kept, bodies, gzip, protobuf};

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/x-protobuf";

/// What came back.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    trailers: HeaderMap,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), JSON);
        serde_json::from_slice(&self.body).unwrap()
    }
}

fn send(kept: &Arc<Kept>, request: Request<Body>) -> Answer {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let response: Response<Body> = routes(kept.clone()).oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let collected = body.collect().await.unwrap();
        let trailers = collected.trailers().cloned().unwrap_or_default();
        Answer { status: parts.status, headers: parts.headers, body: collected.to_bytes(), trailers }
    })
}

fn post(kept: &Arc<Kept>, headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
    let mut request = Request::post("/v1/logs");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(kept, request.body(body.into()).unwrap())
}

#[test]
fn r66_captured_bodies_are_taken_in_both_forms_packed_or_not() {
    let body = bodies().remove(0);
    let (json, protobuf) = (body.to_string().into_bytes(), protobuf(&body));
    let mut batches = Vec::new();
    for (content_type, encoding, body) in [
        (JSON, None, json.clone()),
        ("Application/JSON; charset=utf-8", None, json.clone()),
        (JSON, Some("gzip"), gzip(&json)),
        (JSON, Some("identity"), json),
        (PROTOBUF, None, protobuf.clone()),
        (PROTOBUF, Some("GZIP"), gzip(&protobuf)),
    ] {
        let kept = Arc::new(Kept::default());
        let mut headers = vec![("content-type", content_type)];
        headers.extend(encoding.map(|encoding| ("content-encoding", encoding)));
        let answer = post(&kept, &headers, body);
        assert_eq!(answer.status, 200, "{headers:?}");
        match content_type {
            PROTOBUF => assert_eq!((answer.header("content-type"), &answer.body[..]), (PROTOBUF, &[][..])),
            _ => assert_eq!(answer.json(), serde_json::json!({})),
        }
        batches.push(kept.batches.lock().unwrap().clone());
        assert!(kept.refused.lock().unwrap().is_empty());
    }
    assert!(!batches[0][0].records.is_empty());
    assert!(batches.iter().all(|kept| *kept == batches[0]));
}

#[test]
fn what_was_malformed_is_said_and_the_rest_is_taken() {
    let bad = r#"{"attributes":[{"key":"event.name","value":{"stringValue":"gemini_cli.api_request"}}]}"#;
    let body = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{bad},{bad}]}}]}}]}}"#);
    let kept = Arc::new(Kept::default());
    let answer = post(&kept, &[("content-type", JSON)], body.clone());
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["partialSuccess"]["rejectedLogRecords"], "2");
    let body = protobuf(&serde_json::from_str(&body).unwrap());
    let answer = post(&kept, &[("content-type", PROTOBUF)], body);
    // Field 1 of the answer: { 1: how many, 2: why }.
    assert_eq!((answer.status, answer.body[0], &answer.body[2..4]), (StatusCode::OK, 0x0a, &[0x08, 2][..]));
    assert_eq!(kept.batches.lock().unwrap().iter().map(|batch| batch.malformed).sum::<u64>(), 4);
}

#[test]
fn r72_what_cannot_be_read_is_refused_and_counted() {
    let json = bodies().remove(0).to_string().into_bytes();
    let packed = gzip(&json);
    let bomb = gzip(&vec![b' '; MAX_BODY + 1]);
    assert!(bomb.len() < 20_000);
    let half = packed[..packed.len() / 2].to_vec();
    // Of a length that nobody says before.
    let chunked = Body::new(Full::new(Bytes::from(vec![b' '; MAX_BODY + 1])).map_frame(|frame| frame));
    for (headers, body, status, refusal) in [
        (&[("content-type", JSON)][..], Body::from("{"), 400, Refusal::Undecodable),
        (&[("content-type", JSON)], Body::from(vec![0xff; 100]), 400, Refusal::Undecodable),
        (&[("content-type", PROTOBUF)], Body::from(json.clone()), 400, Refusal::Undecodable),
        (
            &[("content-type", JSON), ("content-encoding", "gzip")],
            Body::from(json.clone()),
            400,
            Refusal::Undecodable,
        ),
        (
            &[("content-type", JSON), ("content-encoding", "gzip")],
            Body::from(half),
            400,
            Refusal::Undecodable,
        ),
        (&[("content-type", JSON), ("content-encoding", "gzip")], Body::from(bomb), 413, Refusal::TooLarge),
        (&[("content-type", JSON)], Body::from(vec![b' '; MAX_BODY + 1]), 413, Refusal::TooLarge),
        (&[("content-type", JSON)], chunked, 413, Refusal::TooLarge),
        (
            &[("content-type", JSON), ("content-encoding", "br")],
            Body::from(json.clone()),
            415,
            Refusal::UnsupportedType,
        ),
        (&[("content-type", "text/plain")], Body::from(json.clone()), 415, Refusal::UnsupportedType),
        (
            &[("content-type", JSON), ("content-type", JSON)],
            Body::from(json.clone()),
            415,
            Refusal::UnsupportedType,
        ),
        // What a page of another origin can send without leave.
        (&[], Body::from(json.clone()), 415, Refusal::UnsupportedType),
    ] {
        let kept = Arc::new(Kept::default());
        let answer = post(&kept, headers, body);
        assert_eq!(answer.status, status, "{headers:?}");
        assert_eq!(*kept.refused.lock().unwrap(), [refusal], "{headers:?}");
        assert!(kept.batches.lock().unwrap().is_empty());
        if answer.header("content-type") == JSON {
            assert!(answer.json()["message"].is_string() && answer.json()["code"].is_u64());
        }
    }
}

#[test]
fn an_intake_that_is_behind_asks_to_come_again() {
    let kept = Arc::new(Kept::default());
    kept.busy.store(true, Ordering::SeqCst);
    let body = bodies().remove(0).to_string();
    let answer = post(&kept, &[("content-type", JSON)], body.clone());
    assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, "1"));
    assert_eq!(*kept.refused.lock().unwrap(), [Refusal::Busy]);
    kept.busy.store(false, Ordering::SeqCst);
    assert_eq!(post(&kept, &[("content-type", JSON)], body).status, 200);
    assert!(!kept.records().is_empty());
}

#[test]
fn metrics_and_traces_are_let_in_and_dropped_unread() {
    let kept = Arc::new(Kept::default());
    for path in ["/v1/metrics", "/v1/traces"] {
        for (content_type, want) in [(JSON, &b"{}"[..]), (PROTOBUF, b"")] {
            let request = Request::post(path).header("content-type", content_type);
            let answer = send(&kept, request.body(Body::from("no such thing")).unwrap());
            assert_eq!((answer.status, &answer.body[..]), (StatusCode::OK, want));
            assert_eq!(answer.header("content-type"), content_type);
        }
        let huge = Request::post(path).body(Body::from(vec![0; MAX_BODY + 1])).unwrap();
        assert_eq!(send(&kept, huge).status, 413);
        let get = Request::get(path).body(Body::empty()).unwrap();
        assert_eq!(send(&kept, get).status, 405);
    }
    assert!(kept.batches.lock().unwrap().is_empty());
}

#[cfg(feature = "grpc")]
mod grpc {
    use axum::http::Version;

    use super::*;
    use crate::support::otlp::{OUTFILES, outfile, request_of};

    /// A call as gRPC frames it.
    fn frame(flag: u8, message: &[u8]) -> Vec<u8> {
        let mut framed = vec![flag];
        framed.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
        framed.extend(message);
        framed
    }

    fn call(kept: &Arc<Kept>, service: &str, encoding: Option<&str>, body: Vec<u8>) -> Answer {
        let path = format!("/opentelemetry.proto.collector.{service}Service/Export");
        let mut request =
            Request::post(path).version(Version::HTTP_2).header("content-type", "application/grpc");
        if let Some(encoding) = encoding {
            request = request.header("grpc-encoding", encoding);
        }
        send(kept, request.body(Body::from(body)).unwrap())
    }

    #[test]
    fn r66_grpc_brings_the_same_records() {
        for recording in OUTFILES {
            let message = protobuf(&request_of(&outfile(recording)));
            let over_http = Arc::new(Kept::default());
            post(&over_http, &[("content-type", PROTOBUF)], message.clone());
            for (encoding, body) in [
                (None, frame(0, &message)),
                (Some("identity"), frame(0, &message)),
                (Some("gzip"), frame(0, &message)),
                (Some("gzip"), frame(1, &gzip(&message))),
            ] {
                let kept = Arc::new(Kept::default());
                let answer = call(&kept, "logs.v1.Logs", encoding, body);
                assert_eq!((answer.status, &answer.body[..]), (StatusCode::OK, &[0, 0, 0, 0, 0][..]));
                assert_eq!(answer.header("content-type"), "application/grpc");
                assert_eq!(answer.trailers["grpc-status"], "0");
                assert_eq!(*kept.batches.lock().unwrap(), *over_http.batches.lock().unwrap());
            }
        }
    }

    #[test]
    fn grpc_says_in_its_own_words_why_it_refuses() {
        let message = protobuf(&bodies()[0]);
        let packed = gzip(&message);
        let bomb = gzip(&vec![0; MAX_BODY + 1]);
        let busy = Arc::new(Kept::default());
        busy.busy.store(true, Ordering::SeqCst);
        let idle = Arc::new(Kept::default());
        for (kept, encoding, body, code) in [
            (&idle, None, frame(0, b"no such message"), "3"),
            (&idle, None, Vec::new(), "3"),
            (&idle, None, frame(0, &message)[..100].to_vec(), "3"),
            (&idle, None, [frame(0, &message), frame(0, &message)].concat(), "3"),
            (&idle, Some("gzip"), frame(1, &packed[..packed.len() - 20]), "3"),
            (&idle, Some("gzip"), frame(1, &bomb), "8"),
            (&idle, None, vec![0; MAX_BODY + 1], "8"),
            (&idle, Some("zstd"), frame(1, &packed), "12"),
            (&busy, None, frame(0, &message), "14"),
        ] {
            let answer = call(kept, "logs.v1.Logs", encoding, body);
            assert_eq!((answer.status, answer.header("grpc-status")), (StatusCode::OK, code));
            assert!(!answer.header("grpc-message").is_empty() && answer.body.is_empty());
        }
        assert!(idle.batches.lock().unwrap().is_empty());
        assert_eq!((idle.refused.lock().unwrap().len(), busy.refused.lock().unwrap().len()), (8, 1));
    }

    #[test]
    fn grpc_drops_metrics_and_traces_and_wants_http_2() {
        let kept = Arc::new(Kept::default());
        for service in ["metrics.v1.Metrics", "trace.v1.Trace"] {
            let answer = call(&kept, service, Some("gzip"), frame(1, b"unread"));
            assert_eq!(
                (answer.status.as_u16(), &answer.trailers["grpc-status"]),
                (200, &"0".parse().unwrap())
            );
        }
        let path = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
        let request = |version, content_type: &str| {
            let request = Request::post(path).version(version).header("content-type", content_type);
            send(&kept, request.body(Body::empty()).unwrap()).status
        };
        assert_eq!(request(Version::HTTP_11, "application/grpc"), 505);
        assert_eq!(request(Version::HTTP_2, "application/grpcx"), 415);
        assert_eq!(request(Version::HTTP_2, "application/grpc+json"), 415);
        assert!(kept.batches.lock().unwrap().is_empty());
    }
}
