//! Requests that were refused: what kind it was, and for how long it holds
//! (quota Q14).

use std::sync::Arc;

use super::Rejection;
use super::bucket::{Share, reset_due};
use crate::ledger::evidence::HomeId;

/// A longer delay is no hiccup, in ms: above it Gemini CLI gives up on most errors.
pub const LONG_DELAY_MS: i64 = 5 * 60_000;

/// How long a refusal holds that states no reset, in ms: quotas are daily by
/// Google's documents.
const UNSTATED_MS: i64 = 86_400_000;

/// A request refused in a session of a home. One of the same session, time,
/// model and reason is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    pub home: HomeId,
    /// The CLI's session id.
    pub session: Arc<str>,
    /// Unix ms.
    pub at: i64,
    /// Told by a front door, which repeats the last of the refusals that
    /// telemetry records one by one.
    pub door: bool,
    pub rejection: Rejection,
}

/// What refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Google has no capacity: no quota of the user's.
    Capacity,
    /// Too fast; waiting a little helps.
    RateLimit,
    /// Nothing is left until a reset.
    Exhausted,
}

/// The values of the label `reason`: reasons as stated, in lower case; what a
/// metric says where none is stated; what is not in the list; nothing.
pub const REASONS: [&str; 7] = [
    "rate_limit_exceeded",
    "quota_exhausted",
    "insufficient_g1_credits_balance",
    "per_day",
    "per_minute",
    "other",
    "none",
];

/// The value of the label `reason`.
#[must_use]
pub fn reason(rejection: &Rejection) -> &'static str {
    let Some(stated) = &rejection.reason else {
        let metric = rejection.metric.as_deref().unwrap_or_default().to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| metric.contains(word));
        return if says(&["perday", "per day", "daily"]) {
            "per_day"
        } else if says(&["perminute", "per minute"]) {
            "per_minute"
        } else {
            "none"
        };
    };
    REASONS[..3].iter().find(|reason| stated.eq_ignore_ascii_case(reason)).copied().unwrap_or("other")
}

impl Kind {
    #[must_use]
    pub fn of(rejection: &Rejection) -> Self {
        if rejection.capacity {
            return Self::Capacity;
        }
        match reason(rejection) {
            "quota_exhausted" | "insufficient_g1_credits_balance" | "per_day" => Self::Exhausted,
            "rate_limit_exceeded" | "per_minute" => Self::RateLimit,
            _ if rejection.retry_after_ms.is_some_and(|delay| delay >= LONG_DELAY_MS) => Self::Exhausted,
            _ => Self::RateLimit,
        }
    }
}

/// Until when a refusal for exhausted quota holds, unix ms; `None`: it was of
/// another kind.
#[must_use]
pub fn holds_until(rejection: &Rejection, at: i64) -> Option<i64> {
    (Kind::of(rejection) == Kind::Exhausted)
        .then(|| rejection.resets_at.unwrap_or_else(|| at.saturating_add(UNSTATED_MS)))
}

/// Whether it still holds at `now`: its reset has not passed, and no request
/// for the model succeeded since.
#[must_use]
pub fn in_force(rejection: &Rejection, at: i64, succeeded_at: Option<i64>, now: i64) -> bool {
    holds_until(rejection, at).is_some_and(|until| until > now)
        && succeeded_at.is_none_or(|success| success <= at)
}

/// Until when the turn that met this sleeps, unix ms: Gemini CLI waits a long
/// delay out in silence. `heard_at` is when its session was last heard of: an
/// answer, or the end of the turn.
#[must_use]
pub fn asleep_until(rejection: &Rejection, at: i64, heard_at: Option<i64>, now: i64) -> Option<i64> {
    let delay = rejection.retry_after_ms.filter(|delay| rejection.waits && *delay >= LONG_DELAY_MS)?;
    let until = at.saturating_add(delay);
    (until > now && heard_at.is_none_or(|heard| heard < at)).then_some(until)
}

/// What evidence says of a bucket at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The last poll says that nothing is left.
    pub blocked_by_poll: bool,
    /// A refusal is in force.
    pub blocked_by_429: bool,
    /// A refusal is in force while the bucket says that something is left:
    /// the refusal wins, both are shown.
    pub contradicted: bool,
}

impl Standing {
    #[must_use]
    pub fn of(remaining: Option<Share>, resets_at: Option<i64>, refused: bool, now: i64) -> Self {
        // What was observed before a reset that passed says nothing any more.
        let remaining = remaining.filter(|_| !reset_due(resets_at, now));
        Self {
            blocked_by_poll: remaining == Some(Share::ZERO),
            blocked_by_429: refused,
            contradicted: refused && remaining.is_some_and(|left| left > Share::ZERO),
        }
    }

