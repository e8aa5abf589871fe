//! Sums and what they may claim (accounting 2.8).

use serde::{Serialize, Serializer};

use super::bound::{Bound, Reasons};
use super::model::Role;
use super::money::{CostFigure, CostSum};
use super::tokens::{Classes, Reading};

/// A source that a figure rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Source {
    Journal,
    Prompt,
    HeadlessStats,
    Telemetry,
}

impl Source {
    pub const ALL: [Self; 4] = [Self::Journal, Self::Prompt, Self::HeadlessStats, Self::Telemetry];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Journal => "journal",
            Self::Prompt => "prompt",
            Self::HeadlessStats => "headless_stats",
            Self::Telemetry => "telemetry",
        }
    }
}

/// The set of sources a figure rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Basis(u8);

impl Basis {
    pub fn insert(&mut self, source: Source) {
        self.0 |= 1 << source as u8;
    }

    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// As a number for a row; sources keep their place.
    #[must_use]
    pub fn bits(self) -> i64 {
        i64::from(self.0)
    }

    /// What [`Basis::bits`] made; bits of no source are dropped.
    #[must_use]
    pub fn from_bits(bits: i64) -> Self {
        let known = |source: &Source| bits & (1 << *source as u8) != 0;
        Source::ALL.into_iter().filter(known).fold(Self::default(), |mut basis, source| {
            basis.insert(source);
            basis
        })
    }

    pub fn iter(self) -> impl Iterator<Item = Source> {
        Source::ALL.into_iter().filter(move |source| self.0 & (1 << *source as u8) != 0)
    }
}

impl Serialize for Basis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Source::as_str))
    }
}

/// How many turns of a sum have each class. Turns need a door that sees
/// prompts end; a journal alone makes none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TurnCounts {
    pub complete: u64,
    pub lower_bound: u64,
    pub unknown: u64,
}

/// A sum of requests and unmeasured spend, with its claim. Starts as the empty
/// sum: zero, exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spend {
    /// Distinct billed requests, subagents included.
    pub requests: u64,
    pub subagent_requests: u64,
    pub turns: TurnCounts,
    pub reasons: Reasons,
    pub basis: Basis,
    classes: Classes,
    /// Tokens that requests called uncached and another source knows were cached.
    moved: u64,
    measured: bool,
    unmeasured: bool,
    cost: Option<CostSum>,
}

impl Spend {
    /// Adds one journal request (accounting R16).
    pub fn add_request(&mut self, role: Role, reading: Reading) {
        self.requests += 1;
        if role == Role::Subagent {
            self.subagent_requests += 1;
        }
        self.classes.add(&reading.classes());
        self.measured = true;
        self.basis.insert(Source::Journal);
    }

    /// Adds what a turn's figure holds above its requests (accounting 2.7), and
    /// how many billed requests are known to be in it.
    pub fn add_above(&mut self, role: Role, requests: u64, reading: Reading) {
        self.requests += requests;
        if role == Role::Subagent {
            self.subagent_requests += requests;
        }
        self.classes.add(&reading.classes());
        self.moved = self.moved.saturating_add(reading.cached.saturating_sub(reading.prompt));
        self.measured = true;
    }

    /// Counts a turn with its class.
    pub fn count_turn(&mut self, bound: Bound) {
        match bound {
            Bound::Exact => self.turns.complete += 1,
            Bound::AtLeast => self.turns.lower_bound += 1,
            Bound::Unmeasured => self.turns.unknown += 1,
        }
    }

    /// Names sources that the figure rests on.
    pub fn rest_on(&mut self, basis: Basis) {
        self.basis = self.basis.union(basis);
    }

    /// Adds spend of which nothing was measured: no number, not zero (accounting R40).
    pub fn add_unmeasured(&mut self) {
        self.unmeasured = true;
    }

    /// Adds what something costs, or that it has no price. Whoever adds the
    /// cost of one request adds that of all: a request left out is no gap.
    pub fn add_cost(&mut self, cost: &CostSum) {
        self.cost.get_or_insert_default().add(cost);
    }

    /// Adds a figure that no door but the journal watcher saw: it stays a
    /// lower bound (accounting row 38), for these reasons.
    pub fn demote(&mut self, reasons: Reasons) {
        self.reasons = self.reasons.union(reasons);
    }

