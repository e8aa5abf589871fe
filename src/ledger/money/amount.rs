//! Amounts of money: integers of 10⁻¹² US dollars.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub};
use std::str::FromStr;

/// How many decimals a dollar has.
const DECIMALS: usize = 12;

/// An amount in 10⁻¹² US dollars.
///
/// The dearest request that can be written down, five counts of 2^64 tokens at
/// 1,000 US dollars per million, is below 10^29 of them; 128 bits hold a
/// billion of those. Sums saturate all the same and never wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Picodollars(i128);

/// Which way an amount goes when a page has no room for all its digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, ties to the even digit: for what is exact or estimated.
    HalfEven,
    /// Down: a lower bound rounded up would claim more than is known.
    Down,
}

impl Picodollars {
    pub const ZERO: Self = Self(0);
    pub const DOLLAR: Self = Self(1_000_000_000_000);

    #[must_use]
    pub const fn new(amount: i128) -> Self {
        Self(amount)
    }

    #[must_use]
    pub const fn get(self) -> i128 {
        self.0
    }

    /// The share `part` of `whole` of it, rounded down; all of it where there is no whole.
    #[must_use]
    pub fn scaled(self, part: u64, whole: u64) -> Self {
        let (part, whole) = (i128::from(part), i128::from(whole));
        if whole == 0 {
            return self;
        }
        Self(self.0.checked_mul(part).map_or(self.0 / whole * part, |product| product / whole))
    }

    /// For a column of 64 bits, which ends at 9.2 million US dollars.
    #[must_use]
    pub fn to_i64(self) -> i64 {
        i64::try_from(self.0).unwrap_or(if self.0 < 0 { i64::MIN } else { i64::MAX })
    }

    /// The amount as a double, for an exposition that knows no other number.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a sample of Prometheus is a double")]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / Self::DOLLAR.0 as f64
    }

    /// For people: `$1,234.56`; below a dollar four decimals, `$0.0012`; below
    /// those two digits that say something, `$0.000012`. What is not nothing
    /// is never shown as nothing.
    #[must_use]
    pub fn dollars(self, rounding: Rounding) -> String {
        self.written("$", rounding)
    }

    /// The same with another mark of a currency before it.
    pub(super) fn written(self, mark: &str, rounding: Rounding) -> String {
        let size = self.0.unsigned_abs();
        let decimals = if size == 0 || size >= Self::DOLLAR.0.unsigned_abs() {
            2
        } else {
            let digits = size.ilog10() as usize + 1;
            (DECIMALS + 2 - digits).clamp(4, DECIMALS)
        };
        let mut units = self.rounded(decimals, rounding);
        let mut shown = decimals;
        if decimals == 4 && units.unsigned_abs() == 10_000 {
            // Rounded up to a whole dollar, which has two decimals.
            (units, shown) = (units / 100, 2);
        }
        let sign = if units < 0 { "-" } else { "" };
        let scale = 10_u128.pow(u32::try_from(shown).expect("at most twelve"));
        let units = units.unsigned_abs();
        format!("{sign}{mark}{}.{:0shown$}", thousands(units / scale), units % scale)
    }

    /// The amount in units of 10^-decimals dollars.
    fn rounded(self, decimals: usize, rounding: Rounding) -> i128 {
        let dropped = u32::try_from(DECIMALS - decimals).expect("at most twelve");
        let unit = 10_i128.pow(dropped);
        let (whole, rest) = (self.0.div_euclid(unit), self.0.rem_euclid(unit));
        let up = match rounding {
            Rounding::Down => false,
            Rounding::HalfEven => rest * 2 > unit || (rest * 2 == unit && whole % 2 != 0),
        };
        whole + i128::from(up)
    }
}

fn thousands(count: u128) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The exact decimal in dollars: `0.1975`, `-2`, `0.000000000001`.
impl fmt::Display for Picodollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.unsigned_abs();
        let dollar = Self::DOLLAR.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        let fraction = format!("{:012}", size % dollar);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{}{point}{fraction}", size / dollar)
    }
}

