//! The shape of a price file.

use jiff::civil::Date;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::day;
use crate::ledger::model::{UNKNOWN, canonical};
use crate::ledger::money::{
    AliasRow, Day, PriceList, PriceRow, PriceTable, Rate, Rates, TableError, Validity,
};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceFile {
    as_of: Option<DayText>,
    #[serde(default)]
    prices: Option<Vec<Price>>,
    #[serde(default)]
    aliases: Option<Vec<Alias>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Price {
    model: Spanned<ModelName>,
    list: List,
    valid_from: Option<DayText>,
    valid_until: Option<DayText>,
    input: RateText,
    cached_input: Option<RateText>,
    output: RateText,
    thoughts: Option<RateText>,
    above_200k: Option<HighPrice>,
    #[serde(default)]
    at_least: bool,
    #[serde(default)]
    retired: bool,
    source: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HighPrice {
    input: RateText,
    cached_input: Option<RateText>,
    output: RateText,
    thoughts: Option<RateText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Alias {
    alias: Spanned<ModelName>,
    model: ModelName,
    valid_from: Option<DayText>,
    valid_until: Option<DayText>,
    source: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum List {
    GeminiApi,
    VertexAi,
}

/// A price as written: a number in YAML is read as its digits, not as a double.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
struct RateText(Rate);

impl TryFrom<String> for RateText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Rate::per_million(&text).map(Self).map_err(|error| error.to_string())
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
struct DayText(Day);

impl TryFrom<String> for DayText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let date = text.parse::<Date>();
        date.map(|date| Self(day(date)))
            .map_err(|_| format!("`{text}` is no day: write one such as 2026-11-30"))
    }
}

/// A model as the ledger calls it.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct ModelName(String);

impl TryFrom<String> for ModelName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._/@:".contains(c);
        if text.is_empty() || !text.chars().all(plain) {
            return Err(format!("`{text}` is no name of a model"));
        }
        match canonical(&text) {
            UNKNOWN => Err(format!("`{text}` is no model that could be billed")),
            known if known == text => Ok(Self(text)),
            known => Err(format!("`{text}` is counted as `{known}`: write that")),
        }
    }
}

/// What is wrong, and at which line and column.
#[derive(Debug)]
pub(super) struct Mistake {
    pub(super) at: (u64, u64),
    pub(super) message: String,
}

impl PriceFile {
    /// The rows as a table. Rows without a source name the file.
    pub(super) fn into_table(self, file: &str, below: &PriceTable) -> Result<PriceTable, Mistake> {
        let prices = self.prices.unwrap_or_default();
        let aliases = self.aliases.unwrap_or_default();
        let row_places: Vec<_> = prices.iter().map(|row| place(&row.model)).collect();
        let alias_places: Vec<_> = aliases.iter().map(|row| place(&row.alias)).collect();
        let source = |said: Option<String>| said.map_or_else(|| file.to_owned(), |said| one_line(&said));
        let rows: Vec<PriceRow> = prices.into_iter().map(|row| row.into_row(source)).collect();
        let aliases: Vec<AliasRow> = aliases.into_iter().map(|row| row.into_row(source)).collect();
        let priced = |model: &str| below.rows().chain(&rows).any(|row| row.model == model);
        if let Some((place, alias)) = aliases.iter().enumerate().find(|(_, alias)| !priced(&alias.model)) {
            let message = format!("`{}` stands for `{}`, which has no price", alias.alias, alias.model);
            return Err(Mistake { at: alias_places[place], message });
        }
        let names: Vec<_> = rows.iter().map(|row| (row.model.clone(), row.list)).collect();
        let alias_names: Vec<_> = aliases.iter().map(|alias| alias.alias.clone()).collect();
        let backwards = |name: &str| format!("`{name}` ends before it begins");
        PriceTable::new(rows, aliases, self.as_of.map(|day| day.0)).map_err(|error| match error {
            TableError::RowBackwards { row } => {
                Mistake { at: row_places[row], message: backwards(&names[row].0) }
            }
            TableError::RowsOverlap { row, other } => {
                let (model, list) = &names[row];
                let message = format!(
                    "`{model}` has another row for {} on the same days, on line {}",
                    list.as_str(),
                    row_places[other].0
                );
                Mistake { at: row_places[row], message }
            }
            TableError::AliasBackwards { alias } => {
                Mistake { at: alias_places[alias], message: backwards(&alias_names[alias]) }
            }
            TableError::AliasesOverlap { alias, other } => {
                let name = &alias_names[alias];
                let message =
                    format!("`{name}` has another row on the same days, on line {}", alias_places[other].0);
                Mistake { at: alias_places[alias], message }
            }
            TableError::AliasIsPriced { alias, row } => {
                let name = &alias_names[alias];
                let message = format!("`{name}` has a price of its own, on line {}", row_places[row].0);
                Mistake { at: alias_places[alias], message }
            }
        })
    }
}

/// Line and column of a value.
fn place<T>(value: &Spanned<T>) -> (u64, u64) {
    (value.referenced.line(), value.referenced.column())
}

/// Text for one line of a terminal.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Rates of one tier. Where no price for cached tokens is listed there is no
/// discount: they are input.
fn rates(input: RateText, cached: Option<RateText>, output: RateText, thoughts: Option<RateText>) -> Rates {
    Rates {
        input: input.0,
        cached: cached.unwrap_or(input).0,
        output: output.0,
        thoughts: thoughts.map(|rate| rate.0),
    }
}

fn validity(from: Option<DayText>, until: Option<DayText>) -> Validity {
    Validity { from: from.map(|day| day.0), until: until.map(|day| day.0) }
}

impl Price {
    fn into_row(self, source: impl Fn(Option<String>) -> String) -> PriceRow {
        let high =
            self.above_200k.map(|high| rates(high.input, high.cached_input, high.output, high.thoughts));
        PriceRow {
            model: self.model.value.0,
            list: self.list.into(),
            valid: validity(self.valid_from, self.valid_until),
            low: rates(self.input, self.cached_input, self.output, self.thoughts),
            high,
            at_least: self.at_least,
            retired: self.retired,
            source: source(self.source),
        }
    }
}

impl Alias {
    fn into_row(self, source: impl Fn(Option<String>) -> String) -> AliasRow {
        AliasRow {
            alias: self.alias.value.0,
            model: self.model.0,
            valid: validity(self.valid_from, self.valid_until),
            source: source(self.source),
        }
    }
}

impl From<List> for PriceList {
    fn from(list: List) -> Self {
        match list {
            List::GeminiApi => Self::GeminiApi,
            List::VertexAi => Self::VertexAi,
        }
    }
}
