//! What a recorded conversation must tell, worked out from its messages alone:
//! a second reading that shares no code with the observer.

use std::collections::HashMap;
use std::path::Path;

use gemgauge::ledger::doors::{EventKind, TurnResult};
use serde_json::Value;

/// One message of a recording: `{t, dir, msg}`, with `t` in seconds.
pub(crate) struct Line {
    pub(crate) at: i64,
    pub(crate) by_client: bool,
    /// As it stood on the wire, without its newline.
    pub(crate) text: String,
    pub(crate) message: Value,
}

pub(crate) fn read(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap();
    let line = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        #[expect(clippy::cast_possible_truncation, reason = "seconds of a recording")]
        let at = (row["t"].as_f64().unwrap() * 1000.0) as i64;
        let message = row["msg"].clone();
        let text = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
        Line { at, by_client: row["dir"] == "client->agent", text, message }
    };
    text.lines().map(line).collect()
}

/// The events between the start and the end of the process.
pub(crate) fn expected(lines: &[Line]) -> Vec<EventKind> {
    let mut asked: HashMap<String, (String, Value)> = HashMap::new();
    let mut open: Vec<(String, String, String)> = Vec::new();
    let mut turns = 0;
    let mut events = Vec::new();
    for Line { by_client, message, .. } in lines {
        let id = message["id"].to_string();
        let method = message["method"].as_str().unwrap_or_default();
        let session = message["params"]["sessionId"].as_str().unwrap_or_default().to_owned();
        if *by_client && !method.is_empty() {
            if method == "session/prompt" {
                turns += 1;
                let turn = format!("{id}#{turns}");
                events.push(EventKind::TurnStarted { session_id: session.clone(), turn: turn.clone() });
                open.push((id.clone(), session, turn));
            } else if method == "session/cancel" {
                let of_session = open.iter().filter(|(_, of, _)| *of == session);
                events.extend(of_session.map(|(_, session_id, turn)| EventKind::CancelSent {
                    session_id: session_id.clone(),
                    turn: Some(turn.clone()),
                }));
            }
            asked.insert(id, (method.to_owned(), message["params"].clone()));
        } else if !*by_client && method.is_empty() {
            let (method, params) = asked.remove(&id).expect("a recording answers what was asked");
            let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
            events.extend(answered(&method, &params, message, session.clone()));
            if method == "session/prompt" {
                let at = open.iter().position(|(open, ..)| *open == id).unwrap();
                let (_, session_id, turn) = open.remove(at);
                events.push(EventKind::TurnEnded { session_id, turn, result: result(message) });
            }
        }
    }
    events
}

fn answered(method: &str, params: &Value, message: &Value, session_id: String) -> Option<EventKind> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let result = &message["result"];
    let failed = !message["error"].is_null();
    let model = text(&result["models"]["currentModelId"]);
    match method {
        "initialize" => Some(EventKind::Handshake {
            name: text(&result["agentInfo"]["name"]),
            version: text(&result["agentInfo"]["version"]),
        }),
        "session/new" => Some(EventKind::SessionOpened {
            session_id: text(&result["sessionId"]).unwrap(),
            model,
            resumed: false,
            session_role: None,
        }),
        // Whoever asks knows whether the minute was the same.
        "session/load" if failed => Some(EventKind::LoadFailed { session_id, same_minute: true }),
        "session/load" => {
            Some(EventKind::SessionOpened { session_id, model, resumed: true, session_role: None })
        }
        "session/set_model" if !failed => {
            Some(EventKind::ModelSet { session_id, model: text(&params["modelId"]) })
        }
        _ => None,
    }
}

fn result(message: &Value) -> TurnResult {
    let tokens = &message["result"]["_meta"]["quota"]["token_count"];
    TurnResult {
        stop_reason: message["result"]["stopReason"].as_str().map(str::to_owned),
        error: message["error"]["code"].as_i64(),
        marker: tokens["input_tokens"].as_u64().zip(tokens["output_tokens"].as_u64()),
        ..TurnResult::default()
    }
}
