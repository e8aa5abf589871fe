//! Quota as a user and a scraper meet it, on a ledger that somebody filled.

use std::sync::Arc;
use std::time::Duration;

use gemgauge::ledger::evidence::HomeId;
use gemgauge::ledger::model::Role;
use gemgauge::ledger::quota::poll::{BucketReading, Poll, QuotaState};
use gemgauge::ledger::quota::refusal::Rejected;
use gemgauge::ledger::quota::{RISK, Rejection};
use gemgauge::ledger::telemetry::{Call, TelemetryBatch, TelemetryKind, TelemetryRecord};
use gemgauge::sources::quota::rejection::rejection;
use gemgauge::store::pricing::Pricing;
use gemgauge::store::writer::{Ledger, WriterEvents};
use gemgauge::store::{Stale, StoreError, Writer, WriterSettings};
use serde_json::Value;

use crate::exposition::promtool;
use crate::support::Sandbox;
use crate::support::skip;

const MIN: i64 = 60_000;
const HOUR: i64 = 60 * MIN;

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

struct Quiet;

impl WriterEvents for Quiet {
    fn committed(&self, _: Duration) {}
    fn blocked(&self, error: Option<&StoreError>) {
        assert!(error.is_none(), "{error:?}");
    }
    fn queued(&self) {}
    fn taken(&self, _: usize) {}
    fn stale(&self, _: Stale) {}
}

/// Writes into the sandbox's ledger as a service would, for the user's home.
fn seed(sandbox: &Sandbox, write: impl FnOnce(&Writer, HomeId)) {
    let mut ledger = Ledger::open(&sandbox.ledger()).unwrap();
    let home = std::fs::canonicalize(sandbox.home()).unwrap();
    let (home, _) = ledger.home(&home, "ana").unwrap();
    let settings = WriterSettings {
        max_tuples: 100,
        pricing: Pricing::default(),
        patient: Arc::new(|| false),
        clock: Arc::new(now),
        stopwatch: Arc::new(|| Duration::ZERO),
    };
    let (writer, thread) = ledger.start(settings, Arc::new(Quiet));
    writer.imported(home).unwrap();
    write(&writer, home);
    writer.stop();
    thread.join().unwrap();
}

fn bucket(model: &str, fraction: Option<f64>, amount: Option<i64>, resets_at: i64) -> BucketReading {
    BucketReading {
        model: model.into(),
        token_type: "REQUESTS".into(),
        remaining_fraction: fraction,
        remaining_amount: amount,
        resets_at: Some(resets_at),
    }
}

fn poll(home: HomeId, at: i64, pro: f64) -> Poll {
    let reset = at + 3 * HOUR;
    Poll {
        home,
        at,
        state: QuotaState::Ok,
        detail: None,
        account: Some("9f3a6c01".into()),
        cloud_project: Some("web-1".into()),
        buckets: vec![
            bucket("gemini-2.5-pro", Some(pro), Some((pro * 1000.0) as i64), reset),
            bucket("gemini-2.5-flash", Some(0.998), None, reset),
            bucket("gemini-3-pro-preview", None, None, reset),
        ],
        next_poll_at: Some(at + 5 * MIN),
        asked: true,
    }
}

/// Two polls an hour apart, the last a minute ago; pro fell from 82 to 62 %.
pub(crate) fn polled(sandbox: &Sandbox) -> i64 {
    let at = now() - MIN;
    seed(sandbox, |writer, home| {
        for (at, pro) in [(at - HOUR, 0.82), (at, 0.62), (at, 0.62)] {
            writer.poll(poll(home, at, pro)).unwrap();
        }
    });
    at
}

