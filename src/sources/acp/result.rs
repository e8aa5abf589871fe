//! The answer to a prompt: what it says of its own turn (accounting R25–R30,
//! R47). One reader for every door that sees such an answer.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::{object, stated, text};
use crate::ledger::doors::{TurnResult, Usage};
use crate::ledger::quota::Rejection;
use crate::sources::quota::rejection::{refused, rejection};
use crate::sources::raw::count;

/// A stop reason is a word; of a longer text that much is kept.
const STOP_REASON_CHARS: usize = 64;

/// The error code of a refusal for quota or capacity (quota Q14).
const TOO_MANY_REQUESTS: i64 = 429;

/// Reads the `result` of a `session/prompt`. What cannot be read is not
/// stated: without a stop reason the ending is unknown (accounting 2.4).
#[must_use]
pub fn turn_result(raw: &RawValue) -> TurnResult {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer<'a> {
        #[serde(default, borrow, deserialize_with = "stated")]
        stop_reason: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        usage: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated", rename = "_meta")]
        meta: Option<&'a RawValue>,
    }
    let answer: Answer<'_> = object(raw).unwrap_or_default();
    TurnResult {
        stop_reason: answer.stop_reason.and_then(text).map(|reason| shortened(&reason)),
        usage: answer.usage.map_or(Usage::Absent, usage),
        marker: answer.meta.and_then(marker),
        ..TurnResult::default()
    }
}

/// Reads the `error` of a `session/prompt`. A code that is no integer is 0: an
/// error it is all the same. `now_ms` is when it was seen, unix ms.
#[must_use]
pub fn turn_error(raw: &RawValue, now_ms: i64) -> TurnResult {
    #[derive(Default, Deserialize)]
    struct Failure<'a> {
        #[serde(default, borrow, deserialize_with = "stated")]
        code: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        message: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        data: Option<&'a RawValue>,
    }
    let failure: Failure<'_> = object(raw).unwrap_or_default();
    let code = failure.code.and_then(|code| code.get().parse().ok()).unwrap_or(0);
    let message = failure.message.and_then(text).unwrap_or_default();
    let said = [message.as_str(), failure.data.map_or("", RawValue::get)].join("\n");
    TurnResult { error: Some(code), rejection: rejection_of(code, &said, now_ms), ..TurnResult::default() }
}

/// What an error says of quota or capacity (quota Q14): the one place that asks.
fn rejection_of(code: i64, said: &str, now_ms: i64) -> Option<Rejection> {
    if code == TOO_MANY_REQUESTS { Some(refused(said, now_ms)) } else { rejection(said, now_ms) }
}

/// The `usage` member, to the letter: a counter that is not what it has to be
/// leaves no figure at all (accounting R26–R28). `totalTokens` is never read.
fn usage(raw: &RawValue) -> Usage {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Counters<'a> {
        #[serde(default, borrow, deserialize_with = "stated")]
        input_tokens: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        output_tokens: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        thought_tokens: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        cached_read_tokens: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        cached_write_tokens: Option<&'a RawValue>,
    }
    let figure = || {
        let counters: Counters<'_> = object(raw)?;
        let optional = |raw: Option<&RawValue>| raw.map_or(Some(None), |raw| Some(Some(count(raw)?)));
        Some(Usage::Figure {
            input: count(counters.input_tokens?)?,
            output: count(counters.output_tokens?)?,
            thoughts: optional(counters.thought_tokens)?.unwrap_or(0),
            cached_read: optional(counters.cached_read_tokens)?,
            cached_write: optional(counters.cached_write_tokens)?.unwrap_or(0),
        })
    };
    figure().unwrap_or(Usage::Malformed)
}

/// `_meta.quota.token_count` as (input, output) tokens, leniently: it marks
/// that a model was reached and is never a figure (accounting R30). One count
/// above 0 is enough for that; that none was reached, only both can say.
fn marker(meta: &RawValue) -> Option<(u64, u64)> {
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow)]
        quota: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct Quota<'a> {
        #[serde(borrow)]
        token_count: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct TokenCount<'a> {
        #[serde(default, borrow, deserialize_with = "stated")]
        input_tokens: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        output_tokens: Option<&'a RawValue>,
    }
    let meta: Meta<'_> = object(meta)?;
    let quota: Quota<'_> = object(meta.quota)?;
    let tokens: TokenCount<'_> = object(quota.token_count)?;
    match (tokens.input_tokens.and_then(any_count), tokens.output_tokens.and_then(any_count)) {
        (Some(input), Some(output)) => Some((input, output)),
        (Some(input), None) if input > 0 => Some((input, 0)),
        (None, Some(output)) if output > 0 => Some((0, output)),
        _ => None,
    }
}

