//! OTLP as exporters send it, made from recordings: the bodies of one form
//! written in another, by an encoder that owes nothing to the reader.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use gemgauge::ledger::telemetry::{TelemetryBatch, TelemetryKind, TelemetryRecord};
use gemgauge::ledger::tokens::Reading;
use gemgauge::sources::otlp::{Busy, Refusal, TelemetryIntake};
use serde_json::{Value, json};

use super::files::fixture;

/// Recordings with an outfile.
pub(crate) const OUTFILES: [&str; 4] =
    ["telemetry-outfile", "interactive-telemetry", "list-sessions", "headless-model-version"];

/// The outfile of a recording.
pub(crate) fn outfile(recording: &str) -> String {
    std::fs::read_to_string(fixture(&format!("recordings/{recording}/telemetry.log"))).unwrap()
}

/// The `/v1/logs` bodies of the recording over OTLP/HTTP.
pub(crate) fn bodies() -> Vec<Value> {
    let text = std::fs::read_to_string(fixture("recordings/telemetry-otlp-http/otlp-http.jsonl")).unwrap();
    let requests = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    requests
        .filter(|request| request["path"] == "/v1/logs")
        .map(|mut request| request["body"].take())
        .collect()
}

/// An outfile's log records as one OTLP request.
pub(crate) fn request_of(outfile: &str) -> Value {
    let values = serde_json::Deserializer::from_str(outfile).into_iter::<Value>().map(Result::unwrap);
    let records: Vec<Value> = values.filter(|value| value.get("hrTime").is_some()).map(log_record).collect();
    let arguments = json!({"arrayValue": {"values": [{"stringValue": "gemini"}, {"stringValue": "-p"}]}});
    let resource = json!({"attributes": [{"key": "process.command_args", "value": arguments}]});
    json!({"resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": {}, "logRecords": records}]}]})
}

fn log_record(value: Value) -> Value {
    let nanos = |time: &Value| {
        let part = |index: usize| time[index].as_u64().unwrap();
        (part(0) * 1_000_000_000 + part(1)).to_string()
    };
    let attributes: Vec<Value> = value["attributes"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| json!({"key": key, "value": any_value(value)}))
        .collect();
    json!({
        "timeUnixNano": nanos(&value["hrTime"]),
        "observedTimeUnixNano": nanos(&value["hrTimeObserved"]),
        "body": any_value(&value["_body"]),
        "attributes": attributes,
        "droppedAttributesCount": 0,
    })
}

fn any_value(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(value) => json!({"boolValue": value}),
        Value::Number(number) if number.is_i64() => json!({"intValue": number}),
        Value::Number(number) => json!({"doubleValue": number}),
        Value::String(text) => json!({"stringValue": text}),
        Value::Array(items) => {
            json!({"arrayValue": {"values": items.iter().map(any_value).collect::<Vec<_>>()}})
        }
        Value::Object(members) => {
            let pairs = members.iter().map(|(key, value)| json!({"key": key, "value": any_value(value)}));
            json!({"kvlistValue": {"values": pairs.collect::<Vec<_>>()}})
        }
    }
}

/// A request in protobuf, with every member that OTLP knows.
pub(crate) fn protobuf(request: &Value) -> Vec<u8> {
    let scope_logs = |logs: &Value| {
        let mut out = Vec::new();
        message(1, &string(1, logs["scope"]["name"].as_str().unwrap_or_default()), &mut out);
        list(&logs["logRecords"], 2, record, &mut out);
        out
    };
    let resource_logs = |logs: &Value| {
        let mut out = Vec::new();
        let mut resource = Vec::new();
        list(&logs["resource"]["attributes"], 1, pair, &mut resource);
        message(1, &resource, &mut out);
        list(&logs["scopeLogs"], 2, scope_logs, &mut out);
        out
    };
    let mut out = Vec::new();
    list(&request["resourceLogs"], 1, resource_logs, &mut out);
    out
}

fn record(record: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for (field, name) in [(1, "timeUnixNano"), (11, "observedTimeUnixNano")] {
        if let Some(nanos) = record[name].as_str() {
            out.push(field << 3 | 1);
            out.extend_from_slice(&nanos.parse::<u64>().unwrap().to_le_bytes());
        }
    }
    message(5, &any(&record["body"]), &mut out);
    list(&record["attributes"], 6, pair, &mut out);
    if let Some(flags) = record["flags"].as_u64() {
        out.push(8 << 3 | 5);
        out.extend_from_slice(&u32::try_from(flags).unwrap().to_le_bytes());
    }
    out
}