    #[must_use]
    pub fn is_blocked(self) -> bool {
        self.blocked_by_poll || self.blocked_by_429
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: i64 = 1_790_000_000_000;
    const HOUR: i64 = 3_600_000;

    fn stated(reason: Option<&str>, metric: Option<&str>, delay: Option<i64>) -> Rejection {
        Rejection {
            reason: reason.map(str::to_owned),
            capacity: reason.is_some_and(|reason| reason.starts_with("MODEL_CAPACITY")),
            metric: metric.map(str::to_owned),
            resets_at: delay.map(|delay| T + delay),
            retry_after_ms: delay,
            ..Rejection::default()
        }
    }

    #[test]
    fn q14_capacity_rate_and_quota_are_kept_apart() {
        use Kind::{Capacity, Exhausted, RateLimit};
        for (stated_reason, metric, delay, label, kind) in [
            (Some("QUOTA_EXHAUSTED"), None, Some(14 * HOUR), "quota_exhausted", Exhausted),
            (Some("QUOTA_EXHAUSTED"), None, None, "quota_exhausted", Exhausted),
            (Some("RATE_LIMIT_EXCEEDED"), None, Some(2_200), "rate_limit_exceeded", RateLimit),
            (Some("RATE_LIMIT_EXCEEDED"), None, Some(HOUR), "rate_limit_exceeded", RateLimit),
            (Some("MODEL_CAPACITY_EXHAUSTED"), None, Some(HOUR), "other", Capacity),
            (
                Some("INSUFFICIENT_G1_CREDITS_BALANCE"),
                None,
                None,
                "insufficient_g1_credits_balance",
                Exhausted,
            ),
            (None, Some("FakeRequestsPerDayPerUser"), Some(40_000_500), "per_day", Exhausted),
            (None, Some("Chat API requests per day per user"), None, "per_day", Exhausted),
            (None, Some("FakeRequestsPerMinutePerUser"), None, "per_minute", RateLimit),
            (Some("SOMETHING_NEW"), None, Some(2 * HOUR), "other", Exhausted),
            (Some("SOMETHING_NEW"), None, Some(2_000), "other", RateLimit),
            (None, None, Some(9 * HOUR), "none", Exhausted),
            (None, None, None, "none", RateLimit),
        ] {
            let rejection = stated(stated_reason, metric, delay);
            assert_eq!(
                (reason(&rejection), Kind::of(&rejection)),
                (label, kind),
                "{stated_reason:?} {metric:?}"
            );
            assert!(REASONS.contains(&label));
        }
    }

    #[test]
    fn q14_a_refusal_holds_until_its_reset_or_a_later_success() {
        let quota = stated(Some("QUOTA_EXHAUSTED"), None, Some(2 * HOUR));
        let unstated = stated(Some("QUOTA_EXHAUSTED"), None, None);
        let rate = stated(Some("RATE_LIMIT_EXCEEDED"), None, Some(2 * HOUR));
        for (name, rejection, success, now, want) in [
            ("at once", &quota, None, T, true),
            ("just before its reset", &quota, None, T + 2 * HOUR - 1, true),
            ("at its reset", &quota, None, T + 2 * HOUR, false),
            ("an earlier success says nothing", &quota, Some(T - 1), T + 1, true),
            ("a later success ends it", &quota, Some(T + 1), T + 2, false),
            ("no reset stated: a day", &unstated, None, T + 24 * HOUR - 1, true),
            ("no reset stated: no longer", &unstated, None, T + 24 * HOUR, false),
            ("a rate limit is no exhaustion", &rate, None, T, false),
        ] {
            assert_eq!(in_force(rejection, T, success, now), want, "{name}");
        }
    }

    #[test]
    fn q14_a_contradiction_shows_both_and_the_429_wins() {
        let some = Some(Share::from_billionths(958_000_000));
        for (remaining, resets_in, refused, poll, by_429, contradicted) in [
            (some, 1, true, false, true, true),
            (some, 1, false, false, false, false),
            (Some(Share::ZERO), 1, true, true, true, false),
            (Some(Share::ZERO), 1, false, true, false, false),
            (None, 1, true, false, true, false),
            // Its reset has passed: the number is of the past.
            (some, 0, true, false, true, false),
            (Some(Share::ZERO), 0, false, false, false, false),
        ] {
            let standing = Standing::of(remaining, Some(T + resets_in), refused, T);
            let want = Standing { blocked_by_poll: poll, blocked_by_429: by_429, contradicted };
            assert_eq!(standing, want, "{remaining:?} {resets_in} {refused}");
            assert_eq!(standing.is_blocked(), poll || by_429);
        }
    }

    #[test]
    fn q14_a_turn_sleeps_while_a_long_delay_is_waited_out() {
        let waits = |delay| Rejection { waits: true, ..stated(Some("QUOTA_EXHAUSTED"), None, Some(delay)) };
        let fails = stated(Some("QUOTA_EXHAUSTED"), None, Some(9 * HOUR));
        for (name, rejection, heard, now, want) in [
            ("long and waited out", waits(14 * HOUR), None, T, Some(T + 14 * HOUR)),
            ("heard of before", waits(14 * HOUR), Some(T - 1), T, Some(T + 14 * HOUR)),
            ("heard of since", waits(14 * HOUR), Some(T + 1), T + 1, None),
            ("the turn ended with it", waits(14 * HOUR), Some(T), T, None),
            ("it is over", waits(14 * HOUR), None, T + 14 * HOUR, None),
            ("five minutes are long", waits(LONG_DELAY_MS), None, T, Some(T + LONG_DELAY_MS)),
            ("less is not", waits(LONG_DELAY_MS - 1), None, T, None),
            ("this wording fails at once", fails, None, T, None),
        ] {
            assert_eq!(asleep_until(&rejection, T, heard, now), want, "{name}");
        }
    }
}
