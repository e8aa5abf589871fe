//! One day against the week before it: what drove it (`explain DATE`).
//!
//! A day is compared with the median of the seven days before, in which a day
//! without spend counts as 0. The figures are those of the reports, with their
//! bounds; a ratio of two lower bounds is a bound neither way, and says so.

use std::collections::BTreeMap;
use std::io;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::filter::Filters;
use super::money::Money;
use super::range::{Edge, RangeSpec};
use super::spec::{Dimension, Kind, ReportSpec};
use super::{Report, ReportError, day_json, day_text, report};
use crate::ledger::bound::Bound;
use crate::ledger::money::Picodollars;
use crate::ledger::spend::Spend;
use crate::store::read::Snapshot;

/// Days before it that a day is compared with.
pub(super) const DAYS: usize = 7;

/// The day that a person means by `2026-11-30`, `20261130`, `today` or
/// `yesterday`; `None`: it is no day, but perhaps a session.
#[must_use]
pub fn named(text: &str, today: Date) -> Option<Date> {
    match Edge::parse(text)? {
        Edge::Day(day) => Some(day),
        Edge::Today => Some(today),
        Edge::Yesterday => today.yesterday().ok(),
        _ => None,
    }
}

/// A day as `explain` shows it.
#[derive(Clone, Debug)]
pub struct DayReport {
    pub day: Date,
    pub timezone: TimeZone,
    /// The day is not over.
    pub is_today: bool,
    pub total: Line,
    /// Each by how much is above its own median, then by its tokens.
    pub projects: Vec<Line>,
    pub models: Vec<Line>,
    /// Sessions have no week before: their median is not known.
    pub sessions: Vec<Line>,
    /// How many of the days before had no spend.
    pub empty_days: usize,
}

/// A figure of the day beside what is usual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub key: String,
    /// Of a session.
    pub project: Option<String>,
    pub spend: Spend,
    /// Medians of the days before; `None` where there is none to be had.
    pub median_requests: Option<u64>,
    pub median_tokens: Option<u64>,
    /// What that median claims: no more than any day it is of.
    pub median_bound: Bound,
    /// Also `None` where a part is unpriced: it would compare prices, not use.
    pub median_cost: Option<Picodollars>,
}

impl Line {
    /// The tokens of the day; nothing measured is nothing to compare.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        tokens(&self.spend)
    }

    /// Tokens above the median.
    #[must_use]
    pub fn above(&self) -> u64 {
        self.tokens().saturating_sub(self.median_tokens.unwrap_or(0))
    }

    /// How many times the median, in hundredths, rounded; `None` where the
    /// median is 0 or not known, or the day was not measured.
    #[must_use]
    pub fn factor(&self) -> Option<u128> {
        self.spend.tokens()?;
        ratio(u128::from(self.tokens()), u128::from(self.median_tokens?))
    }

    /// The same of the cost.
    #[must_use]
    pub fn cost_factor(&self) -> Option<u128> {
        let size = |usd: Picodollars| u128::try_from(usd.get()).ok();
        ratio(size(whole_cost(&self.spend)?)?, size(self.median_cost?)?)
    }
}

fn ratio(day: u128, median: u128) -> Option<u128> {
    (median > 0).then(|| day.saturating_mul(100).saturating_add(median / 2) / median)
}

fn tokens(spend: &Spend) -> u64 {
    spend.tokens().map_or(0, |tokens| tokens.total())
}

/// The cost where all of it is priced.
fn whole_cost(spend: &Spend) -> Option<Picodollars> {
    if spend.requests == 0 {
        return Some(Picodollars::ZERO);
    }
    spend.cost().filter(|cost| cost.unpriced_tokens == 0)?.usd
}

/// What one key spent, by day.
type Days = BTreeMap<Date, Spend>;

