//! Budgets: what was spent of a limit, what is left, and what may be said of it.
//!
//! A spent figure that may be short is a lower bound; what is left of the
//! limit is then an upper bound (accounting 2.8). So "over" can be claimed from
//! a lower bound, and "not over" never is.

use std::fmt;
use std::str::FromStr;

use super::bound::Bound;
use super::money::{CostBound, CostFigure, CostSum, Picodollars, Rounding};

/// A limit on what is spent within a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// What it is called; no two have the same name.
    pub name: String,
    /// Above nothing.
    pub limit: Picodollars,
    pub period: Period,
    pub scope: Scope,
    /// Ascending, each once.
    pub thresholds: Vec<Threshold>,
}

/// A period of the calendar, in the configured time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Period {
    Day,
    /// An ISO week, from its Monday.
    Week,
    Month,
}

impl Period {
    pub const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }
}

/// Whose spend a budget is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    All,
    /// The projects with this name, in whichever home.
    Project(String),
    /// A canonical model name.
    Model(String),
    Home(String),
}

/// `all`, `project web`.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Project(name) => write!(f, "project {name}"),
            Self::Model(name) => write!(f, "model {name}"),
            Self::Home(name) => write!(f, "home {name}"),
        }
    }
}

/// A share of a limit that is worth a word when it is reached, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Threshold(u32);

impl Threshold {
    const WHOLE: i128 = 1_000_000;
    /// Ten times the limit.
    pub const MAX: Self = Self(10_000_000);
    /// Half, four fifths, all of it.
    pub const DEFAULT: [Self; 3] = [Self(500_000), Self(800_000), Self(1_000_000)];

    #[must_use]
    pub fn millionths(self) -> u32 {
        self.0
    }

    /// Whether so much of the limit is reached, to the last digit.
    #[must_use]
    pub fn reached(self, spent: Picodollars, limit: Picodollars) -> bool {
        spent.get().saturating_mul(Self::WHOLE) >= limit.get().saturating_mul(i128::from(self.0))
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is no share of a limit: write one such as 0.8, above 0 and at most 10");
        // The same digits as an amount have: a dollar is 10^12, the whole 10^6.
        let share = text.parse::<Picodollars>().map_err(|_| wrong())?.get();
        let millionths = u32::try_from(share / Self::WHOLE).map_err(|_| wrong())?;
        if share % Self::WHOLE != 0 {
            return Err(format!("`{text}` has more than six decimals"));
        }
        Some(Self(millionths)).filter(|it| Self(0) < *it && *it <= Self::MAX).ok_or_else(wrong)
    }
}

/// The decimal: `0.8`.
impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Picodollars::new(i128::from(self.0) * Self::WHOLE), f)
    }
}

/// That a threshold was reached in a period: told once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Firing {
    pub budget: String,
    pub period: Period,
    /// The first day of the period, `2026-11-01`.
    pub starts: String,
    pub threshold: Threshold,
    pub hook: Hook,
}

/// Who is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hook {
    Webhook,
    Command,
}

impl Hook {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Command => "command",
        }
    }
}

/// The spend of a budget in one period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// What is priced and no estimate.
    firm: CostSum,
    whole: CostSum,
    measured: bool,
    unmeasured: bool,
    at_least: bool,
}

impl Spent {
    /// Adds what something costs whose tokens claim `tokens`.
    pub fn add(&mut self, cost: &CostSum, tokens: Bound) {
        if tokens == Bound::Unmeasured {
            return self.add_unmeasured();
        }
        self.measured = true;
        self.at_least |= tokens == Bound::AtLeast;
        self.whole.add(cost);
        if !cost.is_estimate() {
            self.firm.add(cost);
        }
    }

    /// Adds spend of which nothing was measured.
    pub fn add_unmeasured(&mut self) {
        self.unmeasured = true;
    }

    /// What was spent, with no more of a claim than its tokens and prices have.
    #[must_use]
    pub fn figure(&self) -> CostFigure {
        self.whole.figure(match (self.measured, self.unmeasured) {
            (false, true) => Bound::Unmeasured,
            (true, true) => Bound::AtLeast,
            (_, false) if self.at_least => Bound::AtLeast,
            (_, false) => Bound::Exact,
        })
    }