fn refuse(sandbox: &Sandbox, at: i64, rejection: &Rejection) {
    seed(sandbox, |writer, home| {
        for _ in 0..2 {
            let session = "5e551010-0000-4000-8000-000000000001".into();
            let rejected = Rejected { home, session, at, door: false, rejection: rejection.clone() };
            writer.rejected(rejected).unwrap();
        }
    });
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn q1_without_consent_it_shows_what_is_stored_says_why_and_exits_with_1() {
    let sandbox = Sandbox::new();
    let none = sandbox.run(&["quota"]);
    assert_eq!((none.code, none.err.as_str()), (1, ""), "{none:?}");
    assert!(none.out.contains(": not polled\n"), "{}", none.out);
    assert!(words(&none.out).ends_with(&words(RISK)), "{}", none.out);

    let sandbox = Sandbox::new();
    polled(&sandbox);
    let stored = sandbox.run(&["quota"]);
    assert_eq!(stored.code, 1);
    assert!(words(&stored.out).ends_with(&words(RISK)), "{}", stored.out);
    for want in [
        "ana: ok, asked 1 min ago\n",
        "  account 9f3a6c01, cloud project web-1\n",
        "  2.5-flash      ███████████░  99 % left, resets in 2 h 58 min\n",
        "  2.5-pro        ███████░░░░░  62 % left, resets in 2 h 58 min\n",
        "                 620 left of 1000 (derived)\n",
        "                 lasts until it resets at this pace\n",
        "  3-pro-preview  not reported: neither 0 % nor 100 %\n",
    ] {
        assert!(stored.out.contains(want), "{want}: {}", stored.out);
    }
    assert!(stored.out.lines().all(|line| line.chars().count() <= 80), "{}", stored.out);
}

#[test]
fn q9_q13_the_document_of_the_command_is_that_of_the_service() {
    let sandbox = Sandbox::new();
    polled(&sandbox);
    let said = json(&sandbox.run(&["quota", "--json"]).out);
    let pro = &said["limits"][1];
    assert_eq!(pro["label"], "gemini-2.5-pro limit");
    assert_eq!((pro["used_percent"].as_f64(), pro["limit"].as_i64()), (Some(38.0), Some(1000)));
    assert_eq!(pro["runway"]["percent_per_hour"], 20.0);
    assert_eq!(pro["runway"]["before_reset"], false, "3.1 hours at 20 % an hour, 3 to the reset");
    assert_eq!(pro["history"].as_array().unwrap().len(), 2, "the same poll twice is one");
    assert_eq!(said["limits"][2]["used_percent"], Value::Null);
    assert_eq!(said["risk"], RISK);

    let service = sandbox.serve_ready(&[]);
    let served = service.json("/api/v1/quota");
    assert_eq!(served["limits"][1]["history"], pro["history"]);
    let state = service.json("/api/v1/state");
    assert_eq!(state["rate_limits"].as_array().unwrap().len(), 3);
    assert_eq!(state["rate_limits"][1]["home"], "ana");
    assert_eq!(state["rate_limits"][1]["remaining_fraction"], 0.62);
    assert_eq!(state["quota"]["ana"]["state"], "ok");
}

#[test]
fn min_gates_a_script_by_what_is_known() {
    let sandbox = Sandbox::new();
    polled(&sandbox);
    // Nothing allows to ask here, so the answer is no in any case; what is shown is filtered.
    let said = sandbox.run(&["quota", "--model", "flash", "--min", "50", "--no-scan"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("2.5-flash") && !said.out.contains("2.5-pro"), "{}", said.out);
    let watched = sandbox.run(&["quota", "--watch"]);
    assert_eq!((watched.code, watched.out.as_str()), (2, ""), "standard output is no terminal");
}

#[test]
fn q14_a_refusal_contradicts_a_bucket_on_every_surface() {
    let sandbox = Sandbox::new();
    let at = polled(&sandbox);
    let body = r#"{"error": {"code": 429, "message": "You have exhausted your capacity on this model. Your quota will reset after 1h30m.",
        "status": "RESOURCE_EXHAUSTED", "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "QUOTA_EXHAUSTED", "metadata": {"model": "gemini-2.5-pro"}}]}}"#;
    let read = rejection(body, at).expect("a refusal");
    refuse(&sandbox, at, &read);

    let said = sandbox.run(&["quota", "--no-scan"]);
    assert!(words(&said.out).contains("CONTRADICTED: refused at"), "{}", said.out);
    assert!(words(&said.out).contains("though 62 % were left at"), "{}", said.out);
    assert!(said.out.contains("ASLEEP until "), "{}", said.out);
    assert!(said.out.lines().all(|line| line.chars().count() <= 80), "{}", said.out);
    let status = sandbox.run(&["status", "--no-scan"]).out;
    assert!(status.contains(" · pro refused until "), "{status}");

    let service = sandbox.serve_ready(&[]);
    let metrics = service.metrics();
    let pro = [("model", "gemini-2.5-pro")];
    let value = |name: &str, more: &[(&str, &str)]| metrics.value(name, &[&pro, more].concat());
    assert_eq!(value("gemgauge_quota_remaining_ratio", &[]), Some(0.62));
    assert_eq!(value("gemgauge_quota_contradicted", &[]), Some(1.0));
    assert_eq!(value("gemgauge_quota_blocked", &[("evidence", "429")]), Some(1.0));
    assert_eq!(value("gemgauge_quota_blocked", &[("evidence", "poll")]), Some(0.0));
    assert_eq!(
        value("gemgauge_quota_consumed_ratio_total", &[]),
        Some(0.2),
        "it was there before serve began"
    );
    assert_eq!(value("gemgauge_quota_rejections_total", &[("reason", "quota_exhausted")]), Some(1.0));
    assert_eq!(value("gemgauge_quota_exhaustions_total", &[]), Some(1.0));
    assert_eq!(value("gemgauge_turns_asleep", &[]), Some(1.0));
    let until = value("gemgauge_turn_asleep_until_timestamp_seconds", &[]).unwrap();
    assert!((until - (at + 90 * MIN) as f64 / 1e3).abs() < 0.01);
    assert_eq!(metrics.value("gemgauge_quota_state", &[("state", "ok")]), Some(1.0));
    assert_eq!(metrics.value("gemgauge_quota_polls_total", &[("result", "ok")]), Some(2.0));
    match promtool(&service.get("/metrics").body) {
        None => skip::missing("promtool"),
        Some(said) => assert_eq!(said, ""),
    }
}

#[test]
fn q14_what_was_refused_is_shown_without_any_poll() {
    let sandbox = Sandbox::new();
    let at = now() - MIN;
    refuse(&sandbox, at, &rejection("Individual quota reached. Resets in 9h22m20s.", at).expect("a refusal"));
    let said = sandbox.run(&["quota"]);
    assert!(said.out.contains("ana: not polled\n  refused at "), "{}", said.out);
    assert!(!said.out.contains("ASLEEP"), "Gemini CLI fails at once on this: {}", said.out);
    let metrics = sandbox.serve_ready(&[]).metrics();
    let unknown = [("account", "unknown"), ("model", "unknown"), ("evidence", "429")];
    assert_eq!(metrics.value("gemgauge_quota_blocked", &unknown), Some(1.0));
    assert_eq!(metrics.value("gemgauge_quota_home_info", &[("home", "ana")]), Some(1.0));
    assert_eq!(metrics.value("gemgauge_quota_state", &[("state", "off")]), Some(1.0));
}

#[test]
fn q14_what_telemetry_and_a_door_tell_of_one_refusal_counts_once() {
    const SESSION: &str = "5e551010-0000-4000-8000-000000000002";
    let sandbox = Sandbox::new();
    let at = now() - MIN;
    let text = "You have exhausted your capacity on this model. Your quota will reset after 14h23m40s.";
    let read = rejection(text, at).expect("a refusal");
    seed(&sandbox, |writer, home| {
        let call = Call { prompt_id: "p".into(), role: Role::Main, model: Some("gemini-2.5-flash".into()) };
        let rejection = Some(read.clone());
        let kind = TelemetryKind::Error { call, duration_ms: 11, status: Some(429), rejection };
        let record = TelemetryRecord { session: SESSION.into(), at, kind };
        for _ in 0..2 {
            let batch = TelemetryBatch { records: vec![record.clone()], ..TelemetryBatch::default() };
            writer.telemetry(batch).unwrap();
        }
        let session = SESSION.into();
        let rejected = Rejected { home, session, at: at + 30, door: true, rejection: read.clone() };
        writer.rejected(rejected).unwrap();
    });
    let metrics = sandbox.serve_ready(&[]).metrics();
    let flash = [("home", "ana"), ("model", "gemini-2.5-flash")];
    let value = |name: &str, more: &[(&str, &str)]| metrics.value(name, &[&flash, more].concat());
    assert_eq!(value("gemgauge_quota_rejections_total", &[("reason", "none")]), Some(1.0));
    assert_eq!(value("gemgauge_quota_exhaustions_total", &[]), Some(1.0));
    assert_eq!(value("gemgauge_turns_asleep", &[]), Some(1.0), "the error itself is no sign of life");
    assert_eq!(
        metrics.of("gemgauge_quota_exhaustions_total", &[]).count(),
        1,
        "of the model that was asked for"
    );
}

#[test]
fn status_names_the_limit_that_ends_first() {
    let sandbox = Sandbox::new();
    let plain = sandbox.run(&["status"]).out;
    assert!(!plain.contains('%'), "{plain}");
    polled(&sandbox);
    let status = sandbox.run(&["status"]).out;
    assert!(status.contains(" this month · pro 62 % until "), "{status}");
    let said = json(&sandbox.run(&["status", "--json"]).out);
    assert_eq!(said["limit"]["model"], "gemini-2.5-pro");
    assert_eq!(said["limit"]["remaining_percent"], 62.0);
}

/// The query of docs/metrics.md after a sentence that begins so.
fn documented(sentence: &str) -> &'static str {
    let text = include_str!("../../docs/metrics.md");
    let after = &text[text.find(sentence).expect("the sentence is there")..];
    let (_, query) = after.split_once("```promql\n").expect("a query follows");
    query.split_once("```").expect("and ends").0
}

#[test]
fn q13_the_documented_alert_fires_where_it_should() {
    let sandbox = Sandbox::new();
    // By the minute, in Prometheus's notation, looked at after 150 of them. 1.5 % go away in three
    // minutes, 25 % are left, and the limit resets after 240 minutes: empty in 50, reset in 90.
    let falls = ("1-0.005x150", "0+0.005x150");
    let cases = [
        ("falling too fast", falls, "0+60x150", "14400x150", true),
        ("it resets before", falls, "0+60x150", "11400x150", false),
        ("the reset has passed", falls, "0+60x150", "8000x150", false),
        ("nobody has asked for 20 minutes", falls, "0+60x130 7800x20", "14400x150", false),
        (
            "quiet for the last half hour",
            ("1-0.005x110 0.45x40", "0+0.005x110 0.55x40"),
            "0+60x150",
            "14400x150",
            false,
        ),
        (
            "only the last half hour is busy",
            ("1x120 1-0.01x30", "0x120 0+0.01x30"),
            "0+60x150",
            "14400x150",
            false,
        ),
    ];
    let indented: String =
        documented("A limit will be empty before").lines().map(|line| format!("      {line}\n")).collect();
    sandbox.write(
        "rules.yml",
        &format!("groups:\n- name: quota\n  rules:\n  - alert: Empty\n    expr: |\n{indented}"),
    );
    let mut tests = String::from("rule_files: [rules.yml]\nevaluation_interval: 1m\ntests:\n");
    for (name, (ratio, consumed), observed, reset, fires) in cases {
        let limit = "account=\"a\",cloud_project=\"p\",model=\"m\",token_type=\"REQUESTS\"";
        tests.push_str(&format!("- name: {name}\n  interval: 1m\n  input_series:\n"));
        for (series, labels, values) in [
            ("remaining_ratio", limit, ratio),
            ("consumed_ratio_total", limit, consumed),
            ("reset_timestamp_seconds", limit, reset),
            ("observed_timestamp_seconds", "account=\"a\",cloud_project=\"p\"", observed),
        ] {
            tests.push_str(&format!(
                "  - series: 'gemgauge_quota_{series}{{{labels}}}'\n    values: '{values}'\n"
            ));
        }
        let alerts = if fires {
            "[{exp_labels: {account: a, cloud_project: p, model: m, token_type: REQUESTS}}]"
        } else {
            "[]"
        };
        tests.push_str(&format!(
            "  alert_rule_test:\n  - eval_time: 150m\n    alertname: Empty\n    exp_alerts: {alerts}\n"
        ));
    }
    let tests = sandbox.write("tests.yml", &tests);
    match std::process::Command::new("promtool").args(["test", "rules"]).arg(tests).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => skip::missing("promtool"),
        said => {
            let said = said.unwrap();
            assert!(
                said.status.success(),
                "{}",
                String::from_utf8_lossy(&[said.stdout, said.stderr].concat())
            );
        }
    }
}