/// Compares a day.
///
/// # Errors
/// Whatever the store says.
pub fn explain(
    snapshot: &Snapshot<'_>,
    day: Date,
    zone: &TimeZone,
    filters: &Filters,
    money: &Money,
    now: Timestamp,
) -> Result<DayReport, ReportError> {
    let first = day.saturating_sub(i64::try_from(DAYS).unwrap_or(0).days());
    let made = |kind, by: Option<Dimension>, since| {
        let range = RangeSpec { since: Some(Edge::Day(since)), until: Some(Edge::Day(day)) };
        let mut spec = ReportSpec::of(kind, zone.clone());
        (spec.range, spec.filters) = (range, filters.clone());
        spec.by.extend(by);
        report(snapshot, &spec, money, now)
    };
    let projects = made(Kind::Daily, Some(Dimension::Project), first)?;
    let models = made(Kind::Daily, Some(Dimension::Model), first)?;
    let sessions = made(Kind::Sessions, None, day)?;
    Ok(compare(day, zone.clone(), now, [&projects, &models, &sessions]))
}

/// The pure part of [`explain`]: days by project, days by model, and the
/// sessions of the day.
pub(super) fn compare(
    day: Date,
    timezone: TimeZone,
    now: Timestamp,
    [projects, models, sessions]: [&Report; 3],
) -> DayReport {
    let mut days = Days::new();
    for row in &projects.rows {
        days.entry(date(&row.key)).or_default().add(&row.spend);
    }
    let before = days.iter().filter(|(at, spend)| **at < day && **spend != Spend::default()).count();
    let mut sessions: Vec<Line> = sessions.rows.iter().map(session).collect();
    sort(&mut sessions);
    DayReport {
        is_today: timezone.to_datetime(now).date() == day,
        total: line("total".to_owned(), day, &days),
        projects: lines(day, projects),
        models: lines(day, models),
        sessions,
        empty_days: DAYS.saturating_sub(before),
        day,
        timezone,
    }
}

/// Keys of daily rows are days.
fn date(key: &str) -> Date {
    key.parse().unwrap_or(Date::MIN)
}

/// A line for each part that the day itself has.
fn lines(day: Date, report: &Report) -> Vec<Line> {
    let mut keys: BTreeMap<&str, Days> = BTreeMap::new();
    for row in &report.rows {
        for part in &row.parts {
            keys.entry(&part.key).or_default().entry(date(&row.key)).or_default().add(&part.spend);
        }
    }
    let on_the_day = keys.into_iter().filter(|(_, days)| days.contains_key(&day));
    let mut lines: Vec<_> = on_the_day.map(|(key, days)| line(key.to_owned(), day, &days)).collect();
    sort(&mut lines);
    lines
}

fn line(key: String, day: Date, days: &Days) -> Line {
    let nothing = Spend::default();
    let before: Vec<&Spend> = (1..=DAYS)
        .map(|back| {
            days.get(&day.saturating_sub(i64::try_from(back).unwrap_or(0).days())).unwrap_or(&nothing)
        })
        .collect();
    let costs: Option<Vec<_>> = before.iter().map(|spend| whole_cost(spend)).collect();
    Line {
        key,
        project: None,
        spend: days.get(&day).copied().unwrap_or_default(),
        median_requests: Some(median(before.iter().map(|spend| spend.requests).collect())),
        median_tokens: Some(median(before.iter().map(|spend| tokens(spend)).collect())),
        median_bound: if before.iter().all(|spend| spend.bound() == Bound::Exact) {
            Bound::Exact
        } else {
            Bound::AtLeast
        },
        median_cost: costs.map(median),
    }
}

fn session(row: &super::Row) -> Line {
    Line {
        key: row.key.clone(),
        project: row.project.clone(),
        spend: row.spend,
        median_requests: None,
        median_tokens: None,
        median_bound: Bound::Exact,
        median_cost: None,
    }
}

