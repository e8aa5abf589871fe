//! Reads what a 429 says of quota or capacity (quota Q14).
//!
//! Three shapes come in, often mixed in one text: the server's JSON body
//! (telemetry), its or the CLI's sentence (ACP, headless), and the dump Node
//! prints of an error (standard error). Structured members win over wording.

use serde_json::Value;

use crate::ledger::quota::Rejection;

use super::wording;

/// Longer texts are cut: bodies have about 1 KiB, dumps of errors a few.
const MAX_TEXT: usize = 64 * 1024;
/// How often a body may be wrapped in a string or an array.
const MAX_DEPTH: usize = 5;
/// How many places of a text are tried as the beginning of a body.
const MAX_STARTS: usize = 32;

/// What the text of an error says of quota: the `error` of
/// `gemini_cli.api_error`, message and data of an ACP error, or what a
/// headless run printed. `now_ms` (unix ms) is when it was said: delays count
/// from it. `None` where the text itself does not show a refusal for quota or
/// capacity; whoever knows of the 429 from elsewhere asks [`refused`].
#[must_use]
pub fn rejection(message: &str, now_ms: i64) -> Option<Rejection> {
    let text = cut(message);
    let body = find_body(text);
    let shown = match body.as_ref().and_then(Body::is_429) {
        Some(shown) => shown,
        None => wording::is_refusal(text),
    };
    shown.then(|| read(text, body.as_ref(), now_ms))
}

/// The same for an error whose code is known to be 429, whatever its text says.
#[must_use]
pub fn refused(message: &str, now_ms: i64) -> Rejection {
    let text = cut(message);
    read(text, find_body(text).as_ref(), now_ms)
}

