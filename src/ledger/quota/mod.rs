//! Quota: what was polled, what was observed, and what may be said of it
//! (docs/quota.md).

pub mod bucket;
pub mod history;
pub mod poll;
pub mod refusal;
pub mod runway;
pub mod schedule;

use serde::{Deserialize, Serialize};

/// What to know before polling is switched on (quota Q1).
pub const RISK: &str = "Gemini CLI's own documents say that other software which uses its sign-in against \
                        Code Assist breaks Google's terms, and such an account may be suspended. So nothing is \
                        polled until you say so: `serve --quota` or `quota.enabled: true` for good, \
                        `gemgauge quota --poll` for once.";

/// A request refused for quota or capacity, as a 429 states it (quota Q14).
/// Plain values: the message itself is not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// The reason as stated (`RATE_LIMIT_EXCEEDED`, `QUOTA_EXHAUSTED`,
    /// `MODEL_CAPACITY_EXHAUSTED`, …), at most 64 characters; `None`: not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Google's capacity, not the user's quota.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub capacity: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The quota metric or id that refused, as stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// When the quota resets, unix ms, where stated or implied by a delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<i64>,
    /// How long the server asks to wait, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<i64>,
    /// Gemini CLI waits the delay out in silence instead of failing: 0.61.0
    /// does so for messages that speak of exhausted or exceeded capacity.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
}
