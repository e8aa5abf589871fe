//! What stands below a table: what the figures rest on and what they lack.

use super::build::Report;
use super::money::{Costs, Pays};
use super::spec::Kind;
use super::{flatten, number, time};
use crate::ledger::bound::{Bound, Reason, Reasons};
use crate::ledger::money::{Billing, CostBound};
use crate::ledger::spend::Spend;

/// `Daily report · 2026-11-01 to 2026-11-30 (30 days) · UTC`.
pub(super) fn heading(report: &Report) -> String {
    let kind = match report.kind {
        Kind::Daily => "Daily report",
        Kind::Weekly => "Weekly report",
        Kind::Monthly => "Monthly report",
        Kind::Sessions => "Sessions",
        Kind::Models => "Models",
        Kind::Projects => "Projects",
        Kind::Homes => "Homes",
    };
    let days = match (report.range.days(), report.range.default) {
        (Some(days), true) if days > 1 => format!(" (the last {days} days)"),
        (Some(days), false) if days > 1 => format!(" ({days} days)"),
        _ => String::new(),
    };
    format!("{kind} · {}{days} · {}", report.range, time::zone_name(&report.timezone))
}

/// The sentences below the rows, most general first.
pub(super) fn notes(report: &Report) -> Vec<String> {
    let mut notes = vec![sources(report)];
    if report.total.bound() == Bound::AtLeast {
        let reasons = report.total.reasons.iter().filter(|reason| *reason != Reason::NoFigure);
        notes.push(format!("≥ at least: {}.", why(reasons.collect())));
    }
    let counts = report.sessions;
    // What NoFigure says, with how often.
    match counts.unmeasured {
        0 => {}
        1 => notes.push(
            "— unmeasured: of 1 session no figure was seen; its spend is unknown, not zero.".to_owned(),
        ),
        n => notes.push(format!(
            "— unmeasured: of {n} sessions no figure was seen; their spend is unknown, not zero."
        )),
    }
    match (counts.deleted, counts.all) {
        (0, _) => {}
        (1, 1) => notes.push("The session's journal is already deleted. Its figures are kept.".to_owned()),
        (deleted, all) => notes.push(format!(
            "Journals already deleted: those of {deleted} of {all} sessions. Their figures are kept."
        )),
    }
    if let Some(costs) = flatten::costs(report) {
        notes.extend(self::costs(costs, &report.total));
    }
    notes.extend(report.unmatched.iter().cloned());
    notes
}

/// What the costs are, and what they leave out.
fn costs(costs: &Costs, total: &Spend) -> Vec<String> {
    let mut prices = match costs.as_of {
        Some(day) => format!("Costs at list prices of {day}"),
        None => "Costs at list prices".to_owned(),
    };
    if let Some(currency) = &costs.currency {
        prices.push_str(&format!(", {currency}"));
    }
    let mut notes = vec![prices + "."];
    let figure = total.cost();
    if figure.is_some_and(|cost| cost.bound == CostBound::Estimate) {
        notes.push(
            "~ estimate: a source tells no cached tokens apart, so it may be too high or low.".to_owned(),
        );
    }
    match figure.map_or(0, |cost| cost.unpriced_tokens) {
        0 => {}
        tokens => notes.push(format!(
            "unpriced: {} {} of {} {} no price (gemgauge prices).",
            number::thousands(tokens),
            if tokens == 1 { "token" } else { "tokens" },
            costs.unpriced_models.join(", "),
            if tokens == 1 { "has" } else { "have" },
        )),
    }
    if costs.pays == Pays::As(Billing::Seat) {
        notes.push("A seat is not billed by the token: list-price equivalent, not an invoice.".to_owned());
    } else if !costs.seats.is_empty() {
        let homes = if costs.seats.len() == 1 { "Home" } else { "Homes" };
        notes.push(format!(
            "{homes} with a seat: {}; there it is a list-price equivalent, not an invoice.",
            costs.seats.join(", ")
        ));
    }
    notes
}

fn sources(report: &Report) -> String {
    let names: Vec<_> = report.total.basis.iter().map(crate::ledger::spend::Source::as_str).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!("Time zone: {}. Sources: {names}.", time::zone_name(&report.timezone))
}

