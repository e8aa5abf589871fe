//! Comma-separated values after RFC 4180, for spreadsheets and scripts.
//!
//! One header with names that never change, one line a row or part, no total:
//! a column can be summed. By class there are no costs: the ledger keeps what a
//! request costs, not what each of its classes does. An unmeasured figure has empty cells. Names are the
//! bytes they are.

use std::borrow::Cow;
use std::io;

use super::build::Report;
use super::flatten::{self, KeyColumn, Line};
use super::{Format, time};
use crate::ledger::bound::Reason;
use crate::ledger::tokens::Class;

/// Lines end in CR LF, as the RFC wants.
#[derive(Clone, Copy, Debug, Default)]
pub struct Csv;

impl Format for Csv {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        let keys = flatten::key_columns(report, true);
        let by_class = flatten::by_class(report);
        let mut names: Vec<&str> = keys.iter().map(|key| key.name()).collect();
        if !by_class {
            names.extend(["requests", "subagent_requests"]);
            names.extend(Class::ALL.map(Class::as_str));
        }
        names.extend(["total", "bound", "reasons", "first_at", "last_at"]);
        let costs = flatten::costs(report).is_some();
        if costs {
            names.extend(["cost_usd", "cost_bound", "unpriced_tokens"]);
        }
        record(out, names)?;
        for line in flatten::lines(report, &Class::ALL) {
            let mut cells = cells(&keys, by_class, &line);
            if let Some(cost) = line.spend().cost().filter(|_| costs) {
                cells.push(cost.usd.map_or_else(String::new, |usd| usd.to_string()).into());
                cells.push(cost.bound.as_str().into());
                cells.push(cost.unpriced_tokens.to_string().into());
            }
            record(out, cells)?;
        }
        Ok(())
    }
}

fn cells<'r>(keys: &[KeyColumn], by_class: bool, line: &Line<'r>) -> Vec<Cow<'r, str>> {
    let spend = line.spend();
    let tokens = spend.tokens();
    let mut cells: Vec<Cow<'r, str>> = keys.iter().map(|key| key.text(line).into()).collect();
    let mut number = |count: Option<u64>| cells.push(count.map_or(String::new(), |n| n.to_string()).into());
    if !by_class {
        number(Some(spend.requests));
        number(Some(spend.subagent_requests));
        Class::ALL.into_iter().for_each(|class| number(tokens.map(|tokens| tokens.get(class))));
    }
    number(tokens.map(|tokens| line.class.map_or_else(|| tokens.total(), |class| tokens.get(class))));
    let reasons: Vec<_> = spend.reasons.iter().map(Reason::as_str).collect();
    cells.push(spend.bound().as_str().into());
    cells.push(reasons.join(";").into());
    let time = |at: Option<i64>| Cow::from(at.map_or_else(String::new, time::iso));
    cells.extend([time(line.first_at()), time(line.last_at())]);
    cells
}

fn record<S: AsRef<str>>(out: &mut dyn io::Write, cells: impl IntoIterator<Item = S>) -> io::Result<()> {
    for (place, cell) in cells.into_iter().enumerate() {
        if place > 0 {
            out.write_all(b",")?;
        }
        out.write_all(quoted(cell.as_ref()).as_bytes())?;
    }
    out.write_all(b"\r\n")
}

fn quoted(cell: &str) -> Cow<'_, str> {
    let edge = cell.starts_with(' ') || cell.ends_with(' ');
    if edge || cell.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\"")).into()
    } else {
        cell.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surfaces::report::sample::{render, report};
    use crate::surfaces::report::spec::Kind;

    #[test]
    fn one_header_and_a_line_a_row() {
        let want = "\
session,project,home,requests,subagent_requests,uncached_input,cached_input,tool_input,output,thoughts,total,\
bound,reasons,first_at,last_at,cost_usd,cost_bound,unpriced_tokens\r
77aa0b1c-9d8e-4f7a-8b6c-5d4e3f2a1b0c,api,ana,0,0,,,,,,,\
unmeasured,model_unobserved;no_figure;orphan,2026-11-30T08:01:00.000Z,2026-11-30T08:01:00.000Z,,unmeasured,0\r
5e1d20aa-3b3b-4c4c-8d8d-9e9e0f0f1a1a,web,ana,3,1,6400,1700,0,135,70,8305,\
at_least,model_unobserved;orphan,2026-11-29T23:30:00.000Z,2026-11-30T00:20:00.000Z,0.0034595,at_least,0\r
b4265a7e-16f4-4a8e-9b1c-0d2e4f6a8c1b,api,ana,2,0,6801,26526,0,433,983,34743,\
at_least,model_unobserved;orphan,2026-11-28T09:01:00.000Z,2026-11-28T09:05:00.000Z,0.025977,at_least,0\r
";
        assert_eq!(render(&Csv, &report(Kind::Sessions, &[("home", "ana")])), want);
    }

    #[test]
    fn by_class_there_is_one_count_a_line() {
        let text = render(&Csv, &report(Kind::Daily, &[("by", "class"), ("until", "2026-11-28")]));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "day,class,total,bound,reasons,first_at,last_at");
        assert!(lines[3].starts_with("2026-11-28,tool_input,0,at_least,model_unobserved;orphan,"));
        assert_eq!(lines.len(), 6);
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        for (cell, want) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            (" edge", "\" edge\""),
            ("=1+1", "=1+1"),
        ] {
            assert_eq!(quoted(cell), want);
        }
    }
}
