//! Budgets: how they stand, for people, scripts, metrics and hooks.
//!
//! One pass over the requests answers for all of them. A request is of the
//! calendar day that the clocks of the zone show, as in a report.

mod board;
mod contributors;
mod json;
mod payload;
mod sums;
mod text;

use std::io::{self, Write};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::report::time;
use crate::ledger::budget::{Budget, Elapsed, Firing, Hook, Period, Scope, Spent, Standing, Threshold};
use crate::store::StoreError;
use crate::store::read::Snapshot;

pub use board::Board;
pub use contributors::{Contributor, Contributors};
pub use payload::payload;
pub use sums::{Question, Sums, Tally};

/// The calendar days of one period, and where they begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub first: Date,
    /// The last day, inclusive.
    pub last: Date,
    /// Unix ms.
    pub start: i64,
    /// Unix ms of the next period's start.
    pub end: i64,
}

impl Span {
    /// The period that `now` is in.
    #[must_use]
    pub fn of(period: Period, zone: &TimeZone, now: i64) -> Self {
        use jiff::ToSpan as _;
        let today = time::date(zone, now);
        let (first, last) = match period {
            Period::Day => (today, today),
            Period::Week => (time::monday(today), time::monday(today).saturating_add(6.days())),
            Period::Month => (today.first_of_month(), today.last_of_month()),
        };
        let midnight = |day: Date, else_at| {
            let at = zone.to_ambiguous_timestamp(day.at(0, 0, 0, 0)).compatible();
            at.map_or(else_at, Timestamp::as_millisecond)
        };
        let end = midnight(last.saturating_add(1.day()), i64::MAX);
        Self { first, last, start: midnight(first, i64::MIN), end }
    }

    #[must_use]
    pub fn holds(&self, day: Date) -> bool {
        self.first <= day && day <= self.last
    }

    #[must_use]
    pub fn elapsed(&self, now: i64) -> Elapsed {
        Elapsed { start: self.start, end: self.end, now }
    }
}

/// One budget at one moment.
#[derive(Clone, Debug)]
pub struct Line {
    pub budget: Budget,
    pub span: Span,
    pub standing: Standing,
    /// The ledger knows nothing by the name that the budget is about.
    pub unmatched: bool,
}

impl Line {
    #[must_use]
    pub fn of(budget: &Budget, tally: &Tally, now: i64) -> Self {
        let standing = budget.standing(&tally.spent, tally.span.elapsed(now));
        Self { budget: budget.clone(), span: tally.span, standing, unmatched: tally.unmatched }
    }

    /// That a threshold was reached, for a kind of hook.
    #[must_use]
    pub fn firing(&self, threshold: Threshold, hook: Hook) -> Firing {
        Firing {
            budget: self.budget.name.clone(),
            period: self.budget.period,
            starts: self.span.first.to_string(),
            threshold,
            hook,
        }
    }
}

/// All budgets at one moment.
#[derive(Clone, Debug)]
pub struct Budgets {
    pub timezone: TimeZone,
    pub lines: Vec<Line>,
}

impl Budgets {
    /// # Errors
    /// The ledger cannot be read.
    pub fn read(
        snapshot: &Snapshot<'_>,
        budgets: &[Budget],
        zone: &TimeZone,
        now: i64,
    ) -> Result<Self, StoreError> {
        let tallies = tallies(snapshot, budgets, zone, now)?;
        let lines = budgets.iter().zip(&tallies).map(|(budget, tally)| Line::of(budget, tally, now));
        Ok(Self { timezone: zone.clone(), lines: lines.collect() })
    }

    /// Whether more was spent than a limit allows, of any.
    #[must_use]
    pub fn any_over(&self) -> bool {
        self.lines.iter().any(|line| line.standing.over)
    }

    /// For a terminal.
    ///
    /// # Errors
    /// Whatever writing says.
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        text::write(self, out)
    }

    /// As one JSON document.
    ///
    /// # Errors
    /// Whatever writing says.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        json::write(self, out)
    }
}

/// What was spent of each budget, in the period that `now` is in.
///
/// # Errors
/// The ledger cannot be read.
pub fn tallies(
    snapshot: &Snapshot<'_>,
    budgets: &[Budget],
    zone: &TimeZone,
    now: i64,
) -> Result<Vec<Tally>, StoreError> {
    let question = |budget: &Budget| Question { period: budget.period, scope: budget.scope.clone() };
    sums::tally(snapshot, budgets.iter().map(question).collect(), &[], zone, now)
}

/// What was spent in the periods that `now` is in, of all or of some homes.
///
/// # Errors
/// The ledger cannot be read.
pub fn spent(
    snapshot: &Snapshot<'_>,
    periods: &[Period],
    homes: &[String],
    zone: &TimeZone,
    now: i64,
) -> Result<Vec<Spent>, StoreError> {
    let questions = periods.iter().map(|period| Question { period: *period, scope: Scope::All }).collect();
    Ok(sums::tally(snapshot, questions, homes, zone, now)?.into_iter().map(|tally| tally.spent).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(period: Period, zone: &str, now: &str) -> (String, i64) {
        let zone = TimeZone::get(zone).unwrap();
        let now = now.parse::<Timestamp>().unwrap().as_millisecond();
        let span = Span::of(period, &zone, now);
        assert!(span.start <= now && now < span.end && span.holds(time::date(&zone, now)));
        (format!("{} {}", span.first, span.last), (span.end - span.start) / 3_600_000)
    }

    #[test]
    fn periods_are_days_of_the_zone_whatever_their_length() {
        for (period, zone, now, want, hours) in [
            (Period::Day, "UTC", "2026-11-30T23:59:59Z", "2026-11-30 2026-11-30", 24),
            (Period::Day, "Pacific/Kiritimati", "2026-11-30T23:59:59Z", "2026-12-01 2026-12-01", 24),
            (Period::Day, "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-25 2026-10-25", 25),
            (Period::Day, "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-29 2026-03-29", 23),
            (Period::Week, "UTC", "2026-11-29T12:00:00Z", "2026-11-23 2026-11-29", 168),
            (Period::Week, "UTC", "2026-11-30T00:00:00Z", "2026-11-30 2026-12-06", 168),
            (Period::Week, "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-19 2026-10-25", 169),
            (Period::Month, "UTC", "2028-02-29T12:00:00Z", "2028-02-01 2028-02-29", 29 * 24),
            (Period::Month, "America/Los_Angeles", "2026-12-01T07:59:59Z", "2026-11-01 2026-11-30", 721),
            (Period::Month, "UTC", "2026-12-31T12:00:00Z", "2026-12-01 2026-12-31", 31 * 24),
        ] {
            assert_eq!(span(period, zone, now), (want.into(), hours), "{period:?} {zone} {now}");
        }
    }
}
