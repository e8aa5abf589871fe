//! What the costs of a report rest on beside the ledger, and how they are shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::civil::Date;

use super::number;
use crate::config::Pricing;
use crate::config::prices::date;
use crate::ledger::money::{
    Billing, CostBound, CostFigure, Currency, Picodollars, PriceList, PriceTable, Rounding,
};
use crate::store::read::HomeRow;

/// Prices, how homes pay, and what people count in.
#[derive(Clone, Debug, Default)]
pub struct Money {
    pub table: Arc<PriceTable>,
    /// How homes pay, by their path.
    pub homes: BTreeMap<String, Pricing>,
    /// `None`: US dollars.
    pub currency: Option<Currency>,
}

impl Money {
    /// How a home of the ledger pays; of one that is not configured any more
    /// nobody knows.
    pub(super) fn pricing(&self, home: Option<&HomeRow>) -> Pricing {
        let unknown = Pricing { billing: Billing::Unknown, list: PriceList::GeminiApi };
        home.and_then(|home| self.homes.get(&home.path)).copied().unwrap_or(unknown)
    }

    pub(super) fn as_of(&self) -> Option<Date> {
        self.table.as_of().map(date)
    }
}

/// How one or several homes pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pays {
    /// All alike.
    As(Billing),
    Mixed,
}

impl Pays {
    /// What several homes have in common; of none nobody knows.
    pub(super) fn of(homes: impl IntoIterator<Item = Billing>) -> Self {
        let mut homes = homes.into_iter();
        let first = homes.next().unwrap_or(Billing::Unknown);
        if homes.all(|other| other == first) { Self::As(first) } else { Self::Mixed }
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::As(billing) => billing.as_str(),
            Self::Mixed => "mixed",
        }
    }
}

/// What a report with costs says about them beside its figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    /// The day the prices in force were looked up.
    pub as_of: Option<Date>,
    /// How the homes of the total pay.
    pub pays: Pays,
    /// The homes with a seat, by name.
    pub seats: Vec<String>,
    /// The models that have tokens without a price, by name.
    pub unpriced_models: Vec<String>,
    pub currency: Option<Currency>,
}

impl Costs {
    /// `$1.24`, `≥ $1.24`, `~ $1.24`, `—`; in the user's currency where there is one.
    pub(super) fn shown(&self, cost: Option<CostFigure>) -> String {
        marked(cost, |usd, rounding| match &self.currency {
            Some(currency) => currency.shown(usd, rounding),
            None => usd.dollars(rounding),
        })
    }

    /// The same in few characters, from a thousand on: `≥ $1.2k`. Like counts
    /// in compact units it is never rounded up.
    pub(super) fn compact(&self, cost: Option<CostFigure>) -> String {
        let whole = |usd: Picodollars| match &self.currency {
            Some(currency) => currency.whole(usd),
            None => usd.get().div_euclid(Picodollars::DOLLAR.get()),
        };
        match cost.and_then(|cost| cost.usd).and_then(|usd| u64::try_from(whole(usd)).ok()) {
            Some(whole) if whole >= 1_000 => marked(cost, |_, _| {
                let count = number::compact(whole);
                self.currency.as_ref().map_or_else(|| format!("${count}"), |c| c.marked(&count))
            }),
            _ => self.shown(cost),
        }
    }
}

/// A lower bound goes down, anything else to the nearest.
fn marked(cost: Option<CostFigure>, shown: impl Fn(Picodollars, Rounding) -> String) -> String {
    let Some((usd, bound)) = cost.and_then(|cost| Some((cost.usd?, cost.bound))) else {
        return "—".to_owned();
    };
    match bound {
        CostBound::AtLeast => format!("≥ {}", shown(usd, Rounding::Down)),
        CostBound::Estimate => format!("~ {}", shown(usd, Rounding::HalfEven)),
        CostBound::Exact | CostBound::Unmeasured => shown(usd, Rounding::HalfEven),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(currency: Option<Currency>) -> Costs {
        Costs { as_of: None, pays: Pays::Mixed, seats: Vec::new(), unpriced_models: Vec::new(), currency }
    }

    fn figure(amount: i128, bound: CostBound) -> Option<CostFigure> {
        Some(CostFigure { usd: Some(Picodollars::new(amount)), bound, unpriced_tokens: 0 })
    }

    #[test]
    fn a_cost_says_what_it_claims() {
        let (costs, euro) = (costs(None), costs(Currency::new("EUR", "0.5").ok()));
        for (amount, bound, shown, compact, local) in [
            (1_239_000_000_000, CostBound::Exact, "$1.24", "$1.24", "€0.6195"),
            (1_239_000_000_000, CostBound::AtLeast, "≥ $1.23", "≥ $1.23", "≥ €0.6195"),
            (1_239_000_000_000, CostBound::Estimate, "~ $1.24", "~ $1.24", "~ €0.6195"),
            (1_299_000_000_000_000, CostBound::AtLeast, "≥ $1,299.00", "≥ $1.2k", "≥ €649.50"),
            (2_000_000_000_000_000_000, CostBound::Exact, "$2,000,000.00", "$2.0M", "€1.0M"),
        ] {
            let cost = figure(amount, bound);
            assert_eq!((costs.shown(cost).as_str(), costs.compact(cost).as_str()), (shown, compact));
            assert_eq!(euro.compact(cost), local);
        }
        assert_eq!(costs.shown(None), "—");
    }

    #[test]
    fn homes_pay_alike_or_mixed() {
        use Billing::{Metered, Seat};
        for (homes, want) in
            [(&[][..], "unknown"), (&[Seat, Seat], "seat"), (&[Metered, Seat, Metered], "mixed")]
        {
            assert_eq!(Pays::of(homes.iter().copied()).as_str(), want);
        }
    }
}
