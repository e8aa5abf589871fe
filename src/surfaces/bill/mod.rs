//! The ledger against Google's billing export, by SKU and day.
//!
//! - **In**: the text of an export ([`read`]), the requests of the ledger.
//! - **Out**: a [`Reconciliation`] as text or JSON.
//! - **Never**: take a figure from the bill into the ledger.
//! - **Look first** at [`read`] (which columns), then [`Comparison`].
//!
//! The ledger never claims more than was billed: where the bill is below it,
//! one of the two is wrong, and that is what the exit code says.

mod amount;
mod read;
mod sku;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::money::Usd;
use super::pricing::HomePrices;
use super::report::time;
use crate::ledger::model::UNKNOWN;
use crate::ledger::money::{Billing, Picodollars};
use crate::ledger::spend::Spend;
use crate::store::StoreError;
use crate::store::read::{Dimensions, RequestRow, Snapshot};

pub use read::{Bill, BillError, read};
pub use sku::Kind;

/// A bill of a year of a large team is far below this.
pub const LIMIT: u64 = 256 << 20;

/// What is billed under one SKU: a model's family and a kind of token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sku {
    pub model: String,
    pub kind: Kind,
}

/// The likely cause of a difference; a closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Equal,
    LowerBound,
    ModelUnseen,
    DayUnseen,
    OtherDay,
    NotOnBill,
    BillBelow,
}

impl Cause {
    pub const ALL: [Self; 7] = [
        Self::Equal,
        Self::LowerBound,
        Self::ModelUnseen,
        Self::DayUnseen,
        Self::OtherDay,
        Self::NotOnBill,
        Self::BillBelow,
    ];

    /// The cause in a table.
    #[must_use]
    pub fn short(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::LowerBound => "lower bound",
            Self::ModelUnseen => "model unseen",
            Self::DayUnseen => "day unseen",
            Self::OtherDay => "other day",
            Self::NotOnBill => "not on bill",
            Self::BillBelow => "bill below",
        }
    }

    /// The cause below a table, where it needs words.
    #[must_use]
    pub fn words(self) -> Option<&'static str> {
        Some(match self {
            Self::Equal => return None,
            Self::LowerBound => {
                "ledger is a lower bound: journals leave out cancelled, router and web-search requests"
            }
            Self::ModelUnseen => "bill has a model the ledger never saw: another machine, home or program",
            Self::DayUnseen => "ledger saw none of it that day: another machine, home or program",
            Self::OtherDay => {
                "bill is below the ledger that day and not over all its days: booked on another day"
            }
            Self::NotOnBill => {
                "bill has no such SKU on any day: free, paid by a seat, or another project's bill"
            }
            Self::BillBelow => {
                "bill is below the ledger over all its days: not complete yet, another project's, or the \
                 ledger is wrong"
            }
        })
    }

    /// Whether the ledger claims more than was billed.
    #[must_use]
    pub fn is_below(self) -> bool {
        matches!(self, Self::OtherDay | Self::NotOnBill | Self::BillBelow)
    }
}

/// A day of a SKU on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub day: Date,
    pub sku: Sku,
    pub ledger: u64,
    pub billed: i128,
    /// What the bill says it cost, in the currency of the bill; `None` where it does not say.
    pub cost: Option<Picodollars>,
    pub cause: Cause,
}

impl Line {
    /// Billed and not in the ledger; negative where the ledger claims more.
    #[must_use]
    pub fn difference(&self) -> i128 {
        self.billed - i128::from(self.ledger)
    }
}

/// Ledger and bill side by side.
#[derive(Clone, Debug)]
pub struct Reconciliation {
    zone: TimeZone,
    days: Option<(Date, Date)>,
    lines: Vec<Line>,
    /// Homes with a seat, whose tokens are on no such bill.
    seats: Vec<String>,
    skipped: BTreeMap<String, u64>,
    unreadable: u64,
}

/// Tokens, and their cost where the bill says it of each.
type Billed = (i128, Option<Picodollars>);

const NOT_BILLED: Billed = (0, Some(Picodollars::ZERO));

/// A comparison in the making: give it every request.
pub struct Comparison<'a> {
    dimensions: &'a Dimensions,
    zone: TimeZone,
    billed: BTreeMap<(Date, Sku), Billed>,
    /// By day and model.
    ledger: BTreeMap<(Date, String), Spend>,
    days: Option<(Date, Date)>,
    /// Families of the models that the ledger ever saw.
    seen: BTreeSet<String>,
    /// Homes with a seat.
    seats: BTreeSet<i64>,
    skipped: BTreeMap<String, u64>,
    unreadable: u64,
}

impl<'a> Comparison<'a> {
    #[must_use]
    pub fn new(dimensions: &'a Dimensions, bill: Bill, prices: &HomePrices, zone: TimeZone) -> Self {
        let mut billed: BTreeMap<(Date, Sku), Billed> = BTreeMap::new();
        for charge in bill.charges {
            let sum = billed.entry((charge.when.day(&zone), charge.sku)).or_insert(NOT_BILLED);
            sum.0 += charge.tokens;
            sum.1 = sum.1.zip(charge.cost).map(|(sum, cost)| sum + cost);
        }
        let first = billed.keys().next().map(|(day, _)| *day);
        let seats = dimensions.homes.values().filter(|home| prices.of(home).billing == Billing::Seat);
        Self {
            dimensions,
            days: first.zip(billed.keys().next_back().map(|(day, _)| *day)),
            zone,
            billed,
            ledger: BTreeMap::new(),
            seen: BTreeSet::new(),
            seats: seats.map(|home| home.id).collect(),
            skipped: bill.skipped,
            unreadable: bill.unreadable,
        }
    }

