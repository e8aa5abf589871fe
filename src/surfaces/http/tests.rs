//! The routes as a client sees them, over a fake of the views.

use std::io::{Read as _, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use serde_json::Value;
use tower::ServiceExt as _;

use super::*;
use crate::config::TelemetryPath;
use crate::surfaces::metrics::{Format, Receipt};

#[derive(Default)]
struct Fake {
    waiting: Mutex<Vec<String>>,
    scrapes: AtomicUsize,
    scraped: AtomicUsize,
    asked: Mutex<Vec<(String, Query)>>,
}

impl Views for Fake {
    fn state(&self) -> Result<String, ApiError> {
        Ok(r#"{"version":"0.1.0"}"#.into())
    }

    fn report(&self, kind: &str, query: &Query) -> Result<String, ApiError> {
        self.asked.lock().expect("no panic").push((kind.to_owned(), query.clone()));
        match kind {
            "daily" => Ok(format!(r#"{{"kind":"daily","rows":[{}]}}"#, "0,".repeat(4000) + "0")),
            "broken" => Err(ApiError::ledger_unavailable("disk I/O error")),
            "bug" => panic!("a bug in a view"),
            _ => Err(ApiError::not_found("unknown_report", format!("there is no report `{kind}`"))),
        }
    }

    fn session(&self, id: &str) -> Result<String, ApiError> {
        Ok(serde_json::json!({ "id": id }).to_string())
    }

    fn quota(&self) -> Result<String, ApiError> {
        Ok(r#"{"schema":1,"limits":[]}"#.into())
    }

    fn scrape(&self, format: Format) -> Scrape {
        self.scrapes.fetch_add(1, SeqCst);
        Scrape { body: format!("# {format:?}\n"), receipt: Receipt::default() }
    }

    fn scraped(&self, _: Receipt) {
        self.scraped.fetch_add(1, SeqCst);
    }

    fn ready(&self) -> Readiness {
        Readiness { waiting: self.waiting.lock().expect("no panic").clone(), degraded: vec![] }
    }
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("plain"))
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), "application/json");
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// The code of an error answer of the agreed shape.
    fn code(&self) -> String {
        let json = self.json();
        let error = json.as_object().filter(|o| o.len() == 1).and_then(|o| o["error"].as_object());
        let error = error.filter(|error| error.len() == 2 && error["message"].is_string());
        error.and_then(|error| error["code"].as_str()).expect("the agreed shape").to_owned()
    }
}

fn options() -> Options {
    Options {
        telemetry_path: TelemetryPath::default(),
        hosts: Hosts::loopback([""; 0]),
        gate: Arc::new(Gate::open(None, None, Arc::default()).expect("nothing to read")),
        loopback: true,
        live: Live::new(tokio::sync::watch::channel(0).1, tokio::sync::watch::channel(false).1),
        inputs: axum::Router::new(),
    }
}

fn app(fake: &Arc<Fake>) -> axum::Router {
    let views = Arc::clone(fake) as Arc<dyn Views>;
    router(views, options())
}

async fn ask(fake: &Arc<Fake>, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", "localhost:10436");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).expect("a request");
    let response = app(fake).oneshot(request).await.expect("infallible");
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, 1 << 20).await.expect("a body").to_vec();
    Answer { status: parts.status, headers: parts.headers, body }
}

async fn get(path: &str) -> Answer {
    ask(&Arc::default(), Method::GET, path, &[]).await
}

#[tokio::test]
async fn the_page_comes_under_a_policy_and_is_asked_for_anew() {
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/-/page/main.js", "text/javascript; charset=utf-8"),
        ("/-/page/app.css", "text/css; charset=utf-8"),
        ("/-/page/icon.svg", "image/svg+xml"),
        ("/-/page/words.json", "application/json"),
    ] {
        let file = get(path).await;
        assert_eq!((file.status.as_u16(), file.header("content-type")), (200, kind), "{path}");
        assert_eq!(file.header("content-security-policy"), crate::surfaces::page::POLICY);
        assert_eq!(
            (file.header("cache-control"), file.header("referrer-policy")),
            ("no-cache", "no-referrer")
        );
        let tag = file.header("etag").to_owned();
        for (known, status) in [(tag.as_str(), 304), ("\"x\", *", 304), ("\"x\"", 200), (&tag[2..], 304)] {
            let again = ask(&Arc::default(), Method::GET, path, &[("if-none-match", known)]).await;
            assert_eq!((again.status.as_u16(), again.header("etag")), (status, tag.as_str()), "{known}");
            assert_eq!(again.body.is_empty(), status == 304);
        }
        assert!(ask(&Arc::default(), Method::HEAD, path, &[]).await.body.is_empty());
        assert_eq!(ask(&Arc::default(), Method::POST, path, &[]).await.code(), "method_not_allowed");
    }
    assert_eq!(get("/-/page/mod.rs").await.code(), "not_found");
}

