//! What was spent today and this month, in the configured time zone: exact
//! sums of the ledger, for panels and rules that want a calendar day.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::family::{Descriptor, Family, Kind, Label};
use super::tokens::{HOME, MODEL, PROJECT};
use crate::ledger::bound::Bound;
use crate::ledger::spend::Spend;
use crate::store::StoreError;
use crate::store::read::{Snapshot, TupleRow, TurnsStamp};

const BOUND: Label = Label::open("bound", "`exact` or `at_least`; nothing stands at both");

pub static TODAY_TOKENS: Descriptor = Descriptor {
    name: "gemgauge_today_tokens",
    kind: Kind::Gauge,
    help: "Tokens since midnight in the configured time zone",
    labels: &[HOME, PROJECT, MODEL, BOUND],
};

pub static TODAY_COST: Descriptor = Descriptor {
    name: "gemgauge_today_cost_usd",
    kind: Kind::Gauge,
    help: "Cost since midnight in the configured time zone, as repriced; its priced part",
    labels: &[HOME, PROJECT, MODEL, BOUND],
};

pub static MONTH_TOKENS: Descriptor = Descriptor {
    name: "gemgauge_month_tokens",
    kind: Kind::Gauge,
    help: "Tokens since the first of the month in the configured time zone",
    labels: &[HOME, PROJECT, MODEL, BOUND],
};

pub static MONTH_COST: Descriptor = Descriptor {
    name: "gemgauge_month_cost_usd",
    kind: Kind::Gauge,
    help: "Cost since the first of the month in the configured time zone, as repriced; its priced part",
    labels: &[HOME, PROJECT, MODEL, BOUND],
};

pub(super) static DESCRIPTORS: [&Descriptor; 4] = [&TODAY_TOKENS, &TODAY_COST, &MONTH_TOKENS, &MONTH_COST];

/// Sums of one label set.
#[derive(Clone, Debug, Default)]
pub struct CalendarRow {
    pub home: String,
    pub project: String,
    pub model: String,
    pub today: Spend,
    pub month: Spend,
}

/// Makes the sums; makes them again only when the ledger or the day changed.
pub struct Calendar {
    zone: TimeZone,
    made: Mutex<Option<(Marker, Vec<CalendarRow>)>>,
}

/// What the sums rest on: the day, the counters, which move with every request,
/// and the turns, whose claims and figures move without one.
type Marker = (Date, u64, u64, i64, TurnsStamp);

impl Calendar {
    #[must_use]
    pub fn new(zone: TimeZone) -> Self {
        Self { zone, made: Mutex::default() }
    }

