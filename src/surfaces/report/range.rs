//! Which calendar days a report covers (interface, `--since` and `--until`).
//!
//! Days are those of the report's time zone. A time belongs to the day its
//! clock shows: nothing here adds 24 hours to anything, so days of 23 and 25
//! hours, and clocks put back across midnight, are days like all others.

use std::fmt;
use std::ops;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::ReportError;
use super::time;

const SINCE: &str = "a day is 2026-11-01 or 20261101, a span is 7d, today, yesterday, week, last-week, \
                     month, last-month or all";
const UNTIL: &str =
    "a day is 2026-11-01 or 20261101, or today, yesterday, week, last-week, month or last-month";
/// More days than any ledger holds.
const MAX_DAYS: u16 = 36_500;

/// One end of a range as it was written; it becomes a day once today is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    Day(Date),
    /// So many calendar days, today among them.
    Days(u16),
    Today,
    Yesterday,
    /// The ISO week of today, from its Monday.
    Week,
    LastWeek,
    Month,
    LastMonth,
    All,
}

impl Edge {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        Some(match text.as_str() {
            "today" => Self::Today,
            "yesterday" => Self::Yesterday,
            "week" => Self::Week,
            "last-week" => Self::LastWeek,
            "month" => Self::Month,
            "last-month" => Self::LastMonth,
            "all" => Self::All,
            text => match text.strip_suffix('d').map(str::parse) {
                Some(Ok(days)) if (1..=MAX_DAYS).contains(&days) => Self::Days(days),
                Some(_) => return None,
                None => Self::Day(day(text)?),
            },
        })
    }

    /// The first day of what it names; `None`: no beginning.
    fn first(self, today: Date) -> Option<Date> {
        Some(match self {
            Self::Day(day) => day,
            Self::Days(days) => today.saturating_sub((i64::from(days) - 1).days()),
            Self::Today => today,
            Self::Yesterday => today.saturating_sub(1.day()),
            Self::Week => time::monday(today),
            Self::LastWeek => time::monday(today).saturating_sub(1.week()),
            Self::Month => today.first_of_month(),
            Self::LastMonth => today.first_of_month().saturating_sub(1.month()),
            Self::All => return None,
        })
    }

    /// The last day of what it names.
    fn last(self, today: Date) -> Date {
        match self {
            Self::Day(day) => day,
            Self::Days(_) | Self::Today | Self::All => today,
            Self::Yesterday => today.saturating_sub(1.day()),
            Self::Week => time::monday(today).saturating_add(6.days()),
            Self::LastWeek => time::monday(today).saturating_sub(1.day()),
            Self::Month => today.last_of_month(),
            Self::LastMonth => today.first_of_month().saturating_sub(1.day()),
        }
    }
}

/// `2026-11-01` or `20261101`.
fn day(text: &str) -> Option<Date> {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let (year, month, day) = match shape.as_str() {
        "0000-00-00" => (&text[..4], &text[5..7], &text[8..]),
        "00000000" => (&text[..4], &text[4..6], &text[6..]),
        _ => return None,
    };
    Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()
}

/// A range as it was asked for; both ends inclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeSpec {
    pub since: Option<Edge>,
    pub until: Option<Edge>,
}

impl RangeSpec {
    /// # Errors
    /// What is neither a day nor one of the words; spans (`7d`, `all`) count
    /// back from today and so are no end.
    pub fn parse(since: Option<&str>, until: Option<&str>) -> Result<Self, ReportError> {
        let read = |option, text: Option<&str>, why| match text {
            None => Ok(None),
            Some(value) => match Edge::parse(value) {
                Some(Edge::Days(_) | Edge::All) if option == "until" => Err(value),
                Some(edge) => Ok(Some(edge)),
                None => Err(value),
            }
            .map_err(|value| ReportError::Day { option, value: value.to_owned(), why }),
        };
        Ok(Self { since: read("since", since, SINCE)?, until: read("until", until, UNTIL)? })
    }

    /// The days meant at `now`. Without `since`, `default_days` up to the end;
    /// without `until`, up to today.
    ///
    /// # Errors
    /// A range that ends before it begins.
    pub fn resolve(self, default_days: u16, zone: &TimeZone, now: Timestamp) -> Result<Range, ReportError> {
        let today = zone.to_datetime(now).date();
        let last = self.until.map_or(today, |edge| edge.last(today));
        let since = match self.since {
            None => Some(last.saturating_sub((i64::from(default_days) - 1).days())),
            Some(edge) => edge.first(today),
        };
        let until = if self == (Self { since: Some(Edge::All), until: None }) { None } else { Some(last) };
        match (since, until) {
            (Some(since), Some(until)) if since > until => {
                Err(ReportError::Reversed { since: since.to_string(), until: until.to_string() })
            }
            _ => Ok(Range { since, until, default: self == Self::default() }),
        }
    }
}

/// Calendar days of a report, both ends inclusive; `None`: open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub since: Option<Date>,
    pub until: Option<Date>,
    /// Nobody asked for it.
    pub default: bool,
}

impl Range {
    #[must_use]
    pub fn contains(&self, day: Date) -> bool {
        self.since.is_none_or(|since| since <= day) && self.until.is_none_or(|until| day <= until)
    }

    #[must_use]
    pub fn is_all(&self) -> bool {
        self.since.is_none() && self.until.is_none()
    }

