//! A GitHub table, for issues and chats.

use std::io;

use super::build::Report;
use super::flatten::{self, KeyColumn};
use super::table::{bounded, figure};
use super::{Format, notes, number};
use crate::ledger::spend::Spend;
use crate::ledger::tokens::Class;

/// The heading in bold, the table, the notes as a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Markdown;

impl Format for Markdown {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        writeln!(out, "**{}**\n", escaped(&notes::heading(report)))?;
        if report.rows.is_empty() {
            return writeln!(out, "{}", escaped(&notes::empty(report).join(" ")));
        }
        let keys = flatten::key_columns(report, report.several_homes);
        let classes = flatten::shown_classes(report);
        let by_class = flatten::by_class(report);

        let mut titles: Vec<String> = keys.iter().map(|key| key.title()).collect();
        let mut rules = vec![":---"; titles.len()];
        if !by_class {
            titles.push("Requests".to_owned());
            titles.extend(classes.iter().map(|class| flatten::class_title(*class).to_owned()));
        }
        titles.push("Total".to_owned());
        let costs = flatten::costs(report);
        let gaps = costs.is_some_and(|costs| !costs.unpriced_models.is_empty());
        titles.extend(costs.map(|_| "Cost".to_owned()));
        titles.extend(gaps.then(|| "Unpriced".to_owned()));
        rules.resize(titles.len(), "---:");
        writeln!(out, "| {} |", titles.join(" | "))?;
        writeln!(out, "| {} |", rules.join(" | "))?;

        let numbers = |spend: &Spend, class: Option<Class>| {
            let mut cells = figures(report, spend, class, &classes);
            if let Some(costs) = costs {
                cells.push(costs.shown(spend.cost()));
            }
            if gaps {
                cells.push(number::thousands(spend.cost().map_or(0, |cost| cost.unpriced_tokens)));
            }
            cells
        };
        for line in flatten::lines(report, &classes) {
            let mut cells: Vec<String> = keys.iter().map(|key| escaped(key.shown(&line))).collect();
            cells.extend(numbers(line.spend(), line.class));
            writeln!(out, "| {} |", cells.join(" | "))?;
        }
        if let Some((more, spend)) = &report.rest {
            sum(out, &keys, &format!("{more} more"), numbers(spend, None))?;
        }
        let total = numbers(&report.total, None).into_iter().map(|cell| format!("**{cell}**"));
        sum(out, &keys, "**Total**", total.collect())?;
        writeln!(out)?;
        for note in notes::notes(report) {
            writeln!(out, "- {}", escaped(&note))?;
        }
        Ok(())
    }
}

fn figures(report: &Report, spend: &Spend, class: Option<Class>, classes: &[Class]) -> Vec<String> {
    let count = if report.compact { number::compact } else { number::thousands };
    let by_class = flatten::by_class(report);
    let Some(tokens) = spend.tokens() else {
        let cells = if by_class { 1 } else { classes.len() + 2 };
        return vec!["—".to_owned(); cells];
    };
    if by_class {
        let total = class.map_or_else(|| tokens.total(), |class| tokens.get(class));
        return vec![bounded(spend.bound(), &count(total))];
    }
    let mut cells = vec![count(spend.requests)];
    cells.extend(figure(&tokens, classes, count));
    if let Some(total) = cells.last_mut() {
        *total = bounded(spend.bound(), total);
    }
    cells
}

fn sum(out: &mut dyn io::Write, keys: &[KeyColumn], label: &str, numbers: Vec<String>) -> io::Result<()> {
    let mut cells = vec![label.to_owned()];
    cells.resize(keys.len(), String::new());
    cells.extend(numbers);
    writeln!(out, "| {} |", cells.join(" | "))
}

/// Text that stays what it is between pipes: markup is escaped, lines are joined.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '|' | '*' | '_' | '`' | '<' | '[' | ']' | '~' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::money::CostSum;
    use crate::surfaces::report::sample::{render, report};
    use crate::surfaces::report::spec::Kind;

    #[test]
    fn a_table_for_an_issue() {
        let want = "\
**Projects · 2026-11-01 to 2026-11-30 (the last 30 days) · UTC**

| Project | Home | Requests | Fresh | Cached | Output | Thoughts | Total | Cost |
| :--- | :--- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| web | ana | 3 | 6,400 | 1,700 | 135 | 70 | ≥ 8,305 | ≥ $0.0034 |
| **Total** |  | **3** | **6,400** | **1,700** | **135** | **70** | **≥ 8,305** | **≥ $0.0034** |

- Time zone: UTC. Sources: journal.
- ≥ at least: seen only by the journal watcher, and journals leave out cancelled, router and web-search requests.
- The session's journal is already deleted. Its figures are kept.
- Costs at list prices of 2026-11-30.
";
        assert_eq!(render(&Markdown, &report(Kind::Projects, &[("project", "web")])), want);
    }

    #[test]
    fn tokens_without_a_price_have_a_column_where_there_are_any() {
        let mut report = report(Kind::Homes, &[("home", "ana")]);
        report.costs.as_mut().expect("costs").unpriced_models = vec!["gemini-9".to_owned()];
        let gap = CostSum::unpriced(1_182);
        report.rows[0].spend.add_cost(&gap);
        report.total.add_cost(&gap);
        let text = render(&Markdown, &report);
        assert!(text.contains(" | Cost | Unpriced |\n"), "{text}");
        assert!(text.contains(" | ≥ $0.0294 | 1,182 |\n"), "{text}");
        assert!(text.contains("\n- unpriced: 1,182 tokens of gemini-9 have no price (gemgauge prices).\n"));
    }

    #[test]
    fn names_stay_what_they_are_between_pipes() {
        assert_eq!(escaped("a|b"), "a\\|b");
        assert_eq!(escaped("a\\|b_c*\n<i>"), "a\\\\\\|b\\_c\\* \\<i>");
    }

    #[test]
    fn an_empty_report_has_no_table() {
        let text =
            render(&Markdown, &report(Kind::Daily, &[("since", "today"), ("model", "gemini-2.5-pro")]));
        assert!(text.contains("No requests on 2026-11-30 (UTC)."), "{text}");
        assert!(!text.contains('|'), "{text}");
    }
}
