//! The columns of a billing export, lenient about their names.
//!
//! Read are the CSV of the console's cost table and reports, and a CSV of the
//! BigQuery export. Of a header only letters and digits count, so `Usage start
//! date`, `usage_start_time` and `usage.start_time` are all understood. Lines
//! above the header (the console writes an invoice's particulars there) are
//! passed over.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use super::{Sku, amount, sku};
use crate::ledger::money::Picodollars;

/// Names of a column, the first one the console's; letters and digits only.
const START: [&str; 6] =
    ["usagestartdate", "usagestarttime", "usagestart", "chargeperiodstart", "usagedate", "date"];
const SKU: [&str; 3] = ["skudescription", "skuname", "sku"];
const AMOUNT: [&str; 4] = ["usageamount", "usagequantity", "consumedquantity", "usage"];
const UNIT: [&str; 3] = ["usageunit", "consumedunit", "unit"];
const COST: [&str; 3] = ["cost", "costusd", "billedcost"];

/// Why a file is no bill.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BillError {
    #[error(
        "no line of it names the columns of a billing export; it needs a start of usage (such as \"Usage start \
         date\" or usage_start_time), a SKU description and a usage amount"
    )]
    NoHeader,
    #[error("a quote that is opened on line {0} is never closed")]
    Quote(usize),
}

/// When something was used, as exactly as the bill says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Day(Date),
    Moment(Timestamp),
}

impl When {
    pub(super) fn day(self, zone: &TimeZone) -> Date {
        match self {
            Self::Day(day) => day,
            Self::Moment(at) => zone.to_datetime(at).date(),
        }
    }
}

/// Tokens of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    pub when: When,
    pub sku: Sku,
    pub tokens: i128,
    /// `None`: the bill does not say, or not so that it can be read.
    pub cost: Option<Picodollars>,
}

/// What a bill says about Gemini.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    pub charges: Vec<Charge>,
    /// Descriptions that name no token of a Gemini model, with their rows.
    pub skipped: BTreeMap<String, u64>,
    /// Rows with a Gemini SKU whose day or amount cannot be read.
    pub unreadable: u64,
}

struct Columns {
    start: usize,
    sku: usize,
    amount: usize,
    unit: Option<usize>,
    cost: Option<usize>,
}

/// Reads a billing export.
///
/// # Errors
/// No header, or a CSV that does not end.
pub fn read(text: &str) -> Result<Bill, BillError> {
    let records = records(text.trim_start_matches('\u{feff}'))?;
    let mut records = records.into_iter();
    let columns = records.by_ref().find_map(|record| Columns::of(&record)).ok_or(BillError::NoHeader)?;
    let mut bill = Bill::default();
    for record in records {
        let cell = |place: usize| record.get(place).map_or("", |cell| cell.trim());
        let description = cell(columns.sku);
        if description.is_empty() {
            // Totals and blank lines.
            continue;
        }
        let unit = sku::unit(columns.unit.map_or("", cell));
        let named = sku::family(description).zip(sku::kind(description)).zip(unit);
        let Some(((model, kind), unit)) = named else {
            *bill.skipped.entry(description.to_owned()).or_default() += 1;
            continue;
        };
        let tokens = amount::tokens(cell(columns.amount), unit);
        let Some((when, tokens)) = when(cell(columns.start)).zip(tokens) else {
            bill.unreadable += 1;
            continue;
        };
        let cost = columns.cost.and_then(|place| amount::parse(cell(place))).map(Picodollars::new);
        bill.charges.push(Charge { when, sku: Sku { model, kind }, tokens, cost });
    }
    Ok(bill)
}

impl Columns {
    fn of(record: &[String]) -> Option<Self> {
        let names: Vec<String> = record.iter().map(|cell| plain(cell)).collect();
        let find = |wanted: &[&str]| wanted.iter().find_map(|name| names.iter().position(|n| n == name));
        Some(Self {
            start: find(&START)?,
            sku: find(&SKU)?,
            amount: find(&AMOUNT)?,
            unit: find(&UNIT),
            cost: find(&COST),
        })
    }
}