    /// Unix ms that hold every time of the range, and up to a day more at
    /// either end: where a clock is put back across midnight a day is not one
    /// stretch of time. [`Self::contains`] decides.
    #[must_use]
    pub fn millis(&self, zone: &TimeZone) -> ops::Range<i64> {
        let at = |day: Date| {
            let midnight = day.at(0, 0, 0, 0);
            zone.to_ambiguous_timestamp(midnight).compatible().ok().map(Timestamp::as_millisecond)
        };
        let start = self.since.and_then(|day| at(day.yesterday().ok()?)).unwrap_or(i64::MIN);
        let end = self.until.and_then(|day| at(day.saturating_add(2.days()))).unwrap_or(i64::MAX);
        start..end
    }

    /// How many days it has.
    #[must_use]
    pub fn days(&self) -> Option<i64> {
        let (since, until) = (self.since?, self.until?);
        Some(i64::from(since.until(until).ok()?.get_days()) + 1)
    }
}

/// `2026-11-01 to 2026-11-30`, `2026-11-30`, `up to 2026-11-30`, `all time`.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.since, self.until) {
            (Some(since), Some(until)) if since == until => write!(f, "{since}"),
            (Some(since), Some(until)) => write!(f, "{since} to {until}"),
            (None, Some(until)) => write!(f, "up to {until}"),
            (Some(since), None) => write!(f, "since {since}"),
            (None, None) => write!(f, "all time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surfaces::report::spec::zone;

    fn resolve(since: &str, until: &str, zone_name: &str, now: &str) -> Result<Range, ReportError> {
        let given = |text: &'static str| (!text.is_empty()).then_some(text);
        let (since, until): (&'static str, &'static str) = (since.to_owned().leak(), until.to_owned().leak());
        let spec = RangeSpec::parse(given(since), given(until))?;
        spec.resolve(30, &zone(zone_name)?, now.parse().expect("a time"))
    }

    fn shown(since: &str, until: &str) -> String {
        // A Sunday.
        match resolve(since, until, "UTC", "2026-11-15T12:00:00Z") {
            Ok(range) => range.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn ends_are_inclusive_calendar_days() {
        for (since, until, want) in [
            ("", "", "2026-10-17 to 2026-11-15"),
            ("2026-11-01", "2026-11-30", "2026-11-01 to 2026-11-30"),
            ("20261101", "20261101", "2026-11-01"),
            ("7d", "", "2026-11-09 to 2026-11-15"),
            ("30D", "", "2026-10-17 to 2026-11-15"),
            ("1d", "", "2026-11-15"),
            ("today", "", "2026-11-15"),
            ("yesterday", "yesterday", "2026-11-14"),
            ("week", "", "2026-11-09 to 2026-11-15"),
            ("last-week", "last-week", "2026-11-02 to 2026-11-08"),
            ("last-week", "", "2026-11-02 to 2026-11-15"),
            ("month", "month", "2026-11-01 to 2026-11-30"),
            ("last-month", "last-month", "2026-10-01 to 2026-10-31"),
            ("", "2026-03-31", "2026-03-02 to 2026-03-31"),
            ("all", "", "all time"),
            ("all", "2026-11-02", "up to 2026-11-02"),
        ] {
            assert_eq!(shown(since, until), want, "{since} {until}");
        }
    }

    #[test]
    fn refusals_say_what_would_do() {
        for bad in ["2026-13-01", "2026-02-29", "1.11.2026", "0d", "7x", "", "40000d", "2026-11-1", "d"] {
            let error = RangeSpec::parse(Some(bad), None).expect_err(bad).to_string();
            assert!(error.starts_with(&format!("since cannot be \"{bad}\": a day is 2026-11-01")), "{error}");
        }
        for span in ["7d", "all"] {
            assert!(shown("", span).starts_with(&format!("until cannot be \"{span}\"")));
        }
        assert_eq!(
            shown("2026-11-30", "2026-11-01"),
            "since 2026-11-30 is after until 2026-11-01; swap them or widen the range"
        );
        assert_eq!(
            shown("2026-12-01", ""),
            "since 2026-12-01 is after until 2026-11-15; swap them or widen the range"
        );
    }

    #[test]
    fn today_is_the_day_of_the_zone() {
        for (zone_name, want) in [
            ("UTC", "2026-11-15"),
            ("Pacific/Kiritimati", "2026-11-16"),
            ("America/Los_Angeles", "2026-11-15"),
        ] {
            let range = resolve("today", "", zone_name, "2026-11-15T23:30:00Z").expect("fine");
            assert_eq!(range.to_string(), want, "{zone_name}");
        }
    }

    #[test]
    fn the_times_of_a_range_cover_days_of_23_and_25_hours() {
        for (zone_name, day) in [
            ("America/Los_Angeles", "2026-03-08"),
            ("America/Los_Angeles", "2026-11-01"),
            ("Australia/Lord_Howe", "2026-04-05"),
            ("Pacific/Apia", "2011-12-30"),
            ("America/St_Johns", "2010-11-06"),
        ] {
            let tz = zone(zone_name).expect("known");
            let range = resolve(day, day, zone_name, "2026-11-15T12:00:00Z").expect("fine");
            let millis = range.millis(&tz);
            let start: Timestamp = format!("{day}T00:00:00Z").parse().expect("a time");
            for quarter in -4 * 48..4 * 72 {
                let at = start.as_millisecond() + quarter * 900_000;
                if range.contains(time::date(&tz, at)) {
                    assert!(millis.contains(&at), "{zone_name} {day} {quarter}");
                }
            }
        }
    }

    #[test]
    fn a_range_knows_its_length() {
        assert_eq!(resolve("30d", "", "UTC", "2026-11-15T12:00:00Z").expect("fine").days(), Some(30));
        assert_eq!(resolve("2025-01-01", "", "UTC", "2026-11-15T12:00:00Z").expect("fine").days(), Some(684));
        assert_eq!(resolve("all", "", "UTC", "2026-11-15T12:00:00Z").expect("fine").days(), None);
    }
}
