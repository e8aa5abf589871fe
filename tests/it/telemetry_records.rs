//! Telemetry that was captured, against the bill; and what is not as it must be.

use std::sync::LazyLock;

use gemgauge::ledger::model::Role;
use gemgauge::ledger::telemetry::{RecordKey, TelemetryBatch, TelemetryKind};
use gemgauge::sources::otlp::{json, proto};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::cases;
use crate::support::files::fixture;
use crate::support::otlp::{OUTFILES, answers, billed, bodies, outfile, protobuf, request_of};

fn read(request: &Value) -> TelemetryBatch {
    json::logs(request.to_string().as_bytes()).unwrap()
}

/// All captured requests, each as one body.
static CAPTURED: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let mut requests = bodies();
    requests.extend(OUTFILES.map(|recording| request_of(&outfile(recording))));
    requests
});

/// Each as JSON and as protobuf.
static BODIES: LazyLock<Vec<(Vec<u8>, Vec<u8>)>> = LazyLock::new(|| {
    let both = |request: &Value| (request.to_string().into_bytes(), protobuf(request));
    CAPTURED.iter().map(both).collect()
});

#[test]
fn r66_what_was_answered_is_what_was_billed() {
    // What telemetry does not see: requests of processes without it, and one that was cancelled.
    for (recording, unseen) in [
        ("telemetry-outfile", &[][..]),
        ("interactive-telemetry", &["resp-0006"]),
        ("list-sessions", &["resp-0001", "resp-0002"]),
        ("headless-model-version", &[]),
        ("telemetry-otlp-http", &[]),
    ] {
        let batch = match recording {
            "telemetry-otlp-http" => read(&bodies()[0]),
            _ => read(&request_of(&outfile(recording))),
        };
        assert_eq!(batch.malformed, 0, "{recording}");
        let log = fixture(&format!("recordings/{recording}/stub.jsonl"));
        let mut billed = billed(&log, |seq| format!("resp-{seq:04}"));
        billed.retain(|(id, _)| !unseen.contains(&id.as_str()));
        assert!(!billed.is_empty(), "{recording}");
        assert_eq!(answers(&batch.records), billed, "{recording}");
    }
}

#[test]
fn r66_a_request_has_one_answer_or_one_error_unless_it_was_cancelled() {
    for (recording, unanswered) in [("telemetry-outfile", 0), ("interactive-telemetry", 1)] {
        let batch = read(&request_of(&outfile(recording)));
        let count = |wanted: fn(&TelemetryKind) -> bool| {
            batch.records.iter().filter(|record| wanted(&record.kind)).count()
        };
        let requests = count(|kind| matches!(kind, TelemetryKind::Request { .. }));
        let responses = count(|kind| matches!(kind, TelemetryKind::Response { .. }));
        let errors = count(|kind| matches!(kind, TelemetryKind::Error { .. }));
        assert_eq!(requests, responses + errors + unanswered, "{recording}");
        assert!(count(|kind| matches!(kind, TelemetryKind::Prompt { .. })) > 0, "{recording}");
        assert_eq!(batch.records.last().unwrap().kind, TelemetryKind::CleanExit, "{recording}");
    }
}

#[test]
fn r66_roles_models_and_statuses_are_the_clis_own() {
    let records = read(&request_of(&outfile("telemetry-outfile"))).records;
    let roles: Vec<Role> = records
        .iter()
        .filter_map(|record| match &record.kind {
            TelemetryKind::Response { call, .. } => Some(call.role),
            _ => None,
        })
        .collect();
    assert_eq!(roles[..4], [Role::Router, Role::Main, Role::Subagent, Role::Subagent]);
    assert!(roles.contains(&Role::Tool));
    let errors: Vec<_> = records
        .iter()
        .filter_map(|record| match &record.kind {
            TelemetryKind::Error { status, rejection, duration_ms, .. } => {
                Some((*status, rejection.clone(), *duration_ms))
            }
            _ => None,
        })
        .collect();
    assert_eq!(errors, [(Some(500), None, 57)]);
    let revised = read(&request_of(&outfile("headless-model-version"))).records;
    assert!(revised.iter().any(|record| matches!(&record.kind,
        TelemetryKind::Response { call, .. } if call.model.as_deref() == Some("gemini-2.5-pro-001"))));
}

