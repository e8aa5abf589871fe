//! What a request costs at a price.

use super::amount::Picodollars;
use super::rate::Rates;
use super::sum::CostBound;
use super::table::PriceRow;
use crate::ledger::tokens::{Class, Classes, Reading};

/// A prompt of more tokens than this, cached ones included, puts the whole
/// request at the high rate, where the model has one.
pub const LONG_PROMPT: u64 = 200_000;

/// Which rates of a row apply to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    Low,
    High,
}

impl Tier {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::High => "high",
        }
    }
}

/// An amount for each token class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCosts([Picodollars; Class::ALL.len()]);

impl ClassCosts {
    fn at(rates: &Rates, tokens: &Classes) -> Self {
        Self(Class::ALL.map(|class| rates.of(class).times(tokens.get(class))))
    }

    #[must_use]
    pub fn get(&self, class: Class) -> Picodollars {
        self.0[class as usize]
    }

    #[must_use]
    pub fn total(&self) -> Picodollars {
        self.0.into_iter().sum()
    }
}

/// What a request, or some other lot of tokens, costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    pub tier: Tier,
    pub classes: ClassCosts,
    /// What its cached tokens would have cost as uncached ones, more than they did.
    pub cache_savings: Picodollars,
    /// What the high rates cost more than the low ones would have.
    pub long_context_surcharge: Picodollars,
    /// What the price lets it claim; its tokens may let it claim less.
    pub bound: CostBound,
}

impl Cost {
    #[must_use]
    pub fn total(&self) -> Picodollars {
        self.classes.total()
    }
}

impl PriceRow {
    /// The tier of a request with such a prompt; a row without high rates has one tier.
    #[must_use]
    pub fn tier(&self, prompt: u64) -> Tier {
        if prompt > LONG_PROMPT && self.high.is_some() { Tier::High } else { Tier::Low }
    }

    #[must_use]
    pub fn rates(&self, tier: Tier) -> &Rates {
        match tier {
            Tier::High => self.high.as_ref().unwrap_or(&self.low),
            Tier::Low => &self.low,
        }
    }

    /// The cost of one request.
    #[must_use]
    pub fn cost(&self, reading: &Reading) -> Cost {
        let bound = if self.at_least { CostBound::AtLeast } else { CostBound::Exact };
        self.cost_at(self.tier(reading.prompt), &reading.classes(), bound)
    }

    /// The cost of tokens from a source that does not tell cached or tool
    /// tokens apart, or not by request: at the low rates, and no bound either
    /// way (accounting 2.8).
    #[must_use]
    pub fn estimate(&self, tokens: &Classes) -> Cost {
        self.cost_at(Tier::Low, tokens, CostBound::Estimate)
    }

