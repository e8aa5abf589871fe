//! One session as a person reads it in a terminal.

use std::io;

use super::grid::{self, Grid, Paint, paint};
use super::money::Pays;
use super::session::{Price, Request, SessionReport};
use super::table::{bounded, class_title, figure};
use super::{number, time, turns_text};
use crate::ledger::bound::Bound;
use crate::ledger::model::Role;
use crate::ledger::money::{Billing, Tier};
use crate::ledger::spend::Source;
use crate::ledger::tokens::{Class, Classes};
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
    for line in turns_text::lines(&report.turns, zone, width, color) {
        writeln!(out, "{line}")?;
    }
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
    for line in derivations(report) {
        for text in grid::wrap(&grid::printable(&line), width) {
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
        ("Cost", Some(cost(report))),
    ];
    let line = |(name, value): (&str, Option<String>)| {
        let value = grid::printable(&value?);
        Some(format!("{name:<9}{}", grid::middle(&value, width.saturating_sub(9).max(20))))
    };
    facts.into_iter().filter_map(line).collect()
}

/// The cost, and what kind of cost it is.
fn cost(report: &SessionReport) -> String {
    let figure = report.row.spend.cost();
    let shown = report.costs.shown(figure);
    if figure.and_then(|cost| cost.usd).is_none() {
        let why = if report.row.spend.tokens().is_none() { "unmeasured" } else { "no price" };
        return format!("{shown} ({why})");
    }
    match report.row.pays {
        Pays::As(Billing::Seat) => {
            format!("{shown} ({}, seat: list-price equivalent, not an invoice)", report.list.as_str())
        }
        pays => format!("{shown} ({}, {})", report.list.as_str(), pays.as_str()),
    }
}

/// How prices make the cost: for each row and tier of the table the tokens of
/// its requests by class, which sum to the same as the requests one by one.
fn derivations(report: &SessionReport) -> Vec<String> {
    let mut groups: Vec<(&Price, Classes, usize)> = Vec::new();
    for request in &report.requests {
        let Some(price) = request.price_of_cost() else { continue };
        let same = |group: &&mut (&Price, Classes, usize)| {
            let other = group.0;
            (other.cost.tier, &other.alias, &other.row) == (price.cost.tier, &price.alias, &price.row)
        };
        match groups.iter_mut().find(same) {
            Some((_, tokens, requests)) => {
                tokens.add(&request.tokens);
                *requests += 1;
            }
            None => groups.push((price, request.tokens, 1)),
        }
    }
    let mut lines = Vec::new();
    for (price, tokens, requests) in groups {
        let requests = if requests == 1 { "1 request".to_owned() } else { format!("{requests} requests") };
        let named = price.alias.as_ref().map(|alias| format!("{alias} as ")).unwrap_or_default();
        let tier = match (price.cost.tier, &price.row.high) {
            (Tier::High, _) => ", above 200,000 tokens",
            (Tier::Low, Some(_)) => ", up to 200,000 tokens",
            (Tier::Low, None) => "",
        };
        let bound = if price.row.at_least { " (the lower of two prices)" } else { "" };
        lines.push(format!(
            "{requests} at {named}{}{tier}{bound}, price from {}:",
            price.row.model, price.row.source
        ));
        for class in Class::ALL.into_iter().filter(|class| tokens.get(*class) > 0) {
            let rate = price.rates().of(class);
            lines.push(format!(
                "- {} {} × ${rate}/M = ${}",
                number::thousands(tokens.get(class)),
                spoken(class),
                rate.times(tokens.get(class))
            ));
        }
    }
    lines
}

fn spoken(class: Class) -> &'static str {
    match class {
        Class::UncachedInput => "uncached",
        Class::CachedInput => "cached",
        Class::ToolInput => "tool",
        Class::Output => "output",
        Class::Thoughts => "thoughts",
    }
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

const LAYOUTS: [Layout; 8] = [
    Layout { clock: "%Y-%m-%d %H:%M:%S", models: usize::MAX, titles: true, compact: false, gap: 2 },
    Layout { clock: "%m-%d %H:%M:%S", models: 24, titles: true, compact: false, gap: 2 },
    Layout { clock: "%H:%M:%S", models: 24, titles: true, compact: false, gap: 2 },
    Layout { clock: "%H:%M:%S", models: 14, titles: false, compact: false, gap: 2 },
    Layout { clock: "%H:%M:%S", models: 14, titles: false, compact: false, gap: 1 },
    Layout { clock: "%H:%M:%S", models: 24, titles: true, compact: true, gap: 2 },
    Layout { clock: "%H:%M:%S", models: 12, titles: false, compact: true, gap: 1 },
    Layout { clock: "%H:%M:%S", models: 9, titles: false, compact: true, gap: 1 },
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
        // Worth a column only where a long prompt made a request dearer.
        let tier = |request: &Request| request.price_of_cost().map(|price| price.cost.tier);
        let tiers = report.requests.iter().any(|request| tier(request) == Some(Tier::High));
        if tiers {
            header.push("Tier".to_owned());
        }
        header.push("Cost".to_owned());
        let cost = |figure| {
            if self.compact { report.costs.compact(figure) } else { report.costs.shown(figure) }
        };

        let rows = report.requests.iter().map(|request| {
            let model = grid::model(&grid::printable(&request.model), self.models);
            let mut cells = vec![time::local(zone, request.at, self.clock), model];
            if roles {
                cells.push(request.role.as_str().to_owned());
            }
            cells.extend(figure(&request.tokens, &classes, count));
            if tiers {
                cells.push(tier(request).map_or_else(String::new, |tier| tier.as_str().to_owned()));
            }
            cells.push(cost(Some(request.cost)));
            cells
        });
        let rows = rows.collect();

        let mut total = vec!["Total".to_owned()];
        total.resize(texts, String::new());
        total.extend(figure(&tokens, &classes, count));
        if let Some(sum) = total.last_mut() {
            *sum = bounded(spend.bound().min(Bound::AtLeast), sum);
        }
        total.extend(tiers.then(String::new));
        total.push(cost(spend.cost()));
        Grid { texts, gap: self.gap, header, rows, total }
    }
}
