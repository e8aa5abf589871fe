//! Where batches go.

use crate::ledger::telemetry::TelemetryBatch;

/// Takes what arrived. The routes call it on blocking threads, several at a time.
pub trait TelemetryIntake: Send + Sync + 'static {
    /// Takes a batch. The sender is told that it was delivered when this
    /// returns, and forgets it: best wait for the commit here.
    ///
    /// # Errors
    /// Whoever takes it is behind: the sender is asked to come again.
    fn telemetry(&self, batch: TelemetryBatch) -> Result<(), Busy>;

    /// A body was refused, for counting.
    fn refused(&self, refusal: Refusal);
}

/// The queue is full: the same batch is welcome later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// Why a body was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// It is not what its type says.
    Undecodable,
    /// It is larger than [`super::MAX_BODY`], as it came or unpacked.
    TooLarge,
    /// Neither JSON nor protobuf, or packed in a way we do not know.
    UnsupportedType,
    /// It did not arrive to its end, or not in time.
    Incomplete,
    /// The intake was behind.
    Busy,
}

impl Refusal {
    pub const ALL: [Self; 5] =
        [Self::Undecodable, Self::TooLarge, Self::UnsupportedType, Self::Incomplete, Self::Busy];

    /// A label value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Undecodable => "undecodable",
            Self::TooLarge => "too_large",
            Self::UnsupportedType => "unsupported_type",
            Self::Incomplete => "incomplete",
            Self::Busy => "busy",
        }
    }
}
