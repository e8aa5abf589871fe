//! Numbers as bills write them, as integers of 10⁻¹².

/// Decimals that are kept.
const DECIMALS: usize = 12;

/// `1,234.5`, `-0.07`, `$1.20`, `1.2E7`: in units of 10⁻¹², what is below them dropped.
pub(super) fn parse(text: &str) -> Option<i128> {
    let plain: String = text.chars().filter(|c| !matches!(c, ',' | '$' | '€' | '£' | ' ' | '_')).collect();
    let (negative, plain) = match plain.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, plain.strip_prefix('+').unwrap_or(&plain)),
    };
    let (digits, exponent) = match plain.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (plain, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || all.len() > 30 || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i128 = all.parse().ok()?;
    let shift = i32::try_from(DECIMALS).ok()? + exponent - i32::try_from(fraction.len()).ok()?;
    let scaled = if shift >= 0 {
        number.checked_mul(10_i128.checked_pow(shift.unsigned_abs())?)?
    } else {
        10_i128.checked_pow(shift.unsigned_abs()).map_or(0, |unit| number / unit)
    };
    Some(if negative { -scaled } else { scaled })
}

/// A token count: an amount of a unit of so many tokens.
pub(super) fn tokens(text: &str, unit: i128) -> Option<i128> {
    let one = 10_i128.pow(12);
    Some(parse(text)?.checked_mul(unit)? / one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_bills_are_exact() {
        let one = 10_i128.pow(12);
        for (text, want) in [
            ("0", Some(0)),
            ("1,234", Some(1234 * one)),
            ("$0.07", Some(7 * one / 100)),
            ("-0.5", Some(-one / 2)),
            ("1.2E7", Some(12_000_000 * one)),
            ("1.5e-3", Some(one * 3 / 2000)),
            ("0.0000000000019", Some(1)),
            ("", None),
            ("n/a", None),
            ("1.2.3", None),
            (".", None),
        ] {
            assert_eq!(parse(text), want, "{text}");
        }
        assert_eq!(tokens("0.015327", 1_000_000), Some(15_327));
        assert_eq!(tokens("15327", 1), Some(15_327));
    }
}