    /// Adds another sum: complete only if every member is (accounting R39).
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.subagent_requests += other.subagent_requests;
        self.turns.complete += other.turns.complete;
        self.turns.lower_bound += other.turns.lower_bound;
        self.turns.unknown += other.turns.unknown;
        self.reasons = self.reasons.union(other.reasons);
        self.basis = self.basis.union(other.basis);
        self.classes.add(&other.classes);
        self.moved = self.moved.saturating_add(other.moved);
        self.measured |= other.measured;
        self.unmeasured |= other.unmeasured;
        if let Some(cost) = &other.cost {
            self.add_cost(cost);
        }
    }

    #[must_use]
    pub fn bound(&self) -> Bound {
        match (self.measured, self.unmeasured) {
            (false, true) => Bound::Unmeasured,
            (_, true) => Bound::AtLeast,
            (_, false) if self.reasons.is_empty() => Bound::Exact,
            (_, false) => Bound::AtLeast,
        }
    }

    /// The measured tokens; `None` where nothing was measured.
    #[must_use]
    pub fn tokens(&self) -> Option<Classes> {
        let mut classes = self.classes;
        classes.uncached_input = classes.uncached_input.saturating_sub(self.moved);
        (self.bound() != Bound::Unmeasured).then_some(classes)
    }

    /// The cost, with no more of a claim than the tokens have; `None` where
    /// nobody asked for prices.
    #[must_use]
    pub fn cost(&self) -> Option<CostFigure> {
        Some(self.cost?.figure(self.bound()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::bound::Reason;

    fn request(output: u64) -> Spend {
        let mut spend = Spend::default();
        spend.add_request(Role::Main, Reading { output, ..Reading::default() });
        spend
    }

    #[test]
    fn the_empty_sum_is_zero_and_exact() {
        let spend = Spend::default();
        assert_eq!(spend.bound(), Bound::Exact);
        assert_eq!(spend.tokens(), Some(Classes::default()));
    }

    #[test]
    fn r39_one_bound_makes_the_sum_a_bound() {
        let mut sum = request(5);
        assert_eq!(sum.bound(), Bound::Exact);
        let mut orphan = request(7);
        orphan.demote(Reasons::WATCHER_ONLY);
        sum.add(&orphan);
        assert_eq!(sum.bound(), Bound::AtLeast);
        assert_eq!(sum.tokens().map(|t| t.output), Some(12));
        assert!(sum.reasons.contains(Reason::Orphan));
    }

    #[test]
    fn r40_all_unmeasured_has_no_number_and_one_unmeasured_makes_a_bound() {
        let mut sum = Spend::default();
        sum.add_unmeasured();
        assert_eq!(sum.bound(), Bound::Unmeasured);
        assert_eq!(sum.tokens(), None);
        sum.add(&request(3));
        assert_eq!(sum.bound(), Bound::AtLeast);
        assert_eq!(sum.tokens().map(|t| t.output), Some(3));
    }

    #[test]
    fn a_cost_inherits_the_bound_of_its_tokens_and_gaps_are_no_zero() {
        use crate::ledger::money::{CostBound, Picodollars};
        let mut sum = request(5);
        assert_eq!(sum.cost(), None, "without prices there is no cost, not $0");
        sum.add_cost(&CostSum::priced(Picodollars::new(50_000_000), CostBound::Exact));
        assert_eq!(sum.cost().unwrap().to_string(), "$0.000050");
        let mut orphan = request(7);
        orphan.add_cost(&CostSum::unpriced(7));
        assert_eq!(orphan.cost().unwrap().usd, None);
        sum.add(&orphan);
        let cost = sum.cost().unwrap();
        assert_eq!((cost.bound, cost.unpriced_tokens), (CostBound::AtLeast, 7));
        let mut demoted = request(1);
        demoted.add_cost(&CostSum::priced(Picodollars::DOLLAR, CostBound::Exact));
        demoted.demote(Reasons::WATCHER_ONLY);
        assert_eq!(demoted.cost().unwrap().to_string(), "≥ $1.00");
    }

    #[test]
    fn sums_do_not_depend_on_grouping_or_order() {
        let mut unmeasured = Spend::default();
        unmeasured.add_unmeasured();
        let parts = [request(1), unmeasured, request(4), Spend::default()];
        let mut left = Spend::default();
        parts.iter().for_each(|p| left.add(p));
        let mut right = Spend::default();
        let mut tail = parts[2];
        tail.add(&parts[3]);
        right.add(&tail);
        right.add(&parts[1]);
        right.add(&parts[0]);
        assert_eq!(left, right);
    }
}
