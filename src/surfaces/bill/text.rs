//! The comparison as a person reads it.

use std::io;

use super::{Cause, Reconciliation};
use crate::surfaces::money::Usd;
use crate::surfaces::report::grid::{Grid, printable, wrap};
use crate::surfaces::report::{number, time};

/// How many SKUs that were left out are named.
const NAMED: usize = 5;

impl Reconciliation {
    /// For a terminal of `width` columns.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn write_text(&self, width: usize, color: bool, out: &mut dyn io::Write) -> io::Result<()> {
        let zone = time::zone_name(&self.zone);
        match self.days {
            Some((first, last)) => writeln!(out, "Bill against ledger · {first} to {last} · {zone}\n")?,
            None => writeln!(out, "Bill against ledger · {zone}\n")?,
        }
        if !self.lines.is_empty() {
            for line in self.grid(width).lines(color) {
                writeln!(out, "{line}")?;
            }
            writeln!(out)?;
        }
        for sentence in self.sentences() {
            for line in wrap(&printable(&sentence), width) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    /// Where columns are scarce a day leaves out its year, which the heading has.
    fn grid(&self, width: usize) -> Grid {
        let texts = |cells: [&str; 7]| cells.map(str::to_owned).to_vec();
        // The mark of a bound: the ledger holds at least this.
        let at_least =
            |count: i128| if count == 0 { "0".to_owned() } else { format!("≥ {}", signed(count)) };
        let rows = self.lines.iter().map(|line| {
            let model = line.sku.model.strip_prefix("gemini-").unwrap_or(&line.sku.model);
            let day = line.day.to_string();
            let day = if width < 85 { &day[day.len() - 5..] } else { &day };
            let mut row =
                texts([day, &printable(model), line.sku.kind.as_str(), line.cause.short(), "", "", ""]);
            row[4] = at_least(line.ledger.into());
            row[5] = signed(line.billed);
            row[6] = signed(line.difference());
            row
        });
        let ledger = self.lines.iter().map(|line| i128::from(line.ledger)).sum::<i128>();
        let billed = self.lines.iter().map(|line| line.billed).sum::<i128>();
        let mut total = texts(["Total", "", "", "", "", "", ""]);
        total[4] = at_least(ledger);
        total[5] = signed(billed);
        total[6] = signed(billed - ledger);
        Grid {
            texts: 4,
            gap: 2,
            header: texts(["Day", "Model", "Tokens", "Cause", "Ledger", "Billed", "Difference"]),
            rows: rows.collect(),
            total,
        }
    }

    fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.lines.is_empty() {
            sentences.push("The bill has no tokens of a Gemini model.".to_owned());
        }
        let below = self.lines.iter().filter(|line| line.cause.is_below()).count();
        sentences.push(match below {
            0 => "Nowhere does the ledger claim more than was billed.".to_owned(),
            1 => "In 1 row the bill is below the ledger.".to_owned(),
            n => format!("In {n} rows the bill is below the ledger."),
        });
        for cause in Cause::ALL.into_iter().filter(|cause| self.lines.iter().any(|line| line.cause == *cause))
        {
            if let Some(words) = cause.words() {
                sentences.push(format!("{}: {words}.", cause.short()));
            }
        }
        sentences.push(format!(
            "Days are those of {} (--zone); Google bills by days of US Pacific time. What a bill gives as a day \
             stays that day.",
            time::zone_name(&self.zone)
        ));
        if let Some(cost) = self.lines.iter().map(|line| line.cost).sum() {
            sentences
                .push(format!("The bill's cost of these rows: {}, in its own currency.", decimal(Usd(cost))));
        }
        if !self.seats.is_empty() {
            sentences.push(format!(
                "Left out, as they have a seat and are not billed by the token: {}.",
                self.seats.join(", ")
            ));
        }
        let skipped: u64 = self.skipped.values().sum();
        if skipped > 0 {
            let mut named: Vec<&str> = self.skipped.keys().take(NAMED).map(String::as_str).collect();
            if self.skipped.len() > NAMED {
                named.push("…");
            }
            sentences.push(format!(
                "Rows of the bill that are no Gemini tokens: {skipped} ({}).",
                named.join("; ")
            ));
        }
        if self.unreadable > 0 {
            sentences.push(format!("Rows whose day or amount could not be read: {}.", self.unreadable));
        }
        sentences
    }
}

fn decimal(usd: Usd) -> String {
    usd.0.to_string()
}

fn signed(count: i128) -> String {
    let text = number::thousands(u64::try_from(count.unsigned_abs()).unwrap_or(u64::MAX));
    if count < 0 { format!("-{text}") } else { text }
}
