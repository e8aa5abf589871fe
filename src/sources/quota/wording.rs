//! What can be understood of a refusal's sentences, and of the values in its body.

use jiff::Timestamp;

/// Reasons that the CLI or its users have met; used to find one in plain text.
const REASONS: [&str; 5] = [
    "RATE_LIMIT_EXCEEDED",
    "QUOTA_EXHAUSTED",
    "MODEL_CAPACITY_EXHAUSTED",
    "MODEL_CAPACITY_EXCEEDED",
    "INSUFFICIENT_G1_CREDITS_BALANCE",
];

/// Lower case. The last is the hint which the CLI adds to any quota error,
/// capacity included: it proves a refusal and says nothing of its kind.
const REFUSALS: [&str; 14] = [
    "quota exceeded",
    "quota reached",
    "exceeded your current quota",
    "quota will reset",
    "exhausted your",
    "resource has been exhausted",
    "resource_exhausted",
    "too many requests",
    "rate limit",
    "no capacity available",
    "capacity exceeded",
    "insufficient ai credits",
    "429 error",
    "has hit its quota limits",
];

/// A year: a longer delay is a mistake.
const MAX_DELAY_MS: f64 = 366.0 * 86_400_000.0;

pub(super) fn is_refusal(text: &str) -> bool {
    let low = text.to_ascii_lowercase();
    REFUSALS.iter().any(|needle| low.contains(needle))
        || reason(text).is_some()
        || ["code", "status"].iter().any(|name| member(text, name).is_some_and(|v| v.starts_with("429")))
}

/// Google's capacity rather than the user's quota, where no reason is stated.
/// "You have exhausted your capacity on this model" is the user's quota in
/// spite of its wording.
pub(super) fn is_capacity(text: &str) -> bool {
    let low = text.to_ascii_lowercase();
    low.contains("no capacity available")
        || (low.contains("capacity exceeded")
            && !low.contains("exhausted your")
            && !low.contains("quota will"))
}

/// The words by which Gemini CLI 0.61.0 takes an error for one of capacity and
/// retries after the server's full delay, saying nothing on its protocol.
pub(super) fn is_waited_out(text: &str) -> bool {
    let low = text.to_ascii_lowercase();
    low.contains("exhausted your capacity") || low.contains("capacity exceeded")
}

/// `reason: 'X'` of a dump or a broken body, else a known reason anywhere.
pub(super) fn reason(text: &str) -> Option<String> {
    if let Some(word) = member(text, "reason").and_then(quoted).and_then(word) {
        return Some(word);
    }
    REASONS.iter().find(|reason| text.contains(**reason)).map(|reason| (*reason).to_owned())
}

/// The value after the last `name:` or `"name":`.
fn member<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.rmatch_indices(name).take(32).find_map(|(at, _)| {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            return None;
        }
        let rest = text[at + name.len()..].trim_start_matches(['"', '\'', '\\']);
        rest.trim_start().strip_prefix(':').map(str::trim_start)
    })
}

/// What stands between the quotation marks that the text begins with.
fn quoted(text: &str) -> Option<&str> {
    let text = text.trim_start_matches('\\');
    let mark = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    text[1..].split([mark, '\\', '\n']).next()
}

/// A reason as stated, if it is one word of capitals.
pub(super) fn word(text: &str) -> Option<String> {
    let fits = (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    fits.then(|| text.to_owned())
}

/// A name of a model or a metric as stated, if it can be nothing else: no
/// address and no sentence passes.
pub(super) fn name(text: &str) -> Option<String> {
    let text = text.trim();
    let fits = (1..=128).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b" ._/:-".contains(&b));
    fits.then(|| text.to_owned())
}

/// `… for model gemini-2.5-flash (…)`
pub(super) fn model(text: &str) -> Option<String> {
    let after = &text[text.find("for model ")? + "for model ".len()..];
    let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || "._/-".contains(c))).unwrap_or(after.len());
    name(after[..end].trim_end_matches('.')).filter(|name| name.contains('-'))
}

/// `… quota metric 'X' and limit 'Y' …`: the limit, which names its period, before the metric.
pub(super) fn metric(text: &str) -> Option<String> {
    let metric = &text[text.find("quota metric '")? + "quota metric ".len()..];
    let limit = metric.find("' and limit '").map(|at| &metric[at + "' and limit ".len()..]);
    limit.or(Some(metric)).and_then(quoted).and_then(name)
}

/// The delay that the text asks for or implies, in ms: what the error object
/// of a dump states, what the server says of the reset, what it asks to wait,
/// what the CLI says it waits. The last of a kind counts: it is the newest.
pub(super) fn delay(text: &str) -> Option<i64> {
    let millis = |text: &str| duration(&format!("{}ms", text.split([',', '\n', ' ']).next()?));
    if let Some(stated) = member(text, "retryDelayMs").and_then(millis) {
        return Some(stated);
    }
    let low = text.to_ascii_lowercase();
    let after = |opening: &str| {
        let at = low.rfind(opening)? + opening.len();
        leading_duration(&low[at..])
    };
    [
        "reset after ",
        "resets after ",
        "resets in ",
        "reset in ",
        "retry in ",
        "suggested retry after ",
        "retrying after ",
    ]
    .iter()
    .find_map(|opening| after(opening))
}

/// `… resets at 2026-12-01T05:57:19Z`, unix ms.
pub(super) fn reset_at(text: &str) -> Option<i64> {
    ["resets at ", "reset at "].iter().find_map(|opening| {
        let after = &text[text.rfind(opening)? + opening.len()..];
        timestamp(
            after.split(|c: char| c.is_whitespace() || "\"'),".contains(c)).next()?.trim_end_matches('.'),
        )
    })
}

/// An RFC 3339 time in unix ms.
pub(super) fn timestamp(text: &str) -> Option<i64> {
    let ms = text.trim().parse::<Timestamp>().ok()?.as_millisecond();
    (ms > 0).then_some(ms)
}

/// `14h23m40.6s`, `33740.9s`, `900ms`, in ms; the whole text must be one.
pub(super) fn duration(text: &str) -> Option<i64> {
    let (ms, rest) = parts(text.trim())?;
    rest.is_empty().then_some(ms)
}

fn leading_duration(text: &str) -> Option<i64> {
    Some(parts(text)?.0)
}

/// The duration a text begins with, in ms, and what follows it.
fn parts(text: &str) -> Option<(i64, &str)> {
    let (mut total, mut rest, mut some) = (0.0, text, false);
    loop {
        let here = if some { rest.trim_start_matches(' ') } else { rest };
        let digits = here.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let Ok(number) = here[..digits].parse::<f64>() else { break };
        let after = here[digits..].trim_start_matches(' ');
        let letters = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        let Some(unit) = unit_ms(&after[..letters]) else { break };
        total += number * unit;
        rest = &after[letters..];
        some = true;
    }
    let fits = some && (0.0..=MAX_DELAY_MS).contains(&total);
    // Within a year of milliseconds: exact.
    #[expect(clippy::cast_possible_truncation, reason = "bounded by MAX_DELAY_MS")]
    fits.then_some((total.round() as i64, rest))
}

fn unit_ms(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" => 1.0,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
        "h" | "hour" | "hours" => 3_600_000.0,
        "d" | "day" | "days" => 86_400_000.0,
        _ => return None,
    })
}
