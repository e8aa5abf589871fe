//! Which price a request has: rows by model, list and day.

use std::collections::BTreeMap;
use std::fmt;

use super::rate::Rates;
use crate::ledger::model::{UNKNOWN, canonical};

/// A day in UTC, counted from 1970-01-01: a price begins and ends with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i32);

impl Day {
    const MS: i64 = 86_400_000;

    /// The day of a moment in unix milliseconds.
    #[must_use]
    pub fn of_ms(at: i64) -> Self {
        let day = at.div_euclid(Self::MS);
        Self(i32::try_from(day).unwrap_or(if day < 0 { i32::MIN } else { i32::MAX }))
    }
}

/// Whose prices: the same model may cost different things to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PriceList {
    GeminiApi,
    VertexAi,
}

impl PriceList {
    pub const ALL: [Self; 2] = [Self::GeminiApi, Self::VertexAi];

    /// The value of the `price_list` label and of the key in a price file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GeminiApi => "gemini-api",
            Self::VertexAi => "vertex-ai",
        }
    }

    /// The list of that name, if it is one.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|list| list.as_str() == name)
    }

    fn other(self) -> Self {
        match self {
            Self::GeminiApi => Self::VertexAi,
            Self::VertexAi => Self::GeminiApi,
        }
    }
}

/// How a home pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Billing {
    /// By the token.
    Metered,
    /// For a seat: a cost is what the tokens would cost at list price.
    Seat,
    Unknown,
}

impl Billing {
    pub const ALL: [Self; 3] = [Self::Metered, Self::Seat, Self::Unknown];

    /// The value of the `billing` label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Metered => "metered",
            Self::Seat => "seat",
            Self::Unknown => "unknown",
        }
    }

    /// The way of that name, if it is one.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|billing| billing.as_str() == name)
    }
}

/// The days that something holds, first and last included; `None` where that
/// end is not known, which is the same as open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Validity {
    pub from: Option<Day>,
    pub until: Option<Day>,
}

impl Validity {
    #[must_use]
    pub fn holds(self, day: Day) -> bool {
        self.from.is_none_or(|from| from <= day) && self.until.is_none_or(|until| day <= until)
    }

    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        let begins_by_the_end_of = |a: Self, b: Self| match (a.from, b.until) {
            (Some(from), Some(until)) => from <= until,
            _ => true,
        };
        begins_by_the_end_of(self, other) && begins_by_the_end_of(other, self)
    }

    fn is_backwards(self) -> bool {
        self.from.zip(self.until).is_some_and(|(from, until)| until < from)
    }
}

/// What a model costs on one list for some days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceRow {
    /// Canonical.
    pub model: String,
    pub list: PriceList,
    pub valid: Validity,
    pub low: Rates,
    /// For requests whose prompt is above 200,000 tokens, where they cost more.
    pub high: Option<Rates>,
    /// The price changed on some day in here that nobody knows: these are the
    /// lower of the two, and a cost at them is a lower bound.
    pub at_least: bool,
    /// The model is no longer offered; journals still name it.
    pub retired: bool,
    /// Where the price was read.
    pub source: String,
}

/// Another name for a model: its requests cost what the model's cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasRow {
    pub alias: String,
    pub model: String,
    pub valid: Validity,
    pub source: String,
}

/// Why a request has no price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unpriced {
    NoModel,
    UnknownModel,
    OtherList,
    OtherDay,
}

impl Unpriced {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoModel => "no_model",
            Self::UnknownModel => "unknown_model",
            Self::OtherList => "other_list",
            Self::OtherDay => "other_day",
        }
    }
}

impl fmt::Display for Unpriced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoModel => "no source names its model",
            Self::UnknownModel => "the price table does not know its model",
            Self::OtherList => "its model is only on the other price list",
            Self::OtherDay => "its model has no price on that day",
        })
    }
}

/// What is wrong with rows; they are named by their place in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableError {
    /// A row ends before it begins.
    RowBackwards {
        row: usize,
    },
    /// Two rows of one model and list share a day.
    RowsOverlap {
        row: usize,
        other: usize,
    },
    AliasBackwards {
        alias: usize,
    },
    /// Two aliases of one name share a day.
    AliasesOverlap {
        alias: usize,
        other: usize,
    },
    /// A name that has prices of its own is no alias.
    AliasIsPriced {
        alias: usize,
        row: usize,
    },
}

