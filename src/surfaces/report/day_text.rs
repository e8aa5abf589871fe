//! One day as a person reads it: sentences first, then a table.

use std::io;

use super::day::{DAYS, DayReport, Line};
use super::grid::{self, Grid};
use super::table::bounded;
use super::{notes, number, time};
use crate::ledger::bound::Bound;
use crate::ledger::spend::Spend;

/// Lines of each kind that the table shows.
const SHOWN: usize = 5;

/// Characters of a session id that a table shows, as in the sessions report.
const ID8: usize = 8;

pub(super) fn write(
    report: &DayReport,
    width: usize,
    color: bool,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    for sentence in story(report) {
        for line in grid::wrap(&grid::printable(&sentence), width) {
            writeln!(out, "{line}")?;
        }
    }
    if report.total.spend != Spend::default() {
        writeln!(out)?;
        for line in table(report, width).lines(color) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// What drove the day, in sentences.
pub(super) fn story(report: &DayReport) -> Vec<String> {
    let (total, zone) = (&report.total, time::zone_name(&report.timezone));
    let unfinished = if report.is_today { " The day is not over yet." } else { "" };
    if total.spend == Spend::default() {
        return vec![format!(
            "Nothing was spent on {} ({zone}) that gemgauge knows of.{unfinished}",
            report.day
        )];
    }
    let mut story = vec![format!("{} ({zone}): {}.{unfinished}", report.day, spent(total))];
    let median = total.median_tokens.unwrap_or(0);
    let usual = bounded(total.median_bound, &number::thousands(median));
    story.push(match total.factor() {
        Some(factor) => {
            format!("{} times the median of the {DAYS} days before ({usual} tokens).", times(factor))
        }
        None if total.spend.tokens().is_none() => {
            "Nothing of it was measured, so it cannot be compared.".to_owned()
        }
        None => format!("The median of the {DAYS} days before is 0, so there is no factor."),
    });
    if let Some(factor) = total.cost_factor() {
        story.push(format!("Its cost is {} times the median.", times(factor)));
    }
    story.extend(drivers(report));
    story.push(match report.empty_days {
        0 => format!("There was spend on each of the {DAYS} days before."),
        1 => format!("1 of the {DAYS} days before had no spend; it counts as 0 in the median."),
        n => format!("{n} of the {DAYS} days before had no spend; they count as 0 in the median."),
    });
    match total.spend.bound() {
        Bound::AtLeast => story.push(format!(
            "≥ at least: {}. A factor that compares lower bounds is a bound neither way.",
            notes::why(total.spend.reasons)
        )),
        Bound::Unmeasured => {
            story.push("— unmeasured: no figure was seen; what was spent is unknown, not zero.".to_owned());
        }
        Bound::Exact => {}
    }
    story
}

/// `≥ 1,234 tokens in 12 requests, ≥ $1.20`.
fn spent(line: &Line) -> String {
    let requests = match line.spend.requests {
        1 => "1 request".to_owned(),
        n => format!("{} requests", number::thousands(n)),
    };
    let cost = line.spend.cost().filter(|cost| cost.usd.is_some());
    let cost = cost.map_or_else(String::new, |cost| format!(", {cost} at list price"));
    format!("{} tokens in {requests}{cost}", tokens(&line.spend))
}

/// The project, model and session that most of the growth, or else most of
/// the day, is in.
fn drivers(report: &DayReport) -> Option<String> {
    let grew = report.total.above() > 0 && report.total.median_tokens.unwrap_or(0) > 0;
    let part = |what: &str, lines: &[Line]| {
        let line = lines
            .iter()
            .max_by_key(|line| (if grew { line.above() } else { line.tokens() }, line.tokens()))?;
        let share = (u128::from(line.tokens()) * 100).checked_div(u128::from(report.total.tokens()))?;
        let key = if what == "session" { short(&line.key) } else { line.key.clone() };
        Some(format!("{what} {key} ({share}\u{a0}% of the day)"))
    };
    let parts: Vec<_> =
        [("project", &report.projects), ("model", &report.models), ("session", &report.sessions)]
            .into_iter()
            .filter_map(|(what, lines)| part(what, lines))
            .collect();
    let why = if grew { "Most of what is above the median" } else { "Most of it" };
    (!parts.is_empty()).then(|| format!("{why}: {}.", parts.join(", ")))
}

fn short(session: &str) -> String {
    session.chars().take(ID8).collect()
}

/// Hundredths as people say them: `2.3`, `0.45`, `12`.
fn times(factor: u128) -> String {
    match factor {
        0..100 => format!("0.{factor:02}"),
        100..1_000 => format!("{}.{}", factor / 100, factor % 100 / 10),
        _ => number::thousands(u64::try_from(factor / 100).unwrap_or(u64::MAX)),
    }
}

fn tokens(spend: &Spend) -> String {
    let total = spend.tokens().map_or(0, |tokens| tokens.total());
    bounded(spend.bound(), &number::thousands(total))
}

fn table(report: &DayReport, width: usize) -> Grid {
    let priced = report.total.spend.cost().is_some_and(|cost| cost.usd.is_some());
    let row = |what: &str, line: &Line| {
        let mut row = vec![
            what.to_owned(),
            grid::middle(&grid::printable(&line.key), if width < 100 { 24 } else { 40 }),
        ];
        row.push(number::thousands(line.spend.requests));
        row.push(tokens(&line.spend));
        if priced {
            row.push(line.spend.cost().map_or_else(|| "—".to_owned(), |cost| cost.to_string()));
        }
        let median = line.median_tokens.map(|median| match median {
            0 => "0".to_owned(),
            median => bounded(line.median_bound, &number::thousands(median)),
        });
        row.push(median.unwrap_or_default());
        row.push(line.factor().map_or_else(String::new, |factor| format!("{}×", times(factor))));
        row
    };
    let session = |line: &Line| Line { key: short(&line.key), ..line.clone() };
    let mut rows: Vec<_> = report.projects.iter().take(SHOWN).map(|line| row("project", line)).collect();
    rows.extend(report.models.iter().take(SHOWN).map(|line| row("model", line)));
    rows.extend(report.sessions.iter().take(SHOWN).map(|line| row("session", &session(line))));
    let mut header: Vec<String> = ["Part", "", "Requests", "Tokens"].map(str::to_owned).to_vec();
    if priced {
        header.push("Cost".to_owned());
    }
    header.extend(["Median", "Factor"].map(str::to_owned));
    let mut total = row("Total", &report.total);
    total[1].clear();
    Grid { texts: 2, gap: 2, header, rows, total }
}

#[cfg(test)]
mod tests {
    use super::super::day::tests::{compared, steady};
    use super::*;
    use unicode_width::UnicodeWidthStr;

    fn text(report: &DayReport) -> String {
        let mut out = Vec::new();
        report.write_text(80, false, &mut out).expect("a Vec takes everything");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn sentences_come_first_then_a_table() {
        let mut report = compared("2026-11-30", &steady(7, 150, 80));
        report.is_today = false;
        report.sessions.retain(|line| line.spend.requests > 0);
        report.models.retain(|line| line.spend.requests > 0);
        report.total.spend.demote(crate::ledger::bound::Reasons::NONE);
        let text = text(&report);
        for part in [
            "2026-11-30 (UTC): ≥ 230 tokens in 2 requests, ≥ $0.0023 at list price.\n",
            "Its cost is 2.3 times the median.\n",
            "2.3 times the median of the 7 days before (≥ 100 tokens).\n",
            "project api (34\u{a0}% of the day), model",
            "There was spend on each of the 7 days before.\n",
            "A factor that compares lower",
            "\nTotal ",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
    }

    #[test]
    fn a_day_of_nothing_says_so_and_a_day_of_no_figure_too() {
        let nothing = text(&compared("2026-11-20", &[]));
        assert_eq!(nothing, "Nothing was spent on 2026-11-20 (UTC) that gemgauge knows of.\n");
        let unmeasured = text(&compared("2026-11-30", &[]));
        assert!(
            unmeasured.contains("— tokens in 0 requests") && unmeasured.contains("unknown, not zero"),
            "{unmeasured}"
        );
    }

    #[test]
    fn factors_are_said_with_the_digits_that_say_something() {
        for (factor, want) in
            [(5, "0.05"), (45, "0.45"), (100, "1.0"), (230, "2.3"), (1_250, "12"), (123_456, "1,234")]
        {
            assert_eq!(times(factor), want);
        }
    }
}
