//! Budgets for a terminal, within 80 columns.

use std::io::{self, Write};

use super::{Budgets, Line, time};
use crate::ledger::money::{CostBound, Rounding};

/// How wide a bar is.
const BAR: usize = 20;

pub(super) fn write(budgets: &Budgets, out: &mut dyn Write) -> io::Result<()> {
    if budgets.lines.is_empty() {
        return writeln!(out, "There are no budgets in the configuration: see docs/budgets.md.");
    }
    for line in &budgets.lines {
        write_line(line, out)?;
    }
    let bounded = budgets.lines.iter().any(|line| line.standing.spent.bound == CostBound::AtLeast);
    writeln!(out, "Days begin at midnight, time zone {}.", time::zone_name(&budgets.timezone))?;
    if bounded {
        writeln!(out, "≥ may be more, so at most (≤) what is shown is left.")?;
    }
    let unpriced: u64 =
        budgets.lines.iter().map(|line| line.standing.spent.unpriced_tokens).max().unwrap_or(0);
    if unpriced > 0 {
        writeln!(out, "Up to {unpriced} tokens have no price and are not in these figures.")?;
    }
    Ok(())
}

fn write_line(line: &Line, out: &mut dyn Write) -> io::Result<()> {
    let Line { budget, span, standing, unmatched } = line;
    let over = if standing.over { "  OVER" } else { "" };
    let days = if span.first == span.last {
        span.first.to_string()
    } else {
        format!("{} to {}", span.first, span.last)
    };
    writeln!(out, "{}: {}, {} ({days}){over}", budget.name, budget.scope, budget.period.as_str())?;
    writeln!(
        out,
        "  {} {}  {} of {}, {} left",
        bar(standing.share),
        percent(standing.share, standing.spent.bound),
        standing.spent,
        budget.limit.dollars(Rounding::HalfEven),
        standing.left,
    )?;
    match (standing.pace, standing.forecast) {
        (Some(pace), Some(forecast)) => {
            writeln!(
                out,
                "  {:.0} % of the period, pace {pace:.2}, forecast {forecast}",
                standing.elapsed * 100.0
            )?;
        }
        _ if standing.spent.usd.is_none() => writeln!(out, "  nothing that could be measured or priced")?,
        _ => writeln!(out, "  too early for a forecast")?,
    }
    if *unmatched {
        writeln!(out, "  the ledger knows no {}: is it written as reports show it?", budget.scope)?;
    }
    writeln!(out)
}

fn bar(share: Option<f64>) -> String {
    let full = share.map_or(0, |share| ((share * BAR as f64) as usize).min(BAR));
    format!("{}{}", "█".repeat(full), "░".repeat(BAR - full))
}

/// A lower bound is rounded down.
fn percent(share: Option<f64>, bound: CostBound) -> String {
    let Some(share) = share else { return "   —".into() };
    let percent = share * 100.0;
    let whole = if bound == CostBound::AtLeast { percent.floor() } else { percent.round() };
    format!("{whole:>3.0} %")
}
