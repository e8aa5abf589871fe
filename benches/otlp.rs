//! How fast telemetry is taken in. Figures are printed; nothing is asserted.
//!
//!     cargo bench --bench otlp
//!
//! The content is what the CLI sends around requests of a real session
//! (`fixtures/recordings/interactive-telemetry`), so three records in four are
//! none that count. The target is 50,000 records a second on two cores.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a bench owns its time and its files")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::body::Body;
use axum::http::{Request, Version};
use gemgauge::ledger::telemetry::{OutfileCursor, TelemetryBatch};
use gemgauge::sources::otlp::http::routes;
use gemgauge::sources::otlp::outfile::Outfiles;
use gemgauge::sources::otlp::outfile::tail::Limits;
use gemgauge::sources::otlp::{Busy, Refusal, TelemetryIntake, json, proto};
use http_body_util::BodyExt;
use tower::ServiceExt;

// The encoder of the tests; it owes nothing to the reader.
#[path = "../tests/it/support/files.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod files;
#[path = "../tests/it/support/otlp.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod otlp;

const TARGET: f64 = 50_000.0;
const ROUNDS: usize = 7;

fn main() {
    // `cargo test` runs benches too, without `--bench`: nothing to do then.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let text = otlp::outfile("interactive-telemetry");
    let request = otlp::request_of(&text);
    let (as_json, as_protobuf) = (request.to_string().into_bytes(), otlp::protobuf(&request));
    let batch = json::logs(&as_json).unwrap();
    let records = batch.records.len() as u64 + batch.dropped;
    println!(
        "a request: {records} records, {} of them count; JSON {} bytes, protobuf {} bytes",
        batch.records.len(),
        as_json.len(),
        as_protobuf.len()
    );

    decode("decode JSON, one core", records, || json::logs(&as_json).unwrap());
    decode("decode protobuf, one core", records, || proto::logs(&as_protobuf).unwrap());
    let packed = otlp::gzip(&as_json);
    through_routes("JSON through the route", records, "application/json", None, &as_json);
    through_routes("JSON, gzip, through the route", records, "application/json", Some("gzip"), &packed);
    through_routes("protobuf through the route", records, "application/x-protobuf", None, &as_protobuf);
    let mut framed = vec![1];
    let packed = otlp::gzip(&as_protobuf);
    framed.extend(u32::try_from(packed.len()).unwrap().to_be_bytes());
    framed.extend(packed);
    through_routes("gRPC, gzip, through the route", records, "application/grpc", Some("gzip"), &framed);
    outfile(&text);
}

fn decode(what: &str, records: u64, decode: impl Fn() -> TelemetryBatch) {
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let mut seen = 0;
        while started.elapsed().as_millis() < 400 {
            std::hint::black_box(decode());
            seen += records;
        }
        rates.push(seen as f64 / started.elapsed().as_secs_f64());
    }
    show(what, "records/s", &mut rates, Some(TARGET));
}

/// An intake that counts.
#[derive(Default)]
struct Null(AtomicU64);

impl TelemetryIntake for Null {
    fn telemetry(&self, batch: TelemetryBatch) -> Result<(), Busy> {
        self.0.fetch_add(batch.records.len() as u64 + batch.dropped, Ordering::Relaxed);
        Ok(())
    }

    fn refused(&self, refusal: Refusal) {
        panic!("{refusal:?}");
    }
}

/// Eight exporters at a time, without the sockets.
fn through_routes(what: &str, records: u64, content_type: &str, encoding: Option<&str>, body: &[u8]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let grpc = content_type == "application/grpc";
    let (path, encoded) = match grpc {
        true => ("/opentelemetry.proto.collector.logs.v1.LogsService/Export", "grpc-encoding"),
        false => ("/v1/logs", "content-encoding"),
    };
    let request = || {
        let version = if grpc { Version::HTTP_2 } else { Version::HTTP_11 };
        let request = Request::post(path).version(version).header("content-type", content_type);
        let request = match encoding {
            Some(encoding) => request.header(encoded, encoding),
            None => request,
        };
        request.body(Body::from(body.to_vec())).unwrap()
    };
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let null = Arc::new(Null::default());
        let routes = routes(null.clone());
        let started = Instant::now();
        runtime.block_on(async {
            let exporters = (0..8).map(|_| {
                let (routes, requests) = (routes.clone(), (0..30).map(|_| request()).collect::<Vec<_>>());
                tokio::spawn(async move {
                    for request in requests {
                        let answer = routes.clone().oneshot(request).await.unwrap();
                        assert!(answer.status().is_success());
                        answer.into_body().collect().await.unwrap();
                    }
                })
            });
            for exporter in exporters.collect::<Vec<_>>() {
                exporter.await.unwrap();
            }
        });
        let took = started.elapsed().as_secs_f64();
        assert_eq!(null.0.load(Ordering::Relaxed), records * 240);
        rates.push((records * 240) as f64 / took);
    }
    show(what, "records/s", &mut rates, Some(TARGET));
}

/// A large outfile, read in one go.
fn outfile(text: &str) {
    let room = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench");
    std::fs::create_dir_all(&room).unwrap();
    let path = room.join("telemetry.log");
    std::fs::write(&path, text.repeat(64)).unwrap();
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let mut source = Outfiles::new([(path.clone(), OutfileCursor::default())], Limits::default());
        let started = Instant::now();
        let mut values = 0;
        source
            .look(i64::MAX, &mut |step| {
                values += step.batch.records.len() as u64 + step.batch.dropped;
                Ok(())
            })
            .unwrap();
        rates.push(values as f64 / started.elapsed().as_secs_f64());
    }
    show("an outfile, one core (each request about ten values)", "values/s", &mut rates, None);
}

/// Prints median and range of a figure beside its target.
fn show(what: &str, unit: &str, values: &mut [f64], target: Option<f64>) {
    values.sort_by(f64::total_cmp);
    let (least, median, most) = (values[0], values[values.len() / 2], values[values.len() - 1]);
    let verdict = match target {
        Some(target) if median >= target => format!(", above the target of {target}"),
        Some(target) => format!(", BELOW the target of {target}"),
        None => String::new(),
    };
    println!("{what:<52} {median:>9.0} {unit} ({least:.0} to {most:.0}){verdict}");
}