/// One set of rows, free of contradictions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Layer {
    rows: BTreeMap<String, Vec<PriceRow>>,
    aliases: BTreeMap<String, Vec<AliasRow>>,
}

/// All prices. Rows of an upper layer hold on the days they cover, and leave
/// the other days to the rows below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriceTable {
    /// The uppermost first.
    layers: Vec<Layer>,
    as_of: Option<Day>,
}

impl PriceTable {
    /// A table of these rows; `as_of` is the day the prices were looked up.
    ///
    /// # Errors
    /// When more than one row would hold on some day, or none of a row's days exists.
    pub fn new(rows: Vec<PriceRow>, aliases: Vec<AliasRow>, as_of: Option<Day>) -> Result<Self, TableError> {
        for (row, this) in rows.iter().enumerate() {
            if this.valid.is_backwards() {
                return Err(TableError::RowBackwards { row });
            }
            let same = |that: &PriceRow| {
                this.model == that.model && this.list == that.list && this.valid.overlaps(that.valid)
            };
            if let Some(other) = rows[..row].iter().position(same) {
                return Err(TableError::RowsOverlap { row, other });
            }
        }
        for (alias, this) in aliases.iter().enumerate() {
            if this.valid.is_backwards() {
                return Err(TableError::AliasBackwards { alias });
            }
            let same = |that: &AliasRow| this.alias == that.alias && this.valid.overlaps(that.valid);
            if let Some(other) = aliases[..alias].iter().position(same) {
                return Err(TableError::AliasesOverlap { alias, other });
            }
            if let Some(row) = rows.iter().position(|row| row.model == this.alias) {
                return Err(TableError::AliasIsPriced { alias, row });
            }
        }
        let mut layer = Layer::default();
        for row in rows {
            layer.rows.entry(row.model.clone()).or_default().push(row);
        }
        for rows in layer.rows.values_mut() {
            rows.sort_by_key(|row| (row.list, row.valid.from));
        }
        for alias in aliases {
            layer.aliases.entry(alias.alias.clone()).or_default().push(alias);
        }
        Ok(Self { layers: vec![layer], as_of })
    }

    /// This table with the rows of another above its own.
    #[must_use]
    pub fn below(self, upper: Self) -> Self {
        let layers = upper.layers.into_iter().chain(self.layers).collect();
        Self { layers, as_of: self.as_of.max(upper.as_of) }
    }

    /// The day the newest of its prices were looked up.
    #[must_use]
    pub fn as_of(&self) -> Option<Day> {
        self.as_of
    }

    /// The price of a request to `model` at a moment in unix milliseconds.
    ///
    /// # Errors
    /// Why it has none.
    pub fn price(&self, model: &str, list: PriceList, at: i64) -> Result<&PriceRow, Unpriced> {
        self.price_on(model, list, Day::of_ms(at))
    }

    /// The price of a request to `model` on a day. A name is looked up as it
    /// is, canonical, or through one alias: no version stands in for another.
    ///
    /// # Errors
    /// Why it has none.
    pub fn price_on(&self, model: &str, list: PriceList, day: Day) -> Result<&PriceRow, Unpriced> {
        let model = canonical(model);
        if model == UNKNOWN {
            return Err(Unpriced::NoModel);
        }
        let direct = |layer: &'_ Layer| layer.row(model, list, day).is_some();
        let mut name = model;
        for layer in &self.layers {
            if direct(layer) {
                break;
            }
            if let Some(alias) = layer.alias(model, day) {
                name = alias;
                break;
            }
        }
        let found = self.layers.iter().find_map(|layer| layer.row(name, list, day));
        found.ok_or_else(|| self.why_not(name, list))
    }