    pub fn add(&mut self, request: &RequestRow) {
        let Some(session) = self.dimensions.sessions.get(&request.session_id) else { return };
        if self.seats.contains(&session.home_id) {
            return;
        }
        let name = self.dimensions.models.get(&request.model_id).map_or(UNKNOWN, String::as_str);
        let model = sku::family(name).unwrap_or_else(|| name.to_owned());
        let day = time::date(&self.zone, request.at);
        if self.days.is_some_and(|(first, last)| first <= day && day <= last) {
            request.add_to(self.ledger.entry((day, model.clone())).or_default(), session, false);
        }
        self.seen.insert(model);
    }

    #[must_use]
    pub fn finish(self) -> Reconciliation {
        let mut ledger: BTreeMap<(Date, Sku), u64> = BTreeMap::new();
        for ((day, model), spend) in &self.ledger {
            let tokens = spend.tokens().unwrap_or_default();
            for (kind, count) in [
                (Kind::Input, tokens.uncached_input.saturating_add(tokens.tool_input)),
                (Kind::Cached, tokens.cached_input),
                (Kind::Output, tokens.output.saturating_add(tokens.thoughts)),
            ] {
                if count > 0 {
                    ledger.insert((*day, Sku { model: model.clone(), kind }), count);
                }
            }
        }
        let mut totals: BTreeMap<&Sku, (u64, i128)> = BTreeMap::new();
        for ((_, sku), count) in &ledger {
            let total = totals.entry(sku).or_default();
            total.0 = total.0.saturating_add(*count);
        }
        for ((_, sku), (count, _)) in &self.billed {
            totals.entry(sku).or_default().1 += count;
        }
        let keys: BTreeSet<_> = ledger.keys().chain(self.billed.keys()).collect();
        let line = |key: &(Date, Sku)| {
            let ledger = ledger.get(key).copied().unwrap_or(0);
            let (billed, cost) = self.billed.get(key).copied().unwrap_or(NOT_BILLED);
            let cause = cause(ledger, billed, totals[&key.1], self.seen.contains(&key.1.model));
            Line { day: key.0, sku: key.1.clone(), ledger, billed, cost, cause }
        };
        let lines = keys.into_iter().map(line).collect();
        let name = |id: &i64| self.dimensions.homes[id].name.clone();
        Reconciliation {
            lines,
            seats: self.seats.iter().map(name).collect(),
            zone: self.zone,
            days: self.days,
            skipped: self.skipped,
            unreadable: self.unreadable,
        }
    }
}

impl Reconciliation {
    /// Compares the days of the bill, by the clocks of `zone`. Sessions that
    /// are not in `dimensions` are left out, and so are homes with a seat.
    ///
    /// # Errors
    /// Whatever the store says.
    pub fn read(
        snapshot: &Snapshot<'_>,
        dimensions: &Dimensions,
        bill: Bill,
        prices: &HomePrices,
        zone: TimeZone,
    ) -> Result<Self, StoreError> {
        let mut comparison = Comparison::new(dimensions, bill, prices, zone);
        // Of all time: which models the ledger ever saw.
        snapshot.requests(i64::MIN..i64::MAX, |request| comparison.add(&request))?;
        Ok(comparison.finish())
    }

    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Whether the bill is below the ledger anywhere.
    #[must_use]
    pub fn is_below(&self) -> bool {
        self.lines.iter().any(|line| line.cause.is_below())
    }
}

fn cause(ledger: u64, billed: i128, (all_ledger, all_billed): (u64, i128), seen: bool) -> Cause {
    match i128::from(ledger).cmp(&billed) {
        std::cmp::Ordering::Equal => Cause::Equal,
        std::cmp::Ordering::Less if !seen => Cause::ModelUnseen,
        std::cmp::Ordering::Less if ledger == 0 => Cause::DayUnseen,
        std::cmp::Ordering::Less => Cause::LowerBound,
        std::cmp::Ordering::Greater if all_billed == 0 => Cause::NotOnBill,
        std::cmp::Ordering::Greater if all_billed >= i128::from(all_ledger) => Cause::OtherDay,
        std::cmp::Ordering::Greater => Cause::BillBelow,
    }
}

#[derive(Serialize)]
struct LineJson<'r> {
    day: String,
    model: &'r str,
    kind: Kind,
    ledger_tokens: u64,
    billed_tokens: i128,
    difference: i128,
    cause: Cause,
    cost: Option<Usd>,
}

#[derive(Serialize)]
struct Json<'r> {
    schema: u32,
    timezone: &'r str,
    since: Option<String>,
    until: Option<String>,
    rows: Vec<LineJson<'r>>,
    below: bool,
    seat_homes: &'r [String],
    skipped_skus: &'r BTreeMap<String, u64>,
    unreadable_rows: u64,
}

impl Reconciliation {
    /// One JSON document and a newline.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn write_json(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        let rows = self.lines.iter().map(|line| LineJson {
            day: line.day.to_string(),
            model: &line.sku.model,
            kind: line.sku.kind,
            ledger_tokens: line.ledger,
            billed_tokens: line.billed,
            difference: line.difference(),
            cause: line.cause,
            cost: line.cost.map(Usd),
        });
        let json = Json {
            schema: 1,
            timezone: time::zone_name(&self.zone),
            since: self.days.map(|(first, _)| first.to_string()),
            until: self.days.map(|(_, last)| last.to_string()),
            rows: rows.collect(),
            below: self.is_below(),
            seat_homes: &self.seats,
            skipped_skus: &self.skipped,
            unreadable_rows: self.unreadable,
        };
        serde_json::to_writer_pretty(&mut *out, &json)?;
        out.write_all(b"\n")
    }
}

#[cfg(test)]
mod tests;
