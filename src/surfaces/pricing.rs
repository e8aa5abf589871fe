//! How the homes pay, and what each token class of a request cost.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::Pricing;
use crate::ledger::money::{Billing, Picodollars, PriceList, PriceTable};
use crate::ledger::tokens::Class;
use crate::store::read::{HomeRow, RequestRow};

/// An amount for each class, in the order of [`Class::ALL`].
pub type ByClass = [Picodollars; Class::ALL.len()];

/// The prices in force and how each home pays.
#[derive(Clone, Debug, Default)]
pub struct HomePrices {
    table: Arc<PriceTable>,
    /// By the path of the home.
    homes: BTreeMap<String, Pricing>,
}

impl HomePrices {
    #[must_use]
    pub fn new(table: Arc<PriceTable>, homes: impl IntoIterator<Item = (String, Pricing)>) -> Self {
        Self { table, homes: homes.into_iter().collect() }
    }

    /// How a home pays; of one that is not configured any more nobody knows.
    #[must_use]
    pub fn of(&self, home: &HomeRow) -> Pricing {
        let unknown = Pricing { billing: Billing::Unknown, list: PriceList::GeminiApi };
        self.homes.get(&home.path).copied().unwrap_or(unknown)
    }

    /// The ledger's cost of a request, split by class, exactly summing to it.
    ///
    /// The ledger keeps one cost a request. The prices of its day say how it
    /// splits; where they have changed since, their proportions still do.
    #[must_use]
    pub fn by_class(&self, home: &HomeRow, model: &str, request: &RequestRow) -> ByClass {
        let amount = request.cost.amount();
        if amount == Picodollars::ZERO {
            return ByClass::default();
        }
        let tokens = request.reading.classes();
        let weights = match self.table.price(model, self.of(home).list, request.at) {
            Ok(row) => {
                let costs = row.cost(&request.reading).classes;
                Class::ALL.map(|class| costs.get(class).get())
            }
            Err(_) => Class::ALL.map(|class| i128::from(tokens.get(class))),
        };
        split(amount, weights)
    }
}

/// Splits an amount by weights; what division leaves over goes to the heaviest.
fn split(amount: Picodollars, weights: [i128; Class::ALL.len()]) -> ByClass {
    let amount = amount.get();
    let whole: i128 = weights.iter().sum();
    let heaviest = (0..weights.len()).max_by_key(|place| weights[*place]).unwrap_or(0);
    let mut parts = weights.map(|weight| match amount.checked_mul(weight) {
        _ if whole == 0 => 0,
        Some(product) => product / whole,
        None => amount / whole * weight,
    });
    parts[heaviest] += amount - parts.iter().sum::<i128>();
    parts.map(Picodollars::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::model::Role;
    use crate::ledger::money::{CostBound, CostSum, PriceRow, Rate, Rates, Validity};
    use crate::ledger::tokens::Reading;
    use crate::store::read::Claim;

    #[test]
    fn a_split_adds_up_to_the_amount() {
        for (amount, weights, want) in [
            (100, [50, 30, 0, 20, 0], [50, 30, 0, 20, 0]),
            (100, [1, 1, 0, 1, 0], [33, 33, 0, 34, 0]),
            (7, [0; 5], [0, 0, 0, 0, 7]),
            (0, [1, 2, 3, 4, 5], [0; 5]),
        ] {
            let parts = split(Picodollars::new(amount), weights).map(Picodollars::get);
            assert_eq!((parts, parts.iter().sum()), (want, amount));
        }
    }

    #[test]
    fn at_the_prices_of_the_table_the_split_is_the_tables() {
        let rate = |text| Rate::per_million(text).unwrap();
        let low = Rates { input: rate("1.25"), cached: rate("0.125"), output: rate("10"), thoughts: None };
        let row = PriceRow {
            model: "gemini-2.5-pro".into(),
            list: PriceList::GeminiApi,
            valid: Validity::default(),
            low,
            high: None,
            at_least: false,
            retired: false,
            source: String::new(),
        };
        let prices = HomePrices::new(PriceTable::new(vec![row], vec![], None).unwrap().into(), []);
        let home = HomeRow { id: 1, path: "/a".into(), name: "a".into(), imported: true };
        let reading = Reading { prompt: 1_000, cached: 400, tool: 5, output: 20, thoughts: 30 };
        let at = 1_796_032_800_000;
        let row = prices.table.price("gemini-2.5-pro", PriceList::GeminiApi, at).unwrap();
        let cost = row.cost(&reading);
        let mut request = RequestRow {
            id: 1,
            session_id: 1,
            model_id: 1,
            role: Role::Main,
            at,
            reading,
            model_inferred: false,
            cost: CostSum::from(&cost),
            above: false,
            requests: 1,
            claim: Claim::default(),
        };
        let parts = prices.by_class(&home, "gemini-2.5-pro", &request);
        assert_eq!(parts, Class::ALL.map(|class| cost.classes.get(class)));
        request.cost = CostSum::priced(cost.total() + cost.total(), CostBound::Exact);
        let twice: Picodollars = prices.by_class(&home, "gemini-2.5-pro", &request).into_iter().sum();
        assert_eq!(twice, request.cost.amount());
    }
}