/// US dollars as written, `100` or `0.25`: no float comes near them.
impl FromStr for Picodollars {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let no_amount = || format!("`{text}` is no amount: write US dollars, such as 100.00");
        let (negative, number) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return Err(no_amount());
        }
        if fraction.len() > DECIMALS {
            return Err(format!("`{text}` has more than {DECIMALS} decimals"));
        }
        let size: i128 = format!("{whole}{fraction:0<DECIMALS$}").parse().map_err(|_| no_amount())?;
        Ok(Self(if negative { -size } else { size }))
    }
}

impl From<i64> for Picodollars {
    fn from(amount: i64) -> Self {
        Self(amount.into())
    }
}

impl Add for Picodollars {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Picodollars {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Picodollars {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for Picodollars {
    type Output = Self;

    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Sum for Picodollars {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_amount_is_written_exactly() {
        for (amount, want) in [
            (0, "0"),
            (197_500_000_000, "0.1975"),
            (15_620_750_000, "0.01562075"),
            (1_000_000_000_000, "1"),
            (1_234_567_890_123_456, "1234.567890123456"),
            (1, "0.000000000001"),
            (-2_500_000_000_000, "-2.5"),
        ] {
            assert_eq!(Picodollars::new(amount).to_string(), want);
        }
    }

    #[test]
    fn people_see_as_many_decimals_as_say_something() {
        for (amount, nearest, down) in [
            (0, "$0.00", "$0.00"),
            (1_235_000_000_000, "$1.24", "$1.23"),
            (1_245_000_000_000, "$1.24", "$1.24"),
            (1_239_999_999_999, "$1.24", "$1.23"),
            (1_234_567_891_000_000_000, "$1,234,567.89", "$1,234,567.89"),
            (197_500_000_000, "$0.1975", "$0.1975"),
            (1_249_000_000, "$0.0012", "$0.0012"),
            (1_250_000_000, "$0.0012", "$0.0012"),
            (1_350_000_000, "$0.0014", "$0.0013"),
            (999_960_000_000, "$1.00", "$0.9999"),
            (100_000_000, "$0.00010", "$0.00010"),
            (99_600_000, "$0.000100", "$0.000099"),
            (12_345_678, "$0.000012", "$0.000012"),
            (5, "$0.000000000005", "$0.000000000005"),
            (-1_235_000_000_000, "-$1.24", "-$1.24"),
        ] {
            let amount = Picodollars::new(amount);
            assert_eq!(amount.dollars(Rounding::HalfEven), nearest, "{amount}");
            assert_eq!(amount.dollars(Rounding::Down), down, "{amount}");
        }
    }

    #[test]
    fn a_column_of_64_bits_is_filled_and_not_wrapped() {
        assert_eq!(Picodollars::new(7).to_i64(), 7);
        assert_eq!(Picodollars::new(i128::MAX).to_i64(), i64::MAX);
        assert_eq!(Picodollars::new(i128::MIN).to_i64(), i64::MIN);
        assert_eq!(Picodollars::new(i128::MAX) + Picodollars::new(1), Picodollars::new(i128::MAX));
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in [
            "",
            "-",
            "1.",
            ".5",
            "1e3",
            "1,000",
            "$1",
            "ten",
            "1.0000000000001",
            "1 000",
            "9".repeat(60).as_str(),
        ] {
            assert!(text.parse::<Picodollars>().is_err(), "{text}");
        }
        assert_eq!("100.00".parse(), Ok(Picodollars::new(100 * Picodollars::DOLLAR.get())));
        assert_eq!(" 0.000000000001".parse(), Ok(Picodollars::new(1)));
    }

    /// The number in what people see.
    fn value(text: &str) -> i128 {
        let (whole, fraction) = text.strip_prefix('$').unwrap().split_once('.').unwrap();
        let digits = format!("{}{fraction:0<12}", whole.replace(',', ""));
        digits.parse().unwrap()
    }

    proptest! {
        #[test]
        fn a_lower_bound_is_never_shown_above_itself(amount in 0_i128..=i128::from(i64::MAX)) {
            let shown = value(&Picodollars::new(amount).dollars(Rounding::Down));
            prop_assert!(shown <= amount);
            prop_assert_eq!(shown == 0, amount == 0);
        }

        #[test]
        fn what_is_written_is_what_is_read(amount in any::<i64>()) {
            let text = Picodollars::from(amount).to_string();
            prop_assert_eq!(text.parse(), Ok(Picodollars::from(amount)));
        }
    }
}
