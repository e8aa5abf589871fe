//! Sums of costs and what they may claim (accounting 2.8).

use std::fmt;

use super::amount::{Picodollars, Rounding};
use super::cost::Cost;
use crate::ledger::bound::Bound;

/// What a cost claims: the vocabulary of [`Bound`], and one word more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CostBound {
    #[default]
    Exact,
    AtLeast,
    /// Too high or too low, nobody knows: no bound either way.
    Estimate,
    /// No number: nothing was measured, or nothing of it has a price.
    Unmeasured,
}

impl CostBound {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::AtLeast => "at_least",
            Self::Estimate => "estimate",
            Self::Unmeasured => "unmeasured",
        }
    }
}

/// A sum of costs. Starts as the empty sum: nothing, exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostSum {
    priced: Picodollars,
    unpriced_tokens: u64,
    any_priced: bool,
    at_least: bool,
    estimate: bool,
}

/// A cost as a surface shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostFigure {
    /// The priced part; `None` where no part of it is priced.
    pub usd: Option<Picodollars>,
    pub bound: CostBound,
    /// The tokens that it leaves out.
    pub unpriced_tokens: u64,
}

impl CostSum {
    /// A cost, with what its price lets it claim.
    #[must_use]
    pub fn priced(amount: Picodollars, bound: CostBound) -> Self {
        Self {
            priced: amount,
            any_priced: true,
            at_least: bound == CostBound::AtLeast,
            estimate: bound > CostBound::AtLeast,
            ..Self::default()
        }
    }

    /// Tokens without a price: a gap with a figure of its own, never $0. No
    /// tokens leave no gap: they cost nothing at any price.
    #[must_use]
    pub fn unpriced(tokens: u64) -> Self {
        Self { unpriced_tokens: tokens, ..Self::default() }
    }

    pub fn add(&mut self, other: &Self) {
        self.priced += other.priced;
        self.unpriced_tokens = self.unpriced_tokens.saturating_add(other.unpriced_tokens);
        self.any_priced |= other.any_priced;
        self.at_least |= other.at_least;
        self.estimate |= other.estimate;
    }

    /// The priced part, whatever it may claim.
    #[must_use]
    pub fn amount(&self) -> Picodollars {
        self.priced
    }

    #[must_use]
    pub fn unpriced_tokens(&self) -> u64 {
        self.unpriced_tokens
    }

    #[must_use]
    pub fn any_unpriced(&self) -> bool {
        self.unpriced_tokens > 0
    }

    #[must_use]
    pub fn is_estimate(&self) -> bool {
        self.estimate
    }

    /// The figure, given what the tokens claim that it is the cost of.
    #[must_use]
    pub fn figure(&self, tokens: Bound) -> CostFigure {
        let nothing_priced = self.any_unpriced() && !self.any_priced;
        let bound = if tokens == Bound::Unmeasured || nothing_priced {
            CostBound::Unmeasured
        } else if self.estimate {
            CostBound::Estimate
        } else if self.at_least || self.any_unpriced() || tokens == Bound::AtLeast {
            CostBound::AtLeast
        } else {
            CostBound::Exact
        };
        let usd = (bound != CostBound::Unmeasured).then_some(self.priced);
        CostFigure { usd, bound, unpriced_tokens: self.unpriced_tokens }
    }
}

impl From<&Cost> for CostSum {
    fn from(cost: &Cost) -> Self {
        Self::priced(cost.total(), cost.bound)
    }
}