#[tokio::test]
async fn streams_tell_how_things_stand_and_end_with_the_service() {
    let (_changed, changes) = tokio::sync::watch::channel(7);
    let (stopping, stopped) = tokio::sync::watch::channel(false);
    let live = Live::new(changes, stopped);
    let streams: Vec<_> = (0..live::STREAMS).map(|_| live.answer()).collect();
    assert!(streams.iter().all(|answer| answer.status() == 200));
    assert_eq!(live.answer().status(), 503);
    stopping.send_replace(true);
    for stream in streams {
        let body = to_bytes(stream.into_body(), 1 << 10).await.expect("it ends");
        assert!(body.is_empty() || body.starts_with(b"event: ledger\ndata: {\"changes\":7}\n\n"));
    }
    assert_ne!(live.answer().status(), 503, "their places are free again");
}

#[tokio::test]
async fn every_answer_carries_the_guarding_headers() {
    for path in ["/", "/metrics", "/-/ready", "/api/v1/state", "/api/v1/nothing", "/api/v1/report/bug"] {
        let answer = get(path).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert!(answer.header("content-security-policy").starts_with("default-src 'none'"), "{path}");
    }
    let refused = ask(&Arc::default(), Method::GET, "/", &[("host", "evil.example")]).await;
    assert_eq!(refused.header("x-content-type-options"), "nosniff");
}

#[tokio::test]
async fn metrics_come_in_the_form_that_is_asked_for() {
    for (accept, format) in
        [("*/*", Format::Text), ("application/openmetrics-text;version=1.0.0", Format::OpenMetrics)]
    {
        let answer = ask(&Arc::default(), Method::GET, "/metrics?x=1", &[("accept", accept)]).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), format.content_type());
        assert!(answer.header("vary").contains("accept"));
        assert_eq!(answer.text(), format!("# {format:?}\n"));
    }
}

#[tokio::test]
async fn only_an_answered_get_of_metrics_has_been_seen() {
    let fake = Arc::<Fake>::default();
    let answer = ask(&fake, Method::HEAD, "/metrics", &[]).await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (200, 0));
    assert_eq!(fake.scraped.load(SeqCst), 0);
    ask(&fake, Method::GET, "/metrics", &[]).await;
    assert_eq!((fake.scrapes.load(SeqCst), fake.scraped.load(SeqCst)), (2, 1));
}

#[tokio::test]
async fn the_telemetry_path_can_be_another() {
    let telemetry_path = "/my/metrics".parse().expect("fine");
    let options = Options { telemetry_path, hosts: Hosts::Any, ..options() };
    let app = router(Arc::new(Fake::default()), options);
    for (path, want) in [("/my/metrics", 200), ("/metrics", 404)] {
        let request = Request::get(path).body(Body::empty()).expect("a request");
        let status = app.clone().oneshot(request).await.expect("infallible").status();
        assert_eq!(status, want, "{path}");
    }
    for path in ["", "metrics", "/", "/api/v1/state", "/-/ready", "/{kind}", "/a b", "/<x>"] {
        assert!(path.parse::<TelemetryPath>().is_err(), "{path:?}");
    }
}

#[tokio::test]
async fn ready_says_why_not() {
    let fake = Arc::<Fake>::default();
    let ready = ask(&fake, Method::GET, "/-/ready", &[]).await;
    assert_eq!((ready.status.as_u16(), ready.text()), (200, "ready\n"));
    fake.waiting.lock().expect("no panic").push("the first import of home ana is not done yet".into());
    let waiting = ask(&fake, Method::GET, "/-/ready", &[]).await;
    assert_eq!(waiting.status, 503);
    assert_eq!(waiting.text(), "not ready: the first import of home ana is not done yet\n");
    assert_eq!(ask(&fake, Method::HEAD, "/-/ready", &[]).await.status, 503);
    assert_eq!(ask(&fake, Method::GET, "/-/healthy", &[]).await.status, 200);
}

