//! What pricing history anew changed, for a person and for a script.

use std::io::{self, Write};

use serde::Serialize;

use super::money::Usd;
use crate::ledger::money::{Picodollars, Rounding};

/// What changed, by model.
#[derive(Debug, Serialize)]
pub struct Changes {
    schema: u32,
    /// Requests looked at.
    requests: u64,
    changed: u64,
    models: Vec<Model>,
}

/// What changed for one model.
#[derive(Clone, Debug, Serialize)]
pub struct Model {
    pub model: String,
    /// Requests whose cost changed.
    pub changed: u64,
    pub before_usd: Usd,
    pub after_usd: Usd,
    /// Tokens without a price.
    pub unpriced_before: u64,
    pub unpriced_after: u64,
}

impl Changes {
    /// Models where nothing changed are left out.
    #[must_use]
    pub fn new(requests: u64, models: impl IntoIterator<Item = Model>) -> Self {
        let models: Vec<_> = models.into_iter().filter(|model| model.changed > 0).collect();
        Self { schema: 1, requests, changed: models.iter().map(|model| model.changed).sum(), models }
    }

    /// # Errors
    /// What writing says.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, self)?;
        writeln!(out)
    }

    /// # Errors
    /// What writing says.
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.changed == 0 {
            return writeln!(out, "Nothing changed: {} requests have the price they had.", self.requests);
        }
        let dollars = |amount: Picodollars| amount.dollars(Rounding::HalfEven);
        for model in &self.models {
            let (before, after) = (model.before_usd.0, model.after_usd.0);
            write!(
                out,
                "{}: {} requests, {} before, {} now",
                model.model,
                model.changed,
                dollars(before),
                dollars(after)
            )?;
            match (model.unpriced_before, model.unpriced_after) {
                (0, 0) => writeln!(out)?,
                (was, is) => writeln!(out, "; tokens without a price: {was} before, {is} now")?,
            }
        }
        writeln!(
            out,
            "{} of {} requests changed. Counters keep the first price.",
            self.changed, self.requests
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(changed: u64) -> Model {
        Model {
            model: "gemini-2.5-pro".into(),
            changed,
            before_usd: Usd(Picodollars::from(0)),
            after_usd: Usd(Picodollars::from(1_240_000_000_000)),
            unpriced_before: 700,
            unpriced_after: 0,
        }
    }

    fn text(changes: &Changes) -> String {
        let mut out = Vec::new();
        changes.write_text(&mut out).expect("writes");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn says_what_changed_and_what_did_not() {
        assert_eq!(
            text(&Changes::new(5, [model(2)])),
            "gemini-2.5-pro: 2 requests, $0.00 before, $1.24 now; tokens without a price: 700 before, 0 now\n\
             2 of 5 requests changed. Counters keep the first price.\n"
        );
        assert_eq!(
            text(&Changes::new(5, [model(0)])),
            "Nothing changed: 5 requests have the price they had.\n"
        );
    }
}