/// Letters and digits in lower case: `Cost ($)` is `cost`.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn when(text: &str) -> Option<When> {
    if text.len() <= 10 {
        return text.parse().ok().map(When::Day);
    }
    // BigQuery prints `2026-11-28 08:00:00 UTC`.
    let utc = text.strip_suffix(" UTC");
    if let Ok(at) = utc.unwrap_or(text).parse::<DateTime>()
        && (utc.is_some() || text.parse::<Timestamp>().is_err())
    {
        return TimeZone::UTC.to_timestamp(at).ok().map(When::Moment);
    }
    text.parse::<Timestamp>().ok().map(When::Moment)
}

/// The records of a CSV after RFC 4180, blank lines left out.
fn records(text: &str) -> Result<Vec<Vec<String>>, BillError> {
    let mut records = Vec::new();
    let (mut record, mut cell) = (Vec::new(), String::new());
    let (mut line, mut opened) = (1, None);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        line += usize::from(c == '\n');
        match (c, opened) {
            ('"', Some(_)) if chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            ('"', Some(_)) => opened = None,
            ('"', None) if cell.is_empty() => opened = Some(line),
            (',', None) => record.push(std::mem::take(&mut cell)),
            ('\r', None) if chars.peek() == Some(&'\n') => {}
            ('\n', None) => {
                record.push(std::mem::take(&mut cell));
                records.push(std::mem::take(&mut record));
            }
            (c, _) => cell.push(c),
        }
    }
    if let Some(line) = opened {
        return Err(BillError::Quote(line));
    }
    if !cell.is_empty() || !record.is_empty() {
        record.push(cell);
        records.push(record);
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surfaces::bill::Kind;

    #[test]
    fn the_console_and_bigquery_name_their_columns_differently() {
        let console = "Invoice,INV-1\r\n\r\nService description,SKU description,Usage start date,Usage amount,\
                       Usage unit,Cost ($)\r\nGemini API,Generate content input token count gemini 2.5 pro,\
                       2026-11-28,\"15,327\",count,0.02\r\n,,,,Total,0.02\r\n";
        let bigquery = "usage_start_time,sku_description,usage_amount,usage_unit,cost\n\
                        2026-11-28 20:00:00 UTC,Generate content input token count gemini 2.5 pro,1.5327E4,count,0.02\n";
        let (console, bigquery) = (read(console).unwrap(), read(bigquery).unwrap());
        assert_eq!(console.charges.len(), 1);
        let charge = &console.charges[0];
        assert_eq!(
            (charge.tokens, charge.sku.kind, charge.cost.unwrap().to_string().as_str()),
            (15_327, Kind::Input, "0.02")
        );
        assert_eq!(charge.when, When::Day("2026-11-28".parse().unwrap()));
        assert_eq!(bigquery.charges[0].tokens, 15_327);
        let zone = TimeZone::get("America/Los_Angeles").unwrap();
        assert_eq!(bigquery.charges[0].when.day(&zone).to_string(), "2026-11-28");
    }

    #[test]
    fn times_without_a_zone_are_utc_and_days_are_days() {
        let at = |text: &str| match when(text) {
            Some(When::Moment(at)) => at.to_string(),
            Some(When::Day(day)) => day.to_string(),
            None => "-".to_owned(),
        };
        for (text, want) in [
            ("2026-11-28", "2026-11-28"),
            ("2026-11-28 08:00:00 UTC", "2026-11-28T08:00:00Z"),
            ("2026-11-28 08:00:00", "2026-11-28T08:00:00Z"),
            ("2026-11-28T08:00:00Z", "2026-11-28T08:00:00Z"),
            ("2026-11-28T00:00:00-08:00", "2026-11-28T08:00:00Z"),
            ("yesterday", "-"),
            ("", "-"),
        ] {
            assert_eq!(at(text), want, "{text}");
        }
    }

    #[test]
    fn what_is_no_token_is_counted_and_not_taken() {
        let text = "date,sku,usage\n2026-11-28,Cloud Storage,5\n2026-11-28,Gemini 2.5 Pro Text Input,x\n";
        let bill = read(text).unwrap();
        assert_eq!((bill.charges.len(), bill.unreadable, bill.skipped["Cloud Storage"]), (0, 1, 1));
    }

    #[test]
    fn what_is_no_bill_is_refused() {
        assert_eq!(read("a,b\n1,2\n"), Err(BillError::NoHeader));
        assert_eq!(read("date,sku,usage\n\"x\n"), Err(BillError::Quote(2)));
    }
}