/// Any number that can be a count; a fraction is above 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "finite, not negative, and the cast saturates"
)]
fn any_count(raw: &RawValue) -> Option<u64> {
    count(raw).or_else(|| {
        let number: f64 = serde_json::from_str(raw.get()).ok()?;
        (number >= 0.0).then(|| (number.ceil() as u64).min(i64::MAX.unsigned_abs()))
    })
}

fn shortened(text: &str) -> String {
    text.chars().take(STOP_REASON_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        serde_json::from_str(json).expect("JSON")
    }

    fn read(json: &str) -> TurnResult {
        turn_result(&raw(json))
    }

    fn usage_of(members: &str) -> Usage {
        read(&format!(r#"{{"stopReason":"end_turn","usage":{members}}}"#)).usage
    }

    fn figure(input: u64, output: u64, thoughts: u64, cached_read: Option<u64>, cached_write: u64) -> Usage {
        Usage::Figure { input, output, thoughts, cached_read, cached_write }
    }

    /// What no counter may be.
    const NO_COUNT: [&str; 14] = [
        "null",
        "-1",
        "-0",
        "1.5",
        "3.0",
        "1e3",
        "1E0",
        r#""7""#,
        "true",
        "[]",
        "{}",
        "9223372036854775808",
        "18446744073709551616",
        "1e400",
    ];

    #[test]
    fn r26_optional_counters_read_as_zero_when_absent() {
        assert_eq!(usage_of(r#"{"inputTokens":7,"outputTokens":2}"#), figure(7, 2, 0, None, 0));
        let all = r#"{"inputTokens":7,"outputTokens":2,"thoughtTokens":3,"cachedReadTokens":4,
            "cachedWriteTokens":5,"totalTokens":9,"costUsd":null}"#;
        assert_eq!(usage_of(all), figure(7, 2, 3, Some(4), 5));
        let zeros = r#"{"inputTokens":0,"outputTokens":0,"cachedReadTokens":0}"#;
        assert_eq!(usage_of(zeros), figure(0, 0, 0, Some(0), 0), "R40: zero is a figure");
    }

    #[test]
    fn r27_without_a_required_counter_there_is_no_figure() {
        for members in [r#"{"inputTokens":7}"#, r#"{"outputTokens":7}"#, "{}"] {
            assert_eq!(usage_of(members), Usage::Malformed, "{members}");
        }
        assert_eq!(read(r#"{"stopReason":"end_turn"}"#).usage, Usage::Absent);
    }

    #[test]
    fn r28_one_bad_counter_leaves_no_figure() {
        let members =
            ["inputTokens", "outputTokens", "thoughtTokens", "cachedReadTokens", "cachedWriteTokens"];
        for (position, member) in members.into_iter().enumerate() {
            let with = |value: &str| {
                let of = |(at, name): (usize, &&str)| {
                    format!(r#""{name}":{}"#, if at == position { value } else { "1" })
                };
                let pairs: Vec<_> = members.iter().enumerate().map(of).collect();
                usage_of(&format!("{{{}}}", pairs.join(",")))
            };
            for bad in NO_COUNT {
                assert_eq!(with(bad), Usage::Malformed, "{member}: {bad}");
            }
            for good in [0, 7, i64::MAX.unsigned_abs()] {
                let mut counts = [1; 5];
                counts[position] = good;
                let [input, output, thoughts, read, write] = counts;
                assert_eq!(with(&good.to_string()), figure(input, output, thoughts, Some(read), write));
            }
        }
    }

    #[test]
    fn r28_usage_is_an_object_that_names_each_counter_once() {
        for usage in ["null", "[]", "[7,2,0,0,0]", r#""7""#, "7", "true"] {
            assert_eq!(usage_of(usage), Usage::Malformed, "{usage}");
        }
        let twice = r#"{"inputTokens":7,"outputTokens":2,"inputTokens":7}"#;
        assert_eq!(usage_of(twice), Usage::Malformed);
    }

    #[test]
    fn r28_r29_the_vendors_total_leaves_thoughts_out_and_is_never_read() {
        for total in NO_COUNT {
            let members = format!(r#"{{"inputTokens":7,"outputTokens":2,"totalTokens":{total}}}"#);
            assert_eq!(usage_of(&members), figure(7, 2, 0, None, 0), "{total}");
        }
    }

    #[test]
    fn r30_the_marker_is_read_leniently_and_is_no_figure() {
        let marker = |meta: &str| {
            let result = read(&format!(r#"{{"stopReason":"end_turn","_meta":{meta}}}"#));
            assert_eq!(result.usage, Usage::Absent);
            result.marker
        };
        let count = |count: &str| marker(&format!(r#"{{"quota":{{"token_count":{count}}}}}"#));
        for (stated, want) in [
            (r#"{"input_tokens":16665,"output_tokens":495}"#, Some((16665, 495))),
            (r#"{"input_tokens":0,"output_tokens":0}"#, Some((0, 0))),
            (r#"{"input_tokens":7}"#, Some((7, 0))),
            (r#"{"input_tokens":null,"output_tokens":7.0}"#, Some((0, 7))),
            (r#"{"input_tokens":0.25,"output_tokens":1e3}"#, Some((1, 1000))),
            (r#"{"input_tokens":1e40,"output_tokens":0}"#, Some((i64::MAX.unsigned_abs(), 0))),
            (r#"{"input_tokens":0}"#, None),
            (r#"{"input_tokens":-1,"output_tokens":0}"#, None),
            (r#"{"input_tokens":"7","output_tokens":true}"#, None),
            ("{}", None),
            ("[7,7]", None),
            ("null", None),
        ] {
            assert_eq!(count(stated), want, "{stated}");
        }
        for meta in ["null", "[]", "{}", r#"{"quota":null}"#, r#"{"quota":[]}"#, r#"{"quota":{}}"#] {
            assert_eq!(marker(meta), None, "{meta}");
        }
    }

    #[test]
    fn r47_the_stop_reason_is_kept_as_it_is() {
        for reason in
            ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "foo", "", "fin\u{e9}"]
        {
            let result = read(&format!(r#"{{"stopReason":"{reason}"}}"#));
            assert_eq!(result.stop_reason.as_deref(), Some(reason));
        }
        assert_eq!(read(r#"{"stopReason":"end\u005fturn"}"#).stop_reason.as_deref(), Some("end_turn"));
        let long = read(&format!(r#"{{"stopReason":"{}"}}"#, "é".repeat(1000))).stop_reason;
        assert_eq!(long, Some("é".repeat(64)));
        for none in
            [r#"{"stopReason":null}"#, r#"{"stopReason":7}"#, "{}", "null", "[]", "7", r#""end_turn""#]
        {
            assert_eq!(read(none), TurnResult::default(), "{none}");
        }
    }

    #[test]
    fn r47_an_error_has_a_code_even_if_it_cannot_be_read() {
        let error = |json: &str| turn_error(&raw(json), 0);
        for (json, code) in [
            (r#"{"code":500,"message":"Internal error"}"#, 500),
            (r#"{"code":-32800,"message":"cancelled"}"#, -32800),
            (r#"{"code":"429"}"#, 0),
            (r#"{"code":4.5}"#, 0),
            (r#"{"message":"no code"}"#, 0),
            ("null", 0),
            (r#""text""#, 0),
        ] {
            assert_eq!(error(json), TurnResult { error: Some(code), ..TurnResult::default() }, "{json}");
        }
    }

    #[test]
    fn q14_a_refusal_for_quota_is_read_from_the_error() {
        let stated = r#"{"code":429,"message":"You have exhausted your capacity on this model. Your quota will reset after 1h0m0s."}"#;
        let result = turn_error(&raw(stated), 1_000);
        let rejection = result.rejection.expect("a 429 is a refusal");
        assert_eq!((result.error, rejection.resets_at), (Some(429), Some(1_000 + 3_600_000)));
        assert!(turn_error(&raw(r#"{"code":429}"#), 0).rejection.is_some(), "whatever its text says");
        assert!(turn_error(&raw(r#"{"code":500,"message":"boom"}"#), 0).rejection.is_none());
    }
}