    /// The sums at `now` (unix ms). Every label set of the month has both.
    pub(super) fn rows(
        &self,
        snapshot: &Snapshot<'_>,
        tuples: &[TupleRow],
        now: i64,
    ) -> Result<Vec<CalendarRow>, StoreError> {
        let now = Timestamp::from_millisecond(now).unwrap_or_default();
        let today = self.zone.to_datetime(now).date();
        let marker = (
            today,
            tuples.iter().map(|row| row.requests).sum(),
            tuples.iter().fold(0, |sum: u64, row| sum.saturating_add(row.tokens.total())),
            tuples.iter().fold(0, |sum: i64, row| sum.saturating_add(row.cost_adjustment.to_i64())),
            snapshot.turns_stamp()?,
        );
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, rows)) = &*made
            && *of == marker
        {
            return Ok(rows.clone());
        }
        let rows = self.sum(snapshot, today)?;
        *made = Some((marker, rows.clone()));
        Ok(rows)
    }

    fn sum(&self, snapshot: &Snapshot<'_>, today: Date) -> Result<Vec<CalendarRow>, StoreError> {
        let start = |day: Date| {
            let midnight = self.zone.to_ambiguous_timestamp(day.at(0, 0, 0, 0)).compatible();
            midnight.map_or(i64::MIN, |midnight| midnight.as_millisecond())
        };
        let (month, day) = (start(today.first_of_month()), start(today));
        let dimensions = snapshot.dimensions()?;
        let mut sums: BTreeMap<(i64, i64, i64), CalendarRow> = BTreeMap::new();
        snapshot.requests(month..i64::MAX, |request| {
            let Some(session) = dimensions.sessions.get(&request.session_id) else { return };
            let key = (session.home_id, session.project_id, request.model_id);
            let row = sums.entry(key).or_default();
            let mut spend = Spend::default();
            request.add_to(&mut spend, session, false);
            spend.add_cost(&request.cost);
            row.month.add(&spend);
            if request.at >= day {
                row.today.add(&spend);
            }
        })?;
        for mark in snapshot.marks(&dimensions, month..i64::MAX)? {
            let session = &dimensions.sessions[&mark.session_id];
            // What no model is named of may be any model's of the project.
            let meant = |key: &(i64, i64, i64)| {
                (key.0, key.1) == (session.home_id, session.project_id)
                    && mark.model_id.is_none_or(|model| model == key.2)
            };
            for (_, row) in sums.iter_mut().filter(|(key, _)| meant(key)) {
                mark.add_to(&mut row.month, false);
                if mark.at.is_some_and(|at| at >= day) {
                    mark.add_to(&mut row.today, false);
                }
            }
        }
        let named = sums.into_iter().map(|((home, project, model), row)| CalendarRow {
            home: dimensions.homes.get(&home).map(|home| home.name.clone()).unwrap_or_default(),
            project: dimensions.projects.get(&project).map(|p| p.name.clone()).unwrap_or_default(),
            model: dimensions.models.get(&model).cloned().unwrap_or_default(),
            ..row
        });
        Ok(named.collect())
    }
}

/// The four families; a label set without spend today stands at 0 with the
/// bound of its month. What was not measured at all makes a label set there is
/// a lower bound, and none of its own.
pub(super) fn collect(rows: &[CalendarRow]) -> [Family; 4] {
    let mut families = [&TODAY_TOKENS, &TODAY_COST, &MONTH_TOKENS, &MONTH_COST].map(Family::new);
    for row in rows {
        let bound = row.month.bound();
        if bound == Bound::Unmeasured {
            continue;
        }
        let labels = [&*row.home, &*row.project, &*row.model, bound.as_str()];
        for (n, spend) in [&row.today, &row.month].into_iter().enumerate() {
            families[2 * n].add_count(&labels, spend.tokens().unwrap_or_default().total());
            let cost = spend.cost().and_then(|cost| cost.usd);
            families[2 * n + 1].add(&labels, cost.map_or(0.0, |usd| usd.to_f64()));
        }
    }
    families
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::model::Role;
    use crate::ledger::money::{CostBound, CostSum, Picodollars};
    use crate::ledger::tokens::Reading;

    #[test]
    fn a_label_set_without_spend_today_stands_at_zero() {
        let mut month = Spend::default();
        month.add_request(Role::Main, Reading { output: 7, ..Reading::default() });
        month.add_cost(&CostSum::priced(Picodollars::from(2_000_000_000_000), CostBound::Exact));
        month.demote(crate::ledger::bound::Reasons::WATCHER_ONLY);
        let row = CalendarRow {
            home: "ana".into(),
            project: "api".into(),
            model: "m".into(),
            month,
            ..CalendarRow::default()
        };
        let lines: String = collect(&[row]).iter().map(Family::lines).collect();
        let labels = r#"{home="ana",project="api",model="m",bound="at_least"}"#;
        assert_eq!(
            lines,
            format!(
                "gemgauge_today_tokens{labels} 0\ngemgauge_today_cost_usd{labels} 0\n\
                 gemgauge_month_tokens{labels} 7\ngemgauge_month_cost_usd{labels} 2\n"
            )
        );
    }
}
