//! Prices of tokens, read exactly: no float comes near them.

use std::fmt;

use super::amount::Picodollars;
use crate::ledger::tokens::Class;

/// What one token costs, in 10⁻¹² US dollars: a price per million tokens with
/// up to six decimals is a whole number of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// Why a text is no price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateError {
    NotANumber(String),
    Negative(String),
    TooHigh(String),
    TooFine(String),
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber(text) => {
                write!(f, "`{text}` is no price: write US dollars per million tokens, such as 1.25")
            }
            Self::Negative(text) => write!(f, "`{text}` is negative: nobody is paid for using a model"),
            Self::TooHigh(text) => {
                write!(f, "`{text}` is more than 1,000 US dollars per million tokens: is it per token?")
            }
            Self::TooFine(text) => write!(f, "`{text}` has more than six decimals"),
        }
    }
}

impl Rate {
    /// 1,000 US dollars per million tokens: beyond it a price is a slip of the pen.
    pub const MAX: Self = Self(1_000_000_000);

    /// A price in US dollars per million tokens: `1.25`.
    ///
    /// # Errors
    /// What is no plain decimal number, is negative, above [`Rate::MAX`], or
    /// finer than a picodollar per token.
    pub fn per_million(text: &str) -> Result<Self, RateError> {
        let (rate, exact) = scaled(text, 6)?;
        if exact { Ok(rate) } else { Err(RateError::TooFine(text.trim().to_owned())) }
    }

    /// A price in US dollars per token, to the nearest picodollar: `0.00000125`.
    ///
    /// # Errors
    /// As [`Rate::per_million`], except for fineness.
    pub fn per_token(text: &str) -> Result<Self, RateError> {
        Ok(scaled(text, 12)?.0)
    }

    /// Picodollars per token.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    /// What so many tokens cost.
    #[must_use]
    pub fn times(self, tokens: u64) -> Picodollars {
        Picodollars::new(i128::from(self.0) * i128::from(tokens))
    }
}

/// US dollars per million tokens: `1.25`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.times(1_000_000).to_string())
    }
}

/// A decimal number times 10^places, rounded half up, and whether that is exact.
fn scaled(text: &str, places: usize) -> Result<(Rate, bool), RateError> {
    let text = text.trim();
    let said = || text.to_owned();
    let (negative, number) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || number.ends_with('.') {
        return Err(RateError::NotANumber(said()));
    }
    if negative {
        return Err(RateError::Negative(said()));
    }
    let (kept, rest) = fraction.split_at(fraction.len().min(places));
    let kept = format!("{whole}{kept:0<places$}");
    let exact = rest.bytes().all(|b| b == b'0');
    let up = u64::from(rest.as_bytes().first().is_some_and(|b| *b >= b'5'));
    // What does not even fit is too high, too.
    let rate = kept.parse::<u64>().ok().and_then(|rate| rate.checked_add(up)).map(Rate);
    match rate.filter(|rate| *rate <= Rate::MAX) {
        Some(rate) => Ok((rate, exact)),
        None => Err(RateError::TooHigh(said())),
    }
}

/// The rates of one tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rates {
    /// Uncached and tool input.
    pub input: Rate,
    pub cached: Rate,
    pub output: Rate,
    /// Where thoughts have a rate of their own; else they are output.
    pub thoughts: Option<Rate>,
}

impl Rates {
    #[must_use]
    pub fn of(&self, class: Class) -> Rate {
        match class {
            Class::UncachedInput | Class::ToolInput => self.input,
            Class::CachedInput => self.cached,
            Class::Output => self.output,
            Class::Thoughts => self.thoughts.unwrap_or(self.output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_per_million_is_read_to_the_last_digit() {
        for (text, rate) in [
            ("1.25", 1_250_000),
            ("0.01875", 18_750),
            ("10", 10_000_000),
            (" 0.075 ", 75_000),
            ("0.000001", 1),
            ("2.500000000", 2_500_000),
            ("0", 0),
            ("1000", 1_000_000_000),
        ] {
            let read = Rate::per_million(text).unwrap();
            assert_eq!(read.get(), rate, "{text}");
        }
        assert_eq!(Rate::per_million("0.01875").unwrap().to_string(), "0.01875");
        assert_eq!(Rate::per_million("10.0").unwrap().to_string(), "10");
    }

    #[test]
    fn a_price_per_token_is_the_same_price() {
        for (text, rate) in [
            ("0.00000125", 1_250_000),
            ("0.00000001875", 18_750),
            ("0.00000030000000000000004", 300_000),
            ("0.0000000299999999999999", 30_000),
        ] {
            assert_eq!(Rate::per_token(text).unwrap().get(), rate, "{text}");
        }
    }

    #[test]
    fn what_is_no_price_is_refused_with_what_it_says() {
        for (text, expected) in [
            ("-1.25", "`-1.25` is negative"),
            ("1000.000001", "`1000.000001` is more than 1,000 US dollars"),
            ("99999999999999999999999999", "is more than 1,000"),
            ("0.0000001", "has more than six decimals"),
            (".nan", "`.nan` is no price"),
            ("NaN", "`NaN` is no price"),
            ("inf", "`inf` is no price"),
            ("-.inf", "`-.inf` is no price"),
            ("1e-6", "is no price: write US dollars per million tokens, such as 1.25"),
            ("1,25", "is no price"),
            ("1.", "is no price"),
            (".5", "is no price"),
            ("$1", "is no price"),
            ("", "`` is no price"),
            ("-", "is no price"),
        ] {
            let error = Rate::per_million(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn tool_input_is_input_and_thoughts_are_output_unless_priced() {
        let rate = |text| Rate::per_million(text).unwrap();
        let mut rates = Rates { input: rate("1"), cached: rate("0.1"), output: rate("4"), thoughts: None };
        assert_eq!(rates.of(Class::ToolInput), rates.of(Class::UncachedInput));
        assert_eq!(rates.of(Class::Thoughts), rate("4"));
        rates.thoughts = Some(rate("3.5"));
        assert_eq!(rates.of(Class::Thoughts), rate("3.5"));
    }
}