#[tokio::test]
async fn documents_are_json_and_parameters_arrive() {
    assert_eq!(get("/api/v1/state").await.json()["version"], "0.1.0");
    assert_eq!(get("/api/v1/sessions/b4265a7e%2F%C3%A9").await.json()["id"], "b4265a7e/é");
    let fake = Arc::<Fake>::default();
    let report = ask(&fake, Method::GET, "/api/v1/report/daily?since=7d&by=model&by=home", &[]).await;
    assert_eq!(report.json()["kind"], "daily");
    let asked = fake.asked.lock().expect("no panic");
    assert_eq!(asked[0].1.many("by"), ["model", "home"]);
}

#[tokio::test]
async fn every_error_has_the_agreed_shape() {
    for (method, path, status, code) in [
        (Method::GET, "/api/v1/nothing", 404, "not_found"),
        (Method::GET, "/api/v1/report/", 404, "not_found"),
        (Method::GET, "/nothing", 404, "not_found"),
        (Method::GET, "/api/v1/report/yearly", 404, "unknown_report"),
        (Method::POST, "/api/v1/state", 405, "method_not_allowed"),
        (Method::DELETE, "/metrics", 405, "method_not_allowed"),
        (Method::GET, "/api/v1/state?verbose", 400, "unknown_parameter"),
        (Method::GET, "/api/v1/sessions/b4265a7e?since=7d", 400, "unknown_parameter"),
        (Method::GET, "/api/v1/report/daily?sience=7d", 400, "unknown_parameter"),
        (Method::GET, "/api/v1/sessions/%FF", 400, "bad_path"),
        (Method::GET, "/api/v1/report/broken", 503, "ledger_unavailable"),
        (Method::GET, "/api/v1/report/bug", 500, "internal"),
    ] {
        let answer = ask(&Arc::default(), method.clone(), path, &[]).await;
        assert_eq!((answer.status.as_u16(), answer.code().as_str()), (status, code), "{method} {path}");
        if status == 405 {
            assert_eq!(answer.header("allow"), "GET,HEAD", "{path}");
        }
    }
}

#[tokio::test]
async fn other_names_are_refused_before_anything_is_read() {
    let fake = Arc::<Fake>::default();
    let answer = ask(&fake, Method::GET, "/metrics", &[("host", "evil.example:10436")]).await;
    assert_eq!((answer.status.as_u16(), answer.code().as_str()), (421, "wrong_host"));
    assert_eq!(fake.scrapes.load(SeqCst), 0);
}

#[tokio::test]
async fn a_large_body_is_refused() {
    let answer = ask(&Arc::default(), Method::GET, "/api/v1/state", &[("content-length", "1048577")]).await;
    assert_eq!((answer.status.as_u16(), answer.code().as_str()), (413, "body_too_large"));
}

#[tokio::test]
async fn long_answers_are_compressed_on_request() {
    let answer =
        ask(&Arc::default(), Method::GET, "/api/v1/report/daily", &[("accept-encoding", "gzip")]).await;
    assert_eq!(answer.header("content-encoding"), "gzip");
    assert!(answer.body.len() < 1000 && answer.body.starts_with(&[0x1f, 0x8b]));
}

/// What only a connection shows: no Host header, and no body after a HEAD.
#[tokio::test]
async fn over_a_real_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = tokio::spawn(axum::serve(listener, app(&Arc::default())).into_future());
    let talk = move |request: &'static str| {
        let mut stream = std::net::TcpStream::connect(address).expect("connects");
        stream.write_all(request.as_bytes()).expect("sends");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("answers");
        String::from_utf8(answer).expect("plain text")
    };
    let answers = tokio::task::spawn_blocking(move || {
        [
            "GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n",
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            "HEAD /api/v1/report/daily HTTP/1.1\r\nHost: [::1]:10436\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n",
        ]
        .map(talk)
    });
    let [no_host, metrics, head] = answers.await.expect("no panic");
    server.abort();
    assert!(no_host.starts_with("HTTP/1.1 400") && no_host.contains("bad_host"), "{no_host}");
    assert!(metrics.starts_with("HTTP/1.1 200") && metrics.ends_with("# Text\n"), "{metrics}");
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
}