    fn why_not(&self, name: &str, list: PriceList) -> Unpriced {
        let on = |list| self.rows().any(|row| row.model == name && row.list == list);
        if on(list) {
            Unpriced::OtherDay
        } else if on(list.other()) {
            Unpriced::OtherList
        } else if self.layers.iter().any(|layer| layer.aliases.contains_key(name)) {
            Unpriced::OtherDay
        } else {
            Unpriced::UnknownModel
        }
    }

    /// Every row, the uppermost first, then by model, list and first day.
    pub fn rows(&self) -> impl Iterator<Item = &PriceRow> {
        self.layers.iter().flat_map(|layer| layer.rows.values().flatten())
    }

    /// Every alias.
    pub fn aliases(&self) -> impl Iterator<Item = &AliasRow> {
        self.layers.iter().flat_map(|layer| layer.aliases.values().flatten())
    }

    /// The rows that hold on a day, by model and list.
    #[must_use]
    pub fn in_force(&self, day: Day) -> Vec<&PriceRow> {
        let mut rows: BTreeMap<(&str, PriceList), &PriceRow> = BTreeMap::new();
        for row in self.rows().filter(|row| row.valid.holds(day)) {
            rows.entry((&row.model, row.list)).or_insert(row);
        }
        rows.into_values().collect()
    }
}

impl Layer {
    fn row(&self, model: &str, list: PriceList, day: Day) -> Option<&PriceRow> {
        self.rows.get(model)?.iter().find(|row| row.list == list && row.valid.holds(day))
    }

