//! What a figure claims: its bound and the reasons that demote it
//! (accounting 2.5, 2.8).

use serde::{Serialize, Serializer};

/// The one vocabulary for the claim of a figure, on every surface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Nothing that the sources can see is missing.
    #[default]
    Exact,
    /// At least this much was spent.
    AtLeast,
    /// Something was spent and nothing of it was measured: no number.
    Unmeasured,
}

impl Bound {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::AtLeast => "at_least",
            Self::Unmeasured => "unmeasured",
        }
    }
}

/// Why a figure is not exact, in the fixed order of accounting 2.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Reason {
    AutoModel,
    ModelUnobserved,
    RequestUnanswered,
    EndingUnseen,
    LoopOrLimit,
    Cancelled,
    Killed,
    Error,
    UnknownEnding,
    Open,
    TelemetryGap,
    NoFigure,
    TornLine,
    JournalFailed,
    JournalLost,
    JournalAbsent,
    JournalUnread,
    ShortOfMarker,
    SourcesCross,
    BaselineFailed,
    UsageMalformed,
    TeeLossy,
    Orphan,
}

impl Reason {
    pub const ALL: [Self; 23] = [
        Self::AutoModel,
        Self::ModelUnobserved,
        Self::RequestUnanswered,
        Self::EndingUnseen,
        Self::LoopOrLimit,
        Self::Cancelled,
        Self::Killed,
        Self::Error,
        Self::UnknownEnding,
        Self::Open,
        Self::TelemetryGap,
        Self::NoFigure,
        Self::TornLine,
        Self::JournalFailed,
        Self::JournalLost,
        Self::JournalAbsent,
        Self::JournalUnread,
        Self::ShortOfMarker,
        Self::SourcesCross,
        Self::BaselineFailed,
        Self::UsageMalformed,
        Self::TeeLossy,
        Self::Orphan,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AutoModel => "auto_model",
            Self::ModelUnobserved => "model_unobserved",
            Self::RequestUnanswered => "request_unanswered",
            Self::EndingUnseen => "ending_unseen",
            Self::LoopOrLimit => "loop_or_limit",
            Self::Cancelled => "cancelled",
            Self::Killed => "killed",
            Self::Error => "error",
            Self::UnknownEnding => "unknown_ending",
            Self::Open => "open",
            Self::TelemetryGap => "telemetry_gap",
            Self::NoFigure => "no_figure",
            Self::TornLine => "torn_line",
            Self::JournalFailed => "journal_failed",
            Self::JournalLost => "journal_lost",
            Self::JournalAbsent => "journal_absent",
            Self::JournalUnread => "journal_unread",
            Self::ShortOfMarker => "short_of_marker",
            Self::SourcesCross => "sources_cross",
            Self::BaselineFailed => "baseline_failed",
            Self::UsageMalformed => "usage_malformed",
            Self::TeeLossy => "tee_lossy",
            Self::Orphan => "orphan",
        }
    }
}

/// A set of reasons; iterates in the fixed order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reasons(u32);

impl Reasons {
    pub const NONE: Self = Self(0);

    /// What demotes any figure that rests on the journal alone.
    pub const WATCHER_ONLY: Self = Self(1 << Reason::ModelUnobserved as u32 | 1 << Reason::Orphan as u32);

    /// Why a session's figure from its journals alone is a lower bound: nobody
    /// saw its model or its endings (accounting row 38), and what the session
    /// has of its own.
    #[must_use]
    pub fn of_watched(session: Self) -> Self {
        Self::WATCHER_ONLY.union(session)
    }

    /// Why a session that was prompted and shows no figure is unmeasured
    /// (accounting R40).
    #[must_use]
    pub fn of_silent(session: Self) -> Self {
        Self::of_watched(session).with(Reason::NoFigure)
    }

    pub fn insert(&mut self, reason: Reason) {
        self.0 |= 1 << reason as u32;
    }

    #[must_use]
    pub fn with(mut self, reason: Reason) -> Self {
        self.insert(reason);
        self
    }

    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub fn contains(self, reason: Reason) -> bool {
        self.0 & (1 << reason as u32) != 0
    }

    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// As a number for a row; reasons keep their place.
    #[must_use]
    pub fn bits(self) -> i64 {
        i64::from(self.0)
    }

    /// What [`Reasons::bits`] made; bits of no reason are dropped.
    #[must_use]
    pub fn from_bits(bits: i64) -> Self {
        Reason::ALL.into_iter().filter(|reason| bits & (1 << *reason as u32) != 0).collect()
    }

    pub fn iter(self) -> impl Iterator<Item = Reason> {
        Reason::ALL.into_iter().filter(move |reason| self.contains(*reason))
    }
}

impl FromIterator<Reason> for Reasons {
    fn from_iter<I: IntoIterator<Item = Reason>>(reasons: I) -> Self {
        reasons.into_iter().fold(Self::NONE, Self::with)
    }
}

impl Serialize for Reasons {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Reason::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_come_out_in_the_fixed_order_whatever_the_order_in() {
        let reasons: Reasons =
            [Reason::Orphan, Reason::TornLine, Reason::ModelUnobserved].into_iter().collect();
        let names: Vec<_> = reasons.iter().map(Reason::as_str).collect();
        assert_eq!(names, ["model_unobserved", "torn_line", "orphan"]);
        assert_eq!(
            serde_json::to_string(&reasons).expect("serializes"),
            r#"["model_unobserved","torn_line","orphan"]"#
        );
    }

    #[test]
    fn every_reason_has_its_own_bit_and_name() {
        let all: Reasons = Reason::ALL.into_iter().collect();
        assert_eq!(all.iter().count(), Reason::ALL.len());
        let names: std::collections::BTreeSet<_> = Reason::ALL.into_iter().map(Reason::as_str).collect();
        assert_eq!(names.len(), Reason::ALL.len());
    }
}