    fn cost_at(&self, tier: Tier, tokens: &Classes, bound: CostBound) -> Cost {
        let rates = self.rates(tier);
        let classes = ClassCosts::at(rates, tokens);
        let uncached = rates.input.times(tokens.cached_input);
        let at_low = ClassCosts::at(&self.low, tokens);
        let not_below_zero = |amount: Picodollars| amount.max(Picodollars::ZERO);
        Cost {
            tier,
            classes,
            cache_savings: not_below_zero(uncached - classes.get(Class::CachedInput)),
            long_context_surcharge: not_below_zero(classes.total() - at_low.total()),
            bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rate::Rate;
    use super::super::table::PriceList;
    use super::super::table::tests::{rates, row};
    use super::*;

    /// gemini-2.5-pro as listed in 2026.
    fn pro() -> PriceRow {
        PriceRow {
            low: rates("1.25", "0.125", "10"),
            high: Some(rates("2.5", "0.25", "15")),
            ..row("gemini-2.5-pro", PriceList::GeminiApi, "1.25")
        }
    }

    fn usd(cost: &Cost) -> String {
        cost.total().to_string()
    }

    #[test]
    fn a_long_prompt_puts_every_class_at_the_high_rate() {
        let reading = Reading { prompt: 250_000, cached: 200_000, output: 1_500, ..Reading::default() };
        let cost = pro().cost(&reading);
        assert_eq!((usd(&cost).as_str(), cost.tier), ("0.1975", Tier::High));
        assert_eq!(cost.classes.get(Class::UncachedInput).to_string(), "0.125");
        assert_eq!(cost.classes.get(Class::CachedInput).to_string(), "0.05");
        assert_eq!(cost.classes.get(Class::Output).to_string(), "0.0225");
        // 200,000 cached tokens at 2.50 instead of 0.25; all of it at low rates: 0.1025.
        assert_eq!(cost.cache_savings.to_string(), "0.45");
        assert_eq!(cost.long_context_surcharge.to_string(), "0.095");
    }

    #[test]
    fn exactly_200_000_is_low_and_cached_tokens_count_towards_it() {
        let cost = |prompt, cached| pro().cost(&Reading { prompt, cached, ..Reading::default() });
        assert_eq!(cost(200_000, 0).tier, Tier::Low);
        assert_eq!(usd(&cost(200_000, 0)), "0.25");
        assert_eq!(cost(200_001, 0).tier, Tier::High);
        assert_eq!(usd(&cost(200_001, 0)), "0.5000025");
        assert_eq!(cost(200_001, 200_001).tier, Tier::High);
        let flat =
            row("flash", PriceList::GeminiApi, "1").cost(&Reading { prompt: 1 << 20, ..Reading::default() });
        assert_eq!((flat.tier, flat.long_context_surcharge), (Tier::Low, Picodollars::ZERO));
    }

    #[test]
    fn tool_input_and_thoughts_stand_outside_the_prompt() {
        let reading = Reading { prompt: 199_999, tool: 7, thoughts: 919, output: 23, cached: 0 };
        let cost = pro().cost(&reading);
        assert_eq!(cost.tier, Tier::Low);
        assert_eq!(cost.classes.get(Class::ToolInput).to_string(), "0.00000875");
        assert_eq!(cost.classes.get(Class::Thoughts).to_string(), "0.00919");
        let own = PriceRow {
            low: Rates { thoughts: Some(Rate::per_million("3.5").unwrap()), ..pro().low },
            ..pro()
        };
        assert_eq!(own.cost(&reading).classes.get(Class::Thoughts).to_string(), "0.0032165");
    }

    #[test]
    fn the_largest_counts_a_journal_can_hold_do_not_overflow() {
        let max = i64::MAX as u64;
        let reading = Reading { prompt: max, cached: 0, tool: max, output: max, thoughts: max };
        let dear = PriceRow {
            high: None,
            low: rates("1000", "1000", "1000"),
            ..row("dear", PriceList::GeminiApi, "1000")
        };
        let cost = dear.cost(&reading);
        assert_eq!(cost.total().get(), 4 * i128::from(max) * 1_000_000_000);
        assert_eq!(cost.total().to_i64(), i64::MAX);
    }

    #[test]
    fn an_estimate_takes_the_low_tier_and_says_so() {
        let tokens = Classes { uncached_input: 250_000, ..Classes::default() };
        let cost = pro().estimate(&tokens);
        assert_eq!((cost.tier, cost.bound, usd(&cost).as_str()), (Tier::Low, CostBound::Estimate, "0.3125"));
    }

    #[test]
    fn a_price_that_may_have_been_higher_gives_a_lower_bound() {
        let between = PriceRow { at_least: true, ..pro() };
        assert_eq!(between.cost(&Reading::default()).bound, CostBound::AtLeast);
        assert_eq!(pro().cost(&Reading::default()).bound, CostBound::Exact);
    }

    #[test]
    fn a_cached_rate_above_the_input_rate_saves_nothing() {
        let odd = PriceRow { low: rates("1", "2", "1"), ..row("odd", PriceList::GeminiApi, "1") };
        let cost = odd.cost(&Reading { prompt: 10, cached: 10, ..Reading::default() });
        assert_eq!((cost.cache_savings, usd(&cost).as_str()), (Picodollars::ZERO, "0.00002"));
    }
}
