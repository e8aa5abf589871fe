//! Unix milliseconds to the calendar of a zone, and to the texts of both.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// The time, kept within what the calendar can name.
fn timestamp(at: i64) -> Timestamp {
    let end = if at < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(at).unwrap_or(end)
}

/// The day that the clocks of the zone show.
pub(in crate::surfaces) fn date(zone: &TimeZone, at: i64) -> Date {
    zone.to_datetime(timestamp(at)).date()
}

/// The Monday of a day's ISO week.
pub(in crate::surfaces) fn monday(day: Date) -> Date {
    day.saturating_sub(i64::from(day.weekday().to_monday_zero_offset()).days())
}

/// `2026-11-30T10:00:00.000Z`.
pub(super) fn iso(at: i64) -> String {
    format!("{:.3}", timestamp(at))
}

/// What the clocks of the zone show, by a `strftime` format.
pub(super) fn local(zone: &TimeZone, at: i64, format: &str) -> String {
    zone.to_datetime(timestamp(at)).strftime(format).to_string()
}

/// The name of a zone; one without a name is that of this machine.
pub(in crate::surfaces) fn zone_name(zone: &TimeZone) -> &str {
    zone.iana_name().unwrap_or("local")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_decimals_and_z() {
        assert_eq!(iso(1_796_032_800_000), "2026-11-30T10:00:00.000Z");
        assert_eq!(iso(1_796_032_800_057), "2026-11-30T10:00:00.057Z");
    }

    #[test]
    fn no_time_is_too_far_for_the_calendar() {
        for at in [i64::MIN, i64::MAX] {
            let zone = TimeZone::get("Pacific/Kiritimati").expect("known");
            assert!(!iso(at).is_empty() && date(&zone, at).year() != 0);
        }
    }

    #[test]
    fn weeks_begin_on_monday_across_years() {
        for (day, want) in
            [("2026-01-01", "2025-12-29"), ("2026-11-15", "2026-11-09"), ("2026-11-16", "2026-11-16")]
        {
            assert_eq!(monday(day.parse().expect("a day")).to_string(), want);
        }
    }
}
