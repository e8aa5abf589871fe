//! One line of a run's output, one meaning (accounting R63).

use serde::Deserialize;
use serde_json::value::RawValue;

use super::stats::{self, Stats};
use crate::sources::raw::{name, object, stated, text};

/// Longest session id and model name that are taken, in characters.
pub(super) const NAME_CHARS: usize = 128;

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The run has a session.
    Init {
        session_id: String,
        model: Option<String>,
        /// Unix ms, by the run's clock.
        at: Option<i64>,
    },
    /// The run's last word.
    Result { success: bool, stats: Option<Stats>, at: Option<i64> },
    /// An event that says nothing of figures, of a known type or not.
    Other,
    /// An object without a type: a json document on one line, perhaps.
    Untyped,
    /// No JSON object.
    Malformed,
}

/// Reads one line, which is not blank. `model` is the run's, for statistics
/// that name none.
#[must_use]
pub fn read(line: &[u8], model: Option<&str>) -> Said {
    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(default, borrow, rename = "type", deserialize_with = "stated")]
        kind: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        timestamp: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        session_id: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        model: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        status: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        stats: Option<&'a RawValue>,
    }
    let Ok(line) = serde_json::from_slice::<&RawValue>(line) else { return Said::Malformed };
    let Some(event) = object::<Event<'_>>(line) else { return Said::Malformed };
    let Some(kind) = event.kind.and_then(text) else { return Said::Untyped };
    let at = event.timestamp.and_then(text).and_then(|at| at.parse::<jiff::Timestamp>().ok());
    let at = at.map(jiff::Timestamp::as_millisecond);
    match kind.as_str() {
        "init" => match event.session_id.and_then(|id| name(id, NAME_CHARS)) {
            Some(session_id) => {
                Said::Init { session_id, model: event.model.and_then(|model| name(model, NAME_CHARS)), at }
            }
            None => Said::Other,
        },
        "result" => Said::Result {
            success: event.status.and_then(text).is_some_and(|status| status == "success"),
            stats: event.stats.and_then(|raw| stats::of_stream(raw, model)),
            at,
        },
        _ => Said::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Said {
        read(line.as_bytes(), None)
    }

    #[test]
    fn r63_init_names_the_session() {
        let init =
            r#"{"type":"init","timestamp":"2026-11-30T15:49:04.042Z","session_id":"e27","model":"auto"}"#;
        let at = Some(1_796_053_744_042);
        let want = |model: Option<&str>, at| Said::Init {
            session_id: "e27".into(),
            model: model.map(str::to_owned),
            at,
        };
        assert_eq!(said(init), want(Some("auto"), at));
        assert_eq!(said(r#"{"session_id":"e27","type":"init"}"#), want(None, None));
        for odd in ["null", "7", r#""""#, "[]"] {
            let line = format!(r#"{{"type":"init","session_id":"e27","model":{odd},"timestamp":{odd}}}"#);
            assert_eq!(said(&line), want(None, None), "{odd}");
            assert_eq!(said(&format!(r#"{{"type":"init","session_id":{odd}}}"#)), Said::Other, "{odd}");
        }
    }

    #[test]
    fn r63_a_result_is_a_success_or_not() {
        let result = |status: &str| match said(&format!(r#"{{"type":"result","status":{status}}}"#)) {
            Said::Result { success, stats: None, at: None } => success,
            other => panic!("{other:?}"),
        };
        assert!(result(r#""success""#));
        for status in [r#""error""#, r#""Success""#, "null", "true", "1"] {
            assert!(!result(status), "{status}");
        }
    }

    #[test]
    fn r63_other_types_say_nothing_and_what_is_no_object_is_malformed() {
        for line in [
            r#"{"type":"message","role":"user","content":"{\"type\":\"init\"}"}"#,
            r#"{"type":"tool_use","parameters":{"type":"result","status":"success"}}"#,
            r#"{"type":"eclipse","session_id":"x"}"#,
        ] {
            assert_eq!(said(line), Said::Other, "{line}");
        }
        for line in [r#"{"session_id":"x"}"#, r#"{"type":7}"#, "{}"] {
            assert_eq!(said(line), Said::Untyped, "{line}");
        }
        for line in ["x", "[1]", r#"{"type":"init""#, r#"{"type":"init"} {}"#, "null", "\u{feff}{}"] {
            assert_eq!(said(line), Said::Malformed, "{line}");
        }
        assert_eq!(read(b"{\"type\":\"\xff\"}", None), Said::Malformed);
    }
}
