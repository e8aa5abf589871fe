//! Prices as columns: a line for each model, a second one for its rates above
//! 200,000 tokens, sources by number below.

use std::io::{self, Write};

use super::Listing;
use crate::config::prices::date;
use crate::ledger::money::{PriceList, PriceRow, Rates, Validity};

const HEADER: [&str; 8] = ["Model", "List", "Input", "Cached", "Output", "Thoughts", "Valid", "Source"];
/// The columns of numbers, which stand right.
const NUMBERS: std::ops::Range<usize> = 2..6;

type Line = [String; HEADER.len()];

pub(super) fn write(listing: &Listing<'_>, out: &mut dyn Write) -> io::Result<()> {
    let day = date(listing.day);
    write!(out, "Prices in US dollars per million tokens on {day}")?;
    match listing.as_of {
        Some(as_of) => writeln!(out, ", as looked up on {}", date(as_of))?,
        None => writeln!(out)?,
    }
    let mut sources = Sources::default();
    let (mut lines, mut retired) = (Vec::new(), None);
    for entry in merged(&listing.rows) {
        if entry.row().retired && retired.is_none() {
            retired = Some(lines.len());
        }
        lines.extend(entry.lines(&mut sources));
    }
    let widths = widths(&lines);
    let rule: usize = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
    writeln!(out, "\n{}\n{}", set(&HEADER.map(str::to_owned), &widths), "─".repeat(rule))?;
    for (place, line) in lines.iter().enumerate() {
        if retired == Some(place) {
            writeln!(out, "\nNo longer offered; journals still name them")?;
        }
        writeln!(out, "{}", set(line, &widths))?;
    }
    if !listing.aliases.is_empty() {
        writeln!(out)?;
    }
    for alias in &listing.aliases {
        writeln!(out, "{} is priced as {}{}", alias.alias, alias.model, in_brackets(&valid(alias.valid)))?;
    }
    writeln!(out, "\nSources")?;
    for (place, source) in sources.0.iter().enumerate() {
        writeln!(out, "  {:>2}  {source}", place + 1)?;
    }
    if listing.rows.iter().any(|row| row.at_least) {
        writeln!(out, "\n≥  the price changed on a day that is not known; the lower one counts, as a bound")?;
    }
    if !listing.homes.is_empty() {
        writeln!(out, "\nHomes")?;
    }
    for (home, pricing) in &listing.homes {
        writeln!(out, "  {home}  {pricing}")?;
    }
    Ok(())
}

fn in_brackets(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

/// Source texts, each once, by the number they are cited with.
#[derive(Default)]
struct Sources<'t>(Vec<&'t str>);

impl<'t> Sources<'t> {
    fn number(&mut self, source: &'t str) -> usize {
        let known = self.0.iter().position(|known| *known == source);
        known.unwrap_or_else(|| {
            self.0.push(source);
            self.0.len() - 1
        }) + 1
    }
}

/// A row, or the rows of both lists where they say the same.
enum Entry<'t> {
    One(&'t PriceRow),
    Both(&'t PriceRow, &'t PriceRow),
}

fn merged<'t>(rows: &[&'t PriceRow]) -> Vec<Entry<'t>> {
    let same = |a: &PriceRow, b: &PriceRow| {
        (&a.model, a.valid, &a.low, &a.high, a.at_least, a.retired)
            == (&b.model, b.valid, &b.low, &b.high, b.at_least, b.retired)
            && (a.list, b.list) == (PriceList::GeminiApi, PriceList::VertexAi)
    };
    let mut taken = vec![false; rows.len()];
    let mut entries = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        if taken[place] {
            continue;
        }
        let twin = (place + 1..rows.len()).find(|other| !taken[*other] && same(row, rows[*other]));
        match twin {
            Some(other) => {
                taken[other] = true;
                entries.push(Entry::Both(row, rows[other]));
            }
            None => entries.push(Entry::One(row)),
        }
    }
    entries
}

impl<'t> Entry<'t> {
    fn row(&self) -> &'t PriceRow {
        match self {
            Self::One(row) | Self::Both(row, _) => row,
        }
    }

    fn lines(&self, sources: &mut Sources<'t>) -> Vec<Line> {
        let row = self.row();
        let first = sources.number(&row.source);
        let (list, source) = match self {
            Self::One(row) => (row.list.as_str(), first.to_string()),
            Self::Both(_, other) => ("both", cited(first, sources.number(&other.source))),
        };
        let mark = if row.at_least { "≥ " } else { "" };
        let mut lines = vec![line(&row.model, list, mark, &row.low, &valid(row.valid), &source)];
        lines.extend(row.high.as_ref().map(|high| line("  above 200,000", "", mark, high, "", "")));
        lines
    }
}

fn cited(one: usize, other: usize) -> String {
    if one == other { one.to_string() } else { format!("{one}, {other}") }
}

