//! Spend tables for people and scripts.
//!
//! - **In**: a snapshot of the ledger, a [`ReportSpec`], prices and how homes pay
//!   ([`Money`]), the time it is asked at.
//! - **Out**: a [`Report`], and its text in one of four formats ([`Format`]); one
//!   session with its requests ([`session`]).
//! - **Never**: decide what a figure claims (it asks `ledger`), read the clock or
//!   the environment, or look at a terminal.
//! - **Look first** at [`build`] (rows of a report), then [`range`] (which days),
//!   then [`table`] (what a person sees).

pub mod build;
mod chart;
pub mod csv;
pub mod day;
mod day_json;
mod day_text;
pub mod filter;
mod flatten;
pub(super) mod grid;
pub mod json;
pub mod markdown;
pub mod money;
mod notes;
pub(super) mod number;
pub mod range;
pub mod reconcile;
pub mod session;
mod session_json;
mod session_story;
mod session_text;
mod sort;
pub mod spec;
pub mod table;
pub(super) mod time;
mod tree;
pub mod turns;
mod turns_text;
mod words;

#[cfg(test)]
mod laws;
#[cfg(test)]
pub(super) mod sample;
#[cfg(test)]
pub(super) mod stored;

use std::io;

use jiff::Timestamp;

pub use build::{Part, Report, Row};
pub use money::{Costs, Money, Pays};
pub(in crate::surfaces) use notes::clause;
pub use spec::{Options, ReportSpec};

use crate::store::StoreError;
use crate::store::read::Snapshot;

/// Why a report cannot be made, in the user's words.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("there is no report \"{given}\"; use one of: {}", spec::Kind::names())]
    Kind { given: String },
    #[error("\"{value}\" is no value for {option}; use one of: {allowed}")]
    Value { option: &'static str, value: String, allowed: String },
    #[error("{option} cannot be \"{value}\": {why}")]
    Day { option: &'static str, value: String, why: &'static str },
    #[error("since {since} is after until {until}; swap them or widen the range")]
    Reversed { since: String, until: String },
    #[error("limit cannot be \"{0}\"; use a whole number from 1, or leave it out for all rows")]
    Limit(String),
    #[error("rows cannot be sorted by a cost that no-cost leaves out; sort by total instead")]
    SortWithoutCost,
    #[error("there is no time zone \"{0}\"; use an IANA name such as UTC or Europe/Berlin")]
    Zone(String),
    #[error("no session begins with \"{0}\"; `gemgauge report sessions --since all` lists them")]
    UnknownSession(String),
    #[error("several sessions begin with \"{query}\": {}; give more of the id", found.join(", "))]
    AmbiguousSession { query: String, found: Vec<String> },
    #[error("the ledger holds no session yet; `gemgauge doctor` shows what was found")]
    NoSession,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ReportError {
    /// Whether what was asked cannot be understood (usage), as opposed to
    /// understood and answered with no.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        !matches!(
            self,
            Self::UnknownSession(_) | Self::AmbiguousSession { .. } | Self::NoSession | Self::Store(_)
        )
    }
}

/// Writes a report in one format. Each format is a file of this room.
pub trait Format {
    /// # Errors
    /// Whatever `out` says.
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()>;
}

/// The report of one moment of the ledger, for the command line and for HTTP.
///
/// # Errors
/// A range that ends before it begins, or whatever the store says.
pub fn report(
    snapshot: &Snapshot<'_>,
    spec: &ReportSpec,
    money: &Money,
    now: Timestamp,
) -> Result<Report, ReportError> {
    let dimensions = snapshot.dimensions()?;
    let range = spec.range.resolve(spec.kind.default_days(), &spec.timezone, now)?;
    let millis = range.millis(&spec.timezone);
    let mut build = build::Build::new(spec, money, range, &dimensions);
    snapshot.requests(millis.clone(), |request| build.add(&request))?;
    snapshot.marks(&dimensions, millis)?.iter().for_each(|mark| build.mark(mark));
    Ok(build.finish())
}
