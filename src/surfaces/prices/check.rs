//! Our prices beside LiteLLM's: what differs.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde::Serialize;

use super::litellm::{Entry, EntryRates, Litellm};
use crate::config::prices::date;
use crate::ledger::money::{Day, PriceList, PriceRow, PriceTable, Rate, Rates};
use crate::surfaces::money::{Usd, per_million};

/// What came of a comparison.
#[derive(Debug, Serialize)]
pub struct Check {
    schema: u32,
    day: String,
    unit: &'static str,
    /// Rows of ours that have a counterpart.
    pub compared: usize,
    pub differences: Vec<Difference>,
    /// Rows of ours that LiteLLM does not list because their model is gone.
    pub retired: usize,
    pub other_kinds: usize,
    pub unreadable: Vec<String>,
}

/// One number that differs, or a model that one side lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub model: String,
    pub list: &'static str,
    pub kind: Kind,
    /// `input`, `above_200k.output`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ours: Option<Usd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theirs: Option<Usd>,
    /// LiteLLM's key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Changed,
    /// LiteLLM has it and we do not.
    MissingHere,
    /// We have it and LiteLLM does not.
    MissingThere,
}

impl Check {
    /// Compares the rows in force on a day.
    #[must_use]
    pub fn of(table: &PriceTable, theirs: Litellm, day: Day) -> Self {
        let mut differences = Vec::new();
        let mut compared = BTreeSet::new();
        for entry in &theirs.entries {
            match table.price_on(&entry.model, entry.list, day) {
                Ok(row) => {
                    compared.insert((&row.model, row.list));
                    differences.extend(changes(row, entry));
                }
                Err(_) => differences.push(missing_here(entry)),
            }
        }
        let mut retired = 0;
        for row in table.in_force(day) {
            if compared.contains(&(&row.model, row.list)) {
                continue;
            }
            if row.retired {
                retired += 1;
            } else {
                differences.push(missing_there(row));
            }
        }
        // What two keys of theirs say alike is one difference.
        differences
            .sort_by(|a, b| (&a.model, a.list, a.rate, &a.key).cmp(&(&b.model, b.list, b.rate, &b.key)));
        differences.dedup_by(|a, b| {
            (&a.model, a.list, a.kind, a.rate, a.theirs) == (&b.model, b.list, b.kind, b.rate, b.theirs)
        });
        Self {
            schema: 1,
            day: date(day).to_string(),
            unit: "USD per million tokens",
            compared: compared.len(),
            differences,
            retired,
            other_kinds: theirs.other_kinds,
            unreadable: theirs.unreadable,
        }
    }

    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.differences.is_empty()
    }

    /// For people, a difference a line.
    ///
    /// # Errors
    /// Whatever writing says.
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        for difference in &self.differences {
            writeln!(out, "{}", difference.sentence())?;
        }
        for problem in &self.unreadable {
            writeln!(out, "not read: {problem}")?;
        }
        let count = match self.differences.len() {
            0 => "no difference".to_owned(),
            1 => "1 difference".to_owned(),
            more => format!("{more} differences"),
        };
        writeln!(
            out,
            "{} prices compared as of {}, {count} ({} models of other kinds and {} of ours that are retired \
             left out)",
            self.compared, self.day, self.other_kinds, self.retired
        )
    }

    /// As one JSON document.
    ///
    /// # Errors
    /// Whatever writing says.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, self)?;
        writeln!(out)
    }
}

impl Difference {
    fn sentence(&self) -> String {
        let amount = |usd: Option<Usd>| usd.map_or_else(|| "—".to_owned(), |usd| usd.0.to_string());
        let Self { model, list, .. } = self;
        match self.kind {
            Kind::Changed => format!(
                "changed        {model} {list} {}: ours {}, LiteLLM {}",
                self.rate.unwrap_or_default(),
                amount(self.ours),
                amount(self.theirs)
            ),
            Kind::MissingHere => format!(
                "missing here   {model} {list}: LiteLLM has it as {}, input {}",
                self.key.as_deref().unwrap_or_default(),
                amount(self.theirs)
            ),
            Kind::MissingThere => {
                format!("missing there  {model} {list}: ours has it, input {}", amount(self.ours))
            }
        }
    }
}

fn missing_here(entry: &Entry) -> Difference {
    Difference {
        model: entry.model.clone(),
        list: entry.list.as_str(),
        kind: Kind::MissingHere,
        rate: None,
        ours: None,
        theirs: entry.low.input.map(per_million),
        key: Some(entry.key.clone()),
    }
}

fn missing_there(row: &PriceRow) -> Difference {
    Difference {
        model: row.model.clone(),
        list: PriceList::as_str(row.list),
        kind: Kind::MissingThere,
        rate: None,
        ours: Some(per_million(row.low.input)),
        theirs: None,
        key: None,
    }
}