/// What an empty report says instead of rows.
pub(super) fn empty(report: &Report) -> Vec<String> {
    let zone = time::zone_name(&report.timezone);
    let range = match (report.range.since, report.range.until) {
        (None, None) => "at any time".to_owned(),
        (Some(since), Some(until)) if since == until => format!("on {since} ({zone})"),
        (Some(since), Some(until)) => format!("from {since} to {until} ({zone})"),
        _ => format!("{} ({zone})", report.range),
    };
    let mut sentences = vec![format!("No requests {range}.")];
    if report.unmatched.is_empty() {
        let wider = if report.range.is_all() { "" } else { "Try --since all for everything in the ledger; " };
        sentences.push(format!("{wider}gemgauge doctor shows where journals are looked for."));
    } else {
        sentences.extend(report.unmatched.iter().cloned());
    }
    sentences
}

/// What only journals tell leaves out (accounting R34, R37, R38).
const WATCHER: &str = "seen only by the journal watcher, and journals leave out cancelled, router and \
                       web-search requests";

/// Why a figure is a bound: clauses for one sentence.
pub(super) fn why(reasons: Reasons) -> String {
    let mut clauses: Vec<&str> = Vec::new();
    if reasons.contains(Reason::Orphan) {
        clauses.push(WATCHER);
    }
    // What the watcher cannot know is said by the clause above.
    let watcher = reasons.contains(Reason::Orphan);
    let others = reasons.iter().filter(|reason| match reason {
        Reason::Orphan => false,
        Reason::ModelUnobserved => !watcher,
        _ => true,
    });
    clauses.extend(others.map(clause));
    if clauses.is_empty() { "a part of it was not measured".to_owned() } else { clauses.join("; ") }
}

/// What a reason means, as a clause (accounting 2.5, 2.6).
pub(in crate::surfaces) fn clause(reason: Reason) -> &'static str {
    match reason {
        Reason::AutoModel => {
            "the model was chosen automatically, by requests of its own that no journal holds"
        }
        Reason::ModelUnobserved => {
            "nobody saw which model was set, so requests that choose one may be missing"
        }
        Reason::RequestUnanswered => "a request ended without its answer being seen",
        Reason::EndingUnseen => "nobody saw a turn end",
        Reason::LoopOrLimit => "a turn was stopped by the turn limit or loop detection",
        Reason::Cancelled => "a turn was cancelled",
        Reason::Killed => "the process ended during a turn",
        Reason::Error => "a turn ended in an error",
        Reason::UnknownEnding => "a turn ended in a way that is not known",
        Reason::Open => "a turn is still open",
        Reason::TelemetryGap => "telemetry was not received all the time",
        Reason::NoFigure => "a prompt was seen and no figure for it",
        Reason::TornLine => "some journal lines could not be decoded",
        Reason::JournalFailed => "a journal, or a part of it, could not be read",
        Reason::JournalLost => "a journal was deleted before it was read to its end",
        Reason::JournalAbsent => "a journal was not found",
        Reason::JournalUnread => "a journal was left unread",
        Reason::ShortOfMarker => "the agent reported more than its requests add up to",
        Reason::SourcesCross => "two sources disagree in both directions",
        Reason::BaselineFailed => "requests of before a resume could not be told from new ones",
        Reason::UsageMalformed => "the agent's own figure could not be read",
        Reason::TeeLossy => "the proxy had to drop a part of the traffic",
        Reason::Orphan => WATCHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_watcher_misses_is_one_clause() {
        assert_eq!(why(Reasons::WATCHER_ONLY), WATCHER);
        assert_eq!(
            why(Reasons::WATCHER_ONLY.with(Reason::TornLine)),
            format!("{WATCHER}; some journal lines could not be decoded")
        );
        assert_eq!(why(Reasons::NONE), "a part of it was not measured");
    }

    #[test]
    fn every_reason_has_a_clause_of_its_own() {
        let clauses: std::collections::BTreeSet<_> = Reason::ALL.into_iter().map(clause).collect();
        assert_eq!(clauses.len(), Reason::ALL.len());
    }
}