/// `$1.24`, `≥ $1.24`, `~ $1.24`, `—`. A lower bound is rounded down.
impl fmt::Display for CostFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(usd) = self.usd else { return f.pad("—") };
        f.pad(&match self.bound {
            CostBound::AtLeast => format!("≥ {}", usd.dollars(Rounding::Down)),
            CostBound::Estimate => format!("~ {}", usd.dollars(Rounding::HalfEven)),
            CostBound::Exact | CostBound::Unmeasured => usd.dollars(Rounding::HalfEven),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cents(cents: i128, bound: CostBound) -> CostSum {
        CostSum::priced(Picodollars::new(cents * 10_000_000_000), bound)
    }

    fn sum(parts: &[CostSum]) -> CostSum {
        let mut sum = CostSum::default();
        parts.iter().for_each(|part| sum.add(part));
        sum
    }

    #[test]
    fn the_claim_of_a_sum_follows_from_its_parts_and_its_tokens() {
        use CostBound::{AtLeast, Estimate, Exact};
        let exact = cents(124, Exact);
        for (parts, tokens, shown, bound) in [
            (&[][..], Bound::Exact, "$0.00", "exact"),
            (&[exact], Bound::Exact, "$1.24", "exact"),
            (&[exact], Bound::AtLeast, "≥ $1.24", "at_least"),
            (&[exact, cents(1, AtLeast)], Bound::Exact, "≥ $1.25", "at_least"),
            (&[exact, CostSum::unpriced(5)], Bound::Exact, "≥ $1.24", "at_least"),
            (&[exact, CostSum::unpriced(0)], Bound::Exact, "$1.24", "exact"),
            (&[exact, cents(1, Estimate)], Bound::AtLeast, "~ $1.25", "estimate"),
            (&[exact, cents(1, Estimate), CostSum::unpriced(5)], Bound::Exact, "~ $1.25", "estimate"),
            (&[CostSum::unpriced(5)], Bound::Exact, "—", "unmeasured"),
            (&[CostSum::unpriced(0)], Bound::Exact, "$0.00", "exact"),
            (&[cents(0, Exact), CostSum::unpriced(5)], Bound::Exact, "≥ $0.00", "at_least"),
            (&[], Bound::Unmeasured, "—", "unmeasured"),
        ] {
            let figure = sum(parts).figure(tokens);
            assert_eq!((figure.to_string().as_str(), figure.bound.as_str()), (shown, bound), "{parts:?}");
            assert_eq!(figure.usd.is_none(), bound == "unmeasured");
        }
    }

    #[test]
    fn a_lower_bound_is_rounded_down_and_nothing_else_is() {
        let amount = Picodollars::new(1_239_000_000_000);
        let shown = |bound| CostSum::priced(amount, bound).figure(Bound::Exact).to_string();
        assert_eq!(shown(CostBound::Exact), "$1.24");
        assert_eq!(shown(CostBound::AtLeast), "≥ $1.23");
        assert_eq!(shown(CostBound::Estimate), "~ $1.24");
    }

    #[test]
    fn a_figure_can_be_set_in_a_column() {
        assert_eq!(format!("{:>9}", cents(124, CostBound::AtLeast).figure(Bound::Exact)), "  ≥ $1.24");
    }

    fn part() -> impl Strategy<Value = CostSum> {
        let bound = prop_oneof![Just(CostBound::Exact), Just(CostBound::AtLeast), Just(CostBound::Estimate)];
        prop_oneof![
            (0_i128..=1 << 90, bound)
                .prop_map(|(amount, bound)| CostSum::priced(Picodollars::new(amount), bound)),
            prop_oneof![0_u64..100, Just(u64::MAX)].prop_map(CostSum::unpriced),
            Just(CostSum::default()),
        ]
    }

    proptest! {
        #[test]
        fn sums_do_not_depend_on_order_or_grouping(
            parts in prop::collection::vec(part(), 0..8).prop_shuffle(),
            cut in 0_usize..8,
        ) {
            let whole = sum(&parts);
            let mut turned = parts.clone();
            turned.reverse();
            prop_assert_eq!(sum(&turned), whole);
            let (left, right) = parts.split_at(cut.min(parts.len()));
            let mut grouped = sum(left);
            grouped.add(&sum(right));
            prop_assert_eq!(grouped, whole);
        }

        #[test]
        fn adding_never_makes_a_claim_stronger_nor_a_figure_smaller(a in part(), b in part()) {
            let (before, after) = (a.figure(Bound::Exact), sum(&[a, b]).figure(Bound::Exact));
            if let (Some(was), Some(is)) = (before.usd, after.usd) {
                prop_assert!(is >= was && after.bound >= before.bound);
            }
            prop_assert!(after.unpriced_tokens >= before.unpriced_tokens);
        }
    }
}
