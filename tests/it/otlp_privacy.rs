//! Telemetry brings prompts and answers along, whatever its settings say (the
//! CLI's arguments are in every resource): of all that text nothing is kept,
//! and what is to be counted is (accounting R66, R70).

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::Sandbox;
use crate::support::otlp::{protobuf, request_of};
use crate::support::overheard::assert_nowhere;
use crate::support::poll::until;
use crate::support::service::{Answer, Service};

/// In every planted text, whatever else it is.
const SECRET: &str = "s3ntinel";

const OVER_JSON: &str = "aaaaaaaa-0000-4000-8000-00000000000a";
const OVER_PROTOBUF: &str = "bbbbbbbb-0000-4000-8000-00000000000b";
const FROM_FILE: &str = "cccccccc-0000-4000-8000-00000000000c";

/// Of the session of each: prompt, cached part of it, output and thoughts of its answer.
const FIGURES: [(&str, [u64; 4]); 3] = [
    (OVER_JSON, [5101, 2001, 111, 51]),
    (OVER_PROTOBUF, [6202, 1002, 222, 62]),
    (FROM_FILE, [7303, 3003, 333, 73]),
];

/// Attributes that no record should be read for, and those that it has when prompts are logged.
fn secrets() -> Value {
    json!({
        "request_text": format!("[{{\"text\":\"{SECRET} request\"}}]"),
        "response_text": format!("{{\"candidates\":\"{SECRET} response\"}}"),
        "prompt": format!("{SECRET} prompt"),
        "user.email": format!("{SECRET}@example.com"),
        "error.message": format!("{SECRET} error: You have exhausted your capacity. {SECRET} quotaId"),
        "error_type": format!("{SECRET} type"),
        "function_args": format!("{{\"path\":\"/srv/{SECRET}/a.rs\"}}"),
        "gen_ai.input.messages": format!("{SECRET} messages"),
        "gen_ai.system_instructions": [format!("{SECRET} instructions"), {"text": format!("{SECRET} nested")}],
        format!("{SECRET}.unknown"): format!("{SECRET} value"),
        "installation.id": format!("{SECRET}-installation"),
    })
}

/// A record as it stands in an outfile, with every text that is nobody's business.
fn record(session: &str, event: &str, own: Value) -> Value {
    let now = Timestamp::now();
    let time = [now.as_second(), i64::from(now.subsec_nanosecond())];
    let mut attributes = secrets();
    let common = json!({
        "event.name": event,
        "event.timestamp": now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        "session.id": session,
    });
    for members in [common, own] {
        attributes.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    }
    json!({
        "hrTime": time,
        "hrTimeObserved": time,
        "resource": {"_rawAttributes": [["process.command_args", ["gemini", "-p", format!("{SECRET} argument")]]]},
        "attributes": attributes,
        "_body": format!("{SECRET} body of {event}"),
    })
}

/// A session's records, as an outfile holds them: one prompt, a refusal for
/// quota, an answer, the end; and among them what cannot be counted.
fn outfile(session: &str) -> String {
    let (_, [input, cached, output, thoughts]) = FIGURES.into_iter().find(|(id, _)| *id == session).unwrap();
    let prompt_id = format!("{session}########0");
    let call = json!({"prompt_id": prompt_id, "model": "gemini-2.5-pro", "role": "main", "duration_ms": 7});
    let with = |more: Value| {
        let mut call = call.clone();
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    };
    let counts = json!({
        "input_token_count": input, "cached_content_token_count": cached, "output_token_count": output,
        "thoughts_token_count": thoughts, "tool_token_count": 0, "total_token_count": input + output + thoughts,
        "status_code": 200,
    });
    let records = [
        record(session, "gemini_cli.user_prompt", json!({"prompt_id": prompt_id, "prompt_length": 8})),
        record(session, "gemini_cli.api_request", call.clone()),
        record(session, "gemini_cli.api_error", with(json!({"status_code": 429}))),
        record(session, "gemini_cli.api_request", call.clone()),
        record(session, "gemini_cli.api_response", with(counts)),
        record(session, "gemini_cli.tool_call", json!({"function_name": SECRET})),
        record(session, SECRET, json!({})),
        // Malformed: a count that is a text, and ids that are none.
        record(session, "gemini_cli.api_response", with(json!({"input_token_count": SECRET}))),
        record(session, "gemini_cli.api_request", json!({"prompt_id": [SECRET], "role": {"a": SECRET}})),
        record(&SECRET.repeat(40), "gemini_cli.api_request", call.clone()),
        // A role that nobody knows.
        record(session, "gemini_cli.api_request", with(json!({"role": SECRET}))),
        record(session, "gemini_cli.api_error", with(json!({"role": SECRET, "status_code": SECRET}))),
        record(session, "gemini_cli.plan.approval_mode_duration", json!({"duration_ms": 9, "mode": SECRET})),
    ];
    records.iter().map(|record| serde_json::to_string_pretty(record).unwrap() + "\n").collect()
}

/// The same as a request of OTLP.
fn request(session: &str) -> Value {
    let mut request = request_of(&outfile(session));
    let arguments = [json!({"stringValue": "-p"}), json!({"stringValue": format!("{SECRET} argument")})];
    let logs = &mut request["resourceLogs"][0];
    logs["resource"]["attributes"] = json!([
        {"key": "process.command_args", "value": {"arrayValue": {"values": arguments}}},
        {"key": "process.owner", "value": {"stringValue": format!("{SECRET}-owner")}},
        {"key": format!("{SECRET}.key"), "value": {"stringValue": SECRET}},
    ]);
    logs["scopeLogs"][0]["scope"]["name"] = SECRET.into();
    request
}