fn line(name: &str, list: &str, mark: &str, rates: &Rates, valid: &str, source: &str) -> Line {
    let rate = |rate| format!("{mark}{rate}");
    [
        name.to_owned(),
        list.to_owned(),
        rate(rates.input),
        rate(rates.cached),
        rate(rates.output),
        rate(rates.thoughts.unwrap_or(rates.output)),
        valid.to_owned(),
        source.to_owned(),
    ]
}

fn valid(valid: Validity) -> String {
    match super::days(valid) {
        (None, None) => String::new(),
        (Some(from), None) => format!("from {from}"),
        (None, Some(until)) => format!("until {until}"),
        (Some(from), Some(until)) => format!("{from} to {until}"),
    }
}

fn widths(lines: &[Line]) -> [usize; HEADER.len()] {
    let mut widths = HEADER.map(str::len);
    for line in lines {
        for (width, text) in widths.iter_mut().zip(line) {
            *width = text.chars().count().max(*width);
        }
    }
    widths
}

fn set(line: &Line, widths: &[usize; HEADER.len()]) -> String {
    let mut text = String::new();
    for (place, (cell, width)) in line.iter().zip(widths).enumerate() {
        if place > 0 {
            text.push_str("  ");
        }
        let width = *width;
        if NUMBERS.contains(&place) {
            text.push_str(&format!("{cell:>width$}"));
        } else {
            text.push_str(&format!("{cell:width$}"));
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::money::{Billing, Day, PriceTable, Rate};

    fn row(model: &str, list: PriceList, input: &str, source: &str) -> PriceRow {
        let rate = |text| Rate::per_million(text).unwrap();
        PriceRow {
            model: model.into(),
            list,
            valid: Validity::default(),
            low: Rates { input: rate(input), cached: rate("0.125"), output: rate("10"), thoughts: None },
            high: None,
            at_least: false,
            retired: false,
            source: source.into(),
        }
    }

    fn table() -> PriceTable {
        let pro = |list, source| {
            let row = row("gemini-2.5-pro", list, "1.25", source);
            PriceRow { high: Some(Rates { input: Rate::per_million("2.5").unwrap(), ..row.low }), ..row }
        };
        let between = Validity { from: Some(Day(20_668)), until: Some(Day(20_701)) };
        let rows = vec![
            pro(PriceList::GeminiApi, "a"),
            pro(PriceList::VertexAi, "b"),
            PriceRow { retired: true, ..row("gemini-2.0-flash", PriceList::GeminiApi, "0.1", "a") },
            PriceRow { valid: between, at_least: true, ..row("gemini-3", PriceList::VertexAi, "0.75", "b") },
        ];
        PriceTable::new(rows, vec![], Some(Day(20_787))).unwrap()
    }

    fn homes() -> Vec<(String, crate::config::Pricing)> {
        let pricing = crate::config::Pricing { billing: Billing::Seat, list: PriceList::GeminiApi };
        vec![("ana".to_owned(), pricing)]
    }

    #[test]
    fn a_table_shows_what_applies_and_where_it_was_read() {
        let table = table();
        let mut out = Vec::new();
        Listing::of(&table, Day(20_670), false, homes()).write_text(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "Prices in US dollars per million tokens on 2026-08-05, as looked up on 2026-11-30

Model             List         Input   Cached  Output  Thoughts  Valid                     Source
─────────────────────────────────────────────────────────────────────────────────────────────────
gemini-2.5-pro    both          1.25    0.125      10        10                            1, 2
  above 200,000                  2.5    0.125      10        10
gemini-3          vertex-ai   ≥ 0.75  ≥ 0.125    ≥ 10      ≥ 10  2026-08-03 to 2026-09-05  2

No longer offered; journals still name them
gemini-2.0-flash  gemini-api     0.1    0.125      10        10                            1

Sources
   1  a
   2  b

≥  the price changed on a day that is not known; the lower one counts, as a bound

Homes
  ana  seat, gemini-api
"
        );
    }

    #[test]
    fn json_has_every_row_with_exact_numbers() {
        let table = table();
        let mut out = Vec::new();
        Listing::of(&table, Day(0), true, homes()).write_json(&mut out).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(json["day"], "1970-01-01");
        assert_eq!(json["as_of"], "2026-11-30");
        assert_eq!(json["prices"].as_array().unwrap().len(), 4);
        assert_eq!(json["prices"][0]["above_200k"]["input"], 2.5);
        assert_eq!(json["prices"][2]["valid_from"], "2026-08-03");
        assert_eq!(json["prices"][2]["at_least"], true);
        assert_eq!(json["homes"][0]["price_list"], "gemini-api");
        assert!(String::from_utf8(out).unwrap().contains("\"cached_input\": 0.125,"));
    }
}