#[test]
fn r66_both_forms_of_the_same_content_give_equal_records() {
    for (json, protobuf) in &*BODIES {
        let from_json = json::logs(json).unwrap();
        assert!(!from_json.records.is_empty());
        assert_eq!(proto::logs(protobuf).unwrap(), from_json);
    }
}

/// One response in which one attribute is another.
fn response(changes: &[(&str, Value)]) -> Value {
    let mut attributes = json!({
        "event.name": {"stringValue": "gemini_cli.api_response"},
        "event.timestamp": {"stringValue": "2026-11-30T15:51:24.650Z"},
        "session.id": {"stringValue": "s"},
        "prompt_id": {"stringValue": "p"},
        "role": {"stringValue": "main"},
        "model": {"stringValue": "m"},
        "duration_ms": {"intValue": 3},
        "input_token_count": {"intValue": 10},
        "output_token_count": {"intValue": 2},
        "cached_content_token_count": {"intValue": 4},
        "thoughts_token_count": {"intValue": 1},
        "tool_token_count": {"intValue": 0},
    });
    for (key, value) in changes {
        match value {
            Value::Null => drop(attributes.as_object_mut().unwrap().remove(*key)),
            value => attributes[key] = value.clone(),
        }
    }
    let pairs =
        attributes.as_object().unwrap().iter().map(|(key, value)| json!({"key": key, "value": value}));
    let record = json!({"timeUnixNano": "1796053884651000000", "attributes": pairs.collect::<Vec<_>>()});
    json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]})
}

/// Both forms must agree.
fn read_both(request: &Value) -> TelemetryBatch {
    let batch = read(request);
    assert_eq!(proto::logs(&protobuf(request)).unwrap(), batch, "{request}");
    batch
}

#[test]
fn r66_what_is_not_as_it_must_be_is_malformed_and_no_figure() {
    let long = "x".repeat(257);
    for (key, value) in [
        ("input_token_count", json!({"stringValue": "10"})),
        ("input_token_count", json!({"doubleValue": 10.0})),
        ("input_token_count", json!({"intValue": -1})),
        ("input_token_count", json!({"boolValue": true})),
        ("input_token_count", json!({})),
        ("input_token_count", Value::Null),
        ("output_token_count", Value::Null),
        ("cached_content_token_count", json!({"arrayValue": {"values": []}})),
        ("thoughts_token_count", json!({"kvlistValue": {"values": []}})),
        ("tool_token_count", json!({"stringValue": ""})),
        ("session.id", Value::Null),
        ("session.id", json!({"stringValue": ""})),
        ("session.id", json!({"stringValue": long})),
        ("session.id", json!({"intValue": 7})),
        ("prompt_id", Value::Null),
        ("role", json!({"intValue": 1})),
        ("model", json!({"intValue": 1})),
        ("model", json!({"stringValue": long})),
        ("duration_ms", json!({"doubleValue": -0.5})),
        ("duration_ms", json!({"stringValue": "3"})),
    ] {
        let batch = read_both(&response(&[(key, value.clone())]));
        assert_eq!((batch.records.len(), batch.malformed), (0, 1), "{key} {value}");
    }
}

#[test]
fn r66_what_may_be_missing_or_another_number_is_read() {
    for (key, value) in [
        ("cached_content_token_count", Value::Null),
        ("thoughts_token_count", json!({})),
        ("tool_token_count", Value::Null),
        ("model", Value::Null),
        ("input_token_count", json!({"intValue": "10"})),
        ("duration_ms", json!({"doubleValue": 3.75})),
        ("event.timestamp", json!({"stringValue": "yesterday"})),
        ("event.timestamp", Value::Null),
        ("user.email", json!({"stringValue": "ana@example.org"})),
    ] {
        let batch = read_both(&response(&[(key, value.clone())]));
        assert_eq!((batch.records.len(), batch.malformed), (1, 0), "{key} {value}");
    }
    let at = |changes: &[(&str, Value)]| read_both(&response(changes)).records[0].at;
    assert_eq!(at(&[]), 1_796_053_884_650);
    assert_eq!(at(&[("event.timestamp", Value::Null)]), 1_796_053_884_651);
}

