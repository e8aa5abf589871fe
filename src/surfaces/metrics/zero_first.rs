//! A new label set is exposed at 0 first (interface, Metrics).
//!
//! `increase()` and `rate()` cannot see what a series held when it appeared:
//! one that is born at 1,200 has spent nothing in their eyes. So a label set
//! born while this process serves stands at 0 until one scrape has seen it
//! there. Whoever scrapes too rarely gets the value after 90 seconds anyway.

use std::collections::BTreeSet;

use crate::store::read::TupleRow;

/// How long a label set waits for its first scrape, in ms since its birth.
pub const PATIENCE_MS: i64 = 90_000;

/// Which label sets still stand at 0. Pure: the clock is passed in.
#[derive(Debug, Default)]
pub struct ZeroFirst {
    /// Label sets that show their value. Nothing leaves: a counter that has
    /// shown its value must not fall back to 0. Bounded as the label sets are.
    released: BTreeSet<SetId>,
}

/// A label set: the table that holds it, and its id there.
pub type SetId = (Set, i64);

/// The tables of label sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Set {
    Spend,
    /// Refusals of a home and a model.
    QuotaModel,
    /// A limit.
    Bucket,
    /// Counters of a home.
    HomeCounter,
}

/// The label sets one scrape showed at 0. Hand it back to
/// [`ZeroFirst::confirm`] when the scrape has its answer.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use = "a scrape that is not confirmed has not been seen"]
pub struct Receipt {
    shown_at_zero: Vec<SetId>,
}

impl ZeroFirst {
    /// Starts with what the ledger holds when the process begins to serve:
    /// those label sets were exposed before, or are history, and show their value at once.
    #[must_use]
    pub fn new(existing: &[TupleRow]) -> Self {
        Self { released: existing.iter().map(|row| (Set::Spend, row.id)).collect() }
    }

    /// More label sets that the ledger holds when the process begins to serve.
    pub fn release(&mut self, existing: impl IntoIterator<Item = SetId>) {
        self.released.extend(existing);
    }

    /// Whether the label set stands at 0 at `now` (unix ms). Notes it on the receipt if so.
    pub fn holds(&mut self, row: &TupleRow, now: i64, receipt: &mut Receipt) -> bool {
        self.holds_set((Set::Spend, row.id), row.born_at, now, receipt)
    }

    /// The same for a label set of any table; one without a time of birth is history.
    pub fn holds_set(&mut self, set: SetId, born_at: Option<i64>, now: i64, receipt: &mut Receipt) -> bool {
        let Some(born_at) = born_at else { return false };
        if self.released.contains(&set) {
            return false;
        }
        if now.saturating_sub(born_at) >= PATIENCE_MS {
            self.released.insert(set);
            return false;
        }
        receipt.shown_at_zero.push(set);
        true
    }

    /// A scrape has seen these at 0; the next one sees their values.
    pub fn confirm(&mut self, receipt: Receipt) {
        self.released.extend(receipt.shown_at_zero);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::tokens::Classes;

    fn row(id: i64, born_at: Option<i64>) -> TupleRow {
        TupleRow {
            id,
            home: "ana".into(),
            project: "proj".into(),
            model: "gemini-2.5-pro".into(),
            role: "main".into(),
            born_at,
            requests: 1,
            tokens: Classes::default(),
            ..TupleRow::default()
        }
    }

    #[derive(Clone, Copy)]
    enum Do {
        /// Scrape at this time and take the answer; whether the set stands at 0.
        Scrape(i64, bool),
        /// The same, but the answer never arrives.
        Lost(i64, bool),
    }
    use Do::{Lost, Scrape};

    #[test]
    fn when_a_label_set_shows_its_value() {
        const T: i64 = 1_000_000;
        let born = Some(T);
        for (name, born_at, existing, steps) in [
            ("of a first import: at once", None, false, &[Scrape(T, false)][..]),
            ("existing at start: at once", born, true, &[Scrape(T + 1, false)]),
            (
                "new: zero, then its value",
                born,
                false,
                &[Scrape(T + 1, true), Scrape(T + 2, false), Scrape(T + 99_999, false)],
            ),
            (
                "an answer that got lost was not seen",
                born,
                false,
                &[Lost(T + 1, true), Scrape(T + 2, true), Scrape(T + 3, false)],
            ),
            ("nobody looks for 90 s: its value", born, false, &[Scrape(T + 90_000, false)]),
            (
                "just before 90 s: zero still",
                born,
                false,
                &[Scrape(T + 89_999, true), Scrape(T + 90_000, false)],
            ),
            (
                "lost answers do not wait for ever",
                born,
                false,
                &[Lost(T + 30_000, true), Lost(T + 60_000, true), Scrape(T + 90_000, false)],
            ),
            ("a clock set back: zero until seen", born, false, &[Scrape(T - 5_000, true), Scrape(T, false)]),
            (
                "what was shown after 90 s does not fall when the clock is set back",
                born,
                false,
                &[Scrape(T + 90_000, false), Scrape(T + 10, false)],
            ),
        ] {
            let row = row(7, born_at);
            let mut zero_first = ZeroFirst::new(if existing { std::slice::from_ref(&row) } else { &[] });
            for (i, step) in steps.iter().enumerate() {
                let (Scrape(now, want) | Lost(now, want)) = *step;
                let mut receipt = Receipt::default();
                assert_eq!(zero_first.holds(&row, now, &mut receipt), want, "{name}, step {i}");
                if matches!(step, Scrape(..)) {
                    zero_first.confirm(receipt);
                }
            }
        }
    }

    #[test]
    fn a_receipt_releases_only_what_it_showed() {
        let mut zero_first = ZeroFirst::default();
        let (a, b) = (row(1, Some(0)), row(2, Some(0)));
        let mut receipt = Receipt::default();
        assert!(zero_first.holds(&a, 1, &mut receipt));
        zero_first.confirm(receipt);
        let mut receipt = Receipt::default();
        assert!(!zero_first.holds(&a, 2, &mut receipt));
        assert!(zero_first.holds(&b, 2, &mut receipt));
        assert_eq!(receipt, Receipt { shown_at_zero: vec![(Set::Spend, 2)] });
    }

    #[test]
    fn two_scrapes_at_once_both_see_zero() {
        let mut zero_first = ZeroFirst::default();
        let set = row(1, Some(0));
        let (mut first, mut second) = (Receipt::default(), Receipt::default());
        assert!(zero_first.holds(&set, 1, &mut first));
        assert!(zero_first.holds(&set, 1, &mut second));
        zero_first.confirm(first);
        zero_first.confirm(second);
        assert!(!zero_first.holds(&set, 2, &mut Receipt::default()));
    }
}
