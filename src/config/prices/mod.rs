//! The price table: what is built in, and what the user's own file puts above it.

mod shape;

use std::path::Path;

use super::error::ConfigError;
use super::read::read_bounded;
use super::yaml::{parse, wrong};
use crate::ledger::money::{Day, PriceTable};
use shape::PriceFile;

/// No sane price file is larger.
const LIMIT: u64 = 1 << 20;

/// The prices that come with the program, and what they are called in errors.
const BUILT_IN: &str = include_str!("../../../data/prices.yml");
const BUILT_IN_NAME: &str = "data/prices.yml";

/// The prices in force: those of the file, where one is named, above those
/// that are built in.
pub(super) fn load(file: Option<&Path>) -> Result<PriceTable, ConfigError> {
    let built_in = table(Path::new(BUILT_IN_NAME), BUILT_IN, &PriceTable::default())?;
    let Some(path) = file else { return Ok(built_in) };
    let read = read_bounded(path, LIMIT);
    let text = read.map_err(|error| ConfigError::ReadPrices { path: path.to_owned(), error })?;
    let own = table(path, &text, &built_in)?;
    Ok(built_in.below(own))
}

/// The rows of one price file, checked by themselves and against those below.
fn table(path: &Path, text: &str, below: &PriceTable) -> Result<PriceTable, ConfigError> {
    let file: PriceFile = parse(path, text)?;
    file.into_table(&path.display().to_string(), below)
        .map_err(|mistake| wrong(path, text, Some(mistake.at), mistake.message))
}

/// The calendar day (UTC) of a day of the price table.
#[must_use]
pub fn date(day: Day) -> jiff::civil::Date {
    EPOCH.saturating_add(jiff::SignedDuration::from_hours(24 * i64::from(day.0)))
}

const EPOCH: jiff::civil::Date = jiff::civil::date(1970, 1, 1);

