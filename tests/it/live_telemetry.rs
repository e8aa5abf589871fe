//! The real Gemini CLI's own exporters, live, against the bill. The CLI is
//! found as in [`crate::live_cli`].

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use gemgauge::ledger::model::Role;
use gemgauge::ledger::telemetry::{OutfileCursor, TelemetryKind, TelemetryRecord};
use gemgauge::sources::otlp::http::routes;
use gemgauge::sources::otlp::outfile::Outfiles;
use gemgauge::sources::otlp::outfile::tail::Limits;

use crate::live_cli::cli;
use crate::support::otlp::{Kept, answers, billed};

/// Plays a scenario with the CLI's telemetry going to `telemetry`, and checks
/// that what was answered is what was billed: by id, each of the five counts.
fn check(
    cli: &Path,
    room: &Path,
    scenario: &str,
    telemetry: &str,
    received: impl FnOnce() -> Vec<TelemetryRecord>,
) -> Vec<TelemetryRecord> {
    let out = room.join(scenario);
    let played = Command::new("node")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/record/record.mjs"))
        .args([scenario, out.to_str().unwrap(), "--telemetry", telemetry])
        .env("GEMGAUGE_GEMINI_CLI", cli)
        .stdin(Stdio::null())
        .output()
        .expect("node starts where the CLI is installed");
    let said = [played.stdout, played.stderr].concat();
    assert!(played.status.success(), "{scenario}: {}", String::from_utf8_lossy(&said));
    let records = received();
    let mut billed = billed(&out.join("billed.jsonl"), |seq| format!("scripted-{seq}"));
    assert!(billed.len() > 2, "{scenario}: {billed:?}");
    let mut answers = answers(&records);
    billed.sort_by(|a, b| a.0.cmp(&b.0));
    answers.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(answers, billed, "{scenario} over {telemetry}");
    let count = |wanted: fn(&TelemetryKind) -> bool| records.iter().filter(|r| wanted(&r.kind)).count();
    assert_eq!(
        count(|kind| matches!(kind, TelemetryKind::Request { .. })),
        count(|kind| matches!(kind, TelemetryKind::Response { .. } | TelemetryKind::Error { .. })),
        "{scenario}: each request was answered or refused"
    );
    assert!(!format!("{records:?}").contains("@plan"), "{scenario}: a prompt is in a record");
    records
}

/// A receiver on a port of its own.
fn with_receiver(play: impl FnOnce(u16, &Kept)) {
    let kept = Arc::new(Kept::default());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    let routes = routes(kept.clone());
    runtime.spawn(async move { axum::serve(listener, routes).await });
    play(port, &kept);
    assert!(kept.refused.lock().unwrap().is_empty());
    assert_eq!(kept.batches.lock().unwrap().iter().map(|batch| batch.malformed).sum::<u64>(), 0);
}

fn roles(records: &[TelemetryRecord]) -> Vec<Role> {
    let mut roles: Vec<Role> = records
        .iter()
        .filter_map(|record| match &record.kind {
            TelemetryKind::Response { call, .. } => Some(call.role),
            _ => None,
        })
        .collect();
    roles.sort_unstable();
    roles.dedup();
    roles
}

const MIXED: [Role; 4] = [Role::Main, Role::Subagent, Role::Router, Role::Tool];

#[test]
fn r66_over_http_all_that_was_billed_is_received() {
    let Some(cli) = cli() else { return };
    let room = tempfile::tempdir().unwrap();
    with_receiver(|port, kept| {
        let telemetry = format!("http://127.0.0.1:{port}");
        let records = check(&cli, room.path(), "headless-mix", &telemetry, || kept.records());
        assert_eq!(roles(&records), MIXED);
        assert!(
            records
                .iter()
                .any(|record| matches!(record.kind, TelemetryKind::Error { status: Some(500), .. }))
        );
        assert_eq!(records.last().unwrap().kind, TelemetryKind::CleanExit);
    });
}

#[cfg(feature = "grpc")]
#[test]
fn r66_over_grpc_all_that_was_billed_is_received() {
    let Some(cli) = cli() else { return };
    let room = tempfile::tempdir().unwrap();
    with_receiver(|port, kept| {
        let telemetry = format!("grpc://127.0.0.1:{port}");
        let records = check(&cli, room.path(), "headless-mix", &telemetry, || kept.records());
        assert_eq!(roles(&records), MIXED);
    });
}

#[test]
fn r66_two_sessions_of_one_process_are_told_apart() {
    let Some(cli) = cli() else { return };
    let room = tempfile::tempdir().unwrap();
    with_receiver(|port, kept| {
        let telemetry = format!("http://127.0.0.1:{port}");
        let records = check(&cli, room.path(), "acp-two-sessions", &telemetry, || kept.records());
        let mut sessions: Vec<&str> = records
            .iter()
            .filter(|record| matches!(record.kind, TelemetryKind::Response { .. }))
            .map(|record| record.session.as_str())
            .collect();
        sessions.sort_unstable();
        sessions.dedup();
        assert_eq!(sessions.len(), 2, "{sessions:?}");
    });
}

#[test]
fn r66_in_an_outfile_all_that_was_billed_is_read() {
    let Some(cli) = cli() else { return };
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("telemetry.log");
    let records = check(&cli, room.path(), "headless-mix", path.to_str().unwrap(), || {
        let mut source = Outfiles::new([(path.clone(), OutfileCursor::default())], Limits::default());
        let mut records = Vec::new();
        // As of a day on which nobody writes it any more.
        source
            .look(i64::MAX, &mut |step| {
                assert_eq!(step.batch.malformed, 0);
                records.extend(step.batch.records);
                Ok(())
            })
            .unwrap();
        records
    });
    assert_eq!(roles(&records), MIXED);
}
