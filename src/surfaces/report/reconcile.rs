//! The sources of one session side by side, turn by turn, and where they
//! differ: `reconcile SESSION`.

use std::collections::BTreeMap;
use std::io;

use jiff::tz::TimeZone;
use serde::Serialize;

use super::grid::{self, Grid, Paint, paint};
use super::json::TokensOf;
use super::session::SessionReport;
use super::table::bounded;
use super::turns::TurnReport;
use super::{number, time};
use crate::ledger::bound::Bound;
use crate::ledger::model::Role;
use crate::ledger::spend::Source;
use crate::ledger::tokens::{Classes, Reading};

/// What the journal does not hold, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub cause: &'static str,
    pub model: String,
    pub role: &'static str,
    /// Tokens of the figure that no journal request holds.
    pub tokens: u64,
}

/// Why a role's tokens are not in the journal (accounting R38).
fn cause(role: Role) -> &'static str {
    match role {
        Role::Main => "answers that the journal does not hold: invalid streams, retries, lost lines",
        Role::Subagent => "answers to subagents that no journal holds",
        Role::Router => "the choice of a model under an automatic setting",
        Role::Tool => "web search, web fetch and other tools that call a model",
        Role::Compressor => "compression of the history",
        Role::LoopDetector => "loop detection",
        Role::NextSpeaker => "the next-speaker check",
        Role::EditCorrector => "correction of edits",
        Role::Summarizer => "summaries",
        Role::Autocomplete => "prompt completion",
        Role::StateSnapshot => "context snapshots",
        Role::Utility | Role::FastAckHelper => "calls of the CLI's own",
    }
}

/// What the session's turns hold above its journal requests, by cause.
#[must_use]
pub fn differences(report: &SessionReport) -> Vec<Difference> {
    let mut sums: BTreeMap<(Role, &str), u64> = BTreeMap::new();
    for part in report.turns.iter().flat_map(|turn| &turn.above) {
        let tokens = part.reading.alone().classes().total();
        *sums.entry((part.role, &*part.model)).or_default() += tokens;
    }
    let mut differences: Vec<_> = sums
        .into_iter()
        .filter(|(_, tokens)| *tokens > 0)
        .map(|((role, model), tokens)| Difference {
            cause: cause(role),
            model: model.to_owned(),
            role: role.as_str(),
            tokens,
        })
        .collect();
    differences.sort_by(|a, b| (b.tokens, a.cause, &a.model).cmp(&(a.tokens, b.cause, &b.model)));
    differences
}

fn said(turn: &TurnReport, source: Source) -> Option<Reading> {
    turn.readings.iter().find(|reading| reading.source == source).map(|reading| reading.reading)
}

/// Requests of the session that no turn claims.
fn unclaimed(report: &SessionReport) -> Classes {
    report.requests.iter().filter(|request| !request.in_turn).fold(Classes::default(), |mut sum, request| {
        sum.add(&request.tokens);
        sum
    })
}

/// # Errors
/// Whatever `out` says.
pub fn write_text(
    report: &SessionReport,
    zone: &TimeZone,
    width: usize,
    color: bool,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    writeln!(out, "{}", paint(&grid::printable(&format!("Session {}", report.row.key)), Paint::Bold, color))?;
    writeln!(out)?;
    for line in table(report, zone).lines(color) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    let mut lines = Vec::new();
    let differences = differences(report);
    if differences.is_empty() {
        lines.push("The figures hold nothing above the journal's requests.".to_owned());
    } else {
        lines.push("Above the journal's requests:".to_owned());
    }
    for difference in differences {
        lines.push(format!(
            "- {} tokens to {} ({}): {}",
            number::thousands(difference.tokens),
            difference.model,
            difference.role,
            difference.cause
        ));
    }
    for line in lines {
        for text in grid::wrap(&grid::printable(&line), width) {
            writeln!(out, "{text}")?;
        }
    }
    Ok(())
}