fn cut(text: &str) -> &str {
    let end = (0..=MAX_TEXT.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// Joins what is stated and what is said. The order of resets is the CLI's
/// own: the stated time, the delay to retry, the delay to the reset, wording.
fn read(text: &str, body: Option<&Body>, now_ms: i64) -> Rejection {
    let stated = body.map(Body::stated).unwrap_or_default();
    let reason = stated.reason.or_else(|| wording::reason(text));
    let capacity = match &reason {
        Some(reason) => reason.starts_with("MODEL_CAPACITY"),
        None => wording::is_capacity(text),
    };
    let said = wording::delay(text);
    let delay = stated.retry_delay.or(stated.reset_delay).or(said);
    let resets_at = stated
        .reset_at
        .or_else(|| wording::reset_at(text))
        .or_else(|| delay.and_then(|delay| now_ms.checked_add(delay)))
        // Google's capacity is no quota that resets; its delay is one to retry.
        .filter(|_| !capacity);
    Rejection {
        reason,
        capacity,
        model: stated.model.or_else(|| wording::model(text)),
        metric: stated.metric.or_else(|| wording::metric(text)),
        resets_at,
        retry_after_ms: delay,
        waits: wording::is_waited_out(text),
    }
}

/// The `error` object of a Google API body.
struct Body(Value);

#[derive(Default)]
struct Stated {
    reason: Option<String>,
    model: Option<String>,
    metric: Option<String>,
    /// Unix ms.
    reset_at: Option<i64>,
    /// In ms.
    retry_delay: Option<i64>,
    reset_delay: Option<i64>,
}

impl Body {
    /// Whether the body is one of a 429; `None`: it states neither code nor status.
    fn is_429(&self) -> Option<bool> {
        let code = match self.0.get("code") {
            Some(Value::String(code)) => code.parse().ok(),
            Some(code) => code.as_i64(),
            None => None,
        };
        let status = self.0.get("status").and_then(Value::as_str);
        match (code, status) {
            (Some(code), _) => Some(code == 429),
            (None, Some(status)) => Some(status == "RESOURCE_EXHAUSTED"),
            (None, None) => None,
        }
    }

    fn stated(&self) -> Stated {
        let mut stated = Stated::default();
        let details = self.0.get("details").and_then(Value::as_array);
        for detail in details.into_iter().flatten().take(16) {
            if let Some(reason) = text_of(detail, "reason") {
                put(&mut stated.reason, wording::word(reason));
            }
            if let Some(metadata) = detail.get("metadata") {
                let member = |name| text_of(metadata, name);
                put(&mut stated.model, member("model").and_then(wording::name));
                put(&mut stated.metric, member("quota_limit").and_then(wording::name));
                put(&mut stated.metric, member("quota_metric").and_then(wording::name));
                put(&mut stated.reset_at, member("quotaResetTimeStamp").and_then(wording::timestamp));
                put(&mut stated.reset_delay, member("quotaResetDelay").and_then(wording::duration));
            }
            put(&mut stated.retry_delay, text_of(detail, "retryDelay").and_then(wording::duration));
            let violations = detail.get("violations").and_then(Value::as_array);
            for violation in violations.into_iter().flatten().take(16) {
                // The id names the period (`…PerDay…`), which the metric does not.
                put(&mut stated.metric, text_of(violation, "quotaId").and_then(wording::name));
                put(&mut stated.metric, text_of(violation, "quotaMetric").and_then(wording::name));
                let dimensions = violation.get("quotaDimensions");
                put(&mut stated.model, dimensions.and_then(|d| text_of(d, "model")).and_then(wording::name));
            }
        }
        stated
    }
}

/// The first that is stated counts.
fn put<T>(place: &mut Option<T>, value: Option<T>) {
    if place.is_none() {
        *place = value;
    }
}

fn text_of<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

/// The innermost error object in a text: the text may be the body, hold it
/// among other words, and the body may stand in the message of another.
fn find_body(text: &str) -> Option<Body> {
    find(text, 0).map(Body)
}

fn find(text: &str, depth: usize) -> Option<Value> {
    if depth >= MAX_DEPTH {
        return None;
    }
    let starts = text.match_indices(['{', '[']).map(|(at, _)| at);
    let starts =
        starts.filter(|at| text[at + 1..].trim_start().starts_with(['{', '"', ','])).take(MAX_STARTS);
    for start in starts {
        let whole = parse(&text[start..]);
        let Some(error) = whole.and_then(error_object) else { continue };
        let inner = text_of(&error, "message").and_then(|message| find(message, depth + 1));
        return Some(inner.unwrap_or(error));
    }
    None
}

/// One JSON value at the beginning of the text, stray commas forgiven.
fn parse(text: &str) -> Option<Value> {
    let first = |text: &str| serde_json::Deserializer::from_str(text).into_iter::<Value>().next();
    match first(text) {
        Some(Ok(value)) => Some(value),
        _ => first(&without_stray_commas(text))?.ok(),
    }
}

/// `{"error": …}`, such an object in an array of one, or the error object itself.
fn error_object(value: Value) -> Option<Value> {
    match value {
        Value::Array(items) => items.into_iter().next().and_then(error_object),
        Value::Object(mut object) => match object.remove("error") {
            Some(error @ Value::Object(_)) => Some(error),
            Some(_) => None,
            None => (object.contains_key("code") || object.contains_key("status"))
                .then_some(Value::Object(object)),
        },
        _ => None,
    }
}

/// Drops commas before a closing bracket, after an opening one, or after another comma.
fn without_stray_commas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    // What stands before, white space aside; a comma waits until it proves wanted.
    let (mut before, mut pending) = ('[', false);
    for c in text.chars() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = c == '\\' && !escaped;
            out.push(c);
            continue;
        }
        match c {
            ',' => pending |= !matches!(before, '[' | '{'),
            c if c.is_whitespace() => out.push(c),
            c => {
                if pending && !matches!(c, ']' | '}') {
                    out.push(',');
                }
                pending = false;
                in_string = c == '"';
                before = c;
                out.push(c);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
