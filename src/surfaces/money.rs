//! Money as JSON has it: exact decimals, which a double may not hold.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::ledger::money::{Currency, Picodollars, Rate};

/// US dollars as a JSON number with all its digits: `0.1975`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usd(pub Picodollars);

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = RawValue::from_string(self.0.to_string()).expect("a decimal is a JSON number");
        number.serialize(serializer)
    }
}

/// The same amount in another currency, with all its digits.
#[derive(Clone, Copy, Debug)]
pub struct Local<'c>(pub &'c Currency, pub Picodollars);

impl Serialize for Local<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = RawValue::from_string(self.0.exact(self.1)).expect("a decimal is a JSON number");
        number.serialize(serializer)
    }
}

/// US dollars per million tokens.
#[must_use]
pub fn per_million(rate: Rate) -> Usd {
    Usd(rate.times(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_digit_is_lost() {
        for amount in [0, 1, 197_500_000_000, 1_234_567_890_123_456_789, -2_500_000_000_000] {
            let usd = Picodollars::new(amount);
            assert_eq!(serde_json::to_string(&Usd(usd)).unwrap(), usd.to_string());
        }
        assert_eq!(
            serde_json::to_string(&Usd(Picodollars::new(i128::from(i64::MAX)))).unwrap(),
            "9223372.036854775807"
        );
    }
}
