//! One limit, its identity and its value (quota Q9–Q12).

use super::poll::{BucketReading, QuotaState};

/// Values older than this are stale while sessions are live, in ms (quota Q11).
pub const STALE_MS: i64 = 15 * 60_000;

/// What stands for an account or a Cloud project that nobody named.
pub const UNNAMED: &str = "unknown";

/// Which limit it is (quota Q9): homes that share all four share the limit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketKey {
    pub account: String,
    pub cloud_project: String,
    /// As Google spells it: not always a model that sessions name.
    pub model: String,
    pub token_type: String,
}

impl BucketKey {
    /// What people read (quota Q9).
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} limit", self.model)
    }
}

/// A share of a limit, 0 to 1, in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(i64);

impl Share {
    pub const ZERO: Self = Self(0);
    pub const FULL: Self = Self(1_000_000_000);

    /// Clamped to 0 and 10^9.
    #[must_use]
    pub const fn from_billionths(count: i64) -> Self {
        Self(if count < 0 {
            0
        } else if count > Self::FULL.0 {
            Self::FULL.0
        } else {
            count
        })
    }

    #[must_use]
    pub const fn billionths(self) -> i64 {
        self.0
    }

    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / Self::FULL.0 as f64
    }

    #[must_use]
    pub fn percent(self) -> f64 {
        self.0 as f64 / 1e7
    }

    /// What is gone of it: 100 − remaining %, without the noise of floats (quota Q9).
    #[must_use]
    pub fn used_percent(self) -> f64 {
        Self(Self::FULL.0 - self.0).percent()
    }
}

/// What a bucket's answer is worth (quota Q10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// `None`: not reported, which is neither 0 nor 100 %.
    pub remaining: Option<Share>,
    /// A count of requests or tokens, where one was stated that can be one.
    pub amount: Option<i64>,
    /// The fraction was no number between 0 and 1: clamped, or passed over.
    pub clamped: bool,
}

impl Value {
    #[must_use]
    pub fn of(reading: &BucketReading) -> Self {
        let finite = reading.remaining_fraction.filter(|fraction| fraction.is_finite());
        // At most 10^9 in size, so nothing is cut off.
        #[expect(clippy::cast_possible_truncation, reason = "clamped before")]
        let billionths = |fraction: f64| (fraction.clamp(0.0, 1.0) * 1e9).round() as i64;
        Self {
            remaining: finite.map(|fraction| Share::from_billionths(billionths(fraction))),
            amount: reading.remaining_amount.filter(|amount| *amount >= 0),
            clamped: reading.remaining_fraction.is_some_and(|fraction| !(0.0..=1.0).contains(&fraction)),
        }
    }

    /// The whole limit, derived: amount ÷ fraction. Not where nothing is left,
    /// nor where one of the two is missing (quota Q10).
    #[must_use]
    pub fn limit(&self) -> Option<i64> {
        let (remaining, amount) = (self.remaining?.billionths(), self.amount?);
        if remaining == 0 {
            return None;
        }
        let limit = (i128::from(amount) * i128::from(Share::FULL.0) * 2 + i128::from(remaining))
            / (i128::from(remaining) * 2);
        i64::try_from(limit).ok()
    }
}

/// Whether a stated reset has passed at `now`: then what was observed before
/// says nothing any more (quota Q11).
#[must_use]
pub fn reset_due(resets_at: Option<i64>, now: i64) -> bool {
    resets_at.is_some_and(|at| at <= now)
}

/// Whether a value is to be called stale (quota Q5, Q11): it is old while
/// sessions are live, or whoever should renew it cannot.
#[must_use]
pub fn is_stale(state: QuotaState, observed_at: i64, live: bool, now: i64) -> bool {
    let old = live && now.saturating_sub(observed_at) > STALE_MS;
    old || !matches!(state, QuotaState::Ok | QuotaState::Off)
}

/// The state of a home as it is shown (quota Q12): what the poller said last,
/// unless its values have become stale.
#[must_use]
pub fn shown_state(stored: Option<QuotaState>, observed_at: Option<i64>, live: bool, now: i64) -> QuotaState {
    match stored {
        None => QuotaState::Off,
        Some(QuotaState::Ok) if observed_at.is_none_or(|at| is_stale(QuotaState::Ok, at, live, now)) => {
            QuotaState::Stale
        }
        Some(state) => state,
    }
}