fn pair(pair: &Value) -> Vec<u8> {
    let mut out = string(1, pair["key"].as_str().unwrap());
    message(2, &any(&pair["value"]), &mut out);
    out
}

fn any(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let Some((kind, value)) = value.as_object().and_then(|members| members.iter().next()) else { return out };
    match kind.as_str() {
        "stringValue" => out = string(1, value.as_str().unwrap()),
        "boolValue" => out.extend([2 << 3, u8::from(value.as_bool().unwrap())]),
        "intValue" => {
            let number = value.as_i64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap());
            out.push(3 << 3);
            varint(number.cast_unsigned(), &mut out);
        }
        "doubleValue" => {
            out.push(4 << 3 | 1);
            out.extend_from_slice(&value.as_f64().unwrap().to_le_bytes());
        }
        "arrayValue" => {
            let mut items = Vec::new();
            list(&value["values"], 1, any, &mut items);
            message(5, &items, &mut out);
        }
        "kvlistValue" => {
            let mut items = Vec::new();
            list(&value["values"], 1, pair, &mut items);
            message(6, &items, &mut out);
        }
        other => panic!("{other} is no value of OTLP"),
    }
    out
}

fn list(items: &Value, field: u8, encode: impl Fn(&Value) -> Vec<u8>, out: &mut Vec<u8>) {
    for item in items.as_array().into_iter().flatten() {
        message(field, &encode(item), out);
    }
}

fn string(field: u8, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    message(field, text.as_bytes(), &mut out);
    out
}

fn message(field: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(field << 3 | 2);
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An answer of a recording's API, or of a batch: which it was, and what it cost.
pub(crate) type Answer = (String, Reading);

/// What the batch says was answered, by the id of the response.
pub(crate) fn answers(records: &[TelemetryRecord]) -> Vec<Answer> {
    let mut answers: Vec<Answer> = records
        .iter()
        .filter_map(|record| match &record.kind {
            TelemetryKind::Response { reading, response_id, .. } => {
                Some((response_id.clone().unwrap_or_default(), *reading))
            }
            _ => None,
        })
        .collect();
    answers.sort_by(|a, b| a.0.cmp(&b.0));
    answers
}

/// What the scripted API billed, by the id it gave, from its own log.
pub(crate) fn billed(log: &Path, id: impl Fn(u64) -> String) -> Vec<Answer> {
    let text = std::fs::read_to_string(log).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut billed: Vec<Answer> = rows
        .filter(|row| row["status"] == 200 && !row["usage"].is_null() && row["complete"] != false)
        .map(|row| {
            let count = |key: &str| row["usage"][key].as_u64().unwrap_or(0);
            let reading = Reading {
                prompt: count("promptTokenCount"),
                cached: count("cachedContentTokenCount"),
                tool: count("toolUsePromptTokenCount"),
                output: count("candidatesTokenCount"),
                thoughts: count("thoughtsTokenCount"),
            };
            (id(row["seq"].as_u64().unwrap()), reading)
        })
        .collect();
    billed.sort_by(|a, b| a.0.cmp(&b.0));
    billed
}

/// An intake that keeps what it is given.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) batches: Mutex<Vec<TelemetryBatch>>,
    pub(crate) refused: Mutex<Vec<Refusal>>,
    pub(crate) busy: AtomicBool,
}

impl Kept {
    /// All records so far.
    pub(crate) fn records(&self) -> Vec<TelemetryRecord> {
        let batches = self.batches.lock().unwrap();
        batches.iter().flat_map(|batch| batch.records.clone()).collect()
    }
}

impl TelemetryIntake for Kept {
    fn telemetry(&self, batch: TelemetryBatch) -> Result<(), Busy> {
        if self.busy.load(Ordering::SeqCst) {
            return Err(Busy);
        }
        self.batches.lock().unwrap().push(batch);
        Ok(())
    }

    fn refused(&self, refusal: Refusal) {
        self.refused.lock().unwrap().push(refusal);
    }
}
