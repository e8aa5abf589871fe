//! Counts as people read them.

/// `1,234,567`.
pub(in crate::surfaces) fn thousands(count: u64) -> String {
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

/// `999`, `1.2k`, `12k`, `1.2M`: at most four characters and the unit, never
/// rounded up, as what is at least a figure must stay at least it.
pub(in crate::surfaces) fn compact(count: u64) -> String {
    const UNITS: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    let mut unit = 1;
    let mut name = UNITS[0];
    for next in &UNITS[1..] {
        if count / unit < 1000 {
            break;
        }
        unit *= 1000;
        name = next;
    }
    let whole = count / unit;
    if unit == 1 || whole >= 100 {
        return format!("{whole}{name}");
    }
    format!("{whole}.{}{name}", count % unit / (unit / 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        for (count, want) in [
            (0, "0"),
            (999, "999"),
            (1_182, "1,182"),
            (1_234_567, "1,234,567"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(thousands(count), want);
        }
    }

    #[test]
    fn compact_units_never_claim_more() {
        for (count, want) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (1_299, "1.2k"),
            (99_999, "99.9k"),
            (999_999, "999k"),
            (1_250_001, "1.2M"),
            (123_456_789_000, "123G"),
            (u64::MAX, "18.4E"),
        ] {
            assert_eq!(compact(count), want);
        }
    }
}
