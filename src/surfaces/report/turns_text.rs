//! Turns as a person reads them in a terminal.

use jiff::tz::TimeZone;

use super::grid::{self, Paint, paint};
use super::table::bounded;
use super::turns::TurnReport;
use super::{number, time};

/// A headline and the indented story of each turn.
pub(super) fn lines(turns: &[TurnReport], zone: &TimeZone, width: usize, color: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for turn in turns {
        lines.push(paint(&grid::printable(&headline(turn, zone)), Paint::Bold, color));
        for sentence in &turn.story {
            for text in grid::wrap(&grid::printable(sentence), width.saturating_sub(2).max(20)) {
                lines.push(format!("  {text}"));
            }
        }
        lines.push(String::new());
    }
    lines
}

/// `Turn 2 · 16:00:01 to 16:00:09 · gemini-2.5-pro · ≥ 2,262 tokens`.
fn headline(turn: &TurnReport, zone: &TimeZone) -> String {
    let name = turn.number.map_or_else(|| "Outside of turns".to_owned(), |number| format!("Turn {number}"));
    let clock = |at: i64| time::local(zone, at, "%Y-%m-%d %H:%M:%S");
    let short = |at: i64| time::local(zone, at, "%H:%M:%S");
    let ended = turn.ended_at.map_or_else(|| "now".to_owned(), short);
    let tokens = turn.tokens.map_or_else(
        || "— (unmeasured)".to_owned(),
        |tokens| format!("{} tokens", bounded(turn.bound, &number::thousands(tokens.total()))),
    );
    let beside = turn
        .subagents
        .map(|subagents| format!(", and {} of subagents", number::thousands(subagents.total())))
        .unwrap_or_default();
    format!("{name} · {} to {ended} · {} · {tokens}{beside}", clock(turn.started_at), turn.model)
}
