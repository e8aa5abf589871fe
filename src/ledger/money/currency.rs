//! Another currency at a fixed rate: for people whose budget is not in US dollars.

use std::fmt;

use super::amount::{Picodollars, Rounding};

/// Parts of a rate: six decimals.
const PARTS: u64 = 1_000_000;

/// A currency, and what a US dollar is in it. The rate is the user's and never
/// looked up, so the same ledger says the same tomorrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Currency {
    code: String,
    /// How many millionths of the currency a dollar is.
    rate: u64,
}

/// Why a text is no code or no rate of a currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CurrencyError {
    Code(String),
    NotANumber(String),
    OutOfRange(String),
    TooFine(String),
}

impl fmt::Display for CurrencyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(text) => {
                write!(f, "`{text}` is no currency: write its three capital letters, such as EUR")
            }
            Self::NotANumber(text) => {
                write!(f, "`{text}` is no rate: write what one US dollar is in it, such as 0.92")
            }
            Self::OutOfRange(text) => {
                write!(f, "`{text}` cannot be what one US dollar is in it: above 0, at most 10,000,000")
            }
            Self::TooFine(text) => write!(f, "`{text}` has more than six decimals"),
        }
    }
}

impl Currency {
    /// A currency by its code (ISO 4217) and what one US dollar is in it, a
    /// decimal above 0 with up to six places.
    ///
    /// # Errors
    /// What is no such code or no such number.
    pub fn new(code: &str, usd_rate: &str) -> Result<Self, CurrencyError> {
        Ok(Self { code: Self::code_of(code)?, rate: Self::rate_of(usd_rate)? })
    }

    /// # Errors
    /// What is not three capital letters.
    pub fn code_of(text: &str) -> Result<String, CurrencyError> {
        let text = text.trim();
        let fits = text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase());
        if fits { Ok(text.to_owned()) } else { Err(CurrencyError::Code(text.to_owned())) }
    }

    fn rate_of(text: &str) -> Result<u64, CurrencyError> {
        let text = text.trim();
        let said = || text.to_owned();
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole.strip_prefix('-').unwrap_or(whole)) || !digits(fraction) {
            return Err(CurrencyError::NotANumber(said()));
        }
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > 6 {
            return Err(CurrencyError::TooFine(said()));
        }
        // A minus sign is no digit of an unsigned number: out of range, too.
        let rate = format!("{whole}{fraction:0<6}").parse::<u64>().ok();
        let rate = rate.filter(|rate| (1..=10_000_000 * PARTS).contains(rate));
        rate.ok_or_else(|| CurrencyError::OutOfRange(said()))
    }

    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// `€`, or the code and a blank where no symbol says which currency it is.
    fn symbol(&self) -> String {
        match self.code.as_str() {
            "USD" => "$".to_owned(),
            "EUR" => "€".to_owned(),
            "GBP" => "£".to_owned(),
            "JPY" => "¥".to_owned(),
            "INR" => "₹".to_owned(),
            code => format!("{code} "),
        }
    }

    /// Millionths of 10⁻¹² of the currency: exact.
    fn of(&self, usd: Picodollars) -> i128 {
        usd.get().saturating_mul(i128::from(self.rate))
    }

    /// The whole of the currency, rounded down.
    #[must_use]
    pub fn whole(&self, usd: Picodollars) -> i128 {
        self.of(usd).div_euclid(Picodollars::DOLLAR.get() * i128::from(PARTS))
    }

    /// The amount in the currency with all its digits, at most eighteen decimals.
    #[must_use]
    pub fn exact(&self, usd: Picodollars) -> String {
        let amount = self.of(usd);
        let scale = Picodollars::DOLLAR.get().unsigned_abs() * u128::from(PARTS);
        let sign = if amount < 0 { "-" } else { "" };
        let fraction = format!("{:018}", amount.unsigned_abs() % scale);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{sign}{}{point}{fraction}", amount.unsigned_abs() / scale)
    }

    /// For people: `€1,234.56`, as [`Picodollars::dollars`] writes dollars.
    #[must_use]
    pub fn shown(&self, usd: Picodollars, rounding: Rounding) -> String {
        let amount = Picodollars::new(self.of(usd).div_euclid(i128::from(PARTS)));
        amount.written(&self.symbol(), rounding)
    }

    /// A whole number of the currency, by what precedes it: `€12k`.
    #[must_use]
    pub fn marked(&self, number: &str) -> String {
        format!("{}{number}", self.symbol())
    }
}

/// `1 USD = 0.92 EUR`
impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1 USD = {} {}", self.exact(Picodollars::DOLLAR), self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(code: &str, rate: &str, picodollars: i128) -> (String, String) {
        let currency = Currency::new(code, rate).unwrap();
        let usd = Picodollars::new(picodollars);
        (currency.shown(usd, Rounding::Down), currency.exact(usd))
    }

    #[test]
    fn a_dollar_is_what_the_rate_says_to_the_last_digit() {
        for (code, rate, picodollars, shown, exact) in [
            ("EUR", "0.92", 1_234_567_890_123, "€1.13", "1.13580245891316"),
            ("EUR", "0.920000", 1, "€0.00", "0.00000000000092"),
            ("CHF", "1", 197_500_000_000, "CHF 0.1975", "0.1975"),
            ("JPY", "151.123456", 1_000_000_000_000, "¥151.12", "151.123456"),
            ("GBP", "0.8", -2_500_000_000_000, "-£2.00", "-2"),
        ] {
            assert_eq!(amount(code, rate, picodollars), (shown.into(), exact.into()), "{code} {rate}");
        }
        assert_eq!(Currency::new("EUR", "0.920").unwrap().to_string(), "1 USD = 0.92 EUR");
    }

    #[test]
    fn what_is_no_currency_is_refused_with_what_it_says() {
        for (code, rate, expected) in [
            ("eur", "1", "`eur` is no currency: write its three capital letters"),
            ("€", "1", "`€` is no currency"),
            ("EURO", "1", "`EURO` is no currency"),
            ("EUR", "0", "`0` cannot be what one US dollar is in it: above 0"),
            ("EUR", "0.000", "`0.000` cannot be"),
            ("EUR", "-0.92", "`-0.92` cannot be"),
            ("EUR", "10000001", "at most 10,000,000"),
            ("EUR", "99999999999999999999999", "at most 10,000,000"),
            ("EUR", "0.1234567", "`0.1234567` has more than six decimals"),
            ("EUR", "0,92", "`0,92` is no rate: write what one US dollar is in it, such as 0.92"),
            ("EUR", ".nan", "`.nan` is no rate"),
            ("EUR", "1e3", "`1e3` is no rate"),
            ("EUR", "1.", "`1.` is no rate"),
            ("EUR", "", "`` is no rate"),
        ] {
            let error = Currency::new(code, rate).unwrap_err().to_string();
            assert!(error.contains(expected), "{code} {rate}: {error}");
        }
    }
}
