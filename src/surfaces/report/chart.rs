//! Bars after the rows of a table, for the eye.

use unicode_width::UnicodeWidthStr;

use super::build::Report;
use super::flatten::{self, Line};

/// Columns kept free for the blanks before a bar and the longest bar, at least.
pub(super) const ROOM: usize = 14;

/// No bar is longer, however wide the terminal is.
const LONGEST: usize = 40;

/// Eighths of a column, from none to seven.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Lines of a table below its header and first rule, one for each of `lines`.
/// The bars show what the lines cost, or their tokens where nothing has a price.
/// `(table, width)`: how wide the table is and how wide it may become. Says
/// what the bars are of, where there are any.
pub(super) fn draw(
    text: &mut [String],
    report: &Report,
    lines: &[Line<'_>],
    (table, width): (usize, usize),
) -> Option<&'static str> {
    let longest = width.saturating_sub(table + 2).min(LONGEST);
    let costs = flatten::costs(report).is_some();
    let priced = |line: &Line<'_>| {
        let usd = line.spend().cost().and_then(|cost| cost.usd).filter(|_| costs);
        usd.map(|usd| usd.get().unsigned_abs())
    };
    let tokens = |line: &Line<'_>| {
        let tokens = line.spend().tokens().unwrap_or_default();
        Some(u128::from(line.class.map_or_else(|| tokens.total(), |class| tokens.get(class))))
    };
    let by_cost = lines.iter().any(|line| priced(line).is_some_and(|usd| usd > 0));
    let size = |line: &Line<'_>| if by_cost { priced(line) } else { tokens(line) }.unwrap_or(0);
    let largest = lines.iter().map(size).max().filter(|largest| *largest > 0 && longest > 0)?;
    for (text, line) in text.iter_mut().skip(2).zip(lines) {
        let bar = bar(size(line), largest, longest);
        if !bar.is_empty() {
            pad(text, table + 2);
            text.push_str(&bar);
        }
    }
    Some(if by_cost { "Bars: cost." } else { "Bars: tokens." })
}

fn pad(text: &mut String, width: usize) {
    text.extend(std::iter::repeat_n(' ', width.saturating_sub(text.width())));
}

/// A bar in proportion; what is not nothing is never shown as nothing.
fn bar(size: u128, largest: u128, longest: usize) -> String {
    // Sizes are below 2^127: halved until their product with the width fits.
    let shift = (u128::BITS - largest.leading_zeros()).saturating_sub(96);
    let eighths = (size >> shift) * longest as u128 * 8 / (largest >> shift).max(1);
    let eighths = usize::try_from(eighths).unwrap_or(0).max(usize::from(size > 0)).min(longest * 8);
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surfaces::report::sample::{render, report};
    use crate::surfaces::report::spec::Kind;
    use crate::surfaces::report::table::Plain;

    #[test]
    fn bars_are_in_proportion_to_an_eighth() {
        for (size, largest, want) in [
            (0, 8, ""),
            (8, 8, "████"),
            (4, 8, "██"),
            (1, 8, "▌"),
            (1, 1_000_000, "▏"),
            (1 << 126, 1 << 126, "████"),
            (1 << 125, 1 << 126, "██"),
        ] {
            assert_eq!(bar(size, largest, 4), want, "{size}/{largest}");
        }
    }

    #[test]
    fn bars_follow_the_rows_and_fit_the_width() {
        for (pairs, title) in [(&[][..], "cost"), (&[("no-cost", "")], "tokens")] {
            let plain = Plain { chart: true, ..Plain::default() };
            let text = render(&plain, &report(Kind::Daily, pairs));
            let lines: Vec<_> = text.lines().collect();
            assert!(text.ends_with(&format!("Bars: {title}.\n")), "{text}");
            assert!(lines[6].ends_with('█') && lines[4].ends_with(['▏', '▌', '▋', '█', '▎', '▍']), "{text}");
            assert!(lines.iter().all(|line| line.width() <= 80), "{text}");
            assert!(!lines[8].contains('█'), "the total has no bar");
        }
    }
}