/// The middle one of an odd number.
fn median<T: Ord + Copy + Default>(mut values: Vec<T>) -> T {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn sort(lines: &mut [Line]) {
    lines.sort_by(|a, b| {
        let rank = |line: &Line| (line.above(), line.tokens(), line.spend.requests);
        rank(b).cmp(&rank(a)).then_with(|| a.key.cmp(&b.key))
    });
}

impl DayReport {
    /// One JSON document and a newline.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn write_json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        super::json::document(&day_json::Document(self), true, out)
    }

    /// The same for a terminal of `width` columns.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn write_text(&self, width: usize, color: bool, out: &mut dyn io::Write) -> io::Result<()> {
        day_text::write(self, width, color, out)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::ledger::tokens::Reading;
    use crate::store::read::RequestRow;
    use crate::surfaces::report::sample;

    pub(in super::super) fn compared(day: &str, requests: &[RequestRow]) -> DayReport {
        let (day, now) = (day.parse().expect("a day"), sample::NOW.parse().expect("a time"));
        let dimensions = sample::dimensions();
        let made = |kind, by: Option<Dimension>, since| {
            let range = RangeSpec { since: Some(Edge::Day(since)), until: Some(Edge::Day(day)) };
            let mut spec = ReportSpec::of(kind, TimeZone::UTC);
            spec.by.extend(by);
            let range = range.resolve(1, &TimeZone::UTC, now).expect("a range");
            sample::build_of(&spec, range, &dimensions, requests)
        };
        let first = day.saturating_sub(7.days());
        let (projects, models) = (
            made(Kind::Daily, Some(Dimension::Project), first),
            made(Kind::Daily, Some(Dimension::Model), first),
        );
        compare(day, TimeZone::UTC, now, [&projects, &models, &made(Kind::Sessions, None, day)])
    }

    /// A hundred tokens in project `web` on each of the days before, and this
    /// much on the 30th in `web` and in `api`.
    pub(in super::super) fn steady(days: u32, web: u64, api: u64) -> Vec<RequestRow> {
        let request = |id, session, at: &str, output| {
            sample::request(id, session, 1, at, Reading { output, ..Reading::default() })
        };
        let mut requests: Vec<_> = (0..days)
            .map(|back| request(i64::from(back) + 10, 2, &format!("2026-11-{}T09:00:00Z", 29 - back), 100))
            .collect();
        requests
            .extend([request(1, 2, "2026-11-30T09:00:00Z", web), request(2, 1, "2026-11-30T10:00:00Z", api)]);
        requests
    }

    #[test]
    fn days_are_told_from_sessions_by_their_shape() {
        let today = "2026-11-30".parse().expect("a day");
        let name = |text| named(text, today).map(|day| day.to_string());
        assert_eq!(name("2026-11-01").as_deref(), Some("2026-11-01"));
        assert_eq!(name("20261101").as_deref(), Some("2026-11-01"));
        assert_eq!(name("today").as_deref(), Some("2026-11-30"));
        assert_eq!(name("yesterday").as_deref(), Some("2026-11-29"));
        for text in ["latest", "b4265a7e", "7d", "week", "2026-13-40", ""] {
            assert_eq!(name(text), None, "{text}");
        }
    }

    #[test]
    fn a_day_is_held_against_the_median_of_seven_days() {
        let report = compared("2026-11-30", &steady(7, 150, 80));
        assert_eq!(
            (report.total.tokens(), report.total.median_tokens, report.total.factor()),
            (230, Some(100), Some(230))
        );
        assert_eq!((report.empty_days, report.total.median_bound), (0, Bound::AtLeast));
        let keys: Vec<_> =
            report.projects.iter().map(|line| (line.key.as_str(), line.above(), line.factor())).collect();
        assert_eq!(keys[..2], [("api", 80, None), ("web", 50, Some(150))]);
        assert_eq!(report.sessions[0].median_tokens, None);
        assert!(report.is_today);
    }

    #[test]
    fn days_without_spend_count_as_zero_in_the_median() {
        let few = compared("2026-11-30", &steady(3, 150, 80));
        assert_eq!((few.empty_days, few.total.median_tokens, few.total.factor()), (4, Some(0), None));
        let most = compared("2026-11-30", &steady(4, 150, 80));
        assert_eq!((most.empty_days, most.total.median_tokens), (3, Some(100)));
    }

    #[test]
    fn costs_are_compared_only_where_all_is_priced() {
        use crate::ledger::money::{CostBound, CostSum};
        let mut spend = Spend::default();
        spend.add_request(crate::ledger::model::Role::Main, Reading { output: 5, ..Reading::default() });
        assert_eq!(whole_cost(&spend), None, "nobody asked for prices");
        spend.add_cost(&CostSum::priced(Picodollars::DOLLAR, CostBound::Exact));
        assert_eq!(whole_cost(&spend), Some(Picodollars::DOLLAR));
        spend.add_cost(&CostSum::unpriced(3));
        assert_eq!(whole_cost(&spend), None);
        assert_eq!(whole_cost(&Spend::default()), Some(Picodollars::ZERO));
    }
}