/// The day of the price table that a calendar day (UTC) is.
fn day(date: jiff::civil::Date) -> Day {
    Day(EPOCH.duration_until(date).as_hours().div_euclid(24).try_into().expect("the calendar is short"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::money::PriceList::{GeminiApi, VertexAi};
    use crate::ledger::money::{PriceList, Unpriced};
    use crate::ledger::tokens::Reading;

    fn built_in() -> PriceTable {
        load(None).unwrap()
    }

    /// The first moment of a day.
    fn at(day: &str) -> i64 {
        format!("{day}T00:00:00Z").parse::<jiff::Timestamp>().unwrap().as_millisecond()
    }

    fn own(text: &str) -> Result<PriceTable, ConfigError> {
        Ok(built_in().below(table(Path::new("own.yml"), text, &built_in())?))
    }

    /// Input, cached and output rates of a model on a day.
    fn rates(table: &PriceTable, model: &str, list: PriceList, day: &str) -> Result<String, Unpriced> {
        let row = table.price(model, list, at(day))?;
        let bound = if row.at_least { "≥ " } else { "" };
        Ok(format!("{bound}{} {} {}", row.low.input, row.low.cached, row.low.output))
    }

    #[test]
    fn days_are_calendar_days() {
        for text in ["1970-01-01", "1969-12-31", "2026-11-30", "2028-02-29", "9999-12-31"] {
            let there: jiff::civil::Date = text.parse().unwrap();
            assert_eq!(date(day(there)), there);
        }
        assert_eq!(day("2026-11-30".parse().unwrap()), Day::of_ms(at("2026-11-30")));
        assert_eq!(day("1969-12-31".parse().unwrap()), Day::of_ms(-1));
        assert_eq!(date(Day(i32::MAX)), jiff::civil::Date::MAX);
    }

    #[test]
    fn every_built_in_price_says_where_it_was_read() {
        let table = built_in();
        assert_eq!(table.as_of().map(date), Some(jiff::civil::date(2026, 11, 30)));
        assert!(table.rows().count() > 70);
        for row in table.rows() {
            assert!(
                row.source.starts_with("https://") || row.source.starts_with("litellm release"),
                "{row:?}"
            );
            assert_eq!(crate::ledger::model::canonical(&row.model), row.model);
            let rising = |low, high| low <= high;
            let high = row.high.unwrap_or(row.low);
            assert!(rising(row.low.input, high.input) && rising(row.low.output, high.output), "{row:?}");
            assert!(row.low.cached <= row.low.input, "{row:?}");
        }
    }

    #[test]
    fn prices_that_changed_keep_their_days() {
        let table = built_in();
        for (model, day, want) in [
            ("gemini-3.6-flash", "2026-08-02", "1.5 0.15 7.5"),
            ("gemini-3.6-flash", "2026-08-03", "≥ 0.75 0.075 3.75"),
            ("gemini-3.6-flash", "2026-09-05", "≥ 0.75 0.075 3.75"),
            ("gemini-3.6-flash", "2026-09-06", "0.75 0.075 3.75"),
            ("gemini-flash-latest", "2026-09-06", "0.3 0.03 2.5"),
            ("gemini-flash-latest", "2026-09-07", "≥ 0.3 0.03 2.5"),
            ("gemini-flash-latest", "2026-10-11", "0.75 0.075 3.75"),
            ("gemini-flash-lite-latest", "2026-10-11", "0.3 0.03 2.5"),
            ("gemini-pro-latest", "2026-09-01", "1.25 0.125 10"),
            ("gemini-pro-latest", "2026-11-01", "2 0.2 12"),
        ] {
            for list in PriceList::ALL {
                assert_eq!(rates(&table, model, list, day).as_deref(), Ok(want), "{model} {day}");
            }
        }
        assert_eq!(
            rates(&table, "gemini-2.5-flash-preview-09-2025", VertexAi, "2026-01-01").as_deref(),
            Ok("≥ 0.3 0.03 2.5")
        );
    }

    #[test]
    fn lists_differ_and_retired_models_keep_their_price() {
        let table = built_in();
        for (model, list, want) in [
            ("gemini-2.0-flash", GeminiApi, Ok("0.1 0.025 0.4")),
            ("gemini-2.0-flash-001", VertexAi, Ok("0.15 0.0375 0.6")),
            ("gemini-pro", GeminiApi, Ok("0.35 0.35 1.05")),
            ("gemini-pro", VertexAi, Ok("0.5 0.5 1.5")),
            ("gemini-3.8-flash-cyber", VertexAi, Ok("1.5 0.15 7.5")),
            ("gemini-3.8-flash-cyber", GeminiApi, Err(Unpriced::OtherList)),
            ("gemini-9-pro", GeminiApi, Err(Unpriced::UnknownModel)),
        ] {
            let found = rates(&table, model, list, "2026-11-30");
            assert_eq!(found.as_deref().map_err(|why| *why), want, "{model}");
        }
        let thinking = table.price("gemini-2.5-flash-preview-04-17", GeminiApi, at("2025-05-01")).unwrap();
        let thoughts = thinking.cost(&Reading { thoughts: 1_000_000, ..Reading::default() });
        assert_eq!(thoughts.total().to_string(), "3.5");
    }

    #[test]
    fn a_file_adds_rows_and_replaces_rows() {
        let table = own("prices:\n  - {model: gemini-2.5-pro, list: gemini-api, input: 1, output: 8, \
                         valid_from: 2026-10-01}\n  - {model: gemini-9-pro, list: gemini-api, input: \"3.5\", \
                         cached_input: 0.35, output: 20}\naliases:\n  - {alias: gemini-9-latest, model: \
                         gemini-9-pro}\n")
        .unwrap();
        let on = |model, day| rates(&table, model, GeminiApi, day).unwrap();
        assert_eq!(on("gemini-2.5-pro", "2026-09-30"), "1.25 0.125 10");
        assert_eq!(on("gemini-2.5-pro", "2026-10-01"), "1 1 8");
        assert_eq!(on("gemini-9-pro", "2026-10-01"), "3.5 0.35 20");
        assert_eq!(on("gemini-9-latest", "2026-10-01"), "3.5 0.35 20");
        assert_eq!(rates(&table, "gemini-2.5-pro", VertexAi, "2026-10-01").unwrap(), "1.25 0.125 10");
        assert_eq!(table.price("gemini-9-pro", GeminiApi, 0).unwrap().source, "own.yml");
        assert_eq!(own("# nothing yet\n").unwrap().rows().count(), built_in().rows().count());
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_line_and_its_key() {
        let row = |lines: &str| format!("prices:\n  - model: m\n    list: gemini-api\n    {lines}\n");
        for (text, expected) in [
            (row("input: -1\n    output: 1"), "own.yml, line 4, prices.input: `-1` is negative"),
            (row("input: 1\n    output: .nan"), "own.yml, line 5, prices.output: `.nan` is no price"),
            (row("input: 1\n    output: 1001"), "own.yml, line 5, prices.output: `1001` is more than 1,000"),
            (
                row("input: 0.0000001\n    output: 1"),
                "own.yml, line 4, prices.input: `0.0000001` has more than",
            ),
            (row("input: cheap\n    output: 1"), "own.yml, line 4, prices.input: `cheap` is no price"),
            (row("input: 1\n    outputs: 1"), "own.yml, line 5, prices.outputs: unknown field"),
            (
                row("input: 1\n    output: 1\n    above_200k:\n      input: -2\n      output: 3"),
                "own.yml, line 7, prices.above_200k.input: `-2` is negative",
            ),
            (
                row("input: 1\n    output: 1\n    valid_from: 2026-13-01"),
                "own.yml, line 6, prices.valid_from: `2026-13-01` is no day",
            ),
            (
                row("input: 1\n    output: 1\n    valid_from: 2026-02-02\n    valid_until: 2026-02-01"),
                "own.yml, line 2, prices.model: `m` ends before it begins",
            ),
            (
                row(
                    "input: 1\n    output: 1\n  - model: m\n    list: gemini-api\n    input: 2\n    output: 2",
                ),
                "own.yml, line 6, prices.model: `m` has another row for gemini-api on the same days, on line 2",
            ),
            (row("input: 1"), "own.yml, line 4, prices.input: missing field `output`"),
            ("prices:\n  - list: gemini-apy\n".into(), "own.yml, line 2, prices.list: "),
            (
                "prices:\n  - model: gemini-9-001\n    list: vertex-ai\n    input: 1\n    output: 1\n".into(),
                "own.yml, line 2, prices.model: `gemini-9-001` is counted as `gemini-9`: write that",
            ),
            ("prices:\n  - model: auto\n".into(), "own.yml, line 2, prices.model: `auto` is no model"),
            (
                "prices:\n  - model: \"a b\"\n".into(),
                "own.yml, line 2, prices.model: `a b` is no name of a model",
            ),
            (
                "aliases:\n  - alias: a\n    model: gemini-9\n".into(),
                "own.yml, line 2, aliases.alias: `a` stands for `gemini-9`, which has no price",
            ),
            (
                "aliases:\n  - {alias: a, model: gemini-2.5-pro}\n  - {alias: a, model: gemini-2.5-flash}\n"
                    .into(),
                "own.yml, line 3, aliases.alias: `a` has another row on the same days, on line 2",
            ),
            ("price: []\n".into(), "own.yml, line 1, price: unknown field"),
            ("as_of: yesterday\n".into(), "own.yml, line 1, as_of: `yesterday` is no day"),
        ] {
            let error = own(&text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}\n{text}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error() {
        let error = load(Some(Path::new("/nowhere/prices.yml"))).unwrap_err().to_string();
        assert!(error.starts_with("the price file /nowhere/prices.yml could not be read: "), "{error}");
    }
}