    /// So much was spent for certain: what is estimated proves nothing.
    #[must_use]
    pub fn at_least(&self) -> Picodollars {
        self.firm.amount()
    }
}

/// Times of a period, in unix milliseconds; the end is the next one's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed {
    pub start: i64,
    pub end: i64,
    pub now: i64,
}

/// Before this share of a period, in percent, nothing is said about its end.
const TOO_EARLY: i128 = 3;

impl Elapsed {
    fn whole(self) -> i128 {
        (i128::from(self.end) - i128::from(self.start)).max(1)
    }

    fn past(self) -> i128 {
        (i128::from(self.now) - i128::from(self.start)).clamp(0, self.whole())
    }

    /// The share of the period that has passed.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub fn share(self) -> f64 {
        self.past() as f64 / self.whole() as f64
    }

    /// Whether enough of the period has passed to go by.
    fn tells(self) -> bool {
        self.past() * 100 >= self.whole() * TOO_EARLY
    }
}

/// What is left of a limit, and what that claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Below nothing where more was spent; `None`: nobody knows.
    pub usd: Option<Picodollars>,
    pub bound: LeftBound,
}

/// The vocabulary of [`CostBound`], seen from the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftBound {
    Exact,
    /// An upper bound: what was not seen is gone, too.
    AtMost,
    Estimate,
    Unmeasured,
}

impl LeftBound {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::AtMost => "at_most",
            Self::Estimate => "estimate",
            Self::Unmeasured => "unmeasured",
        }
    }
}

/// `$38.80`, `≤ $38.80`, `~ $38.80`, `—`. An upper bound is rounded up.
impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(usd) = self.usd else { return f.pad("—") };
        f.pad(&match self.bound {
            // Up is down of what is missing.
            LeftBound::AtMost => {
                let down = (-usd).dollars(Rounding::Down);
                let up = match down.strip_prefix('-') {
                    Some(up) => up.to_owned(),
                    None if usd == Picodollars::ZERO => down,
                    None => format!("-{down}"),
                };
                format!("≤ {up}")
            }
            LeftBound::Estimate => format!("~ {}", usd.dollars(Rounding::HalfEven)),
            LeftBound::Exact | LeftBound::Unmeasured => usd.dollars(Rounding::HalfEven),
        })
    }
}

/// How a budget stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    pub spent: CostFigure,
    /// The part of it that is certain: what is estimated proves nothing.
    pub certain: Picodollars,
    pub left: Left,
    /// Of the limit; with the claim of `spent`.
    pub share: Option<f64>,
    /// Of the period.
    pub elapsed: f64,
    /// The share of the limit by the share of the period: above 1 it will not
    /// last. None while it is too early to tell.
    pub pace: Option<f64>,
    /// What will have been spent at this pace, with the claim of `spent`. None
    /// while it is too early to tell, or where nothing was measured.
    pub forecast: Option<CostFigure>,
    /// More was spent for certain.
    pub over: bool,
    /// The thresholds reached for certain, ascending.
    pub reached: Vec<Threshold>,
}

impl Budget {
    #[must_use]
    pub fn standing(&self, spent: &Spent, elapsed: Elapsed) -> Standing {
        let figure = spent.figure();
        let bound = match figure.bound {
            CostBound::Exact => LeftBound::Exact,
            CostBound::AtLeast => LeftBound::AtMost,
            CostBound::Estimate => LeftBound::Estimate,
            CostBound::Unmeasured => LeftBound::Unmeasured,
        };
        let share = figure.usd.map(|usd| usd.to_f64() / self.limit.to_f64());
        let telling = elapsed.tells();
        let whole = |usd: Picodollars| CostFigure { usd: Some(extended(usd, elapsed)), ..figure };
        Standing {
            spent: figure,
            certain: spent.at_least(),
            left: Left { usd: figure.usd.map(|usd| self.limit - usd), bound },
            share,
            elapsed: elapsed.share(),
            pace: share.filter(|_| telling).map(|share| share / elapsed.share()),
            forecast: figure.usd.filter(|_| telling).map(whole),
            over: spent.at_least() > self.limit,
            reached: self
                .thresholds
                .iter()
                .copied()
                .filter(|it| it.reached(spent.at_least(), self.limit))
                .collect(),
        }
    }
}

