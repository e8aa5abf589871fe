//! Events that an orchestrator posts, through the service into its figures.

use serde_json::{Value, json};

use crate::support::Sandbox;
use crate::support::poll::until;
use crate::support::service::Service;

const SESSION: &str = "e2700352-16f4-4a8e-9b1c-0d2e4f6a8c1b";

fn event(id: &str, at: i64, more: &Value) -> Value {
    let mut event = json!({"v": 1, "event_id": id, "at": at, "host": "w1", "session_id": SESSION});
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

/// Posts events; returns the status and the answer.
fn post(service: &Service, events: &[Value]) -> (u16, Value) {
    let body = serde_json::to_string(events).unwrap();
    let request = format!(
        "POST /api/v1/events HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        service.address,
        body.len()
    );
    let answer = service.exchange(&request).unwrap();
    (answer.status, answer.json())
}

fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

#[test]
fn d4_posted_turns_become_figures_once() {
    let sandbox = Sandbox::new();
    let service = sandbox.serve_ready(&[]);
    let at = now() - 5_000;
    let opened = event(
        "1",
        at,
        &json!({"kind": "session_opened", "model": "gemini-2.5-pro", "command": ["gemini", "--acp"]}),
    );
    let started = event("2", at + 100, &json!({"kind": "turn_started", "turn": 1}));
    let (status, answer) = post(&service, &[opened.clone(), started.clone()]);
    assert_eq!((status, &answer["accepted"], &answer["duplicate"]), (202, &json!(2), &json!(0)), "{answer}");

    // The open turn is seen before there is any figure.
    let state = service.json("/api/v1/state");
    assert_eq!(state["sessions"][0]["session_id"], SESSION, "{state}");
    assert_eq!(state["sessions"][0]["open_turn"]["model"], "gemini-2.5-pro", "{state}");
    assert_eq!(state["sessions"][0]["open_turn"]["bound"], "unmeasured", "{state}");
    assert!(state["blind_spots"].as_array().unwrap().contains(&json!("web_search")));

    let usage =
        json!({"inputTokens": 1100, "outputTokens": 12, "thoughtTokens": 70, "cachedReadTokens": 800});
    let ended = event(
        "3",
        at + 900,
        &json!({"kind": "turn_ended", "turn": 1, "stop_reason": "end_turn", "usage": usage}),
    );
    let all = [opened, started, ended];
    let (status, answer) = post(&service, &all);
    assert_eq!((status, &answer["accepted"], &answer["duplicate"]), (202, &json!(1), &json!(2)), "{answer}");
    let (_, answer) = post(&service, &all);
    assert_eq!(answer["duplicate"], 3, "the same again changes nothing: {answer}");

    let report = service.json("/api/v1/report/sessions?since=all");
    let row = &report["rows"][0];
    assert_eq!(row["tokens"]["total"], 1182, "{report}");
    assert_eq!((&row["bound"], &row["basis"]), (&json!("exact"), &json!(["prompt"])), "{report}");
    assert_eq!(row["turns"], json!({"complete": 1, "lower_bound": 0, "unknown": 0}));

    // Once it is final, the counters have it, under the model in force.
    let counted = |metrics: &str, name: &str, labels: &str| {
        metrics.lines().any(|line| line.starts_with(name) && line.contains(labels) && line.ends_with(" 1182"))
    };
    until("the turn in the settled counter", || {
        let metrics = service.get("/metrics").body;
        let settled = counted(&metrics, "gemgauge_settled_tokens_total", "bound=\"exact\"");
        if settled { Ok(()) } else { Err(()) }
    });
    let metrics = service.get("/metrics").body;
    assert!(metrics.contains("gemgauge_events_total{source=\"http\",result=\"accepted\"} 3"), "{metrics}");
    assert!(metrics.contains("gemgauge_events_total{source=\"http\",result=\"duplicate\"} 5"), "{metrics}");
    let turns = "gemgauge_turns_total{home=\"";
    assert!(metrics.lines().any(|line| line.starts_with(turns) && line.ends_with("bound=\"exact\"} 1")));
    assert!(metrics.contains("stop_reason=\"end_turn\"} 1"), "{metrics}");

    // A turn that nobody measured takes the claim from the day, without a token.
    assert!(counted(&metrics, "gemgauge_month_tokens{", "bound=\"exact\""), "{metrics}");
    let dark = [
        event("4", at + 1_000, &json!({"kind": "turn_started", "turn": 2})),
        event("5", at + 1_100, &json!({"kind": "turn_ended", "turn": 2, "stop_reason": "end_turn"})),
    ];
    assert_eq!(post(&service, &dark).0, 202);
    let metrics = service.get("/metrics").body;
    assert!(counted(&metrics, "gemgauge_month_tokens{", "bound=\"at_least\""), "{metrics}");
}

#[test]
fn d4_what_cannot_be_used_is_said_item_by_item_and_the_rest_is_kept() {
    let sandbox = Sandbox::new();
    let service = sandbox.serve_ready(&[]);
    let good = event("1", now(), &json!({"kind": "turn_started", "turn": "a"}));
    let text = event("2", now(), &json!({"kind": "turn_started", "turn": "b", "prompt": "s3cret words"}));
    let unknown = event("3", now(), &json!({"kind": "turn_paused", "turn": "b"}));
    let (status, answer) = post(&service, &[good, text, unknown]);
    assert_eq!(status, 400, "{answer}");
    assert_eq!((&answer["accepted"], &answer["unknown"]), (&json!(1), &json!(1)), "{answer}");
    assert_eq!(answer["errors"][0]["index"], 1, "{answer}");
    assert_eq!(answer["errors"][0]["code"], "content_not_accepted", "{answer}");
    assert!(!service.log().contains("s3cret"), "{}", service.log());
}

#[test]
fn r1_turns_of_another_agent_are_listed_and_not_summed() {
    let sandbox = Sandbox::new();
    let service = sandbox.serve_ready(&[]);
    let at = now() - 5_000;
    let usage = json!({"inputTokens": 10, "outputTokens": 1});
    let events = [
        event("1", at, &json!({"kind": "session_opened", "command": "codex --acp"})),
        event("2", at + 1, &json!({"kind": "turn_started", "turn": 1})),
        event(
            "3",
            at + 2,
            &json!({"kind": "turn_ended", "turn": 1, "stop_reason": "end_turn", "usage": usage}),
        ),
    ];
    assert_eq!(post(&service, &events).0, 202);
    let report = service.json("/api/v1/report/sessions?since=all");
    assert_eq!(report["total"]["bound"], "exact", "{report}");
    assert_eq!(report["total"]["turns"], json!({"complete": 0, "lower_bound": 0, "unknown": 0}), "{report}");
    let explained = service.json(&format!("/api/v1/sessions/{SESSION}"));
    assert!(explained["story"][0].as_str().unwrap().contains("not Gemini CLI"), "{explained}");
}
