//! An answer that refuses: by status, and by the reason in Google's words.

use jiff::fmt::rfc2822;
use serde_json::Value;

use super::{VERIFY, Verdict, no_longer_supported};
use crate::ledger::quota::poll::QuotaState;
use crate::ledger::quota::schedule::Then;

/// A request that was not answered with what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// 0: there was no answer.
    pub(super) status: u16,
    /// Google's code for it.
    pub(super) reason: Option<String>,
    /// How long to wait, ms, where that is said.
    wait: Option<i64>,
    /// What is wrong where there was no answer.
    trouble: String,
}

impl Problem {
    pub(super) fn trouble(why: impl Into<String>) -> Self {
        Self { status: 0, reason: None, wait: None, trouble: why.into() }
    }

    pub(super) fn refused(status: u16, retry_after: Option<&str>, body: &[u8], now: i64) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        // Some answers are a list of one.
        let error = if body.is_array() { &body[0]["error"] } else { &body["error"] };
        let details = || error["details"].as_array().into_iter().flatten();
        let reason = details().find_map(|detail| code(detail["reason"].as_str()?)).map(str::to_owned);
        let delay = || details().find_map(|detail| duration(detail["retryDelay"].as_str()?));
        let wait = retry_after.and_then(|text| after(text, now)).or_else(delay);
        Self { status, reason, wait, trouble: String::new() }
    }

    /// The state it puts a home in (quota Q12).
    pub(super) fn verdict(&self) -> Verdict {
        let reason = self.reason.as_deref();
        let said = |text: &str| match reason {
            Some(reason) => format!("{text} (status {}, {reason})", self.status),
            None => format!("{text} (status {})", self.status),
        };
        let hold = |state, detail| Verdict::new(state, Then::Hold, detail);
        match (self.status, reason) {
            (0, _) => Verdict::trouble(&self.trouble),
            (401, _) => hold(
                QuotaState::WaitingForRefresh,
                said("Google no longer accepts the stored token; Gemini CLI renews it when it next works"),
            ),
            (403, Some("SUBSCRIPTION_REQUIRED")) => {
                hold(QuotaState::NoSubscription, said("the account has no seat of Code Assist"))
            }
            (403, Some("VALIDATION_REQUIRED")) => hold(QuotaState::ValidationRequired, VERIFY.into()),
            (403, Some(super::UNSUPPORTED)) => no_longer_supported(),
            (403, Some("SERVICE_DISABLED")) => {
                hold(QuotaState::Denied, said("the API of Code Assist is off in this project"))
            }
            (403, Some("SECURITY_POLICY_VIOLATED")) => {
                hold(QuotaState::Denied, said("a policy of the organization forbids it"))
            }
            (403, _) => hold(QuotaState::Denied, said("Google refuses")),
            (404, _) => hold(
                QuotaState::Denied,
                said("there is no such service: endpoint and version may be wrong, or it is withdrawn"),
            ),
            (429, _) => Verdict::new(
                QuotaState::Unavailable,
                Then::Later(self.wait),
                said("Google asks to be asked less often"),
            ),
            (300..400, _) => Verdict::trouble(said("the answer points elsewhere, which is not followed")),
            (408 | 425 | 500.., _) => Verdict::trouble(said("Code Assist has trouble of its own")),
            (400..500, _) => hold(QuotaState::Denied, said("Google refuses the question")),
            _ => Verdict::trouble(said("the answer is not what Code Assist says")),
        }
    }
}

/// A code of Google's, if it looks like one; nothing else is shown.
pub(super) fn code(text: &str) -> Option<&str> {
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    ((1..=64).contains(&text.len()) && text.bytes().all(plain)).then_some(text)
}

/// The wait of a `Retry-After`, in ms: seconds, or a date.
fn after(text: &str, now: i64) -> Option<i64> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(text.parse::<i64>().map_or(i64::MAX, |seconds| seconds.saturating_mul(1_000)));
    }
    let at = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(at.as_millisecond().saturating_sub(now).max(0))
}

/// `51820.638305887s`, `900ms` → ms.
#[expect(clippy::cast_possible_truncation, reason = "it saturates")]
fn duration(text: &str) -> Option<i64> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1.0),
        None => (text.strip_suffix('s')?, 1_000.0),
    };
    let number: f64 = number.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some((number * unit) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q12_a_wait_is_read_in_every_spelling() {
        let now = 1_796_040_000_000;
        assert_eq!(after("7", now), Some(7_000));
        assert_eq!(after(" 0 ", now), Some(0));
        assert_eq!(after("99999999999999999999", now), Some(i64::MAX));
        assert_eq!(after("Mon, 30 Nov 2026 12:02:00 GMT", 1_796_040_000_000), Some(120_000));
        assert_eq!(after("Mon, 30 Nov 2026 11:00:00 GMT", 1_796_040_000_000), Some(0));
        for text in ["", "-7", "soon", "1.5"] {
            assert_eq!(after(text, now), None, "{text}");
        }
        assert_eq!(duration("51820.638305887s"), Some(51_820_638));
        assert_eq!(duration("900ms"), Some(900));
        for text in ["", "s", "-1s", "NaNs", "infs", "7", "7m"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn a_reason_is_shown_only_if_it_is_a_code() {
        assert_eq!(code("RATE_LIMIT_EXCEEDED"), Some("RATE_LIMIT_EXCEEDED"));
        for text in ["", "dev@example.invalid", "lower", &"A".repeat(65), "A B"] {
            assert_eq!(code(text), None, "{text}");
        }
    }
}
