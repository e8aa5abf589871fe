//! The ledger for other systems: rows of requests, hours or days.
//!
//! - **In**: a snapshot of the ledger, an [`ExportSpec`], the prices.
//! - **Out**: CSV, JSON lines or FOCUS, written as it is read.
//! - **Never**: claim a billed cost: gemgauge sees no invoice.
//! - **Look first** at [`rows`] (what a row is), then [`plain`] and [`focus`].
//!
//! Rows come in one order: requests by the start of their session, the
//! session's id, their time and their number in the ledger; hours and days by
//! their start, then home, project, session, model and role.

mod focus;
mod plain;
mod rows;

#[cfg(test)]
mod tests;

use std::io;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::pricing::HomePrices;
use super::report::ReportError;
use super::report::filter::Filters;
use super::report::range::{Edge, RangeSpec};
use crate::store::StoreError;
use crate::store::read::Snapshot;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// CSV with the columns of FOCUS, one line a token class.
    Focus,
    Csv,
    Jsonl,
}

/// What a row sums up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    Request,
    /// An hour of UTC.
    Hour,
    /// A day of the zone.
    Day,
}

/// An export that can be made.
#[derive(Clone, Debug)]
pub struct ExportSpec {
    pub format: Format,
    pub grain: Grain,
    range: RangeSpec,
    zone: TimeZone,
    filters: Filters,
}

/// Why an export ends early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error("the export could not be written")]
    Io(#[from] io::Error),
}

impl From<StoreError> for ExportError {
    fn from(error: StoreError) -> Self {
        Self::Report(error.into())
    }
}

impl ExportSpec {
    /// All of the ledger where nobody says since when.
    ///
    /// # Errors
    /// A day that is none.
    pub fn new(
        format: Format,
        grain: Grain,
        since: Option<&str>,
        until: Option<&str>,
        zone: TimeZone,
        filters: Filters,
    ) -> Result<Self, ReportError> {
        let mut range = RangeSpec::parse(since, until)?;
        range.since = range.since.or(Some(Edge::All));
        Ok(Self { format, grain, range, zone, filters })
    }
}

/// Writes an export.
///
/// # Errors
/// A range that ends before it begins, or whatever the store or `out` says.
pub fn write(
    snapshot: &Snapshot<'_>,
    spec: &ExportSpec,
    prices: &HomePrices,
    now: Timestamp,
    out: &mut dyn io::Write,
) -> Result<(), ExportError> {
    let dimensions = snapshot.dimensions()?;
    let reader = rows::Reader::new(&dimensions, spec, prices, now)?;
    match spec.format {
        Format::Focus => {
            focus::header(out)?;
            reader.each(snapshot, &mut |row| focus::write(row, out))
        }
        Format::Csv => {
            plain::header(spec.grain, out)?;
            reader.each(snapshot, &mut |row| plain::csv(row, out))
        }
        Format::Jsonl => reader.each(snapshot, &mut |row| plain::json(row, out)),
    }
}
