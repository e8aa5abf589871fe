//! What one poll of one home said, or why there was none (quota Q9–Q12).

use crate::ledger::evidence::HomeId;

/// The one honest state of a home's quota (quota Q12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuotaState {
    Off,
    Ok,
    Stale,
    WaitingForRefresh,
    Unreadable,
    NotGoogleSignIn,
    NoSignIn,
    ClientNoLongerSupported,
    NoSubscription,
    ValidationRequired,
    NoProject,
    Denied,
    Unavailable,
}

impl QuotaState {
    pub const ALL: [Self; 13] = [
        Self::Off,
        Self::Ok,
        Self::Stale,
        Self::WaitingForRefresh,
        Self::Unreadable,
        Self::NotGoogleSignIn,
        Self::NoSignIn,
        Self::ClientNoLongerSupported,
        Self::NoSubscription,
        Self::ValidationRequired,
        Self::NoProject,
        Self::Denied,
        Self::Unavailable,
    ];

    /// The value of the `state` label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Ok => "ok",
            Self::Stale => "stale",
            Self::WaitingForRefresh => "waiting_for_refresh",
            Self::Unreadable => "unreadable",
            Self::NotGoogleSignIn => "not_google_sign_in",
            Self::NoSignIn => "no_sign_in",
            Self::ClientNoLongerSupported => "client_no_longer_supported",
            Self::NoSubscription => "no_subscription",
            Self::ValidationRequired => "validation_required",
            Self::NoProject => "no_project",
            Self::Denied => "denied",
            Self::Unavailable => "unavailable",
        }
    }

    /// The state of that name, if it is one.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

/// What the poller found out of one home at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct Poll {
    pub home: HomeId,
    /// Unix ms.
    pub at: i64,
    /// Never `Stale`: that is a matter of age, which whoever reads decides (quota Q11).
    pub state: QuotaState,
    /// A sentence for people, never with a token or an address in it.
    pub detail: Option<String>,
    /// Whose quota: a stable hash, equal on every machine, or a configured
    /// name; `None` where no sign-in could be read.
    pub account: Option<String>,
    /// The Cloud project that was asked about.
    pub cloud_project: Option<String>,
    /// The buckets of a good answer, as stated; empty otherwise.
    pub buckets: Vec<BucketReading>,
    /// When the poller means to ask again, unix ms; `None`: not before something changes.
    pub next_poll_at: Option<i64>,
    /// Whether a request was made; otherwise only the state is news.
    pub asked: bool,
}

/// What became of a request: the values of the label `result`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollResult(QuotaState);

impl PollResult {
    /// All of them: the states that a request can end in.
    pub const ALL: [Self; 8] = [
        Self(QuotaState::Ok),
        Self(QuotaState::WaitingForRefresh),
        Self(QuotaState::ClientNoLongerSupported),
        Self(QuotaState::NoSubscription),
        Self(QuotaState::ValidationRequired),
        Self(QuotaState::NoProject),
        Self(QuotaState::Denied),
        Self(QuotaState::Unavailable),
    ];

    /// `None` where no request was made.
    #[must_use]
    pub fn of(poll: &Poll) -> Option<Self> {
        let known = Self::ALL.into_iter().find(|result| result.0 == poll.state);
        // A request that ends in a state of no request was of no use.
        poll.asked.then(|| known.unwrap_or(Self(QuotaState::Unavailable)))
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.0.as_str()
    }
}

/// One bucket as the answer states it: raw values, nothing derived (quota Q9, Q10).
#[derive(Clone, Debug, PartialEq)]
pub struct BucketReading {
    pub model: String,
    pub token_type: String,
    /// `None`: not reported, which is neither 0 nor 100 %.
    pub remaining_fraction: Option<f64>,
    pub remaining_amount: Option<i64>,
    /// Unix ms.
    pub resets_at: Option<i64>,
}