/// What a part of a period comes to for the whole of it.
fn extended(usd: Picodollars, elapsed: Elapsed) -> Picodollars {
    let past = elapsed.past().max(1);
    let amount = usd.get().checked_mul(elapsed.whole()).map_or(usd.get() / past, |product| product / past);
    Picodollars::new(amount)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY: i64 = 86_400_000;

    fn usd(text: &str) -> Picodollars {
        text.parse().unwrap()
    }

    fn budget(limit: &str) -> Budget {
        Budget {
            name: "team".into(),
            limit: usd(limit),
            period: Period::Month,
            scope: Scope::All,
            thresholds: Threshold::DEFAULT.to_vec(),
        }
    }

    fn spent(parts: &[(&str, CostBound)], tokens: Bound) -> Spent {
        let mut spent = Spent::default();
        parts.iter().for_each(|(amount, bound)| spent.add(&CostSum::priced(usd(amount), *bound), tokens));
        spent
    }

    /// So many of 100 days.
    fn after(days: i64) -> Elapsed {
        Elapsed { start: 0, end: 100 * DAY, now: days * DAY }
    }

    fn shown(standing: &Standing) -> [String; 4] {
        [
            standing.spent.to_string(),
            standing.left.to_string(),
            standing.forecast.map_or("none".into(), |forecast| forecast.to_string()),
            standing.pace.map_or("none".into(), |pace| format!("{pace:.2}")),
        ]
    }

    #[test]
    fn what_is_left_claims_the_other_side_of_what_was_spent() {
        use CostBound::{AtLeast, Estimate, Exact};
        for (parts, tokens, want) in [
            (&[("61.205", Exact)][..], Bound::Exact, ["$61.20", "$38.80", "$122.41", "1.22"]),
            (&[("61.209", Exact)], Bound::AtLeast, ["≥ $61.20", "≤ $38.80", "≥ $122.41", "1.22"]),
            (&[("61.20", AtLeast)], Bound::Exact, ["≥ $61.20", "≤ $38.80", "≥ $122.40", "1.22"]),
            (&[("40", Exact), ("2", Estimate)], Bound::Exact, ["~ $42.00", "~ $58.00", "~ $84.00", "0.84"]),
            (&[("100", Exact)], Bound::AtLeast, ["≥ $100.00", "≤ $0.00", "≥ $200.00", "2.00"]),
            (&[("104.5", Exact)], Bound::AtLeast, ["≥ $104.50", "≤ -$4.50", "≥ $209.00", "2.09"]),
            (&[], Bound::Exact, ["$0.00", "$100.00", "$0.00", "0.00"]),
        ] {
            assert_eq!(shown(&budget("100").standing(&spent(parts, tokens), after(50))), want, "{parts:?}");
        }
    }

    #[test]
    fn what_nobody_measured_has_no_figure_and_claims_nothing() {
        let mut unmeasured = Spent::default();
        unmeasured.add_unmeasured();
        let mut unpriced = Spent::default();
        unpriced.add(&CostSum::unpriced(9), Bound::AtLeast);
        for spent in [unmeasured, unpriced] {
            let standing = budget("100").standing(&spent, after(50));
            assert_eq!(shown(&standing), ["—", "—", "none", "none"]);
            assert!(!standing.over && standing.reached.is_empty() && standing.share.is_none());
        }
        unmeasured.add(&CostSum::priced(usd("1"), CostBound::Exact), Bound::Exact);
        assert_eq!(unmeasured.figure().to_string(), "≥ $1.00");
    }

    #[test]
    fn only_what_was_spent_for_certain_is_over() {
        use CostBound::{AtLeast, Estimate, Exact};
        for (parts, over, reached) in [
            (&[("99.99", Exact)][..], false, 2),
            (&[("100", Exact)], false, 3),
            (&[("100.000000000001", Exact)], true, 3),
            (&[("100.01", AtLeast)], true, 3),
            (&[("500", Estimate)], false, 0),
            (&[("500", Estimate), ("50", Exact)], false, 1),
            (&[("500", Estimate), ("101", AtLeast)], true, 3),
        ] {
            let standing = budget("100").standing(&spent(parts, Bound::AtLeast), after(50));
            assert_eq!((standing.over, standing.reached.len()), (over, reached), "{parts:?}");
        }
    }

    #[test]
    fn nothing_is_forecast_before_3_percent_of_the_period() {
        let spent = spent(&[("3", CostBound::Exact)], Bound::Exact);
        let at = |now| budget("100").standing(&spent, Elapsed { start: 0, end: 100 * DAY, now });
        assert_eq!((at(3 * DAY - 1).forecast, at(3 * DAY - 1).pace), (None, None));
        assert_eq!(at(3 * DAY).forecast.unwrap().usd, Some(usd("100")));
        assert_eq!(at(3 * DAY).pace, Some(1.0));
        assert_eq!(at(100 * DAY).forecast.unwrap().usd, Some(usd("3")));
        // A clock that runs ahead or behind.
        assert_eq!(at(101 * DAY).elapsed, 1.0);
        assert_eq!((at(-1).elapsed, at(-1).forecast), (0.0, None));
    }

    #[test]
    fn a_threshold_is_read_to_the_last_digit() {
        for (text, millionths) in
            [("0.5", 500_000), ("1", 1_000_000), ("1.0", 1_000_000), ("10", 10_000_000), ("0.000001", 1)]
        {
            let threshold: Threshold = text.parse().unwrap();
            assert_eq!(threshold.millionths(), millionths);
        }
        assert_eq!("0.80".parse::<Threshold>().unwrap().to_string(), "0.8");
        for text in ["0", "-0.5", "10.000001", "80%", "", "0.0000001", "half", "99999999999999"] {
            assert!(text.parse::<Threshold>().is_err(), "{text}");
        }
    }

    fn part() -> impl Strategy<Value = (CostSum, Bound)> {
        let bound = prop_oneof![Just(CostBound::Exact), Just(CostBound::AtLeast), Just(CostBound::Estimate)];
        let cost = prop_oneof![
            (0_i128..=1 << 70, bound).prop_map(|(a, bound)| CostSum::priced(Picodollars::new(a), bound)),
            (0_u64..9).prop_map(CostSum::unpriced),
        ];
        (cost, prop_oneof![Just(Bound::Exact), Just(Bound::AtLeast), Just(Bound::Unmeasured)])
    }

    proptest! {
        #[test]
        fn more_evidence_never_takes_back_what_was_claimed(
            parts in prop::collection::vec(part(), 0..8),
            more in prop::collection::vec(part(), 0..4),
            limit in 1_i128..=1 << 72,
            days in 0_i64..=100,
        ) {
            let budget = Budget { limit: Picodollars::new(limit), ..budget("1") };
            let mut spent = Spent::default();
            parts.iter().for_each(|(cost, tokens)| spent.add(cost, *tokens));
            let before = budget.standing(&spent, after(days));
            more.iter().for_each(|(cost, tokens)| spent.add(cost, *tokens));
            let later = budget.standing(&spent, after(days));
            prop_assert!(later.over >= before.over);
            prop_assert!(before.reached.iter().all(|it| later.reached.contains(it)));
            if let (Some(was), Some(is)) = (before.left.usd, later.left.usd) {
                prop_assert!(is <= was);
            }
        }

        #[test]
        fn spent_and_left_are_the_limit_and_over_is_below_nothing(
            parts in prop::collection::vec(part(), 0..8),
            limit in 1_i128..=1 << 72,
            days in 0_i64..=100,
        ) {
            let budget = Budget { limit: Picodollars::new(limit), ..budget("1") };
            let mut spent = Spent::default();
            parts.iter().for_each(|(cost, tokens)| spent.add(cost, *tokens));
            let standing = budget.standing(&spent, after(days));
            prop_assert_eq!(standing.left.usd.is_none(), standing.spent.usd.is_none());
            if let (Some(is), Some(left)) = (standing.spent.usd, standing.left.usd) {
                prop_assert_eq!(is + left, budget.limit);
                prop_assert!(!standing.over || left < Picodollars::ZERO);
                prop_assert_eq!(standing.over, standing.spent.bound != CostBound::Estimate && left < Picodollars::ZERO
                    || spent.at_least() > budget.limit);
            }
            prop_assert_eq!(standing.forecast.is_some(), days >= 3 && standing.spent.usd.is_some());
            if let Some(forecast) = standing.forecast {
                prop_assert!(forecast.usd >= standing.spent.usd && forecast.bound == standing.spent.bound);
            }
        }
    }
}
