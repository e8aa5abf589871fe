//! CSV and JSON lines under names of our own, which stay (docs/export.md).

use std::io;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Grain;
use super::rows::Row;
use crate::ledger::money::Picodollars;
use crate::ledger::tokens::Class;
use crate::surfaces::money::Usd;
use crate::surfaces::report::csv::record;
use crate::surfaces::report::time;

enum Cell<'a> {
    Text(&'a str),
    Time(i64),
    Count(u64),
    Usd(Option<Picodollars>),
}

fn names(grain: Grain) -> Vec<&'static str> {
    let mut names = match grain {
        Grain::Request => vec!["at", "message_id"],
        Grain::Hour | Grain::Day => vec!["start", "end"],
    };
    names.extend(["session_id", "home", "project", "model", "role"]);
    if grain != Grain::Request {
        names.push("requests");
    }
    names.extend(Class::ALL.map(Class::as_str));
    names.extend(["total", "bound", "cost_usd", "cost_bound", "unpriced_tokens"]);
    names
}

fn cells<'r>(row: &'r Row<'_>) -> Vec<Cell<'r>> {
    let mut cells = vec![Cell::Time(row.start)];
    cells.push(match row.grain {
        Grain::Request => Cell::Text(row.message_id.unwrap_or_default()),
        Grain::Hour | Grain::Day => Cell::Time(row.end),
    });
    let names = &row.names;
    cells
        .extend([names.session, names.home, names.project, names.model, names.role.as_str()].map(Cell::Text));
    if row.grain != Grain::Request {
        cells.push(Cell::Count(row.spend.requests));
    }
    let tokens = row.spend.tokens().unwrap_or_default();
    cells.extend(Class::ALL.map(|class| Cell::Count(tokens.get(class))));
    cells.extend([Cell::Count(tokens.total()), Cell::Text(row.spend.bound().as_str())]);
    let cost = row.spend.cost();
    cells.push(Cell::Usd(cost.and_then(|cost| cost.usd)));
    cells.push(Cell::Text(cost.map_or("unmeasured", |cost| cost.bound.as_str())));
    cells.push(Cell::Count(cost.map_or(0, |cost| cost.unpriced_tokens)));
    cells
}

pub(super) fn header(grain: Grain, out: &mut dyn io::Write) -> io::Result<()> {
    record(out, names(grain))
}

pub(super) fn csv(row: &Row<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let text = |cell: Cell<'_>| match cell {
        Cell::Text(text) => text.to_owned(),
        Cell::Time(at) => time::iso(at),
        Cell::Count(count) => count.to_string(),
        Cell::Usd(usd) => usd.map_or_else(String::new, |usd| usd.to_string()),
    };
    record(out, cells(row).into_iter().map(text))
}

pub(super) fn json(row: &Row<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Line(row))?;
    out.write_all(b"\n")
}

struct Line<'r>(&'r Row<'r>);

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, cell) in names(self.0.grain).into_iter().zip(cells(self.0)) {
            match cell {
                Cell::Text(text) => map.serialize_entry(name, text)?,
                Cell::Time(at) => map.serialize_entry(name, &time::iso(at))?,
                Cell::Count(count) => map.serialize_entry(name, &count)?,
                Cell::Usd(usd) => map.serialize_entry(name, &usd.map(Usd))?,
            }
        }
        map.end()
    }
}