fn table(report: &SessionReport, zone: &TimeZone) -> Grid {
    let sources = [Source::Journal, Source::Prompt, Source::HeadlessStats, Source::Telemetry];
    let shown: Vec<Source> = sources
        .into_iter()
        .filter(|source| report.turns.iter().any(|turn| said(turn, *source).is_some()))
        .collect();
    let marked = report.turns.iter().any(|turn| turn.marker.is_some());
    let title = |source: Source| match source {
        Source::Journal => "Journal",
        Source::Prompt => "Prompt",
        Source::HeadlessStats => "Statistics",
        Source::Telemetry => "Telemetry",
    };
    let mut header = vec!["Turn".to_owned(), "Began".to_owned(), "Ended".to_owned()];
    let texts = header.len();
    header.extend(shown.iter().map(|source| title(*source).to_owned()));
    header.extend(marked.then(|| "Marker".to_owned()));
    header.push("Figure".to_owned());
    let total = |reading: Option<Reading>| {
        reading.map_or_else(|| "–".to_owned(), |reading| number::thousands(reading.classes().total()))
    };
    let mut rows: Vec<Vec<String>> = report
        .turns
        .iter()
        .map(|turn| {
            let mut cells = vec![
                turn.number.map_or_else(|| "–".to_owned(), |number| number.to_string()),
                time::local(zone, turn.started_at, "%m-%d %H:%M:%S"),
                turn.stop_reason.clone().unwrap_or_else(|| turn.ending.as_str().to_owned()),
            ];
            cells.extend(shown.iter().map(|source| total(said(turn, *source))));
            if marked {
                cells.push(turn.marker.map_or_else(
                    || "–".to_owned(),
                    |(input, output)| number::thousands(input.saturating_add(output)),
                ));
            }
            let figure = turn.tokens.map_or_else(String::new, |tokens| number::thousands(tokens.total()));
            cells.push(bounded(turn.bound, &figure));
            cells
        })
        .collect();
    let rest = unclaimed(report);
    if rest.total() > 0 {
        let mut cells = vec!["–".to_owned(), "outside of turns".to_owned(), String::new()];
        cells.extend(shown.iter().map(|source| match source {
            Source::Journal => number::thousands(rest.total()),
            _ => "–".to_owned(),
        }));
        cells.extend(marked.then(|| "–".to_owned()));
        cells.push(bounded(Bound::AtLeast, &number::thousands(rest.total())));
        cells.resize(header.len(), String::new());
        rows.push(cells);
    }
    let spend = &report.row.spend;
    let mut sum = vec!["Total".to_owned()];
    sum.resize(header.len() - 1, String::new());
    let figure = spend.tokens().map_or_else(String::new, |tokens| number::thousands(tokens.total()));
    sum.push(bounded(spend.bound(), &figure));
    Grid { texts, gap: 2, header, rows, total: sum }
}

#[derive(Serialize)]
struct Json<'r> {
    schema: u32,
    session_id: &'r str,
    turns: Vec<TurnJson<'r>>,
    /// Journal requests that no turn claims.
    unclaimed: TokensOf,
    differences: Vec<Difference>,
    tokens: Option<TokensOf>,
    bound: &'static str,
}

#[derive(Serialize)]
struct TurnJson<'r> {
    number: Option<usize>,
    started_at: String,
    ending: &'static str,
    stop_reason: Option<&'r str>,
    journal: Option<TokensOf>,
    prompt: Option<TokensOf>,
    headless_stats: Option<TokensOf>,
    telemetry: Option<TokensOf>,
    marker: Option<(u64, u64)>,
    tokens: Option<TokensOf>,
    bound: &'static str,
}

/// # Errors
/// Whatever `out` says.
pub fn write_json(report: &SessionReport, out: &mut dyn io::Write) -> io::Result<()> {
    let of = |turn: &TurnReport, source| said(turn, source).map(|reading| TokensOf(reading.classes()));
    let turns = report.turns.iter().map(|turn| TurnJson {
        number: turn.number,
        started_at: time::iso(turn.started_at),
        ending: turn.ending.as_str(),
        stop_reason: turn.stop_reason.as_deref(),
        journal: of(turn, Source::Journal),
        prompt: of(turn, Source::Prompt),
        headless_stats: of(turn, Source::HeadlessStats),
        telemetry: of(turn, Source::Telemetry),
        marker: turn.marker,
        tokens: turn.tokens.map(TokensOf),
        bound: turn.bound.as_str(),
    });
    let json = Json {
        schema: super::json::SCHEMA,
        session_id: &report.row.key,
        turns: turns.collect(),
        unclaimed: TokensOf(unclaimed(report)),
        differences: differences(report),
        tokens: report.row.spend.tokens().map(TokensOf),
        bound: report.row.spend.bound().as_str(),
    };
    serde_json::to_writer_pretty(&mut *out, &json)?;
    writeln!(out)
}