/// The rates that differ. Where LiteLLM names no price for cached tokens or
/// thoughts it says nothing about them; where only one side has rates above
/// 200,000 tokens, that is a difference.
fn changes(row: &PriceRow, entry: &Entry) -> Vec<Difference> {
    let ours = |rates: &Rates| EntryRates {
        input: Some(rates.input),
        cached: Some(rates.cached),
        output: Some(rates.output),
        thoughts: Some(rates.thoughts.unwrap_or(rates.output)),
    };
    let (low, high) = (ours(&row.low), row.high.as_ref().map(ours).unwrap_or_default());
    let (their_low, their_high) = (entry.low, entry.high);
    let pairs: [(&'static str, Option<Rate>, Option<Rate>, bool); 8] = [
        ("input", low.input, their_low.input, true),
        ("cached_input", low.cached, their_low.cached, false),
        ("output", low.output, their_low.output, true),
        ("thoughts", low.thoughts, their_low.thoughts, false),
        ("above_200k.input", high.input, their_high.input, true),
        ("above_200k.cached_input", high.cached, their_high.cached, false),
        ("above_200k.output", high.output, their_high.output, true),
        ("above_200k.thoughts", high.thoughts, their_high.thoughts, false),
    ];
    let differs =
        |ours: Option<Rate>, theirs: Option<Rate>, named: bool| ours != theirs && (named || theirs.is_some());
    let differing = pairs.into_iter().filter(|(_, ours, theirs, named)| differs(*ours, *theirs, *named));
    differing
        .map(|(rate, ours, theirs, _)| Difference {
            model: row.model.clone(),
            list: row.list.as_str(),
            kind: Kind::Changed,
            rate: Some(rate),
            ours: ours.map(per_million),
            theirs: theirs.map(per_million),
            key: Some(entry.key.clone()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::litellm;
    use super::*;
    use crate::ledger::money::Validity;

    fn rate(text: &str) -> Rate {
        Rate::per_million(text).unwrap()
    }

    fn row(model: &str, list: PriceList) -> PriceRow {
        PriceRow {
            model: model.into(),
            list,
            valid: Validity::default(),
            low: Rates { input: rate("1.25"), cached: rate("0.125"), output: rate("10"), thoughts: None },
            high: None,
            at_least: false,
            retired: false,
            source: "test".into(),
        }
    }

    fn check(rows: Vec<PriceRow>, theirs: &str) -> (Check, Vec<String>) {
        let table = PriceTable::new(rows, vec![], None).unwrap();
        let check = Check::of(&table, litellm::read(theirs).unwrap(), Day(20_000));
        let mut out = Vec::new();
        check.write_text(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        (check, text.lines().map(str::to_owned).collect())
    }

    const PRO: &str = r#""litellm_provider":"gemini","mode":"chat","input_cost_per_token":1.25e-06,"output_cost_per_token":1e-05"#;

    #[test]
    fn equal_tables_have_no_difference() {
        let retired = PriceRow { retired: true, ..row("gemini-1", PriceList::GeminiApi) };
        let rows = vec![row("gemini-9-pro", PriceList::GeminiApi), retired];
        let (check, said) = check(rows, &format!(r#"{{"gemini/gemini-9-pro":{{{PRO}}}}}"#));
        assert!(check.is_clean());
        assert_eq!(
            said,
            [
                "1 prices compared as of 2024-10-04, no difference (0 models of other kinds and 1 of ours that \
              are retired left out)"
            ]
        );
    }

    #[test]
    fn differences_go_both_ways_with_both_numbers() {
        let high = Rates { input: rate("2.5"), cached: rate("0.25"), output: rate("15"), thoughts: None };
        let rows = vec![
            PriceRow { high: Some(high), ..row("gemini-9-pro", PriceList::GeminiApi) },
            row("gemini-9-pro", PriceList::VertexAi),
        ];
        let theirs = format!(
            r#"{{"gemini/gemini-9-pro":{{{PRO},"cache_read_input_token_cost":3e-07,"output_cost_per_token_above_200k_tokens":1.5e-05}},
            "gemini-9-pro":{{"litellm_provider":"vertex_ai-language-models","input_cost_per_token":2e-06,"output_cost_per_token":1e-05}},
            "vertex_ai/gemini-9-pro":{{"litellm_provider":"vertex_ai","input_cost_per_token":2e-06,"output_cost_per_token":1e-05}},
            "gemini/gemini-10":{{{PRO}}}}}"#
        );
        let (check, said) = check(rows, &theirs);
        assert!(!check.is_clean());
        assert_eq!(
            said[..said.len() - 1],
            [
                "missing here   gemini-10 gemini-api: LiteLLM has it as gemini/gemini-10, input 1.25",
                "changed        gemini-9-pro gemini-api above_200k.input: ours 2.5, LiteLLM —",
                "changed        gemini-9-pro gemini-api cached_input: ours 0.125, LiteLLM 0.3",
                "changed        gemini-9-pro vertex-ai input: ours 1.25, LiteLLM 2",
            ]
        );
        let json = serde_json::to_value(&check).unwrap();
        assert_eq!(json["differences"][2]["theirs"], 0.3);
        assert_eq!(json["differences"][0]["kind"], "missing_here");
    }

    #[test]
    fn what_only_we_have_is_missing_there() {
        let rows = vec![row("gemini-9-pro", PriceList::GeminiApi), row("gemini-9-pro", PriceList::VertexAi)];
        let (_, said) = check(rows, &format!(r#"{{"gemini/gemini-9-pro":{{{PRO}}}}}"#));
        assert_eq!(said[0], "missing there  gemini-9-pro vertex-ai: ours has it, input 1.25");
    }
}