#[test]
fn r66_without_a_role_a_subagent_shows_in_its_prompt_id() {
    for (prompt_id, want) in [
        ("1a3228eb#0", Role::Subagent),
        ("8697216c########3", Role::Main),
        ("8697216c", Role::Main),
        ("#1", Role::Main),
        ("a#", Role::Main),
    ] {
        let prompt = ("prompt_id", json!({"stringValue": prompt_id}));
        let batch = read_both(&response(&[("role", Value::Null), prompt]));
        let TelemetryKind::Response { call, .. } = &batch.records[0].kind else { panic!("{batch:?}") };
        assert_eq!(call.role, want, "{prompt_id}");
    }
    let unknown = ("role", json!({"stringValue": "utility_of_tomorrow"}));
    let batch = read_both(&response(&[unknown]));
    let TelemetryKind::Response { call, .. } = &batch.records[0].kind else { panic!("{batch:?}") };
    assert_eq!(call.role, Role::Utility);
}

#[test]
fn q14_a_429_says_what_it_refused_and_other_errors_keep_no_text() {
    let text = r#"{"error":{"code":429,"message":"s3cret","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED","metadata":{"model":"m"}},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}]}}"#;
    let error = |status: Value| {
        let name = ("event.name", json!({"stringValue": "gemini_cli.api_error"}));
        let message = ("error.message", json!({"stringValue": text}));
        let batch = read_both(&response(&[name, message, ("status_code", status)]));
        assert!(!format!("{batch:?}").contains("s3cret"));
        let TelemetryKind::Error { status, rejection, .. } = batch.records[0].kind.clone() else {
            panic!("{batch:?}")
        };
        (status, rejection)
    };
    for stated in [json!({"intValue": 429}), json!({"stringValue": "429"})] {
        let (status, rejection) = error(stated);
        let rejection = rejection.unwrap();
        assert_eq!((status, rejection.reason.as_deref()), (Some(429), Some("RATE_LIMIT_EXCEEDED")));
        assert_eq!(rejection.retry_after_ms, Some(7000));
        assert_eq!(rejection.resets_at, Some(1_796_053_884_650 + 7000));
    }
    assert_eq!(error(json!({"intValue": 500})), (Some(500), None));
    assert_eq!(error(json!({"stringValue": "ECONNRESET"})), (None, None));
}

#[test]
fn r66_a_twin_gives_its_id_to_one_response_and_never_adds() {
    let base = response(&[]);
    let records = |request: &Value| request["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0].clone();
    let first = records(&base);
    let twin = |session: &str, prompt: u64, id: &str| {
        records(&response(&[
            ("event.name", json!({"stringValue": "gen_ai.client.inference.operation.details"})),
            ("session.id", json!({"stringValue": session})),
            ("gen_ai.response.id", json!({"stringValue": id})),
            ("gen_ai.usage.input_tokens", json!({"intValue": prompt})),
            ("gen_ai.usage.output_tokens", json!({"intValue": 2})),
        ]))
    };
    let ids = |records: Vec<Value>| {
        let batch = read_both(&json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}));
        answers(&batch.records).into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    assert_eq!(ids(vec![first.clone(), twin("s", 10, "r1")]), ["r1"]);
    // Two equal ones have a twin each; one twin is of one.
    let two = vec![first.clone(), first.clone(), twin("s", 10, "r1"), twin("s", 10, "r2")];
    assert_eq!(ids(two), ["r1", "r2"]);
    assert_eq!(ids(vec![first.clone(), first.clone(), twin("s", 10, "r1")]), ["", "r1"]);
    // Another session's, another request's, one that comes first or alone.
    assert_eq!(ids(vec![first.clone(), twin("t", 10, "r1")]), [""]);
    assert_eq!(ids(vec![first.clone(), twin("s", 11, "r1")]), [""]);
    assert_eq!(ids(vec![twin("s", 10, "r1"), first.clone()]), [""]);
    assert!(ids(vec![twin("s", 10, "r1")]).is_empty());
    // Not from too far away.
    let mut far = vec![first];
    far.extend(std::iter::repeat_n(json!({"attributes": []}), 64));
    far.push(twin("s", 10, "r1"));
    assert_eq!(ids(far), [""]);
}