    fn alias(&self, name: &str, day: Day) -> Option<&str> {
        self.aliases.get(name)?.iter().find(|alias| alias.valid.holds(day)).map(|alias| alias.model.as_str())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::rate::Rate;
    use super::*;
    use PriceList::{GeminiApi, VertexAi};

    pub(in super::super) fn rates(input: &str, cached: &str, output: &str) -> Rates {
        let rate = |text| Rate::per_million(text).unwrap();
        Rates { input: rate(input), cached: rate(cached), output: rate(output), thoughts: None }
    }

    pub(in super::super) fn row(model: &str, list: PriceList, input: &str) -> PriceRow {
        PriceRow {
            model: model.to_owned(),
            list,
            valid: Validity::default(),
            low: rates(input, "0.1", "10"),
            high: None,
            at_least: false,
            retired: false,
            source: "test".to_owned(),
        }
    }

    fn days(from: impl Into<Option<i32>>, until: impl Into<Option<i32>>) -> Validity {
        Validity { from: from.into().map(Day), until: until.into().map(Day) }
    }

    fn dated(input: &str, valid: Validity) -> PriceRow {
        PriceRow { valid, ..row("m", GeminiApi, input) }
    }

    fn alias(alias: &str, model: &str, valid: Validity) -> AliasRow {
        AliasRow { alias: alias.into(), model: model.into(), valid, source: "test".into() }
    }

    fn table(rows: Vec<PriceRow>, aliases: Vec<AliasRow>) -> PriceTable {
        PriceTable::new(rows, aliases, None).unwrap()
    }

    fn input(found: Result<&PriceRow, Unpriced>) -> Result<String, Unpriced> {
        found.map(|row| row.low.input.to_string())
    }

    #[test]
    fn a_request_keeps_the_price_of_its_own_day() {
        let table = table(vec![dated("2", days(10, None)), dated("1", days(None, 9))], vec![]);
        let at = |at| input(table.price("m", GeminiApi, at)).unwrap();
        let midnight = 10 * 86_400_000;
        assert_eq!((at(midnight - 1), at(midnight)), ("1".into(), "2".into()));
        assert_eq!((at(i64::MIN), at(i64::MAX)), ("1".into(), "2".into()));
        assert_eq!(Day::of_ms(-1), Day(-1));
    }

    #[test]
    fn names_are_canonical_and_never_go_across_versions() {
        let table = table(vec![row("gemini-2.5-pro", GeminiApi, "1")], vec![]);
        for name in ["gemini-2.5-pro", "models/gemini-2.5-pro", "gemini-2.5-pro-001"] {
            assert!(table.price(name, GeminiApi, 0).is_ok(), "{name}");
        }
        for name in ["gemini-2.5", "gemini-2.5-pro-preview", "gemini-2.5-pro-preview-05-06", "gemini-2.5-Pro"]
        {
            assert_eq!(table.price(name, GeminiApi, 0), Err(Unpriced::UnknownModel), "{name}");
        }
    }

    #[test]
    fn what_has_no_price_says_why() {
        let table = table(vec![dated("1", days(5, 9))], vec![alias("a", "m", days(None, 6))]);
        for (name, list, day, why) in [
            ("auto", GeminiApi, 5, Unpriced::NoModel),
            ("unknown", GeminiApi, 5, Unpriced::NoModel),
            ("n", GeminiApi, 5, Unpriced::UnknownModel),
            ("m", VertexAi, 5, Unpriced::OtherList),
            ("m", GeminiApi, 4, Unpriced::OtherDay),
            ("m", GeminiApi, 10, Unpriced::OtherDay),
            ("a", GeminiApi, 4, Unpriced::OtherDay),
            ("a", GeminiApi, 7, Unpriced::OtherDay),
        ] {
            assert_eq!(table.price_on(name, list, Day(day)), Err(why), "{name} {day}");
        }
        assert!(table.price_on("a", GeminiApi, Day(6)).is_ok());
    }

    #[test]
    fn an_alias_goes_one_step_and_has_its_days() {
        let rows = vec![row("old", GeminiApi, "1"), row("new", GeminiApi, "2")];
        let aliases = vec![
            alias("latest", "old", days(None, 9)),
            alias("latest", "new", days(10, None)),
            alias("twice", "latest", days(None, None)),
        ];
        let table = table(rows, aliases);
        assert_eq!(input(table.price_on("latest", GeminiApi, Day(9))), Ok("1".into()));
        assert_eq!(input(table.price_on("latest", GeminiApi, Day(10))), Ok("2".into()));
        assert!(table.price_on("twice", GeminiApi, Day(10)).is_err());
    }

    #[test]
    fn an_upper_row_holds_on_its_days_and_leaves_the_others() {
        let base = table(
            vec![row("m", GeminiApi, "1"), row("m", VertexAi, "1"), row("latest", GeminiApi, "1")],
            vec![],
        );
        let upper = table(
            vec![dated("3", days(10, 19)), row("n", GeminiApi, "4")],
            vec![alias("latest", "m", days(None, None))],
        );
        let table = base.below(upper);
        let on = |name: &str, list, day| input(table.price_on(name, list, Day(day))).unwrap();
        assert_eq!(on("m", GeminiApi, 9), "1");
        assert_eq!(on("m", GeminiApi, 10), "3");
        assert_eq!(on("m", GeminiApi, 20), "1");
        assert_eq!(on("m", VertexAi, 10), "1");
        assert_eq!(on("n", GeminiApi, 0), "4");
        assert_eq!(on("latest", GeminiApi, 10), "3", "an alias above goes before a row below");
        let in_force = table.in_force(Day(10));
        let named: Vec<_> = in_force.iter().map(|r| (&*r.model, r.list, r.low.input.to_string())).collect();
        assert_eq!(named.len(), 4);
        assert_eq!(named[1], ("m", GeminiApi, "3".to_owned()));
    }

    #[test]
    fn rows_that_contradict_each_other_are_refused() {
        let new = |rows, aliases| PriceTable::new(rows, aliases, None).unwrap_err();
        assert_eq!(
            new(vec![dated("1", days(None, 9)), dated("2", days(9, None))], vec![]),
            TableError::RowsOverlap { row: 1, other: 0 }
        );
        assert_eq!(new(vec![dated("1", days(9, 8))], vec![]), TableError::RowBackwards { row: 0 });
        let twice = vec![alias("a", "m", days(None, None)), alias("a", "n", days(3, 4))];
        assert_eq!(new(vec![], twice), TableError::AliasesOverlap { alias: 1, other: 0 });
        assert_eq!(
            new(vec![row("m", VertexAi, "1")], vec![alias("m", "n", days(None, None))]),
            TableError::AliasIsPriced { alias: 0, row: 0 }
        );
        assert!(
            PriceTable::new(vec![dated("1", days(9, 9)), dated("2", days(10, 9 + 1))], vec![], None).is_ok()
        );
    }
}