fn post(service: &Service, path: &str, kind: &str, body: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(service.address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        service.address,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    Answer::read(&mut stream).unwrap()
}

fn assert_silent(what: &str, bytes: &[u8]) {
    assert_nowhere(SECRET, [(what, bytes)]);
}

/// The ledger with its journal of writes, and what stands beside them.
fn files_are_silent(sandbox: &Sandbox) -> Vec<String> {
    let ledger = sandbox.ledger();
    let entries = fs::read_dir(ledger.parent().unwrap()).unwrap();
    let files = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    files
        .map(|path| {
            assert_silent(&path.display().to_string(), &fs::read(&path).unwrap());
            path.file_name().unwrap().to_str().unwrap().to_owned()
        })
        .collect()
}

/// The three sessions are there, with their figures.
fn assert_counted(report: &Value) {
    let rows = report["rows"].as_array().unwrap();
    for (session, [input, cached, output, thoughts]) in FIGURES {
        let row = rows.iter().find(|row| row["session_id"] == session);
        let tokens = &row.unwrap_or_else(|| panic!("no {session} in {report:#}"))["tokens"];
        let got = ["uncached_input", "cached_input", "output", "thoughts", "total"]
            .map(|class| tokens[class].as_u64());
        // What a model thinks is billed as output, and stands beside it here.
        let want = [input - cached, cached, output, thoughts, input + output + thoughts].map(Some);
        assert_eq!(got, want, "{session}: {tokens}");
    }
}

#[test]
fn r70_of_what_telemetry_says_the_figures_are_kept_and_the_words_are_not() {
    let sandbox = Sandbox::new();
    let named = sandbox.path().join("telemetry.log");
    let telemetry = json!({"enabled": true, "target": "local", "outfile": named, "logPrompts": true});
    sandbox.write("home/.gemini/settings.json", &json!({"telemetry": telemetry}).to_string());
    fs::write(&named, outfile(FROM_FILE)).unwrap();
    let mut command = sandbox.serve_command(&["-vvv"]);
    command.env("GEMGAUGE_LOG_LEVEL", "trace");
    let service = Service::start(command, sandbox.path().join("serve.log"));
    service.wait_ready();

    let (json, protobuf) = (request(OVER_JSON).to_string().into_bytes(), protobuf(&request(OVER_PROTOBUF)));
    for (planted, place) in
        [(&json, "JSON"), (&protobuf, "protobuf"), (&fs::read(&named).unwrap(), "the outfile")]
    {
        let count = planted.windows(SECRET.len()).filter(|window| *window == SECRET.as_bytes()).count();
        assert!(count > 100, "{place} holds the secret {count} times");
    }
    for (path, kind, body, status) in [
        ("/v1/logs", "application/json", &json[..], 200),
        ("/v1/logs", "application/x-protobuf", &protobuf, 200),
        ("/v1/traces", "application/json", &json, 200),
        ("/v1/metrics", "application/x-protobuf", &protobuf, 200),
        // What is refused is not quoted either.
        ("/v1/logs", "application/json", &json[..json.len() / 2], 400),
        ("/v1/logs", "application/x-protobuf", &protobuf[..protobuf.len() - 3], 400),
        ("/v1/logs", "text/plain; of=s3ntinel", &json, 415),
    ] {
        let answer = post(&service, path, kind, body);
        assert_eq!(answer.status, status, "{path}, {kind}");
        assert_silent(path, format!("{answer:?}").as_bytes());
    }
    let report = "/api/v1/report/sessions?since=all&all=true";
    until("the figures of three sessions", || {
        let report = service.json(report);
        let measured =
            report["rows"].as_array().unwrap().iter().filter(|row| row["tokens"].is_object()).count();
        if measured == FIGURES.len() { Ok(()) } else { Err(report) }
    });
    assert_counted(&service.json(report));

    let mut paths: Vec<String> = ["/", "/metrics", "/-/ready", "/api/v1/state"].map(str::to_owned).into();
    paths.extend(FIGURES.map(|(session, _)| format!("/api/v1/sessions/{session}")));
    for kind in ["daily", "weekly", "monthly", "sessions", "models", "projects", "homes"] {
        paths.push(format!("/api/v1/report/{kind}?since=all&all=true&by=project,model,role,home,class"));
    }
    for path in paths {
        let answer = service.get(&path);
        assert_eq!(answer.status, 200, "{path}");
        assert_silent(&path, answer.body.as_bytes());
    }
    let files = files_are_silent(&sandbox);
    assert!(
        files.contains(&"ledger.db".to_owned()) && files.contains(&"ledger.db-wal".to_owned()),
        "{files:?}"
    );
    assert_silent("standard output", service.said().join("\n").as_bytes());
    assert_eq!(service.metrics().sum("gemgauge_otlp_refused_total", &[]), 3);
    let log = sandbox.path().join("serve.log");
    assert_eq!(service.terminate(), Some(0));
    assert_silent("standard error", &fs::read(log).unwrap());

    let sessions = FIGURES.map(|(session, _)| session);
    let mut commands = vec![
        vec!["report", "sessions", "--since", "all", "--all"],
        vec!["report", "models", "--since", "all", "--csv"],
        vec!["doctor", "-vvv"],
        vec!["doctor", "--json"],
    ];
    for session in &sessions {
        commands.extend([vec!["explain", session], vec!["explain", session, "--json"]]);
    }
    for args in commands {
        let said = sandbox.run(&args);
        assert!(said.out.len() > 100, "{args:?}: {said:?}");
        assert_silent(&format!("{args:?}"), (said.out + &said.err).as_bytes());
    }
    let said = sandbox.run(&["report", "sessions", "--since", "all", "--all", "--json"]);
    assert_silent("the report", said.out.as_bytes());
    assert_counted(&serde_json::from_str(&said.out).unwrap());
    files_are_silent(&sandbox);
}