/// `pro`, `flash` or `flash-lite` where the id says so, else the id: for a
/// line that has no room.
#[must_use]
pub fn class(model: &str) -> &str {
    ["flash-lite", "flash", "pro"]
        .into_iter()
        .find(|class| {
            model.match_indices(class).any(|(at, _)| {
                model[..at].ends_with('-')
                    && model[at + class.len()..].chars().next().is_none_or(|next| next == '-')
            })
        })
        .unwrap_or(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(fraction: Option<f64>, amount: Option<i64>) -> Value {
        Value::of(&BucketReading {
            model: "gemini-2.5-pro".into(),
            token_type: "REQUESTS".into(),
            remaining_fraction: fraction,
            remaining_amount: amount,
            resets_at: None,
        })
    }

    #[test]
    fn q10_a_value_is_reported_zero_or_not_reported() {
        for (fraction, amount, remaining, limit, clamped) in [
            (Some(0.76175), None, Some(761_750_000), None, false),
            (Some(0.9993333), Some(1499), Some(999_333_300), Some(1500), false),
            (Some(1.0), Some(1500), Some(1_000_000_000), Some(1500), false),
            (Some(0.0), Some(0), Some(0), None, false),
            (Some(0.0), Some(7), Some(0), None, false),
            (Some(0.5), Some(0), Some(500_000_000), Some(0), false),
            (Some(0.5), Some(-3), Some(500_000_000), None, false),
            (Some(1e-9), Some(i64::MAX), Some(1), None, false),
            (Some(-0.02), Some(5), Some(0), None, true),
            (Some(1.5), Some(10), Some(1_000_000_000), Some(10), true),
            (Some(f64::NAN), None, None, None, true),
            (Some(f64::INFINITY), None, None, None, true),
            (None, Some(5), None, None, false),
            (None, None, None, None, false),
        ] {
            let value = reading(fraction, amount);
            assert_eq!(value.remaining.map(Share::billionths), remaining, "{fraction:?}");
            assert_eq!((value.limit(), value.clamped), (limit, clamped), "{fraction:?} {amount:?}");
        }
    }

    #[test]
    fn q9_used_is_what_remains_taken_from_a_hundred() {
        let used = |billionths| Share::from_billionths(billionths).used_percent();
        assert_eq!((used(1_000_000_000), used(0), used(620_000_000)), (0.0, 100.0, 38.0));
        let key = BucketKey {
            account: "a".into(),
            cloud_project: "p".into(),
            model: "gemini-9-x".into(),
            token_type: "T".into(),
        };
        assert_eq!(key.label(), "gemini-9-x limit");
    }

    #[test]
    fn q11_q12_states_and_age() {
        use QuotaState::{NoSubscription, Off, Ok, Stale, WaitingForRefresh};
        const T: i64 = 1_000_000_000;
        for (stored, age, live, state, stale) in [
            (None, None, true, Off, None),
            (Some(Ok), Some(STALE_MS), true, Ok, Some(false)),
            (Some(Ok), Some(STALE_MS + 1), true, Stale, Some(true)),
            (Some(Ok), Some(STALE_MS + 1), false, Ok, Some(false)),
            (Some(Ok), Some(40 * STALE_MS), false, Ok, Some(false)),
            (Some(Ok), None, false, Stale, None),
            (Some(WaitingForRefresh), Some(1), false, WaitingForRefresh, Some(true)),
            (Some(NoSubscription), Some(1), true, NoSubscription, Some(true)),
            (Some(Off), Some(1), true, Off, Some(false)),
            (Some(Off), Some(STALE_MS + 1), true, Off, Some(true)),
        ] {
            let observed = age.map(|age| T - age);
            assert_eq!(shown_state(stored, observed, live, T), state, "{stored:?} {age:?} {live}");
            let is = observed.zip(stored).map(|(at, stored)| is_stale(stored, at, live, T));
            assert_eq!(is, stale, "{stored:?} {age:?} {live}");
        }
        assert!(reset_due(Some(T), T) && !reset_due(Some(T + 1), T) && !reset_due(None, T));
    }

    #[test]
    fn a_class_is_a_word_of_the_id() {
        for (model, want) in [
            ("gemini-2.5-pro", "pro"),
            ("gemini-2.5-flash-lite", "flash-lite"),
            ("gemini-3-flash-preview", "flash"),
            ("gemini-professional", "gemini-professional"),
            ("pro", "pro"),
            ("nano-banana", "nano-banana"),
        ] {
            assert_eq!(class(model), want, "{model}");
        }
    }
}
