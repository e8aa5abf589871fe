//! One session as JSON.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::json::{RowOf, SCHEMA, TokensOf};
use super::session::{Request, SessionReport};
use super::spec::Kind;
use super::time;
use crate::ledger::spend::Source;
use crate::store::read::UndecodableRow;

/// `session` is the row of the sessions report; the lists stand beside it.
impl Serialize for SessionReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("schema", &SCHEMA)?;
        map.serialize_entry("session", &RowOf { kind: Kind::Sessions, by: &[], row: &self.row })?;
        let sources: Vec<_> = self.row.spend.basis.iter().map(|source| self.seen_by(source)).collect();
        map.serialize_entry("sources", &sources)?;
        map.serialize_entry("requests", &self.requests.iter().map(RequestJson::of).collect::<Vec<_>>())?;
        let undecodable: Vec<_> = self.undecodable.iter().map(UndecodableJson::of).collect();
        map.serialize_entry("undecodable", &undecodable)?;
        map.serialize_entry("story", &self.story)?;
        map.end()
    }
}

impl SessionReport {
    /// What one source saw. The journal is the only one yet: it saw everything.
    fn seen_by(&self, source: Source) -> SourceJson {
        SourceJson {
            source: source.as_str(),
            requests: self.row.spend.requests,
            tokens: self.row.spend.tokens().map(TokensOf),
        }
    }
}

#[derive(Serialize)]
struct SourceJson {
    source: &'static str,
    requests: u64,
    tokens: Option<TokensOf>,
}

#[derive(Serialize)]
struct RequestJson<'r> {
    id: &'r str,
    at: String,
    model: &'r str,
    model_inferred: bool,
    role: &'static str,
    tokens: TokensOf,
}

impl<'r> RequestJson<'r> {
    fn of(request: &'r Request) -> Self {
        Self {
            id: &request.id,
            at: time::iso(request.at),
            model: &request.model,
            model_inferred: request.model_inferred,
            role: request.role.as_str(),
            tokens: TokensOf(request.tokens),
        }
    }
}

#[derive(Serialize)]
struct UndecodableJson<'r> {
    project_dir: &'r str,
    file: &'r str,
    offset: u64,
    len: u64,
    reason: &'r str,
    at: String,
    settled: bool,
}

impl<'r> UndecodableJson<'r> {
    fn of(line: &'r UndecodableRow) -> Self {
        Self {
            project_dir: &line.project_dir,
            file: &line.file,
            offset: line.offset,
            len: line.len,
            reason: &line.reason,
            at: time::iso(line.at),
            settled: line.settled,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::surfaces::report::session::tests::explained;

    #[test]
    fn the_json_has_the_row_its_requests_and_the_lines_that_broke() {
        let mut out = Vec::new();
        explained(4).write_json(false, &mut out).expect("a Vec takes everything");
        let json: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(json["session"]["session_id"], "0c7713fe-21a3-4f08-9a55-1f2e3d4c5b6a");
        assert_eq!(
            json["session"]["reasons"],
            serde_json::json!(["model_unobserved", "torn_line", "orphan"])
        );
        let request = serde_json::json!({
            "id": "m6", "at": "2026-11-30T10:01:00.000Z", "model": "gemini-2.5-flash",
            "model_inferred": false, "role": "main",
            "tokens": {"uncached_input": 234_567, "cached_input": 1_000_000, "tool_input": 0,
                       "output": 3_210, "thoughts": 12, "total": 1_237_789},
        });
        assert_eq!(json["requests"], serde_json::json!([request]));
        assert_eq!(json["undecodable"][0]["offset"], 4_711);
        assert_eq!(json["sources"][0]["source"], "journal");
        assert_eq!(json["story"].as_array().map(Vec::len), Some(3));
    }
}
