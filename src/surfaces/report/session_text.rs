//! One session as a person reads it in a terminal.

use std::io;

use super::grid::{self, Grid, Paint, paint};
use super::session::{Request, SessionReport};
use super::table::{bounded, class_title, figure};
use super::{number, time};
use crate::ledger::bound::Bound;
use crate::ledger::model::Role;
use crate::ledger::spend::Source;
use crate::ledger::tokens::Class;
use jiff::tz::TimeZone;

pub(super) fn write(
    report: &SessionReport,
    zone: &TimeZone,
    width: usize,
    color: bool,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let row = &report.row;
    writeln!(out, "{}", paint(&grid::printable(&format!("Session {}", row.key)), Paint::Bold, color))?;
    for line in facts(report, zone, width) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    if !report.requests.is_empty() {
        for line in requests(report, zone, width).lines(color) {
            writeln!(out, "{line}")?;
        }
        writeln!(out)?;
    }
    for sentence in &report.story {
        for line in grid::wrap(sentence, width) {
            writeln!(out, "{line}")?;
        }
    }
    let open = report.undecodable.iter().filter(|line| !line.settled);
    for line in open {
        let place = format!("tmp/{}/chats/{} at byte {}", line.project_dir, line.file, line.offset);
        for text in grid::wrap(&grid::printable(&format!("- {}: {place}", line.reason)), width) {
            writeln!(out, "{}", paint(&text, Paint::Dim, color))?;
        }
    }
    Ok(())
}

/// Where it was, when it was, what it rests on: names and values in two columns.
fn facts(report: &SessionReport, zone: &TimeZone, width: usize) -> Vec<String> {
    let row = &report.row;
    let clock = |at: Option<i64>| at.map(|at| time::local(zone, at, "%Y-%m-%d %H:%M:%S"));
    let span = match (clock(row.first_at), clock(row.last_at)) {
        (Some(first), Some(last)) if first == last => first,
        (Some(first), Some(last)) => format!("{first} to {last}"),
        _ => "unknown".to_owned(),
    };
    let sources: Vec<_> = row.spend.basis.iter().map(Source::as_str).collect();
    let sources = if sources.is_empty() { "none".to_owned() } else { sources.join(", ") };
    let total = row.spend.tokens().map_or_else(
        || "— (unmeasured)".to_owned(),
        |tokens| bounded(row.spend.bound(), &number::thousands(tokens.total())),
    );
    let facts = [
        ("Project", row.project.clone()),
        ("Home", row.home.clone()),
        ("Started", clock(row.started_at)),
        ("Active", Some(format!("{span} ({})", time::zone_name(zone)))),
        ("Sources", Some(sources)),
        ("Tokens", Some(total)),
    ];
    let line = |(name, value): (&str, Option<String>)| {
        let value = grid::printable(&value?);
        Some(format!("{name:<9}{}", grid::middle(&value, width.saturating_sub(9).max(20))))
    };
    facts.into_iter().filter_map(line).collect()
}

/// How roomy the requests are set.
#[derive(Clone, Copy)]
struct Layout {
    clock: &'static str,
    models: usize,
    titles: bool,
    compact: bool,
    gap: u16,
}

const LAYOUTS: [Layout; 6] = [
    Layout { clock: "%Y-%m-%d %H:%M:%S", models: usize::MAX, titles: true, compact: false, gap: 2 },
    Layout { clock: "%m-%d %H:%M:%S", models: 24, titles: true, compact: false, gap: 2 },
    Layout { clock: "%H:%M:%S", models: 24, titles: true, compact: false, gap: 2 },
    Layout { clock: "%H:%M:%S", models: 14, titles: false, compact: false, gap: 2 },
    Layout { clock: "%H:%M:%S", models: 24, titles: true, compact: true, gap: 2 },
    Layout { clock: "%H:%M:%S", models: 12, titles: false, compact: true, gap: 1 },
];

fn requests(report: &SessionReport, zone: &TimeZone, width: usize) -> Grid {
    let day = |request: &Request| time::date(zone, request.at);
    let one_day = report.requests.windows(2).all(|pair| day(&pair[0]) == day(&pair[1]));
    // The day is needed where there are several; narrow lines keep it then.
    let layouts = LAYOUTS.into_iter().map(|mut layout| {
        if !one_day && layout.clock == "%H:%M:%S" {
            layout.clock = "%m-%d %H:%M";
        }
        layout
    });
    grid::fit(width, layouts.map(|layout| layout.grid(report, zone)))
}

impl Layout {
    fn grid(self, report: &SessionReport, zone: &TimeZone) -> Grid {
        let spend = &report.row.spend;
        let count = if self.compact { number::compact } else { number::thousands };
        let tokens = spend.tokens().unwrap_or_default();
        let classes: Vec<Class> = Class::ALL
            .into_iter()
            .filter(|class| *class != Class::ToolInput || tokens.tool_input > 0)
            .collect();
        let roles = report.requests.iter().any(|request| request.role != Role::Main);

        let mut header = vec!["Time".to_owned(), "Model".to_owned()];
        if roles {
            header.push("Role".to_owned());
        }
        let texts = header.len();
        header.extend(classes.iter().map(|class| class_title(*class, self.titles).to_owned()));
        header.push("Total".to_owned());

        let rows = report.requests.iter().map(|request| {
            let model = grid::model(&grid::printable(&request.model), self.models);
            let mut cells = vec![time::local(zone, request.at, self.clock), model];
            if roles {
                cells.push(request.role.as_str().to_owned());
            }
            cells.extend(figure(&request.tokens, &classes, count));
            cells
        });
        let rows = rows.collect();

        let mut total = vec!["Total".to_owned()];
        total.resize(texts, String::new());
        total.extend(figure(&tokens, &classes, count));
        if let Some(sum) = total.last_mut() {
            *sum = bounded(spend.bound().min(Bound::AtLeast), sum);
        }
        Grid { texts, gap: self.gap, header, rows, total }
    }
}