#[test]
fn r66_json_is_read_as_protobuf_json_says() {
    let read = |text: &str| json::logs(text.as_bytes());
    for empty in ["{}", r#"{"resourceLogs":null}"#, r#"{"resourceLogs":[]}"#, r#"{"of":{"tomorrow":[1]}}"#] {
        assert_eq!(read(empty).unwrap(), TelemetryBatch::default(), "{empty}");
    }
    for broken in
        ["", "[]", "7", "{", r#"{"resourceLogs":7}"#, r#"{"resourceLogs":[7]}"#, "\u{feff}{}", "{}{}"]
    {
        assert!(read(broken).is_err(), "{broken}");
    }
    // A record that is none costs no other.
    let records =
        r#"7,[],{"attributes":7},{"attributes":[7]},{"attributes":null},{"attributes":[{"value":{}}]}"#;
    let batch =
        read(&format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{records}]}}]}}]}}"#)).unwrap();
    assert_eq!((batch.malformed, batch.dropped), (4, 2));
    // The order of members means nothing, escaped keys are keys.
    let turned = response(&[]).to_string().replace(
        r#"{"key":"role","value":{"stringValue":"main"}}"#,
        r#"{"value":{"stringValue":"\u006dain"},"more":[{}],"key":"r\u006fle"}"#,
    );
    assert!(turned.contains("r\\u006fle"));
    assert_eq!(read(&turned).unwrap(), read(&response(&[]).to_string()).unwrap());
}

#[test]
fn r70_no_text_of_resources_bodies_or_attributes_is_in_a_record() {
    const SENTINELS: [&str; 7] = [
        "arg-s3cret",
        "request-s3cret",
        "response-s3cret",
        "prompt-s3cret",
        "mail-s3cret",
        "body-s3cret",
        "error-s3cret",
    ];
    let [args, request, response, prompt, mail, body, error] = SENTINELS;
    for recording in OUTFILES {
        let mut captured = request_of(&outfile(recording));
        let logs = &mut captured["resourceLogs"][0];
        logs["resource"]["attributes"] = json!([{"key": "process.command_args", "value": {"arrayValue": {"values": [{"stringValue": args}]}}}]);
        for record in logs["scopeLogs"][0]["logRecords"].as_array_mut().unwrap() {
            record["body"] = json!({"stringValue": body});
            let attributes = record["attributes"].as_array_mut().unwrap();
            attributes.retain(|pair| !pair["key"].as_str().unwrap().starts_with("error"));
            for (key, text) in [
                ("request_text", request),
                ("response_text", response),
                ("prompt", prompt),
                ("user.email", mail),
                ("error", error),
                ("error.message", error),
            ] {
                attributes.push(json!({"key": key, "value": {"stringValue": text}}));
            }
        }
        let batch = read_both(&captured);
        assert!(!batch.records.is_empty());
        let shown = format!("{batch:?}");
        for sentinel in SENTINELS {
            assert!(captured.to_string().contains(sentinel) && !shown.contains(sentinel), "{sentinel}");
        }
    }
}

proptest! {
    #![proptest_config(cases(48))]

    /// A batch that comes again, doubled in its parts or in another order, has the same keys.
    #[test]
    fn r71_keys_do_not_depend_on_order(seed in any::<u64>()) {
        for (json, _) in &*BODIES {
            let batch = json::logs(json).unwrap();
            let mut shuffled = batch.records.clone();
            let mut state = seed | 1;
            for index in (1..shuffled.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                shuffled.swap(index, (state >> 33) as usize % (index + 1));
            }
            let sorted = |records| {
                let mut keys = RecordKey::of_batch(records);
                keys.sort_unstable();
                keys
            };
            let keys = sorted(&batch.records);
            prop_assert_eq!(&keys, &sorted(&shuffled));
            let mut distinct = keys.clone();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), keys.len());
        }
    }

    /// Whatever happens to a body: an error or a batch, and no figure that was not there.
    #[test]
    fn bodies_that_were_tampered_with_never_crash(
        which in 0..5_usize,
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        end in any::<prop::sample::Index>(),
    ) {
        let (json, protobuf) = BODIES[which].clone();
        for (mut body, read) in [(json, json::logs as fn(&[u8]) -> _), (protobuf, proto::logs)] {
            for (at, byte) in &cuts {
                let at = at.index(body.len());
                body[at] = *byte;
            }
            let _ = read(&body);
            body.truncate(end.index(body.len()));
            let _ = read(&body);
        }
    }

    #[test]
    fn any_bytes_at_all_never_crash(body in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = proto::logs(&body);
        let _ = json::logs(&body);
    }
}
