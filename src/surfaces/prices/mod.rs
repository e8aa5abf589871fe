//! The price table for people and scripts, and how it compares with LiteLLM's.

pub mod check;
pub mod litellm;
mod table;

use std::io::{self, Write};

use serde::Serialize;

use super::money::{Usd, per_million};
use crate::config::Pricing;
use crate::config::prices::date;
use crate::ledger::money::{AliasRow, Day, PriceRow, PriceTable, Rates, Validity};

/// The prices on one day.
#[derive(Debug)]
pub struct Listing<'t> {
    pub day: Day,
    pub as_of: Option<Day>,
    pub rows: Vec<&'t PriceRow>,
    pub aliases: Vec<&'t AliasRow>,
    /// Each home with the list that its requests are priced by.
    pub homes: Vec<(String, Pricing)>,
}

impl<'t> Listing<'t> {
    /// What applies on a day; with `all`, every row whatever its days.
    #[must_use]
    pub fn of(table: &'t PriceTable, day: Day, all: bool, homes: Vec<(String, Pricing)>) -> Self {
        let rows = if all {
            let mut rows: Vec<_> = table.rows().collect();
            // Stable: of equal ones, the upper row stays above.
            rows.sort_by_key(|row| (row.retired, &row.model, row.list, row.valid.from));
            rows
        } else {
            let mut rows = table.in_force(day);
            rows.sort_by_key(|row| (row.retired, &row.model, row.list));
            rows
        };
        let aliases = table.aliases().filter(|alias| all || alias.valid.holds(day)).collect();
        Self { day, as_of: table.as_of(), rows, aliases, homes }
    }

    /// As a table for a terminal.
    ///
    /// # Errors
    /// Whatever writing says.
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        table::write(self, out)
    }

    /// As one JSON document.
    ///
    /// # Errors
    /// Whatever writing says.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let document = Document {
            schema: 1,
            day: date(self.day).to_string(),
            as_of: self.as_of.map(|day| date(day).to_string()),
            unit: "USD per million tokens",
            prices: self.rows.iter().map(|row| RowJson::of(row)).collect(),
            aliases: self.aliases.iter().map(|alias| AliasJson::of(alias)).collect(),
            homes: self.homes.iter().map(|(name, pricing)| HomeJson::of(name, *pricing)).collect(),
        };
        serde_json::to_writer_pretty(&mut *out, &document)?;
        writeln!(out)
    }
}

/// First and last day as texts.
fn days(valid: Validity) -> (Option<String>, Option<String>) {
    let text = |day: Option<Day>| day.map(|day| date(day).to_string());
    (text(valid.from), text(valid.until))
}

#[derive(Serialize)]
struct Document<'t> {
    schema: u32,
    day: String,
    as_of: Option<String>,
    unit: &'static str,
    prices: Vec<RowJson<'t>>,
    aliases: Vec<AliasJson<'t>>,
    homes: Vec<HomeJson<'t>>,
}

#[derive(Serialize)]
struct RatesJson {
    input: Usd,
    cached_input: Usd,
    output: Usd,
    thoughts: Usd,
}

impl RatesJson {
    fn of(rates: &Rates) -> Self {
        Self {
            input: per_million(rates.input),
            cached_input: per_million(rates.cached),
            output: per_million(rates.output),
            thoughts: per_million(rates.thoughts.unwrap_or(rates.output)),
        }
    }
}

#[derive(Serialize)]
struct RowJson<'t> {
    model: &'t str,
    list: &'static str,
    #[serde(flatten)]
    low: RatesJson,
    above_200k: Option<RatesJson>,
    valid_from: Option<String>,
    valid_until: Option<String>,
    at_least: bool,
    retired: bool,
    source: &'t str,
}

impl<'t> RowJson<'t> {
    fn of(row: &'t PriceRow) -> Self {
        let (valid_from, valid_until) = days(row.valid);
        Self {
            model: &row.model,
            list: row.list.as_str(),
            low: RatesJson::of(&row.low),
            above_200k: row.high.as_ref().map(RatesJson::of),
            valid_from,
            valid_until,
            at_least: row.at_least,
            retired: row.retired,
            source: &row.source,
        }
    }
}

#[derive(Serialize)]
struct AliasJson<'t> {
    alias: &'t str,
    model: &'t str,
    valid_from: Option<String>,
    valid_until: Option<String>,
    source: &'t str,
}

impl<'t> AliasJson<'t> {
    fn of(alias: &'t AliasRow) -> Self {
        let (valid_from, valid_until) = days(alias.valid);
        Self { alias: &alias.alias, model: &alias.model, valid_from, valid_until, source: &alias.source }
    }
}

#[derive(Serialize)]
struct HomeJson<'t> {
    home: &'t str,
    billing: &'static str,
    price_list: &'static str,
}

impl<'t> HomeJson<'t> {
    fn of(home: &'t str, pricing: Pricing) -> Self {
        Self { home, billing: pricing.billing.as_str(), price_list: pricing.list.as_str() }
    }
}
